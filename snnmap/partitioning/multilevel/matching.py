"""Coarsening by matching: the published scheme (arXiv 2604.14411), exact within the limits.

Every node rates its neighbours by shared weight and points to the best one that it may join. Each
node has one such edge, so they form a pseudo-forest, in which a matching of the largest weight is
found exactly (`_kernels_match.match_forest`). Nodes left over point to their next candidate.
"""

from __future__ import annotations

from typing import Any

from snnmap.partitioning.multilevel.config import CoarseningConfig
from snnmap.partitioning.multilevel.level import Level

Array = Any  # of the engine's array library


def match(
    engine: Any,
    level: Level,
    limits: Array,
    config: CoarseningConfig,
    seed: int,
    borders: Array | None = None,
) -> tuple[Array, int]:
    """(int32[n_nodes] cluster of each node, number of clusters): pairs and single nodes.

    Pairs keep all limits, distinct loads by their exact union, and lie within the same border.
    """
    xp = engine.xp
    ids = xp.arange(level.n_nodes, dtype=xp.int32)
    neighbours, scores = engine.rate_neighbours(
        level,
        engine.node_loads(level),
        limits,
        candidates=config.candidates,
        max_nets=config.max_nets,
        max_pins=config.max_pins,
        seed=seed,
        borders=borders,
    )
    partners = xp.full(level.n_nodes, -1, xp.int32)
    for _ in range(config.turns):
        alone = partners < 0
        possible = (neighbours >= 0) & alone[xp.maximum(neighbours, 0)] & alone[:, None]
        proposes = possible.any(axis=1)
        if not bool(proposes.any()):
            break
        best = possible.argmax(axis=1)
        targets = xp.where(proposes, neighbours[ids, best], -1).astype(xp.int32)
        found = engine.match_forest(targets, scores[ids, best])
        partners = xp.where(found >= 0, found, partners)
    leaders = xp.where(partners >= 0, xp.minimum(ids, partners), ids)
    heads = leaders == ids
    numbers = (xp.cumsum(heads) - 1).astype(xp.int32)
    return numbers[leaders], int(heads.sum())
