"""Exports of any mapping are right, and nothing in them can change without being noticed."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from snnmap.cli import main
from snnmap.errors import InputError
from snnmap.hardware import HardwareProfile
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.mapping import Mapping, map_network
from snnmap.stored import StoredMapping, read_mapping
from snnmap.verification import verify_exports
from snnmap.writers.sanafe import write_sanafe
from snnmap.writers.tables import write_tables
from tests.placement.chips import UNIFORM
from tests.strategies import hypergraphs


def exported(
    graph: Hypergraph, folder: Path, *, tile: int = 1, **options: bool
) -> tuple[Mapping, StoredMapping]:
    """A mapping of the network, with all exports in `folder`."""
    profile = HardwareProfile(
        name="mesh", width=6, height=6, tile=(tile, tile), limits=Limits(max_size=6), costs=UNIFORM
    )
    mapping = map_network(graph, profile, algorithm="one-pass", placer="hilbert", refine="none")
    mapping.write(folder, plots=False)
    stored = read_mapping(folder)
    write_tables(stored, folder)
    write_sanafe(mapping, folder, **options)
    return mapping, stored


def faults(folder: Path, mapping: Mapping, stored: StoredMapping) -> tuple[str, ...]:
    return verify_exports(folder, stored, mapping.hypergraph, mapping.network)


@given(hypergraphs(min_nodes=1, max_nodes=14), st.sampled_from([1, 2]), st.booleans())
@settings(deadline=None, max_examples=40)
def test_exports_are_right(
    tmp_path_factory: pytest.TempPathFactory, graph: Hypergraph, tile: int, brief: bool
) -> None:
    folder = tmp_path_factory.mktemp("out")
    assert faults(folder, *exported(graph, folder, tile=tile, one_link_a_core=brief)) == ()


@given(
    hypergraphs(min_nodes=2, max_nodes=14),
    st.sampled_from(["axons_in.csv", "routing.csv"]),
    st.data(),
)
@settings(deadline=None, max_examples=40)
def test_a_changed_cell_or_missing_line_is_found(
    tmp_path_factory: pytest.TempPathFactory, graph: Hypergraph, name: str, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("out")
    mapping, stored = exported(graph, folder)
    with (folder / name).open(newline="") as file:
        header, *rows = csv.reader(file)
    assume(rows)
    i = data.draw(st.integers(0, len(rows) - 1))
    change = data.draw(st.sampled_from(["cell", "gone", "twice"]))
    if change == "gone":
        del rows[i]
    elif change == "twice":
        rows.append(rows[i])
    else:
        k = data.draw(st.integers(0, len(header) - 1))
        number = re.search(r"\d+", rows[i][k])
        if number is None:
            rows[i][k] = "3"
        else:
            other = str(int(number[0]) + data.draw(st.integers(1, 9)))
            rows[i][k] = rows[i][k][: number.start()] + other + rows[i][k][number.end() :]
    with (folder / name).open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    found = faults(folder, mapping, stored)
    assert found
    assert all(fault.startswith(name) for fault in found)


@given(hypergraphs(min_nodes=3, max_nodes=14), st.booleans(), st.data())
@settings(deadline=None, max_examples=40)
def test_a_changed_line_for_sanafe_is_found(
    tmp_path_factory: pytest.TempPathFactory, graph: Hypergraph, brief: bool, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("out")
    mapping, stored = exported(graph, folder, one_link_a_core=brief)
    path = folder / "snn.yaml"
    lines = path.read_text().splitlines()
    kind, pattern = data.draw(
        st.sampled_from(
            [
                ("link gone", r"    - .*->"),
                ("link twice", r"    - .*->"),
                ("place gone", r"  - .*core: "),
                ("other tile", r"  - .*core: \d+"),
                ("other core", r"  - .*core: \d+\.\d+"),
                ("other neuron", r"  - \w+\.\d+"),
                ("neuron gone", r"        - .*poisson"),
            ]
        )
    )
    candidates = [i for i, line in enumerate(lines) if re.match(pattern, line)]
    assume(candidates)
    i = data.draw(st.sampled_from(candidates))
    if kind.startswith("other"):
        found = re.match(pattern, lines[i])
        assert found is not None
        lines[i] = f"{found[0]}7{lines[i][found.end() :]}"
    elif kind == "link twice":
        lines.insert(i, lines[i])
    else:
        del lines[i]
    path.write_text("\n".join(lines) + "\n")
    assert faults(folder, mapping, stored), kind


def test_rates_for_sanafe_are_checked(tmp_path: Path) -> None:
    graph = Hypergraph.from_hedges(
        8, np.array([0, 7]), np.array([0, 1, 2]), np.array([7, 1]), np.array([5.0, 2.0])
    )
    mapping, stored = exported(graph, tmp_path)
    path = tmp_path / "snn.yaml"
    text = path.read_text()
    path.write_text(text.replace("poisson: 0.002", "poisson: 0.003"))
    assert faults(tmp_path, mapping, stored) == (
        "snn.yaml: neuron 7 fires with probability 0.003; 0.002 goes with its rate",
    )


def test_a_link_too_many_is_found(tmp_path: Path) -> None:
    graph = Hypergraph.from_hedges(
        8, np.array([0, 7]), np.array([0, 1, 2]), np.array([7, 1]), np.array([5.0, 2.0])
    )
    mapping, stored = exported(graph, tmp_path)
    path = tmp_path / "snn.yaml"
    text = path.read_text()
    path.write_text(
        text.replace("mappings:", "    - neurons.3 -> neurons.4: [weight: 0]\nmappings:")
    )
    assert faults(tmp_path, mapping, stored) == (
        "snn.yaml: the network has no link from neuron 3 to 4",
        "snn.yaml: 3 links; 2 are right, or 2 with one a core",
    )
    path.write_text(text.replace("neurons.3:", "neurons.99:"))
    found = faults(tmp_path, mapping, stored)
    assert re.match(r"snn\.yaml: line \d+ names a neuron that does not exist", found[0])
    assert found[1] == "snn.yaml: neuron 3 is on no core"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("energy_east_hop: 5.2e-12", "energy_east_hop: 5e-12"),
        ("latency_north_hop: 7.4e-9", "latency_north_hop: 7e-9"),
        ("width: 1", "width: 3"),
        ("core[0..0]", "core[0..3]"),
        ("energy_message_out: 1.7e-12", "energy_message_out: 0.0"),
    ],
)
def test_a_changed_architecture_is_found(tmp_path: Path, old: str, new: str) -> None:
    graph = Hypergraph.from_hedges(8, np.array([0]), np.array([0, 1]), np.array([7]), np.ones(1))
    mapping, stored = exported(graph, tmp_path)
    text = (tmp_path / "arch.yaml").read_text()
    assert old in text
    (tmp_path / "arch.yaml").write_text(text.replace(old, new))
    assert len(faults(tmp_path, mapping, stored)) == 1


def test_files_that_are_no_tables_are_refused(tmp_path: Path) -> None:
    graph = Hypergraph.from_hedges(8, np.array([0]), np.array([0, 1]), np.array([7]), np.ones(1))
    mapping, stored = exported(graph, tmp_path)
    (tmp_path / "routing.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"routing\.csv: line 1: expected the columns part, x"):
        faults(tmp_path, mapping, stored)
    (tmp_path / "routing.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        faults(tmp_path, mapping, stored)


def test_verify_checks_exports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, tables = tmp_path / "out", tmp_path / "tables"
    words = "map lenet -p loihi64 -a one-pass --placer hilbert --no-plots --neurons -q -o".split()
    assert main([*words, str(out)]) == 0
    assert main(["export", str(out), "--to", "tables", "-o", str(tables), "--json"]) == 0
    both = ["verify", str(out), "--exports", str(tables), "-q"]
    assert main(both) == 0
    assert main(["verify", str(out), "--exports", str(tmp_path), "-q"]) == 2
    assert "holds no exports; expected axons_in.csv" in capsys.readouterr().err
    routing = tables / "routing.csv"
    lines = routing.read_text().splitlines(keepends=True)
    routing.write_text("".join(lines[:-1]))
    assert main(both) == 1
    neurons = out / "neurons.csv"
    neurons.write_text(neurons.read_text().replace("conv1,0,", "conv1,1,", 1))
    assert main(["verify", str(out)]) == 1
    assert "neurons.csv: line" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["parts/chip", "parts/incident_axons"])
def test_all_tables_of_the_mapping_are_checked(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import h5py

    out = tmp_path / "out"
    words = "map lenet -p loihi64 -a one-pass --placer hilbert --no-plots -q -o".split()
    assert main([*words, str(out)]) == 0
    with h5py.File(out / "mapping.h5", "a") as file:
        file[name][0] = file[name][0] + 1
    assert main(["verify", str(out)]) == 1
    assert f"table {name} does not follow" in capsys.readouterr().out
