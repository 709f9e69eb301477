"""A light simulation of the network on chip: spikes queue for links instead of passing through.

Every directed link carries one copy of a spike at a time and takes 1 / bandwidth for it; copies
wait in order of arrival. Routers pass a copy in L_route and a link delivers it after L_hop, so a
spike that meets no other takes exactly the analytic latency. Neither cores nor routers limit
anything else; a full buffer drops (there is no back pressure). Events are played in order of time,
ties in the order of their making: the same spikes always give the same result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from snnmap.errors import ConfigError
from snnmap.hardware import HardwareProfile
from snnmap.hypergraph import Hypergraph
from snnmap.placement.metric import Metric
from snnmap.placement.result import Placement
from snnmap.progress import SILENT, Progress
from snnmap.traffic import _kernels_simulate
from snnmap.traffic.measure import checked_cores
from snnmap.traffic.report import DIRECTIONS
from snnmap.traffic.spikes import Spikes
from snnmap.traffic.window import Window

Array = np.ndarray[Any, Any]

MAX_BINS = 100
MOST = 200_000_000
"""Most deliveries, and most routers on the routes of all streams (a few GB)."""

PS_PER_NS = 1000
PS_PER_S = 10**12


@dataclass(frozen=True, eq=False)
class SimulationReport:
    """What happened to the spikes.

    Attributes:
        model: ``"multicast"`` or ``"unicast"``.
        n_steps: simulated time steps.
        duration_ns: simulated time in which spikes were sent.
        drained_ns: when the last spike arrived.
        n_spikes: spikes sent.
        n_delivered: deliveries to cores.
        n_dropped: deliveries lost to full buffers.
        latencies_ns: float64[n_delivered], ascending.
        waits_ns: sum of all waiting for links.
        max_waiting: most copies that waited for one link.
        bandwidth_spikes_s: of a link; None: links were unlimited, nothing ever waited.
        has_latency: whether all latencies are known of what spikes passed; else some count as 0.
        origin: global router (x, y) of window position (0, 0).
        link_counts: int64[n_bins, n_directions, nx, ny], copies that started on each link, by time.
        longest_waits_ns: float64[n_directions, nx, ny], longest wait for each link.
    """

    model: str
    n_steps: int
    duration_ns: float
    drained_ns: float
    n_spikes: int
    n_delivered: int
    n_dropped: int
    latencies_ns: Array
    waits_ns: float
    max_waiting: int
    bandwidth_spikes_s: float | None
    has_latency: bool
    origin: tuple[int, int]
    link_counts: Array
    longest_waits_ns: Array

    @property
    def link_loads(self) -> Array:
        """float64[n_directions, nx, ny]: spikes/s on each link, over the simulated time."""
        return np.asarray(self.link_counts.sum(axis=0) / (self.duration_ns * 1e-9))

    @property
    def utilisation(self) -> Array | None:
        """float64[n_bins, 2]: mean over used links and largest share of bandwidth, by time."""
        if self.bandwidth_spikes_s is None:
            return None
        counts = self.link_counts.reshape(len(self.link_counts), -1)
        used = counts[:, counts.any(axis=0)]
        if not used.size:
            return np.zeros((len(counts), 2))
        most = self.bandwidth_spikes_s * self.duration_ns * 1e-9 / len(counts)
        return np.stack([used.mean(axis=1), used.max(axis=1)], axis=1) / most

    def busiest(self, n: int = 10) -> list[tuple[int, int, str, float, float]]:
        """The busiest links: (router x, router y, direction, spikes/s, longest wait in ns)."""
        loads = self.link_loads
        order = np.argsort(-loads, axis=None, kind="stable")[:n]
        found = []
        for direction, x, y in zip(*np.unravel_index(order, loads.shape), strict=True):
            if loads[direction, x, y] > 0:
                found.append(
                    (
                        int(x) + self.origin[0],
                        int(y) + self.origin[1],
                        DIRECTIONS[direction],
                        float(loads[direction, x, y]),
                        float(self.longest_waits_ns[direction, x, y]),
                    )
                )
        return found

    def summary(self) -> dict[str, Any]:
        """Numbers without arrays, for JSON; latencies are None where nothing was delivered."""
        lat = self.latencies_ns
        some = len(lat) > 0
        utilisation = self.utilisation
        return {
            "model": self.model,
            "timesteps": self.n_steps,
            "duration_ns": self.duration_ns,
            "drained_ns": self.drained_ns,
            "spikes": self.n_spikes,
            "delivered": self.n_delivered,
            "dropped": self.n_dropped,
            "includes_route_and_hop_latency": self.has_latency,
            "link_bandwidth_spikes_s": self.bandwidth_spikes_s,
            "mean_latency_ns": float(lat.mean()) if some else None,
            "median_latency_ns": float(np.quantile(lat, 0.5)) if some else None,
            "p95_latency_ns": float(np.quantile(lat, 0.95)) if some else None,
            "p99_latency_ns": float(np.quantile(lat, 0.99)) if some else None,
            "max_latency_ns": float(lat[-1]) if some else None,
            "waiting_ns": self.waits_ns,
            "max_waiting_spikes": self.max_waiting,
            "max_link_load_spikes_s": float(self.link_loads.max(initial=0.0)),
            "mean_link_share": None if utilisation is None else float(utilisation[:, 0].mean()),
            "max_link_share": None if utilisation is None else float(utilisation[:, 1].max()),
        }


def simulate(
    part_graph: Hypergraph,
    placement: Placement,
    profile: HardwareProfile,
    spikes: Spikes,
    *,
    model: str = "multicast",
    bandwidth_spikes_s: float | None = None,
    buffer: int | None = None,
    progress: Progress = SILENT,
) -> SimulationReport:
    """Send spikes over the chip and see how long they take.

    Args:
        part_graph: nodes are parts.
        placement: a core for each part.
        profile: the chip; unknown latencies count as 0 (the report says so).
        spikes: what is sent when (see :mod:`snnmap.traffic.spikes`).
        model: ``"multicast"`` or ``"unicast"``.
        bandwidth_spikes_s: of each link; default the profile's; unlimited if neither is known.
        buffer: copies that may wait for a link; None for no limit.
        progress: told of the phase.

    Raises:
        ConfigError: a setting out of range, or more than memory can hold.
        InputError: the placement does not fit.
    """
    if model not in ("multicast", "unicast"):
        raise ConfigError(f"unknown model {model!r}; known: multicast, unicast")
    if buffer is not None and buffer < 0:
        raise ConfigError(f"buffer is {buffer}; expected at least 0 waiting spikes")
    costs = profile.costs
    bandwidth = bandwidth_spikes_s or costs.link_bandwidth_spikes_s or None
    if bandwidth is not None and not 0 < bandwidth <= PS_PER_S:
        raise ConfigError(f"link bandwidth is {bandwidth} spikes/s; expected 0 to 1e12")
    cores = checked_cores(part_graph, placement, profile)
    metric = Metric.of(profile)
    window = Window.around(metric, metric.router_of(cores))
    progress.start("simulate", total=2, unit="passes")
    trees = _Trees(part_graph, window, spikes, multicast=model == "multicast")
    progress.advance()
    hop_times, route_time, unknown = _times(window)
    n_bins = min(MAX_BINS, spikes.n_steps)
    link_counts = np.zeros((n_bins, len(hop_times)), np.int64)
    longest_waits = np.zeros(len(hop_times), np.int64)
    latencies = np.empty(trees.n_deliveries, np.int64)
    totals = np.zeros(5, np.int64)
    _kernels_simulate.play(
        spikes.times_ps,
        trees.spike_streams,
        trees.root_offsets,
        trees.roots,
        trees.child_offsets,
        trees.children,
        trees.links,
        trees.ends,
        trees.subtree_ends,
        hop_times,
        route_time,
        0 if bandwidth is None else max(1, round(PS_PER_S / bandwidth)),
        -1 if buffer is None else buffer,
        -(-spikes.duration_ps // n_bins),
        link_counts,
        longest_waits,
        latencies,
        totals,
    )
    progress.advance()
    progress.finish()
    shape = (window.n_directions, *window.shape)
    return SimulationReport(
        model=model,
        n_steps=spikes.n_steps,
        duration_ns=spikes.duration_ps / PS_PER_NS,
        drained_ns=int(totals[2]) / PS_PER_NS,
        n_spikes=len(spikes.times_ps),
        n_delivered=int(totals[0]),
        n_dropped=int(totals[1]),
        latencies_ns=np.sort(latencies[: totals[0]]) / PS_PER_NS,
        waits_ns=int(totals[3]) / PS_PER_NS,
        max_waiting=int(totals[4]),
        bandwidth_spikes_s=bandwidth,
        has_latency=not link_counts[:, unknown].any() and costs.route_latency_ns is not None,
        origin=window.origin,
        link_counts=link_counts.reshape(n_bins, *shape),
        longest_waits_ns=longest_waits.reshape(shape) / PS_PER_NS,
    )


class _Trees:
    """The routers and links that each stream's spikes take, for the streams that do fire."""

    def __init__(
        self, part_graph: Hypergraph, window: Window, spikes: Spikes, *, multicast: bool
    ) -> None:
        g = part_graph
        streams, self.spike_streams = np.unique(spikes.streams, return_inverse=True)
        hedges = np.repeat(np.arange(g.n_hedges), np.diff(g.source_offsets))
        args = (
            streams.astype(np.int64),
            hedges,
            g.sources,
            g.group_offsets,
            g.destinations,
            g.hedge_groups,
            *window.local,
            window.vectors,
            window.metric.is_hex,
            multicast,
        )
        fan_out = np.diff(g.group_offsets)[g.hedge_groups][hedges[streams]]
        self.n_deliveries = int(fan_out[self.spike_streams].sum())
        self.root_offsets = np.empty(len(streams) + 1, np.int64)
        nothing = np.empty(0, np.int32)
        n_nodes = _kernels_simulate.build_trees(
            *args, self.root_offsets, nothing, nothing, nothing, nothing
        )
        if max(self.n_deliveries, n_nodes) > MOST:
            raise ConfigError(
                f"{self.n_deliveries:,} deliveries on routes of {n_nodes:,} routers are more than "
                f"{MOST:,}; simulate fewer time steps or scale the rates down"
            )
        self.roots = np.empty(self.root_offsets[-1], np.int32)
        parents = np.empty(n_nodes, np.int32)
        self.links = np.empty(n_nodes, np.int32)
        self.ends = np.zeros(n_nodes, np.int32)
        if n_nodes:
            _kernels_simulate.build_trees(
                *args, self.root_offsets, self.roots, parents, self.links, self.ends
            )
        inner = np.flatnonzero(parents >= 0)
        self.children = inner[np.argsort(parents[inner], kind="stable")].astype(np.int32)
        self.child_offsets = np.zeros(n_nodes + 1, np.int64)
        np.cumsum(np.bincount(parents[inner], minlength=n_nodes), out=self.child_offsets[1:])
        self.subtree_ends = _subtree_sums(self.ends, parents)


