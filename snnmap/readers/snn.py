"""``.snn``: one source per h-edge (u32 n_dst, u32 src, u32 dst[n_dst], f32 weight)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from snnmap.hypergraph import Hypergraph
from snnmap.progress import SILENT, Progress
from snnmap.readers.records import assemble, looks_like_records, read_records, settle_rows


def recognise(path: Path, head: bytes) -> bool:
    """Whether the first records of the file make sense as ``.snn``."""
    return looks_like_records(head, path.stat().st_size)[0]


def read_snn(path: Path, *, progress: Progress = SILENT, grouped: bool = True) -> Hypergraph:
    """Read a ``.snn`` file.

    Args:
        path: the file.
        progress: told of the bytes read.
        grouped: store each distinct destination set once, without ever copying the others; False
            keeps one group an h-edge, in the order of the file.

    Raises:
        InputError: the file is malformed; the text names the h-edge and the byte.
    """
    records = read_records(path, progress)
    outside = np.flatnonzero(records.seconds >= records.n_nodes)
    if len(outside):
        e = int(outside[0])
        problem = (
            f"source id {records.seconds[e]} is not below the number of nodes, {records.n_nodes}"
        )
        raise records.refuse(e, int(records.starts[e]) - 1, problem)
    settle_rows(records, records.starts, records.counts, "destination")
    return assemble(
        records,
        records.starts,
        records.counts,
        np.arange(len(records.starts) + 1, dtype=np.int64),
        records.seconds.view(np.int32),
        grouped=grouped,
    )
