"""SONATA networks: configs, companions, odd ids, several groups, real files, malformed files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnmap.errors import InputError
from snnmap.hypergraph import Projection
from snnmap.readers import _sonata_edges, find_format, read_network
from snnmap.readers._sonata_files import sources_of_config
from snnmap.readers.sonata import read_sonata
from tests.readers.naive_layers import links, one_axon_each, real_input
from tests.readers.refusing import refusal


def nodes(
    path: Path, name: str, n: int, *, ids: Any = None, types: Any = 100, csv: str = "", **group: Any
) -> Path:
    """A node file (appended to) and, with `csv`, its table of types."""
    with h5py.File(path, "a") as file:
        population = file.create_group(f"nodes/{name}")
        population["node_type_id"] = np.full(n, types) if np.isscalar(types) else np.array(types)
        if ids is not None:
            population["node_id"] = np.array(ids, np.uint64)
        population["node_group_id"] = np.zeros(n, int)
        population["node_group_index"] = np.arange(n)
        population.create_group("0")
        for key, value in group.items():
            population[f"0/{key.replace('__', '/').replace('AT', '@')}"] = value
    if csv:
        path.with_name(path.stem.replace("nodes", "node_types") + ".csv").write_text(csv)
    return path


def edges(
    path: Path,
    source: str,
    target: str,
    pairs: list[tuple[int, int]],
    *,
    csv: str = "",
    types: Any = 100,
    **groups: dict[str, Any],
) -> Path:
    """An edge file; groups g0, g1, ... as {"ids": edges in it, column: values}."""
    a, b = np.array(pairs, np.uint64).reshape(-1, 2).T
    with h5py.File(path, "a") as file:
        population = file.create_group(f"edges/{source}_to_{target}")
        population["source_node_id"], population["target_node_id"] = a, b
        population["source_node_id"].attrs["node_population"] = source
        population["target_node_id"].attrs["node_population"] = np.bytes_(target)
        population["edge_type_id"] = (
            np.full(len(a), types) if np.isscalar(types) else np.array(types)
        )
        group_ids, rows = np.zeros(len(a), int), np.arange(len(a))
        for key, columns in groups.items():
            members = columns.pop("ids", range(len(a)))
            group_ids[members] = int(key[1:])
            rows[members] = columns.pop("rows", range(len(members)))
            population.create_group(key[1:])
            for column, values in columns.items():
                population[f"{key[1:]}/{column}"] = values
        population["edge_group_id"], population["edge_group_index"] = group_ids, rows
    if csv:
        path.with_name(path.stem.replace("edges", "edge_types") + ".csv").write_text(csv)
    return path


def refused(function: Callable[..., Any], *args: Any, **options: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        function(*args, **options)
    assert "\n" not in str(caught.value)
    return caught.value


VIRTUAL = "node_type_id model_type\n100 virtual\n"


# ---------------------------------------------------------------------- real files


@pytest.mark.parametrize(
    "name", ["config.json", "circuit_config.json", "simulation_config.json", "", "network"]
)
def test_300_point_neurons(name: str) -> None:
    network = read_network(real_input("sonata_300_pointneurons") / name)
    sizes = {p.name: (p.size, p.is_input) for p in network.populations}
    assert sizes == {"internal": (300, False), "external": (100, True)}
    assert links(network, "internal", "internal").sum() == 27_588
    assert np.trace(links(network, "internal", "internal")) == 86
    assert links(network, "external", "internal").sum() == 20_844
    delays = {(p.source, p.target): p.delay_ms for p in network.projections}
    assert delays == {("internal", "internal"): (2.0, 2.0), ("external", "internal"): None}
    assert one_axon_each(network)


def test_one_edge_file_finds_its_companions() -> None:
    folder = real_input("sonata_300_pointneurons/network")
    network = read_network(folder / "external_internal_edges.h5")
    assert {p.name: p.is_input for p in network.populations} == {
        "internal": False,
        "external": True,
    }
    network = read_network(folder / "internal_internal_edges.h5")
    assert [p.name for p in network.populations] == ["internal"]


# ---------------------------------------------------------------------- nodes and edges


@given(st.data())
def test_any_edges(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Ids in any order, duplicates, self-loops, in chunks of any size."""
    folder = tmp_path_factory.mktemp("sonata")
    ids = data.draw(st.lists(st.integers(0, 50), min_size=1, max_size=8, unique=True))
    pair = st.tuples(st.sampled_from(ids), st.sampled_from(ids))
    pairs = data.draw(st.lists(pair, max_size=20))
    chunk = data.draw(st.integers(1, 21))
    nodes(folder / "a_nodes.h5", "a", len(ids), ids=ids)
    path = edges(folder / "a_edges.h5", "a", "a", pairs)
    expected = np.zeros((len(ids),) * 2, bool)
    for source, target in pairs:
        expected[ids.index(source), ids.index(target)] = True
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_sonata_edges, "CHUNK", chunk)
        network = read_network(path)
    assert (links(network, "a", "a") == expected).all()
    assert one_axon_each(network)


