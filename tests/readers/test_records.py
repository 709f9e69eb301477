"""`.snn` and `.axh`: what is read, what is refused, and that only distinct rows are copied."""

from __future__ import annotations

import math
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnmap.readers import read_network
from snnmap.readers.records import looks_like_records
from tests import slow_hypergraph as slow
from tests.readers.bytes_of import Record, records
from tests.readers.refusing import refusal
from tests.small import to_rows
from tests.strategies import hedge_rows

MIB = 1 << 20


def test_snn_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "net.snn"
    path.write_bytes(records(5, [(0, [2, 1], 1.5), (3, [3, 4, 3], 0.0), (4, [], 2.0)]))
    h = read_network(path)
    assert (h.name, h.n_nodes) == ("net", 5)
    assert to_rows(h) == [([0], [1, 2], 1.5), ([3], [3, 4], 0.0), ([4], [], 2.0)]
    assert h.n_pins == 3 + 2 + 1


def test_axh_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "net.axh"
    path.write_bytes(records(5, [(2, [3, 0, 1, 0], 1.5), (1, [4], 2.0), (3, [2, 1, 2], 0.5)]))
    h = read_network(path)
    assert to_rows(h) == [([0, 3], [0, 1], 1.5), ([4], [], 2.0), ([1, 2], [], 0.5)]
    assert h.n_groups == 2


def _snn_rows(n: int) -> st.SearchStrategy[list[Record]]:
    rows = hedge_rows(n_nodes=n, min_sources=1, max_sources=1)
    return rows.map(lambda found: [(s[0], d, w) for s, d, w in found])


def _axh_rows(n: int) -> st.SearchStrategy[list[Record]]:
    rows = hedge_rows(n_nodes=n, min_sources=1)
    return rows.map(lambda found: [(len(s), s + d, w) for s, d, w in found])


def _with_nodes(rows: object) -> st.SearchStrategy[tuple[int, list[Record]]]:
    return st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), rows(n)))


@given(case=_with_nodes(_snn_rows))
def test_snn_grouped_or_not_is_the_same_network(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[int, list[Record]]
) -> None:
    n_nodes, rows = case
    path = tmp_path_factory.mktemp("snn") / "net.snn"
    path.write_bytes(records(n_nodes, rows))
    plain = read_network(path, grouped=False)
    assert to_rows(plain) == [([s], sorted(set(d)), w) for s, d, w in rows]
    grouped = read_network(path)
    assert slow.as_multiset(grouped) == slow.as_multiset(plain)
    assert grouped.n_groups == len({frozenset(d) for _, d, _ in rows})
    assert to_rows(grouped) == to_rows(plain.grouped())


@given(case=_with_nodes(_axh_rows))
def test_axh_grouped_or_not_is_the_same_network(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[int, list[Record]]
) -> None:
    n_nodes, rows = case
    path = tmp_path_factory.mktemp("axh") / "net.axh"
    path.write_bytes(records(n_nodes, rows))
    plain = read_network(path, grouped=False)
    assert to_rows(plain) == [(sorted(set(r[:n])), sorted(set(r[n:])), w) for n, r, w in rows]
    assert to_rows(read_network(path)) == to_rows(plain.grouped())
    assert path.read_bytes() == records(n_nodes, rows), "reading changed the file"


