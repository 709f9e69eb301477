# mypy: disable-error-code="no-untyped-def"
"""Compiled steps of parallel coarsening; each has a twin in ``kernels/coarsen.cu``."""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from snnmap._rows import mix64, sort_range
from snnmap.partitioning.multilevel._kernels_search import scramble

LEADING = 12  # bits by which many values are first told apart


@njit(cache=True, nogil=True)
def rate_clusters(
    net_offsets,
    net_pins,
    source_offsets,
    source_nodes,
    source_weights,
    node_offsets,
    node_nets,
    out_offsets,
    out_nets,
    out_weights,
    net_weights,
    leaders,
    settled,
    loads,
    cap,
    limits,
    turns,
    borders,
    turn,
    max_nets,
    max_pins,
    seed,
    targets,
    scores,
    start,
    stop,
):
    """Cluster that each unsettled node of this turn shares most with, or -1.

    Sharing is the sum over common nets of weight / pins. At most about `max_nets` nets of a node and
    `max_pins` pins of a net are looked at: nets whose hash is small (the same for all nodes, so that
    neighbours see the same nets), pins at equal strides. Clusters led by nodes that may move in
    this turn, or beyond a border, are left out; loads of node and cluster together must keep within `cap` and `limits`.
    """
    n = len(leaders)
    gathered = np.zeros(n, np.int64)
    touched = np.empty(n, np.int32)
    for v in range(start, stop):
        targets[v] = -1
        if settled[v] or turns[v] != turn:
            continue
        n_touched = 0
        for side in range(2):
            first, last = (
                (node_offsets[v], node_offsets[v + 1])
                if side == 0
                else (out_offsets[v], out_offsets[v + 1])
            )
            bar = uint64(0xFFFFFFFFFFFFFFFF)
            if last - first > max_nets:
                bar = uint64(0xFFFFFFFFFFFFFFFF) // uint64(last - first) * uint64(max_nets)
            for j in range(first, last):
                g = node_nets[j] if side == 0 else out_nets[j]
                if scramble(g, seed) > bar:
                    continue
                size = net_offsets[g + 1] - net_offsets[g]
                if size == 0:  # only sources: nobody shares it
                    continue
                weight = net_weights[g] if side == 0 else out_weights[j]
                score = (weight << 6) // size + 1
                looked = min(net_offsets[g + 1] - net_offsets[g], max_pins)
                for i in range(looked):
                    u = leaders[net_pins[net_offsets[g] + i * size // looked]]
                    if gathered[u] == 0:
                        touched[n_touched] = u
                        n_touched += 1
                    gathered[u] += score
                if side == 1:
                    continue
                n_sources = source_offsets[g + 1] - source_offsets[g]
                looked = min(n_sources, max_pins)
                for i in range(looked):
                    place = source_offsets[g] + i * n_sources // looked
                    u = leaders[source_nodes[place]]
                    if gathered[u] == 0:
                        touched[n_touched] = u
                        n_touched += 1
                    gathered[u] += (source_weights[place] << 6) // size + 1
        best = -1
        best_score = np.int64(0)
        best_tie = uint64(0)
        for t in range(n_touched):
            u = touched[t]
            score = gathered[u]
            gathered[u] = 0
            if u == v or score < best_score or borders[u] != borders[v]:
                continue
            if turns[u] == turn and not settled[u]:
                continue
            fits = loads[u, 0] + loads[v, 0] <= cap
            for r in range(loads.shape[1]):
                fits &= loads[u, r] + loads[v, r] <= limits[r]
            if not fits:
                continue
            tie = scramble(u, seed + 1)
            if score > best_score or tie > best_tie or (tie == best_tie and u < best):
                best, best_score, best_tie = u, score, tie
        targets[v] = best
        scores[v] = best_score


@njit(cache=True, nogil=True)
def mix_values(values, step, salt, out, start, stop):
    """out[i] = mix64(values[i] * step + salt)."""
    for i in range(start, stop):
        out[i] = mix64(values[i] * step + salt)


@njit(cache=True, nogil=True)
def sum_by_row(offsets, items, values, sums, start, stop):
    """sums[i] = wrapping sum of values[item] over row i, for uint64 values."""
    for row in range(start, stop):
        total = uint64(0)
        for j in range(offsets[row], offsets[row + 1]):
            total += values[items[j]]
        sums[row] = total


@njit(cache=True, nogil=True)
def load_nodes(node_offsets, node_nets, counts, resources, loads, start, stop):
    """loads[v] = what node v alone puts on a part."""
    for v in range(start, stop):
        for r in range(resources.shape[1]):
            loads[v, r] = resources[v, r]
        for c in range(counts.shape[1]):
            loads[v, resources.shape[1] + c] = 0
        for j in range(node_offsets[v], node_offsets[v + 1]):
            for c in range(counts.shape[1]):
                loads[v, resources.shape[1] + c] += counts[node_nets[j], c]


@njit(cache=True, nogil=True)
def number_values(values, places, most):
    """Different uint64 values in order of appearance; places[i] = number of value i among them.

    Ends when there are more than `most`.
    """
    n_slots = 1 << 12
    slots = np.full(n_slots, -1, np.int64)
    distinct = np.empty(n_slots // 2, np.uint64)
    n = 0
    for i in range(len(values)):
        if i > 0 and values[i] == values[i - 1]:
            places[i] = places[i - 1]
            continue
        if n > most:
            break
        if n == len(distinct):  # half full: twice as many slots
            more = np.empty(n_slots, np.uint64)
            for k in range(n):
                more[k] = distinct[k]
            distinct = more
            n_slots *= 2
            slots = np.full(n_slots, -1, np.int64)
            for k in range(n):
                slot = mix64(distinct[k]) & uint64(n_slots - 1)
                while slots[slot] >= 0:
                    slot = (slot + uint64(1)) & uint64(n_slots - 1)
                slots[slot] = k
        slot = mix64(values[i]) & uint64(n_slots - 1)
        while slots[slot] >= 0 and distinct[slots[slot]] != values[i]:
            slot = (slot + uint64(1)) & uint64(n_slots - 1)
        if slots[slot] < 0:
            slots[slot] = n
            distinct[n] = values[i]
            n += 1
        places[i] = slots[slot]
    return distinct[:n].copy()


@njit(cache=True, nogil=True)
def rename(places, names):
    """places[i] = names[places[i]]."""
    for i in range(len(places)):
        places[i] = names[places[i]]


@njit(cache=True, nogil=True)
def count_leading(values, counts, start, stop):
    """counts[b] += values of values[start:stop] whose leading bits are b."""
    for i in range(start, stop):
        counts[values[i] >> uint64(64 - LEADING)] += 1


@njit(cache=True, nogil=True)
def scatter_leading(values, cursor, order, start, stop):
    """Append start..stop-1 to the list of each value's leading bits; cursor = where to append."""
    for i in range(start, stop):
        bucket = values[i] >> uint64(64 - LEADING)
        order[cursor[bucket]] = i
        cursor[bucket] += 1


@njit(cache=True, nogil=True)
def number_buckets(values, order, offsets, places, found, start, stop):
    """places[i] = rank of value i among the different ones of its bucket; found[b] = how many there are."""
    largest = np.int64(1)
    for bucket in range(start, stop):
        largest = max(largest, offsets[bucket + 1] - offsets[bucket])
    n_slots = 2
    while n_slots < 2 * largest:
        n_slots *= 2
    slots = np.full(n_slots, -1, np.int64)
    ranks = np.empty(n_slots, np.int64)
    distinct = np.empty(largest, np.int64)
    for bucket in range(start, stop):
        first, last = offsets[bucket], offsets[bucket + 1]
        used = 1
        while used < 2 * (last - first):
            used *= 2
        for slot in range(used):
            slots[slot] = -1
        n = np.int64(0)
        for j in range(first, last):
            value = values[order[j]]
            if j > first and value == values[order[j - 1]]:
                places[order[j]] = places[order[j - 1]]
                continue
            slot = mix64(value) & uint64(used - 1)
            while slots[slot] >= 0 and values[slots[slot]] != value:
                slot = (slot + uint64(1)) & uint64(used - 1)
            places[order[j]] = slot
            if slots[slot] < 0:
                slots[slot] = order[j]
                distinct[n] = np.int64(value)  # the leading bits agree: signed ones sort alike
                n += 1
        sort_range(distinct, np.int64(0), n)
        for k in range(n):
            value = uint64(distinct[k])
            slot = mix64(value) & uint64(used - 1)
            while values[slots[slot]] != value:
                slot = (slot + uint64(1)) & uint64(used - 1)
            ranks[slot] = k
        for j in range(first, last):
            places[order[j]] = ranks[places[order[j]]]
        found[bucket] = n


@njit(cache=True, nogil=True)
def add_by_leading(values, firsts, places, start, stop):
    """places[i] += firsts[leading bits of value i]."""
    for i in range(start, stop):
        places[i] += firsts[values[i] >> uint64(64 - LEADING)]


@njit(cache=True, nogil=True)
def number_chunks(order, offsets, pieces, alone, firsts, chunks, start, stop):
    """chunks[v] = chunk of node v, for the nodes of classes start..stop-1."""
    for c in range(start, stop):
        begin = offsets[c]
        members = offsets[c + 1] - begin
        for i in range(members):
            piece = i * pieces[c] // members if pieces[c] <= members else min(i, alone[c])
            chunks[order[begin + i]] = firsts[c] + piece
