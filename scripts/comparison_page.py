"""The tables of docs/comparison.md from benchmarks/comparison.json; see scripts/bench_paper."""

from __future__ import annotations

import json
import statistics
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from comparison_quality import baselines_table, program_table, to_the_end

from snnmap.bench.figures import comparison_figure, scaling_figure
from snnmap.bench.records import DONE, RunRecord, record_from
from snnmap.bench.report import markdown
from snnmap.bench.summary import BASELINES, Cell, Summary, summary_of
from snnmap.writers.atomic import whole_file

OURS, OURS_CPU, PAPER = "multilevel (gpu)", "multilevel", "multilevel:paper (gpu)"
START, END = "<!-- made by scripts/bench_paper --page: -->", "<!-- :made -->"
DPI = 110
IMAGES = "images"

WITHIN = 1.1
"""Two ratios agree if neither is larger than the other by more than this factor."""


@dataclass(frozen=True, slots=True)
class Published:
    """A ratio in Table I and section VI of arXiv 2604.14411.

    Attributes:
        baseline: against which.
        quantity: "speed-up" (time of the baseline / time on the GPU), "slow-down" (its inverse) or
            "connectivity" (ours / the baseline's).
        value: the ratio.
        kind: "on average" or "at most".
    """

    baseline: str
    quantity: str
    value: float
    kind: str = "on average"

    def __str__(self) -> str:
        return f"{self.value:g}x {self.kind}"

    def agrees(self, values: Collection[float]) -> str:
        """``yes``, or how the ratios measured here differ."""
        if self.kind == "at most":
            return "yes" if max(values) <= self.value else "no: larger"
        mean = statistics.geometric_mean(values)
        if max(mean / self.value, self.value / mean) <= WITHIN:
            return "yes"
        return "no: larger" if mean > self.value else "no: smaller"


PUBLISHED = (
    Published("hierarchical", "speed-up", 246),
    Published("hierarchical", "connectivity", 0.82),
    Published("overlap", "speed-up", 15),
    Published("overlap", "connectivity", 0.71),
    Published("one-pass", "slow-down", 12, "at most"),
    Published("one-pass", "connectivity", 0.09),
)


def read_comparison(path: Path) -> Summary:
    """The records that scripts/bench_paper gathered."""
    content = json.loads(path.read_text(encoding="utf-8"))
    records = [record_from(run) for run in content["runs"]]
    return summary_of(records, content["suite"], content["networks"])


def read_notes(path: Path) -> list[str]:
    """What a reader of the record must know beside its runs."""
    return list(json.loads(path.read_text(encoding="utf-8")).get("notes", []))


def write_page(record: Path, page: Path) -> list[Path]:
    """Put tables and figures into the page; the words around them stay."""
    summary = read_comparison(record)
    notes = read_notes(record)
    head, _, rest = page.read_text(encoding="utf-8").partition(START)
    _, _, tail = rest.partition(END)
    with whole_file(page) as path:
        path.write_text(f"{head}{START}\n\n{tables(summary, notes)}\n{END}{tail}", encoding="utf-8")
    figures = {
        "comparison.png": comparison_figure(summary),
        "comparison_scaling.png": scaling_figure(summary),
    }
    for name, figure in figures.items():
        with whole_file(page.parent / IMAGES / name) as path:
            figure.savefig(path, dpi=DPI, format="png", metadata={"Software": "snnmap"})
    return [page, *(page.parent / IMAGES / name for name in figures)]


def tables(summary: Summary, notes: Iterable[str] = ()) -> str:
    """All that the page says in numbers, as Markdown."""
    lines = ["## Which published ratios agree", "", *verdicts(summary)]
    lines += ["", "## Baselines that had the time they need", "", *baselines_table(summary, PAPER)]
    lines += ["", "## Against the published program", "", *program_table(summary, OURS, PAPER)]
    lines += ["", "## The timed runs against the published ratios"]
    for method, name in ((PAPER, "The paper's own algorithm"), (OURS, "The default algorithm")):
        lines += ["", f"{name}, `{method}`:", "", *ratios(summary, method)]
    lines += ["", "## Network by network", "", *by_network(summary)]
    report = markdown(summary)
    conditions = report.partition("\n\n")[2].partition("\n\n## ")[0]
    lines += ["", "## Conditions", "", conditions, *(f"- note: {note}" for note in notes)]
    for title in ("Connectivity", "Seconds of the algorithm", "Parts"):
        lines += ["", f"## {title}", "", section(report, title)]
    lines += ["", "## Runs that were cut short", "", section(report, UNFINISHED)]
    return "\n".join(lines) + "\n"


def verdicts(summary: Summary) -> list[str]:
    """Published against measured; connectivity against baselines that ended, times as timed."""
    whole = to_the_end(summary, PAPER)
    lines = [
        "| against | quantity | paper | preset `paper` (networks) | agrees | default (networks) | "
        "agrees |",
        "| --- | --- | ---: | ---: | --- | ---: | --- |",
    ]
    for ratio in PUBLISHED:
        row = [ratio.baseline, ratio.quantity, str(ratio)]
        for method, name in ((PAPER, PAPER), (OURS, "default")):
            if ratio.quantity == "connectivity":
                values = list(whole[name, ratio.baseline].values())
            else:
                values = measured(summary, method, ratio)
            row += [typical(ratio, values), ratio.agrees(values) if values else ""]
        lines.append("| " + " | ".join(row) + " |")
    return lines


