"""What a partitioner returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """An assignment of every node to one part.

    Attributes:
        parts: int32[n_nodes], values 0..n_parts-1, every part non-empty.
        n_parts: number of parts.
        algorithm: its command-line name.
        engine: ``"cpu"`` or ``"gpu"``.
        seed: the seed that reproduces it.
        complete: False when a time limit or an interruption ended the search early.
        seconds: wall-clock seconds by phase, in order.
        config: the effective settings of the algorithm, as plain values.
    """

    parts: np.ndarray[Any, np.dtype[np.int32]]
    n_parts: int
    algorithm: str
    engine: str = "cpu"
    seed: int = 0
    complete: bool = True
    seconds: dict[str, float] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
