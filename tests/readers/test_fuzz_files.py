"""Damaged files of every kind that we can write: read or refused, never anything else.

Each reader is given valid files with bytes overwritten, inserted, removed and cut off. Whatever
comes back must be a network or an `InputError`, within bounded memory.
"""

from __future__ import annotations

import os
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from snnmap.errors import InputError
from snnmap.readers import read_network
from snnmap.writers import NETWORK_FORMATS, write_network
from tests.small import SMALL_ROWS, from_rows

SECONDS = float(os.environ.get("SNNMAP_FUZZ_SECONDS", "1.5"))
"""For each format; set it higher to look longer."""

INTERESTING = [0, 1, 2, 0x7F, 0x80, 0xFF, ord(" "), ord("\n"), ord("-"), ord("9"), ord("%")]
MOST_BYTES = 600 << 20  # 16.8 million unlinked nodes are legal


def damage(data: bytes, rng: np.random.Generator) -> bytes:
    """One to four random changes."""
    out = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(0, len(out) + 1))
        n = int(rng.choice([1, 1, 2, 4, 8]))
        byte = bytes(rng.choice(INTERESTING, n).astype(np.uint8))
        match int(rng.integers(0, 5)):
            case 0 | 1:
                out[at : at + n] = byte[: max(0, len(out) - at)]
            case 2:
                out[at:at] = byte
            case 3:
                del out[at : at + n]
            case _:
                del out[at : None if rng.random() < 0.3 else at + 1]
    return bytes(out)


@pytest.mark.parametrize("name", NETWORK_FORMATS)
def test_damaged_files_are_read_or_refused(tmp_path: Path, name: str) -> None:
    rows = [(s[:1] or [0], d, w) for s, d, w in SMALL_ROWS]
    suffix = NETWORK_FORMATS[name][1][0]
    path = tmp_path / f"damaged{suffix}"
    write_network(from_rows(8, rows, node_sizes=np.arange(8)), path, format=name)
    valid = path.read_bytes()
    read_network(path)
    rng = np.random.default_rng(192)
    ends, n_read, n_refused = time.monotonic() + SECONDS, 0, 0
    texts: set[str] = set()
    tracemalloc.start()
    try:
        while time.monotonic() < ends or n_read + n_refused < 50:
            data = damage(valid, rng)
            path.write_bytes(data)
            try:
                h = read_network(path, format=name)
                n_read += 1
                assert h.n_pins >= 0
            except InputError as error:
                n_refused += 1
                texts.add(str(error))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MOST_BYTES
    assert n_refused > 10
    assert not [text for text in texts if "\n" in text]
