"""Orders of parts and spectral coordinates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from snnmap.hypergraph import Hypergraph
from snnmap.placement import spectral
from snnmap.placement.flows import symmetric_flows
from snnmap.placement.metric import Metric
from snnmap.placement.order import bisection_order, feed_forward_order
from snnmap.placement.region import make_site
from snnmap.placement.task import Task
from tests.placement.chips import mesh
from tests.small import from_rows
from tests.strategies import hypergraphs


def chain(n: int, names: np.ndarray) -> Hypergraph:
    return from_rows(n, [([names[i]], [names[i + 1]], 1.0) for i in range(n - 1)])


def grid(side: int, names: np.ndarray) -> Hypergraph:
    """Each part of a side x side sheet talks to its four neighbours."""
    rows = []
    for x in range(side):
        for y in range(side):
            near = [(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)]
            into = [names[a * side + b] for a, b in near if 0 <= a < side and 0 <= b < side]
            rows.append(([names[x * side + y]], into, 1.0))
    return from_rows(side * side, rows)


@given(hypergraphs(max_nodes=12))
@settings(deadline=None)
def test_orders_hold_every_part_once(graph: Hypergraph) -> None:
    everyone = list(range(graph.n_nodes))
    forward = feed_forward_order(graph)
    assert sorted(forward.tolist()) == everyone
    assert sorted(bisection_order(symmetric_flows(graph, 10), forward).tolist()) == everyone


@pytest.mark.parametrize("n", [2, 7, 300, 600])
def test_feed_forward_order_follows_a_chain(n: int) -> None:
    names = np.random.default_rng(n).permutation(n)
    assert feed_forward_order(chain(n, names)).tolist() == names.tolist()


def test_feed_forward_order_is_topological() -> None:
    rng = np.random.default_rng(0)
    n = 400
    names = rng.permutation(n)
    rows = [
        ([names[i]], names[rng.integers(i + 1, min(n, i + 30), 3)].tolist(), float(rng.random()))
        for i in range(n - 1)
    ]
    place = np.empty(n, int)
    place[feed_forward_order(from_rows(n, rows))] = np.arange(n)
    assert all(place[out[0]] < place[d] for out, into, _ in rows for d in into)


def test_weak_feedback_does_not_turn_the_order() -> None:
    rows = [([0], [1], 5.0), ([1], [2], 5.0), ([2], [0], 0.1)]
    assert feed_forward_order(from_rows(3, rows)).tolist() in ([0, 1, 2],)


def test_bisection_order_keeps_a_chain_together() -> None:
    names = np.random.default_rng(4).permutation(64)
    graph = chain(64, names)
    place = np.empty(64, int)
    place[bisection_order(symmetric_flows(graph, 1), np.arange(64))] = np.arange(64)
    stretched = np.abs(np.diff(place[names])).sum()
    shuffled = np.abs(np.diff(np.argsort(names)[names])).sum()
    random = np.abs(np.diff(np.random.default_rng(0).permutation(64))).sum()
    assert shuffled == 63
    assert stretched <= random / 5


def test_bisection_order_does_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a level are halved side by side, each by itself."""
    graph = grid(40, np.random.default_rng(5).permutation(1600))
    flows = symmetric_flows(graph, 10)
    orders = []
    for threads in ("1", "3"):
        monkeypatch.setenv("SNNMAP_NUM_THREADS", threads)
        orders.append(bisection_order(flows, np.arange(1600)))
    assert np.array_equal(*orders)
    place = np.argsort(orders[0])
    far = np.abs(place[flows.row_ids] - place[flows.neighbours]).mean()
    assert far < 100  # of 533 at random


@pytest.mark.parametrize(("side", "most"), [(6, 2.0), (24, 3.0)])
def test_spectral_layout_recovers_a_sheet(side: int, most: float) -> None:
    """Both solvers (all eigenvectors; three by Lanczos) keep linked parts 1 to 3 hops apart.

    A random layout has 2 / 3 of the side; a sheet's two modes may come out turned by 45 degrees.
    """
    n = side * side
    graph = grid(side, np.random.default_rng(2).permutation(n))
    task = Task(graph, make_site(Metric.of(mesh(32, 32)), n, {}, set()))
    cells = spectral.spectral(task)
    x, y = np.divmod(cells, task.region.n_rows)
    flows = task.flows
    away = np.abs(x[flows.row_ids] - x[flows.neighbours]) + np.abs(
        y[flows.row_ids] - y[flows.neighbours]
    )
    assert away.mean() < most


def test_spectral_coordinates_of_very_small_and_unlinked_tasks() -> None:
    for n in (0, 1, 2, 5):
        points = spectral.embedding(symmetric_flows(from_rows(n, []), 1))
        assert points.shape == (n, 2)
        assert np.isfinite(points).all()
