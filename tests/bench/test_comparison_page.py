"""scripts/bench_paper and the page it writes."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

from snnmap.bench.records import RunRecord, Task
from snnmap.bench.summary import summary_of
from snnmap.networks.suites import load_suite

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path = str(ROOT / "scripts" / "bench_paper")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = SourceFileLoader("bench_paper", path)
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def run_of(method: str, engine: str = "cpu", **others: object) -> RunRecord:
    task = Task("lenet", method, "default" if method == "multilevel" else "", engine, 0)
    some = RunRecord(task, "done", connectivity=1.0, parts=2, cut_net=1.0, verified=True)
    return replace(some, seconds={"total": 1.0}, **others)


def test_the_page_says_what_is_on_record(script: ModuleType) -> None:
    import comparison_page as page

    text = (ROOT / "docs" / "comparison.md").read_text()
    made = page.tables(page.read_comparison(script.RECORD), page.read_notes(script.RECORD))
    written = text.partition(page.START)[2].partition(page.END)[0].strip()
    assert written == made.strip(), "run scripts/bench_paper --page"


def test_the_commit_given_wins_over_that_of_the_folder(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "make_suite", lambda *_: [])
    monkeypatch.setattr(script, "compile_all", lambda _: [])
    record = run_of("one-pass", commit="older+", profile="some/folder/chip.toml")
    monkeypatch.setattr(script, "run_bench", lambda *_: [record])
    options = argparse.Namespace(
        algorithms=["one-pass"], engines=["cpu"], seeds=1, limit=1.0, paper_limit=1.0,
        minutes=1.0, least_limit=1.0, at_once=1, out=tmp_path, commit="given",
    )  # fmt: skip
    for commit, expected in (("given", "given"), (None, "older+")):
        options.commit = commit
        script.run(load_suite("table1"), tmp_path, options, [], ["note"])
        content = json.loads((tmp_path / "comparison.json").read_text())
        assert [r["commit"] for r in content["runs"]] == [expected]
        assert content["runs"][0]["profile"] == "chip"
        assert content["notes"] == ["note"]


def test_ratios_agree_within_a_factor(script: ModuleType) -> None:
    from comparison_page import Published

    mean, most = (
        Published("overlap", "connectivity", 0.7),
        Published("x", "slow-down", 12, "at most"),
    )
    assert [mean.agrees([v]) for v in (0.65, 0.75, 0.6, 0.8)] == [
        "yes", "yes", "no: smaller", "no: larger"
    ]  # fmt: skip
    assert most.agrees([1, 12]) == "yes"
    assert most.agrees([1, 12.1]) == "no: larger"


def test_parts_are_compared_only_where_both_engines_ended(script: ModuleType) -> None:
    from comparison_page import same_parts

    gpu, cpu = run_of("multilevel", "gpu"), run_of("multilevel")
    assert same_parts(summary_of([gpu, cpu], ""), "lenet") == "yes"
    assert same_parts(summary_of([gpu, replace(cpu, parts=3)], ""), "lenet") == "no"
    assert same_parts(summary_of([gpu, replace(cpu, status="timeout")], ""), "lenet") == ""
    assert same_parts(summary_of([gpu], ""), "lenet") == ""


def test_records_of_different_networks_are_not_mixed(script: ModuleType) -> None:
    from comparison_quality import equal, timed

    found = timed(summary_of([run_of("overlap")], ""), "overlap")
    assert equal(found, {"lenet": 1.0, "vgg11": 2.0}) == ["lenet"]
    with pytest.raises(SystemExit, match="lenet"):
        equal(found, {"lenet": 1.001})
