"""Every step of an engine beside the same step of the CPU engine: what differs, in words.

Used by the tests and by ``scripts/check_gpu``. A step is a function of (engine, level on that
engine, a generator with a fixed seed) that returns named host arrays or numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from snnmap.partitioning.multilevel.coarsening import cluster
from snnmap.partitioning.multilevel.compression import compress, find_classes
from snnmap.partitioning.multilevel.config import (
    PRESETS,
    CoarseningConfig,
    CompressionConfig,
    RefinementConfig,
)
from snnmap.partitioning.multilevel.level import UNLIMITED, Level, make_level, with_lists
from snnmap.partitioning.multilevel.refinement import refine, repair
from snnmap.partitioning.multilevel.state import examine

Array = np.ndarray[Any, Any]
Results = dict[str, Any]


def random_level(
    rng: np.random.Generator,
    *,
    n_nodes: int,
    n_nets: int,
    mean_pins: float,
    mean_sources: float = 1.5,
    n_additive: int = 1,
    n_distinct: int = 1,
    repeats: float = 0.2,
) -> Level:
    """A level with nets of very different sizes, empty and equal nets, and nodes that are both
    pin and source; a share `repeats` of the nets copies the pins of another.
    """
    sizes = rng.geometric(1 / (mean_pins + 1), n_nets) - 1
    nets = np.repeat(np.arange(n_nets), sizes)
    keys = np.unique(nets * n_nodes + rng.integers(0, n_nodes, len(nets)))
    rows = np.split(keys % n_nodes, np.searchsorted(keys, np.arange(1, n_nets) * n_nodes))
    rows = rows[:n_nets]
    for g in np.flatnonzero(rng.random(n_nets) < repeats):
        rows[g] = rows[int(rng.integers(n_nets))]
    sources = [
        np.unique(rng.integers(0, n_nodes, int(k))) for k in rng.poisson(mean_sources, n_nets)
    ]
    heavy = rng.random(n_nets) < 0.9
    source_offsets, source_nodes = flatten(sources)
    net_offsets, net_pins = flatten(rows)
    counts = rng.integers(0, 4, (n_nets, n_distinct))
    level = make_level(
        net_offsets,
        net_pins,
        source_offsets,
        source_nodes,
        rng.integers(0, 1000, len(source_nodes)),
        rng.integers(0, 3000, n_nets) * heavy,
        counts,
        rng.integers(1, 4, (n_nodes, n_additive)),
    )
    return with_lists(level)


def small_level(seed: int, sizes: tuple[int, int, int], n_loads: tuple[int, int]) -> Level:
    """A level with (nodes, nets, mean pins) and (additive, distinct) loads as drawn, and many sources."""
    return random_level(
        np.random.default_rng(seed),
        n_nodes=sizes[0],
        n_nets=sizes[1],
        mean_pins=sizes[2],
        mean_sources=3,
        n_additive=n_loads[0],
        n_distinct=n_loads[1],
    )


def tight_limits(level: Level, n_parts: int) -> Array:
    """int64[n_loads]: with which about so many parts are needed; where nodes are odd, every other load is unlimited."""
    totals = np.concatenate([level.resources.sum(axis=0), 2 * level.counts.sum(axis=0)])
    limits = np.asarray(totals * 5 // (4 * n_parts) + 8, np.int64)
    limits[1::2] = np.where(level.n_nodes % 2, UNLIMITED, limits[1::2])
    return limits


def flatten(rows: list[Array]) -> tuple[Array, Array]:
    """(int64 offsets, int32 items) of rows."""
    offsets = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
    return offsets, np.concatenate([np.zeros(0, np.int32), *rows]).astype(np.int32)


def random_limits(rng: np.random.Generator, level: Level, n_parts: int) -> Array:
    """int64[n_loads]: some parts are too full, others are not; a load may be unlimited."""
    totals = np.concatenate([level.resources.sum(axis=0), level.counts.sum(axis=0)])
    limits = np.maximum(totals // n_parts, 1) * rng.integers(1, 4, len(totals))
    return np.asarray(np.where(rng.random(len(totals)) < 0.15, UNLIMITED, limits), np.int64)


# ---------------------------------------------------------------- steps


def table_of(engine: Any, table: Any) -> Results:
    """The table with the entries of each row by part: their order means nothing."""
    offsets, parts, pins, sources = (engine.to_host(a) for a in table)
    nets = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((parts, nets))
    return {
        "table.offsets": offsets,
        "table.parts": parts[order],
        "table.pins": pins[order],
        "table.sources": sources[order],
    }


def moves_of(engine: Any, moves: Any) -> Results:
    """Proposed moves, without the rows of nodes that stay."""
    host = {f: engine.to_host(a) for f, a in zip(moves._fields, moves, strict=True)}
    chosen = host["targets"] >= 0
    return {f: a if f == "targets" else a[chosen] for f, a in host.items()}


def step_measure(engine: Any, level: Level, rng: np.random.Generator) -> Results:
    found: Results = {}
    for n_parts in (1, 7, 300, max(level.n_nodes, 1)):
        parts = rng.integers(0, n_parts, level.n_nodes).astype(np.int32)
        table, connectivity, loads = engine.measure(level, engine.from_host(parts), n_parts)
        found |= {f"{n_parts} parts {k}": v for k, v in table_of(engine, table).items()}
        found[f"{n_parts} parts connectivity"] = int(connectivity)
        found[f"{n_parts} parts loads"] = engine.to_host(loads)
    return found


def step_weigh(engine: Any, level: Level, rng: np.random.Generator) -> Results:
    found: Results = {}
    host = engine.download(level)
    for n_parts in (1, 7, 300, max(level.n_nodes, 1)):
        parts = rng.integers(0, n_parts, level.n_nodes).astype(np.int32)
        limits = random_limits(rng, host, n_parts)
        given = engine.from_host(limits), engine.from_host(parts), n_parts
        _, connectivity, loads, overload = engine.weigh(level, *given)
        found[f"{n_parts} parts connectivity"] = connectivity
        found[f"{n_parts} parts loads"] = engine.to_host(loads)
        found[f"{n_parts} parts overload"] = overload
    return found


def step_moves(engine: Any, level: Level, rng: np.random.Generator) -> Results:
    """Proposals, soft and strict, and their gains in sequence."""
    found: Results = {}
    host = engine.download(level)
    for n_parts in (2, 40, max(level.n_nodes // 2, 3)):
        parts = rng.integers(0, n_parts, level.n_nodes).astype(np.int32)
        limits = random_limits(rng, host, n_parts)
        prices = rng.integers(0, 200, len(limits))
        locked = rng.random(level.n_nodes) < 0.1
        order = rng.permutation(level.n_nodes).astype(np.int32)
        on = engine.from_host
        table, _, loads = engine.measure(level, on(parts), n_parts)
        state = (level, table, on(parts), loads, on(limits), on(prices), on(locked))
        haven, seed = int(rng.integers(n_parts)), int(rng.integers(1 << 40))
        for strict, slack in ((False, 0), (False, 9), (True, 0)):
            moves = engine.propose(*state, strict=strict, haven=haven, seed=seed, slack=slack)
            name = f"{n_parts} parts strict={strict} slack={slack}"
            found |= {f"{name} {k}": v for k, v in moves_of(engine, moves).items()}
            gains = engine.gains_in_sequence(
                level, table, on(parts), moves.targets, on(order), n_parts
            )
            found[f"{name} gains in sequence"] = engine.to_host(gains)
            effects = engine.replay(level, table, on(parts), moves.targets, on(order), n_parts)
            chosen = engine.to_host(moves.targets) >= 0
            for field, values in zip(("gains", "incoming", "outgoing"), effects, strict=True):
                found[f"{name} replayed {field}"] = engine.to_host(values)[chosen]
    return found


def step_choose(engine: Any, level: Level, rng: np.random.Generator) -> Results:
    """Which proposals are made together, by both schemes."""
    found: Results = {}
    host, on = engine.download(level), engine.from_host
    nobody = on(np.zeros(level.n_nodes, bool))
    for n_parts in (2, 9, max(level.n_nodes // 2, 3)):
        parts = rng.integers(0, n_parts, level.n_nodes).astype(np.int32)
        limits = random_limits(rng, host, n_parts)
        prices, seed = rng.integers(0, 200, len(limits)), int(rng.integers(1 << 40))
        state = examine(engine, level, on(limits), on(parts), n_parts)
        found |= {f"{n_parts} overload": state.overload, f"{n_parts} worth": state.connectivity}
        places = (level, state.table, state.parts, state.loads, on(limits), on(prices), nobody)
        moves = engine.propose(*places, strict=False, haven=0, seed=seed, slack=64)
        problem = (level, on(limits), state)
        for name, chosen in (
            ("tight", engine.choose_moves(*problem, moves, roomy=False)),
            ("roomy", engine.choose_moves(*problem, moves, roomy=True)),
            ("prefix", engine.choose_prefix(*problem, moves.targets, moves.gains)),
        ):
            found[f"{n_parts} {name} parts"] = engine.to_host(chosen.parts)
            found[f"{n_parts} {name} moved"] = engine.to_host(chosen.moved)
            found[f"{n_parts} {name} number"] = int(chosen.n_moved)
    return found


def step_neighbours(engine: Any, level: Level, rng: np.random.Generator) -> Results:
    found: Results = {}
    on = engine.from_host
    loads = engine.node_loads(level)
    limits = random_limits(rng, engine.download(level), max(level.n_nodes // 3, 1))
    borders = on(rng.integers(0, 2, level.n_nodes).astype(np.int32))
    for candidates, max_nets, max_pins in ((1, 1 << 40, 1 << 40), (4, 2, 3), (7, 1 << 40, 1 << 40)):
        neighbours, scores = engine.rate_neighbours(
            level, loads, on(limits), candidates=candidates, max_nets=max_nets, max_pins=max_pins,
            seed=int(rng.integers(1 << 40)), borders=borders if candidates == 4 else None,
        )  # fmt: skip
        found[f"{candidates} neighbours"] = engine.to_host(neighbours)
        found[f"{candidates} scores"] = engine.to_host(scores)
    return found


def step_forest(engine: Any, level: Level, rng: np.random.Generator) -> Results:
    found: Results = {}
    n = level.n_nodes
    ids = np.arange(n, dtype=np.int32)
    anywhere = rng.integers(0, n, n).astype(np.int32)
    graphs = {
        "random": np.where(anywhere == ids, -1, anywhere),
        "some": np.where((anywhere == ids) | (rng.random(n) < 0.3), -1, anywhere),
        "path": np.where(ids + 1 < n, ids + 1, -1),
        "ring": (ids + 1) % n if n > 1 else -np.ones(n, np.int64),
        "pairs": np.where(ids // 2 * 2 + 1 < n, ids ^ 1, -1),
        "star": np.where(ids > 0, 0, 1 if n > 1 else -1),
    }
    for name, targets in graphs.items():
        for heaviest in (2, 1 << 40):
            weights = engine.from_host(rng.integers(1, heaviest, n))
            partners = engine.match_forest(engine.from_host(targets.astype(np.int32)), weights)
            found[f"{name} {heaviest}"] = engine.to_host(partners)
    return found


def step_match(engine: Any, level: Level, rng: np.random.Generator) -> Results:
    limits = engine.from_host(random_limits(rng, engine.download(level), 8))
    config = PRESETS["paper"].coarsening
    clusters, n = cluster(engine, level, limits, config, int(rng.integers(1 << 20)))
    return {"clusters": engine.to_host(clusters), "number": n}


def step_sequence(engine: Any, level: Level, rng: np.random.Generator) -> Results:
    n_parts = 12
    parts = engine.from_host(rng.integers(0, n_parts, level.n_nodes).astype(np.int32))
    limits = engine.from_host(random_limits(rng, engine.download(level), n_parts))
    config, found = PRESETS["paper"].refinement, {}
    for price in (0.0, 4096.0):
        refined = refine(
            engine, level, limits, parts, n_parts, config, rounds=4, schedule=(price,),
            overload_price=price, roomy=False, seed=5,
        )  # fmt: skip
        found[f"price {price}"] = engine.to_host(refined)
    return found


def step_contract(engine: Any, level: Level, rng: np.random.Generator) -> Results:
    found: Results = {}
    n = level.n_nodes
    for share in (1, 3, 50):
        _, clusters = np.unique(rng.integers(0, n // share + 1, n), return_inverse=True)
        n_clusters = int(clusters.max(initial=-1)) + 1
        coarse = engine.contract(level, engine.from_host(clusters.astype(np.int32)), n_clusters)
        found |= {f"1/{share} {k}": v for k, v in level_of(engine, coarse).items()}
    return found


def level_of(engine: Any, level: Level) -> Results:
    """All arrays of a level."""
    host = engine.download(level)
    return dict(zip(Level._fields, host, strict=True))


def step_compress(engine: Any, level: Level, rng: np.random.Generator) -> Results:
    config = CompressionConfig(keep=2.0)
    limits = random_limits(rng, engine.download(level), 8)
    classes = find_classes(engine, level, config)
    found: Results = {"classes": None}
    if classes is not None:
        found["classes"] = engine.to_host(classes[0])
    for depth, most in ((0, level.n_nodes), (1, level.n_nodes), (3, level.n_nodes * 3 // 4)):
        numbers, n_classes, least = engine.classify(level, depth, most)
        found |= {f"classes {depth}": engine.to_host(numbers), f"number {depth}": n_classes}
        found[f"least {depth}"] = least
        ranked = engine.sort_classes(level, numbers, n_classes)
        for field, array in zip(ranked._fields, ranked, strict=True):
            found[f"{field} {depth}"] = engine.to_host(array)
        sizes = [1, 2, 3, 10, 1 << 40]
        counts = engine.count_chunks(ranked, sizes)
        found[f"counts {depth}"] = np.array(counts)
        for size, n_chunks in zip(sizes, counts, strict=True):
            chunks = engine.split_classes(ranked, size)
            nested = engine.nest_chunks(ranked, size, 4 * size, n_chunks)
            found[f"chunks {depth} of {size}"] = engine.to_host(chunks)
            found[f"nested {depth} of {size}"] = engine.to_host(nested)
    compressed = compress(engine, level, limits, config)
    if compressed.bundles is not None:
        found["bundles"] = engine.to_host(compressed.bundles)
    for depth, (coarse, clusters) in enumerate(compressed.levels):
        found[f"compressed {depth} map"] = engine.to_host(clusters)
        found |= {f"compressed {depth} {k}": v for k, v in level_of(engine, coarse).items()}
    return found


def step_cluster(engine: Any, level: Level, rng: np.random.Generator) -> Results:
    """Clusters with plenty and with little room, of few and of all nets and pins, within borders."""
    found: Results = {"node loads": engine.to_host(engine.node_loads(level))}
    sides = engine.from_host(rng.integers(0, 2, level.n_nodes).astype(np.int32))
    for n_parts, borders, knobs in (
        (8, None, CoarseningConfig()),
        (1, None, CoarseningConfig(growth=1e9, turns=3)),
        (max(level.n_nodes // 3, 1), sides, CoarseningConfig(turns=2, max_nets=2, max_pins=3)),
        (2, sides, CoarseningConfig(growth=64.0, max_nets=1000, max_pins=100_000)),
    ):
        limits = engine.from_host(random_limits(rng, engine.download(level), n_parts))
        seed = int(rng.integers(1 << 40))
        clusters, n = cluster(engine, level, limits, knobs, seed, borders)
        found |= {f"{n_parts} clusters": engine.to_host(clusters), f"{n_parts} number": n}
    return found


def step_refine(engine: Any, level: Level, rng: np.random.Generator) -> Results:
    n_parts = 12
    parts = engine.from_host(rng.integers(0, n_parts, level.n_nodes).astype(np.int32))
    limits = random_limits(rng, engine.download(level), n_parts)
    limits[: level.resources.shape[1]] = UNLIMITED  # so that repair has a way out
    limits, config = engine.from_host(limits), RefinementConfig(repairs=20)
    knobs: dict[str, Any] = {"rounds": 6, "schedule": (1.0, 4.0, 16.0), "overload_price": 20.0}
    found: Results = {}
    for roomy in (False, True):
        problem = (engine, level, limits, parts, n_parts, config)
        refined = refine(*problem, **knobs, roomy=roomy, seed=5)
        state = repair(engine, level, limits, refined, n_parts, 15, config, seed=5)
        found |= {
            f"refined roomy={roomy}": engine.to_host(refined),
            f"repaired roomy={roomy}": engine.to_host(state.parts),
            f"overload roomy={roomy}": state.overload,
        }
    return found


Step = Callable[[Any, Level, np.random.Generator], Results]


def step_merge(engine: Any, level: Level, rng: np.random.Generator) -> Results:
    """Pairwise merging, empty parts included, where much and where little fits together."""
    found: Results = {}
    host, n_parts = engine.download(level), min(max(level.n_nodes // 2, 2), 300)
    parts = engine.from_host(rng.integers(0, n_parts, level.n_nodes).astype(np.int32))
    for n_final in (3, 12):
        limits = engine.from_host(random_limits(rng, host, n_final))
        state = examine(engine, level, limits, parts, n_parts)
        for kind, known in ("table", state), ("sets", replace(state, table=None)):
            merged, n_left = engine.merge_parts(level, known, limits)
            name = f"1/{n_final} by {kind}"
            found |= {f"{name}: parts": engine.to_host(merged), f"{name}: number": n_left}
    return found


STEPS: dict[str, Step] = {
    name.removeprefix("step_"): function
    for name, function in list(globals().items())
    if name.startswith("step_")
}


# ---------------------------------------------------------------- comparison


def differences(expected: Results, found: Results) -> Iterator[str]:
    """One line for each result that differs."""
    for name in [*expected, *(k for k in found if k not in expected)]:
        if name not in expected or name not in found:
            yield f"{name}: only {'expected' if name in expected else 'found'}"
            continue
        a, b = np.asarray(expected[name]), np.asarray(found[name])
        if a.shape != b.shape:
            yield f"{name}: shape {b.shape}, expected {a.shape}"
        elif a.dtype != b.dtype and a.ndim:
            yield f"{name}: dtype {b.dtype}, expected {a.dtype}"
        elif (a != b).any():
            wrong = np.argwhere(a != b)
            place = tuple(int(i) for i in wrong[0])
            first = f"first at {place}: {b[place]}, expected {a[place]}"
            yield f"{name}: {len(wrong):,} of {a.size:,} differ, {first}"


def run_step(engine: Any, step: str, level: Level, seed: int) -> Results:
    """A step on an engine, from a level on the host."""
    return STEPS[step](engine, engine.upload(level), np.random.default_rng(seed))
