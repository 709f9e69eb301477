# mypy: disable-error-code="no-untyped-def"
"""Compiled clustering of small levels, for the search; the twin of ``kernels/hierarchies.cu``."""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from snnmap._rows import sort_range
from snnmap.partitioning.multilevel._kernels_search import node_loads, scramble

_WIDEST = 256  # pins; wider nets tie too weakly to count
_ONE = 1 << 12  # what the pins of a net share
_ROUNDS = 12  # in which the nodes of a turn join
_LOW = np.int64((1 << 20) - 1)  # bits of a key that hold the id


@njit(cache=True, nogil=True)
def share_nets(level, v, u, stamps, common):
    """Distinct loads (`common`) of the nets that v, whose nets `stamps` marks, shares with u."""
    (net_offsets, _, _, _, _, node_offsets, node_nets, _, _, _, _, counts, _) = level
    common[:] = 0
    for j in range(node_offsets[u], node_offsets[u + 1]):
        g = node_nets[j]
        if stamps[g] == v and net_offsets[g + 1] - net_offsets[g] <= _WIDEST:
            for c in range(len(common)):
                common[c] += counts[g, c]


@njit(cache=True, nogil=True)
def rate_nodes(level, loads, within, limits, cap, seed, targets, keys, shared):
    """The neighbour that each node would join best: `targets`, or -1.

    Two nodes share the sum over their common nets of weight / pins, over the root of the product of their
    sizes. `keys` holds the best value as bits that order like it, but in the low ones falling ids; `shared` the
    distinct loads that both have in common. Together they keep within `limits`, and their first resource
    within `cap`. Ties go by a hash of the pair, so that two nodes agree on what ties them.
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
        counts,
        resources,
    ) = level
    n, n_nets = len(resources), len(net_weights)
    n_additive, n_distinct = resources.shape[1], counts.shape[1]
    factors = np.empty(n, np.float64)
    for v in range(n):
        factors[v] = 1.0 / np.sqrt(float(max(resources[v, 0], 1)))
    shares = np.empty(n_nets, np.int64)  # of a pin
    for g in range(n_nets):
        size = net_offsets[g + 1] - net_offsets[g]
        shares[g] = np.int64(_ONE) // size if 0 < size <= _WIDEST else 0
    scores = np.zeros(n, np.int64)
    touched = np.empty(n + 1, np.int32)
    stamps = np.full(n_nets, -1, np.int32)
    common = np.zeros(n_distinct, np.int64)
    for v in range(n):
        n_touched = 0
        for j in range(node_offsets[v], node_offsets[v + 1]):
            g = node_nets[j]
            stamps[g] = v
            strength = net_weights[g] << 6
            if n_distinct > 0:
                strength += counts[g, 0]
            score = strength * shares[g]
            if score > 0 and net_offsets[g + 1] - net_offsets[g] > 1:
                for i in range(net_offsets[g], net_offsets[g + 1]):
                    u = np.uint32(net_pins[i])
                    touched[n_touched] = u
                    n_touched += scores[u] == 0
                    scores[u] += score
            for i in range(source_offsets[g], source_offsets[g + 1]):
                u = np.uint32(source_nodes[i])
                touched[n_touched] = u
                before = scores[u]
                scores[u] = before + (source_weights[i] << 6) * shares[g]
                n_touched += before == 0 and scores[u] > 0
        for j in range(out_offsets[v], out_offsets[v + 1]):
            g = out_nets[j]
            score = (out_weights[j] << 6) * shares[g]
            if score == 0:
                continue
            for i in range(net_offsets[g], net_offsets[g + 1]):
                u = np.uint32(net_pins[i])
                touched[n_touched] = u
                n_touched += scores[u] == 0
                scores[u] += score
        best, best_value, best_tie = -1, 0.0, uint64(0)
        for t in range(n_touched):
            u = touched[t]
            value = float(scores[u]) * (factors[u] * factors[v])
            scores[u] = 0
            if value < best_value or u == v or within[u] != within[v]:
                continue
            if loads[u, 0] + loads[v, 0] > cap:
                continue
            fits = True
            for r in range(n_additive):
                fits &= loads[u, r] + loads[v, r] <= limits[r]
            tight = False
            for r in range(n_additive, len(limits)):
                tight |= loads[u, r] + loads[v, r] > limits[r]
            if not fits:
                continue
            tie = scramble(np.int64(min(u, v)) << 32 | max(u, v), seed)
            if value == best_value and (tie < best_tie or (tie == best_tie and u > best)):
                continue
            if tight:
                share_nets(level, v, u, stamps, common)
                for c in range(n_distinct):
                    r = n_additive + c
                    fits &= loads[u, r] + loads[v, r] - common[c] <= limits[r]
                if not fits:
                    continue
            best, best_value, best_tie = u, value, tie
        targets[v] = best
        keys[v] = (np.float64(best_value).view(np.int64) & ~_LOW) | (_LOW - (v & _LOW))
        if best >= 0:
            share_nets(level, v, best, stamps, shared[v])


@njit(cache=True, nogil=True)
def join_nodes(loads, targets, keys, shared, limits, cap, target, leaders):
    """Pairs that want each other join, then in rounds who wants a node that is settled; how many are left.

    A cluster takes its best suitor in each round; one that does not fit stays alone. At `target` clusters it
    ends: of the last round the best join. `leaders` and `loads` change in place.
    """
    n, n_loads, n_distinct = len(loads), loads.shape[1], shared.shape[1]
    settled = np.zeros(n, np.bool_)
    free = np.empty(n, np.int32)
    bids = np.full(n, -1, np.int32)
    joining = np.empty(n, np.int32)
    ranked = np.empty(n, np.int64)
    left, n_free = n, 0
    for v in range(n):
        leaders[v] = v
        if targets[v] < 0:
            settled[v] = True
        else:
            free[n_free] = v
            n_free += 1
    for turn in range(_ROUNDS + 1):
        if left <= target:
            break
        n_joining = 0
        if turn == 0:
            for i in range(n_free):
                v = free[i]
                if targets[targets[v]] == v:
                    settled[v] = True
                    if targets[v] < v:
                        joining[n_joining] = v
                        n_joining += 1
        else:
            n_bids = 0
            for i in range(n_free):
                v = free[i]
                if not settled[targets[v]]:
                    continue
                u = leaders[targets[v]]
                if bids[u] < 0:
                    joining[n_bids] = u
                    n_bids += 1
                if bids[u] < 0 or keys[v] > keys[bids[u]]:
                    bids[u] = v
            for i in range(n_bids):
                u = joining[i]
                v = bids[u]
                bids[u] = -1
                settled[v] = True
                fits = loads[u, 0] + loads[v, 0] <= cap
                for r in range(n_loads):
                    more = loads[v, r]
                    if r >= n_loads - n_distinct:
                        more -= shared[v, r - (n_loads - n_distinct)]
                    fits &= loads[u, r] + more <= limits[r]
                if fits:
                    joining[n_joining] = v
                    n_joining += 1
            if n_bids == 0:
                break
        bar = np.int64(0)
        if n_joining > left - target:
            for i in range(n_joining):
                ranked[i] = keys[joining[i]]
            sort_range(ranked, np.int64(0), np.int64(n_joining))
            bar = ranked[n_joining - (left - target)]
        for i in range(n_joining):
            v = joining[i]
            if keys[v] < bar:
                continue
            u = leaders[targets[v]]
            leaders[v] = u
            left -= 1
            for r in range(n_loads):
                loads[u, r] += loads[v, r]
            for c in range(n_distinct):
                loads[u, n_loads - n_distinct + c] -= shared[v, c]
        kept = 0
        for i in range(n_free):
            if not settled[free[i]]:
                free[kept] = free[i]
                kept += 1
        n_free = kept
    return left


@njit(cache=True, nogil=True)
def cluster_turn(level, limits, cap, target, within, seed):
    """(cluster of each node, their number) after one turn in which nodes join their best neighbours.

    Clusters keep all `limits` (int64[n_loads]), their first resource stays within `cap`, they
    cross no border of `within` (int64[n_nodes]), and at least `target` are left.
    """
    loads = node_loads(level)
    n, n_distinct = len(loads), level[11].shape[1]
    targets = np.empty(n, np.int32)
    keys = np.empty(n, np.int64)
    shared = np.empty((n, n_distinct), np.int64)
    rate_nodes(level, loads, within, limits, cap, seed, targets, keys, shared)
    leaders = np.empty(n, np.int32)
    left = join_nodes(loads, targets, keys, shared, limits, cap, target, leaders)
    clusters = np.empty(n, np.int32)
    n_clusters = 0
    for v in range(n):
        if leaders[v] == v:
            clusters[v] = n_clusters
            n_clusters += 1
    for v in range(n):
        clusters[v] = clusters[leaders[v]]
    return clusters, left
