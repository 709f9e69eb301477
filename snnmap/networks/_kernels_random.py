"""Compiled sampling from a counter-based generator: the same numbers on every machine and thread.

Row `row` of a projection draws from its own SplitMix64 stream (Steele, Lea & Flood 2014), started
at mix64(seed + (row + 1) * GOLDEN). Integers only, so no machine rounds differently.
"""

# mypy: allow-untyped-defs, allow-untyped-decorators, allow-untyped-calls
from __future__ import annotations

import numpy as np
from numba import njit, uint64

from snnmap._rows import mix64

_GOLDEN = uint64(0x9E3779B97F4A7C15)
_LOW = uint64(0xFFFFFFFF)


@njit(cache=True, nogil=True, inline="always")
def below(state, n):
    """(next state, integer in 0..n-1), exactly uniform (Lemire 2019), n < 2^32."""
    n = uint64(n)
    while True:
        state += _GOLDEN
        product = (mix64(state) >> uint64(32)) * n
        low = product & _LOW
        if low >= n or low >= ((uint64(1) << uint64(32)) - n) % n:
            return state, np.int64(product >> uint64(32))


@njit(cache=True, nogil=True)
def draw_counts(seed, low, table, counts, start, stop):
    """Set counts[row] = low + number of thresholds uint64 table[...] at most a row's first draw."""
    for row in range(start, stop):
        draw = mix64(seed + uint64(row + 1) * _GOLDEN)
        a, b = 0, len(table)
        while a < b:
            middle = (a + b) >> 1
            if table[middle] <= draw:
                a = middle + 1
            else:
                b = middle
        counts[row] = low + a


@njit(cache=True, nogil=True)
def sample_rows(seed, n, skip_self, offsets, targets, start, stop):
    """Fill each row with distinct ids of 0..n-1, ascending, every subset equally likely.

    A row of k ids keeps the first k distinct draws; of more than half it draws those to leave out.
    With `skip_self`, `n` counts the ids other than the row's own, which is left out.
    """
    taken = np.zeros(n, np.uint8)
    for row in range(start, stop):
        first = offsets[row]
        k = offsets[row + 1] - first
        inverted = 2 * k > n
        wanted = n - k if inverted else k
        state = mix64(mix64(seed + uint64(row + 1) * _GOLDEN))
        if inverted or 32 * k > n:  # mark, then scan all ids
            found = 0
            while found < wanted:
                state, t = below(state, n)
                if not taken[t]:
                    taken[t] = 1
                    found += 1
            keep = uint64(not inverted)
            place = first
            for t in range(n):
                if taken[t] == keep:
                    targets[place] = t
                    place += 1
                taken[t] = 0
        else:  # few of many: sort and redraw what was drawn twice
            found = 0
            while found < k:
                for i in range(first + found, first + k):
                    state, t = below(state, n)
                    targets[i] = t
                targets[first : first + k].sort()
                found = 1
                for i in range(first + 1, first + k):
                    if targets[i] != targets[first + found - 1]:
                        targets[first + found] = targets[i]
                        found += 1
        if skip_self:
            for i in range(first, first + k):
                targets[i] += targets[i] >= row
