"""Coarsening of `hierarchical`: match each node with the neighbour that shares most with it.

While the neighbours of a node are visited, what the two share is summed up per neighbour, so that
the load of every possible pair is known exactly: |A u B| = |A| + |B| - shared.
"""

# mypy: allow-untyped-defs, allow-untyped-decorators, allow-untyped-calls
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

NOBODY = -1


class Matching(NamedTuple):
    """State of the matching of one level.

    Attributes:
        mates: int32[n_nodes], the partner of each node, or NOBODY.
        scores: int64[n_nodes], weight that each neighbour shares with the node at hand.
        shared: int64[n_nodes, 3], inbound, outbound and incident axons shared with it.
        touched: int32[n_nodes], neighbours to reset.
        seen_groups: int32[n_groups], last node that had each group inbound.
        visits: int64[n_nodes], number of the visit in which each node was last a destination.
        counter: int64[1], visits so far.
    """

    mates: np.ndarray[Any, Any]
    scores: np.ndarray[Any, Any]
    shared: np.ndarray[Any, Any]
    touched: np.ndarray[Any, Any]
    seen_groups: np.ndarray[Any, Any]
    visits: np.ndarray[Any, Any]
    counter: np.ndarray[Any, Any]


def matching(n_nodes: int, n_groups: int) -> Matching:
    """Nobody is matched yet."""
    return Matching(
        np.full(n_nodes, NOBODY, np.int32),
        np.zeros(n_nodes, np.int64),
        np.zeros((n_nodes, 3), np.int64),
        np.zeros(n_nodes, np.int32),
        np.full(n_groups, -1, np.int32),
        np.zeros(n_nodes, np.int64),
        np.zeros(1, np.int64),
    )


@njit(cache=True, nogil=True)
def _share(state, other, axons, weight, n_touched):
    """Note `axons` > 0 more incident axons shared with `other`."""
    if state.shared[other, 2] == 0:
        state.touched[n_touched] = other
        n_touched += 1
    state.shared[other, 2] += axons
    state.scores[other] += weight
    return n_touched


@njit(cache=True, nogil=True)
def rate_neighbours(net, state, node):
    """Sum up what `node` shares with every unmatched neighbour; returns how many were touched.

    An h-edge that is incident to both counts once, whatever the roles of the two.
    """
    n_touched = 0
    for j in range(net.in_offsets[node], net.in_offsets[node + 1]):
        g = net.in_groups[j]
        state.seen_groups[g] = node
        state.counter[0] += 1
        visit = state.counter[0]
        axons, weight = net.group_axons[g], net.group_weights[g]
        if axons == 0:
            continue
        for i in range(net.group_offsets[g], net.group_offsets[g + 1]):
            other = net.destinations[i]
            if state.mates[other] < 0:
                state.visits[other] = visit
                n_touched = _share(state, other, axons, weight, n_touched)
                state.shared[other, 0] += axons
        for e in range(net.hedge_offsets[g], net.hedge_offsets[g + 1]):
            for i in range(net.source_offsets[e], net.source_offsets[e + 1]):
                other = net.sources[i]
                if state.mates[other] < 0 and state.visits[other] != visit:
                    axons = net.hedge_axons[e]
                    n_touched = _share(state, other, axons, net.hedge_weights[e], n_touched)
    j = net.out_offsets[node]
    while j < net.out_offsets[node + 1]:
        g = net.hedge_groups[net.out_hedges[j]]
        first, axons, weight = j, 0, 0
        while j < net.out_offsets[node + 1] and net.hedge_groups[net.out_hedges[j]] == g:
            axons += net.hedge_axons[net.out_hedges[j]]
            weight += net.hedge_weights[net.out_hedges[j]]
            j += 1
        inside = state.seen_groups[g] == node  # then its destinations were visited above
        state.counter[0] += 1
        visit = state.counter[0]
        for i in range(net.group_offsets[g], net.group_offsets[g + 1]):
            other = net.destinations[i]
            state.visits[other] = visit
            if not inside and state.mates[other] < 0:
                n_touched = _share(state, other, axons, weight, n_touched)
        for k in range(first, j):
            e = net.out_hedges[k]
            for i in range(net.source_offsets[e], net.source_offsets[e + 1]):
                other = net.sources[i]
                if state.mates[other] >= 0:
                    continue
                if not inside and state.visits[other] != visit:
                    axons = net.hedge_axons[e]
                    n_touched = _share(state, other, axons, net.hedge_weights[e], n_touched)
                state.shared[other, 1] += net.hedge_axons[e]
    return n_touched


@njit(cache=True, nogil=True)
def _pair_fits(net, shared, node, other):
    needs, caps = net.needs, net.caps
    return (
        needs[node, 0] + needs[other, 0] <= caps[0]
        and needs[node, 1] + needs[other, 1] - shared[other, 0] <= caps[1]
        and needs[node, 2] + needs[other, 2] - shared[other, 1] <= caps[2]
        and needs[node, 3] + needs[other, 3] - shared[other, 2] <= caps[3]
        and needs[node, 4] + needs[other, 4] <= caps[4]
    )


@njit(cache=True, nogil=True)
def best_partner(net, state, node, window):
    """(partner, rating) of `node` among the unmatched nodes with which it fits; (-1, -1) if none.

    rating = shared h-edge weight / size of the partner; ties go to the smaller id. Where no
    neighbour fits, the largest of the next `window` unmatched nodes that fits is taken (0: none).
    """
    state.mates[node] = node  # not its own neighbour
    n_touched = rate_neighbours(net, state, node)
    best, best_rating = np.int64(-1), np.int64(-1)
    for i in range(n_touched):
        other = np.int64(state.touched[i])
        rating = state.scores[other] // max(net.needs[other, 0], 1)
        if (rating > best_rating or (rating == best_rating and other < best)) and _pair_fits(
            net, state.shared, node, other
        ):
            best, best_rating = other, rating
    if best < 0:
        largest = np.int64(-1)
        for stranger in range(node + 1, len(state.mates)):
            if window == 0:
                break
            if state.mates[stranger] >= 0:
                continue
            size = net.needs[stranger, 0]
            if size > largest and _pair_fits(net, state.shared, node, stranger):
                best, largest = np.int64(stranger), size
            window -= 1
    for i in range(n_touched):
        state.scores[state.touched[i]] = 0
        state.shared[state.touched[i], :] = 0
    state.mates[node] = NOBODY
    return best, best_rating


@njit(cache=True, nogil=True)
def rate_nodes(net, state, window, ratings, start, stop):
    """ratings[n] = rating of the best partner of nodes start..stop-1 while nobody is matched."""
    for node in range(start, stop):
        _, ratings[node] = best_partner(net, state, node, window)


@njit(cache=True, nogil=True)
def match_nodes(net, state, order, window, start, stop):
    """Match each node of order[start:stop], in that order, with its best partner (see there)."""
    for at in range(start, stop):
        node = order[at]
        if state.mates[node] >= 0:
            continue
        mate, _ = best_partner(net, state, node, window)
        if mate >= 0:
            state.mates[node] = mate
            state.mates[mate] = node


@njit(cache=True, nogil=True)
def number_pairs(mates, clusters):
    """clusters[n] = id of the pair of n, or of n alone, by its smallest node; returns how many."""
    n_clusters = 0
    for node in range(len(mates)):
        mate = mates[node]
        if 0 <= mate < node:
            clusters[node] = clusters[mate]
        else:
            clusters[node] = n_clusters
            n_clusters += 1
    return n_clusters
