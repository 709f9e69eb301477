"""Refinement by a sorted sequence: exact effects of each move, the best valid prefix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.networks import load_network
from snnmap.partitioning.multilevel import PRESETS, partition_multilevel
from snnmap.partitioning.multilevel.engine_cpu import CpuEngine
from snnmap.partitioning.multilevel.level import Problem, pose_problem
from snnmap.partitioning.multilevel.sequence import refine_in_sequence
from snnmap.partitioning.multilevel.state import State, examine
from snnmap.partitioning.verify import verify_partition
from tests.partitioning.cases import counted_hypergraphs, feasible_limits

Array = np.ndarray[Any, Any]
ENGINE = CpuEngine()


@st.composite
def moves(draw: st.DrawFn) -> tuple[Problem, State, Array, Array]:
    """A hypergraph, a partition, any moves (targets) and any gains to sort them by."""
    h = draw(counted_hypergraphs(min_nodes=2, max_nodes=12))
    problem, k, n = pose_problem(h, draw(feasible_limits(h))), draw(st.integers(2, 5)), h.n_nodes
    ids = st.integers(0, k - 1)
    parts = np.array(draw(st.lists(ids, min_size=n, max_size=n)), np.int32)
    targets = np.array(draw(st.lists(st.integers(-1, k - 1), min_size=n, max_size=n)), np.int32)
    targets[targets == parts] = -1
    gains = np.array(draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n)), np.int64)
    return problem, examine(ENGINE, problem.level, problem.limits, parts, k), targets, gains


def states(problem: Problem, state: State, targets: Array, order: Array) -> list[State]:
    """The state after each prefix of the moves."""
    found, parts = [state], state.parts.copy()
    for v in order:
        parts = parts.copy()
        parts[v] = targets[v]
        found.append(examine(ENGINE, problem.level, problem.limits, parts, state.n_parts))
    return found


@given(moves())
def test_effects_of_each_move_in_sequence(case: tuple[Problem, State, Array, Array]) -> None:
    problem, state, targets, gains = case
    order = np.flatnonzero(targets >= 0)
    order = order[np.argsort(-gains[order], kind="stable")]
    ranks = np.zeros(len(targets), np.int32)
    ranks[order] = np.arange(len(order))
    saved, incoming, outgoing = ENGINE.replay(
        problem.level, state.table, state.parts, targets, ranks, state.n_parts
    )
    after = states(problem, state, targets, order)
    for i, v in enumerate(order):
        before, now = after[i], after[i + 1]
        assert saved[v] == before.connectivity - now.connectivity
        change = now.loads - before.loads
        assert (change[targets[v]] == incoming[v]).all()
        assert (-change[state.parts[v]] == outgoing[v]).all()


@given(moves())
def test_the_best_valid_prefix_is_made(case: tuple[Problem, State, Array, Array]) -> None:
    problem, state, targets, gains = case
    order = np.flatnonzero(targets >= 0)
    order = order[np.argsort(-gains[order], kind="stable")]
    chosen = ENGINE.choose_prefix(problem.level, problem.limits, state, targets, gains)
    n = chosen.n_moved
    assert np.flatnonzero(chosen.moved).tolist() == sorted(order[:n].tolist())
    assert (chosen.parts == np.where(chosen.moved, targets, state.parts)).all()
    costs = [
        (int(s.overload.sum()), s.connectivity) for s in states(problem, state, targets, order)
    ]
    assert costs.index(min(costs)) == n  # the first of the best


@given(h=counted_hypergraphs(min_nodes=1, max_nodes=20), data=st.data())
def test_refinement_never_makes_worse(h: Hypergraph, data: st.DataObject) -> None:
    problem, k = pose_problem(h, data.draw(feasible_limits(h))), data.draw(st.integers(1, 6))
    ids = st.lists(st.integers(0, k - 1), min_size=h.n_nodes, max_size=h.n_nodes)
    parts = np.array(data.draw(ids), np.int32)
    before = examine(ENGINE, problem.level, problem.limits, parts, k)
    refined = refine_in_sequence(
        ENGINE,
        problem.level,
        problem.limits,
        parts,
        k,
        PRESETS["paper"].refinement,
        rounds=4,
        schedule=data.draw(st.sampled_from([(0.0,), (4096.0,), (0.0, 1.0)])),
        seed=1,
    )
    after = examine(ENGINE, problem.level, problem.limits, refined, k)
    assert (after.overload.sum(), after.connectivity) <= (
        before.overload.sum(),
        before.connectivity,
    )


@pytest.mark.parametrize("changes", [{"coarsening": {"scheme": "matching"}, "merge": "needed"},
                                     {"refinement": {"scheme": "sequence"}}])  # fmt: skip
def test_each_scheme_alone(changes: dict[str, Any]) -> None:
    h, limits = load_network("lenet"), Limits(max_size=1024, max_inbound=4096)
    large = changes | {"compression": {"rounds": 0}}
    large["coarsening"] = {"small_pins": 0, **changes.get("coarsening", {})}
    found = partition_multilevel(h, limits, preset="fast", config=large)
    assert verify_partition(h, found.parts, limits).ok


def test_the_published_scheme_keeps_to_few_parts_when_told() -> None:
    h = load_network("lenet")
    largest = -(-h.n_nodes // 4) * 103 // 100
    limits = Limits(max_size=largest, max_parts=4)
    found = partition_multilevel(h, limits, preset="paper")
    assert found.n_parts <= 4
    assert verify_partition(h, found.parts, limits).ok
