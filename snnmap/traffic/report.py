"""What spikes do on their way: plain numbers and arrays of one placement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

DIRECTIONS = ("east", "west", "north", "south", "northeast", "southwest")
"""Links that leave a router: +x, -x, +y, -y and, on a hex-torus, +(1, 1) and -(1, 1)."""


@dataclass(frozen=True, eq=False)
class Routing:
    """Loads and costs under one model of routing.

    All loads are spikes/s where the network's weights are; energies are then pJ for one second of
    the network's time, latencies those of an uncontended spike; None where a cost is unknown.

    Attributes:
        model: ``"unicast"`` (one copy for each destination core) or ``"multicast"`` (one x-y tree
            a spike, shared links count once).
        link_loads: float64[n_directions, nx, ny], spikes/s on the link leaving a router.
        router_loads: float64[nx, ny], spikes/s that pass (enter or begin at) a router.
        injected: float64[n_parts], copies/s that a core hands to its router.
        delivered: float64[n_parts], spikes/s that arrive at a core.
        hops: spikes/s x links travelled, in all.
        off_chip_hops: the share of `hops` over links between chips.
        energy_pj: of routers and links.
        off_chip_energy_pj: its share on links between chips.
        mean_latency_ns: over delivered spikes.
        max_latency_ns: of the longest route that carries spikes.
        conserved: loads agree, router by router, with what was injected and delivered.
        bandwidth_spikes_s: of a link, from the profile.
    """

    model: str
    link_loads: Array
    router_loads: Array
    injected: Array
    delivered: Array
    hops: float
    off_chip_hops: float
    energy_pj: float | None
    off_chip_energy_pj: float | None
    mean_latency_ns: float | None
    max_latency_ns: float | None
    conserved: bool
    bandwidth_spikes_s: float | None

    @property
    def max_link_load(self) -> float:
        """Spikes/s on the busiest link."""
        return float(self.link_loads.max(initial=0.0))

    @property
    def max_router_load(self) -> float:
        """Spikes/s through the busiest router."""
        return float(self.router_loads.max(initial=0.0))

    @property
    def max_link_share(self) -> float | None:
        """Load of the busiest link as a share of its bandwidth; above 1 it cannot keep up."""
        if not self.bandwidth_spikes_s:
            return None
        return self.max_link_load / self.bandwidth_spikes_s

    @property
    def energy_latency(self) -> float | None:
        """Energy x mean latency, pJ ns: the headline figure of the placement literature."""
        if self.energy_pj is None or self.mean_latency_ns is None:
            return None
        return self.energy_pj * self.mean_latency_ns

    def link_histogram(self, n_bins: int = 20) -> tuple[Array, Array]:
        """(int64[n_bins] links, float64[n_bins + 1] edges in spikes/s) over links in use."""
        used = self.link_loads[self.link_loads > 0]
        return np.histogram(used, n_bins, range=(0.0, self.max_link_load or 1.0))

    def summary(self) -> dict[str, Any]:
        """Numbers without arrays, for JSON."""
        used = self.link_loads[self.link_loads > 0]
        return {
            "energy_pj": self.energy_pj,
            "off_chip_energy_pj": self.off_chip_energy_pj,
            "mean_latency_ns": self.mean_latency_ns,
            "max_latency_ns": self.max_latency_ns,
            "energy_latency_pj_ns": self.energy_latency,
            "injected_spikes_s": float(self.injected.sum()),
            "delivered_spikes_s": float(self.delivered.sum()),
            "hops_spikes_s": self.hops,
            "off_chip_hops_spikes_s": self.off_chip_hops,
            "max_link_load_spikes_s": self.max_link_load,
            "mean_used_link_load_spikes_s": float(used.mean()) if len(used) else 0.0,
            "max_link_share": self.max_link_share,
            "max_router_load_spikes_s": self.max_router_load,
            "links_used": len(used),
            "conserved": self.conserved,
        }


@dataclass(frozen=True, eq=False)
class TrafficReport:
    """Traffic of one placement under both models; windows span the routers in use.

    Attributes:
        origin: global router (x, y) of window position (0, 0).
        unicast, multicast: loads and costs.
        off_chip: bool[n_directions, nx, ny], links between chips.
        hop_spikes: float64[max hops + 1], delivered spikes/s by links travelled.
        congestion: float64[nx, ny], expected spikes/s through each router if spikes took every
            shortest path, at each step either open axis with probability 1/2 (unicast).
        locality: cores inside or on the convex hull of an axon's cores, mean over axons.
        weighted_locality: the same, weighted by rate.
        unsourced_spikes_s: weight of h-edges without a source on the chip, not in the loads.
    """

    origin: tuple[int, int]
    unicast: Routing
    multicast: Routing
    off_chip: Array
    hop_spikes: Array
    congestion: Array
    locality: float
    weighted_locality: float
    unsourced_spikes_s: float

    def routing(self, model: str) -> Routing:
        """The routing of that name."""
        return {"unicast": self.unicast, "multicast": self.multicast}[model]

    def links(self) -> dict[str, Array]:
        """Columns of all links in use (by unicast loads or multicast loads), in order.

        Returns:
            ``x``, ``y`` (int64, global router), ``direction`` (str), ``off_chip`` (bool),
            ``unicast_spikes_s``, ``multicast_spikes_s`` (float64), each of length n_links.
        """
        used = (self.unicast.link_loads > 0) | (self.multicast.link_loads > 0)
        x, y, direction = (a.ravel() for a in np.nonzero(used.transpose(1, 2, 0)))
        at = (direction, x, y)
        return {
            "x": x + self.origin[0],
            "y": y + self.origin[1],
            "direction": np.array(DIRECTIONS)[direction],
            "off_chip": self.off_chip[at],
            "unicast_spikes_s": self.unicast.link_loads[at],
            "multicast_spikes_s": self.multicast.link_loads[at],
        }

    def hottest(self, n: int = 10, model: str = "multicast") -> list[tuple[int, int, str, float]]:
        """The busiest links: (router x, router y, direction, spikes/s), falling."""
        links = self.links()
        loads = links[f"{model}_spikes_s"]
        order = np.argsort(-loads, kind="stable")[:n]
        return [
            (int(links["x"][i]), int(links["y"][i]), str(links["direction"][i]), float(loads[i]))
            for i in order
            if loads[i] > 0
        ]

    def summary(self) -> dict[str, Any]:
        """Numbers without arrays, for JSON."""
        return {
            "unicast": self.unicast.summary(),
            "multicast": self.multicast.summary(),
            "congestion_mean_spikes_s": float(self.congestion.mean()),
            "congestion_max_spikes_s": float(self.congestion.max()),
            "locality_cores": self.locality,
            "weighted_locality_cores": self.weighted_locality,
            "unsourced_spikes_s": self.unsourced_spikes_s,
        }