def test_several_synapses_are_one_pin(tmp_path: Path) -> None:
    nodes(tmp_path / "a_nodes.h5", "a", 3)
    network = read_network(
        edges(tmp_path / "a_edges.h5", "a", "a", [(0, 1)] * 5 + [(0, 0), (2, 1)])
    )
    assert network.n_pins == 2 + 2
    assert network.n_hedges == 2


def test_virtual_by_table_by_file_and_by_config(tmp_path: Path) -> None:
    nodes(tmp_path / "x_nodes.h5", "x", 2, csv=VIRTUAL)
    nodes(tmp_path / "y_nodes.h5", "y", 2, model_type=["virtual", "virtual"])
    nodes(tmp_path / "z_nodes.h5", "z", 3, csv=VIRTUAL, model_type=["biophysical"] * 3)
    nodes(
        tmp_path / "c_nodes.h5", "c", 2, model_type=[1, 1], ATlibrary__model_type=["a", "virtual"]
    )
    network = read_network(tmp_path)
    kinds = {p.name: p.is_input for p in network.populations}
    assert kinds == {"x": True, "y": True, "z": False, "c": True}  # the file goes before the table


def test_population_with_some_virtual_nodes_is_two(tmp_path: Path) -> None:
    csv = 'node_type_id model_type pop_name\n1 virtual "LGN on"\n2 point_neuron NULL\n'
    nodes(tmp_path / "m_nodes.h5", "m", 4, types=[1, 2, 1, 2], csv=csv)
    path = edges(
        tmp_path / "m_edges.h5", "m", "m", [(0, 1), (2, 3), (1, 3)], g0={"delay": [1.0] * 3}
    )
    network = read_network(path)
    assert [(p.name, p.size, p.is_input) for p in network.populations] == [
        ("m", 2, False),
        ("m (virtual)", 2, True),
    ]
    assert (links(network, "m (virtual)", "m") == np.eye(2)).all()
    assert (links(network, "m", "m") == [[0, 1], [0, 0]]).all()
    assert Projection("m (virtual)", "m", (1.0, 1.0)) in network.projections


def test_several_edge_groups_with_other_columns(tmp_path: Path) -> None:
    nodes(tmp_path / "a_nodes.h5", "a", 5)
    path = edges(
        tmp_path / "a_edges.h5", "a", "a", [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)],
        g0={"ids": [0, 3], "rows": [1, 0], "syn_weight": [0.0, 2.0], "delay": [4.0, 3.0]},
        g1={"ids": [1, 2], "nsyns": [0, 7]},
        g2={"ids": [4]},
        types=[5, 5, 5, 5, 6],
        csv="edge_type_id delay syn_weight\n5 9.5 1.0\n6 0.5 0\n",
    )  # fmt: skip
    network = read_network(path)
    matrix = links(network, "a", "a")
    assert np.argwhere(matrix).tolist() == [[0, 1], [2, 3], [3, 4], [4, 0]]  # nsyns 0 is no synapse
    assert network.projections[0].delay_ms == (0.5, 9.5)  # group before table, table where none
    pruned = links(read_network(path, drop_zeros=True), "a", "a")
    assert np.argwhere(pruned).tolist() == [[0, 1], [2, 3]]  # row 1 of group 0 has weight 2


