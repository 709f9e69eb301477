# mypy: disable-error-code="no-untyped-def"
"""Compiled sequential clustering of small levels, for the search."""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from snnmap._rows import sort_range
from snnmap.partitioning.multilevel._kernels_search import node_loads, scramble

_UNLIMITED = np.int64(1 << 60)  # as in `level.UNLIMITED`
_WIDEST = 256  # pins
_TRIES = 8  # candidates whose exact union is tested before a node stays alone


@njit(cache=True, nogil=True)
def find_neighbours(level):
    """(offsets, nodes, scores): for each node all others it shares nets with, and how much.

    Sharing is the sum over common nets of weight / pins; nets of more than _WIDEST pins tie too
    weakly to count.
    """
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
        _,
        resources,
    ) = level
    n, n_nets = len(resources), len(net_weights)
    most = np.int64(n)
    inward = np.empty(n_nets, np.int64)  # what a pin shares by each net
    for g in range(n_nets):
        size = net_offsets[g + 1] - net_offsets[g]
        inward[g] = (net_weights[g] << 6) // max(size, 1) + 1
        if size <= _WIDEST:
            most += size * (size + 2 * (source_offsets[g + 1] - source_offsets[g]))
    offsets = np.zeros(n + 1, np.int64)
    nodes = np.empty(most, np.int32)
    scores = np.empty(most, np.int64)
    places = np.full(n, -1, np.int64)
    end = np.int64(0)
    for v in range(n):
        begin = end
        places[v] = end  # itself first, taken out again below
        nodes[end] = v
        scores[end] = 0
        end += 1
        for side in range(2):
            first, last = (
                (node_offsets[v], node_offsets[v + 1])
                if side == 0
                else (out_offsets[v], out_offsets[v + 1])
            )
            for j in range(first, last):
                g = node_nets[j] if side == 0 else out_nets[j]
                size = net_offsets[g + 1] - net_offsets[g]
                if size > _WIDEST:
                    continue
                n_ends = size
                if side == 0:
                    n_ends += source_offsets[g + 1] - source_offsets[g]
                for i in range(n_ends):
                    if i < size:
                        u = net_pins[net_offsets[g] + i]
                        score = inward[g] if side == 0 else (out_weights[j] << 6) // size + 1
                    else:
                        at = source_offsets[g] + i - size
                        u = source_nodes[at]
                        score = (source_weights[at] << 6) // size + 1
                    if places[u] < begin:
                        places[u] = end
                        nodes[end] = u
                        scores[end] = 0
                        end += 1
                    scores[places[u]] += score
        end -= 1
        nodes[begin] = nodes[end]
        scores[begin] = scores[end]
        places[nodes[begin]] = begin
        offsets[v + 1] = end
    return offsets, nodes[:end].copy(), scores[:end].copy()


@njit(cache=True, nogil=True)
def cluster_nodes(level, neighbours, limits, cap, target, within, seed):
    """Heavy-edge clustering: every node, in random order, joins the neighbouring cluster it shares most with.

    `neighbours` is what :func:`find_neighbours` found. A cluster keeps all `limits` exactly (the
    union of its nets counts), its first resource stays within `cap`, and it never crosses a border
    of `within` (int64[n_nodes]). Stops at `target` clusters. Returns (cluster of each node, their number).
    """
    (_, _, _, _, _, node_offsets, node_nets, _, _, _, net_weights, counts, resources) = level
    near_offsets, near_nodes, near_scores = neighbours
    n, n_nets = len(resources), len(net_weights)
    n_additive, n_distinct = resources.shape[1], counts.shape[1]
    leaders = np.arange(n).astype(np.int32)
    alone = np.ones(n, np.bool_)
    loads = node_loads(level)
    following = np.full(n, -1, np.int32)
    tails = np.arange(n).astype(np.int32)
    scores = np.zeros(n, np.int64)
    touched = np.empty(n, np.int32)
    stamps = np.full(n_nets, -1, np.int64)
    order = np.empty(n, np.int64)
    extra = np.zeros(n_distinct, np.int64)
    limited = False  # whether unions of nets matter
    for c in range(n_distinct):
        limited |= limits[n_additive + c] < _UNLIMITED
    for v in range(n):
        order[v] = np.int64(scramble(v, seed) >> uint64(33)) << 32 | v
    sort_range(order, np.int64(0), np.int64(n))
    left = n
    stamp = np.int64(0)
    for rank in range(n):
        v = order[rank] & np.int64(0xFFFFFFFF)
        if left <= target:
            break
        if not alone[v]:
            continue
        n_touched = 0
        for i in range(near_offsets[v], near_offsets[v + 1]):
            u = leaders[near_nodes[i]]
            if within[u] != within[v]:
                continue
            if scores[u] == 0:
                touched[n_touched] = u
                n_touched += 1
            scores[u] += near_scores[i]
        me = leaders[v]
        joined = -1
        for _ in range(_TRIES):
            best = -1
            best_score = np.int64(0)
            best_tie = uint64(0)
            for t in range(n_touched):
                u = touched[t]
                if u == me or scores[u] <= 0 or scores[u] < best_score:
                    continue
                if loads[u, 0] + resources[v, 0] > cap:
                    continue
                fits = True
                for r in range(n_additive):
                    fits &= loads[u, r] + resources[v, r] <= limits[r]
                if not fits:
                    continue
                tie = scramble(u, seed + 1)
                if scores[u] > best_score or tie > best_tie:
                    best, best_score, best_tie = u, scores[u], tie
            if best < 0:
                break
            if not limited:
                joined = best
                break
            stamp += 1  # exact union of the distinct counts
            for c in range(n_distinct):
                extra[c] = 0
            u = best
            while u >= 0:
                for j in range(node_offsets[u], node_offsets[u + 1]):
                    stamps[node_nets[j]] = stamp
                u = following[u]
            for j in range(node_offsets[v], node_offsets[v + 1]):
                if stamps[node_nets[j]] != stamp:
                    for c in range(n_distinct):
                        extra[c] += counts[node_nets[j], c]
            fits = True
            for c in range(n_distinct):
                fits &= loads[best, n_additive + c] + extra[c] <= limits[n_additive + c]
            if fits:
                joined = best
                break
            scores[best] = -1
        for t in range(n_touched):
            scores[touched[t]] = 0
        if joined < 0:
            continue
        leaders[v] = joined
        alone[v] = False
        alone[joined] = False
        for r in range(n_additive):
            loads[joined, r] += resources[v, r]
        for c in range(n_distinct):
            loads[joined, n_additive + c] += extra[c]
        following[tails[joined]] = v
        tails[joined] = v
        left -= 1
    clusters = np.empty(n, np.int32)
    n_clusters = 0
    for v in range(n):
        if leaders[v] == v:
            clusters[v] = n_clusters
            n_clusters += 1
    for v in range(n):
        if leaders[v] != v:
            clusters[v] = clusters[leaders[v]]
    return clusters, n_clusters
