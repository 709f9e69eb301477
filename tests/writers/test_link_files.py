"""Round trips through formats that list links, graphs and HIF, and through objects."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from snnmap.errors import OutputError
from snnmap.hypergraph import Hypergraph
from snnmap.readers import find_format, read_network
from snnmap.readers.objects import from_object
from snnmap.writers import graphs, objects, write_network
from snnmap.writers.objects import count_links, to_networkx, to_pairs, to_scipy
from tests import slow_hypergraph as slow
from tests.small import from_rows, small, to_rows
from tests.strategies import hypergraphs

LINK_FILES = {
    "net.csv": "edges",
    "net.tsv": "edges",
    "net.mtx": "mtx",
    "net.npz": "sparse",
    "net.graphml": "graphml",
    "net.gexf": "gexf",
    "net.json": "nodelink",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("round-trips")


def axons(h: Hypergraph) -> dict[int, tuple[set[int], float]]:
    """What is left of a hypergraph as links: source -> (targets, largest rate)."""
    found: dict[int, tuple[set[int], float]] = {}
    for sources, into, weight, _ in slow.hedges(h):
        for source in sources if into else ():
            targets, rate = found.get(source, (set(), 0.0))
            found[source] = (targets | into, max(rate, weight))
    return found


@pytest.mark.parametrize("name", LINK_FILES)
@given(h=hypergraphs(min_nodes=1, min_sources=1, max_sources=1, max_hedges=8))
def test_links_and_rates_survive(folder: Path, name: str, h: Hypergraph) -> None:
    rows = [([s], sorted(into), s / 2) for s, (into, _) in axons(h).items()]
    h = from_rows(h.n_nodes, rows)
    write_network(h, folder / name)
    options: dict[str, Any] = {"n_nodes": h.n_nodes} if name in ("net.csv", "net.tsv") else {}
    back = read_network(folder / name, link_weights="max", **options)
    assert back.n_nodes == h.n_nodes
    if (h.weights != 1).any():
        assert axons(back) == axons(h)
    else:
        assert axons(back).keys() == axons(h).keys()
    if count_links(h):
        assert find_format(folder / name).name == LINK_FILES[name]


@given(h=hypergraphs(min_sources=1))
def test_links_in_steps_of_any_size(h: Hypergraph) -> None:
    expected = sorted((s, d) for out, into, _, _ in slow.hedges(h) for s in out for d in into)
    assert count_links(h) == len(expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objects, "LINKS_A_STEP", 3)
        assert sorted(map(tuple, to_pairs(h).tolist())) == expected
    matrix = to_scipy(h)
    sums = np.zeros((h.n_nodes, h.n_nodes))
    for out, into, weight, _ in slow.hedges(h):
        sums[np.ix_(sorted(out), sorted(into))] += weight
    assert np.array_equal(matrix.toarray(), sums)
    assert matrix.nnz == len(set(expected))


@pytest.mark.parametrize("name", ["net.graphml", "net.gexf", "net.json"])
@given(h=hypergraphs(populations=False, max_hedges=8))
def test_bipartite_graphs_keep_hypergraphs(folder: Path, name: str, h: Hypergraph) -> None:
    write_network(h, folder / name, bipartite=True)
    back = read_network(folder / name, bipartite=True)
    assert back.n_nodes == h.n_nodes
    assert slow.as_multiset(back) == slow.as_multiset(h)
    assert to_rows(from_object(to_networkx(h, bipartite=True), bipartite=True)) == to_rows(back)


@given(h=hypergraphs(max_size=3))
def test_hif_keeps_hypergraphs_and_sizes(folder: Path, h: Hypergraph) -> None:
    notes = write_network(h, folder / "net.hif.json")
    assert find_format(folder / "net.hif.json").name == "hif"
    back = read_network(folder / "net.hif.json")
    assert slow.as_multiset(back) == slow.as_multiset(h)
    assert back.node_sizes.tolist() == h.node_sizes.tolist()
    assert (back.n_nodes, back.name) == (h.n_nodes, h.name)
    assert any("layers" in note for note in notes) == bool(h.populations)


def test_csv_to_the_byte(tmp_path: Path) -> None:
    h = from_rows(12, [([10], [0, 11], 0.5), ([3], [9], 1e-7)])
    write_network(h, tmp_path / "net.csv")
    text = (tmp_path / "net.csv").read_text()
    assert text == "source,target,weight\n10,0,0.5\n10,11,0.5\n3,9,1e-07\n"
    write_network(replace(h, weights=np.ones(2)), tmp_path / "net.tsv")
    assert (tmp_path / "net.tsv").read_text() == "source\ttarget\n10\t0\n10\t11\n3\t9\n"


def test_pairs(tmp_path: Path) -> None:
    h = from_rows(3, [([0], [1, 2], 1.0), ([2], [0], 2.0)])
    assert write_network(h, tmp_path / "net.npy") == ["rates are not kept"]
    assert to_rows(read_network(tmp_path / "net.npy")) == [([0], [1, 2], 1.0), ([2], [0], 1.0)]


def test_notes_name_what_links_cannot_hold(tmp_path: Path) -> None:
    rows = [([0, 1], [2], 1.0), ([0], [1], 2.0), ([2], [], 1.0)]
    h = from_rows(5, rows, node_sizes=np.array([1, 2, 1, 1, 1]))
    text = " | ".join(write_network(h, tmp_path / "net.csv"))
    for part in (
        "node sizes are not kept",
        "1 h-edges with several sources",
        "several h-edges of one source",
        "1 h-edges without destinations are left out",
        "link_weights=max",
        "the last 2 nodes have no links; read with n_nodes=5",
    ):
        assert part in text, part


@pytest.mark.parametrize("name", LINK_FILES)
def test_h_edges_without_source_have_no_links(tmp_path: Path, name: str) -> None:
    with pytest.raises(OutputError, match="h-edge 6 has no source, so it has no links; write"):
        write_network(small(grouped=False), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_graphs_have_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "MOST_EDGES", 3)
    h = from_rows(4, [([0], [1, 2, 3], 1.0), ([1], [2], 1.0)])
    with pytest.raises(OutputError, match="4 edges exceed the limit of 3"):
        write_network(h, tmp_path / "net.graphml")
    assert list(tmp_path.iterdir()) == []