def test_minimal_columns(tmp_path: Path) -> None:
    """Neither ids nor groups nor types are always written."""
    nodes(tmp_path / "a_nodes.h5", "a", 3)
    path = edges(tmp_path / "a_edges.h5", "a", "a", [(0, 2)])
    with h5py.File(path, "r+") as file:
        for name in ("edge_type_id", "edge_group_id", "edge_group_index"):
            del file[f"edges/a_to_a/{name}"]
    assert np.argwhere(links(read_network(path), "a", "a")).tolist() == [[0, 2]]


def test_edges_without_node_files_imply_their_populations(tmp_path: Path) -> None:
    path = edges(tmp_path / "only_edges.h5", "in", "out", [(6, 1), (2, 4)])
    network = read_network(path)
    assert {p.name: p.size for p in network.populations} == {"in": 7, "out": 5}
    assert np.argwhere(links(network, "in", "out")).tolist() == [[2, 4], [6, 1]]


def test_files_named_by_the_user(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    far = nodes(tmp_path / "far" / "a.h5", "a", 9)
    path = edges(tmp_path / "e.h5", "a", "a", [(0, 2)])
    assert read_sonata(path, nodes=(far,)).n_nodes == 9


def test_nodes_and_edges_in_one_file(tmp_path: Path) -> None:
    path = nodes(tmp_path / "both.h5", "a", 4)
    edges(path, "a", "a", [(0, 2)])
    assert find_format(path).name == "sonata"
    assert read_network(path).n_nodes == 4


def test_population_without_links(tmp_path: Path) -> None:
    network = read_network(nodes(tmp_path / "a_nodes.h5", "a", 4))
    assert (network.n_nodes, network.n_hedges) == (4, 0)


# ---------------------------------------------------------------------- configs


def circuit(folder: Path, config: dict[str, Any], name: str = "circuit_config.json") -> Path:
    (folder / "net").mkdir(exist_ok=True)
    if not (folder / "net/a_nodes.h5").exists():
        nodes(folder / "net/a_nodes.h5", "a", 3)
        edges(folder / "net/a_edges.h5", "a", "a", [(0, 2)])
    path = folder / name
    path.write_text(json.dumps(config))
    return path


def networks(nodes_file: str = "$NET/a_nodes.h5", **edge: Any) -> dict[str, Any]:
    entry = {"edges_file": "$NET/a_edges.h5", "edge_types_file": None, **edge}
    return {"nodes": [{"nodes_file": nodes_file, "node_types_file": None}], "edges": [entry]}


@pytest.mark.parametrize(
    "manifest",
    [
        {"$NET": "./net"},
        {"$BASE": ".", "$NET": "$BASE/net"},
        {"$NET": "${BASE}/net", "$BASE": "${configdir}"},
        {"NET": "net"},
    ],
)
def test_variables_of_a_config(tmp_path: Path, manifest: dict[str, str]) -> None:
    path = circuit(tmp_path, {"manifest": manifest, "networks": networks()})
    assert find_format(path).name == "sonata"
    assert links(read_network(path), "a", "a").sum() == 1


def test_disabled_edges_and_stated_virtual_population(tmp_path: Path) -> None:
    config = {"manifest": {"$NET": "net"}, "networks": networks(enabled=False)}
    config["networks"]["nodes"][0]["populations"] = {"a": {"type": "virtual"}}
    network = read_network(circuit(tmp_path, config))
    assert (network.n_nodes, network.n_hedges) == (3, 0)
    assert network.populations[0].is_input


CONFIGS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown_variable": (
        {"networks": networks()},
        r"nodes\[0\].nodes_file: unknown variable \$NET",
    ),
    "variable_names_itself": (
        {"manifest": {"$NET": "$NET/x"}, "networks": networks()},
        "nodes_file",
    ),
    "variables_in_a_circle": (
        {"manifest": {"$NET": "$B", "$B": "$NET"}, "networks": networks()},
        "name one another",
    ),
    "file_missing": ({"networks": networks("net/none.h5")}, "there is no file"),
    "networks_is_a_list": ({"networks": []}, "networks: expected an object"),
    "nodes_is_text": ({"networks": {"nodes": "a.h5"}}, "networks.nodes: expected a list"),
    "entry_without_file": ({"networks": {"nodes": [{}]}}, "expected an object with 'nodes_file'"),
    "no_nodes": ({"networks": {"nodes": []}}, "names no node files"),
    "manifest_is_a_list": (
        {"manifest": [1], "networks": networks()},
        "manifest: expected an object",
    ),
    "network_in_a_circle": ({"manifest": {}, "network": "circuit_config.json"}, "in a circle"),
    "nothing": ({}, "neither 'networks' nor a 'network'"),
}


