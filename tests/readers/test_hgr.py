"""`.hgr`: every variant of the header, sources, decimals, refusals with the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from snnmap.readers import hgr, lines, read_network
from tests.readers.refusing import refusal
from tests.small import to_rows

INPUTS = Path(__file__).parents[3] / "shared" / "inputs"


def read(tmp_path: Path, text: str, **options: object) -> object:
    path = tmp_path / "net.hgr"
    path.write_bytes(text.encode())
    return read_network(path, **options)


def test_undirected_by_default(tmp_path: Path) -> None:
    h = read(tmp_path, "3 4\n1 2\n4 3 1\n2\n")
    assert to_rows(h) == [([], [0, 1], 1.0), ([], [0, 2, 3], 1.0), ([], [1], 1.0)]
    assert h.node_sizes.tolist() == [1, 1, 1, 1]
    assert h.fan_ins.tolist() == [2, 2, 1, 1]


def test_first_pin_is_source(tmp_path: Path) -> None:
    h = read(tmp_path, "3 4 1\n5 4 1 2\n0 2\n7 3 3\n", first_pin_is_source=True)
    assert to_rows(h) == [([3], [0, 1], 5.0), ([1], [], 0.0), ([2], [2], 7.0)]


@pytest.mark.parametrize(
    ("text", "weights", "sizes"),
    [
        ("2 3\n1 2\n3\n", [1, 1], [1, 1, 1]),
        ("2 3 0\n1 2\n3\n", [1, 1], [1, 1, 1]),
        ("2 3 1\n9 1 2\n0 3\n", [9, 0], [1, 1, 1]),
        ("2 3 01\n9 1 2\n0 3\n", [9, 0], [1, 1, 1]),
        ("2 3 10\n1 2\n3\n4\n5\n0\n", [1, 1], [4, 5, 0]),
        ("2 3 11\n9 1 2\n8 3\n4\n5\n6\n", [9, 8], [4, 5, 6]),
        ("2 3 1\n0.25 1 2\n1e3 3\n", [0.25, 1000], [1, 1, 1]),
        ("2 3 1\n99999999999999999 1 2\n1000000000000000000 3\n", [1e17, 1e18], [1, 1, 1]),
    ],
)
def test_every_kind_of_header(
    tmp_path: Path, text: str, weights: list[float], sizes: list[int]
) -> None:
    h = read(tmp_path, text)
    assert [d for _, d, _ in to_rows(h)] == [[0, 1], [2]]
    assert h.weights.tolist() == weights
    assert h.node_sizes.tolist() == sizes


@pytest.mark.parametrize(
    "text",
    [
        "% comment\n2 3\n1 2\n3\n",
        "\n\n2 3\n%1 3\n\n1 2\n   \n3\n%end",
        "2 3\r\n1 2\r\n3\r\n",
        "  2\t3 \n 1   2 \n\t3",
        "2 3\n1 2\n  % indented, too\n3\n",
    ],
)
def test_comments_blanks_and_ends_of_line_count_for_nothing(tmp_path: Path, text: str) -> None:
    assert [d for _, d, _ in to_rows(read(tmp_path, text))] == [[0, 1], [2]]


def test_more_lines_than_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINES_A_STEP", 3)
    body = "".join(f"{w} {a} {a + 1}\n" for w, a in enumerate(range(1, 9)))
    h = read(tmp_path, f"8 9 11\n{body}" + "".join(f"{n}\n" for n in range(9)))
    assert to_rows(h) == [([], [e, e + 1], float(e)) for e in range(8)]
    assert h.node_sizes.tolist() == list(range(9))


FAULTS: dict[str, tuple[str, str, str | None]] = {
    # name: (text, part of the problem, place)
    "comments-only": ("% nothing\n\n", "has no content", None),
    "header-one-number": ("3\n1\n2\n3\n", "header '3'; expected 'h-edges nodes [fmt]'", "line 1"),
    "header-word": ("%\n2 three\n1 2\n", "header 'three'", "line 2"),
    "header-fmt-2": ("1 2 2\n1 2\n", "header '1 2 2'", "line 1"),
    "header-negative": ("-1 2\n", "header '-1'", "line 1"),
    "edges-9e17": ("900000000000000000 2\n1 2\n", "announces 900000000000000000 lines", "line 1"),
    "edges-1e30": ("1000000000000000000000000000000 2\n1 2\n", "header '10000000000", "line 1"),
    "nodes-9e17": ("1 900000000000000000\n1 2\n", "expected 0 to 2147483647", "header"),
    "nodes-2e9": ("1 2000000000\n1 2\n", "2000000000 nodes, but", "header"),
    "sizes-9e17": ("1 900000000000000000 10\n1 2\n", "announces 900000000000000001", "line 1"),
    "too-few-edges": ("3 2\n1 2\n2\n%pad", "the file ends after h-edge 2 of 3", "line 4"),
    "too-few-sizes": ("1 2 10\n1 2\n5\n%pad", "ends after node weight 1 of 2", "line 4"),
    "too-many-edges": ("1 2\n1 2\n\n2\n", "content follows; expected the end after 1", "line 4"),
    "pin-zero": ("2 2\n1 2\n0 1\n", "pin 0; expected an id from 1 to 2", "line 3"),
    "pin-too-large": ("%\n1 2\n\n1 2 3\n", "pin 3; expected an id from 1 to 2", "line 4"),
    "pin-negative": ("1 2\n1 -2\n", "pin '-2'", "line 2"),
    "pin-word": ("1 2\n1 x2\n", "pin 'x2'", "line 2"),
    "pin-decimal": ("1 2\n1.0 2\n", "pin '1.0'", "line 2"),
    "pin-2e63": ("1 2\n1 9223372036854775809\n", "pin '9223372036854775809'", "line 2"),
    "weight-nan": ("1 2 1\nnan 1 2\n", "weight 'nan'; expected a finite number >= 0", "line 2"),
    "weight-infinite": ("1 2 1\n1e999 1 2\n", "weight '1e999'", "line 2"),
    "weight-negative": ("2 2 1\n1 1\n-3 1 2\n", "weight '-3'", "line 3"),
    "weight-word": ("1 2 1\n1_0 1 2\n", "weight '1_0'", "line 2"),
    "size-two-numbers": ("1 2 10\n1 2\n3\n4 5\n", "2 node weights; expected 1", "line 4"),
    "size-negative": ("1 2 10\n1 2\n3\n-4\n", "node weight '-4'", "line 4"),
    "binary": ("1 2\n\0\0 1\n", r"pin '\x00\x00'", "line 2"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_malformed_files_are_refused_with_the_line(tmp_path: Path, name: str) -> None:
    text, problem, place = FAULTS[name]
    path = tmp_path / f"{name}.hgr"
    path.write_bytes(text.encode())
    error = refusal(path)
    assert problem in error.problem
    assert error.place == place


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 3\n1 2\n3\n", True),
        ("% c\n1 2 11\n5 1 2\n3\n4\n", True),
        ("2 3\n1 2\n", False),
        ("0 1\n1 2\n2 3\n", False),  # an edge list
        ("1 2\n1 3\n", False),
        ("1 2 7\n1 2\n", False),
        ("a b\n", False),
        ("", False),
    ],
)
def test_recognised_by_its_lines(tmp_path: Path, text: str, expected: bool) -> None:
    path = tmp_path / "net"
    path.write_bytes(text.encode())
    assert hgr.recognise(path, text.encode()) == expected


def test_a_real_circuit() -> None:
    path = INPUTS / "hmetis" / "ibm01.hgr"
    if not path.exists():
        pytest.skip("../shared/inputs is not here: a real circuit is not read")
    h = read_network(path)
    assert (h.n_nodes, h.n_hedges, h.n_pins) == (12_752, 14_111, 50_566)
    directed = read_network(path, first_pin_is_source=True)
    assert directed.n_pins == 50_566
    assert len(directed.sources) == 14_111
