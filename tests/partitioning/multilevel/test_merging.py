"""Merging of parts: exact limits, nothing left to merge, never worse, same as naive sums."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.partitioning.multilevel.engine_cpu import CpuEngine
from snnmap.partitioning.multilevel.level import pose_problem
from snnmap.partitioning.multilevel.merging import fold_parts, merge_parts, none_fit
from snnmap.partitioning.multilevel.refinement import examine
from tests.strategies import hypergraphs


@given(
    hypergraphs(),
    st.integers(0, 1 << 20),
    st.integers(1, 12),
    st.integers(1, 12),
    st.booleans(),
)
def test_merges_until_no_pair_fits(hypergraph, seed, size, inbound, incident):
    limits = Limits(
        max_size=size, max_inbound=inbound, max_incident=2 * inbound if incident else None
    )
    problem = pose_problem(hypergraph.grouped(), limits)
    level, engine = problem.level, CpuEngine()
    n = level.n_nodes
    parts = np.random.default_rng(seed).integers(0, n + 1, n).astype(np.int32)
    before = examine(engine, level, problem.limits, parts, n + 1)
    merged, n_parts = merge_parts(engine, level, before, problem.limits)
    after = examine(engine, level, problem.limits, merged, n_parts)
    assert set(merged) == set(range(n_parts))
    assert all(len(set(merged[parts == p])) == 1 for p in set(parts))
    assert after.connectivity <= before.connectivity
    assert (np.maximum(after.overload, 0) <= before.overload).all()
    for p in range(n_parts):
        for q in range(p):
            joined = np.where(merged == p, q, merged).astype(np.int32)
            state = examine(engine, level, problem.limits, joined, n_parts)
            assert (state.loads[q] > problem.limits).any()


def test_the_closest_pair_goes_first():
    """Parts 0 and 1 share 5, parts 1 and 2 share 1; only one pair fits."""
    hypergraph = Hypergraph.from_hedges(
        4, np.array([3, 3]), np.array([0, 2, 4]), np.array([0, 1, 1, 2]), np.array([5.0, 1.0])
    )
    problem = pose_problem(hypergraph.grouped(), Limits(max_size=2, max_inbound=9))
    engine = CpuEngine()
    parts = np.arange(4, dtype=np.int32)
    state = examine(engine, problem.level, problem.limits, parts, 4)
    merged, n_parts = merge_parts(engine, problem.level, state, problem.limits)
    assert merged.tolist() == [0, 0, 1, 1]
    assert n_parts == 2


@given(hypergraphs(), st.integers(0, 1 << 20), st.integers(1, 6), st.integers(1, 9), st.booleans())
def test_where_none_fit_merging_changes_nothing(hypergraph, seed, size, synapses, crowded):
    limits = Limits(max_size=size, max_synapses=synapses)
    problem = pose_problem(hypergraph.grouped(), limits)
    level, engine = problem.level, CpuEngine()
    n, rng = level.n_nodes, np.random.default_rng(seed)
    n_parts = max(n // 3, 1) if crowded else n + 1
    parts = rng.integers(0, n_parts, n).astype(np.int32)
    state = examine(engine, level, problem.limits, parts, n_parts)
    merged, n_left = merge_parts(engine, level, state, problem.limits)
    if none_fit(state.loads, problem.limits, 2):
        assert (merged.tolist(), n_left) == (parts.tolist(), n_parts)


def test_none_fit_looks_at_the_two_least_of_each_additive_load():
    loads = np.array([[3, 1, 9], [2, 9, 9], [5, 8, 9]])
    assert none_fit(loads, np.array([4, 99, 0]), 2)
    assert none_fit(loads, np.array([99, 8, 0]), 2)
    assert not none_fit(loads, np.array([5, 9, 0]), 2)
    assert none_fit(loads[:1], np.array([99, 99, 99]), 2)
    loads[0, 0] = 0  # an empty part goes
    assert not none_fit(loads, np.array([1, 1, 0]), 2)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=20), st.integers(1, 8))
def test_folding_keeps_every_node_and_the_number(sizes, most):
    parts = np.arange(len(sizes), dtype=np.int32)
    folded, n_parts = fold_parts(parts, np.array(sizes, np.int64), most)
    assert n_parts == most
    assert folded.min() >= 0
    assert folded.max() < most
