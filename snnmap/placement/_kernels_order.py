"""Compiled orders of parts: feed-forward order, bisection of a flow graph, nearest cells."""

# mypy: allow-untyped-defs, allow-untyped-decorators, allow-untyped-calls

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def before(shares, arrived, p, q):
    """Whether p (-1 for none) comes before q: larger share, then more inflow, then lower index."""
    if p < 0 or q < 0:
        return p >= 0
    if shares[p] != shares[q]:
        return shares[p] > shares[q]
    if arrived[p] != arrived[q]:
        return arrived[p] > arrived[q]
    return p < q


@njit(cache=True, nogil=True)
def feed_forward(offsets, targets, rates, inflow):
    """Parts by the share of their inflow that comes from parts already in order.

    Args: directed flows as CSR rows by source (float64 rates), inflow float64[n] without own flow.
    The next one is the winner of a knock-out tournament: leaf p at ``n_leaves + p`` holds p, or -1
    once it is in order, a node the better of its two.
    """
    n = len(inflow)
    shares = np.zeros(n)
    arrived = np.zeros(n)
    n_leaves = 1
    while n_leaves < n:
        n_leaves *= 2
    tree = np.full(2 * n_leaves, -1, np.int64)
    for p in range(n):
        tree[n_leaves + p] = p
        if inflow[p] <= 0:
            shares[p] = 1.0
    for at in range(n_leaves - 1, 0, -1):
        left, right = tree[2 * at], tree[2 * at + 1]
        tree[at] = left if before(shares, arrived, left, right) else right
    order = np.empty(n, np.int64)
    for i in range(n):
        best = tree[1]
        order[i] = best
        tree[n_leaves + best] = -1
        for j in range(offsets[best] - 1, offsets[best + 1]):
            q = best if j < offsets[best] else targets[j]
            if q != best:
                if tree[n_leaves + q] < 0 or inflow[q] <= 0:
                    continue
                arrived[q] += rates[j]
                shares[q] = arrived[q] / inflow[q]
            at = (n_leaves + q) // 2
            while at >= 1:
                left, right = tree[2 * at], tree[2 * at + 1]
                winner = left if before(shares, arrived, left, right) else right
                if winner == tree[at] and winner != q:
                    break
                tree[at] = winner
                at //= 2
    return order


@njit(cache=True, nogil=True)
def better(gains, i, j):
    """The better of two items (-1 for none) by gain, then by index, where i < j."""
    return i if j < 0 or (i >= 0 and gains[i] >= gains[j]) else j


@njit(cache=True, nogil=True)
def renew(tree, gains, i):
    """Play the matches of item i on its way to the root again, after its gain or leaf changed.

    ``tree`` is a knock-out tournament: leaf i at ``len(tree) / 2 + i`` holds i, or -1 if it is out;
    a node holds the better of its two. The best of all is ``tree[1]``.
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
def bisect(offsets, neighbours, rates, side, slack, max_passes):
    """Improve a two-way split (side int8[n], 0 or 1) of a graph by Fiduccia-Mattheyses passes.

    Each pass moves every node once, best gain first (ties to the lower index), keeps sides within
    `slack` nodes of equal, and returns to the best prefix.
    """
    n = len(side)
    gains = np.empty(n, np.int64)
    n_leaves = 1
    while n_leaves < n:
        n_leaves *= 2
    trees = np.empty((2, 2 * n_leaves), np.int64)
    order = np.empty(n, np.int64)
    for _ in range(max_passes):
        sizes = np.zeros(2, np.int64)
        trees[:] = -1
        for i in range(n):
            sizes[side[i]] += 1
            trees[side[i], n_leaves + i] = i
            gain = 0
            for j in range(offsets[i], offsets[i + 1]):
                gain += -rates[j] if side[neighbours[j]] == side[i] else rates[j]
            gains[i] = gain
        for at in range(n_leaves - 1, 0, -1):
            for s in range(2):
                trees[s, at] = better(gains, trees[s, 2 * at], trees[s, 2 * at + 1])
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
            trees[side[best], n_leaves + best] = -1
            renew(trees[side[best]], gains, best)
            order[step] = best
            total += gains[best]
            sizes[side[best]] -= 1
            side[best] = 1 - side[best]
            sizes[side[best]] += 1
            for j in range(offsets[best], offsets[best + 1]):
                i = neighbours[j]
                gains[i] += -2 * rates[j] if side[i] == side[best] else 2 * rates[j]
                if trees[side[i], n_leaves + i] >= 0:
                    renew(trees[side[i]], gains, i)
            n_moved = step + 1
            if total > best_total:
                best_total, best_length = total, n_moved
        for step in range(best_length, n_moved):
            side[order[step]] = 1 - side[order[step]]
        if best_total == 0:
            break


@njit(cache=True, nogil=True)
def pull(offsets, neighbours, rates, members, side, mine, middle, begin, end):
    """Mean direction, per part, in which links to parts outside begin..end pull one side's parts."""
    total = 0.0
    n = 0
    for i in range(len(members)):
        if side[i] != mine:
            continue
        n += 1
        for j in range(offsets[members[i]], offsets[members[i] + 1]):
            there = middle[neighbours[j]]
            if there > end:
                total += rates[j]
            elif there < begin:
                total -= rates[j]
    return total / max(n, 1)


@njit(cache=True, nogil=True)
def halve(offsets, neighbours, rates, order, bounds, places, middle, largest, cuts, start, stop):
    """Halve blocks start..stop-1 of `order` (changed), each by its own links alone.

    Block i is ``order[bounds[i] : bounds[i + 1]]``; ``cuts[i]`` becomes where its second half begins.
    Blocks of up to `largest` parts are bisected, larger ones halved as they stand; the two halves
    trade places where that shortens the links to parts outside of the block, as far as those are
    ordered by now. ``places`` tells where in `order` each part was, ``middle`` that of its block.
    """
    for block in range(start, stop):
        begin, end = bounds[block], bounds[block + 1]
        cuts[block] = begin
        n = end - begin
        if n < 2:
            continue
        members = order[begin:end].copy()
        side = np.zeros(n, np.int8)
        side[n // 2 :] = 1
        if n <= largest:
            most = 0
            for p in members:
                most += offsets[p + 1] - offsets[p]
            inner_offsets = np.zeros(n + 1, np.int64)
            inner = np.empty(most, np.int32)
            inner_rates = np.empty(most, np.int64)
            found = 0
            for i in range(n):
                for j in range(offsets[members[i]], offsets[members[i] + 1]):
                    there = places[neighbours[j]]
                    if begin <= there < end:
                        inner[found] = there - begin
                        inner_rates[found] = rates[j]
                        found += 1
                inner_offsets[i + 1] = found
            bisect(inner_offsets, inner, inner_rates, side, max(1, n // 16), 4)
        pulls = (
            pull(offsets, neighbours, rates, members, side, 0, middle, begin, end),
            pull(offsets, neighbours, rates, members, side, 1, middle, begin, end),
        )
        first = 1 if pulls[0] > pulls[1] else 0
        at = begin
        for turn in range(2):
            if turn == 1:
                cuts[block] = at
            for i in range(n):
                if side[i] == (first + turn) % 2:
                    order[at] = members[i]
                    at += 1


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
