"""Compiled sampling from a counter-based generator: the same numbers on every machine and thread.

Row `row` of a projection draws from its own SplitMix64 stream (Steele, Lea & Flood 2014), started
at mix64(seed + (row + 1) * GOLDEN). Integers only, so no machine rounds differently.
"""

# mypy: allow-untyped-defs, allow-untyped-decorators, allow-untyped-calls
from __future__ import annotations

import math

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


@njit(cache=True, nogil=True, inline="always")
def uniform(state):
    """(next state, number in (0, 1])."""
    state += _GOLDEN
    return state, np.float64((mix64(state) >> uint64(11)) + uint64(1)) * 2.0**-53


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
    """Fill each row with distinct ids of 0..n-1, in any order, every subset equally likely.

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
        else:  # few of many
            found = 0
            while found < k:
                state, t = below(state, n)
                if not taken[t]:
                    taken[t] = 1
                    targets[first + found] = t
                    found += 1
            for i in range(first, first + k):
                taken[targets[i]] = 0
        if skip_self:
            for i in range(first, first + k):
                targets[i] += targets[i] >= row


@njit(cache=True, nogil=True)
def link_near(
    seed, xy, cells, grid, cell_size, points, names, peak, sigma,
    skip_self, fill, offsets, counts, targets, start, stop,
):  # fmt: skip
    """Links to near targets: pair (row, t) with probability peak * exp(-d^2 / (2 sigma^2)).

    The target points lie sorted into grid[0] x grid[1] cells; nothing beyond 4 sigma is linked.
    Candidates are drawn with probability `peak` (by the geometric distance to the next one) and
    kept with the rest of the probability. Counting (fill false: counts[row] is set) and filling
    (targets at offsets[row], in any order) replay the same draws.
    """
    reach = 4.0 * sigma
    scale = -0.5 / (sigma * sigma)
    stretch = max(1.0 / math.log1p(-peak), -1e15) if peak < 1.0 else 0.0
    for row in range(start, stop):
        state = mix64(seed + uint64(row + 1) * _GOLDEN)
        x, y = xy[row, 0], xy[row, 1]
        a0 = min(max(int((x - reach) / cell_size), 0), grid[0] - 1)
        a1 = min(max(int((x + reach) / cell_size), 0), grid[0] - 1)
        b0 = min(max(int((y - reach) / cell_size), 0), grid[1] - 1)
        b1 = min(max(int((y + reach) / cell_size), 0), grid[1] - 1)
        found = 0
        first = offsets[row] if fill else 0
        state, jump = uniform(state)
        ahead = np.int64(math.log(jump) * stretch)
        for a in range(a0, a1 + 1):
            i = cells[a * grid[1] + b0] + ahead
            end = cells[a * grid[1] + b1 + 1]
            while i < end:
                state, chance = uniform(state)
                dx, dy = points[i, 0] - x, points[i, 1] - y
                square = dx * dx + dy * dy
                t = names[i]
                near = square <= reach * reach and not (skip_self and t == row)
                if near and chance <= math.exp(scale * square):
                    if fill:
                        targets[first + found] = t
                    found += 1
                state, jump = uniform(state)
                i += 1 + np.int64(math.log(jump) * stretch)
            ahead = i - end
        if not fill:
            counts[row] = found
