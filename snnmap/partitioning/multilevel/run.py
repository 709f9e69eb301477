"""What every phase of a run needs, and the clock that times the phases."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from snnmap.partitioning.multilevel.config import Config
from snnmap.partitioning.multilevel.hierarchy import Finest
from snnmap.partitioning.multilevel.level import Level, Problem
from snnmap.partitioning.multilevel.merging import none_fit
from snnmap.partitioning.multilevel.state import State, weigh
from snnmap.progress import SILENT, Progress

Array = np.ndarray[Any, Any]


class Clock:
    """Adds up wall-clock seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._phase = ""
        self._start = 0.0

    def __call__(self, phase: str) -> Clock:
        """`with clock(phase):` adds to that phase."""
        self._phase = phase
        return self

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        spent = time.perf_counter() - self._start
        self.seconds[self._phase] = self.seconds.get(self._phase, 0.0) + spent


@dataclass(frozen=True, eq=False)
class Run:
    """What every phase needs: where, what, how, and who listens.

    Attributes:
        engine: where the arrays are.
        finest: the finest level, there.
        limits: int64[n_loads], there.
        problem: the same on the host.
        config: all settings.
        progress: listener.
        clock: adds up seconds by phase.
    """

    engine: Any
    finest: Finest
    limits: Array
    problem: Problem
    config: Config
    progress: Progress
    clock: Clock

    def weigh(self, parts: Array, n_parts: int) -> State:
        """Measure a partition of the finest level."""
        return weigh(self.engine, self.finest.slim, self.limits, parts, n_parts)

    def is_large(self, level: Level) -> bool:
        """Whether less work for each pin of this level will do."""
        return level.n_pins > self.config.large_pins

    def keep_parts(self, n_parts: int) -> bool:
        """Whether that many parts are left as they are."""
        most = self.problem.max_parts
        return self.config.merge == "needed" and (most is None or n_parts <= most)

    def merge(
        self, level: Level, state: State, limits: Array, *, hasty: bool = True
    ) -> tuple[Array, int]:
        """Parts joined to the fewest within these limits (int64[n_loads] on the host).

        Unless `hasty`, time does not matter: there are more parts than allowed.
        """
        engine = self.engine
        if state.loads is None:
            state = weigh(engine, level, engine.from_host(limits), state.parts, state.n_parts)
        if none_fit(engine.to_host(state.loads), limits, level.resources.shape[1]):
            return state.parts, state.n_parts
        progress = self.progress if hasty else SILENT
        found: tuple[Array, int] = engine.merge_parts(level, state, limits, progress)
        return found
