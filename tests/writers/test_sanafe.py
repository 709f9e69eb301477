"""Exports for SANA-FE and as tables; SANA-FE itself must agree with the analytic traffic."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import yaml

from snnmap.cli import main
from snnmap.errors import ConfigError
from snnmap.hardware import Costs, HardwareProfile
from snnmap.hypergraph import Population
from snnmap.limits import Limits
from snnmap.mapping import Mapping, map_network
from snnmap.stored import read_mapping
from snnmap.writers.sanafe import write_sanafe
from snnmap.writers.tables import write_tables
from tests.small import from_rows, small, to_rows

RUN = """
import json, sys, sanafe
arch = sanafe.load_arch(sys.argv[1] + "/arch.yaml")
net = sanafe.load_net(sys.argv[1] + "/snn.yaml", arch)
chip = sanafe.SpikingChip(arch)
chip.load(net)
result = chip.sim(int(sys.argv[2]), timing_model="simple", message_trace=True)
hops = sum(m["hops"] for step in result["message_trace"] for m in step if not m["placeholder"])
print(json.dumps([result["energy"]["network"], result["packets_sent"], hops]))
"""
COSTS = Costs(1.7, 3.0, 4.0, 2.1, 4.1, 6.5)


def mapped(*, rate: float = 1000.0, tile: tuple[int, int] = (1, 1), seed: int = 0) -> Mapping:
    """40 neurons in three layers on cores of at most 5; all fire at `rate`."""
    rng = np.random.default_rng(seed)
    rows = [
        ([n], rng.choice(np.arange(10, 40), 6, replace=False).tolist(), rate) for n in range(40)
    ]
    layers = (
        Population("in", 0, 10, (10,)),
        Population("hidden.1", 10, 30, (20,)),
        Population("hidden-1", 30, 40, (10,)),
    )
    network = from_rows(40, rows, populations=layers, name="forty")
    profile = HardwareProfile(
        name="mesh", width=6, height=4, tile=tile, limits=Limits(max_size=5), costs=COSTS
    )
    return map_network(network, profile, algorithm="one-pass", placer="hilbert")


def run_sanafe(folder: Path, steps: int) -> tuple[float, int, int]:
    """(network energy in J, packets, hops) of a run in a process of its own."""
    if find_spec("sanafe") is None:
        pytest.skip("SANA-FE is not installed: pip install sanafe")
    words = [sys.executable, "-c", RUN, str(folder), str(steps)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    energy, packets, hops = json.loads(done.stdout.splitlines()[-1])
    return energy, packets, hops


@pytest.mark.parametrize("tile", [(1, 1), (2, 2)])
@pytest.mark.parametrize("one_link_a_core", [False, True])
def test_sanafe_spends_the_analytic_energy(
    tmp_path: Path, tile: tuple[int, int], one_link_a_core: bool
) -> None:
    """At 1000 spikes/s and steps of 1 ms every neuron fires in every step: nothing is random."""
    mapping = mapped(tile=tile)
    write_sanafe(mapping, tmp_path, one_link_a_core=one_link_a_core)
    steps = 3
    energy, packets, hops = run_sanafe(tmp_path, steps)
    assert mapping.traffic is not None
    unicast = mapping.traffic.unicast
    seconds = steps * 1e-3
    assert packets == round(unicast.injected.sum() * seconds)
    assert hops == round(unicast.hops * seconds)
    assert energy * 1e12 == pytest.approx(unicast.energy_pj * seconds)


def test_neurons_fire_at_the_rates_of_their_axons(tmp_path: Path) -> None:
    mapping = mapped(rate=200.0)
    write_sanafe(mapping, tmp_path, timestep_ms=2.0)
    steps = 500
    _, packets, _ = run_sanafe(tmp_path, steps)
    assert mapping.traffic is not None
    expected = mapping.traffic.unicast.injected.sum() * steps * 2e-3
    assert packets == pytest.approx(expected, rel=0.05)


def test_yaml_holds_every_neuron_link_and_core_once(tmp_path: Path) -> None:
    mapping = mapped()
    assert write_sanafe(mapping, tmp_path) == ["arch.yaml", "snn.yaml"]
    content = yaml.safe_load((tmp_path / "snn.yaml").read_text())
    groups = content["network"]["groups"]
    assert [g["name"] for g in groups] == ["in", "hidden_1", "hidden_1_2"]
    assert [len(g["neurons"]) for g in groups] == [10, 20, 10]
    assert len(content["network"]["edges"]) == 240
    places = [next(iter(line.values())) for line in content["mappings"]]
    assert len({(p[0]["core"], p[1]["soma"]) for p in places}) == 40
    arch = yaml.safe_load((tmp_path / "arch.yaml").read_text())["architecture"]
    assert arch["tile"][0]["attributes"]["energy_east_hop"] == pytest.approx(4.7e-12)
    assert arch["tile"][0]["attributes"]["energy_north_hop"] == pytest.approx(5.7e-12)


def test_what_sanafe_cannot_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unplaced = map_network(small(), "loihi64", algorithm="one-pass", only_partition=True)
    with pytest.raises(ConfigError, match="not placed"):
        write_sanafe(unplaced, tmp_path)
    profile = HardwareProfile(name="ring", width=4, height=4, topology="torus")
    with pytest.raises(ConfigError, match="'ring' is a torus of 1 chip"):
        write_sanafe(map_network(small(), profile, algorithm="one-pass"), tmp_path)
    monkeypatch.setattr("snnmap.writers.sanafe.MOST_LINKS", 100)
    with pytest.raises(ConfigError, match=r"240 links are more than 100; .*--one-link-a-core"):
        write_sanafe(mapped(), tmp_path)


def test_every_spike_can_be_followed_through_the_tables(tmp_path: Path) -> None:
    """From each source neuron's core over routing.csv to axons_in.csv of every core it reaches."""
    mapping = mapped()
    mapping.write(tmp_path / "out", plots=False)
    stored = read_mapping(tmp_path / "out")
    assert write_tables(stored, tmp_path) == ["axons_in.csv", "routing.csv"]
    with (tmp_path / "routing.csv").open() as file:
        routing = list(csv.DictReader(file))
    with (tmp_path / "axons_in.csv").open() as file:
        inbound = list(csv.DictReader(file))
    arrives = {(f"{r['x']},{r['y']}", r["axon"]): r for r in inbound}
    assert len(arrives) == len(inbound)
    assert mapping.placement is not None
    core = [f"{x},{y}" for x, y in mapping.placement.cores[mapping.partition.parts].tolist()]
    followed = 0
    for axon, (sources, destinations, weight) in enumerate(to_rows(mapping.network)):
        for neuron in sources:
            rows = [
                r for r in routing if r["axon"] == str(axon) and str(neuron) in r["neurons"].split()
            ]
            assert [f"{r['x']},{r['y']}" for r in rows] == [core[neuron]]
            assert float(rows[0]["rate"]) == weight
            reached = rows[0]["destinations"].split()
            assert sorted(reached) == sorted({core[d] for d in destinations})
            for place in reached:
                assert f"{neuron}@{core[neuron]}" in arrives[place, str(axon)]["sources"].split()
                followed += 1
    assert followed == len(inbound)


def test_export_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    words = "map lenet --profile loihi64 --algorithm one-pass --no-plots --quiet -o"
    assert main([*words.split(), str(out)]) == 0
    for form, names in (
        ("tables", {"axons_in.csv", "routing.csv"}),
        ("sanafe", {"arch.yaml", "snn.yaml"}),
    ):
        where = tmp_path / form
        words_ = ["export", str(out), "--to", form, "-o", str(where), "--one-link-a-core", "--json"]
        assert main(words_) == 0
        assert {p.name for p in where.iterdir()} == names
        files = json.loads(capsys.readouterr().out)["files"]
        assert {Path(f).name for f in files} == names
    assert main(["export", str(out), "--to", "paper", "-o", str(tmp_path / "no")]) == 2
    assert "unknown format 'paper'; known: sanafe, tables" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()
