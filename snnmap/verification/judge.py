"""An independent judge of whole mappings: plain NumPy and SciPy, no code shared with any step.

Partition: `snnmap.partitioning.verify`. Placement: one usable core a part, none twice. Traffic:
what each neuron's axon must inject and deliver, and how far it goes, summed from the neurons up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from snnmap.hardware import HardwareProfile
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.partitioning.verify import verify_partition
from snnmap.stored import StoredMapping
from snnmap.traffic import Routing, TrafficReport

Array = np.ndarray[Any, Any]

_TOLERANCE = 1e-9  # relative; sums in another order differ in the last bits


def verify_mapping(
    hypergraph: Hypergraph,
    parts: Array,
    cores: Array | None,
    profile: HardwareProfile,
    limits: Limits,
    *,
    connectivity: float | None = None,
    traffic: TrafficReport | None = None,
) -> tuple[str, ...]:
    """Everything that is wrong with a mapping, one line each; empty if it is valid.

    Args:
        hypergraph: what takes cores.
        parts: integer[n_nodes], part of each node.
        cores: integer[n_parts, 2], global (x, y) of each part; None if not placed.
        profile: the chip.
        limits: what each part must respect.
        connectivity: a claimed value to compare with.
        traffic: claimed loads and costs to compare with.
    """
    report = verify_partition(hypergraph, parts, limits, connectivity=connectivity)
    found = list(report.violations)
    if cores is not None:
        found += _placement_faults(np.asarray(cores), report.n_parts, profile)
    if traffic is not None and cores is not None and not found:
        found += _traffic_faults(hypergraph, parts, np.asarray(cores), profile, traffic)
    return tuple(found)


def verify_tables(
    stored: StoredMapping, hypergraph: Hypergraph, network: Hypergraph
) -> tuple[str, ...]:
    """What the tables of a ``mapping.h5`` get wrong about the network, one line each.

    Args:
        stored: the file.
        hypergraph: what takes cores.
        network: with its inputs (the same object if they take cores).
    """
    h, t, n_parts = hypergraph, stored.tables, stored.n_parts
    parts = stored.node_parts[stored.node_parts >= 0]
    into = _in_parts(h.group_offsets, h.destinations, parts, n_parts)
    out = _in_parts(h.source_offsets, h.sources, parts, n_parts)
    groups = np.repeat(np.arange(h.n_groups), np.diff(h.hedge_offsets))
    axons = np.zeros(h.n_groups, np.int64)
    np.add.at(axons, groups, h.axon_counts)
    synapses = np.zeros(n_parts, np.int64)
    np.add.at(synapses, parts[h.destinations], np.repeat(axons, np.diff(h.group_offsets)))
    neurons = np.zeros(n_parts, np.int64)
    np.add.at(neurons, parts, h.node_sizes)
    by_part, out_by_part = into.T.tocsr(), out.T.tocsr()
    by_part.sort_indices()
    out_by_part.sort_indices()
    expected = {
        "groups/part_offsets": into.indptr,
        "groups/parts": into.indices,
        "groups/axon_offsets": h.hedge_offsets,
        "axons/source_offsets": network.source_offsets,
        "axons/sources": network.sources,
        "axons/weight": h.weights,
        "axons/count": h.axon_counts,
        "inbound/offsets": by_part.indptr,
        "inbound/groups": by_part.indices,
        "outbound/offsets": out_by_part.indptr,
        "outbound/axons": out_by_part.indices,
        "parts/neurons": neurons,
        "parts/synapses": synapses,
        "parts/inbound_axons": by_part.astype(np.int64) @ axons,
        "parts/outbound_axons": out_by_part.astype(np.int64) @ h.axon_counts,
        "parts/incident_axons": (into[groups] + out).T.astype(bool).astype(np.int64)
        @ h.axon_counts,
    }
    if stored.cores is not None:
        size = np.array([stored.profile.width, stored.profile.height])
        expected["parts/chip"] = np.asarray(stored.cores) // size
    return tuple(
        f"mapping.h5: table {name} does not follow from the network and the parts"
        for name, right in expected.items()
        if not np.array_equal(t[name], right)
    )


def _in_parts(offsets: Array, pins: Array, parts: Array, n_parts: int) -> Any:
    """CSR array of bool, a row a group or h-edge, a column a part: whether it has a pin there."""
    n_rows, width = len(offsets) - 1, max(n_parts, 1)
    keys = np.unique(np.repeat(np.arange(n_rows), np.diff(offsets)) * width + parts[pins])
    rows, columns = np.divmod(keys, width)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_rows))])
    return sparse.csr_array((np.ones(len(keys), bool), columns, indptr), shape=(n_rows, n_parts))


def _placement_faults(cores: Array, n_parts: int, profile: HardwareProfile) -> list[str]:
    if cores.shape != (n_parts, 2):
        return [f"placement: shape {cores.shape}, but there are {n_parts} parts"]
    found = []
    owner: dict[tuple[int, int], int] = {}
    for part, (x, y) in enumerate(cores.tolist()):
        if not (0 <= x < profile.grid_width and 0 <= y < profile.grid_height):
            grid = f"{profile.grid_width} x {profile.grid_height}"
            found.append(f"part {part}: core ({x}, {y}) is outside the grid of {grid} cores")
        elif (x, y) in profile.dead_cores:
            found.append(f"part {part}: core ({x}, {y}) is dead")
        if (x, y) in owner:
            found.append(f"part {part}: core ({x}, {y}) already holds part {owner[x, y]}")
        owner[x, y] = part
    return found


def _traffic_faults(
    h: Hypergraph, parts: Array, cores: Array, profile: HardwareProfile, traffic: TrafficReport
) -> list[str]:
    n_parts = len(cores)
    groups = np.repeat(np.arange(h.n_groups), np.diff(h.hedge_offsets))
    chosen = sparse.csr_array(
        (np.ones(h.n_nodes, np.int32), parts, np.arange(h.n_nodes + 1)), shape=(h.n_nodes, n_parts)
    )
    rows = sparse.csr_array(
        (np.ones(len(h.destinations), np.int32), h.destinations, h.group_offsets),
        shape=(h.n_groups, h.n_nodes),
    )
    into = (rows @ chosen).astype(bool).astype(np.float64)  # group x part: has a destination there

    # An axon with several sources spikes from each distinct source part.
    hedges = np.repeat(np.arange(h.n_hedges), np.diff(h.source_offsets))
    origins = np.unique(np.stack([hedges, parts[h.sources]]), axis=1)
    rates, origin_groups = h.weights[origins[0]], groups[origins[0]]
    reached = np.diff(into.indptr)[origin_groups]
    out = sparse.csr_array((rates, (origins[1], origin_groups)), shape=(n_parts, h.n_groups))
    flows = (out @ into).tocoo()  # part x part: spikes/s
    distances = _distances(cores[flows.row], cores[flows.col], profile)

    def total(part_rates: Array) -> Array:
        return np.bincount(origins[1], part_rates, minlength=n_parts)

    delivered = np.bincount(flows.col, flows.data, minlength=n_parts)
    found = []
    for routing, injected in (
        (traffic.unicast, total(rates * reached)),
        (traffic.multicast, total(rates * (reached > 0))),
    ):
        found += _compare_cores(routing, "injected", routing.injected, injected)
        found += _compare_cores(routing, "delivered", routing.delivered, delivered)
        if not routing.conserved:
            found.append(f"traffic: {routing.model} loses or invents spikes at a router")
    hops = float(flows.data @ distances)
    if not np.isclose(traffic.unicast.hops, hops, rtol=_TOLERANCE, atol=1e-9):
        found.append(
            f"traffic: unicast hops {traffic.unicast.hops!r} were claimed, {hops!r} is right"
        )
    if traffic.multicast.hops > hops * (1 + _TOLERANCE):
        found.append("traffic: multicast trees are longer than separate routes")
    return found + _energy_faults(profile, flows.data, distances, cores, flows, traffic.unicast)


def _energy_faults(
    profile: HardwareProfile,
    rates: Array,
    distances: Array,
    cores: Array,
    flows: Any,
    claimed: Routing,
) -> list[str]:
    """The energy formula where one hop costs the same everywhere: one chip, a mesh or a torus."""
    costs = profile.costs
    simple = profile.n_chips == 1 and profile.topology == "mesh"
    known = None not in (costs.route_energy_pj, costs.hop_energy_x_pj, costs.hop_energy_y_pj)
    if not (simple and known) or claimed.energy_pj is None:
        return []
    steps = np.abs(_routers(cores[flows.row], profile) - _routers(cores[flows.col], profile))
    each = (
        (distances + 1) * costs.route_energy_pj
        + steps[:, 0] * costs.hop_energy_x_pj
        + steps[:, 1] * costs.hop_energy_y_pj
    )
    energy = float(rates @ each)
    if np.isclose(claimed.energy_pj, energy, rtol=_TOLERANCE, atol=1e-9):
        return []
    return [f"traffic: unicast energy {claimed.energy_pj!r} pJ was claimed, {energy!r} is right"]


def _compare_cores(routing: Routing, what: str, claimed: Array, right: Array) -> list[str]:
    slack = _TOLERANCE * float(right.sum())
    wrong = np.flatnonzero(np.abs(claimed - right) > slack)
    return [
        f"part {p}: {routing.model} spikes/s {what}: {claimed[p]} claimed, {right[p]} is right"
        for p in wrong.tolist()
    ]


def _routers(cores: Array, profile: HardwareProfile) -> Array:
    return np.asarray(np.asarray(cores, np.int64) // np.array(profile.tile))


def _distances(sources: Array, targets: Array, profile: HardwareProfile) -> Array:
    """int64[n]: links of a shortest route between the routers of two cores."""
    steps = _routers(targets, profile) - _routers(sources, profile)
    width = profile.grid_width // profile.tile[0]
    height = profile.grid_height // profile.tile[1]
    wraps = [(0, 0)]
    if profile.topology != "mesh":
        wraps = [(i * width, j * height) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    best = None
    for wrap in wraps:
        x, y = (steps + np.array(wrap)).T
        length = np.abs(x) + np.abs(y)
        if profile.topology == "hex-torus":  # one diagonal link does a step of both axes
            length = np.where(x * y > 0, np.maximum(np.abs(x), np.abs(y)), length)
        best = length if best is None else np.minimum(best, length)
    return np.asarray(best)
