#!/usr/bin/env python3
"""Time networks from their layers to the partition, once everything is compiled.

    scripts/bench_layers.py [NAME ...] [--preset default] [--seed 0] [--repeat 5] [--out FILE]

Each network is built and partitioned `repeat` + 1 times in one process (the first may compile, and
is listed apart). Recorded are the medians of the wall time of both steps together and of each, of
user and system processor seconds, the phases of the median run, and the load of the machine
before. The aim is 2 s on two cores. Every result is checked by the independent verifier.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from snnmap.bench.records import surroundings
from snnmap.limits import Limits
from snnmap.networks import load_network
from snnmap.parallel import thread_count
from snnmap.partitioning.multilevel import partition_multilevel
from snnmap.partitioning.verify import verify_partition

NAMES = ("alexnet", "vgg11", "1M-model", "mobilenet-v1")
LIMITS = Limits(max_size=4096, max_inbound=65536)
BAR_S = 2.0


def run(name: str, preset: str, seed: int, repeat: int) -> dict[str, Any]:
    """One network: build and partition, again and again; verify the last."""
    times, load_before = [], os.getloadavg()[0]
    network: Any = None
    found: Any = None
    for _ in range(repeat + 1):
        del network, found  # one network at a time, as in a process of its own
        before, started = os.times(), time.perf_counter()
        network = load_network(name)
        loaded = time.perf_counter()
        found = partition_multilevel(network, LIMITS, preset=preset, engine="cpu", seed=seed)
        ended, after = time.perf_counter(), os.times()
        times.append(
            {
                "total_s": ended - started,
                "load_s": loaded - started,
                "partition_s": ended - loaded,
                "user_s": after.user - before.user,
                "system_s": after.system - before.system,
                "phases_s": found.seconds,
            }
        )
    report = verify_partition(network, found.parts, LIMITS)
    first, *later = times
    row = {
        "network": name,
        "preset": preset,
        "seed": seed,
        "neurons": network.n_nodes,
        "stored_pins": len(network.destinations),
        "valid": report.ok,
        "parts": found.n_parts,
        "connectivity": report.connectivity,
        "first_s": first["total_s"],
        **sorted(later, key=lambda one: one["total_s"])[len(later) // 2],
        "fastest_s": min(one["total_s"] for one in later),
        "bar_s": BAR_S,
        "load_before": load_before,
    }
    print(
        f"{name:>12} {preset} {'valid' if report.ok else 'INVALID'} parts {found.n_parts} "
        f"connectivity {report.connectivity:.1f}; {row['total_s']:.2f} s (fastest "
        f"{row['fastest_s']:.2f}), user {row['user_s']:.2f} system {row['system_s']:.2f}, "
        f"load {load_before:.1f}",
        flush=True,
    )
    return row


def main() -> None:
    """Parse, run, record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=list(NAMES))
    parser.add_argument("--preset", default="default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows = [run(name, args.preset, args.seed, args.repeat) for name in args.names]
    if args.out:
        record = {
            **surroundings(),
            "threads": thread_count(),
            "date": time.strftime("%Y-%m-%d"),
            "rows": rows,
        }
        args.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
