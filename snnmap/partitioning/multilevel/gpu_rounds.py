"""All rounds of refinement in one launch on the GPU (``kernels/rounds.cu``); the host waits once."""

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
_SCRATCH_WORDS, _WARP_EVENTS, _PIECE = 128, 96, 64  # as in the kernel
_ROW, _ENTRY, _EVENT, _TURN = 16, 16, 24, 40  # bytes of its structs; a row's counts apart
_PROGRESS_WORDS, _GAVE_UP, _DONE, _COUNTERS = 36, 16, 17, 8


class GpuRounds(GpuChoosing):
    """`refine` as one launch.

    Attributes:
        round_threads: most threads of a block.
        entries_of_net: so many entries of the table for each net, and one for each 32 pins, are enough.
        whole_rounds: whether to do so at all.
    """

    round_threads: int = 1024
    entries_of_net: int = 10
    whole_rounds: bool = True

    def refine_rounds(
        self,
        level: Level,
        limits: Array,
        parts: Array,
        n_parts: int,
        turns: Sequence[Turn],
        overload_price: float,
        patience: int,
        progress: Progress,
    ) -> Array | None:
        """The best parts after these rounds (see `refine`), or None: one step after the other, then.

        That is where a block's shared memory cannot hold the tables, or a list outgrew its memory.
        """
        threads, shared = self._fit_tables(level, n_parts)
        n_items = level.n_pins + len(level.source_nodes)
        if not self.whole_rounds or threads == 0 or n_items >= 1 << 31:
            return None
        if not turns or progress.expired():
            return parts
        xp, blocks = self.xp, self.device.multiprocessors
        best, memory = xp.empty_like(parts), xp.zeros(_PROGRESS_WORDS, xp.int64)
        n_warps = blocks * threads // 32
        asked = (turns, overload_price, patience)
        fields = self._fields(level, limits, parts, n_parts, asked, n_warps, best, memory)
        struct = xp.asarray(np.array([word(field) for field in fields], np.uint64))
        kernel = self.device.kernel("rounds", "refine_rounds", defines_of(level))
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
        return best

    def _fit_tables(self, level: Level, n_parts: int) -> tuple[int, int]:
        """(threads of a block, bytes of its shared memory); no threads where there is no room."""
        n_loads, n_distinct = (
            level.resources.shape[1] + level.counts.shape[1],
            level.counts.shape[1],
        )
        most, threads = self.device.shared_bytes - 8192, self.round_threads
        while threads >= min(128, self.round_threads):
            warps = threads // 32
            of_warp = _EVENT * _WARP_EVENTS + 4 + 4 * max(4, 2 + 2 * n_distinct) * n_parts
            needed = 8 * _SCRATCH_WORDS + (8 * n_loads + 16) * n_parts + warps * of_warp
            if needed <= most:
                return threads, needed
            threads //= 2
        return 0, 0

    def _fields(
        self,
        level: Level,
        limits: Array,
        parts: Array,
        n_parts: int,
        asked: tuple[Sequence[Turn], float, int],
        n_warps: int,
        best: Array,
        memory: Array,
    ) -> tuple[Any, ...]:
        """The struct `Rounds` of the kernel."""
        xp, n, n_nets, n_distinct = self.xp, level.n_nodes, level.n_nets, level.counts.shape[1]
        n_loads = len(limits)
        turns, overload_price, patience = asked
        n_items = level.n_pins + len(level.source_nodes)
        # Entries of a row: nets are local, or have few pins; see gpu_memory.py.
        most_entries = min(n_items, n_nets * n_parts)
        most_entries += most_entries // 3  # a quarter of each piece may stay free
        most_entries = min(most_entries, self.entries_of_net * n_nets + n_items // 32)
        piece = min(most_entries // (4 * n_warps), _PIECE)
        most_entries += piece * n_warps
        most_events = min(n_items, self.slice_items // 2)
        plan = np.array([[word(value) for value in turn] for turn in turns], np.uint64)
        words = [xp.empty(n, np.int64) for _ in range(4)]
        counters = xp.zeros(2 * (_COUNTERS + n_parts * (n_loads + 4)), np.int64)
        long_nets = min(n_items // 1024, n_nets) + 1
        return (
            *level, n_nets, n, n_parts, limits, xp.asarray(plan), float(overload_price), patience,
            parts.copy(), best, xp.zeros(n, bool), xp.empty(n, np.int32), *words[:3],
            xp.empty((n, n_distinct), np.int64), xp.empty((n, n_distinct), np.int64),
            xp.empty(n_nets * (_ROW + (max(n_distinct, 1) + 1) // 2 * 16), np.uint8),
            xp.empty(most_entries * _ENTRY, np.uint8), most_entries, piece,
            xp.empty(most_events * _EVENT, np.uint8), most_events, words[3],
            *(xp.empty(n, np.int32) for _ in range(3)),
            xp.zeros(2 * n_parts * n_loads, np.int64), counters,
            xp.empty(long_nets, np.int32), xp.empty(n, np.int32), memory,
        )  # fmt: skip
