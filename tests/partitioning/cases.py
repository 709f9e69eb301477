"""Hypothesis strategies of this room: axon counts, and limits that admit a solution."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from tests.partitioning.oracle import slow_metrics, slow_needs
from tests.strategies import hypergraphs


def ring(n: int, fan_out: int, *, reach: int, seed: int) -> Hypergraph:
    """Every node reaches nodes at most `reach` away from it on a ring: no structure, levels that shrink slowly."""
    rng = np.random.default_rng(seed)
    nodes = np.repeat(np.arange(n), fan_out)
    ends = (nodes + rng.integers(-reach, reach + 1, len(nodes))) % n
    offsets = np.arange(n + 1) * fan_out
    return Hypergraph.from_hedges(n, np.arange(n), offsets, ends, rng.random(n)).grouped()


@st.composite
def counted_hypergraphs(draw: st.DrawFn, **others: object) -> Hypergraph:
    """Any small hypergraph; half of the time its h-edges stand for several axons each."""
    h = draw(hypergraphs(max_size=3, **others))
    if draw(st.booleans()):
        counts = st.lists(st.integers(1, 4), min_size=h.n_hedges, max_size=h.n_hedges)
        h = replace(h, axon_counts=np.array(draw(counts), np.int64))
    return h


@st.composite
def feasible_limits(draw: st.DrawFn, h: Hypergraph) -> Limits:
    """Limits within which every node fits a part of its own; tight (slack 0) half of the time."""
    needs = slow_needs(h)
    everything = slow_metrics(h, np.zeros(h.n_nodes, np.int32))
    chosen = {}
    for name in ("size", "inbound", "outbound", "incident", "synapses"):
        if draw(st.booleans()):
            least = max([1, *needs[name]])
            total = max(everything["sizes" if name == "size" else name], default=1)
            slack = draw(st.just(0) | st.integers(0, max(total - least, 0)))
            chosen[f"max_{name}"] = least + slack
    return Limits(**chosen)
