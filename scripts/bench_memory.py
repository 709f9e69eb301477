#!/usr/bin/env python3
"""Peak memory from a network file to its partition, each in a fresh process, against the file's size.

    scripts/bench_memory.py FILE... [--preset default] [--out benchmarks/memory.json]

peak_mib is the largest resident set of the process, pages of the mapped file included; base_mib that of a
process that has done all this for LeNet (interpreter, libraries, compiled code). ratio is
(peak - base) / file. Bars: 3 for any network, 1.5 for layered ones.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from snnmap.bench.records import surroundings
from snnmap.limits import Limits

SMALL, LARGE = Limits(max_size=1024, max_inbound=4096), Limits(max_size=4096, max_inbound=65536)
LARGE_ONES = ("256k-model", "1M-model", "alexnet", "vgg11", "mobilenet-v1")


def peak_mib() -> float:
    """Largest resident set so far."""
    scale = 2**20 if sys.platform == "darwin" else 2**10
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale, 1)


def work(path: Path, preset: str) -> dict[str, object]:
    """Read and partition in this process."""
    from snnmap.networks import load_network
    from snnmap.partitioning.multilevel import partition_multilevel
    from snnmap.readers import read_network

    partition_multilevel(load_network("lenet"), SMALL, engine="cpu", preset="fast")
    base, began = peak_mib(), time.perf_counter()
    network = read_network(path)
    reading, seconds = peak_mib(), time.perf_counter() - began
    limits = LARGE if path.stem in LARGE_ONES else SMALL
    found = partition_multilevel(network, limits, engine="cpu", preset=preset)
    peak, file_mib = peak_mib(), path.stat().st_size / 2**20
    layered = len(network.destinations) * 2 < network.n_pins
    ratio = (peak - base) / file_mib
    return {
        "file": path.name,
        "file_mib": round(file_mib, 1),
        "pins": network.n_pins,
        "layered": layered,
        "base_mib": base,
        "peak_reading_mib": reading,
        "peak_mib": peak,
        "ratio": round(ratio, 2),
        "bar": 1.5 if layered else 3.0,
        "within": ratio <= (1.5 if layered else 3.0),
        "parts": found.n_parts,
        "read_s": round(seconds, 2),
        "partition_s": round(sum(found.seconds.values()), 2),
    }


def main() -> None:
    """Parse, run each file in its own process, record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--preset", default="default")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.here:
        print(json.dumps(work(args.files[0], args.preset)))
        return
    rows = []
    for file in args.files:
        command = [sys.executable, __file__, str(file), "--preset", args.preset, "--here"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        rows.append(json.loads(done.stdout))
        print(done.stdout.strip(), flush=True)
    if args.out:
        record = {
            "preset": args.preset,
            **surroundings(),
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "rows": rows,
        }
        args.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
