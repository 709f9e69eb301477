"""``.hgr``: the text format of hMETIS, which other partitioners read and write, too.

The first content line is ``h-edges nodes [fmt]``; then comes a line for each h-edge: its weight if
fmt is 1 or 11, and its pins, counted from 1; then, if fmt is 10 or 11, a line with the weight of
each node. Blank lines and lines that begin with ``%`` count for nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from snnmap import _csr
from snnmap.errors import InputError
from snnmap.hypergraph import Hypergraph
from snnmap.progress import SILENT, Progress
from snnmap.readers.checks import check_node_count, located
from snnmap.readers.lines import NumberLines

Array = np.ndarray[Any, Any]

FLAGS = {0: (False, False), 1: (True, False), 10: (False, True), 11: (True, True)}
"""fmt -> (h-edges have weights, nodes have weights)."""


def recognise(path: Path, head: bytes) -> bool:
    """Whether the first lines of the file make sense as ``.hgr``."""
    if b"\0" in head:
        return False
    whole = len(head) == path.stat().st_size
    lines = [line.split() for line in (head if whole else head[: head.rfind(b"\n")]).split(b"\n")]
    lines = [line for line in lines if line and not line[0].startswith(b"%")]
    if not lines or len(lines[0]) not in (2, 3) or not all(w.isdigit() for w in lines[0]):
        return False
    n_edges, n_nodes, fmt = map(int, [*lines[0], b"0"][:3])
    if fmt not in FLAGS:
        return False
    has_weights, has_sizes = FLAGS[fmt]
    if whole and len(lines) != 1 + n_edges + has_sizes * n_nodes:
        return False
    pins = [word for line in lines[1 : 1 + n_edges] for word in line[has_weights:]]
    return all(word.isdigit() and 1 <= int(word) <= n_nodes for word in pins)


def read_hgr(
    path: Path, *, progress: Progress = SILENT, first_pin_is_source: bool = False
) -> Hypergraph:
    """Read an hMETIS hypergraph.

    Args:
        path: the file.
        progress: told of the bytes read.
        first_pin_is_source: the first pin of each h-edge is its source and the others are its
            destinations; by default the hypergraph is undirected: every pin is a destination.

    Returns:
        The hypergraph, one group an h-edge in the order of the file; node weights are node sizes.

    Raises:
        InputError: the file is malformed; the text names the line.
    """
    lines = NumberLines(path, progress)
    n_edges, n_nodes, has_weights, has_sizes = _header(lines)
    sources: list[Array] = []
    n_sources: list[Array] = []
    pins: list[Array] = []
    counts: list[Array] = []
    weights: list[Array] = []
    progress.start(f"reading {path.name}", len(lines.text), "B")
    for offsets, values in lines.steps(n_edges, "h-edge"):
        rows, keep = np.diff(offsets), np.ones(len(values), bool)
        if has_weights:
            weights.append(lines.checked_numbers(offsets[:-1], "weight", negative=False))
            keep[offsets[:-1]], rows = False, rows - 1
        wrong = keep & ((values < 1) | (values > n_nodes))
        lines.refuse(wrong, "pin", f"an id from 1 to {n_nodes}")
        if first_pin_is_source:
            n_sources.append(np.minimum(rows, 1))
            firsts = (offsets[1:] - rows)[rows > 0]
            sources.append(values[firsts] - 1)
            keep[firsts], rows = False, rows - n_sources[-1]
        pins.append((values[keep] - 1).astype(np.int32))
        counts.append(rows)
    sizes = [np.ones(0 if has_sizes else n_nodes, np.int64)]
    for offsets, values in lines.steps(n_nodes if has_sizes else 0, "node weight"):
        lines.refuse_width(offsets, 1, "node weights")
        lines.refuse(values < 0, "node weight", "a whole number >= 0")
        sizes.append(values)
    lines.refuse_more(f"{n_edges} h-edges" + f" and {n_nodes} node weights" * has_sizes)
    progress.finish()
    with located(path):
        return Hypergraph.from_hedges(
            n_nodes,
            _joined(sources),
            _csr.offsets_of(_joined(counts)),
            _joined(pins),
            _joined(weights) if has_weights else np.ones(n_edges, np.float64),
            source_offsets=_csr.offsets_of(
                _joined(n_sources) if first_pin_is_source else np.zeros(n_edges, np.int64)
            ),
            node_sizes=_joined(sizes),
            name=path.stem,
        )


def _header(lines: NumberLines) -> tuple[int, int, bool, bool]:
    """(h-edges, nodes, h-edges have weights, nodes have weights), checked against the length."""
    expected = "'h-edges nodes [fmt]' with fmt 1, 10 or 11"
    values = [value for _, values in lines.some(1) for value in values.tolist()]
    if not values:
        raise InputError(lines.path, f"has no content; expected {expected}")
    lines.refuse(lines.values < 0, "header", expected)
    n_edges, n_nodes, fmt = [*values, 0, 0][:3]
    at = int(lines.starts[0])
    if len(values) not in (2, 3) or fmt not in FLAGS:
        found = " ".join(map(str, values[:8]))
        raise lines.error(at, f"header {found!r}; expected {expected}")
    has_weights, has_sizes = FLAGS[fmt]
    n_lines, n_bytes = n_edges + has_sizes * n_nodes, len(lines.text) - lines.position
    if n_lines > (n_bytes + 1) // 2:
        problem = f"header announces {n_lines} lines, but only {n_bytes} bytes follow"
        raise lines.error(at, problem)
    check_node_count(lines.path, n_nodes, n_bytes // 2)
    return n_edges, n_nodes, has_weights, has_sizes


def _joined(arrays: list[Array]) -> Array:
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)
