"""The refinements by their command-line names: from several layouts to the best they lead to."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from snnmap.placement.anneal import HOT, anneal
from snnmap.placement.refine import EVERYWHERE, Board, force_directed
from snnmap.placement.task import Task

Array = np.ndarray[Any, Any]
Layouts = list[Array]
CHAINS = ((256, 8), (1024, 4), (1 << 62, 2))
"""(largest number of parts, annealing chains)."""

WORK = 600_000_000
"""Visits of a neighbour that all annealing chains may spend (1 to 3 CPU seconds); twice as many
for a large task with layouts to choose from, where the starts of the chains differ most."""

FAR_SWAPS = 1024
"""Up to so many parts every layout is tried, and annealing ends with swaps over any distance."""

Refinement = Callable[[Task, Layouts], tuple[Array, int]]


def cheapest(task: Task, layouts: Layouts) -> tuple[Array, int]:
    """No refinement: the cheapest layout and its index."""
    costs = [Board.of(task.flows, task.region, cells).cost() for cells in layouts]
    best = int(np.argmin(costs))
    return layouts[best], best


def _promising(task: Task, layouts: Layouts) -> list[int]:
    """All layouts of a small task, the three cheapest of a large one, by index."""
    if task.n_parts <= FAR_SWAPS:
        return list(range(len(layouts)))
    costs = [Board.of(task.flows, task.region, cells).cost() for cells in layouts]
    return sorted(np.argsort(costs, kind="stable")[:3].tolist())


def swapped(task: Task, layouts: Layouts, reach: int = EVERYWHERE) -> tuple[Array, int]:
    """Force-directed swaps from every layout that is worth them."""
    tried = _promising(task, layouts)
    improved = [
        force_directed(
            task.flows,
            task.region,
            layouts[i],
            reach=reach,
            progress=task.progress,
            engine=task.engine,
        )
        for i in tried
    ]
    best, winner = cheapest(task, improved)
    return best, tried[winner]


def annealed(task: Task, layouts: Layouts) -> tuple[Array, int]:
    """Annealing chains from the layouts that look best after swaps between neighbours.

    Small tasks run more chains; even ones start from the best layout, odd ones from the second best
    and hotter. The best end of all is improved by swaps, over any distance where that is cheap.
    """
    ground, engine = (task.flows, task.region), task.engine
    tried = _promising(task, layouts)
    improved = {i: force_directed(*ground, layouts[i], reach=1, engine=engine) for i in tried}
    ranked = sorted(tried, key=lambda i: (Board.of(*ground, improved[i]).cost(), i))
    n_chains = next(chains for parts, chains in CHAINS if task.n_parts <= parts)
    starts = [ranked[chain % 2 % len(ranked)] for chain in range(n_chains)]
    work = WORK if task.n_parts <= FAR_SWAPS or len(layouts) == 1 else 2 * WORK
    ends = anneal(
        *ground,
        [improved[start] for start in starts],
        seeds=[task.seed * 1000 + chain for chain in range(n_chains)],
        hots=[HOT * (1, 2)[chain % 2] for chain in range(n_chains)],
        work=work // n_chains,
        progress=task.progress,
        engine=engine,
    )
    found, winner = cheapest(task, ends)
    reach = EVERYWHERE if task.n_parts <= FAR_SWAPS else 4
    best = force_directed(*ground, found, reach=reach, progress=task.progress, engine=engine)
    return best, starts[winner]


REFINEMENTS: dict[str, Refinement] = {
    "none": cheapest,
    "neighbour-swaps": partial(swapped, reach=1),
    "force-directed": swapped,
    "annealing": annealed,
}
"""Command-line name -> refinement: (task, layouts) -> (cells, index of the layout that won)."""
