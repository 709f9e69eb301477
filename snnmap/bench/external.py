"""Other people's partitioners, if they are installed, behind the interface of our algorithms.

They know block weights, not inbound axons: Omega is the block weight, and the number of blocks is
raised from its lower bound until Delta and every other limit holds as well.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from snnmap.errors import ConfigError, EngineError, LimitError
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.parallel import thread_count
from snnmap.partitioning import Partition
from snnmap.partitioning.bounds import parts_lower_bound
from snnmap.partitioning.feasibility import check_result
from snnmap.progress import SILENT, Progress

Array = np.ndarray[Any, Any]
Split = Callable[[int], Array]

SETTINGS = Path("km1_kKaHyPar_sea20.ini")
MOST_PINS = 100_000_000
RATE_SCALE = 1000
"""Rates are rounded to thousandths: external partitioners take whole weights."""


def mtkahypar(
    hypergraph: Hypergraph, limits: Limits, *, seed: int = 0, progress: Progress = SILENT
) -> Partition:
    """Mt-KaHyPar (default preset), https://github.com/kahypar/mt-kahypar.

    Raises:
        EngineError: the package is not installed.
        ConfigError: a network too large for its interface.
        LimitError: no number of parts was enough.
    """
    library = _load("mtkahypar")
    kit = _initialised(library)
    context = kit.context_from_preset(library.PresetType.DEFAULT)
    context.logging = False
    library.set_seed(seed)
    rows, weights = _plain(hypergraph)
    sizes = hypergraph.node_sizes.tolist()
    graph = kit.create_hypergraph(context, len(sizes), len(rows), rows, sizes, weights)

    def split(k: int) -> Array:
        context.set_partitioning_parameters(k, _imbalance(sizes, limits, k), library.Objective.KM1)
        return np.array(graph.partition(context).get_partition(), np.int32)

    return _raise_parts(hypergraph, limits, "mtkahypar", split, seed, progress)


def kahypar(
    hypergraph: Hypergraph, limits: Limits, *, seed: int = 0, progress: Progress = SILENT
) -> Partition:
    """KaHyPar, https://github.com/kahypar/kahypar; its settings are a file the user names.

    The file is ``km1_kKaHyPar_sea20.ini`` of KaHyPar's repository, in the current folder.

    Raises:
        EngineError: the package is not installed, or the settings file is not there.
        ConfigError: a network too large for its interface.
        LimitError: no number of parts was enough.
    """
    library = _load("kahypar")
    rows, weights = _plain(hypergraph)
    sizes = hypergraph.node_sizes.tolist()
    offsets = np.cumsum([0, *(len(row) for row in rows)]).tolist()
    pins = [pin for row in rows for pin in row]

    def split(k: int) -> Array:
        graph = library.Hypergraph(len(sizes), len(rows), offsets, pins, k, weights, sizes)
        context = library.Context()
        context.loadINIconfiguration(str(SETTINGS))
        context.setK(k)
        context.setEpsilon(_imbalance(sizes, limits, k))
        context.setSeed(seed)
        context.suppressOutput(True)
        library.partition(graph, context)
        return np.array([graph.blockID(node) for node in range(len(sizes))], np.int32)

    return _raise_parts(hypergraph, limits, "kahypar", split, seed, progress)


EXTERNAL: dict[str, Callable[..., Partition]] = {"mtkahypar": mtkahypar, "kahypar": kahypar}
"""Names on the command line of ``snnmap bench``."""


def _raise_parts(
    hypergraph: Hypergraph,
    limits: Limits,
    name: str,
    split: Split,
    seed: int,
    progress: Progress,
) -> Partition:
    """Try more and more parts until every limit holds."""
    k = max(parts_lower_bound(hypergraph, limits), 1)
    problem: LimitError | None = None
    while k <= hypergraph.n_nodes and not progress.expired():
        blocks = split(k) if k > 1 else np.zeros(hypergraph.n_nodes, np.int32)
        _, parts = np.unique(blocks, return_inverse=True)  # without empty blocks
        try:
            check_result(hypergraph, parts.astype(np.int32), limits)
        except LimitError as error:
            problem = error
            k = max(k + 1, round(k * 1.03))
            continue
        n_parts = int(parts.max(initial=-1)) + 1
        return Partition(parts.astype(np.int32), n_parts, name, seed=seed, config={"k": k})
    raise problem or LimitError(
        name, "parts", k, hypergraph.n_nodes, remedy="give it more time or a larger chip"
    )


def _imbalance(sizes: list[int], limits: Limits, k: int) -> float:
    """Epsilon that makes the heaviest block allowed weigh max_size."""
    average = -(-sum(sizes) // k)
    return max(limits.max_size / average - 1, 0.0) if limits.max_size else 0.03


def _plain(hypergraph: Hypergraph) -> tuple[list[list[int]], list[int]]:
    """Pins and whole weight of every h-edge that can be cut, spelled out."""
    if hypergraph.n_pins > MOST_PINS:
        raise ConfigError(
            f"network {hypergraph.name!r}: {hypergraph.n_pins:,} pins exceed the {MOST_PINS:,} "
            "that are handed to an external partitioner"
        )
    cuttable = np.flatnonzero(hypergraph.hedge_cardinalities > 1)
    weights = np.rint(hypergraph.weights[cuttable] * RATE_SCALE).astype(np.int64)
    return [hypergraph.pins(int(e))[0].tolist() for e in cuttable], weights.tolist()


@cache
def _initialised(library: Any) -> Any:
    """Mt-KaHyPar's entry, made once a process."""
    return library.initialize(thread_count())


def what_is_missing(name: str) -> str:
    """Why an external partitioner cannot run here, in one line; "" if it can."""
    try:
        import_module(name)
    except ImportError:
        return f"{name} is not installed; install it with: pip install {name}"
    if name == "kahypar" and not SETTINGS.is_file():
        return f"kahypar needs {SETTINGS} of its repository in the current folder"
    return ""


def _load(name: str) -> Any:
    problem = what_is_missing(name)
    if problem:
        raise EngineError(problem)
    return import_module(name)
