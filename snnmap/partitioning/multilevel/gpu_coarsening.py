"""Coarsening on the GPU: loads of nodes, ratings, contraction (``kernels/``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from snnmap import _csr
from snnmap.partitioning.multilevel.gpu_rows import CHUNK, GpuRows, Step, defines_of
from snnmap.partitioning.multilevel.level import Level

Array = Any  # cupy.ndarray


class GpuCoarsening(GpuRows):
    """The steps of coarsening; see `engine_cpu.CpuEngine`."""

    bring: Callable[[Level], Level]
    restore: Callable[[Level], Level]

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
        step = Step("coarsen", "rate_clusters", 12, ())
        self._run_on(lists, step, (*state, *knobs, targets, scores), ())
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
        """(admissible neighbours of each node, best first; their scores): see the twin."""
        xp, n = self.xp, level.n_nodes
        neighbours = xp.empty((n, candidates), xp.int32)
        scores, visits = xp.empty((n, candidates), xp.int64), xp.empty(n, xp.int64)
        nobody, borders = (
            xp.zeros(n, xp.int32),
            xp.zeros(n, xp.int32) if borders is None else borders,
        )
        rows = (level.net_offsets, level.source_offsets, *level[5:9])
        knobs, ignored = (max_nets, max_pins, seed), xp.empty(n, xp.int32)
        args = (*rows, xp.zeros(n, bool), nobody, 0, *knobs, n, visits, ignored)
        self._run("coarsen", "count_visits", min(n, 1 << 20) * 32, *args)
        slot_bytes = 12 + 8 * level.counts.shape[1]
        lists = self._list_rows(visits, n, slot_bytes, dense=False)
        step = Step("neighbours", "rate_neighbours", slot_bytes, defines_of(level))
        state = (*level[:12], loads, limits, borders, *knobs, candidates, neighbours, scores)
        self._run_on(lists, step, state, ())
        return neighbours, scores

    def match_forest(self, targets: Array, weights: Array) -> Array:
        """int32[n_nodes]: partners in a matching of the largest weight (see the twin)."""
        xp, n = self.xp, len(targets)
        children, gains = xp.zeros(n, xp.int32), xp.zeros(n, xp.int64)
        self._run("matching", "count_children", n, targets, n, children)
        left = children.copy()
        self._run("matching", "peel_trees", n, targets, weights, n, children, left, gains)
        choices, partners = xp.full(n, -1, xp.int32), xp.full(n, -1, xp.int32)
        state = (targets, weights, n, left, gains)
        self._run("matching", "choose_children", n, *state, choices)
        before, flags = xp.empty(n, xp.int32), xp.empty(n, xp.uint8)
        self._run("matching", "match_cycles", n, *state, before, flags, partners)
        self._run("matching", "match_chains", n, targets, choices, n, partners)
        return partners

    def contract(self, level: Level, clusters: Array, n_clusters: int) -> Level:
        """The level whose nodes are the clusters; nets with equal pins become one."""
        return self.restore(self.contract_nets(level, clusters, n_clusters))

    def contract_nets(self, level: Level, clusters: Array, n_clusters: int) -> Level:
        """The same without lists by destination (see the twin); the level may lie on the host."""
        xp, level = self.xp, self.bring(level)
        lists = self._list_rows(xp.diff(level.net_offsets), n_clusters, 4, dense=False)
        step, rows = Step("rows", "distinct_items", 4, ()), (*level[:2], clusters)
        sizes = xp.zeros(level.n_nets, xp.int64)
        self._run_on(lists, step, rows, (sizes, None, None))
        offsets = self._offsets(sizes)
        pins = xp.empty(int(offsets[-1]), xp.int32)
        self._run_on(lists, step, rows, (None, offsets, pins))
        del lists, rows, sizes
        self._sort_rows(offsets, pins)
        merged, firsts = self._group_equal_rows(offsets, pins)
        n_nets = len(firsts)
        if n_nets < level.n_nets:
            offsets, pins = self._close_gaps(offsets, pins, firsts)
        weights = xp.zeros(n_nets, xp.int64)
        self.add_at(weights, merged, level.net_weights)
        counts = xp.zeros((n_nets, level.counts.shape[1]), xp.int64)
        self.add_at(counts, merged, level.counts)
        resources = xp.zeros((n_clusters, level.resources.shape[1]), xp.int64)
        self.add_at(resources, clusters, level.resources)

        keys = self._keys(level.source_offsets, level.source_nodes, clusters, merged)
        order = xp.argsort(keys)
        keys = keys[order]
        new = self._changes(keys)
        source_keys = keys[new]
        source_weights = xp.zeros(len(source_keys), xp.int64)
        self.add_at(source_weights, xp.cumsum(new) - 1, level.source_weights[order])
        source_lists = self._unpack(source_keys, n_nets)
        keys = xp.empty_like(source_keys)
        self._run("rows", "swap_keys", len(keys), source_keys, len(keys), keys)
        order = xp.argsort(keys)
        out_lists = (*self._unpack(keys[order], n_clusters), source_weights[order])
        none = xp.zeros(0, xp.int64), xp.zeros(0, xp.int32)
        arrays = (offsets, pins, *source_lists, source_weights, *none, *out_lists)
        return Level(*arrays, weights, counts, resources)

    def _close_gaps(self, offsets: Array, pins: Array, rows: Array) -> tuple[Array, Array]:
        """Only some rows, in ascending order, moved to the front a slice at a time."""
        xp = self.xp
        new_offsets = self._offsets(xp.diff(offsets)[rows])
        n_pins = int(new_offsets[-1])
        for a, b, first, last in self._slices(new_offsets, n_pins, self.slice_items):
            piece, places = xp.empty(last - first, xp.int32), self._rebase(new_offsets, a, b, first)
            args = (offsets, pins, rows[a:b], places, b - a, len(piece), piece)
            self._run("rows", "take_rows", -(-len(piece) // CHUNK), *args)
            pins[first:last] = piece  # nothing of later rows lies there
        n_before, pins = len(pins), pins[:n_pins]
        return new_offsets, pins.copy() if 8 * n_pins < 7 * n_before else pins

    def _group_equal_rows(self, offsets: Array, pins: Array) -> tuple[Array, Array]:
        """(int32 group of each row, int64 first row of each group), groups by their first row.

        Rows with equal 64-bit hashes are compared; should two of them differ, the host decides.
        """
        args: tuple[Any, ...]
        xp, n = self.xp, len(offsets) - 1
        hashes = self._hash_rows(offsets, pins)
        order = xp.argsort(hashes)  # stable: a run begins with its first row
        representatives, firsts = xp.empty(n, xp.int64), xp.empty(n, xp.int64)
        self._run("rows", "represent_rows", n, order, hashes, n, representatives, firsts)
        groups, first_rows = xp.empty(n, xp.int32), order
        summary = xp.zeros(2, xp.uint64)  # rows that differ, groups
        args = (offsets, pins, n, representatives, summary)
        self._run("rows", "count_different", 32 * min(n, 1 << 20), *args)
        args = (representatives, xp.cumsum(firsts), n, groups, first_rows, summary)
        self._run("rows", "number_groups", n, *args)
        differing, n_groups = (int(x) for x in self.to_host(summary))
        if differing:
            host = (self.to_host(pins), self.to_host(offsets[:-1]), self.to_host(xp.diff(offsets)))
            groups, firsts = _csr.group_equal_rows(*host)
            return self.from_host(groups.astype(np.int32)), self.from_host(firsts)
        return groups, first_rows[:n_groups]

    def _hash_rows(self, offsets: Array, pins: Array) -> Array:
        """int64[rows]: hashes of rows of pins, the same for equal rows."""
        hashes, n = self.xp.zeros(len(offsets) - 1, self.xp.int64), len(pins)
        self._run("rows", "hash_rows", -(-n // CHUNK), offsets, len(hashes), pins, n, hashes)
        return hashes
