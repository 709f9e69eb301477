"""Compare all placers on the same part-level networks and record the result.

    python scripts/bench_placement.py PARTS.snn... [--network lenet:loihi64] [--synthetic]
                                      [--output benchmarks/placement.json]
    python scripts/bench_placement.py --engine gpu --synthetic --output benchmarks/placement_gpu.json

Each argument is a part-level ``.snn`` file (nodes = parts); ``256k-model`` in its name selects
loihi84, all others loihi64. ``--network NAME_OR_FILE:PROFILE`` partitions a network first;
``--keep DIR`` leaves its part-level file there. Runs replace those of the same network that the
output file holds.

The baseline is a Hilbert curve followed by the published force-directed refinement (adjacent cores
swap while the sum of their forces is positive, the strongest 30 % of disjoint pairs at a time),
written here on its own in plain NumPy. Ratios are energy x mean latency (unicast) relative to it;
time is CPU time and wall time of this machine.

With ``--engine gpu`` nothing but the engines is compared: seconds of the default placer (and of two
others) on both, warm, and whether all cores are equal; the bar is 0.5 s for 4096 parts. Where the
time of the default placer goes is recorded too (``steps_ms``): its steps in turn, each placer beside
the others and alone, and the rounds on the device.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np

from snnmap.hardware import HardwareProfile, load_profile
from snnmap.hypergraph import Hypergraph
from snnmap.networks import load_network
from snnmap.partitioning import partition
from snnmap.placement import AUTO, PLACERS, Placement, part_hypergraph, place
from snnmap.placement.flows import directed_flows
from snnmap.traffic import measure_traffic
from snnmap.writers import write_network

TOP_SHARE = 0.3
MAX_ITERATIONS = 2000


def published(graph: Hypergraph, profile: HardwareProfile) -> Placement:
    """Hilbert curve, then swaps of adjacent cores by tension (mesh with equal hops)."""
    start = place(graph, profile, placer="hilbert", refine="none")
    directed = directed_flows(graph)
    both = (directed + directed.T).tocoo()
    apart = both.coords[0] != both.coords[1]
    p, q, rates = both.coords[0][apart], both.coords[1][apart], both.data[apart]
    order = np.lexsort((q, p))
    flows = p[order], q[order], rates[order]
    cores = start.cores.astype(np.int64)
    best, best_cost = cores.copy(), total(flows, cores)
    for _ in range(MAX_ITERATIONS):
        swaps = tensions(flows, cores, profile)
        if not swaps:
            break
        swaps.sort(key=lambda swap: (-swap[0], swap[1], swap[2]))
        moved: set[int] = set()
        taken: set[tuple[int, int]] = set()
        for _, p, r, cell in swaps[: max(1, int(TOP_SHARE * len(swaps)))]:
            if p in moved or (r >= 0 and r in moved) or cell in taken:
                continue
            moved |= {p, r} - {-1}
            old = tuple(int(v) for v in cores[p])
            taken |= {cell, old}
            cores[p] = cell
            if r >= 0:
                cores[r] = old
        cost = total(flows, cores)
        if cost < best_cost:
            best, best_cost = cores.copy(), cost
    return replace(start, cores=best.astype(np.int32), refine="published", objective=best_cost)


Flows = tuple[np.ndarray, np.ndarray, np.ndarray]


def total(flows: Flows, cores: np.ndarray) -> float:
    """Sum over pairs of rate x Manhattan distance."""
    p, q, rates = flows
    return float((rates * np.abs(cores[p] - cores[q]).sum(axis=1)).sum()) / 2


def tensions(
    flows: Flows, cores: np.ndarray, profile: HardwareProfile
) -> list[tuple[float, int, int, tuple[int, int]]]:
    """(gain, part, neighbour or -1, cell) of adjacent swaps with a positive sum of forces."""
    p, q, rates = flows
    steps = [(1, 0), (-1, 0), (0, 1), (0, -1)]
    away = cores[q] - cores[p]
    pulls = (away[:, 0] > 0, away[:, 0] < 0, away[:, 1] > 0, away[:, 1] < 0)
    forces = np.stack(
        [np.bincount(p, np.where(pull, rates, -rates), len(cores)) for pull in pulls], axis=1
    )
    between = {}
    near = np.abs(away).sum(axis=1) == 1
    for a, b, rate in zip(p[near].tolist(), q[near].tolist(), rates[near].tolist(), strict=True):
        between[a, b] = rate
    at = {tuple(core): part for part, core in enumerate(cores.tolist())}
    least = 1e-9 * float(rates.sum())
    found = []
    for part, core in enumerate(cores.tolist()):
        for k, step in enumerate(steps):
            cell = (core[0] + step[0], core[1] + step[1])
            r = at.get(cell, -1)
            if (r >= 0 and k % 2) or not profile.is_usable(*cell):  # each pair once
                continue
            gain = float(forces[part, k])
            if r >= 0:
                gain += float(forces[r, k ^ 1]) - 2 * between.get((part, r), 0.0)
            if gain > least:
                found.append((gain, part, r, cell))
    return found


def synthetic(kind: str, n_parts: int = 4096) -> Hypergraph:
    """Part-level networks of 4096 parts: stacked convolution-like sheets, or a 3-D reservoir."""
    rng = np.random.default_rng(7)
    if kind == "sheets":
        layers, side = 16, int((n_parts // 16) ** 0.5)
        ids = np.arange(layers * side * side).reshape(layers, side, side)
        rows = [
            (ids[z, x, y], ids[z + 1, max(0, x - 1) : x + 2, max(0, y - 1) : y + 2].ravel())
            for z in range(layers - 1)
            for x in range(side)
            for y in range(side)
        ]
    else:
        side = round(n_parts ** (1 / 3))
        ids = np.arange(side**3).reshape(side, side, side)
        rows = []
        for x, y, z in np.ndindex(side, side, side):
            box = ids[max(0, x - 1) : x + 2, max(0, y - 1) : y + 2, max(0, z - 1) : z + 2].ravel()
            far = rng.integers(0, side**3, 3)
            rows += [(ids[x, y, z], box), (ids[x, y, z], far)]
    names = rng.permutation(n_parts)
    return Hypergraph.from_hedges(
        n_parts,
        names[np.array([source for source, _ in rows])],
        np.cumsum([0] + [len(into) for _, into in rows]),
        names[np.concatenate([into for _, into in rows])],
        rng.lognormal(size=len(rows)),
        name=f"{kind}-{n_parts}",
    )


def timed(work: object, *args: object, **settings: object) -> tuple[object, dict[str, float]]:
    """(result, {cpu_s, wall_s}) of one call."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = work(*args, **settings)  # type: ignore[operator]
    return result, {
        "cpu_s": round(time.process_time() - cpu, 4),
        "wall_s": round(time.perf_counter() - wall, 4),
    }


