"""Slow twins of everything the partitioning room counts: plain Python sets, straight from the text.

Every function expands the grouped form into one row (sources, destinations, weight, axons) an
h-edge, which the product never does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from tests.small import to_rows


@dataclass
class Row:
    sources: set[int]
    destinations: set[int]
    weight: float
    axons: int

    @property
    def pins(self) -> set[int]:
        return self.sources | self.destinations


def rows_of(h: Hypergraph) -> list[Row]:
    axons = h.axon_counts.tolist()
    return [
        Row(set(out), set(into), weight, axons[e])
        for e, (out, into, weight) in enumerate(to_rows(h))
    ]


def slow_metrics(h: Hypergraph, parts: np.ndarray) -> dict[str, Any]:
    part = parts.tolist()
    n_parts = max(part, default=-1) + 1
    rows = rows_of(h)
    spans = [len({part[n] for n in row.pins}) for row in rows]
    costs = [(row.weight, span) for row, span in zip(rows, spans, strict=True)]
    inbound, outbound, incident, synapses = ([0] * n_parts for _ in range(4))
    for row in rows:
        for p in {part[n] for n in row.destinations}:
            inbound[p] += row.axons
        for p in {part[n] for n in row.sources}:
            outbound[p] += row.axons
        for p in {part[n] for n in row.pins}:
            incident[p] += row.axons
        for n in row.destinations:
            synapses[part[n]] += row.axons
    sizes = [0] * n_parts
    for n, size in enumerate(h.node_sizes.tolist()):
        sizes[part[n]] += size
    return {
        "n_parts": n_parts,
        "connectivity": math.fsum(
            r.weight * (s - 1) for r, s in zip(rows, spans, strict=True) if s
        ),
        "cut_net": math.fsum(w for w, s in costs if s > 1),
        "soed": math.fsum(w * s for w, s in costs if s > 1),
        "sizes": sizes,
        "inbound": inbound,
        "outbound": outbound,
        "incident": incident,
        "synapses": synapses,
        "hedge_spans": spans,
        "max_destinations": max((len({part[n] for n in r.destinations}) for r in rows), default=0),
    }


def slow_needs(h: Hypergraph) -> dict[str, list[int]]:
    """What each node alone needs of every limited quantity."""
    rows = rows_of(h)
    nodes = range(h.n_nodes)
    return {
        "size": h.node_sizes.tolist(),
        "inbound": [sum(r.axons for r in rows if n in r.destinations) for n in nodes],
        "outbound": [sum(r.axons for r in rows if n in r.sources) for n in nodes],
        "incident": [sum(r.axons for r in rows if n in r.pins) for n in nodes],
        "synapses": [sum(r.axons for r in rows if n in r.destinations) for n in nodes],
        "fan_in": [sum(r.axons for r in rows if n in r.destinations) for n in nodes],
    }


def is_valid(h: Hypergraph, parts: np.ndarray, limits: Limits) -> bool:
    found = slow_metrics(h, parts)
    checks = [
        (found["sizes"], limits.max_size),
        (found["inbound"], limits.max_inbound),
        (found["outbound"], limits.max_outbound),
        (found["incident"], limits.max_incident),
        (found["synapses"], limits.max_synapses),
        (slow_needs(h)["fan_in"], limits.max_fan_in),
        ([found["max_destinations"]], limits.max_destinations),
        ([found["n_parts"]], limits.max_parts),
    ]
    if set(parts.tolist()) != set(range(found["n_parts"])):
        return False
    return all(limit is None or max(values, default=0) <= limit for values, limit in checks)
