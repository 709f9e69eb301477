"""Merging parts on the GPU: all turns in one launch (``kernels/merge.cu``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from snnmap.partitioning.multilevel.gpu_contraction import GATE_WORDS, GpuContraction, Space
from snnmap.partitioning.multilevel.gpu_rows import defines_of
from snnmap.partitioning.multilevel.level import Level
from snnmap.partitioning.multilevel.merging import AT_ONCE
from snnmap.partitioning.multilevel.state import State
from snnmap.progress import SILENT, Progress

Array = Any  # cupy.ndarray


class GpuMerging(GpuContraction):
    """Pairwise merging; see `engine_cpu.CpuEngine`.

    Attributes:
        set_words: most words of memory that the nets' sets of parts are read by in the first turn; where that is
            more, a table tells which parts a net touches.
    """

    measure: Any
    tidy: Callable[[], None]
    set_words: int = 1 << 27

    def merge_parts(
        self, level: Level, state: State, limits: Array, progress: Progress = SILENT
    ) -> tuple[Array, int]:
        """(int32[n_nodes] parts numbered without gaps, their number): see `merging.merge_parts`.

        Loads and limits are here or on the host. Time is looked at once, before the turns: they take milliseconds.
        """
        self.tidy()
        parts, n_parts, table = state.parts, state.n_parts, state.take_table()
        xp, n, n_words = self.xp, level.n_nodes, -(-n_parts // 32)
        n_additive, n_distinct = level.resources.shape[1], level.counts.shape[1]
        looked = n_parts * level.n_nets * min(n_words, 8)  # at a net: 32 bytes
        by_sets = table is None and looked <= self.set_words
        level = self.bring(level) if by_sets else level
        n_words = n_words if by_sets else 0
        sets = -(-level.n_nets * n_words // 2)
        half, blocks = n_parts // 2 + 1, self.device.multiprocessors
        words = [GATE_WORDS + 5, half, half, sets]
        others = [n_parts * (n_additive + n_distinct), n_parts, blocks, *(11 * [half])]
        space = Space(xp, words, others)
        counters, held, changed, sets_at, *rest = space.pieces
        pins = level[:2] if by_sets else (None, None)
        nets = (*pins, level.n_nets, level.n_pins, n_words, sets_at)
        rows: tuple[Any, ...] = (None,) * 5
        n_entries, entries = 0, None
        if not by_sets:
            table = table or self.measure(level, parts, n_parts)[0]
            lists = self._list_items(table.offsets, table.parts, level.n_nets, n_parts)
            rows, n_entries = (*table[:3], *lists), len(table.parts)
            entries = xp.empty(n_entries, xp.int32)
        values = (level.net_weights, level.counts, limits, state.loads)
        weights, counts, limits, loads = (self.from_host(a) for a in values)
        given = (*nets, *rows, weights, counts, limits, parts, n, n_entries, n_parts)
        sums = xp.empty((1 + n_distinct) * n_parts**2, xp.int64)
        merged = xp.empty(n, xp.int32)
        turns = 0 if progress.expired() else n_parts
        args = (
            *given,
            counters,
            held,
            changed,
            *rest,
            entries,
            sums,
            merged,
            loads,
            AT_ONCE,
            turns,
        )
        bits, defines = 64 * (1 + n_distinct) * n_parts, defines_of(level)
        self._run_together("merge", "merge_parts", bits, *args, defines=defines)
        return merged, int(space.array[GATE_WORDS + 4])
