"""Expected congestion over all shortest paths, and locality, against their definitions."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from snnmap.hardware import HardwareProfile
from snnmap.hypergraph import Hypergraph
from snnmap.traffic import measure_traffic
from tests.placement.chips import mesh
from tests.small import from_rows, to_rows
from tests.traffic.hop_by_hop import NAMES, fewest_hops
from tests.traffic.test_measure import placed, placements

Router = tuple[int, int]


def visits(profile: HardwareProfile, start: Router, end: Router) -> dict[Router, Fraction]:
    """Probability of passing each router: split evenly over the steps that come nearer.

    Only right where shortest routes do not tie around a torus.
    """
    width = profile.grid_width // profile.tile[0]
    height = profile.grid_height // profile.tile[1]
    moves = list(NAMES)[: 6 if profile.topology == "hex-torus" else 4]
    front, passed = {start: Fraction(1)}, {start: Fraction(1)}
    for left in range(fewest_hops(profile, start, end), 0, -1):
        reached: dict[Router, Fraction] = defaultdict(Fraction)
        for at, share in front.items():
            nearer = []
            for dx, dy in moves:
                there = (at[0] + dx, at[1] + dy)
                if profile.topology != "mesh":
                    there = (there[0] % width, there[1] % height)
                if not (0 <= there[0] < width and 0 <= there[1] < height):
                    continue
                if fewest_hops(profile, there, end) == left - 1:
                    nearer.append(there)
            for there in nearer:
                reached[there] += share / len(nearer)
        front = reached
        for at, share in front.items():
            passed[at] = passed.get(at, Fraction(0)) + share
    return passed


@pytest.mark.parametrize("topology", ["mesh", "torus", "hex-torus"])
@pytest.mark.parametrize("end", [(4, 5), (2, 5), (2, 1), (4, 1), (3, 5), (3, 1), (1, 3), (5, 3)])
def test_every_quadrant(topology: str, end: Router) -> None:
    """From the middle (3, 3) of a 7 x 7 grid no shortest route is tied around a torus."""
    profile = mesh(7, 7, topology=topology)
    graph = from_rows(2, [([0], [1], 1.0)])
    report = measure_traffic(graph, placed([(3, 3), end]), profile)
    expected = {at: float(share) for at, share in visits(profile, (3, 3), end).items()}
    x, y = np.nonzero(report.congestion)
    found = {
        (int(i) + report.origin[0], int(j) + report.origin[1]): float(report.congestion[i, j])
        for i, j in zip(x, y, strict=True)
    }
    assert found == pytest.approx(expected)


@given(placements())
@settings(deadline=None)
def test_mean_is_the_sum_of_rate_times_hops_plus_one(
    case: tuple[Hypergraph, list[tuple[int, int]], HardwareProfile],
) -> None:
    graph, cores, profile = case
    report = measure_traffic(graph, placed(cores), profile)
    assert report.congestion.sum() == pytest.approx(report.unicast.router_loads.sum())
    assert (report.congestion >= 0).all()


def in_hull(points: list[Router], at: Router) -> bool:
    """No line through `at` has all points strictly on one side: checked over all directions."""
    if at in points:
        return True
    away = [(x - at[0], y - at[1]) for x, y in points]
    for a in away:
        for normal in ((-a[1], a[0]), (a[1], -a[0]), a):
            sides = [normal[0] * x + normal[1] * y for x, y in away]
            if all(side > 0 for side in sides):
                return False
            # points on the line through `at` count only if they lie on both sides of it
            on_line = [v for v, side in zip(away, sides, strict=True) if side == 0]
            if all(side >= 0 for side in sides) and on_line:
                along = [normal[1] * x - normal[0] * y for x, y in on_line]
                if all(t > 0 for t in along) or all(t < 0 for t in along):
                    return False
    return True


@given(placements())
@settings(deadline=None, max_examples=60)
def test_locality_counts_cores_in_the_hull(
    case: tuple[Hypergraph, list[tuple[int, int]], HardwareProfile],
) -> None:
    graph, cores, profile = case
    report = measure_traffic(graph, placed(cores), profile)
    grid = [(x, y) for x in range(profile.grid_width) for y in range(profile.grid_height)]
    counts, weights = [], []
    for sources, destinations, weight in to_rows(graph):
        points = sorted({cores[p] for p in [*sources, *destinations]})
        counts.append(sum(in_hull(points, at) for at in grid) if points else 0)
        weights.append(weight)
    if counts:
        assert report.locality == pytest.approx(np.mean(counts))
        if sum(weights) > 0:
            assert report.weighted_locality == pytest.approx(np.average(counts, weights=weights))
