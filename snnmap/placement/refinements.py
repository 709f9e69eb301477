"""The refinements by their command-line names: from several layouts to the best they lead to."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from snnmap.parallel import map_tasks
from snnmap.placement.anneal import HOT, anneal
from snnmap.placement.refine import EVERYWHERE, Board, force_directed
from snnmap.placement.task import Task

Array = np.ndarray[Any, Any]
Layouts = list[Array]
Refinement = Callable[[Task, Layouts], tuple[Array, int]]


def cheapest(task: Task, layouts: Layouts) -> tuple[Array, int]:
    """No refinement: the cheapest layout and its index."""
    costs = [Board.of(task.flows, task.region, cells).cost() for cells in layouts]
    best = int(np.argmin(costs))
    return layouts[best], best


def swapped(task: Task, layouts: Layouts, reach: int = EVERYWHERE) -> tuple[Array, int]:
    """Force-directed swaps from every layout."""
    improved = [
        force_directed(task.flows, task.region, cells, reach=reach, progress=task.progress)
        for cells in layouts
    ]
    return cheapest(task, improved)


def annealed(task: Task, layouts: Layouts) -> tuple[Array, int]:
    """Annealing chains from the layouts that look best after swaps between neighbours.

    Small tasks run more chains; even ones start from the best layout, odd ones from the second best
    and hotter. What they find ends in swaps over any distance where that is cheap.
    """
    flows, region = task.flows, task.region
    improved = [force_directed(flows, region, cells, reach=1) for cells in layouts]
    costs = [Board.of(flows, region, cells).cost() for cells in improved]
    ranked = np.argsort(costs, kind="stable")
    n_parts = max(task.n_parts, 1)
    n_chains = 16 if n_parts <= 32 else 8 if n_parts <= 256 else 4 if n_parts <= 1024 else 2
    starts = [int(ranked[chain % 2 % len(ranked)]) for chain in range(n_chains)]

    def chain(index: int) -> Array:
        return anneal(
            flows,
            region,
            improved[starts[index]],
            seed=task.seed * 1000 + index,
            hot=HOT * (1, 2)[index % 2],
            progress=task.progress,
        )

    found = map_tasks(chain, [(index,) for index in range(n_chains)])
    best, winner = cheapest(task, found)
    if n_parts <= 1024:
        best = force_directed(flows, region, best, progress=task.progress)
    return best, starts[winner]


REFINEMENTS: dict[str, Refinement] = {
    "none": cheapest,
    "neighbour-swaps": partial(swapped, reach=1),
    "force-directed": swapped,
    "annealing": annealed,
}
"""Command-line name -> refinement: (task, layouts) -> (cells, index of the layout that won)."""
