"""``snnmap map``, ``partition``, ``verify``, ``plot`` and ``info`` from argv to files."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from snnmap.cli import main

MAP = ["map", "lenet", "--profile", "loihi64", "--algorithm", "one-pass"]
FILES = {
    "mapping.json",
    "mapping.h5",
    "partition.txt",
    "placement.csv",
    "placement.bin",
    "traffic.csv",
    "utilization.png",
    "mesh.png",
    "links.png",
    "distributions.png",
}
Capture = pytest.CaptureFixture[str]


def snn_bytes(n_nodes: int, records: list[tuple[int, list[int], float]]) -> bytes:
    """A .snn file: u32 nodes, u32 edges; per edge u32 n, u32 source, u32 destinations[n], f32."""
    data = np.array([n_nodes, len(records)], "<u4").tobytes()
    for source, destinations, weight in records:
        data += np.array([len(destinations), source, *destinations], "<u4").tobytes()
        data += np.array([weight], "<f4").tobytes()
    return data


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mapping of LeNet with everything; tests copy what they change."""
    out = tmp_path_factory.mktemp("mapped") / "out"
    assert main([*MAP, "-o", str(out), "--neurons", "--quiet"]) == 0
    return out


@pytest.fixture
def copied(mapped: Path, tmp_path: Path) -> Path:
    """A copy of `mapped` without figures."""
    for file in mapped.iterdir():
        if file.suffix != ".png":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def test_map_prints_a_summary_first_and_the_files_last(tmp_path: Path, capsys: Capture) -> None:
    assert main([*MAP, "-o", str(tmp_path / "out"), "--no-plots"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("network    lenet: 13,846 neurons, 13,836 axons, 874,812 pins")
    assert lines[-1].startswith(f"wrote {tmp_path}/out: mapping.h5, mapping.json")
    assert any(line.startswith("inbound axons") and "4,096" in line for line in lines)


def test_map_writes_every_file_and_nothing_else(mapped: Path) -> None:
    assert {f.name for f in mapped.iterdir()} == FILES | {"neurons.csv"}
    record = json.loads((mapped / "mapping.json").read_text())
    assert record["verified"] is True
    assert record["network"]["nodes"] == 13846
    assert record["network"]["hyperedges"] == 13836
    assert record["network"]["pins"] == 874812
    assert record["profile"]["name"] == "loihi64"
    assert record["partition"]["algorithm"] == "one-pass"
    assert len((mapped / "partition.txt").read_text().splitlines()) == 13846
    with (mapped / "placement.csv").open(newline="") as file:
        cores = list(csv.DictReader(file))
    assert len(cores) == record["partition"]["parts"]
    assert sum(int(core["neurons"]) for core in cores) == 13846
    assert "conv1:" in "".join(core["layers"] for core in cores)
    for name in FILES:
        if name.endswith(".png"):
            assert (mapped / name).read_bytes().startswith(b"\x89PNG")


def test_json_goes_to_stdout_alone(tmp_path: Path, capsys: Capture) -> None:
    assert main([*MAP, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["traffic"]["multicast"]["energy_pj"] > 0
    assert list(tmp_path.iterdir()) == []


def test_a_second_run_replaces_the_files_of_the_first(copied: Path) -> None:
    (copied / "notes.txt").write_text("mine")
    arguments = ["partition", *MAP[1:], "-o", str(copied), "--no-plots", "--quiet"]
    assert main(arguments) == 0
    expected = {"mapping.json", "mapping.h5", "partition.txt", "notes.txt"}
    assert {f.name for f in copied.iterdir()} == expected
    record = json.loads((copied / "mapping.json").read_text())
    assert "placement" not in record
    assert "traffic" not in record


def test_the_file_of_a_network_is_identified(tmp_path: Path) -> None:
    import hashlib

    data = snn_bytes(3, [(0, [1, 2], 1.5), (1, [2], 1.0)])
    (tmp_path / "net.snn").write_bytes(data)
    out = tmp_path / "out"
    assert main(["map", str(tmp_path / "net.snn"), *MAP[2:], "-o", str(out), "-q"]) == 0
    network = json.loads((out / "mapping.json").read_text())["network"]
    assert network["sha256"] == hashlib.sha256(data).hexdigest()
    assert network["source"] == str(tmp_path / "net.snn")


def test_k_way_partitioning_needs_no_profile(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "c.hgr").write_text("3 4\n1 2\n2 3\n3 4\n")
    words = ["partition", str(tmp_path / "c.hgr"), "--parts", "2", "--imbalance", "0", "--json"]
    assert main([*words, "-a", "one-pass"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["partition"]["parts"] == 2
    assert record["partition"]["max_neurons"] == 2
    assert main(["partition", str(tmp_path / "c.hgr")]) == 2
    assert "--parts K" in capsys.readouterr().err


def test_inputs_off_chip_and_overrides(capsys: Capture) -> None:
    assert main([*MAP, "--inputs-off-chip", "--set", "neurons_per_core=512", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["network"]["inputs_off_chip"] == 3072
    assert record["profile"]["overrides"] == ["neurons_per_core=512"]
    assert record["partition"]["max_neurons"] == 512


# ---------------------------------------------------------------------- mistakes


def refused(capsys: Capture, arguments: list[str], *words: str) -> None:
    """The command fails with exit code 2 and one line that holds all words."""
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1, err
    for word in words:
        assert word in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["map", "lenet", "-p", "loihi65"], ["loihi65", "did you mean", "loihi64"]),
        (["map", "lennet", "-p", "loihi64"], ["lennet", "lenet"]),
        ([*MAP[:4], "-a", "magic"], ["algorithm", "magic", "one-pass"]),
        ([*MAP, "--placer", "magic"], ["placer", "magic", "hilbert"]),
        ([*MAP, "--refine", "magic"], ["refinement", "magic", "force-directed"]),
        ([*MAP, "--engine", "abacus"], ["engine", "abacus", "cpu"]),
        ([*MAP[:4], "--preset", "magic"], ["preset", "magic", "quality"]),
        ([*MAP[:4], "--config", "nowhere.toml"], ["nowhere.toml"]),
        ([*MAP, "--set", "neurons_per_cor=3"], ["neurons_per_cor", "neurons_per_core"]),
        ([*MAP, "--set", "width=3"] * 1 + ["--set", "height=2"], ["cores", "14", "6"]),
        ([*MAP, "--read", "nonsense"], ["--read", "KEY=VALUE"]),
        (["partition", "lenet", "--parts", "2", "--set", "width=3"], ["--profile"]),
    ],
)
def test_wrong_words_are_one_line(
    tmp_path: Path, capsys: Capture, arguments: list[str], words: list[str]
) -> None:
    refused(capsys, [*arguments, "-o", str(tmp_path / "deep" / "out")], *words)
    assert list(tmp_path.iterdir()) == [], "something stays behind"


BAD_FILES: dict[str, tuple[Callable[[], bytes], list[str]]] = {
    "truncated": (lambda: snn_bytes(3, [(0, [1, 2], 1.0), (1, [2], 1.0)])[:-3], ["h-edge 1"]),
    "id-out-of-range": (lambda: snn_bytes(3, [(0, [1], 1.0), (1, [7], 1.0)]), ["7", "h-edge 1"]),
    "nan-weight": (lambda: snn_bytes(3, [(0, [1], float("nan"))]), ["nan", "h-edge 0"]),
    "wide": (
        lambda: snn_bytes(5001, [(i, [5000], 1.0) for i in range(5000)]),
        ["5,000", "4,096", "loihi64", "node 5000"],
    ),
}


@pytest.mark.parametrize("fault", BAD_FILES)
def test_bad_networks_are_one_line(tmp_path: Path, capsys: Capture, fault: str) -> None:
    make, words = BAD_FILES[fault]
    (tmp_path / "net.snn").write_bytes(make())
    network, out = str(tmp_path / "net.snn"), str(tmp_path / "out")
    refused(capsys, ["map", network, "-p", "loihi64", "-o", out], *words)
    assert [f.name for f in tmp_path.iterdir()] == ["net.snn"], "something stays behind"


def test_an_output_that_cannot_be_written_is_refused_before_work(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        pytest.fail("the network was read")

    monkeypatch.setattr("snnmap.networks.load_network", never)
    (tmp_path / "file").write_text("in the way")
    refused(capsys, [*MAP, "-o", str(tmp_path / "file" / "out")], "cannot be written")
    refused(capsys, [*MAP, "-o", str(tmp_path / "file")], "is a file")


# ---------------------------------------------------------------------- verify, plot, info


def test_verify_says_yes(mapped: Path, capsys: Capture) -> None:
    assert main(["verify", str(mapped)]) == 0
    assert capsys.readouterr().out.startswith("verified: lenet on loihi64: 14 parts")
    assert main(["verify", str(mapped / "mapping.h5"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verified"] is True


def change_h5(folder: Path, name: str, change: Callable[[np.ndarray], None]) -> None:
    with h5py.File(folder / "mapping.h5", "r+") as file:
        values = file[name][()]
        change(values)
        file[name][...] = values


def swap_two(values: np.ndarray) -> None:
    values[[0, -1]] = values[[-1, 0]]


def same_core(values: np.ndarray) -> None:
    values[1] = values[0]


def one_more(values: np.ndarray) -> None:
    values[-1] += 1


@pytest.mark.parametrize(
    ("table", "change", "words"),
    [
        ("nodes/part", swap_two, "does not follow"),
        ("parts/core", same_core, "already holds part 0"),
        ("parts/inbound_axons", one_more, "parts/inbound_axons"),
        ("axons/weight", one_more, "axons/weight"),
        ("axons/sources", one_more, "axons/sources"),
        ("outbound/axons", swap_two, "outbound/axons"),
    ],
)
def test_verify_finds_what_was_changed_in_the_tables(
    copied: Path, capsys: Capture, table: str, change: Callable[[np.ndarray], None], words: str
) -> None:
    change_h5(copied, table, change)
    assert main(["verify", str(copied)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("NOT VALID: lenet")
    assert words in out


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("partition.txt", "0\n", "1\n"),
        ("mapping.json", '"parts": 14', '"parts": 13'),
        ("mapping.json", '"verified": true', '"verified": false'),
        ("placement.csv", "conv1", "conv9"),
        ("traffic.csv", "east", "west"),
    ],
)
def test_verify_finds_what_was_changed_in_the_texts(
    copied: Path, capsys: Capture, name: str, old: str, new: str
) -> None:
    text = (copied / name).read_text()
    assert old in text
    (copied / name).write_text(text.replace(old, new, 1))
    assert main(["verify", str(copied)]) == 1
    assert name in capsys.readouterr().out


def test_verify_misses_files_that_are_gone(copied: Path, capsys: Capture) -> None:
    (copied / "placement.bin").unlink()
    assert main(["verify", str(copied), "--json"]) == 1
    assert "placement.bin" in json.loads(capsys.readouterr().out)["faults"][0]


def test_verify_needs_the_network_that_was_mapped(tmp_path: Path, capsys: Capture) -> None:
    net = tmp_path / "net.snn"
    net.write_bytes(snn_bytes(3, [(0, [1, 2], 1.0)]))
    out = str(tmp_path / "out")
    assert main(["map", str(net), *MAP[2:], "-o", out, "-q", "--no-plots"]) == 0
    net.rename(tmp_path / "moved.snn")
    refused(capsys, ["verify", out], "is gone", "--network")
    assert main(["verify", out, "--network", str(tmp_path / "moved.snn"), "-q"]) == 0
    net.write_bytes(snn_bytes(3, [(0, [1, 2], 2.0)]))
    refused(capsys, ["verify", out], "not the one that was mapped")


@pytest.mark.parametrize("folder", ["", "nowhere"])
def test_verify_refuses_what_is_no_mapping(tmp_path: Path, capsys: Capture, folder: str) -> None:
    refused(capsys, ["verify", str(tmp_path / folder)], str(tmp_path))


def test_a_damaged_mapping_is_one_line(copied: Path, capsys: Capture) -> None:
    data = (copied / "mapping.h5").read_bytes()
    (copied / "mapping.h5").write_bytes(data[: len(data) // 2])
    refused(capsys, ["verify", str(copied)], "mapping.h5")


def test_plot_draws_again(copied: Path, capsys: Capture) -> None:
    assert main(["plot", str(copied), "-o", str(copied / "figures"), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)["figures"]
    names = ["distributions.png", "links.png", "mesh.png", "utilization.png"]
    assert [Path(f).name for f in figures] == names
    assert all(Path(f).stat().st_size > 10_000 for f in figures)


def test_info_has_counts_at_its_top(capsys: Capture) -> None:
    assert main(["info", "lenet", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["nodes"], record["hyperedges"], record["pins"]) == (13846, 13836, 874812)
    assert record["layers"][0]["name"] == "input"
    assert main(["info", "lenet"]) == 0
    assert "conv1" in capsys.readouterr().out


def test_help_names_every_algorithm_placer_and_refinement() -> None:
    from typer.main import get_command

    from snnmap.cli import build_app
    from snnmap.partitioning import ALGORITHMS
    from snnmap.placement import PLACERS, REFINEMENTS

    words = " ".join(p.help or "" for p in get_command(build_app()).commands["map"].params)
    for name in [*ALGORITHMS, *PLACERS, *REFINEMENTS]:
        assert name in words, name


@pytest.mark.parametrize("preset", ["fast", "default", "quality", "paper"])
def test_settings_are_dumped_and_read_back(preset: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["map", "lenet", "-p", "loihi64", "--preset", preset, "--dump-config"]) == 0
    text = capsys.readouterr().out
    (tmp_path / "knobs.toml").write_text(text)
    again = ["map", "lenet", "-p", "loihi64", "--config", str(tmp_path / "knobs.toml")]
    assert main([*again, "--dump-config"]) == 0
    assert capsys.readouterr().out == text
    (tmp_path / "bad.toml").write_text("[search]\npopulations = 3\n")
    again[-1] = str(tmp_path / "bad.toml")
    refused(capsys, again, "populations", "population")
    refused(capsys, [*MAP, "--dump-config"], "one-pass", "no settings")


def test_other_rates_are_recorded_and_verified(tmp_path: Path, capsys: Capture) -> None:
    out = str(tmp_path / "out")
    assert main([*MAP, "--rates", "constant:2", "-o", out, "--no-plots"]) == 0
    assert "constant 2" in capsys.readouterr().err
    assert main(["verify", out, "--json"]) == 0
    record = json.loads((tmp_path / "out" / "mapping.json").read_text())
    assert record["network"]["options"] == {"rates": "constant:2"}
    assert record["traffic"]["multicast"]["injected_spikes_s"] == 2 * 13836
