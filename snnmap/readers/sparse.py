"""SciPy's sparse matrices (``.npz`` of `scipy.sparse.save_npz`): entry (i, j) links i to j."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import scipy.sparse

from snnmap.errors import InputError
from snnmap.hypergraph import Hypergraph
from snnmap.progress import SILENT, Progress
from snnmap.readers._arrays import ZIP_MAGIC, load_npz, names_in_npz, refusing
from snnmap.readers._links import from_matrix
from snnmap.readers.checks import check_node_count, input_size


def recognise(path: Path, head: bytes) -> bool:
    """Whether the archive holds a sparse matrix."""
    return head.startswith(ZIP_MAGIC) and {"format", "shape"} <= set(names_in_npz(path))


def read_sparse(
    path: Path,
    *,
    progress: Progress = SILENT,
    link_weights: str = "ignore",
    drop_zeros: bool = False,
    bipartite: bool = False,
) -> Hypergraph:
    """Read a SciPy sparse matrix.

    Args:
        path: the file.
        progress: told of the bytes read.
        link_weights: what entries say about rates: "ignore", "max" or "sum" over an axon's links.
        drop_zeros: stored zeros are no links.
        bipartite: rows and columns are two populations (the matrix need not be square).

    Raises:
        InputError: the file is malformed.
    """
    size = input_size(path)
    progress.start(f"reading {path.name}", size, "B")
    arrays = load_npz(path)
    shape = arrays.get("shape")
    if shape is None or shape.ndim != 1 or shape.dtype.kind not in "iu":
        raise InputError(path, "has no shape of whole numbers; expected a sparse matrix")
    n_stored = sum(a.size for name, a in arrays.items() if name != "shape")
    for n in shape:
        check_node_count(path, int(n), n_stored, place="shape")
    with refusing(path, "is no sparse matrix"):
        matrix: Any = scipy.sparse.load_npz(path)
        if matrix.format in ("csr", "csc", "bsr"):
            matrix.check_format(full_check=True)
        matrix = matrix.tocoo()
    progress.advance(size)
    progress.finish()
    return from_matrix(
        path, matrix, link_weights=link_weights, drop_zeros=drop_zeros, bipartite=bipartite
    )
