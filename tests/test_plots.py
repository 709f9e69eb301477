"""Figures: what is on them, at every size, without Matplotlib's global state."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm, to_hex
from matplotlib.figure import Figure

from snnmap.hardware import Costs, HardwareProfile
from snnmap.hypergraph import Hypergraph, Population
from snnmap.limits import Limits
from snnmap.mapping import Mapping, map_network
from snnmap.plots import (
    distribution_figure,
    links_figure,
    mesh_figure,
    utilization_figure,
    write_plots,
)
from snnmap.plots._mesh import UNUSED, Window, load_norm
from tests.small import from_rows, small

TINY = HardwareProfile(
    name="tiny",
    width=4,
    height=4,
    limits=Limits(max_size=3),
    costs=Costs(link_bandwidth_spikes_s=10.0),
    dead_cores=frozenset({(1, 1)}),
)
FIGURES = {
    "utilization.png": utilization_figure,
    "distributions.png": distribution_figure,
    "mesh.png": mesh_figure,
    "links.png": links_figure,
}


def ring(n_nodes: int, n_layers: int = 0) -> Hypergraph:
    """Every neuron sends to the next forty."""
    near = (np.arange(n_nodes)[:, None] + np.arange(1, 41)) % n_nodes
    size = n_nodes // max(n_layers, 1)
    layers = [
        Population(f"layer_with_a_long_name_{i}", i * size, (i + 1) * size, (size,))
        for i in range(n_layers)
    ]
    offsets = np.arange(0, 40 * n_nodes + 1, 40)
    rates = np.random.default_rng(1).lognormal(sigma=2.0, size=n_nodes)
    nodes = np.arange(n_nodes)
    return Hypergraph.from_hedges(n_nodes, nodes, offsets, near.ravel(), rates, populations=layers)


def mapped(network: Hypergraph, profile: HardwareProfile = TINY, **options: object) -> Mapping:
    return map_network(network, profile, algorithm="one-pass", **options)


def texts(figure: Figure) -> str:
    figure.draw_without_rendering()
    return "\n".join(t.get_text() for t in figure.findobj(lambda a: hasattr(a, "get_text")))


@pytest.fixture(scope="module")
def mapping() -> Mapping:
    return mapped(small())


def test_utilization_shows_used_and_limit_of_every_resource(mapping: Mapping) -> None:
    figure = utilization_figure(mapping)
    words = texts(figure)
    for name in ("neurons", "inbound axons", "outbound axons", "synapses"):
        assert f"{name} in a core" in words
    assert "limit 3" in words
    assert "neurons, used / limit" in words
    assert "synapses (no limit known)" in words
    heat, bars = figure.axes[0], figure.axes[1]
    image = heat.get_images()[-1].get_array()
    shares = image.compressed() if np.ma.isMaskedArray(image) else image[np.isfinite(image)]
    assert sorted(shares) == sorted(mapping.metrics.sizes / 3)
    assert bars.get_ylim()[1] > 3


def test_mesh_names_layers_and_greys_out_what_is_not_used(mapping: Mapping) -> None:
    figure = mesh_figure(mapping)
    words = texts(figure)
    for name in ("0 in", "1 hidden", "2 out", "spikes/s", "core x", "core y", "4 x 4 grid"):
        assert name in words
    assert to_hex(figure.axes[0].get_facecolor()) == UNUSED


def test_links_carry_units_and_bandwidth(mapping: Mapping) -> None:
    words = texts(links_figure(mapping))
    assert "unicast: busiest link" in words
    assert "multicast: busiest link" in words
    assert "spikes/s on a link" in words
    assert "of its bandwidth" in words


def test_every_link_is_drawn_once_a_model(mapping: Mapping) -> None:
    figure = links_figure(mapping)
    links = mapping.traffic.links()
    for axes, model in zip(figure.axes[:2], ("unicast", "multicast"), strict=True):
        drawn = np.sort(axes.collections[0].get_array())
        loads = links[f"{model}_spikes_s"]
        np.testing.assert_array_equal(drawn, np.sort(loads[loads > 0]))


def test_distributions_add_up(mapping: Mapping) -> None:
    figure = distribution_figure(mapping)
    assert "fan-in (3 neurons without any)" in texts(figure)
    bars = {p.get_x() + p.get_width() / 2: p.get_height() for p in figure.axes[1].patches}
    spans = mapping.metrics.hedge_spans
    assert bars == pytest.approx({s: np.count_nonzero(spans == s) for s in np.unique(spans)})


@pytest.mark.parametrize("name", FIGURES)
def test_a_thousand_cores_stay_readable(name: str) -> None:
    profile = replace(TINY, width=40, height=30, limits=Limits(max_size=4), dead_cores=frozenset())
    figure = FIGURES[name](mapped(ring(4000, n_layers=40), profile))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            boxes = [
                label.get_window_extent(renderer)
                for tick, label in zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=True)
                if label.get_text() and low <= tick <= high
            ]
            for a, b in pairwise(boxes):
                assert not a.overlaps(b), f"labels of {axes.get_title()} overlap"
    sizes = [t.get_fontsize() for t in figure.findobj(lambda a: hasattr(a, "get_fontsize"))]
    assert min(sizes) >= 5


@pytest.mark.parametrize(
    "network",
    [
        from_rows(1, []),
        from_rows(3, [([0], [1], 0.0)]),
        from_rows(3, [([], [0, 1, 2], 1.0)]),
        ring(100),
    ],
    ids=["one neuron", "silent", "sourceless", "ring"],
)
def test_odd_networks_are_drawn(network: Hypergraph, tmp_path: Path) -> None:
    profile = replace(TINY, topology="hex-torus", limits=Limits(max_size=12))
    names = write_plots(mapped(network, profile), tmp_path)
    assert sorted(names) == sorted(FIGURES)
    assert all((tmp_path / n).read_bytes().startswith(b"\x89PNG") for n in names)


def test_without_placement_only_what_is_known(tmp_path: Path) -> None:
    names = write_plots(mapped(small(), only_partition=True), tmp_path)
    assert sorted(names) == ["distributions.png", "utilization.png"]


def test_a_huge_mesh_is_cropped_to_what_is_used() -> None:
    window = Window.around(np.array([[500, 700], [503, 709]]), 1024, 1024)
    assert (window.x0, window.y0, window.x1, window.y1) == (499, 699, 504, 710)
    assert window.is_cropped
    assert not Window.around(np.array([[1, 1]]), 8, 8).is_cropped


def test_loads_over_many_decades_are_drawn_logarithmically() -> None:
    assert isinstance(load_norm(np.geomspace(1, 1e6, 50)), LogNorm)
    assert not isinstance(load_norm(np.array([0.0, 1.0, 5.0])), LogNorm)
    assert load_norm(np.zeros(3)).vmax == 1


def test_no_global_state_of_matplotlib_is_touched() -> None:
    code = "import snnmap.plots, sys; print('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_equal_mappings_give_equal_pictures(mapping: Mapping, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_plots(mapping, tmp_path / folder)
    for name in FIGURES:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
