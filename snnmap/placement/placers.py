"""The placers by their command-line names; each gives every part of a task a cell."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from snnmap.placement.curves import CURVES
from snnmap.placement.order import feed_forward_order
from snnmap.placement.task import Task

Array = np.ndarray[Any, Any]
Placer = Callable[[Task], Array]


def curve(task: Task, name: str) -> Array:
    """Parts in feed-forward order along a space-filling curve."""
    tight = task.tight
    return task.along(
        feed_forward_order(task.part_graph), CURVES[name](len(tight.xs), len(tight.ys))
    )


PLACERS: dict[str, Placer] = {name: partial(curve, name=name) for name in CURVES}
PLACERS["auto"] = PLACERS["hilbert"]
"""Command-line name -> placer: task -> int64[n_parts] cells of ``task.region``."""
