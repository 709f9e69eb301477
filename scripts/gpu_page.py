"""The page docs/gpu.md: what scripts/bench_gpu recorded, beside the published GPU program."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from snnmap.writers.atomic import whole_file

START, END = "<!-- made by scripts/bench_gpu --page: -->", "<!-- :made -->"
BANDWIDTH = 4.3e12
"""Bytes a second that one H200 reads from its memory at best."""
PHASES = ("compression", "coarsening", "search", "refinement", "completion")

Record = dict[str, Any]


def read_record(path: Path) -> Record:
    """A record of scripts/bench_gpu."""
    content: Record = json.loads(path.read_text(encoding="utf-8"))
    return content


def write_page(record: Path, page: Path, image: Path) -> None:
    """Put the tables into the page and draw its figure; the words around the tables stay."""
    content = read_record(record)
    head, _, rest = page.read_text(encoding="utf-8").partition(START)
    tail = rest.partition(END)[2]
    with whole_file(page) as path:
        path.write_text(f"{head}{START}\n\n{tables(content)}\n{END}{tail}", encoding="utf-8")
    with whole_file(image) as path:
        figure(content).savefig(path, dpi=120, format="png", metadata={"Software": "snnmap"})


def default_runs(record: Record) -> list[Record]:
    """Runs with the default preset, from small networks to large ones."""
    runs = [run for run in record["runs"] if run["preset"] == "default"]
    return sorted(runs, key=lambda run: int(run["pins"]))


def tables(record: Record) -> str:
    """All that the page says in numbers, as Markdown."""
    runs = default_runs(record)
    machine = ", ".join(f"{key} {value}" for key, value in record["machine"].items())
    faster = [run["peer_ms"] / run["core_ms"] for run in runs]
    ratios = [run["connectivity"] / run["peer_connectivity"] for run in runs]
    lines = [
        f"Machine: {machine}. Preset `default`, seed {runs[0]['seed']}, median of the warm calls; every",
        "partition was verified and the same each time.",
        "",
        "| network | parts (peer's) | connectivity / peer's | core, ms | peer's core, ms | faster | "
        "memory, MiB | of raw pins | peer's, MiB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for run, factor, ratio in zip(runs, faster, ratios, strict=True):
        lines.append(
            f"| {run['network']} | {run['parts']} ({run['peer_parts']}) | {ratio:.3f} "
            f"| {run['core_ms']:.{int(run['core_ms'] < 100)}f} | {run['peer_ms']:,.0f} | {factor:.1f} "
            f"| {run['memory_mib']:,.0f} | {run['memory_mib'] * 2**18 / run['pins']:.1f}x | {run['peer_mib']:,.0f} |"
        )
    lines += [
        f"| geometric mean | | {mean(ratios):.3f} | | | {mean(faster):.1f} | | | |",
        "",
        "Where the time goes, in milliseconds. `one pass` is the time in which the card reads all arrays of",
        f"the network once at {BANDWIDTH / 1e12:.1f} TB/s: the floor of any phase that looks at every pin.",
        "",
        "| network | one pass | " + " | ".join(PHASES) + " | not core: posing | upload |",
        "|---|---|" + "---|" * len(PHASES) + "---|---|",
    ]
    for run in runs:
        phases = run["phases_ms"]
        spent = " | ".join(f"{phases.get(phase, 0):.0f}" for phase in PHASES)
        lines.append(
            f"| {run['network']} | {1e3 * run['level_bytes'] / BANDWIDTH:.3f} | {spent} "
            f"| {phases['posing']:.0f} | {phases['upload']:.0f} |"
        )
    files = [run for run in runs if run.get("from_file_ms")]
    if files:
        lines += ["", "From the `.snn` file in the page cache to the partition on the host:"]
        lines += [
            f"- {run['network']}: {run['from_file_ms'] / 1e3:.2f} s, of it {run['read_ms'] / 1e3:.2f} s reading"
            for run in files
        ]
    return "\n".join(lines) + "\n"


def mean(values: list[float]) -> float:
    """Geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def figure(record: Record) -> Figure:
    """Core time over pins, ours and the published program's."""
    runs = default_runs(record)
    drawn = Figure(figsize=(7, 4.2), layout="constrained")
    axes = drawn.add_subplot()
    for label, key, marker in (
        ("published program", "peer_ms", "s"),
        ("snnmap, default", "core_ms", "o"),
    ):
        for kind, filled in (("layered", True), ("reservoir", False)):
            some = [run for run in runs if run["network"].endswith("-rand") is not filled]
            axes.plot(
                [run["pins"] for run in some],
                [run[key] for run in some],
                linestyle="none",
                marker=marker,
                color="C1" if key == "peer_ms" else "C0",
                fillstyle="full" if filled else "none",
                label=f"{label}, {kind}",
            )
    for i, run in enumerate(runs):  # names in turn above and below; those of neighbours part
        near = [
            other for other in runs if other is not run and 0.5 < other["pins"] / run["pins"] < 2
        ]
        above = i % 2 == 1 if len(near) != 1 else run["core_ms"] > near[0]["core_ms"]
        crowded = any(other["pins"] < 2 * run["pins"] for other in runs[i + 2 : i + 3])
        follows = i > 1 and run["pins"] < 2 * runs[i - 2]["pins"]
        axes.annotate(
            run["network"],
            (run["pins"], run["core_ms"]),
            xytext=(0, 6 if above else -12),
            textcoords="offset points",
            ha="right" if crowded else "left" if follows else "center",
            fontsize=7,
        )
    axes.set(xscale="log", yscale="log", xlabel="pins", ylabel="core time (ms)")
    axes.margins(0.12, 0.15)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, loc="upper left")
    return drawn
