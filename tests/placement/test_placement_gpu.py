"""The GPU engine of placement gives the cells of the CPU engine: on a GPU, and emulated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.errors import EngineError
from snnmap.hardware import HardwareProfile
from snnmap.hypergraph import Hypergraph
from snnmap.placement import PLACERS, REFINEMENTS, engine_gpu, place, refine
from snnmap.placement import engine as engines
from snnmap.placement.anneal import anneal
from snnmap.placement.engine_cpu import CpuEngine, Schedule
from snnmap.placement.engine_gpu import GpuEngine
from snnmap.placement.metric import Metric
from snnmap.placement.refine import EVERYWHERE, force_directed
from snnmap.placement.region import make_site
from snnmap.placement.task import Task
from tests.emulator.starting import KINDS, start_gpu
from tests.placement.chips import mesh, profiles
from tests.placement.test_place import layered
from tests.strategies import hypergraphs

needs_gpu = pytest.mark.gpu


@pytest.fixture(scope="module", params=KINDS)
def gpu(request: pytest.FixtureRequest) -> Iterator[GpuEngine]:
    """A GPU, or the emulator with blocks so small that a few parts need several."""
    engine = start_gpu(GpuEngine, request.param)
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "emulated":
            patch.setattr(engine_gpu, "_TEAM_THREADS", 64)
            patch.setattr(engine.device, "multiprocessors", 7)
        yield engine


def task_and_cells(
    graph: Hypergraph, profile: HardwareProfile, seed: int, n_fixed: int = 0
) -> tuple[Task, np.ndarray]:
    """A task with some fixed parts, and random cells for all."""
    rng = np.random.default_rng(seed)
    usable = [
        (x, y)
        for x in range(profile.grid_width)
        for y in range(profile.grid_height)
        if profile.is_usable(x, y)
    ]
    where = rng.permutation(len(usable))
    fixed = {p: usable[where[p]] for p in range(min(n_fixed, graph.n_nodes))}
    task = Task(graph, make_site(Metric.of(profile), graph.n_nodes, fixed, set()), seed)
    cells = task.region.fixed.copy()
    cells[cells < 0] = rng.permutation(task.region.free_cells)[: np.count_nonzero(cells < 0)]
    return task, cells


DRAWN = (hypergraphs(min_nodes=1, max_nodes=12), profiles(), st.integers(0, 99), st.integers(0, 3))


@pytest.mark.parametrize("near", [True, False, None], ids=["links", "fields", "either"])
@given(*DRAWN, st.sampled_from([1, 2, EVERYWHERE]))
@settings(deadline=None, max_examples=15)
def test_swap_rounds_of_any_network(
    gpu: GpuEngine,
    near: bool | None,
    graph: Hypergraph,
    profile: HardwareProfile,
    seed: int,
    n_fixed: int,
    reach: int,
) -> None:
    """Round by round the same cells and the same saved cost."""
    if graph.n_nodes > profile.n_cores:
        return
    task, cells = task_and_cells(graph, profile, seed, n_fixed)
    with pytest.MonkeyPatch.context() as patch:
        if near is not None:
            patch.setattr(refine, "is_near", lambda _flows, _region, _reach: near)
        boards = [e.board(task.flows, task.region, cells) for e in (CpuEngine(), gpu)]
        for _ in range(30):
            saved = [boards[0].swap_round(reach), boards[1].swap_rounds(reach, 1)[1]]
            assert saved[0] == saved[1]
            assert np.array_equal(boards[0].cell_of, boards[1].cell_of)
            assert np.array_equal(boards[0].active, boards[1].active)
            if not saved[0]:
                break


@given(*DRAWN)
@settings(deadline=None, max_examples=15)
def test_annealing_of_any_network(
    gpu: GpuEngine, graph: Hypergraph, profile: HardwareProfile, seed: int, n_fixed: int
) -> None:
    if graph.n_nodes > profile.n_cores:
        return
    task, cells = task_and_cells(graph, profile, seed, n_fixed)
    other = task_and_cells(graph, profile, seed, n_fixed)[1]
    ends = [
        anneal(
            task.flows,
            task.region,
            [cells, other],
            seeds=[seed, 2**64 - 1],
            hots=[0.2, 0.6],
            work=20_000,
            engine=engine,
        )
        for engine in (CpuEngine(), gpu)
    ]
    for on_cpu, on_gpu in zip(*ends, strict=True):
        assert np.array_equal(on_cpu, on_gpu)


@pytest.mark.parametrize("seed", range(3))
def test_annealing_of_crowded_chips(gpu: GpuEngine, seed: int) -> None:
    """Nearly all proposals clash on a full chip, so that few passes do not settle them."""
    task, cells = task_and_cells(layered(5, 8, seed), mesh(8, 5), seed)
    ends = [
        anneal(task.flows, task.region, [cells], seeds=[seed], hots=[2.0], work=1, engine=engine)
        for engine in (CpuEngine(), gpu)
    ]
    assert np.array_equal(ends[0][0], ends[1][0])
    hot = np.full((3, 17), task.region.diameter * int(task.flows.rates.max()))
    seeds = np.arange(3, dtype=np.uint64)
    schedule = Schedule(np.full(4096, 1 << 16), hot, np.full((3, 17), 3), seeds)
    chains = [
        engine.chains(task.flows, task.region, [cells] * 3, schedule)
        for engine in (CpuEngine(), gpu)
    ]
    for first, n in ((0, 5), (5, 12)):
        assert np.array_equal(*(one.rounds(first, n) for one in chains))
        assert np.array_equal(*(one.cells() for one in chains))


@pytest.mark.parametrize("most", [1, 3, 1000])
def test_rounds_in_one_launch(gpu: GpuEngine, most: int) -> None:
    """However many rounds a launch has, they are those of the CPU, and it ends when they do."""
    task, cells = task_and_cells(layered(6, 6, 1), mesh(8, 8), 3)
    ours, theirs = (engine.board(task.flows, task.region, cells) for engine in (gpu, CpuEngine()))
    assert refine.is_near(task.flows, task.region, 1)
    done = most
    while done == most:
        done, saved = ours.swap_rounds(1, most)
        expected = [theirs.swap_round(1) for _ in range(done)]
        assert all(expected)
        assert sum(expected) == saved
        assert np.array_equal(ours.cell_of, theirs.cell_of)
    assert theirs.swap_round(1) == 0
    assert not ours.active.any()


@given(*DRAWN)
@settings(deadline=None, max_examples=15)
def test_nearest_cells_of_any_network(
    gpu: GpuEngine, graph: Hypergraph, profile: HardwareProfile, seed: int, n_fixed: int
) -> None:
    if graph.n_nodes > profile.n_cores:
        return
    task, _ = task_and_cells(graph, profile, seed, n_fixed)
    found = []
    for engine in (CpuEngine(), gpu):
        object.__setattr__(task, "engine", engine)
        found.append(PLACERS["minimum-distance"](task))
    assert np.array_equal(*found)
    assert len(np.unique(found[0])) == graph.n_nodes


@pytest.mark.parametrize("refinement", REFINEMENTS)
@pytest.mark.parametrize("chip", ["mesh", "torus", "hex-torus"])
def test_whole_placements(
    gpu: GpuEngine, refinement: str, chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "_gpu_engine", lambda: gpu)
    profile = mesh(8, 8, topology=chip, dead_cores=frozenset({(0, 0), (3, 2)}))
    graph = layered(5, 6)
    found = [place(graph, profile, refine=refinement, engine=name) for name in ("cpu", "gpu")]
    assert [one.engine for one in found] == ["cpu", "gpu"]
    assert np.array_equal(found[0].cores, found[1].cores)
    assert found[0].objective == found[1].objective


def test_auto_takes_a_gpu_for_many_parts_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "GPU_PARTS", 25)
    reason = "engine 'gpu' needs CuPy"
    monkeypatch.setattr(engines, "_gpu_engine", lambda: reason)
    assert place(layered(2, 3), mesh(), placer="hilbert").engine == "cpu"
    assert place(layered(5, 6), mesh(6, 6), placer="hilbert").engine == "cpu"
    with pytest.raises(EngineError, match="needs CuPy"):
        place(layered(2, 3), mesh(), engine="gpu")
    with pytest.raises(EngineError, match="unknown engine 'fpga'; known: auto, cpu, gpu"):
        place(layered(2, 3), mesh(), engine="fpga")
    fake = type("Fake", (CpuEngine,), {"name": "gpu"})()
    monkeypatch.setattr(engines, "_gpu_engine", lambda: fake)
    assert place(layered(2, 3), mesh(), placer="hilbert").engine == "cpu"
    assert place(layered(5, 6), mesh(6, 6), placer="hilbert").engine == "gpu"


def test_too_little_memory_is_said(gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu.device, "free_bytes", lambda: 10)
    task, cells = task_and_cells(layered(2, 3), mesh(), 0)
    with pytest.raises(EngineError, match=r"GPU memory, 0\.0 GiB are free .* use --engine cpu"):
        gpu.board(task.flows, task.region, cells)


@needs_gpu
@pytest.mark.usefixtures("full_work")
@pytest.mark.parametrize("topology", ["mesh", "hex-torus"])
def test_hundreds_of_parts(topology: str) -> None:
    gpu = start_gpu(GpuEngine, "device")
    n = 40 if topology == "mesh" else 20
    graph, profile = layered(n, n), mesh(48, 48, topology=topology)
    task, cells = task_and_cells(graph, profile, 1)
    for reach in (1, EVERYWHERE):
        found = [
            force_directed(task.flows, task.region, cells, reach=reach, engine=engine)
            for engine in (CpuEngine(), gpu)
        ]
        assert np.array_equal(*found)
    placed = [place(graph, profile, engine=name) for name in ("cpu", "gpu")]
    assert placed[1].engine == "gpu"
    assert np.array_equal(placed[0].cores, placed[1].cores)
