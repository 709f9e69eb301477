"""Slow twins of `snnmap.hypergraph`: plain sets and dicts, no shared code."""

from __future__ import annotations

from collections import Counter

from snnmap.hypergraph import Hypergraph

Hedge = tuple[frozenset[int], frozenset[int]]


def hedges(h: Hypergraph) -> list[tuple[frozenset[int], frozenset[int], float, int]]:
    """(sources, destinations, weight, axons) of each h-edge, straight from the arrays."""
    out = []
    for g in range(h.n_groups):
        into = frozenset(h.destinations[h.group_offsets[g] : h.group_offsets[g + 1]].tolist())
        for e in range(int(h.hedge_offsets[g]), int(h.hedge_offsets[g + 1])):
            sources = h.sources[h.source_offsets[e] : h.source_offsets[e + 1]].tolist()
            out.append((frozenset(sources), into, float(h.weights[e]), int(h.axon_counts[e])))
    return out


def as_multiset(h: Hypergraph) -> Counter[tuple[frozenset[int], frozenset[int], float, int]]:
    """The h-edges without their order."""
    return Counter(hedges(h))


def n_pins(h: Hypergraph) -> int:
    """Sum over h-edges of distinct pins."""
    return sum(len(sources | into) for sources, into, _, _ in hedges(h))


def fan_ins(h: Hypergraph) -> list[int]:
    """Inbound axons of each node."""
    counts = [0] * h.n_nodes
    for _, into, _, axons in hedges(h):
        for node in into:
            counts[node] += axons
    return counts


def contract(h: Hypergraph, clusters: list[int]) -> dict[Hedge, tuple[float, int]]:
    """(sources, destinations) -> (summed weight, summed axons) after merging nodes."""
    merged: dict[Hedge, tuple[float, int]] = {}
    for sources, into, weight, axons in hedges(h):
        key = (frozenset(clusters[s] for s in sources), frozenset(clusters[d] for d in into))
        w, a = merged.get(key, (0.0, 0))
        merged[key] = (w + weight, a + axons)
    return merged
