"""What docs/comparison.md says beside the timed runs: baselines that had the time they need, and
what the published GPU program reaches on the same networks."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterable
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from snnmap.bench.records import DONE
from snnmap.bench.summary import BASELINES, Summary

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
SAME = 1e-9
"""Relative difference up to which two sums of the same rates are the same connectivity."""

Values = dict[str, float]
"""One number by network."""


def read(name: str) -> Any:
    """A record under benchmarks/."""
    return json.loads((BENCHMARKS / name).read_text(encoding="utf-8"))


def ended(baseline: str) -> Values:
    """Connectivities of a baseline without a time limit, from scripts/bench_quality.py."""
    runs = read(f"quality_{baseline}.json")["runs"]
    return {r["network"]: r["connectivity"] for r in runs if r["complete"] and r["verified"]}


def processor_seconds(baseline: str) -> Values:
    """What a baseline took to its end; whatever else the machine did, this counts its own work."""
    runs = read(f"quality_{baseline}.json")["runs"]
    return {r["network"]: r["seconds"]["cpu"] for r in runs if r["complete"]}


def multilevel(name: str) -> Values:
    """Connectivities of a record of scripts/bench_partition.py."""
    return {r["network"]: r["connectivity"] for r in read(name)["rows"] if r["valid"]}


def timed(summary: Summary, method: str) -> Values:
    """Connectivities of the timed runs, seed 0, that ended by themselves."""
    return {
        r.task.network: r.connectivity
        for r in summary.records
        if r.task.method == method and r.task.seed == 0 and r.status == DONE
        if r.connectivity is not None
    }


def medians(summary: Summary, method: str) -> Values:
    """Median seconds of a method, by network, where no run was cut short."""
    cells = [summary.cells.get((network, method)) for network in summary.networks]
    return {c.network: c.seconds.median for c in cells if c and c.seconds and c.is_whole}


def equal(one: Values, other: Values) -> list[str]:
    """Networks that both have, all with the same value.

    Raises:
        SystemExit: a network with two values, so the records are not of the same networks or code.
    """
    common = [network for network in one if network in other]
    for network in common:
        if not math.isclose(one[network], other[network], rel_tol=SAME):
            raise SystemExit(f"{network}: {one[network]} and {other[network]} on record")
    return common


def to_the_end(summary: Summary, paper: str) -> dict[tuple[str, str], Values]:
    """Connectivity / baseline's by (method, baseline), by network, nothing cut short.

    Args:
        summary: of the timed runs.
        paper: method name of preset paper.
    """
    ours = {"default": multilevel("multilevel_h200_default.json"), paper: timed(summary, paper)}
    return {
        (method, name): ratios(summary.networks, values, ended(name))
        for method, values in ours.items()
        for name in BASELINES
    }


def ratios(networks: Iterable[str], ours: Values, theirs: Values) -> Values:
    """One / the other on networks that both have, in order."""
    return {n: ours[n] / theirs[n] for n in networks if n in ours and n in theirs}


def baselines_table(summary: Summary, paper: str) -> list[str]:
    """`to_the_end` as Markdown, with means, and how far the records confirm each other."""
    found = to_the_end(summary, paper)
    confirmed = sum(len(equal(timed(summary, name), ended(name))) for name in BASELINES)
    lines = table([f"{m} / {b}" for m, b in found], list(found.values()), summary.networks)
    return [
        *lines,
        "",
        f"The timed runs of baselines that ended by themselves, {confirmed} of them, gave the same "
        "connectivity as these.",
    ]


def program_table(summary: Summary, default: str, paper: str) -> list[str]:
    """Preset paper, the default, and the published program on one network after the other."""
    content = tomllib.loads((BENCHMARKS / "peer_figures.toml").read_text(encoding="utf-8"))
    peers = {name: entry["peer"] for name, entry in content["networks"].items()}
    theirs = {name: float(peer["connectivity"]) for name, peer in peers.items()}
    on_cpu, on_gpu = multilevel("multilevel_paper_cpu.json"), timed(summary, paper)
    same = len(equal(on_cpu, on_gpu))
    core_s = {name: peer["core_ms"] / 1000 for name, peer in peers.items()}
    sequential_s, default_s = processor_seconds("hierarchical"), medians(summary, default)
    columns = {
        "published program, s": core_s,
        "hierarchical, processor s": sequential_s,
        "preset `paper`, CPU: connectivity": ratios(summary.networks, on_cpu, theirs),
        "preset `paper`, GPU: connectivity": ratios(summary.networks, on_gpu, theirs),
        "default, GPU: connectivity": ratios(summary.networks, timed(summary, default), theirs),
        "preset `paper`, GPU: speed-up": ratios(summary.networks, core_s, medians(summary, paper)),
        "default, GPU: speed-up": ratios(summary.networks, core_s, default_s),
        "hierarchical's processor s / default's s": ratios(
            summary.networks, sequential_s, default_s
        ),
    }
    lines = table(list(columns), list(columns.values()), summary.networks)
    return [
        *lines,
        "",
        f"CPU and GPU gave the same connectivity on all {same} networks that both have on record.",
    ]


def table(heads: list[str], columns: list[Values], networks: Iterable[str]) -> list[str]:
    """Numbers by network and their geometric means (number of networks)."""
    lines = ["| network | " + " | ".join(heads) + " |", "| --- |" + " ---: |" * len(heads)]
    for network in networks:
        cells = [number(c[network]) if network in c else "" for c in columns]
        lines.append(f"| {network} | " + " | ".join(cells) + " |")
    means = [f"{number(geometric_mean(c.values()))} ({len(c)})" if c else "" for c in columns]
    return [*lines, "| geometric mean | " + " | ".join(means) + " |"]


def number(value: float) -> str:
    """``0.867``, ``14.1``, ``283``."""
    return f"{value:.3f}" if value < 10 else f"{value:#.3g}".rstrip(".")
