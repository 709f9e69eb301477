"""Which engine runs, and why not another."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from snnmap.errors import EngineError
from snnmap.partitioning.multilevel.engine_cpu import CpuEngine
from snnmap.partitioning.multilevel.gpu_memory import ANY_WORK, Work
from snnmap.partitioning.multilevel.level import Level

ENGINES = ("auto", "cpu", "gpu")
REMEDY = "use --engine cpu, or a GPU with more memory free"


def choose_engine(name: str) -> Any:
    """The engine of this name; ``"auto"`` takes a usable GPU, else the CPU.

    The engine's attribute `reason` tells what it runs on and, for ``"auto"``, why it was chosen.

    Raises:
        EngineError: unknown name, or a GPU that cannot be used, with the reason and the remedy.
    """
    if name not in ENGINES:
        raise EngineError(f"unknown engine {name!r}; known: {', '.join(ENGINES)}")
    if name == "cpu":
        return CpuEngine()
    found = _gpu_engine()
    if not isinstance(found, str):
        return found
    if name == "gpu":
        raise EngineError(found)
    engine = CpuEngine()
    engine.reason = f"CPU, since {found}"
    return engine


def fit_engine(name: str, engine: Any, level: Level, work: Work = ANY_WORK) -> tuple[Any, str]:
    """(the engine, why): for ``"auto"`` the CPU where the device's memory is too small.

    Args:
        name: what was asked for.
        engine: what :func:`choose_engine` gave.
        level: the finest level, on the host.
        work: what is to be done with it.

    Raises:
        EngineError: a GPU was asked for and its memory does not suffice; with the numbers.
    """
    if engine.name != "gpu":
        return engine, engine.reason
    plan = engine.plan(level, work)
    if plan.fits:
        return engine, f"{engine.reason}; {plan}"
    if name == "gpu":
        raise EngineError(f"{plan}; {REMEDY}")
    return CpuEngine(), f"CPU, since {plan}"


@lru_cache(maxsize=1)
def _gpu_engine() -> Any:
    """The GPU engine, or the reason why there is none; looked for once in a process."""
    from snnmap.partitioning.multilevel.engine_gpu import GpuEngine

    try:
        return GpuEngine()
    except EngineError as error:
        return str(error)
