"""The simulation of queues against analytic loads, latencies and queueing theory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.errors import ConfigError
from snnmap.hardware import Costs, HardwareProfile
from snnmap.hypergraph import Hypergraph
from snnmap.traffic import Spikes, measure_traffic, poisson_spikes, recorded_spikes, simulate
from tests.placement.chips import UNIFORM, mesh
from tests.small import from_rows
from tests.traffic.test_measure import placed, placements

PS_PER_S = 10**12


def one_each(graph: Hypergraph, gap_ps: int = 10**10) -> Spikes:
    """Every source of every h-edge fires once, far apart in time."""
    n = len(graph.sources)
    return Spikes(np.arange(n) * gap_ps, np.arange(n), max(1, n) * gap_ps, max(1, n))


@given(placements(), st.sampled_from(["unicast", "multicast"]))
@settings(deadline=None, max_examples=100)
def test_lonely_spikes_follow_the_analytic_routes(
    case: tuple[Hypergraph, list[tuple[int, int]], HardwareProfile], model: str
) -> None:
    graph, cores, profile = case
    if model == "unicast":  # the copies of one spike would wait for each other
        profile = replace(profile, costs=replace(profile.costs, link_bandwidth_spikes_s=None))
    ones = Hypergraph.from_groups(
        graph.n_nodes,
        graph.group_offsets,
        graph.destinations,
        graph.hedge_groups,
        graph.sources,
        np.ones(graph.n_hedges),
        source_offsets=graph.source_offsets,
    )
    report = measure_traffic(ones, placed(cores), profile)
    found = simulate(ones, placed(cores), profile, one_each(ones), model=model)
    routing = report.routing(model)
    assert found.n_dropped == 0
    assert found.n_delivered == round(routing.delivered.sum())
    assert found.waits_ns == 0
    assert np.array_equal(found.link_counts.sum(axis=0), np.rint(routing.link_loads))
    if found.n_delivered:
        assert found.latencies_ns.mean() == pytest.approx(routing.mean_latency_ns)
        assert found.latencies_ns[-1] == pytest.approx(routing.max_latency_ns)


def test_poisson_loads_approach_the_analytic_ones() -> None:
    rng = np.random.default_rng(1)
    rows = [([i], rng.choice(16, 4).tolist(), float(200 * rng.lognormal())) for i in range(16)]
    graph = from_rows(16, rows)
    cores = placed([(i % 4, i // 4) for i in range(16)])
    profile = mesh(costs=Costs(1, 1, 1, 2.1, 5.3, 5.3, link_bandwidth_spikes_s=1e9))
    spikes = poisson_spikes(graph, 20_000, seed=5)
    report = simulate(graph, cores, profile, spikes)
    analytic = measure_traffic(graph, cores, profile).multicast
    seconds = 20
    deviation = np.abs(report.link_loads - analytic.link_loads) * seconds
    assert (deviation <= 5 * np.sqrt(analytic.link_loads * seconds) + 1e-9).all()
    assert report.latencies_ns.mean() == pytest.approx(analytic.mean_latency_ns, rel=0.01)


@pytest.mark.parametrize("load", [0.3, 0.7, 0.9])
def test_one_link_waits_like_an_m_d_1_queue(load: float) -> None:
    """Mean wait of Poisson arrivals at a server of fixed time s: load * s / 2 (1 - load)."""
    bandwidth = 1e6
    graph = from_rows(2, [([0], [1], load * bandwidth)])
    spikes = poisson_spikes(graph, 400, seed=3)
    report = simulate(graph, placed([(0, 0), (1, 0)]), mesh(), spikes, bandwidth_spikes_s=bandwidth)
    wait_ns = report.waits_ns / report.n_spikes
    assert wait_ns == pytest.approx(1e9 / bandwidth * load / (2 * (1 - load)), rel=0.1)
    used = report.utilisation
    assert used is not None
    assert used[:, 1].mean() == pytest.approx(load, rel=0.02)


def test_two_spikes_meet() -> None:
    """The second waits for the first on the shared link, in order of arrival."""
    graph = from_rows(3, [([0], [2], 1.0), ([1], [2], 1.0)])
    profile = mesh(costs=Costs(0, 0, 0, 10.0, 3.0, 3.0))
    spikes = Spikes(np.array([0, 0]), np.array([0, 1]), 10**9, 1)
    where = placed([(0, 0), (1, 0), (2, 0)])
    free = simulate(graph, where, profile, spikes)
    assert free.latencies_ns.tolist() == [23.0, 36.0]
    # both leave (1, 0) eastwards: spike 1 at 10 ns, spike 0 at 23 ns; the link takes 20 ns for one
    busy = simulate(graph, where, profile, spikes, bandwidth_spikes_s=50e6)
    assert busy.latencies_ns.tolist() == [23.0, 43.0]
    assert busy.waits_ns == 7.0
    assert busy.max_waiting == 1
    assert busy.busiest(1)[0][:3] == (1, 0, "east")
    assert busy.drained_ns == 43.0


def test_full_buffers_drop_whole_subtrees() -> None:
    """Three spikes at once: one goes, one waits, the third and its two destinations are lost."""
    graph = from_rows(3, [([0], [1, 2], 1.0)])
    spikes = Spikes(np.array([0, 0, 0]), np.zeros(3, np.int64), 10**9, 1)
    where = placed([(0, 0), (1, 0), (2, 0)])
    report = simulate(graph, where, mesh(), spikes, bandwidth_spikes_s=1e6, buffer=1)
    assert (report.n_delivered, report.n_dropped) == (4, 2)
    endless = simulate(graph, where, mesh(), spikes, bandwidth_spikes_s=1e6)
    assert (endless.n_delivered, endless.n_dropped) == (6, 0)


@given(placements(), st.integers(0, 2), st.integers(0, 5))
@settings(deadline=None, max_examples=50)
def test_nothing_is_lost_unseen(
    case: tuple[Hypergraph, list[tuple[int, int]], HardwareProfile], buffer: int, seed: int
) -> None:
    graph, cores, profile = case
    spikes = poisson_spikes(graph, 20, rate_scale=10, arrivals="burst", seed=seed)
    report = simulate(graph, placed(cores), profile, spikes, bandwidth_spikes_s=1e5, buffer=buffer)
    fan_out = np.repeat(
        np.diff(graph.group_offsets)[graph.hedge_groups], np.diff(graph.source_offsets)
    )
    assert report.n_delivered + report.n_dropped == fan_out[spikes.streams].sum()
    assert report.max_waiting <= buffer + 1
    again = simulate(graph, placed(cores), profile, spikes, bandwidth_spikes_s=1e5, buffer=buffer)
    assert np.array_equal(report.latencies_ns, again.latencies_ns)
    assert np.array_equal(report.link_counts, again.link_counts)


@pytest.mark.parametrize(("target", "known"), [(1, True), (2, False)])
def test_an_unknown_latency_matters_where_spikes_pass(target: int, known: bool) -> None:
    """Hops between chips have none here, and part 2 is alone on the second chip."""
    graph = from_rows(3, [([0], [target], 5000.0)])
    profile = mesh(chips=(2, 1), costs=replace(UNIFORM, chip_hop_latency_ns=None))
    cores = [(3, 0), (2, 0), (4, 0)]
    report = simulate(graph, placed(cores), profile, poisson_spikes(graph, 10))
    assert report.n_delivered > 0
    assert report.has_latency is known


def test_unknown_costs_leave_only_waiting() -> None:
    graph = from_rows(2, [([0], [1], 5000.0)])
    report = simulate(
        graph, placed([(0, 0), (1, 0)]), mesh(costs=Costs()), poisson_spikes(graph, 10)
    )
    assert not report.has_latency
    assert report.utilisation is None
    assert report.summary()["max_latency_ns"] == 0.0
    assert report.summary()["max_link_share"] is None


def test_poisson_spikes_have_the_rates_of_their_axons() -> None:
    graph = from_rows(3, [([0, 1], [2], 50.0), ([2], [0], 5.0), ([], [1], 9.0)])
    spikes = poisson_spikes(graph, 100_000, seed=2)
    counts = np.bincount(spikes.streams, minlength=3)
    assert np.allclose(counts / 100, [50, 50, 5], rtol=0.06)
    assert (np.diff(spikes.times_ps) >= 0).all()
    assert spikes.duration_ps == 100 * PS_PER_S
    burst = poisson_spikes(graph, 50, arrivals="burst", seed=2)
    assert (burst.times_ps % 10**9 == 0).all()


def test_recorded_spikes() -> None:
    streams = (np.array([0, 1, 3]), np.array([7, 8, 9]))  # neuron 0: stream 7, neuron 1: 8 and 9
    spikes = recorded_spikes(np.array([2.5, 0.5, 1.0]), np.array([1, 0, 1]), streams)
    assert spikes.streams.tolist() == [7, 8, 9, 8, 9]
    assert spikes.times_ps.tolist() == [5 * 10**8, 10**9, 10**9, 25 * 10**8, 25 * 10**8]
    assert spikes.n_steps == 3
    for step in (0.0, -1.0, np.nan):
        with pytest.raises(ConfigError, match="time step of"):
            recorded_spikes(np.array([1.0]), np.array([0]), streams, timestep_ms=step)


def test_wrong_settings_are_refused() -> None:
    graph = from_rows(2, [([0], [1], 1e9)])
    where = placed([(0, 0), (1, 0)])
    for wrong, message in (
        ({"n_steps": 0}, "timesteps is 0"),
        ({"n_steps": 5, "timestep_ms": 0.0}, "time step of 0.0 ms"),
        ({"n_steps": 5, "rate_scale": -1.0}, "rate scale is -1.0"),
        ({"n_steps": 5, "arrivals": "late"}, "unknown arrivals 'late'"),
        ({"n_steps": 10**6}, "spikes in 1000000 time steps are more than"),
    ):
        with pytest.raises(ConfigError, match=message):
            poisson_spikes(graph, **wrong)
    spikes = Spikes(np.array([0]), np.array([0]), 10**9, 1)
    for settings_, message in (
        ({"model": "broadcast"}, "unknown model 'broadcast'"),
        ({"buffer": -1}, "buffer is -1"),
        ({"bandwidth_spikes_s": -5.0}, "link bandwidth is -5.0"),
    ):
        with pytest.raises(ConfigError, match=message):
            simulate(graph, where, mesh(), spikes, **settings_)