def typical(published: Published, values: list[float]) -> str:
    """The largest or the geometric mean, as published, and over how many networks."""
    if not values:
        return "none finished"
    one = max(values) if published.kind == "at most" else statistics.geometric_mean(values)
    return f"{factor(one)} ({len(values)})"


UNFINISHED = "Runs that did not end by themselves"


def section(report: str, title: str) -> str:
    """The text under a heading of a bench's report."""
    return report.partition(f"## {title}\n\n")[2].partition("\n\n## ")[0].strip()


def ratios(summary: Summary, method: str) -> list[str]:
    """Published against measured, over the networks that every run finished."""
    lines = [
        "| against | quantity | paper (A100, EPYC 7453) | here: geometric mean | arithmetic mean | "
        "smallest to largest | networks | with those cut short |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for published in PUBLISHED:
        values = measured(summary, method, published)
        if values:
            means = statistics.geometric_mean(values), statistics.fmean(values)
            cells = [*map(factor, means), f"{factor(min(values))} to {factor(max(values))}"]
        else:
            cells = ["none finished", "", ""]
        bound = ""
        if published.quantity == "speed-up":
            bound = at_least(summary, method, published.baseline)
        named = [published.baseline, published.quantity, str(published)]
        row = [*named, *cells, str(len(values)), bound]
        lines.append("| " + " | ".join(row) + " |")
    return lines


def measured(summary: Summary, method: str, published: Published) -> list[float]:
    """Ratios in the paper's sense, one a network, of the timed runs."""
    baseline, quantity = published.baseline, published.quantity
    if quantity == "connectivity":
        return list(summary.factors(method, baseline, "connectivity").values())
    slower = list(summary.factors(method, baseline, "seconds").values())
    return [1 / value for value in slower] if quantity == "speed-up" else slower


def at_least(summary: Summary, method: str, baseline: str) -> str:
    """Mean speed-up if runs cut short had ended when they were stopped: a lower bound."""
    cells = [
        (summary.cells.get((n, method)), summary.cells.get((n, baseline))) for n in summary.networks
    ]
    pairs = [(a.seconds.median, stopped_after(b)) for a, b in cells if a and a.seconds and b]
    values = [theirs / ours for ours, theirs in pairs if theirs]
    if len(values) == len(summary.factors(method, baseline, "seconds")):
        return ""
    return f"over {factor(statistics.geometric_mean(values))} (arithmetic " + (
        f"{factor(statistics.fmean(values))}), {len(values)} networks"
    )


def stopped_after(cell: Cell) -> float:
    """Seconds that a baseline took, or had taken when it was stopped; 0 if nothing tells."""
    if cell.seconds:
        return cell.seconds.median
    return max((r.time_limit_s or 0.0 for r in cell.records if r.status == "timeout"), default=0.0)


def by_network(summary: Summary) -> list[str]:
    """Speed-up and connectivity of ours against each baseline, and GPU against CPU."""
    heads = ["network", "pins", "GPU, s"]
    heads += [
        f"{what} {name}"
        for name in BASELINES
        for what in ("slower than" if name == "one-pass" else "faster than", "connectivity /")
    ]
    heads += ["GPU faster than CPU", "same parts"]
    lines = ["| " + " | ".join(heads) + " |", "| --- |" + " ---: |" * (len(heads) - 1)]
    for network in summary.networks:
        ours = summary.cells.get((network, OURS))
        row = [network, f"{summary.pins(network):,}"]
        row.append(f"{ours.seconds.median:.2f}" if ours and ours.seconds else "")
        for name in BASELINES:
            row += list(against(summary, ours, network, name))
        cpu = summary.factors(OURS, OURS_CPU, "seconds").get(network)
        row += [factor(1 / cpu) if cpu else "", same_parts(summary, network)]
        lines.append("| " + " | ".join(row) + " |")
    return [*lines, "", "\\>: the baseline was cut short by its time limit."]


def against(summary: Summary, ours: Cell | None, network: str, name: str) -> Iterator[str]:
    """Speed-up and connectivity as text; of a baseline cut short what is known."""
    theirs = summary.cells.get((network, name))
    faster = summary.factors(OURS, name, "seconds").get(network)
    known = stopped_after(theirs) if theirs else 0.0
    if faster:
        yield factor(faster if name == "one-pass" else 1 / faster)
    else:
        yield (
            f"\\> {factor(known / ours.seconds.median)}" if ours and ours.seconds and known else ""
        )
    ratio = summary.factors(OURS, name, "connectivity").get(network)
    yield factor(ratio) if ratio else ""


def same_parts(summary: Summary, network: str) -> str:
    """Whether GPU and CPU came to the same value with the same seed, if both ended."""
    found: dict[str, RunRecord] = {
        r.task.engine: r
        for r in summary.records
        if r.task.network == network and (r.task.method, r.task.seed) in {(OURS, 0), (OURS_CPU, 0)}
    }
    if found.keys() < {"cpu", "gpu"} or any(r.status != DONE for r in found.values()):
        return ""
    a, b = found["cpu"], found["gpu"]
    same = (a.connectivity, a.parts, a.cut_net) == (b.connectivity, b.parts, b.cut_net)
    return "yes" if same else "no"


def factor(value: float) -> str:
    """``246x``, ``15.3x``, ``0.82x``."""
    return f"{value:,.0f}x" if value >= 100 else f"{value:#.3g}x"
