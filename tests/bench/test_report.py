import csv
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from snnmap.bench.figures import comparison_figure, scaling_figure
from snnmap.bench.records import RunRecord, Task, read_record, write_record
from snnmap.bench.report import markdown, write_report
from snnmap.bench.summary import summarise
from snnmap.errors import InputError


def record(network, method, seed, connectivity=None, seconds=1.0, parts=4, **others):
    algorithm, _, preset = method.partition(":")
    task = Task(network, algorithm, preset, "cpu", seed)
    pins = {"small": 1000, "middle": 10_000, "large": 100_000}[network]
    full = RunRecord(
        task, "done", pins=pins, nodes=pins // 10, hyperedges=pins // 20, profile="toy",
        connectivity=connectivity, parts=parts, cut_net=connectivity, verified=True,
        seconds={"total": seconds}, peak_memory_mb=100.0, commit="abc", started="2026-01-02",
        machine={"cpu": "fast", "cores": 2}, versions={"snnmap": "0"},
    )  # fmt: skip
    if connectivity is None:
        full = replace(full, status="refused", message="does not fit", verified=None, parts=None)
    return replace(full, **others)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    for i, network in enumerate(("small", "middle", "large")):
        for seed, factor in enumerate((1.0, 1.1, 0.9)):
            write_record(tmp_path, record(network, "hierarchical", seed, 200 * factor, 10.0**i))
            if network != "large":
                write_record(tmp_path, record(network, "multilevel", seed, 100.0, 0.1 * 10**i, 2))
    write_record(tmp_path, record("large", "multilevel", 0))
    late = {"status": "timeout", "message": "best valid state | so far", "at_once": 2}
    late["machine"] = {"cpu": "fast", "cores": 1}
    write_record(tmp_path, record("small", "one-pass", 0, 400.0, 0.01, 8, **late))
    return tmp_path


def test_records_survive_the_file(folder):
    one = record("small", "multilevel:quality", 5, 1.5)
    write_record(folder, one)
    assert read_record(folder / "runs" / one.task.file_name) == one
    assert one.task.method == "multilevel:quality"
    content = json.loads((folder / "runs" / one.task.file_name).read_text())
    content["from_the_future"] = 1
    (folder / "runs" / one.task.file_name).write_text(json.dumps(content))
    assert read_record(folder / "runs" / one.task.file_name) == one


def test_medians_spreads_and_order(folder):
    summary = summarise(folder)
    assert summary.networks == ("small", "middle", "large")
    assert summary.methods == ("one-pass", "hierarchical", "multilevel")
    cell = summary.cells["small", "hierarchical"]
    assert (cell.connectivity.median, cell.connectivity.n) == (200.0, 3)
    assert (cell.connectivity.low, cell.connectivity.high) == (180.0, pytest.approx(220.0))
    assert summary.cells["large", "multilevel"].connectivity is None
    assert len(summary.cells["small", "one-pass"].unfinished) == 1


def test_geometric_means_take_what_both_have(folder):
    summary = summarise(folder)
    assert summary.ratio("multilevel", "hierarchical", "connectivity") == (pytest.approx(0.5), 2)
    assert summary.ratio("multilevel", "hierarchical", "seconds") == (pytest.approx(0.1), 2)
    assert summary.ratio("multilevel", "one-pass", "parts") is None  # it was cut short
    assert summary.ratio("overlap", "one-pass", "parts") is None


def test_growth_is_the_exponent_of_a_power_law(folder):
    summary = summarise(folder)
    slope, factor = summary.growth("hierarchical")
    assert slope == pytest.approx(1.0)
    assert factor == pytest.approx(1e-3)
    assert summary.growth("multilevel") is None
    cut = record("large", "hierarchical", 0, 200.0, 7.0, status="timeout")
    write_record(folder, cut)
    assert summarise(folder).growth("hierarchical") is None  # two whole ones are left


