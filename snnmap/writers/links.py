"""Formats that list links: CSV, Matrix Market, SciPy sparse, NumPy pairs.

A link's weight is the rate of its axon; the column is left out if all rates are 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.io
import scipy.sparse

from snnmap import _csr
from snnmap.errors import OutputError
from snnmap.hypergraph import Hypergraph
from snnmap.progress import SILENT, Progress
from snnmap.writers import _kernels
from snnmap.writers.atomic import whole_file
from snnmap.writers.objects import count_links, links, to_pairs, to_scipy
from snnmap.writers.records import lost

Array = np.ndarray[Any, Any]


def write_edges(hypergraph: Hypergraph, path: Path, *, progress: Progress = SILENT) -> list[str]:
    """Write an edge list with the header ``source,target[,weight]``, in one stream.

    The separator is a tab if the suffix is ``.tsv``, else a comma.

    Returns:
        Notes on what the format cannot hold.

    Raises:
        OutputError: an h-edge has no source, or the file cannot be written.
    """
    notes = links_notes(hypergraph, path)
    ids = (hypergraph.sources, hypergraph.destinations)
    used = max(int(some.max(initial=-1)) + 1 for some in ids)
    if used < hypergraph.n_nodes:
        left = hypergraph.n_nodes - used
        notes.append(f"the last {left} nodes have no links; read with n_nodes={hypergraph.n_nodes}")
    separator = "\t" if path.suffix == ".tsv" else ","
    has_weights = bool((hypergraph.weights != 1).any())
    names = ["source", "target"] + ["weight"] * has_weights
    ends = [b"\n"] * hypergraph.n_hedges
    if has_weights:
        ends = [f"{separator}{weight!r}\n".encode() for weight in hypergraph.weights.tolist()]
    end_offsets = _csr.offsets_of(np.array([len(end) for end in ends], np.int64))
    end_bytes = np.frombuffer(b"".join(ends), np.uint8)
    progress.start(f"writing {path.name}", count_links(hypergraph), "links")
    with whole_file(path) as temporary, temporary.open("wb") as file:
        file.write(separator.join(names).encode() + b"\n")
        for sources, targets, edges in links(hypergraph):
            longest = 23 + int(np.diff(end_offsets).max(initial=0))
            text = np.empty(len(sources) * longest, np.uint8)
            n_bytes = _kernels.print_links(
                text, ord(separator), sources, targets, edges, end_offsets, end_bytes
            )
            file.write(text[:n_bytes].data)
            progress.advance(len(sources))
    progress.finish()
    return notes


def write_mtx(hypergraph: Hypergraph, path: Path, *, progress: Progress = SILENT) -> list[str]:
    """Write a Matrix Market file, a general coordinate matrix (pattern if all rates are 1).

    Returns:
        Notes on what the format cannot hold.

    Raises:
        OutputError: an h-edge has no source, or the file cannot be written.
    """
    notes = links_notes(hypergraph, path)
    matrix = _matrix(hypergraph, path, progress)
    field: Literal["real", "pattern"] = "real" if (hypergraph.weights != 1).any() else "pattern"
    with whole_file(path) as temporary, temporary.open("wb") as file:
        scipy.io.mmwrite(file, matrix.tocoo(), field=field, precision=17, symmetry="general")
    return notes


def write_sparse(hypergraph: Hypergraph, path: Path, *, progress: Progress = SILENT) -> list[str]:
    """Write a SciPy sparse matrix (CSR, ``.npz``).

    Returns:
        Notes on what the format cannot hold.

    Raises:
        OutputError: an h-edge has no source, or the file cannot be written.
    """
    notes = links_notes(hypergraph, path)
    matrix = _matrix(hypergraph, path, progress)
    with whole_file(path) as temporary, temporary.open("wb") as file:
        scipy.sparse.save_npz(file, matrix)
    return notes


def write_pairs(hypergraph: Hypergraph, path: Path, *, progress: Progress = SILENT) -> list[str]:
    """Write int32[n_links, 2] as ``.npy``.

    Returns:
        Notes on what the format cannot hold.

    Raises:
        OutputError: an h-edge has no source, or the file cannot be written.
    """
    notes = [note for note in links_notes(hypergraph, path) if "weights of links" not in note]
    if (hypergraph.weights != 1).any():
        notes.append("rates are not kept")
    progress.start(f"writing {path.name}", count_links(hypergraph), "links")
    with whole_file(path) as temporary, temporary.open("wb") as file:
        np.save(file, to_pairs(hypergraph), allow_pickle=False)
    progress.finish()
    return notes


def links_notes(h: Hypergraph, path: Path) -> list[str]:
    """What a list of links does not keep of this hypergraph.

    Raises:
        OutputError: an h-edge has no source.
    """
    n_sources = np.diff(h.source_offsets)
    for e in np.flatnonzero(n_sources == 0)[:1]:
        raise OutputError(
            f"{path}: h-edge {e} has no source, so it has no links; write .hgr, .hif.json or .h5 "
            "instead"
        )
    notes = lost(h, axon_counts=True, node_sizes=True)
    n_several = int(np.count_nonzero(n_sources > 1))
    if n_several:
        notes.append(f"{n_several} h-edges with several sources become an axon of each source")
    if len(np.unique(h.sources)) < len(h.sources):
        notes.append("several h-edges of one source become one axon")
    n_empty = int(np.count_nonzero(np.diff(h.group_offsets)[h.hedge_groups] == 0))
    if n_empty:
        notes.append(f"{n_empty} h-edges without destinations are left out")
    if (h.weights != 1).any():
        notes.append("rates are written as weights of links; read them with link_weights=max")
    return notes


def _matrix(hypergraph: Hypergraph, path: Path, progress: Progress) -> Any:
    progress.start(f"writing {path.name}", count_links(hypergraph), "links")
    matrix = to_scipy(hypergraph)
    progress.finish()
    return matrix
