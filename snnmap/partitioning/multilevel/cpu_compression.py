"""Compression on the CPU: signatures of nodes, their numbers, chunks, and the first contraction.

Nothing here needs lists by node: signatures are scattered from the nets to their pins, every thread
to its own range of nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from snnmap import _csr
from snnmap.parallel import chunk_bounds, for_chunks, map_tasks, thread_count
from snnmap.partitioning.multilevel import _kernels_coarsen as kco
from snnmap.partitioning.multilevel import _kernels_compress as kcm
from snnmap.partitioning.multilevel import compression
from snnmap.partitioning.multilevel.compression import STEP, Classes
from snnmap.partitioning.multilevel.level import Level, contract_small
from snnmap.progress import SILENT, Progress

Array = np.ndarray[Any, Any]

_FEW = 1 << 17  # so many different values are numbered in one table
SMALL_PINS = 1 << 18  # below, one sequential kernel beats many parallel ones


class Inputs(NamedTuple):
    """Nodes without inbound h-edges, which are known by what they lead to.

    Attributes:
        nodes: int64[n_inputs], ascending.
        offsets: int64[n_inputs + 1].
        nets: int64[...], the nets that each is a source of.
    """

    nodes: Array
    offsets: Array
    nets: Array


class CpuCompression:
    """The steps of compression; see `engine_cpu.CpuEngine`."""

    merge_nets: Callable[..., Level]
    restore: Callable[[Level], Level]
    _inputs: Inputs | None = None  # of the level whose nodes are being signed

    def classify(
        self, level: Level, rounds: int, most: int, progress: Progress = SILENT
    ) -> compression.Classified | None:
        """Classes of twins, then of class twins (see `compression.py`)."""
        return compression.classify_in_rounds(self, level, rounds, most, progress)

    def sign_nodes(self, level: Level, classes: Array | None) -> Array:
        """uint64[n_nodes]: equal for twins, or class twins (see `compression.py`)."""
        if classes is None or self._inputs is None:
            self._inputs = _list_inputs(level)
        signatures = self._sign_inbound(level, classes)
        outbound = self._sign_outbound(level, self._inputs, classes)
        signatures[self._inputs.nodes] = outbound ^ np.uint64(STEP)
        return signatures

    def sort_classes(self, level: Level, classes: Array, n_classes: int) -> Classes:
        """The nodes of each class together."""
        self._inputs = None
        return compression.sort_classes(self, level, classes, n_classes)

    def count_chunks(self, classes: Classes, largest: list[int]) -> list[int]:
        """How many chunks there are if they are to be at most about so large, for each size."""
        numbers = classes.members, classes.sizes
        totals = for_chunks(kcm.count_chunks, len(largest), *numbers, np.array(largest), grain=1)
        return [int(count) for count in np.concatenate(totals)]

    def split_classes(self, classes: Classes, largest: int) -> Array:
        """int32[n_nodes]: chunks of classes of at most about `largest` in size."""
        plan = compression.plan_pieces(np, classes, largest)
        return self.number_chunks(classes.order, classes.offsets, *plan)

    def nest_chunks(self, classes: Classes, fine: int, coarse: int, n_fine: int) -> Array:
        """int32[n_fine]: the chunk of size `coarse` that holds each of size `fine`."""
        plans = (compression.plan_pieces(np, classes, size) for size in (fine, coarse))
        nested: Array = compression.nest_pieces(np, classes, *plans)
        return nested

    def _sign_inbound(self, level: Level, classes: Array | None) -> Array:
        """uint64[n_nodes]: sums of the signatures of each node's nets.

        `classes` (int32[n_nodes]) tell what their sources are; None: every net is itself.
        """
        signatures = np.zeros(level.n_nodes, np.uint64)
        known = np.zeros(0, np.int32) if classes is None else classes
        rows = level[:4]
        ranges = _csr.share_ids(level.net_pins, level.n_nodes)
        map_tasks(kcm.sign_inbound, [(*rows, known, signatures, *ends) for ends in ranges])
        return signatures

    def _sign_outbound(self, level: Level, inputs: Inputs, classes: Array | None) -> Array:
        """uint64[n_inputs]: sums of the signatures of the nets that each input is a source of."""
        nets, places = np.unique(inputs.nets, return_inverse=True)
        if classes is None:
            values = self.mix(nets, STEP, 77)
        else:
            values = np.empty(len(nets), np.uint64)
            work = _csr.offsets_of(level.net_offsets[nets + 1] - level.net_offsets[nets])
            args = (nets, *level[:2], classes, values)
            for_chunks(kcm.sign_by_pins, len(nets), *args, offsets=work)
        return self.sum_rows(inputs.offsets, places.astype(np.int32), values)

    def number(self, values: Array) -> tuple[int, Array]:
        """(how many different uint64 values, int32[n] place of each among them, ascending)."""
        n, many = len(values), thread_count()
        bounds = chunk_bounds(n, many if n > 1 << 16 else 1)
        runs = map_tasks(kcm.count_runs, [(values, *ends) for ends in bounds])
        if n < 1 << 16 or 4 * sum(runs) > 3 * n:
            return self._number(values)
        starts = _csr.offsets_of(np.array(runs))
        heads, firsts = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.uint64)
        tasks = [
            (values, heads, firsts, start, *ends)
            for start, ends in zip(starts, bounds, strict=False)
        ]
        map_tasks(kcm.find_runs, tasks)
        n_distinct, numbers = self._number(firsts)
        places = np.empty(n, np.int32)
        for_chunks(kcm.spread_runs, len(heads), heads, numbers, places, grain=1024)
        return n_distinct, places

    def _number(self, values: Array) -> tuple[int, Array]:
        """The same for values that seldom equal the one before."""
        places = np.empty(len(values), np.int32)
        some = values[:: max(len(values) >> 12, 1)]
        if len(values) > 1 << 16 and 4 * len(np.unique(some)) > len(some):
            return self._number_many(values, places)
        bounds = chunk_bounds(len(values), thread_count() if len(values) > 1 << 16 else 1)
        pieces = [places[start:stop] for start, stop in bounds]
        tasks = [(values[a:b], piece, _FEW) for (a, b), piece in zip(bounds, pieces, strict=True)]
        tables = map_tasks(kcm.number_values, tasks)
        if max(len(table) for table in tables) > _FEW:
            return self._number_many(values, places)
        distinct = np.unique(np.concatenate(tables))
        ranks = [np.searchsorted(distinct, table) for table in tables]
        map_tasks(kcm.rename, list(zip(pieces, ranks, strict=True)))
        return len(distinct), places

    def _number_many(self, values: Array, places: Array) -> tuple[int, Array]:
        """The same where most values differ: by their leading bits first."""
        n, n_buckets = len(values), 1 << kcm.LEADING
        bounds = chunk_bounds(n, thread_count())
        counts = np.zeros((len(bounds), n_buckets), np.int64)
        map_tasks(kcm.count_leading, [(values, counts[i], *ends) for i, ends in enumerate(bounds)])
        cursors = _csr.offsets_of(counts.T.ravel())[:-1].reshape(n_buckets, -1).T.copy()
        offsets = _csr.offsets_of(counts.sum(axis=0))
        together, order = np.empty(n, np.uint64), np.empty(n, np.int32)
        map_tasks(
            kcm.scatter_leading,
            [(values, cursors[i], together, order, *ends) for i, ends in enumerate(bounds)],
        )
        found = np.empty(n_buckets, np.int64)
        args = (together, order, offsets, places, found)
        for_chunks(kcm.number_buckets, n_buckets, *args, offsets=offsets)
        firsts = _csr.offsets_of(found)
        for_chunks(kcm.add_by_leading, n, values, firsts, places)
        return int(firsts[-1]), places

    def mix(self, values: Array, step: int = 1, salt: int = 0) -> Array:
        """SplitMix64 finaliser of value * step + salt, for 64-bit integers; uint64."""
        values = np.ascontiguousarray(values).view(np.uint64)
        out = np.empty_like(values)
        for_chunks(kco.mix_values, len(values), values, np.uint64(step), np.uint64(salt), out)
        return out

    def order_by(self, values: Array, n_values: int) -> tuple[Array, Array]:
        """(int32[n] indices by value, equal ones ascending; int64[n_values + 1] where each begins)."""
        offsets, order = _csr.sort_places(values.astype(np.int32, copy=False), n_values)
        return order, offsets

    def number_chunks(
        self, order: Array, offsets: Array, pieces: Array, alone: Array, firsts: Array
    ) -> Array:
        """int32[n]: chunk of each node (see `compression.Pieces`)."""
        chunks = np.empty(len(order), np.int32)
        args = (order, offsets, pieces, alone, firsts, chunks)
        for_chunks(kcm.number_chunks, len(pieces), *args, offsets=offsets)
        return chunks

    def sum_rows(self, offsets: Array, items: Array, values: Array) -> Array:
        """uint64[rows]: wrapping sums of values over rows of items."""
        sums = np.empty(len(offsets) - 1, np.uint64)
        for_chunks(kcm.sum_by_row, len(sums), offsets, items, values, sums, offsets=offsets)
        return sums

    def sum_resources(self, level: Level, clusters: Array, n_clusters: int) -> Array:
        """int64[n_clusters, n_additive]: what the nodes of each cluster add to the loads of a part."""
        resources = level.resources
        bounds = chunk_bounds(len(clusters), thread_count() if len(clusters) > 1 << 18 else 1)
        totals = [np.zeros((n_clusters, resources.shape[1]), np.int64) for _ in bounds]
        args = [
            (clusters, resources, total, *ends) for total, ends in zip(totals, bounds, strict=True)
        ]
        map_tasks(kcm.add_resources, args)
        for other in totals[1:]:
            totals[0] += other
        return totals[0]

    def contract(self, level: Level, clusters: Array, n_clusters: int) -> Level:
        """The level whose nodes are the clusters; nets with equal pins become one.

        For clusters of classes: most nets follow one of the same pins then, and only those of each run
        are written down and compared with others.
        """
        if level.n_pins <= SMALL_PINS:
            return contract_small(level, clusters, n_clusters)
        n_counts = level.counts.shape[1]
        pins, sizes = np.empty(level.n_pins, np.int32), np.empty(level.n_nets, np.int64)
        sources = np.empty(len(level.source_nodes), np.int32)
        source_weights = np.empty(len(sources), np.int64)
        n_sources, weights = np.empty(level.n_nets, np.int64), np.empty(level.n_nets, np.int64)
        counts = np.empty((level.n_nets, n_counts), np.int64)
        bounds = chunk_bounds(level.n_nets, thread_count(), level.net_offsets)
        old = (*level[:5], level.net_weights, level.counts, clusters, n_clusters)
        new = (pins, sizes, sources, source_weights, n_sources, weights, counts)
        found = map_tasks(kcm.contract_runs, [(*old, *new, *ends) for ends in bounds])

        def joined(array: Array, firsts: Any, column: int) -> Array:
            pieces = [array[a : a + n[column]] for a, n in zip(firsts, found, strict=True)]
            return np.concatenate(pieces)

        nets = [start for start, _ in bounds]
        offsets = _csr.offsets_of(joined(sizes, nets, 0))
        coarse = level._replace(
            source_offsets=_csr.offsets_of(joined(n_sources, nets, 0)),
            source_nodes=joined(sources, level.source_offsets[nets], 2),
            source_weights=joined(source_weights, level.source_offsets[nets], 2),
            net_weights=joined(weights, nets, 0),
            counts=joined(counts, nets, 0),
            resources=self.sum_resources(level, clusters, n_clusters),
        )
        pins = joined(pins, level.net_offsets[nets], 1)
        same = np.arange(n_clusters, dtype=np.int32)
        return self.restore(self.merge_nets(coarse, offsets, pins, same, n_clusters))


def _list_inputs(level: Level) -> Inputs:
    """The nodes without inbound h-edges, and their nets."""
    marks, pins = np.zeros(level.n_nodes, bool), level[:2]
    for_chunks(kcm.mark_pins, level.n_nets, *pins, marks, offsets=level.net_offsets)
    nodes = np.flatnonzero(~marks)
    if len(nodes) == 0:
        return Inputs(nodes, np.zeros(1, np.int64), np.zeros(0, np.int64))
    entries = _entries_of(level.source_nodes, marks)
    nets = np.searchsorted(level.source_offsets, entries, side="right") - 1
    ids = np.searchsorted(nodes, level.source_nodes[entries]).astype(np.int32)
    offsets, places = _csr.sort_places(ids, len(nodes))
    return Inputs(nodes, offsets, nets[places])


def _entries_of(items: Array, marks: Array) -> Array:
    """int32[...]: the places of items that are not marked."""
    places = np.empty(len(items), np.int32)
    bounds = chunk_bounds(len(items), thread_count())
    counts = map_tasks(kcm.find_unmarked, [(items, marks, places, *ends) for ends in bounds])
    return np.concatenate([places[a : a + n] for (a, _), n in zip(bounds, counts, strict=True)])
