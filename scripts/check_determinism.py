#!/usr/bin/env python3
"""Check that partitions do not depend on threads, repetition or the version of Python.

    scripts/check_determinism.py [NAME ...] [--record FILE] [--compare FILE]

Each network is partitioned with every preset and two seeds in fresh processes with 1 and 2 threads,
the latter twice; all digests of a case must be equal. --record keeps them (benchmarks/digests.json),
--compare checks them against those of another interpreter or machine. Exit code 1 if anything differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

SEEDS = (0, 1)
NAMES = ["lenet", "16k-model", "16k-rand", "alexnet"]
PRESETS = ["fast", "default"]
RUNS = ("1", "2", "2")  # threads of each run


def digests(names: list[str], presets: list[str]) -> dict[str, str]:
    """SHA-256 of the parts of every case, in this process."""
    from snnmap.limits import Limits
    from snnmap.networks import load_network
    from snnmap.partitioning.multilevel import partition_multilevel

    found = {}
    for name in names:
        limits = Limits(max_size=1024, max_inbound=4096)
        if name in ("256k-model", "1M-model", "alexnet", "vgg11", "mobilenet-v1"):
            limits = Limits(max_size=4096, max_inbound=65536)
        network = load_network(name).grouped()
        for preset in presets:
            for seed in SEEDS:
                began = time.perf_counter()
                result = partition_multilevel(
                    network, limits, preset=preset, engine="cpu", seed=seed
                )
                digest = hashlib.sha256(result.parts.astype("<i4").tobytes()).hexdigest()
                found[f"{name} {preset} {seed}"] = digest
                took = time.perf_counter() - began
                print(f"{name} {preset} {seed}: {digest[:16]} {took:.1f} s", file=sys.stderr)
    return found


def main() -> int:
    """Parse, run, compare; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--presets", default=",".join(PRESETS))
    parser.add_argument("--record", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.here:
        print(json.dumps(digests(args.names, args.presets.split(","))))
        return 0
    runs = []
    for threads in RUNS:
        command = [sys.executable, __file__, *args.names, "--presets", args.presets, "--here"]
        environment = os.environ | {"SNNMAP_NUM_THREADS": threads}
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        runs.append(json.loads(done.stdout))
    if args.compare:
        recorded = json.loads(args.compare.read_text())["digests"]
        runs.append({case: recorded.get(case, "not recorded") for case in runs[0]})
    wrong = [case for case in runs[0] if len({run[case] for run in runs}) > 1]
    for case in wrong:
        print(f"{case}: " + " ".join(run[case][:16] for run in runs))
    print(f"{len(runs[0])} cases x {len(runs)} runs, {len(wrong)} differ")
    if args.record and not wrong:
        versions = {p: version(p) for p in ("numpy", "numba", "scipy")}
        record = {
            "versions": {"python": platform.python_version(), **versions},
            "runs": [f"{threads} threads" for threads in RUNS],
            "digests": runs[0],
        }
        args.record.write_text(json.dumps(record, indent=1) + "\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
