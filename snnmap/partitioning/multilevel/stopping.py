"""What happens when time is up: a valid partition soon, and the result marked as cut short.

Phases ask between their steps. What they were at is dropped, and the best valid state is returned;
if there is none yet, the coarsest level reached is made valid the quick way (:func:`secure`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from snnmap.partitioning.multilevel import _kernels_contract as kct
from snnmap.partitioning.multilevel.config import RefinementConfig
from snnmap.partitioning.multilevel.hierarchy import Hierarchy
from snnmap.partitioning.multilevel.level import Level
from snnmap.partitioning.multilevel.refinement import repair
from snnmap.partitioning.multilevel.state import State, weigh
from snnmap.progress import Progress

Array = Any  # of the engine's array library
_REPAIRS, _REPAIR_PINS = 12, 20_000_000  # rounds, and pins x rounds, of a repair in a hurry


class Watch(Progress):
    """Passes everything on to a listener, and remembers whether it stopped the work.

    Attributes:
        noticed: whether anybody was told that time is up.
    """

    def __init__(self, listener: Progress) -> None:
        super().__init__()
        self._listener = listener
        self.noticed = False

    def start(self, phase: str, total: float | None = None, unit: str = "") -> None:
        """See :class:`Progress`."""
        self._listener.start(phase, total, unit)

    def advance(self, amount: float = 1, note: str = "") -> None:
        """See :class:`Progress`."""
        self._listener.advance(amount, note)

    def finish(self) -> None:
        """See :class:`Progress`."""
        self._listener.finish()

    def say(self, text: str) -> None:
        """See :class:`Progress`."""
        self._listener.say(text)

    def cancel(self) -> None:
        """See :class:`Progress`."""
        self._listener.cancel()

    @property
    def cancelled(self) -> bool:
        """See :class:`Progress`."""
        return self._listener.cancelled

    def expired(self) -> bool:
        """Whether time is up; once it was, it stays so."""
        self.noticed = self.noticed or self._listener.expired()
        return self.noticed


def hasten(config: RefinementConfig, level: Level) -> RefinementConfig:
    """The settings with as few rounds of repair as take about a second on this level."""
    most = max(1, min(_REPAIRS, _REPAIR_PINS // max(level.n_pins, 1)))
    return replace(config, repairs=min(config.repairs, most))


def pack(engine: Any, level: Level, limits: Array) -> tuple[Array, int]:
    """(parts on the host, their number): nodes in order fill a part until a limit would break."""
    parts = kct.pack_in_order(tuple(engine.download(level)), engine.to_host(limits))
    return parts, int(parts.max(initial=-1)) + 1


def secure(
    engine: Any,
    levels: Hierarchy,
    limits: Array,
    parts: Array,
    n_parts: int,
    max_parts: int | None,
    config: RefinementConfig,
    seed: int,
) -> State | None:
    """A valid state of the finest level without any search, or None.

    The parts of the coarsest level are repaired there in a few rounds; failing that, its nodes or
    at last those of the finest level are packed in order. What is valid on a coarse level is valid
    on the finest.

    Args:
        engine: where the arrays are.
        levels: from fine to coarse.
        limits: int64[n_loads].
        parts: int32[n_nodes of the coarsest level] on the host.
        n_parts: their number.
        max_parts: most parts allowed, or None.
        config: of refinement.
        seed: breaks ties.
    """
    coarsest = levels.level(-1)

    def packed(level: Level) -> State:
        found, n_found = pack(engine, level, limits)
        return weigh(engine, level, limits, engine.from_host(found), n_found)

    def candidates() -> Iterator[tuple[State, bool]]:
        hasty = hasten(config, coarsest)
        given = engine.from_host(parts)
        yield (
            repair(engine, coarsest, limits, given, n_parts, max_parts, hasty, seed=seed),
            len(levels) == 1,
        )
        yield packed(coarsest), len(levels) == 1
        if len(levels) > 1:
            yield packed(levels.level(0)), True

    for state, is_finest in candidates():
        if not state.valid or (max_parts is not None and state.n_parts > max_parts):
            continue
        if is_finest:
            return state
        fine = levels.spread(state.parts)
        return weigh(engine, levels.level(0), limits, fine, state.n_parts)
    return None
