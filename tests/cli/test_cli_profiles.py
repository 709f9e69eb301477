"""``snnmap profiles``: the list, one profile with its sources, the template."""

import json
from pathlib import Path

import pytest

from snnmap.cli import main
from snnmap.hardware import load_profile, profile_names


def test_the_list_names_every_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name in profile_names():
        assert any(line.split(" ")[0] == name for line in lines)
    assert main(["profiles", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in listed] == profile_names()
    assert {entry["name"]: entry["cores"] for entry in listed}["loihi64"] == 4096


def test_one_profile_says_who_knows_each_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", "loihi", "--set", "neurons_per_core=512"]) == 0
    out = capsys.readouterr().out
    assert "loihi: Intel Loihi" in out
    for word in ("512", "set by the user", "second-hand", "23.6", "n/a", "16x8 over 1 chip"):
        assert word in out
    assert main(["profiles", "loihi", "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)["numbers"]
    assert numbers["hop_energy_y_pj"]["value"] == 4.0
    assert numbers["hop_energy_y_pj"]["confidence"] == "second-hand"
    assert numbers["chip_hop_energy_pj"]["value"] is None
    assert numbers["synapses_per_core"]["soft"] is True


def test_the_template_makes_a_profile(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["profiles", "--template"]) == 0
    path = tmp_path / "mychip.toml"
    path.write_text(capsys.readouterr().out)
    assert load_profile(path).n_cores == 64
    assert main(["profiles", str(path)]) == 0
    assert "mychip" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["loihi3"], "unknown hardware profile 'loihi3'; did you mean 'loihi"),
        (["--set", "width=3"], "--set needs the name of the profile"),
        (["loihi", "--template"], "--template prints the template alone"),
    ],
)
def test_mistakes_are_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["profiles", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert len(err.splitlines()) == 1
