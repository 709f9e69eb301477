"""What a partition costs: pure functions of a hypergraph and the part of each node.

One pass over the pins in grouped form (groups are never expanded); with lambda(e) the number of
parts among the pins of h-edge e, its source(s) included:

    connectivity = sum over e of w(e) * (lambda(e) - 1)
    cut_net      = sum over e with lambda(e) > 1 of w(e)
    soed         = sum over e with lambda(e) > 1 of w(e) * lambda(e)     (sum of external degrees)

Every sum of weights is correctly rounded, so it does not depend on the order of the h-edges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from snnmap import _csr
from snnmap.errors import InputError
from snnmap.hypergraph import Hypergraph
from snnmap.parallel import for_chunks
from snnmap.partitioning import _kernels_metrics

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class PartitionMetrics:
    """All metrics of one partition.

    Attributes:
        n_parts: number of parts (largest part id + 1).
        connectivity, cut_net, soed: see the module's text; in the unit of the weights.
        sizes: int64[n_parts], sum of node sizes (neurons).
        inbound: int64[n_parts], distinct axons with a destination in the part.
        outbound: int64[n_parts], distinct axons with a source in the part.
        incident: int64[n_parts], distinct axons with any pin in the part.
        synapses: int64[n_parts], (axon, destination) pairs in the part. On a contracted hypergraph
            a pin stands for several synapses; measure the original one.
        hedge_spans: int32[n_hedges], lambda(e); 0 for an h-edge without pins.
        max_destinations: largest number of parts that hold destinations of one h-edge.
    """

    n_parts: int
    connectivity: float
    cut_net: float
    soed: float
    sizes: Array
    inbound: Array
    outbound: Array
    incident: Array
    synapses: Array
    hedge_spans: Array
    max_destinations: int

    @cached_property
    def synaptic_reuse(self) -> Array:
        """float64[parts with inbound axons]: synapses of a part / its distinct inbound axons."""
        used = self.inbound > 0
        return np.asarray(self.synapses[used] / self.inbound[used])

    @property
    def reuse_arithmetic_mean(self) -> float:
        """Arithmetic mean of the synaptic reuse over parts with inbound axons; 0 without any."""
        return float(np.mean(self.synaptic_reuse)) if len(self.synaptic_reuse) else 0.0

    @property
    def reuse_geometric_mean(self) -> float:
        """Geometric mean of the synaptic reuse over parts with inbound axons; 0 without any."""
        if not len(self.synaptic_reuse):
            return 0.0
        return float(np.exp(np.mean(np.log(self.synaptic_reuse))))


def measure(hypergraph: Hypergraph, parts: Array) -> PartitionMetrics:
    """Measure everything at once.

    Args:
        hypergraph: the network.
        parts: integer[n_nodes], part of each node, >= 0; parts may be empty.

    Raises:
        InputError: `parts` does not name one part >= 0 for each node.
    """
    parts = checked_parts(hypergraph, parts)
    n_parts = int(parts.max()) + 1 if len(parts) else 0
    group_spans, hedge_spans, totals = _count(hypergraph, parts, n_parts)
    cut = hedge_spans > 1
    weights, spans = hypergraph.weights[cut], hedge_spans[cut]
    used = np.diff(hypergraph.hedge_offsets) > 0
    return PartitionMetrics(
        n_parts=n_parts,
        connectivity=math.fsum((weights * (spans - 1)).tolist()),
        cut_net=math.fsum(weights.tolist()),
        soed=math.fsum((weights * spans).tolist()),
        sizes=part_sizes(hypergraph, parts),
        inbound=totals[0],
        outbound=totals[1],
        incident=totals[2],
        synapses=totals[3],
        hedge_spans=hedge_spans,
        max_destinations=int(group_spans[used].max(initial=0)),
    )


def connectivity(hypergraph: Hypergraph, parts: Array) -> float:
    """Sum over h-edges of weight * (number of parts among its pins - 1)."""
    return measure(hypergraph, parts).connectivity


def cut_net(hypergraph: Hypergraph, parts: Array) -> float:
    """Sum of the weights of h-edges with pins in more than one part."""
    return measure(hypergraph, parts).cut_net


def soed(hypergraph: Hypergraph, parts: Array) -> float:
    """Sum of external degrees: weight * number of parts, over h-edges in more than one part."""
    return measure(hypergraph, parts).soed


def part_sizes(hypergraph: Hypergraph, parts: Array) -> Array:
    """int64[n_parts]: sum of the node sizes of each part."""
    n_parts = int(parts.max()) + 1 if len(parts) else 0
    sizes = np.zeros(n_parts, np.int64)
    np.add.at(sizes, parts, hypergraph.node_sizes)
    return sizes


def checked_parts(hypergraph: Hypergraph, parts: Array) -> Array:
    """`parts` as contiguous, read-only int32[n_nodes]; InputError if it does not fit."""
    parts = np.asarray(parts)
    if parts.shape != (hypergraph.n_nodes,):
        raise InputError(
            "parts",
            f"shape {parts.shape}; expected one for each of {hypergraph.n_nodes} nodes",
        )
    if len(parts) and parts.dtype.kind not in "iu":
        raise InputError("parts", f"type {parts.dtype}; expected integers")
    if len(parts) and not 0 <= parts.min() <= parts.max() < 2**31 - 1:
        bad = int(np.flatnonzero((parts < 0) | (parts >= 2**31 - 1))[0])
        raise InputError("parts", f"id {parts[bad]} is not in 0..{2**31 - 2}", place=f"node {bad}")
    parts = np.ascontiguousarray(parts, np.int32).view()
    parts.flags.writeable = False
    return parts


def _count(hypergraph: Hypergraph, parts: Array, n_parts: int) -> tuple[Array, Array, Array]:
    """(parts per group, parts per h-edge, int64[4, n_parts] totals of the kernel)."""
    h = hypergraph
    group_spans = np.empty(h.n_groups, np.int32)
    hedge_spans = np.empty(h.n_hedges, np.int32)
    work = _csr.offsets_of(np.diff(h.group_offsets) + np.diff(h.source_offsets[h.hedge_offsets]))
    arrays = (h.group_offsets, h.destinations, h.hedge_offsets, h.source_offsets, h.sources)
    chunks = for_chunks(
        _kernels_metrics.count_parts,
        h.n_groups,
        *map(_read_only, (*arrays, h.axon_counts, parts)),
        n_parts,
        group_spans,
        hedge_spans,
        offsets=work,
        grain=max(1 << 16, n_parts),
    )
    totals: Array = np.sum(chunks, axis=0)
    return group_spans, hedge_spans, totals


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view
