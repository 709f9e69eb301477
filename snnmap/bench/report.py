"""A folder of records as a report: Markdown, CSV and figures."""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path

from snnmap.bench.figures import comparison_figure, scaling_figure
from snnmap.bench.records import RunRecord
from snnmap.bench.summary import BASELINES, QUANTITIES, Spread, Summary, summarise
from snnmap.writers.atomic import whole_file

DPI = 130
TITLES = {"connectivity": "Connectivity", "seconds": "Seconds", "parts": "Parts", "memory": "MB"}


def write_report(folder: str | Path) -> list[Path]:
    """Write ``report.md``, ``summary.csv``, ``runs.csv`` and the figures beside the records.

    Returns:
        The files.

    Raises:
        InputError: a folder without records.
        OutputError: a file that cannot be written.
    """
    folder = Path(folder)
    summary = summarise(folder)
    texts = {
        "report.md": markdown(summary),
        "summary.csv": summary_csv(summary),
        "runs.csv": runs_csv(summary),
    }
    for name, text in texts.items():
        with whole_file(folder / name) as path:
            path.write_text(text, encoding="utf-8", newline="")
    figures = {
        "comparison.png": comparison_figure(summary),
        "comparison_normalised.png": comparison_figure(summary, normalised=True),
        "scaling.png": scaling_figure(summary),
    }
    for name, figure in figures.items():
        with whole_file(folder / name) as path:
            figure.savefig(path, dpi=DPI, format="png", metadata={"Software": "snnmap"})
    return [folder / name for name in (*texts, *figures)]


def markdown(summary: Summary) -> str:
    """The report as Markdown text."""
    lines = [f"# Benchmark{f' on suite `{summary.suite}`' if summary.suite else ''}", ""]
    lines += _conditions(summary.records)
    for quantity, title, digits in (
        ("connectivity", "Connectivity", 1),
        ("seconds", "Seconds of the algorithm", 3),
        ("parts", "Parts", 0),
        ("memory", "Peak memory of the process (MB)", 0),
    ):
        lines += ["", f"## {title}", "", "Median over seeds (smallest to largest).", ""]
        lines += _table(summary, quantity, digits)
    lines += ["", "## Against each baseline", ""]
    lines += _ratios(summary)
    lines += ["", "## Runs that did not end by themselves", ""]
    lines += _unfinished(summary)
    return "\n".join(lines) + "\n"


def summary_csv(summary: Summary) -> str:
    """One line a method and network: medians, smallest and largest values."""
    text = io.StringIO()
    writer = csv.writer(text)
    spreads = [f"{q}_{part}" for q in QUANTITIES for part in ("median", "min", "max")]
    writer.writerow(["network", "nodes", "hyperedges", "pins", "method", "runs", "done", *spreads])
    for (network, method), cell in summary.cells.items():
        first = cell.records[0]
        values: list[float | str] = []
        for quantity in QUANTITIES:
            spread: Spread | None = getattr(cell, quantity)
            values += [spread.median, spread.low, spread.high] if spread else ["", "", ""]
        done = len(cell.records) - len(cell.unfinished)
        counts = [first.nodes, first.hyperedges, first.pins]
        writer.writerow([network, *counts, method, len(cell.records), done, *values])
    return text.getvalue()


