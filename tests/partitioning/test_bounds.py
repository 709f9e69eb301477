from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.partitioning.bounds import connectivity_lower_bound, part_bounds, parts_lower_bound
from snnmap.partitioning.metrics import measure
from tests.partitioning.cases import counted_hypergraphs, feasible_limits
from tests.partitioning.oracle import is_valid, rows_of
from tests.small import small
from tests.strategies import partitions


@given(st.data())
def test_no_valid_partition_beats_the_bounds(data):
    h = data.draw(counted_hypergraphs())
    parts = data.draw(partitions(h.n_nodes))
    limits = data.draw(feasible_limits(h))
    assume(is_valid(h, parts, limits))
    found = measure(h, parts)
    assert found.n_parts >= parts_lower_bound(h, limits)
    assert found.connectivity >= connectivity_lower_bound(h, limits) * (1 - 1e-12)


@given(counted_hypergraphs(), st.integers(1, 5), st.integers(1, 9))
def test_connectivity_bound_equals_its_formula(h, max_size, max_synapses):
    rows = rows_of(h)
    fan_ins = [sum(r.axons for r in rows if n in r.destinations) for n in range(h.n_nodes)]
    expected = 0.0
    for row in rows:
        by_size = math.ceil(sum(h.node_sizes[n] for n in row.pins) / max_size)
        by_synapses = math.ceil(sum(fan_ins[n] for n in row.destinations) / max_synapses)
        expected += row.weight * (max(by_size, by_synapses, 1) - 1)
    limits = Limits(max_size=max_size, max_synapses=max_synapses)
    assert connectivity_lower_bound(h, limits) == pytest.approx(expected)


def test_small_by_hand():
    limits = Limits(max_size=3, max_inbound=5, max_outbound=6, max_incident=3, max_synapses=10)
    assert part_bounds(small(), limits) == {
        "max_size": 3,  # 8 neurons
        "max_inbound": 2,  # 8 axons
        "max_outbound": 2,  # 7 axons with a source
        "max_incident": 3,  # 8 axons
        "max_synapses": 2,  # 19 of them: 3 + 3 + 2 + 1 + 2 + 2 + 2 + 4
    }
    assert parts_lower_bound(small(), limits) == 3


def test_big_nodes_cannot_share_a_part():
    h = Hypergraph.from_hedges(
        3, np.array([0]), np.array([0, 1]), np.array([1]), np.array([1.0]), node_sizes=np.full(3, 6)
    )
    assert parts_lower_bound(h, Limits(max_size=11)) == 3
    assert parts_lower_bound(h, Limits(max_size=12)) == 2


def test_without_limits_one_part_and_no_cost():
    assert parts_lower_bound(small(), Limits()) == 1
    assert connectivity_lower_bound(small(), Limits()) == 0.0
    empty = Hypergraph.from_hedges(0, np.array([]), np.array([0]), np.array([]), np.array([]))
    assert parts_lower_bound(empty, Limits(max_size=1)) == 0
