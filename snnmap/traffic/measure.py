"""Analytic traffic: every spike's route, summed over all spikes."""

from __future__ import annotations

from typing import Any

import numpy as np

from snnmap.errors import InputError
from snnmap.hardware import HardwareProfile
from snnmap.hypergraph import Hypergraph
from snnmap.parallel import for_chunks
from snnmap.placement.flows import directed_flows, fixed_point_scale
from snnmap.placement.metric import Metric
from snnmap.placement.result import Placement
from snnmap.progress import SILENT, Progress
from snnmap.traffic import _kernels
from snnmap.traffic.report import Routing, TrafficReport
from snnmap.traffic.window import Window

Array = np.ndarray[Any, Any]


def measure_traffic(
    part_graph: Hypergraph,
    placement: Placement,
    profile: HardwareProfile,
    *,
    progress: Progress = SILENT,
) -> TrafficReport:
    """Loads, energy and latency of all spikes on their x-y routes.

    A spike of an h-edge goes from (each of) its source core(s) to every destination core; d links
    away it passes d + 1 routers. Loads are summed in fixed point, so they are exact to 2^-52 of all
    traffic, do not depend on the number of threads, and balance exactly in the conservation check.

    Args:
        part_graph: nodes are parts, weights spikes/s.
        placement: a core for each part.
        profile: the chip.
        progress: told of the two models.

    Raises:
        InputError: the placement does not fit the part graph or leaves the grid.
    """
    cores = checked_cores(part_graph, placement, profile)
    metric = Metric.of(profile)
    window = Window.around(metric, metric.router_of(cores))
    pairs = _Pairs(part_graph, window)
    has_source = np.diff(part_graph.source_offsets) > 0
    progress.start("traffic", total=3, unit="models")
    unicast = _route(part_graph, window, pairs, multicast=False)
    progress.advance()
    multicast = _route(part_graph, window, pairs, multicast=True)
    progress.advance()
    congestion = _congestion(window, pairs)
    locality, weighted_locality = _locality(part_graph, cores)
    progress.finish()
    return TrafficReport(
        origin=window.origin,
        unicast=unicast,
        multicast=multicast,
        off_chip=window.off_chip,
        hop_spikes=pairs.hop_spikes,
        congestion=congestion,
        locality=locality,
        weighted_locality=weighted_locality,
        unsourced_spikes_s=float(part_graph.weights[~has_source].sum()),
    )


def checked_cores(part_graph: Hypergraph, placement: Placement, profile: HardwareProfile) -> Array:
    """int64[n_parts, 2]: the cores of a placement, if they fit the parts and the grid.

    Raises:
        InputError: they do not.
    """
    cores = np.asarray(placement.cores, np.int64)
    if cores.shape != (part_graph.n_nodes, 2):
        raise InputError(
            part_graph.name, f"the placement has {len(cores)} cores for {part_graph.n_nodes} parts"
        )
    outside = (cores < 0) | (cores >= (profile.grid_width, profile.grid_height))
    if outside.any():
        part = int(np.flatnonzero(outside.any(axis=1))[0])
        raise InputError(
            part_graph.name,
            f"part {part} is on core {tuple(cores[part].tolist())}, outside the grid of "
            f"{profile.grid_width}x{profile.grid_height} cores",
        )
    return cores


class _Pairs:
    """All (source core, destination core) pairs with the spikes/s between them."""

    def __init__(self, part_graph: Hypergraph, window: Window) -> None:
        flows = directed_flows(part_graph)
        flows.eliminate_zeros()
        self.flows = flows
        self.n_parts = part_graph.n_nodes
        self.sources = np.repeat(np.arange(self.n_parts, dtype=np.int32), np.diff(flows.indptr))
        self.targets = flows.indices.astype(np.int32)
        self.rates = flows.data
        self.hops = window.metric.hops(window.routers[self.sources], window.routers[self.targets])
        lengths = self.hops.sum(axis=1)
        self.hop_spikes = np.bincount(lengths, weights=self.rates, minlength=1)
        self.delivered = np.bincount(self.targets, weights=self.rates, minlength=self.n_parts)


def _route(part_graph: Hypergraph, window: Window, pairs: _Pairs, *, multicast: bool) -> Routing:
    g = part_graph
    if multicast:
        weights, groups = g.weights, g.hedge_groups
        edges = (g.group_offsets, g.destinations, groups, g.source_offsets, g.sources)
        fan_out = np.diff(g.group_offsets)[groups]
    else:
        weights, groups = pairs.rates, np.arange(len(pairs.rates), dtype=np.int64)
        one_each = np.arange(len(pairs.rates) + 1, dtype=np.int64)
        edges = (one_each, pairs.targets, groups, one_each, pairs.sources)
        fan_out = np.ones(len(groups), np.int64)
    n_sources = np.diff(edges[3])
    weights = np.where(fan_out * n_sources > 0, weights, 0.0)  # the others go nowhere
    copies = fan_out * n_sources
    scale = fixed_point_scale(weights * copies, 51, g.name)
    rates = np.rint(np.where(copies > 0, weights, 0.0) * scale).astype(np.int64)
    parts = for_chunks(
        _kernels.load_links,
        len(rates),
        *edges,
        rates,
        *window.local,
        window.vectors,
        window.metric.is_hex,
        multicast,
        window.n_directions,
        grain=max(4096, window.n_routers),
    )
    links = sum((loads for loads, _ in parts), np.zeros_like(window.off_chip, np.int64))
    routers = sum((loads for _, loads in parts), np.zeros(window.shape, np.int64))
    injected = np.zeros(g.n_nodes, np.int64)
    np.add.at(injected, edges[4], np.repeat(rates * (fan_out > 0), n_sources))
    delivered = _delivered(g.n_nodes, edges, rates)
    return Routing(
        model="multicast" if multicast else "unicast",
        link_loads=links / scale,
        router_loads=routers / scale,
        injected=injected / scale,
        delivered=delivered / scale,
        hops=float(links.sum()) / scale,
        off_chip_hops=float(links[window.off_chip].sum()) / scale,
        conserved=_is_conserved(window, links, routers, injected, delivered, multicast=multicast),
        bandwidth_spikes_s=window.metric.profile.costs.link_bandwidth_spikes_s,
        **_energy(window, links / scale, routers / scale),
        **_latency(window, pairs),
    )