def compare(
    graph: Hypergraph, profile: HardwareProfile, *, refines: list[str]
) -> dict[str, object]:
    """All placers with their default refinement and each one of `refines`."""
    base, seconds = timed(published, graph, profile)
    reference = measure_traffic(graph, base, profile).unicast
    rows = {"hilbert + published": {"ratio": 1.0, **seconds}}
    jobs: list[tuple[str, str | None]] = [(AUTO, None)]
    jobs += [(placer, refine) for refine in refines for placer in PLACERS]
    place(graph, profile)  # compile first
    for placer, refine in jobs:
        placement, seconds = timed(place, graph, profile, placer=placer, refine=refine)
        unicast = measure_traffic(graph, placement, profile).unicast
        rows[f"{placer} + {placement.refine}"] = {
            "ratio": round(unicast.energy_latency / reference.energy_latency, 4),
            "weighted_hops": round(placement.objective, 3),
            **seconds,
        }
    _, seconds = timed(measure_traffic, graph, base, profile)
    singles = {name: row["ratio"] for name, row in rows.items() if not name.startswith(AUTO)}
    best = min(singles, key=singles.__getitem__)
    auto = rows[f"{AUTO} + annealing"]
    result = {
        "parts": graph.n_nodes,
        "pins": graph.n_pins,
        "profile": profile.name,
        "auto": auto["ratio"],
        "auto_cpu_s": auto["cpu_s"],
        "auto_wall_s": auto["wall_s"],
        "best_single": {best: singles[best]},
        "auto_over_best_single": round(auto["ratio"] / singles[best], 4),
        "traffic": seconds,
        "placers": rows,
    }
    print(
        f"{graph.name}: " + json.dumps({k: v for k, v in result.items() if k != "placers"}),
        flush=True,
    )
    return result


JOBS = ((AUTO, None), ("minimum-distance", "none"), ("hilbert", "force-directed"))
GPU_BAR_S = 0.5


def compare_engines(graph: Hypergraph, profile: HardwareProfile) -> dict[str, object]:
    """Wall-clock seconds on the CPU and on the GPU (median of three warm runs), equality."""
    from snnmap.placement.engine import choose_engine

    engine = choose_engine("gpu", graph.n_nodes)
    result: dict[str, object] = {"parts": graph.n_nodes, "gpu": engine.device.name}
    for placer, refine in JOBS:
        runs = {}
        for name in ("cpu", "gpu"):
            settings = {"placer": placer, "refine": refine, "engine": name}
            _, first = timed(place, graph, profile, **settings)
            warm = [timed(place, graph, profile, **settings) for _ in range(3)]
            middle = sorted(warm, key=lambda run: run[1]["wall_s"])[1]
            runs[name] = (first["wall_s"], middle[1]["wall_s"], middle[0])
        cpu, gpu = runs["cpu"], runs["gpu"]
        result[f"{placer} + {gpu[2].refine}"] = {
            "cpu_s": cpu[1],
            "gpu_s": gpu[1],
            "gpu_first_s": gpu[0],
            "gpu_phases_s": {k: round(v, 4) for k, v in gpu[2].seconds.items()},
            "equal": bool(np.array_equal(cpu[2].cores, gpu[2].cores)),
        }
    if graph.n_nodes >= 4000:
        result["steps_ms"] = steps(graph, profile)
        seconds = result[f"{AUTO} + annealing"]["gpu_s"]
        result["bar_0.5_s"] = "met" if seconds <= GPU_BAR_S else "MISSED"
    print(f"{graph.name}: {json.dumps(result)}", flush=True)
    return result


