"""Compare k-way partitions with Mt-KaHyPar's, on a hypergraph file such as ISPD98's ibm01.hgr.

    python scripts/bench_kway.py FILE.hgr                    against the recorded peer
    python scripts/bench_kway.py FILE.hgr --live             against Mt-KaHyPar in this environment
    python scripts/bench_kway.py FILE.hgr --record-peer      record it (needs only mtkahypar)
    python scripts/bench_kway.py FILE.hgr --report           print the recorded results as Markdown

Both minimise km1 = sum of w * (parts of the h-edge - 1) with at most floor((1 + e) * ceil(n / k))
nodes a part. Every partition of ours is judged by snnmap.partitioning.verify. Ratios compare means
over the seeds. Mt-KaHyPar is a peer, not a dependency: install it wherever you like.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"


def peer_runs(file: Path, ks: list[int], seeds: list[int], imbalance: float) -> dict[str, Any]:
    """Run Mt-KaHyPar's default preset; imports nothing of snnmap."""
    from importlib.metadata import version

    import mtkahypar

    threads = len(os.sched_getaffinity(0))
    peer = mtkahypar.initialize(threads)
    context = peer.context_from_preset(mtkahypar.PresetType.DEFAULT)
    context.logging = False
    hypergraph = peer.hypergraph_from_file(str(file), context, mtkahypar.FileFormat.HMETIS)
    runs = []
    for k in ks:
        for seed in seeds:
            context.set_partitioning_parameters(k, imbalance, mtkahypar.Objective.KM1)
            mtkahypar.set_seed(seed)
            began = time.perf_counter()
            found = hypergraph.partition(context)
            seconds = time.perf_counter() - began
            runs.append(
                {
                    "k": k,
                    "seed": seed,
                    "connectivity": found.km1(),
                    "largest_part": max(found.block_weight(b) for b in range(k)),
                    "seconds": round(seconds, 3),
                }
            )
            print(f"mtkahypar k={k} seed={seed}: km1 {found.km1()} in {seconds:.2f} s", flush=True)
    return {
        "file": file.name,
        "imbalance": imbalance,
        "peer": f"Mt-KaHyPar {version('mtkahypar')}, default preset, {threads} threads",
        "runs": runs,
    }


def own_runs(
    file: Path, ks: list[int], seeds: list[int], imbalance: float, algorithm: str, preset: str
) -> list[dict[str, Any]]:
    """Run one of snnmap's algorithms and verify what it returns."""
    from snnmap.partitioning import partition
    from snnmap.partitioning.kway import kway_limits
    from snnmap.partitioning.verify import verify_partition
    from snnmap.readers import read_network

    hypergraph = read_network(file)
    partition(hypergraph, kway_limits(hypergraph, ks[0], imbalance), algorithm=algorithm)  # warm-up
    runs = []
    for k in ks:
        limits = kway_limits(hypergraph, k, imbalance)
        for seed in seeds:
            began = time.perf_counter()
            found = partition(hypergraph, limits, algorithm=algorithm, preset=preset, seed=seed)
            seconds = time.perf_counter() - began
            report = verify_partition(hypergraph, found.parts, limits)
            report.raise_if_invalid()
            runs.append(
                {
                    "k": k,
                    "seed": seed,
                    "parts": report.n_parts,
                    "connectivity": report.connectivity,
                    "largest_part": report.largest["size"],
                    "seconds": round(seconds, 3),
                }
            )
            print(
                f"{algorithm} k={k} seed={seed}: km1 {report.connectivity:.0f} in {seconds:.2f} s",
                flush=True,
            )
    return runs


def means(runs: list[dict[str, Any]], quantity: str) -> dict[int, float]:
    """Mean over seeds, by k."""
    by_k: dict[int, list[float]] = {}
    for run in runs:
        by_k.setdefault(run["k"], []).append(run[quantity])
    return {k: sum(values) / len(values) for k, values in by_k.items()}


def report(record: dict[str, Any]) -> str:
    """The record as a Markdown table."""
    ours, peers = means(record["runs"], "connectivity"), means(record["peer_runs"], "connectivity")
    seconds = means(record["runs"], "seconds"), means(record["peer_runs"], "seconds")
    best = {k: min(run["connectivity"] for run in record["runs"] if run["k"] == k) for k in ours}
    lines = [
        f"`{record['file']}`, imbalance {record['imbalance']:.0%}: {record['algorithm']} "
        f"({record['preset']}) against {record['peer']}; means over seeds.",
        "",
        "| k | km1 | best km1 | peer's km1 | ratio | seconds | peer's seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    shared = [k for k in ours if k in peers]
    for k in shared:
        lines.append(
            f"| {k} | {ours[k]:.0f} | {best[k]:.0f} | {peers[k]:.0f} | {ours[k] / peers[k]:.3f} | "
            f"{seconds[0][k]:.2f} | {seconds[1][k]:.2f} |"
        )
    if shared:
        mean = math.exp(sum(math.log(ours[k] / peers[k]) for k in shared) / len(shared))
        lines.append(f"| geometric mean | | | | {mean:.3f} | | |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--k", type=int, nargs="+", default=[2, 4, 8, 16, 32])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--imbalance", type=float, default=0.03)
    parser.add_argument("--algorithm", default="multilevel")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--live", action="store_true")
    parser.add_argument("--record-peer", action="store_true")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--output", type=Path, help="default benchmarks/kway_FILE_ALGORITHM.json")
    parser.add_argument("--peer", type=Path, help="default benchmarks/kway_FILE_mtkahypar.json")
    args = parser.parse_args()
    stem = args.file.stem
    peer_file = args.peer or FOLDER / f"kway_{stem}_mtkahypar.json"
    name = args.algorithm if args.preset == "default" else f"{args.algorithm}-{args.preset}"
    output = args.output or FOLDER / f"kway_{stem}_{name}.json"
    if args.report:
        print(report(json.loads(output.read_text())))
        return
    problem = args.file, args.k, args.seeds, args.imbalance
    if args.record_peer:
        peer_file.write_text(json.dumps(peer_runs(*problem), indent=1) + "\n")
        return
    if args.live:
        try:
            peer = peer_runs(*problem)
        except ImportError:
            sys.exit("mtkahypar is not installed here; leave out --live to use the recorded runs")
    elif peer_file.exists():
        peer = json.loads(peer_file.read_text())
    else:
        sys.exit(f"{peer_file} does not exist; record it with --record-peer, or use --live")
    if peer["imbalance"] != args.imbalance or peer["file"] != args.file.name:
        sys.exit(f"{peer_file} speaks of {peer['file']} with imbalance {peer['imbalance']}")
    record = {
        "file": args.file.name,
        "imbalance": args.imbalance,
        "algorithm": args.algorithm,
        "preset": args.preset,
        "machine": f"{platform.machine()}, {len(os.sched_getaffinity(0))} CPUs",
        "runs": own_runs(*problem, args.algorithm, args.preset),
        "peer": peer["peer"],
        "peer_runs": peer["runs"],
    }
    output.write_text(json.dumps(record, indent=1) + "\n")
    print(report(record))


if __name__ == "__main__":
    main()
