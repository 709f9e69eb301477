#!/usr/bin/env python3
"""How time and memory of a partition grow with the network: layered networks and local reservoirs.

    scripts/bench_scaling.py [--preset default] [--out benchmarks/scaling.json] [--plot docs/images/scaling.png]

Each network is made and partitioned in a fresh process (code compiled before), limits as in the
reference suite. Layered: convolutions and a dense end on images of growing side, from layers, so that
each distinct destination set is stored once; reservoirs: 128 neighbours of each neuron, drawn near it.
The exponent is the slope of log(processor seconds) over log(stored pins), of the three largest: 1 is
linear.
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
from typing import Any

import numpy as np

from snnmap.bench.records import surroundings

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

SIDES = (24, 48, 68, 96, 136, 192, 272)
NEURONS = (1000, 2000, 4000, 8000, 16000, 32000)
FAN_OUT = 128


def layered(side: int) -> Any:
    """Three convolutions with pooling and a dense end on a side x side x 3 image."""
    from snnmap.networks import model_from

    layers = [
        {"type": "input", "shape": [side, side, 3]},
        {"type": "conv", "filters": 32, "kernel": 3, "padding": "same"},
        {"type": "pool", "kernel": 2},
        {"type": "conv", "filters": 64, "kernel": 3, "padding": "same"},
        {"type": "pool", "kernel": 2},
        {"type": "conv", "filters": 64, "kernel": 3, "padding": "same"},
        {"type": "global-pool"},
        {"type": "dense", "units": 10},
    ]
    return model_from({"name": f"layered-{side}", "layers": layers}, Path("here")).build()


def reservoir(n_nodes: int) -> Any:
    """Neurons on a square, links to others near by (Gaussian, 10 neurons wide), random rates."""
    from snnmap.hypergraph import Hypergraph

    rng = np.random.default_rng(0)
    side = int(np.ceil(np.sqrt(n_nodes)))
    x, y = np.divmod(np.arange(n_nodes), side)
    step = np.rint(rng.normal(0, 10, (2, n_nodes, FAN_OUT))).astype(np.int64)
    targets = (x[:, None] + step[0]) % side * side + (y[:, None] + step[1]) % side
    return Hypergraph.from_hedges(
        n_nodes,
        np.arange(n_nodes),
        np.arange(0, n_nodes * FAN_OUT + 1, FAN_OUT),
        (targets % n_nodes).ravel(),
        rng.lognormal(size=n_nodes),
        name=f"reservoir-{n_nodes}",
    )


def work(kind: str, size: int, preset: str) -> dict[str, Any]:
    """Make and partition one network in this process."""
    from snnmap.limits import Limits
    from snnmap.partitioning.multilevel import partition_multilevel
    from snnmap.partitioning.verify import verify_partition

    make = layered if kind == "layered" else reservoir
    limits = Limits(max_size=1024, max_inbound=4096)
    if kind == "layered":
        limits = Limits(max_size=4096, max_inbound=65536)
    make(24 if kind == "layered" else 1000)  # reads or compiles the code first
    warm = {"search": {"population": 1, "generations": 0}}
    partition_multilevel(make(24 if kind == "layered" else 1500), limits, engine="cpu", config=warm)
    began = time.perf_counter()
    network = make(size).grouped()
    made = time.perf_counter()
    cpu = time.process_time()
    found = partition_multilevel(network, limits, engine="cpu", preset=preset)
    cpu, seconds = time.process_time() - cpu, time.perf_counter() - made
    report = verify_partition(network, found.parts, limits)
    return {
        "kind": kind,
        "size": size,
        "nodes": network.n_nodes,
        "pins": network.n_pins,
        "stored_pins": len(network.destinations),
        "valid": report.ok,
        "parts": found.n_parts,
        "make_s": round(made - began, 3),
        "partition_s": round(seconds, 3),
        "cpu_s": round(cpu, 3),
        "phases_s": {k: round(v, 3) for k, v in found.seconds.items()},
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def slopes(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Exponent of processor seconds over stored pins, of the three largest of each kind."""
    found = {}
    for kind in ("layered", "reservoir"):
        mine = [row for row in rows if row["kind"] == kind][-3:]
        x, y = (np.log([row[key] for row in mine]) for key in ("stored_pins", "cpu_s"))
        found[kind] = round(float(np.polyfit(x, y, 1)[0]), 2)
    return found


def draw(rows: list[dict[str, Any]], exponents: dict[str, float], path: Path) -> None:
    """Time and peak memory over pins, log-log, with a linear slope to compare."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullFormatter

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), constrained_layout=True)
    for kind, colour in (("layered", "#1b6ca8"), ("reservoir", "#c4532d")):
        mine = [row for row in rows if row["kind"] == kind]
        x = np.array([row["stored_pins"] for row in mine])
        label = f"{kind}, exponent {exponents[kind]:.2f}"
        axes[0].loglog(x, [row["cpu_s"] for row in mine], "o-", color=colour, label=label)
        axes[1].loglog(x, [row["peak_mib"] for row in mine], "o-", color=colour, label=kind)
    x = np.array(sorted(row["stored_pins"] for row in rows))
    ends = np.array([x[0], x[-1]])
    axes[0].loglog(ends, 2e-6 * ends, ":", color="grey", label="linear")
    axes[0].set_ylabel("processor seconds of the partition")
    axes[1].set_ylabel("peak memory of the process (MiB)")
    axes[1].set_yticks([200, 500, 1000, 2000], labels=["200", "500", "1000", "2000"])
    for one in axes:
        one.yaxis.set_minor_formatter(NullFormatter())
        one.set_xlabel("pins of distinct destination sets")
        one.grid(alpha=0.3, which="both", linewidth=0.5)
        one.legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Parse, run, record, draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", default="default")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--here", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.here:
        print(json.dumps(work(args.here[0], int(args.here[1]), args.preset)))
        return
    rows = []
    for kind, sizes in (("layered", SIDES), ("reservoir", NEURONS)):
        for size in sizes:
            command = [sys.executable, __file__, "--preset", args.preset, "--here", kind, str(size)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            rows.append(json.loads(done.stdout))
            print(done.stdout.strip(), flush=True)
    exponents = slopes(rows)
    print("exponents:", exponents)
    record = {
        "preset": args.preset,
        "exponents": exponents,
        **surroundings(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "rows": rows,
    }
    if args.out:
        args.out.write_text(json.dumps(record, indent=1) + "\n")
    if args.plot:
        draw(rows, exponents, args.plot)


if __name__ == "__main__":
    main()
