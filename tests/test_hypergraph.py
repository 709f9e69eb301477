"""The hypergraph against slow twins, its rules on odd h-edges, and its refusals."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnmap import _csr, _rows
from snnmap.errors import InputError
from snnmap.hypergraph import MAX_NODES, Hypergraph, Population, Projection, Role
from tests import slow_hypergraph as slow
from tests.small import SMALL_FAN_INS, SMALL_PINS, SMALL_ROWS, from_rows, small, to_rows
from tests.strategies import hedge_rows, hypergraphs


def assert_well_formed(h: Hypergraph) -> None:
    """Every promise of the class's documentation."""
    dtypes = {
        "group_offsets": np.int64, "destinations": np.int32, "hedge_offsets": np.int64,
        "source_offsets": np.int64, "sources": np.int32, "weights": np.float64,
        "axon_counts": np.int64, "node_sizes": np.int64,
    }  # fmt: skip
    for name, dtype in dtypes.items():
        array = getattr(h, name)
        assert array.dtype == dtype, name
        assert not array.flags.writeable, name
    assert len(h.node_sizes) == h.n_nodes
    assert len(h.axon_counts) == h.n_hedges == len(h.source_offsets) - 1
    assert len(h.hedge_offsets) == len(h.group_offsets) == h.n_groups + 1
    for offsets, total in (
        (h.group_offsets, len(h.destinations)),
        (h.source_offsets, len(h.sources)),
        (h.hedge_offsets, h.n_hedges),
    ):
        assert offsets[0] == 0
        assert offsets[-1] == total
        assert (np.diff(offsets) >= 0).all()
    for offsets, ids in ((h.group_offsets, h.destinations), (h.source_offsets, h.sources)):
        for a, b in pairwise(offsets):
            assert (np.diff(ids[a:b]) > 0).all()
            assert ((ids[a:b] >= 0) & (ids[a:b] < h.n_nodes)).all()


def test_small_is_as_drawn() -> None:
    h = small()
    assert (h.n_nodes, h.n_hedges, h.n_groups) == (8, 8, 7)
    assert h.n_pins == SMALL_PINS
    assert h.fan_ins.tolist() == SMALL_FAN_INS
    assert to_rows(small(grouped=False)) == SMALL_ROWS
    assert h.describe_node(4) == "neuron 1 of 'hidden' (node 4)"
    assert h.describe_node(2) == "input 2 of 'in' (node 2)"


@given(st.integers(0, 12).flatmap(lambda n: st.tuples(st.just(n), hedge_rows(n_nodes=n))))
def test_rows_are_sorted_and_duplicates_are_one_pin(case: tuple[int, Any]) -> None:
    n_nodes, rows = case
    h = from_rows(n_nodes, rows)
    assert_well_formed(h)
    assert to_rows(h) == [(sorted(set(s)), sorted(set(d)), w) for s, d, w in rows]


@given(hypergraphs())
def test_counts_equal_the_twins(h: Hypergraph) -> None:
    assert h.n_pins == slow.n_pins(h)
    assert h.hedge_cardinalities.tolist() == [len(s | d) for s, d, _, _ in slow.hedges(h)]
    assert h.fan_ins.tolist() == slow.fan_ins(h)
    sharing = [0] * h.n_groups
    for g, e in zip(h.hedge_groups.tolist(), range(h.n_hedges), strict=True):
        sharing[g] += int(h.axon_counts[e])
    assert h.group_axons.tolist() == sharing


@given(hypergraphs())
def test_incidence_and_outgoing_list_every_pin_once(h: Hypergraph) -> None:
    offsets, groups = h.incidence
    into = h.group_offsets
    for node in range(h.n_nodes):
        expected = [g for g in range(h.n_groups) if node in h.destinations[into[g] : into[g + 1]]]
        assert groups[offsets[node] : offsets[node + 1]].tolist() == expected
    offsets, edges = h.outgoing
    for node in range(h.n_nodes):
        expected = [e for e, (sources, *_) in enumerate(slow.hedges(h)) if node in sources]
        assert edges[offsets[node] : offsets[node + 1]].tolist() == expected


