"""Grow a part by the node that needs the fewest inbound axons it does not have yet.

The candidates wait in an indexed binary min-heap of nodes, ordered by (missing axons, their weight,
id): a node whose inbound h-edges overlap the part's most, measured against what it needs in all.
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
        missing: int64[n_nodes, 2], inbound axons that a node in the heap would add to the part, and
            their fixed-point weight.
        touched: int32[n_nodes], nodes to reset when the part is closed.
    """

    heap: np.ndarray[Any, Any]
    place: np.ndarray[Any, Any]
    missing: np.ndarray[Any, Any]
    touched: np.ndarray[Any, Any]


def candidates(n_nodes: int) -> Candidates:
    """No candidates yet."""
    return Candidates(
        np.zeros(n_nodes, np.int32),
        np.full(n_nodes, UNSEEN, np.int32),
        np.zeros((n_nodes, 2), np.int64),
        np.zeros(n_nodes, np.int32),
    )


@njit(cache=True, nogil=True)
def inbound_weights(net):
    """int64[n_nodes]: fixed-point weight of all inbound axons of each node."""
    weights = np.zeros(len(net.needs), np.int64)
    for node in range(len(weights)):
        for j in range(net.in_offsets[node], net.in_offsets[node + 1]):
            weights[node] += net.group_weights[net.in_groups[j]]
    return weights


@njit(cache=True, nogil=True)
def _before(missing, a, b):
    if missing[a, 0] != missing[b, 0]:
        return missing[a, 0] < missing[b, 0]
    if missing[a, 1] != missing[b, 1]:
        return missing[a, 1] < missing[b, 1]
    return a < b


@njit(cache=True, nogil=True)
def sift_up(heap, place, missing, node, i):
    """Put `node` at place i or above, where it belongs."""
    while i > 0:
        above = (i - 1) >> 1
        other = heap[above]
        if not _before(missing, node, other):
            break
        heap[i] = other
        place[other] = i
        i = above
    heap[i] = node
    place[node] = i


@njit(cache=True, nogil=True)
def pop(heap, place, missing, length):
    """Remove and return the first node of a heap of `length` > 0 nodes."""
    top = np.int64(heap[0])
    length -= 1
    node = heap[length]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= length:
            break
        if child + 1 < length and _before(missing, heap[child + 1], heap[child]):
            child += 1
        if not _before(missing, heap[child], node):
            break
        heap[i] = heap[child]
        place[heap[i]] = i
        i = child
    heap[i] = node
    place[node] = i
    place[top] = DROPPED
    return top


@njit(cache=True, nogil=True)
def grow_part(net, weights, state, found, parts, part, first, smallest):
    """Open part `part` with node `first` and add nodes until none fits.

    Best candidate first; when there is none, the next node without a part. A node that does not
    fit now never will, for |in(part) u in(node)| only grows, so it is dropped. `weights` are those
    of each node's inbound axons, `smallest` is the least node size. Returns the first
    node that is still without a part, or n_nodes.
    """
    n_nodes = len(parts)
    length = n_touched = 0
    state.used[:] = 0
    node = first
    while True:
        while length > 0:
            node = pop(found.heap, found.place, found.missing, length)
            length -= 1
            room = net.caps[1] - state.used[1]
            if found.missing[node, 0] <= room and fits(net, state, part, node):
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
                other = np.int64(net.destinations[i])
                if parts[other] >= 0 or found.place[other] == DROPPED:
                    continue
                place = np.int64(found.place[other])
                if place == UNSEEN:
                    found.touched[n_touched] = other
                    n_touched += 1
                    place = np.int64(length)
                    length += 1
                    found.missing[other, 0] = net.needs[other, 1]
                    found.missing[other, 1] = weights[other]
                found.missing[other, 0] -= net.group_axons[g]
                found.missing[other, 1] -= net.group_weights[g]
                sift_up(found.heap, found.place, found.missing, other, place)
        add(net, state, part, node)
        if state.used[0] + smallest > net.caps[0]:
            break
    for i in range(n_touched):
        found.place[found.touched[i]] = UNSEEN
    while first < n_nodes and parts[first] >= 0:
        first += 1
    return first
