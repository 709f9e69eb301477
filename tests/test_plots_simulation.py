"""The figure of a simulation says what the report says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from snnmap.hardware import Costs
from snnmap.hypergraph import Hypergraph
from snnmap.placement import place
from snnmap.plots import simulation_figure, write_simulation_plot
from snnmap.traffic import SimulationReport, poisson_spikes, simulate
from tests.placement.chips import mesh
from tests.small import small


def report(
    n_steps: int = 200,
    graph: Hypergraph | None = None,
    costs: Costs | None = None,
    **settings: object,
) -> SimulationReport:
    graph = graph or small()
    profile = mesh(3, 3, costs=costs) if costs else mesh(3, 3)
    placement = place(graph, profile, placer="snake", refine="none")
    spikes = poisson_spikes(graph, n_steps, rate_scale=20.0)
    return simulate(graph, placement, profile, spikes, **settings)


def texts(figure: Figure) -> str:
    figure.draw_without_rendering()
    return "\n".join(t.get_text() for t in figure.findobj(lambda a: hasattr(a, "get_text")))


def test_bars_hold_every_delivery_and_every_link() -> None:
    found = report()
    figure = simulation_figure(found, "small on test")
    latencies, times, links = figure.axes
    assert sum(bar.get_height() for bar in latencies.patches[:60]) == found.n_delivered
    shown = [patch.get_data().values for patch in times.patches]
    assert found.utilisation is not None
    assert np.array_equal(shown[0], found.utilisation[:, 1])
    assert np.array_equal(shown[1], found.utilisation[:, 0])
    loads = links.patches[0].get_data().values
    assert loads.sum() == pytest.approx(found.link_loads.sum())
    assert (np.diff(loads) <= 0).all()
    words = texts(figure)
    assert f"small on test: {found.n_spikes:,} spikes in 200 time steps, multicast" in words
    assert "utilisation of links over time" in words
    assert "50% within" in words


def test_drops_and_waits_are_said() -> None:
    found = report(bandwidth_spikes_s=300.0, buffer=1)
    assert found.n_dropped > 0
    words = texts(simulation_figure(found))
    assert f"{found.n_dropped:,} deliveries dropped" in words
    assert "longest wait" in words
    assert "bandwidth" in words


def test_unknown_latency_and_bandwidth_are_not_invented() -> None:
    found = report(costs=Costs(), bandwidth_spikes_s=None)
    words = texts(simulation_figure(found))
    assert "latencies of the chip are not known" in words
    assert "load of links over time" in words
    assert "utilisation" not in words


def test_nothing_to_show() -> None:
    silent = Hypergraph.from_hedges(2, np.array([0]), np.array([0, 1]), np.array([1]), np.zeros(1))
    words = texts(simulation_figure(report(3, silent)))
    assert "nothing was delivered" in words
    assert "no link was used" in words


def test_files_are_equal_for_equal_reports(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        write_simulation_plot(report(), "small", tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
