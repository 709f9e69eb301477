"""What exported files must say, from the network, the parts and their cores alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from snnmap.hypergraph import Hypergraph
from snnmap.stored import StoredMapping

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Truth:
    """What the files must say, from the network, the parts and their cores alone."""

    stored: StoredMapping
    hypergraph: Hypergraph
    network: Hypergraph
    cores: Array

    @cached_property
    def places(self) -> list[str]:
        """``"x,y"`` of each part."""
        return [f"{x},{y}" for x, y in self.cores.tolist()]

    @cached_property
    def groups(self) -> Array:
        """int64[n_hedges]: group of each axon."""
        h = self.hypergraph
        return np.repeat(np.arange(h.n_groups), np.diff(h.hedge_offsets))

    @cached_property
    def reached(self) -> tuple[Array, Array]:
        """(offsets, parts): the parts that each group has a destination in, ascending."""
        h = self.hypergraph
        rows = np.repeat(np.arange(h.n_groups), np.diff(h.group_offsets))
        parts = self.stored.node_parts[self.stored.node_parts >= 0]
        pairs = np.unique(rows * self.n_parts + parts[h.destinations])
        offsets = np.searchsorted(pairs, np.arange(h.n_groups + 1) * self.n_parts)
        return offsets, pairs % self.n_parts

    @property
    def n_parts(self) -> int:
        """Parts, at least 1 (for use in keys)."""
        return max(len(self.cores), 1)

    def sources(self, axon: int) -> list[int]:
        """Neurons of the network that an axon belongs to."""
        row = slice(*self.network.source_offsets[axon : axon + 2].tolist())
        return [int(n) for n in self.network.sources[row]]

    def destinations(self, axon: int) -> list[int]:
        """Parts that an axon reaches."""
        offsets, parts = self.reached
        return [int(p) for p in parts[slice(*offsets[self.groups[axon] :][:2].tolist())]]
