"""Coarsening on the GPU: clusters, ratings of neighbours, matching (``kernels/``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from snnmap.partitioning.multilevel.config import CoarseningConfig
from snnmap.partitioning.multilevel.gpu_contraction import GATE_WORDS, GpuContraction, Space
from snnmap.partitioning.multilevel.gpu_rows import Step, defines_of
from snnmap.partitioning.multilevel.level import Level

Array = Any  # cupy.ndarray

_TABLE_BYTES = 32 * 8 * 864  # shared memory of ``cluster.cu`` for the tables of a block's warps
_N_CLUSTERS = slice(GATE_WORDS + 2, GATE_WORDS + 3)  # see `Counter` in cluster_nets.cuh
_ALL = 1 << 31  # bits: as much shared memory as there is


class GpuCoarsening(GpuContraction):
    """The steps of coarsening; see `engine_cpu.CpuEngine`."""

    spills: bool

    def node_loads(self, level: Level) -> Array:
        """int64[n_nodes, n_loads]: what each node alone puts on a part."""
        n_additive, n_distinct = level.resources.shape[1], level.counts.shape[1]
        loads = self.xp.zeros((level.n_nodes, n_additive + n_distinct), self.xp.int64)
        loads[:, :n_additive] = level.resources
        for c in range(n_distinct):
            column = (c, n_additive + c)
            self._add_rows(level.node_offsets, level.node_nets, level.counts, loads, column)
        return loads

    def cluster(
        self,
        level: Level,
        limits: Array,
        config: CoarseningConfig,
        seed: int,
        borders: Array | None,
    ) -> tuple[Array, int]:
        """(int32[n_nodes] cluster of each node, their number): see `coarsening.cluster_in_turns`.

        Contraction begins at once, so that the host waits only once for all sizes.
        """
        xp, n, turns = self.xp, level.n_nodes, config.turns
        n_loads, n_sources = level.resources.shape[1] + level.counts.shape[1], len(level.out_nets)
        n_nets, n_pins = level.n_nets, level.n_pins
        half, blocks = n // 2 + 1, self.device.multiprocessors
        zeroed = [GATE_WORDS + 10 + 5 * turns, n, n * n_loads, n, half, half, n_nets // 8 + 1]
        picks = [n_pins + 5 * n_sources // 2 + 2 * n_nets + 4, 5 * n_nets]
        wide, narrow = [n, n, blocks, n], 4 * [half]
        lists = [turns * n, n, n_nets // 2 + 1]
        space = Space(xp, zeroed, [*picks, *wide, *narrow, *lists])
        clusters = xp.empty(n, xp.int32)
        salt = (seed * 0xD1B54A32D192ED03 + 2**63) % 2**64 - 2**63
        growth = int(np.float64(config.growth).view(np.int64))
        knobs = (turns, config.max_nets, config.max_pins, seed, salt, growth)
        arrays = (
            *level[:11],
            level.counts,
            level.resources,
            limits,
            borders,
            n,
            n_nets,
            n_pins,
            n_sources,
        )
        args = (*arrays, *knobs, *space.pieces, clusters)
        apart, defines = (0, _TABLE_BYTES), defines_of(level)
        self._run_together("cluster", "cluster_nodes", _ALL, *args, apart=apart, defines=defines)
        found = space.array[_N_CLUSTERS]
        if self.spills:  # the level goes to host memory before it is contracted
            return clusters, int(found[0])
        found = found.copy()
        del space, args  # makes room
        begun = self._begin_contraction(level, clusters, n, found)
        n_clusters = begun.sizes[-1]
        if n_clusters <= config.stall * n:  # else nobody contracts it
            self._begun = begun
        return clusters, n_clusters

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
        borders = xp.zeros(n, xp.int32) if borders is None else borders
        knobs, defines = (max_nets, max_pins, seed), defines_of(level)
        args = (*level[:11], *knobs, n, visits)
        threads = min(n, 1 << 20) * 32
        self._run("neighbours", "count_neighbours", threads, *args, defines=defines)
        slot_bytes = 12 + 8 * level.counts.shape[1]
        lists = self._list_rows(visits, n, slot_bytes, dense=False)
        step = Step("neighbours", "rate_neighbours", slot_bytes, defines)
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
