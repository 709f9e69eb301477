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
    found: tuple[Array, int] = engine.cluster(level, limits, config, seed, borders)
    return found


def cluster_in_turns(
    engine: Any, level: Level, limits: Array, config: CoarseningConfig, seed: int, borders: Any
) -> tuple[Array, int]:
    """The steps of the CPU engine; the GPU engine takes them in one launch (``kernels/cluster.cu``)."""
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
        room = room_cap[None, :] - loads
        engine.join_clusters(level, (targets, scores), loads, room, (leaders, settled))
    heads = leaders == ids
    numbers = (xp.cumsum(heads) - 1).astype(xp.int32)
    return numbers[leaders], int(heads.sum())
