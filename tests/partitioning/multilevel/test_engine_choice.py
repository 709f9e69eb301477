"""Which engine runs, and what is said when the GPU cannot."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from snnmap.errors import EngineError
from snnmap.limits import Limits
from snnmap.networks import load_network
from snnmap.partitioning.multilevel import engine as choice
from snnmap.partitioning.multilevel import partition_multilevel
from snnmap.partitioning.multilevel.config import resolve_config
from snnmap.partitioning.multilevel.device import Device, find_cupy, kernel_source
from snnmap.partitioning.multilevel.engine import choose_engine
from snnmap.partitioning.multilevel.engine_gpu import GpuEngine
from snnmap.partitioning.multilevel.gpu_memory import foresee, plan_memory
from snnmap.partitioning.multilevel.level import pose_problem
from snnmap.progress import Progress
from tests.emulator import cupy_on_host
from tests.emulator.starting import emulate, need_emulator, start_gpu
from tests.partitioning.multilevel import twins

INSTALL = r"pip install 'snnmap\[gpu13\]'"


@pytest.fixture(autouse=True)
def _forget_what_was_found() -> Iterator[None]:
    choice._gpu_engine.cache_clear()
    yield
    choice._gpu_engine.cache_clear()


def without_cupy(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    real = builtins.__import__

    def fail(name: str, *args: Any, **named: Any) -> Any:
        if name == "cupy":
            raise error
        return real(name, *args, **named)

    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(builtins, "__import__", fail)


def with_driver(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    """A CuPy whose driver counts `answer` devices, or raises it."""

    def count() -> int:
        if isinstance(answer, Exception):
            raise answer
        return int(answer)

    runtime = SimpleNamespace(**{**vars(cupy_on_host.cuda.runtime), "getDeviceCount": count})
    fake = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))
    monkeypatch.setitem(sys.modules, "cupy", fake)


def driver_error(status: int) -> Exception:
    error = cupy_on_host.cuda.runtime.CUDARuntimeError("cudaErrorSomething: words of the driver")
    error.status = status
    return error


def test_unknown_engine() -> None:
    with pytest.raises(EngineError, match="unknown engine 'tpu'; known: auto, cpu, gpu"):
        choose_engine("tpu")


def test_cpu_is_always_there() -> None:
    assert choose_engine("cpu").name == "cpu"


def test_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    without_cupy(monkeypatch, ModuleNotFoundError("No module named 'cupy'", name="cupy"))
    with pytest.raises(EngineError, match=f"CuPy, which is not installed; {INSTALL}"):
        choose_engine("gpu")
    engine = choose_engine("auto")
    assert engine.name == "cpu"
    assert "CuPy, which is not installed" in engine.reason


@pytest.mark.parametrize(
    "error",
    [ImportError("libnvrtc.so.13:\n cannot open"), ModuleNotFoundError("fastrlock", name="x.y")],
)
def test_broken_cupy(monkeypatch: pytest.MonkeyPatch, error: ImportError) -> None:
    without_cupy(monkeypatch, error)
    with pytest.raises(EngineError, match=f"CuPy cannot be loaded: .*; {INSTALL}") as caught:
        choose_engine("gpu")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (0, "there is no CUDA device; nvidia-smi"),
        (driver_error(100), "there is no CUDA device; nvidia-smi"),
        (driver_error(35), "the NVIDIA driver is missing or too old for CuPy's CUDA 13.0; update"),
        (driver_error(999), "the CUDA driver answers: cudaErrorSomething: words of the driver"),
    ],
)
def test_without_a_usable_device(monkeypatch: pytest.MonkeyPatch, answer: Any, words: str) -> None:
    with_driver(monkeypatch, answer)
    with pytest.raises(EngineError, match=re.escape(words)):
        choose_engine("gpu")
    engine = choose_engine("auto")
    assert engine.name == "cpu"
    assert words in engine.reason


def test_auto_takes_the_gpu_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    need_emulator()
    emulate(monkeypatch)
    assert find_cupy() is cupy_on_host
    engine = choose_engine("auto")
    assert (engine.name, engine.reason) == ("gpu", "GPU emulator")
    assert choose_engine("gpu") is engine


def test_network_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = start_gpu(GpuEngine, "emulated")
    level = twins.random_level(np.random.default_rng(0), n_nodes=50, n_nets=20, mean_pins=5)
    plan = engine.plan(level)
    assert plan.short > sum(a.nbytes for a in level)
    monkeypatch.setattr(engine.device, "free_bytes", lambda: plan.short)
    engine.upload(level)
    monkeypatch.setattr(engine.device, "free_bytes", lambda: plan.short - 1)
    with pytest.raises(EngineError, match=rf"at least .* MiB .*{level.n_pins} pins.*are free"):
        engine.upload(level)


class Hearing(Progress):
    """Keeps what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


