"""Networks described by layers in TOML (``.toml``, see docs/networks.md), built when read."""

from __future__ import annotations

import re
from pathlib import Path

from snnmap.hypergraph import Hypergraph
from snnmap.networks.model import read_model
from snnmap.progress import SILENT, Progress


def recognise(path: Path, head: bytes) -> bool:
    """Whether the text gives layers."""
    return b"\0" not in head and bool(
        re.search(rb"^\s*(\[\[layers\]\]|layers\s*=)", head, re.MULTILINE)
    )


def read_toml(path: Path, *, progress: Progress = SILENT) -> Hypergraph:
    """Read a description of layers and build its network.

    Raises:
        InputError: the file cannot be read or is no TOML.
        NetworkError: the description is wrong; the text names the layer.
    """
    return read_model(path).build(progress)
