"""Hypergraph + limits -> partition: the algorithms by name, and what judges their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from snnmap.errors import ConfigError, EngineError
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.partitioning.feasibility import check_feasible, check_result
from snnmap.partitioning.result import Partition
from snnmap.progress import SILENT, Progress

__all__ = ["ALGORITHMS", "Partition", "partition"]

Algorithm = Callable[..., Partition]


def _one_pass(hypergraph: Hypergraph, limits: Limits, **settings: Any) -> Partition:
    from snnmap.partitioning.baselines.one_pass import partition_one_pass

    return partition_one_pass(hypergraph, limits, **settings)


def _overlap(hypergraph: Hypergraph, limits: Limits, **settings: Any) -> Partition:
    from snnmap.partitioning.baselines.overlap import partition_overlap

    return partition_overlap(hypergraph, limits, **settings)


def _hierarchical(hypergraph: Hypergraph, limits: Limits, **settings: Any) -> Partition:
    from snnmap.partitioning.baselines.hierarchical import partition_hierarchical

    return partition_hierarchical(hypergraph, limits, **settings)


def _multilevel(hypergraph: Hypergraph, limits: Limits, **settings: Any) -> Partition:
    from snnmap.partitioning.multilevel import partition_multilevel

    return partition_multilevel(hypergraph, limits, **settings)


# Imported on first use: compiled code of the algorithms that nobody asks for is never loaded.
ALGORITHMS: dict[str, Algorithm] = {
    "one-pass": _one_pass,
    "overlap": _overlap,
    "hierarchical": _hierarchical,
    "multilevel": _multilevel,
}


def partition(
    hypergraph: Hypergraph,
    limits: Limits,
    *,
    algorithm: str = "multilevel",
    preset: str = "default",
    config: Any = None,
    engine: str = "auto",
    seed: int = 0,
    progress: Progress = SILENT,
) -> Partition:
    """Assign every node to a part within hard limits, for the least connectivity.

    Args:
        hypergraph: the network.
        limits: what a part may hold (inclusive).
        algorithm: a name in :data:`ALGORITHMS`.
        preset: time against quality, of ``multilevel`` only.
        config: its settings instead of a preset, of ``multilevel`` only.
        engine: ``"auto"``, ``"cpu"`` or ``"gpu"``; the baselines run on the CPU.
        seed: same seed, same partition.
        progress: who listens, and may stop the search early.

    Raises:
        LimitError: a limit that cannot be met, or was not: object, quantity, value, limit, remedy.
        ConfigError: an unknown algorithm, or a setting that it does not have.
        EngineError: an engine that is unknown or cannot run it.
    """
    chosen = ALGORITHMS.get(algorithm)
    if chosen is None:
        raise ConfigError(f"unknown algorithm {algorithm!r}; known: {', '.join(ALGORITHMS)}")
    settings: dict[str, Any] = {"seed": seed, "progress": progress}
    if algorithm == "multilevel":
        settings |= {"preset": preset, "config": config, "engine": engine}
    elif engine not in ("auto", "cpu"):
        raise EngineError(f"algorithm {algorithm!r} runs on engine 'cpu' only, not {engine!r}")
    elif preset != "default" or config is not None:
        raise ConfigError(f"algorithm {algorithm!r} has no presets and no settings but a seed")
    check_feasible(hypergraph, limits)
    found = chosen(hypergraph, limits, **settings)
    check_result(hypergraph, found.parts, limits)
    return found
