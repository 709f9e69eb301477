"""The search of a small level on the device: a block of threads makes an individual (``kernels/search.cu``).

The host draws the tasks; a generation is one launch and one wait, and so are all hierarchies of clusters that new
partitions start with (``gpu_hierarchies.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from snnmap.partitioning.multilevel.config import SearchConfig
from snnmap.partitioning.multilevel.device import Device, word
from snnmap.partitioning.multilevel.gpu_hierarchies import Starts, padded, start_sums
from snnmap.partitioning.multilevel.gpu_rows import defines_of
from snnmap.partitioning.multilevel.level import Level
from snnmap.partitioning.multilevel.scratch import Scratch
from snnmap.partitioning.multilevel.search import Array, Individual, Search
from snnmap.partitioning.multilevel.upload import Arrival, Uploader, send_together
from snnmap.progress import SILENT, Progress

_MOST_NODES = 1 << 13
_MOST_SHARED = 200 << 10  # bytes of shared memory
_NEAR_MARKS = 256  # as in the kernel
_LEAST_BLOCKS = 4  # that must have memory: fewer take longer than the host
_NO_LIMIT = 1 << 40
_MOST_RANKED = 1 << 11  # new partitions that a block ranks, as in the kernel


class _Row(NamedTuple):
    """A partition among those of a generation: a row of `made` (int32[n, n_nodes]), and where it lies."""

    made: Any
    row: int
    address: int


class _Made(NamedTuple):
    """Partitions that a launch makes.

    Attributes:
        made: int32[n, n_nodes] on the device.
        results: int64[n, 2 + n_loads] there, of each its parts, connectivity, overloads.
        arrival: of these.
        most: parts that one may have.
    """

    made: Any
    results: Any
    arrival: Arrival
    most: int


class GpuSearch(Search):
    """A search whose individuals are made, and lie, on the device (see the twin).

    Attributes:
        is_narrow: whether 31 bits hold the sums of the counts, as blocks need.
        starts: what new partitions start with.
    """

    def __init__(
        self,
        device: Device,
        upload: Uploader,
        level: Level,
        limits: Array,
        config: SearchConfig,
        max_parts: int | None,
        bundles: Array | None,
        scratch: Scratch,
        threads: int,
    ):
        """Prepare the level for all individuals, and start making the hierarchies that they start with.

        Args:
            device: where to work.
            upload: brings host arrays there.
            level: on the device; all else is on the host.
            limits: int64[n_loads].
            config: of the search.
            max_parts: most parts allowed, or None.
            bundles: see the twin; on the device.
            scratch: memory that it may borrow.
            threads: of a block.
        """
        xp, self._upload = device.xp, upload
        self._device, self._xp, self._scratch, self._threads = device, xp, scratch, threads
        sums = start_sums(device, level)
        self._fine = (*level[:5], *level[10:], *level.sizes)
        self._defines = defines_of(level)
        self._graph = xp.empty(_graph_bytes(level), xp.uint8)
        self._source_nets = xp.empty(len(level.source_nodes), xp.int32)
        self._memory, self._cleared = (0, 0), 0
        kernel = device.kernel("search", "prepare_search", self._defines)
        lists = (*level[5:10], self._source_nets, self._graph)
        device.launch(kernel, device.multiprocessors, (*self._fine, *lists))
        totals, largest = xp.asnumpy(sums)
        super().__init__(level, limits, config, max_parts, bundles, (totals, largest))
        self.is_narrow = bool((totals[level.resources.shape[1] :] < 1 << 31).all())
        self.starts = Starts(device, upload, level.n_nodes, threads)
        if self.is_narrow:
            self.starts.make(self, self.first_hierarchies())
        factors = np.array([*config.coarse_prices, *config.fine_prices], np.float64)
        self._factors, self._limits, self._totals = send_together(
            upload, factors.view(np.int64), limits, self.totals
        )

    @staticmethod
    def suits(level: Level, config: SearchConfig, least_parts: int, n_bytes: int) -> bool:
        """Whether blocks can work on a level of this size.

        What concerns nodes and parts must fit shared memory, pins and places of a table 31 bits, and some blocks at once
        the memory.

        Args:
            level: on the device or the host.
            config: of the search.
            least_parts: that the network must have; there are about as many.
            n_bytes: of memory.
        """
        n_parts = min(level.n_nodes, config.most_work // max(level.n_pins, 1))
        n_parts += config.spare_parts * (1 + config.generations)
        small = 0 < level.n_nodes <= min(config.deep, _MOST_NODES)
        n_loads = level.resources.shape[1] + level.counts.shape[1]
        shared = _shared_bytes(level, n_loads, n_parts, 0)
        places = max(level.n_nodes * n_parts, level.n_pins)
        fits = small and shared <= _MOST_SHARED and places < 1 << 31
        usual = least_parts * 5 // 4 + config.spare_parts
        each = _clear_bytes(level, usual) + _scratch_bytes(level, usual)
        return fits and _LEAST_BLOCKS * each <= n_bytes

    def _shared_bytes(self, most_parts: int, words: int = 0) -> int:
        """Bytes of shared memory of a block, with as many words of a node's near parts (see the kernel)."""
        return _shared_bytes(self.level, len(self.limits), most_parts, words)

    def coarsen_all(self, numbers: list[int]) -> list[int]:
        """Make these hierarchies, at once; how many parts partitions start with in each."""
        known = self.starts.known(self)
        self.starts.make(self, [number for number in numbers if number not in known])
        return [self.starts.known(self)[number].n_parts for number in numbers]

    def create_all(self, seeds: list[int]) -> Iterator[list[Individual]]:
        """New partitions, in order."""
        numbers = [seed % self.n_hierarchies for seed in seeds]
        self.coarsen_all(sorted(set(numbers)))
        known = self.starts.known(self)
        steps: list[tuple[int, int, int]] = []
        given: dict[int, tuple[int, ...]] = {}  # of a task, but for the seed
        for number in sorted(set(numbers)):
            start = known[number]
            given[number] = (start.n_parts, len(steps), len(start.steps), 0, 0, start.row)
            steps += start.steps
        tasks = [(seed, *given[number]) for seed, number in zip(seeds, numbers, strict=True)]
        most = max(start[0] for start in given.values()) + self.config.spare_parts
        array = self._upload(np.array(tasks, np.int64))
        self._newest = self._make(array, most, self.starts.maps, steps)
        return self._wait(self._newest)

    def combine_all(
        self, tasks: list[tuple[Individual, Individual, int]]
    ) -> Iterator[list[Individual]]:
        """Offspring, in order; each task is two parents and a seed."""
        rows: list[tuple[int, ...]] = []
        for first, second, seed in tasks:
            better, other = (first, second) if first.cost <= second.cost else (second, first)
            first_at, second_at = better.parts.address, other.parts.address
            rows.append((seed, better.n_parts, 0, 0, first_at, other.n_parts, second_at))
        most = max(max(row[1], row[5]) for row in rows) + self.config.spare_parts
        return self._wait(self._make(self._upload(np.array(rows, np.int64)), most))

    def combine_ahead(self, drawn: list[tuple[int, int, int]]) -> Iterator[list[Individual]] | None:
        """Offspring of the newest partitions, started before these are there (see the twin).

        Not where there is no memory for all at once as long as nobody knows how few parts they have.
        """
        newest, blocks = self._newest, min(len(drawn), self._device.multiprocessors)
        most = newest.most + self.config.spare_parts
        if len(newest.results) > _MOST_RANKED or self._room(blocks, most)[0] < blocks:
            return None
        tasks = self._xp.empty((len(drawn), 7), self._xp.int64)
        kernel = self._device.kernel("search", "choose_parents", self._defines)
        price = word(float(self.config.overload_price))
        ranks = self._upload(np.array(drawn, np.int64))
        given = (newest.results, len(newest.results), newest.made, self.level.n_nodes)
        args = (*given, ranks, len(drawn), self._totals, price, tasks)
        self._device.launch(kernel, 1, args, threads=self._threads)
        return self._wait(self._make(tasks, most))

    def run(self, seed: int | np.random.Generator, progress: Progress = SILENT) -> list[Individual]:
        """The best partitions after the generations that the settings allow; their parts on the device."""
        found = super().run(seed, progress)
        return [one._replace(parts=one.parts.made[one.parts.row]) for one in found]

    def _make(
        self,
        tasks: Array,
        most: int,
        maps: Array | None = None,
        steps: Sequence[tuple[int, int, int]] = (),
    ) -> _Made:
        """Start the tasks (int64[n, 7] on the device, see the kernel), of which none has more than `most` parts."""
        xp, device, config = self._xp, self._device, self.config
        wanted = max(len(tasks), len(steps))
        blocks, clear, scratch = self._room(min(wanted, device.multiprocessors), most)
        memory = clear, _clear_bytes(self.level, most), scratch, _scratch_bytes(self.level, most)
        words = -(-most // 32)  # of near parts, where there is room
        words = words if self._shared_bytes(most, words) <= _MOST_SHARED else 0
        level, levels = (*self._fine, self._source_nets, self._graph), (maps, None)
        ready = 0 < len(steps) <= blocks  # each is contracted in the memory of a block
        if steps:
            levels = (maps, self._upload(np.array(steps, np.int64)))
        if ready:
            kernel = device.kernel("search", "contract_steps", self._defines)
            shared = 8 * (self.level.n_nodes + 1)
            device.launch(
                kernel, len(steps), (*level, *levels, most, *memory), shared, self._threads
            )
        made = xp.empty((len(tasks), self.level.n_nodes), xp.int32)
        results = xp.empty((len(tasks), 2 + len(self.limits)), xp.int64)
        args = (
            *level,
            tasks,
            len(tasks),
            *levels,
            *self.effort,
            self._factors,
            len(config.coarse_prices),
            len(config.fine_prices),
            config.spare_parts,
            _NO_LIMIT if self.max_parts is None else self.max_parts,
            most,
            self._limits,
            self._totals,
            made,
            results,
            *memory,
            int(words > 0),
            int(ready),
        )
        kernel = device.kernel("search", "make_individuals", self._defines)
        blocks = min(blocks, len(tasks))
        device.launch(kernel, blocks, args, self._shared_bytes(most, words), self._threads)
        return _Made(made, results, Arrival(xp, results), most)

    def _wait(self, made: _Made) -> Iterator[list[Individual]]:
        """What was made, all at once; whoever asks waits for it, and not for what was started later."""
        results = made.arrival.wait()
        data: Any = made.made.data
        first, size = int(data.ptr), 4 * self.level.n_nodes
        rows = [_Row(made.made, i, first + i * size) for i in range(len(results))]
        yield self.weigh(rows, results)

    def _room(self, n_blocks: int, most_parts: int) -> tuple[int, Array, Array]:
        """How many blocks have room, at most so many, and memory (uint8) for them: what is clear, and the rest.

        What is clear comes first. Blocks leave it so, and only what a launch takes more than those before is cleared.
        """
        clear_each, each = (f(self.level, most_parts) for f in (_clear_bytes, _scratch_bytes))

        def needed(blocks: int) -> int:
            return max(self._cleared, blocks * clear_each) + blocks * each

        memory: Any = self._scratch.borrow(needed(1), needed(n_blocks))
        place = int(memory.data.ptr), self._scratch.turn
        if place != self._memory:
            self._memory, self._cleared = place, 0
        while needed(n_blocks) > len(memory):
            n_blocks -= 1
        end = max(self._cleared, n_blocks * clear_each)
        if end > self._cleared:
            (memory.data + self._cleared).memset_async(0, end - self._cleared)
        self._cleared = end
        return n_blocks, memory[:end], memory[end:]


def _clear_bytes(level: Level, most_parts: int) -> int:
    """Bytes of what nodes of a block find in its parts."""
    n = level.n_nodes
    gains = max(n * most_parts, (level.n_nets + 1) // 2)
    return padded(8 * gains) + padded(4 * n * most_parts * level.counts.shape[1])


def _scratch_bytes(level: Level, most_parts: int) -> int:
    """Bytes that a block takes besides (`cut_scratch` of the kernel)."""
    n, n_nets, n_pins, n_sources = level.sizes
    words = (n, 2 * (n_pins + n_sources))
    halves = (most_parts**2 + 1, n * level.counts.shape[1], *5 * (n,), n_nets)
    quarters = (n_pins, n_nets * most_parts)
    sizes = (*(8 * w for w in words), *(4 * h for h in halves), *(2 * q for q in quarters))
    return _graph_bytes(level) + sum(padded(b) for b in sizes)


def _graph_bytes(level: Level) -> int:
    """Bytes of a contracted level (`cut_graph` of the kernel)."""
    n, n_nets, n_pins, n_sources = level.sizes
    words = (*3 * (n_sources,), n * level.resources.shape[1], n)
    halves = (n * level.counts.shape[1], n_nets, *2 * (n_pins,), *2 * (n_sources,), *2 * (n + 1,))
    sizes = (*(8 * w for w in words), *(4 * h for h in halves), 2 * n_pins)
    return sum(padded(b) for b in sizes)


def _shared_bytes(level: Level, n_loads: int, most_parts: int, words: int) -> int:
    """Bytes of shared memory of a block: what concerns parts, and nodes, or lists while it contracts."""
    n = level.n_nodes
    of_parts = (8 * n_loads * most_parts, 32 * most_parts, 4 * most_parts)
    of_nodes = sum(padded(b * n) for b in (8, 4, 4, 4, 2, 4, 4 * words)) + padded(4 * -(-n // 32))
    return sum(padded(b) for b in of_parts) + of_nodes + 32 * _NEAR_MARKS
