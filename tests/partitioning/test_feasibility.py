from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnmap.errors import LimitError
from snnmap.limits import Limits
from snnmap.partitioning.feasibility import check_feasible, check_result, find_impossible
from tests.partitioning.cases import counted_hypergraphs, feasible_limits
from tests.partitioning.oracle import is_valid, slow_needs
from tests.small import small
from tests.strategies import partitions

PARTS = np.array([0, 0, 1, 1, 1, 2, 2, 2], np.int32)


@given(st.data())
def test_limits_that_every_neuron_meets_pass(data):
    h = data.draw(counted_hypergraphs())
    check_feasible(h, data.draw(feasible_limits(h)))


@given(st.data())
def test_refuses_exactly_the_neurons_that_fit_nowhere(data):
    h = data.draw(counted_hypergraphs(min_nodes=1))
    name = data.draw(st.sampled_from(["size", "inbound", "outbound", "incident", "synapses"]))
    limit = data.draw(st.integers(1, 10))
    needs = slow_needs(h)[name]
    found = list(find_impossible(h, Limits(**{f"max_{name}": limit})))
    if max(needs) <= limit:
        assert found == []
    else:
        assert found[0].value == max(needs)
        assert found[0].what == h.describe_node(needs.index(max(needs)))


@given(st.data())
def test_check_result_agrees_with_the_slow_twin(data):
    h = data.draw(counted_hypergraphs(min_nodes=1))
    parts = data.draw(partitions(h.n_nodes))
    names = st.sampled_from(
        ["size", "inbound", "outbound", "incident", "synapses", "parts", "destinations"]
    )
    limits = Limits(
        **{f"max_{n}": data.draw(st.integers(1, 12)) for n in data.draw(st.sets(names))}
    )
    if is_valid(h, parts, limits):
        check_result(h, parts, limits)
    else:
        with pytest.raises(LimitError):
            check_result(h, parts, limits)


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (
            Limits(max_fan_in=3),
            "neuron 0 of 'hidden' (node 3): fan-in 4 exceeds the limit 3 of profile 'toy'",
        ),
        (Limits(max_inbound=3), "neuron 0 of 'hidden' (node 3): inbound axons 4 exceeds"),
        (Limits(max_synapses=3), "neuron 0 of 'hidden' (node 3): synapses 4 exceeds"),
        (Limits(max_outbound=1), "neuron 2 of 'hidden' (node 5): outbound axons 2 exceeds"),
        (Limits(max_incident=4), "neuron 0 of 'hidden' (node 3): incident axons 5 exceeds"),
        (
            Limits(max_size=1, max_destinations=3),
            "neuron 2 of 'hidden' (node 5): destination cores of its axon, at least 4 exceeds",
        ),
        (
            Limits(max_size=3, max_parts=2),
            "network 'small': cores needed for its neurons, at least 3 exceeds the limit 2",
        ),
        (
            Limits(max_inbound=4, max_parts=1),
            "network 'small': cores needed for its inbound axons, at least 2 exceeds the limit 1",
        ),
    ],
)
def test_refusals_name_object_value_limit_and_remedy(limits, text):
    with pytest.raises(LimitError) as caught:
        check_feasible(small(), limits, profile="toy")
    assert str(caught.value).startswith(text)
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (Limits(max_parts=2), "network 'small': cores of the best partition found 3 exceeds"),
        (
            Limits(max_destinations=1),
            "axon of input 0 of 'in' (node 0): destination cores 2 exceeds the limit 1",
        ),
        (Limits(max_inbound=7), "part 2: inbound axons 8 exceeds the limit 7"),
    ],
)
def test_results_over_a_limit_are_refused(limits, text):
    with pytest.raises(LimitError) as caught:
        check_result(small(), PARTS, limits)
    assert str(caught.value).startswith(text)


def test_everything_at_once_is_listed():
    found = list(find_impossible(small(), Limits(max_fan_in=3, max_outbound=1, max_size=1)))
    assert [e.quantity for e in found] == ["fan-in", "outbound axons"]