@given(hypergraphs())
def test_pins_have_roles(h: Hypergraph) -> None:
    for e, (sources, into, _, _) in enumerate(slow.hedges(h)):
        nodes, roles = h.pins(e)
        assert nodes.tolist() == sorted(sources | into)
        for node, role in zip(nodes.tolist(), roles.tolist(), strict=True):
            assert bool(role & Role.SOURCE) == (node in sources)
            assert bool(role & Role.DESTINATION) == (node in into)


@given(hypergraphs(grouped=False))
def test_grouping_is_lossless_and_stores_every_set_once(h: Hypergraph) -> None:
    grouped = h.grouped()
    assert_well_formed(grouped)
    assert slow.as_multiset(grouped) == slow.as_multiset(h)
    sets = [
        tuple(grouped.destinations[a:b].tolist())
        for a, b in zip(grouped.group_offsets[:-1], grouped.group_offsets[1:], strict=True)
    ]
    assert len(set(sets)) == len(sets) == len({d for _, d, _, _ in slow.hedges(h)})
    assert (grouped.n_pins, grouped.populations) == (h.n_pins, h.populations)
    assert grouped.fan_ins.tolist() == h.fan_ins.tolist()
    assert grouped.grouped() is grouped


def _group_slowly(rows: list[list[int]]) -> list[int]:
    first: dict[tuple[int, ...], int] = {}
    return [first.setdefault(tuple(row), len(first)) for row in rows]


@pytest.mark.parametrize("hash_values", [1, 2, 3], ids=lambda n: f"{n}-hash-values")
@given(rows=st.lists(st.lists(st.integers(0, 4), max_size=3, unique=True).map(sorted), max_size=30))
def test_grouping_is_exact_when_hashes_collide(hash_values: int, rows: list[list[int]]) -> None:
    def colliding(pins: Any, starts: Any, counts: Any, hashes: Any, start: int, stop: int) -> None:
        hashes[start:stop, 0] = 7
        hashes[start:stop, 1] = counts[start:stop] % hash_values

    counts = np.array([len(row) for row in rows], np.int64)
    starts = _csr.offsets_of(counts)[:-1]
    pins = np.array([pin for row in rows for pin in row], np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_rows, "hash_rows", colliding)
        groups, firsts = _csr.group_equal_rows(pins, starts, counts)
    expected = _group_slowly(rows)
    assert groups.tolist() == expected
    assert firsts.tolist() == [expected.index(g) for g in range(len(set(expected)))]


@st.composite
def _clustered(draw: st.DrawFn) -> tuple[Hypergraph, list[int]]:
    h = draw(hypergraphs(max_size=3))
    labels = draw(st.lists(st.integers(0, 4), min_size=h.n_nodes, max_size=h.n_nodes))
    dense = {label: i for i, label in enumerate(sorted(set(labels)))}
    return h, [dense[label] for label in labels]


@given(_clustered())
def test_contraction_keeps_roles_and_sums_weights_and_axons(
    case: tuple[Hypergraph, list[int]],
) -> None:
    h, clusters = case
    coarse = h.contract(np.array(clusters, np.int32))
    assert_well_formed(coarse)
    found = {(s, d): (w, a) for s, d, w, a in slow.hedges(coarse)}
    assert len(found) == coarse.n_hedges, "identical h-edges are left"
    expected = slow.contract(h, clusters)
    assert found.keys() == expected.keys()
    for key, (weight, axons) in expected.items():
        assert found[key] == (pytest.approx(weight), axons)
    sizes = [0] * coarse.n_nodes
    for node, cluster in enumerate(clusters):
        sizes[cluster] += int(h.node_sizes[node])
    assert coarse.node_sizes.tolist() == sizes
    assert coarse.fan_ins.tolist() == slow.fan_ins(coarse)
    assert (coarse.populations, coarse.projections) == ((), ())


