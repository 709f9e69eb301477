"""What every reader must do with a bad file: one line, the place, little memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from snnmap.errors import InputError
from snnmap.readers import read_network

MOST_BYTES = 8 << 20
"""Memory that a refusal may take; headers in these tests promise far more."""


def refusal(path: Path, **options: Any) -> InputError:
    """The error of reading a bad file: one line that begins with the path, raised cheaply."""
    with pytest.raises(InputError):  # once before, so that imports are not measured
        read_network(path, **options)
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            read_network(path, **options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    text = str(caught.value)
    assert text.startswith(str(path))
    assert "\n" not in text
    assert peak < MOST_BYTES, "memory was taken for sizes that the file cannot hold"
    return caught.value
