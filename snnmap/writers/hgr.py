"""The text format of hMETIS (see `snnmap.readers.hgr`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from snnmap.errors import ConfigError, OutputError
from snnmap.hypergraph import Hypergraph
from snnmap.progress import SILENT, Progress
from snnmap.writers import _kernels
from snnmap.writers.atomic import whole_file
from snnmap.writers.records import lost, steps

Array = np.ndarray[Any, Any]

BYTES_A_STEP = 1 << 24
LARGEST_WEIGHT = 10**18 - 1


def write_hgr(
    hypergraph: Hypergraph, path: Path, *, progress: Progress = SILENT, weight_scale: float = 1.0
) -> list[str]:
    """Write an hMETIS hypergraph: undirected, its weights whole numbers.

    Args:
        hypergraph: to write.
        path: the file.
        progress: told of the h-edges written.
        weight_scale: weights are multiplied by it before they are rounded.

    Returns:
        Notes on what the format cannot hold, among them how many weights were rounded.

    Raises:
        ConfigError: `weight_scale` is not a finite number > 0.
        OutputError: a weight exceeds 10**18 - 1, or the file cannot be written.
    """
    if not (np.isfinite(weight_scale) and weight_scale > 0):
        raise ConfigError(f"weight_scale is {weight_scale}; expected a finite number > 0")
    h = hypergraph
    scaled = h.weights * weight_scale
    for e in np.flatnonzero(scaled > LARGEST_WEIGHT)[:1]:
        raise OutputError(
            f"{path}: weight {scaled[e]} of h-edge {e} exceeds {LARGEST_WEIGHT}; "
            "use a smaller weight_scale"
        )
    weights = np.rint(scaled).astype(np.int64)
    kept = h.hedge_cardinalities > 0
    has_weights, has_sizes = bool((weights != 1).any()), bool((h.node_sizes != 1).any())
    header = f"{np.count_nonzero(kept)} {h.n_nodes}"
    if has_weights or has_sizes:
        header += f" {10 * has_sizes + has_weights}"
    lines = 20 + 11 * (np.diff(h.group_offsets)[h.hedge_groups] + np.diff(h.source_offsets))
    progress.start(f"writing {path.name}", h.n_hedges, "h-edges")
    with whole_file(path) as temporary, temporary.open("wb") as file:
        file.write(header.encode() + b"\n")
        for a, b in steps(lines, BYTES_A_STEP):
            text = np.empty(int(lines[a:b].sum()), np.uint8)
            n_bytes = _kernels.print_rows(
                text,
                a,
                b,
                has_weights,
                weights,
                kept,
                h.sources,
                h.source_offsets,
                h.destinations,
                h.group_offsets,
                h.hedge_groups,
            )
            file.write(text[:n_bytes].data)
            progress.advance(b - a)
        if has_sizes:
            file.write("".join(f"{size}\n" for size in h.node_sizes.tolist()).encode())
    progress.finish()
    return _notes(h, scaled, weights, kept)


def _notes(h: Hypergraph, scaled: Array, weights: Array, kept: Array) -> list[str]:
    notes = lost(h, axon_counts=True)
    if len(h.sources):
        notes.append("directions are not kept: the sources of each h-edge are its first pins")
    if not kept.all():
        n_empty = np.count_nonzero(~kept)
        notes.append(f"{n_empty} h-edges without pins were left out")
    wrong = np.abs(scaled - weights)
    if (wrong > 0).any():
        notes.append(
            f"{np.count_nonzero(wrong)} of {h.n_hedges} weights were rounded to whole numbers, by "
            f"up to {wrong.max():.3g}; weight_scale keeps more digits"
        )
    return notes
