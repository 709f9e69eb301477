"""Device memory: planned, kept to, short, and too small; the same partition in every case."""

from __future__ import annotations

import gc
import re
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from snnmap.errors import EngineError
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.partitioning.multilevel import descent, engine_gpu, gpu_memory, partition_multilevel
from snnmap.partitioning.multilevel import engine as choice
from snnmap.partitioning.multilevel.config import PRESETS, resolve_config
from snnmap.partitioning.multilevel.engine_cpu import CpuEngine
from snnmap.partitioning.multilevel.engine_gpu import GpuEngine
from snnmap.partitioning.multilevel.gpu_memory import (
    MODES,
    Mode,
    Plan,
    Work,
    foresee,
    plan_memory,
)
from snnmap.partitioning.multilevel.hierarchy import Finest, Hierarchy
from snnmap.partitioning.multilevel.level import Level, pose_problem
from snnmap.progress import Progress
from tests.emulator import cupy_on_host
from tests.emulator.cupy_on_host import cuda, memory
from tests.emulator.starting import KINDS, emulate, start_gpu
from tests.partitioning.cases import ring
from tests.partitioning.multilevel import twins

LIMITS = Limits(max_size=128, max_inbound=520)
SETTINGS: dict[str, Any] = {
    "coarsening": {"small_pins": 1000},
    "search": {"population": 2, "batch": 1, "generations": 1},
    "refinement": {"rounds": 2, "finest_rounds": 2},
    "restarts": 1,
}


def reservoir(n: int = 500, fan_out: int = 40) -> Hypergraph:
    return ring(n, fan_out, reach=2 * fan_out, seed=1)


SMALL_MODES = Mode(False, 1 << 16), Mode(True, 1 << 12)


class Hearing(Progress):
    """Keeps what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> GpuEngine:
    """An emulated GPU that whoever asks for an engine gets, with little memory for large tables."""
    engine = start_gpu(GpuEngine, "emulated")
    emulate(monkeypatch)
    monkeypatch.setattr(choice, "_gpu_engine", lru_cache(lambda: engine))
    monkeypatch.setattr(gpu_memory, "MODES", SMALL_MODES)
    monkeypatch.setattr(memory, "capacity", 1 << 36)
    return engine


def partition(h: Hypergraph, engine: str) -> tuple[Any, list[str]]:
    heard = Hearing()
    found = partition_multilevel(h, LIMITS, config=SETTINGS, engine=engine, progress=heard)
    return found, heard.lines


def plan_for(h: Hypergraph, free: int = 1 << 36) -> Plan:
    problem = pose_problem(h, LIMITS)
    return plan_memory(
        problem.level, free, "emulator", foresee(problem, resolve_config("default", SETTINGS))
    )


@pytest.mark.parametrize("mode", ["lean", "short"])
def test_same_partition_within_the_plan(
    gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    h = reservoir()
    plan = plan_for(h)
    assert plan.short < plan.lean
    room = plan.lean if mode == "lean" else (plan.lean + plan.short) // 2
    gc.collect()  # what other tests left would go meanwhile
    before = memory.live
    monkeypatch.setattr(memory, "capacity", before + room)  # allocating more is an error
    monkeypatch.setattr(memory, "peak", 0)
    found, lines = partition(h, "gpu")
    peak = memory.peak - before
    monkeypatch.setattr(memory, "capacity", 1 << 36)
    assert found.engine == "gpu"
    assert gpu.spills == (mode == "short")
    planned = plan.lean if mode == "lean" else plan.short
    assert planned // 3 < peak <= planned
    (line,) = lines
    assert ("with levels in host memory" in line) == gpu.spills
    assert (found.parts == partition(h, "cpu")[0].parts).all()


def test_nothing_stays_on_the_device(gpu: GpuEngine) -> None:
    """But what the engine keeps for the next partition; also before Python collects cycles."""
    h = Hypergraph.from_hedges(
        60, np.arange(60), np.arange(61) * 5, (np.arange(300) * 7) % 60, np.ones(60)
    )
    gc.collect()
    before = memory.live
    gc.disable()
    try:
        for _ in range(2):
            assert partition(h.grouped(), "gpu")[0].engine == "gpu"
            assert memory.live - before == len(gpu.scratch) > 0
    finally:
        gc.enable()


def test_levels_are_refined_again_where_rounds_gave_up(
    gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A level is begun before the one before is known to be done; if it is not, all begins again."""
    h, ways = reservoir(), []
    refine_levels = descent._refine_levels

    def note(*given: Any, deferred: bool) -> Any:
        ways.append(deferred)
        return refine_levels(*given, deferred=deferred)

    monkeypatch.setattr(descent, "_refine_levels", note)
    expected = partition(h, "cpu")[0].parts
    assert (partition(h, "gpu")[0].parts == expected).all()
    assert ways == [True, True]  # once on each engine
    monkeypatch.setattr(gpu, "entries_of_net", 0)
    assert (partition(h, "gpu")[0].parts == expected).all()
    assert ways == [True, True, True, False]


