from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnmap.errors import InputError
from snnmap.partitioning import metrics
from tests.partitioning.cases import counted_hypergraphs
from tests.partitioning.oracle import slow_metrics
from tests.small import small
from tests.strategies import partitions

SMALL_PARTS = np.array([0, 0, 1, 1, 1, 2, 2, 2], np.int32)


@given(st.data())
def test_measure_equals_its_slow_twin(data):
    h = data.draw(counted_hypergraphs())
    parts = data.draw(partitions(h.n_nodes))
    found = metrics.measure(h, parts)
    expected = slow_metrics(h, parts)
    for name, value in expected.items():
        mine = getattr(found, name)
        if isinstance(value, float):
            assert mine == pytest.approx(value, rel=1e-12), name
        else:
            np.testing.assert_array_equal(mine, value, err_msg=name)
    assert metrics.connectivity(h, parts) == found.connectivity
    assert metrics.cut_net(h, parts) == found.cut_net
    assert metrics.soed(h, parts) == found.soed
    assert found.soed == pytest.approx(found.connectivity + found.cut_net)


@given(st.data())
def test_grouping_changes_no_metric(data):
    h = data.draw(counted_hypergraphs(grouped=False))
    parts = data.draw(partitions(h.n_nodes))
    one, other = metrics.measure(h, parts), metrics.measure(h.grouped(), parts)
    assert (one.connectivity, one.cut_net, one.soed) == (
        other.connectivity,
        other.cut_net,
        other.soed,
    )
    for name in ("inbound", "outbound", "incident", "synapses"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@given(st.data())
def test_contraction_to_parts_keeps_connectivity_and_axons(data):
    h = data.draw(counted_hypergraphs())
    parts = data.draw(partitions(h.n_nodes))
    fine = metrics.measure(h, parts)
    coarse_h = h.contract(parts)
    coarse = metrics.measure(coarse_h, np.arange(coarse_h.n_nodes, dtype=np.int32))
    assert coarse.connectivity == pytest.approx(fine.connectivity)
    for name in ("sizes", "inbound", "outbound", "incident"):
        np.testing.assert_array_equal(getattr(coarse, name), getattr(fine, name))


def test_small_by_hand():
    found = metrics.measure(small(), SMALL_PARTS)
    # parts: {0 1} {2 3 4} {5 6 7}; lambda of the h-edges as drawn in tests/small.py
    # 0: {0 3 4 5} -> 3, 1 -> 3, 2: {2 5 6} -> 2, 3: {3 7} -> 2, 4: {4 7} -> 2, 5: {5 3 7} -> 2,
    # 6: {6 7} -> 1, 7: {3 4 5 6} -> 2
    assert found.connectivity == 1 * 2 + 2 * 2 + 0.5 + 4 + 3 + 0 + 0 + 2.5
    assert found.cut_net == 1 + 2 + 0.5 + 4 + 3 + 0 + 2.5
    assert found.sizes.tolist() == [2, 3, 3]
    assert found.inbound.tolist() == [0, 5, 8]
    assert found.outbound.tolist() == [2, 3, 2]
    assert found.incident.tolist() == [2, 7, 8]
    assert found.synapses.tolist() == [0, 8, 11]
    assert found.max_destinations == 2
    reuse = [8 / 5, 11 / 8]
    assert found.synaptic_reuse.tolist() == reuse
    assert found.reuse_arithmetic_mean == pytest.approx(sum(reuse) / 2)
    assert found.reuse_geometric_mean == pytest.approx((reuse[0] * reuse[1]) ** 0.5)


def test_one_part_costs_nothing():
    found = metrics.measure(small(), np.zeros(8, np.int32))
    assert (found.n_parts, found.connectivity, found.cut_net, found.soed) == (1, 0.0, 0.0, 0.0)
    assert found.inbound.tolist() == [8]


def test_reuse_of_a_network_without_destinations_is_zero():
    h = small().contract(np.zeros(8, np.int32))
    lonely = type(h).from_hedges(2, np.array([0]), np.array([0, 0]), np.array([]), np.array([1.0]))
    found = metrics.measure(lonely, np.array([0, 1]))
    assert found.reuse_arithmetic_mean == found.reuse_geometric_mean == 0.0


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (np.zeros(7, int), "expected one for each of 8 nodes"),
        (np.zeros(8), "expected integers"),
        (np.array([0, 0, 0, -1, 0, 0, 0, 0]), "node 3: id -1"),
        (np.array([0, 0, 0, 2**40, 0, 0, 0, 0]), "node 3: id 1099511627776"),
    ],
)
def test_parts_that_do_not_fit_are_refused(parts, text):
    with pytest.raises(InputError, match=text):
        metrics.measure(small(), parts)
