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
from snnmap.partitioning.multilevel.state import examine, price_overload
from snnmap.partitioning.multilevel.turns import plan_sequence
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
    turns = plan_sequence(config, rounds, schedule, seed=seed)
    refined = engine.refine_by_prefix(level, limits, parts, n_parts, turns, progress)
    if refined is not None:
        return refined
    xp, level = engine.xp, engine.restore(level)
    state = examine(engine, level, limits, parts, n_parts)
    worth = price_overload(level, engine, state.connectivity)
    anywhere = xp.zeros(level.n_nodes, bool)
    for turn in turns:
        if progress.expired():
            break
        moves = engine.propose(
            level,
            state.table,
            state.parts,
            state.loads,
            limits,
            engine.from_host((worth * turn.factor).astype(np.int64)),
            anywhere,
            strict=False,
            haven=0,
            seed=turn.seed,
            slack=turn.slack,
        )
        chosen = engine.choose_prefix(level, limits, state, moves.targets, moves.gains)
        if int(chosen.n_moved) > 0:
            state = examine(engine, level, limits, chosen.parts, n_parts, state, chosen.moved)
        elif turn.cold:
            break
    return state.parts
