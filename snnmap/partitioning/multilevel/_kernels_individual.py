# mypy: disable-error-code="no-untyped-def"
"""Compiled steps of the search that make most of an individual: each is one call that holds no lock.

With many threads every return to Python costs: they all wait for one lock there.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from snnmap.partitioning.multilevel._kernels_search import (
    fill_gains,
    fill_state,
    matched_pass,
    node_loads,
)


@njit(cache=True, nogil=True)
def refine(level, parts, n_parts, limits, totals, factors, passes, patience, turns, seed):
    """Passes at each price in turn; `parts` (int32[n_nodes]) changes in place.

    A pass (see `matched_pass` for `patience` and `turns`) that gains less than a thousandth of the
    connectivity is the last at its price. `factors` (float64) are in units of the average worth of what
    each of `totals` (int64[n_loads]) counts.
    """
    shape = (len(level[10]), n_parts)
    pins = np.zeros(shape, np.int32)
    sources = np.zeros(shape, np.int64)
    loads = np.zeros((n_parts, len(limits)), np.int64)
    worth = fill_state(level, parts, pins, sources, loads)
    gains = np.zeros((len(parts), n_parts), np.int64)
    looped = np.empty(len(level[3]), np.bool_)
    fill_gains(level, parts, sources, gains, looped)
    alone = node_loads(level)
    prices = np.empty(len(totals), np.int64)
    for factor in factors:
        for i in range(len(totals)):
            prices[i] = np.int64(worth * factor / max(totals[i], 1))
        for _ in range(passes):
            gain = matched_pass(
                level, parts, pins, sources, loads, gains, looped, alone, limits, prices, seed, patience, turns
            )  # fmt: skip
            seed += 1
            if gain <= worth // 1000:
                break


@njit(cache=True, nogil=True)
def judge(level, parts, n_parts, limits):
    """Number the parts that are left, in place; returns (how many, connectivity, overloads).

    Overloads are int64[n_loads], each the sum over the parts of what exceeds the limit.
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
    ranks = np.full(n_parts, -1, np.int32)
    for v in range(len(parts)):
        ranks[parts[v]] = 0
    n_left = 0
    for p in range(n_parts):
        if ranks[p] == 0:
            ranks[p] = n_left
            n_left += 1
    loads = np.zeros((n_left, len(limits)), np.int64)
    for v in range(len(parts)):
        parts[v] = ranks[parts[v]]
        for r in range(n_additive):
            loads[parts[v], r] += resources[v, r]
    seen = np.full(n_left, -1, np.int64)  # last net found in each part
    connectivity = np.int64(0)
    for g in range(len(net_weights)):
        for j in range(net_offsets[g], net_offsets[g + 1]):
            p = parts[net_pins[j]]
            if seen[p] != g:
                seen[p] = g
                connectivity += net_weights[g]
                for c in range(n_distinct):
                    loads[p, n_additive + c] += counts[g, c]
        for j in range(source_offsets[g], source_offsets[g + 1]):
            if seen[parts[source_nodes[j]]] == g:
                connectivity -= source_weights[j]
    over = np.zeros(len(limits), np.int64)
    for p in range(n_left):
        for i in range(len(limits)):
            over[i] += max(loads[p, i] - limits[i], 0)
    return n_left, connectivity, over
