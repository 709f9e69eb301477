# mypy: disable-error-code="no-untyped-def"
"""Compiled steps of parallel coarsening; each has a twin in ``kernels/``."""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from snnmap._rows import mix64
from snnmap.partitioning.multilevel._kernels_search import scramble


@njit(cache=True, nogil=True)
def rate_clusters(
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
    leaders,
    settled,
    loads,
    cap,
    limits,
    turns,
    borders,
    turn,
    max_nets,
    max_pins,
    seed,
    targets,
    scores,
    start,
    stop,
):
    """Cluster that each unsettled node of this turn shares most with, or -1.

    Sharing is the sum over common nets of weight / pins. At most about `max_nets` nets of a node and
    `max_pins` pins of a net are looked at: nets whose hash is small (the same for all nodes, so that
    neighbours see the same nets), pins at equal strides. Clusters led by nodes that may move in
    this turn, or beyond a border, are left out; loads of node and cluster together must keep within `cap` and `limits`.
    """
    n = len(leaders)
    gathered = np.zeros(n, np.int64)
    touched = np.empty(n + 1, np.int32)
    for v in range(start, stop):
        targets[v] = -1
        if settled[v] or turns[v] != turn:
            continue
        n_touched = 0
        for side in range(2):
            first, last = (
                (node_offsets[v], node_offsets[v + 1])
                if side == 0
                else (out_offsets[v], out_offsets[v + 1])
            )
            bar = uint64(0xFFFFFFFFFFFFFFFF)
            if last - first > max_nets:
                bar = uint64(0xFFFFFFFFFFFFFFFF) // uint64(last - first) * uint64(max_nets)
            for j in range(first, last):
                g = node_nets[j] if side == 0 else out_nets[j]
                if scramble(g, seed) > bar:
                    continue
                size = net_offsets[g + 1] - net_offsets[g]
                if size == 0:  # only sources: nobody shares it
                    continue
                weight = net_weights[g] if side == 0 else out_weights[j]
                score = (weight << 6) // size + 1
                looked = min(size, max_pins)
                stride, left, owed = size // looked, size % looked, np.int64(0)
                place = net_offsets[g]
                for _ in range(looked):  # the pins i * size // looked
                    u = np.uint32(leaders[np.uint32(net_pins[uint64(place)])])
                    owed += left
                    place += stride + (owed >= looked)
                    owed -= looked if owed >= looked else 0
                    before = gathered[u]
                    gathered[u] = before + score
                    touched[n_touched] = u
                    n_touched += before == 0
                if side == 1:
                    continue
                n_sources = source_offsets[g + 1] - source_offsets[g]
                looked = min(n_sources, max_pins)
                for i in range(looked):
                    place = source_offsets[g] + i * n_sources // looked
                    u = leaders[source_nodes[place]]
                    if gathered[u] == 0:
                        touched[n_touched] = u
                        n_touched += 1
                    gathered[u] += (source_weights[place] << 6) // size + 1
        best = -1
        best_score = np.int64(0)
        best_tie = uint64(0)
        for t in range(n_touched):
            u = touched[t]
            score = gathered[u]
            gathered[u] = 0
            if u == v or score < best_score or borders[u] != borders[v]:
                continue
            if turns[u] == turn and not settled[u]:
                continue
            fits = loads[u, 0] + loads[v, 0] <= cap
            for r in range(loads.shape[1]):
                fits &= loads[u, r] + loads[v, r] <= limits[r]
            if not fits:
                continue
            tie = scramble(u, seed + 1)
            if score > best_score or tie > best_tie or (tie == best_tie and u < best):
                best, best_score, best_tie = u, score, tie
        targets[v] = best
        scores[v] = best_score


@njit(cache=True, nogil=True)
def mix_values(values, step, salt, out, start, stop):
    """out[i] = mix64(values[i] * step + salt)."""
    for i in range(start, stop):
        out[i] = mix64(values[i] * step + salt)


@njit(cache=True, nogil=True)
def load_nodes(node_offsets, node_nets, counts, resources, loads, start, stop):
    """loads[v] = what node v alone puts on a part."""
    for v in range(start, stop):
        for r in range(resources.shape[1]):
            loads[v, r] = resources[v, r]
        for c in range(counts.shape[1]):
            loads[v, resources.shape[1] + c] = 0
        for j in range(node_offsets[v], node_offsets[v + 1]):
            for c in range(counts.shape[1]):
                loads[v, resources.shape[1] + c] += counts[node_nets[j], c]
