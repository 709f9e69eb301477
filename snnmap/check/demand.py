"""What a network asks of any chip, measured once on groups: nothing here expands a layer."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from snnmap import _csr
from snnmap.check._kernels import fill_cores
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits

Array = np.ndarray[Any, Any]

_CHUNK = 1 << 24
_NO_LIMIT = 2**62


class Demand:
    """What the neurons and axons of a network need, by the ids of the whole network.

    Args:
        network: the network.
        inputs_off_chip: its input populations take no core; their arrays are zero then, except
            `fan_outs` and `spans_out`.
    """

    def __init__(self, network: Hypergraph, *, inputs_off_chip: bool = False) -> None:
        self.network = network
        self.on_chip, self.kept = network, np.arange(network.n_nodes)
        if inputs_off_chip:
            self.on_chip, self.kept = network.without_inputs()

    @cached_property
    def sizes(self) -> Array:
        """int64[n_nodes]: neurons that each node stands for."""
        return self._all_nodes(self.on_chip.node_sizes)

    @cached_property
    def fan_ins(self) -> Array:
        """int64[n_nodes]: axons that end in each node."""
        return self._all_nodes(self.on_chip.fan_ins)

    @cached_property
    def axons_out(self) -> Array:
        """int64[n_nodes]: axons that begin in each node."""
        return self._all_nodes(_by_source(self.on_chip, self.on_chip.axon_counts))

    @cached_property
    def incident(self) -> Array:
        """int64[n_nodes]: axons that begin or end in each node, each once."""
        h = self.on_chip
        counts = np.diff(h.source_offsets)
        groups = np.repeat(h.hedge_groups, counts)
        loops = _csr.rows_contain(h.group_offsets, h.destinations, groups, h.sources)
        both = np.zeros(h.n_nodes, np.int64)
        np.add.at(both, h.sources[loops], np.repeat(h.axon_counts, counts)[loops])
        return np.asarray(self.fan_ins + self.axons_out - self._all_nodes(both))

    @cached_property
    def fan_outs(self) -> Array:
        """int64[n_nodes]: destinations of each node, summed over its axons."""
        h = self.network
        return _by_source(h, np.diff(h.group_offsets)[h.hedge_groups] * h.axon_counts)

    def spans(self, limits: Limits) -> Array:
        """int64[n_groups]: fewest cores over which each destination set spreads; 0 if empty."""
        spans = (np.diff(self.on_chip.group_offsets) > 0).astype(np.int64)
        if limits.max_size is not None:
            spans = np.maximum(spans, -(-self._group_sizes // limits.max_size))
        if limits.max_synapses is not None:
            spans = np.maximum(spans, -(-self._group_synapses // limits.max_synapses))
        return spans

    def spans_out(self, spans: Array) -> Array:
        """int64[n_nodes]: the largest of `spans` over the axons that begin in each node."""
        h = self.network
        largest = np.zeros(h.n_nodes, np.int64)
        counts = np.diff(h.source_offsets)
        np.maximum.at(largest, h.sources, np.repeat(spans[h.hedge_groups], counts))
        return largest

    def fill(self, limits: Limits) -> int | None:
        """Cores that a plain filling needs; None if it cannot respect every limit.

        Neurons go into the current core in order of their ids until one no longer fits.
        """
        h = self.on_chip
        if not h.n_nodes:
            return 0
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
                h.node_sizes,
                h.fan_ins,
                *h.incidence,
                h.group_axons,
                *h.outgoing,
                h.hedge_groups,
                h.axon_counts,
                caps,
                parts,
            )
        )
        if not n_parts or (limits.max_fan_in or _NO_LIMIT) < int(h.fan_ins.max()):
            return None
        if limits.max_destinations is not None:
            reached, _ = _csr.contract(h.group_offsets, h.destinations, parts, n_parts)
            if int(np.diff(reached).max(initial=0)) > limits.max_destinations:
                return None
        return n_parts

    def _all_nodes(self, values: Array) -> Array:
        if len(self.kept) == self.network.n_nodes:
            return values
        everywhere = np.zeros(self.network.n_nodes, np.int64)
        everywhere[self.kept] = values
        return everywhere

    @cached_property
    def _group_sizes(self) -> Array:
        if (self.on_chip.node_sizes == 1).all():
            return np.diff(self.on_chip.group_offsets)
        return _over_destinations(self.on_chip, self.on_chip.node_sizes)

    @cached_property
    def _group_synapses(self) -> Array:
        return _over_destinations(self.on_chip, self.on_chip.fan_ins)


def _by_source(h: Hypergraph, values: Array) -> Array:
    """int64[n_nodes]: sums of values[h-edge] over the h-edges that begin in each node."""
    totals = np.zeros(h.n_nodes, np.int64)
    np.add.at(totals, h.sources, np.repeat(values, np.diff(h.source_offsets)))
    return totals


def _over_destinations(h: Hypergraph, values: Array) -> Array:
    """int64[n_groups]: sums of values[node] over destinations, a few million pins at a time."""
    totals = np.zeros(h.n_groups, np.int64)
    first = 0
    while first < h.n_groups:
        until = int(np.searchsorted(h.group_offsets, h.group_offsets[first] + _CHUNK, "right"))
        last = min(max(first + 1, until - 1), h.n_groups)
        offsets = h.group_offsets[first : last + 1]
        pins = values[h.destinations[offsets[0] : offsets[-1]]]
        sums = np.concatenate([[0], np.cumsum(pins)])
        totals[first:last] = np.diff(sums[offsets - offsets[0]])
        first = last
    return totals