def steps(graph: Hypergraph, profile: HardwareProfile) -> dict[str, object]:
    """Milliseconds of the steps of the default placer on a GPU, one warm run."""
    from snnmap.placement import anneal, refinements
    from snnmap.placement.engine_gpu import GpuBoard, GpuChains
    from snnmap.placement.task import Task

    spent: dict[str, float] = {}
    calls: dict[str, list[float]] = {}

    def watch(name: str, work: Callable[..., object]) -> Callable[..., object]:
        def watched(*args: object, **settings: object) -> object:
            begin = time.perf_counter()
            found = work(*args, **settings)
            calls.setdefault(name, []).append(round(1e3 * (time.perf_counter() - begin), 2))
            spent[name] = round(sum(calls[name]), 2)
            return found

        return watched

    with ExitStack() as stack:
        for owner, method in (
            (Task, "prepare"),
            (refinements, "_promising"),
            (refinements, "force_directed"),
            (refinements, "anneal"),
            (anneal, "_schedules"),
            (GpuChains, "__init__"),
            (GpuChains, "rounds"),
            (GpuBoard, "__init__"),
            (GpuBoard, "swap_rounds"),
        ):
            name = method if method != "__init__" else f"new {owner.__name__}"
            watched = watch(name, getattr(owner, method))
            stack.enter_context(mock.patch.object(owner, method, watched))
        beside = {name: watch(name, placer) for name, placer in PLACERS.items()}
        stack.enter_context(mock.patch.dict(PLACERS, beside))
        placement = place(graph, profile, engine="gpu")
    result: dict[str, object] = {k: round(1e3 * v, 2) for k, v in placement.seconds.items()}
    result |= {"spent": spent, "swap_launches": calls["swap_rounds"]}
    result["segments"] = calls["rounds"]
    alone = {}
    for name in PLACERS:
        runs = [place(graph, profile, placer=name, refine="none", engine="gpu") for _ in range(3)]
        alone[name] = round(1e3 * min(run.seconds["start"] for run in runs), 2)
    return result | {"prepare_and_placer_alone": alone}


def empty_chip(graph: Hypergraph) -> dict[str, object]:
    """Placing 60-odd parts on a 64 x 64 and on a 1024 x 1024 mesh."""
    rows = {}
    for side in (64, 1024):
        profile = load_profile("loihi64", (f"width={side}", f"height={side}"))
        place(graph, profile)
        runs = [timed(place, graph, profile)[1] for _ in range(3)]
        rows[f"{side}x{side}"] = min(runs, key=lambda run: run["cpu_s"])
    return rows


def main() -> None:
    """Parse arguments, run, print one line a network and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", type=Path)
    parser.add_argument("--network", action="append", default=[], metavar="NAME:PROFILE")
    parser.add_argument("--synthetic", action="store_true")
    parser.add_argument("--algorithm", default="multilevel", help="partitioner for --network")
    parser.add_argument("--engine", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="for part-level files")
    parser.add_argument("--refine", action="append", default=None)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    refines = options.refine or ["force-directed", "annealing"]
    cases = []
    for path in options.parts:
        graph = replace(load_network(path), name=path.name.split(".")[0])
        cases.append((graph, load_profile("loihi84" if "256k-model" in path.name else "loihi64")))
    for text in options.network:
        name, _, profile_name = text.rpartition(":")
        profile = load_profile(profile_name)
        network = load_network(name)
        found = partition(network, profile.limits, algorithm=options.algorithm)
        graph = replace(part_hypergraph(network, found), name=Path(name).stem)
        if options.keep:
            write_network(graph, options.keep / f"{graph.name}.part.snn")
        cases.append((graph, profile))
    if options.synthetic:
        cases += [(synthetic(kind), load_profile("loihi64")) for kind in ("sheets", "reservoir")]
    if options.engine == "gpu":
        runs = {graph.name: compare_engines(graph, profile) for graph, profile in cases}
        if options.output:
            options.output.write_text(json.dumps(runs, indent=1) + "\n")
        return
    old = options.output is not None and options.output.exists()
    record = json.loads(options.output.read_text()) if old else {"networks": {}}
    results = record.pop("networks")
    for graph, profile in cases:
        results[graph.name] = compare(graph, profile, refines=refines)
        ratios = [row["auto"] for row in results.values()]
        over = max(row["auto_over_best_single"] for row in results.values())
        record |= {
            "machine": {"cpus": len(os.sched_getaffinity(0)), "cpu": platform.processor()},
            "geometric_mean_of_auto": round(float(np.exp(np.mean(np.log(ratios)))), 4),
            "worst_auto_over_best_single": over,
        }
        if 50 <= graph.n_nodes <= 100:
            record["empty_chip"] = empty_chip(graph)
        if options.output:
            text = json.dumps(record | {"networks": results}, indent=1)
            options.output.write_text(text + "\n")
    print(json.dumps(record))


if __name__ == "__main__":
    main()
