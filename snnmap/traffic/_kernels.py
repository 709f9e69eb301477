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
