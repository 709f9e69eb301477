"""The figures of a mapping. Each returns a Matplotlib `Figure`; nothing global is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, Colormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, Formatter, MaxNLocator, NullFormatter, PercentFormatter

from snnmap.plots._mesh import Window, draw_cells, draw_links, label_cells, load_norm

if TYPE_CHECKING:
    from snnmap.mapping import Mapping, Resource

Array = np.ndarray[Any, Any]

CMAP = "cividis"
BAR = "#31548f"
LIMIT = "#c25e00"
COUNT = EngFormatter(sep="")


def utilization_figure(mapping: Mapping) -> Figure:
    """Per core and resource: used/limit on the mesh, and sorted against the limit."""
    resources = mapping.resources
    figure = Figure(figsize=(11, 0.7 + 3.1 * len(resources)), layout="constrained")
    figure.suptitle(f"{_title(mapping)}: what each core holds")
    rows = figure.subplots(len(resources), 2, squeeze=False, width_ratios=(1, 1.35))
    window = _window(mapping)
    for (left, right), resource in zip(rows, resources, strict=True):
        if mapping.placement is None:
            left.set_axis_off()
            left.text(0.5, 0.5, "not placed", ha="center", va="center", transform=left.transAxes)
        else:
            _draw_utilisation(left, mapping, window, resource)
        _draw_sorted(right, resource)
    return figure


def mesh_figure(mapping: Mapping) -> Figure:
    """The mesh coloured by spike load and by layer (placed mappings only)."""
    placement, window = _placed(mapping), _window(mapping)
    figure = Figure(figsize=(12.5, 5.6), layout="constrained")
    figure.suptitle(f"{_title(mapping)} on the {window.caption()}")
    left, right = figure.subplots(1, 2)
    loads = mapping.spike_loads
    picture = draw_cells(
        left,
        window,
        placement.cores,
        loads,
        cmap=CMAP,
        norm=load_norm(loads),
        dead=_dead(mapping),
    )
    label_cells(left, window, picture, placement.cores, [_brief(load) for load in loads])
    left.set_title("spikes into and out of each core")
    figure.colorbar(picture, ax=left, label="spikes/s", format=COUNT, shrink=0.85)
    _draw_layers(figure, right, mapping, window)
    return figure


def links_figure(mapping: Mapping) -> Figure:
    """Spikes/s on every directed link between routers, with and without multicast."""
    traffic = mapping.traffic
    if traffic is None:
        raise ValueError("this mapping has no traffic to draw")
    profile = mapping.profile
    links = traffic.links()
    starts = np.stack([links["x"], links["y"]], axis=1)
    steps = {"east": (1, 0), "west": (-1, 0), "north": (0, 1), "south": (0, -1)}
    steps |= {"northeast": (1, 1), "southwest": (-1, -1)}
    deltas = np.array([steps[d] for d in links["direction"].tolist()], np.int64).reshape(-1, 2)
    routers = _placed(mapping).cores // np.array(profile.tile)
    window = Window.around(
        np.concatenate([routers, starts]),
        profile.grid_width // profile.tile[0],
        profile.grid_height // profile.tile[1],
    )
    figure = Figure(figsize=(12.5, 5.8), layout="constrained")
    figure.suptitle(f"{_title(mapping)}: load of links (each keeps to the right of its way)")
    for axes, model in zip(figure.subplots(1, 2), ("unicast", "multicast"), strict=True):
        loads = links[f"{model}_spikes_s"]
        used = loads > 0
        picture = draw_links(
            axes,
            window,
            starts[used],
            deltas[used],
            loads[used],
            routers=routers,
            norm=load_norm(links["unicast_spikes_s"]),
            cmap=CMAP,
        )
        routing = traffic.routing(model)
        share = routing.max_link_share
        of = "" if share is None else f", {share:.2%} of its bandwidth"
        axes.set_title(f"{model}: busiest link {_brief(routing.max_link_load)} spikes/s{of}")
        axes.set_xlabel("router x")
        axes.set_ylabel("router y")
        figure.colorbar(picture, ax=axes, label="spikes/s on a link", format=COUNT, shrink=0.85)
    return figure


def distribution_figure(mapping: Mapping) -> Figure:
    """How many axons enter a neuron, how many cores an axon spans, how synapses share axons."""
    figure = Figure(figsize=(12.5, 4), layout="constrained")
    figure.suptitle(f"{_title(mapping)}: distributions")
    first, second, third = figure.subplots(1, 3)
    fan_ins = mapping.hypergraph.fan_ins
    _draw_histogram(first, fan_ins[fan_ins > 0], mapping.limits.max_fan_in)
    silent = int(np.count_nonzero(fan_ins == 0))
    first.set_title("fan-in" + (f" ({silent:,} neurons without any)" if silent else ""))
    first.set_xlabel("inbound axons of a neuron")
    first.set_ylabel("neurons")

    spans = np.bincount(mapping.metrics.hedge_spans, weights=mapping.hypergraph.axon_counts)
    used = np.flatnonzero(spans)
    second.bar(used, spans[used], width=0.85, color=BAR)
    second.set_yscale("log")
    second.set_ylim(bottom=0.6)
    second.yaxis.set_major_formatter(COUNT)
    second.xaxis.set_major_locator(MaxNLocator(integer=True))
    second.set_title("parts an axon spans (lambda)")
    second.set_xlabel("parts among its source and destinations")
    second.set_ylabel("axons")

    reuse = mapping.metrics.synaptic_reuse
    _draw_histogram(third, reuse[reuse > 0], None)
    third.set_title("synaptic reuse")
    third.set_xlabel("synapses of a core per inbound axon")
    third.set_ylabel("cores")
    return figure


def _title(mapping: Mapping) -> str:
    return (
        f"{mapping.hypergraph.name} on {mapping.profile.name}, {mapping.partition.n_parts:,} parts"
    )


def _placed(mapping: Mapping) -> Any:
    if mapping.placement is None:
        raise ValueError("this mapping has no placement to draw")
    return mapping.placement


def _window(mapping: Mapping) -> Window:
    profile = mapping.profile
    cores = np.zeros((0, 2), np.int32) if mapping.placement is None else mapping.placement.cores
    return Window.around(cores, profile.grid_width, profile.grid_height)


def _dead(mapping: Mapping) -> Array:
    return np.array(sorted(mapping.profile.dead_cores), np.int64).reshape(-1, 2)


def _draw_utilisation(axes: Axes, mapping: Mapping, window: Window, resource: Resource) -> None:
    cores = _placed(mapping).cores
    form: Formatter
    if resource.limit is None:
        values, norm = (
            resource.used.astype(float),
            Normalize(0, max(1, int(resource.used.max(initial=1)))),
        )
        label, form = f"{resource.name} (no limit known)", COUNT
        texts = [_brief(v) for v in values]
    else:
        values, norm = resource.used / resource.limit, Normalize(0, 1)
        label, form = f"{resource.name}, used / limit", PercentFormatter(1, decimals=0)
        texts = [f"{v * 100:.0f}" for v in values]
    picture = draw_cells(axes, window, cores, values, cmap=CMAP, norm=norm, dead=_dead(mapping))
    label_cells(axes, window, picture, cores, texts)
    axes.set_title(resource.name)
    axes.figure.colorbar(picture, ax=axes, label=label, format=form, shrink=0.9)


def _draw_sorted(axes: Axes, resource: Resource) -> None:
    values = np.sort(resource.used)[::-1]
    axes.stairs(values, np.arange(len(values) + 1) + 0.5, fill=True, color=BAR)
    top = float(values.max(initial=1))
    if resource.limit is not None:
        top = max(top, float(resource.limit))
        axes.axhline(resource.limit, color=LIMIT, linewidth=1.5)
        axes.annotate(
            f"limit {resource.limit:,}",
            (1, resource.limit),
            xycoords=("axes fraction", "data"),
            xytext=(-4, 2),
            textcoords="offset points",
            ha="right",
            va="bottom",
            color=LIMIT,
        )
    axes.set_xlim(0.5, len(values) + 0.5)
    axes.set_ylim(0, top * 1.15)
    axes.yaxis.set_major_formatter(COUNT)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    mean = float(values.mean()) if len(values) else 0.0
    axes.set_title(f"mean {mean:,.0f}, largest {int(values.max(initial=0)):,}")
    axes.set_xlabel("cores, fullest first")
    axes.set_ylabel(f"{resource.name} in a core")


def _draw_histogram(axes: Axes, values: Array, limit: int | None) -> None:
    """A histogram with logarithmic bins where values spread over more than a factor of 50."""
    if not len(values):
        axes.text(0.5, 0.5, "none", ha="center", va="center", transform=axes.transAxes)
        return
    low, high = float(values.min()), float(values.max())
    if high > 50 * low:
        bins: Array = np.geomspace(low, high * 1.001, 41)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(COUNT)
        axes.xaxis.set_minor_formatter(NullFormatter())
    elif np.issubdtype(values.dtype, np.integer):
        step = max(1, int(np.ceil((high - low + 1) / 40)))
        bins = np.arange(low, high + step + 1, step) - 0.5
    else:
        bins = np.linspace(low, high if high > low else low + 1, 41)
    counts, _ = np.histogram(values, bins)
    axes.stairs(counts, bins, fill=True, color=BAR)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(COUNT)
    if limit is not None:
        axes.axvline(limit, color=LIMIT, linewidth=1.5, label=f"limit {limit:,}")
        axes.legend(loc="upper left")


def _draw_layers(figure: Figure, axes: Axes, mapping: Mapping, window: Window) -> None:
    """Each core in the colour of the layer that holds most of its neurons."""
    names, shares = mapping.layer_shares()
    cores = _placed(mapping).cores
    if not names:
        axes.set_title("the network names no layers")
        draw_cells(
            axes,
            window,
            cores,
            np.ones(len(cores)),
            cmap=CMAP,
            norm=Normalize(0, 2),
            dead=_dead(mapping),
        )
        return
    main = shares.argmax(axis=1)
    several = np.count_nonzero(shares, axis=1) > 1
    colours = _layer_colours(len(names))
    norm = BoundaryNorm(np.arange(len(names) + 1) - 0.5, len(names))
    picture = draw_cells(axes, window, cores, main, cmap=colours, norm=norm, dead=_dead(mapping))
    texts = [f"{m}{'+' if s else ''}" for m, s in zip(main, several, strict=True)]
    label_cells(axes, window, picture, cores, texts)
    axes.set_title(
        "layer with most neurons of each core" + (" (+ shared)" if several.any() else "")
    )
    shown = np.unique(np.linspace(0, len(names) - 1, min(len(names), 24)).round().astype(int))
    bar = figure.colorbar(picture, ax=axes, ticks=shown, shrink=0.95)
    bar.ax.set_yticklabels([f"{i} {_clip(names[i])}" for i in shown], fontsize=8)
    bar.ax.minorticks_off()
    bar.ax.invert_yaxis()


def _layer_colours(n: int) -> Colormap:
    """Ordered, colour-blind safe: neighbouring layers alternate in lightness when there are few."""
    return ListedColormap(colormaps["viridis"](np.linspace(0.04, 0.98, max(n, 2)))[:n])


def _clip(name: str, width: int = 22) -> str:
    if len(name) <= width:
        return name
    half = (width - 1) // 2
    return f"{name[:half]}…{name[-half:]}"


def _brief(value: float) -> str:
    """At most four characters: ``0``, ``3.2``, ``47``, ``1.2k``, ``35M``."""
    value = float(value)
    for unit in ("", "k", "M", "G", "T"):
        if abs(value) < 999.5 or unit == "T":
            break
        value /= 1000
    return f"{value:.0f}{unit}" if value >= 9.95 or value == 0 else f"{value:.1f}{unit}"
