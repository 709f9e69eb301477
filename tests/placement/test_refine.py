"""Swaps and annealing: exact gains, never a loss, and near the optimum where it can be found."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.hardware import HardwareProfile
from snnmap.hypergraph import Hypergraph
from snnmap.placement import _kernels, place, refine
from snnmap.placement._kernels_anneal import hash_bits
from snnmap.placement.anneal import anneal
from snnmap.placement.metric import Metric
from snnmap.placement.placers import PLACERS
from snnmap.placement.refine import Board, force_directed
from snnmap.placement.region import make_site
from snnmap.placement.task import Task
from snnmap.progress import Progress
from tests.placement.chips import mesh, profiles
from tests.placement.test_place import layered
from tests.small import from_rows
from tests.strategies import hypergraphs


def random_board(graph: Hypergraph, profile: HardwareProfile, seed: int) -> Board:
    task = Task(graph, make_site(Metric.of(profile), graph.n_nodes, {}, set()))
    cells = np.random.default_rng(seed).permutation(task.region.free_cells)[: graph.n_nodes]
    return Board.of(task.flows, task.region, cells)


@given(hypergraphs(min_nodes=2, max_nodes=10), profiles(), st.integers(0, 99))
@settings(deadline=None)
def test_gain_of_a_swap_is_the_change_of_cost(
    graph: Hypergraph, profile: HardwareProfile, seed: int
) -> None:
    if graph.n_nodes > profile.n_cores:
        return
    board = random_board(graph, profile, seed)
    rng = np.random.default_rng(seed)
    p = int(rng.integers(graph.n_nodes))
    b = int(rng.choice(board.region.free_cells))
    a, r = int(board.cell_of[p]), int(board.part_at[b])
    if a == b:
        return
    flows = board.flows
    gain = _kernels.swap_gain(
        flows.offsets,
        flows.neighbours,
        flows.rates,
        board.places,
        *board.region.tables,
        p,
        a,
        r,
        b,
    )
    before = board.cost()
    board.cell_of[p] = b
    if r >= 0:
        board.cell_of[r] = a
    after = Board.of(flows, board.region, board.cell_of)
    assert before - after.cost() == gain


@given(hypergraphs(min_nodes=2, max_nodes=10), profiles(), st.integers(0, 99))
@settings(deadline=None)
def test_rounds_report_exactly_what_they_save(
    graph: Hypergraph, profile: HardwareProfile, seed: int
) -> None:
    if graph.n_nodes > profile.n_cores:
        return
    board = random_board(graph, profile, seed)
    for _ in range(50):
        before = board.cost()
        saved = board.swap_round()
        assert before - board.cost() == saved >= 0
        assert np.array_equal(board.part_at[board.cell_of], np.arange(graph.n_nodes))
        assert np.count_nonzero(board.part_at >= 0) == graph.n_nodes
        if not saved:
            break
    assert saved == 0


@given(hypergraphs(min_nodes=2, max_nodes=10), profiles(), st.integers(0, 99), st.integers(1, 6))
@settings(deadline=None)
def test_both_ways_to_propose_agree(
    graph: Hypergraph, profile: HardwareProfile, seed: int, reach: int
) -> None:
    if graph.n_nodes > profile.n_cores:
        return
    cores = []
    for near in (False, True):
        board = random_board(graph, profile, seed)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(refine, "is_near", lambda _flows, _region, _reach, near=near: near)
            cores.append((board.swap_round(reach), board.cell_of.tolist()))
    assert cores[0] == cores[1]


@given(hypergraphs(min_nodes=2, max_nodes=10), profiles(), st.integers(0, 99))
@settings(deadline=None)
def test_annealing_never_loses_and_repeats(
    graph: Hypergraph, profile: HardwareProfile, seed: int
) -> None:
    if graph.n_nodes > profile.n_cores:
        return
    board = random_board(graph, profile, seed)
    settings_ = {"seeds": [seed, 7], "hots": [0.2, 0.4], "work": 20_000}
    starts = [board.cell_of] * 2
    found, other = anneal(board.flows, board.region, starts, **settings_)
    assert not board.region.blocked[other].any()
    assert Board.of(board.flows, board.region, found).cost() <= board.cost()
    assert not board.region.blocked[found].any()
    again, _ = anneal(board.flows, board.region, starts, **settings_)
    assert np.array_equal(found, again)


@given(hypergraphs(min_nodes=2, max_nodes=12), profiles(), st.integers(0, 99), st.integers(1, 3))
@settings(deadline=None)
def test_nothing_is_left_to_gain_when_nobody_is_active(
    graph: Hypergraph, profile: HardwareProfile, seed: int, reach: int
) -> None:
    """Looking only where something changed ends where looking everywhere finds nothing."""
    if graph.n_nodes > profile.n_cores:
        return
    board = random_board(graph, profile, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refine, "is_near", lambda _flows, _region, _reach: True)
        while board.swap_round(reach):
            pass
    everyone = Board.of(board.flows, board.region, board.cell_of)
    assert everyone.swap_round(reach) == 0


def exhaustive(graph: Hypergraph, columns: int, rows: int) -> int:
    """The least cost over all ways to put the parts on a columns x rows mesh."""
    profile = mesh(columns, rows)
    board = random_board(graph, profile, 0)
    tables = board.region.tables
    flows = np.zeros((graph.n_nodes, graph.n_nodes), np.int64)
    flows[board.flows.row_ids, board.flows.neighbours] = board.flows.rates
    cells = np.arange(columns * rows)
    x, y = np.divmod(cells, rows)
    distance = tables[0][np.ix_(x, x)] + tables[1][np.ix_(y, y)]
    best = None
    ways = np.array(list(permutations(range(columns * rows), graph.n_nodes)), np.int8)
    for some in np.array_split(ways, max(1, len(ways) // 50_000)):
        cost = np.zeros(len(some), np.int64)
        for p in range(graph.n_nodes):
            for q in range(p):
                if flows[p, q]:
                    cost += flows[p, q] * distance[some[:, p], some[:, q]]
        least = int(cost.min())
        best = least if best is None else min(best, least)
    assert best is not None
    return best


@pytest.mark.usefixtures("full_work")
@pytest.mark.parametrize(
    ("n_parts", "columns", "rows", "seed"),
    [
        (4, 2, 2, 0),
        (5, 2, 3, 1),
        (6, 2, 3, 2),
        (6, 3, 3, 3),
        (7, 4, 2, 4),
        (9, 3, 3, 5),
        (9, 3, 3, 6),
    ],
)
def test_small_meshes_are_within_2_percent_of_the_optimum(
    n_parts: int, columns: int, rows: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows_ = [
        ([i], rng.choice(n_parts, 3, replace=False).tolist(), float(rng.lognormal(0, 2)))
        for i in range(n_parts)
        for _ in range(2)
    ]
    graph = from_rows(n_parts, rows_)
    placement = place(graph, mesh(columns, rows))
    task = Task(graph, make_site(Metric.of(mesh(columns, rows)), n_parts, {}, set()))
    optimum = exhaustive(graph, columns, rows) / task.flows.scale
    assert optimum * (1 - 1e-9) <= placement.objective <= optimum * 1.02


def test_auto_is_as_good_as_any_single_placer() -> None:
    for seed in range(3):
        graph = layered(6, 8, seed)
        auto = place(graph, mesh(16, 16)).objective
        for placer in PLACERS:
            assert auto <= place(graph, mesh(16, 16), placer=placer).objective * 1.02


def test_seeds_change_the_search_and_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = layered(8, 10)
    cores = {}
    for threads in ("1", "3"):
        monkeypatch.setenv("SNNMAP_NUM_THREADS", threads)
        cores[threads] = [place(graph, mesh(16, 16), seed=seed).cores for seed in (0, 1)]
    assert np.array_equal(cores["1"][0], cores["3"][0])
    assert np.array_equal(cores["1"][1], cores["3"][1])
    assert not np.array_equal(cores["1"][0], cores["1"][1])


def test_an_expired_search_returns_a_valid_placement() -> None:
    graph = layered(8, 10)
    placement = place(graph, mesh(16, 16), progress=Progress(time_limit=0.0))
    assert not placement.complete
    assert len({tuple(core) for core in placement.cores.tolist()}) == graph.n_nodes


def test_cost_does_not_depend_on_the_chip_around_the_parts() -> None:
    """The same region, hence the same work and the same placement, on a huge empty chip."""
    graph = layered(6, 10)
    small_, large = mesh(64, 64), mesh(4096, 4096)
    regions = [
        make_site(Metric.of(profile), graph.n_nodes, {}, set()).region(slack=0.2)
        for profile in (small_, large)
    ]
    assert regions[0].n_cells == regions[1].n_cells < 150
    assert np.array_equal(place(graph, small_).cores, place(graph, large).cores)


def test_full_force_directed_is_not_worse_than_neighbour_swaps_from_it() -> None:
    graph = layered(6, 6)
    task = Task(graph, make_site(Metric.of(mesh(8, 8)), graph.n_nodes, {}, set()))
    near = force_directed(task.flows, task.region, PLACERS["snake"](task), reach=1)
    far = force_directed(task.flows, task.region, near)
    assert (
        Board.of(task.flows, task.region, far).cost()
        <= Board.of(task.flows, task.region, near).cost()
    )


def test_hash_is_the_documented_function() -> None:
    """SplitMix64 rounds in plain Python integers, so that other engines can agree."""
    mask = 2**64 - 1

    def slow(seed: int, stream: int, index: int) -> int:
        z = ((seed + 1) * 0x9E3779B97F4A7C15 + stream) & mask
        for _ in range(2):
            z = (z * 0x9E3779B97F4A7C15 + index) & mask
            z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
            z ^= z >> 31
        return z

    for seed, stream, index in [(0, 0, 0), (1, 2, 3), (mask, 77, mask - 5)]:
        got = hash_bits(np.uint64(seed), np.uint64(stream), np.uint64(index))
        assert int(got) == slow(seed, stream, index)
