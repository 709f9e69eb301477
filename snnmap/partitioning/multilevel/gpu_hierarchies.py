"""Hierarchies of clusters for the search on the device, all in one launch (``kernels/hierarchies.cu``)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from snnmap.partitioning.multilevel.device import Device, word
from snnmap.partitioning.multilevel.gpu_rows import defines_of, largest_power
from snnmap.partitioning.multilevel.level import Level, contract_small
from snnmap.partitioning.multilevel.search import ENOUGH, Search
from snnmap.partitioning.multilevel.upload import Uploader, send_together

Array = Any  # cupy.ndarray

MOST_SLOTS = 256  # of a warp's table; neighbours of a node that has more are looked at in parts
_FIRST_BYTES = 2048  # of shared memory: scratch, and where everything is
_STATE_WORDS = 32


class Start(NamedTuple):
    """What new partitions start with.

    Attributes:
        row: of the maps that holds the first parts.
        n_parts: how many these are.
        steps: (row, clusters, depth) of the levels worth refining, the coarsest first.
    """

    row: int
    n_parts: int
    steps: list[tuple[int, int, int]]


class Starts:
    """The hierarchies that were made so far for a search, which is handed in where it is needed.

    (One that is kept would keep its levels on the device until cycles are collected.)

    Attributes:
        maps: int32[n_rows, n_nodes] on the device, a cluster or part of each node.
    """

    def __init__(self, device: Device, upload: Uploader, n_nodes: int, threads: int):
        """`n_nodes`: of the finest level; `threads`: of a block."""
        self._known: dict[int, Start] = {}
        self._pending: list[tuple[list[int], int, int, Array]] = []
        self.maps: Array = device.xp.empty((0, n_nodes), device.xp.int32)
        self._device, self._upload, self._threads = device, upload, threads

    def known(self, search: Search) -> dict[int, Start]:
        """What partitions start with, by the number of the hierarchy; all that are being made are waited for."""
        for numbers, first, most, counts in self._pending:
            rows = self._device.xp.asnumpy(counts).reshape(len(numbers), most).tolist()
            for i, (number, row) in enumerate(zip(numbers, rows, strict=True)):
                self._known[number] = self._start(search, first + i * most, [c for c in row if c])
        self._pending.clear()
        return self._known

    def make(self, search: Search, numbers: list[int]) -> None:
        """Start making these hierarchies of a level on the device."""
        if not numbers:
            return
        device, xp = self._device, self._device.xp
        level, config = search.level, search.config
        n, most = level.n_nodes, _most_levels(level.n_nodes, max(config.shrink, ENOUGH))
        maps = xp.empty((len(numbers) * most, n), xp.int32)
        crews = min(len(numbers), device.multiprocessors)
        state = xp.zeros(crews * _STATE_WORDS + len(numbers) * most, xp.int64)
        counts = state[crews * _STATE_WORDS :]
        bundled = [search.keeps_bundles(number) for number in numbers]
        asked = *search.narrow(np.array(numbers)), np.array(bundled)
        limits, seeds, bundled = send_together(self._upload, *asked)
        n_slots, shared, scratch = self._bytes(search)
        args = (
            *level,
            *level.sizes,
            len(numbers),
            crews,
            limits,
            seeds,
            search.bundles,
            bundled,
            int(search.totals[0]),
            int(search.largest[0]),
            word(config.growth),
            word(config.shrink),
            n_slots,
            most,
            state,
            xp.empty(crews * scratch, xp.uint8),
            scratch,
            shared,
            maps,
            counts,
        )
        kernel = device.kernel("hierarchies", "make_hierarchies", defines_of(level))
        device.launch_together(kernel, device.multiprocessors, self._threads, args, shared)
        first = len(self.maps)
        self.maps = xp.concatenate([self.maps, maps]) if first else maps
        self._pending.append((numbers, first, most, counts))

    def _start(self, search: Search, first: int, counts: list[int]) -> Start:
        """The start of the hierarchy whose maps are the rows from `first` on, with so many clusters each."""
        xp = self._device.xp
        n_parts, row = search.level.n_nodes, first + len(counts) - 1
        if counts:
            n_parts = counts[-1]
        else:  # nothing merges
            row = self._append(xp.arange(n_parts, dtype=xp.int32))
        if search.max_parts is not None and n_parts > search.max_parts:
            clusters = xp.asnumpy(self.maps[row])
            finest = Level(*(xp.asnumpy(array) for array in search.level))
            coarsest = contract_small(finest, clusters, n_parts)
            n_parts = search.max_parts
            row = self._append(self._upload(search.join(coarsest, n_parts)[clusters]))
        steps = [(first + d, count, d + 1) for d, count in enumerate(counts)]
        return Start(row, n_parts, [s for s in steps[::-1] if s[1] > n_parts * 5 // 4])

    def _append(self, row: Array) -> int:
        self.maps = self._device.xp.concatenate([self.maps, row.reshape(1, -1)])
        return len(self.maps) - 1

    def _bytes(self, search: Search) -> tuple[int, int, int]:
        """(slots of a warp's table, bytes of shared memory of a block, bytes of scratch of a crew)."""
        level = search.level
        n, n_nets, n_pins, n_sources = level.sizes
        n_loads, n_distinct = len(search.limits), level.counts.shape[1]
        room = self._device.shared_bytes - 8192  # the kernel itself takes some
        warps, slot = self._threads // 32, 4 * (4 + n_distinct)
        n_slots = min(MOST_SLOTS, largest_power((room - _FIRST_BYTES) // warps // slot))
        tables, bits = warps * n_slots * slot, warps * -(-n // 32) * 4
        joining = sum(padded(n * b) for b in (8, 8, 8 * n_loads, 4, 4, 4, 4, 4 * n_distinct))
        most = max(tables, bits, joining)
        shared = _FIRST_BYTES + (most if _FIRST_BYTES + most <= room else max(tables, bits))
        # As `cut_lists` of the kernel cuts it, and `join_nodes` where shared memory has no room.
        halves = (n_pins, n_nets, n_sources, n_pins, n_sources, *6 * (n,), n * n_distinct, n)
        words = (n_sources, n * n_loads, n * n_loads, n, n)
        scratch = sum(padded(4 * h) for h in halves) + sum(padded(8 * w) for w in words)
        return n_slots, shared, scratch + joining


def start_sums(device: Device, level: Level) -> Array:
    """What :func:`sum_level` tells, int64[2, n_loads] on the device, of a level there."""
    xp = device.xp
    sums = xp.zeros((2, level.resources.shape[1] + level.counts.shape[1]), xp.int64)
    lists = (level.node_offsets, level.node_nets, level.counts, level.resources)
    kernel = device.kernel("hierarchies", "sum_level", defines_of(level))
    device.launch(kernel, device.multiprocessors, (*lists, level.n_nodes, level.n_nets, sums))
    return sums


def _most_levels(n: int, shrink: float) -> int:
    """Levels that a hierarchy of n nodes can have, each of which but the last shrinks at least so."""
    most = 2
    while n > 1:
        n = int(n * shrink)
        most += 1
    return most


def padded(n_bytes: int) -> int:
    """Bytes that the kernels' `cut` takes for so many."""
    return -(-n_bytes // 16) * 16
