"""Compiled annealing in rounds that could run in parallel: propose all, then settle the few."""

# mypy: allow-untyped-defs, allow-untyped-decorators, allow-untyped-calls

import numpy as np
from numba import njit

from snnmap.placement._kernels import swap, swap_gain

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def hash_bits(seed, stream, index):
    """64 well mixed bits for (seed, stream, index): the finaliser of SplitMix64, twice."""
    z = (seed + np.uint64(1)) * GOLDEN + stream
    for _ in range(2):
        z = z * GOLDEN + index
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return z


@njit(cache=True, nogil=True)
def below(bits, n):
    """A number in 0..n-1 from 20 bits."""
    return np.int64((bits & np.uint64(0xFFFFF)) * np.uint64(n) >> np.uint64(20))


@njit(cache=True, nogil=True)
def propose(offsets, neighbours, cell_of, part_at, n_rows, p, bits, more, radius):
    """A cell for part p to try: near itself or, one time in four, next to a random neighbour.

    Returns -1 when the cell is blocked, off the board or its own.
    """
    a = cell_of[p]
    at, reach = a, radius
    if bits >> np.uint64(62) == 0 and offsets[p + 1] > offsets[p]:
        at = cell_of[neighbours[offsets[p] + below(bits, offsets[p + 1] - offsets[p])]]
        reach = 1
    x = at // n_rows + below(more, 2 * reach + 1) - reach
    y = at % n_rows + below(more >> np.uint64(20), 2 * reach + 1) - reach
    if x < 0 or y < 0 or y >= n_rows or x >= len(part_at) // n_rows:
        return -1
    b = x * n_rows + y
    return -1 if b == a or part_at[b] == -2 else b


@njit(cache=True, nogil=True)
def anneal_rounds(
    offsets,
    neighbours,
    rates,
    cell_of,
    places,
    part_at,
    movable,
    locked,
    table_x,
    table_y,
    n_rows,
    exponentials,
    temperatures,
    radii,
    first_round,
    seed,
    stats,
):
    """One round for each temperature; returns the summed gain (negative: cost rose).

    In a round every movable part proposes one swap on the state at the round's start and keeps it
    if gain > -temperature * exponential variate (Metropolis). The kept ones are then settled in
    order of parts: cells claimed by an earlier one are passed over, the gain is taken again as of
    now and tested against the same threshold. ``stats`` int64[3] receives, in 1 and 2, the sum of
    losses proposed in units of 2^20 and their number.
    """
    kept = np.empty(len(movable), np.int64)
    cells = np.empty(len(movable), np.int64)
    floors = np.empty(len(movable), np.int64)
    claimed = np.full(len(part_at), -1, np.int64)
    total = 0
    for t in range(len(temperatures)):
        n_kept = 0
        stream = np.uint64(first_round + t)
        for p in movable:
            bits = hash_bits(seed, stream, np.uint64(p))
            more = hash_bits(seed, stream, ~np.uint64(p))
            b = propose(offsets, neighbours, cell_of, part_at, n_rows, p, bits, more, radii[t])
            if b < 0:
                continue
            r = part_at[b]
            if r >= 0 and locked[r]:
                continue
            gain = swap_gain(
                offsets, neighbours, rates, places, table_x, table_y, p, cell_of[p], r, b
            )
            if gain < 0:
                stats[1] += -gain >> 20
                stats[2] += 1
            variate = exponentials[more >> np.uint64(64 - 12)]
            floor = -(temperatures[t] >> 16) * variate
            if gain > floor:
                kept[n_kept], cells[n_kept], floors[n_kept] = p, b, floor
                n_kept += 1
        for i in range(n_kept):
            p, b = kept[i], cells[i]
            a = cell_of[p]
            if claimed[a] == t or claimed[b] == t:
                continue
            r = part_at[b]
            gain = swap_gain(offsets, neighbours, rates, places, table_x, table_y, p, a, r, b)
            if gain > floors[i]:
                claimed[a] = claimed[b] = t
                swap(cell_of, places, part_at, table_y.shape[0], p, a, r, b)
                total += gain
    return total
