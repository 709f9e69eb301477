"""The binary record files ``.snn`` and ``.axh``, written a few megabytes at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from snnmap import _csr
from snnmap.errors import OutputError
from snnmap.hypergraph import Hypergraph
from snnmap.parallel import for_chunks
from snnmap.progress import SILENT, Progress
from snnmap.writers import _kernels
from snnmap.writers.atomic import whole_file

Array = np.ndarray[Any, Any]

WORDS_A_STEP = 1 << 22


def write_snn(hypergraph: Hypergraph, path: Path, *, progress: Progress = SILENT) -> list[str]:
    """Write a ``.snn`` file: exactly one source for each h-edge.

    Returns:
        Notes on what the format cannot hold.

    Raises:
        OutputError: an h-edge has no or several sources, or the file cannot be written.
    """
    n_sources = np.diff(hypergraph.source_offsets)
    for e in np.flatnonzero(n_sources != 1)[:1]:
        remedy = (
            "write .axh, .hgr or .h5 instead"
            if n_sources[e]
            else "write .hgr or .h5 instead (an .hgr network is read with sources by the option "
            "first_pin_is_source)"
        )
        raise OutputError(
            f"{path}: h-edge {e} has {n_sources[e]} sources; .snn needs exactly one; {remedy}"
        )
    seconds = hypergraph.sources.astype(np.uint32)
    return _write(hypergraph, path, seconds, np.zeros(hypergraph.n_hedges, np.int64), progress)


def write_axh(hypergraph: Hypergraph, path: Path, *, progress: Progress = SILENT) -> list[str]:
    """Write an ``.axh`` file: one or more sources for each h-edge.

    Returns:
        Notes on what the format cannot hold.

    Raises:
        OutputError: an h-edge has no source, or the file cannot be written.
    """
    n_sources = np.diff(hypergraph.source_offsets)
    for e in np.flatnonzero(n_sources == 0)[:1]:
        raise OutputError(
            f"{path}: h-edge {e} has no source; .axh needs at least one; write .hgr or .h5 instead "
            "(an .hgr network is read with sources by the option first_pin_is_source)"
        )
    return _write(hypergraph, path, n_sources.astype(np.uint32), n_sources, progress)


def _write(
    h: Hypergraph, path: Path, seconds: Array, n_first: Array, progress: Progress
) -> list[str]:
    with np.errstate(over="ignore"):
        weights = h.weights.astype(np.float32)
    for e in np.flatnonzero(~np.isfinite(weights))[:1]:
        raise OutputError(
            f"{path}: weight {h.weights[e]} of h-edge {e} exceeds the largest 32-bit float; "
            "write .h5 instead"
        )
    bits = weights.view(np.uint32)
    sizes = 3 + n_first + np.diff(h.group_offsets)[h.hedge_groups]
    progress.start(f"writing {path.name}", 4 * int(sizes.sum()), "B")
    with whole_file(path) as temporary, temporary.open("wb") as file:
        file.write(np.array([h.n_nodes, h.n_hedges], "<u4").tobytes())
        for a, b in steps(sizes, WORDS_A_STEP):
            offsets = _csr.offsets_of(sizes[a:b])
            words = np.empty(int(offsets[-1]), np.uint32)
            for_chunks(
                _kernels.fill_records,
                b - a,
                words,
                offsets,
                a,
                seconds[a:b],
                n_first[a:b],
                h.sources,
                h.source_offsets,
                h.destinations,
                h.group_offsets,
                h.hedge_groups,
                bits[a:b],
                offsets=offsets,
            )
            file.write(words.astype("<u4", copy=False).data)
            progress.advance(words.nbytes)
    progress.finish()
    n_rounded = int(np.count_nonzero(weights != h.weights))
    notes = lost(h, axon_counts=True, node_sizes=True)
    if n_rounded:
        notes.append(f"{n_rounded} of {h.n_hedges} weights were rounded to 32-bit floats")
    return notes


def steps(sizes: Array, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of consecutive items of about `most` in sum (at least one item each)."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        base = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, base + most, side="right")))
        yield start, stop
        start = stop


def lost(h: Hypergraph, *, axon_counts: bool = False, node_sizes: bool = False) -> list[str]:
    """Notes on what a plain format does not keep of this hypergraph."""
    notes = []
    if h.populations:
        notes.append(f"the names of {len(h.populations)} layers are not kept")
    if any(p.delay_ms is not None for p in h.projections):
        notes.append("delays are not kept")
    if axon_counts and (h.axon_counts != 1).any():
        notes.append("h-edges that stand for several axons are written as one each")
    if node_sizes and (h.node_sizes != 1).any():
        notes.append("node sizes are not kept")
    return notes
