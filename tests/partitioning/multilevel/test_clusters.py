"""Clusters of the search's hierarchies: whom a node joins beside a dense twin, and what holds for all of them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.partitioning.multilevel import _kernels_cluster as kcl
from snnmap.partitioning.multilevel import _kernels_search as ks
from snnmap.partitioning.multilevel.config import SearchConfig
from snnmap.partitioning.multilevel.level import UNLIMITED, Level, contract_small
from snnmap.partitioning.multilevel.search import Search
from tests.partitioning.multilevel.twins import random_level

Array = np.ndarray[Any, Any]


def make_level(seed: int, *, n_distinct: int = 2, mean_pins: int = 4) -> Level:
    rng = np.random.default_rng(seed)
    n_nodes = int(rng.integers(1, 120))
    sizes = {"n_nodes": n_nodes, "n_nets": 80, "mean_pins": mean_pins, "mean_sources": 2}
    return random_level(rng, **sizes, n_additive=2, n_distinct=n_distinct)


def make_limits(level: Level, tightness: int) -> Array:
    """What some of the largest nodes need together; the second load without a limit."""
    limits = ks.node_loads(tuple(level)).max(axis=0) * tightness + 1
    limits[1] = UNLIMITED
    return np.asarray(limits, np.int64)


def incidence(level: Level) -> tuple[Array, Array]:
    """int64[n_nets, n_nodes]: pins, and weights of sources."""
    nets = np.arange(level.n_nets)
    pins, sources = (np.zeros((level.n_nets, level.n_nodes), np.int64) for _ in range(2))
    pins[np.repeat(nets, np.diff(level.net_offsets)), level.net_pins] = 1
    places = np.repeat(nets, np.diff(level.source_offsets)), level.source_nodes
    np.add.at(sources, places, level.source_weights)
    return pins, sources


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 20), st.integers(1, 4), st.integers(0, 2), st.sampled_from([3, 300]))
def test_nodes_want_the_neighbour_that_they_share_most_with(
    seed: int, tightness: int, n_distinct: int, mean_pins: int
) -> None:
    level = make_level(seed, n_distinct=n_distinct, mean_pins=mean_pins)
    n, limits = level.n_nodes, make_limits(level, tightness)
    loads, cap = ks.node_loads(tuple(level)), int(limits[0]) * 3 // 4
    within = np.random.default_rng(seed).integers(0, 2, n)
    targets, keys = np.empty(n, np.int32), np.empty(n, np.int64)
    shared = np.zeros((n, n_distinct), np.int64)
    kcl.rate_nodes(tuple(level), loads, within, limits, cap, seed, targets, keys, shared)

    pins, sources = incidence(level)
    n_pins = pins.sum(axis=1)
    shares = np.where((n_pins > 0) & (n_pins <= 256), 4096 // np.maximum(n_pins, 1), 0)
    strengths = level.net_weights * 64 + (level.counts[:, 0] if n_distinct else 0)
    scores = pins.T @ (pins * (strengths * shares)[:, None])
    one_way = pins.T @ (64 * sources * shares[:, None])
    scores += one_way + one_way.T
    factors = 1 / np.sqrt(np.maximum(level.resources[:, 0], 1))
    looked = pins * (n_pins <= 256)[:, None]
    best = []
    for v in range(n):
        found = (0.0, 0, 0, -1)
        for u in range(n):
            both = loads[u] + loads[v]
            common = level.counts.T @ (looked[:, u] * looked[:, v])
            both[2:] -= common
            if u == v or within[u] != within[v] or both[0] > cap or (both > limits).any():
                continue
            value = float(scores[v, u]) * (factors[u] * factors[v])
            tie = int(ks.scramble(min(u, v) << 32 | max(u, v), seed))
            if value > 0:
                found = max(found, (value, tie, -u, u))
        best.append(found[3])
        if found[3] >= 0:
            common = level.counts.T @ (looked[:, found[3]] * looked[:, v])
            assert np.array_equal(shared[v], common)
            assert keys[v] >> 20 == np.float64(found[0]).view(np.int64) >> 20
    assert targets.tolist() == best


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 20), st.integers(1, 6), st.integers(0, 2), st.floats(0, 1))
def test_a_turn_keeps_limits_borders_and_enough_clusters(
    seed: int, tightness: int, n_distinct: int, share: float
) -> None:
    level = make_level(seed, n_distinct=n_distinct)
    limits = make_limits(level, tightness)
    n, cap, target = level.n_nodes, int(limits[0]) * 3 // 4, int(level.n_nodes * share)
    within = np.random.default_rng(seed).integers(0, 2, n)
    clusters, left = kcl.cluster_turn(tuple(level), limits, cap, target, within, seed)
    assert np.array_equal(np.unique(clusters), np.arange(left))
    assert left >= min(target, n)
    sizes = np.bincount(clusters)
    loads = ks.node_loads(tuple(contract_small(level, clusters, left)))
    grown = sizes > 1
    assert (loads[grown] <= limits).all()
    assert (loads[grown, 0] <= cap).all()
    sides = np.full(left, -1)
    sides[clusters] = within
    assert np.array_equal(sides[clusters], within)
    # The two that tie most want each other, so somebody joins where anybody could.
    targets, keys = np.empty(n, np.int32), np.empty(n, np.int64)
    rated = ks.node_loads(tuple(level)), within, limits, cap, seed
    kcl.rate_nodes(tuple(level), *rated, targets, keys, np.zeros((n, n_distinct), np.int64))
    assert (left < n) == (bool((targets >= 0).any()) and target < n)


def test_a_cluster_takes_its_suitors_by_value_while_they_fit() -> None:
    """A pair, one suitor after the other, one that is too much, and one that wants somebody who joined."""
    targets = np.array([1, 0, 0, 0, 1, 2, -1], np.int32)
    values = np.array([9.0, 9.0, 5.0, 6.0, 7.0, 4.0, 0.0])
    keys = values.view(np.int64) & ~kcl._LOW | (kcl._LOW - np.arange(7))
    loads = np.array([[2, 4], [2, 4], [1, 3], [3, 1], [2, 1], [1, 1], [1, 1]], np.int64)
    shared = np.array([[2], [2], [1], [0], [0], [1], [0]], np.int64)
    leaders = np.empty(7, np.int32)
    limits = np.array([8, 9], np.int64)
    left = kcl.join_nodes(loads, targets, keys, shared, limits, 8, 1, leaders)
    # 0 and 1 have (4, 6); 4 makes (6, 7), 3 is too large, 2 makes (7, 9), 5 then (8, 9).
    assert leaders.tolist() == [0, 0, 0, 3, 0, 0, 6]
    assert left == 3
    assert loads[0].tolist() == [8, 9]


@pytest.mark.parametrize(("target", "expected"), [(4, [0, 1, 2, 0, 1]), (3, [0, 1, 2, 0, 1])])
def test_the_best_join_where_not_all_may(target: int, expected: list[int]) -> None:
    targets = np.array([3, 4, 0, 0, 1], np.int32)
    keys = np.array([5.0, 7.0, 3.0, 5.0, 7.0]).view(np.int64) & ~kcl._LOW
    keys |= kcl._LOW - np.arange(5)
    loads, shared = np.ones((5, 1), np.int64), np.zeros((5, 0), np.int64)
    leaders = np.empty(5, np.int32)
    limits = np.array([9], np.int64)
    left = kcl.join_nodes(loads, targets, keys, shared, limits, 9, target, leaders)
    assert left == target
    assert leaders.tolist() == (expected if target == 3 else [0, 1, 2, 3, 1])


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1 << 20), st.sampled_from([None, 3]), st.booleans())
def test_every_level_is_a_contraction_of_the_one_before(
    seed: int, max_parts: int | None, deep: bool
) -> None:
    level = make_level(seed)
    limits = np.asarray(
        np.concatenate([level.resources.sum(axis=0), level.counts.sum(axis=0)]) // 5 + 9, np.int64
    )
    config = SearchConfig(hierarchies=3, population=3, deep=0 if deep else 6000)
    search = Search(level, limits, config, max_parts)
    for number, n_parts in enumerate(search.coarsen_all([0, 1, 2])):
        levels, parts, found = search.coarsen(number)
        assert found == n_parts
        assert levels[0][0] is level
        for (fine, _), (coarse, clusters) in pairwise(levels):
            assert coarse.n_nodes < fine.n_nodes
            whole = contract_small(fine, clusters, coarse.n_nodes)
            for ours, theirs in zip(coarse, whole, strict=True):
                assert np.array_equal(ours, theirs)
            grown = np.bincount(clusters) > 1
            assert (
                ks.node_loads(tuple(coarse))[grown] <= search.narrow(np.array([number]))[0]
            ).all()
        assert np.array_equal(np.unique(parts), np.arange(n_parts))
        assert len(parts) == levels[-1][0].n_nodes
    assert search.count_parts() == search.coarsen(0)[2]
