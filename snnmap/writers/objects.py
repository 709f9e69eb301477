"""Hypergraphs as the objects of other libraries; links are expanded, groups are not kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
from scipy.sparse import coo_array, csr_array

from snnmap import _csr
from snnmap.hypergraph import Hypergraph
from snnmap.writers.records import steps

Array = np.ndarray[Any, Any]

LINKS_A_STEP = 1 << 22


def count_links(hypergraph: Hypergraph) -> int:
    """Number of (source, destination) pairs, self-loops included."""
    return int(_fan_outs(hypergraph).sum())


def links(hypergraph: Hypergraph, most: int = LINKS_A_STEP) -> Iterator[tuple[Array, Array, Array]]:
    """(sources int32, targets int32, h-edges int64) of all links, about `most` at a time."""
    h = hypergraph
    edges = _edges_of_sources(h)
    groups = h.hedge_groups[edges]
    fan_outs = _fan_outs(h)
    for a, b in steps(fan_outs, most):
        counts = fan_outs[a:b]
        offsets = _csr.offsets_of(counts)
        targets = _csr.take_rows(h.destinations, h.group_offsets[groups[a:b]], counts, offsets)
        yield np.repeat(h.sources[a:b], counts), targets, np.repeat(edges[a:b], counts)


def to_pairs(hypergraph: Hypergraph) -> Array:
    """int32[n_links, 2]: (source, target) of every link."""
    pairs = np.empty((count_links(hypergraph), 2), np.int32)
    done = 0
    for sources, targets, _ in links(hypergraph):
        pairs[done : done + len(sources)] = np.stack([sources, targets], axis=1)
        done += len(sources)
    return pairs


def to_scipy(hypergraph: Hypergraph) -> csr_array[Any]:
    """csr_array[n_nodes, n_nodes]: entry (i, j) is the rate of the axon from i to j.

    Rates of axons with the same source and a common destination are added; an axon that never
    fires leaves stored zeros.
    """
    n = hypergraph.n_nodes
    n_links = count_links(hypergraph)
    rows, columns, data = (
        np.empty(n_links, np.int32),
        np.empty(n_links, np.int32),
        np.empty(n_links),
    )
    done = 0
    for sources, targets, edges in links(hypergraph):
        part = slice(done, done + len(sources))
        rows[part], columns[part], data[part] = sources, targets, hypergraph.weights[edges]
        done += len(sources)
    return coo_array((data, (rows, columns)), shape=(n, n)).tocsr()


def to_networkx(hypergraph: Hypergraph, *, bipartite: bool = False) -> Any:
    """A networkx DiGraph whose nodes are 0..n_nodes-1.

    Args:
        hypergraph: the network.
        bipartite: h-edge e becomes a node ``"e0"``, ``"e1"``, ... with the attributes ``bipartite``
            = 1 and ``weight``, between its sources and destinations: nothing of the hypergraph is
            lost. Otherwise every link becomes an edge with the axon's rate as ``weight``.
    """
    h = hypergraph
    graph = nx.DiGraph(name=h.name)
    if not bipartite:
        graph.add_nodes_from(range(h.n_nodes))
        for sources, targets, edges in links(h):
            rates = h.weights[edges].tolist()
            rows = zip(sources.tolist(), targets.tolist(), rates, strict=True)
            graph.add_weighted_edges_from(rows)
        return graph
    graph.add_nodes_from(range(h.n_nodes), bipartite=0)
    for e, weight in enumerate(h.weights.tolist()):
        graph.add_node(f"e{e}", bipartite=1, weight=weight)
    edges = _edges_of_sources(h)
    graph.add_edges_from(
        (source, f"e{e}") for source, e in zip(h.sources.tolist(), edges.tolist(), strict=True)
    )
    for e, group in enumerate(h.hedge_groups.tolist()):
        into = h.destinations[h.group_offsets[group] : h.group_offsets[group + 1]]
        graph.add_edges_from((f"e{e}", node) for node in into.tolist())
    return graph


def _edges_of_sources(h: Hypergraph) -> Array:
    return np.repeat(np.arange(h.n_hedges, dtype=np.int64), np.diff(h.source_offsets))


def _fan_outs(h: Hypergraph) -> Array:
    return np.diff(h.group_offsets)[h.hedge_groups[_edges_of_sources(h)]]
