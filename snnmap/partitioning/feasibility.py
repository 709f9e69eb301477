"""Refuse what cannot work before partitioning, and what did not work after it.

Every refusal is a :class:`LimitError`: which neuron of which layer (or which part) needs how much
of what, how much is allowed, and what would make it fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from snnmap import _csr
from snnmap.errors import LimitError
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.partitioning.bounds import part_bounds
from snnmap.partitioning.metrics import measure

Array = np.ndarray[Any, Any]

_QUANTITIES = {
    "max_size": "neurons",
    "max_inbound": "inbound axons",
    "max_outbound": "outbound axons",
    "max_incident": "incident axons",
    "max_synapses": "synapses",
}


def check_feasible(hypergraph: Hypergraph, limits: Limits, *, profile: str | None = None) -> None:
    """Raise the first of :func:`find_impossible`; cheap enough to run before every partition.

    Raises:
        LimitError: a neuron that no core can hold, or fewer cores than any partition needs.
    """
    for error in find_impossible(hypergraph, limits, profile=profile):
        raise error


def find_impossible(
    hypergraph: Hypergraph, limits: Limits, *, profile: str | None = None
) -> Iterator[LimitError]:
    """Yield why no partition within `limits` exists: the worst neuron for each limit, then cores.

    Finding nothing does not prove that a partition exists.
    """
    h = hypergraph
    wider = "use a profile whose cores allow more"
    thinner = "prune its inputs (a smaller kernel, fewer channels), split the neuron, or " + wider
    inbound = h.fan_ins
    outbound = _outbound(h)
    checks: list[tuple[Array, int | None, str, str]] = [
        (inbound, limits.max_fan_in, "fan-in", thinner),
        (inbound, limits.max_inbound, "inbound axons", thinner),
        (inbound, limits.max_synapses, "synapses", thinner),
        (h.node_sizes, limits.max_size, "size in neurons", f"split it or {wider}"),
        (outbound, limits.max_outbound, "outbound axons", f"split it or {wider}"),
    ]
    if limits.max_incident is not None:
        incident = inbound + outbound - _both(h)
        checks.append((incident, limits.max_incident, "incident axons", thinner))
    if limits.max_destinations is not None:
        fewest = _fewest_destinations(h, limits)
        remedy = "target fewer neurons, or use a profile with more destinations per neuron"
        checks.append(
            (fewest, limits.max_destinations, "destination cores of its axon, at least", remedy)
        )
    for needs, limit, quantity, remedy in checks:
        if limit is not None and len(needs) and needs.max() > limit:
            worst = int(np.argmax(needs))
            yield LimitError(
                h.describe_node(worst),
                quantity,
                int(needs[worst]),
                limit,
                remedy=remedy,
                profile=profile,
            )
    if limits.max_parts is not None:
        for name, needed in part_bounds(h, limits).items():
            if needed > limits.max_parts:
                yield LimitError(
                    f"network {h.name!r}",
                    f"cores needed for its {_QUANTITIES[name]}, at least",
                    needed,
                    limits.max_parts,
                    remedy="use more chips, larger cores or a smaller network",
                    profile=profile,
                )
                break


def check_result(
    hypergraph: Hypergraph, parts: Array, limits: Limits, *, profile: str | None = None
) -> None:
    """Raise if a finished partition breaks any limit, first those that search may fail to reach.

    Raises:
        LimitError: too many parts, an axon with destinations in too many, or an overfull part.
    """
    found = measure(hypergraph, parts)
    if limits.max_parts is not None and found.n_parts > limits.max_parts:
        fewest = max(part_bounds(hypergraph, limits).values(), default=1)
        raise LimitError(
            f"network {hypergraph.name!r}",
            "cores of the best partition found",
            found.n_parts,
            limits.max_parts,
            remedy=f"no partition has fewer than {fewest}; use another algorithm or preset, more "
            "chips or larger cores",
            profile=profile,
        )
    if limits.max_destinations is not None and found.max_destinations > limits.max_destinations:
        raise LimitError(
            _widest_axon(hypergraph, parts, found.max_destinations),
            "destination cores",
            found.max_destinations,
            limits.max_destinations,
            remedy="use another algorithm or preset, larger cores, or fewer targets per neuron",
            profile=profile,
        )
    for name, quantity in _QUANTITIES.items():
        limit = getattr(limits, name)
        values = getattr(found, "sizes" if name == "max_size" else name.removeprefix("max_"))
        if limit is not None and len(values) and values.max() > limit:
            p = int(np.argmax(values))
            raise LimitError(
                f"part {p}", quantity, int(values[p]), limit, remedy="move neurons out of it"
            )


def _outbound(h: Hypergraph) -> Array:
    """int64[n_nodes]: axons with each node among their sources."""
    totals = np.zeros(h.n_nodes, np.int64)
    np.add.at(totals, h.sources, np.repeat(h.axon_counts, np.diff(h.source_offsets)))
    return totals


def _both(h: Hypergraph) -> Array:
    """int64[n_nodes]: axons with each node among both sources and destinations."""
    counts = np.diff(h.source_offsets)
    groups = np.repeat(h.hedge_groups, counts)
    loops = _csr.rows_contain(h.group_offsets, h.destinations, groups, h.sources)
    totals = np.zeros(h.n_nodes, np.int64)
    np.add.at(totals, h.sources[loops], np.repeat(h.axon_counts, counts)[loops])
    return totals


def _fewest_destinations(h: Hypergraph, limits: Limits) -> Array:
    """int64[n_nodes]: parts that the destinations of each node's axon fill at the very least."""
    fewest = (np.diff(h.group_offsets) > 0).astype(np.int64)
    for needs, limit in ((h.node_sizes, limits.max_size), (h.fan_ins, limits.max_synapses)):
        if limit is not None:
            totals = np.concatenate([[0], np.cumsum(needs[h.destinations])])
            row_sums = totals[h.group_offsets[1:]] - totals[h.group_offsets[:-1]]
            fewest = np.maximum(fewest, -(-row_sums // limit))
    per_node = np.zeros(h.n_nodes, np.int64)
    hedges = np.repeat(h.hedge_groups, np.diff(h.source_offsets))
    np.maximum.at(per_node, h.sources, fewest[hedges])
    return per_node


def _widest_axon(h: Hypergraph, parts: Array, span: int) -> str:
    """Name the first axon whose destinations lie in `span` parts."""
    for g in np.flatnonzero(np.diff(h.group_offsets) >= span):
        e = int(h.hedge_offsets[g])
        row = h.destinations[h.group_offsets[g] : h.group_offsets[g + 1]]
        if e < h.hedge_offsets[g + 1] and len(np.unique(parts[row])) == span:
            first, last = h.source_offsets[e], h.source_offsets[e + 1]
            return (
                f"axon of {h.describe_node(int(h.sources[first]))}"
                if first < last
                else f"h-edge {e}"
            )
    return "an axon"
