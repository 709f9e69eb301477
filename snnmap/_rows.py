"""Compiled passes over rows of node ids (the pins of h-edges), each one streaming read.

A row is ``pins[starts[i] : starts[i] + counts[i]]``; rows may lie in a CSR array or between the
other words of a file. All kernels release the GIL and take the bounds of their chunk last.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, uint64

Array = np.ndarray[Any, Any]

_MIX_1 = uint64(0xBF58476D1CE4E5B9)
_MIX_2 = uint64(0x94D049BB133111EB)
_ODD_1, _ODD_2, _ODD_3 = uint64(0x9E3779B1), uint64(0x85EBCA77), uint64(0xC2B2AE3D)
_LOW = uint64(0xFFFFFFFF)
_DE_BRUIJN = uint64(
    0x03F79D71B4CB0A89
)  # its 64 windows of 6 bits differ: tells powers of two apart
_PLACES = np.empty(64, np.int64)
for _place in range(64):
    _PLACES[((0x03F79D71B4CB0A89 << _place) & (2**64 - 1)) >> 58] = _place


@njit(cache=True, nogil=True, inline="always")
def mix64(x):
    """SplitMix64 finaliser (Steele, Lea & Flood 2014): uint64 -> well mixed uint64."""
    x = (x ^ (x >> uint64(30))) * _MIX_1
    x = (x ^ (x >> uint64(27))) * _MIX_2
    return x ^ (x >> uint64(31))


@njit(cache=True, nogil=True)
def sort_range(items, first, last):
    """Sort items[first:last] in place: quicksort, then insertion where little is out of place.

    Numba's own takes a second to compile for each type, and longer for short rows.
    """
    if last - first > 24:
        lows = np.empty(64, np.int64)
        highs = np.empty(64, np.int64)
        lows[0] = first
        highs[0] = last - 1
        n = 1
        while n > 0:
            n -= 1
            low, high = lows[n], highs[n]
            while high - low > 16:
                a, b, c = items[low], items[(low + high) >> 1], items[high]
                pivot = max(min(a, b), min(max(a, b), c))
                i, j = low, high
                while i <= j:
                    while items[i] < pivot:
                        i += 1
                    while pivot < items[j]:
                        j -= 1
                    if i <= j:
                        items[i], items[j] = items[j], items[i]
                        i += 1
                        j -= 1
                if j - low > high - i:  # the longer side waits
                    lows[n], highs[n] = low, j
                    low = i
                else:
                    lows[n], highs[n] = i, high
                    high = j
                n += 1
    for i in range(first + 1, last):
        x = items[i]
        j = i
        while j > first and items[j - 1] > x:
            items[j] = items[j - 1]
            j -= 1
        items[j] = x


@njit(cache=True, nogil=True)
def sum_up(counts, offsets, base, start, stop):
    """offsets[i + 1] = base + counts[start] + ... + counts[i]."""
    for i in range(start, stop):
        base += counts[i]
        offsets[i + 1] = base


@njit(cache=True, nogil=True)
def lower_bound(items, first, last, bound):
    """The first place in the ascending items[first:last] that holds `bound` or more, or last."""
    if first == last or items[first] >= bound:
        return first
    if items[last - 1] < bound:
        return last
    while last - first > 1:  # items[first] < bound <= items[last]
        middle = (first + last) >> 1
        if items[middle] < bound:
            first = middle
        else:
            last = middle
    return last


@njit(cache=True, nogil=True)
def count_not_single(offsets, start, stop):
    """How many of the rows start..stop-1 do not have exactly one entry."""
    n = 0
    for i in range(uint64(start), uint64(stop)):
        n += offsets[i + uint64(1)] - offsets[i] != 1
    return n


@njit(cache=True, nogil=True)
def sum_segments(offsets, values, sums, start, stop):
    """sums[i] = values[offsets[i]] + ... + values[offsets[i + 1] - 1]."""
    for i in range(start, stop):
        total = np.int64(0)
        for j in range(uint64(offsets[i]), uint64(offsets[i + 1])):
            total += values[j]
        sums[i] = total


@njit(cache=True, nogil=True)
def hash_rows(pins, starts, counts, hashes, start, stop):
    """hashes[i] = 128-bit commutative hash (two sums of mixed ids) of row i, for uint64[rows, 2].

    Products of 32-bit halves and unsigned indices (which cannot mean "from the end") let the
    compiler use vector instructions: a third of the time of full 64-bit products.
    """
    for row in range(start, stop):
        a = uint64(counts[row])
        b = uint64(0)
        for j in range(uint64(starts[row]), uint64(starts[row] + counts[row])):
            x = uint64(np.uint32(pins[j])) * _ODD_1
            x ^= x >> uint64(29)
            y = (x & _LOW) * _ODD_2
            y ^= y >> uint64(32)
            a += y
            b += ((y & _LOW) * _ODD_3) ^ x
        hashes[row, 0] = mix64(a)
        hashes[row, 1] = b


@njit(cache=True, nogil=True)
def ends_of_rows(pins, starts, counts, keys, start, stop):
    """keys[i] = 16 * (first pin of row i + 1) + four bits of how far the last one is, 0 if empty.

    Returns the largest, which may be more than 32 bits hold.
    """
    largest = np.int64(0)
    for row in range(uint64(start), uint64(stop)):
        key = np.int64(0)
        if counts[row] > 0:
            first = pins[uint64(starts[row])]
            reach = uint64(pins[uint64(starts[row] + counts[row] - 1)] - first)
            key = 16 * (np.int64(first) + 1) + np.int64((reach * _ODD_1 & _LOW) >> uint64(28))
        keys[row] = np.int32(key)
        largest = max(largest, key)
    return largest


@njit(cache=True, nogil=True)
def find_suspects(keys, largest, suspects):
    """suspects[:n] = rows with key 0 or one that another has too; returns n."""
    once = np.zeros(largest // 64 + 1, np.uint64)
    twice = np.zeros(largest // 64 + 1, np.uint64)
    twice[0] = 1
    one = uint64(1)
    for row in range(len(keys)):
        word, bit = np.uint32(keys[row]) >> np.uint32(6), one << uint64(keys[row] & 63)
        twice[word] |= once[word] & bit
        once[word] |= bit
    n = 0
    for row in range(len(keys)):
        word, bit = np.uint32(keys[row]) >> np.uint32(6), one << uint64(keys[row] & 63)
        suspects[n] = row
        n += (twice[word] & bit) != 0
    return n


@njit(cache=True, nogil=True)
def differ_from_last(pins, starts, counts, new, start, stop):
    """new[i] = whether row i differs from the row before it."""
    for row in range(start, stop):
        same = row > 0 and counts[row] == counts[row - 1]
        if same:
            a, b = uint64(starts[row]), uint64(starts[row - 1])
            for j in range(uint64(counts[row])):
                if pins[a + j] != pins[b + j]:
                    same = False
                    break
        new[row] = not same


@njit(cache=True, nogil=True)
def first_with_hash(hashes, representative):
    """representative[i] = first row with the hash of row i; returns how many hashes there are."""
    n_slots = 16
    while n_slots < 2 * len(hashes):
        n_slots *= 2
    slots = np.full(n_slots, -1, np.int32)
    n_different = 0
    for i in range(len(hashes)):
        slot = hashes[i, 0] & uint64(n_slots - 1)
        while True:
            other = slots[slot]
            if other < 0:
                slots[slot] = i
                representative[i] = i
                n_different += 1
                break
            if hashes[other, 0] == hashes[i, 0] and hashes[other, 1] == hashes[i, 1]:
                representative[i] = other
                break
            slot = (slot + uint64(1)) & uint64(n_slots - 1)
    return n_different


@njit(cache=True, nogil=True)
def equal_rows(pins, starts, counts, order, representative, start, stop):
    """How many sorted rows order[start:stop] differ from the row that represents them (exact)."""
    differing = 0
    for i in range(start, stop):
        row, other = order[i], representative[i]
        if row == other:
            continue
        if counts[row] != counts[other]:
            differing += 1
            continue
        a, b = uint64(starts[row]), uint64(starts[other])
        same = True
        for j in range(uint64(counts[row])):
            same &= pins[a + j] == pins[b + j]
        differing += not same
    return differing


@njit(cache=True, nogil=True)
def split_ties(pins, starts, counts, order, representative):
    """Repair representatives where different rows share a hash (sequential; hardly ever run)."""
    n = len(order)
    i = 0
    while i < n:
        j = i + 1
        while j < n and representative[j] == representative[i]:
            j += 1
        for k in range(i + 1, j):  # compare with every distinct row before it in the run
            for m in range(i, k):
                other = order[m]
                if representative[m] != other:
                    continue
                same = counts[order[k]] == counts[other]
                if same:
                    for p in range(counts[other]):
                        if pins[starts[order[k]] + p] != pins[starts[other] + p]:
                            same = False
                            break
                if same:
                    representative[k] = other
                    break
            else:
                representative[k] = order[k]
        i = j


@njit(cache=True, nogil=True)
def check_rows(pins, starts, counts, n_nodes, start, stop):
    """First row with an id outside 0..n_nodes-1 (or -1), and the number of rows not ascending."""
    bad = -1
    unsorted = 0
    limit = np.uint32(n_nodes)
    for row in range(start, stop):
        first, last = uint64(starts[row]), uint64(starts[row] + counts[row])
        outside = False
        ascending = True
        for j in range(first, last):
            outside |= bool(np.uint32(pins[j]) >= limit)
        for j in range(first + uint64(1), last):
            ascending &= pins[j] > pins[j - uint64(1)]
        if outside and bad < 0:
            bad = row
        unsorted += not ascending
    return bad, unsorted


@njit(cache=True, nogil=True)
def find_descent(pins, offsets, start, stop):
    """Whether a CSR row of start..stop-1 is not strictly ascending; stops at the first."""
    for row in range(start, stop):
        ascending = True
        for j in range(uint64(offsets[row]) + uint64(1), uint64(offsets[row + 1])):
            ascending &= pins[j] > pins[j - uint64(1)]
        if not ascending:
            return True
    return False


@njit(cache=True, nogil=True)
def copy_rows(pins, starts, counts, out, out_offsets, start, stop):
    """out[out_offsets[i]:][:counts[i]] = row i."""
    for row in range(start, stop):
        a, b = uint64(starts[row]), uint64(out_offsets[row])
        for j in range(uint64(counts[row])):
            out[b + j] = pins[a + j]


@njit(cache=True, nogil=True)
def sort_rows(pins, offsets, counts, start, stop):
    """Sort each CSR row in place and move duplicates out; counts[i] = distinct ids of row i."""
    for row in range(start, stop):
        first, last = offsets[row], offsets[row + 1]
        ascending = True
        for j in range(first + 1, last):
            if pins[j] <= pins[j - 1]:
                ascending = False
                break
        if ascending:
            counts[row] = last - first
            continue
        sort_range(pins, first, last)
        kept = first + 1
        for j in range(first + 1, last):
            if pins[j] != pins[j - 1]:
                pins[kept] = pins[j]
                kept += 1
        counts[row] = kept - first


@njit(cache=True, nogil=True)
def count_clusters(pins, offsets, clusters, seen, counts, start, stop):
    """counts[i] = distinct clusters of row i; `seen` is int32[n_clusters], filled with -1."""
    for row in range(start, stop):
        mark = np.int32(row)
        kept = 0
        for j in range(uint64(offsets[row]), uint64(offsets[row + 1])):
            cluster = np.uint32(clusters[np.uint32(pins[j])])
            kept += seen[cluster] != mark
            seen[cluster] = mark
        counts[row] = kept


@njit(cache=True, nogil=True)
def contract_rows(pins, offsets, clusters, bits, out_offsets, out, start, stop):
    """out[out_offsets[i] : out_offsets[i + 1]] = sorted distinct clusters of row i.

    `bits` is uint64[n_clusters // 64 + 1], zero before and after: the set of clusters met. Where
    they lie close together, reading it in order takes half the time of sorting.
    """
    one = uint64(1)
    for row in range(start, stop):
        first = out_offsets[row]
        low = np.uint32(len(bits))
        high = np.uint32(0)
        for j in range(uint64(offsets[row]), uint64(offsets[row + 1])):
            cluster = np.uint32(clusters[np.uint32(pins[j])])
            word = cluster >> np.uint32(6)
            bits[word] |= one << uint64(cluster & np.uint32(63))
            low = min(low, word)
            high = max(high, word)
        if np.int64(high) - np.int64(low) > 8 * (out_offsets[row + 1] - first):
            end = first
            for j in range(uint64(offsets[row]), uint64(offsets[row + 1])):
                cluster = np.uint32(clusters[np.uint32(pins[j])])
                word = cluster >> np.uint32(6)
                bit = one << uint64(cluster & np.uint32(63))
                if bits[word] & bit != 0:
                    bits[word] ^= bit
                    out[end] = cluster
                    end += 1
            sort_range(out, first, end)
            continue
        i = first
        for k in range(np.int64(low), np.int64(high) + 1):
            left = bits[k]
            if left == 0:
                continue
            bits[k] = 0
            while left != 0:
                lowest = left & (~left + one)
                out[i] = 64 * k + _PLACES[(lowest * _DE_BRUIJN) >> uint64(58)]
                i += 1
                left ^= lowest


@njit(cache=True, nogil=True)
def count_pins(pins, counts, low, high):
    """counts[p] += 1 for every pin p in [low, high)."""
    for j in range(len(pins)):
        if low <= pins[j] < high:
            counts[pins[j]] += 1


@njit(cache=True, nogil=True)
def add_weights(offsets, pins, weights, totals, start, stop):
    """totals[p] += weights[row] for every pin p of the rows; int64."""
    for row in range(start, stop):
        for j in range(offsets[row], offsets[row + 1]):
            totals[pins[j]] += weights[row]


@njit(cache=True, nogil=True)
def scatter_rows(offsets, pins, cursor, rows, low, high):
    """Append every row to the list of each of its pins in [low, high); cursor = where to append.

    The pins of a row ascend.
    """
    for row in range(len(offsets) - 1):
        first, last = offsets[row], offsets[row + 1]
        if first == last or pins[first] >= high or pins[last - 1] < low:
            continue
        first = lower_bound(pins, first, last, low)
        last = lower_bound(pins, first, last, high)
        for j in range(uint64(first), uint64(last)):
            pin = np.uint32(pins[j])
            rows[cursor[pin]] = row
            cursor[pin] += 1


@njit(cache=True, nogil=True)
def find_in_rows(offsets, pins, rows, ids, found, start, stop):
    """found[i] = whether sorted row rows[i] holds ids[i] (binary search)."""
    for i in range(start, stop):
        low, high = offsets[rows[i]], offsets[rows[i] + 1]
        end = high
        while low < high:
            middle = (low + high) >> 1
            if pins[middle] < ids[i]:
                low = middle + 1
            else:
                high = middle
        found[i] = low < end and pins[low] == ids[i]


@njit(cache=True, nogil=True)
def scatter_places(items, cursor, places, low, high):
    """Append every place in `items` to the list of the id there, of ids in [low, high)."""
    for j in range(len(items)):
        item = items[j]
        if low <= item < high:
            places[cursor[item]] = j
            cursor[item] += 1
