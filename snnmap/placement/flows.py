"""Spikes/s between pairs of parts, from the part-level hypergraph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from snnmap.errors import InputError
from snnmap.hypergraph import Hypergraph

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Flows:
    """The symmetric flow graph that placers work on, in fixed-point integers.

    Attributes:
        n_parts: number of parts.
        offsets: int64[n_parts + 1] into the rows.
        neighbours: int32[nnz], ascending in each row, never the part itself.
        rates: int64[nnz], (flow there + flow back) x scale.
        scale: integer units of one spike/s; a power of two.
    """

    n_parts: int
    offsets: Array
    neighbours: Array
    rates: Array
    scale: float

    @property
    def row_ids(self) -> Array:
        """int32[nnz]: the part whose row each entry is in."""
        return np.repeat(np.arange(self.n_parts, dtype=np.int32), np.diff(self.offsets))


def directed_flows(part_graph: Hypergraph) -> sparse.csr_array[Any, tuple[int, int]]:
    """float64[n_parts, n_parts] sparse: spikes/s from each source part to each destination part.

    Every source of an h-edge sends the h-edge's weight to every destination part (one copy each);
    the diagonal holds spikes that stay on their core. H-edges without source send nothing.
    """
    g = part_graph
    n_parts, n_groups = g.n_nodes, g.n_groups
    groups = np.repeat(g.hedge_groups, np.diff(g.source_offsets))
    weights = np.repeat(g.weights, np.diff(g.source_offsets))
    sent = sparse.coo_array((weights, (g.sources, groups)), shape=(n_parts, n_groups)).tocsr()
    ones = np.ones(len(g.destinations))
    reached = sparse.csr_array((ones, g.destinations, g.group_offsets), shape=(n_groups, n_parts))
    flows = sparse.csr_array(sent @ reached)
    flows.sort_indices()
    return flows


def fixed_point_scale(amounts: Array, n_bits: int, name: str) -> float:
    """The largest power of two with ``sum(amounts) * scale <= 2^n_bits``.

    Raises:
        InputError: the sum is not finite; `name` is the network's.
    """
    with np.errstate(over="ignore"):
        total = float(amounts.sum())
    if not np.isfinite(total):
        raise InputError(name, "weights are so large that their sum is not a finite number")
    return float(2.0 ** min(1000, n_bits - int(np.ceil(np.log2(total))))) if total > 0 else 1.0


def symmetric_flows(part_graph: Hypergraph, largest_distance: int) -> Flows:
    """Flows for a placer whose distances never exceed `largest_distance`.

    The scale is the largest power of two for which rate x distance, summed over all pairs, stays
    below 2^60, so that any sum a placer forms is exact in int64.
    """
    directed = directed_flows(part_graph)
    both = sparse.csr_array(directed + directed.T)
    both.setdiag(0)
    both.eliminate_zeros()
    both.sort_indices()
    scale = fixed_point_scale(both.data * float(max(largest_distance, 1)), 59, part_graph.name)
    return Flows(
        part_graph.n_nodes,
        both.indptr.astype(np.int64),
        both.indices.astype(np.int32),
        np.rint(both.data * scale).astype(np.int64),
        scale,
    )
