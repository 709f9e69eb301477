# mypy: disable-error-code="no-untyped-def"
"""Compiled sequential search on small levels: exact moves on dense tables.

``pins[g, p]`` counts the pins of net g in part p and ``sources[g, p]`` sums the weights of its sources
there. A pin of g finds in p the net's weight if p holds another pin, else the weight of the sources
that wait there; a source of g finds its weight where the net has pins. ``gains[v, p]`` is the sum of
what v finds in p over its nets. A move changes few of these sums, so they are kept, not made again.

The objective is soft: connectivity + price * overload, for every limited load of every part, so
that the search can pass through overfull states; rising prices lead it back to valid ones.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from snnmap._rows import mix64

_NONE = np.int64(-(1 << 62))


@njit(cache=True, nogil=True, inline="always")
def scramble(x, seed):
    """Hash of (x, seed) that breaks ties."""
    return mix64(uint64(x) * uint64(0x9E3779B97F4A7C15) + uint64(seed) * uint64(0xD1B54A32D192ED03))


@njit(cache=True, nogil=True, inline="always")  # has one caller
def fill_state(level, parts, pins, sources, loads):
    """Fill the tables and the loads of a partition, given as zeros.

    Returns its connectivity (constant apart).
    """
    (
        net_offsets,
        net_pins,
        source_offsets,
        source_nodes,
        source_weights,
        _,
        _,
        _,
        _,
        _,
        net_weights,
        counts,
        resources,
    ) = level
    n_additive, n_distinct = resources.shape[1], counts.shape[1]
    total = np.int64(0)
    for v in range(len(parts)):
        for r in range(n_additive):
            loads[parts[v], r] += resources[v, r]
    for g in range(len(net_weights)):
        for j in range(source_offsets[g], source_offsets[g + 1]):
            sources[g, parts[source_nodes[j]]] += source_weights[j]
        for j in range(net_offsets[g], net_offsets[g + 1]):
            p = parts[net_pins[j]]
            if pins[g, p] == 0:
                total += net_weights[g] - sources[g, p]
                for c in range(n_distinct):
                    loads[p, n_additive + c] += counts[g, c]
            pins[g, p] += 1
    return total


@njit(cache=True, nogil=True, inline="always")  # has one caller
def fill_gains(level, parts, sources, gains, looped):
    """Fill `gains`, given as zeros, and mark the sources that are also pins of their net."""
    net_offsets, net_pins, source_offsets, source_nodes, source_weights = level[:5]
    net_weights = level[10]
    near = np.empty(gains.shape[1], np.int64)
    found = np.empty(gains.shape[1], np.int64)
    listed = np.full(gains.shape[1], -1, np.int32)
    stamps = np.full(len(gains), -1, np.int32)
    for g in range(len(net_weights)):
        n = 0  # parts where a pin finds something; first those with pins
        for j in range(net_offsets[g], net_offsets[g + 1]):
            p = parts[net_pins[j]]
            if listed[p] != g:
                listed[p] = g
                near[n] = p
                found[n] = net_weights[g]
                n += 1
        n_pinned = n
        for j in range(source_offsets[g], source_offsets[g + 1]):
            stamps[source_nodes[j]] = g
            p = parts[source_nodes[j]]
            if listed[p] != g:
                listed[p] = g
                near[n] = p
                found[n] = sources[g, p]
                n += 1
        for j in range(net_offsets[g], net_offsets[g + 1]):
            v = net_pins[j]
            for i in range(n):
                gains[v, near[i]] += found[i]
            if stamps[v] == g:
                stamps[v] = -2
        for j in range(source_offsets[g], source_offsets[g + 1]):
            v = source_nodes[j]
            looped[j] = stamps[v] == -2
            if not looped[j]:
                for i in range(n_pinned):
                    gains[v, near[i]] += source_weights[j]


@njit(cache=True, nogil=True)
def find_moves(nodes, n, state, prices, seed, heap, targets, found):
    """Best move by the soft objective of each of nodes[:n]: its part to targets, its gain to found.

    Target -1 where no part is left: for nodes in the heap only gains above their key count. A part may
    be overfilled to at most 5/4 of a limit with a price, and not at all without.
    """
    level, parts, pins, sources, loads, gains, _, alone, limits, tight = state
    _, places, keys = heap
    node_offsets, node_nets, out_offsets, out_nets, out_weights, net_weights, counts = level[5:12]
    n_distinct = counts.shape[1]
    n_additive = len(limits) - n_distinct
    for i in range(n):
        v = nodes[i]
        a = parts[v]
        first, last = node_offsets[v], node_offsets[v + 1]
        here = gains[v, a]  # corrected for v itself being there
        o, last_out = out_offsets[v], out_offsets[v + 1]
        for j in range(first, last):
            g = node_nets[j]
            if pins[g, a] == 1:
                while o < last_out and out_nets[o] < g:
                    o += 1
                here += sources[g, a] - net_weights[g]
                if o < last_out and out_nets[o] == g:
                    here -= out_weights[o]
        relief = np.int64(0)
        if tight[a]:
            for r in range(n_additive):
                over = loads[a, r] - limits[r]
                if over > 0:
                    relief += prices[r] * min(over, alone[v, r])
            for c in range(n_distinct):
                over = loads[a, n_additive + c] - limits[n_additive + c]
                if over > 0:
                    freed = np.int64(0)
                    for j in range(first, last):
                        if pins[node_nets[j], a] == 1:
                            freed += counts[node_nets[j], c]
                    relief += prices[n_additive + c] * min(over, freed)
        best = -1
        best_gain = _NONE
        bar = np.int64(relief == 0)  # the least that v must find in a part worth a look
        if places[v] >= 0:
            best_gain = keys[v] + 1
            bar = max(bar, best_gain + here - relief)
        for p in range(len(loads)):
            if gains[v, p] < bar or p == a:
                continue
            gain = gains[v, p] - here + relief
            if tight[p]:
                fits = True
                for r in range(n_additive):
                    over = loads[p, r] + alone[v, r] - limits[r]
                    if over > 0:
                        fits &= prices[r] > 0 and over <= limits[r] >> 2
                        gain -= prices[r] * min(over, alone[v, r])
                if not fits or gain < best_gain:
                    continue
                for c in range(n_distinct):
                    limit = limits[n_additive + c]
                    new = alone[v, n_additive + c]
                    if loads[p, n_additive + c] + new <= limit:
                        continue
                    for j in range(first, last):
                        if pins[node_nets[j], p] > 0:
                            new -= counts[node_nets[j], c]
                    over = loads[p, n_additive + c] + new - limit
                    if over > 0:
                        fits &= prices[n_additive + c] > 0 and over <= limit >> 2
                        gain -= prices[n_additive + c] * min(over, new)
                if not fits or gain < best_gain:
                    continue
            ties = best >= 0 and gain == best_gain
            if ties and scramble(p * 1000003 + v, seed) < scramble(best * 1000003 + v, seed):
                continue
            best, best_gain = p, gain
            bar = max(bar, gain + here - relief)
        targets[i] = best
        found[i] = best_gain


@njit(cache=True, nogil=True)
def is_tight(loads, most, limits):
    """Whether a part with these loads is overfull, or some node alone could make it so."""
    for i in range(len(limits)):
        if loads[i] + most[i] > limits[i]:
            return True
    return False


@njit(cache=True, nogil=True)
def move(v, b, state):
    """Put v into part b and keep the tables and the loads true."""
    level, parts, pins, sources, loads, gains, looped, _, _, _ = state
    (
        net_offsets,
        net_pins,
        source_offsets,
        source_nodes,
        source_weights,
        node_offsets,
        node_nets,
        out_offsets,
        out_nets,
        out_weights,
        net_weights,
        counts,
        resources,
    ) = level
    n_additive, n_distinct = resources.shape[1], counts.shape[1]
    a = parts[v]
    parts[v] = b
    for r in range(n_additive):
        loads[a, r] -= resources[v, r]
        loads[b, r] += resources[v, r]
    for o in range(out_offsets[v], out_offsets[v + 1]):
        g = out_nets[o]
        sources[g, a] -= out_weights[o]
        sources[g, b] += out_weights[o]
        if pins[g, a] == 0 or pins[g, b] == 0:
            less = out_weights[o] if pins[g, a] == 0 else 0
            more = out_weights[o] if pins[g, b] == 0 else 0
            for i in range(net_offsets[g], net_offsets[g + 1]):
                gains[net_pins[i], a] -= less
                gains[net_pins[i], b] += more
    for j in range(node_offsets[v], node_offsets[v + 1]):
        g = node_nets[j]
        pins[g, a] -= 1
        pins[g, b] += 1
        leaves, enters = pins[g, a] == 0, pins[g, b] == 1
        if not (leaves or enters):
            continue
        less = net_weights[g] - sources[g, a] if leaves else 0
        more = net_weights[g] - sources[g, b] if enters else 0
        for i in range(net_offsets[g], net_offsets[g + 1]):
            gains[net_pins[i], a] -= less
            gains[net_pins[i], b] += more
        for i in range(source_offsets[g], source_offsets[g + 1]):
            if not looped[i]:
                gains[source_nodes[i], a] -= source_weights[i] * leaves
                gains[source_nodes[i], b] += source_weights[i] * enters
        for c in range(n_distinct):
            loads[a, n_additive + c] -= counts[g, c] * leaves
            loads[b, n_additive + c] += counts[g, c] * enters


@njit(cache=True, nogil=True)
def node_loads(level):
    """int64[n_nodes, n_loads]: what each node alone would put on a part."""
    (_, _, _, _, _, node_offsets, node_nets, _, _, _, _, counts, resources) = level
    n_additive, n_distinct = resources.shape[1], counts.shape[1]
    loads = np.zeros((len(resources), n_additive + n_distinct), np.int64)
    for v in range(len(resources)):
        for r in range(n_additive):
            loads[v, r] = resources[v, r]
        for j in range(node_offsets[v], node_offsets[v + 1]):
            for c in range(n_distinct):
                loads[v, n_additive + c] += counts[node_nets[j], c]
    return loads


@njit(cache=True, nogil=True)
def push(heap, v, key, size):
    """Give v a key, larger than its last, in a binary max-heap (ties to the smaller id) of `size` nodes.

    A heap is (nodes, place of each node or -1, its key). Returns the new size.
    """
    nodes, places, keys = heap
    i = places[v]
    if i < 0:
        i = size
        size += 1
    keys[v] = key
    while i > 0:
        up = (i - 1) >> 1
        u = nodes[up]
        if keys[u] > key or (keys[u] == key and u < v):
            break
        nodes[i] = u
        places[u] = i
        i = up
    nodes[i] = v
    places[v] = i
    return size


@njit(cache=True, nogil=True)
def sink(heap, size):
    """Put the first node of a heap of `size` where its key belongs."""
    nodes, places, keys = heap
    i = 0
    v = nodes[i]
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size:
            x, y = nodes[child], nodes[child + 1]
            if keys[y] > keys[x] or (keys[y] == keys[x] and y < x):
                child += 1
        u = nodes[child]
        if keys[v] > keys[u] or (keys[v] == keys[u] and v < u):
            break
        nodes[i] = u
        places[u] = i
        i = child
    nodes[i] = v
    places[v] = i


@njit(cache=True, nogil=True, inline="always")  # has one caller
def fm_pass(
    level, parts, pins, sources, loads, gains, looped, alone, limits, prices, seed, patience
):
    """One Fiduccia-Mattheyses pass by the soft objective; returns what it gained.

    Nodes are taken by best gain (checked again when taken), move once, and the best prefix of the
    sequence stays; `patience` moves without a new best end the pass.
    """
    net_offsets, net_pins, source_offsets, source_nodes, _, node_offsets, node_nets = level[:7]
    out_offsets, out_nets = level[7:9]
    n = len(parts)
    keys = np.empty(n, np.int64)
    places = np.full(n, -1, np.int64)
    heap = (np.empty(n, np.int32), places, keys)
    seen = np.full(n, -1, np.int32)  # the move after which a node was looked at; n when it moves
    moved = np.empty(n, np.int32)
    origins = np.empty(n, np.int32)
    queue = np.arange(n).astype(np.int32)  # nodes to look at, and what was found
    targets = np.empty(n, np.int32)
    found = np.empty(n, np.int64)
    most = np.zeros(len(limits), np.int64)
    for w in range(n):
        for i in range(len(limits)):
            most[i] = max(most[i], alone[w, i])
    tight = np.empty(len(loads), np.bool_)
    for p in range(len(loads)):
        tight[p] = is_tight(loads[p], most, limits)
    state = (level, parts, pins, sources, loads, gains, looped, alone, limits, tight)
    find_moves(queue, np.int64(n), state, prices, seed, heap, targets, found)
    size = np.int64(0)
    for w in range(n):
        if targets[w] >= 0:
            size = push(heap, np.int64(w), found[w], size)
    n_moved = 0
    n_kept = 0
    current = np.int64(0)
    best = np.int64(0)
    while size > 0 and n_moved - n_kept <= patience:
        v = np.int64(heap[0][0])
        queue[0] = v
        places[v] = -1
        find_moves(queue, np.int64(1), state, prices, seed, heap, targets, found)
        b, gain = np.int64(targets[0]), found[0]
        if b >= 0 and gain < keys[v]:
            keys[v] = gain
            sink(heap, size)
            continue
        size -= 1
        if size > 0:
            heap[0][0] = heap[0][size]
            sink(heap, size)
        if b < 0:
            continue
        a = np.int64(parts[v])
        seen[v] = n
        moved[n_moved] = v
        origins[n_moved] = a
        n_moved += 1
        move(v, b, state)
        tight[a] = is_tight(loads[a], most, limits)
        tight[b] = is_tight(loads[b], most, limits)
        current += gain
        if current > best:
            best = current
            n_kept = n_moved
        queued = np.int64(0)
        # Only nets whose pins in a or b became few enough change somebody's gain.
        for side in range(2):
            first, last = (
                (node_offsets[v], node_offsets[v + 1])
                if side == 0
                else (out_offsets[v], out_offsets[v + 1])
            )
            for j in range(first, last):
                g = node_nets[j] if side == 0 else out_nets[j]
                if side == 0 and pins[g, a] > 1 and pins[g, b] > 2:
                    continue
                if side == 1 and pins[g, a] > 0 and pins[g, b] > 0:
                    continue
                begin, end = net_offsets[g], net_offsets[g + 1]
                n_sources = 0
                if side == 0 and (pins[g, a] == 0 or pins[g, b] == 1):
                    n_sources = source_offsets[g + 1] - source_offsets[g]
                for i in range(begin, end + n_sources):
                    u = net_pins[i] if i < end else source_nodes[source_offsets[g] + i - end]
                    if seen[u] < n_moved:
                        seen[u] = n_moved
                        queue[queued] = u
                        queued += 1
        find_moves(queue, queued, state, prices, seed, heap, targets, found)
        for i in range(queued):
            if targets[i] >= 0:
                size = push(heap, np.int64(queue[i]), found[i], size)
    for i in range(n_moved - 1, n_kept - 1, -1):
        move(np.int64(moved[i]), np.int64(origins[i]), state)
    return best
