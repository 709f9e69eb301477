"""``snnmap networks``: the list, one network, its model file."""

import json
from pathlib import Path

import pytest

from snnmap.cli import main
from snnmap.networks import network_names


def test_the_list_names_every_network(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["networks"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name in network_names():
        assert any(line.split(" ")[0] == name for line in lines)
    assert main(["networks", "--json"]) == 0
    listed = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert sorted(listed) == network_names()
    assert listed["1M-model"]["stand_in"]
    assert not listed["lenet"]["stand_in"]


def test_one_network_shows_its_layers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["networks", "lenet"]) == 0
    out = capsys.readouterr().out
    for word in ("conv1", "32x32x6", "13,846", "874,812"):
        assert word in out
    assert main(["networks", "lenet", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["nodes"], shown["hyperedges"], shown["pins"]) == (13846, 13836, 874812)
    assert shown["layers"][-1] == {
        "name": "dense3",
        "shape": [10],
        "neurons": 10,
        "first": 13836,
        "is_input": False,
    }


def test_a_model_file_is_a_start_for_ones_own(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["networks", "lenet", "--toml"]) == 0
    path = tmp_path / "mine.toml"
    path.write_text(capsys.readouterr().out.replace("units = 120", "units = 64"))
    assert main(["networks", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nodes"] == 13846 - 120 + 64


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["lenett"], "no network is called 'lenett'; did you mean 'lenet'?"),
        (["nowhere.toml"], "nowhere.toml: cannot be read"),
        (["--toml"], "--toml needs the name of a network"),
    ],
)
def test_mistakes_are_one_line(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["networks", *words]) == 2
    captured = capsys.readouterr()
    assert text in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
