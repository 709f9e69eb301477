"""``snnmap warmup``: compile everything that is compiled on first use, now."""

from __future__ import annotations

import atexit
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from snnmap.parallel import thread_count
from snnmap.progress import Progress

if TYPE_CHECKING:
    from snnmap.cli.progress import TerminalProgress
    from snnmap.hypergraph import Hypergraph


def command() -> None:
    """Compile what would otherwise be compiled on first use.

    snnmap's inner loops are compiled for this machine when they first run, which takes some
    seconds, and kept beside the package (or in the user's cache) for every later run. Run this once
    after an installation, for instance when building a container image.

    Try:

        snnmap warmup
    """
    from snnmap.cli.progress import listening

    began = time.perf_counter()
    with listening() as progress:
        exercise(progress)
    typer.echo(f"compiled and cached in {time.perf_counter() - began:.1f} s")


def exercise(progress: Progress) -> None:
    """Map a layered and an unstructured network with every algorithm; improve and simulate one."""
    from snnmap.hardware import load_profile
    from snnmap.mapping import map_network
    from snnmap.networks import load_network
    from snnmap.partitioning import ALGORITHMS
    from snnmap.traffic import poisson_spikes, simulate

    networks = [load_network("lenet"), _unstructured()]
    profile = load_profile("loihi64")
    n_runs = len(ALGORITHMS) * len(networks) + 1
    progress.start("compiling (once)", total=n_runs, unit="runs")
    for name in ALGORITHMS:
        for network in networks:
            map_network(network, profile, algorithm=name)
            progress.advance(note=name)
    mapping = map_network(networks[0], profile, algorithm="one-pass", joint=True)
    assert mapping.placement is not None
    spikes = poisson_spikes(mapping.part_graph, 10)
    simulate(mapping.part_graph, mapping.placement, profile, spikes)
    progress.advance(note="joint improvement, simulation")
    progress.finish()


def _unstructured(n_nodes: int = 4000, fan_out: int = 40) -> Hypergraph:
    from snnmap.hypergraph import Hypergraph

    rng = np.random.default_rng(0)
    near = np.arange(n_nodes)[:, None] + rng.integers(-200, 200, (n_nodes, fan_out))
    return Hypergraph.from_hedges(
        n_nodes,
        np.arange(n_nodes),
        np.arange(0, n_nodes * fan_out + 1, fan_out),
        (near % n_nodes).ravel(),
        rng.lognormal(size=n_nodes),
        name="unstructured",
    )


def announce(progress: TerminalProgress, *, placing: bool = True) -> None:
    """Have the progress say that this run compiles, if it does and takes long.

    What refinement, placement and traffic need is then compiled by a second process, while this one
    is busy with compression and search: Numba compiles on one core only, and both share the cache.

    Args:
        progress: who says it.
        placing: whether this run will place parts.
    """
    if is_compiled():
        return
    progress.excuse("first use: compiling (once; later runs start at once)")
    if placing and thread_count() > 1:
        command = "from snnmap.cli.warmup import compile_later_steps; compile_later_steps()"
        quiet: Any = {f"std{name}": subprocess.DEVNULL for name in ("in", "out", "err")}
        helper = subprocess.Popen([sys.executable, "-c", command], **quiet)
        atexit.register(helper.wait)


def compile_later_steps() -> None:
    """Refine, place and measure a few nodes, so that all compiled code that this takes is in the cache."""
    from snnmap.hardware import load_profile
    from snnmap.limits import Limits
    from snnmap.partitioning.metrics import measure
    from snnmap.partitioning.multilevel import partition_multilevel
    from snnmap.placement import place
    from snnmap.traffic import measure_traffic

    few, unsearched = _unstructured(n_nodes=300, fan_out=8), {"coarsening": {"small_pins": 0}}
    partition_multilevel(few, Limits(max_size=20, max_inbound=90), config=unsearched, engine="cpu")
    profile = load_profile("loihi64")
    parts = _unstructured(n_nodes=40, fan_out=8)
    measure(parts, np.arange(parts.n_nodes))
    measure_traffic(parts, place(parts, profile), profile)


def is_compiled() -> bool:
    """Whether an earlier run left compiled code that this one can use."""
    from snnmap.partitioning.multilevel import _kernels_search as kernels

    name = kernels.__name__.rpartition(".")[2]
    compiled = (value for value in vars(kernels).values() if hasattr(value, "stats"))
    return any(any(Path(k.stats.cache_path).glob(f"{name}.*.nbi")) for k in compiled)