def test_grouped_reading_copies_distinct_rows_only(tmp_path: Path) -> None:
    path = tmp_path / "dense.snn"
    row = list(range(2000, 4000))
    path.write_bytes(records(4000, [(s, row, 1.0) for s in range(2000)]))
    size = path.stat().st_size
    assert size > 15 * MIB
    read_network(path)  # compile
    tracemalloc.start()
    h = read_network(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (h.n_groups, h.n_pins) == (1, 2000 * 2001)
    assert peak < MIB


SNN_FAULTS: dict[str, tuple[bytes, str, str | None]] = {
    # name: (bytes, part of the problem, place)
    "empty": (b"", "is empty", None),
    "seven-bytes": (b"\1\0\0\0\1\0\0", "expected at least the 8", None),
    "no-records": (records(3, [], n_edges=1), "1 h-edges need at least 20 bytes", "header"),
    "edges-4e9": (records(3, [], n_edges=2**32 - 1, tail=b"\0" * 64), "51539607548", "header"),
    "nodes-2e9": (records(2**31 - 1, []), "2147483647 nodes, but", "header"),
    "nodes-4e9": (records(2**32 - 1, []), "expected 0 to 2147483647", "header"),
    "cut-in-row": (
        records(3, [(0, [1], 1), (1, [2, 0, 1], 1)])[:-9],
        "the record needs 24 bytes (its length says 3 ids), 15 are left",
        "h-edge 1, byte 24",
    ),
    "cut-before-weight": (records(3, [(0, [1, 2], 1)])[:-4], "16 are left", "h-edge 0, byte 8"),
    "cut-in-weight": (records(3, [(0, [1, 2], 1)])[:-1], "19 are left", "h-edge 0, byte 8"),
    "cut-in-head": (
        records(3, [(0, [1, 2, 1, 2], 1)], n_edges=2, tail=b"\1\0\0"),
        "the record needs 12 bytes, 3 are left",
        "h-edge 1, byte 36",
    ),
    "row-of-4e9": (
        records(3, [(0, [1], 1)])[:8] + b"\xff" * 4 + b"\0" * 12,
        "its length says 4294967295 ids",
        "h-edge 0, byte 8",
    ),
    "trailing-record": (
        records(3, [(0, [1], 1), (1, [2], 1)], n_edges=1),
        "16 bytes follow the last of 1 h-edges",
        "byte 24",
    ),
    "trailing-byte": (records(3, [(0, [1], 1)], tail=b"\0"), "1 bytes follow", "byte 24"),
    "destination-out-of-range": (
        records(3, [(0, [1], 1), (1, [2, 3], 1)]),
        "destination id 3 is not below the number of nodes, 3",
        "h-edge 1, byte 36",
    ),
    "destination-4e9": (
        records(3, [(0, [2**32 - 1], 1)]),
        "destination id 4294967295",
        "h-edge 0, byte 16",
    ),
    "source-out-of-range": (
        records(3, [(0, [1], 1), (7, [2], 1)]),
        "source id 7 is not below the number of nodes, 3",
        "h-edge 1, byte 28",
    ),
    "no-nodes": (records(0, [(0, [], 1)]), "source id 0 is not below", "h-edge 0, byte 12"),
    "weight-nan": (
        records(3, [(0, [1], 1), (1, [2], math.nan)]),
        "weight nan is not a finite number >= 0",
        "h-edge 1, byte 36",
    ),
    "weight-infinite": (records(3, [(0, [1], math.inf)]), "weight inf", "h-edge 0, byte 20"),
    "weight-negative": (records(3, [(0, [], -0.5)]), "weight -0.5", "h-edge 0, byte 16"),
}  # fmt: skip

AXH_FAULTS: dict[str, tuple[bytes, str, str | None]] = {
    **{
        name: SNN_FAULTS[name]
        for name in ("empty", "seven-bytes", "no-records", "edges-4e9", "cut-in-row", "row-of-4e9")
    },
    "no-source": (
        records(3, [(1, [1, 2], 1), (0, [1], 1)]),
        "0 sources among 1 pins",
        "h-edge 1, byte 32",
    ),
    "sources-beyond-pins": (records(3, [(2, [1], 1)]), "2 sources among 1", "h-edge 0, byte 12"),
    "source-out-of-range": (
        records(3, [(2, [1, 3, 0], 1)]),
        "source id 3 is not below",
        "h-edge 0, byte 20",
    ),
    "destination-out-of-range": (
        records(3, [(2, [1, 2, 5], 1)]),
        "destination id 5 is not below",
        "h-edge 0, byte 24",
    ),
    "weight-nan": (records(3, [(1, [1], math.nan)]), "weight nan", "h-edge 0, byte 20"),
}


@pytest.mark.parametrize(
    ("suffix", "name"),
    [(".snn", name) for name in SNN_FAULTS] + [(".axh", name) for name in AXH_FAULTS],
)
def test_malformed_files_are_refused_with_the_place(tmp_path: Path, suffix: str, name: str) -> None:
    data, problem, place = (SNN_FAULTS if suffix == ".snn" else AXH_FAULTS)[name]
    path = tmp_path / f"{name}{suffix}"
    path.write_bytes(data)
    error = refusal(path)
    assert problem in error.problem
    assert error.place == place


def test_unlinked_nodes_are_read(tmp_path: Path) -> None:
    path = tmp_path / "free.snn"
    path.write_bytes(records(1000, []))
    assert (read_network(path).n_nodes, read_network(path).n_hedges) == (1000, 0)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(0, [1, 2], 1.0), (4, [0], 1.0)], (True, False)),
        ([(1, [3, 2], 1.0), (1, [0, 2], 1.0)], (False, True)),
        ([(2, [3, 2], 1.0), (1, [0, 2], 1.0)], (True, False)),  # either; distinct: sources
        ([(1, [3, 9], 1.0)], (False, False)),
        ([(1, [3], math.nan)], (False, False)),
    ],
)
def test_files_without_a_suffix_are_told_by_their_structure(
    rows: list[Record], expected: tuple[bool, bool]
) -> None:
    data = records(5, rows)
    assert looks_like_records(data, len(data)) == expected


def test_a_file_without_a_suffix_is_read(tmp_path: Path) -> None:
    path = tmp_path / "network"
    rows = [(int(s), [int(s) + 1], 1.0) for s in np.arange(40_000)]  # longer than the head
    path.write_bytes(records(40_001, rows))
    assert read_network(path).n_hedges == 40_000
