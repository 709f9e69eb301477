"""Compiled orders of parts: feed-forward order, bisection of a flow graph, nearest cells."""

# mypy: allow-untyped-defs, allow-untyped-decorators, allow-untyped-calls

import numpy as np
from numba import njit

BLOCK = 256


@njit(cache=True, nogil=True)
def feed_forward(offsets, targets, rates, inflow):
    """Parts by the share of their inflow that comes from parts already in order.

    Args: directed flows as CSR rows by source (float64 rates), inflow float64[n] without own flow.
    The best of each block of 256 parts is remembered and found again only after a change in it.
    """
    n = len(inflow)
    share = np.zeros(n)
    arrived = np.zeros(n)
    for p in range(n):
        if inflow[p] <= 0:
            share[p] = 1.0
    n_blocks = (n + BLOCK - 1) // BLOCK
    champions = np.full(n_blocks, -1, np.int64)
    changed = np.ones(n_blocks, np.bool_)
    order = np.empty(n, np.int64)
    for i in range(n):
        best = -1
        for block in range(n_blocks):
            if changed[block]:
                changed[block] = False
                champion = -1
                for p in range(block * BLOCK, min(n, (block + 1) * BLOCK)):
                    if share[p] >= 0 and (
                        champion < 0
                        or share[p] > share[champion]
                        or (share[p] == share[champion] and arrived[p] > arrived[champion])
                    ):
                        champion = p
                champions[block] = champion
            p = champions[block]
            if p >= 0 and (
                best < 0
                or share[p] > share[best]
                or (share[p] == share[best] and arrived[p] > arrived[best])
            ):
                best = p
        order[i] = best
        share[best] = -1.0
        changed[best // BLOCK] = True
        for j in range(offsets[best], offsets[best + 1]):
            q = targets[j]
            if share[q] >= 0 and inflow[q] > 0:
                arrived[q] += rates[j]
                share[q] = arrived[q] / inflow[q]
                changed[q // BLOCK] = True
    return order


@njit(cache=True, nogil=True)
def bisect(offsets, neighbours, rates, members, side, slack, max_passes):
    """Improve a two-way split of some parts by Fiduccia-Mattheyses passes; returns the final cut.

    `side` (int8[n_parts]) is 0 or 1 for `members` and 2 for all others, which do not count. Each
    pass moves every part once, best gain first (ties to the lower index in `members`), keeps sides
    within `slack` parts of equal, and returns to the best prefix.
    """
    n = len(members)
    gains = np.zeros(n, np.int64)
    index = np.full(len(offsets) - 1, -1, np.int64)
    for i in range(n):
        index[members[i]] = i
    order = np.empty(n, np.int64)
    cut = 0
    for _ in range(max_passes):
        sizes = np.zeros(2, np.int64)
        cut = 0
        for i in range(n):
            p = members[i]
            sizes[side[p]] += 1
            gains[i] = 0
            for j in range(offsets[p], offsets[p + 1]):
                q = neighbours[j]
                if side[q] == 2:
                    continue
                if side[q] == side[p]:
                    gains[i] -= rates[j]
                else:
                    gains[i] += rates[j]
                    cut += rates[j]
        moved = np.zeros(n, np.bool_)
        total, best_total, best_length = 0, 0, 0
        for step in range(n):
            best = -1
            for i in range(n):
                if not moved[i] and (best < 0 or gains[i] > gains[best]):
                    there = 1 - side[members[i]]
                    if 2 * (sizes[there] + 1) - n <= slack:
                        best = i
            if best < 0:
                break
            p = members[best]
            moved[best] = True
            order[step] = p
            total += gains[best]
            sizes[side[p]] -= 1
            side[p] = 1 - side[p]
            sizes[side[p]] += 1
            for j in range(offsets[p], offsets[p + 1]):
                q = neighbours[j]
                if side[q] != 2:
                    gains[index[q]] += -2 * rates[j] if side[q] == side[p] else 2 * rates[j]
            if total > best_total:
                best_total, best_length = total, step + 1
            n_moved = step + 1
        for step in range(best_length, n_moved):
            side[order[step]] = 1 - side[order[step]]
        cut = cut // 2 - best_total
        if best_total == 0:
            break
    return cut


@njit(cache=True, nogil=True)
def nearest_cells(
    offsets, neighbours, rates, order, cell_of, part_at, table_x, table_y, centre_x, centre_y
):
    """Put parts in the given order on the free cell that costs least so far; fills both arrays.

    Cost of a cell: sum over placed neighbours of rate x distance; ties, and parts without placed
    neighbours, by distance from the centre, then by cell. ``cell_of`` is -1 for parts to place.
    """
    n_rows = table_y.shape[0]
    n_columns = table_x.shape[0]
    along_x = np.empty(n_columns, np.int64)
    along_y = np.empty(n_rows, np.int64)
    for p in order:
        along_x[:] = 0
        along_y[:] = 0
        for i in range(offsets[p], offsets[p + 1]):
            c = cell_of[neighbours[i]]
            if c >= 0:
                x, y = c // n_rows, c % n_rows
                for k in range(n_columns):
                    along_x[k] += rates[i] * table_x[x, k]
                for k in range(n_rows):
                    along_y[k] += rates[i] * table_y[y, k]
        best, best_cost, best_away = -1, 0, 0
        for b in range(len(part_at)):
            if part_at[b] != -1:
                continue
            x, y = b // n_rows, b % n_rows
            cost = along_x[x] + along_y[y]
            away = table_x[centre_x, x] + table_y[centre_y, y]
            if best < 0 or cost < best_cost or (cost == best_cost and away < best_away):
                best, best_cost, best_away = b, cost, away
        cell_of[p] = best
        part_at[best] = p
