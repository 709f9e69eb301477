"""The figure of a simulation: how long spikes took, and how busy links were over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, PercentFormatter

if TYPE_CHECKING:
    from snnmap.traffic import SimulationReport

Array = np.ndarray[Any, Any]

BAR, MARK, MEAN = "#31548f", "#c25e00", "#7a9cc6"
N_BARS = 60


def simulation_figure(report: SimulationReport, title: str = "") -> Figure:
    """Latencies of deliveries, load of links over time, and links sorted by their load.

    Args:
        report: what happened to the spikes.
        title: network and chip.
    """
    figure = Figure(figsize=(13.5, 4.2), layout="constrained")
    lost = f", {report.n_dropped:,} deliveries dropped" if report.n_dropped else ""
    figure.suptitle(
        f"{title}{': ' if title else ''}{report.n_spikes:,} spikes in {report.n_steps:,} time "
        f"steps, {report.model}{lost}"
    )
    first, second, third = figure.subplots(1, 3, width_ratios=(1, 1.25, 1))
    _draw_latencies(first, report)
    _draw_time(second, report)
    _draw_links(third, report)
    return figure


def _draw_latencies(axes: Axes, report: SimulationReport) -> None:
    what = "latency" if report.has_latency else "waiting (latencies of the chip are not known)"
    axes.set_title("how long deliveries took" if report.has_latency else "how long spikes waited")
    axes.set_xlabel(what)
    axes.set_ylabel("deliveries")
    axes.xaxis.set_major_formatter(EngFormatter("s", sep=" "))
    if not len(report.latencies_ns):
        _say(axes, "nothing was delivered")
        return
    seconds = report.latencies_ns * 1e-9
    low, high = float(seconds[0]), float(seconds[-1])
    if high <= low:
        high = low + max(low, 1e-9) * 0.1
    axes.hist(seconds, bins=np.linspace(low, high, N_BARS + 1).tolist(), color=BAR)
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.6)
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    unit = EngFormatter("s", places=1, sep=" ")
    for share, style in ((0.5, "-"), (0.95, "--"), (0.99, ":")):
        at = float(np.quantile(seconds, share))
        label = f"{share:.0%} within {unit(at)}"
        axes.axvline(at, color=MARK, linestyle=style, linewidth=1.4, label=label)
    axes.legend(fontsize="small")


def _draw_time(axes: Axes, report: SimulationReport) -> None:
    n_bins = len(report.link_counts)
    edges = np.linspace(0, report.duration_ns * 1e-9, n_bins + 1)
    axes.set_xlabel("time")
    axes.xaxis.set_major_formatter(EngFormatter("s", sep=" "))
    axes.set_xlim(0, edges[-1])
    shares = report.utilisation
    if shares is None:
        counts = report.link_counts.reshape(n_bins, -1)
        seconds = edges[1] - edges[0]
        values = np.stack([_mean_used(counts), counts.max(axis=1, initial=0)], axis=1) / seconds
        axes.set_title("load of links over time")
        axes.set_ylabel("spikes/s on a link")
        axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    else:
        values = shares
        axes.set_title("utilisation of links over time")
        axes.set_ylabel("share of the bandwidth")
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.stairs(values[:, 1], edges, color=MARK, linewidth=1.4, label="busiest link")
    axes.stairs(values[:, 0], edges, color=MEAN, fill=True, label="mean of used links")
    axes.set_ylim(0, max(float(values.max(initial=0.0)), 1e-12) * 1.15)
    axes.legend(fontsize="small", loc="upper right", ncols=2)


def _draw_links(axes: Axes, report: SimulationReport) -> None:
    loads = np.sort(report.link_loads[report.link_loads > 0])[::-1]
    axes.set_title(f"{len(loads):,} used links, busiest first")
    axes.set_xlabel("links")
    axes.set_ylabel("spikes/s on a link")
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    if not len(loads):
        _say(axes, "no link was used")
        return
    axes.stairs(loads, np.arange(len(loads) + 1) + 0.5, color=BAR, fill=True)
    axes.set_xlim(0.5, len(loads) + 0.5)
    limit = report.bandwidth_spikes_s
    top = float(loads[0]) * 1.15
    if limit is not None and limit < 4 * top:
        axes.axhline(limit, color=MARK, linestyle="--", linewidth=1.4, label="bandwidth")
        axes.legend(fontsize="small")
        top = max(top, limit * 1.1)
    axes.set_ylim(0, top)
    waits = report.longest_waits_ns
    if report.max_waiting:
        unit = EngFormatter("s", places=1, sep=" ")
        note = f"longest wait {unit(float(waits.max(initial=0.0)) * 1e-9)}"
        axes.text(0.97, 0.86, note, transform=axes.transAxes, ha="right", fontsize="small")


def _mean_used(counts: Array) -> Array:
    used = counts[:, counts.any(axis=0)]
    return np.asarray(used.mean(axis=1)) if used.size else np.zeros(len(counts))


def _say(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)
