"""``snnmap check``: the answer on stdout, exit code 0, 1 or 2, one line for mistakes."""

import json
from pathlib import Path

import numpy as np
import pytest

from snnmap.cli import main
from snnmap.cli.check import _NEEDS
from snnmap.hardware.schema import LIMIT_FIELDS


def write_snn(path: Path, n_nodes: int, fan_in: int) -> Path:
    """`fan_in` neurons, each with one axon to neuron `n_nodes - 1`."""
    record = np.dtype([("n", "<u4"), ("src", "<u4"), ("dst", "<u4"), ("weight", "<f4")])
    rows = np.zeros(fan_in, record)
    rows["n"], rows["src"], rows["dst"], rows["weight"] = 1, np.arange(fan_in), n_nodes - 1, 1.0
    path.write_bytes(np.array([n_nodes, fan_in], "<u4").tobytes() + rows.tobytes())
    return path


def test_a_network_that_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "lenet", "--profile", "loihi64"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("lenet on loihi64: fits\n13,846 neurons (with 3,072 inputs)")
    assert err == ""
    for word in ("conv1", "27 / 75 / 75", "inbound axons per core", "576", "14.1 %", "4,096"):
        assert word in out


def test_a_network_that_does_not(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write_snn(tmp_path / "wide.snn", 5001, 5000)
    assert main(["check", str(path), "--profile", "loihi64"]) == 1
    out, err = capsys.readouterr()
    assert err == ""
    assert "wide on loihi64: does not fit" in out
    assert "does not fit: neuron 5000 needs 5,000 inbound axons, a core holds 4,096\n" in out
    assert "--set inbound_axons_per_core=5000" in out
    assert "shipped profiles against which nothing speaks: " in out
    assert main(["check", str(path), "-p", "loihi64", "--set", "inbound_axons_per_core=5000"]) == 0


def test_inputs_off_the_chip(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["check", "lenet", "-p", "loihi", "--set", "dead_cores=0-15,1-7;0-4,0"]
    assert main(arguments) == 1
    assert "keep the inputs off the chip: --inputs-off-chip" in capsys.readouterr().out
    assert main([*arguments, "--inputs-off-chip"]) == 0
    out = capsys.readouterr().out
    assert "10,774 neurons, 3,072 inputs off the chip" in out
    assert "input (input, off the chip)" in out


def test_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "lenet", "--profile", "truenorth", "--json"]) == 1
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err == ""
    assert (found["verdict"], found["fits"], found["profile"]) == (
        "does not fit",
        False,
        "truenorth",
    )
    (offence,) = found["offences"]
    assert (offence["layer"], offence["count"], offence["value"]) == ("dense1", 120, 576)
    assert "loihi" in found["profiles_that_fit"]


def test_what_is_unknown_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "lenet", "--profile", "loihi2"]) == 0
    out = capsys.readouterr().out
    assert (
        "not checked: inbound axons per core, not public; --set inbound_axons_per_core=..." in out
    )
    assert "n/a" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lenet", "--profile", "loihi46"], "unknown hardware profile 'loihi46'; did you mean"),
        (["lenett", "--profile", "loihi64"], "lenett"),
        (["lenet", "--profile", "loihi64", "--set", "neurons=3"], "unknown key 'neurons'"),
        (["lenet", "--profile", "loihi64", "--set", "width=x"], "width is 'x'; expected a whole"),
    ],
)
def test_mistakes_are_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["check", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert len(err.splitlines()) == 1


def test_a_hopeless_mismatch_stays_readable(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "vgg11", "--profile", "dynap-se2"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("does not fit: neuron") for line in lines) == 12
    assert any(line.endswith("more such lines (--json has all)") for line in lines)
    assert any("fan in per neuron in 'conv2', 'conv3', 'conv4', 'conv5', 'conv6', ...:" in line
               for line in lines)  # fmt: skip


def test_every_limit_has_its_sentence() -> None:
    assert _NEEDS.keys() == LIMIT_FIELDS.keys()
