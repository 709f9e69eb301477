"""Who does the integer work of placement: the CPU, or a GPU with the same results bit for bit.

An engine offers boards (see `refine`), boards side by side for annealing (see `anneal`) and the
search for the nearest free cells.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from snnmap.errors import EngineError
from snnmap.placement.engine_cpu import CpuEngine

ENGINES = ("auto", "cpu", "gpu")

GPU_PARTS = 1024
"""``"auto"`` asks for a GPU from so many parts on; for fewer the CPU is as fast."""


def choose_engine(name: str, n_parts: int) -> Any:
    """The engine of this name; ``"auto"`` takes a usable GPU if there are many parts.

    Raises:
        EngineError: unknown name, or a GPU that cannot be used, with the reason and the remedy.
    """
    if name not in ENGINES:
        raise EngineError(f"unknown engine {name!r}; known: {', '.join(ENGINES)}")
    if name == "cpu" or (name == "auto" and n_parts < GPU_PARTS):
        return CpuEngine()
    found = _gpu_engine()
    if not isinstance(found, str):
        return found
    if name == "gpu":
        raise EngineError(found)
    return CpuEngine()


@lru_cache(maxsize=1)
def _gpu_engine() -> Any:
    """The GPU engine, or the reason why there is none; looked for once in a process."""
    from snnmap.placement.engine_gpu import GpuEngine

    try:
        return GpuEngine()
    except EngineError as error:
        return str(error)
