#!/usr/bin/env python3
"""Time the first use after an installation, with an empty cache of compiled code, and a later one.

    scripts/bench_first_use.py [--network lenet] [--out benchmarks/first_use.json]

Runs ``snnmap map NETWORK`` in fresh processes with a fresh NUMBA_CACHE_DIR: once with nothing
compiled, then best of three. Wall clock and processor time are those of the whole command (the first
includes the process that compiles placement meanwhile); what it said on stderr while one had to wait is recorded too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from snnmap.bench.records import surroundings

ROOT = Path(__file__).resolve().parents[1]
BAR_S = 30.0


def run(network: str, folder: Path) -> dict[str, object]:
    """One command in a fresh process."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    options = {"--profile": "loihi64", "--engine": "cpu", "--output": str(folder / "out")}
    command = [sys.executable, "-m", "snnmap", "map", network]
    command += [word for option in options.items() for word in option]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_s": round(wall, 2), "cpu_s": round(cpu, 2), "said": done.stderr.splitlines()}


def main() -> None:
    """Parse, run, record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--network", default="lenet")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first = run(args.network, folder)
        later = min(
            (run(args.network, folder) for _ in range(3)), key=lambda r: float(str(r["wall_s"]))
        )
        size = sum(f.stat().st_size for f in (folder / "cache").rglob("*") if f.is_file())
    record = {
        "network": args.network,
        "first": first,
        "later": later,
        "bar_s": BAR_S,
        "cache_mib": round(size / 2**20, 1),
        "load_before": round(load, 2),
        **surroundings(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }
    print(json.dumps(record, indent=1))
    if args.out:
        args.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
