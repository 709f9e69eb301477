# mypy: disable-error-code="no-untyped-def"
"""Compiled steps of compression: signatures of nodes, their numbers, chunks, contraction of runs."""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from snnmap._rows import lower_bound, mix64, sort_range

LEADING = 12  # bits by which many values are first told apart
_STEP = uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def mark_pins(net_offsets, net_pins, marks, start, stop):
    """marks[v] = True for every pin v of nets start..stop-1."""
    for j in range(uint64(net_offsets[start]), uint64(net_offsets[stop])):
        marks[np.uint32(net_pins[j])] = True


@njit(cache=True, nogil=True)
def find_unmarked(items, marks, places, start, stop):
    """places[start : start + n] = where unmarked items stand in items[start:stop]; returns n."""
    n = 0
    for i in range(uint64(start), uint64(stop)):
        places[start + n] = i
        n += not marks[np.uint32(items[i])]
    return n


@njit(cache=True, nogil=True)
def sign_inbound(
    net_offsets, net_pins, source_offsets, source_nodes, classes, signatures, low, high
):
    """Add to the signature of every node in [low, high) those of its nets.

    A net is known by its sources' classes, or by its own id where it has none, or where there are no
    classes yet (an empty array).
    """
    first_time = len(classes) == 0
    for g in range(len(net_offsets) - 1):
        j, last = net_offsets[g], net_offsets[g + 1]
        if j == last or net_pins[j] >= high or net_pins[last - 1] < low:
            continue
        value = uint64(0)
        begin, end = source_offsets[g], source_offsets[g + 1]
        if first_time:
            value = mix64(uint64(g) * _STEP + uint64(1))
        elif begin == end:
            value = mix64(uint64(g) * _STEP + uint64(3))
        else:
            for s in range(uint64(begin), uint64(end)):
                value += mix64(uint64(classes[np.uint32(source_nodes[s])]) * _STEP + uint64(5))
        j = lower_bound(net_pins, j, last, low)
        last = lower_bound(net_pins, j, last, high)
        for i in range(uint64(j), uint64(last)):
            signatures[np.uint32(net_pins[i])] += value


@njit(cache=True, nogil=True)
def sign_by_pins(nets, net_offsets, net_pins, classes, signatures, start, stop):
    """signatures[i] = that of net nets[i], by the classes of its pins."""
    for i in range(start, stop):
        value = uint64(0)
        for j in range(uint64(net_offsets[nets[i]]), uint64(net_offsets[nets[i] + 1])):
            value += mix64(uint64(classes[np.uint32(net_pins[j])]) * _STEP + uint64(9))
        signatures[i] = mix64(value * _STEP + uint64(11))


@njit(cache=True, nogil=True)
def sum_by_row(offsets, items, values, sums, start, stop):
    """sums[i] = wrapping sum of values[item] over row i, for uint64 values."""
    for row in range(start, stop):
        total = uint64(0)
        for j in range(offsets[row], offsets[row + 1]):
            total += values[items[j]]
        sums[row] = total


@njit(cache=True, nogil=True)
def count_runs(values, start, stop):
    """How many of values[start:stop] differ from the one before."""
    n = 0
    for i in range(start, stop):
        n += i == 0 or values[i] != values[i - 1]
    return n


@njit(cache=True, nogil=True)
def find_runs(values, heads, firsts, end, start, stop):
    """heads[end...], firsts[end...] = where a run of equal values begins, and its value."""
    for i in range(start, stop):
        if i == 0 or values[i] != values[i - 1]:
            heads[end] = i
            firsts[end] = values[i]
            end += 1


@njit(cache=True, nogil=True)
def spread_runs(heads, numbers, places, start, stop):
    """places[i] = numbers[r] for all i of run r."""
    for r in range(start, stop):
        end = heads[r + 1] if r + 1 < len(heads) else len(places)
        for i in range(uint64(heads[r]), uint64(end)):
            places[i] = numbers[r]


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
def scatter_leading(values, cursor, sorted_values, order, start, stop):
    """Append values start..stop-1, and where they stood, by their leading bits; cursor = where to."""
    for i in range(start, stop):
        bucket = values[i] >> uint64(64 - LEADING)
        sorted_values[cursor[bucket]] = values[i]
        order[cursor[bucket]] = i
        cursor[bucket] += 1


@njit(cache=True, nogil=True)
def number_buckets(values, order, offsets, places, found, start, stop):
    """places[order[j]] = rank of value j among the different ones of its bucket; found[b] = their number.

    The values of a bucket, which lie together, are thrown into about as many bins by their next
    bits, then sorted there: that order is nearly all there is to do.
    """
    largest = np.int64(1)
    for bucket in range(start, stop):
        largest = max(largest, offsets[bucket + 1] - offsets[bucket])
    n_bins = 1
    while n_bins < largest and n_bins < 1 << 16:
        n_bins *= 2
    ends = np.empty(n_bins + 1, np.int64)
    distinct = np.empty(largest, np.int64)  # the leading bits agree: signed ones sort alike
    for bucket in range(start, stop):
        first, last = offsets[bucket], offsets[bucket + 1]
        n_bins, shift = 1, uint64(64 - LEADING)
        while n_bins < last - first and n_bins < 1 << 16:
            n_bins *= 2
            shift -= uint64(1)
        mask = uint64(n_bins - 1)
        for b in range(n_bins + 1):
            ends[b] = 0
        for j in range(first, last):
            ends[((values[j] >> shift) & mask) + uint64(1)] += 1
        for b in range(n_bins):
            ends[b + 1] += ends[b]
        for j in range(first, last):
            b = (values[j] >> shift) & mask
            distinct[ends[b]] = np.int64(values[j])
            ends[b] += 1
        n, begin = np.int64(0), np.int64(0)
        for b in range(n_bins):
            end = ends[b]
            if end - begin > 1:
                sort_range(distinct, begin, end)
            ends[b] = n
            for k in range(begin, end):
                if n == ends[b] or distinct[n - 1] != distinct[k]:
                    distinct[n] = distinct[k]
                    n += 1
            begin = end
        ends[n_bins] = n
        for j in range(first, last):
            value = np.int64(values[j])
            b = (values[j] >> shift) & mask
            low, high = ends[b], ends[b + uint64(1)]
            while high - low > 1:
                middle = (low + high) >> 1
                if distinct[middle] <= value:
                    low = middle
                else:
                    high = middle
            places[order[j]] = low
        found[bucket] = n


