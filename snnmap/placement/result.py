"""What a placer returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """A core for every part.

    Attributes:
        cores: int32[n_parts, 2], global (x, y) of the core of each part, all distinct.
        placer: command-line name of the placer that was asked for.
        start: the placer whose layout led to it; differs from `placer` for ``"auto"``.
        refine: command-line name of the refinement that followed, ``"none"`` without.
        seed: the seed that reproduces it.
        engine: ``"cpu"`` or ``"gpu"``: who did the integer work; the cores do not depend on it.
        joint: whether neurons changed parts afterwards (see :mod:`snnmap.placement.joint`).
        objective: what was minimised: the sum of rate x distance over all flows from part to part,
            in spikes/s x average hops (see :mod:`snnmap.placement.metric`).
        complete: False when a time limit or an interruption ended the search early.
        seconds: wall-clock seconds by phase, in order.
    """

    cores: np.ndarray[Any, np.dtype[np.int32]]
    placer: str
    start: str = ""
    refine: str = "none"
    seed: int = 0
    engine: str = "cpu"
    joint: bool = False
    objective: float = 0.0
    complete: bool = True
    seconds: dict[str, float] = field(default_factory=dict)
