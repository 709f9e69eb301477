"""The multilevel partitioner: compress, coarsen, search, uncoarsen.

    uncoarsen(search(coarsen(compress(level))))

One specification, two engines with equal answers (`engine_cpu.py`, `engine_gpu.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from snnmap.errors import EngineError
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.partitioning.multilevel.compression import Compressed, compress
from snnmap.partitioning.multilevel.config import PRESETS, Config, resolve_config
from snnmap.partitioning.multilevel.descent import cost, descend, improve
from snnmap.partitioning.multilevel.engine import choose_engine, fit_engine
from snnmap.partitioning.multilevel.engine_cpu import CpuEngine
from snnmap.partitioning.multilevel.fm import refine_by_fm, wants_fm
from snnmap.partitioning.multilevel.gpu_memory import foresee
from snnmap.partitioning.multilevel.hierarchy import Finest
from snnmap.partitioning.multilevel.level import Problem, pose_problem
from snnmap.partitioning.multilevel.run import Array, Clock, Run
from snnmap.partitioning.multilevel.state import State
from snnmap.partitioning.multilevel.stopping import Watch
from snnmap.partitioning.result import Partition
from snnmap.progress import SILENT, Progress

__all__ = ["PRESETS", "Config", "partition_multilevel", "resolve_config"]


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
    clock = Clock()
    with clock("posing"):
        problem = pose_problem(hypergraph.grouped(), limits, lists=machine.name != "cpu")
    work = foresee(problem, settings)
    machine, reason = fit_engine(engine, machine, problem.level, work)
    if engine != "cpu":
        progress.say(f"engine: {reason}")
    watch = Watch(progress)
    try:
        with machine.guard():
            with clock("upload"):
                finest = Finest(machine, machine.upload(problem.level, work))
            problem = problem.without_lists()  # those by node are the engine's, to drop or to keep
            parts = solve(machine, finest, problem, settings, seed, watch, clock)
            machine.forget()
    except EngineError as error:
        if engine != "auto":
            raise
        progress.say(f"engine: CPU, since {error}")
        machine, clock = CpuEngine(), Clock()
        finest = Finest(machine, problem.level)
        parts = solve(machine, finest, problem, settings, seed, watch, clock)
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


def solve(
    engine: Any,
    finest: Finest,
    problem: Problem,
    config: Config,
    seed: int,
    progress: Progress,
    clock: Clock,
) -> Array:
    """int32[n_nodes]: the parts of the finest nodes, numbered without gaps."""
    if problem.level.n_nodes == 0:
        return np.zeros(0, np.int32)
    limits, n_pins = engine.from_host(problem.limits), problem.level.n_pins
    run = Run(engine, finest, limits, problem, config, progress, clock)
    with clock("compression"):
        found = compress(engine, finest.slim, problem.limits, config.compression, progress)
    if found.levels:
        engine.keep_memory()
    if found.levels and n_pins > config.compression.whole_pins:
        coarse, chunks = found.levels[0]
        rest = found._replace(levels=found.levels[1:])
        parts, valid = solve_levels(replace(run, finest=Finest(engine, coarse)), rest, seed)
        if valid:
            return np.asarray(engine.to_host(parts[chunks]))
    return np.asarray(engine.to_host(solve_levels(run, found, seed)[0]))


def solve_levels(run: Run, compressed: Compressed, seed: int) -> tuple[Array, bool]:
    """(parts of the finest level of the run, without gaps; whether they are valid).

    `compressed`: what compression made of it.
    """
    engine, config, progress = run.engine, run.config, run.progress
    first, searched = descend(run, compressed, seed)
    restarts = config.search.restarts if searched else config.restarts
    cycles = 0 if searched else config.cycles
    population = [_lean(first) if restarts > 1 or cycles else first]
    for restart in range(1, restarts):
        if progress.expired():
            break
        population.append(_lean(descend(run, compressed, seed + 7919 * restart)[0]))
    population.sort(key=cost)
    for cycle in range(cycles):
        if progress.expired():
            break
        mate = population[1 + cycle % (len(population) - 1)] if len(population) > 1 else None
        with run.clock("cycles"):
            child = _lean(improve(run, population[0], mate, seed + cycle))
        if cost(child) not in {cost(one) for one in population}:
            population = sorted([*population, child], key=cost)[: max(config.restarts, 1)]
    best = population[0]
    if wants_fm(run, best.n_parts):
        with run.clock("refinement"):
            best = min(best, refine_by_fm(run, [(best.parts, best.n_parts)], seed), key=cost)
    with run.clock("completion"):
        if best.n_parts > config.merge_at_most or run.keep_parts(best.n_parts):
            numbers = engine.xp.unique(best.parts, return_inverse=True)[1]
            return numbers.astype(np.int32), best.valid
        most = run.problem.max_parts
        enough = most is None or best.n_parts <= most
        merged, n_parts = run.merge(run.finest.slim, best, run.problem.limits, hasty=enough)
        return merged, best.valid and (most is None or n_parts <= most)


def _lean(state: State) -> State:
    """Without its table, which is large."""
    return replace(state, table=None)
