"""One descent: coarsen, find first parts, refine on the way back; and recombination by another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from snnmap.partitioning.multilevel.coarsening import cluster
from snnmap.partitioning.multilevel.compression import Compressed
from snnmap.partitioning.multilevel.config import Config, RefinementConfig
from snnmap.partitioning.multilevel.fm import refine_by_fm, wants_fm
from snnmap.partitioning.multilevel.hierarchy import Finest, Hierarchy
from snnmap.partitioning.multilevel.level import Level, project
from snnmap.partitioning.multilevel.merging import fold_parts
from snnmap.partitioning.multilevel.refinement import refine, repair
from snnmap.partitioning.multilevel.run import Array, Run
from snnmap.partitioning.multilevel.state import State, weigh
from snnmap.partitioning.multilevel.stopping import hasten, pack, secure
from snnmap.partitioning.multilevel.turns import RoundsGaveUpError
from snnmap.progress import SILENT


class First(NamedTuple):
    """Parts of the coarsest level.

    Attributes:
        parts: int32[n_nodes] on the host or the device.
        n_parts: their number.
        connectivity: if that is known, and that they are valid; then it is so on all levels.
    """

    parts: Array
    n_parts: int
    connectivity: int | None = None


class Way(NamedTuple):
    """The way back from the coarsest level.

    Attributes:
        searched: whether its parts were searched; its levels stay then.
        exact: so many levels, from the finest on, are the network and what compression made of it.
        roomy: whether parts may take a little more than fits on the way.
    """

    searched: bool = False
    exact: int = 0
    roomy: bool = False


def cost(state: State) -> tuple[bool, int]:
    """By which partitions are compared."""
    return not state.valid, state.connectivity


def descend(run: Run, compressed: Compressed, seed: int) -> tuple[State, bool]:
    """A partition from scratch, and whether its coarsest level was searched.

    Args:
        run: what every phase needs.
        compressed: what compression made of the network.
        seed: of the descent.
    """
    levels = Hierarchy(run.engine, run.finest, *compressed)
    with run.clock("coarsening"):
        coarsen(run, levels, seed)
    with run.clock("search"):
        firsts, searched = solve_coarsest(run, levels, seed)
    first = firsts[0]
    way = Way(searched, len(compressed.levels) + 1 if compressed.levels else 0, roomy=searched)
    by_fm = searched and len(levels) == way.exact and wants_fm(run, first.n_parts)
    with run.clock("refinement"):
        if by_fm:
            fine = [(levels.spread(run.engine.from_host(one)), n) for one, n, _ in firsts]
            start = refine_by_fm(run, fine, seed)
            parts = start.parts
        else:
            parts, start = uncoarsen(run, levels, first, seed, way)
    n_parts = start.n_parts
    with run.clock("completion"):
        known = start if parts is start.parts else None
        final = complete(run, parts, n_parts, seed, way, known)
        if run.progress.expired() and not final.valid and not start.valid:
            final = hurry(run, levels, first, seed) or complete(
                replace(run, progress=SILENT), parts, n_parts, seed
            )
    found = min(final, start, key=cost)
    if searched and not start.valid and not run.progress.expired():
        with run.clock("refinement"):
            found = min(found, tighten(run, levels, first, seed), key=cost)
    return found, searched


def tighten(run: Run, levels: Hierarchy, first: First, seed: int) -> State:
    """The way back from a searched partition that never leaves its limits."""
    price = run.config.refinement.settle_price
    knobs = replace(run.config.refinement, polish_prices=(price,), overload_price=price)
    strict = replace(run, config=replace(run.config, refinement=knobs))
    parts, start = uncoarsen(strict, levels, first, seed, Way(searched=True))
    return run.weigh(parts, start.n_parts)


def improve(run: Run, state: State, mate: State | None, seed: int) -> State:
    """Coarsen again without crossing the borders of one or two partitions, refine on the way back.

    With a mate the coarse nodes are what both agree on, and refinement may take from either.
    """
    xp = run.engine.xp
    borders = state.parts
    if mate is not None:
        pairs = state.parts.astype(np.int64) * mate.n_parts + mate.parts
        borders = xp.unique(pairs, return_inverse=True)[1].astype(np.int32)
    levels = Hierarchy(run.engine, run.finest)
    coarsen(run, levels, seed, borders)
    parts = state.parts
    for depth, clusters in enumerate(levels.maps, 1):
        parts = project(xp, parts, clusters, levels.n_nodes(depth))
    parts, start = uncoarsen(run, levels, First(parts, state.n_parts), seed, Way())
    return complete(run, parts, start.n_parts, seed)


def hurry(run: Run, levels: Hierarchy, first: First, seed: int) -> State | None:
    """A valid state in little time, or None."""
    knobs, most = run.config.refinement, run.problem.max_parts
    where = run.engine, levels, run.limits
    return secure(*where, first.parts, first.n_parts, most, knobs, seed)


def uncoarsen(
    run: Run, levels: Hierarchy, first: First, seed: int, way: Way
) -> tuple[Array, State]:
    """Refined parts of the finest level, and the state before refinement there.

    When time is up, the parts are repaired in a hurry where that is noticed; there may be more then.
    Coarse levels are dropped on the way, unless they were searched.
    """
    try:
        return _refine_levels(run, levels, first, seed, way, deferred=True)
    except RoundsGaveUpError:
        return _refine_levels(run, levels, first, seed, way, deferred=False)


def _refine_levels(
    run: Run, levels: Hierarchy, first: First, seed: int, way: Way, *, deferred: bool
) -> tuple[Array, State]:
    """See `uncoarsen`. `deferred`: a level may begin before the engine is sure that the one before is done."""
    n_parts, known = first.n_parts, first.connectivity
    parts = run.engine.from_host(first.parts)
    knobs, progress = run.config.refinement, run.progress
    polish = replace(knobs, patience=knobs.polish_patience)
    hurried = False
    progress.start("refining", len(levels), "levels")
    for depth in range(len(levels) - 1, -1, -1):
        level = levels.for_rounds(depth)
        if depth and progress.expired() and not hurried:  # valid here is valid on the finest level
            hurried = True
            state = _repair(
                replace(run, finest=Finest(run.engine, level), progress=SILENT),
                parts,
                n_parts,
                seed,
            )
            parts, n_parts, known = state.parts, state.n_parts, None
        before = parts
        schedule = knobs.coarse_prices if depth else knobs.fine_prices
        rounds = knobs.rounds if depth else knobs.finest_rounds
        if depth < way.exact:
            rounds = knobs.polish_rounds if way.searched else min(rounds, knobs.unsearched_rounds)
            rounds = _polish_rounds(rounds, level, knobs)
        elif depth and run.is_large(level):
            rounds = min(rounds, knobs.large_rounds)
        if rounds and not (way.searched and depth == len(levels) - 1) and not progress.expired():
            parts = refine(
                run.engine,
                level,
                run.limits,
                parts,
                n_parts,
                polish if depth < way.exact else knobs,
                rounds=rounds,
                schedule=knobs.polish_prices if way.searched else schedule,
                overload_price=knobs.overload_price,
                roomy=way.roomy,
                seed=seed + depth,
                progress=progress,
                deferred=deferred and depth > 0,
            )
            known = None if depth else known
        if depth:
            parts = parts[levels.maps[depth - 1]]
        elif known is not None:
            start = State(before, n_parts, known, None, np.zeros(len(run.limits), np.int64), None)
        else:  # rounds in one launch know what they started with
            start = run.weigh(before, n_parts)
        progress.advance(1, note=f"{level.n_nodes:,} nodes")
        del level  # before the next, larger one is made again
        if not way.searched:
            levels.leave(depth)
    progress.finish()
    return parts, start


def _repair(
    run: Run,
    parts: Array,
    n_parts: int,
    seed: int,
    knobs: RefinementConfig | None = None,
    known: State | None = None,
) -> State:
    """Repair on the level of the run, in a hurry unless settings are given."""
    return repair(
        run.engine,
        run.finest.for_rounds(),
        run.limits,
        parts,
        n_parts,
        run.problem.max_parts,
        knobs or hasten(run.config.refinement, run.finest.slim),
        seed=seed,
        progress=run.progress,
        known=known,
    )


def complete(
    run: Run,
    parts: Array,
    n_parts: int,
    seed: int,
    way: Way = Way(),  # noqa: B008
    known: State | None = None,
) -> State:
    """Repair an overfull partition, then win back what that cost while it stays valid."""
    knobs, hasty = run.config.refinement, way.exact > 0
    if run.progress.expired():
        return _repair(replace(run, progress=SILENT), parts, n_parts, seed)
    state = _repair(run, parts, n_parts, seed, knobs, known)
    rounds = knobs.settle_rounds
    if hasty:
        rounds = knobs.polish_settle_rounds if way.searched else rounds
        rounds = _polish_rounds(rounds, run.finest.slim, knobs)
    if not state.valid or rounds == 0 or run.progress.expired():
        return state
    parts = refine(
        run.engine,
        run.finest.for_rounds(),
        run.limits,
        state.parts,
        state.n_parts,
        replace(knobs, patience=knobs.polish_patience) if hasty else knobs,
        rounds=rounds,
        schedule=(knobs.settle_price,),
        overload_price=knobs.settle_price,
        roomy=False,
        seed=seed + 101,
        progress=run.progress,
    )
    return run.weigh(parts, state.n_parts)


def _polish_rounds(rounds: int, level: Level, knobs: RefinementConfig) -> int:
    """Fewer rounds where compression made the level and each takes long."""
    return min(rounds, max(knobs.polish_pins // max(level.n_pins, 1), 2))


def small(level: Level, config: Config) -> bool:
    """Whether the sequential search handles this level."""
    few_pins = level.n_pins + len(level.source_nodes) <= config.coarsening.small_pins
    return few_pins and level.n_nets <= 4 * level.n_nodes


def coarsen(run: Run, levels: Hierarchy, seed: int, borders: Any = None) -> None:
    """Add levels by clustering until one is small enough to search, or nothing merges any more.

    With `borders` (int32[n_nodes]) nodes on different sides stay apart on every level.
    """
    engine, progress, knobs = run.engine, run.progress, run.config.coarsening
    level, first = levels.for_clusters(knobs), len(levels)
    total, heaviest = int(run.problem.totals[0]), int(run.problem.limits[0])
    enough = run.config.enough_nodes(run.problem.least_parts())
    progress.start("coarsening", None, "levels")
    while borders is not None or not small(level, run.config):
        if level.n_nodes <= enough or progress.expired():
            break
        growth = max(knobs.growth, knobs.large_growth if run.is_large(level) else 0)
        now, seed_now = replace(knobs, growth=growth), seed + len(levels) - first
        clusters, n_clusters = cluster(engine, level, run.limits, now, seed_now, borders)
        if n_clusters > knobs.stall * level.n_nodes:
            full = total // level.n_nodes * growth >= heaviest  # they weigh what fits a part
            if full or knobs.growth > level.n_nodes or knobs.scheme == "matching":
                break
            knobs = replace(knobs, growth=4 * knobs.growth)  # heavier clusters may still merge
            continue
        del level  # its lists by node go before the next level is made
        levels.coarsen(clusters, n_clusters)
        level = levels.for_clusters(knobs)
        if borders is not None:
            borders = project(engine.xp, borders, clusters, n_clusters)
        progress.advance(1, note=f"{n_clusters:,} nodes")
    progress.finish()


def solve_coarsest(run: Run, levels: Hierarchy, seed: int) -> tuple[list[First], bool]:
    """(parts of the coarsest level, whether they were searched).

    The best first; there are others only of a search. No more parts than allowed, but some may be too full.
    """
    level = levels.for_rounds(len(levels) - 1)
    found, searched = _first_parts(run, levels, level, seed)
    most = run.problem.max_parts

    def fold(first: First) -> First:
        if most is None or first.n_parts <= most:
            return first
        parts, sizes = run.engine.to_host(first.parts), np.zeros(first.n_parts, np.int64)
        np.add.at(sizes, parts, run.engine.to_host(level.resources[:, 0]))
        return First(*fold_parts(parts, sizes, most))

    return [fold(one) for one in found], searched


def _first_parts(run: Run, levels: Hierarchy, level: Level, seed: int) -> tuple[list[First], bool]:
    """The same, with any number of parts; `level` is the coarsest as refinement wants it."""
    config, problem, progress = run.config, run.problem, run.progress
    if progress.expired():
        return [First(*pack(run.engine, levels.level(-1), run.limits))], False
    if small(level, config):
        knobs = config.search
        whole = levels.level(-1), problem.limits, knobs, problem.max_parts
        hunt = run.engine.searcher(*whole, levels.bundles)
        draw = np.random.default_rng(seed)  # while a device makes hierarchies
        if level.n_pins * hunt.count_parts() <= knobs.most_work:
            total = knobs.newcomers + hunt.generations * knobs.batch
            progress.start("searching", total, "partitions")
            found = hunt.run(draw, progress)
            progress.finish()
            return [
                First(one.parts, one.n_parts, None if one.overload else one.connectivity)
                for one in found
            ], True
    if run.keep_parts(level.n_nodes):
        return [First(np.arange(level.n_nodes, dtype=np.int32), level.n_nodes)], False
    if level.n_nodes > config.merge_at_most:
        # Nothing merges by the bound on axons that coarsening uses: fill parts by exact unions.
        return [First(*pack(run.engine, levels.level(-1), run.limits))], False
    alone = run.engine.xp.arange(level.n_nodes, dtype=np.int32)
    state = weigh(run.engine, level, run.limits, alone, level.n_nodes)
    # Coarse borders cost axons that refinement wins back: the first parts may exceed distinct limits.
    roomy = problem.limits.copy()
    distinct = roomy[level.resources.shape[1] :]
    distinct += distinct // 100 * config.merge_slack_percent
    parts, n_parts = run.merge(level, state, roomy)
    return [First(run.engine.to_host(parts), n_parts)], False