@given(_clustered())
def test_contraction_composes(case: tuple[Hypergraph, list[int]]) -> None:
    h, clusters = case
    once = h.contract(np.array(clusters, np.int32))
    halves = np.arange(once.n_nodes, dtype=np.int32) // 2
    twice = once.contract(halves)
    direct = h.contract(halves[np.array(clusters, np.int32)] if clusters else halves)
    assert slow.contract(twice, list(range(twice.n_nodes))).keys() == {
        (s, d) for s, d, _, _ in slow.hedges(direct)
    }
    assert twice.axon_counts.sum() == direct.axon_counts.sum() == h.axon_counts.sum()
    assert twice.node_sizes.tolist() == direct.node_sizes.tolist()


def test_contraction_of_the_small_one() -> None:
    coarse = small().contract(np.array([0, 0, 0, 1, 1, 1, 1, 2]))
    assert {(tuple(sorted(s)), tuple(sorted(d))): (w, a) for s, d, w, a in slow.hedges(coarse)} == {
        ((0,), (1,)): (3.5, 3),
        ((1,), (2,)): (4.0, 1),
        ((1,), (1, 2)): (3.0, 2),
        ((), (1, 2)): (1.5, 1),
        ((1,), (1,)): (2.5, 1),
    }


@given(hypergraphs(min_nodes=1))
def test_without_inputs_keeps_axons_but_no_input_sources(h: Hypergraph) -> None:
    inputs = {n for p in h.populations if p.is_input for n in range(p.start, p.stop)}
    kept_network, kept = h.without_inputs()
    assert_well_formed(kept_network)
    assert kept.tolist() == [n for n in range(h.n_nodes) if n not in inputs]
    assert kept_network.n_hedges == h.n_hedges
    names = {p.name for p in kept_network.populations}
    assert names == {p.name for p in h.populations if not p.is_input}
    for p in kept_network.populations:
        old = next(q for q in h.populations if q.name == p.name)
        assert kept[p.start : p.stop].tolist() == list(range(old.start, old.stop))
    new = {int(old): i for i, old in enumerate(kept)}
    for (s, d, w, a), (s0, d0, w0, a0) in zip(
        slow.hedges(kept_network), slow.hedges(h), strict=True
    ):
        assert (w, a) == (w0, a0)
        assert s == {new[n] for n in s0 - inputs}
        assert d == {new[n] for n in d0 - inputs}


def test_without_inputs_drops_their_projections() -> None:
    network, _ = small().without_inputs()
    assert network.projections == (Projection("hidden", "out"),)
    assert [p.start for p in network.populations] == [0, 4]


