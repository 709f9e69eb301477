"""Distances of the metric against routes found step by step."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.hardware import Costs, HardwareProfile
from snnmap.placement.metric import RESOLUTION, UNKNOWN_CHIP_HOP, Metric
from tests.placement.chips import SKEWED, mesh, profiles
from tests.traffic.hop_by_hop import _chip, route


@given(profiles(dead=False), st.data())
@settings(deadline=None)
def test_hops_follow_the_route(profile: HardwareProfile, data: st.DataObject) -> None:
    metric = Metric.of(profile)
    width, height = metric.routers
    router = st.tuples(st.integers(0, width - 1), st.integers(0, height - 1))
    start, end = data.draw(router), data.draw(router)
    expected, at = [0, 0, 0], start
    for step in route(profile, start, end):
        there = ((at[0] + step[0]) % width, (at[1] + step[1]) % height)
        if _chip(profile, at) != _chip(profile, there):
            expected[2] += 1
        else:
            expected[0 if step[0] else 1] += 1
        at = there
    assert metric.hops(np.array([start]), np.array([end]))[0].tolist() == expected
    costs = [metric.cost_x, metric.cost_y, metric.cost_chip]
    assert metric.cost(np.array([start]), np.array([end]))[0] == np.dot(expected, costs)


def test_equal_hops_cost_one() -> None:
    metric = Metric.of(mesh(costs=Costs()))
    assert (metric.cost_x, metric.cost_y, metric.cost_chip) == (1, 1, UNKNOWN_CHIP_HOP)
    metric = Metric.of(mesh(costs=Costs(hop_energy_x_pj=0.1, hop_energy_y_pj=0.1), chips=(2, 1)))
    assert (metric.cost_x, metric.cost_y, metric.cost_chip) == (1, 1, UNKNOWN_CHIP_HOP)
    metric = Metric.of(mesh())  # there is no link to another chip whose cost could matter
    assert (metric.cost_x, metric.cost_y) == (1, 1)


def test_costs_keep_their_ratio() -> None:
    metric = Metric.of(mesh(costs=SKEWED, chips=(2, 2)))
    x = (4 / 4.5 + 6 / 7.25) / 2
    y = (5 / 4.5 + 8.5 / 7.25) / 2
    chip = (21 / 4.5 + 52 / 7.25) / 2
    assert abs(metric.cost_x / metric.cost_y - x / y) < 2 / RESOLUTION
    assert abs(metric.cost_chip / metric.cost_x - chip / x) < 4 / RESOLUTION


@given(profiles(dead=False))
@settings(deadline=None)
def test_axis_tables_add_up_to_the_mean_of_both_ways(profile: HardwareProfile) -> None:
    metric = Metric.of(profile)
    if metric.is_hex:
        return
    xs, ys = np.arange(profile.grid_width), np.arange(profile.grid_height)
    tables = metric.axis_table(xs, 0), metric.axis_table(ys, 1)
    x, y = (a.ravel() for a in np.meshgrid(xs, ys, indexing="ij"))
    routers = metric.router_of(np.stack([x, y], axis=1))
    i, j = (a.ravel() for a in np.meshgrid(np.arange(len(x)), np.arange(len(x)), indexing="ij"))
    both = metric.cost(routers[i], routers[j]) + metric.cost(routers[j], routers[i])
    total = tables[0][x[i], x[j]] + tables[1][y[i], y[j]]
    assert (np.abs(2 * total - both) <= 2).all()
