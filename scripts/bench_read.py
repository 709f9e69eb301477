#!/usr/bin/env python3
"""Time reading network files against reading their bytes, and record the result.

    python scripts/bench_read.py FILE... [--out benchmarks/read.json] [--repeat 5]

For each file (in the page cache after the first pass), best of REPEAT:
  stream_s      its bytes read through one 4 MiB buffer
  bytes_s       its bytes read into fresh memory (what `open(...).read()` costs)
  grouped_s     read_network: every distinct destination set stored once
  grouped_cpu_s processor time of that over all threads (other work on the machine hardly shows)
  ungrouped_s   read_network(grouped=False): every row stored (.snn and .axh only)
and grouped_mib, the most memory that Python and NumPy held during grouped reading.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numba
import numpy as np

from snnmap.parallel import thread_count
from snnmap.readers import find_format, read_network


def stream(path: Path) -> None:
    buffer = bytearray(4 << 20)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def best(
    repeat: int,
    function: Callable[[], object],
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    seconds = []
    for _ in range(repeat):
        began = clock()
        result = function()
        seconds.append(clock() - began)
        del result
    return round(min(seconds), 4)


def measure(path: Path, repeat: int) -> dict[str, object]:
    network = read_network(path)  # compiles, fills the page cache
    row: dict[str, object] = {
        "file": path.name,
        "mib": round(path.stat().st_size / 2**20, 1),
        "nodes": network.n_nodes,
        "hyperedges": network.n_hedges,
        "groups": network.n_groups,
        "pins": network.n_pins,
    }
    del network
    row["stream_s"] = best(repeat, lambda: stream(path))
    row["bytes_s"] = best(repeat, path.read_bytes)
    row["grouped_s"] = best(repeat, lambda: read_network(path))
    row["grouped_cpu_s"] = best(repeat, lambda: read_network(path), time.process_time)
    if find_format(path).name in ("snn", "axh"):
        row["ungrouped_s"] = best(repeat, lambda: read_network(path, grouped=False))
    tracemalloc.start()
    read_network(path)
    row["grouped_mib"] = round(tracemalloc.get_traced_memory()[1] / 2**20, 1)
    tracemalloc.stop()
    return row


def cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    rows = []
    for path in options.files:
        rows.append(measure(path, options.repeat))
        print(json.dumps(rows[-1]), flush=True)
    if options.out:
        about = {
            "what": "reading network files, best of several, page cache warm",
            "when": datetime.now(UTC).date().isoformat(),
            "cpu": cpu_name(),
            "threads": thread_count(),
            "load_average": [round(x, 1) for x in os.getloadavg()],
            "python": platform.python_version(),
            "numpy": np.__version__,
            "numba": numba.__version__,
        }
        options.out.parent.mkdir(exist_ok=True)
        options.out.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
