"""Compiled walks of spikes through routers."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def walk_back(vector_x, vector_y, is_hex):
    """(direction, dx, dy) of the last step of the route with this vector (not 0).

    Routes run along x, then along y; on a hex grid along the diagonal first where both signs agree.
    Directions: 0 east (+x), 1 west, 2 north (+y), 3 south, 4 northeast, 5 southwest.
    """
    if is_hex and vector_x * vector_y > 0:
        if vector_x == vector_y:
            return (4, 1, 1) if vector_x > 0 else (5, -1, -1)
        if abs(vector_x) > abs(vector_y):
            return (0, 1, 0) if vector_x > 0 else (1, -1, 0)
        return (2, 0, 1) if vector_y > 0 else (3, 0, -1)
    if vector_y != 0:
        return (2, 0, 1) if vector_y > 0 else (3, 0, -1)
    return (0, 1, 0) if vector_x > 0 else (1, -1, 0)


@njit(cache=True, nogil=True)
def load_links(
    group_offsets,
    destinations,
    hedge_groups,
    source_offsets,
    sources,
    rates,
    router_x,
    router_y,
    vectors,
    is_hex,
    multicast,
    n_directions,
    start,
    stop,
):
    """Spikes on every link and through every router for h-edges start..stop-1.

    Every destination is walked back towards its source; a multicast walk ends where an earlier one
    of the same spike has been, so shared links count once.

    The first five arrays are the part-level h-edges in grouped form, ``rates`` int64[n_hedges]
    their fixed-point spikes/s, ``router_x`` and ``router_y`` int64[n_parts] routers of parts in the
    window, ``vectors`` int32[2 nx - 1, 2 ny - 1, 2] the route by (difference of routers + n - 1).

    Returns:
        (int64[n_directions, nx, ny] spikes on the link that leaves a router in a direction,
        int64[nx, ny] spikes through each router).
    """
    nx, ny = (vectors.shape[0] + 1) // 2, (vectors.shape[1] + 1) // 2
    links = np.zeros((n_directions, nx, ny), np.int64)
    routers = np.zeros((nx, ny), np.int64)
    seen = np.zeros((nx, ny), np.int64)
    stamp = 0
    for e in range(start, stop):
        rate = rates[e]
        g = hedge_groups[e]
        if rate == 0 or group_offsets[g] == group_offsets[g + 1]:
            continue
        for i in range(source_offsets[e], source_offsets[e + 1]):
            from_x, from_y = router_x[sources[i]], router_y[sources[i]]
            stamp += 1
            for j in range(group_offsets[g], group_offsets[g + 1]):
                x, y = router_x[destinations[j]], router_y[destinations[j]]
                if not multicast or j == group_offsets[g]:
                    stamp += 1
                    seen[from_x, from_y] = stamp
                    routers[from_x, from_y] += rate
                vector_x = vectors[x - from_x + nx - 1, y - from_y + ny - 1, 0]
                vector_y = vectors[x - from_x + nx - 1, y - from_y + ny - 1, 1]
                while seen[x, y] != stamp:
                    seen[x, y] = stamp
                    routers[x, y] += rate
                    direction, dx, dy = walk_back(vector_x, vector_y, is_hex)
                    vector_x -= dx
                    vector_y -= dy
                    x = (x - dx) % nx
                    y = (y - dy) % ny
                    links[direction, x, y] += rate
    return links, routers


@njit(cache=True, nogil=True)
def spread_flows(offsets, sources, rates, router_x, router_y, vectors, is_hex, n_parts):
    """Expected spikes through each router if every open step of a shortest path is as likely.

    Spikes to one destination that meet at a router go on alike, so each destination needs one sweep
    over the routers around it, from the farthest ring inwards: half of what is at a router takes
    either open step, all of it the only one.

    ``offsets`` int64[n_parts + 1], ``sources`` int32 and ``rates`` float64 list, for each
    destination part, the spikes/s it gets; returns float64[nx, ny], whose sum is that of
    rate x (hops + 1).
    """
    nx, ny = (vectors.shape[0] + 1) // 2, (vectors.shape[1] + 1) // 2
    loads = np.zeros((nx, ny))
    flow = np.zeros((2 * nx + 1, 2 * ny + 1))  # by remaining vector, with a margin of one
    corners, turns = rings(is_hex)
    for target in range(n_parts):
        to_x, to_y = router_x[target], router_y[target]
        farthest = 0
        for i in range(offsets[target], offsets[target + 1]):
            s = sources[i]
            x, y = to_x - router_x[s] + nx - 1, to_y - router_y[s] + ny - 1
            vector_x, vector_y = vectors[x, y, 0], vectors[x, y, 1]
            flow[vector_x + nx, vector_y + ny] += rates[i]
            farthest = max(farthest, length(vector_x, vector_y, is_hex))
        for ring in range(farthest, 0, -1):
            for corner in range(len(corners)):
                for k in range(ring):
                    vector_x = ring * corners[corner, 0] + k * turns[corner, 0]
                    vector_y = ring * corners[corner, 1] + k * turns[corner, 1]
                    if abs(vector_x) > nx or abs(vector_y) > ny:
                        continue
                    amount = flow[vector_x + nx, vector_y + ny]
                    if amount == 0:
                        continue
                    flow[vector_x + nx, vector_y + ny] = 0
                    loads[(to_x - vector_x) % nx, (to_y - vector_y) % ny] += amount
                    push(flow, vector_x, vector_y, nx, ny, is_hex, amount)
        loads[to_x, to_y] += flow[nx, ny]
        flow[nx, ny] = 0
    return loads


@njit(cache=True, nogil=True)
def rings(is_hex):
    """(corners, steps to the next corner) of the ring of routers one hop away."""
    if is_hex:
        return (
            np.array([(1, 0), (1, 1), (0, 1), (-1, 0), (-1, -1), (0, -1)]),
            np.array([(0, 1), (-1, 0), (-1, -1), (0, -1), (1, 0), (1, 1)]),
        )
    return (
        np.array([(1, 0), (0, 1), (-1, 0), (0, -1)]),
        np.array([(-1, 1), (-1, -1), (1, -1), (1, 1)]),
    )


@njit(cache=True, nogil=True)
def length(x, y, is_hex):
    """Hops of a route vector."""
    if is_hex and x * y > 0:
        return max(abs(x), abs(y))
    return abs(x) + abs(y)


@njit(cache=True, nogil=True)
def push(flow, x, y, nx, ny, is_hex, amount):
    """Move an amount at remaining vector (x, y) one open step on, or half over either of two."""
    sx = (x > 0) - (x < 0)
    sy = (y > 0) - (y < 0)
    if is_hex and x * y > 0:
        if x == y:
            flow[x - sx + nx, y - sy + ny] += amount
            return
        flow[x - sx + nx, y - sy + ny] += amount / 2
        if abs(x) > abs(y):
            flow[x - sx + nx, y + ny] += amount / 2
        else:
            flow[x + nx, y - sy + ny] += amount / 2
        return
    share = amount / 2 if x != 0 and y != 0 else amount
    if x != 0:
        flow[x - sx + nx, y + ny] += share
    if y != 0:
        flow[x + nx, y - sy + ny] += share


@njit(cache=True, nogil=True)
def hull_cores(
    group_offsets,
    destinations,
    hedge_groups,
    source_offsets,
    sources,
    core_x,
    core_y,
    n_columns,
    counts,
    start,
    stop,
):
    """Cores inside or on the convex hull of the pins of h-edges start..stop-1, into `counts`.

    ``core_x`` (in 0..n_columns-1) and ``core_y`` are int64[n_parts]. The hull is built from the
    lowest and highest pin of every column; lattice points follow from its area and boundary (Pick).
    """
    low = np.empty(n_columns, np.int64)
    high = np.empty(n_columns, np.int64)
    hull_x = np.empty(2 * n_columns + 1, np.int64)
    hull_y = np.empty(2 * n_columns + 1, np.int64)
    for e in range(start, stop):
        g = hedge_groups[e]
        low[:] = 1 << 40
        high[:] = -1
        n_pins = 0
        for i in range(source_offsets[e], source_offsets[e + 1]):
            p = sources[i]
            low[core_x[p]] = min(low[core_x[p]], core_y[p])
            high[core_x[p]] = max(high[core_x[p]], core_y[p])
            n_pins += 1
        for i in range(group_offsets[g], group_offsets[g + 1]):
            p = destinations[i]
            low[core_x[p]] = min(low[core_x[p]], core_y[p])
            high[core_x[p]] = max(high[core_x[p]], core_y[p])
            n_pins += 1
        if n_pins == 0:
            counts[e] = 0
            continue
        size = 0
        for side in range(2):  # lower chain left to right, then upper chain right to left
            bottom = size
            for k in range(n_columns):
                x = k if side == 0 else n_columns - 1 - k
                if high[x] < 0:
                    continue
                y = low[x] if side == 0 else high[x]
                while size - bottom >= 2 and (
                    (hull_x[size - 1] - hull_x[size - 2]) * (y - hull_y[size - 2])
                    - (hull_y[size - 1] - hull_y[size - 2]) * (x - hull_x[size - 2])
                    <= 0
                ):
                    size -= 1
                hull_x[size], hull_y[size] = x, y
                size += 1
        twice_area, boundary = 0, 0
        for i in range(size):
            j = i + 1 if i + 1 < size else 0
            twice_area += hull_x[i] * hull_y[j] - hull_x[j] * hull_y[i]
            a, b = abs(hull_x[j] - hull_x[i]), abs(hull_y[j] - hull_y[i])
            while b:
                a, b = b, a % b
            boundary += a
        counts[e] = (twice_area + boundary) // 2 + 1
