"""The multilevel partitioner: compress, coarsen, search, uncoarsen.

    uncoarsen(search(coarsen(compress(level))))

One specification, two engines with equal answers (`engine_cpu.py`, `engine_gpu.py`).
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.partitioning.multilevel import _kernels_contract as kct
from snnmap.partitioning.multilevel.coarsening import cluster
from snnmap.partitioning.multilevel.compression import compress
from snnmap.partitioning.multilevel.config import PRESETS, Config, resolve_config
from snnmap.partitioning.multilevel.engine import choose_engine
from snnmap.partitioning.multilevel.level import Level, Problem, pose_problem
from snnmap.partitioning.multilevel.merging import merge_parts
from snnmap.partitioning.multilevel.refinement import State, examine, refine, repair
from snnmap.partitioning.multilevel.search import Search
from snnmap.partitioning.result import Partition
from snnmap.progress import SILENT, Progress

__all__ = ["PRESETS", "Config", "partition_multilevel", "resolve_config"]

Array = np.ndarray[Any, Any]


def partition_multilevel(
    hypergraph: Hypergraph,
    limits: Limits,
    *,
    preset: str = "default",
    config: Any = None,
    engine: str = "auto",
    seed: int = 0,
    progress: Progress = SILENT,
) -> Partition:
    """Partition within hard limits for the least connectivity.

    Args:
        hypergraph: the network; shared destination sets are found if it is not grouped yet.
        limits: what a part may hold; `max_destinations` is checked by the caller, not sought.
        preset: ``"fast"``, ``"default"`` or ``"quality"``.
        config: changes to the preset (see :func:`resolve_config`).
        engine: ``"cpu"``, ``"gpu"`` or ``"auto"``.
        seed: same seed, same partition, on any engine and any number of threads.
        progress: listener; when it expires the best state so far is completed and returned.

    Raises:
        ConfigError: unknown preset or setting.
        EngineError: the engine asked for cannot run here.
    """
    settings = resolve_config(preset, config)
    machine = choose_engine(engine)
    clock = _Clock()
    with clock("compression"):
        problem = pose_problem(hypergraph.grouped(), limits)
    with machine.guard():
        parts = solve(machine, problem, settings, seed, progress, clock)
    n_parts = int(parts.max(initial=-1)) + 1
    return Partition(
        parts,
        n_parts,
        "multilevel",
        engine=machine.name,
        seed=seed,
        complete=not progress.expired(),
        seconds=clock.seconds,
        config=settings.as_dict(),
    )


def solve(
    engine: Any, problem: Problem, config: Config, seed: int, progress: Progress, clock: _Clock
) -> Array:
    """int32[n_nodes]: the parts of the finest nodes, numbered without gaps."""
    if problem.level.n_nodes == 0:
        return np.zeros(0, np.int32)
    level = engine.upload(problem.level)
    limits = engine.from_host(problem.limits)
    states = [descend(engine, level, limits, problem, config, seed, progress, clock)]
    again = not states[0][1] and level.n_pins <= config.restart_pins
    for restart in range(1, config.restarts if again else 1):
        if progress.expired():
            break
        other_seed = seed + 7919 * restart
        states.append(descend(engine, level, limits, problem, config, other_seed, progress, clock))
    population = sorted((state for state, _ in states), key=_cost)
    for cycle in range(0 if states[0][1] else config.cycles):
        if progress.expired():
            break
        with clock("cycles"):
            mate = population[1 + cycle % (len(population) - 1)] if len(population) > 1 else None
            child = improve(
                engine, level, limits, population[0], mate, problem, config, seed + cycle, progress
            )
        if _cost(child) not in {_cost(one) for one in population}:
            population = sorted([*population, child], key=_cost)[: max(config.restarts, 1)]
    with clock("completion"):
        best = population[0]
        if best.n_parts > config.merge_at_most:
            return np.unique(engine.to_host(best.parts), return_inverse=True)[1].astype(np.int32)
        return _merge(engine, level, problem, best)[0]


def _cost(state: State) -> tuple[bool, int]:
    return not state.valid, state.connectivity


def descend(
    engine: Any,
    level: Level,
    limits: Array,
    problem: Problem,
    config: Config,
    seed: int,
    progress: Progress,
    clock: _Clock,
) -> tuple[State, bool]:
    """A partition from scratch, and whether its coarsest level was searched."""
    levels: list[tuple[Level, Any]] = [(level, None)]
    with clock("compression"):
        levels += compress(engine, level, limits, config.compression)
    with clock("coarsening"):
        levels += coarsen(engine, levels[-1][0], limits, config, seed, progress)
    with clock("search"):
        parts, n_parts, searched = solve_coarsest(
            engine, levels[-1][0], problem, config, seed, progress
        )
    with clock("refinement"):
        parts = engine.from_host(parts)
        parts, start = uncoarsen(
            engine, levels, limits, parts, n_parts, config, searched, seed, progress
        )
    with clock("completion"):
        final = complete(engine, level, limits, parts, n_parts, problem, config, seed)
        if start.valid and not (final.valid and final.connectivity <= start.connectivity):
            final = start
    return final, searched


def improve(
    engine: Any,
    level: Level,
    limits: Array,
    state: State,
    mate: State | None,
    problem: Problem,
    config: Config,
    seed: int,
    progress: Progress,
) -> State:
    """Coarsen again without crossing the borders of one or two partitions, refine on the way back.

    With a mate the coarse nodes are what both agree on, and refinement may take from either.
    """
    borders = state.parts
    if mate is not None:
        pairs = state.parts.astype(np.int64) * mate.n_parts + mate.parts
        borders = engine.xp.unique(pairs, return_inverse=True)[1].astype(np.int32)
    levels: list[tuple[Level, Any]] = [(level, None)]
    levels += coarsen(engine, level, limits, config, seed, progress, borders=borders)
    parts = state.parts
    for coarse, clusters in levels[1:]:
        projected = engine.xp.empty(coarse.n_nodes, np.int32)
        projected[clusters] = parts
        parts = projected
    parts, _ = uncoarsen(
        engine, levels, limits, parts, state.n_parts, config, False, seed, progress
    )
    return complete(engine, level, limits, parts, state.n_parts, problem, config, seed)


def uncoarsen(
    engine: Any,
    levels: list[tuple[Level, Any]],
    limits: Array,
    parts: Array,
    n_parts: int,
    config: Config,
    searched: bool,
    seed: int,
    progress: Progress,
) -> tuple[Array, State]:
    """Refined parts of the finest level, and the state before refinement there."""
    knobs = config.refinement
    progress.start("refining", len(levels), "levels")
    for depth in range(len(levels) - 1, -1, -1):
        level, clusters = levels[depth]
        if depth == 0:
            start = examine(engine, level, limits, parts, n_parts)
        if not (searched and depth == len(levels) - 1) and not progress.expired():
            parts = refine(
                engine,
                level,
                limits,
                parts,
                n_parts,
                knobs,
                rounds=knobs.rounds if depth else knobs.finest_rounds,
                schedule=knobs.polish_prices
                if searched
                else (knobs.coarse_prices if depth else knobs.fine_prices),
                overload_price=knobs.overload_price,
                roomy=searched,
                seed=seed + depth,
                progress=progress,
            )
        if clusters is not None:
            parts = parts[clusters]
        progress.advance(1, note=f"{level.n_nodes:,} nodes")
    progress.finish()
    return parts, start


def complete(
    engine: Any,
    level: Level,
    limits: Array,
    parts: Array,
    n_parts: int,
    problem: Problem,
    config: Config,
    seed: int,
) -> State:
    """Repair an overfull partition, then win back what that cost while it stays valid."""
    knobs = config.refinement
    state = repair(engine, level, limits, parts, n_parts, problem.max_parts, knobs, seed=seed)
    if not state.valid or knobs.settle_rounds == 0:
        return state
    parts = refine(
        engine,
        level,
        limits,
        state.parts,
        state.n_parts,
        knobs,
        rounds=knobs.settle_rounds,
        schedule=(knobs.settle_price,),
        overload_price=knobs.settle_price,
        roomy=False,
        seed=seed + 101,
    )
    return examine(engine, level, limits, parts, state.n_parts)


def _merge(
    engine: Any, level: Level, problem: Problem, state: State, limits: Array | None = None
) -> tuple[Array, int]:
    """Parts on the host, joined to the fewest within the problem's (or other) limits."""
    return merge_parts(
        engine.to_host(state.parts),
        state.n_parts,
        engine.to_host(state.loads),
        problem.limits if limits is None else limits,
        type(state.table)(*(engine.to_host(a) for a in state.table)),
        engine.to_host(level.counts),
        engine.to_host(level.net_weights),
    )


