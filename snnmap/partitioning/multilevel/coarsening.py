"""Parallel clustering of levels that are too large for the search.

Nodes move in a few turns. In its turn an unsettled node rates the clusters around it and proposes
to join the best; each cluster takes its suitors by score while it stays within its limits.
"""

from __future__ import annotations

from typing import Any

from snnmap.partitioning.multilevel.config import CoarseningConfig
from snnmap.partitioning.multilevel.level import UNLIMITED, Level
from snnmap.partitioning.multilevel.matching import match

Array = Any  # of the engine's array library


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


def cluster(
    engine: Any,
    level: Level,
    limits: Array,
    config: CoarseningConfig,
    seed: int,
    borders: Array | None = None,
) -> tuple[Array, int]:
    """(int32[n_nodes] cluster of each node, number of clusters).

    Clusters keep all limits and never cross a border: nodes with different `borders` (int32[n_nodes])
    stay apart. Scheme ``"matching"`` makes pairs instead (`matching.py`).
    """
    if config.scheme == "matching":
        return match(engine, level, limits, config, seed, borders)
    xp = engine.xp
    n = level.n_nodes
    loads = engine.node_loads(level)
    average = int(level.resources[:, 0].sum()) // max(n, 1)
    cap = max(int(average * config.growth), int(loads[:, 0].max()))
    cap = min(cap, int(limits[0])) if int(limits[0]) < UNLIMITED else cap
    ids = xp.arange(n, dtype=xp.int32)
    leaders = ids.copy()
    settled = xp.zeros(n, bool)
    hashes = engine.mix(ids.astype(xp.uint64) + xp.uint64(seed * 0xD1B54A32D192ED03 % 2**64))
    turns = (hashes % xp.uint64(config.turns)).astype(xp.int32)
    room_cap = xp.minimum(xp.asarray(limits), xp.asarray([cap] + [UNLIMITED] * (len(limits) - 1)))
    for turn in range(config.turns):
        targets, scores = engine.rate(
            level,
            leaders,
            settled,
            loads,
            cap,
            limits,
            turns,
            turn,
            max_nets=config.max_nets,
            max_pins=config.max_pins,
            seed=seed,
            borders=borders,
        )
        movers = xp.flatnonzero(targets >= 0)
        if len(movers) == 0:
            continue
        order = movers[xp.argsort(-scores[movers], kind="stable")]
        joined = accept_prefix(xp, order, targets, loads, room_cap[None, :] - loads)
        hosts = targets[joined]
        leaders[joined] = hosts
        settled[joined] = True
        settled[hosts] = True
        engine.add_at(loads, hosts, loads[joined])
    heads = leaders == ids
    numbers = (xp.cumsum(heads) - 1).astype(xp.int32)
    return numbers[leaders], int(heads.sum())
