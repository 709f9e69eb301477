"""Compiled simulation of spikes that share links: build their trees, then play events in order."""

# mypy: allow-untyped-defs, allow-untyped-decorators, allow-untyped-calls

import numpy as np
from numba import njit

from snnmap.traffic._kernels import walk_back


@njit(cache=True, nogil=True)
def build_trees(
    streams,
    stream_hedges,
    stream_parts,
    group_offsets,
    destinations,
    hedge_groups,
    router_x,
    router_y,
    vectors,
    is_hex,
    multicast,
    root_offsets,
    roots,
    parents,
    links,
    ends,
):
    """Trees of the given streams; counts only while `parents` is empty. Returns nodes in all.

    A node is a router on the way of one stream; its parent is the router before it, -1 for a root,
    and ``links`` the link that leads to it (direction * nx * ny + x * ny + y of the parent), -1 for
    a root. ``ends`` counts destinations at the node. Unicast has one root for each destination.
    """
    nx, ny = (vectors.shape[0] + 1) // 2, (vectors.shape[1] + 1) // 2
    seen = np.zeros((nx, ny), np.int64)
    node_at = np.empty((nx, ny), np.int64)
    fill = len(parents) > 0
    stamp, n_nodes, n_roots = 0, 0, 0
    for i in range(len(streams)):
        root_offsets[i] = n_roots
        g = hedge_groups[stream_hedges[streams[i]]]
        p = stream_parts[streams[i]]
        from_x, from_y = router_x[p], router_y[p]
        for j in range(group_offsets[g], group_offsets[g + 1]):
            if not multicast or j == group_offsets[g]:
                stamp += 1
                seen[from_x, from_y] = stamp
                node_at[from_x, from_y] = n_nodes
                if fill:
                    roots[n_roots] = n_nodes
                    parents[n_nodes] = links[n_nodes] = -1
                n_roots += 1
                n_nodes += 1
            x, y = router_x[destinations[j]], router_y[destinations[j]]
            vector_x = vectors[x - from_x + nx - 1, y - from_y + ny - 1, 0]
            vector_y = vectors[x - from_x + nx - 1, y - from_y + ny - 1, 1]
            child = -1
            first = True
            while True:
                known = seen[x, y] == stamp
                if not known:
                    seen[x, y] = stamp
                    node_at[x, y] = n_nodes
                    n_nodes += 1
                node = node_at[x, y]
                if fill:
                    if first:
                        ends[node] += 1
                    if child >= 0:
                        parents[child] = node
                first = False
                if known:
                    break
                direction, dx, dy = walk_back(vector_x, vector_y, is_hex)
                vector_x -= dx
                vector_y -= dy
                x = (x - dx) % nx
                y = (y - dy) % ny
                if fill:
                    links[node] = direction * nx * ny + x * ny + y
                child = node
    root_offsets[len(streams)] = n_roots
    return n_nodes


@njit(cache=True, nogil=True)
def sift_up(times, orders, payloads, i):
    """Restore a binary heap after an item was put at its end."""
    while i > 0:
        above = (i - 1) // 2
        if times[above] < times[i] or (times[above] == times[i] and orders[above] < orders[i]):
            break
        swap(times, orders, payloads, i, above)
        i = above


@njit(cache=True, nogil=True)
def sift_down(times, orders, payloads, size):
    """Restore a binary heap after its first item was replaced."""
    i = 0
    while True:
        least = i
        for below in (2 * i + 1, 2 * i + 2):
            if below < size and (
                times[below] < times[least]
                or (times[below] == times[least] and orders[below] < orders[least])
            ):
                least = below
        if least == i:
            break
        swap(times, orders, payloads, i, least)
        i = least


@njit(cache=True, nogil=True)
def swap(times, orders, payloads, i, j):
    """Exchange two items of a heap."""
    times[i], times[j] = times[j], times[i]
    orders[i], orders[j] = orders[j], orders[i]
    payloads[i, 0], payloads[j, 0] = payloads[j, 0], payloads[i, 0]
    payloads[i, 1], payloads[j, 1] = payloads[j, 1], payloads[i, 1]


@njit(cache=True, nogil=True)
def play(
    spike_times,
    spike_streams,
    root_offsets,
    roots,
    child_offsets,
    children,
    links,
    ends,
    subtree_ends,
    hop_times,
    route_time,
    service_time,
    buffer,
    bin_time,
    link_counts,
    longest_waits,
    latencies,
    totals,
):
    """Send all spikes; all times are integers (ps).

    A copy that arrives at a router passes it in `route_time`, is delivered to the cores there and
    joins, in order of arrival, the queue of every link that its tree takes next. A link takes one
    copy each `service_time` and delivers it `hop_times[link]` later. More than `buffer` waiting
    copies (negative: no limit) make the next one be dropped with all its destinations.

    ``link_counts`` int64[n_bins, n_links] counts copies by the time they start on a link,
    ``longest_waits`` int64[n_links], ``latencies`` int64[most deliveries], ``totals`` receives
    (delivered, dropped, time of the last delivery, sum of waits, most waiting).
    """
    free_at = np.zeros(len(hop_times), np.int64)
    capacity = 1024
    times = np.empty(capacity, np.int64)
    orders = np.empty(capacity, np.int64)
    payloads = np.empty((capacity, 2), np.int64)  # node, time of the spike
    size, created, next_spike = 0, 0, 0
    while True:
        if size and (next_spike == len(spike_times) or times[0] < spike_times[next_spike]):
            now, node, born = times[0], payloads[0, 0], payloads[0, 1]
            size -= 1
            times[0], orders[0] = times[size], orders[size]
            payloads[0, 0], payloads[0, 1] = payloads[size, 0], payloads[size, 1]
            sift_down(times, orders, payloads, size)
            first, last = node, node + 1
            from_roots = False
        elif next_spike < len(spike_times):
            now = born = spike_times[next_spike]
            stream = spike_streams[next_spike]
            first, last = root_offsets[stream], root_offsets[stream + 1]
            next_spike += 1
            from_roots = True
        else:
            break
        for k in range(first, last):
            at = roots[k] if from_roots else k
            ready = now + route_time
            for _ in range(ends[at]):
                latencies[totals[0]] = ready - born
                totals[0] += 1
                totals[2] = max(totals[2], ready)
            for c in range(child_offsets[at], child_offsets[at + 1]):
                child = children[c]
                link = links[child]
                wait = max(0, free_at[link] - ready)
                if service_time > 0:
                    waiting = (wait + service_time - 1) // service_time
                    totals[4] = max(totals[4], waiting)
                    if buffer >= 0 and waiting > buffer:
                        totals[1] += subtree_ends[child]
                        continue
                begin = ready + wait
                free_at[link] = begin + service_time
                totals[3] += wait
                longest_waits[link] = max(longest_waits[link], wait)
                link_counts[min(begin // bin_time, len(link_counts) - 1), link] += 1
                if size == capacity:
                    capacity *= 2
                    old_times, old_orders, old_payloads = times, orders, payloads
                    times = np.empty(capacity, np.int64)
                    orders = np.empty(capacity, np.int64)
                    payloads = np.empty((capacity, 2), np.int64)
                    times[:size], orders[:size] = old_times, old_orders
                    payloads[:size] = old_payloads
                times[size], orders[size] = begin + hop_times[link], created
                payloads[size, 0], payloads[size, 1] = child, born
                created += 1
                sift_up(times, orders, payloads, size)
                size += 1