def small(level: Level, config: Config) -> bool:
    """Whether the sequential search handles this level."""
    few_pins = level.n_pins + len(level.source_nodes) <= config.coarsening.small_pins
    return few_pins and level.n_nets <= 4 * level.n_nodes


def coarsen(
    engine: Any,
    level: Level,
    limits: Array,
    config: Config,
    seed: int,
    progress: Progress,
    borders: Any = None,
) -> list[tuple[Level, Any]]:
    """Levels by clustering until one is small enough to search, or nothing merges any more.

    With `borders` (int32[n_nodes]) nodes on different sides stay apart on every level.
    """
    levels: list[tuple[Level, Any]] = []
    progress.start("coarsening", None, "levels")
    knobs = config.coarsening
    while borders is not None or not small(level, config):
        clusters, n_clusters = cluster(engine, level, limits, knobs, seed + len(levels), borders)
        if n_clusters > knobs.stall * level.n_nodes:
            if knobs.growth > level.n_nodes:
                break
            knobs = replace(knobs, growth=4 * knobs.growth)  # heavier clusters may still merge
            continue
        level = engine.contract(level, clusters, n_clusters)
        levels.append((level, clusters))
        if borders is not None:
            projected = engine.xp.empty(n_clusters, np.int32)
            projected[clusters] = borders
            borders = projected
        progress.advance(1, note=f"{n_clusters:,} nodes")
    progress.finish()
    return levels


