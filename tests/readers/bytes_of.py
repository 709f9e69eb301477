"""Files made by hand, byte by byte, independent of the writers."""

from __future__ import annotations

import struct
from collections.abc import Iterable

Record = tuple[int, list[int], float]


def records(
    n_nodes: int, rows: Iterable[Record], *, n_edges: int | None = None, tail: bytes = b""
) -> bytes:
    """A .snn or .axh file from (second word, row, weight) of each record."""
    rows = list(rows)
    head = struct.pack("<II", n_nodes, len(rows) if n_edges is None else n_edges)
    packed = [struct.pack(f"<II{len(row)}If", len(row), s, *row, w) for s, row, w in rows]
    return head + b"".join(packed) + tail
