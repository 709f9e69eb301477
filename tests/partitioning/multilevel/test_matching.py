"""Coarsening by matching: best admissible neighbours, the heaviest matching of a pseudo-forest."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.partitioning.multilevel import PRESETS
from snnmap.partitioning.multilevel.engine_cpu import CpuEngine
from snnmap.partitioning.multilevel.level import Level, pose_problem
from snnmap.partitioning.multilevel.matching import match
from snnmap.partitioning.multilevel.state import examine
from tests.partitioning.cases import counted_hypergraphs, feasible_limits

Array = np.ndarray[Any, Any]


def heaviest(targets: Array, weights: Array) -> int:
    """Weight of a matching of the largest weight, by another program."""
    graph = nx.Graph()
    for v, (u, weight) in enumerate(zip(targets.tolist(), weights.tolist(), strict=True)):
        if u >= 0 and graph.get_edge_data(u, v, {"weight": 0})["weight"] < weight:
            graph.add_edge(u, v, weight=weight)
    return sum(graph[u][v]["weight"] for u, v in nx.max_weight_matching(graph))


def weight_of(partners: Array, targets: Array, weights: Array) -> int:
    """Weight of a matching, once it is sure that it is one and uses edges only."""
    total = 0
    for v in np.flatnonzero(partners >= 0):
        u = partners[v]
        assert partners[u] == v
        edges = [weights[a] for a, b in ((u, v), (v, u)) if targets[a] == b]
        assert edges, "matched without an edge"
        total += int(max(edges)) if u < v else 0
    return total


@given(data=st.data(), n=st.integers(2, 14), largest=st.sampled_from([1, 3, 1 << 45]))
def test_matching_is_the_heaviest(data: st.DataObject, n: int, largest: int) -> None:
    ends = data.draw(st.lists(st.integers(-1, n - 1), min_size=n, max_size=n))
    targets = np.array([-1 if u == v else u for v, u in enumerate(ends)], np.int32)
    numbers = st.lists(st.integers(1, largest), min_size=n, max_size=n)
    weights = np.array(data.draw(numbers), np.int64)
    partners = CpuEngine().match_forest(targets, weights)
    assert weight_of(partners, targets, weights) == heaviest(targets, weights)


@given(data=st.data(), n=st.integers(2, 17))
def test_long_cycles(data: st.DataObject, n: int) -> None:
    order = np.array(data.draw(st.permutations(range(n))))
    targets = np.empty(n, np.int32)
    targets[order] = np.roll(order, -1)
    weights = np.array(data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n)), np.int64)
    partners = CpuEngine().match_forest(targets, weights)
    assert weight_of(partners, targets, weights) == heaviest(targets, weights)


def pair_score(level: Level, u: int, v: int) -> int:
    """What two nodes share: the specification, net by net."""
    score = 0
    for g in range(level.n_nets):
        pins = level.net_pins[level.net_offsets[g] : level.net_offsets[g + 1]]
        places = slice(level.source_offsets[g], level.source_offsets[g + 1])
        sources = dict(zip(level.source_nodes[places], level.source_weights[places], strict=True))
        if u in pins and v in pins:
            score += (int(level.net_weights[g]) << 6) // len(pins) + 1
        for source, pin in ((u, v), (v, u)):
            if source in sources and pin in pins:
                score += (int(sources[source]) << 6) // len(pins) + 1
    return score


@given(h=counted_hypergraphs(min_nodes=2, max_nodes=10), data=st.data())
def test_neighbours_are_the_best_admissible_ones(h: Hypergraph, data: st.DataObject) -> None:
    problem = pose_problem(h, data.draw(feasible_limits(h)))
    level, engine, n = problem.level, CpuEngine(), h.n_nodes
    found, scores = engine.rate_neighbours(
        level,
        engine.node_loads(level),
        problem.limits,
        candidates=3,
        max_nets=1 << 40,
        max_pins=1 << 40,
        seed=data.draw(st.integers(0, 9)),
    )
    truth = np.zeros((n, n), np.int64)
    for u, v in combinations(range(n), 2):
        parts = np.arange(n, dtype=np.int32)
        parts[v] = u
        if examine(engine, level, problem.limits, parts, n).valid:
            truth[u, v] = truth[v, u] = pair_score(level, u, v)
    for v in range(n):
        assert scores[v].tolist() == sorted(truth[v].tolist(), reverse=True)[:3] + [0] * (3 - n)
        known = found[v][found[v] >= 0]
        assert len(set(known.tolist())) == len(known) == np.count_nonzero(scores[v])
        assert truth[v, known].tolist() == scores[v, : len(known)].tolist()


@given(h=counted_hypergraphs(min_nodes=1, max_nodes=20), data=st.data())
def test_pairs_keep_limits_and_borders(h: Hypergraph, data: st.DataObject) -> None:
    problem = pose_problem(h, data.draw(feasible_limits(h)))
    engine, config = CpuEngine(), PRESETS["paper"].coarsening
    sides = data.draw(st.lists(st.integers(0, 1), min_size=h.n_nodes, max_size=h.n_nodes))
    borders = np.array(sides, np.int32)
    for given_borders in (None, borders):
        clusters, n = match(engine, problem.level, problem.limits, config, 1, given_borders)
        assert np.unique(clusters).tolist() == list(range(n))
        assert np.bincount(clusters).max() <= 2
        assert examine(engine, problem.level, problem.limits, clusters, n).valid
    for cluster in range(n):
        assert len(set(borders[clusters == cluster].tolist())) == 1


def test_everybody_finds_a_partner_among_equals() -> None:
    """A dense layer: all ratings are equal, and a star of proposals would match one pair only."""
    n = 64
    h = Hypergraph.from_hedges(
        n, np.zeros(0, np.int64), np.array([0, n]), np.arange(n), np.ones(1),
        source_offsets=np.zeros(2, np.int64),
    )  # fmt: skip
    problem = pose_problem(h, Limits(max_size=2))
    config = PRESETS["paper"].coarsening
    _, n_clusters = match(CpuEngine(), problem.level, problem.limits, config, 0)
    assert n_clusters <= 0.6 * n
