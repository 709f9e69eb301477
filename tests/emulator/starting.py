"""What runs on a GPU, started on a real device or on the emulator."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Callable
from typing import TypeVar

import pytest

from snnmap.errors import EngineError
from tests.emulator import cupy_on_host

T = TypeVar("T")
KINDS = [pytest.param("device", marks=pytest.mark.gpu), "emulated"]


def need_emulator() -> None:
    """Skip, and say so, where CUDA cannot be emulated."""
    if shutil.which("g++") is None or platform.machine() != "x86_64":
        pytest.skip("*** SKIPPED: emulating CUDA needs g++ on x86-64 ***")


def emulate(patch: pytest.MonkeyPatch) -> None:
    """Let the emulator stand in for CuPy."""
    patch.setitem(sys.modules, "cupy", cupy_on_host)


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
        return make()
