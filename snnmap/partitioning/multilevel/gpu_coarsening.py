"""Coarsening on the GPU: loads of nodes, ratings, matching (``kernels/``)."""

from __future__ import annotations

from typing import Any

from snnmap.partitioning.multilevel.gpu_contraction import GpuContraction
from snnmap.partitioning.multilevel.gpu_rows import Step, defines_of
from snnmap.partitioning.multilevel.level import Level

Array = Any  # cupy.ndarray


class GpuCoarsening(GpuContraction):
    """The steps of coarsening; see `engine_cpu.CpuEngine`."""

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
