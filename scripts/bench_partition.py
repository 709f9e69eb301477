#!/usr/bin/env python3
"""Partition the reference networks and record quality and times against the published peer.

    scripts/bench_partition.py [NAME ...] [--preset default] [--config FILE] [--engine cpu] [--seed 0]
                               [--repeat 1] [--out FILE]

Networks are generated (`snnmap.networks`), so the script runs anywhere; a name may also be the path
of a file. Every result is checked by the independent verifier.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from snnmap.bench.records import surroundings
from snnmap.limits import Limits
from snnmap.networks import load_network
from snnmap.parallel import thread_count
from snnmap.partitioning.multilevel import partition_multilevel
from snnmap.partitioning.verify import verify_partition

SMALL, LARGE = Limits(max_size=1024, max_inbound=4096), Limits(max_size=4096, max_inbound=65536)
# name: limits, peer's parts, connectivity, core milliseconds; best connectivity known (benchmarks/peer_figures.toml)
NETWORKS: dict[str, tuple[Limits, int, float, int, float]] = {
    "lenet": (SMALL, 17, 7551.4, 480, 6680.0),
    "16k-model": (SMALL, 22, 10355.8, 865, 9617.9),
    "64k-model": (SMALL, 124, 150379.3, 3912, 149002.7),
    "256k-model": (LARGE, 63, 202047.4, 20663, 202047.4),
    "1M-model": (LARGE, 83, 522598.7, 144220, 490959.0),
    "alexnet": (LARGE, 58, 276465.9, 90093, 274263.9),
    "vgg11": (LARGE, 54, 196129.9, 153568, 194790.4),
    "16k-rand": (SMALL, 19, 69350.6, 818, 66609.2),
    "64k-rand": (SMALL, 119, 617411.3, 2219, 583651.0),
    "256k-rand": (SMALL, 653, 3736563.3, 14524, 3736563.3),
}


def run(
    name: str, preset: str, config: Path | None, engine: str, seed: int, repeat: int
) -> dict[str, Any]:
    """One network: partition `repeat` times, verify, compare."""
    limits, peer_parts, peer, peer_ms, best = NETWORKS[Path(name).stem]
    started = time.perf_counter()
    network = load_network(name)
    loading = time.perf_counter() - started
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        found = partition_multilevel(
            network, limits, preset=preset, config=config, engine=engine, seed=seed
        )
        times.append(time.perf_counter() - started)
    report = verify_partition(network, found.parts, limits)
    row = {
        "network": Path(name).stem,
        "preset": preset,
        "engine": found.engine,
        "seed": seed,
        "config": str(config.name) if config else None,
        "valid": report.ok,
        "parts": found.n_parts,
        "connectivity": report.connectivity,
        "to_peer": report.connectivity / peer,
        "to_best_known": report.connectivity / best,
        "peer_parts": peer_parts,
        "load_s": loading,
        "first_s": times[0],
        "median_s": statistics.median(times[1:] or times),
        "speedup_to_peer_core": peer_ms / 1000 / statistics.median(times[1:] or times),
        "phases_s": found.seconds,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(
        f"{row['network']:>11} {preset:>8} {row['engine']} {'valid' if report.ok else 'INVALID'} "
        f"parts {found.n_parts} ({peer_parts}) connectivity {report.connectivity:.1f} "
        f"= {row['to_peer']:.4f} of peer, {row['to_best_known']:.4f} of best known; "
        f"{row['median_s']:.3f} s " + " ".join(f"{k} {v:.3f}" for k, v in found.seconds.items()),
        flush=True,
    )
    return row


def main() -> None:
    """Parse, run, record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=list(NETWORKS))
    parser.add_argument("--preset", default="default")
    parser.add_argument("--config", type=Path, help="TOML file with changes to the preset")
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    how = (args.preset, args.config, args.engine, args.seed, args.repeat)
    rows = [run(name, *how) for name in args.names]
    means = {
        key: float(np.exp(np.mean([np.log(r[key]) for r in rows])))
        for key in ("to_peer", "to_best_known")
    }
    print("geometric means:", " ".join(f"{k} {v:.4f}" for k, v in means.items()))
    if args.out:
        record = {
            **surroundings(),
            "threads": thread_count(),
            "date": time.strftime("%Y-%m-%d"),
            "geometric_means": means,
            "rows": rows,
        }
        args.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
