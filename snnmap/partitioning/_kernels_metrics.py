"""Compiled pass of the metrics: one streaming read of the pins in grouped form."""

# mypy: allow-untyped-defs, allow-untyped-decorators, allow-untyped-calls
from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def count_parts(
    group_offsets,
    destinations,
    hedge_offsets,
    source_offsets,
    sources,
    axon_counts,
    parts,
    n_parts,
    group_spans,
    hedge_spans,
    start,
    stop,
):
    """Count parts per group and per h-edge, and axons per part, for groups start..stop-1.

    Writes ``group_spans[g]`` = parts among the destinations of g and ``hedge_spans[e]`` = parts
    among all pins of e. Returns int64[4, n_parts]: inbound, outbound and incident axons, synapses.
    Integer sums only, so the chunks may be added up in any order.
    """
    totals = np.zeros((4, n_parts), np.int64)
    seen_group = np.full(n_parts, -1, np.int64)
    seen_hedge = np.full(n_parts, -1, np.int64)
    for g in range(start, stop):
        axons = 0
        for e in range(hedge_offsets[g], hedge_offsets[g + 1]):
            axons += axon_counts[e]
        span = 0
        for j in range(group_offsets[g], group_offsets[g + 1]):
            p = parts[destinations[j]]
            totals[3, p] += axons
            if seen_group[p] != g:
                seen_group[p] = g
                span += 1
                totals[0, p] += axons
                totals[2, p] += axons
        group_spans[g] = span
        for e in range(hedge_offsets[g], hedge_offsets[g + 1]):
            hedge_spans[e] = span
            for j in range(source_offsets[e], source_offsets[e + 1]):
                p = parts[sources[j]]
                if seen_hedge[p] != e:
                    seen_hedge[p] = e
                    totals[1, p] += axon_counts[e]
                    if seen_group[p] != g:
                        hedge_spans[e] += 1
                        totals[2, p] += axon_counts[e]
    return totals
