"""A check that the HDF5 library lacks: damaged heaps of strings make it crash or never return.

Strings of variable length live in *global heap collections*: the signature ``GCOL``, a version, a
size and then objects, each with a header of 16 bytes. The library walks them without looking
whether it moves on, or stays inside. Here each collection of a file is walked with care first.

Source: HDF5 File Format Specification, section III.E.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

_SIGNATURE = b"GCOL\x01"
_HEADER = 16
_SMALLEST = 4096  # collections are never smaller


def damaged_heap(path: Path) -> int | None:
    """Byte at which a damaged collection of strings begins, or None if all are sound."""
    if path.stat().st_size < _SMALLEST:
        return None
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(_SIGNATURE)
        while at >= 0:
            end = _end_of(data, at)
            if end is None:
                return at
            at = data.find(_SIGNATURE, end)
    return None


def _end_of(data: mmap.mmap, start: int) -> int | None:
    """Where a collection ends, or None if it is damaged."""
    if start + _HEADER > len(data):
        return None
    (size,) = struct.unpack_from("<Q", data, start + 8)
    end: int = start + size
    if size < _SMALLEST or end > len(data):
        return None
    at = start + _HEADER
    while end - at >= _HEADER:
        index, _, length = struct.unpack_from("<HH4xQ", data, at)
        # object 0 is the free rest and counts its own header; others are padded to 8 bytes
        step = length if index == 0 else _HEADER + (length + 7) // 8 * 8
        if step < _HEADER or step > end - at:
            return None
        at += step
    return end
