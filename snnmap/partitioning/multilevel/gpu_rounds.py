"""All rounds of refinement on a level in one launch on the GPU (``kernels/rounds.cu``, ``prefix.cu``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from snnmap.partitioning.multilevel.device import word
from snnmap.partitioning.multilevel.gpu_choosing import GpuChoosing
from snnmap.partitioning.multilevel.gpu_rows import defines_of
from snnmap.partitioning.multilevel.level import Level
from snnmap.partitioning.multilevel.turns import Turn
from snnmap.progress import Progress

Array = Any  # cupy.ndarray

_AT_ONCE = 1 << 27  # pins x rounds of a launch, between two looks at the clock
_SCRATCH_WORDS, _WARP_EVENTS, _PIECE = 128, 96, 64  # as in the kernels
_ROW, _EVENT = 16, 24  # bytes of their structs; a row's counts apart
_PROGRESS_WORDS, _GAVE_UP, _DONE, _COUNTERS = 36, 16, 17, 8


class GpuRounds(GpuChoosing):
    """`refine` as one launch; the host waits once.

    Attributes:
        round_threads: most threads of a block.
        entries_of_net: a table has at most so many entries a net, or half of it and one for 32 pins.
        whole_rounds: whether to do so at all.
    """

    round_threads: int = 1024
    entries_of_net: int = 16
    whole_rounds: bool = True

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
    ) -> Array | None:
        """The best parts of these rounds (see `refine`), or None: one step after the other, then.

        That is where a block's shared memory cannot hold the tables, or a list outgrew its memory.
        """
        best = self.xp.empty_like(parts)
        where = (level, limits, parts, n_parts)
        played = self._play(
            "rounds", "refine_rounds", where, turns, progress, (overload_price, patience, best)
        )
        return None if played is None else best if played else parts

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
        parts = parts.copy()
        where = (level, limits, parts, n_parts)
        played = self._play("prefix", "refine_by_prefix", where, turns, progress, (0.0, 0, None))
        return None if played is None else parts

    def _play(
        self,
        source: str,
        name: str,
        where: tuple[Level, Array, Array, int],
        turns: Sequence[Turn],
        progress: Progress,
        asked: tuple[float, int, Array | None],
    ) -> bool | None:
        """Whether the kernel did anything; None if it cannot or gave up. Changes the parts."""
        level, _, _, n_parts = where
        xp, blocks = self.xp, self.device.multiprocessors
        threads, shared = self._fit_tables(level, n_parts)
        n_items = level.n_pins + len(level.source_nodes)
        if not self.whole_rounds or threads == 0 or max(n_items, 2 * level.n_nodes) >= 1 << 31:
            return None
        if not turns or progress.expired():
            return False
        memory = xp.zeros(_PROGRESS_WORDS, xp.int64)
        plan = xp.asarray(np.array([[word(value) for value in turn] for turn in turns], np.uint64))
        fields = self._fields(where, plan, asked, (blocks, threads), memory)
        struct = xp.asarray(np.array([word(field) for field in fields], np.uint64))
        kernel = self.device.kernel(source, name, defines_of(level))
        some = max(_AT_ONCE // max(n_items, 1), 1)
        for first in range(0, len(turns), some):
            if first:
                memory[:1] = 0
            args = (struct, first, min(first + some, len(turns)))
            self.device.launch_together(kernel, blocks, threads, args, shared)
            told = self.to_host(memory)
            if told[_GAVE_UP]:
                return None
            if told[_DONE] or progress.expired():
                break
        return True

    def _fit_tables(self, level: Level, n_parts: int) -> tuple[int, int]:
        """(threads of a block, bytes of its shared memory); no threads where there is no room."""
        n_additive, n_distinct = level.resources.shape[1], level.counts.shape[1]
        most, threads = self.device.shared_bytes - 8192, self.round_threads
        while threads >= min(128, self.round_threads):
            of_warp = _EVENT * _WARP_EVENTS + 4 + 4 * max(4, 2 + 2 * n_distinct) * n_parts
            needed = 8 * _SCRATCH_WORDS + (8 * (n_additive + n_distinct) + 16) * n_parts
            needed += threads // 32 * of_warp
            if needed <= most:
                return threads, needed
            threads //= 2
        return 0, 0

    def _fields(
        self,
        where: tuple[Level, Array, Array, int],
        plan: Array,
        asked: tuple[float, int, Array | None],
        size: tuple[int, int],
        memory: Array,
    ) -> tuple[Any, ...]:
        """The struct `Rounds` of the kernels, where `plan` holds the turns; without `best`, by prefix."""
        level, limits, parts, n_parts = where
        overload_price, patience, best = asked
        blocks, n_warps = size[0], size[0] * size[1] // 32
        empty, i32, i64 = self.xp.empty, np.int32, np.int64
        n, n_nets, n_distinct = level.n_nodes, level.n_nets, level.counts.shape[1]
        n_items = level.n_pins + len(level.source_nodes)
        most_entries = min(n_items, n_nets * n_parts)
        most_entries += most_entries // 3  # a quarter of each piece may stay free
        # Entries of a row: nets are local, or have few pins; see gpu_memory.py.
        usual = max(self.entries_of_net * n_nets, self.entries_of_net // 2 * n_nets + n_items // 32)
        most_entries = min(most_entries, usual)
        piece = min(most_entries // (4 * n_warps), _PIECE)
        most_entries += piece * n_warps
        most_events = min(n_items, self.slice_items // 2)
        row_bytes = _ROW + (max(n_distinct, 1) + 1) // 2 * 16
        prefix: tuple[Any, ...] = 6 * (None,)
        if best is None:
            ranked = empty(2 * n, i64)
            more = (ranked[:n], ranked[n:], ranked, empty(blocks, i64), empty(n, i32))
            prefix = (empty(n, i64), *more)
        return (
            *level, n_nets, n, n_parts, limits, plan, float(overload_price), patience,
            parts if best is None else parts.copy(), best, self.xp.zeros(n, bool), empty(n, i32),
            empty(n, i64), empty(n, i64), empty(n, i64),
            empty((n, n_distinct), i64), empty((n, n_distinct), i64),
            empty(n_nets * row_bytes, np.uint8), empty(most_entries, i64), empty(most_entries, i64),
            most_entries, piece, empty(most_events * _EVENT, np.uint8), most_events,
            empty(n, i64), empty(n, i32), empty(2 * n, i32), *prefix,
            self.xp.zeros(2 * n_parts * len(limits), i64),
            self.xp.zeros(2 * (_COUNTERS + n_parts * (len(limits) + 4)), i64),
            empty(min(n_items // 1024, n_nets) + 1, i32), empty(n, i32), memory,
        )  # fmt: skip
