"""Which of the moves that were proposed alone are made together.

The steps that the CPU engine takes; the GPU engine takes the same ones without asking the host
(`gpu_choosing.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from snnmap.partitioning.multilevel.level import Level
from snnmap.partitioning.multilevel.state import State

Array = Any  # of the engine's array library


class Chosen(NamedTuple):
    """A partition after a round, and what moved.

    Attributes:
        parts: int32[n_nodes].
        moved: bool[n_nodes].
        n_moved: how many moved; on a device a number that is not waited for.
    """

    parts: Array
    moved: Array
    n_moved: Any


def accept_prefix(xp: Any, order: Array, groups: Array, amounts: Array, room: Array) -> Array:
    """Of nodes in `order`, those whose group still has room for all amounts up to theirs.

    Args:
        xp: array library.
        order: int[n_chosen] node ids, best first.
        groups: int[n_nodes] group (part, cluster) a node wants.
        amounts: int64[n_nodes, n_loads].
        room: int64[n_groups, n_loads].

    Returns:
        int[...] accepted node ids, by group and rank.
    """
    if len(order) == 0:
        return order
    ranked = order[xp.argsort(groups[order], kind="stable")]
    wanted = groups[ranked]
    new = xp.ones(len(ranked), bool)
    new[1:] = wanted[1:] != wanted[:-1]
    starts = xp.flatnonzero(new)
    runs = xp.cumsum(new) - 1
    own = amounts[ranked]
    totals = xp.cumsum(own, axis=0)
    before = totals[starts] - own[starts]
    return ranked[((totals - before[runs]) <= room[wanted]).all(axis=1)]


def make_moves(engine: Any, parts: Array, targets: Array, ids: Array) -> Chosen:
    """The partition once the nodes `ids` are where they want to be."""
    parts, moved = parts.copy(), engine.xp.zeros(len(parts), bool)
    parts[ids] = targets[ids]
    moved[ids] = True
    return Chosen(parts, moved, len(ids))


def join_clusters(
    engine: Any, wishes: tuple[Array, Array], loads: Array, room: Array, joined: tuple[Array, Array]
) -> None:
    """Let nodes join the clusters that they want, best score first, while the clusters have room.

    Args:
        engine: where the arrays are.
        wishes: int32[n_nodes] leader of the cluster or -1, int64[n_nodes] score.
        loads: int64[n_nodes, n_loads] of the cluster that each node leads; grows.
        room: int64[n_nodes, n_loads] left in it.
        joined: int32[n_nodes] leader of each node, bool[n_nodes] whether it is settled; change.
    """
    xp, (targets, scores), (leaders, settled) = engine.xp, wishes, joined
    movers = xp.flatnonzero(targets >= 0)
    order = movers[xp.argsort(-scores[movers], kind="stable")]
    ids = accept_prefix(xp, order, targets, loads, room)
    hosts = targets[ids]
    leaders[ids] = hosts
    settled[ids] = True
    settled[hosts] = True
    engine.add_at(loads, hosts, loads[ids])


def choose_moves(
    engine: Any, level: Level, limits: Array, state: State, moves: Any, *, roomy: bool
) -> Chosen:
    """The moves that pay once all better ones are made and for which there is room.

    Args:
        engine: where the arrays are.
        level: the level.
        limits: int64[n_loads].
        state: before the moves.
        moves: what `propose` found.
        roomy: whether parts may take a little more than fits.
    """
    xp = engine.xp
    movers = xp.flatnonzero(moves.targets >= 0)
    order = movers[xp.argsort(-moves.gains[movers], kind="stable")]
    ranks = xp.zeros(level.n_nodes, xp.int32)
    ranks[order] = xp.arange(len(order), dtype=xp.int32)
    later = engine.gains_in_sequence(
        level, state.table, state.parts, moves.targets, ranks, state.n_parts
    )
    gains = later + moves.gains - moves.plain_gains
    order = order[gains[order] > 0]

    room = limits - state.loads
    leaving = xp.zeros_like(state.loads)
    engine.add_at(leaving, state.parts[order], moves.outgoing[order])
    slackness = limits // 32 if roomy else xp.zeros_like(limits)
    accepted = accept_prefix(
        xp, order, moves.targets, moves.incoming, xp.maximum(room, 0) + leaving + slackness
    )
    # Moves that only pay by relief stop when their origin is relieved.
    costly = later[accepted] <= 0
    relieving = accepted[costly]
    relieving = relieving[xp.argsort(ranks[relieving], kind="stable")]
    over = xp.maximum(-room, 0)
    enough = xp.where(over > 0, over + limits // 64, np.int64(1) << 60)
    relieving = accept_prefix(xp, relieving, state.parts, moves.outgoing, enough)
    ids = xp.concatenate([accepted[~costly], relieving])
    return make_moves(engine, state.parts, moves.targets, ids)


def choose_prefix(
    engine: Any, level: Level, limits: Array, state: State, targets: Array, gains: Array
) -> Chosen:
    """The prefix, of all moves by falling gain, that is best to make; may be empty.

    That is the one with the least overload left (none, where the parts were valid before), among
    those the one that saves most, among those the shortest.

    Args:
        engine: where the arrays are.
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
        return make_moves(engine, state.parts, targets, movers)
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
        return make_moves(engine, state.parts, targets, movers[:0])
    return make_moves(engine, state.parts, targets, order[: best + 1])


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
