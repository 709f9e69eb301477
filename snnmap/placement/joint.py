"""Joint improvement: neurons change parts with an eye on where the parts are.

A partitioner counts copies of spikes, whatever their way; a placer takes the parts as they are.
This step minimises what both lead to,

    sum over h-edges e, their source parts s and destination parts q of  w(e) * (alpha + d(s, q)),

the cost of all copies: d is the cost of the way (see `metric`) and alpha that of the router which
even a copy that stays on its core passes. Neurons move one at a time, in order of their ids, to the
part that saves most and where every limit still holds; parts then move to cores that suit them
better, and so on, until little is left to gain. Nothing ever gets worse by this measure.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from snnmap import _csr
from snnmap.errors import ConfigError
from snnmap.hardware import HardwareProfile
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.partitioning.metrics import measure
from snnmap.partitioning.result import Partition
from snnmap.placement import _kernels_joint
from snnmap.placement.flows import fixed_point_scale, symmetric_flows
from snnmap.placement.metric import Metric
from snnmap.placement.part_graph import part_hypergraph
from snnmap.placement.refine import force_directed
from snnmap.placement.region import SLACK, make_site
from snnmap.placement.result import Placement
from snnmap.progress import SILENT, Progress

Array = np.ndarray[Any, Any]

MAX_ROUNDS = 6
MAX_PASSES = 4
LEAST_GAIN = 5e-4
"""Passes and rounds go on while one saves more than this share."""

FEW_TWINS = 0.8
"""Clusters of twins move together if there are fewer than this share of the neurons."""

MAX_PARTS = 8192
UNLIMITED = 1 << 62


@dataclass(frozen=True, eq=False)
class JointResult:
    """What joint improvement leads to.

    Attributes:
        partition, placement: the improved ones; parts keep their numbers and none is empty.
        cost_before, cost_after: the objective, in spikes/s x average hops.
        moves: neurons that changed their part, counted each time.
    """

    partition: Partition
    placement: Placement
    cost_before: float
    cost_after: float
    moves: int


def improve_jointly(
    hypergraph: Hypergraph,
    partition: Partition,
    placement: Placement,
    profile: HardwareProfile,
    limits: Limits | None = None,
    *,
    move_parts: bool = True,
    progress: Progress = SILENT,
) -> JointResult:
    """Move neurons between parts, and parts between cores, to shorten what spikes travel.

    Args:
        hypergraph: the network; best with shared destination sets stored once.
        partition: within `limits`.
        placement: of its parts.
        profile: the chip.
        limits: default the profile's.
        move_parts: False keeps every part on its core.
        progress: told of rounds; when it expires the best state so far is returned.

    Raises:
        ConfigError: too many parts for a cost of each pair.
    """
    began = time.perf_counter()
    limits = profile.limits if limits is None else limits
    check_n_parts(partition.n_parts)
    metric = Metric.of(profile)
    cores = np.array(placement.cores, np.int32)
    costs = copy_costs(metric, cores)
    scale = _scale(hypergraph, int(costs.max(initial=1)))
    parts = np.array(partition.parts, np.int32)
    first = cost = _State(hypergraph, parts, limits, scale).total(costs)
    moves = 0
    progress.start("joint", total=MAX_ROUNDS, unit="rounds")
    for _ in range(MAX_ROUNDS):
        before = cost
        twins = _twins(hypergraph, parts)
        if twins.max(initial=0) + 1 < FEW_TWINS * hypergraph.n_nodes:
            moves += _improve(hypergraph, parts, twins, limits, scale, costs, progress)
        alone = np.arange(hypergraph.n_nodes)
        moves += _improve(hypergraph, parts, alone, limits, scale, costs, progress)
        cost = _State(hypergraph, parts, limits, scale).total(costs)
        if move_parts:
            improved = replace(partition, parts=parts)
            better = _moved_parts(hypergraph, improved, profile, cores, progress)
            better_costs = copy_costs(metric, better)
            better_cost = _State(hypergraph, parts, limits, scale).total(better_costs)
            if better_cost < cost:
                cores, costs, cost = better, better_costs, better_cost
        progress.advance()
        if before - cost <= LEAST_GAIN * before or progress.expired():
            break
    progress.finish()
    seconds = {**placement.seconds, "joint": time.perf_counter() - began}
    unit = scale * metric.cost_hop * _SCALE
    improved = replace(partition, parts=parts)
    flows = symmetric_flows(part_hypergraph(hypergraph, improved), 1)
    routers = metric.router_of(cores)
    ways = metric.cost(routers[flows.row_ids], routers[flows.neighbours])
    objective = float((flows.rates * ways).sum()) / 2 / flows.scale / metric.cost_hop
    return JointResult(
        partition=improved,
        placement=replace(placement, cores=cores, joint=True, objective=objective, seconds=seconds),
        cost_before=first / unit,
        cost_after=cost / unit,
        moves=moves,
    )


def check_n_parts(n_parts: int) -> None:
    """Refuse more parts than there is memory for pairs of them.

    Raises:
        ConfigError: there are too many.
    """
    if n_parts > MAX_PARTS:
        raise ConfigError(
            f"{n_parts:,} parts; joint improvement keeps a cost for each pair of parts and takes at "
            f"most {MAX_PARTS:,}"
        )


_SCALE = 12
"""Integer units of a hop's integer cost in the objective, so that alpha can be a fraction of it."""


