"""``.axh``: several sources per h-edge (u32 pins, u32 sources >= 1, u32 pin[pins], f32 weight).

The sources come first among the pins; the destinations are the rest.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from snnmap import _csr
from snnmap.hypergraph import Hypergraph
from snnmap.progress import SILENT, Progress
from snnmap.readers.records import assemble, looks_like_records, read_records, settle_rows


def recognise(path: Path, head: bytes) -> bool:
    """Whether the first records of the file make sense as ``.axh``."""
    return looks_like_records(head, path.stat().st_size)[1]


def read_axh(path: Path, *, progress: Progress = SILENT, grouped: bool = True) -> Hypergraph:
    """Read an ``.axh`` file.

    Args:
        path: the file.
        progress: told of the bytes read.
        grouped: store each distinct destination set once, without ever copying the others; False
            keeps one group an h-edge, in the order of the file.

    Raises:
        InputError: the file is malformed; the text names the h-edge and the byte.
    """
    records = read_records(path, progress)
    n_sources = records.seconds.astype(np.int64)
    wrong = np.flatnonzero((n_sources < 1) | (n_sources > records.counts))
    if len(wrong):
        e = int(wrong[0])
        problem = f"{n_sources[e]} sources among {records.counts[e]} pins; expected at least 1"
        raise records.refuse(e, int(records.starts[e]) - 1, problem)
    starts, counts = records.starts + n_sources, records.counts - n_sources
    settle_rows(records, records.starts, n_sources, "source")
    settle_rows(records, starts, counts, "destination")
    source_offsets = _csr.offsets_of(n_sources)
    sources = _csr.take_rows(records.words, records.starts, n_sources, source_offsets)
    return assemble(records, starts, counts, source_offsets, sources, grouped=grouped)
