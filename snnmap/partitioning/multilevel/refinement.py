"""Parallel refinement with soft limits, after Jet (Gilbert et al. 2024), and strict repair.

A round: every node proposes its best move by the soft objective (connectivity + price * overload),
also slightly losing ones while it is warm; the afterburner recomputes each gain as if all better
ranked moves were made first and drops what turns out to lose; parts accept arrivals while there is
room; the rest moves at once and rests for a round. The best state by (connectivity + a high price *
overload) stays. The other scheme, the published one, is in `sequence.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from snnmap.partitioning.multilevel.choosing import accept_prefix, make_moves
from snnmap.partitioning.multilevel.config import RefinementConfig
from snnmap.partitioning.multilevel.level import Level
from snnmap.partitioning.multilevel.sequence import refine_in_sequence
from snnmap.partitioning.multilevel.state import State, examine, price_overload, weigh
from snnmap.partitioning.multilevel.turns import Turn, plan_repair, plan_turns
from snnmap.progress import SILENT, Progress

Array = Any  # of the engine's array library


def refine(
    engine: Any,
    level: Level,
    limits: Array,
    parts: Array,
    n_parts: int,
    config: RefinementConfig,
    *,
    rounds: int,
    schedule: tuple[float, ...],
    overload_price: float,
    roomy: bool,
    seed: int,
    progress: Progress = SILENT,
    deferred: bool = False,
) -> Array:
    """Better parts of one level; never worse by (connectivity + `overload_price` * overload).

    Scheme ``"sequence"`` (`sequence.py`) never adds overload.

    Args:
        engine: where the level's arrays are.
        level: the level, perhaps without lists by node.
        limits: int64[n_loads].
        parts: int32[n_nodes], where to start.
        n_parts: their number.
        config: temperature and patience.
        rounds: most rounds.
        schedule: prices of overload over the rounds, in units of its average worth.
        overload_price: by which states are compared, in the same unit.
        roomy: whether parts may take a little more than fits while the price is the last one too.
        seed: breaks ties.
        progress: asked between rounds whether to stop.
        deferred: whether the engine may return before it is sure that they are there.

    Raises:
        RoundsGaveUpError: those deferred before this.
    """
    settles = schedule == (config.settle_price,)
    if (config.settle_scheme if settles else config.scheme) == "sequence":
        start = (engine, level, limits, parts, n_parts, config)
        return refine_in_sequence(
            *start, rounds=rounds, schedule=schedule, seed=seed, progress=progress
        )
    turns = plan_turns(config, rounds, schedule, roomy=roomy, seed=seed)
    asked = {"overload_price": overload_price, "patience": config.patience, "deferred": deferred}
    refined = engine.refine_rounds(level, limits, parts, n_parts, turns, progress, **asked)
    if refined is not None:
        return refined
    xp, level = engine.xp, engine.restore(level)
    state = examine(engine, level, limits, parts, n_parts)
    worth = price_overload(level, engine, state.connectivity)
    final_prices = (worth * overload_price).astype(np.int64)

    def cost(state: State) -> int:
        return int(state.connectivity) + sum(
            int(o) * int(p) for o, p in zip(state.overload, final_prices, strict=True)
        )

    best, best_cost, since = state.parts, cost(state), 0
    locked = xp.zeros(level.n_nodes, bool)
    for turn in turns:
        if progress.expired() or since > config.patience:
            break
        moves = engine.propose(
            level,
            state.table,
            state.parts,
            state.loads,
            limits,
            engine.from_host((worth * turn.factor).astype(np.int64)),
            locked,
            strict=False,
            haven=0,
            seed=turn.seed,
            slack=turn.slack,
        )
        parts, locked, n_moved = engine.choose_moves(level, limits, state, moves, roomy=turn.roomy)
        if turn.cold and int(n_moved) == 0:
            break
        state = examine(engine, level, limits, parts, n_parts, state, locked)
        now = cost(state)
        since += 1
        if now < best_cost:
            best, best_cost, since = state.parts, now, 0
    return best


def repair(
    engine: Any,
    level: Level,
    limits: Array,
    parts: Array,
    n_parts: int,
    max_parts: int | None,
    config: RefinementConfig,
    *,
    seed: int,
    progress: Progress = SILENT,
    known: State | None = None,
) -> State:
    """Make a partition valid: overfull parts give up what costs least, to where it fits.

    An empty part joins whenever a round frees nothing, as long as `max_parts` allows. Stops between
    rounds when `progress` expires. `known` is the state of these parts, if they were measured.
    """
    state = known or weigh(engine, level, limits, parts, n_parts)
    if state.valid:
        return state
    turns = plan_repair(config, seed=seed)
    while turns and not (state.valid or progress.expired()):
        level = engine.restore(level)
        grows = max_parts is None or n_parts < max_parts
        asked = (level, limits, state, turns, progress)
        played = engine.repair_rounds(*asked, may_grow=grows)
        if played is None:
            if state.table is None:
                state = examine(engine, level, limits, state.parts, n_parts)
            n_played = 1
            state, in_vain = _repair_once(engine, level, limits, state, turns[0], grows=grows)
        else:
            parts, n_played, in_vain = played
            state = weigh(engine, level, limits, parts, n_parts)
        turns = turns[n_played:]
        if in_vain and not grows:
            break
        if in_vain:
            total = int((state.overload / engine.to_host(limits)).max()) + 1
            n_parts = min(n_parts + total, max_parts or n_parts + total)
            state = weigh(engine, level, limits, state.parts, n_parts)
    return state


def _repair_once(
    engine: Any, level: Level, limits: Array, state: State, turn: Turn, *, grows: bool
) -> tuple[State, bool]:
    """(the state after a round of repair, whether nothing moved or, if parts may grow, nothing helped)."""
    xp, n_parts = engine.xp, state.n_parts
    room = limits - state.loads
    free = (room / xp.maximum(limits, 1)).min(axis=1)
    moves = engine.propose(
        level,
        state.table,
        state.parts,
        state.loads,
        limits,
        xp.zeros_like(limits),
        xp.zeros(level.n_nodes, bool),
        strict=True,
        haven=int(free.argmax()),
        seed=turn.seed,
        slack=0,
    )
    movers = xp.flatnonzero(moves.targets >= 0)
    order = movers[xp.argsort(-moves.gains[movers], kind="stable")]
    over = xp.maximum(-room, 0)
    # One more than needed: the prefix must reach the overload, not stay below it.
    largest = xp.maximum(moves.outgoing[movers].max(axis=0), 1) if len(movers) else 1
    enough = xp.where(over > 0, over + largest, np.int64(1) << 60)
    leaving = accept_prefix(xp, order, state.parts, moves.outgoing, enough)
    ranked = leaving[xp.argsort(-moves.gains[leaving], kind="stable")]
    accepted = accept_prefix(xp, ranked, moves.targets, moves.incoming, xp.maximum(room, 0))
    if len(accepted) == 0:
        return state, True
    before = state.overload.sum()
    chosen = make_moves(engine, state.parts, moves.targets, accepted)
    state = examine(engine, level, limits, chosen.parts, n_parts, state, chosen.moved)
    return state, grows and bool(state.overload.sum() >= before)