def copy_costs(metric: Metric, cores: Array) -> Array:
    """int64[n_parts, n_parts]: alpha + cost of the way, in units of 1 / 12 of the integer cost.

    alpha is the share of the router in the cost of an average hop, energy and latency alike where
    both are known, and half a hop where neither is.
    """
    costs = metric.profile.costs
    shares = []
    for route, x, y in (
        (costs.route_energy_pj, costs.hop_energy_x_pj, costs.hop_energy_y_pj),
        (costs.route_latency_ns, costs.hop_latency_x_ns, costs.hop_latency_y_ns),
    ):
        if route is not None and x is not None and y is not None and route + x + y > 0:
            shares.append(route / (route + (x + y) / 2))
    alpha = float(np.mean(shares)) if shares else 0.5
    routers = metric.router_of(cores)
    n = len(routers)
    ways = np.empty((n, n), np.int64)
    for row, router in zip(ways, routers, strict=True):
        row[:] = metric.cost(np.broadcast_to(router, routers.shape), routers)
    return ways * _SCALE + max(1, round(alpha * metric.cost_hop * _SCALE))


def _moved_parts(
    hypergraph: Hypergraph,
    partition: Partition,
    profile: HardwareProfile,
    cores: Array,
    progress: Progress,
) -> Array:
    """int32[n_parts, 2]: cores after swaps of parts, from where they are."""
    part_graph = part_hypergraph(hypergraph, partition)
    site = make_site(Metric.of(profile), partition.n_parts, {}, set(), hypergraph.name)
    region = site.region(slack=SLACK).including(cores)
    flows = symmetric_flows(part_graph, region.diameter)
    cells = force_directed(flows, region, region.cells_of(cores), progress=progress)
    return region.cores[cells].astype(np.int32)


def _copies(hypergraph: Hypergraph) -> Array:
    """int64[n_hedges]: pairs of a source and a destination, the most copies of a spike."""
    h = hypergraph
    return np.asarray(np.diff(h.group_offsets)[h.hedge_groups] * np.diff(h.source_offsets))


def _scale(hypergraph: Hypergraph, farthest: int) -> float:
    """Fixed-point units of a spike/s for which no sum of costs overflows."""
    most = hypergraph.weights * _copies(hypergraph) * float(4 * farthest)
    return fixed_point_scale(most, 60, hypergraph.name)


def _twins(hypergraph: Hypergraph, parts: Array) -> Array:
    """int64[n_nodes]: clusters of nodes of one part that the same groups of axons reach.

    Taking one of them to another part brings a copy there and frees none: they must go together.
    """
    offsets, groups = hypergraph.incidence
    alike, _ = _csr.group_equal_rows(groups, offsets[:-1], np.diff(offsets))
    n_alike = int(alike.max(initial=0)) + 1
    return np.unique(parts * np.int64(n_alike) + alike, return_inverse=True)[1]


