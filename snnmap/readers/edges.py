"""Edge lists: text with a link a line, ``source, target[, weight]``, read in one stream.

Columns are parted by commas, semicolons, tabs or spaces. A first line of names is a header: it says
which columns are source, target and weight, and there may be others. Lines that begin with ``#`` or
``%`` count for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from snnmap.errors import InputError
from snnmap.hypergraph import Hypergraph
from snnmap.progress import SILENT, Progress
from snnmap.readers._links import check_link_weights, from_links
from snnmap.readers.checks import check_node_count, input_size
from snnmap.readers.lines import NumberLines

Array = np.ndarray[Any, Any]

NAMES = {
    "source": ("source", "src", "from", "pre", "presynaptic", "source_id", "pre_id", "i"),
    "target": ("target", "dst", "to", "post", "postsynaptic", "target_id", "post_id", "j"),
    "weight": ("weight", "w", "rate", "value"),
}
"""Names of columns, in lower case."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How the lines of a file are laid out.

    Attributes:
        separator: one of ``, ; tab space``.
        start: byte at which the links begin (after the header).
        n_columns: columns of every line.
        columns: of source, target and (or None) weight.
    """

    separator: str
    start: int
    n_columns: int
    columns: tuple[int, int, int | None]


def recognise(path: Path, head: bytes) -> bool:
    """Whether the first lines look like an edge list."""
    try:
        layout = find_layout(path, head)
    except InputError:
        return False
    whole = len(head) == path.stat().st_size
    body = head[layout.start :] if whole else head[layout.start : head.rfind(b"\n")]
    lines = [_split(line, layout.separator) for line in _content(body)]
    ids = [line[c] for line in lines if len(line) == layout.n_columns for c in layout.columns[:2]]
    return 2 * len(lines) == len(ids) and all(word.isdigit() for word in ids)


def read_edges(
    path: Path,
    *,
    progress: Progress = SILENT,
    n_nodes: int | None = None,
    first_id: int = 0,
    relabel: bool = False,
    link_weights: str = "ignore",
    drop_zeros: bool = False,
) -> Hypergraph:
    """Read an edge list.

    Args:
        path: the file.
        progress: told of the bytes read.
        n_nodes: number of nodes; default: one more than the largest id.
        first_id: the smallest id, e.g. 1; node 0 of the network.
        relabel: ids are arbitrary whole numbers; nodes are numbered in their order.
        link_weights: what weights say about rates: "ignore", "max" or "sum" over an axon's links.
        drop_zeros: links of weight zero do not count.

    Returns:
        The network, each neuron's links one axon; rates are 1 unless `link_weights` says otherwise.

    Raises:
        InputError: a line is malformed; the text names it.
    """
    check_link_weights(link_weights)
    size = input_size(path)
    with path.open("rb") as file:
        layout = find_layout(path, file.read(1 << 16))
    source, target, weight = layout.columns
    lines = NumberLines(path, progress, separator=layout.separator, comment="#")
    lines.position = layout.start
    largest = 10**18 if relabel else 2**31 - 2 + first_id
    dtype = np.int64 if relabel else np.int32
    pairs: list[Array] = [np.zeros((2, 0), dtype)]
    weights: list[Array] = []
    progress.start(f"reading {path.name}", size, "B")
    for offsets, values in lines.some(size):
        lines.refuse_width(offsets, layout.n_columns)
        table = values.reshape(-1, layout.n_columns)
        ids = table[:, [source, target]]
        wrong = np.zeros(table.shape, bool)
        wrong[:, [source, target]] = (ids < first_id) | (ids > largest)
        lines.refuse(wrong.ravel(), "node id", f"a whole number from {first_id} to {largest}")
        pairs.append((ids.T - first_id).astype(dtype))
        if weight is not None:
            at = offsets[:-1] + weight
            negative = link_weights == "ignore"
            weights.append(lines.checked_numbers(at, "weight", negative=negative))
    progress.finish()
    links = np.concatenate(pairs, axis=1)
    del pairs
    if relabel:
        names, flat = np.unique(links, return_inverse=True)
        links = flat.reshape(links.shape).astype(np.int32)
        found = len(names)
    else:
        found = int(links.max()) + 1 if links.size else 0
    if n_nodes is not None and n_nodes < found:
        raise InputError(path, f"node id {found - 1 + first_id} with {n_nodes} nodes expected")
    if n_nodes is None:
        _check_sparse_ids(path, found, links.size)
    return from_links(
        path,
        found if n_nodes is None else n_nodes,
        links[0],
        links[1],
        np.concatenate(weights) if weights else None,
        link_weights=link_weights,
        drop_zeros=drop_zeros,
    )


def _check_sparse_ids(path: Path, n_nodes: int, n_ids: int) -> None:
    try:
        check_node_count(path, n_nodes, n_ids)
    except InputError:
        raise InputError(
            path,
            f"the largest id makes {n_nodes} nodes, but only {n_ids} ids occur; read with the "
            "option relabel if ids are mere names",
        ) from None


def find_layout(path: Path, head: bytes) -> Layout:
    """Separator, header and columns, from the first lines.

    Raises:
        InputError: there is no content, or the first line is neither a header nor a link.
    """
    at = 0
    for line in head.splitlines(keepends=True):
        if line.strip() and not line.lstrip().startswith((b"#", b"%")):
            break
        at += len(line)
    else:
        raise InputError(path, "has no content; expected links 'source,target[,weight]'")
    separator = next((s for s in ",;\t" if s.encode() in line.strip()), " ")
    words = _split(line, separator)
    place = f"line {head[:at].count(10) + 1}"
    if len(words) < 2:
        problem = f"{line[:40]!r} has one column; expected 'source,target[,weight]'"
        raise InputError(path, problem, place=place)
    if not words[0] or words[0].lstrip(b"-")[:1].isdigit():
        if len(words) > 3:
            problem = f"{len(words)} columns without a header; expected 'source,target[,weight]'"
            raise InputError(path, problem, place=place)
        return Layout(separator, at, len(words), (0, 1, 2 if len(words) == 3 else None))
    if separator != " ":  # names of columns may hold blanks
        words = [word.strip() for word in line.split(separator.encode())]
    names = [w.decode("utf-8", "replace").strip("\"'").lower() for w in words]
    found = {kind: [i for i, n in enumerate(names) if n in known] for kind, known in NAMES.items()}
    if len(found["source"]) != 1 or len(found["target"]) != 1 or len(found["weight"]) > 1:
        raise InputError(
            path,
            f"header {', '.join(names)[:80]!r}; expected columns source, target and perhaps weight",
            place=place,
        )
    weight = found["weight"][0] if found["weight"] else None
    columns = (found["source"][0], found["target"][0], weight)
    return Layout(separator, at + len(line), len(words), columns)


def _content(body: bytes) -> list[bytes]:
    lines = body.splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith((b"#", b"%"))]


def _split(line: bytes, separator: str) -> list[bytes]:
    """Tokens as the compiled parser sees them: empty fields do not exist."""
    return line.replace(separator.encode(), b" ").split()
