"""Figures of a bench: methods compared network by network, and how time grows with pins."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import (
    EngFormatter,
    Formatter,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    StrMethodFormatter,
)

from snnmap.bench.summary import BASELINES, Spread, Summary

# Okabe & Ito's colours, told apart also without red or green, and markers: one more than colours,
# so that no two of 72 methods look alike.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000", "#999999")
MARKERS = "osD^vPX*h"
_PARTS_OF_A_SECOND = EngFormatter(unit="s")


def _time(seconds: float, _: object = None) -> str:
    """Text for a tick: 5 ms, 20 s, 3,000 s."""
    return f"{seconds:,.10g} s" if seconds >= 1 else _PARTS_OF_A_SECOND(seconds)


PANELS = {
    "connectivity": ("connectivity (spikes/s x cores)", EngFormatter(sep="")),
    "seconds": ("time", FuncFormatter(_time)),
    "parts": ("parts (cores)", EngFormatter(sep="")),
}
RATIO = StrMethodFormatter("{x:g}x")


def comparison_figure(summary: Summary, *, normalised: bool = False) -> Figure:
    """Connectivity, time and parts of every method on every network.

    Args:
        summary: what to draw; medians as markers, smallest to largest as bars.
        normalised: relative to the first of our baselines that ran (or the first method).
    """
    methods = summary.methods_with_results or summary.methods
    base = next((b for b in BASELINES if b in methods), methods[0])
    width = max(7.0, 2.2 + max(0.75, 0.11 * len(methods)) * len(summary.networks))
    figure = Figure(figsize=(width, 9.5), layout="constrained")
    suite = f" on suite {summary.suite}" if summary.suite else ""
    relative = f", relative to {base}" if normalised else ""
    figure.suptitle(
        f"Mappers compared{suite}{relative}\nmedian over seeds, bars from best to worst"
    )
    axes = figure.subplots(len(PANELS), 1, sharex=True, squeeze=False)[:, 0]
    for axis, (quantity, (label, formatter)) in zip(axes, PANELS.items(), strict=True):
        scale = summary.values(base, quantity) if normalised else None
        for i, method in enumerate(methods):
            place = (i + 0.5) / len(methods) - 0.5
            spreads = summary.values(method, quantity)
            _draw_method(axis, i, place, spreads, scale, _are_whole(summary, method))
        _scale_values(axis, RATIO if normalised else formatter)
        if quantity == "parts" and not normalised and axis.get_yscale() == "linear":
            axis.yaxis.set_major_locator(MaxNLocator(integer=True))
        if normalised:
            axis.axhline(1.0, color="0.6", linewidth=0.8, zorder=0)
        axis.set_ylabel(f"{label.partition(' (')[0]} / {base}" if normalised else label)
        axis.grid(axis="y", color="0.9", zorder=0)
        for x in range(1, len(summary.networks)):
            axis.axvline(x - 0.5, color="0.93", linewidth=0.8, zorder=0)
    axes[-1].set_xticks(range(len(summary.networks)), summary.networks, rotation=45, ha="right")
    axes[-1].set_xlim(-0.5, len(summary.networks) - 0.5)
    figure.align_ylabels(axes)
    _add_legend(figure, axes[0], methods, summary)
    return figure


def scaling_figure(summary: Summary) -> Figure:
    """Time against pins, with the exponent of each method's power law."""
    figure = Figure(figsize=(10.0, 5.5), layout="constrained")
    axis = figure.subplots()
    axis.set_title("Time of the algorithm against the size of the network")
    pins = np.array([summary.pins(network) for network in summary.networks], float)
    methods = summary.methods_with_results or summary.methods
    for i, method in enumerate(methods):
        spreads = summary.values(method, "seconds")
        seconds = np.array([s.median if s else np.nan for s in spreads])
        label, growth = method, summary.growth(method)
        if growth is not None:
            slope, factor = growth
            label += f" ~ pins^{slope:.2f}"
            ends = np.array([pins.min(), pins.max()])
            axis.plot(ends, factor * ends**slope, color=_colour(i), linewidth=0.9, alpha=0.6)
        whole = np.array(_are_whole(summary, method))
        marker, colour = MARKERS[i % len(MARKERS)], _colour(i)
        axis.plot(pins[whole], seconds[whole], marker, color=colour, label=label)
        axis.plot(pins[~whole], seconds[~whole], marker, color=colour, markerfacecolor="none")
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(_log_locator(pins))
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    axis.xaxis.set_minor_formatter(NullFormatter())
    _scale_values(axis, PANELS["seconds"][1])
    axis.set_xlabel("pins")
    axis.set_ylabel("time")
    axis.grid(color="0.9", zorder=0)
    _explain_hollow(axis, methods, summary)
    figure.legend(loc="outside right upper", frameon=False)
    return figure


def _are_whole(summary: Summary, method: str) -> list[bool]:
    """Whether no run was cut short, network by network."""
    cells = [summary.cells.get((network, method)) for network in summary.networks]
    return [cell is None or cell.is_whole for cell in cells]


def _draw_method(
    axis: Axes, i: int, place: float, spreads: list[Spread | None], scale: Any, whole: list[bool]
) -> None:
    for x, spread in enumerate(spreads):
        unit = 1.0 if scale is None else (scale[x].median if scale[x] else 0.0)
        if spread is None or unit <= 0:
            continue
        middle, low, high = (v / unit for v in (spread.median, spread.low, spread.high))
        axis.errorbar(
            x + 0.7 * place,
            middle,
            yerr=[[middle - low], [high - middle]],
            fmt=MARKERS[i % len(MARKERS)],
            color=_colour(i),
            markerfacecolor=_colour(i) if whole[x] else "none",
            markersize=5,
            capsize=2,
            linewidth=1,
        )


def _scale_values(axis: Axes, label: Formatter) -> None:
    """Logarithmic where values span a decade, linear otherwise; a 0 among them stays visible."""
    values = [y for line in axis.lines for y in np.atleast_1d(line.get_ydata())]
    values = [float(y) for y in values if np.isfinite(y)]
    positive = [y for y in values if y > 0]
    if positive and max(positive) > 8 * min(positive):
        if min(values) <= 0:
            axis.set_yscale("symlog", linthresh=min(positive))
        else:
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(_log_locator(positive))
        axis.yaxis.set_minor_formatter(NullFormatter())
    axis.yaxis.set_major_formatter(label)


def _log_locator(values: Any) -> LogLocator:
    """Ticks at powers of ten, and between them where these are few."""
    decades = np.log10(max(values) / max(min(values), 1e-300))
    return LogLocator(subs=(1,) if decades > 2.5 else (1, 2, 5))


def _add_legend(figure: Figure, axis: Axes, methods: tuple[str, ...], summary: Summary) -> None:
    handles = [
        axis.plot([], [], MARKERS[i % len(MARKERS)], color=_colour(i), label=method)[0]
        for i, method in enumerate(methods)
    ]
    handles += _explain_hollow(axis, methods, summary)
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(4, len(handles)), frameon=False
    )


def _explain_hollow(axis: Axes, methods: tuple[str, ...], summary: Summary) -> list[Line2D]:
    """An entry of the legend, if there is anything hollow."""
    if all(all(_are_whole(summary, method)) for method in methods):
        return []
    return axis.plot([], [], "o", color="0.4", markerfacecolor="none", label="hollow: cut short")


def _colour(i: int) -> str:
    return COLOURS[i % len(COLOURS)]