def runs_csv(summary: Summary) -> str:
    """One line a run."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(
        ["network", "algorithm", "preset", "engine", "seed", "status", "parts", "connectivity",
         "cut_net", "seconds", "read_seconds", "peak_memory_mb", "profile", "time_limit_s",
         "commit", "started", "message"]
    )  # fmt: skip
    for r in summary.records:
        t = r.task
        writer.writerow(
            [t.network, t.algorithm, t.preset, t.engine, t.seed, r.status, r.parts, r.connectivity,
             r.cut_net, r.seconds.get("total"), r.read_seconds, r.peak_memory_mb, r.profile,
             r.time_limit_s, r.commit, r.started, r.message]
        )  # fmt: skip
    return text.getvalue()


def _conditions(records: tuple[RunRecord, ...]) -> list[str]:
    """Machines, versions, commits and settings, each once."""

    def distinct(values: list[str]) -> str:
        return "; ".join(v for v, _ in Counter(v for v in values if v).most_common())

    machines = distinct(
        [", ".join(f"{k} {_plain(v)}" for k, v in r.machine.items() if k != "cores")
         for r in records]
    )  # fmt: skip
    shares: dict[tuple[int, int], dict[str, None]] = {}
    for r in records:
        shares.setdefault((r.machine.get("cores", 0), r.at_once), {})[r.task.method] = None
    cores = "; ".join(
        f"{n} ({f'up to {at_once} runs at once' if at_once > 1 else 'one run at a time'}) "
        f"for {', '.join(methods)}"
        for (n, at_once), methods in sorted(shares.items())
    )
    versions = distinct([", ".join(f"{k} {v}" for k, v in r.versions.items()) for r in records])
    limits = distinct([f"{r.time_limit_s:g} s" if r.time_limit_s else "none" for r in records])
    days = sorted({r.started[:10] for r in records if r.started})
    statuses = Counter(r.status for r in records)
    told = ", ".join(f"{n} {status}" for status, n in statuses.most_common())
    return [
        f"- machine: {machines}",
        f"- cores a run: {cores}",
        f"- versions: {versions}",
        f"- commit: {distinct([r.commit or '' for r in records]) or 'not from a checkout'}",
        f"- days: {' to '.join(dict.fromkeys((days[0], days[-1]))) if days else 'not recorded'}",
        f"- profiles: {distinct([r.profile for r in records])}; time limit: {limits}",
        f"- runs: {len(records)}: {told}; every result verified independently",
    ]


def _plain(value: object) -> str:
    return " + ".join(map(str, value)) if isinstance(value, list) else str(value)


def _table(summary: Summary, quantity: str, digits: int) -> list[str]:
    rows = [["network", "pins", *summary.methods]]
    columns = [summary.values(method, quantity) for method in summary.methods]
    for i, network in enumerate(summary.networks):
        cells = []
        for method, column in zip(summary.methods, columns, strict=True):
            cell = summary.cells.get((network, method))
            if cell is None:
                cells.append("")
            elif column[i] is None:
                cells.append(cell.records[0].status)
            else:
                cells.append(_spread(column[i], digits) + ("\\*" if cell.unfinished else ""))
        rows.append([network, f"{summary.pins(network):,}", *cells])
    lines = _rows(rows)
    if any(cell.unfinished and cell.seconds for cell in summary.cells.values()):
        lines += ["", "\\* some of its runs were cut short, see below."]
    return lines


def _spread(spread: Spread | None, digits: int) -> str:
    if spread is None:
        return ""
    median = f"{spread.median:,.{digits}f}"
    low, high = f"{spread.low:,.{digits}f}", f"{spread.high:,.{digits}f}"
    return median if low == high else f"{median} ({low} to {high})"


def _ratios(summary: Summary) -> list[str]:
    """Geometric means of every method over every baseline."""
    baselines = [b for b in (*BASELINES, "mtkahypar", "kahypar") if b in summary.methods]
    rows = [["method", "baseline", "networks", "connectivity", "time", "speed-up", "parts"]]
    for method in summary.methods:
        for baseline in baselines:
            if method == baseline:
                continue
            found = [
                summary.ratio(method, baseline, q) for q in ("connectivity", "seconds", "parts")
            ]
            if not found[1]:
                continue
            connectivity, seconds, parts = (_factor(r[0]) if r else "" for r in found)
            networks, faster = str(found[1][1]), _factor(1 / found[1][0])
            rows.append([method, baseline, networks, connectivity, seconds, faster, parts])
    if len(rows) == 1:
        return ["There is no baseline to compare with."]
    note = (
        "Geometric means over the networks on which both have a result and no run was cut short "
        "(medians over seeds; a connectivity of 0 is left out)."
    )
    return [note, "", *_rows(rows)]


def _factor(value: float) -> str:
    return f"{value:,.0f}x" if value >= 100 else f"{value:.3g}x"


def _unfinished(summary: Summary) -> list[str]:
    rows = [["network", "method", "seed", "status", "why"]]
    for cell in summary.cells.values():
        for r in cell.unfinished:
            why = r.message.replace("|", "/").replace("\n", " ")
            rows.append([cell.network, cell.method, str(r.task.seed), r.status, why])
    return ["None."] if len(rows) == 1 else _rows(rows)


def _rows(rows: list[list[str]]) -> list[str]:
    """A Markdown table; numbers stand on the right."""
    right = [
        all(not row[i] or row[i].lstrip("-")[:1].isdigit() for row in rows[1:])
        for i in range(len(rows[0]))
    ]
    rule = ["---:" if r else "---" for r in right]
    return ["| " + " | ".join(row) + " |" for row in (rows[0], rule, *rows[1:])]
