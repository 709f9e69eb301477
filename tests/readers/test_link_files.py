"""Edge lists, matrices and arrays of links: what is read and what is refused, with the place."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from snnmap.errors import ConfigError, InputError
from snnmap.hypergraph import Hypergraph
from snnmap.readers import find_format, lines, read_network
from snnmap.readers.objects import from_object, is_network_object
from tests.readers.refusing import refusal
from tests.small import small, to_rows

LINKS = [(0, 2), (2, 0), (0, 1), (3, 3), (0, 2)]
ROWS = [([0], [1, 2], 1.0), ([2], [0], 1.0), ([3], [3], 1.0)]


def write(path: Path, data: str | bytes) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


# ---------------------------------------------------------------------- edge lists


@pytest.mark.parametrize(
    "text",
    [
        "0,2\n2,0\n0,1\n3,3\n0,2\n",
        "source,target\n0,2\n2,0\n0,1\n3,3\n0,2",
        "# by hand\nsource;target;weight\n0;2;.5\n2;0;-1\n0;1;1e-3\n3;3;0\n0;2;1\n",
        "pre\tname\tpost\n0\ta\t2\n2\tb\t0\n0\tc\t1\n3\td\t3\n0\te\t2\n",
        "0 2\n2 0\n%\n\n0 1\n3 3\n# x\n0 2\n",
        '"Target","Source"\r\n2,0\r\n0,2\r\n1,0\r\n3,3\r\n2,0\r\n',
        "source id, target, syn weight\n0, 2, 1\n2, 0, 1\n0, 1, 1\n3, 3, 1\n0, 2, 1\n".replace(
            "source id", "source_id"
        ),
    ],
    ids=["plain", "header", "weights", "names", "blanks", "quoted", "spaces"],
)
def test_edge_lists_of_every_layout(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "net.csv", text)
    assert find_format(path).name == "edges"
    h = read_network(path)
    assert (h.n_nodes, to_rows(h)) == (4, ROWS)


def test_edge_list_options(tmp_path: Path) -> None:
    path = write(tmp_path / "net.csv", "1,3,2\n3,1,0\n1,2,5\n")
    assert to_rows(read_network(path, first_id=1)) == [([0], [1, 2], 1), ([2], [0], 1)]
    assert read_network(path, n_nodes=9).n_nodes == 9
    rates = read_network(path, link_weights="max").weights.tolist()
    assert rates == [5, 0]
    assert read_network(path, link_weights="sum").weights.tolist() == [7, 0]
    assert to_rows(read_network(path, drop_zeros=True)) == [([1], [2, 3], 1)]
    with pytest.raises(ConfigError, match="expected one of"):
        read_network(path, link_weights="mean")


def test_ids_that_are_mere_names(tmp_path: Path) -> None:
    path = write(tmp_path / "net.csv", "720575940000000001,5\n5,720575940000000001\n7,5\n")
    assert "from 0 to 2147483646" in refusal(path).problem
    h = read_network(path, relabel=True)
    assert to_rows(h) == [([0], [2], 1), ([1], [0], 1), ([2], [0], 1)]
    assert "option relabel" in refusal(write(path, "0,2000000000\n")).problem
    assert read_network(path, relabel=True).n_nodes == 2


def test_shared_targets_are_stored_once(tmp_path: Path) -> None:
    path = write(tmp_path / "net.csv", "0,2\n1,2\n1,3\n0,3\n")
    assert (read_network(path).n_groups, read_network(path).n_hedges) == (1, 2)


def test_many_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    links = rng.integers(0, 50, (1000, 2))
    path = write(tmp_path / "net.tsv", "".join(f"{a}\t{b}\t{a}.5\n" for a, b in links))
    whole = read_network(path, link_weights="max")
    monkeypatch.setattr(lines, "LINES_A_STEP", 7)
    assert to_rows(read_network(path, link_weights="max")) == to_rows(whole)
    assert set(zip(whole.sources.tolist(), whole.weights.tolist(), strict=True)) == {
        (a, a + 0.5) for a in set(links[:, 0].tolist())
    }


EDGE_FAULTS: dict[str, tuple[str, str, str | None]] = {
    # name: (text, part of the problem, place)
    "comments-only": ("# nothing\n", "has no content", None),
    "one-column": ("0\n1\n", "has one column", "line 1"),
    "four-columns": ("0,1,2,3\n", "4 columns without a header", "line 1"),
    "header-unknown": ("# x\nfoo,bar\n0,1\n", "header 'foo, bar'", "line 2"),
    "header-twice": ("source,source,target\n0,1,2\n", "expected columns source, target", "line 1"),
    "row-short": ("0,1,1.5\n0,2\n", "2 values; expected 3", "line 2"),
    "row-long": ("a,b\n".replace("a,b", "source,target") + "0,1\n1,2,3\n", "3 values", "line 3"),
    "field-empty": ("0,1,1.5\n0,,2\n", "2 values; expected 3", "line 2"),
    "id-negative": ("0,1\n-1,2\n", "node id '-1'; expected a whole number from 0", "line 2"),
    "id-word": ("0,1\n\n# x\n1,b\n", "node id 'b'", "line 4"),
    "id-decimal": ("0,1.0\n", "node id '1.0'", "line 1"),
    "id-2e31": ("0,2147483647\n", "node id 2147483647", "line 1"),
    "id-2e63": ("0,9223372036854775808\n", "node id '9223372036854775808'", "line 1"),
    "ids-sparse": ("0,2147483646\n", "makes 2147483647 nodes, but only 2 ids occur", None),
    "weight-nan": ("0,1,1\n1,2,nan\n", "weight 'nan'", "line 2"),
    "weight-word": ("0,1,1\n1,2,heavy\n", "weight 'heavy'", "line 2"),
    "binary": ("0,1\n\0\0,1\n", "node id", "line 2"),
}


@pytest.mark.parametrize("name", EDGE_FAULTS)
def test_malformed_edge_lists(tmp_path: Path, name: str) -> None:
    text, problem, place = EDGE_FAULTS[name]
    error = refusal(write(tmp_path / f"{name}.csv", text))
    assert problem in error.problem
    assert error.place == place


def test_edge_list_with_other_ids_than_said(tmp_path: Path) -> None:
    path = write(tmp_path / "net.csv", "0,1\n")
    assert "node id '" not in refusal(path, n_nodes=1).problem
    assert "1 nodes expected" in refusal(path, n_nodes=1).problem
    assert "from 1 to" in refusal(path, first_id=1).problem


def test_negative_weights_are_no_rates(tmp_path: Path) -> None:
    path = write(tmp_path / "net.csv", "0,1,-2\n")
    assert read_network(path).weights.tolist() == [1]
    assert refusal(path, link_weights="max").place == "line 1"


# ---------------------------------------------------------------------- matrices


def _matrix(kind: str = "csr") -> Any:
    rows, columns = np.array(LINKS[:-1]).T
    data = [0.5, 2.0, 0.0, 3.0]
    return scipy.sparse.coo_array((data, (rows, columns)), shape=(4, 4)).asformat(kind)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr"])
def test_sparse_matrices(tmp_path: Path, kind: str) -> None:
    scipy.sparse.save_npz(tmp_path / "net.npz", _matrix(kind))
    assert find_format(tmp_path / "net.npz").name == "sparse"
    h = read_network(tmp_path / "net.npz", drop_zeros=kind == "bsr")
    assert to_rows(h)[1:] == ROWS[1:]
    assert to_rows(h)[0] == (ROWS[0] if kind != "bsr" else ([0], [2], 1.0))
    assert read_network(tmp_path / "net.npz", link_weights="sum").weights.tolist() == [0.5, 2, 3]


def test_a_matrix_between_two_populations(tmp_path: Path) -> None:
    scipy.sparse.save_npz(tmp_path / "net.npz", scipy.sparse.csr_array(np.eye(2, 3)))
    assert "2 rows and 3 columns" in refusal(tmp_path / "net.npz").problem
    h = read_network(tmp_path / "net.npz", bipartite=True)
    assert to_rows(h) == [([0], [2], 1.0), ([1], [3], 1.0)]
    assert [(p.name, p.size, p.is_input) for p in h.populations] == [
        ("rows", 2, True),
        ("columns", 3, False),
    ]


MARK = "%%MatrixMarket matrix coordinate real general\n"
MTX = f"{MARK}% comment\n4 4 3\n1 3 0.5\n3 1 2\n1 2 0\n"


def test_matrix_market(tmp_path: Path) -> None:
    path = write(tmp_path / "net.mtx", MTX)
    assert find_format(path).name == "mtx"
    assert to_rows(read_network(path)) == ROWS[:2]
    assert to_rows(read_network(path, drop_zeros=True)) == [([0], [2], 1), ([2], [0], 1)]
    pattern = "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n"
    h = read_network(write(tmp_path / "other", pattern))
    assert to_rows(h) == [([0], [1], 1), ([1], [0], 1), ([2], [2], 1)]
    dense = "%%MatrixMarket matrix array real general\n2 2\n0\n1\n0\n0\n"
    assert to_rows(read_network(write(path, dense))) == [([1], [0], 1)]


SCIPY_KINDS = [
    (kind, field, symmetry)
    for kind in ("coo", "array")
    for field in ("real", "integer", "pattern")
    for symmetry in ("general", "symmetric", "skew-symmetric")
    if field != "pattern" or (kind == "coo" and symmetry != "skew-symmetric")  # no values, no signs
]


@pytest.mark.parametrize(("kind", "field", "symmetry"), SCIPY_KINDS)
def test_matrix_market_as_scipy_writes_it(
    tmp_path: Path, kind: str, field: str, symmetry: str
) -> None:
    lower = np.tril(np.random.default_rng(1).integers(0, 3, (6, 6)), -1).astype(float)
    dense = {
        "general": lower + np.eye(6),
        "symmetric": lower + lower.T + np.eye(6),
        "skew-symmetric": lower - lower.T,
    }[symmetry]
    matrix = dense if kind == "array" else scipy.sparse.coo_array(dense)
    scipy.io.mmwrite(tmp_path / "net.mtx", matrix, field=field, symmetry=symmetry)
    h = read_network(tmp_path / "net.mtx")
    found = {(s[0], d) for s, row, _ in to_rows(h) for d in row}
    assert found == set(zip(*map(list, np.nonzero(dense)), strict=True))
    if symmetry != "skew-symmetric" and field != "pattern":
        sums = read_network(tmp_path / "net.mtx", link_weights="sum")
        assert np.array_equal(sums.weights, dense.sum(axis=1)[sums.sources])


MTX_FAULTS: dict[str, tuple[str, str, str | None]] = {
    # name: (text, part of the problem, place)
    "no-mark": ("4 4 1\n1 1 1\n", "expected '%%MatrixMarket matrix FORMAT", "line 1"),
    "mark-short": ("%%MatrixMarket matrix coordinate\n1 1 0\n", "FIELD SYMMETRY", "line 1"),
    "mark-only": (MARK, "has no sizes; expected 'rows columns entries'", "line 1"),
    "format-unknown": (MTX.replace("coordinate", "list"), "format 'list'", "line 1"),
    "field-unknown": (MTX.replace("real", "quaternion"), "field 'quaternion'", "line 1"),
    "field-complex": (MTX.replace("real", "complex"), "field 'complex'; expected real", "line 1"),
    "symmetry-hermitian": (MTX.replace("general", "hermitian"), "'hermitian'", "line 1"),
    "sizes-word": (f"{MARK}4 four 1\n", "sizes 'four'", "line 2"),
    "sizes-short": (f"{MARK}4 4\n1 1 1\n", "2 sizes; expected 'rows columns entries'", "line 2"),
    "sizes-not-square": (
        MTX.replace("general", "symmetric").replace("4 4", "4 3"),
        "4 rows and 3 columns of a symmetric matrix",
        "line 3",
    ),
    "entries-2e59": (f"{MARK}4 4 {2**59}\n", "do not fit into the 0 bytes", "line 2"),
    "rows-2e59": (f"{MARK}{2**59} 4 1\n1 1 1\n", "expected 0 to 2147483647", "line 2"),
    "rows-2e63": (f"{MARK}{2**63} 4 1\n1 1 1\n", "sizes '9223372036854775808'", "line 2"),
    "rows-2e9": (f"{MARK}%\n2000000000 4 1\n1 1 1\n", "only long enough", "line 3"),
    "dense-2e60": (
        f"{MARK.replace('coordinate', 'array')}{2**30} {2**30}\n1\n",
        "entries do not fit into the 2 bytes that follow",
        "line 2",
    ),
    "truncated": (MTX[:-6], "the file ends after entry 2 of 3", "line 5"),
    "too-many": (MTX + "4 4 1\n", "content follows; expected the end after 3 entries", "line 7"),
    "entry-short": (MTX.replace("3 1 2", "3 1"), "2 values; expected 3", "line 5"),
    "entry-word": (MTX.replace("3 1 2", "3 x 2"), "row or column 'x'", "line 5"),
    "row-zero": (MTX.replace("3 1 2", "0 1 2"), "row or column 0; expected 1 to", "line 5"),
    "row-beyond": (MTX.replace("3 1 2", "5 1 2"), "5; expected 1 to the sizes, 4 x 4", "line 5"),
    "value-nan": (MTX.replace("3 1 2", "3 1 nan"), "value 'nan'", "line 5"),
    "value-word": (MTX.replace("3 1 2", "3 1 two"), "value 'two'", "line 5"),
}


@pytest.mark.parametrize("name", MTX_FAULTS)
def test_malformed_matrix_market(tmp_path: Path, name: str) -> None:
    text, problem, place = MTX_FAULTS[name]
    error = refusal(write(tmp_path / f"{name}.mtx", text))
    assert problem in error.problem
    assert error.place == place


# ---------------------------------------------------------------------- NumPy


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.uint64])
def test_arrays_of_pairs(tmp_path: Path, dtype: type) -> None:
    pairs = np.array(LINKS, dtype)
    for name, array in (("a.npy", pairs), ("b.npy", np.ascontiguousarray(pairs.T))):
        np.save(tmp_path / name, array)
        assert find_format(tmp_path / name).name == "pairs"
        assert to_rows(read_network(tmp_path / name)) == ROWS
    np.savez(tmp_path / "c.npz", source=pairs[:, 0], target=pairs[:, 1], n_nodes=9)
    assert find_format(tmp_path / "c.npz").name == "pairs"
    h = read_network(tmp_path / "c.npz")
    assert (to_rows(h), h.n_nodes) == (ROWS, 9)
    np.savez_compressed(tmp_path / "d.npz", edges=pairs, weight=np.arange(5) / 2)
    assert read_network(tmp_path / "d.npz", link_weights="max").weights.tolist() == [2, 0.5, 1.5]


def test_dense_matrices(tmp_path: Path) -> None:
    np.save(tmp_path / "net.npy", _matrix().toarray())
    h = read_network(tmp_path / "net.npy")
    assert to_rows(h) == [([0], [2], 1.0), *ROWS[1:]]


def _npy(shape: tuple[int, ...], data: bytes = b"", descr: str = "<i8") -> bytes:
    out = io.BytesIO()
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, header)
    return out.getvalue() + data


def _npz(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return out.getvalue()


def _saved(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def _csr(**changes: Any) -> bytes:
    matrix = _matrix()
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    return _saved(**{"format": b"csr", "shape": (4, 4), **parts, **changes})


IDS, EDGES = np.zeros(2, int), np.zeros((3, 2), int)

PAIRS_FAULTS: dict[str, tuple[bytes, str, str | None]] = {
    "truncated.npy": (_npy((3, 2), b"\0" * 40), "is no NumPy array", None),
    "header-cut.npy": (_npy((3, 2))[:30], "is no NumPy array", None),
    "rows-2e61.npy": (_npy((2**61, 2)), f"claims shape ({2**61}, 2)", None),
    "version-9.npy": (b"\x93NUMPY\x09\x00" + b"\0" * 80, "has version (9, 0)", None),
    "objects.npy": (_npy((1, 2), b"\0" * 16, "|O"), "holds Python objects", None),
    "floats.npy": (_npy((1, 2), b"\0" * 16, "<f8"), "have type float64", None),
    "negative.npy": (_npy((1, 2), b"\xff" * 16), "id -1 is negative", None),
    "three-columns.npy": (_npy((1, 3), b"\0" * 24), "has shape (1, 3)", None),
    "no-dimension.npy": (_npy((), b"\0" * 8), "has shape ()", None),
    "ids-sparse.npy": (_npy((1, 2), (2**30).to_bytes(8, "little") * 2), "only long enough", "ids"),
    "ids-2e62.npy": (_npy((1, 2), (2**62).to_bytes(8, "little") * 2), "expected 0 to", "ids"),
    "no-zip.npz": (b"PK\x03\x04nonsense", "is no archive", None),
    "strange-names.npz": (_saved(x=np.zeros(2), edge=1), "holds edge, x; expected arrays", None),
    "lengths.npz": (_saved(source=IDS, target=np.zeros(3, int)), "(2,) and (3,)", None),
    "no-target.npz": (_saved(source=IDS), "(2,) and None", None),
    "two-sources.npz": (_saved(source=np.zeros(2), src=np.zeros(2)), "one array of source", None),
    "weights-short.npz": (_saved(edges=EDGES, weight=np.ones(2)), "(2,); expected 3", "weight"),
    "nodes-text.npz": (_saved(edges=EDGES, n_nodes="many"), "one whole number", "n_nodes"),
    "nodes-few.npz": (_saved(edges=np.array(LINKS), n_nodes=3), "id 3 is not below", None),
    "nodes-2e40.npz": (_saved(edges=np.array(LINKS), n_nodes=2**40), "expected 0 to", "ids"),
    "member-2e50.npz": (_npz(source=_npy((2**50,))), "claims shape", "source.npy"),
    "csr-index-beyond.npz": (_csr(indices=np.array([1, 9, 0, 3])), "is no sparse matrix", None),
    "csr-index-negative.npz": (_csr(indices=np.array([1, -2, 0, 3])), "is no sparse matrix", None),
    "csr-indptr-falls.npz": (_csr(indptr=np.array([0, 3, 2, 3, 4])), "is no sparse matrix", None),
    "csr-indptr-short.npz": (_csr(indptr=np.array([0, 4])), "is no sparse matrix", None),
    "csr-no-data.npz": (_saved(format=b"csr", shape=(4, 4)), "is no sparse matrix", None),
    "csr-shape-2e40.npz": (_csr(shape=(2**40, 2**40)), "expected 0 to", "shape"),
    "csr-shape-2e30.npz": (_csr(shape=(4, 2**30)), "only long enough", "shape"),
    "csr-shape-float.npz": (_csr(shape=(4.0, 4.0)), "no shape of whole numbers", None),
    "kind-unknown.npz": (_csr(format=b"xyz"), "Unknown format", None),
    "complex.npz": (_csr(data=np.ones(4, complex)), "holds complex128", None),
    "infinite.npz": (_csr(data=np.full(4, np.inf)), "weight inf", "link 0"),
}


@pytest.mark.parametrize("name", PAIRS_FAULTS)
def test_malformed_arrays(tmp_path: Path, name: str) -> None:
    data, problem, place = PAIRS_FAULTS[name]
    strange = {"format": "pairs"} if name == "strange-names.npz" else {}
    if name == "no-zip.npz":
        strange = {"format": "sparse"}
    error = refusal(write(tmp_path / name, data), **strange)
    assert problem in error.problem
    assert error.place == place


# ---------------------------------------------------------------------- objects


def test_objects_in_hand() -> None:
    assert to_rows(from_object(np.array(LINKS))) == ROWS
    assert from_object(np.array(LINKS), n_nodes=9).n_nodes == 9
    assert to_rows(from_object(_matrix())) == ROWS
    assert to_rows(from_object(scipy.sparse.csr_matrix(_matrix()))) == ROWS
    graph = nx.DiGraph(LINKS)
    graph.add_node(1)
    order = list(graph)
    renamed = [
        ([order[s[0]]], sorted(order[n] for n in d), w) for s, d, w in to_rows(from_object(graph))
    ]
    assert sorted(renamed) == ROWS
    h = small()
    assert from_object(h) is h
    assert from_object(np.array(LINKS), name="mine").name == "mine"


def test_objects_of_no_known_kind() -> None:
    assert not is_network_object([(0, 1)])
    assert is_network_object(np.zeros((0, 2), int))
    with pytest.raises(InputError, match="is list; expected a file, a NumPy array"):
        from_object([(0, 1)])
    with pytest.raises(TypeError, match="bipartite"):
        from_object(np.array(LINKS), bipartite=True)
    with pytest.raises(InputError, match="negative"):
        from_object(np.array([[0, -1]]))


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=20))
def test_all_ways_lead_to_the_same_network(links: list[tuple[int, int]]) -> None:
    expected = {s: sorted({d for a, d in links if a == s}) for s, _ in links}

    def of(h: Hypergraph) -> dict[int, list[int]]:
        return {s[0]: d for s, d, _ in to_rows(h)}

    pairs = np.array(links, int).reshape(-1, 2)
    ones = np.ones(len(links))
    graph = nx.MultiDiGraph(links)
    ordered = nx.MultiDiGraph()
    ordered.add_nodes_from(range(7))
    ordered.add_edges_from(graph.edges())
    assert of(from_object(pairs)) == expected
    assert of(from_object(scipy.sparse.coo_array((ones, pairs.T), shape=(7, 7)))) == expected
    assert of(from_object(ordered)) == expected
