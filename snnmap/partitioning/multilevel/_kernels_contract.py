# mypy: disable-error-code="no-untyped-def"
"""Compiled contraction of small levels, and restriction of a level's incidence lists."""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from snnmap._rows import mix64, sort_range


@njit(cache=True, nogil=True)
def invert(offsets, items, n):
    """(offsets int64[n + 1], rows int32, places int64): where each id stands, rows ascending."""
    new_offsets = np.zeros(n + 1, np.int64)
    for j in range(len(items)):
        new_offsets[items[j] + 1] += 1
    for v in range(n):
        new_offsets[v + 1] += new_offsets[v]
    cursor = new_offsets[:-1].copy()
    rows = np.empty(len(items), np.int32)
    places = np.empty(len(items), np.int64)
    for row in range(len(offsets) - 1):
        for j in range(offsets[row], offsets[row + 1]):
            v = items[j]
            rows[cursor[v]] = row
            places[cursor[v]] = j
            cursor[v] += 1
    return new_offsets, rows, places


@njit(cache=True, nogil=True)
def contract_sources(
    source_offsets, source_nodes, source_weights, merged, n_new, clusters, n_clusters
):
    """Sources of the nets that nets became one in: (offsets, nodes, weights) by net, then by node.

    Nets that became one are brought together, then weights of equal nodes added up.
    """
    n_nets = len(merged)
    member_offsets = np.zeros(n_new + 1, np.int64)
    for g in range(n_nets):
        member_offsets[merged[g] + 1] += 1
    for g in range(n_new):
        member_offsets[g + 1] += member_offsets[g]
    members = np.empty(n_nets, np.int32)
    cursor = member_offsets[:-1].copy()
    for g in range(n_nets):
        members[cursor[merged[g]]] = g
        cursor[merged[g]] += 1
    new_source_offsets = np.zeros(n_new + 1, np.int64)
    new_nodes = np.empty(len(source_nodes), np.int32)
    new_weights = np.zeros(len(source_nodes), np.int64)
    place = np.full(n_clusters, -1, np.int64)
    end = np.int64(0)
    for g in range(n_new):
        begin = end
        for m in range(member_offsets[g], member_offsets[g + 1]):
            old = members[m]
            for j in range(source_offsets[old], source_offsets[old + 1]):
                u = clusters[source_nodes[j]]
                if place[u] < begin:
                    place[u] = end
                    new_nodes[end] = u
                    new_weights[end] = 0
                    end += 1
                new_weights[place[u]] += source_weights[j]
        for j in range(begin, end):
            place[new_nodes[j]] = -1
        new_source_offsets[g + 1] = end
    new_nodes = new_nodes[:end].copy()
    new_weights = new_weights[:end].copy()
    out_offsets, out_nets, places = invert(new_source_offsets, new_nodes, n_clusters)
    out_weights = new_weights[places]
    cursor = new_source_offsets[:-1].copy()  # back again: sources of each net ascend
    for u in range(n_clusters):
        for j in range(out_offsets[u], out_offsets[u + 1]):
            new_nodes[cursor[out_nets[j]]] = u
            new_weights[cursor[out_nets[j]]] = out_weights[j]
            cursor[out_nets[j]] += 1
    return new_source_offsets, new_nodes, new_weights, out_offsets, out_nets, out_weights


@njit(cache=True, nogil=True)
def contract_level(level, clusters, n_clusters):
    """The level whose nodes are the clusters: nets with equal pins become one, equal sources too."""
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
    n_nets = len(net_weights)
    pins = np.empty(len(net_pins), np.int32)
    offsets = np.zeros(n_nets + 1, np.int64)
    merged = np.empty(n_nets, np.int64)
    weights = np.zeros(n_nets, np.int64)
    new_counts = np.zeros(counts.shape, np.int64)
    n_slots = 4
    while n_slots < 2 * n_nets:
        n_slots *= 2
    slots = np.full(n_slots, -1, np.int32)
    seen = np.full(n_clusters, -1, np.int64)
    n_new = np.int64(0)
    end = np.int64(0)
    for g in range(n_nets):
        begin = end
        hashed = uint64(0)
        for j in range(net_offsets[g], net_offsets[g + 1]):
            u = clusters[net_pins[j]]
            if seen[u] != g:
                seen[u] = g
                pins[end] = u
                end += 1
                hashed += mix64(uint64(u) * uint64(0x9E3779B97F4A7C15) + uint64(1))
        sort_range(pins, begin, end)
        slot = np.int64(mix64(hashed) & uint64(n_slots - 1))
        found = np.int64(-1)
        while slots[slot] >= 0:
            other = slots[slot]
            if offsets[other + 1] - offsets[other] == end - begin:
                same = True
                for i in range(end - begin):
                    if pins[offsets[other] + i] != pins[begin + i]:
                        same = False
                        break
                if same:
                    found = other
                    break
            slot = (slot + 1) & (n_slots - 1)
        if found < 0:
            found = n_new
            slots[slot] = n_new
            n_new += 1
            offsets[n_new] = end
        else:
            end = begin
        merged[g] = found
        weights[found] += net_weights[g]
        for c in range(counts.shape[1]):
            new_counts[found, c] += counts[g, c]
    new_resources = np.zeros((n_clusters, resources.shape[1]), np.int64)
    for v in range(len(clusters)):
        for r in range(resources.shape[1]):
            new_resources[clusters[v], r] += resources[v, r]

    sources = contract_sources(
        source_offsets, source_nodes, source_weights, merged, n_new, clusters, n_clusters
    )
    pins = pins[: offsets[n_new]].copy()
    offsets = offsets[: n_new + 1].copy()
    node_offsets, node_nets, _ = invert(offsets, pins, n_clusters)
    return (
        offsets,
        pins,
        sources[0],
        sources[1],
        sources[2],
        node_offsets,
        node_nets,
        sources[3],
        sources[4],
        sources[5],
        weights[:n_new].copy(),
        new_counts[:n_new].copy(),
        new_resources,
    )


@njit(cache=True, nogil=True)
def pack_in_order(level, limits):
    """Next fit: nodes in order fill a part until one more would break a limit (unions are exact)."""
    (_, _, _, _, _, node_offsets, node_nets, _, _, _, net_weights, counts, resources) = level
    n_additive, n_distinct = resources.shape[1], counts.shape[1]
    parts = np.empty(len(resources), np.int32)
    held = np.zeros(n_additive + n_distinct, np.int64)
    more = np.zeros(n_additive + n_distinct, np.int64)
    stamps = np.full(len(net_weights), -1, np.int64)
    part = 0
    for v in range(len(resources)):
        for attempt in range(2):
            fits = True
            for r in range(n_additive):
                more[r] = resources[v, r]
            for c in range(n_distinct):
                more[n_additive + c] = 0
                for j in range(node_offsets[v], node_offsets[v + 1]):
                    if stamps[node_nets[j]] != part:
                        more[n_additive + c] += counts[node_nets[j], c]
            for i in range(len(held)):
                fits &= held[i] + more[i] <= limits[i]
            if fits or attempt == 1:
                break
            if held.any():
                part += 1
                for i in range(len(held)):
                    held[i] = 0
        parts[v] = part
        for i in range(len(held)):
            held[i] += more[i]
        for j in range(node_offsets[v], node_offsets[v + 1]):
            stamps[node_nets[j]] = part
    return parts
