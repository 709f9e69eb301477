"""All rounds of refinement on a level in one launch on the GPU (``kernels/rounds.cu``, ``prefix.cu``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from snnmap.partitioning.multilevel.gpu_choosing import GpuChoosing
from snnmap.partitioning.multilevel.gpu_rounds_memory import (
    PROGRESS_WORDS,
    WAYS,
    GpuRoundsMemory,
    bytes_of,
)
from snnmap.partitioning.multilevel.gpu_rows import defines_of
from snnmap.partitioning.multilevel.gpu_weighing import GpuWeighing, Noted
from snnmap.partitioning.multilevel.level import Level
from snnmap.partitioning.multilevel.state import State
from snnmap.partitioning.multilevel.turns import RoundsGaveUpError, Turn
from snnmap.partitioning.multilevel.upload import Arrival
from snnmap.progress import Progress

Array = Any  # cupy.ndarray

_AT_ONCE = 1 << 29  # pins x rounds of a launch, between two looks at the clock
_GAVE_UP, _DONE, _N_TURNS, _STALLED = 16, 17, 38, 39  # words of `Progress`
_SOURCES = {"refine_rounds": "rounds", "refine_by_prefix": "prefix", "repair_rounds": "repair"}
_NEEDS_LISTS = 2  # sums are too large to keep what nodes find
_MOST = 1 << 15  # parts, turns: two of them are a word
_ASKED = 21  # field of the struct


class Awaited(NamedTuple):
    """Rounds that the host has not waited for.

    Attributes:
        told: what the launch tells.
        parts: int32[n_nodes] at its end and its start, or none.
    """

    told: Arrival
    parts: tuple[Array, ...]


class Played(NamedTuple):
    """What rounds in one launch made.

    Attributes:
        parts: int32[n_nodes].
        n_turns, stalled: of repair, how many rounds it took, and whether the last was in vain.
    """

    parts: Array
    n_turns: int
    stalled: bool


class GpuRounds(GpuRoundsMemory, GpuWeighing, GpuChoosing):
    """`refine` as one launch; the host waits once, or only when the next rounds are on their way (`deferred`).

    Attributes:
        whole_rounds: whether to do so at all.
        ways: those of `WAYS` that may be taken.
        whole_parts: for so many parts at most where nodes are looked at by their nets: tables for more leave too few warps on a
            multiprocessor.
        gapless_parts: so many parts or more are numbered without those that are empty.
    """

    restore: Callable[[Level], Level]
    whole_rounds: bool = True
    ways: tuple[str, ...] = WAYS
    whole_parts: int = 512
    gapless_parts: int = 256
    _by_node: Level | None = None
    _awaited: Awaited | None = None

    def refine_rounds(
        self,
        level: Level,
        limits: Array,
        parts: Array,
        n_parts: int,
        turns: Sequence[Turn],
        progress: Progress,
        *,
        overload_price: float,
        patience: int,
        deferred: bool = False,
    ) -> Array | None:
        """The best parts of these rounds (see `refine`), or None: one step after the other, then.

        That is where a block's shared memory cannot hold the tables, or a list outgrew its memory. If `deferred`
        the device may still be at it; the next such call, or whoever weighs parts, raises :class:`RoundsGaveUpError` then.
        """
        where = (level, limits, parts, n_parts)
        asked = (turns, progress, overload_price, patience)
        played = self._play("refine_rounds", where, *asked, deferred=deferred)
        return None if played is None else played.parts

    def refine_by_prefix(
        self,
        level: Level,
        limits: Array,
        parts: Array,
        n_parts: int,
        turns: Sequence[Turn],
        progress: Progress,
    ) -> Array | None:
        """The parts after these rounds (see `refine_in_sequence`), or None as above."""
        where = (level, limits, parts, n_parts)
        played = self._play("refine_by_prefix", where, turns, progress)
        return None if played is None else played.parts

    def repair_rounds(
        self,
        level: Level,
        limits: Array,
        state: State,
        turns: Sequence[Turn],
        progress: Progress,
        *,
        may_grow: bool,
    ) -> tuple[Array, int, bool] | None:
        """(parts, how many rounds they took, whether the last was in vain); None as above.

        In vain are rounds that free nothing where there `may_grow` another part, else those in which
        nothing moves. The state loses its table.
        """
        state.take_table()
        where = (level, limits, state.parts, state.n_parts)
        played = self._play("repair_rounds", where, turns, progress, may_grow=may_grow)
        return None if played is None else (played.parts, played.n_turns, played.stalled)

    def _play(
        self,
        name: str,
        where: tuple[Level, Array, Array, int],
        turns: Sequence[Turn],
        progress: Progress,
        overload_price: float = 0.0,
        patience: int = 0,
        may_grow: bool = False,
        *,
        spread: bool = True,
        deferred: bool = False,
    ) -> Played | None:
        """What a kernel made of the parts; None if it cannot take them or gave up. `spread`: see `fit_tables`.

        If `deferred`, and one launch is enough, it is not waited for (see `refine_rounds`).
        """
        level, limits, parts, n_parts = where
        names = None
        if n_parts >= self.gapless_parts and name != "repair_rounds":  # that fills empty ones
            names, parts = self._close_gaps(parts, n_parts)
            n_parts = len(names)
        xp, blocks = self.xp, self.device.multiprocessors
        size = self.fit_tables(level, n_parts, spread=spread)
        n_items = level.n_pins + len(level.source_nodes)
        fits = size.threads > 0 and max(n_items, 2 * level.n_nodes) < 1 << 31
        fits &= max(n_parts, len(turns)) < _MOST
        if not self.whole_rounds or not fits:
            return None
        result = xp.empty_like(parts)
        numbered = limits, parts, n_parts, names
        needs_nets = name == "repair_rounds" or self.has_twins(level, size, n_parts)
        ways = ("by nets",) if needs_nets else self.ways
        for way in ways:
            if way == "by nets" and n_parts > self.whole_parts:
                return None
            if way != "kept":
                level = self._with_lists(level)
            fields = self.fields_of(level, numbered, name, size, result, way)
            if bytes_of(fields) <= self.room_bytes():
                break
        if not turns or progress.expired():
            return Played(where[2], 0, False)
        fields[_ASKED : _ASKED + 3] = float(overload_price), patience, int(may_grow)
        layout, told, _kept = self.lay_out(fields, turns)
        kernel = self.device.kernel(_SOURCES[name], name, defines_of(level))
        some = max(_AT_ONCE // max(n_items, 1), 1)
        for first in range(0, len(turns), some):
            if first:
                told[:1] = 0
            args = (layout, first, min(first + some, len(turns)))
            self.device.launch_together(kernel, blocks, size.threads, args, size.shared)
            arrival = Arrival(xp, told) if deferred and len(turns) <= some else None
            self._settle()  # what was deferred before, now that this is on its way
            if arrival is not None:
                self._awaited = Awaited(arrival, (result, parts) if names is None else ())
                return Played(result if names is None else names[result], len(turns), False)
            words = self.to_host(told)
            asked = turns, progress, overload_price, patience, may_grow
            if words[_GAVE_UP] == _NEEDS_LISTS:
                return self._play(
                    name, (self._with_lists(level), *where[1:]), *asked, spread=spread
                )
            if words[_GAVE_UP] and size.slots:
                return self._play(name, where, *asked, spread=False)
            if words[_GAVE_UP]:
                return None
            if words[_DONE] or progress.expired():
                break
        if names is not None:
            result = names[result]
        elif name != "repair_rounds":
            self._note((result, parts)[: 2 - (name == "refine_by_prefix")], words)
        return Played(result, int(words[_N_TURNS]), bool(words[_STALLED]))

    def _note(self, parts: Sequence[Array], words: Any) -> None:
        """Keep what a launch tells of the parts at its end and its start."""
        found = words[PROGRESS_WORDS:].reshape(2, -1)
        self._noted = [Noted(*one) for one in zip(parts, found, strict=False)]

    def _settle(self) -> None:
        """Wait for the rounds that were deferred, if there are any."""
        awaited, self._awaited = self._awaited, None
        if awaited is None:
            return
        words = awaited.told.wait()
        if words[_GAVE_UP]:
            raise RoundsGaveUpError
        self._note(awaited.parts, words)

    def weigh(
        self, level: Level, limits: Array, parts: Array, n_parts: int
    ) -> tuple[None, int, Array, Any]:
        """See `GpuWeighing`; rounds that were deferred are waited for."""
        self._settle()
        return super().weigh(level, limits, parts, n_parts)

    def _close_gaps(self, parts: Array, n_parts: int) -> tuple[Array, Array]:
        """(int32[n]: the parts that have nodes, ascending; int32[n_nodes]: which of these each node is in)."""
        xp = self.xp
        taken = xp.zeros(n_parts, xp.int32)
        taken[parts] = 1
        numbers = (xp.cumsum(taken) - 1).astype(xp.int32)
        return xp.flatnonzero(taken).astype(xp.int32), numbers[parts]

    def _with_lists(self, level: Level) -> Level:
        """The level with its lists by node, which are kept for the next rounds on it."""
        self._by_node = self.restore(level)
        return self._by_node
