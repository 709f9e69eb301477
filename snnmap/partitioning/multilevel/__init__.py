"""The multilevel partitioner: compress, coarsen, search, uncoarsen.

    uncoarsen(search(coarsen(compress(level))))

One specification, two engines with equal answers (`engine_cpu.py`, `engine_gpu.py`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.partitioning.multilevel.coarsening import cluster
from snnmap.partitioning.multilevel.compression import compress
from snnmap.partitioning.multilevel.config import (
    PRESETS,
    Config,
    RefinementConfig,
    resolve_config,
)
from snnmap.partitioning.multilevel.engine import choose_engine, fit_engine
from snnmap.partitioning.multilevel.level import Level, Problem, pose_problem, project
from snnmap.partitioning.multilevel.merging import fold_parts, merge_parts
from snnmap.partitioning.multilevel.refinement import refine, repair
from snnmap.partitioning.multilevel.search import Search
from snnmap.partitioning.multilevel.state import State, examine
from snnmap.partitioning.multilevel.stopping import Watch, hasten, pack, secure
from snnmap.partitioning.result import Partition
from snnmap.progress import SILENT, Progress

__all__ = ["PRESETS", "Config", "partition_multilevel", "resolve_config"]

Array = np.ndarray[Any, Any]
Levels = list[tuple[Any, Any]]  # from fine to coarse: Level, and the map from the one before


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
        preset: ``"fast"``, ``"default"``, ``"quality"``, or ``"paper"`` (the published scheme).
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
    machine, reason = fit_engine(engine, machine, problem.level)
    if engine != "cpu":
        progress.say(f"engine: {reason}")
    watch = Watch(progress)
    with machine.guard():
        parts = solve(machine, problem, settings, seed, watch, clock)
    n_parts = int(parts.max(initial=-1)) + 1
    return Partition(
        parts,
        n_parts,
        "multilevel",
        engine=machine.name,
        seed=seed,
        complete=not watch.noticed,
        seconds=clock.seconds,
        config=settings.as_dict(),
    )


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


@dataclass(frozen=True, eq=False)
class Run:
    """What every phase needs: where, what, how, and who listens.

    Attributes:
        engine: where the arrays are.
        level: the finest level, there.
        limits: int64[n_loads], there.
        problem: the same on the host.
        config: all settings.
        progress: listener.
        clock: adds up seconds by phase.
    """

    engine: Any
    level: Level
    limits: Array
    problem: Problem
    config: Config
    progress: Progress
    clock: _Clock

    def examine(self, parts: Array, n_parts: int) -> State:
        """Measure a partition of the finest level."""
        return examine(self.engine, self.level, self.limits, parts, n_parts)

    def keep_parts(self, n_parts: int) -> bool:
        """Whether that many parts are left as they are."""
        most = self.problem.max_parts
        return self.config.merge == "needed" and (most is None or n_parts <= most)

    def merge(
        self, level: Level, state: State, limits: Array, *, hasty: bool = True
    ) -> tuple[Array, int]:
        """Parts joined to the fewest within these limits.

        Unless `hasty`, time does not matter: there are more parts than allowed.
        """
        return merge_parts(
            self.engine,
            level,
            state.parts,
            state.n_parts,
            state.loads,
            state.table,
            limits,
            self.progress if hasty else SILENT,
        )


def solve(
    engine: Any, problem: Problem, config: Config, seed: int, progress: Progress, clock: _Clock
) -> Array:
    """int32[n_nodes]: the parts of the finest nodes, numbered without gaps."""
    if problem.level.n_nodes == 0:
        return np.zeros(0, np.int32)
    level, limits = engine.upload(problem.level), engine.from_host(problem.limits)
    run = Run(engine, level, limits, problem, config, progress, clock)
    levels: Levels = [(level, None)]
    with clock("compression"):
        levels += compress(engine, level, limits, config.compression, progress)
    first, searched = descend(run, levels, seed)
    population = [_lean(first)]
    restarts = config.restarts if level.n_pins <= config.restart_pins else 1
    for restart in range(1, config.search.restarts if searched else restarts):
        if progress.expired():
            break
        population.append(_lean(descend(run, levels, seed + 7919 * restart)[0]))
    population.sort(key=_cost)
    for cycle in range(0 if searched else config.cycles):
        if progress.expired():
            break
        mate = population[1 + cycle % (len(population) - 1)] if len(population) > 1 else None
        with clock("cycles"):
            child = _lean(improve(run, population[0], mate, seed + cycle))
        if _cost(child) not in {_cost(one) for one in population}:
            population = sorted([*population, child], key=_cost)[: max(config.restarts, 1)]
    best = population[0]
    with clock("completion"):
        if best.n_parts > config.merge_at_most or run.keep_parts(best.n_parts):
            return np.unique(engine.to_host(best.parts), return_inverse=True)[1].astype(np.int32)
        enough = problem.max_parts is None or best.n_parts <= problem.max_parts
        best = run.examine(best.parts, best.n_parts)
        merged: Array = engine.to_host(run.merge(level, best, limits, hasty=enough)[0])
        return merged


def _lean(state: State) -> State:
    """Without its table, which is large."""
    return replace(state, table=None)


def _cost(state: State) -> tuple[bool, int]:
    return not state.valid, state.connectivity


def descend(run: Run, compressed: Levels, seed: int) -> tuple[State, bool]:
    """A partition from scratch, and whether its coarsest level was searched."""
    with run.clock("coarsening"):
        levels = compressed + coarsen(run, compressed[-1][0], seed)
    with run.clock("search"):
        coarse_parts, n_parts, searched = solve_coarsest(run, levels[-1][0], seed)
    with run.clock("refinement"):
        parts = run.engine.from_host(coarse_parts)
        exact = len(compressed) if len(compressed) > 1 else 0
        parts, start = uncoarsen(run, levels, parts, n_parts, seed, searched=searched, exact=exact)
        n_coarse, n_parts = n_parts, start.n_parts
    with run.clock("completion"):
        final = complete(run, parts, n_parts, seed, hasty=exact > 0)
        if run.progress.expired() and not final.valid and not start.valid:
            final = hurry(run, levels, coarse_parts, n_coarse, seed) or complete(
                replace(run, progress=SILENT), parts, n_parts, seed
            )
    found = min(final, start, key=_cost)
    if searched and not start.valid and not run.progress.expired():
        with run.clock("refinement"):
            found = min(found, tighten(run, levels, coarse_parts, n_parts, seed), key=_cost)
    return found, searched


def tighten(run: Run, levels: Levels, coarse_parts: Array, n_parts: int, seed: int) -> State:
    """The way back from a searched partition that never leaves its limits."""
    price = run.config.refinement.settle_price
    knobs = replace(run.config.refinement, polish_prices=(price,), overload_price=price)
    strict = replace(run, config=replace(run.config, refinement=knobs))
    parts = run.engine.from_host(coarse_parts)
    parts, start = uncoarsen(strict, levels, parts, n_parts, seed, searched=True, roomy=False)
    return run.examine(parts, start.n_parts)


def improve(run: Run, state: State, mate: State | None, seed: int) -> State:
    """Coarsen again without crossing the borders of one or two partitions, refine on the way back.

    With a mate the coarse nodes are what both agree on, and refinement may take from either.
    """
    xp = run.engine.xp
    borders = state.parts
    if mate is not None:
        pairs = state.parts.astype(np.int64) * mate.n_parts + mate.parts
        borders = xp.unique(pairs, return_inverse=True)[1].astype(np.int32)
    levels: Levels = [(run.level, None), *coarsen(run, run.level, seed, borders)]
    parts = state.parts
    for coarse, clusters in levels[1:]:
        parts = project(xp, parts, clusters, coarse.n_nodes)
    parts, start = uncoarsen(run, levels, parts, state.n_parts, seed, searched=False)
    return complete(run, parts, start.n_parts, seed)


def hurry(run: Run, levels: Levels, parts: Array, n_parts: int, seed: int) -> State | None:
    """A valid state in little time, from the parts of the coarsest level (host); or None."""
    knobs, most = run.config.refinement, run.problem.max_parts
    return secure(run.engine, levels, run.limits, parts, n_parts, most, knobs, seed)


def uncoarsen(
    run: Run,
    levels: Levels,
    parts: Array,
    n_parts: int,
    seed: int,
    *,
    searched: bool,
    exact: int = 0,
    roomy: bool | None = None,
) -> tuple[Array, State]:
    """Refined parts of the finest level, and the state before refinement there.

    When time is up, the parts are repaired in a hurry where that is noticed; there may be more then.
    What lies between the finest and the coarsest level is dropped from `levels` on the way, unless
    `searched`. Parts may take a little more than fits if `roomy`, by itself when they were searched. The first
    `exact` levels are the network and what compression made of it.
    """
    knobs, progress = run.config.refinement, run.progress
    polish = replace(knobs, patience=knobs.polish_patience)
    hurried = False
    progress.start("refining", len(levels), "levels")
    for depth in range(len(levels) - 1, -1, -1):
        level, clusters = levels[depth]
        level = run.engine.restore(level)
        if not searched and 0 < depth < len(levels) - 1:
            levels[depth] = (None, clusters)
        if depth and progress.expired() and not hurried:  # valid here is valid on the finest level
            hurried = True
            state = _repair(replace(run, level=level, progress=SILENT), parts, n_parts, seed)
            parts, n_parts = state.parts, state.n_parts
        if depth == 0:
            start = run.examine(parts, n_parts)
        schedule = knobs.coarse_prices if depth else knobs.fine_prices
        rounds = knobs.rounds if depth else knobs.finest_rounds
        if depth < exact:
            rounds = _polish_rounds(rounds, level, knobs)
        if not (searched and depth == len(levels) - 1) and not progress.expired():
            parts = refine(
                run.engine,
                level,
                run.limits,
                parts,
                n_parts,
                polish if depth < exact else knobs,
                rounds=rounds,
                schedule=knobs.polish_prices if searched else schedule,
                overload_price=knobs.overload_price,
                roomy=searched if roomy is None else roomy,
                seed=seed + depth,
                progress=progress,
            )
        if clusters is not None:
            parts = parts[clusters]
        progress.advance(1, note=f"{level.n_nodes:,} nodes")
    progress.finish()
    return parts, start


def _repair(
    run: Run, parts: Array, n_parts: int, seed: int, knobs: RefinementConfig | None = None
) -> State:
    """Repair on the level of the run, in a hurry unless settings are given."""
    return repair(
        run.engine,
        run.level,
        run.limits,
        parts,
        n_parts,
        run.problem.max_parts,
        knobs or hasten(run.config.refinement, run.level),
        seed=seed,
        progress=run.progress,
    )


def complete(run: Run, parts: Array, n_parts: int, seed: int, *, hasty: bool = False) -> State:
    """Repair an overfull partition, then win back what that cost while it stays valid."""
    knobs = run.config.refinement
    if run.progress.expired():
        return _repair(replace(run, progress=SILENT), parts, n_parts, seed)
    state = _repair(run, parts, n_parts, seed, knobs)
    if not state.valid or knobs.settle_rounds == 0 or run.progress.expired():
        return state
    parts = refine(
        run.engine,
        run.level,
        run.limits,
        state.parts,
        state.n_parts,
        replace(knobs, patience=knobs.polish_patience) if hasty else knobs,
        rounds=_polish_rounds(knobs.settle_rounds, run.level, knobs)
        if hasty
        else knobs.settle_rounds,
        schedule=(knobs.settle_price,),
        overload_price=knobs.settle_price,
        roomy=False,
        seed=seed + 101,
        progress=run.progress,
    )
    return run.examine(parts, state.n_parts)


def _polish_rounds(rounds: int, level: Level, knobs: RefinementConfig) -> int:
    """Fewer rounds where compression made the level and each takes long."""
    return min(rounds, max(knobs.polish_pins // max(level.n_pins, 1), 2))


def small(level: Level, config: Config) -> bool:
    """Whether the sequential search handles this level."""
    few_pins = level.n_pins + len(level.source_nodes) <= config.coarsening.small_pins
    return few_pins and level.n_nets <= 4 * level.n_nodes


def coarsen(run: Run, level: Level, seed: int, borders: Any = None) -> Levels:
    """Levels by clustering until one is small enough to search, or nothing merges any more.

    With `borders` (int32[n_nodes]) nodes on different sides stay apart on every level.
    """
    engine, progress, knobs = run.engine, run.progress, run.config.coarsening
    levels: Levels = []
    progress.start("coarsening", None, "levels")
    while borders is not None or not small(level, run.config):
        if progress.expired():
            break
        clusters, n_clusters = cluster(
            engine, level, run.limits, knobs, seed + len(levels), borders
        )
        if n_clusters > knobs.stall * level.n_nodes:
            if knobs.growth > level.n_nodes or knobs.scheme == "matching":
                break
            knobs = replace(knobs, growth=4 * knobs.growth)  # heavier clusters may still merge
            continue
        if levels:
            levels[-1] = (engine.shed(level), levels[-1][1])
        level = engine.contract(level, clusters, n_clusters)
        levels.append((level, clusters))
        if borders is not None:
            borders = project(engine.xp, borders, clusters, n_clusters)
        progress.advance(1, note=f"{n_clusters:,} nodes")
    progress.finish()
    return levels


def solve_coarsest(run: Run, level: Level, seed: int) -> tuple[Array, int, bool]:
    """(parts of the coarsest level on the host, their number, whether they were searched).

    No more parts than allowed, but some may be too full.
    """
    parts, n_parts, searched = _first_parts(run, level, seed)
    most = run.problem.max_parts
    if most is not None and n_parts > most:
        sizes = np.zeros(n_parts, np.int64)
        np.add.at(sizes, parts, run.engine.to_host(level.resources[:, 0]))
        parts, n_parts = fold_parts(parts, sizes, most)
    return parts, n_parts, searched


def _first_parts(run: Run, level: Level, seed: int) -> tuple[Array, int, bool]:
    config, problem, progress = run.config, run.problem, run.progress
    if progress.expired():
        return *pack(run.engine, level, run.limits), False
    if small(level, config):
        knobs = config.search
        hunt = Search(run.engine.download(level), problem.limits, knobs, problem.max_parts)
        if level.n_pins * hunt.count_parts(seed) <= knobs.most_work:
            total = knobs.population + knobs.generations * knobs.batch
            progress.start("searching", total, "partitions")
            found = hunt.run(seed, progress)
            progress.finish()
            return found.parts, found.n_parts, True
    if run.keep_parts(level.n_nodes):
        return np.arange(level.n_nodes, dtype=np.int32), level.n_nodes, False
    if level.n_nodes > config.merge_at_most:
        # Nothing merges by the bound on axons that coarsening uses: fill parts by exact unions.
        return *pack(run.engine, level, run.limits), False
    alone = run.engine.xp.arange(level.n_nodes, dtype=np.int32)
    state = examine(run.engine, level, run.limits, alone, level.n_nodes)
    # Coarse borders cost axons that refinement wins back: the first parts may exceed distinct limits.
    roomy = problem.limits.copy()
    distinct = roomy[level.resources.shape[1] :]
    distinct += distinct // 100 * config.merge_slack_percent
    parts, n_parts = run.merge(level, state, run.engine.from_host(roomy))
    return run.engine.to_host(parts), n_parts, False
