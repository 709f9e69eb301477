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
def renew(tree, gains, i):
    """Play the matches of item i on its way to the root again, after its gain or leaf changed.

    ``tree`` is a knock-out tournament: leaf i at ``len(tree) / 2 + i`` holds i, or -1 if it is out;
    a node holds the better of its two, by gain, then by index. The best of all is ``tree[1]``.
    """
    at = (len(tree) // 2 + i) // 2
    while at >= 1:
        left, right = tree[2 * at], tree[2 * at + 1]
        if right < 0 or (left >= 0 and gains[left] >= gains[right]):
            best = left
        else:
            best = right
        if best == tree[at] and best != i:
            break
        tree[at] = best
        at //= 2


@njit(cache=True, nogil=True)
def bisect(offsets, neighbours, rates, members, side, index, slack, max_passes):
    """Improve a two-way split of some parts by Fiduccia-Mattheyses passes; returns the final cut.

    `side` (int8[n_parts]) is 0 or 1 for `members` and 2 for all others, which do not count. Each
    pass moves every part once, best gain first (ties to the lower index in `members`), keeps sides
    within `slack` parts of equal, and returns to the best prefix. `index` int64[n_parts] is scratch.
    """
    n = len(members)
    gains = np.zeros(n, np.int64)
    for i in range(n):
        index[members[i]] = i
    n_leaves = 1
    while n_leaves < n:
        n_leaves *= 2
    trees = np.empty((2, 2 * n_leaves), np.int64)
    order = np.empty(n, np.int64)
    cut = 0
    for _ in range(max_passes):
        sizes = np.zeros(2, np.int64)
        cut = 0
        for i in range(2 * n_leaves):
            trees[0, i] = trees[1, i] = -1
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
        for i in range(n):
            trees[side[members[i]], n_leaves + i] = i
            renew(trees[side[members[i]]], gains, i)
        total, best_total, best_length, n_moved = 0, 0, 0, 0
        for step in range(n):
            best = -1
            for s in range(2):
                i = trees[s, 1]
                if i < 0 or 2 * (sizes[1 - s] + 1) - n > slack:
                    continue
                if best < 0 or gains[i] > gains[best] or (gains[i] == gains[best] and i < best):
                    best = i
            if best < 0:
                break
            p = members[best]
            trees[side[p], n_leaves + best] = -1
            renew(trees[side[p]], gains, best)
            order[step] = p
            total += gains[best]
            sizes[side[p]] -= 1
            side[p] = 1 - side[p]
            sizes[side[p]] += 1
            for j in range(offsets[p], offsets[p + 1]):
                q = neighbours[j]
                if side[q] == 2:
                    continue
                i = index[q]
                gains[i] += -2 * rates[j] if side[q] == side[p] else 2 * rates[j]
                if trees[side[q], n_leaves + i] >= 0:
                    renew(trees[side[q]], gains, i)
            n_moved = step + 1
            if total > best_total:
                best_total, best_length = total, n_moved
        for step in range(best_length, n_moved):
            side[order[step]] = 1 - side[order[step]]
        cut = cut // 2 - best_total
        if best_total == 0:
            break
    return cut


@njit(cache=True, nogil=True)
def pull(offsets, neighbours, rates, members, side, mine, position, begin, end):
    """Mean direction, per part, in which links to parts outside begin..end pull one side's parts."""
    total = 0.0
    n = 0
    for p in members:
        if side[p] != mine:
            continue
        n += 1
        for j in range(offsets[p], offsets[p + 1]):
            there = position[neighbours[j]]
            if there > end:
                total += rates[j]
            elif there < begin:
                total -= rates[j]
    return total / max(n, 1)


@njit(cache=True, nogil=True)
def bisect_all(offsets, neighbours, rates, order, largest):
    """Halve `order` (int64[n_parts], changed) down to single parts, level by level.

    Blocks of up to `largest` parts are bisected, larger ones halved as they stand; the two halves
    trade places where that shortens the links to parts outside of the block, as far as those are
    ordered by then.
    """
    n = len(order)
    side = np.full(n, 2, np.int8)
    index = np.empty(n, np.int64)
    position = np.empty(n)
    for i in range(n):
        position[order[i]] = i + 0.5
    bounds = np.array([0, n])
    while True:
        middles = np.empty(2 * len(bounds), np.int64)
        n_middles, todo = 0, False
        for block in range(len(bounds) - 1):
            begin, end = bounds[block], bounds[block + 1]
            middles[n_middles] = begin
            n_middles += 1
            if end - begin < 2:
                continue
            todo = True
            members = order[begin:end].copy()
            half = (end - begin) // 2
            for i in range(len(members)):
                side[members[i]] = 0 if i < half else 1
            if len(members) <= largest:
                slack = max(1, len(members) // 16)
                bisect(offsets, neighbours, rates, members, side, index, slack, 4)
            pulls = (
                pull(offsets, neighbours, rates, members, side, 0, position, begin, end),
                pull(offsets, neighbours, rates, members, side, 1, position, begin, end),
            )
            first = 1 if pulls[0] > pulls[1] else 0
            at = begin
            for turn in range(2):
                if turn == 1:
                    middles[n_middles] = at
                for p in members:
                    if side[p] == (first + turn) % 2:
                        order[at] = p
                        at += 1
            for p in members:
                side[p] = 2
            n_middles += 1
        if not todo:
            break
        middles[n_middles] = n
        bounds = middles[: n_middles + 1].copy()
        for block in range(len(bounds) - 1):
            begin, end = bounds[block], bounds[block + 1]
            for i in range(begin, end):
                position[order[i]] = (begin + end) / 2


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
        for k in range(n_columns):
            along_x[k] = 0
        for k in range(n_rows):
            along_y[k] = 0
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
