# mypy: disable-error-code="no-untyped-def"
"""Compiled replay of moves in sequence; its twin is in ``kernels/sequence.cu``."""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from snnmap._rows import sort_range

_BINS = 256  # most bins of a sort by rank
_FEW = 24  # events that are sorted by comparing them


@njit(cache=True, nogil=True)
def sort_by_rank(events, scratch, n, n_ranks, bins):
    """Sort events[:n], whose upper 32 bits are ranks below `n_ranks`, that lie about evenly."""
    n_bins = 16
    while n_bins < n and n_bins < _BINS:
        n_bins *= 2
    scale = (uint64(n_bins) << uint64(32)) // uint64(n_ranks)
    for b in range(n_bins + 1):
        bins[b] = 0
    for i in range(n):
        b = (uint64(events[i] >> 32) * scale) >> uint64(32)
        bins[b + uint64(1)] += 1
    for b in range(n_bins):
        bins[b + 1] += bins[b]
    for i in range(n):
        b = (uint64(events[i] >> 32) * scale) >> uint64(32)
        scratch[np.uint32(bins[b])] = events[i]
        bins[b] += 1
    first = np.int64(0)
    for b in range(n_bins):
        last = np.int64(bins[b])
        if last - first > 1:
            sort_range(scratch, first, last)
        first = last
    for i in range(n):
        events[i] = scratch[i]


@njit(cache=True, nogil=True)
def replay_moves(
    net_offsets,
    net_pins,
    source_offsets,
    source_nodes,
    source_weights,
    net_weights,
    counts,
    moving,
    parts,
    targets,
    ranks,
    n_parts,
    offsets,
    table_parts,
    table_pins,
    table_sources,
    with_loads,
    start,
    stop,
):
    """What each proposed move does after all moves of better rank.

    Net by net the moving pins and sources are replayed in order of rank on a private copy of the
    net's row; a node that is both moves as a pin first. Nets not marked in `moving` are passed over.

    Returns (gains, incoming, outgoing): int64[n_nodes] connectivity saved; if `with_loads`,
    int64[n_nodes, n_distinct] distinct loads added to the target and taken from the origin, else
    nothing (no rows).
    """
    n_distinct = counts.shape[1]
    rows = len(parts) if with_loads else 0
    gains = np.zeros(len(parts), np.int64)
    incoming = np.zeros((rows, n_distinct), np.int64)
    outgoing = np.zeros((rows, n_distinct), np.int64)
    pins = np.zeros(n_parts, np.int64)
    sources = np.zeros(n_parts, np.int64)
    largest = np.int64(0)
    for g in range(start, stop):
        if moving[g]:
            size = net_offsets[g + 1] - net_offsets[g] + source_offsets[g + 1] - source_offsets[g]
            largest = max(largest, size)
    events, sorted_events = np.empty(largest + 1, np.int64), np.empty(largest, np.int64)
    n_ranks = np.int64(1)
    for v in range(len(targets)):
        if targets[v] >= 0:
            n_ranks = max(n_ranks, ranks[v] + 1)
    bins = np.empty(_BINS + 1, np.int32)
    for g in range(start, stop):
        if not moving[g]:
            continue
        first, last = net_offsets[g], net_offsets[g + 1]
        first_source, last_source = source_offsets[g], source_offsets[g + 1]
        n = np.int64(0)
        for j in range(uint64(first), uint64(last)):
            pin = np.uint32(net_pins[j])
            events[n] = (np.int64(ranks[pin]) << 32) | np.int64(j - uint64(first))
            n += targets[pin] >= 0
        for j in range(first_source, last_source):
            if targets[source_nodes[j]] >= 0:
                events[n] = (
                    np.int64(ranks[source_nodes[j]]) << 32
                ) | last - first + j - first_source
                n += 1
        if n == 0:
            continue
        if n > _FEW:
            sort_by_rank(events, sorted_events, n, n_ranks, bins)
        elif n > 1:
            sort_range(events, np.int64(0), n)
        for s in range(offsets[g], offsets[g + 1]):
            pins[table_parts[s]] = table_pins[s]
            sources[table_parts[s]] = table_sources[s]
        weight = net_weights[g]
        for i in range(n):
            j = events[i] & np.int64(0xFFFFFFFF)
            gain = np.int64(0)
            if j < last - first:
                v = net_pins[first + j]
                a, b = parts[v], targets[v]
                if pins[a] == 1:
                    gain += weight - sources[a]
                    if with_loads:
                        for c in range(n_distinct):
                            outgoing[v, c] += counts[g, c]
                if pins[b] == 0:
                    gain -= weight - sources[b]
                    if with_loads:
                        for c in range(n_distinct):
                            incoming[v, c] += counts[g, c]
                pins[a] -= 1
                pins[b] += 1
            else:
                place = first_source + j - (last - first)
                v = source_nodes[place]
                a, b = parts[v], targets[v]
                if pins[b] > 0:
                    gain += source_weights[place]
                if pins[a] > 0:
                    gain -= source_weights[place]
                sources[a] -= source_weights[place]
                sources[b] += source_weights[place]
            gains[v] += gain
        for s in range(offsets[g], offsets[g + 1]):
            pins[table_parts[s]] = 0
            sources[table_parts[s]] = 0
        for i in range(n):
            j = events[i] & np.int64(0xFFFFFFFF)
            v = (
                net_pins[first + j]
                if j < last - first
                else source_nodes[first_source + j - (last - first)]
            )
            pins[targets[v]] = 0
            sources[targets[v]] = 0
    return gains, incoming, outgoing
