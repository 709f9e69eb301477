"""What runs on a GPU, started on a real device or on the emulator."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Callable
from typing import TypeVar

import pytest

from snnmap.errors import EngineError
from snnmap.partitioning.multilevel.engine_gpu import GpuEngine
from tests.emulator import cupy_on_host

T = TypeVar("T")
KINDS = [pytest.param("device", marks=pytest.mark.gpu), "emulated"]


def need_emulator() -> None:
    """Skip, and say so, where CUDA cannot be emulated."""
    if shutil.which("g++") is None or platform.machine() != "x86_64":
        pytest.skip("*** SKIPPED: emulating CUDA needs g++ on x86-64 ***")


FEW_THREADS = {"search_threads": 64, "round_threads": 64}  # of a block: fibers are slow


def emulate(patch: pytest.MonkeyPatch) -> None:
    """Let the emulator stand in for CuPy, with few threads in a block."""
    patch.setitem(sys.modules, "cupy", cupy_on_host)
    for name, few in FEW_THREADS.items():
        patch.setattr(GpuEngine, name, few)


def start_gpu(make: Callable[[], T], kind: str) -> T:
    """Call `make` on a real device, or on the emulator; skip, and say so, where that is not there."""
    if kind == "device":
        try:
            return make()
        except EngineError as error:
            pytest.skip(f"*** SKIPPED, NOT TESTED ON A GPU: {error} ***")
    need_emulator()
    with pytest.MonkeyPatch.context() as patch:
        emulate(patch)
        made = make()
    if isinstance(made, GpuEngine):
        for name, few in FEW_THREADS.items():
            setattr(made, name, few)
    return made
