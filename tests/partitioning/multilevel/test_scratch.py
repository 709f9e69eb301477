"""Memory that searches and rounds have one after the other: on a GPU, and emulated."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from snnmap.partitioning.multilevel.config import RefinementConfig, SearchConfig
from snnmap.partitioning.multilevel.engine_cpu import CpuEngine
from snnmap.partitioning.multilevel.engine_gpu import GpuEngine
from snnmap.partitioning.multilevel.gpu_search import GpuSearch
from snnmap.partitioning.multilevel.refinement import refine
from snnmap.partitioning.multilevel.scratch import Scratch
from snnmap.partitioning.multilevel.search import Search
from tests.emulator.starting import KINDS, start_gpu
from tests.partitioning.multilevel.twins import random_level, tight_limits

BRIEF = SearchConfig(newcomers=5, population=4, batch=3, generations=2)


class Device:
    """Notes what may be kept."""

    def __init__(self, free: int) -> None:
        self.xp = SimpleNamespace(empty=np.empty)
        self.free, self.kept = free, 0

    def free_bytes(self) -> int:
        return self.free

    def keep_within(self, n_bytes: int) -> None:
        self.kept = n_bytes


def scratch_on(device: Any, most: int = 100, beside: int = 7) -> Scratch:
    scratch = Scratch(device)
    scratch.most, scratch.beside = most, beside
    return scratch


@pytest.mark.parametrize(
    ("free", "least", "wanted", "got"),
    [(1000, 10, 60, 60), (1000, 10, 160, 100), (1000, 130, 160, 130), (200, 10, 60, 50), (200, 55, 60, 55)],
)  # fmt: skip
def test_as_much_as_is_wanted_where_that_may_be(
    free: int, least: int, wanted: int, got: int
) -> None:
    device = Device(free)
    scratch = scratch_on(device)
    assert len(scratch.borrow(least, wanted)) == len(scratch) == got
    assert device.kept == 7 + got


def test_memory_is_kept_until_more_is_wanted() -> None:
    scratch = scratch_on(Device(1000))
    first = scratch.borrow(10, 60)
    assert np.shares_memory(first, scratch.borrow(40, 50))
    assert np.shares_memory(first, scratch.borrow(60, 60))
    assert not np.shares_memory(first, scratch.borrow(61, 61))
    scratch.release()
    assert len(scratch) == 0


def test_others_have_it_in_between() -> None:
    scratch = scratch_on(Device(1000))
    assert scratch.lend(1) is None
    memory, turn = scratch.borrow(60, 60), scratch.turn
    lent = scratch.lend(60)
    assert lent is not None
    assert np.shares_memory(memory, lent)
    assert scratch.turn != turn
    assert scratch.lend(61) is None


@pytest.fixture(scope="module", params=KINDS)
def gpu(request: pytest.FixtureRequest) -> GpuEngine:
    return start_gpu(GpuEngine, request.param)


def test_rounds_work_where_a_search_did_and_it_goes_on(
    gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same search once more finds its tables clear again."""
    taken: list[int] = []
    lend = Scratch.lend

    def note(self: Scratch, n_bytes: int) -> Any:
        memory = lend(self, n_bytes)
        taken.append(0 if memory is None else int(memory.data.ptr))
        return memory

    monkeypatch.setattr(Scratch, "lend", note)
    gpu.release()
    level = random_level(np.random.default_rng(3), n_nodes=90, n_nets=70, mean_pins=5)
    limits = tight_limits(level, 4)
    expected = Search(level, limits, BRIEF, None).run(1)[0]
    uploaded = gpu.upload(level)
    search = gpu.searcher(uploaded, limits, BRIEF, None)
    assert isinstance(search, GpuSearch)
    for _ in range(2):
        found = search.run(1)[0]
        assert np.array_equal(gpu.to_host(found.parts), expected.parts)
        where = int(gpu.scratch.borrow(1, 1).data.ptr)
        parts = np.random.default_rng(4).integers(0, 4, level.n_nodes).astype(np.int32)
        knobs: dict[str, Any] = {"rounds": 3, "schedule": (1.0,), "overload_price": 20.0, "roomy": False, "seed": 1}  # fmt: skip
        refined = []
        for engine, on_it in ((gpu, uploaded), (CpuEngine(), level)):
            given = (engine.from_host(limits), engine.from_host(parts), 4, RefinementConfig())
            refined.append(engine.to_host(refine(engine, on_it, *given, **knobs)))
        assert np.array_equal(*refined)
        assert taken.pop() == where
        gpu.scratch.borrow(1, 1)[:] = 255  # whatever rounds leave