@njit(cache=True, nogil=True)
def add_by_leading(values, firsts, places, start, stop):
    """places[i] += firsts[leading bits of value i]."""
    for i in range(start, stop):
        places[i] += firsts[values[i] >> uint64(64 - LEADING)]


@njit(cache=True, nogil=True)
def count_chunks(members, sizes, largest, start, stop):
    """int64[stop - start]: chunks of all classes for each of these sizes (see `compression.plan_pieces`)."""
    totals = np.zeros(stop - start, np.int64)
    for k in range(start, stop):
        for c in range(len(members)):
            pieces = np.int64(1)
            while sizes[c] > pieces * largest[k] and pieces < members[c]:
                pieces *= 2
            if pieces > members[c]:
                alone = min(-((1 - members[c]) * members[c] // pieces), members[c])
                pieces = alone + (alone < members[c])
            totals[k - start] += pieces
    return totals


@njit(cache=True, nogil=True)
def number_chunks(order, offsets, pieces, alone, firsts, chunks, start, stop):
    """chunks[v] = chunk of node v, for the nodes of classes start..stop-1."""
    for c in range(start, stop):
        begin = offsets[c]
        members = offsets[c + 1] - begin
        for i in range(members):
            piece = i * pieces[c] // members if pieces[c] <= members else min(i, alone[c])
            chunks[order[begin + i]] = firsts[c] + piece


@njit(cache=True, nogil=True)
def add_resources(clusters, resources, totals, start, stop):
    """totals[clusters[v]] += resources[v], for nodes start..stop-1."""
    for v in range(start, stop):
        for r in range(resources.shape[1]):
            totals[clusters[v], r] += resources[v, r]


@njit(cache=True, nogil=True)
def contract_runs(
    net_offsets,
    net_pins,
    source_offsets,
    source_nodes,
    source_weights,
    net_weights,
    counts,
    clusters,
    n_clusters,
    pins,
    row_sizes,
    sources,
    weights,
    row_sources,
    row_weights,
    row_counts,
    start,
    stop,
):
    """Nets of clusters instead of nodes; nets that follow their like become one row with them.

    Everything is written from where the nets' own begins: pins (ascending) and sources (in the order
    met, their weights summed up) of each row, how many, its weight and its counts. Returns
    (number of rows, of their pins, of their sources).
    """
    seen = np.full(n_clusters, -1, np.int32)
    place = np.full(n_clusters, -1, np.int64)
    met = np.empty((2, n_clusters), np.int32)  # what this and the last row's nets met
    now, before = uint64(0), uint64(1)
    largest = np.int64(0)
    for g in range(start, stop):
        largest = max(largest, net_offsets[g + 1] - net_offsets[g])
    raw = np.empty(largest, np.int32)  # the clusters of the last net's pins, one by one
    n_raw, n_before = np.int64(-1), np.int64(-1)
    row = np.int64(start) - 1
    end = net_offsets[start]
    first_source = last_source = source_offsets[start]
    for g in range(start, stop):
        first, size = uint64(net_offsets[g]), net_offsets[g + 1] - net_offsets[g]
        same = size == n_raw
        if same:
            for i in range(uint64(size)):
                same &= raw[i] == clusters[np.uint32(net_pins[first + i])]
        if not same:
            n_raw, n, last = size, np.int64(0), np.int32(-1)
            mark = np.int32(g)
            same = True
            for i in range(uint64(size)):
                u = clusters[np.uint32(net_pins[first + i])]
                raw[i] = u
                if u != last and seen[np.uint32(u)] != mark:
                    seen[np.uint32(u)] = mark
                    met[now, n] = u
                    same &= met[before, n] == u
                    n += 1
                last = u
            same &= n == n_before
        if not same:
            now, before = before, now
            n_before = n
            for i in range(n):
                pins[end + i] = met[before, i]
            sort_range(pins, end, end + n)
            end += n
            row += 1
            row_sizes[row] = n
            row_weights[row] = 0
            for c in range(counts.shape[1]):
                row_counts[row, c] = 0
            first_source = last_source
        row_weights[row] += net_weights[g]
        for c in range(counts.shape[1]):
            row_counts[row, c] += counts[g, c]
        for j in range(source_offsets[g], source_offsets[g + 1]):
            u = clusters[source_nodes[j]]
            if place[u] < first_source:
                place[u] = last_source
                sources[last_source] = u
                weights[last_source] = 0
                last_source += 1
            weights[place[u]] += source_weights[j]
        row_sources[row] = last_source - first_source
    return row + 1 - start, end - net_offsets[start], last_source - source_offsets[start]
