"""Refinement on the GPU: pins-per-part table, proposals, gains in sequence (``kernels/``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from snnmap.partitioning.multilevel.device import THREADS
from snnmap.partitioning.multilevel.engine_cpu import Moves, Table
from snnmap.partitioning.multilevel.gpu_rows import GpuRows, Lists, Step, defines_of
from snnmap.partitioning.multilevel.level import Level

Array = Any  # cupy.ndarray


class GpuRefinement(GpuRows):
    """The steps of refinement; see `engine_cpu.CpuEngine`."""

    _listed: tuple[Any, int, Lists | None] = (None, 0, None)  # offsets of nets, parts, their lists

    def measure(self, level: Level, parts: Array, n_parts: int) -> tuple[Table, Array, Array]:
        """Table of a partition, its connectivity (int64[], constant apart), int64[n_parts, n_loads]."""
        xp, defines = self.xp, defines_of(level)
        lists = self._list_nets(level, n_parts)
        sizes = xp.zeros(level.n_nets, xp.int64)
        args: tuple[Any, ...] = (*level[:4], parts)
        self._run_on(lists, Step("table", "count_parts", 4, defines), args, (sizes,))
        offsets = self._offsets(sizes)
        n_entries = int(offsets[-1])
        table = Table(offsets, *(xp.empty(n_entries, d) for d in (xp.int32, xp.int32, xp.int64)))
        connectivity = xp.zeros((), xp.int64)
        loads = xp.zeros((n_parts, level.resources.shape[1] + level.counts.shape[1]), xp.int64)
        args = (*level[:5], level.net_weights, level.counts, parts)
        results = (*table, connectivity, loads)
        self._run_on(lists, Step("table", "fill_table", 16, defines), args, results)
        n = level.n_nodes
        self._run_for(level, "table", "add_resources", n, level.resources, parts, n, loads)
        return table, connectivity, loads

    def remeasure(
        self,
        level: Level,
        table: Table,
        connectivity: Array,
        loads: Array,
        old: Array,
        parts: Array,
        moved: Array,
    ) -> tuple[Table, Array, Array]:
        """What :meth:`measure` gives; all of it is measured again."""
        del table  # the memory of two is not planned for
        return self.measure(level, parts, len(loads))

    def _list_nets(self, level: Level, n_parts: int) -> Lists:
        """Nets by the table that each needs; the lists of the last call are kept for the next one."""
        known, for_parts, lists = self._listed
        if lists is None or known is not level.net_offsets or for_parts != n_parts:
            visits = self.xp.diff(level.net_offsets) + self.xp.diff(level.source_offsets)
            lists = self._list_rows(visits, n_parts, 16, dense=True)
            self._listed = (level.net_offsets, n_parts, lists)
        return lists

    def sum_up(
        self, level: Level, limits: Array, connectivity: Array, loads: Array
    ) -> tuple[int, Any]:
        """(connectivity, int64[n_loads] overload over all parts) on the host, by one transfer."""
        sums, n_parts = self.xp.zeros(1 + len(limits), self.xp.int64), len(loads)
        self._run_for(
            level, "choose", "sum_overload", n_parts, loads, limits, n_parts, connectivity, sums
        )
        connectivity, *overload = self.to_host(sums)
        return int(connectivity), np.array(overload)

    def _run_for(self, level: Level, source: str, name: str, threads: int, *args: Any) -> None:
        """A kernel that knows the number of loads, with (at least) that many threads."""
        kernel = self.device.kernel(source, name, defines_of(level))
        self.device.launch(kernel, -(-threads // THREADS), args)

    def propose(
        self,
        level: Level,
        table: Table,
        parts: Array,
        loads: Array,
        limits: Array,
        prices: Array,
        locked: Array,
        *,
        strict: bool,
        haven: int,
        seed: int,
        slack: int,
    ) -> Moves:
        """Best move of every node in isolation (see `_kernels_refine.propose_moves`)."""
        xp, n, n_loads = self.xp, level.n_nodes, len(limits)
        moves = Moves(
            xp.empty(n, xp.int32),
            xp.empty(n, xp.int64),
            xp.empty(n, xp.int64),
            xp.empty((n, n_loads), xp.int64),
            xp.empty((n, n_loads), xp.int64),
        )
        visits = xp.empty(n, xp.int64)
        rows = (*level[5:9], table.offsets)
        args = (*rows, locked, parts, loads, limits, int(strict), n, visits, moves.targets)
        self._run_for(level, "refine", "prepare_proposals", 32 * min(n, 1 << 20), *args)
        step = Step("refine", "propose_moves", 12 + 8 * level.counts.shape[1], defines_of(level))
        lists = self._list_rows(visits, len(loads), step.slot_bytes, dense=True)
        state = (*level[5:], parts, *table, loads, limits, prices, len(loads))
        self._run_on(lists, step, (*state, int(strict), haven, seed, slack, visits, *moves), ())
        return moves

    def gains_in_sequence(
        self, level: Level, table: Table, parts: Array, targets: Array, ranks: Array, n_parts: int
    ) -> Array:
        """int64[n_nodes]: what each move saves after all moves of better rank."""
        gains = self.xp.zeros(level.n_nodes, self.xp.int64)
        self._replay(level, table, (parts, targets, ranks), n_parts, (gains, None, None))
        return gains

    def replay(
        self, level: Level, table: Table, parts: Array, targets: Array, ranks: Array, n_parts: int
    ) -> tuple[Array, Array, Array]:
        """(gains, incoming, outgoing) of each move after all moves of better rank (see the twin)."""
        xp, shape = self.xp, (level.n_nodes, level.counts.shape[1])
        gains = xp.zeros(level.n_nodes, xp.int64)
        incoming, outgoing = xp.zeros(shape, xp.int64), xp.zeros(shape, xp.int64)
        self._replay(level, table, (parts, targets, ranks), n_parts, (gains, incoming, outgoing))
        return (
            gains,
            xp.concatenate([level.resources, incoming], axis=1),
            xp.concatenate([level.resources, outgoing], axis=1),
        )

    def _replay(
        self,
        level: Level,
        table: Table,
        moves: tuple[Array, Array, Array],
        n_parts: int,
        results: tuple[Array, Array | None, Array | None],
    ) -> None:
        """Add to gains, and to incoming and outgoing distinct loads if they are wanted."""
        visits = 2 * (self.xp.diff(level.net_offsets) + self.xp.diff(level.source_offsets))
        lists = self._list_rows(visits, n_parts, 16, dense=True)
        step = Step("sequence", "replay_moves", 16, defines_of(level))
        args = (*level[:5], level.net_weights, level.counts, *moves, *table)
        self._run_on(lists, step, args, results)
