"""An independent judge of partitions: plain NumPy and SciPy, no code shared with a partitioner.

Counts come from sparse products of the grouped form: with D (groups x nodes), S (h-edges x nodes)
and P (nodes x parts), ``D P`` holds the destination pins of every group in every part and ``S P``
the sources. A group is a row stored once however many h-edges share it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from snnmap.errors import InputError
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits

Array = np.ndarray[Any, Any]

_SHOWN = 5


@dataclass(frozen=True)
class VerificationReport:
    """What the verifier found.

    Attributes:
        violations: one line each, empty if the partition is valid.
        n_parts: number of parts.
        connectivity: recomputed sum of weight * (parts among the pins - 1).
        cut_net: recomputed weight of h-edges in more than one part.
        largest: per limited quantity ("size", "inbound", "outbound", "incident", "synapses",
            "fan_in", "destinations") the largest value over parts, nodes or h-edges.
    """

    violations: tuple[str, ...]
    n_parts: int
    connectivity: float
    cut_net: float
    largest: dict[str, int]

    @property
    def ok(self) -> bool:
        """True if nothing is violated."""
        return not self.violations

    def raise_if_invalid(self) -> None:
        """Raise an InputError that lists the violations (the first few of many)."""
        if self.ok:
            return
        shown = "; ".join(self.violations[:_SHOWN])
        more = len(self.violations) - _SHOWN
        raise InputError("partition", shown + (f"; and {more} more" if more > 0 else ""))


def verify_partition(
    hypergraph: Hypergraph,
    parts: Array,
    limits: Limits | None = None,
    *,
    connectivity: float | None = None,
) -> VerificationReport:
    """Check a partition from first principles.

    Args:
        hypergraph: the network, not contracted.
        parts: integer[n_nodes], the part of each node.
        limits: what must hold; None checks only that `parts` is a partition.
        connectivity: a claimed value to compare with (relative tolerance 1e-9).

    Returns:
        A report; nothing is raised for an invalid partition (see ``raise_if_invalid``).
    """
    limits = limits or Limits()
    parts = np.asarray(parts)
    broken = _malformed(hypergraph, parts)
    if broken:
        return VerificationReport((broken,), 0, float("nan"), float("nan"), {})
    n_parts = int(parts.max()) + 1 if len(parts) else 0
    violations = []
    members = np.bincount(parts, minlength=n_parts)
    for p in np.flatnonzero(members == 0):
        violations.append(f"part {p}: it holds no node; part ids must be contiguous from 0")

    per_part, fan_ins, hedge_parts, group_parts = _recount(hypergraph, parts, n_parts)
    for quantity, values in per_part.items():
        _compare(violations, values, getattr(limits, f"max_{quantity}"), quantity, "part")
    largest = {quantity: int(values.max(initial=0)) for quantity, values in per_part.items()}
    largest["fan_in"] = int(fan_ins.max(initial=0))
    _compare(violations, fan_ins, limits.max_fan_in, "fan_in", "node")
    has_hedges = np.diff(hypergraph.hedge_offsets) > 0
    group_parts = np.where(has_hedges, group_parts, 0)
    largest["destinations"] = int(group_parts.max(initial=0))
    _compare(violations, group_parts, limits.max_destinations, "destinations", "group")
    if limits.max_parts is not None and n_parts > limits.max_parts:
        violations.append(f"partition: parts {n_parts} exceeds the limit {limits.max_parts}")

    weights = hypergraph.weights
    found = float(np.sum(weights * np.maximum(hedge_parts - 1, 0)))
    if connectivity is not None and not np.isclose(found, connectivity, rtol=1e-9, atol=1e-9):
        violations.append(
            f"partition: connectivity {connectivity!r} is claimed, {found!r} is right"
        )
    cut = float(np.sum(weights[hedge_parts > 1]))
    return VerificationReport(tuple(violations), n_parts, found, cut, largest)


def _malformed(hypergraph: Hypergraph, parts: Array) -> str:
    """Why `parts` does not assign each node to exactly one part, or an empty string."""
    if parts.shape != (hypergraph.n_nodes,):
        return f"partition: shape {parts.shape}, but the network has {hypergraph.n_nodes} nodes"
    if not len(parts):
        return ""
    if not np.issubdtype(parts.dtype, np.integer):
        return f"partition: part ids have type {parts.dtype}, not integer"
    wrong = np.flatnonzero((parts < 0) | (parts >= len(parts)))
    if len(wrong):
        n = int(wrong[0])
        where = hypergraph.describe_node(n)
        return f"{where}: part {parts[n]} is outside 0..{len(parts) - 1}"
    return ""


def _recount(
    hypergraph: Hypergraph, parts: Array, n_parts: int
) -> tuple[dict[str, Array], Array, Array, Array]:
    """Per-part totals by quantity, fan-ins of nodes, parts of each h-edge and of each group."""
    h = hypergraph
    chosen = sparse.csr_array(
        (np.ones(h.n_nodes, np.int32), parts, np.arange(h.n_nodes + 1)), shape=(h.n_nodes, n_parts)
    )
    destinations = _rows(h.group_offsets, h.destinations, h.n_nodes)
    into = destinations @ chosen
    out = _rows(h.source_offsets, h.sources, h.n_nodes) @ chosen
    group_of = np.repeat(np.arange(h.n_groups), np.diff(h.hedge_offsets))
    axons_of = np.zeros(h.n_groups, np.int64)
    np.add.at(axons_of, group_of, h.axon_counts)

    group_parts = np.diff(into.indptr).astype(np.int64)
    into_group = np.repeat(np.arange(h.n_groups, dtype=np.int64), group_parts)
    out_hedge = np.repeat(np.arange(h.n_hedges, dtype=np.int64), np.diff(out.indptr))
    pairs = np.sort(into_group * n_parts + into.indices)
    asked = group_of[out_hedge] * n_parts + out.indices
    at = np.searchsorted(pairs, asked)
    inside = np.append(pairs, -1)[at] == asked  # the source's part holds a destination as well
    hedge_parts = group_parts[group_of] + np.bincount(out_hedge[~inside], minlength=h.n_hedges)

    per_part = {q: np.zeros(n_parts, np.int64) for q in ("size", "inbound", "outbound", "synapses")}
    np.add.at(per_part["size"], parts, h.node_sizes)
    np.add.at(per_part["inbound"], into.indices, axons_of[into_group])
    np.add.at(per_part["synapses"], into.indices, axons_of[into_group] * into.data)
    np.add.at(per_part["outbound"], out.indices, h.axon_counts[out_hedge])
    per_part["incident"] = per_part["inbound"].copy()
    np.add.at(per_part["incident"], out.indices[~inside], h.axon_counts[out_hedge[~inside]])
    fan_ins = destinations.T @ axons_of
    return per_part, fan_ins, hedge_parts, group_parts


def _rows(offsets: Array, pins: Array, n_nodes: int) -> Any:
    """int32 indicator matrix with one row of `pins` a group or h-edge."""
    ones = np.ones(len(pins), np.int32)
    return sparse.csr_array((ones, pins, offsets), shape=(len(offsets) - 1, n_nodes))


def _compare(
    violations: list[str], values: Array, limit: int | None, quantity: str, what: str
) -> None:
    if limit is None:
        return
    name = quantity.replace("_", "-")
    for i in np.flatnonzero(values > limit):
        violations.append(f"{what} {i}: {name} {values[i]} exceeds the limit {limit}")