def _subtree_sums(ends: Array, parents: Array) -> Array:
    """int64[n]: ends at and below each node, by passing sums up one level at a time."""
    sums = ends.astype(np.int64)
    moving = sums.copy()
    front = np.flatnonzero(parents >= 0)
    front = front[moving[front] > 0]
    while len(front):
        amounts = np.zeros(len(sums), np.int64)
        np.add.at(amounts, parents[front], moving[front])
        sums += amounts
        moving = amounts
        front = np.flatnonzero((moving > 0) & (parents >= 0))
    return sums


def _times(window: Window) -> tuple[Array, int, Array]:
    """(int64[n_links] hop times, route time, bool[n_links] unknown): ps, 0 where there is none."""
    costs = window.metric.profile.costs
    along = [costs.hop_latency_x_ns, costs.hop_latency_y_ns]
    hops = np.zeros((window.n_directions, *window.shape), np.int64)
    unknown = np.zeros(hops.shape, bool)
    for direction in range(window.n_directions):
        axis = 1 if direction in (2, 3) else 0
        hops[direction] = round((along[axis] or 0.0) * PS_PER_NS)
        unknown[direction] = along[axis] is None
    if window.off_chip.any():
        unknown[window.off_chip] = costs.chip_hop_latency_ns is None
        hops[window.off_chip] = round((costs.chip_hop_latency_ns or 0.0) * PS_PER_NS)
    return hops.ravel(), round((costs.route_latency_ns or 0.0) * PS_PER_NS), unknown.ravel()
