"""Refinement on the GPU: pins-per-part table, proposals, gains in sequence (``kernels/``)."""

from __future__ import annotations

from typing import Any

from snnmap.partitioning.multilevel.device import THREADS
from snnmap.partitioning.multilevel.engine_cpu import Moves, Table
from snnmap.partitioning.multilevel.gpu_rows import CHUNK, GpuRows, Step, defines_of
from snnmap.partitioning.multilevel.level import Level

Array = Any  # cupy.ndarray


class GpuRefinement(GpuRows):
    """The steps of refinement; see `engine_cpu.CpuEngine`."""

    def measure(self, level: Level, parts: Array, n_parts: int) -> tuple[Table, int, Array]:
        """Table of a partition, its connectivity (constant apart), int64[n_parts, n_loads]."""
        xp, defines = self.xp, defines_of(level)
        visits = xp.diff(level.net_offsets) + xp.diff(level.source_offsets)
        lists = self._list_rows(visits, n_parts, 16, dense=True)
        sizes = xp.zeros(level.n_nets, xp.int64)
        args: tuple[Any, ...] = (*level[:4], parts)
        self._run_on(lists, Step("table", "count_parts", 4, defines), args, (sizes,))
        offsets = self._offsets(sizes)
        n = int(offsets[-1])
        table = Table(offsets, xp.empty(n, xp.int32), xp.empty(n, xp.int32), xp.empty(n, xp.int64))
        connectivity = xp.zeros(1, xp.int64)
        loads = xp.zeros((n_parts, level.resources.shape[1] + level.counts.shape[1]), xp.int64)
        args = (*level[:5], level.net_weights, level.counts, parts)
        results = (*table, connectivity, loads)
        self._run_on(lists, Step("table", "fill_table", 16, defines), args, results)
        self._run_nodes(
            "table", "add_resources", level, level.resources, parts, level.n_nodes, loads
        )
        return table, int(connectivity[0]), loads

    def _run_nodes(self, source: str, name: str, level: Level, *args: Any) -> None:
        """A kernel that knows the number of loads, with a thread for each node."""
        kernel = self.device.kernel(source, name, defines_of(level))
        self.device.launch(kernel, -(-level.n_nodes // THREADS), args)

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
        lengths, visits = xp.diff(table.offsets), xp.zeros(n, xp.int64)
        self._add_rows(level.node_offsets, level.node_nets, lengths, visits)
        self._add_rows(level.out_offsets, level.out_nets, lengths, visits)
        args = (locked, parts, loads, limits, int(strict), n, visits, moves.targets)
        self._run_nodes("refine", "prepare_proposals", level, *args)
        step = Step("refine", "propose_moves", 12 + 8 * level.counts.shape[1], defines_of(level))
        lists = self._list_rows(visits, len(loads), step.slot_bytes, dense=True)
        state = (*level[5:], parts, *table, loads, limits, prices, len(loads))
        self._run_on(lists, step, (*state, int(strict), haven, seed, slack, visits, *moves), ())
        return moves

    def gains_in_sequence(
        self, level: Level, table: Table, parts: Array, targets: Array, ranks: Array, n_parts: int
    ) -> Array:
        """int64[n_nodes]: what each move saves after all moves of better rank."""
        xp, n_nets = self.xp, level.n_nets
        gains = xp.zeros(level.n_nodes, xp.int64)
        moving, counts = (targets >= 0).astype(xp.int64), xp.zeros(n_nets, xp.int64)
        rows = ((level.net_offsets, level.net_pins, None), (*level[2:4], level.source_weights))
        for offsets, items, _ in rows:
            self._add_rows(offsets, items, moving, counts)
        event_offsets = self._offsets(counts)
        n = int(event_offsets[-1])
        cursors = event_offsets[:-1].copy()
        events = [xp.empty(n, d) for d in (xp.int64, xp.int32, xp.int32, xp.int32, xp.int64)]
        state = (level.net_offsets, parts, targets, ranks, cursors)
        for offsets, items, weights in rows:
            args = (offsets, n_nets, items, len(items), weights, *state, *events)
            self._run("sequence", "list_events", -(-len(items) // CHUNK) if n else 0, *args)
        args = (
            event_offsets,
            n_nets,
            n,
            *events,
            level.net_offsets,
            level.net_weights,
            *table,
            gains,
        )
        self._run("sequence", "gain_of_events", n, *args)
        return gains
