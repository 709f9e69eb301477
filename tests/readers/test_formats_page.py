"""docs/formats.md is run, and names the formats that there are."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from snnmap.cli import main
from snnmap.rates import with_rates
from snnmap.readers import FORMATS
from snnmap.writers import NETWORK_FORMATS
from tests.readers.bytes_of import records
from tests.small import from_rows

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_commands_and_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.snn").write_bytes(records(3, [(0, [1, 2], 2.0), (1, [0], 1.0)]))
    Path("circuit.hgr").write_text("2 3\n1 2 3\n2 3\n")
    commands = re.findall(r"^\$ snnmap (.*)$", "".join(blocks("console")), re.MULTILINE)
    assert len(commands) >= 3
    for command in commands:
        assert main([*shlex.split(command), "--quiet"]) == 0, command
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "formats.md", "exec"), names)
    assert names["network"].n_hedges == 2


def test_the_table_of_rates(tmp_path: Path) -> None:
    [text] = blocks("toml")
    table = tomllib.loads(text)
    assert table["populations"].keys() == {"conv1", "fc1", "fc2", "input"}
    (tmp_path / "rates.toml").write_text(text.split("[populations]")[0])
    new, notes = with_rates(from_rows(2, [([0], [1], 5.0)]), tmp_path / "rates.toml")
    assert (new.weights.tolist(), notes) == ([1.0], ["rates: constant 1"])


def test_the_table_of_formats() -> None:
    rows = [line.split("|")[1:-1] for line in PAGE.splitlines() if line.startswith("| `")]
    rows = [row for row in rows if len(row) == 5]
    named = {name: row for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    assert named.keys() == FORMATS.keys()
    for name, (_, suffixes, reads, writes, _) in named.items():
        assert reads.strip() == "yes"
        assert bool(writes.strip()) == (name in NETWORK_FORMATS), name
        known = {*FORMATS[name].suffixes, "folder"}
        if name not in ("graphml", "gexf", "nodelink"):  # which share a row
            assert set(suffixes.split()) <= known, name
            assert set(FORMATS[name].suffixes) - {".h5", ".hdf5"} <= set(suffixes.split()), name
