"""Damages files and reads them, in a process of its own: the HDF5 library is known to crash.

python -m tests.readers.fuzz_hdf5 FORMAT FILE SECONDS SEED
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np

from snnmap.errors import InputError
from snnmap.readers import read_network
from tests.readers.test_fuzz_files import damage

MOST_BYTES = 600 << 20


def main(format: str, file: str, seconds: float, seed: int) -> None:
    """Print how many files were read and how many refused."""
    path = Path(file)
    valid = path.read_bytes()
    read_network(path, format=format)
    rng = np.random.default_rng(seed)
    ends, n_read, texts = time.monotonic() + seconds, 0, set()
    tracemalloc.start()
    while time.monotonic() < ends:
        data = damage(valid, rng)
        if rng.random() < 0.5:  # structure rather than content
            at = rng.integers(0, len(data) - 8) if len(data) > 8 else 0
            data = data[:at] + damage(data[at : at + 8], rng) + data[at + 8 :]
        path.write_bytes(data)
        try:
            read_network(path, format=format)
            n_read += 1
        except InputError as error:
            text = str(error)
            assert text.isprintable(), repr(text)
            texts.add(text)
        peak = tracemalloc.get_traced_memory()[1]
        assert peak < MOST_BYTES, f"{peak:,} bytes for {len(data):,}"
        tracemalloc.reset_peak()
    print(n_read, len(texts))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))