@pytest.mark.parametrize("fault", CONFIGS)
def test_bad_config(tmp_path: Path, fault: str) -> None:
    config, text = CONFIGS[fault]
    error = refused(sources_of_config, circuit(tmp_path, config))
    assert re.search(text, str(error)), str(error)


def test_config_that_is_no_json(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"networks": {\n "nodes": [}')
    assert "line 2, column 12" in str(refused(sources_of_config, tmp_path / "c.json"))
    (tmp_path / "c.json").write_text("[" * 100_000)
    refused(sources_of_config, tmp_path / "c.json")


# ---------------------------------------------------------------------- malformed files


def put(group: h5py.Group, name: str, value: Any) -> None:
    attributes = dict(group[name].attrs) if name in group else {}
    if name in group:
        del group[name]
    if value is not None:
        group[name] = value
        group[name].attrs.update(attributes)


def claim(group: h5py.Group, *names: str) -> None:
    """Columns that claim 2^40 entries and store none."""
    for name in names:
        attributes = dict(group[name].attrs)
        del group[name]
        group.create_dataset(name, (2**40,), "u8", chunks=(1024,)).attrs.update(attributes)


COLUMNS = ("source_node_id", "target_node_id", "edge_type_id", "edge_group_id", "edge_group_index")
FAULTS: dict[str, tuple[Callable[[h5py.Group, h5py.Group], Any], str]] = {
    "source_out_of_range": (
        lambda n, e: put(e, "source_node_id", [0, 9, 1]),
        "source_node_id, edge 1: node 9 is not in population 'a' of 3 nodes",
    ),
    "target_negative": (lambda n, e: put(e, "target_node_id", [0, 1, -1]), "edge 2: node -1"),
    "target_2_63": (
        lambda n, e: put(e, "target_node_id", np.array([0, 1, 2**63], np.uint64)),
        "edge 2",
    ),
    "ids_are_fractions": (
        lambda n, e: put(e, "source_node_id", [0.5, 1, 2]),
        "expected whole numbers",
    ),
    "ids_are_text": (lambda n, e: put(e, "source_node_id", ["a", "b", "c"]), "expected numbers"),
    "ids_missing": (lambda n, e: put(e, "target_node_id", None), "target_node_id: is missing"),
    "columns_differ": (lambda n, e: put(e, "target_node_id", [0, 1]), "columns differ in shape"),
    "columns_of_two": (
        lambda n, e: [put(e, c, np.ones((3, 1), int)) for c in COLUMNS],
        "differ in shape",
    ),
    "population_unknown": (
        lambda n, e: e["source_node_id"].attrs.update(node_population="q"),
        "population 'q', which no node file holds; known are 'a'",
    ),
    "row_out_of_range": (
        lambda n, e: put(e, "edge_group_index", [0, 5, 1]),
        "edge_group_index: edge 1: 5 is outside the 3 entries of group 0",
    ),
    "delay_negative": (lambda n, e: put(e["0"], "delay", [1.0, -2.0, 1]), "a delay is -2.0 ms"),
    "delay_infinite": (lambda n, e: put(e["0"], "delay", [1.0, np.inf, 1]), "a delay is"),
    "claims_2_40_edges": (lambda n, e: claim(e, *COLUMNS), "but the file stores"),
    "node_ids_twice": (
        lambda n, e: put(n, "node_id", [1, 1, 2]),
        "nodes/a/node_id: holds an id twice",
    ),
    "node_ids_too_few": (lambda n, e: put(n, "node_id", [1, 2]), "node_type_id has 3 entries"),
    "node_types_missing": (lambda n, e: put(n, "node_type_id", None), "node_type_id: is missing"),
    "node_types_are_text": (
        lambda n, e: put(n, "node_type_id", ["a", "b", "c"]),
        "expected numbers",
    ),
    "claims_2_40_nodes": (lambda n, e: claim(n, "node_type_id"), "but the file stores"),
    "model_type_row_out_of_range": (
        lambda n, e: [put(n["0"], "model_type", ["x"])],
        "outside the 1 entries of group 0",
    ),
    "model_type_without_library": (
        lambda n, e: put(n["0"], "model_type", [1, 2, 3]),
        "no @library",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault(tmp_path: Path, fault: str) -> None:
    node_file = nodes(tmp_path / "a_nodes.h5", "a", 3)
    path = edges(
        tmp_path / "a_edges.h5", "a", "a", [(0, 1), (1, 2), (2, 2)], g0={"delay": [1.0] * 3}
    )
    spoil, text = FAULTS[fault]
    with h5py.File(node_file, "r+") as first, h5py.File(path, "r+") as second:
        spoil(first["nodes/a"], second["edges/a_to_a"])
    error = refused(read_sonata, path, nodes=(node_file,))
    assert re.search(text, str(error)), str(error)
    assert str(error).startswith(str(tmp_path))


TABLES = {
    "no_type_column": (
        "edge_type delay\n1 2\n",
        "line 1: has columns edge_type, delay; expected",
    ),
    "type_is_text": ("edge_type_id delay\nx 2\n", "line 2: edge_type_id is 'x'"),
    "type_twice": ("edge_type_id delay\n1 2\n1 3\n", "line 3: edge_type_id 1 stands twice"),
    "delay_is_text": ("edge_type_id delay\n100 soon\n", "gives delay 'soon'; expected a number"),
    "empty": ("", "has columns nothing"),
}


@pytest.mark.parametrize("fault", TABLES)
def test_bad_table(tmp_path: Path, fault: str) -> None:
    csv, text = TABLES[fault]
    nodes(tmp_path / "a_nodes.h5", "a", 3)
    path = edges(tmp_path / "a_edges.h5", "a", "a", [(0, 1)])
    (tmp_path / "a_edge_types.csv").write_text(csv)
    assert text in str(refused(read_network, path))


def test_folder_without_a_network(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    assert "holds no SONATA config" in str(refused(read_sonata, tmp_path))


@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
def test_truncated(tmp_path: Path, share: float) -> None:
    nodes(tmp_path / "a_nodes.h5", "a", 3)
    path = edges(tmp_path / "a_edges.h5", "a", "a", [(0, 1)])
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    refusal(path, format="sonata")


def test_a_damaged_companion_is_named(tmp_path: Path) -> None:
    path = nodes(tmp_path / "a_nodes.h5", "a", 3)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    edges(tmp_path / "a_edges.h5", "a", "a", [(0, 1)])
    assert str(refused(read_sonata, tmp_path)).startswith(str(path))
