# mypy: disable-error-code="no-untyped-def"
"""Compiled sequential search on small levels: exact moves on a dense table of nets x parts.

``pins[g, p]`` counts the pins of net g in part p, ``sources[g, p]`` sums the weights of its sources
there, and ``benefit[g, p]`` is what a pin of g finds in p: the net's weight if p holds another pin,
else the weight of the sources that wait there. A node's gain towards every part is then a sum of
rows of `benefit`.

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


@njit(cache=True, nogil=True)
def fill_state(level, parts, pins, sources, benefit, loads):
    """Fill the dense table and the loads of a partition, given as zeros.

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
        for j in range(net_offsets[g], net_offsets[g + 1]):
            pins[g, parts[net_pins[j]]] += 1
        for j in range(source_offsets[g], source_offsets[g + 1]):
            sources[g, parts[source_nodes[j]]] += source_weights[j]
        for p in range(pins.shape[1]):
            if pins[g, p] > 0:
                total += net_weights[g] - sources[g, p]
                benefit[g, p] = net_weights[g]
                for c in range(n_distinct):
                    loads[p, n_additive + c] += counts[g, c]
            else:
                benefit[g, p] = sources[g, p]
    return total


@njit(cache=True, nogil=True)
def best_move(v, level, parts, pins, sources, benefit, loads, limits, prices, seed, gains):
    """(part, gain) of v's best move by the soft objective; part -1 if it has no neighbour elsewhere.

    A part may be overfilled to at most 5/4 of a limit with a price, and not at all without.
    """
    (
        _,
        _,
        _,
        _,
        _,
        node_offsets,
        node_nets,
        out_offsets,
        out_nets,
        out_weights,
        net_weights,
        counts,
        resources,
    ) = level
    n_parts = len(loads)
    n_additive, n_distinct = resources.shape[1], counts.shape[1]
    a = parts[v]
    for p in range(n_parts):
        gains[p] = 0
    first, last = node_offsets[v], node_offsets[v + 1]
    first_out, last_out = out_offsets[v], out_offsets[v + 1]
    own = np.int64(0)  # correction of benefit[:, a] for v itself being there
    o = first_out
    for j in range(first, last):
        g = node_nets[j]
        for p in range(n_parts):
            gains[p] += benefit[g, p]
        if pins[g, a] == 1:
            while o < last_out and out_nets[o] < g:
                o += 1
            waiting = sources[g, a]
            if o < last_out and out_nets[o] == g:
                waiting -= out_weights[o]
            own += waiting - net_weights[g]
    j = first
    for o in range(first_out, last_out):
        g = out_nets[o]
        while j < last and node_nets[j] < g:
            j += 1
        if j < last and node_nets[j] == g:
            continue  # a self-loop's source term never changes
        for p in range(n_parts):
            if pins[g, p] > 0:
                gains[p] += out_weights[o]
    here = gains[a] + own
    relief = np.int64(0)
    for r in range(n_additive):
        over = loads[a, r] - limits[r]
        if over > 0:
            relief += prices[r] * min(over, resources[v, r])
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
    best_tie = uint64(0)
    for p in range(n_parts):
        gain = gains[p] - here + relief
        if p == a or gain < best_gain or (gains[p] == 0 and relief == 0):
            continue
        fits = True
        for r in range(n_additive):
            over = loads[p, r] + resources[v, r] - limits[r]
            if over > 0:
                fits &= prices[r] > 0 and over <= limits[r] >> 2
                gain -= prices[r] * min(over, resources[v, r])
        if not fits or gain < best_gain:
            continue
        for c in range(n_distinct):
            limit = limits[n_additive + c]
            new = np.int64(0)
            for j in range(first, last):
                new += counts[node_nets[j], c]
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
        tie = scramble(p * 1000003 + v, seed)
        if gain > best_gain or tie > best_tie:
            best, best_gain, best_tie = p, gain, tie
    return best, best_gain


