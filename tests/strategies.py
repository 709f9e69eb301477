"""Hypothesis strategies shared by the tests of all rooms."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from snnmap.hypergraph import Hypergraph, Population
from tests.small import from_rows

Rows = list[tuple[list[int], list[int], float]]


def weights() -> st.SearchStrategy[float]:
    """Small non-negative weights that are exact in float32; zero is common."""
    return st.sampled_from([0.0, 0.0, 1.0, 2.0, 0.5, 3.25, 100.0]) | st.floats(
        0, 1e6, width=32, allow_nan=False
    )


@st.composite
def hedge_rows(
    draw: st.DrawFn,
    *,
    n_nodes: int,
    max_hedges: int = 24,
    max_sources: int = 3,
    min_sources: int = 0,
    max_destinations: int = 8,
    weight: st.SearchStrategy[float] | None = None,
) -> Rows:
    """(sources, destinations, weight) of some h-edges.

    Destination sets are drawn from a small pool half of the time, so that groups are shared; rows
    may be empty, unsorted, hold duplicates and their own source.
    """
    if n_nodes == 0:
        return (
            [([], [], w) for w in draw(st.lists(weights(), max_size=2))] if not min_sources else []
        )
    node = st.integers(0, n_nodes - 1)
    row = st.lists(node, max_size=max_destinations)
    pool = draw(st.lists(row, min_size=1, max_size=3))
    hedge = st.tuples(
        st.lists(node, min_size=min_sources, max_size=max_sources),
        row | st.sampled_from(pool),
        weights() if weight is None else weight,
    )
    return draw(st.lists(hedge, max_size=max_hedges))


@st.composite
def hypergraphs(
    draw: st.DrawFn,
    *,
    min_nodes: int = 0,
    max_nodes: int = 16,
    max_hedges: int = 24,
    max_sources: int = 3,
    min_sources: int = 0,
    max_destinations: int = 8,
    max_size: int = 1,
    populations: bool = True,
    grouped: bool | None = None,
) -> Hypergraph:
    """Small hypergraphs with every oddity that the format allows.

    Multi-source and sourceless h-edges, self-loops, shared and repeated destination sets, empty
    rows, zero weights, isolated nodes.

    Args:
        draw: given by Hypothesis.
        min_nodes, max_nodes: number of nodes.
        max_hedges: largest number of h-edges.
        min_sources, max_sources: sources of each h-edge (1, 1 = one source each).
        max_destinations: largest number of destinations of an h-edge.
        max_size: node sizes are drawn from 1..max_size.
        populations: draw named layers (the first may be an input) half of the time.
        grouped: shared destination sets stored once; None draws it.
    """
    n_nodes = draw(st.integers(min_nodes, max_nodes))
    rows = draw(
        hedge_rows(
            n_nodes=n_nodes,
            max_hedges=max_hedges,
            min_sources=min_sources,
            max_sources=max_sources,
            max_destinations=max_destinations,
        )
    )
    others: dict[str, object] = {}
    if max_size > 1:
        sizes = st.integers(1, max_size)
        others["node_sizes"] = np.array(
            draw(st.lists(sizes, min_size=n_nodes, max_size=n_nodes)), np.int64
        )
    if populations and n_nodes and draw(st.booleans()):
        cuts = draw(st.lists(st.integers(0, n_nodes), max_size=3))
        bounds = sorted({0, n_nodes, *cuts})
        first_is_input = draw(st.booleans())
        others["populations"] = tuple(
            Population(f"layer{i}", a, b, (b - a,), is_input=first_is_input and i == 0)
            for i, (a, b) in enumerate(pairwise(bounds))
        )
    hypergraph = from_rows(n_nodes, rows, **others)
    if grouped is None:
        grouped = draw(st.booleans())
    return hypergraph.grouped() if grouped else hypergraph


@st.composite
def partitions(draw: st.DrawFn, n_nodes: int, *, max_parts: int = 5) -> np.ndarray:
    """int32[n_nodes] part ids 0..n_parts-1, every part non-empty."""
    if n_nodes == 0:
        return np.zeros(0, np.int32)
    ids = draw(st.lists(st.integers(0, max_parts - 1), min_size=n_nodes, max_size=n_nodes))
    _, parts = np.unique(np.array(ids), return_inverse=True)
    return parts.astype(np.int32)
