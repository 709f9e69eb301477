"""The placers by their command-line names; each gives every part of a task a cell."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from snnmap.placement.curves import CURVES
from snnmap.placement.order import bisection_order
from snnmap.placement.region import BLOCKED, EMPTY
from snnmap.placement.spectral import spectral
from snnmap.placement.task import Task

Array = np.ndarray[Any, Any]
Placer = Callable[[Task], Array]


def curve(task: Task, name: str) -> Array:
    """Parts in feed-forward order along a space-filling curve."""
    tight = task.tight
    return task.along(task.forward, CURVES[name](len(tight.xs), len(tight.ys)))


def recursive_bisection(task: Task) -> Array:
    """Parts in the order of a recursive bisection along a Hilbert curve."""
    tight = task.tight
    order = bisection_order(task.flows, task.forward)
    return task.along(order, CURVES["hilbert"](len(tight.xs), len(tight.ys)))


def minimum_distance(task: Task) -> Array:
    """Parts in feed-forward order, each on the free cell that is cheapest to reach so far."""
    flows, region = task.flows, task.region
    cell_of = region.fixed.copy()
    part_at = np.where(region.blocked, BLOCKED, EMPTY).astype(np.int64)
    fixed = np.flatnonzero(cell_of >= 0)
    part_at[cell_of[fixed]] = fixed
    order = task.forward
    centre = len(region.xs) // 2 * region.n_rows + region.n_rows // 2
    order = order[cell_of[order] < 0]
    found = task.engine.nearest_cells(flows, region, order, cell_of, part_at, centre)
    return np.asarray(found)


PLACERS: dict[str, Placer] = {
    **{name: partial(curve, name=name) for name in CURVES},
    "spectral": spectral,
    "minimum-distance": minimum_distance,
    "recursive-bisection": recursive_bisection,
}
"""Command-line name -> placer: task -> int64[n_parts] cells of ``task.region``."""
