"""Merging parts on the GPU: all turns in one launch (``kernels/merge.cu``)."""

from __future__ import annotations

from typing import Any

from snnmap.partitioning.multilevel.engine_cpu import Table
from snnmap.partitioning.multilevel.gpu_contraction import GATE_WORDS, GpuContraction, Space
from snnmap.partitioning.multilevel.gpu_rows import defines_of
from snnmap.partitioning.multilevel.level import Level
from snnmap.partitioning.multilevel.merging import AT_ONCE
from snnmap.progress import SILENT, Progress

Array = Any  # cupy.ndarray


class GpuMerging(GpuContraction):
    """Pairwise merging; see `engine_cpu.CpuEngine`."""

    def merge_parts(
        self,
        level: Level,
        parts: Array,
        n_parts: int,
        loads: Array,
        table: Table,
        limits: Array,
        progress: Progress = SILENT,
    ) -> tuple[Array, int]:
        """(int32[n_nodes] parts numbered without gaps, their number): see `merging.merge_parts`.

        Time is looked at once, before the turns: they take milliseconds.
        """
        xp, n, n_entries = self.xp, level.n_nodes, len(table.parts)
        n_additive, n_distinct = level.resources.shape[1], level.counts.shape[1]
        lists = self._list_items(table.offsets, table.parts, level.n_nets, n_parts)
        half, blocks = n_parts // 2 + 1, self.device.multiprocessors
        words = [GATE_WORDS + 5, half, half, n_parts * (n_additive + n_distinct), n_parts, blocks]
        space = Space(xp, [*words, *(11 * [half])])
        entries, shared = xp.empty(n_entries, xp.int32), (1 + n_distinct) * n_parts**2
        sums, merged = xp.empty(shared, xp.int64), xp.empty(n, xp.int32)
        sizes = (n, n_entries, n_parts)
        nets = (self.from_host(level.net_weights), self.from_host(level.counts))
        given = (*table[:3], *lists, *nets, limits, parts, *sizes)
        turns = 0 if progress.expired() else n_parts
        args = (*given, *space.pieces, entries, sums, merged, loads, AT_ONCE, turns)
        bits, defines = 64 * (1 + n_distinct) * n_parts, defines_of(level)
        self._run_together("merge", "merge_parts", bits, *args, defines=defines)
        return merged, int(space.array[GATE_WORDS + 4])
