"""Grow a part by the node that shares the most inbound h-edge weight with it.

The candidates wait in an indexed binary max-heap of nodes, ordered by (shared weight, smaller id).
"""

# mypy: allow-untyped-defs, allow-untyped-decorators, allow-untyped-calls
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from snnmap.partitioning.baselines._kernels_grow import add, fits

UNSEEN = -1
DROPPED = -2


class Candidates(NamedTuple):
    """Nodes that share inbound h-edges with the open part.

    Attributes:
        heap: int32[n_nodes], a binary heap.
        place: int32[n_nodes], where in the heap each node is, or UNSEEN or DROPPED.
        shared_weights: int64[n_nodes], fixed-point weight of the inbound axons shared.
        shared_axons: int64[n_nodes], their number.
        touched: int32[n_nodes], nodes to reset when the part is closed.
    """

    heap: np.ndarray[Any, Any]
    place: np.ndarray[Any, Any]
    shared_weights: np.ndarray[Any, Any]
    shared_axons: np.ndarray[Any, Any]
    touched: np.ndarray[Any, Any]


def candidates(n_nodes: int) -> Candidates:
    """No candidates yet."""
    return Candidates(
        np.zeros(n_nodes, np.int32),
        np.full(n_nodes, UNSEEN, np.int32),
        np.zeros(n_nodes, np.int64),
        np.zeros(n_nodes, np.int64),
        np.zeros(n_nodes, np.int32),
    )


@njit(cache=True, nogil=True, inline="always")
def _before(keys, a, b):
    return keys[a] > keys[b] or (keys[a] == keys[b] and a < b)


@njit(cache=True, nogil=True)
def sift_up(heap, place, keys, node, i):
    """Put `node` at place i or above, where its key belongs."""
    while i > 0:
        above = (i - 1) >> 1
        other = heap[above]
        if not _before(keys, node, other):
            break
        heap[i] = other
        place[other] = i
        i = above
    heap[i] = node
    place[node] = i


@njit(cache=True, nogil=True)
def pop(heap, place, keys, length):
    """Remove and return the first node of a heap of `length` > 0 nodes."""
    top = heap[0]
    length -= 1
    node = heap[length]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= length:
            break
        if child + 1 < length and _before(keys, heap[child + 1], heap[child]):
            child += 1
        if not _before(keys, heap[child], node):
            break
        heap[i] = heap[child]
        place[heap[i]] = i
        i = child
    heap[i] = node
    place[node] = i
    place[top] = DROPPED
    return top


@njit(cache=True, nogil=True)
def grow_part(net, state, found, parts, part, first, smallest):
    """Open part `part` with node `first` and add nodes until none fits.

    Best candidate first; when there is none, the next node without a part. A node that does not
    fit now never will, for |in(part) u in(node)| only grows, so it is dropped. `smallest` is the
    least node size. Returns the first node that is still without a part, or n_nodes.
    """
    n_nodes = len(parts)
    length = n_touched = 0
    state.used[:] = 0
    node = first
    while True:
        while length > 0:
            node = pop(found.heap, found.place, found.shared_weights, length)
            length -= 1
            inbound = state.used[1] + net.needs[node, 1] - found.shared_axons[node]
            if inbound <= net.caps[1] and fits(net, state, part, node):
                break
            node = n_nodes
        else:
            while first < n_nodes and parts[first] >= 0:
                first += 1
            node = first
            if node == n_nodes or not fits(net, state, part, node):
                break
            if found.place[node] == UNSEEN:
                found.touched[n_touched] = node
                n_touched += 1
            found.place[node] = DROPPED
        if node == n_nodes:
            continue
        parts[node] = part
        for j in range(net.in_offsets[node], net.in_offsets[node + 1]):
            g = net.in_groups[j]
            if state.inbound[g] == part:
                continue
            for i in range(net.group_offsets[g], net.group_offsets[g + 1]):
                other = net.destinations[i]
                if parts[other] >= 0 or found.place[other] == DROPPED:
                    continue
                found.shared_weights[other] += net.group_weights[g]
                found.shared_axons[other] += net.group_axons[g]
                place = found.place[other]
                if place == UNSEEN:
                    found.touched[n_touched] = other
                    n_touched += 1
                    place = length
                    length += 1
                sift_up(found.heap, found.place, found.shared_weights, other, place)
        add(net, state, part, node)
        if state.used[0] + smallest > net.caps[0]:
            break
    for i in range(n_touched):
        node = found.touched[i]
        found.place[node] = UNSEEN
        found.shared_weights[node] = 0
        found.shared_axons[node] = 0
    while first < n_nodes and parts[first] >= 0:
        first += 1
    return first
