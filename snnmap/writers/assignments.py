"""Plain files that other programs exchange: part of each node, place of each part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from snnmap.errors import InputError
from snnmap.progress import SILENT, Progress
from snnmap.readers.checks import input_size
from snnmap.readers.lines import NumberLines
from snnmap.writers.atomic import whole_file

Array = np.ndarray[Any, Any]

OFF_CHIP = -1
"""Part id of a node that takes no core."""


def write_partition(parts: Array, path: str | Path) -> None:
    """Write the part id of each node, one a line (-1: the node takes no core).

    Args:
        parts: integer[n_nodes].
        path: the file.

    Raises:
        OutputError: the file cannot be written.
    """
    with whole_file(path) as temporary, temporary.open("w", encoding="ascii", newline="\n") as file:
        for start in range(0, len(parts), 1 << 20):
            ids = parts[start : start + (1 << 20)].tolist()
            file.write("\n".join(map(str, ids)) + "\n")


def read_partition(path: str | Path, n_nodes: int, *, progress: Progress = SILENT) -> Array:
    """Read the part id of each node.

    Args:
        path: one id a line, -1 or 0 to 2**31 - 2; blank lines and ``%`` comments are passed over.
        n_nodes: how many ids to expect.
        progress: told of the bytes read.

    Returns:
        int32[n_nodes].

    Raises:
        InputError: there are fewer or more ids, or something is no id; the line is named.
    """
    path = Path(path)
    if input_size(path) < 2 * n_nodes - 1:
        raise InputError(path, f"is too short for the part ids of {n_nodes} nodes, one a line")
    lines = NumberLines(path, progress)
    parts = np.empty(n_nodes, np.int32)
    done = 0
    for offsets, values in lines.steps(n_nodes, "part id"):
        lines.refuse_width(offsets, 1, "part ids")
        off_chip = lines.equal("-1")
        wrong = ~off_chip & ((values < 0) | (values >= 2**31 - 1))
        lines.refuse(wrong, "part id", "a whole number >= 0, or -1 for off the chip")
        parts[done : done + len(values)] = np.where(off_chip, OFF_CHIP, values)
        done += len(values)
    lines.refuse_more(f"the part ids of {n_nodes} nodes")
    return parts


def write_placement(cores: Array, path: str | Path) -> None:
    """Write the core of each part in binary: u64 count, then i32 x, i32 y a part, little-endian.

    Args:
        cores: integer[n_parts, 2], (x, y) of each part.
        path: the file.

    Raises:
        OutputError: the file cannot be written.
    """
    with whole_file(path) as temporary, temporary.open("wb") as file:
        file.write(np.array([len(cores)], "<u8").tobytes())
        file.write(np.ascontiguousarray(cores, "<i4").tobytes())


def read_placement(path: str | Path) -> Array:
    """Read the core of each part, as :func:`write_placement` writes it.

    Returns:
        int32[n_parts, 2].

    Raises:
        InputError: the file is malformed.
    """
    path = Path(path)
    size = input_size(path)
    data = path.read_bytes() if size >= 8 else b""
    n_parts = int.from_bytes(data[:8], "little")
    if size != 8 + 8 * n_parts or not data:
        raise InputError(
            path, f"{size} bytes; expected 8 and 8 for each of {n_parts} parts", place="header"
        )
    return np.frombuffer(data, "<i4", offset=8).reshape(n_parts, 2).astype(np.int32)
