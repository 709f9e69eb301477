"""Levels from fine to coarse, of which only what is worked on takes much memory.

The coarse levels of a network without structure shrink slowly: together they are more than twice
the finest. So a level gives up its lists by node while it is not worked on, and a large coarse one of a
large network is dropped altogether once the next is made. On the way back it is made again, by contracting the
finest level by the maps up to it; contraction numbers nets by their first pin set and orders
everything, so that this gives the same arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from snnmap.partitioning.multilevel.config import CoarseningConfig
from snnmap.partitioning.multilevel.level import Level, Sizes

Array = Any  # of the engine's array library


class Finest:
    """The finest level; its lists by node come and go."""

    def __init__(self, engine: Any, level: Level) -> None:
        self._engine = engine
        self._level = level

    @property
    def level(self) -> Level:
        """The whole level, its lists by node made again if need be."""
        self._level = self._engine.restore(self._level)
        return self._level

    def for_rounds(self) -> Level:
        """The level as refinement wants it."""
        self._level = self._engine.for_rounds(self._level)
        return self._level

    @property
    def slim(self) -> Level:
        """The level for those who need no lists by node."""
        return self._level

    def for_clusters(self, config: CoarseningConfig) -> Level:
        """The level as clustering wants it."""
        self._level = self._engine.for_clusters(self._level, config)
        return self._level

    def shed(self) -> Level:
        """Drop the lists by node; the level without them."""
        self._level = self._engine.shed(self._level)
        return self._level


class Hierarchy:
    """Levels from fine to coarse, and the maps between them.

    Attributes:
        maps: for each coarse level int32[nodes of the level before], the node that each becomes.
        bundles: of the coarsest level's nodes, if compression made it (see `compression.Compressed`).
    """

    def __init__(
        self,
        engine: Any,
        finest: Finest,
        coarser: Iterable[tuple[Level, Array]] = (),
        bundles: Array | None = None,
    ) -> None:
        self._engine = engine
        self._finest = finest
        self._levels: list[Level | None] = []
        self._sizes: list[Sizes] = []
        self.maps: list[Array] = []
        self.bundles = bundles
        for level, clusters in coarser:
            self._append(level, clusters)

    def __len__(self) -> int:
        """How many levels there are, the finest included."""
        return 1 + len(self._levels)

    def _append(self, level: Level, clusters: Array) -> None:
        self._levels.append(level)
        self._sizes.append(level.sizes)
        self.maps.append(clusters)

    def spread(self, parts: Array) -> Array:
        """int32[n_nodes]: parts of the finest nodes, by those of the coarsest."""
        for clusters in reversed(self.maps):
            parts = parts[clusters]
        return parts

    def n_nodes(self, depth: int) -> int:
        """Nodes of a level."""
        return self._sizes[depth - 1][0] if depth else self._finest.slim.n_nodes

    def for_rounds(self, depth: int) -> Level:
        """The level at a depth as refinement wants it."""
        if depth == 0:
            return self._finest.for_rounds()
        wanted: Level = self._engine.for_rounds(self._slim(depth))
        return wanted

    def for_clusters(self, config: CoarseningConfig) -> Level:
        """The coarsest level as clustering wants it."""
        if not self._levels:
            return self._finest.for_clusters(config)
        wanted: Level = self._engine.for_clusters(self._slim(len(self._levels)), config)
        return wanted

    def level(self, depth: int) -> Level:
        """The whole level at a depth, 0 being the finest, -1 the coarsest."""
        depth = range(len(self))[depth]
        if depth == 0:
            return self._finest.level
        whole: Level = self._engine.restore(self._slim(depth))
        return whole

    def _slim(self, depth: int) -> Level:
        """A coarse level, made again if need be."""
        level = self._levels[depth - 1]
        if level is None:
            level = self._make_again(depth)
            self._engine.tidy()
        return level

    def _make_again(self, depth: int) -> Level:
        """Contract the nearest finer level that is there by the maps from it."""
        above = depth - 1
        while above and self._levels[above - 1] is None:
            above -= 1
        finer = self._levels[above - 1] if above else None
        if finer is None:
            finer = self._finest.shed()
        clusters = self.maps[above]
        for further in self.maps[above + 1 : depth]:
            clusters = further[clusters]
        sizes = self._sizes[depth - 1]
        made: Level = self._engine.contract_nets(finer, clusters, sizes[0], sizes)
        return made

    def coarsen(self, clusters: Array, n_clusters: int) -> None:
        """Contract the coarsest level; that makes the new one."""
        if self._levels:
            finer = self._levels[-1]
            assert finer is not None, "the coarsest level is there until it is left"
        else:
            finer = self._finest.shed()
        level: Level = self._engine.contract_nets(finer, clusters, n_clusters)
        n_pins, engine = self._finest.slim.n_pins, self._engine
        large = n_pins >= engine.kept_pins and engine.kept_share * finer.n_pins > n_pins
        if self._levels:
            self._levels[-1] = None if large else engine.set_aside(finer)
        self._append(level, clusters)
        self.bundles = None
        del finer
        self._engine.tidy()

    def leave(self, depth: int) -> None:
        """A level was worked on for the last time: forget it; the finest stays."""
        if depth:
            self._levels[depth - 1] = None
        self._engine.tidy(finest=depth == 0)
