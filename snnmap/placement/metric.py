"""Distances between cores: routers, shortest routes and what their hops cost.

Cores share routers in tiles; routers form a mesh, a torus or a hex-torus (links to (+-1, 0),
(0, +-1) and +-(1, 1)) that spans all chips. A route is a vector (dx, dy) of router steps, never
longer than the shortest; a step that leaves a chip is a chip hop and is counted apart.

A placer minimises rate x cost of the route. Costs are small integers, so sums are exact:

    cost(axis) ~ (E_route + E_hop) / mean + (L_route + L_hop) / mean,

each term only where the profile has it: the first-order change of energy x latency.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any

import numpy as np

from snnmap.hardware import Costs, HardwareProfile

Array = np.ndarray[Any, Any]

RESOLUTION = 60
"""Integer cost of an average hop where hops differ (fractions down to 1/60 of a hop survive)."""

UNKNOWN_CHIP_HOP = 8
"""A chip hop of unknown cost counts as this many hops while placing; it is never reported."""


@dataclass(frozen=True)
class Metric:
    """Geometry and integer hop costs of one profile.

    Attributes:
        profile: the chip.
        cost_x, cost_y, cost_chip: integer cost of a hop along x (and diagonally), along y, and of
            one that leaves its chip.
    """

    profile: HardwareProfile
    cost_x: int
    cost_y: int
    cost_chip: int

    @classmethod
    def of(cls, profile: HardwareProfile) -> Metric:
        """The metric of a profile."""
        return cls(profile, *_integer_costs(profile.costs, several_chips=profile.n_chips > 1))

    @property
    def cost_hop(self) -> float:
        """Integer cost of an average hop inside a chip."""
        return (self.cost_x + self.cost_y) / 2

    @cached_property
    def is_hex(self) -> bool:
        """Whether diagonal links exist."""
        return self.profile.topology == "hex-torus"

    @cached_property
    def wraps(self) -> bool:
        """Whether the outer routers are linked to the opposite side."""
        return self.profile.topology != "mesh"

    @cached_property
    def routers(self) -> tuple[int, int]:
        """(columns, rows) of routers over all chips."""
        tile_x, tile_y = self.profile.tile
        return self.profile.grid_width // tile_x, self.profile.grid_height // tile_y

    @cached_property
    def chip_routers(self) -> tuple[int, int]:
        """(columns, rows) of routers of one chip."""
        tile_x, tile_y = self.profile.tile
        return self.profile.width // tile_x, self.profile.height // tile_y

    def router_of(self, cores: Array) -> Array:
        """int64[..., 2]: the router of each core int[..., 2]."""
        return np.asarray(np.asarray(cores, np.int64) // np.array(self.profile.tile))

    def vectors(self, sources: Array, targets: Array) -> Array:
        """int64[n, 2]: router steps of a shortest route; on a tie the positive direction.

        Args:
            sources: int[n, 2] routers.
            targets: int[n, 2] routers.
        """
        steps = np.asarray(targets, np.int64) - np.asarray(sources, np.int64)
        if not self.wraps:
            return steps
        size = np.array(self.routers)
        ahead = steps % size
        if not self.is_hex:
            return np.asarray(np.where(2 * ahead <= size, ahead, ahead - size))
        choices = np.stack([ahead - size * wrap for wrap in ([0, 0], [1, 0], [0, 1], [1, 1])])
        shortest = hex_length(choices).argmin(axis=0)
        return np.asarray(choices[shortest, np.arange(len(shortest))])

    def hops(self, sources: Array, targets: Array) -> Array:
        """int64[n, 3]: hops inside chips along x or diagonally, along y, and between chips.

        Args:
            sources: int[n, 2] routers.
            targets: int[n, 2] routers.
        """
        steps = self.vectors(sources, targets)
        if not self.is_hex:
            crossings = np.stack(
                [self._crossings(sources[:, axis], steps[:, axis], axis) for axis in (0, 1)], axis=1
            )
            inside = np.abs(steps) - crossings
            return np.stack([inside[:, 0], inside[:, 1], crossings.sum(axis=1)], axis=1)
        first, second = hex_legs(steps)
        counts = np.zeros((len(steps), 3), np.int64)
        at = np.array(sources, np.int64)
        for leg in (first, second):
            length = np.abs(leg).max(axis=1)
            chips = np.zeros(len(steps), np.int64)
            several = self.profile.n_chips > 1
            for step in range(int(length.max(initial=0)) if several else 0):
                going = length > step
                after = at + np.sign(leg) * going[:, None]
                chips += going & (self.chip_of_router(at) != self.chip_of_router(after)).any(axis=1)
                at = after
            along_y = leg[:, 0] == 0
            counts[:, 2] += chips
            counts[:, 1] += np.where(along_y, length - chips, 0)
            counts[:, 0] += np.where(along_y, 0, length - chips)
        return counts

    def cost(self, sources: Array, targets: Array) -> Array:
        """int64[n]: integer cost of the routes between routers int[n, 2]."""
        costs = np.array([self.cost_x, self.cost_y, self.cost_chip])
        return np.asarray(self.hops(sources, targets) @ costs)

    def axis_table(self, coordinates: Array, axis: int) -> Array:
        """int64[n, n]: cost along one axis between core columns (0) or rows (1); not for hex.

        Ways there and back may differ on a torus of several chips; the table holds their mean.
        """
        routers = np.zeros((len(coordinates), 2), np.int64)
        routers[:, axis] = np.asarray(coordinates, np.int64) // self.profile.tile[axis]
        n = len(routers)
        table = self.cost(np.repeat(routers, n, axis=0), np.tile(routers, (n, 1))).reshape(n, n)
        return both_ways(table)

    def chip_of_router(self, routers: Array) -> Array:
        """int64[..., 2]: the chip of each router int[..., 2] (beyond the edge: wrapped around)."""
        return np.asarray((routers % np.array(self.routers)) // np.array(self.chip_routers))

    def _crossings(self, sources: Array, steps: Array, axis: int) -> Array:
        """Chip borders between routers ``sources`` and ``sources + steps`` of one axis."""
        if self.profile.chips[axis] == 1:
            return np.zeros(len(steps), np.int64)
        per_chip = self.chip_routers[axis]
        sources = np.asarray(sources, np.int64)
        return np.asarray(np.abs((sources + steps) // per_chip - sources // per_chip))


def both_ways(table: Array) -> Array:
    """int64[n, n]: the mean of a table and its transpose, rounded up: a symmetric distance."""
    return np.asarray((table + table.T + 1) // 2)


def hex_length(steps: Array) -> Array:
    """int64[...]: hops of a vector [..., 2] on a grid with links along x, y and (1, 1)."""
    x, y = steps[..., 0], steps[..., 1]
    return np.where(x * y > 0, np.maximum(np.abs(x), np.abs(y)), np.abs(x) + np.abs(y))


def hex_legs(steps: Array) -> tuple[Array, Array]:
    """The two straight runs of each route: diagonal then axis, or x then y; each int64[n, 2]."""
    x, y = steps[:, 0], steps[:, 1]
    diagonal = np.where(x * y > 0, np.minimum(np.abs(x), np.abs(y)), 0)
    bent = (x * y < 0)[:, None]
    first = np.stack([np.sign(x) * diagonal, np.sign(y) * diagonal], axis=1)
    first = np.where(bent, np.stack([x, np.zeros_like(x)], axis=1), first)
    return first, steps - first


def _integer_costs(costs: Costs, *, several_chips: bool) -> tuple[int, int, int]:
    terms = []
    for route, hop_x, hop_y, chip in (
        (
            costs.route_energy_pj,
            costs.hop_energy_x_pj,
            costs.hop_energy_y_pj,
            costs.chip_hop_energy_pj,
        ),
        (
            costs.route_latency_ns,
            costs.hop_latency_x_ns,
            costs.hop_latency_y_ns,
            costs.chip_hop_latency_ns,
        ),
    ):
        if hop_x is None or hop_y is None:
            continue
        x, y = (route or 0.0) + hop_x, (route or 0.0) + hop_y
        mean = (x + y) / 2
        if mean > 0:
            far = UNKNOWN_CHIP_HOP if chip is None else ((route or 0.0) + chip) / mean
            terms.append((x / mean, y / mean, far if several_chips else x / mean))
    if not terms:
        return 1, 1, UNKNOWN_CHIP_HOP
    average = np.mean(terms, axis=0)
    scaled = [max(1, round(float(c) * RESOLUTION)) for c in average]
    common = gcd(*scaled)
    return scaled[0] // common, scaled[1] // common, scaled[2] // common