@njit(cache=True, nogil=True)
def move(v, b, level, parts, pins, sources, benefit, loads):
    """Put v into part b and keep the table and the loads true."""
    (
        _,
        _,
        _,
        _,
        _,
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
        if pins[g, a] == 0:
            benefit[g, a] = sources[g, a]
        if pins[g, b] == 0:
            benefit[g, b] = sources[g, b]
    for j in range(node_offsets[v], node_offsets[v + 1]):
        g = node_nets[j]
        pins[g, a] -= 1
        if pins[g, a] == 0:
            benefit[g, a] = sources[g, a]
            for c in range(n_distinct):
                loads[a, n_additive + c] -= counts[g, c]
        if pins[g, b] == 0:
            benefit[g, b] = net_weights[g]
            for c in range(n_distinct):
                loads[b, n_additive + c] += counts[g, c]
        pins[g, b] += 1


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
def rise(heap, places, keys, i):
    """Restore a binary max-heap (ties to the smaller id) after the key at place i grew."""
    v = heap[i]
    while i > 0:
        up = (i - 1) >> 1
        u = heap[up]
        if keys[u] > keys[v] or (keys[u] == keys[v] and u < v):
            break
        heap[i] = u
        places[u] = i
        i = up
    heap[i] = v
    places[v] = i


@njit(cache=True, nogil=True)
def sink(heap, places, keys, n):
    """Restore the heap of n entries after the key of the first fell."""
    i = 0
    v = heap[i]
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n:
            x, y = heap[child], heap[child + 1]
            if keys[y] > keys[x] or (keys[y] == keys[x] and y < x):
                child += 1
        u = heap[child]
        if keys[v] > keys[u] or (keys[v] == keys[u] and v < u):
            break
        heap[i] = u
        places[u] = i
        i = child
    heap[i] = v
    places[v] = i


@njit(cache=True, nogil=True)
def fm_pass(level, parts, pins, sources, benefit, loads, limits, prices, seed, patience):
    """One Fiduccia-Mattheyses pass by the soft objective; returns what it gained.

    Nodes are taken by best gain (checked again when taken), move once, and the best prefix of the
    sequence stays; `patience` moves without a new best end the pass.
    """
    (
        net_offsets,
        net_pins,
        source_offsets,
        source_nodes,
        _,
        node_offsets,
        node_nets,
        out_offsets,
        out_nets,
        _,
        _,
        _,
        _,
    ) = level
    n = len(parts)
    gains = np.empty(len(loads), np.int64)
    keys = np.empty(n, np.int64)
    heap = np.empty(n, np.int32)
    places = np.full(n, -1, np.int64)
    done = np.zeros(n, np.bool_)
    seen = np.full(n, -1, np.int32)
    moved = np.empty(n, np.int32)
    origins = np.empty(n, np.int32)
    size = np.int64(0)
    for w in range(n):
        b, gain = best_move(
            w, level, parts, pins, sources, benefit, loads, limits, prices, seed, gains
        )
        if b >= 0:
            keys[w] = gain
            heap[size] = w
            rise(heap, places, keys, size)
            size += 1
    n_moved = 0
    n_kept = 0
    current = np.int64(0)
    best = np.int64(0)
    while size > 0 and n_moved - n_kept <= patience:
        v = np.int64(heap[0])  # one type for all calls: compiled once
        b, gain = best_move(
            v, level, parts, pins, sources, benefit, loads, limits, prices, seed, gains
        )
        if b >= 0 and gain < keys[v]:
            keys[v] = gain
            sink(heap, places, keys, size)
            continue
        size -= 1
        places[v] = -1
        if size > 0:
            heap[0] = heap[size]
            places[heap[0]] = 0
            sink(heap, places, keys, size)
        if b < 0:
            continue
        a = parts[v]
        done[v] = True
        moved[n_moved] = v
        origins[n_moved] = a
        n_moved += 1
        move(v, b, level, parts, pins, sources, benefit, loads)
        current += gain
        if current > best:
            best = current
            n_kept = n_moved
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
                    at = source_offsets[g] + i - end
                    u = np.int64(net_pins[i] if i < end else source_nodes[at])
                    if done[u] or seen[u] == n_moved:
                        continue
                    seen[u] = n_moved
                    to, key = best_move(
                        u, level, parts, pins, sources, benefit, loads, limits, prices, seed, gains
                    )
                    if to < 0:
                        continue
                    if places[u] < 0:
                        keys[u] = key
                        heap[size] = u
                        rise(heap, places, keys, size)
                        size += 1
                    elif key > keys[u]:
                        keys[u] = key
                        rise(heap, places, keys, places[u])
    for i in range(n_moved - 1, n_kept - 1, -1):
        move(np.int64(moved[i]), np.int64(origins[i]), level, parts, pins, sources, benefit, loads)
    return best
