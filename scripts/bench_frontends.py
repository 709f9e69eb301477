"""Measure how long networks of other tools take to read, and the memory they need.

    python scripts/bench_frontends.py [FILE ...] [-o benchmarks/frontends.json]

Each file is read three times in a process of its own (once before, so that compiled code is
cached). Recorded are medians: the time of the first `read_network` of the process, which imports
what the format needs; the processor time of it, on which other work on the machine hardly shows;
the time of a second read; and the peak memory of the process. Without files, those under
../shared/inputs are taken.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DEFAULT = ("nir/nmnist_cnn.nir", "nir/braille_rnn.nir", "lava/pilotnet.net",
           "sonata_300_pointneurons/config.json")  # fmt: skip

READ = """
import json, resource, sys, time
from snnmap.readers import read_network
began, cpu = time.perf_counter(), time.process_time()
network = read_network(sys.argv[1])
seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
began = time.perf_counter()
read_network(sys.argv[1])
again = time.perf_counter() - began
inputs = sum(p.size for p in network.populations if p.is_input)
print(json.dumps({
    "neurons": network.n_nodes - inputs, "inputs": inputs, "hyperedges": network.n_hedges,
    "pins": network.n_pins, "stored_pins": len(network.destinations), "seconds": seconds,
    "cpu_seconds": cpu, "again_seconds": again,
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
}))
"""


def measure(path: Path, repeats: int = 3) -> dict[str, Any]:
    runs = []
    for _ in range(repeats + 1):
        command = [sys.executable, "-c", READ, str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{path}: {done.stderr.strip().splitlines()[-1]}")
        runs.append(json.loads(done.stdout))
    row: dict[str, Any] = {"file": f"{path.parent.name}/{path.name}", **runs[-1]}
    for key in ("seconds", "cpu_seconds", "again_seconds"):
        row[key] = round(statistics.median(r[key] for r in runs[1:]), 3)
    row["peak_mb"] = round(max(r["peak_mb"] for r in runs[1:]), 1)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    chosen = parser.parse_args()
    inputs = ROOT.parent / "shared" / "inputs"
    files = chosen.files or [inputs / name for name in DEFAULT if (inputs / name).exists()]
    if not files:
        raise SystemExit("no files: name some, or lay ../shared/inputs beside the project")
    rows = []
    for path in files:
        rows.append(measure(path))
        print(json.dumps(rows[-1]))
    load = round(os.getloadavg()[0], 1)
    machine = {"python": platform.python_version(), "cpus": os.cpu_count(), "load": load}
    if chosen.output:
        chosen.output.write_text(json.dumps({"machine": machine, "reads": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
