"""Matrix Market (``.mtx``): entry (i, j) links node i to node j; counted from 1 in the file.

SciPy's own reader is fast but trusts what it reads; this one parses with the compiled line reader
and names the line of whatever is wrong.

Source of the format: https://math.nist.gov/MatrixMarket/formats.html
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array

from snnmap.errors import InputError
from snnmap.hypergraph import Hypergraph
from snnmap.progress import SILENT, Progress
from snnmap.readers._links import from_matrix
from snnmap.readers.checks import check_node_count, input_size
from snnmap.readers.lines import NumberLines

Array = np.ndarray[Any, Any]

MARK = "%%MatrixMarket"
KINDS = {
    "format": ("coordinate", "array"),
    "field": ("real", "double", "integer", "unsigned-integer", "pattern"),
    "symmetry": ("general", "symmetric", "skew-symmetric"),
}


@dataclass(frozen=True, slots=True)
class Header:
    """The first line and the sizes.

    Attributes:
        dense: all entries are listed, column by column.
        pattern: entries have no value.
        symmetric: only the lower triangle is listed.
        skew: the upper triangle has the opposite sign, and there is no diagonal.
        rows, columns: shape.
        n_lines: number of entries listed.
    """

    dense: bool
    pattern: bool
    symmetric: bool
    skew: bool
    rows: int
    columns: int
    n_lines: int


def recognise(path: Path, head: bytes) -> bool:
    """Whether the file begins as Matrix Market files do."""
    return head[: len(MARK)].lower() == MARK.lower().encode()


def read_mtx(
    path: Path,
    *,
    progress: Progress = SILENT,
    link_weights: str = "ignore",
    drop_zeros: bool = False,
    bipartite: bool = False,
) -> Hypergraph:
    """Read a Matrix Market file.

    Args:
        path: the file; coordinate or array, real, integer or pattern, any symmetry but hermitian.
        progress: told of the bytes read.
        link_weights: what entries say about rates: "ignore", "max" or "sum" over an axon's links.
        drop_zeros: stored zeros are no links (zeros of an array file never are).
        bipartite: rows and columns are two populations (the matrix need not be square).

    Raises:
        InputError: the file is malformed; the text names the line.
    """
    size = input_size(path)
    lines = NumberLines(path, progress)
    header = _header(lines)
    progress.start(f"reading {path.name}", size, "B")
    read = _read_dense if header.dense else _read_coordinates
    coordinates, data = read(lines, header)
    lines.refuse_more(f"{header.n_lines} entries")
    progress.finish()
    if header.symmetric:
        mirrored = coordinates[0] != coordinates[1]
        coordinates = np.concatenate([coordinates, coordinates[::-1, mirrored]], axis=1)
        data = np.concatenate([data, -data[mirrored] if header.skew else data[mirrored]])
    matrix = coo_array((data, tuple(coordinates)), shape=(header.rows, header.columns))
    return from_matrix(
        path, matrix, link_weights=link_weights, drop_zeros=drop_zeros, bipartite=bipartite
    )


def _header(lines: NumberLines) -> Header:
    path = lines.path
    with path.open("rb") as file:
        words = file.readline(1000).decode("ascii", "replace").lower().split()
    if len(words) != 5 or words[:2] != [MARK.lower(), "matrix"]:
        problem = f"expected '{MARK} matrix FORMAT FIELD SYMMETRY'"
        raise InputError(path, problem, place="line 1")
    for (kind, known), word in zip(KINDS.items(), words[2:], strict=True):
        if word not in known:
            problem = f"{kind} {word!r}; expected {', '.join(known)}"
            raise InputError(path, problem, place="line 1")
    dense, pattern, symmetric = words[2] == "array", words[3] == "pattern", words[4] != "general"
    if dense and pattern:
        raise InputError(path, "an array of pattern has no values", place="line 1")
    expected = "'rows columns'" if dense else "'rows columns entries'"
    sizes = [value for _, values in lines.some(1) for value in values.tolist()]
    if not sizes:
        raise InputError(path, f"has no sizes; expected {expected}", place="line 1")
    at = int(lines.starts[0])
    lines.refuse(lines.values < 0, "sizes", expected)
    if len(sizes) != (2 if dense else 3):
        raise lines.error(at, f"{len(sizes)} sizes; expected {expected}")
    rows, columns = sizes[:2]
    if symmetric and rows != columns:
        raise lines.error(at, f"{rows} rows and {columns} columns of a symmetric matrix")
    skew = words[4] == "skew-symmetric"
    n_lines = sizes[2] if not dense else rows * columns
    if dense and symmetric:
        n_lines = rows * (rows - 1) // 2 if skew else rows * (rows + 1) // 2
    n_bytes = len(lines.text) - lines.position
    if n_lines > (n_bytes + 1) // (2 if dense else 4):
        raise lines.error(at, f"{n_lines} entries do not fit into the {n_bytes} bytes that follow")
    for n in (rows, columns):
        check_node_count(path, n, n_bytes // 2, place=f"line {lines.line(at)}")
    return Header(dense, pattern, symmetric, skew, rows, columns, n_lines)


def _read_coordinates(lines: NumberLines, header: Header) -> tuple[Array, Array]:
    width = 2 if header.pattern else 3
    limits = np.array([header.rows, header.columns])
    coordinates = np.empty((2, header.n_lines), np.int32)
    data = np.ones(header.n_lines)
    done = 0
    for offsets, values in lines.steps(header.n_lines, "entry"):
        lines.refuse_width(offsets, width)
        table = values.reshape(-1, width)
        wrong = np.zeros(table.shape, bool)
        wrong[:, :2] = (table[:, :2] < 1) | (table[:, :2] > limits)
        shape = f"{header.rows} x {header.columns}"
        lines.refuse(wrong.ravel(), "row or column", f"1 to the sizes, {shape}")
        part = slice(done, done + len(table))
        coordinates[:, part] = table[:, :2].T - 1
        if not header.pattern:
            data[part] = lines.checked_numbers(offsets[:-1] + 2, "value")
        done += len(table)
    return coordinates, data


def _read_dense(lines: NumberLines, header: Header) -> tuple[Array, Array]:
    values = [np.zeros(0)]
    for offsets, _ in lines.steps(header.n_lines, "value"):
        lines.refuse_width(offsets, 1)
        values.append(lines.checked_numbers(offsets[:-1], "value"))
    data = np.concatenate(values)
    if header.symmetric:
        columns, rows = np.triu_indices(header.rows, 1 if header.skew else 0)
    else:
        columns, rows = np.divmod(np.arange(header.n_lines), max(header.rows, 1))
    kept = data != 0
    return np.stack([rows[kept], columns[kept]]).astype(np.int32), data[kept]
