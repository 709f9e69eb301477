"""What every reader asks of a file before it takes memory for it."""

from __future__ import annotations

import mmap
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from snnmap.errors import InputError
from snnmap.hypergraph import MAX_NODES

Array = np.ndarray[Any, Any]

FREE_NODES = 1 << 24
"""Nodes that a header may announce without the file being long enough to link them all."""


def input_size(path: Path) -> int:
    """Bytes of a regular, non-empty, readable file.

    Raises:
        InputError: there is no such file, it is no regular file, it is empty or may not be read.
    """
    try:
        found = path.stat()
        if stat.S_ISREG(found.st_mode):
            with path.open("rb"):
                pass
    except FileNotFoundError:
        raise InputError(path, "no such file") from None
    except (OSError, ValueError) as error:
        raise InputError(path, f"cannot be read: {_reason(error)}") from None
    if stat.S_ISDIR(found.st_mode):
        raise InputError(path, "is a folder; expected a network file")
    if not stat.S_ISREG(found.st_mode):
        raise InputError(path, "is not a regular file; save the stream to a file first")
    if found.st_size == 0:
        raise InputError(path, "is empty; expected a network")
    return found.st_size


def map_bytes(path: Path) -> Array:
    """uint8[file bytes]: the file in place, private: what is written to it is not written to disk.

    Raises:
        InputError: as :func:`input_size`, or the file cannot be mapped.
    """
    input_size(path)
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        if hasattr(mmap, "MADV_WILLNEED"):
            mapped.madvise(mmap.MADV_WILLNEED)
    except (OSError, ValueError) as error:
        raise InputError(path, f"cannot be mapped into memory: {_reason(error)}") from None
    return np.frombuffer(mapped, np.uint8)


def is_folder(path: Path) -> bool:
    """Whether `path` is a folder; False whatever is wrong with it."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _reason(error: OSError | ValueError) -> str:
    strerror = getattr(error, "strerror", None)
    return str(strerror or error)


def check_node_count(path: Path, n_nodes: int, n_ids: int, *, place: str = "header") -> None:
    """Refuse a number of nodes that the file cannot mean, before memory is taken for it.

    Args:
        path: the file.
        n_nodes: what its header says.
        n_ids: how many node ids the file is long enough to hold.
        place: where the number stands.

    Raises:
        InputError: `n_nodes` is negative, above 2**31 - 1, or exceeds `n_ids` by more than
            16.8 million nodes without a link.
    """
    if not 0 <= n_nodes <= MAX_NODES:
        raise InputError(path, f"{n_nodes} nodes; expected 0 to {MAX_NODES}", place=place)
    if n_nodes > FREE_NODES + n_ids:
        raise InputError(
            path,
            f"{n_nodes} nodes, but the file is only long enough to name {n_ids} of them; "
            f"expected at most {FREE_NODES} nodes without a link",
            place=place,
        )


@contextmanager
def located(path: Path) -> Iterator[None]:
    """Give errors about a hypergraph that is built from a file the path of that file."""
    try:
        yield
    except InputError as error:
        if error.path == str(path):
            raise
        raise InputError(path, error.problem, place=error.place) from None
