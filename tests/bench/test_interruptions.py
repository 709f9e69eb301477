"""Killed, interrupted, out of disk: what is left is whole, and the same command goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from snnmap.bench.manifest import file_digest
from snnmap.bench.records import read_records
from snnmap.cli import main
from tests.full_disk import full_disk

SUITE = """
name = "mine"
[[networks]]
name = "first"
profile = "loihi64"
layers = [{ type = "population", name = "a", shape = 800 }]
links = [{ from = "a", to = "a", type = "random", fan_out = 4 }]
[[networks]]
name = "second"
profile = "loihi64"
layers = [{ type = "reservoir", neurons = 40960, fan_out = 40 }]
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "mine.toml").write_text(SUITE)
    return tmp_path / "mine.toml"


def end_early(
    words: list[str], is_time: Callable[[], bool], way: signal.Signals
) -> subprocess.Popen[str]:
    """Start snnmap and send it a signal as soon as it is time; it must still be at work."""
    process = subprocess.Popen(
        [sys.executable, "-m", "snnmap", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 120
    while not is_time():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until
        time.sleep(0.002)
    process.send_signal(way)
    return process


def digests(folder: Path) -> dict[str, str]:
    return {f.name: file_digest(f) for f in folder.iterdir() if not f.name.startswith(".")}


def listed(folder: Path) -> dict[str, str]:
    """What the manifest says of the files."""
    manifest = folder / "manifest.json"
    records = json.loads(manifest.read_text())["networks"] if manifest.exists() else []
    return {r["file"]: r["sha256"] for r in records}


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("format", ["snn", "h5"])
def test_make_goes_on_after_any_end(
    format: str, way: signal.Signals, suite: Path, tmp_path: Path
) -> None:
    words = ["suite", "make", str(suite), "--format", format]
    out, whole = tmp_path / "out", tmp_path / "whole"
    begun = f".second.{format}.*" if format == "snn" else f"first.{format}"
    process = end_early([*words, "-o", str(out)], lambda: any(out.glob(begun)), way)
    said = process.communicate()[1]
    assert process.returncode == (-way if way == signal.SIGKILL else 128 + way)
    assert "Traceback" not in said
    assert not (out / f"second.{format}").exists()
    found, known = digests(out), listed(out)
    assert main([*words, "-o", str(out)]) == 0
    assert main([*words, "-o", str(whole)]) == 0
    assert digests(out) == digests(whole)
    found.pop("manifest.json", None)
    assert not list(out.glob(".*"))
    assert known.items() <= found.items() <= digests(whole).items()  # whole, if there at all


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT])
def test_bench_goes_on_after_any_end(way: signal.Signals, suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["bench", str(suite), "-a", "one-pass,overlap", "--seeds", "2", "-o", str(out)]
    assert main(["suite", "make", str(suite), "-o", str(out / "networks")]) == 0
    process = end_early(words, lambda: len(list(out.glob("runs/[!.]*"))) >= 2, way)
    said = process.communicate()[1]
    assert process.returncode == (-way if way == signal.SIGKILL else 128 + way)
    assert "Traceback" not in said
    before = {r.task: r for r in read_records(out)}
    assert 2 <= len(before) < 8
    assert main(words) == 0
    after = {r.task: r for r in read_records(out)}
    assert len(after) == 8
    assert all(r.has_result for r in after.values())
    assert all(after[task] == record for task, record in before.items())  # not run again


@pytest.mark.parametrize("format", ["h5", "snn", "axh", "hgr"])
def test_a_full_disk_is_one_line(
    format: str, suite: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["suite", "make", str(suite), "--format", format, "-o"]
    assert main([*words, str(tmp_path / "warm")]) == 0  # what is compiled goes into its cache now
    capfd.readouterr()
    with full_disk(40_000):
        assert main([*words, str(out)]) == 2
    said = capfd.readouterr()
    last = said.err.splitlines()[-1]  # after progress, on a slow machine
    assert last == f"snnmap: {out / 'second'}.{format}: cannot be written: File too large"
    assert said.out.startswith(f"first.{format}: 800 neurons")
    assert sorted(f.name for f in out.iterdir()) == [f"first.{format}", "manifest.json"]
    assert listed(out) == {f"first.{format}": digests(out)[f"first.{format}"]}
    assert main([*words, str(out)]) == 0
    assert capfd.readouterr().out.splitlines()[0].endswith("(kept)")


def test_a_manifest_that_does_not_fit(
    suite: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["suite", "make", str(suite), "--only", "first", "--format", "snn", "-o", str(out)]
    assert main(words) == 0
    before = (out / "manifest.json").read_text()
    suite.write_text(SUITE.replace("shape = 800", "shape = 9"))
    capfd.readouterr()
    with full_disk(len(before) - 100):
        assert main(words) == 2
    assert "cannot be written: File too large\n" in capfd.readouterr().err
    assert (out / "manifest.json").read_text() == before  # of other files: it is not trusted
    assert main(words) == 0
    assert not capfd.readouterr().out.splitlines()[0].endswith("(kept)")
    assert listed(out)["first.snn"] == digests(out)["first.snn"]


def test_records_and_reports_that_do_not_fit(
    suite: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["bench", str(suite), "--only", "first", "-a", "one-pass", "--seeds", "1"]
    words += ["-o", str(out)]
    assert main(["suite", "make", str(suite), "--only", "first", "-o", str(out / "networks")]) == 0
    capfd.readouterr()
    with full_disk(600):
        assert main(words) == 2
    said = capfd.readouterr().err
    assert said.endswith("first.one-pass.cpu.0.json: cannot be written: File too large\n")
    assert "Traceback" not in said
    assert list((out / "runs").iterdir()) == []
    with full_disk(6000):
        assert main(words) == 2
    assert "comparison.png: cannot be written: File too large\n" in capfd.readouterr().err
    assert not (out / "comparison.png").exists()
    assert main(words) == 0
    assert "one-pass, seed" not in capfd.readouterr().out  # it was recorded before
    assert (out / "comparison.png").stat().st_size > 6000
