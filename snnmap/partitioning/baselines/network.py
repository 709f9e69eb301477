"""A hypergraph laid out for the kernels of the baselines: integers, both directions, limits."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from snnmap import _csr
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.partitioning.fixed_point import fixed_point

Array = np.ndarray[Any, Any]

SIZE, INBOUND, OUTBOUND, INCIDENT, SYNAPSES = range(5)
"""Columns of ``needs``, ``caps`` and of the loads of parts."""

_UNLIMITED = 1 << 62


class Network(NamedTuple):
    """Read-only arrays (see :class:`Hypergraph`); a named tuple because kernels take those.

    Attributes:
        group_offsets, destinations, hedge_offsets, source_offsets, sources: grouped form.
        hedge_groups: int32[n_hedges].
        in_offsets, in_groups: groups with each node among their destinations.
        out_offsets, out_hedges: h-edges with each node among their sources, ascending.
        group_axons, hedge_axons: int64, axons that each stands for.
        group_weights, hedge_weights: int64 fixed point; a group's is the sum of its h-edges'.
        needs: int64[n_nodes, 5], what each node alone needs of the limited quantities.
        caps: int64[5], the limits.
    """

    group_offsets: Array
    destinations: Array
    hedge_offsets: Array
    source_offsets: Array
    sources: Array
    hedge_groups: Array
    in_offsets: Array
    in_groups: Array
    out_offsets: Array
    out_hedges: Array
    group_axons: Array
    hedge_axons: Array
    group_weights: Array
    hedge_weights: Array
    needs: Array
    caps: Array


def network_of(
    hypergraph: Hypergraph,
    limits: Limits,
    *,
    synapses: Array | None = None,
    weights: Array | None = None,
) -> Network:
    """Lay out a hypergraph.

    Args:
        hypergraph: the network, possibly contracted.
        limits: of a part; those of single neurons and of the whole are not the kernels' business.
        synapses: int64[n_nodes], synapses of each node if it is contracted; default its fan-in.
        weights: float64[n_hedges] to use instead of the hypergraph's.
    """
    h = hypergraph
    hedge_weights, _ = fixed_point(h.weights if weights is None else weights)
    in_offsets, in_groups = h.incidence
    out_offsets, out_hedges = h.outgoing
    arrays = (
        h.group_offsets,
        h.destinations,
        h.hedge_offsets,
        h.source_offsets,
        h.sources,
        h.hedge_groups.astype(np.int32),
        in_offsets,
        in_groups,
        out_offsets,
        out_hedges,
        h.group_axons,
        h.axon_counts,
        _sum_rows(h.hedge_offsets, hedge_weights),
        hedge_weights,
        _needs(h, synapses),
        _caps(limits),
    )
    return Network(*map(read_only, arrays))


def read_only(array: Array) -> Array:
    """A read-only contiguous view: kernels are compiled once, for one kind of array."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def _needs(h: Hypergraph, synapses: Array | None) -> Array:
    counts = np.diff(h.source_offsets)
    groups = np.repeat(h.hedge_groups, counts)
    loops = _csr.rows_contain(h.group_offsets, h.destinations, groups, h.sources)
    axons = np.repeat(h.axon_counts, counts)
    needs = np.zeros((h.n_nodes, 5), np.int64)
    needs[:, SIZE] = h.node_sizes
    needs[:, INBOUND] = h.fan_ins
    np.add.at(needs[:, OUTBOUND], h.sources, axons)
    needs[:, INCIDENT] = needs[:, INBOUND]
    np.add.at(needs[:, INCIDENT], h.sources, axons * ~loops)
    needs[:, SYNAPSES] = h.fan_ins if synapses is None else synapses
    return needs


def _caps(limits: Limits) -> Array:
    caps = (
        limits.max_size,
        limits.max_inbound,
        limits.max_outbound,
        limits.max_incident,
        limits.max_synapses,
    )
    return np.array([_UNLIMITED if cap is None else cap for cap in caps], np.int64)


def _sum_rows(offsets: Array, values: Array) -> Array:
    totals = np.concatenate([[0], np.cumsum(values)])
    return np.asarray(totals[offsets[1:]] - totals[offsets[:-1]])