@pytest.mark.parametrize("mode", ["lean", "short"])
def test_the_limit_of_cupy_is_kept(gpu: GpuEngine, mode: str) -> None:
    """Of whoever set it: what is planned fits it, and it is the same afterwards."""
    h, pool = reservoir(), cupy_on_host.get_default_memory_pool()
    plan = plan_for(h)
    gc.collect()
    room = plan.lean if mode == "lean" else (plan.lean + plan.short) // 2
    limit = memory.live + room
    pool.set_limit(limit)
    try:
        found, (line,) = partition(h, "gpu")
        assert pool.get_limit() == limit
    finally:
        pool.set_limit(0)
    assert f"{room / 2**20:.1f} MiB are free on emulator within CuPy's limit" in line
    assert gpu.spills == (mode == "short")
    assert (found.parts == partition(h, "cpu")[0].parts).all()


def test_too_small_ends_with_the_numbers(gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    h = reservoir()
    plan = plan_for(h)
    monkeypatch.setattr(memory, "capacity", memory.live + plan.short - 1)
    words = (
        rf"^the network needs at least {plan.short / 2**20:.1f} MiB of GPU memory \(17,672 pins, "
        rf"500 nets, 500 nodes\), .* MiB are free on emulator; use --engine cpu, or a GPU with"
    )
    with pytest.raises(EngineError, match=words) as caught:
        partition(h, "gpu")
    assert "\n" not in str(caught.value)
    found, lines = partition(h, "auto")
    assert found.engine == "cpu"
    assert re.search("^engine: CPU, since the network needs at least", lines[0])


def test_plan_that_was_wrong(gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory runs out midway: the numbers, or the CPU."""
    h = reservoir()
    plan = plan_for(h)
    monkeypatch.setattr(gpu.device, "free_bytes", lambda: 1 << 36)
    monkeypatch.setattr(memory, "capacity", memory.live + plan.lean // 3)
    words = r"the GPU is out of memory: .* free \(at kernel '\w+'; planned: the network needs about"
    with pytest.raises(EngineError, match=words) as caught:
        partition(h, "gpu")
    assert "\n" not in str(caught.value)
    found, lines = partition(h, "auto")
    assert found.engine == "cpu"
    assert len(lines) == 2
    assert lines[1].startswith("engine: CPU, since the GPU is out of memory")
    monkeypatch.setattr(memory, "capacity", 1 << 36)
    assert (found.parts == partition(h, "cpu")[0].parts).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "step", ["contract", "moves", "sequence", "refine", "match", "compress", "merge"]
)
@pytest.mark.parametrize("spills", [False, True])
def test_steps_with_little_scratch(
    monkeypatch: pytest.MonkeyPatch, kind: str, step: str, spills: bool
) -> None:
    engine = start_gpu(GpuEngine, kind)
    monkeypatch.setattr(gpu_memory, "MODES", 2 * (Mode(spills, 1 << 12),))
    rng = np.random.default_rng(6)
    level = twins.random_level(rng, n_nodes=120, n_nets=90, mean_pins=12)
    expected = twins.run_step(CpuEngine(), step, level, 6)
    found = twins.run_step(engine, step, level, 6)
    assert (engine.spills, engine.scratch_bytes) == (spills, 1 << 12)
    assert list(twins.differences(expected, found)) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spills", [False, True])
def test_levels_come_back(kind: str, spills: bool) -> None:
    engine = start_gpu(GpuEngine, kind)
    rng = np.random.default_rng(2)
    host = twins.random_level(rng, n_nodes=90, n_nets=70, mean_pins=9)
    level = engine.upload(host)
    engine.spills = spills
    slim = engine.shed(level)
    assert isinstance(slim.net_pins, engine.xp.ndarray) != spills
    assert len(slim.node_nets) == 0
    assert engine.restore(level) is level
    for name, mine, other in zip(
        Level._fields, engine.download(engine.restore(slim)), host, strict=True
    ):
        assert mine.dtype == other.dtype, name
        assert (mine == other).all(), name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spills", [False, True])
def test_levels_that_are_not_worked_on(kind: str, spills: bool) -> None:
    """On the host where memory is short: all but the coarsest, which is worked on."""
    engine = start_gpu(GpuEngine, kind)
    host = twins.random_level(np.random.default_rng(7), n_nodes=90, n_nets=70, mean_pins=9)
    level, n = engine.upload(host), 90
    engine.spills, engine.kept_share = spills, 1  # none is dropped
    levels, expected = Hierarchy(engine, Finest(engine, level)), host
    for _ in range(3):
        clusters = (np.arange(n) // 2).astype(np.int32)
        n = (n + 1) // 2
        levels.coarsen(engine.from_host(clusters), n)
        expected = CpuEngine().contract(expected, clusters, n)
    there = [isinstance(one.net_pins, engine.xp.ndarray) for one in levels._levels if one]
    assert there == [not spills, not spills, True]
    assert isinstance(levels._finest.slim.net_pins, engine.xp.ndarray) != spills
    for mine, other in zip(engine.download(levels.level(-1)), expected, strict=True):
        assert np.array_equal(mine, other)
    assert isinstance(levels.for_rounds(1).net_pins, engine.xp.ndarray)


def test_plan_of_large_reservoirs() -> None:
    """At most four times the bytes of their pins, known from their size alone."""
    for n, fan_out in ((65_536, 192), (262_144, 256)):
        work = Work(merged=PRESETS["default"].enough_nodes(n // 512))
        nets, pins = np.zeros(n, np.int64), np.zeros(n * fan_out, np.int32)
        offsets, ids = np.arange(n + 1) * fan_out, np.zeros(n, np.int32)
        own = np.arange(n + 1)
        one = np.ones((n, 1), np.int64)
        level = Level(offsets, pins, own, ids, nets, offsets, pins, own, ids, nets, nets, one, one)
        plan = plan_memory(level, 1 << 40, "some GPU", work)
        raw = 4 * n * (fan_out + 1)
        assert plan.mode == MODES[0]
        assert 3 * raw < plan.lean < 4 * raw
        assert 2 * raw < plan.short < 3.6 * raw
        assert plan_memory(level, 1 << 40, "some GPU", Work(wide=True)).lean > plan.lean
        block = raw // 32 * 127  # but for tiny arrays, all that may be held
        assert (plan.held, plan.most, plan.reserved) == (4 * raw, 7 * raw // 2, block)
        assert plan.search == max(29 * raw // 8, 146 << 20)
        for free, held in (
            (7 * raw, max(7 * raw // 2, plan.lean)),
            (plan.lean, plan.lean),
            (plan.lean - 1, plan.short),
        ):
            tight = plan_memory(level, free, "some GPU", work)
            assert (tight.held, tight.reserved) == (held, held // 128 * 127)
            needed = tight.needed * 16 // 17  # the rest is lost between arrays
            assert needed - 512 < tight.most <= needed
            assert tight.search == (0 if free < plan.lean else (free - plan.lean) // 2)
        crowded = plan_memory(level, 1 << 40, "some GPU", Work(merged=8 * n))
        assert crowded.lean > 16 * 4096**2


def test_what_is_foreseen() -> None:
    problem = pose_problem(reservoir(), Limits(max_size=128, max_inbound=125))
    found = {name: foresee(problem, config) for name, config in PRESETS.items()}
    assert {name for name, work in found.items() if work.wide} == {"paper"}
    assert problem.least_parts() == 4
    assert {name: work.merged for name, work in found.items()} == {
        "fast": 48,
        "default": 48,
        "quality": 32,
        "paper": 32,
    }


class FullPool:
    """A pool that has no room until it lets go of blocks, or of its limit."""

    def __init__(self, helps: str) -> None:
        self.helps = helps
        self.done: list[str] = []

    def malloc(self, n_bytes: int) -> int:
        if self.helps not in self.done:
            raise cuda.memory.OutOfMemoryError
        return n_bytes

    def free_all_blocks(self) -> None:
        self.done.append("blocks")

    def get_limit(self) -> int:
        return 99

    def set_limit(self, size: int) -> None:
        self.done.append("limit" if size == 0 else f"limit {size} again")


@pytest.mark.parametrize("helps", ["blocks", "limit", "nothing"])
def test_pool_at_its_limit(monkeypatch: pytest.MonkeyPatch, helps: str) -> None:
    device, pool = start_gpu(GpuEngine, "emulated").device, FullPool(helps)
    monkeypatch.setattr(cupy_on_host, "get_default_memory_pool", lambda: pool)
    if helps == "nothing":
        with pytest.raises(cuda.memory.OutOfMemoryError):
            device.pools.allocate(77)
    else:
        assert device.pools.allocate(77) == 77
    assert pool.done == ["blocks", "limit", "limit 99 again"][: 1 if helps == "blocks" else 3]


@pytest.mark.parametrize("least", [0, 1 << 32])
def test_the_limit_ends_with_the_work(
    gpu: GpuEngine, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_gpu, "LEAST_POOL", least)
    pool = cupy_on_host.get_default_memory_pool()
    level = twins.random_level(np.random.default_rng(0), n_nodes=50, n_nets=20, mean_pins=5)
    with gpu.guard():
        before = memory.live
        kept = gpu.upload(level)
        assert pool.get_limit() == before + max(gpu.plan(level).held, least)
    assert kept.n_nodes == 50
    assert pool.get_limit() == 0
