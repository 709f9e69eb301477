"""The GPU engine: the steps of `engine_cpu.py` on CuPy arrays with the kernels of ``kernels/``.

Same methods, same integers. Rows (nets, nodes) are sorted into lists by the hash table that each
needs, and worked on by a warp, a block with little or much shared memory, or a block with global
memory; the lengths of the lists stay on the device, so that no step waits for it in vain.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from snnmap import _csr
from snnmap.errors import EngineError
from snnmap.partitioning.multilevel.device import THREADS, Device
from snnmap.partitioning.multilevel.engine_cpu import Moves, Table
from snnmap.partitioning.multilevel.level import Level

Array = Any  # cupy.ndarray

_WARPS = THREADS // 32
_CHUNK = 16  # items of a thread in the kernels that run over chunks of items
_WARP_SLOTS = 256  # largest hash table of a warp
_WARP_VISITS = 2048  # most insertions of a warp's row
_STEP = 0x9E3779B97F4A7C15
_SCRATCH = 1 << 28  # bytes of global memory for tables that fit no shared memory
_IDS = {"net_pins", "source_nodes", "node_nets", "out_nets"}  # int32; all else is int64


class _Lists(NamedTuple):
    """Rows by the hash table they need (see `list_rows` in ``kernels/rows.cu``).

    Attributes:
        n: number of rows.
        slots: int32[n], slots of each row's table.
        ids: int32[4 * n], the four lists.
        counters: uint64[5], their lengths, and the most slots of a row in the fourth.
        limits: most slots of a row in the first three lists.
        largest: at least the most slots of a row in the fourth.
    """

    n: int
    slots: Array
    ids: Array
    counters: Array
    limits: tuple[int, int, int]
    largest: int


class _Step(NamedTuple):
    """Kernels ``<name>_warp`` and ``<name>_block``, bytes of a slot of their tables, macros."""

    source: str
    name: str
    slot_bytes: int
    defines: tuple[str, ...]


class GpuEngine:
    """CuPy and CUDA C++ kernels on the current device.

    Raises:
        EngineError: CuPy, the driver or a device is missing, or the kernels do not compile.
    """

    name = "gpu"

    def __init__(self) -> None:
        self.device = Device()
        self.xp = self.device.xp
        self.reason = f"GPU {self.device.name}"
        with self.device.guard():
            for source, kernel in (("rows", "sum_rows"), ("coarsen", "count_visits")):
                self.device.kernel(source, kernel)

    # ---------------------------------------------------------------- transfers and memory

    def guard(self) -> Any:
        """Context in which faults of the device are EngineErrors."""
        return self.device.guard()

    def upload(self, level: Level) -> Level:
        """The level on the device, after checking that the work on it will fit.

        Raises:
            EngineError: too little memory, with the numbers.
        """
        needed, free = needed_bytes(level), self.device.free_bytes()
        if needed > free:
            raise EngineError(
                f"the network needs about {needed / 2**30:.1f} GiB of GPU memory "
                f"({level.n_pins:,} pins, {level.n_nets:,} nets, {level.n_nodes:,} nodes), "
                f"{free / 2**30:.1f} GiB are free on {self.device.name}; use --engine cpu"
            )
        dtypes = (np.int32 if field in _IDS else np.int64 for field in Level._fields)
        arrays = (np.ascontiguousarray(a, d) for a, d in zip(level, dtypes, strict=True))
        return Level(*(self.xp.asarray(a) for a in arrays))

    def download(self, level: Level) -> Level:
        """The level on the host."""
        return Level(*(self.to_host(a) for a in level))

    def to_host(self, array: Array) -> Any:
        """An array on the host."""
        return self.xp.asnumpy(array)

    def from_host(self, array: Any) -> Array:
        """An array on the device."""
        return self.xp.asarray(array)

    # ---------------------------------------------------------------- tools

    def _run(self, source: str, name: str, threads: int, *args: Any) -> None:
        """A kernel with (at least) that many threads and no shared memory."""
        self.device.launch(self.device.kernel(source, name), -(-threads // THREADS), args)

    def _run_on(
        self, lists: _Lists, step: _Step, args: tuple[Any, ...], results: tuple[Any, ...]
    ) -> None:
        """The kernels of a step over their lists; `args` and `results` stand around the lists."""
        device, n, bytes_each = self.device, lists.n, step.slot_bytes
        warp, block = (
            device.kernel(step.source, f"{step.name}_{kind}", step.defines)
            for kind in ("warp", "block")
        )

        def arguments(kind: int, capacity: int) -> tuple[Any, ...]:
            ids, length = lists.ids[kind * n :], lists.counters[kind:]
            return (*args, lists.slots, ids, length, capacity, *results)

        many = 8 * device.multiprocessors
        shared = _WARPS * lists.limits[0] * bytes_each
        device.launch(warp, min(-(-n // _WARPS), many), arguments(0, lists.limits[0]), shared)
        for kind, slots in ((1, lists.limits[1]), (2, lists.limits[2])):
            if kind == 1 or slots > lists.limits[1]:
                values = (*arguments(kind, slots), None)
                device.launch(block, min(n, many), values, slots * bytes_each)
        if lists.largest > lists.limits[2]:
            size = lists.largest * bytes_each
            blocks = max(1, min(n, 2 * device.multiprocessors, _SCRATCH // size))
            scratch = self.xp.empty(blocks * size, self.xp.uint8)
            device.launch(block, blocks, (*arguments(3, lists.largest), scratch))

    def _list_rows(self, visits: Array, n_keys: int, slot_bytes: int, *, dense: bool) -> _Lists:
        """Sort rows by the table they need; `dense`: a slot for each of `n_keys` keys suffices."""
        xp, n = self.xp, len(visits)
        most = power_of_two(n_keys if dense else 2 * n_keys)
        room = self.device.shared_bytes - 8192  # the kernels themselves take some
        little, much = (min(most, largest_power(room // k // slot_bytes)) for k in (4, 2))
        if most * slot_bytes <= room:
            much = most
        limits = (min(_WARP_SLOTS, most), little, much)
        slots, ids = xp.empty(n, xp.int32), xp.empty(4 * n, xp.int32)
        counters = xp.zeros(5, xp.uint64)
        args = (visits, n, most, _WARP_VISITS, *limits, slots, ids, counters)
        self._run("rows", "list_rows", n, *args)
        largest = most
        if not dense and most > much:
            largest = int(counters[4])
        return _Lists(n, slots, ids, counters, limits, largest)

    def _offsets(self, counts: Array) -> Array:
        """int64[n + 1]: exclusive prefix sums."""
        offsets = self.xp.zeros(len(counts) + 1, self.xp.int64)
        if len(counts):
            self.xp.cumsum(counts, out=offsets[1:])
        return offsets

    def _add_rows(
        self,
        offsets: Array,
        items: Array,
        values: Array,
        sums: Array,
        column: tuple[int, int] = (0, 0),
    ) -> None:
        """Add to a column of `sums` the sums over rows of items of a column of `values`."""
        widths = [a.shape[1] if a.ndim == 2 else 1 for a in (values, sums)]
        values, sums = values.ravel()[column[0] :], sums.ravel()[column[1] :]
        n = len(items)
        args = (offsets, len(offsets) - 1, items, n, values, widths[0], sums, widths[1])
        self._run("rows", "sum_rows", -(-n // _CHUNK), *args)

    def mix(self, values: Array) -> Array:
        """SplitMix64 finaliser of uint64 values."""
        out = self.xp.empty_like(values)
        self._run("rows", "mix_values", len(values), values, out, len(values))
        return out

    def sum_rows(self, offsets: Array, items: Array, values: Array) -> Array:
        """uint64[rows]: wrapping sums of values over rows of items."""
        sums = self.xp.zeros(len(offsets) - 1, self.xp.uint64)
        self._add_rows(offsets, items, values, sums)
        return sums

    def add_at(self, target: Array, index: Array, values: Array) -> None:
        """target[index] += values (int64), with repeated indices adding up."""
        name = "scatter_add32" if index.dtype == np.int32 else "scatter_add"
        width = values.shape[1] if values.ndim == 2 else 1
        n = len(index)
        index, values = (self.xp.ascontiguousarray(a) for a in (index, values))
        self._run("rows", name, n * width, target, index, values, n, width)

    # ---------------------------------------------------------------- refinement

    def measure(self, level: Level, parts: Array, n_parts: int) -> tuple[Table, int, Array]:
        """Table of a partition, its connectivity (constant apart), int64[n_parts, n_loads]."""
        xp, defines = self.xp, _defines(level)
        visits = xp.diff(level.net_offsets) + xp.diff(level.source_offsets)
        lists = self._list_rows(visits, n_parts, 16, dense=True)
        sizes = xp.zeros(level.n_nets, xp.int64)
        args: tuple[Any, ...] = (*level[:4], parts)
        self._run_on(lists, _Step("refine", "count_parts", 4, defines), args, (sizes,))
        offsets = self._offsets(sizes)
        n = int(offsets[-1])
        table = Table(offsets, xp.empty(n, xp.int32), xp.empty(n, xp.int32), xp.empty(n, xp.int64))
        connectivity = xp.zeros(1, xp.int64)
        loads = xp.zeros((n_parts, level.resources.shape[1] + level.counts.shape[1]), xp.int64)
        args = (*level[:5], level.net_weights, level.counts, parts)
        results = (*table, connectivity, loads)
        self._run_on(lists, _Step("refine", "fill_table", 16, defines), args, results)
        self._run_refine("add_resources", level, level.resources, parts, level.n_nodes, loads)
        return table, int(connectivity[0]), loads

    def _run_refine(self, name: str, level: Level, *args: Any) -> None:
        kernel = self.device.kernel("refine", name, _defines(level))
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
        self._run_refine("prepare_proposals", level, *args)
        step = _Step("refine", "propose_moves", 12 + 8 * level.counts.shape[1], _defines(level))
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
            self._run("refine", "list_events", -(-len(items) // _CHUNK) if n else 0, *args)
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
        self._run("refine", "gain_of_events", n, *args)
        return gains

    # ---------------------------------------------------------------- coarsening

    def node_loads(self, level: Level) -> Array:
        """int64[n_nodes, n_loads]: what each node alone puts on a part."""
        n_additive, n_distinct = level.resources.shape[1], level.counts.shape[1]
        loads = self.xp.zeros((level.n_nodes, n_additive + n_distinct), self.xp.int64)
        loads[:, :n_additive] = level.resources
        for c in range(n_distinct):
            column = (c, n_additive + c)
            self._add_rows(level.node_offsets, level.node_nets, level.counts, loads, column)
        return loads

    def rate(
        self,
        level: Level,
        leaders: Array,
        settled: Array,
        loads: Array,
        cap: int,
        limits: Array,
        turns: Array,
        turn: int,
        *,
        max_nets: int,
        max_pins: int,
        seed: int,
        borders: Array | None = None,
    ) -> tuple[Array, Array]:
        """(cluster each node of this turn would join or -1, its score)."""
        xp, n = self.xp, level.n_nodes
        borders = xp.zeros(n, xp.int32) if borders is None else borders
        targets, scores = xp.empty(n, xp.int32), xp.empty(n, xp.int64)
        visits = xp.empty(n, xp.int64)
        knobs = (turn, max_nets, max_pins, seed)
        rows = (level.net_offsets, level.source_offsets, *level[5:9])
        args = (*rows, settled, turns, *knobs, n, visits, targets)
        self._run("coarsen", "count_visits", min(n, 1 << 20) * 32, *args)
        lists = self._list_rows(visits, n, 12, dense=False)
        state = (*level[:11], leaders, settled, loads, loads.shape[1], cap, limits, turns, borders)
        step = _Step("coarsen", "rate_clusters", 12, ())
        self._run_on(lists, step, (*state, *knobs, targets, scores), ())
        return targets, scores

    def contract(self, level: Level, clusters: Array, n_clusters: int) -> Level:
        """The level whose nodes are the clusters; nets with equal pins become one."""
        xp = self.xp
        keys = self._keys(level.net_offsets, level.net_pins, clusters)
        keys.sort()
        keys = keys[self._changes(keys)]
        offsets, pins = self._starts(keys, level.n_nets), self._low(keys)
        del keys
        merged, firsts = self._group_equal_rows(offsets, pins, n_clusters)
        n_nets = len(firsts)
        if n_nets < level.n_nets:
            old_offsets, old_pins = offsets, pins
            offsets = self._offsets(xp.diff(offsets)[firsts])
            pins = xp.empty(int(offsets[-1]), xp.int32)
            args = (old_offsets, old_pins, firsts, offsets, n_nets, len(pins), pins)
            self._run("rows", "take_rows", -(-len(pins) // _CHUNK), *args)
        weights = xp.zeros(n_nets, xp.int64)
        self.add_at(weights, merged, level.net_weights)
        counts = xp.zeros((n_nets, level.counts.shape[1]), xp.int64)
        self.add_at(counts, merged, level.counts)
        resources = xp.zeros((n_clusters, level.resources.shape[1]), xp.int64)
        self.add_at(resources, clusters, level.resources)

        keys = self._keys(offsets, pins, None, swap=True)
        keys.sort()
        node_offsets, node_nets = self._starts(keys, n_clusters), self._low(keys)
        keys = self._keys(level.source_offsets, level.source_nodes, clusters, merged)
        order = xp.argsort(keys)
        keys = keys[order]
        new = self._changes(keys)
        source_keys = keys[new]
        source_weights = xp.zeros(len(source_keys), xp.int64)
        self.add_at(source_weights, xp.cumsum(new) - 1, level.source_weights[order])
        source_nodes = self._low(source_keys)
        order = xp.argsort(source_nodes)
        out_keys = source_nodes[order].astype(xp.int64) << 32
        return Level(
            offsets,
            pins,
            self._starts(source_keys, n_nets),
            source_nodes,
            source_weights,
            node_offsets,
            node_nets,
            self._starts(out_keys, n_clusters),
            (source_keys >> 32).astype(xp.int32)[order],
            source_weights[order],
            weights,
            counts,
            resources,
        )

    def _group_equal_rows(self, offsets: Array, pins: Array, n_ids: int) -> tuple[Array, Array]:
        """(int32 group of each row, int64 first row of each group), groups by their first row.

        Rows with equal 128-bit hashes are compared; should two of them differ, the host decides.
        """
        xp, n = self.xp, len(offsets) - 1
        ids = xp.arange(n_ids, dtype=xp.uint64)
        hashes = [
            self.sum_rows(offsets, pins, self.mix(ids * xp.uint64(_STEP) + xp.uint64(salt)))
            for salt in (1, 0x5851F42D4C957F2D)
        ]
        order = xp.argsort(hashes[1])
        order = order[xp.argsort(hashes[0][order])]  # stable: a run begins with its first row
        new = self._changes(hashes[0][order]) | self._changes(hashes[1][order])
        representatives = xp.empty(n, xp.int64)
        representatives[order] = order[new][xp.cumsum(new) - 1]
        differing = xp.zeros(1, xp.uint64)
        args = (offsets, pins, n, representatives, differing)
        self._run("rows", "count_different", 32 * min(n, 1 << 20), *args)
        if int(differing[0]):
            host = (self.to_host(pins), self.to_host(offsets[:-1]), self.to_host(xp.diff(offsets)))
            groups, firsts = _csr.group_equal_rows(*host)
            return self.from_host(groups.astype(np.int32)), self.from_host(firsts)
        first = representatives == xp.arange(n)
        return (xp.cumsum(first) - 1).astype(xp.int32)[representatives], xp.flatnonzero(first)

    def _keys(
        self,
        offsets: Array,
        items: Array,
        map_: Array | None,
        majors: Array | None = None,
        *,
        swap: bool = False,
    ) -> Array:
        """int64[n_items]: (row, item) of every item in one number, rows and items renamed."""
        keys, n = self.xp.empty(len(items), self.xp.int64), len(items)
        args = (offsets, len(offsets) - 1, items, n, map_, majors, int(swap), keys)
        self._run("rows", "pack_keys", -(-n // _CHUNK), *args)
        return keys

    def _changes(self, keys: Array) -> Array:
        """bool[n]: whether a key differs from the one before it."""
        new = self.xp.ones(len(keys), bool)
        new[1:] = keys[1:] != keys[:-1]
        return new

    def _starts(self, keys: Array, n: int) -> Array:
        """int64[n + 1]: where each major begins in ascending keys."""
        xp = self.xp
        if len(keys) == 0:
            return xp.zeros(n + 1, xp.int64)
        return xp.searchsorted(keys, xp.arange(n + 1, dtype=xp.int64) << 32).astype(xp.int64)

    def _low(self, keys: Array) -> Array:
        """int32[n]: the minor of each key."""
        return (keys & 0xFFFFFFFF).astype(self.xp.int32)


def _defines(level: Level) -> tuple[str, ...]:
    """Compiler options of the kernels that know how many loads there are."""
    return (f"-DN_ADDITIVE={level.resources.shape[1]}", f"-DN_DISTINCT={level.counts.shape[1]}")


def power_of_two(n: int) -> int:
    """The smallest power of two, at least 32, that is not below n."""
    return 1 << max(5, (n - 1).bit_length())


def largest_power(n: int) -> int:
    """The largest power of two, at least 32, that is not above n."""
    return 1 << max(5, n.bit_length() - 1)


def needed_bytes(level: Level) -> int:
    """About how much device memory a partition of the level takes at its peak.

    The level and the coarser ones; then contraction (keys of all pins, their sorted copy) or
    refinement (two tables with an entry for every second pin, moves, events), whichever is more.
    """
    own = sum(int(a.nbytes) for a in level)
    ends = level.n_pins + len(level.source_nodes)
    n_loads = int(level.resources.shape[1] + level.counts.shape[1])
    refinement = 16 * ends + 28 * ends // 4 + level.n_nodes * (40 + 40 * n_loads)
    return own + own // 2 + max(18 * ends, refinement)
