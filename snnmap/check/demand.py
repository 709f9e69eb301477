"""What a network asks of any chip, measured once on groups: nothing here expands a layer."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from snnmap import _csr
from snnmap.check._kernels import fill_cores, sum_rows
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.parallel import for_chunks

Array = np.ndarray[Any, Any]

_NO_LIMIT = 2**62
_LEAST_PINS = 1 << 20


class Demand:
    """What the neurons and axons of a network need.

    Args:
        network: the network.
        inputs_off_chip: its input populations take no core: they need nothing, but their axons
            still enter the cores they reach.

    Attributes:
        network: the network.
        on_chip: bool[n_nodes], nodes that take a core.
    """

    def __init__(self, network: Hypergraph, *, inputs_off_chip: bool = False) -> None:
        self.network = network
        self.on_chip = np.ones(network.n_nodes, bool)
        for population in network.populations:
            if population.is_input and inputs_off_chip:
                self.on_chip[population.start : population.stop] = False

    @cached_property
    def sizes(self) -> Array:
        """int64[n_nodes]: neurons that each node stands for."""
        return np.asarray(self.network.node_sizes * self.on_chip)

    @cached_property
    def fan_ins(self) -> Array:
        """int64[n_nodes]: axons that end in each node."""
        return np.asarray(self.network.fan_ins * self.on_chip)

    @cached_property
    def axons_out(self) -> Array:
        """int64[n_nodes]: axons that begin in each node."""
        return np.asarray(self._by_source(self.network.axon_counts) * self.on_chip)

    @cached_property
    def incident(self) -> Array:
        """int64[n_nodes]: axons that begin or end in each node, each once."""
        h = self.network
        counts = np.diff(h.source_offsets)
        groups = np.repeat(h.hedge_groups, counts)
        loops = _csr.rows_contain(h.group_offsets, h.destinations, groups, h.sources)
        both = np.zeros(h.n_nodes, np.int64)
        np.add.at(both, h.sources[loops], np.repeat(h.axon_counts, counts)[loops])
        return np.asarray(self.fan_ins + self.axons_out - both * self.on_chip)

    @cached_property
    def fan_outs(self) -> Array:
        """int64[n_nodes]: destinations of each node, off the chip too, summed over its axons."""
        h = self.network
        return self._by_source(np.diff(h.group_offsets)[h.hedge_groups] * h.axon_counts)

    @cached_property
    def sent_on_chip(self) -> Array:
        """bool[n_hedges]: some source of the h-edge takes a core."""
        h = self.network
        hedges = np.repeat(np.arange(h.n_hedges), np.diff(h.source_offsets))
        sent = np.zeros(h.n_hedges, bool)
        sent[hedges[self.on_chip[h.sources]]] = True
        return sent

    def spans(self, limits: Limits) -> Array:
        """int64[n_groups]: fewest cores over which each destination set spreads; 0 if empty."""
        spans = (self._group_pins > 0).astype(np.int64)
        if limits.max_size is not None:
            spans = np.maximum(spans, -(-self._group_sizes // limits.max_size))
        if limits.max_synapses is not None:
            spans = np.maximum(spans, -(-self._group_synapses // limits.max_synapses))
        return spans

    def spans_out(self, spans: Array) -> Array:
        """int64[n_nodes]: the largest of `spans` over the axons of each node, off the chip too."""
        h = self.network
        largest = np.zeros(h.n_nodes, np.int64)
        counts = np.diff(h.source_offsets)
        np.maximum.at(largest, h.sources, np.repeat(spans[h.hedge_groups], counts))
        return largest

    def fill(self, limits: Limits) -> int | None:
        """Cores that a plain filling needs; None if it cannot respect every limit.

        Neurons go into the current core in order of their ids until one no longer fits.
        """
        if not self.on_chip.any():
            return 0
        h = self.network
        limit_values = (
            limits.max_size,
            limits.max_inbound,
            limits.max_outbound,
            limits.max_incident,
            limits.max_synapses,
        )
        caps = np.array([_NO_LIMIT if v is None else v for v in limit_values], np.int64)
        parts = np.empty(h.n_nodes, np.int32)
        n_parts = int(
            fill_cores(
                self.on_chip,
                self.sizes,
                self.fan_ins,
                *h.incidence,
                h.group_axons,
                *h.outgoing,
                h.hedge_groups,
                h.axon_counts,
                caps,
                parts,
            )
        )
        if not n_parts or (limits.max_fan_in or _NO_LIMIT) < int(self.fan_ins.max()):
            return None
        if limits.max_destinations is not None:
            parts[~self.on_chip] = n_parts  # one more "part", not counted below
            offsets, reached = _csr.contract(h.group_offsets, h.destinations, parts, n_parts + 1)
            inside = np.concatenate([[0], np.cumsum(reached < n_parts)])[offsets]
            if int(np.diff(inside).max(initial=0)) > limits.max_destinations:
                return None
        return n_parts

    def _by_source(self, values: Array) -> Array:
        """int64[n_nodes]: sums of values[h-edge] over the h-edges that begin in each node."""
        h = self.network
        totals = np.zeros(h.n_nodes, np.int64)
        np.add.at(totals, h.sources, np.repeat(values, np.diff(h.source_offsets)))
        return totals

    @cached_property
    def _group_pins(self) -> Array:
        if self.on_chip.all():
            return np.diff(self.network.group_offsets)
        return self._over_destinations(self.on_chip.astype(np.int64))

    @cached_property
    def _group_sizes(self) -> Array:
        if (self.network.node_sizes == 1).all():
            return self._group_pins
        return self._over_destinations(self.sizes)

    @cached_property
    def _group_synapses(self) -> Array:
        return self._over_destinations(self.fan_ins)

    def _over_destinations(self, values: Array) -> Array:
        """int64[n_groups]: sums of values[node] over each destination set."""
        h = self.network
        sums = np.empty(h.n_groups, np.int64)
        rows = h.group_offsets, h.destinations, values, sums
        for_chunks(sum_rows, h.n_groups, *rows, offsets=h.group_offsets, grain=_LEAST_PINS)
        return sums