def solve_coarsest(
    engine: Any, level: Level, problem: Problem, config: Config, seed: int, progress: Progress
) -> tuple[Array, int, bool]:
    """(parts of the coarsest level on the host, their number, whether they were searched)."""
    if small(level, config):
        hunt = Search(engine.download(level), problem.limits, config.search, problem.max_parts)
        if level.n_pins * hunt.count_parts(seed) <= config.search.most_work:
            total = config.search.population + config.search.generations * config.search.batch
            progress.start("searching", total, "partitions")
            found = hunt.run(seed, progress)
            progress.finish()
            return found.parts, found.n_parts, True
    if level.n_nodes > config.merge_at_most:
        # Nothing merges by the bound on axons that coarsening uses: fill parts by exact unions.
        parts = kct.pack_in_order(engine.download(level), problem.limits)
        return parts, int(parts.max(initial=-1)) + 1, False
    alone = engine.xp.arange(level.n_nodes, dtype=np.int32)
    limits = engine.from_host(problem.limits)
    state = examine(engine, level, limits, alone, level.n_nodes)
    # Coarse borders cost axons that refinement wins back: first parts may exceed distinct limits a little.
    roomy = problem.limits.copy()
    distinct = roomy[level.resources.shape[1] :]
    distinct += distinct // 100 * config.merge_slack_percent
    return *_merge(engine, level, problem, state, roomy), False


class _Clock:
    """Adds up wall-clock seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._phase = ""
        self._start = 0.0

    def __call__(self, phase: str) -> _Clock:
        self._phase = phase
        return self

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        spent = time.perf_counter() - self._start
        self.seconds[self._phase] = self.seconds.get(self._phase, 0.0) + spent
