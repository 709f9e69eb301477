"""Measure what joint improvement gains after the default partitioner and placer.

    python scripts/bench_joint.py [NETWORK:PROFILE ...] [--preset fast] [--output benchmarks/joint.json]

Without arguments: the ten reference networks. Each is mapped with `snnmap map`'s defaults and then
improved as by `--joint`; ratios (joint / plain) are of unicast energy x mean latency, of multicast
energy and of connectivity. Every mapping is verified by the independent judge. New runs are added
to those that the output file holds.

    snnmap map 256k-rand -p loihi64 -o DIR
    python scripts/bench_joint.py 256k-rand:loihi64 --mapping DIR --time-limit 300 --output ...

starts from a mapping that was made before (on whatever machine), and ends the improvement after 300
seconds with what it has by then; both are recorded.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from snnmap.hardware import load_profile
from snnmap.mapping import map_network, restore_mapping
from snnmap.networks import load_network
from snnmap.partitioning.metrics import measure
from snnmap.placement import part_hypergraph
from snnmap.placement.joint import improve_jointly
from snnmap.progress import Progress
from snnmap.stored import read_mapping
from snnmap.traffic import measure_traffic
from snnmap.verification import verify_mapping

SMALL = ("lenet", "16k-model", "64k-model", "16k-rand", "64k-rand", "256k-rand")
LARGE = ("alexnet", "vgg11", "256k-model", "1M-model")
NETWORKS = [f"{name}:loihi64" for name in SMALL] + [f"{name}:loihi84" for name in LARGE]


def compare(
    name: str, profile_name: str, preset: str, folder: Path | None, time_limit: float | None
) -> dict[str, object]:
    """One network with and without joint improvement; `folder` holds the mapping without it."""
    profile = load_profile(profile_name)
    network = load_network(name)
    if folder is None:
        plain = map_network(network, profile, preset=preset)
    else:
        plain = restore_mapping(read_mapping(folder), network)
        if plain.placement is None or plain.profile != profile:
            raise SystemExit(f"{folder} holds no placement on {profile_name}")
    progress = Progress(time_limit)
    began, cpu = time.perf_counter(), time.process_time()
    start = (plain.hypergraph, plain.partition, plain.placement)
    found = improve_jointly(*start, profile, progress=progress)
    seconds = {
        "wall_s": round(time.perf_counter() - began, 2),
        "cpu_s": round(time.process_time() - cpu, 2),
    }
    part_graph = part_hypergraph(plain.hypergraph, found.partition)
    before, after = plain.traffic, measure_traffic(part_graph, found.placement, profile)
    metrics = measure(plain.hypergraph, found.partition.parts)
    faults = verify_mapping(
        plain.hypergraph,
        found.partition.parts,
        found.placement.cores,
        profile,
        profile.limits,
        connectivity=metrics.connectivity,
        traffic=after,
    )
    result = {
        "profile": profile_name,
        "preset": plain.preset,
        "ended_by_time_limit_s": time_limit if progress.expired() else None,
        "parts": plain.partition.n_parts,
        "energy_latency": _ratio(after.unicast.energy_latency, before.unicast.energy_latency),
        "multicast_energy": _ratio(after.multicast.energy_pj, before.multicast.energy_pj),
        "hops": _ratio(after.unicast.hops, before.unicast.hops),
        "connectivity": _ratio(metrics.connectivity, plain.metrics.connectivity),
        "moved_neurons": found.moves,
        "verified": plain.is_verified and not faults,
        **seconds,
    }
    print(f"{name}: {json.dumps(result)}", flush=True)
    return result


def _ratio(after: float, before: float) -> float:
    return round(after / before, 4) if before else 1.0


def main() -> None:
    """Parse arguments, run, print one line a network and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", default=NETWORKS, metavar="NETWORK:PROFILE")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--mapping", type=Path, metavar="DIR", help="of the (one) network")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    if options.mapping and len(options.networks) != 1:
        parser.error("--mapping goes with one network")
    old = options.output is not None and options.output.exists()
    results = json.loads(options.output.read_text())["networks"] if old else {}
    for word in options.networks:
        name, _, profile = word.rpartition(":")
        results[Path(name).stem] = compare(
            name, profile, options.preset, options.mapping, options.time_limit
        )
        ratios = [run["energy_latency"] for run in results.values()]
        mean = round(float(np.exp(np.mean(np.log(ratios)))), 4)
        if options.output:
            record = {"geometric_mean_of_energy_latency": mean, "networks": results}
            options.output.write_text(json.dumps(record, indent=1) + "\n")
    print(f"geometric mean of energy x latency: {mean}")


if __name__ == "__main__":
    main()
