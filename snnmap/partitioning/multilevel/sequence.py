"""Refinement by one sorted sequence of moves: the published scheme (arXiv 2604.14411).

A round: every node proposes its best move in isolation; the moves are sorted by gain; the gain and
the change of loads of each are recomputed as if all earlier ones were made; and the best valid
prefix of the sequence is made. Validity is found by events: a move changes the loads of two parts,
so the sums of the events of each part, in order, tell its overload after every move.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from snnmap.partitioning.multilevel.config import RefinementConfig
from snnmap.partitioning.multilevel.level import Level
from snnmap.partitioning.multilevel.state import State, examine, price_overload
from snnmap.progress import SILENT, Progress

Array = Any  # of the engine's array library


def refine_in_sequence(
    engine: Any,
    level: Level,
    limits: Array,
    parts: Array,
    n_parts: int,
    config: RefinementConfig,
    *,
    rounds: int,
    schedule: tuple[float, ...],
    seed: int,
    progress: Progress = SILENT,
) -> Array:
    """Better parts of one level: every round saves connectivity or takes overload away.

    Args:
        engine: where the level's arrays are.
        level: the level.
        limits: int64[n_loads].
        parts: int32[n_nodes], where to start.
        n_parts: their number.
        config: temperature: 1 proposes the best move of every node, 0 only moves that save something.
        rounds: most rounds.
        schedule: prices of overload over the rounds, in units of its average worth, for proposals: 0
            ignores the limits, a high one proposes only what fits alone.
        seed: breaks ties.
        progress: asked between rounds whether to stop.
    """
    xp = engine.xp
    state = examine(engine, level, limits, parts, n_parts)
    worth = price_overload(level, engine, state.connectivity)
    anywhere = xp.zeros(level.n_nodes, bool)
    for turn in range(rounds):
        if progress.expired():
            break
        factor = schedule[turn * len(schedule) // rounds]
        moves = engine.propose(
            level,
            state.table,
            state.parts,
            state.loads,
            limits,
            engine.from_host((worth * factor).astype(np.int64)),
            anywhere,
            strict=False,
            haven=0,
            seed=seed * 1009 + turn,
            slack=int(64 * config.temperature),
        )
        ids = best_prefix(engine, level, limits, state, moves.targets, moves.gains)
        if len(ids) == 0:
            if factor == schedule[-1]:
                break
            continue
        parts = state.parts.copy()
        parts[ids] = moves.targets[ids]
        state = examine(engine, level, limits, parts, n_parts, state, ids)
    return state.parts


def best_prefix(
    engine: Any, level: Level, limits: Array, state: State, targets: Array, gains: Array
) -> Array:
    """Nodes of the prefix, of all moves by falling gain, that is best to make; may be empty.

    That is the one with the least overload left (none, where the parts were valid before), among
    those the one that saves most, among those the shortest.

    Args:
        engine: where the level's arrays are.
        level: the level.
        limits: int64[n_loads].
        state: before the moves.
        targets: int32[n_nodes], the part each node would move to, -1 to stay.
        gains: int64[n_nodes], by which moves are sorted.
    """
    xp = engine.xp
    movers = xp.flatnonzero(targets >= 0)
    n = len(movers)
    if n == 0:
        return movers
    order = movers[xp.argsort(-gains[movers], kind="stable")]
    ranks = xp.zeros(level.n_nodes, xp.int32)
    ranks[order] = xp.arange(n, dtype=xp.int32)
    saved, incoming, outgoing = engine.replay(
        level, state.table, state.parts, targets, ranks, state.n_parts
    )
    overload = xp.maximum(state.loads - limits, 0).sum(axis=1)
    before = int(overload.sum())
    after = before + xp.cumsum(
        _overload_changes(
            engine,
            xp.concatenate([state.parts[order], targets[order]]),
            xp.concatenate([-outgoing[order], incoming[order]]),
            limits,
            state.loads,
            overload,
        )
    )
    least = min(before, int(after.min()))
    totals = xp.where(after == least, xp.cumsum(saved[order]), np.int64(-1) << 62)
    best = int(totals.argmax())
    if least == before and int(totals[best]) <= 0:
        return movers[:0]
    return order[: best + 1]


def _overload_changes(
    engine: Any, parts: Array, changes: Array, limits: Array, loads: Array, overload: Array
) -> Array:
    """int64[n_moves]: by how much each move changes the overload of all parts.

    Args:
        engine: where the arrays are.
        parts: int32[2 * n_moves]: first the origins of the moves, then their targets.
        changes: int64[2 * n_moves, n_loads] of the loads of those parts.
        limits: int64[n_loads].
        loads: int64[n_parts, n_loads] before all moves.
        overload: int64[n_parts] of each part then.
    """
    xp = engine.xp
    n = len(parts) // 2
    steps = xp.arange(2 * n) % n
    order = xp.argsort(parts.astype(xp.int64) * n + steps, kind="stable")  # by part, then in time
    parts, changes = parts[order], changes[order]
    new = xp.ones(2 * n, bool)
    new[1:] = parts[1:] != parts[:-1]
    starts, runs = xp.flatnonzero(new), xp.cumsum(new) - 1
    totals = xp.cumsum(changes, axis=0)
    before = totals[starts] - changes[starts]
    held = loads[parts] + totals - before[runs]
    now = xp.maximum(held - limits, 0).sum(axis=1)
    last = xp.empty_like(now)
    last[1:] = now[:-1]
    last[starts] = overload[parts[starts]]
    changed = xp.zeros(n, xp.int64)
    engine.add_at(changed, steps[order], now - last)
    return changed
