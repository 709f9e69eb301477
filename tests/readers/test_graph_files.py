"""GraphML, GEXF, node-link JSON, HIF: what is read and what is refused, with the place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from snnmap.errors import InputError
from snnmap.readers import find_format, read_network
from snnmap.readers.objects import from_object
from tests.readers.refusing import refusal
from tests.small import to_rows

WRITERS: dict[str, Any] = {
    "graphml": nx.write_graphml,
    "gexf": nx.write_gexf,
    "json": lambda graph, path: path.write_text(
        json.dumps(nx.node_link_data(graph, edges="links"))
    ),
}


def _digraph() -> Any:
    graph = nx.DiGraph()
    graph.add_nodes_from("abcd")
    graph.add_weighted_edges_from(
        [("a", "c", 2.0), ("c", "a", 0.5), ("a", "b", 0.0), ("d", "d", 1)]
    )
    return graph


ROWS = [([0], [1, 2], 1.0), ([2], [0], 1.0), ([3], [3], 1.0)]


@pytest.mark.parametrize("suffix", WRITERS)
def test_directed_graphs(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"net.{suffix}"
    WRITERS[suffix](_digraph(), path)
    assert find_format(path).name == {"json": "nodelink"}.get(suffix, suffix)
    assert to_rows(read_network(path)) == ROWS
    assert read_network(path, link_weights="sum").weights.tolist() == [2, 0.5, 1]
    assert to_rows(read_network(path, drop_zeros=True))[0] == ([0], [2], 1.0)


@pytest.mark.parametrize("suffix", WRITERS)
def test_undirected_edges_go_both_ways(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"net.{suffix}"
    graph = nx.Graph([("a", "b"), ("b", "c")])
    WRITERS[suffix](graph, path)
    assert sorted(to_rows(read_network(path))) == [([0], [1], 1), ([1], [0, 2], 1), ([2], [1], 1)]


@pytest.mark.parametrize("suffix", WRITERS)
def test_rates_of_nodes(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"net.{suffix}"
    graph = _digraph()
    for i, node in enumerate(graph):
        graph.nodes[node]["rate"] = i + 0.5
    WRITERS[suffix](graph, path)
    assert read_network(path).weights.tolist() == [0.5, 2.5, 3.5]


def test_bipartite_graphs_are_hypergraphs() -> None:
    graph = nx.DiGraph()
    graph.add_nodes_from([0, 1, 2, 3], bipartite=0)
    graph.add_node("x", bipartite=1, weight=2.5)
    graph.add_node("y", bipartite=1)
    graph.add_edges_from([(0, "x"), (1, "x"), ("x", 2), ("x", 1), ("y", 3)])
    h = from_object(graph, bipartite=True)
    assert to_rows(h) == [([0, 1], [1, 2], 2.5), ([], [3], 1.0)]
    undirected = from_object(graph.to_undirected(), bipartite=True)
    assert to_rows(undirected) == [([], [0, 1, 2], 2.5), ([], [3], 1.0)]
    graph.add_edge(0, 1)
    with pytest.raises(InputError, match="edge 0 to 1 joins two nodes"):
        from_object(graph, bipartite=True)


def test_attributes_that_are_no_numbers() -> None:
    graph = _digraph()
    graph.nodes["a"]["rate"] = 1.0
    with pytest.raises(InputError, match="node 'b' has no rate, others have"):
        from_object(graph)
    for node in graph:
        graph.nodes[node]["rate"] = -1
    with pytest.raises(InputError, match=r"rate -1\.0 of node 'a'"):
        from_object(graph)
    graph = _digraph()
    graph.edges["a", "c"]["weight"] = "heavy"
    from_object(graph)
    with pytest.raises(InputError, match="weight of edge 'a' to 'c' is 'heavy'"):
        from_object(graph, link_weights="sum")


def _nodelink(**changes: Any) -> str:
    data = {"directed": True, "multigraph": False, "graph": {}, "nodes": [{"id": 0}, {"id": 1}]}
    return json.dumps({**data, "links": [{"source": 0, "target": 1}], **changes})


def _hif(**changes: Any) -> str:
    data = {"network-type": "directed", "incidences": [{"edge": "e", "node": "n"}]}
    return json.dumps({**data, **changes})


GRAPHML = """<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed">
<node id="a"/><node id="b"/>
<edge source="a" target="b"/>
</graph></graphml>"""
GEXF = """<gexf version="1.2" xmlns="http://www.gexf.net/1.2draft">
<graph defaultedgetype="directed"><nodes><node id="a" label="a"/><node id="b" label="b"/></nodes>
<edges><edge id="0" source="a" target="b"/></edges>
</graph></gexf>"""
BOMB = (
    '<?xml version="1.0"?><!DOCTYPE g [<!ENTITY a "aaaaaaaaaa">'
    + "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + ']><graphml><graph edgedefault="directed"><node id="&i;"/></graph></graphml>'
)

FAULTS: dict[str, tuple[str, str, str | None]] = {
    # file name: (text, part of the problem, place)
    "truncated.graphml": (GRAPHML[:-20], "is no GraphML file: unclosed token", "line 4"),
    "mismatched.graphml": (GRAPHML.replace("</graph>", ""), "mismatched tag", "line 5"),
    "text.graphml": ("nothing", "is no GraphML file: syntax error", "line 1"),
    "no-graph.graphml": ("<graphml></graphml>", "is no GraphML file", None),
    "node-no-id.graphml": (GRAPHML.replace(' id="a"', ""), "a node has no id", "line 3"),
    "node-twice.graphml": (GRAPHML.replace('"b"', '"a"'), "node 'a' occurs twice", "line 3"),
    "edge-no-target.graphml": (GRAPHML.replace(' target="b"', ""), "no target", "line 4"),
    "edge-to-nowhere.graphml": (
        GRAPHML.replace('target="b"', 'target="x"'),
        "target 'x' of an edge is none of the nodes",
        "line 4",
    ),
    "bomb.graphml": (BOMB, "declares the entity 'a'", "line 1"),
    "truncated.gexf": ("<gexf>\n<graph>", "is no GEXF file: no element found", "line 2"),
    "version-unknown.gexf": (
        '<gexf version="9" xmlns="x"><graph/></gexf>',
        "is no GEXF file",
        None,
    ),
    "edge-to-nowhere.gexf": (GEXF.replace('target="b"', 'target="x"'), "'x' of an edge", "line 3"),
    "no-json.json": ("{", "its content is of no known format", None),
    "truncated.json": (_nodelink()[:-4], "is no JSON", "line 1, column 121"),
    "nested.json": ('{"nodes": [], "links": ' + "[" * 100_000, "is no JSON", None),
    "nodes-missing.json": (_nodelink(nodes=None), "expected an object with the lists", None),
    "node-no-object.json": (_nodelink(nodes=[1]), "expected an object with an id", "node 0"),
    "node-no-id.json": (_nodelink(nodes=[{"id": 0}, {}]), "has no id", "node 1"),
    "node-id-object.json": (_nodelink(nodes=[{"id": {}}]), "id is an object", "node 0"),
    "link-no-target.json": (_nodelink(links=[{"source": 0}]), "source and target", "link 0"),
    "link-to-nowhere.json": (
        _nodelink(links=[{"source": 0, "target": 1}, {"source": 0, "target": 7}]),
        "target 7 is none of the nodes",
        "link 1",
    ),
    "links-no-list.json": (_nodelink(links=3), "is no node-link graph", None),
    "truncated.hif": (_hif()[:-4], "is no JSON", "line 1, column 67"),
    "a-list.hif": ("[]", "has no list of incidences", None),
    "incidences-missing.hif": ('{"network-type": "directed"}', "has no list of incidences", None),
    "kind-unknown.hif": (_hif(**{"network-type": "round"}), "'round'; expected", "network-type"),
    "kind-a-list.hif": (_hif(**{"network-type": []}), "[]; expected", "network-type"),
    "incidence-no-object.hif": (_hif(incidences=[1]), "is int; expected", "incidences[0]"),
    "incidence-no-node.hif": (_hif(incidences=[{"edge": 1}]), "node is None", "incidences[0]"),
    "incidence-id-float.hif": (
        _hif(incidences=[{"edge": 1, "node": 2}, {"edge": 1.5, "node": 2}]),
        "edge is 1.5; expected a text or a whole number",
        "incidences[1]",
    ),
    "direction-unknown.hif": (
        _hif(incidences=[{"edge": 1, "node": 2, "direction": "up"}]),
        "direction 'up'; expected head or tail",
        "incidences[0]",
    ),
    "nodes-no-list.hif": (_hif(nodes={}), "is dict; expected a list", "nodes"),
    "node-twice.hif": (_hif(nodes=[{"node": 1}, {"node": 1}]), "occurs twice", "nodes[1]"),
    "edge-twice.hif": (_hif(edges=[{"edge": "a"}, {"edge": "a"}]), "occurs twice", "edges[1]"),
    "edge-weight-negative.hif": (_hif(edges=[{"edge": 1, "weight": -1}]), "weight -1", "edges[0]"),
    "edge-weight-nan.hif": (
        _hif(edges=[{"edge": 1, "weight": float("nan")}]),
        "weight nan",
        "edges[0]",
    ),
    "size-2e80.hif": (
        _hif(nodes=[{"node": 1, "attrs": {"size": 2**80}}]),
        "expected a whole number >= 0",
        "nodes[0]",
    ),
}


def test_the_graphs_that_faults_are_made_from(tmp_path: Path) -> None:
    for name, text in (("net.graphml", GRAPHML), ("net.gexf", GEXF), ("net.json", _nodelink())):
        (tmp_path / name).write_text(text)
        assert to_rows(read_network(tmp_path / name)) == [([0], [1], 1.0)]


@pytest.mark.parametrize("name", FAULTS)
def test_malformed_graphs(tmp_path: Path, name: str) -> None:
    text, problem, place = FAULTS[name]
    path = tmp_path / name
    path.write_text(text)
    error = refusal(path)
    assert problem in error.problem
    assert error.place == place


def test_hif(tmp_path: Path) -> None:
    data = {
        "network-type": "directed",
        "metadata": {"name": "mine"},
        "nodes": [{"node": "b", "attrs": {"size": 3}}, {"node": 7, "weight": 0.5}],
        "edges": [{"edge": "y", "weight": 2.5}, {"edge": "empty"}],
        "incidences": [
            {"edge": "x", "node": "a", "direction": "tail"},
            {"edge": "x", "node": "b", "direction": "head"},
            {"edge": "y", "node": 7, "direction": "tail"},
            {"edge": "y", "node": 7, "direction": "head"},
            {"edge": "x", "node": "a"},
        ],
    }
    path = tmp_path / "net.json"
    path.write_text(json.dumps(data))
    assert find_format(path).name == "hif"
    h = read_network(path)
    assert (h.name, h.node_sizes.tolist()) == ("mine", [3, 1, 1])
    assert to_rows(h) == [([1], [1], 2.5), ([], [], 1.0), ([2], [0, 2], 1.0)]
    data["network-type"] = "undirected"
    path.write_text(json.dumps(data))
    assert to_rows(read_network(path)) == [([], [1], 2.5), ([], [], 1.0), ([], [0, 2], 1.0)]
