"""Partition reference networks with chosen algorithms, verify, and compare with the peer's figures.

    python scripts/bench_quality.py FOLDER                      every known .snn file of FOLDER
    python scripts/bench_quality.py FOLDER --networks lenet 16k-rand --algorithms multilevel overlap
    python scripts/bench_quality.py --report [RECORD.json]      the records as Markdown

FOLDER holds the .snn files named in benchmarks/peer_figures.toml, which also says their limits. A
run is kept in benchmarks/quality_ALGORITHM.json (with `-PRESET`, unless default), one entry for
each network and seed; new runs replace those of the same network and seed. Seconds are those of
this machine, warm: compiled code and file cached. `read` is the file to the hypergraph, `partition`
the call. Every partition is judged by snnmap.partitioning.verify.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

from snnmap.errors import LimitError
from snnmap.limits import Limits
from snnmap.partitioning import ALGORITHMS, partition
from snnmap.partitioning.bounds import connectivity_lower_bound, parts_lower_bound
from snnmap.partitioning.metrics import measure
from snnmap.partitioning.verify import verify_partition
from snnmap.progress import Progress
from snnmap.readers import read_network

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"
FIGURES = FOLDER / "peer_figures.toml"


def run(
    file: Path, known: dict[str, Any], algorithm: str, options: argparse.Namespace, seed: int
) -> dict[str, Any]:
    """One run as plain values."""
    began = time.perf_counter()
    hypergraph = read_network(file)
    read_seconds = time.perf_counter() - began
    counts = {
        "nodes": hypergraph.n_nodes,
        "hyperedges": hypergraph.n_hedges,
        "pins": hypergraph.n_pins,
    }
    if any(known[name] != value for name, value in counts.items()):
        sys.exit(f"{file}: {counts} differ from {FIGURES.name}; is it another network?")
    limits = Limits(max_size=known["max_size"], max_inbound=known["max_inbound"])
    progress = Progress(options.time_limit)
    settings = {"preset": options.preset} if algorithm == "multilevel" else {}
    began = time.perf_counter()
    cpu = time.process_time()
    found = partition(
        hypergraph, limits, algorithm=algorithm, seed=seed, progress=progress, **settings
    )
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    metrics = measure(hypergraph, found.parts)
    report = verify_partition(hypergraph, found.parts, limits, connectivity=metrics.connectivity)
    report.raise_if_invalid()
    return {
        "network": file.stem,
        "seed": seed,
        "parts": report.n_parts,
        "connectivity": report.connectivity,
        "cut_net": report.cut_net,
        "max_neurons": report.largest["size"],
        "max_inbound_axons": report.largest["inbound"],
        "reuse_mean": round(metrics.reuse_arithmetic_mean, 3),
        "bound_parts": parts_lower_bound(hypergraph, limits),
        "bound_connectivity": connectivity_lower_bound(hypergraph, limits),
        "complete": found.complete,
        "verified": report.ok,
        "seconds": {
            "read": round(read_seconds, 3),
            "partition": round(seconds, 3),
            "cpu": round(cpu, 3),
            **{phase: round(value, 3) for phase, value in found.seconds.items()},
        },
        "peer_ratio": report.connectivity / known["peer"]["connectivity"],
        "best_ratio": report.connectivity / known["best"]["connectivity"],
    }


def record(path: Path, algorithm: str, preset: str, entry: dict[str, Any]) -> None:
    """Add or replace one run in a results file."""
    kept = json.loads(path.read_text())["runs"] if path.exists() else []
    key = entry["network"], entry["seed"]
    kept = [r for r in kept if (r["network"], r["seed"]) != key] + [entry]
    order = list(tomllib.loads(FIGURES.read_text())["networks"])
    kept.sort(key=lambda r: (order.index(r["network"]), r["seed"]))
    document = {
        "algorithm": algorithm,
        "preset": preset,
        "machine": f"{platform.machine()}, {len(os.sched_getaffinity(0))} CPUs",
        "python": platform.python_version(),
        "runs": kept,
    }
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(document, indent=1) + "\n")
    temporary.replace(path)


def row(name: str, entry: dict[str, Any], known: dict[str, Any]) -> str:
    peer, best = known["peer"], known["best"]
    cells = (
        name,
        entry["network"],
        entry["seed"],
        entry["parts"],
        peer["parts"],
        f"{entry['connectivity']:.1f}",
        f"{entry['peer_ratio']:.3f}",
        best["parts"],
        f"{entry['best_ratio']:.3f}",
        f"{entry['seconds']['partition']:.2f}",
        f"{peer['core_ms'] / 1000:.2f}",
    )
    return "| " + " | ".join(map(str, cells)) + " |"


HEAD = (
    "| algorithm | network | seed | parts | peer's parts | connectivity | / peer | best's parts "
    "| / best known | seconds | peer's seconds (GPU) |\n|" + "---|" * 11
)


def report(paths: list[Path]) -> str:
    """Records as Markdown: one table, then geometric means over networks of the mean over seeds."""
    figures = tomllib.loads(FIGURES.read_text())["networks"]
    lines, means = [HEAD], {}
    for path in paths:
        document = json.loads(path.read_text())
        name = document["algorithm"]
        if document["preset"] != "default":
            name += f" ({document['preset']})"
        by_network: dict[str, list[dict[str, Any]]] = {}
        for entry in document["runs"]:
            lines.append(row(name, entry, figures[entry["network"]]))
            by_network.setdefault(entry["network"], []).append(entry)
        means[name] = {
            network: sum(e["connectivity"] for e in entries) / len(entries)
            for network, entries in by_network.items()
        }
    peer = {network: known["peer"]["connectivity"] for network, known in figures.items()}
    best = {network: known["best"]["connectivity"] for network, known in figures.items()}
    columns = {"peer": peer, "best known": best, **means}
    lines += [
        "",
        "Geometric means of connectivity, row / column, over the networks of both:",
    ]
    lines += ["", "| | " + " | ".join(columns) + " |", "|" + "---|" * (len(columns) + 1)]
    for name, ours in means.items():
        cells = []
        for theirs in columns.values():
            shared = [n for n in ours if n in theirs]
            total = sum(math.log(ours[n] / theirs[n]) for n in shared)
            cells.append(f"{math.exp(total / len(shared)):.3f} ({len(shared)})" if shared else "-")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", type=Path, nargs="*", metavar="FOLDER | RECORD.json")
    parser.add_argument("--networks", nargs="+", help="default: all files that are there")
    parser.add_argument("--algorithms", nargs="+", default=["multilevel"], choices=ALGORITHMS)
    parser.add_argument("--preset", default="default", help="of multilevel")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--time-limit", type=float, help="seconds for each run")
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder of the records")
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    if args.report:
        print(report(args.paths or sorted(FOLDER.glob("quality_*.json"))))
        return
    if len(args.paths) != 1 or not args.paths[0].is_dir():
        parser.error("expected one folder with .snn files")
    figures = tomllib.loads(FIGURES.read_text())["networks"]
    files = [args.paths[0] / f"{name}.snn" for name in args.networks or figures]
    files = [file for file in files if args.networks or file.exists()]
    print(HEAD)
    for algorithm in args.algorithms:
        preset = args.preset if algorithm == "multilevel" else "default"
        name = algorithm if preset == "default" else f"{algorithm}-{preset}"
        warm = read_network(min(files, key=lambda file: file.stat().st_size))
        partition(warm, Limits(max_size=1024, max_inbound=4096), algorithm=algorithm)
        for file in files:
            for seed in args.seeds:
                try:
                    entry = run(file, figures[file.stem], algorithm, args, seed)
                except LimitError as error:
                    print(f"{name} on {file.stem}: {error}", file=sys.stderr)
                    continue
                record(args.output / f"quality_{name}.json", algorithm, preset, entry)
                print(row(name, entry, figures[file.stem]), flush=True)


if __name__ == "__main__":
    main()
