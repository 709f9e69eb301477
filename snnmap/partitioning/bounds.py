"""Lower bounds that no partition can beat, to print beside a result."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from snnmap import _csr
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits

Array = np.ndarray[Any, Any]


def part_bounds(hypergraph: Hypergraph, limits: Limits) -> dict[str, int]:
    """Fewest parts that each limit allows, by the limit's name in :class:`Limits`.

    Whatever is shared best, every neuron needs its room and synapses once, and every axon needs
    one entry in some part. Nodes larger than half a part cannot share one.
    """
    h = hypergraph
    fan_out = np.diff(h.group_offsets)
    has_source = np.diff(h.source_offsets) > 0
    with_destinations = int(h.group_axons[fan_out > 0].sum())
    with_pins = int(h.axon_counts[has_source | (fan_out > 0)[h.hedge_groups]].sum())
    totals = {
        "max_size": int(h.node_sizes.sum()),
        "max_inbound": with_destinations,
        "max_outbound": int(h.axon_counts[has_source].sum()),
        "max_incident": with_pins,
        "max_synapses": int((h.group_axons * fan_out).sum()),
    }
    bounds = {}
    for name, total in totals.items():
        limit = getattr(limits, name)
        if limit is not None:
            bounds[name] = -(-total // limit)
    for name, needs in (("max_size", h.node_sizes), ("max_synapses", _fan_ins(h, limits))):
        if name in bounds:
            big = int(np.count_nonzero(2 * needs > getattr(limits, name)))
            bounds[name] = max(bounds[name], big)
    return bounds


def parts_lower_bound(hypergraph: Hypergraph, limits: Limits) -> int:
    """Fewest parts any partition within `limits` can have (the largest of :func:`part_bounds`)."""
    least = 1 if hypergraph.n_nodes else 0
    return max([least, *part_bounds(hypergraph, limits).values()])


def connectivity_lower_bound(hypergraph: Hypergraph, limits: Limits) -> float:
    """Connectivity that no partition can undercut: sum of w(e) * (fewest parts of e's pins - 1).

    The pins of e need at least ceil(their total size / max_size) parts, and its destinations at
    least ceil(their total fan-in / max_synapses).
    """
    h = hypergraph
    spans = np.ones(h.n_hedges, np.int64)
    if limits.max_size is not None:
        sizes = _row_sums(h.group_offsets, h.node_sizes[h.destinations])[h.hedge_groups]
        groups = np.repeat(h.hedge_groups, np.diff(h.source_offsets))
        inside = _csr.rows_contain(h.group_offsets, h.destinations, groups, h.sources)
        sizes += _row_sums(h.source_offsets, h.node_sizes[h.sources] * ~inside)
        spans = np.maximum(spans, -(-sizes // limits.max_size))
    if limits.max_synapses is not None:
        needs = _row_sums(h.group_offsets, h.fan_ins[h.destinations])[h.hedge_groups]
        spans = np.maximum(spans, -(-needs // limits.max_synapses))
    several = spans > 1
    return math.fsum((h.weights[several] * (spans[several] - 1)).tolist())


def _fan_ins(hypergraph: Hypergraph, limits: Limits) -> Array:
    return hypergraph.fan_ins if limits.max_synapses is not None else np.zeros(0, np.int64)


def _row_sums(offsets: Array, values: Array) -> Array:
    totals = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    return np.asarray(totals[offsets[1:]] - totals[offsets[:-1]])
