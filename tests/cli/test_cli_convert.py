"""``snnmap convert`` from argv to files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from snnmap.cli import main
from snnmap.readers import read_network
from snnmap.writers import write_network
from tests.readers.bytes_of import records
from tests.small import from_rows, small, to_rows

Capture = pytest.CaptureFixture[str]


def test_converts_and_says_what_is_lost(tmp_path: Path, capsys: Capture) -> None:
    write_network(small(), tmp_path / "net.h5")
    assert main(["convert", str(tmp_path / "net.h5"), str(tmp_path / "net.hgr")]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith(f"{tmp_path / 'net.hgr'}: 8 nodes, 8 h-edges, 24 pins, ")
    assert "note: the names of 3 layers are not kept" in out
    assert any("weights were rounded" in line for line in out)
    assert read_network(tmp_path / "net.hgr").n_nodes == 8


def test_json(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "net").write_bytes(records(3, [(0, [1, 2], 1.0), (2, [0], 0.5)]))
    words = ["convert", str(tmp_path / "net"), str(tmp_path / "net.csv"), "--json"]
    assert main(words) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["nodes"], record["hyperedges"], record["pins"]) == (3, 2, 5)
    assert record["format"] == "edges"
    assert record["bytes"] == (tmp_path / "net.csv").stat().st_size
    assert record["notes"] == [
        "rates are written as weights of links; read them with link_weights=max"
    ]


def test_options_of_reader_and_writer_and_rates(tmp_path: Path, capsys: Capture) -> None:
    source, middle, last = tmp_path / "a.hgr", tmp_path / "b.axh", tmp_path / "c.txt"
    source.write_text("2 3\n1 2 3\n3 1\n")
    option = ["--read", "first_pin_is_source=true"]
    assert main(["convert", str(source), str(middle), *option, "--rates", "constant:0.5"]) == 0
    assert "note: rates: constant 0.5" in capsys.readouterr().out
    assert to_rows(read_network(middle)) == [([0], [1, 2], 0.5), ([2], [0], 0.5)]
    scale = ["--write", "weight-scale=10", "--to", "hgr", "--quiet"]
    assert main(["convert", str(middle), str(last), *scale]) == 0
    assert capsys.readouterr().out == ""
    assert last.read_text() == "2 3 1\n5 1 2 3\n5 3 1\n"


def test_a_shipped_network(tmp_path: Path, capsys: Capture) -> None:
    assert main(["convert", "lenet", str(tmp_path / "lenet.snn"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pins"] == 874_812
    assert read_network(tmp_path / "lenet.snn").n_pins == 874_812


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["net.h5", "net.xyz"], "tells no format to write"),
        (["net.h5", "net.h5", "--to", "xyz"], "cannot write format 'xyz'"),
        (["none.h5", "net.csv"], "none.h5"),
        (["net.h5", "net.snn"], "h-edge"),
        (["net.h5", "folder/net.hgr"], "cannot be written"),
        (["net.h5", "net.hgr", "--write", "weight_scale=0"], "expected a finite number > 0"),
        (["net.h5", "net.hgr", "--write", "scale"], "--write 'scale'; expected KEY=VALUE"),
        (["net.h5", "net.hgr", "--read", "x=1"], "no option 'x'"),
        (["net.h5", "net.hgr", "--rates", "fast"], "no such file"),
    ],
)
def test_mistakes_give_one_line_and_leave_nothing(
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_network(from_rows(3, [([0, 1], [2], 1.0)]), tmp_path / "net.h5")
    assert main(["convert", *words]) == 2
    captured = capsys.readouterr()
    assert problem in captured.err
    assert captured.err.count("\n") == 1
    assert [file.name for file in tmp_path.iterdir()] == ["net.h5"]