def _large(seed: int) -> Hypergraph:
    """300,000 pins, some sets shared: enough for several chunks a kernel."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 300, 2000)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    pins = rng.integers(0, 3000, offsets[-1])
    return Hypergraph.from_groups(
        3000, offsets, pins, rng.integers(0, 2000, 3000), np.arange(3000), rng.random(3000)
    )


@pytest.mark.parametrize("n_threads", ["1", "3"])
def test_many_threads_agree_with_scipy(n_threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from scipy.sparse import csr_array

    monkeypatch.setenv("SNNMAP_NUM_THREADS", n_threads)
    h = _large(1)
    assert_well_formed(h)
    matrix = csr_array((np.ones(len(h.destinations)), h.destinations, h.group_offsets))
    incidence = matrix.T.tocsr()
    incidence.sort_indices()
    assert h.incidence[0].tolist() == incidence.indptr.tolist()
    assert h.incidence[1].tolist() == incidence.indices.tolist()
    clusters = np.arange(3000) // 7
    coarse = h.contract(clusters)
    assert_well_formed(coarse)
    expected = slow.contract(h, clusters.tolist())
    found = {(s, d): (w, a) for s, d, w, a in slow.hedges(coarse)}
    assert found.keys() == expected.keys()
    assert all(found[key] == (pytest.approx(w), a) for key, (w, a) in expected.items())


def test_groups_shared_by_h_edges_in_any_order() -> None:
    h = Hypergraph.from_groups(
        4,
        np.array([0, 2, 3]),
        np.array([3, 2, 0]),
        np.array([1, 0, 1, 0]),
        np.array([0, 1, 2, 3]),
        np.array([1.0, 2.0, 3.0, 4.0]),
        axon_counts=np.array([1, 2, 3, 4]),
    )
    assert_well_formed(h)
    assert to_rows(h) == [([1], [2, 3], 2.0), ([3], [2, 3], 4.0), ([0], [0], 1.0), ([2], [0], 3.0)]
    assert h.axon_counts.tolist() == [2, 4, 1, 3]
    assert h.group_axons.tolist() == [6, 4]


@pytest.mark.parametrize("dtype", [np.int16, np.uint32, np.int64, np.uint64])
def test_ids_of_any_integer_type(dtype: type) -> None:
    rows = np.array([1, 0], dtype)
    h = Hypergraph.from_hedges(2, np.array([0], dtype), np.array([0, 2]), rows, np.ones(1))
    assert to_rows(h) == [([0], [0, 1], 1.0)]
    assert rows.tolist() == [1, 0], "the caller's array was changed"


def test_arrays_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="read-only"):
        small().weights[0] = 1


VALID: dict[str, Any] = {
    "n_nodes": 4,
    "group_offsets": np.array([0, 2]),
    "destinations": np.array([1, 2]),
    "hedge_groups": np.array([0, 0]),
    "sources": np.array([0, 3]),
    "weights": np.array([1.0, 2.0]),
}

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "destination-too-large": ({"destinations": np.array([1, 4])}, "id 4 is outside 0..3"),
    "destination-negative": ({"destinations": np.array([1, -1], np.int32)}, "outside 0..3"),
    "destination-wraps": ({"destinations": np.array([1, 2**32 + 1])}, f"id {2**32 + 1} is outside"),
    "source-too-large": ({"sources": np.array([0, 9], np.int32)}, "sources of h-edge 1: id 9"),
    "float-ids": ({"destinations": np.array([1.0, 2.0])}, "float64; expected integers"),
    "offsets-fall": ({"group_offsets": np.array([0, 2, 1, 2])}, "offsets must rise"),
    "offsets-short": ({"group_offsets": np.array([0, 1])}, "offsets must rise from 0 to 2"),
    "offsets-empty": ({"group_offsets": np.array([])}, "offsets must rise"),
    "group-unknown": ({"hedge_groups": np.array([0, 1])}, "a group outside 0..0"),
    "weight-nan": ({"weights": np.array([1.0, np.nan])}, "h-edge 1: weight nan"),
    "weight-infinite": ({"weights": np.array([np.inf, 1.0])}, "h-edge 0: weight inf"),
    "weight-negative": ({"weights": np.array([1.0, -2.0])}, "h-edge 1: weight -2.0"),
    "lengths-differ": ({"hedge_groups": np.array([0])}, "differ in length"),
    "axons-zero": ({"axon_counts": np.array([1, 0])}, "axon counts"),
    "sizes-short": ({"node_sizes": np.array([1, 1])}, "node sizes"),
    "sizes-negative": ({"node_sizes": np.array([1, 1, -1, 1])}, "node sizes"),
    "nodes-negative": ({"n_nodes": -1}, "-1 nodes"),
    "nodes-too-many": ({"n_nodes": MAX_NODES + 1}, f"expected 0 to {MAX_NODES}"),
    "populations-overlap": (
        {"populations": [Population("a", 0, 3, (3,)), Population("b", 2, 4, (2,))]},
        "population 'b'",
    ),
    "population-outside": ({"populations": [Population("a", 0, 5, (5,))]}, "population 'a'"),
    "population-shape": ({"populations": [Population("a", 0, 4, (3,))]}, "has shape (3,)"),
    "populations-alike": (
        {"populations": [Population("a", 0, 1, (1,)), Population("a", 1, 2, (1,))]},
        "two populations are named 'a'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_the_place(case: str) -> None:
    changes, text = REFUSED[case]
    Hypergraph.from_groups(**VALID)
    with pytest.raises(InputError, match=re.escape(text)) as caught:
        Hypergraph.from_groups(**{**VALID, **changes, "name": "net"})
    assert str(caught.value).startswith("net")
    assert "\n" not in str(caught.value)
