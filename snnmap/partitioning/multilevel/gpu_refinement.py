"""Refinement on the GPU: pins-per-part table, proposals, gains in sequence (``kernels/``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from snnmap.partitioning.multilevel.device import THREADS
from snnmap.partitioning.multilevel.engine_cpu import Moves, Table
from snnmap.partitioning.multilevel.gpu_rows import CHUNK, GpuRows, Lists, Step, defines_of
from snnmap.partitioning.multilevel.level import Level

Array = Any  # cupy.ndarray

_SORTED = 5  # an event of a net that is sorted takes so many times the memory of another


class GpuRefinement(GpuRows):
    """The steps of refinement; see `engine_cpu.CpuEngine`.

    Attributes:
        few_events: nets with more moving pins and sources are sorted, others compare all pairs.
    """

    few_events: int = 1024
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
        self._replay(level, table, parts, targets, ranks, (gains, None, None))
        return gains

    def replay(
        self, level: Level, table: Table, parts: Array, targets: Array, ranks: Array, n_parts: int
    ) -> tuple[Array, Array, Array]:
        """(gains, incoming, outgoing) of each move after all moves of better rank (see the twin)."""
        xp, shape = self.xp, (level.n_nodes, level.counts.shape[1])
        gains = xp.zeros(level.n_nodes, xp.int64)
        incoming, outgoing = xp.zeros(shape, xp.int64), xp.zeros(shape, xp.int64)
        self._replay(level, table, parts, targets, ranks, (gains, incoming, outgoing))
        return (
            gains,
            xp.concatenate([level.resources, incoming], axis=1),
            xp.concatenate([level.resources, outgoing], axis=1),
        )

    def _replay(
        self,
        level: Level,
        table: Table,
        parts: Array,
        targets: Array,
        ranks: Array,
        results: tuple[Array, Array | None, Array | None],
    ) -> None:
        """Add to gains, and to incoming and outgoing distinct loads if they are wanted."""
        args: tuple[Any, ...]
        xp, n_nets = self.xp, level.n_nets
        counts, summary = xp.zeros(n_nets, xp.int64), xp.zeros(2, xp.uint64)
        for offsets, items in (level[:2], level[2:4]):
            args = (offsets, n_nets, items, len(items), targets, counts)
            self._run("sequence", "count_events", -(-len(items) // CHUNK), *args)
        event_offsets = self._offsets(counts)
        args = (event_offsets, n_nets, self.few_events, summary)
        self._run("sequence", "sum_up_events", n_nets, *args)
        n, n_large = (int(x) for x in self.to_host(summary))
        moves, most = (parts, targets, ranks), self.slice_items // 2
        if n + (_SORTED * n if n_large else 0) <= most:
            self._replay_nets(level, table, moves, (counts, event_offsets, n, n_large), results)
            return
        work = self._offsets(xp.where(counts > self.few_events, _SORTED * counts, counts))
        for a, b, *_ in self._slices(work, int(work[-1]), most):
            events = self._offsets(counts[a:b])
            args = (counts[a:b], events, int(events[-1]), n_large)
            rows = table._replace(offsets=table.offsets[a : b + 1])
            self._replay_nets(self._nets(level, a, b), rows, moves, args, results)

    def _nets(self, level: Level, a: int, b: int) -> Level:
        """Nets a to b as a level of their own, without lists by node."""
        first, last, first_source, last_source = (
            int(offsets[i]) for offsets in (level.net_offsets, level.source_offsets) for i in (a, b)
        )
        return level._replace(
            net_offsets=self._rebase(level.net_offsets, a, b, first),
            net_pins=level.net_pins[first:last],
            source_offsets=self._rebase(level.source_offsets, a, b, first_source),
            source_nodes=level.source_nodes[first_source:last_source],
            source_weights=level.source_weights[first_source:last_source],
            net_weights=level.net_weights[a:b],
            counts=level.counts[a:b],
        )

    def _replay_nets(
        self,
        level: Level,
        table: Table,
        moves: tuple[Array, Array, Array],
        counted: tuple[Array, Array, int, int],
        results: tuple[Array, Array | None, Array | None],
    ) -> None:
        """The same for some nets.

        Args:
            level: these nets.
            table: their rows.
            moves: parts, targets, ranks.
            counted: int64[n_nets] events, prefix sums of them, how many, of how many nets with many.
            results: to be added to.
        """
        args: tuple[Any, ...]
        xp, n_nets = self.xp, level.n_nets
        counts, event_offsets, n, n_large = counted
        rows = ((*level[:2], None), (*level[2:4], level.source_weights))
        cursors = event_offsets[:-1].copy()
        keys, nodes, origins, aims, weights = (
            xp.empty(n, d) for d in (xp.int64, xp.int32, xp.int32, xp.int32, xp.int64)
        )
        state = (level.net_offsets, *moves, cursors)
        events = (keys, nodes, origins, aims, weights)
        for offsets, items, given in rows:
            args = (offsets, n_nets, items, len(items), given, *state, *events)
            self._run("sequence", "list_events", -(-len(items) // CHUNK) if n else 0, *args)
        effects = (*table, level.net_weights, level.counts, level.counts.shape[1], *results)
        args = (event_offsets, n_nets, n, *events, level.net_offsets, *effects, self.few_events)
        self._run("sequence", "effects_among_few", n, *args)
        if n_large == 0:
            return
        large = xp.flatnonzero(counts > self.few_events)
        if len(large) == 0:
            return
        offsets = self._offsets(counts[large])
        n = int(offsets[-1])
        places, ranked = xp.empty(n, xp.int64), xp.empty(n, xp.int64)
        args = (event_offsets, large, offsets, len(large), n, keys, places, ranked)
        self._run("sequence", "take_events", -(-n // CHUNK), *args)
        places = places[xp.argsort(ranked)]
        halves = xp.empty(2 * n, xp.int64)
        args = (event_offsets, n_nets, places, n, origins, aims, halves)
        self._run("sequence", "split_events", n, *args)
        order = xp.argsort(halves)  # stable: the halves of a net and part stay in order of rank
        halves = halves[order]
        pins, sources = xp.empty(2 * n, xp.int64), xp.empty(2 * n, xp.int64)
        args = (halves, order, 2 * n, places, level.net_offsets, keys, weights, pins, sources)
        self._run("sequence", "changes_of_halves", 2 * n, *args)
        pins, sources = xp.cumsum(pins), xp.cumsum(sources)
        heads = xp.flatnonzero(self._changes(halves))
        args = (halves, order, 2 * n, heads, len(heads), pins, sources)
        args += (places, level.net_offsets, keys, nodes, weights)
        self._run("sequence", "effects_of_halves", 2 * n, *args, *effects)