def _congestion(window: Window, pairs: _Pairs) -> Array:
    """float64[nx, ny]: see :attr:`TrafficReport.congestion`."""
    incoming = pairs.flows.tocsc()
    return np.asarray(
        _kernels.spread_flows(
            incoming.indptr.astype(np.int64),
            incoming.indices.astype(np.int32),
            incoming.data,
            *window.local,
            window.vectors,
            window.metric.is_hex,
            pairs.n_parts,
        )
    )


def _locality(part_graph: Hypergraph, cores: Array) -> tuple[float, float]:
    """Cores on the convex hull of an axon's pins: mean over axons, mean weighted by rate."""
    g = part_graph
    if not (g.n_hedges and g.n_nodes):
        return 0.0, 0.0
    x = cores[:, 0] - cores[:, 0].min()
    counts = np.empty(g.n_hedges, np.int64)
    for_chunks(
        _kernels.hull_cores,
        g.n_hedges,
        g.group_offsets,
        g.destinations,
        g.hedge_groups,
        g.source_offsets,
        g.sources,
        x,
        np.ascontiguousarray(cores[:, 1]),
        int(x.max()) + 1,
        counts,
        grain=1024,
    )
    rate = float(g.weights.sum())
    mean = float((counts * g.axon_counts).sum() / g.axon_counts.sum())
    return mean, float((counts * g.weights).sum() / rate) if rate > 0 else mean


def _delivered(n_parts: int, edges: tuple[Array, ...], rates: Array) -> Array:
    """int64[n_parts]: fixed-point spikes/s that arrive at each part."""
    group_offsets, destinations, groups, source_offsets, _ = edges
    by_group = np.zeros(len(group_offsets) - 1, np.int64)
    np.add.at(by_group, groups, rates * np.diff(source_offsets))
    delivered = np.zeros(n_parts, np.int64)
    np.add.at(delivered, destinations, np.repeat(by_group, np.diff(group_offsets)))
    return delivered


def _is_conserved(
    window: Window,
    links: Array,
    routers: Array,
    injected: Array,
    delivered: Array,
    *,
    multicast: bool,
) -> bool:
    """Whether every router passes on or delivers exactly what enters or begins there.

    A multicast router may copy spikes but not lose them.
    """
    entering = window.arriving(links) + window.at_routers(injected)
    leaving = links.sum(axis=0) + window.at_routers(delivered)
    kept = leaving >= entering if multicast else leaving == entering
    return bool((entering == routers).all() and kept.all())


def _energy(window: Window, links: Array, routers: Array) -> dict[str, float | None]:
    costs = window.metric.profile.costs
    off_chip = _sum_of((float(links[window.off_chip].sum()), costs.chip_hop_energy_pj))
    inside = np.where(window.off_chip, 0.0, links).sum(axis=(1, 2))
    along_y = float(inside[2:4].sum())
    total = _sum_of(
        (float(routers.sum()), costs.route_energy_pj),
        (float(inside.sum()) - along_y, costs.hop_energy_x_pj),
        (along_y, costs.hop_energy_y_pj),
        (1.0, off_chip),
    )
    return {"energy_pj": total, "off_chip_energy_pj": off_chip}


def _latency(window: Window, pairs: _Pairs) -> dict[str, float | None]:
    costs = window.metric.profile.costs
    if not len(pairs.rates):
        return {"mean_latency_ns": 0.0, "max_latency_ns": 0.0}
    route = costs.route_latency_ns
    each = (costs.hop_latency_x_ns, costs.hop_latency_y_ns, costs.chip_hop_latency_ns)
    latencies = np.zeros(len(pairs.rates))
    for count, cost in zip(pairs.hops.T, each, strict=True):
        if count.any() and cost is None:
            return {"mean_latency_ns": None, "max_latency_ns": None}
        latencies += count * (cost or 0.0)
    if route is None:
        return {"mean_latency_ns": None, "max_latency_ns": None}
    latencies += (pairs.hops.sum(axis=1) + 1) * route
    mean = float(np.average(latencies, weights=pairs.rates))
    return {"mean_latency_ns": mean, "max_latency_ns": float(latencies.max())}


def _sum_of(*terms: tuple[float, float | None]) -> float | None:
    """Sum of amount x cost; None if a cost is unknown where there is an amount."""
    total = 0.0
    for amount, cost in terms:
        if cost is None:
            if amount:
                return None
        else:
            total += amount * cost
    return total
