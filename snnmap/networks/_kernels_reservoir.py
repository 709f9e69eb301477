"""Compiled neighbour search on a grid of the unit cube, and the choice among the neighbours."""

# mypy: allow-untyped-defs, allow-untyped-decorators, allow-untyped-calls
from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def gather(cells, grid, points, x, y, z, radius, ids, squares):
    """Collect ids and squared distances of the points within `radius` of (x, y, z): how many."""
    found = 0
    r2 = radius * radius
    a0, a1 = max(0, int((x - radius) * grid)), min(grid - 1, int((x + radius) * grid))
    b0, b1 = max(0, int((y - radius) * grid)), min(grid - 1, int((y + radius) * grid))
    for a in range(a0, a1 + 1):
        gap_x = max(a / grid - x, 0.0, x - (a + 1) / grid)  # from x to the cells
        for b in range(b0, b1 + 1):
            gap_y = max(b / grid - y, 0.0, y - (b + 1) / grid)
            left = r2 * (1 + 1e-12) - gap_x * gap_x - gap_y * gap_y
            if left < 0:
                continue
            up = math.sqrt(left)
            c0, c1 = max(0, int((z - up) * grid)), min(grid - 1, int((z + up) * grid))
            first = (a * grid + b) * grid
            for i in range(cells[first + c0], cells[first + c1 + 1]):
                dx, dy, dz = points[i, 0] - x, points[i, 1] - y, points[i, 2] - z
                square = dx * dx + dy * dy + dz * dz
                if square <= r2:
                    if found == len(ids):
                        return -1
                    ids[found] = i
                    squares[found] = square
                    found += 1
    return found


@njit(cache=True, nogil=True)
def rank_by_distance(ids, squares, n, r2, heads, ranked_ids, ranked_squares):
    """Sort n neighbours by (squared distance, id): counting sort on the volume, then insertion."""
    heads[: n + 2] = 0
    for i in range(n):
        t = squares[i] / r2
        heads[min(n - 1, int(t * math.sqrt(t) * n)) + 1] += 1
    for i in range(n):
        heads[i + 1] += heads[i]
    for i in range(n):
        t = squares[i] / r2
        bucket = min(n - 1, int(t * math.sqrt(t) * n))
        place = heads[bucket]
        heads[bucket] += 1
        ranked_ids[place] = ids[i]
        ranked_squares[place] = squares[i]
    for i in range(1, n):
        square, point = ranked_squares[i], ranked_ids[i]
        j = i - 1
        while j >= 0 and (
            ranked_squares[j] > square or (ranked_squares[j] == square and ranked_ids[j] > point)
        ):
            ranked_squares[j + 1] = ranked_squares[j]
            ranked_ids[j + 1] = ranked_ids[j]
            j -= 1
        ranked_squares[j + 1] = square
        ranked_ids[j + 1] = point


@njit(cache=True, nogil=True)
def select(values, n, k):
    """The k-th smallest (from 0) of values[:n], which is reordered (Hoare's quickselect)."""
    low, high = 0, n - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return values[k]


@njit(cache=True, nogil=True)
def choose_targets(
    cells, grid, points, names, xyz, direction, first_node, near, radius, sigma, reach, gumbel,
    n_local, far_offsets, far, offsets, out, counts, start, stop,
):  # fmt: skip
    """Write the targets of nodes first_node + row, start <= row < stop, at offsets[row] of out.

    The `near` nearest points (itself included) get the key -d^2 / (2 sigma^2) + Gumbel noise; those
    on the wrong side or beyond `reach` drop out; the n_local largest keys win (Gumbel top-k is
    sampling without replacement). The far targets join them, itself excepted; they may be among
    them twice. counts[row] = how many.
    """
    room = 4 * near + 64
    ids, squares = np.empty(room, np.int32), np.empty(room, np.float64)
    ranked, distances = np.empty(room, np.int32), np.empty(room, np.float64)
    heads = np.empty(room + 2, np.int64)
    keys, candidates = np.empty(near, np.float64), np.empty(near, np.int32)
    spares = np.empty(near, np.float64)
    for row in range(start, stop):
        node = first_node + row
        x, y, z = xyz[node, 0], xyz[node, 1], xyz[node, 2]
        r = radius
        found = gather(cells, grid, points, x, y, z, r, ids, squares)
        while found < near:
            if found < 0:  # more points here than room: make room
                room *= 2
                ids, squares = np.empty(room, np.int32), np.empty(room, np.float64)
                ranked, distances = np.empty(room, np.int32), np.empty(room, np.float64)
                heads = np.empty(room + 2, np.int64)
            else:
                r *= min(2.0, 1.05 * (near / max(found, 1)) ** (1 / 3))
            found = gather(cells, grid, points, x, y, z, r, ids, squares)
        rank_by_distance(ids, squares, found, r * r, heads, ranked, distances)

        n = 0
        for i in range(near):
            other = names[ranked[i]]
            d = math.sqrt(distances[i])
            if other == node or d > reach or (points[ranked[i], 2] - z) * direction[other] < 0:
                continue
            scaled = d / sigma
            keys[n] = -0.5 * (scaled * scaled) + gumbel[row, i]
            candidates[n] = other
            n += 1
        k = min(n, n_local[row])
        if 0 < k < n:
            spares[:n] = keys[:n]
            bar = select(spares, n, n - k)
            kept = 0
            for i in range(n):  # ties at the bar go to the nearest
                if keys[i] > bar:
                    kept += 1
            spare = k - kept
            kept = 0
            for i in range(n):
                if keys[i] > bar or (keys[i] == bar and spare > 0):
                    spare -= keys[i] == bar
                    candidates[kept] = candidates[i]
                    kept += 1
        first = offsets[row]
        for i in range(k):
            out[first + i] = candidates[i]
        for i in range(far_offsets[row], far_offsets[row + 1]):
            if far[i] != node:
                out[first + k] = far[i]
                k += 1
        counts[row] = k
