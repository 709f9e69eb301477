"""A mapping in words: aligned plain text for people, plain values for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from snnmap.hardware import HardwareProfile
    from snnmap.limits import Limits
    from snnmap.mapping import Mapping, Resource
    from snnmap.traffic import Routing, TrafficReport

Row = Sequence[str]

MAX_LAYERS = 24
"""Layers listed in a summary; the middle of a longer list is folded into one line."""


def summary_text(mapping: Mapping) -> str:
    """Network, chip, result against bounds, layers, utilisation, traffic, time."""
    blocks = [
        _facts(mapping),
        table(("per core", "mean", "largest", "limit", "used"), _utilisation_rows(mapping)),
    ]
    layers = _layer_rows(mapping)
    if layers:
        blocks.append(table(("layer", "neurons", "cores", "shape"), layers, left=(0, 3)))
    if mapping.traffic is not None:
        blocks.append(_traffic_table(mapping.traffic))
    blocks.append(_closing(mapping))
    return "\n\n".join(blocks)


def _facts(mapping: Mapping) -> str:
    network, partition = mapping.network, mapping.partition
    m = mapping.metrics
    parts_bound, connectivity_bound = mapping.bounds
    off = network.n_nodes - mapping.hypergraph.n_nodes
    n_cores = mapping.profile.n_cores
    rows = [
        (
            "network",
            f"{network.name}: {network.n_nodes:,} neurons, {network.n_hedges:,} axons, "
            f"{network.n_pins:,} pins" + (f"; {off:,} inputs off the chip" if off else ""),
        ),
        ("profile", describe_profile(mapping.profile, mapping.limits)),
        *([("overrides", ", ".join(mapping.overrides))] if mapping.overrides else []),
        (
            "partition",
            f"{partition.n_parts:,} parts of {n_cores:,} cores (no partition has fewer than "
            f"{parts_bound:,})",
        ),
        (
            "",
            f"connectivity {m.connectivity:,.1f} (never below {connectivity_bound:,.1f}), "
            f"cut-net {m.cut_net:,.1f}",
        ),
        (
            "",
            f"{partition.algorithm}, preset {mapping.preset}, engine {partition.engine}, "
            f"seed {partition.seed}",
        ),
    ]
    if mapping.placement is not None:
        x, y = mapping.placement.cores.max(axis=0, initial=0) - mapping.placement.cores.min(axis=0)
        placer = mapping.placement.placer
        if mapping.placement.start not in ("", placer):
            placer += f" ({mapping.placement.start})"
        if mapping.placement.refine != "none":
            placer += f" + {mapping.placement.refine}"
        if mapping.placement.joint:
            placer += " + joint"
        rows.append(("placement", f"{placer}, within {x + 1} x {y + 1} cores"))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)


def describe_profile(profile: HardwareProfile, limits: Limits) -> str:
    """``"loihi64: mesh of 64 x 64 cores; a core holds 1,024 neurons and takes ..."``."""
    chips = f"{profile.n_chips} chips, " if profile.n_chips > 1 else ""
    dead = f" ({len(profile.dead_cores):,} dead)" if profile.dead_cores else ""
    neurons = count(limits.max_size)
    inbound = count(limits.max_inbound)
    return (
        f"{profile.name}: {chips}{profile.topology} of {profile.grid_width:,} x "
        f"{profile.grid_height:,} cores{dead}; a core holds {neurons} neurons and takes {inbound} "
        "inbound axons"
    )


def _utilisation_rows(mapping: Mapping) -> list[Row]:
    return [_resource_row(resource) for resource in mapping.resources]


def _resource_row(resource: Resource) -> Row:
    used = resource.used
    largest = int(used.max(initial=0))
    share = "n/a" if resource.limit is None else f"{100 * largest / resource.limit:.0f} %"
    limit = count(resource.limit) + ("*" if resource.is_soft else "")
    mean = float(np.mean(used)) if len(used) else 0.0
    return resource.name, f"{mean:,.1f}", f"{largest:,}", limit, share


def _layer_rows(mapping: Mapping) -> list[Row]:
    names, shares = mapping.layer_shares()
    cores = np.count_nonzero(shares, axis=0)
    rows: list[Row] = [
        (name, f"{p.size:,}", f"{n:,}", " x ".join(map(str, p.shape)))
        for name, p, n in zip(names, mapping.hypergraph.populations, cores.tolist(), strict=True)
    ]
    if len(rows) <= MAX_LAYERS:
        return rows
    half = MAX_LAYERS // 2
    return [*rows[:half], (f"... {len(rows) - 2 * half} more ...", "", "", ""), *rows[-half:]]


def _traffic_table(traffic: TrafficReport) -> str:
    """Both models of routing side by side; what the profile does not know is n/a."""
    rows: list[Row] = [
        ("energy", *(energy(r.energy_pj) for r in _models(traffic))),
        ("mean latency", *(quantity(r.mean_latency_ns, "ns") for r in _models(traffic))),
        ("largest latency", *(quantity(r.max_latency_ns, "ns") for r in _models(traffic))),
        ("spikes x hops", *(quantity(r.hops, "/s") for r in _models(traffic))),
        ("busiest link", *(quantity(r.max_link_load, "spikes/s") for r in _models(traffic))),
        ("  of its bandwidth", *(_percent(r.max_link_share) for r in _models(traffic))),
    ]
    if any(r.off_chip_hops for r in _models(traffic)):
        rows.append(("between chips", *(quantity(r.off_chip_hops, "/s") for r in _models(traffic))))
    return table(("traffic, 1 s of spikes", "unicast", "multicast"), rows)


def _models(traffic: TrafficReport) -> tuple[Routing, Routing]:
    return traffic.unicast, traffic.multicast


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{100 * share:.3g} %"


def _closing(mapping: Mapping) -> str:
    lines = []
    if not mapping.is_complete:
        lines.append("stopped early: this is the best valid result so far, not the best to be had")
    if mapping.is_verified:
        lines.append("verified: every neuron once, every limit, costs recomputed")
    else:
        lines.append(f"NOT VALID: {mapping.violations[0]}")
        if len(mapping.violations) > 1:
            lines[-1] += f" (and {len(mapping.violations) - 1:,} more)"
    phases = ", ".join(f"{name} {duration(s)}" for name, s in mapping.seconds.items())
    lines.append(f"time: {phases}")
    return "\n".join(lines)


def count(value: int | None) -> str:
    """``"4,096"``, or ``"n/a"`` for what is unlimited or unknown."""
    return "n/a" if value is None else f"{value:,}"


def quantity(value: float | None, unit: str) -> str:
    """Four significant digits at least: ``"12,345.7 pJ"``, ``"0.3142 ns"``; ``"n/a"`` for None."""
    if value is None:
        return "n/a"
    return f"{value:,.1f} {unit}" if abs(value) >= 1000 else f"{value:.4g} {unit}"


def energy(picojoules: float | None) -> str:
    """With the prefix that fits: ``"37.67 uJ"``; ``"n/a"`` for None."""
    if picojoules is None:
        return "n/a"
    units = ("pJ", "nJ", "uJ", "mJ", "J")
    step = int(np.log10(max(abs(picojoules), 1)) // 3)
    step = min(step, len(units) - 1)
    return quantity(picojoules / 1000**step, units[step])


def duration(seconds: float) -> str:
    """``"12 ms"``, ``"3.4 s"``, ``"2 min 5 s"``."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


def table(header: Row, rows: Iterable[Row], *, left: Sequence[int] = (0,)) -> str:
    """Columns aligned, the first (and `left`) to the left; a header line."""
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
