# mypy: disable-error-code="no-untyped-def"
"""Compiled replay of moves in sequence; its twin is in ``kernels/sequence.cu``."""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

_CLOSED = np.int64(1) << 40  # of a part in which more pins are than leave: there nothing happens


@njit(cache=True, nogil=True)
def has_pins(last, first, rank):
    """Whether a net has pins in a part once the move of this rank and all of better rank are made.

    Args:
        last: 1 + rank of the last that leaves the part, or _CLOSED.
        first: rank of the first that arrives there, or _CLOSED.
        rank: of a source's move; a node that is pin and source moves as a pin first.
    """
    return last > rank + 1 or first <= rank


@njit(cache=True, nogil=True)
def brought(source_nodes, source_weights, begin, end, parts, targets, ranks, part, rank):
    """Weight that moves of better rank bring to a part, of the sources [begin, end) of a net."""
    total = np.int64(0)
    for j in range(begin, end):
        v = source_nodes[j]
        if targets[v] >= 0 and ranks[v] < rank:
            total += (np.int64(targets[v] == part) - np.int64(parts[v] == part)) * source_weights[j]
    return total


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

    Net by net. Where all of its pins in a part leave, those there before a move are the ones that do not
    leave before it and those that arrive before it: none between the last that leaves and the first
    that arrives, if they move in that order. These two end and begin the net's stay there; where not all leave, nothing
    happens. Nets not marked in `moving` are passed over.

    Returns (gains, incoming, outgoing): int64[n_nodes] connectivity saved; if `with_loads`,
    int64[n_nodes, n_distinct] distinct loads added to the target and taken from the origin, else
    nothing (no rows).
    """
    n_distinct = counts.shape[1]
    rows = len(parts) if with_loads else 0
    gains = np.zeros(len(parts), np.int64)
    incoming = np.zeros((rows, n_distinct), np.int64)
    outgoing = np.zeros((rows, n_distinct), np.int64)
    pins = np.zeros(n_parts, np.int64)  # that stay, while they are counted
    sources = np.zeros(n_parts, np.int64)
    last = np.zeros(n_parts, np.int64)  # see has_pins
    first = np.full(n_parts, _CLOSED)
    largest = np.int64(0)
    for g in range(start, stop):
        if moving[g]:
            largest = max(largest, net_offsets[g + 1] - net_offsets[g])
    movers = np.empty(largest + 1, np.int32)
    for g in range(start, stop):
        if not moving[g]:
            continue
        n = np.int64(0)
        for j in range(uint64(net_offsets[g]), uint64(net_offsets[g + 1])):
            pin = net_pins[j]
            movers[n] = pin
            n += targets[np.uint32(pin)] >= 0
        sends = False
        for j in range(source_offsets[g], source_offsets[g + 1]):
            sends |= targets[source_nodes[j]] >= 0
        if n == 0 and not sends:
            continue
        for s in range(offsets[g], offsets[g + 1]):
            pins[table_parts[s]] = table_pins[s]
            sources[table_parts[s]] = table_sources[s]
        for i in range(n):
            pins[parts[movers[i]]] -= 1
        for s in range(offsets[g], offsets[g + 1]):
            if pins[table_parts[s]] > 0:
                last[table_parts[s]] = _CLOSED
        for i in range(n):
            v = movers[i]
            last[parts[v]] = max(last[parts[v]], ranks[v] + 1)
            first[targets[v]] = min(first[targets[v]], ranks[v])
        weight = net_weights[g]
        for i in range(n):
            v = movers[i]
            a, b, rank = parts[v], targets[v], np.int64(ranks[v])
            ends = last[a] == rank + 1 and rank < first[a]
            begins = first[b] == rank and last[b] <= rank
            for side in range(2):
                if not (begins if side else ends):
                    continue
                p, sign, loads = (b, -1, incoming) if side else (a, 1, outgoing)
                worth = weight - sources[p]
                if sends:
                    begin, end = source_offsets[g], source_offsets[g + 1]
                    moves = (parts, targets, ranks)
                    worth -= brought(source_nodes, source_weights, begin, end, *moves, p, rank)
                gains[v] += sign * worth
                if with_loads:
                    for c in range(n_distinct):
                        loads[v, c] += counts[g, c]
        if sends:
            for j in range(source_offsets[g], source_offsets[g + 1]):
                v = source_nodes[j]
                if targets[v] < 0:
                    continue
                a, b, rank = parts[v], targets[v], np.int64(ranks[v])
                stays = has_pins(last[a], first[a], rank)
                gains[v] += (has_pins(last[b], first[b], rank) - stays) * source_weights[j]
        for s in range(offsets[g], offsets[g + 1]):
            pins[table_parts[s]] = 0
            sources[table_parts[s]] = 0
            last[table_parts[s]] = 0
        for i in range(n):
            first[targets[movers[i]]] = _CLOSED
    return gains, incoming, outgoing