def _improve(
    hypergraph: Hypergraph,
    parts: Array,
    clusters: Array,
    limits: Limits,
    scale: float,
    costs: Array,
    progress: Progress,
) -> int:
    """Passes that move whole clusters; changes `parts` and returns the moves of neurons."""
    n_clusters = int(clusters.max(initial=-1)) + 1
    coarse = hypergraph if n_clusters == hypergraph.n_nodes else hypergraph.contract(clusters)
    where = np.empty(n_clusters, np.int32)
    where[clusters] = parts
    fan_ins = np.zeros(n_clusters, np.int64)
    np.add.at(fan_ins, clusters, hypergraph.fan_ins)
    members = np.bincount(clusters, minlength=n_clusters)
    state = _State(coarse, where, limits, scale, fan_ins, members)
    cost, moves = state.total(costs), 0
    for _ in range(MAX_PASSES):
        if progress.expired():
            break
        before = state.parts.copy()
        saved = state.improve(costs)
        moves += int(members[before != state.parts].sum())
        cost -= saved
        if saved <= LEAST_GAIN * cost:
            break
    parts[:] = state.parts[clusters]
    return moves


class _State:
    """The lists of all groups and the loads of all parts, kept up to date by the moves.

    Args:
        hypergraph: of neurons or of clusters of neurons.
        parts: int32[n_nodes]; every part holds a node.
        limits: of a part.
        scale: fixed-point units of a spike/s.
        fan_ins: int64[n_nodes], synapses of each node; default those of the hypergraph.
        members: int64[n_nodes], neurons of each node; default 1 each.
    """

    def __init__(
        self,
        hypergraph: Hypergraph,
        parts: Array,
        limits: Limits,
        scale: float,
        fan_ins: Array | None = None,
        members: Array | None = None,
    ) -> None:
        h = hypergraph
        members = np.ones(h.n_nodes, np.int64) if members is None else members
        self.net = _kernels_joint.Net(
            h.group_offsets,
            h.destinations,
            h.hedge_offsets,
            h.source_offsets,
            h.sources,
            np.rint(np.where(_copies(h) > 0, h.weights, 0.0) * scale).astype(np.int64),
            h.axon_counts,
            h.hedge_groups,
            h.group_axons,
            *h.incidence,
            *h.outgoing,
            h.node_sizes,
            h.fan_ins if fan_ins is None else fan_ins,
            members,
        )
        m = measure(h, parts)
        synapses, n_members = np.zeros((2, m.n_parts), np.int64)
        np.add.at(synapses, parts, self.net.fan_ins)
        np.add.at(n_members, parts, members)
        loads = (m.sizes, m.inbound, m.outbound, m.incident, synapses)
        n_to, n_from = len(h.destinations), len(h.sources)
        self.state = _kernels_joint.State(
            np.array(parts, np.int32),
            np.empty(n_to, np.int32),
            np.empty(n_to, np.int32),
            np.zeros(h.n_groups, np.int64),
            np.empty(n_from, np.int32),
            np.empty(n_from, np.int32),
            np.empty(n_from, np.int64),
            np.zeros(h.n_groups, np.int64),
            n_members,
            np.stack([np.asarray(load, np.int64) for load in loads]),
        )
        _kernels_joint.fill_lists(self.net, self.state)
        bounds = (
            limits.max_size,
            limits.max_inbound,
            limits.max_outbound,
            limits.max_incident,
            limits.max_synapses,
        )
        self.limits = np.array([UNLIMITED if b is None else b for b in bounds], np.int64)
        self.max_destinations = limits.max_destinations or UNLIMITED
        self.waiting = np.full((m.n_parts, m.n_parts), -1, np.int32)
        self.hopes = np.zeros((m.n_parts, m.n_parts), np.int64)

    @property
    def parts(self) -> Array:
        """int32[n_nodes]: the current part of each node."""
        return self.state.parts

    def improve(self, costs: Array) -> int:
        """One pass over all nodes; how much it saved."""
        saved, _ = _kernels_joint.improve_pass(
            self.net,
            self.state,
            costs,
            self.limits,
            self.max_destinations,
            self.waiting,
            self.hopes,
        )
        return int(saved)

    def total(self, costs: Array) -> int:
        """The objective in fixed point."""
        return int(_kernels_joint.total_cost(self.net, self.state, costs))
