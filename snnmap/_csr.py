"""Rows of node ids in CSR form: check, sort, group by equal sets, contract, transpose."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from snnmap import _rows
from snnmap.parallel import chunk_bounds, for_chunks, map_tasks, thread_count

Array = np.ndarray[Any, Any]

_MANY_ROWS = 1 << 17  # from here on rows are looked over before they are compared


def offsets_of(counts: Array) -> Array:
    """int64[n + 1] exclusive prefix sums of counts[n]."""
    offsets = np.empty(len(counts) + 1, np.int64)
    offsets[0] = 0
    if counts.dtype != np.int64 or len(counts) < 1 << 20:
        np.cumsum(counts, out=offsets[1:])
        return offsets
    counts = np.ascontiguousarray(counts)
    bounds = chunk_bounds(len(counts), thread_count())
    totals = np.cumsum([0, *(counts[a:b].sum() for a, b in bounds)])
    map_tasks(
        _rows.sum_up,
        [(counts, offsets, base, *ends) for base, ends in zip(totals, bounds, strict=False)],
    )
    return offsets


def sum_segments(offsets: Array, values: Array) -> Array:
    """int64[n]: the sums of values[offsets[i] : offsets[i + 1]] (int64)."""
    sums = np.empty(len(offsets) - 1, np.int64)
    given = (_read_only(offsets), _read_only(values))
    for_chunks(_rows.sum_segments, len(sums), *given, sums, offsets=offsets)
    return sums


def has_single_rows(offsets: Array) -> bool:
    """Whether every row has exactly one entry."""
    n = len(offsets) - 1
    if n != offsets[-1]:
        return False
    return not any(for_chunks(_rows.count_not_single, n, _read_only(offsets)))


def find_bad_row(pins: Array, starts: Array, counts: Array, n_nodes: int) -> tuple[int, int]:
    """(first row with an id out of range or -1, number of rows that are not strictly ascending)."""
    if not len(starts):
        return -1, 0
    found = for_chunks(_rows.check_rows, len(starts), pins, starts, counts, n_nodes, grain=4096)
    bad = [row for row, _ in found if row >= 0]
    return (bad[0] if bad else -1), sum(unsorted for _, unsorted in found)


def sort_unique(offsets: Array, pins: Array) -> tuple[Array, Array]:
    """Rows sorted and without duplicates, as new (offsets, pins); `pins` is consumed.

    Where they are so already, both are returned as they are.
    """
    if not any(for_chunks(_rows.find_descent, len(offsets) - 1, pins, offsets, offsets=offsets)):
        return offsets, pins
    counts = np.empty(len(offsets) - 1, np.int64)
    for_chunks(_rows.sort_rows, len(counts), pins, offsets, counts, offsets=offsets)
    return compact(offsets, pins, counts)


def compact(offsets: Array, pins: Array, counts: Array) -> tuple[Array, Array]:
    """Keep the first counts[i] entries of each row; returns (offsets, pins)."""
    new_offsets = offsets_of(counts)
    if new_offsets[-1] == offsets[-1]:
        return new_offsets, pins
    return new_offsets, take_rows(pins, offsets[:-1], counts, new_offsets)


def take_rows(pins: Array, starts: Array, counts: Array, offsets: Array) -> Array:
    """int32[offsets[-1]]: the rows at `starts` of length `counts`, one after another."""
    out = np.empty(int(offsets[-1]), np.int32)
    for_chunks(_rows.copy_rows, len(starts), pins, starts, counts, out, offsets, offsets=offsets)
    return out


def group_equal_rows(pins: Array, starts: Array, counts: Array) -> tuple[Array, Array]:
    """Find rows with equal sets of ids.

    Args:
        pins: int32[...], rows ascending.
        starts: int64[n_rows], where each row begins.
        counts: int64[n_rows], its length.

    Returns:
        (group of each row, first row of each group), both int64; groups are numbered by their
        first row. Exact: equal hashes are confirmed by comparing the rows.
    """
    n = len(starts)
    if n == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if n >= _MANY_ROWS:
        suspects = _screen_rows(pins, starts, counts)
        if 2 * len(suspects) < n:  # only those can equal another
            group, firsts = group_equal_rows(pins, starts[suspects], counts[suspects])
            if len(firsts) == len(suspects):
                return np.arange(n), np.arange(n)
            is_first = np.ones(n, bool)
            is_first[suspects] = False
            is_first[suspects[firsts]] = True
            numbers = np.cumsum(is_first) - 1
            numbers[suspects] = numbers[suspects[firsts]][group]
            return numbers, np.flatnonzero(is_first)
    new = np.empty(n, bool)
    for_chunks(_rows.differ_from_last, n, pins, starts, counts, new, grain=4096)
    heads = np.flatnonzero(new)
    if 2 * len(heads) < n:  # many follow their like: only the first of each run is looked up
        group, firsts = group_equal_rows(pins, starts[heads], counts[heads])
        return group[offsets_of(new)[1:] - 1], heads[firsts]
    hashes = np.empty((n, 2), np.uint64)
    for_chunks(_rows.hash_rows, n, pins, starts, counts, hashes, grain=256)
    representative = np.empty(n, np.int64)
    n_different = _rows.first_with_hash(hashes, representative)
    rows = np.arange(n)
    if n_different == n:
        return rows, rows.copy()
    if sum(for_chunks(_rows.equal_rows, n, pins, starts, counts, rows, representative, grain=256)):
        order = np.argsort(representative, kind="stable")
        ranked = representative[order]
        _rows.split_ties(pins, starts, counts, order, ranked)
        representative[order] = ranked
    is_first = representative == rows
    numbers = np.cumsum(is_first) - 1
    return numbers[representative], np.flatnonzero(is_first)


def _screen_rows(pins: Array, starts: Array, counts: Array) -> Array:
    """int64[...]: the rows that are empty, or begin and end like another one, or seem to."""
    n = len(starts)
    keys = np.empty(n, np.int32)
    largest = max(for_chunks(_rows.ends_of_rows, n, pins, starts, counts, keys))
    if largest > min(128 * n, (1 << 31) - 1):  # a table of so many would take long
        return np.arange(n)
    suspects = np.empty(n, np.int64)
    return suspects[: _rows.find_suspects(keys, largest, suspects)]


def contract(offsets: Array, pins: Array, clusters: Array, n_clusters: int) -> tuple[Array, Array]:
    """Rows of clusters instead of nodes, each sorted and without duplicates.

    Counted before they are written: the result is all the memory that this takes.
    """
    counts = np.empty(len(offsets) - 1, np.int64)
    n_chunks = thread_count() if len(pins) > 1 << 16 else 1
    chunks = chunk_bounds(len(counts), n_chunks, offsets)
    nodes = (pins, offsets, clusters)
    unseen = [np.full(n_clusters, -1, np.int32) for _ in chunks]
    args = [(*nodes, seen, counts, *ends) for seen, ends in zip(unseen, chunks, strict=True)]
    map_tasks(_rows.count_clusters, args)
    new_offsets = offsets_of(counts)
    out = np.empty(int(new_offsets[-1]), np.int32)
    sets = [np.zeros(n_clusters // 64 + 1, np.uint64) for _ in chunks]
    tasks = [
        (*nodes, bits, new_offsets, out, *ends) for bits, ends in zip(sets, chunks, strict=True)
    ]
    map_tasks(_rows.contract_rows, tasks)
    return new_offsets, out


def close_gaps(offsets: Array, pins: Array, rows: Array) -> tuple[Array, Array]:
    """Only some rows, given in ascending order, as new (offsets, pins); `pins` is consumed.

    They move to the front in place: no second copy is made.
    """
    counts = np.diff(offsets)[rows]
    new_offsets = offsets_of(counts)
    _rows.copy_rows(pins, offsets[:-1][rows], counts, pins, new_offsets, 0, len(rows))
    return new_offsets, pins[: new_offsets[-1]]


def rows_contain(offsets: Array, pins: Array, rows: Array, ids: Array) -> Array:
    """bool[n]: whether row rows[i] (ascending) holds ids[i]."""
    found = np.empty(len(ids), bool)
    for_chunks(_rows.find_in_rows, len(ids), offsets, pins, rows, ids, found)
    return found


def sum_weights(offsets: Array, pins: Array, weights: Array, n_nodes: int) -> Array:
    """int64[n_nodes]: for each id the sum of weights[row] (int64) over the rows that hold it."""
    n_chunks = min(thread_count(), 8) if len(pins) > 1 << 18 else 1
    bounds = chunk_bounds(len(offsets) - 1, n_chunks, offsets)
    totals = np.zeros((n_chunks, n_nodes), np.int64)
    map_tasks(
        _rows.add_weights,
        [
            (offsets, pins, weights, total, a, b)
            for total, (a, b) in zip(totals, bounds, strict=True)
        ],
    )
    return np.asarray(totals.sum(axis=0))


def share_ids(pins: Array, n_nodes: int) -> list[tuple[int, int]]:
    """Ranges of ids with about equal shares of the pins, one for each thread that is worth it."""
    n_chunks = min(thread_count(), 8) if len(pins) > 1 << 18 else 1
    sample = np.sort(pins[:: max(len(pins) >> 14, 1)])
    cuts = [int(sample[len(sample) * i // n_chunks]) for i in range(1, n_chunks)]
    return list(pairwise([0, *cuts, n_nodes]))


def transpose(offsets: Array, pins: Array, n_nodes: int) -> tuple[Array, Array]:
    """(offsets int64[n_nodes + 1], rows int32): for each id the rows that hold it, ascending.

    The pins of a row must ascend.
    """
    ranges = share_ids(pins, n_nodes)
    counts = np.zeros(n_nodes, np.int64)
    map_tasks(_rows.count_pins, [(pins, counts, a, b) for a, b in ranges])
    out_offsets = offsets_of(counts)
    cursor = out_offsets[:-1].copy()
    rows = np.empty(len(pins), np.int32)
    map_tasks(_rows.scatter_rows, [(offsets, pins, cursor, rows, a, b) for a, b in ranges])
    return out_offsets, rows


def sort_places(items: Array, n: int) -> tuple[Array, Array]:
    """(offsets int64[n + 1], places int32): for each id 0..n-1 where it stands in `items`, ascending.

    `items` is int32 and shorter than 2**31.
    """
    n_chunks = min(thread_count(), 8) if len(items) > 1 << 18 else 1
    ranges = chunk_bounds(n, n_chunks)
    counts = np.zeros(n, np.int64)
    map_tasks(_rows.count_pins, [(items, counts, a, b) for a, b in ranges])
    offsets = offsets_of(counts)
    cursor = offsets[:-1].copy()
    places = np.empty(len(items), np.int32)
    map_tasks(_rows.scatter_places, [(items, cursor, places, a, b) for a, b in ranges])
    return offsets, places


def _read_only(array: Array) -> Array:
    """A view that cannot be written to: compiled code knows one type then, not two."""
    view = array.view()
    view.flags.writeable = False
    return view
