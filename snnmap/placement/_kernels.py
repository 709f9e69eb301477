"""Compiled steps of placement on integers: cost fields, best swaps, exact gains.

A part p at cell a pays  C_p(a) = X[p, x(a)] + Y[p, y(a)],  X[p, x] = sum_q rate(p, q) * dx[x, x_q]
and Y likewise. Swapping p (at a) with r (at b; r may be absent) saves

    gain = C_p(a) - C_p(b) + C_r(b) - C_r(a) - 2 * rate(p, r) * d(a, b),

the last term because neither of the two comes closer to the other.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def fill_fields(offsets, neighbours, rates, places, table, fields, start, stop):
    """fields[p, :] = sum_q rate(p, q) * table[places[q], :] for parts start..stop-1.

    `places` are indices of all parts along one axis. Rates that share a place are added first.
    """
    n = table.shape[0]
    pull = np.zeros(n, np.int64)
    for p in range(start, stop):
        pull[:] = 0
        for i in range(offsets[p], offsets[p + 1]):
            pull[places[neighbours[i]]] += rates[i]
        fields[p, :] = 0
        for there in range(n):
            amount = pull[there]
            if amount:
                for here in range(n):
                    fields[p, here] += amount * table[there, here]


@njit(cache=True, nogil=True)
def rate_between(offsets, neighbours, rates, p, r):
    """rate(p, r) by bisection in the row of p; 0 if they are not linked."""
    low, high = offsets[p], offsets[p + 1]
    while low < high:
        middle = (low + high) // 2
        if neighbours[middle] < r:
            low = middle + 1
        else:
            high = middle
    if low < offsets[p + 1] and neighbours[low] == r:
        return rates[low]
    return 0


@njit(cache=True, nogil=True)
def fill_cells(part_at, locked, n_rows, fields_x, fields_y, stay, leave_x, leave_y, start, stop):
    """What the part on each cell start..stop-1 pays there and elsewhere, cell by cell.

    stay[b] = C_r(b), leave_x[x, b] = X[r, x], leave_y[y, b] = Y[r, y] for the part r on b; 0 where
    the cell is empty. Cells that cannot be swapped get stay = -2^61, so no gain is ever positive.
    """
    for b in range(start, stop):
        r = part_at[b]
        stay[b] = 0
        if r == -2 or (r >= 0 and locked[r]):
            stay[b] = -(1 << 61)
        elif r >= 0:
            stay[b] = fields_x[r, b // n_rows] + fields_y[r, b % n_rows]
    for first in range(start, stop, 32):  # blocks of cells, so that both sides stay in the cache
        for x in range(len(leave_x)):
            for b in range(first, min(stop, first + 32)):
                r = part_at[b]
                leave_x[x, b] = fields_x[r, x] if r >= 0 else 0
        for y in range(len(leave_y)):
            for b in range(first, min(stop, first + 32)):
                r = part_at[b]
                leave_y[y, b] = fields_y[r, y] if r >= 0 else 0


@njit(cache=True, nogil=True)
def propose_swaps(
    offsets,
    neighbours,
    rates,
    cell_of,
    part_at,
    locked,
    table_x,
    table_y,
    fields_x,
    fields_y,
    stay,
    leave_x,
    leave_y,
    reach,
    best_cells,
    best_gains,
    start,
    stop,
):
    """Best cell of each part start..stop-1 by the gain of swapping with what is there.

    Parts are independent of each other here; ties go to the lowest cell, no gain > 0 gives cell -1.
    Only cells within `reach` columns and rows of the part are tried. A whole column is bounded
    first, without the term for the pair itself, which only lowers the gain.
    """
    n_rows = table_y.shape[0]
    n_columns = part_at.shape[0] // n_rows
    for p in range(start, stop):
        best_cells[p], best_gains[p] = -1, 0
        if locked[p]:
            continue
        a = cell_of[p]
        xa, ya = a // n_rows, a % n_rows
        here = fields_x[p, xa] + fields_y[p, ya]
        low, high = max(0, ya - reach), min(n_rows, ya + reach + 1)
        own, by_x, by_y = fields_y[p], leave_x[xa], leave_y[ya]
        for xb in range(max(0, xa - reach), min(n_columns, xa + reach + 1)):
            left = here - fields_x[p, xb]
            first = xb * n_rows
            bound = -(1 << 62)
            for yb in range(low, high):
                b = first + yb
                gain = stay[b] - by_x[b] - by_y[b] - own[yb]
                bound = max(bound, gain)
            if left + bound <= best_gains[p]:
                continue
            for yb in range(low, high):
                b = first + yb
                gain = left + stay[b] - by_x[b] - by_y[b] - own[yb]
                if gain > best_gains[p]:
                    r = part_at[b]
                    if r >= 0:
                        between = rate_between(offsets, neighbours, rates, p, r)
                        gain -= 2 * between * (table_x[xa, xb] + table_y[ya, yb])
                    if gain > best_gains[p]:
                        best_gains[p], best_cells[p] = gain, b


@njit(cache=True, nogil=True)
def swap_gain(offsets, neighbours, rates, places, table_x, table_y, p, a, r, b):
    """Exact gain of moving p from cell a to b and r (-1 for none) from b to a, as of now.

    ``places`` int32[n_parts, 2] holds the indices of each part's cell into the two tables.
    """
    n_rows = table_y.shape[0]
    xa, ya, xb, yb = a // n_rows, a % n_rows, b // n_rows, b % n_rows
    gain = 0
    for i in range(offsets[p], offsets[p + 1]):
        q = neighbours[i]
        if q != r:
            x, y = places[q, 0], places[q, 1]
            gain += rates[i] * (table_x[xa, x] + table_y[ya, y] - table_x[xb, x] - table_y[yb, y])
    if r >= 0:
        for i in range(offsets[r], offsets[r + 1]):
            q = neighbours[i]
            if q != p:
                x, y = places[q, 0], places[q, 1]
                gain += rates[i] * (
                    table_x[xb, x] + table_y[yb, y] - table_x[xa, x] - table_y[ya, y]
                )
    return gain


@njit(cache=True, nogil=True)
def swap(cell_of, places, part_at, n_rows, p, a, r, b):
    """Move p from cell a to b and r (-1 for none) from b to a."""
    part_at[a], part_at[b] = r, p
    cell_of[p] = b
    places[p, 0], places[p, 1] = b // n_rows, b % n_rows
    if r >= 0:
        cell_of[r] = a
        places[r, 0], places[r, 1] = a // n_rows, a % n_rows


@njit(cache=True, nogil=True)
def apply_swaps(
    offsets,
    neighbours,
    rates,
    cell_of,
    places,
    part_at,
    table_x,
    table_y,
    order,
    best_cells,
    claimed,
):
    """Swap in the given order of parts wherever the gain is still positive; returns its sum.

    A swap is skipped when one of its cells was claimed by an earlier one, so every proposal stands
    for the pair of parts it was made for; its gain counts all earlier swaps (exact, never a loss).
    """
    n_rows = table_y.shape[0]
    total = 0
    for p in order:
        a, b = cell_of[p], best_cells[p]
        if claimed[a] or claimed[b]:
            continue
        r = part_at[b]
        gain = swap_gain(offsets, neighbours, rates, places, table_x, table_y, p, a, r, b)
        if gain > 0:
            claimed[a] = claimed[b] = True
            swap(cell_of, places, part_at, n_rows, p, a, r, b)
            total += gain
    return total


@njit(cache=True, nogil=True)
def total_cost(offsets, neighbours, rates, places, table_x, table_y):
    """Sum over unordered pairs of rate x distance."""
    total = 0
    for p in range(len(offsets) - 1):
        x, y = places[p, 0], places[p, 1]
        for i in range(offsets[p], offsets[p + 1]):
            q = neighbours[i]
            if q < p:
                total += rates[i] * (table_x[x, places[q, 0]] + table_y[y, places[q, 1]])
    return total


@njit(cache=True, nogil=True)
def propose_near(
    offsets,
    neighbours,
    rates,
    cell_of,
    places,
    part_at,
    locked,
    active,
    table_x,
    table_y,
    reach,
    best_cells,
    best_gains,
    start,
    stop,
):
    """The same proposals as :func:`propose_swaps`, straight from the links of each part.

    Cheaper where few cells are within reach and parts have few links; it needs no fields. Only
    parts that are `active` propose.
    """
    n_rows = table_y.shape[0]
    n_columns = part_at.shape[0] // n_rows
    for p in range(start, stop):
        best_cells[p], best_gains[p] = -1, 0
        if locked[p] or not active[p]:
            continue
        a = cell_of[p]
        xa, ya = a // n_rows, a % n_rows
        for xb in range(max(0, xa - reach), min(n_columns, xa + reach + 1)):
            for yb in range(max(0, ya - reach), min(n_rows, ya + reach + 1)):
                b = xb * n_rows + yb
                r = part_at[b]
                if r == -2 or b == a or (r >= 0 and locked[r]):
                    continue
                gain = swap_gain(offsets, neighbours, rates, places, table_x, table_y, p, a, r, b)
                if gain > best_gains[p]:
                    best_gains[p], best_cells[p] = gain, b


@njit(cache=True, nogil=True)
def mark_active(offsets, neighbours, cell_of, part_at, n_rows, before, reach, active):
    """Mark the parts for which something changed: moved ones, those linked or close to them.

    ``before`` holds the cells before the moves. What a pair of parts gains by a swap depends on
    their links and places alone, and one of the two is marked if any of these changed.
    """
    active[:] = False
    n_columns = len(part_at) // n_rows
    for p in range(len(cell_of)):
        if cell_of[p] == before[p]:
            continue
        active[p] = True
        for i in range(offsets[p], offsets[p + 1]):
            active[neighbours[i]] = True
        for cell in (before[p], cell_of[p]):
            x, y = cell // n_rows, cell % n_rows
            for xb in range(max(0, x - reach), min(n_columns, x + reach + 1)):
                for yb in range(max(0, y - reach), min(n_rows, y + reach + 1)):
                    r = part_at[xb * n_rows + yb]
                    if r >= 0:
                        active[r] = True