@pytest.mark.parametrize("spare", [0, -1], ids=["fits", "short"])
def test_planned_before_it_starts(monkeypatch: pytest.MonkeyPatch, spare: int) -> None:
    gpu = start_gpu(GpuEngine, "emulated")
    emulate(monkeypatch)
    monkeypatch.setattr(choice, "_gpu_engine", lru_cache(lambda: gpu))
    h, limits = load_network("lenet").grouped(), Limits(max_size=1024, max_inbound=4096)
    problem = pose_problem(h, limits)
    work = foresee(problem, resolve_config())
    plan = plan_memory(problem.level, 1 << 40, "", work)
    needed = plan.lean if spare >= 0 else plan.short
    monkeypatch.setattr(gpu.device, "free_bytes", lambda: needed + spare)
    brief = {"search": {"population": 1, "generations": 0}, "refinement": {"finest_rounds": 1}}
    heard = Hearing()
    if spare < 0:
        with pytest.raises(
            EngineError, match=r"needs at least .* MiB .* are free on .*--engine cpu"
        ):
            partition_multilevel(h, limits, engine="gpu", config=brief, progress=heard)
        assert heard.lines == []
    found = partition_multilevel(h, limits, engine="auto", config=brief, progress=heard)
    mib = f"{needed / 2**20:.1f} MiB"
    words = "GPU emulator; " if spare == 0 else "CPU, since "
    (line,) = heard.lines
    how = "about" if spare == 0 else "at least"
    assert line.startswith(f"engine: {words}the network needs {how} {mib} of GPU memory (")
    assert found.engine == ("gpu" if spare == 0 else "cpu")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            cupy_on_host.cuda.driver.CUDADriverError("CUDA_ERROR_ILLEGAL_ADDRESS:\n bad"),
            "the GPU failed at or before kernel 'sum_rows': CUDA_ERROR_ILLEGAL_ADDRESS: bad",
        ),
        (
            cupy_on_host.cuda.memory.OutOfMemoryError("Out of memory allocating 1 byte"),
            "the GPU is out of memory: 64.0 GiB in all, 64.0 GiB free (at kernel 'sum_rows'",
        ),
    ],
)
def test_faults_name_the_kernel(
    monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    engine = start_gpu(GpuEngine, "emulated")
    level = twins.random_level(np.random.default_rng(0), n_nodes=9, n_nets=5, mean_pins=3)
    level = engine.upload(level)

    def fail(*args: Any, **named: Any) -> None:
        raise error

    monkeypatch.setattr(cupy_on_host.RawKernel, "__call__", fail)
    with pytest.raises(EngineError, match=re.escape(words)), engine.guard():
        engine.node_loads(level)


def test_kernels_that_do_not_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    need_emulator()
    emulate(monkeypatch)
    device = Device()
    with pytest.raises(EngineError, match="at or before kernel 'sum_rows'"), device.guard():
        device.kernel("rows", "sum_rows", ("-DN_ADDITIVE=oops", "-DN_DISTINCT(=("))


def test_sources_contain_their_headers() -> None:
    for name in ("rows", "table", "refine", "sequence", "cluster", "matching", "neighbours"):
        source = kernel_source(name)
        assert "#include" not in source
        assert "SplitMix64" in source
