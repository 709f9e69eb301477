"""The incremental bookkeeping of `hierarchical` against counting everything anew."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.limits import Limits
from snnmap.partitioning.baselines._kernels_cells import cells_of, insert_node, remove_node
from snnmap.partitioning.baselines._kernels_match import match_nodes, matching
from snnmap.partitioning.baselines._kernels_refine import best_move, fm_pass, moves, sweep
from snnmap.partitioning.baselines.network import network_of, read_only
from snnmap.partitioning.fixed_point import fixed_point
from tests.partitioning.cases import counted_hypergraphs, feasible_limits
from tests.partitioning.oracle import is_valid, rows_of, slow_metrics
from tests.strategies import partitions

LOADS = ("sizes", "inbound", "outbound", "incident", "synapses")


def slow_loads(h, parts, n_parts):
    found = slow_metrics(h, parts)
    return [[*found[name], *[0] * (n_parts - found["n_parts"])] for name in LOADS]


def slow_cost(h, weights, parts):
    """Connectivity in fixed point."""
    rows = zip(rows_of(h), weights.tolist(), strict=True)
    return sum(w * max(len({int(parts[n]) for n in row.pins}) - 1, 0) for row, w in rows)


def setup(data):
    h = data.draw(counted_hypergraphs(min_nodes=2))
    parts = data.draw(partitions(h.n_nodes, max_parts=4))
    n_parts = int(parts.max()) + 1
    limits = data.draw(feasible_limits(h) | st.just(Limits()))
    net = network_of(h, limits)
    cells = cells_of(net, read_only(parts), n_parts)
    return h, parts, n_parts, limits, net, cells


@settings(deadline=None)
@given(st.data())
def test_loads_stay_exact_under_moves(data):
    h, parts, n_parts, _, net, cells = setup(data)
    np.testing.assert_array_equal(cells.loads.T, slow_loads(h, parts, n_parts))
    for _ in range(6):
        node = data.draw(st.integers(0, h.n_nodes - 1))
        remove_node(net, cells, parts, node)
        insert_node(net, cells, parts, node, data.draw(st.integers(0, n_parts - 1)))
        np.testing.assert_array_equal(cells.loads.T, slow_loads(h, parts, n_parts))


@settings(deadline=None)
@given(st.data())
def test_best_move_is_the_best_valid_one_and_its_gain_is_exact(data):
    h, parts, n_parts, _, net, cells = setup(data)
    work = moves(h.n_nodes, h.n_groups, n_parts)
    weights, _ = fixed_point(h.weights)
    before = slow_cost(h, weights, parts)
    for node in range(h.n_nodes):
        gain, part = best_move(net, cells, work, parts, node)
        options = {}
        for other in set(range(n_parts)) - {int(parts[node])}:
            moved = parts.copy()
            moved[node] = other
            caps = net.caps
            if all(
                load[other] <= cap
                for load, cap in zip(slow_loads(h, moved, n_parts), caps, strict=True)
            ):
                options[other] = before - slow_cost(h, weights, moved)
        if part >= 0:
            assert gain == options[part]
            assert gain == max(options.values())
        else:  # nothing shared with any part that has room, so that nothing can be gained
            assert max(options.values(), default=0) <= 0
    assert not work.present.any()
    assert not work.is_touched.any()


@settings(deadline=None)
@given(st.data())
def test_refinement_gains_what_it_says_and_keeps_validity(data):
    h, parts, n_parts, limits, net, cells = setup(data)
    work = moves(h.n_nodes, h.n_groups, n_parts)
    weights, _ = fixed_point(h.weights)
    valid = all((cells.loads[p] <= net.caps).all() for p in range(n_parts))
    before = slow_cost(h, weights, parts)
    gain = sweep(net, cells, work, parts, np.arange(h.n_nodes), 0, h.n_nodes)
    middle = slow_cost(h, weights, parts)
    assert gain == before - middle >= 0
    gain = fm_pass(net, cells, work, parts, data.draw(st.integers(0, 9)), 100)
    assert gain == middle - slow_cost(h, weights, parts) >= 0
    np.testing.assert_array_equal(cells.loads.T, slow_loads(h, parts, n_parts))
    if valid:
        _, closed_up = np.unique(parts, return_inverse=True)
        assert is_valid(h, closed_up, limits)


@settings(deadline=None)
@given(st.data())
def test_matching_is_symmetric_valid_and_takes_the_best_rated(data):
    h = data.draw(counted_hypergraphs(min_nodes=2))
    limits = data.draw(feasible_limits(h))
    net = network_of(h, limits)
    state = matching(h.n_nodes, h.n_groups)
    order = np.random.default_rng(0).permutation(h.n_nodes)
    weights, _ = fixed_point(h.weights)
    rows = list(zip(rows_of(h), weights.tolist(), strict=True))
    free = set(range(h.n_nodes))
    for at, node in enumerate(order.tolist()):
        if node not in free:
            continue
        match_nodes(net, state, order, 0, at, at + 1)
        mate = int(state.mates[node])
        scores = {}
        for other in free - {node}:
            shared = [w for row, w in rows if {node, other} <= row.pins]
            pair = np.arange(h.n_nodes)
            pair[other] = node
            _, pair = np.unique(pair, return_inverse=True)
            if shared and is_valid(h, pair, limits):
                scores[other] = sum(shared) // max(int(h.node_sizes[other]), 1)
        if mate < 0:
            assert not scores
            continue
        assert state.mates[mate] == node
        assert scores[mate] == max(scores.values())
        assert mate == min(o for o, s in scores.items() if s == scores[mate])
        free -= {node, mate}
