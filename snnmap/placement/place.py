"""One call from a part-level hypergraph and a chip to a core for every part."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from functools import partial

import numpy as np

from snnmap.errors import ConfigError
from snnmap.hardware import HardwareProfile
from snnmap.hypergraph import Hypergraph
from snnmap.parallel import run_side_by_side
from snnmap.placement.engine import choose_engine
from snnmap.placement.metric import Metric
from snnmap.placement.placers import PLACERS
from snnmap.placement.refine import Board
from snnmap.placement.refinements import REFINEMENTS
from snnmap.placement.region import Core, make_site
from snnmap.placement.result import Placement
from snnmap.placement.task import Task
from snnmap.progress import SILENT, Progress

AUTO = "auto"
"""Name of the choice among all placers."""


def place(
    part_graph: Hypergraph,
    profile: HardwareProfile,
    *,
    placer: str = "auto",
    refine: str | None = None,
    engine: str = "auto",
    seed: int = 0,
    fixed: Mapping[int, Core] | None = None,
    forbidden: Collection[Core] = (),
    progress: Progress = SILENT,
) -> Placement:
    """Give every part a core so that spikes travel cheaply.

    Args:
        part_graph: nodes are parts (see :func:`snnmap.placement.part_hypergraph`).
        profile: the chip; dead cores are never used.
        placer: a name of ``PLACERS``, or ``"auto"``: all of them, and the best is kept.
        refine: a name of ``REFINEMENTS``; None means annealing for ``"auto"`` and force-directed
            swaps for a placer that was asked for by name.
        engine: who does the integer work, with the same result: ``"cpu"``, ``"gpu"``, or
            ``"auto"``: a GPU if there is one and there are many parts.
        seed: for whatever draws random numbers.
        fixed: part -> global (x, y) where it must be.
        forbidden: further cores that must stay empty.
        progress: told of rounds; when it expires the best placement so far is returned.

    Raises:
        EngineError: a GPU was asked for and cannot be used.
        ConfigError: unknown name, or a fixed or forbidden core that cannot be one.
        LimitError: more parts than usable cores.
    """
    if refine is None:
        refine = "annealing" if placer == AUTO else "force-directed"
    _check_name("placer", placer, [*PLACERS, AUTO])
    _check_name("refinement", refine, REFINEMENTS)
    begin = time.perf_counter()
    metric = Metric.of(profile)
    site = make_site(metric, part_graph.n_nodes, fixed or {}, set(forbidden), part_graph.name)
    worker = choose_engine(engine, part_graph.n_nodes)
    task = Task(part_graph, site, seed, progress, worker)
    starts = list(PLACERS) if placer == AUTO else [placer]
    progress.start("place", unit="rounds")
    with worker.guard():
        task.prepare()
        layouts = run_side_by_side([partial(PLACERS[name], task) for name in starts])
        placed = time.perf_counter()
        cell_of, winner = REFINEMENTS[refine](task, layouts)
    progress.finish()
    board = Board.of(task.flows, task.region, cell_of)
    return Placement(
        cores=task.region.cores[cell_of].astype(np.int32),
        placer=placer,
        start=starts[winner],
        refine=refine,
        seed=seed,
        engine=worker.name,
        objective=board.cost() / (task.flows.scale * metric.cost_hop),
        complete=not progress.expired(),
        seconds={"start": placed - begin, "refine": time.perf_counter() - placed},
    )


def _check_name(what: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        raise ConfigError(f"unknown {what} {name!r}; known: {', '.join(known)}")
