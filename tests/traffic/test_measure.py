"""Traffic against a slow simulator that walks each spike hop by hop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.errors import InputError
from snnmap.hardware import Costs, HardwareProfile
from snnmap.hypergraph import Hypergraph
from snnmap.placement import Placement
from snnmap.traffic import TrafficReport, measure_traffic
from tests.placement.chips import mesh, profiles
from tests.small import from_rows
from tests.strategies import hedge_rows
from tests.traffic.hop_by_hop import fewest_hops, route, walk_all


def placed(cores: list[tuple[int, int]]) -> Placement:
    return Placement(np.array(cores, np.int32).reshape(-1, 2), "by hand")


@st.composite
def placements(draw: st.DrawFn) -> tuple[Hypergraph, list[tuple[int, int]], HardwareProfile]:
    profile = draw(profiles())
    every = [
        (x, y)
        for x in range(profile.grid_width)
        for y in range(profile.grid_height)
        if profile.is_usable(x, y)
    ]
    cores = draw(st.lists(st.sampled_from(every), unique=True, min_size=1, max_size=8))
    weight = st.sampled_from([0.0, 1.0, 2.5, 7.0, 1e3])
    graph = from_rows(len(cores), draw(hedge_rows(n_nodes=len(cores), weight=weight)))
    return graph, cores, profile


def loads_of(report: TrafficReport, model: str) -> dict[tuple[int, int, str], float]:
    links = report.links()
    rows = zip(links["x"], links["y"], links["direction"], links[f"{model}_spikes_s"], strict=True)
    return {(int(x), int(y), str(d)): float(load) for x, y, d, load in rows if load > 0}


@given(placements(), st.sampled_from(["unicast", "multicast"]))
@settings(deadline=None, max_examples=150)
def test_report_equals_walking_every_spike(
    case: tuple[Hypergraph, list[tuple[int, int]], HardwareProfile], model: str
) -> None:
    graph, cores, profile = case
    report = measure_traffic(graph, placed(cores), profile)
    routing = report.routing(model)
    slow = walk_all(graph, cores, profile, multicast=model == "multicast")

    assert loads_of(report, model) == pytest.approx({k: v for k, v in slow.links.items() if v > 0})
    x, y = np.nonzero(routing.router_loads)
    routers = {
        (int(i) + report.origin[0], int(j) + report.origin[1]): routing.router_loads[i, j]
        for i, j in zip(x, y, strict=True)
    }
    assert routers == pytest.approx({k: v for k, v in slow.routers.items() if v > 0})
    for part in range(len(cores)):
        assert routing.injected[part] == pytest.approx(slow.injected[part])
        assert routing.delivered[part] == pytest.approx(slow.delivered[part])
    assert routing.energy_pj == pytest.approx(slow.energy_pj)
    if slow.spikes:
        assert routing.mean_latency_ns == pytest.approx(slow.latency_sum / slow.spikes)
    assert routing.max_latency_ns == pytest.approx(slow.latency_max)
    assert routing.hops == pytest.approx(sum(slow.links.values()))
    crossing = sum(load for link, load in slow.links.items() if slow.off_chip[link])
    assert routing.off_chip_hops == pytest.approx(crossing)
    assert routing.conserved


@given(profiles(dead=False), st.data())
@settings(deadline=None)
def test_routes_are_shortest(profile: HardwareProfile, data: st.DataObject) -> None:
    router = st.tuples(
        st.integers(0, profile.grid_width // profile.tile[0] - 1),
        st.integers(0, profile.grid_height // profile.tile[1] - 1),
    )
    start, end = data.draw(router), data.draw(router)
    assert len(route(profile, start, end)) == fewest_hops(profile, start, end)


def test_multicast_shares_links() -> None:
    graph = from_rows(4, [([0], [1, 2, 3], 10.0)])
    report = measure_traffic(graph, placed([(0, 0), (2, 1), (2, 3), (1, 0)]), mesh())
    assert report.unicast.hops == 10 * (3 + 5 + 1)
    assert report.multicast.hops == 10 * (2 + 3)
    assert report.multicast.router_loads.sum() == 10 * 6
    assert report.hottest(1, "unicast") == [(0, 0, "east", 30.0)]
    assert report.unicast.max_link_share == pytest.approx(0.03)


def test_cost_of_one_spike_by_hand() -> None:
    graph = from_rows(2, [([0], [0, 1], 1.0)])
    report = measure_traffic(graph, placed([(0, 0), (2, 1)]), mesh())
    assert report.unicast.energy_pj == pytest.approx((1 * 1.7) + (4 * 1.7 + 3 * 3.5))
    assert report.unicast.mean_latency_ns == pytest.approx((2.1 + (4 * 2.1 + 3 * 5.3)) / 2)
    assert report.multicast.energy_pj == pytest.approx(4 * 1.7 + 3 * 3.5)
    assert report.hop_spikes.tolist() == [1, 0, 0, 1]


def test_unknown_costs_stay_unknown() -> None:
    graph = from_rows(2, [([0], [1], 1.0)])
    report = measure_traffic(graph, placed([(0, 0), (2, 1)]), mesh(costs=Costs()))
    summary = report.summary()["unicast"]
    assert summary["energy_pj"] is None
    assert summary["mean_latency_ns"] is None
    assert summary["max_link_share"] is None
    assert summary["hops_spikes_s"] == 3.0


def test_unknown_chip_cost_matters_only_where_spikes_leave_a_chip() -> None:
    graph = from_rows(2, [([0], [1], 1.0)])
    costs = Costs(route_energy_pj=1.0, hop_energy_x_pj=2.0, hop_energy_y_pj=2.0)
    chips = mesh(2, 2, chips=(2, 1), costs=costs)
    inside = measure_traffic(graph, placed([(0, 0), (1, 1)]), chips)
    across = measure_traffic(graph, placed([(1, 0), (2, 0)]), chips)
    assert inside.unicast.energy_pj == pytest.approx(3 * 1 + 2 * 2)
    assert across.unicast.energy_pj is None
    assert across.unicast.off_chip_hops == 1.0


def test_sourceless_hedges_are_counted_apart() -> None:
    graph = from_rows(2, [([], [0, 1], 4.0), ([0], [1], 1.0)])
    report = measure_traffic(graph, placed([(0, 0), (1, 0)]), mesh())
    assert report.unsourced_spikes_s == 4.0
    assert report.unicast.hops == 1.0


@pytest.mark.parametrize("n_parts", [0, 1])
def test_nothing_travels(n_parts: int) -> None:
    graph = from_rows(n_parts, [])
    report = measure_traffic(graph, placed([(3, 3)][:n_parts]), mesh())
    assert report.unicast.energy_pj == 0.0
    assert report.multicast.max_latency_ns == 0.0
    assert report.unicast.conserved
    assert report.hottest() == []


def test_result_does_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    n = 60
    graph = Hypergraph.from_hedges(
        n,
        rng.integers(0, n, 9000),
        np.arange(9001) * 5,
        rng.integers(0, n, 45000),
        rng.lognormal(size=9000),
    )
    cores = placed([(i % 8, i // 8) for i in range(n)])
    reports = []
    for threads in ("1", "4"):
        monkeypatch.setenv("SNNMAP_NUM_THREADS", threads)
        reports.append(measure_traffic(graph, cores, mesh(8, 8)))
    for model in ("unicast", "multicast"):
        a, b = (r.routing(model) for r in reports)
        assert np.array_equal(a.link_loads, b.link_loads)
        assert np.array_equal(a.router_loads, b.router_loads)


def test_wrong_placements_are_refused() -> None:
    graph = from_rows(2, [([0], [1], 1.0)])
    with pytest.raises(InputError, match="1 cores for 2 parts"):
        measure_traffic(graph, placed([(0, 0)]), mesh())
    with pytest.raises(InputError, match=r"part 1 is on core \(4, 0\), outside the grid of 4x4"):
        measure_traffic(graph, placed([(0, 0), (4, 0)]), mesh())


@pytest.mark.parametrize("weight", [1e-300, 1e-12, 1e12, 1e300])
def test_extreme_weights(weight: float) -> None:
    graph = from_rows(2, [([0], [1], weight)])
    report = measure_traffic(graph, placed([(0, 0), (1, 0)]), mesh())
    assert report.unicast.hops == pytest.approx(weight, rel=1e-12)


def test_an_axon_to_nowhere_does_not_disturb() -> None:
    """Its rate may exceed all that travels by any factor."""
    graph = from_rows(2, [([0], [], 1e30), ([0], [1], 1e-30)])
    report = measure_traffic(graph, placed([(0, 0), (1, 0)]), mesh())
    assert report.multicast.hops == pytest.approx(1e-30)
    assert report.multicast.injected.tolist() == [pytest.approx(1e-30), 0.0]


def test_weights_whose_sum_overflows_are_refused() -> None:
    graph = from_rows(2, [([0], [1], 1.7e308), ([1], [0], 1.7e308)])
    with pytest.raises(InputError, match="not a finite number"):
        measure_traffic(graph, placed([(0, 0), (1, 0)]), mesh())
