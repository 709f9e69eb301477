"""Figures of a mapping, as PNG files or Matplotlib `Figure` objects; no global state, no screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from snnmap.plots.figures import (
    distribution_figure,
    links_figure,
    mesh_figure,
    utilization_figure,
)
from snnmap.plots.simulation import simulation_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from snnmap.mapping import Mapping
    from snnmap.traffic import SimulationReport

__all__ = [
    "distribution_figure",
    "links_figure",
    "mesh_figure",
    "simulation_figure",
    "utilization_figure",
    "write_plots",
    "write_simulation_plot",
]

DPI = 130


def write_plots(mapping: Mapping, folder: Path) -> list[str]:
    """Draw what a mapping has to show into an existing folder; returns the names of the files.

    ``utilization.png`` and ``distributions.png`` always, ``mesh.png`` and ``links.png`` if placed.
    """
    figures = {
        "utilization.png": utilization_figure(mapping),
        "distributions.png": distribution_figure(mapping),
    }
    if mapping.placement is not None:
        figures["mesh.png"] = mesh_figure(mapping)
    if mapping.traffic is not None:
        figures["links.png"] = links_figure(mapping)
    for name, figure in figures.items():
        _save(figure, folder / name)
    return list(figures)


def write_simulation_plot(report: SimulationReport, title: str, path: Path) -> None:
    """Draw :func:`simulation_figure` into a PNG file."""
    _save(simulation_figure(report, title), path)


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=DPI, metadata={"Software": "snnmap"})
