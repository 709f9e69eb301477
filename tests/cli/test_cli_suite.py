"""``snnmap suite``: list, show, make."""

import json
from pathlib import Path

import pytest

from snnmap.cli import main
from snnmap.networks.suites import suite_names


def test_the_list_names_every_suite(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suite", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name in suite_names():
        assert any(line.split(" ")[0] == name for line in lines)
    assert main(["suite", "list", "--json"]) == 0
    listed = {s["name"]: s["networks"] for s in json.loads(capsys.readouterr().out)}
    assert sorted(listed) == suite_names()
    assert listed["table1"] == 10


def test_a_suite_shows_its_networks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suite", "show", "table1"]) == 0
    assert "256,105,600" in capsys.readouterr().out
    assert main(["suite", "show", "table1", "--json", "--seed", "3"]) == 0
    networks = json.loads(capsys.readouterr().out)["networks"]
    assert [n["seed"] for n in networks] == [3] * 10
    assert [n["pins"] for n in networks] == [None] * 10  # of other seeds they are not known


def test_make_writes_files_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["suite", "make", "smoke", "-o", str(tmp_path / "out")]
    chosen = ["--only", "lenet", "--only", "chain-3k"]
    assert main([*words, *chosen]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("lenet.h5: 13,846 neurons, 13,836 axons, 874,812 pins")
    assert [line.endswith("(kept)") for line in lines] == [False, False]
    assert main([*words, *chosen]) == 0
    assert all(line.endswith("(kept)") for line in capsys.readouterr().out.splitlines())
    assert main([*words, "--only", "lenet", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["networks"][0]["pins"] == 874_812
    files = sorted(f.name for f in (tmp_path / "out").iterdir())
    assert files == ["chain-3k.h5", "lenet.h5", "manifest.json"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["show", "smok"], "'smok' is neither a suite nor a file; did you mean 'smoke'?"),
        (["make", "smoke", "-o", "OUT", "--only", "x"], "suite 'smoke' has no network 'x'"),
        (["make", "smoke", "-o", "OUT", "--format", "nir"], "unknown format 'nir'"),
        (["make", "smoke", "-o", "OUT", "--scale", "-1"], "scale is -1.0"),
    ],
)
def test_mistakes_are_one_line(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert main(["suite", *(str(out) if w == "OUT" else w for w in words)]) == 2
    captured = capsys.readouterr()
    assert text in captured.err
    assert captured.err.count("\n") == 1
    assert not out.exists()