def test_the_report_says_it_all(folder):
    text = markdown(summarise(folder))
    lines = text.splitlines()
    assert "| small | 1,000 | 400.0\\* | 200.0 (180.0 to 220.0) | 100.0 |" in lines
    assert "| large | 100,000 |  | 200.0 (180.0 to 220.0) | refused |" in lines
    assert "| multilevel | hierarchical | 2 | 0.5x | 0.1x | 10x | 0.5x |" in lines
    assert "| large | multilevel | 0 | refused | does not fit |" in lines
    assert "| small | one-pass | 0 | timeout | best valid state / so far |" in lines
    assert "- machine: cpu fast" in lines
    assert (
        "- cores a run: 1 (up to 2 runs at once) for one-pass; "
        "2 (one run at a time) for hierarchical, multilevel" in lines
    )
    assert "- commit: abc" in lines
    assert "- runs: 17: 15 done, 1 refused, 1 timeout; every result verified independently" in lines


def test_files_of_the_report(folder):
    files = {path.name: path for path in write_report(folder)}
    assert sorted(files) == [
        "comparison.png", "comparison_normalised.png", "report.md", "runs.csv", "scaling.png",
        "summary.csv",
    ]  # fmt: skip
    with files["summary.csv"].open() as file:
        rows = {(r["network"], r["method"]): r for r in csv.DictReader(file)}
    assert rows["small", "hierarchical"]["connectivity_median"] == "200.0"
    assert rows["large", "multilevel"]["connectivity_median"] == ""
    assert rows["small", "one-pass"]["done"] == "0"
    with files["runs.csv"].open() as file:
        runs = list(csv.DictReader(file))
    assert len(runs) == 3 * 3 + 2 * 3 + 2
    assert {r["status"] for r in runs} == {"done", "refused", "timeout"}
    for name in ("comparison.png", "comparison_normalised.png", "scaling.png"):
        assert files[name].read_bytes().startswith(b"\x89PNG")


def test_figures_explain_what_is_hollow_and_count_parts_in_whole_numbers(folder):
    summary = summarise(folder)
    texts = [text.get_text() for text in scaling_figure(summary).legends[0].get_texts()]
    assert texts[-1] == "hollow: cut short"
    (folder / "runs" / "small.one-pass.cpu.0.json").unlink()
    summary = summarise(folder)
    texts = [text.get_text() for text in scaling_figure(summary).legends[0].get_texts()]
    assert not any("hollow" in text for text in texts)
    parts = comparison_figure(summary).axes[2]
    assert parts.get_yscale() == "linear"
    assert all(float(tick).is_integer() for tick in parts.get_yticks())


def test_a_dozen_methods_look_different(tmp_path):
    (tmp_path / "runs").mkdir()
    presets = ("fast", "default", "quality", "paper")
    for engine in ("cpu", "gpu", "auto"):
        for i, preset in enumerate(presets):
            one = record("small", f"multilevel:{preset}", 0, 100.0 + i)
            task = replace(one.task, engine=engine)
            write_record(tmp_path, replace(one, task=task))
    (legend,) = scaling_figure(summarise(tmp_path)).legends
    looks = {(line.get_color(), line.get_marker()) for line in legend.get_lines()}
    assert len(looks) == 12


def test_zeros_and_single_runs_can_be_drawn(tmp_path):
    (tmp_path / "runs").mkdir()
    write_record(tmp_path, record("small", "multilevel", 0, 0.0))
    write_report(tmp_path)
    summary = summarise(tmp_path)
    assert summary.ratio("multilevel", "multilevel", "connectivity") is None
    assert "There is no baseline to compare with." in markdown(summary)
    assert math.isclose(summary.cells["small", "multilevel"].connectivity.median, 0.0)


def test_folders_without_records_are_refused(tmp_path):
    with pytest.raises(InputError, match="holds no records"):
        write_report(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "x.json").write_text("{}")
    with pytest.raises(InputError, match=r"x\.json: is no record of a run"):
        write_report(tmp_path)
