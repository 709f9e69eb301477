"""A slow twin of the traffic report: every spike is walked from its source, link by link.

Written from the text of the routing rules alone; shares no code with `snnmap`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import product

from snnmap.hardware import HardwareProfile
from snnmap.hypergraph import Hypergraph
from tests.small import to_rows

Router = tuple[int, int]
NAMES = {
    (1, 0): "east",
    (-1, 0): "west",
    (0, 1): "north",
    (0, -1): "south",
    (1, 1): "northeast",
    (-1, -1): "southwest",
}


def route(profile: HardwareProfile, start: Router, end: Router) -> list[Router]:
    """The steps of a spike from router to router."""
    width = profile.grid_width // profile.tile[0]
    height = profile.grid_height // profile.tile[1]
    dx, dy = end[0] - start[0], end[1] - start[1]
    if profile.topology == "mesh":
        return [(_sign(dx), 0)] * abs(dx) + [(0, _sign(dy))] * abs(dy)
    dx, dy = dx % width, dy % height
    if profile.topology == "torus":
        dx = dx if dx <= width - dx else dx - width
        dy = dy if dy <= height - dy else dy - height
        return [(_sign(dx), 0)] * abs(dx) + [(0, _sign(dy))] * abs(dy)
    candidates = [(dx, dy), (dx - width, dy), (dx, dy - height), (dx - width, dy - height)]
    return min((_hex_steps(x, y) for x, y in candidates), key=len)


def _hex_steps(x: int, y: int) -> list[Router]:
    steps = []
    while x * y > 0:
        steps.append((_sign(x), _sign(y)))
        x, y = x - _sign(x), y - _sign(y)
    return steps + [(_sign(x), 0)] * abs(x) + [(0, _sign(y))] * abs(y)


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


def fewest_hops(profile: HardwareProfile, start: Router, end: Router) -> int:
    """Breadth-first distance between routers over existing links."""
    width = profile.grid_width // profile.tile[0]
    height = profile.grid_height // profile.tile[1]
    moves = list(NAMES) if profile.topology == "hex-torus" else list(NAMES)[:4]
    front, seen, hops = {start}, {start}, 0
    while end not in seen:
        hops += 1
        reached = set()
        for (x, y), (dx, dy) in product(front, moves):
            to = (x + dx, y + dy)
            if profile.topology != "mesh":
                to = (to[0] % width, to[1] % height)
            if 0 <= to[0] < width and 0 <= to[1] < height:
                reached.add(to)
        front = reached - seen
        seen |= front
    return hops


@dataclass
class Walked:
    """Sums over all spikes, by router and link."""

    links: dict[tuple[int, int, str], float] = field(default_factory=lambda: defaultdict(float))
    off_chip: dict[tuple[int, int, str], bool] = field(default_factory=dict)
    routers: dict[Router, float] = field(default_factory=lambda: defaultdict(float))
    injected: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    delivered: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    energy_pj: float = 0.0
    latency_sum: float = 0.0
    latency_max: float = 0.0
    spikes: float = 0.0


def walk_all(
    part_graph: Hypergraph,
    cores: list[tuple[int, int]],
    profile: HardwareProfile,
    *,
    multicast: bool,
) -> Walked:
    """Walk every h-edge's spikes; a multicast spike takes no link twice."""
    sums = Walked()
    for sources, destinations, weight in to_rows(part_graph):
        for source in sources:
            taken: set[object] = set()
            if multicast and destinations:
                sums.injected[source] += weight
            for target in destinations:
                if not multicast:
                    taken = set()
                    sums.injected[source] += weight
                _walk(sums, taken, profile, cores[source], cores[target], weight)
                sums.delivered[target] += weight
                sums.spikes += weight
    return sums


def _walk(
    sums: Walked,
    taken: set[object],
    profile: HardwareProfile,
    source: tuple[int, int],
    target: tuple[int, int],
    weight: float,
) -> None:
    costs = profile.costs
    at, end = profile.router_of(*source), profile.router_of(*target)
    size = (profile.grid_width // profile.tile[0], profile.grid_height // profile.tile[1])
    latency = costs.route_latency_ns
    if at not in taken:
        taken.add(at)
        sums.routers[at] += weight
        sums.energy_pj += weight * costs.route_energy_pj
    for step in route(profile, at, end):
        link = (*at, NAMES[step])
        there = ((at[0] + step[0]) % size[0], (at[1] + step[1]) % size[1])
        energy, delay = _hop(profile, at, there, step)
        latency += delay + costs.route_latency_ns
        if link not in taken:
            taken.add(link)
            sums.links[link] += weight
            sums.off_chip[link] = _chip(profile, at) != _chip(profile, there)
            sums.energy_pj += weight * energy
        if there not in taken:
            taken.add(there)
            sums.routers[there] += weight
            sums.energy_pj += weight * costs.route_energy_pj
        at = there
    assert at == end
    sums.latency_sum += weight * latency
    if weight > 0:
        sums.latency_max = max(sums.latency_max, latency)


def _chip(profile: HardwareProfile, router: Router) -> tuple[int, int]:
    return profile.chip_of(router[0] * profile.tile[0], router[1] * profile.tile[1])


def _hop(profile: HardwareProfile, at: Router, there: Router, step: Router) -> tuple[float, float]:
    costs = profile.costs
    if _chip(profile, at) != _chip(profile, there):
        return costs.chip_hop_energy_pj, costs.chip_hop_latency_ns
    if step[0]:
        return costs.hop_energy_x_pj, costs.hop_latency_x_ns
    return costs.hop_energy_y_pj, costs.hop_latency_y_ns
