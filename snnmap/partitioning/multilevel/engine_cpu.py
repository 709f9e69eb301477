"""The CPU engine: every parallel step on NumPy arrays with Numba kernels and threads.

An engine offers the array library (`xp`) and the steps below with the same integers as results;
`engine_gpu.py` is its twin. Algorithms are written once against this face.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from snnmap import _csr
from snnmap.parallel import chunk_bounds, for_chunks, keep_heap, map_tasks, thread_count, trim_heap
from snnmap.partitioning.multilevel import _kernels_coarsen as kco
from snnmap.partitioning.multilevel import _kernels_contract as kct
from snnmap.partitioning.multilevel import _kernels_match as km
from snnmap.partitioning.multilevel import _kernels_refine as kr
from snnmap.partitioning.multilevel import choosing, coarsening, merging
from snnmap.partitioning.multilevel._kernels_sequence import replay_moves
from snnmap.partitioning.multilevel.config import CoarseningConfig, SearchConfig
from snnmap.partitioning.multilevel.cpu_compression import SMALL_PINS, CpuCompression
from snnmap.partitioning.multilevel.level import Level, Sizes, contract_small, with_lists
from snnmap.partitioning.multilevel.search import Search
from snnmap.partitioning.multilevel.state import State
from snnmap.progress import SILENT, Progress

Array = np.ndarray[Any, Any]


class Table(NamedTuple):
    """Sparse pins-per-part table: for each net the parts it touches, those with pins first.

    Attributes:
        offsets: int64[n_nets + 1].
        parts: int32[n_entries].
        pins: int32[n_entries], pins of the net in the part.
        sources: int64[n_entries], weight of the net's sources in the part.
    """

    offsets: Array
    parts: Array
    pins: Array
    sources: Array


_NO_TABLE = Table(np.zeros(1, np.int64), *(np.zeros(0, t) for t in (np.int32, np.int32, np.int64)))
_MANY, _MANY_OF_LARGE = 4, 16  # with more than one in so many nets changed, the table is made anew
_LARGE_PINS = 1 << 20  # of levels where two tables matter
_OFTEN = 8  # with more than every eighth node on the move, all nets are looked at


class Moves(NamedTuple):
    """Proposed moves of all nodes; rows of nodes that do not move hold no meaning.

    Attributes:
        targets: int32[n_nodes], -1 for no move.
        gains: int64[n_nodes], by which moves are ranked.
        plain_gains: int64[n_nodes], connectivity saved by the move alone.
        incoming, outgoing: int64[n_nodes, n_loads], load added to the target and taken from the origin.
    """

    targets: Array
    gains: Array
    plain_gains: Array
    incoming: Array
    outgoing: Array


class CpuEngine(CpuCompression):
    """NumPy and Numba on the threads of this process.

    Attributes:
        kept_pins, kept_share: all levels of a network with fewer pins are kept; else a coarse one that
            has at most one in so many pins of the finest.
    """

    keeps = False
    kept_pins, kept_share = 1 << 20, 8

    name = "cpu"
    reason = "CPU"
    xp: Any = np
    sparse: Any = sparse

    def guard(self) -> AbstractContextManager[None]:
        """Context in which faults of the device become clear errors; the CPU has none."""
        return nullcontext()

    def upload(self, level: Level, work: object = None) -> Level:
        """The level where this engine works."""
        return level

    def download(self, level: Level) -> Level:
        """The level on the host."""
        return level

    def set_aside(self, level: Level) -> Level:
        """A coarse level that is not worked on for a while, where it may stay."""
        return level

    def shed(self, level: Level) -> Level:
        """The level without its lists by destination, which :meth:`restore` makes again."""
        return level.without_lists(np)

    def for_rounds(self, level: Level) -> Level:
        """The level as refinement wants it."""
        return self.restore(level)

    def for_clusters(self, level: Level, config: CoarseningConfig) -> Level:
        """The level as clustering wants it."""
        return self.restore(level)

    def restore(self, level: Level) -> Level:
        """The whole level again."""
        return with_lists(level)

    def keep_memory(self) -> None:
        """Keep freed memory for what comes next: levels are small, and neurons many."""
        keep_heap()
        self.keeps = True

    def tidy(self, *, finest: bool = False) -> None:
        """Give freed memory back to the system, unless it is kept."""
        del finest  # nothing is kept for a level here
        if not self.keeps:
            trim_heap()

    def forget(self) -> None:
        """A partition is done, for which nothing was kept."""

    def to_host(self, array: Array) -> Array:
        """An array on the host."""
        return array

    def from_host(self, array: Array) -> Array:
        """An array where this engine works."""
        return array

    def add_at(self, target: Array, index: Array, values: Array) -> None:
        """target[index] += values, with repeated indices adding up."""
        np.add.at(target, index, values)

    # ---------------------------------------------------------------- search

    def searcher(
        self,
        level: Level,
        limits: Array,
        config: SearchConfig,
        max_parts: int | None,
        bundles: Array | None = None,
    ) -> Search:
        """The search of a small level; `limits` (int64[n_loads]) are on the host."""
        return Search(level, limits, config, max_parts, bundles)

    # ---------------------------------------------------------------- refinement

    def measure(self, level: Level, parts: Array, n_parts: int) -> tuple[Table, int, Array]:
        """Table of a partition, its connectivity (constant apart), int64[n_parts, n_loads] loads."""
        n_additive = level.resources.shape[1]
        loads = np.zeros((n_parts, n_additive + level.counts.shape[1]), np.int64)
        for resource in range(n_additive):
            np.add.at(loads[:, resource], parts, level.resources[:, resource])
        everything = np.ones(level.n_nets, bool)
        return *self._fill(level, _NO_TABLE, parts, loads, everything), loads

    def remeasure(
        self,
        level: Level,
        table: Table,
        connectivity: int,
        loads: Array,
        old: Array,
        parts: Array,
        moved: Array,
    ) -> tuple[Table, int, Array]:
        """What :meth:`measure` gives, from what it gave for `old` parts.

        `moved` (bool[n_nodes]) tells which nodes are elsewhere now.
        """
        moved = np.flatnonzero(moved)
        n_parts, n_additive = len(loads), level.resources.shape[1]
        many = _OFTEN * len(moved) > level.n_nodes
        changed = np.zeros(0, bool) if many else self._nets_of(level, moved)
        share = _MANY if level.n_pins < _LARGE_PINS else _MANY_OF_LARGE
        if many or share * np.count_nonzero(changed) > level.n_nets:
            del table  # before the new one is made
            if level.n_pins >= _LARGE_PINS:
                self.tidy()
            return self.measure(level, parts, n_parts)
        loads = loads.copy()
        for change, where in ((-1, old[moved]), (1, parts[moved])):
            np.add.at(loads[:, :n_additive], where, change * level.resources[moved])
        table, change = self._fill(level, table, parts, loads, changed)
        return table, connectivity + change, loads

    def _nets_of(self, level: Level, ids: Array) -> Array:
        """bool[n_nets]: nets with one of these nodes, or a source of it."""
        marks = np.zeros(level.n_nets, bool)
        for_chunks(kr.mark_nets, len(ids), *level[5:9], ids, marks, grain=2048)
        return marks

    def _fill(
        self, level: Level, old: Table, parts: Array, loads: Array, changed: Array
    ) -> tuple[Table, int]:
        """(table, change of the connectivity); adds to the distinct loads what they change by.

        Rows of unchanged nets are copied from the old table.
        """
        n_parts, n_additive = len(loads), level.resources.shape[1]
        sizes = np.empty(level.n_nets, np.int64)
        pins = (level.net_offsets, level.net_pins, level.source_offsets, level.source_nodes)
        work = level.net_offsets
        args = (*pins, parts, n_parts, changed, old.offsets, sizes)
        for_chunks(kr.count_parts, level.n_nets, *args, offsets=work)
        offsets = _csr.offsets_of(sizes)
        n = int(offsets[-1])
        table = Table(offsets, np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int64))
        found = for_chunks(
            kr.fill_table,
            level.n_nets,
            *pins,
            level.source_weights,
            level.net_weights,
            level.counts,
            parts,
            n_parts,
            changed,
            *old,
            *table,
            offsets=work,
        )
        loads[:, n_additive:] += sum(distinct for _, distinct in found)
        return table, sum(int(c) for c, _ in found)

    def sum_up(
        self, level: Level, limits: Array, connectivity: Any, loads: Array
    ) -> tuple[int, Array]:
        """(connectivity, int64[n_loads] overload over all parts) on the host."""
        return int(connectivity), np.maximum(loads - limits, 0).sum(axis=0)

    def weigh(
        self, level: Level, limits: Array, parts: Array, n_parts: int
    ) -> tuple[Table | None, int, Array, Array]:
        """(table, or None where none is made on the way, connectivity, loads, overload) of a partition.

        Connectivity and int64[n_loads] overload over all parts are on the host.
        """
        table, connectivity, loads = self.measure(level, parts, n_parts)
        connectivity, overload = self.sum_up(level, limits, connectivity, loads)
        return table, connectivity, loads, overload

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
        n, n_loads = level.n_nodes, len(limits)
        moves = Moves(
            np.empty(n, np.int32),
            np.empty(n, np.int64),
            np.empty(n, np.int64),
            np.empty((n, n_loads), np.int64),
            np.empty((n, n_loads), np.int64),
        )
        for_chunks(
            kr.propose_moves,
            n,
            *level[5:],
            parts,
            *table,
            loads,
            limits,
            prices,
            locked,
            strict,
            haven,
            seed,
            slack,
            *moves,
            offsets=level.node_offsets,
        )
        return moves

    def refine_rounds(self, *where: object, **asked: object) -> None:
        """Refine in one go (see `gpu_rounds.py`): this engine takes one round after the other."""

    def refine_by_prefix(self, *where: object) -> None:
        """The same for the other scheme."""

    def repair_rounds(self, *where: object, **asked: object) -> None:
        """The same for repair."""

    def gains_in_sequence(
        self, level: Level, table: Table, parts: Array, targets: Array, ranks: Array, n_parts: int
    ) -> Array:
        """int64[n_nodes]: what each move saves after all moves of better rank."""
        return self._replay(level, table, parts, targets, ranks, n_parts, False)[0]

    def replay(
        self, level: Level, table: Table, parts: Array, targets: Array, ranks: Array, n_parts: int
    ) -> tuple[Array, Array, Array]:
        """What each move does after all moves of better rank.

        Returns:
            (gains, incoming, outgoing): int64[n_nodes] connectivity saved, int64[n_nodes, n_loads] load
            added to the target and taken from the origin; rows of nodes that stay hold no meaning.
        """
        gains, *distinct = self._replay(level, table, parts, targets, ranks, n_parts, True)
        incoming, outgoing = (np.concatenate([level.resources, d], axis=1) for d in distinct)
        return gains, incoming, outgoing

    def _replay(
        self,
        level: Level,
        table: Table,
        parts: Array,
        targets: Array,
        ranks: Array,
        n_parts: int,
        with_loads: bool,
    ) -> tuple[Array, Array, Array]:
        n_chunks = thread_count() if level.n_pins > SMALL_PINS >> 3 else 1
        movers = np.flatnonzero(targets >= 0)
        many = _OFTEN * len(movers) > level.n_nodes
        moving = np.ones(level.n_nets, bool) if many else self._nets_of(level, movers)
        nets = (*level[:5], level.net_weights, level.counts, moving)
        args = (*nets, parts, targets, ranks, n_parts, *table)
        totals, *others = map_tasks(
            replay_moves,
            [
                (*args, with_loads, *ends)
                for ends in chunk_bounds(level.n_nets, n_chunks, level.net_offsets)
            ],
        )
        for more in others:
            for total, array in zip(totals, more, strict=True):
                total += array
        return totals  # type: ignore[no-any-return]

    def choose_moves(
        self, level: Level, limits: Array, state: State, moves: Moves, *, roomy: bool
    ) -> choosing.Chosen:
        """The moves that pay and fit together (see `choosing.py`)."""
        return choosing.choose_moves(self, level, limits, state, moves, roomy=roomy)

    def choose_prefix(
        self, level: Level, limits: Array, state: State, targets: Array, gains: Array
    ) -> choosing.Chosen:
        """The best prefix of all moves in order of gain (see `choosing.py`)."""
        return choosing.choose_prefix(self, level, limits, state, targets, gains)

    def merge_parts(
        self, level: Level, state: State, limits: Array, progress: Progress = SILENT
    ) -> tuple[Array, int]:
        """(int32[n_nodes] parts numbered without gaps, their number) by turns (see `merging.py`)."""
        return merging.merge_parts(self, level, state, limits, progress)

    # ---------------------------------------------------------------- coarsening

    def join_clusters(
        self,
        level: Level,
        wishes: tuple[Array, Array],
        loads: Array,
        room: Array,
        joined: tuple[Array, Array],
    ) -> None:
        """Nodes join the clusters they want while there is room (see `choosing.py`)."""
        choosing.join_clusters(self, wishes, loads, room, joined)

    def cluster(
        self,
        level: Level,
        limits: Array,
        config: CoarseningConfig,
        seed: int,
        borders: Array | None,
    ) -> tuple[Array, int]:
        """(int32[n_nodes] cluster of each node, their number) by turns (see `coarsening.py`)."""
        return coarsening.cluster_in_turns(self, level, limits, config, seed, borders)

    def node_loads(self, level: Level) -> Array:
        """int64[n_nodes, n_loads]: what each node alone puts on a part."""
        loads = np.empty(
            (level.n_nodes, level.resources.shape[1] + level.counts.shape[1]), np.int64
        )
        args = (level.node_offsets, level.node_nets, level.counts, level.resources, loads)
        for_chunks(kco.load_nodes, level.n_nodes, *args, offsets=level.node_offsets)
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
        targets = np.empty(level.n_nodes, np.int32)
        scores = np.empty(level.n_nodes, np.int64)
        for_chunks(
            kco.rate_clusters,
            level.n_nodes,
            *level[:11],
            leaders,
            settled,
            loads,
            cap,
            limits,
            turns,
            np.zeros(level.n_nodes, np.int32) if borders is None else borders,
            turn,
            max_nets,
            max_pins,
            seed,
            targets,
            scores,
            offsets=level.node_offsets,
        )
        return targets, scores

    def rate_neighbours(
        self,
        level: Level,
        loads: Array,
        limits: Array,
        *,
        candidates: int,
        max_nets: int,
        max_pins: int,
        seed: int,
        borders: Array | None = None,
    ) -> tuple[Array, Array]:
        """(int32[n_nodes, candidates] admissible neighbours, best first, -1 where none; int64 scores)."""
        neighbours = np.empty((level.n_nodes, candidates), np.int32)
        scores = np.empty((level.n_nodes, candidates), np.int64)
        for_chunks(
            km.rate_neighbours,
            level.n_nodes,
            *level[:12],
            loads,
            limits,
            np.zeros(level.n_nodes, np.int32) if borders is None else borders,
            max_nets,
            max_pins,
            seed,
            neighbours,
            scores,
            offsets=level.node_offsets,
        )
        return neighbours, scores

    def match_forest(self, targets: Array, weights: Array) -> Array:
        """int32[n_nodes]: partner of each node in a matching of the largest weight, or -1.

        Args:
            targets: int32[n_nodes], the other end of each node's one edge, -1 for no edge.
            weights: int64[n_nodes] > 0, of those edges.
        """
        partners = np.empty(len(targets), np.int32)
        km.match_forest(targets, weights, partners)
        return partners

    def contract_nets(
        self,
        level: Level,
        clusters: Array,
        n_clusters: int,
        sizes: Sizes | None = None,
    ) -> Level:
        """The coarse level without lists by destination (see :meth:`shed`); needs none either.

        Args:
            level: whose nodes the clusters are made of.
            clusters: int32[n_nodes].
            n_clusters: their number.
            sizes: `Level.sizes` of what is made, if that is known, for engines that would wait for it.
        """
        if level.n_pins <= SMALL_PINS:
            return contract_small(level, clusters, n_clusters)
        self.tidy()  # what rounds left behind
        offsets, pins = _csr.contract(level.net_offsets, level.net_pins, clusters, n_clusters)
        return self.merge_nets(level, offsets, pins, clusters, n_clusters)

    def merge_nets(
        self, level: Level, offsets: Array, pins: Array, clusters: Array, n_clusters: int
    ) -> Level:
        """The coarse level, given the pins of its nets, of which equal ones become one."""
        merged, firsts = _csr.group_equal_rows(pins, offsets[:-1], np.diff(offsets))
        n_nets = len(firsts)
        net_offsets, net_pins = offsets, pins
        if n_nets < level.n_nets:
            net_offsets, net_pins = _csr.close_gaps(offsets, pins, firsts)
            if 2 * len(net_pins) < len(pins):
                net_pins = net_pins.copy()
        del offsets, pins
        weights = np.zeros(n_nets, np.int64)
        np.add.at(weights, merged, level.net_weights)
        new_counts = np.zeros((n_nets, level.counts.shape[1]), np.int64)
        np.add.at(new_counts, merged, level.counts)
        sources = kct.contract_sources(
            level.source_offsets,
            level.source_nodes,
            level.source_weights,
            merged,
            n_nets,
            clusters,
            n_clusters,
        )
        rows = np.zeros(0, np.int64), np.zeros(0, np.int32)
        sums = (weights, new_counts, self.sum_resources(level, clusters, n_clusters))
        return Level(*(net_offsets, net_pins, *sources[:3], *rows, *sources[3:], *sums))
