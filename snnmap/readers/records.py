"""The binary record files (.snn and .axh), read in place.

Both are little-endian u32 words: nodes, h-edges, then for each h-edge a row length, a second word,
the row and a float32 weight. Where a record lies is known only after the one before it, so one
compiled pass walks the record heads; all else is done on the mapped file in parallel, and only rows
that are kept are copied. The map is copy-on-write: rows that need sorting are sorted in place.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from snnmap import _csr
from snnmap.errors import InputError
from snnmap.hypergraph import Hypergraph
from snnmap.parallel import for_chunks
from snnmap.progress import SILENT, Progress
from snnmap.readers import _kernels
from snnmap.readers.checks import check_node_count, map_bytes

Array = np.ndarray[Any, Any]

WORDS_A_STEP = 1 << 24


@dataclass(frozen=True, eq=False)
class Records:
    """Where the records of a file lie.

    Attributes:
        path: the file.
        n_nodes: from its header.
        words: int32[file bytes // 4], private copy-on-write map of the file.
        starts: int64[n_edges], first word of each row.
        counts: int64[n_edges], length of each row.
        seconds: uint32[n_edges], second word of each record.
        weights: float64[n_edges], finite and >= 0.
    """

    path: Path
    n_nodes: int
    words: Array
    starts: Array
    counts: Array
    seconds: Array
    weights: Array

    def refuse(self, edge: int, word: int, problem: str) -> InputError:
        """The error for a word of a record."""
        return InputError(self.path, problem, place=f"h-edge {edge}, byte {4 * word}")


def read_records(path: Path, progress: Progress = SILENT) -> Records:
    """Map the file and find its records.

    Raises:
        InputError: the header does not fit the file's length, a record is cut off, bytes follow
            the last record, or a weight is negative or not finite.
    """
    mapped = map_bytes(path)
    size = len(mapped)
    if size < 8:
        raise InputError(path, f"{size} bytes; expected at least the 8 of a header")
    words = mapped[: size // 4 * 4].view(np.uint32)
    n_nodes, n_edges = int(words[0]), int(words[1])
    if 8 + 12 * n_edges > size:
        raise InputError(
            path,
            f"{n_edges} h-edges need at least {8 + 12 * n_edges} bytes, the file has {size}",
            place="header",
        )
    check_node_count(path, n_nodes, len(words) - 2 - 2 * n_edges)

    starts, counts = np.empty(n_edges, np.int64), np.empty(n_edges, np.int64)
    seconds, weight_bits = np.empty(n_edges, np.uint32), np.empty(n_edges, np.uint32)
    edge, position = 0, 2
    progress.start(f"reading {path.name}", size, "B")
    while edge < n_edges:
        before = position
        edge, position = _kernels.walk_records(
            words,
            n_edges,
            edge,
            position,
            position + WORDS_A_STEP,
            starts,
            counts,
            seconds,
            weight_bits,
        )
        if position == before:
            raise _cut_off(path, size, words, n_edges, edge, position)
        progress.advance(4 * (position - before))
    progress.finish()
    if 4 * position != size:
        raise InputError(
            path,
            f"{size - 4 * position} bytes follow the last of {n_edges} h-edges; expected the end",
            place=f"byte {4 * position}",
        )
    with np.errstate(invalid="ignore"):  # signalling NaNs, refused below
        weights = weight_bits.view(np.float32).astype(np.float64)
    records = Records(path, n_nodes, words.view(np.int32), starts, counts, seconds, weights)
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        e = int(wrong[0])
        problem = f"weight {weights[e]} is not a finite number >= 0"
        raise records.refuse(e, int(starts[e] + counts[e]), problem)
    return records


def _cut_off(
    path: Path, size: int, words: Array, n_edges: int, edge: int, position: int
) -> InputError:
    left = size - 4 * position
    said = f" (its length says {words[position]} ids)" if left >= 4 else ""
    need = 12 + 4 * int(words[position]) if left >= 4 else 12
    return InputError(
        path,
        f"the file ends within h-edge {edge} of {n_edges}: the record needs {need} bytes{said}, "
        f"{left} are left",
        place=f"h-edge {edge}, byte {4 * position}",
    )


def settle_rows(records: Records, starts: Array, counts: Array, what: str) -> None:
    """Check the ids of rows and make the rows ascending; `counts` shrinks where ids repeat.

    Raises:
        InputError: an id is out of range.
    """
    words, n_nodes = records.words, records.n_nodes
    bad, n_unsorted = _csr.find_bad_row(words, starts, counts, n_nodes)
    if bad >= 0:
        row = words[starts[bad] : starts[bad] + counts[bad]].view(np.uint32)
        at = int(np.flatnonzero(row >= n_nodes)[0])
        problem = f"{what} id {row[at]} is not below the number of nodes, {n_nodes}"
        raise records.refuse(bad, int(starts[bad]) + at, problem)
    if n_unsorted:
        work = _csr.offsets_of(counts + 1)
        for_chunks(_kernels.sort_rows_in_place, len(starts), words, starts, counts, offsets=work)


def assemble(
    records: Records,
    starts: Array,
    counts: Array,
    source_offsets: Array,
    sources: Array,
    *,
    grouped: bool,
) -> Hypergraph:
    """The hypergraph of settled destination rows, which are copied only if they are kept.

    Args:
        records: the file.
        starts: int64[n_edges], first words of the destination rows, which ascend.
        counts: int64[n_edges], their lengths.
        source_offsets: int64[n_edges + 1].
        sources: int32, rows ascend.
        grouped: store each distinct destination set once; otherwise one group an h-edge, in the
            order of the file.
    """
    weights = records.weights
    n_edges = len(weights)
    n_groups = n_edges
    hedge_offsets = np.arange(n_edges + 1, dtype=np.int64)
    if grouped:
        groups, firsts = _csr.group_equal_rows(records.words, starts, counts)
        n_groups = len(firsts)
        if n_groups < n_edges:
            starts, counts = starts[firsts], counts[firsts]
            order = np.argsort(groups, kind="stable")
            hedge_offsets = _csr.offsets_of(np.bincount(groups, minlength=n_groups))
            old_starts, n_sources = source_offsets[order], np.diff(source_offsets)[order]
            source_offsets = _csr.offsets_of(n_sources)
            sources = _csr.take_rows(sources, old_starts, n_sources, source_offsets)
            weights = weights[order]
    group_offsets = _csr.offsets_of(counts)
    return Hypergraph(
        records.n_nodes,
        group_offsets,
        _csr.take_rows(records.words, starts, counts, group_offsets),
        hedge_offsets,
        source_offsets,
        sources,
        weights,
        np.ones(n_edges, np.int64),
        np.ones(records.n_nodes, np.int64),
        name=records.path.stem,
    )


def looks_like_records(head: bytes, size: int) -> tuple[bool, bool]:
    """Whether the first bytes of a file without a telling suffix fit (.snn, .axh).

    The two differ only in the meaning of the second word of a record: a source, or a number of
    sources. If that fits both and repeats, it is taken as a number of sources.
    """
    words = np.frombuffer(head[: len(head) // 4 * 4], np.uint32)
    if size % 4 or len(words) < 5 or 8 + 12 * int(words[1]) > size or not words[1]:
        return False, False
    n_nodes, n_edges, position = int(words[0]), int(words[1]), 2
    seconds: list[int] = []
    sources_fit = counts_fit = True
    while position + 2 <= len(words) and len(seconds) < n_edges:
        count, second = int(words[position]), int(words[position + 1])
        end = position + 2 + count
        row = words[position + 2 : end]
        if 4 * (end + 1) > size or (row >= n_nodes).any():
            return False, False
        weight = words[end : end + 1].view(np.float32)
        if not (np.isfinite(weight) & (weight >= 0)).all():
            return False, False
        sources_fit &= second < n_nodes
        counts_fit &= 1 <= second <= count
        seconds.append(second)
        position = end + 1
    if len(seconds) == n_edges and 4 * position != size:
        return False, False
    if sources_fit and counts_fit:
        counts_fit = len(set(seconds)) < len(seconds)
        sources_fit = not counts_fit
    return sources_fit, counts_fit
