"""What holds for every baseline: exact limits, determinism, time limits, awkward shapes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.errors import ConfigError, EngineError, LimitError
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.partitioning import partition
from snnmap.partitioning.bounds import parts_lower_bound
from snnmap.partitioning.kway import kway_limits
from snnmap.partitioning.metrics import measure
from snnmap.partitioning.verify import verify_partition
from snnmap.progress import Progress
from tests.partitioning.cases import counted_hypergraphs, feasible_limits
from tests.partitioning.oracle import is_valid
from tests.small import small

BASELINES = ("one-pass", "overlap", "hierarchical")


def layered(n_layers: int = 4, width: int = 64, reach: int = 5) -> Hypergraph:
    """Each neuron reaches the `reach` neurons around its own place in the next layer."""
    sources, rows = [], []
    for layer in range(n_layers - 1):
        for i in range(width):
            first = max(0, i - reach // 2)
            sources.append(layer * width + i)
            rows.append([(layer + 1) * width + j for j in range(first, min(width, first + reach))])
    weights = np.random.default_rng(7).lognormal(0, 1, len(rows))
    return Hypergraph.from_hedges(
        n_layers * width,
        np.array(sources),
        np.cumsum([0, *map(len, rows)]),
        np.concatenate(rows),
        weights,
    )


@pytest.mark.parametrize("algorithm", BASELINES)
@settings(deadline=None)
@given(data=st.data())
def test_every_limit_is_kept_on_any_hypergraph(algorithm, data):
    h = data.draw(counted_hypergraphs())
    limits = data.draw(feasible_limits(h))
    found = partition(h, limits, algorithm=algorithm, seed=data.draw(st.integers(0, 3)))
    assert found.parts.dtype == np.int32
    assert found.algorithm == algorithm
    assert found.complete
    assert is_valid(h, found.parts, limits)
    assert found.n_parts == measure(h, found.parts).n_parts
    assert verify_partition(h, found.parts, limits).ok


@pytest.mark.parametrize("algorithm", BASELINES)
@settings(deadline=None)
@given(data=st.data())
def test_without_limits_nothing_is_cut(algorithm, data):
    h = data.draw(counted_hypergraphs(min_nodes=1))
    found = partition(h, Limits(), algorithm=algorithm)
    assert found.n_parts == 1


@pytest.mark.parametrize("algorithm", BASELINES)
def test_same_seed_same_partition(algorithm):
    h, limits = layered(), Limits(max_size=20, max_inbound=30)
    one, other = (partition(h, limits, algorithm=algorithm, seed=5) for _ in range(2))
    np.testing.assert_array_equal(one.parts, other.parts)
    grouped = partition(h.grouped(), limits, algorithm=algorithm, seed=5)
    assert grouped.n_parts == one.n_parts


def test_seeds_of_hierarchical_differ():
    h, limits = layered(), Limits(max_size=20, max_inbound=30)
    results = [partition(h, limits, algorithm="hierarchical", seed=s).parts for s in range(4)]
    assert any((results[0] != other).any() for other in results[1:])


def test_better_methods_cost_less():
    h, limits = layered(6, 100), Limits(max_size=40, max_inbound=60)
    shuffled = np.random.default_rng(1).permutation(h.n_nodes)
    h = h.contract(shuffled)  # ids that say nothing about places
    costs = {a: measure(h, partition(h, limits, algorithm=a).parts).connectivity for a in BASELINES}
    assert costs["hierarchical"] < 0.6 * costs["one-pass"]
    assert costs["overlap"] < 0.6 * costs["one-pass"]
    assert costs["hierarchical"] < costs["overlap"]


@pytest.mark.parametrize("algorithm", BASELINES)
def test_exactly_full_parts(algorithm):
    h = layered(4, 64)
    found = partition(h, Limits(max_size=32), algorithm=algorithm)
    sizes = measure(h, found.parts).sizes
    assert sizes.max() <= 32
    if algorithm != "hierarchical":  # which closes a part before it is full
        assert sizes.tolist() == [32] * 8
    one = partition(h, Limits(max_size=256), algorithm=algorithm)
    assert one.n_parts == 1


@pytest.mark.parametrize("algorithm", BASELINES)
def test_max_parts_is_met_where_it_can_be(algorithm):
    h = layered(4, 64)
    limits = kway_limits(h, 8, 0.0)
    found = partition(h, limits, algorithm=algorithm)
    assert found.n_parts == 8 == parts_lower_bound(h, limits)


@pytest.mark.parametrize("algorithm", BASELINES)
def test_too_many_parts_is_an_error(algorithm):
    h = replace(small(), node_sizes=np.full(8, 4))  # no two of them share a part of 7
    with pytest.raises(LimitError, match="cores needed for its neurons, at least 8 exceeds"):
        partition(h, Limits(max_size=7, max_parts=5), algorithm=algorithm)
    h = replace(small(), node_sizes=np.full(8, 3))  # 24 = 3 x 8, but only two fit a part of 8
    assert parts_lower_bound(h, Limits(max_size=8)) == 3
    with pytest.raises(LimitError, match="best partition found 4 exceeds the limit 3"):
        partition(h, Limits(max_size=8, max_parts=3), algorithm=algorithm)


@pytest.mark.parametrize("algorithm", BASELINES)
def test_max_destinations_is_checked_at_the_end(algorithm):
    limits = Limits(max_inbound=4, max_destinations=1)
    with pytest.raises(LimitError, match=r"^axon of .*: destination cores \d exceeds the limit 1"):
        partition(small(), limits, algorithm=algorithm)


@pytest.mark.parametrize("algorithm", BASELINES)
def test_a_spent_time_limit_still_gives_a_valid_partition(algorithm):
    h, limits = layered(), Limits(max_size=20, max_inbound=30)
    found = partition(h, limits, algorithm=algorithm, progress=Progress(time_limit=-1))
    assert verify_partition(h, found.parts, limits).ok
    assert found.complete == (algorithm == "one-pass")


class _Ticking(Progress):
    """Expires after a number of questions, so that each phase is cut short once."""

    def __init__(self, questions: int) -> None:
        super().__init__()
        self.left = questions

    def expired(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("questions", [1, 2, 3, 5, 8, 13, 21, 34, 55, 89])
@pytest.mark.parametrize("algorithm", ["overlap", "hierarchical"])
def test_cut_short_anywhere_it_is_valid(algorithm, questions):
    h, limits = layered(), Limits(max_size=20, max_inbound=30)
    found = partition(h, limits, algorithm=algorithm, progress=_Ticking(questions))
    assert verify_partition(h, found.parts, limits).ok


@pytest.mark.parametrize("algorithm", BASELINES)
def test_empty_and_unconnected_networks(algorithm):
    none = np.array([])
    empty = Hypergraph.from_hedges(0, none, np.array([0]), none, none)
    assert partition(empty, Limits(max_size=1), algorithm=algorithm).n_parts == 0
    lonely = Hypergraph.from_hedges(10, none, np.array([0]), none, none)
    found = partition(lonely, Limits(max_size=5), algorithm=algorithm)
    assert found.n_parts == (3 if algorithm == "hierarchical" else 2)  # pairs of pairs: 4 + 4 + 2
    assert partition(lonely, kway_limits(lonely, 2, 0.0), algorithm=algorithm).n_parts == 2


def test_settings_that_a_baseline_does_not_have_are_refused():
    with pytest.raises(ConfigError, match="unknown algorithm 'magic'; known: one-pass, overlap"):
        partition(small(), Limits(), algorithm="magic")
    with pytest.raises(ConfigError, match="'overlap' has no presets"):
        partition(small(), Limits(), algorithm="overlap", preset="quality")
    with pytest.raises(EngineError, match="'one-pass' runs on engine 'cpu' only, not 'gpu'"):
        partition(small(), Limits(), algorithm="one-pass", engine="gpu")


def test_a_neuron_that_fits_nowhere_is_named():
    with pytest.raises(LimitError, match="neuron 0 of 'hidden' \\(node 3\\): inbound axons 4"):
        partition(small(), Limits(max_inbound=3), algorithm="one-pass")
