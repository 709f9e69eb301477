# mypy: disable-error-code="no-untyped-def"
"""Compiled steps of coarsening by matching; each has a twin in ``kernels/matching.cu``."""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from snnmap.partitioning.multilevel._kernels_search import scramble


@njit(cache=True, nogil=True)
def rate_neighbours(
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
    loads,
    limits,
    borders,
    max_nets,
    max_pins,
    seed,
    neighbours,
    scores,
    start,
    stop,
):
    """The admissible neighbours that each node shares most with, best first, -1 where there are fewer.

    Sharing is the sum over common nets of weight / pins: exact and symmetric, unless nets or pins are
    left out (see `_kernels_coarsen.rate_clusters`). Admissible: both lie within the same border and
    keep all limits together, distinct loads by their union. Ties: the larger hash of the pair.
    """
    n = len(loads)
    n_distinct = counts.shape[1]
    n_additive = loads.shape[1] - n_distinct
    most = neighbours.shape[1]
    gathered = np.zeros(n, np.int64)
    outward = np.zeros(n, np.int64)  # of that, for v as a source
    shared = np.zeros((n, n_distinct), np.int64)
    touched = np.empty(n, np.int32)
    ties = np.zeros(most, np.uint64)
    n_inward, n_touched = 0, 0  # neighbours by nets that v is a pin of, and by all nets
    last = -1  # the node whose nets were gathered
    for v in range(start, stop):
        for t in range(n_touched):
            gathered[touched[t]] -= outward[touched[t]]
            outward[touched[t]] = 0
        n_touched = n_inward
        first, size = node_offsets[v], node_offsets[v + 1] - node_offsets[v]
        same = last >= 0 and node_offsets[last + 1] - node_offsets[last] == size  # twins share all
        if same:
            for j in range(size):
                if node_nets[node_offsets[last] + j] != node_nets[first + j]:
                    same = False
                    break
        if not same:
            for t in range(n_touched):
                gathered[touched[t]] = 0
                for c in range(n_distinct):
                    shared[touched[t], c] = 0
            n_touched = 0
            last = v
            bar = uint64(0xFFFFFFFFFFFFFFFF)
            if size > max_nets:
                bar = uint64(0xFFFFFFFFFFFFFFFF) // uint64(size) * uint64(max_nets)
            for j in range(first, first + size):
                g = node_nets[j]
                if scramble(g, seed) > bar:
                    continue
                n_pins = net_offsets[g + 1] - net_offsets[g]
                score = (net_weights[g] << 6) // n_pins + 1
                looked = min(n_pins, max_pins)
                for i in range(looked):
                    u = net_pins[net_offsets[g] + i * n_pins // looked]
                    if gathered[u] == 0:
                        touched[n_touched] = u
                        n_touched += 1
                    gathered[u] += score
                    for c in range(n_distinct):
                        shared[u, c] += counts[g, c]
                n_sources = source_offsets[g + 1] - source_offsets[g]
                looked = min(n_sources, max_pins)
                for i in range(looked):
                    place = source_offsets[g] + i * n_sources // looked
                    u = source_nodes[place]
                    if gathered[u] == 0:
                        touched[n_touched] = u
                        n_touched += 1
                    gathered[u] += (source_weights[place] << 6) // n_pins + 1
            n_inward = n_touched
        first, size = out_offsets[v], out_offsets[v + 1] - out_offsets[v]
        bar = uint64(0xFFFFFFFFFFFFFFFF)
        if size > max_nets:
            bar = uint64(0xFFFFFFFFFFFFFFFF) // uint64(size) * uint64(max_nets)
        for j in range(first, first + size):
            g = out_nets[j]
            n_pins = net_offsets[g + 1] - net_offsets[g]
            if n_pins == 0 or scramble(g, seed) > bar:
                continue
            score = (out_weights[j] << 6) // n_pins + 1
            looked = min(n_pins, max_pins)
            for i in range(looked):
                u = net_pins[net_offsets[g] + i * n_pins // looked]
                if gathered[u] == 0:
                    touched[n_touched] = u
                    n_touched += 1
                gathered[u] += score
                outward[u] += score
        found = 0
        for t in range(n_touched):
            u = touched[t]
            score = gathered[u]
            if u == v or (found == most and score < scores[v, most - 1]):
                continue
            fits = borders[u] == borders[v]
            for r in range(n_additive):
                fits &= loads[u, r] + loads[v, r] <= limits[r]
            for c in range(n_distinct):
                both = loads[u, n_additive + c] + loads[v, n_additive + c] - shared[u, c]
                fits &= both <= limits[n_additive + c]
            if not fits:
                continue
            tie = scramble(uint64(min(u, v)) << uint64(32) | uint64(max(u, v)), seed)
            place = found
            while place > 0 and (
                score > scores[v, place - 1]
                or (score == scores[v, place - 1] and tie > ties[place - 1])
            ):
                place -= 1
            if place == most:
                continue
            found = min(found + 1, most)
            for i in range(found - 1, place, -1):
                neighbours[v, i] = neighbours[v, i - 1]
                scores[v, i] = scores[v, i - 1]
                ties[i] = ties[i - 1]
            neighbours[v, place] = u
            scores[v, place] = score
            ties[place] = tie
        for i in range(found, most):
            neighbours[v, i] = -1
            scores[v, i] = 0


@njit(cache=True, nogil=True)
def match_forest(targets, weights, partners):
    """partners[v] = whom v is matched with in a matching of the largest weight, or -1.

    Every node v with targets[v] >= 0 has one edge, to targets[v] != v, of weight weights[v] > 0: trees
    that hang on roots or on cycles of any length. Exact by dynamic programming. gains[v] = what v's
    tree wins when v may take one of its children:

        gains[v] = max(0, max over children c of weights[c] - gains[c])

    Leaves are peeled until only cycles are left. On a cycle the edge of v is worth weights[v] -
    gains[v] - gains[targets[v]], and the best set of edges that do not touch is found twice, without
    and with the edge that closes it. Ties: no edge rather than one, the child with the smaller id.
    """
    n = len(targets)
    degrees = np.zeros(n, np.int32)
    for v in range(n):
        if targets[v] >= 0:
            degrees[targets[v]] += 1
    gains = np.zeros(n, np.int64)
    for leaf in range(n):
        v = leaf
        while degrees[v] == 0:  # all its children are done
            degrees[v] = -1
            parent = targets[v]
            if parent < 0:
                break
            gains[parent] = max(gains[parent], weights[v] - gains[v])
            degrees[parent] -= 1
            if parent > leaf:  # its own turn comes
                break
            v = parent
    choices = np.full(n, -1, np.int32)
    for v in range(n):
        partners[v] = -1
        parent = targets[v]
        if degrees[v] < 0 and parent >= 0 and choices[parent] < 0:
            value = weights[v] - gains[v]
            if value > 0 and value == gains[parent]:
                choices[parent] = v
    before = np.empty(n, np.int32)
    flags = np.empty(n, np.uint8)
    for leader in range(n):
        if degrees[leader] <= 0:
            continue
        # The cycle leader = v0 -> v1 -> ...; edge i leaves vi. `best`, `last` = values of the best
        # sets of the edges up to i, and up to i - 1; bit 0 without, bit 1 with the closing edge.
        v = leader
        best = last = closed = closed_last = np.int64(0)
        closing = np.int64(0)
        place = 0
        while degrees[v] > 0:
            degrees[v] = 0  # this cycle is done
            u = targets[v]
            before[u] = v
            worth = weights[v] - gains[v] - gains[u]
            flags[v] = 0
            if u == leader:
                closing = worth
                break
            if last + worth > best:
                flags[v] |= 1
                last, best = best, last + worth
            else:
                last = best
            if place > 0 and targets[u] != leader:
                if closed_last + worth > closed:
                    flags[v] |= 2
                    closed_last, closed = closed, closed_last + worth
                else:
                    closed_last = closed
            place += 1
            v = u
        bit = 1
        if closing + closed > best:
            bit = 2
            partners[v] = leader
            partners[leader] = v
        while v != leader:  # backwards; v is the last node, whose edge closes the cycle
            v = before[v]
            u = targets[v]
            if flags[v] & bit and partners[u] < 0 and partners[v] < 0:
                partners[v] = u
                partners[u] = v
    for top in range(n):
        parent = targets[top]
        if parent >= 0 and choices[parent] == top:
            continue
        v = top  # of a chain of choices; each node of it is matched with the one above or below it
        free = partners[v] < 0
        while v >= 0:
            chosen = choices[v]
            if free and chosen >= 0:
                partners[v] = chosen
                partners[chosen] = v
            free = not free
            v = chosen
