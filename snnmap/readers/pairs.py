"""NumPy arrays of links: ``.npy`` of shape (n, 2) or a square matrix, ``.npz`` of named arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from snnmap.errors import InputError
from snnmap.hypergraph import Hypergraph
from snnmap.progress import SILENT, Progress
from snnmap.readers._arrays import (
    NPY_MAGIC,
    ZIP_MAGIC,
    load_npy,
    load_npz,
    names_in_npz,
)
from snnmap.readers._links import from_links, from_matrix
from snnmap.readers.checks import check_node_count, input_size

Array = np.ndarray[Any, Any]

NAMES = {
    "source": ("source", "sources", "src", "pre", "row", "i"),
    "target": ("target", "targets", "dst", "post", "col", "j"),
    "pairs": ("pairs", "edges", "links", "edge_index", "arr_0"),
    "weight": ("weight", "weights", "w", "edge_weight"),
    "n_nodes": ("n_nodes", "num_nodes", "n"),
}
"""Names of arrays in an ``.npz`` file."""


def recognise(path: Path, head: bytes) -> bool:
    """Whether this is a NumPy array, or an archive of named links."""
    if head.startswith(NPY_MAGIC):
        return True
    if not head.startswith(ZIP_MAGIC):
        return False
    names = set(names_in_npz(path))
    return "format" not in names and bool(names & {*NAMES["source"], *NAMES["pairs"]})


def read_pairs(
    path: Path,
    *,
    progress: Progress = SILENT,
    n_nodes: int | None = None,
    link_weights: str = "ignore",
    drop_zeros: bool = False,
) -> Hypergraph:
    """Read links from NumPy arrays.

    Args:
        path: a ``.npy`` file with integers of shape (n, 2) (source, target; also (2, n) for n > 2)
            or a square matrix whose entries that are not zero are links; or an ``.npz`` file with
            arrays ``source`` and ``target`` (or ``pairs``), perhaps ``weight`` and ``n_nodes``.
        progress: told of the bytes read.
        n_nodes: number of nodes; default: what the file says, else one more than the largest id.
        link_weights: what weights say about rates: "ignore", "max" or "sum" over an axon's links.
        drop_zeros: links of weight zero do not count.

    Raises:
        InputError: the file is malformed; the text names the array.
    """
    size = input_size(path)
    progress.start(f"reading {path.name}", size, "B")
    with path.open("rb") as file:
        single = not file.read(4).startswith(ZIP_MAGIC)
    arrays = {"pairs": load_npy(path)} if single else load_npz(path)
    progress.advance(size)
    progress.finish()
    return links_of(path, arrays, n_nodes=n_nodes, link_weights=link_weights, drop_zeros=drop_zeros)


def links_of(
    path: Path,
    arrays: dict[str, Array],
    *,
    n_nodes: int | None,
    link_weights: str,
    drop_zeros: bool,
    name: str | None = None,
) -> Hypergraph:
    """The network of named arrays; see :func:`read_pairs`."""
    source, target = _find(path, arrays, "source"), _find(path, arrays, "target")
    if source is None and target is None:
        pairs = _find(path, arrays, "pairs")
        if pairs is None:
            found = ", ".join(sorted(arrays)[:8]) or "nothing"
            raise InputError(path, f"holds {found}; expected arrays source and target, or pairs")
        if pairs.ndim == 2 and pairs.shape[0] == pairs.shape[1] > 2:
            return from_matrix(
                path, pairs, link_weights=link_weights, drop_zeros=drop_zeros, name=name
            )
        if pairs.ndim != 2 or 2 not in pairs.shape:
            raise InputError(
                path, f"has shape {pairs.shape}; expected (n, 2), source and target, or a matrix"
            )
        source, target = pairs.T if pairs.shape[1] == 2 else pairs
    if source is None or target is None or source.ndim != 1 or source.shape != target.shape:
        shapes = [None if a is None else a.shape for a in (source, target)]
        raise InputError(
            path, f"source and target have shapes {shapes[0]} and {shapes[1]}; expected one length"
        )
    weights = _find(path, arrays, "weight")
    if weights is not None:
        if weights.shape != source.shape or weights.dtype.kind not in "biuf":
            problem = f"{weights.dtype} of shape {weights.shape}; expected {len(source)} numbers"
            raise InputError(path, problem, place="weight")
        weights = weights.astype(np.float64)
    stated = _find(path, arrays, "n_nodes")
    if n_nodes is None and stated is not None:
        if stated.size != 1 or stated.dtype.kind not in "iu":
            raise InputError(path, "expected one whole number", place="n_nodes")
        n_nodes = int(stated.ravel()[0])
    n_found = max(_n_ids(path, source, "source"), _n_ids(path, target, "target"))
    if n_nodes is None:
        n_nodes = n_found
    if n_nodes < n_found:
        raise InputError(path, f"id {n_found - 1} is not below the number of nodes, {n_nodes}")
    check_node_count(path, n_nodes, 2 * len(source), place="ids")
    return from_links(
        path,
        n_nodes,
        source.astype(np.int32),
        target.astype(np.int32),
        weights,
        link_weights=link_weights,
        drop_zeros=drop_zeros,
        name=name,
    )


def _find(path: Path, arrays: dict[str, Array], kind: str) -> Array | None:
    found = [name for name in arrays if name.lower() in NAMES[kind]]
    if len(found) > 1:
        raise InputError(path, f"holds {' and '.join(found)}; expected one array of {kind}")
    return arrays[found[0]] if found else None


def _n_ids(path: Path, ids: Array, what: str) -> int:
    if not len(ids):
        return 0
    if ids.dtype.kind not in "iu":
        raise InputError(path, f"{what} ids have type {ids.dtype}; expected whole numbers")
    if ids.min() < 0:
        raise InputError(path, f"{what} id {ids.min()} is negative; expected ids from 0")
    return int(ids.max()) + 1
