"""``snnmap place`` and ``snnmap simulate`` from argv to files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from snnmap.cli import main
from snnmap.stored import read_mapping
from snnmap.traffic import measure_traffic

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """LeNet partitioned but not placed."""
    out = tmp_path_factory.mktemp("partitioned") / "out"
    words = "partition lenet --profile loihi64 --algorithm one-pass --no-plots --quiet -o"
    assert main([*words.split(), str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def placed(parts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same on cores."""
    out = tmp_path_factory.mktemp("placed") / "out"
    words = ["place", str(parts), "--placer", "hilbert", "--no-plots", "--quiet", "-o", str(out)]
    assert main(words) == 0
    return out


def test_place_writes_a_verified_mapping(parts: Path, placed: Path) -> None:
    before, after = read_mapping(parts), read_mapping(placed)
    assert before.cores is None
    assert np.array_equal(before.node_parts, after.node_parts)
    record = json.loads((placed / "mapping.json").read_text())
    assert record["verified"] is True
    assert record["placement"]["placer"] == "hilbert"
    assert record["placement"]["refine"] == "force-directed"
    assert main(["verify", str(placed), "--quiet"]) == 0


def test_place_honours_fixed_and_forbidden_cores(placed: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    words = ["place", str(placed), "-o", out, "--no-plots", "--quiet", "--placer", "snake"]
    assert main([*words, "--fix", "3=5,6", "--forbid", "0-63,2; 1,1", "--fix", "0=0,0"]) == 0
    cores = read_mapping(out).cores
    assert cores is not None
    assert cores[3].tolist() == [5, 6]
    assert cores[0].tolist() == [0, 0]
    assert not (cores[:, 1] == 2).any()
    assert [1, 1] not in cores.tolist()


def test_place_without_output_writes_nothing(parts: Path, capsys: Capture) -> None:
    before = sorted(parts.iterdir())
    words = ["place", str(parts), "--placer", "z-order", "--refine", "none", "--json", "-q"]
    assert main(words) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["placement"]["refine"] == "none"
    assert record["traffic"]["unicast"]["energy_pj"] > 0
    assert sorted(parts.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--placer", "magic"], "unknown placer 'magic'"),
        (["--refine", "magic"], "unknown refinement 'magic'"),
        (["--fix", "3"], "--fix '3'; expected PART=X,Y"),
        (["--fix", "3=1,1", "--fix", "3=2,2"], "part 3 is fixed twice"),
        (["--fix", "99=1,1"], "fixed part 99 does not exist"),
        (["--forbid", "a"], "--forbid 'a'; expected cores as x,y"),
        (["--forbid", "0-63,0-63"], "exceeds the limit 0"),
    ],
)
def test_wrong_words_to_place(
    parts: Path, tmp_path: Path, capsys: Capture, words: list[str], message: str
) -> None:
    out = tmp_path / "out"
    assert main(["place", str(parts), "-o", str(out), "-q", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_simulate_agrees_with_the_analytic_report(placed: Path, capsys: Capture) -> None:
    assert main(["simulate", str(placed), "--timesteps", "20000", "--json", "-q"]) == 0
    record = json.loads(capsys.readouterr().out)
    stored = read_mapping(placed)
    analytic = measure_traffic(stored.part_graph, stored.placement, stored.profile).multicast
    assert record["mean_latency_ns"] == pytest.approx(analytic.mean_latency_ns, rel=0.01)
    assert record["max_latency_ns"] == pytest.approx(analytic.max_latency_ns)
    assert record["spikes"] / 20 == pytest.approx(analytic.injected.sum(), rel=0.02)
    assert record["dropped"] == 0


def test_simulate_writes_tables(placed: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "sim"
    words = ["simulate", str(placed), "-t", "50", "--link-bandwidth", "1e5", "--buffer", "3"]
    assert main([*words, "--arrivals", "burst", "-o", str(out)]) == 0
    text = capsys.readouterr().out
    assert "dropped" in text
    record = json.loads((out / "simulation.json").read_text())
    assert record["dropped"] > 0
    with (out / "simulation_latency.csv").open() as file:
        spread = list(csv.DictReader(file))
    assert sum(int(row["deliveries"]) for row in spread) == record["delivered"]
    with (out / "simulation_links.csv").open() as file:
        links = list(csv.DictReader(file))
    assert max(float(r["spikes_per_s"]) for r in links) == pytest.approx(
        record["max_link_load_spikes_s"]
    )
    with (out / "simulation_time.csv").open() as file:
        times = list(csv.DictReader(file))
    assert sum(int(r["spikes_on_links"]) for r in times) == sum(int(r["spikes"]) for r in links)
    assert len(times) == 50
    assert (out / "simulation.png").read_bytes().startswith(b"\x89PNG")
    again = tmp_path / "plain"
    assert main([*words, "--no-plots", "-o", str(again), "-q"]) == 0
    assert not (again / "simulation.png").exists()


def test_simulate_sonata_spikes(placed: Path, tmp_path: Path, capsys: Capture) -> None:
    """The same spikes as from CSV, by the name of the layer."""
    layer = next(p for p in read_mapping(placed).populations if p.name == "conv1")
    table, sonata = tmp_path / "spikes.csv", tmp_path / "spikes.h5"
    table.write_text(f"time_ms,neuron\n0.25,{layer.start + 3}\n7.5,{layer.start}\n")
    with h5py.File(sonata, "w") as file:
        file["spikes/gids"], file["spikes/timestamps"] = [0, 3], [7.5, 0.25]
    records = []
    for what in (table, f"{sonata}@conv1"):
        assert main(["simulate", str(placed), "--spikes", str(what), "--json", "-q"]) == 0
        records.append(json.loads(capsys.readouterr().out))
    assert records[1]["notes"] == ["2 spikes of 'conv1': times in ms"]
    for record in records:
        del record["notes"], record["spikes_from"]
    assert records[0] == records[1]
    assert records[0]["spikes"] == 2
    assert main(["simulate", str(placed), "--spikes", str(sonata)]) == 2
    assert "add @POPULATION, one of input, conv1" in capsys.readouterr().err


def test_recorded_spikes_that_nothing_sends_are_said(tmp_path: Path, capsys: Capture) -> None:
    out, file = tmp_path / "out", tmp_path / "spikes.csv"
    words = "map lenet -p loihi64 -a one-pass --placer snake --inputs-off-chip --no-plots -q -o"
    assert main([*words.split(), str(out)]) == 0
    last = len(read_mapping(out).node_parts) - 1  # an output: no axon leaves it
    file.write_text(f"time_ms,neuron\n1,0\n2,3072\n3,1\n4,{last}\n")
    assert main(["simulate", str(out), "--spikes", str(file)]) == 0
    text = capsys.readouterr().out
    assert "note: 2 of 4 spikes are of inputs off the chip, which send nothing here" in text
    assert "note: 1 of 4 spikes are of neurons without axons, which send nothing here" in text
    assert ": 1 spikes in 5 time steps" in text


def test_simulate_recorded_spikes(placed: Path, tmp_path: Path, capsys: Capture) -> None:
    """One spike of a neuron reaches every core that its axon does, and nothing else moves."""
    stored = read_mapping(placed)
    neuron = 3072  # the first of conv1
    axon = int(np.flatnonzero(stored.tables["axons/sources"] == neuron)[0])
    group = int(np.searchsorted(stored.tables["groups/axon_offsets"], axon, side="right")) - 1
    reached = np.diff(stored.tables["groups/part_offsets"])[group]
    file = tmp_path / "spikes.csv"
    file.write_text(f"time_ms,neuron\n0.25,{neuron}\n7.5,{neuron}\n")
    words = ["simulate", str(placed), "--spikes", str(file), "--json", "-q"]
    assert main(words) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["spikes"], record["timesteps"]) == (2, 8)
    assert record["delivered"] == 2 * reached
    assert main([*words, "-t", "5"]) == 0
    assert json.loads(capsys.readouterr().out)["spikes"] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--timesteps", "0"], "timesteps is 0"),
        (["--model", "broadcast"], "unknown model"),
        (["--arrivals", "late"], "unknown arrivals"),
        (["--spikes", "missing.csv"], "missing.csv: no such file"),
        (["--spikes", "missing.csv", "--arrivals", "burst"], "--spikes has its own"),
        (["--link-bandwidth", "-1"], "link bandwidth is -1"),
    ],
)
def test_wrong_words_to_simulate(
    placed: Path, capsys: Capture, words: list[str], message: str
) -> None:
    assert main(["simulate", str(placed), "-q", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_simulate_needs_a_placement(parts: Path, capsys: Capture) -> None:
    assert main(["simulate", str(parts)]) == 2
    assert "holds no placement" in capsys.readouterr().err


def test_map_improves_jointly_when_asked(tmp_path: Path, capsys: Capture) -> None:
    words = "map lenet -p loihi64 -a one-pass --placer spectral --no-plots --json -q -o".split()
    records = []
    for extra in ([], ["--joint"]):
        assert main([*words, str(tmp_path / "out"), *extra]) == 0
        records.append(json.loads(capsys.readouterr().out))
        assert main(["verify", str(tmp_path / "out"), "-q"]) == 0
    plain, joint = records
    assert [r["placement"]["joint"] for r in records] == [False, True]
    assert joint["verified"] is True
    assert joint["partition"]["seconds"]["joint"] > 0
    for cost in ("energy_pj", "energy_latency_pj_ns"):
        assert joint["traffic"]["unicast"][cost] < plain["traffic"]["unicast"][cost]
    stored = read_mapping(tmp_path / "out").placement
    assert (stored.joint, stored.engine) == (True, "cpu")


def test_place_takes_an_engine(parts: Path, capsys: Capture) -> None:
    words = ["place", str(parts), "--placer", "snake", "--refine", "none", "--json", "-q"]
    assert main([*words, "--engine", "cpu"]) == 0
    assert json.loads(capsys.readouterr().out)["placement"]["engine"] == "cpu"
    assert main([*words, "--engine", "fpga"]) == 2
    assert "unknown engine 'fpga'; known: auto, cpu, gpu" in capsys.readouterr().err


def test_joint_improvement_is_verified_and_cheaper(
    parts: Path, tmp_path: Path, capsys: Capture
) -> None:
    words = ["place", str(parts), "--placer", "spectral", "--no-plots", "--json", "-q"]
    assert main(words) == 0
    plain = json.loads(capsys.readouterr().out)
    assert main([*words, "--joint", "-o", str(tmp_path / "out")]) == 0
    joint = json.loads(capsys.readouterr().out)
    assert joint["verified"] is True
    assert joint["traffic"]["unicast"]["energy_pj"] < plain["traffic"]["unicast"]["energy_pj"]
    assert main(["verify", str(tmp_path / "out"), "-q"]) == 0
    assert main([*words, "--joint", "--fix", "0=0,0"]) == 2
    assert "leave out --fix" in capsys.readouterr().err
