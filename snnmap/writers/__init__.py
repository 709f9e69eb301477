"""Networks and mappings as files.

:func:`write_network` writes a hypergraph in any format that can hold one; `snnmap.writers.mapping`
writes results, `snnmap.writers.assignments` the plain files that other programs exchange.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from snnmap.errors import ConfigError, OutputError
from snnmap.hypergraph import Hypergraph
from snnmap.progress import SILENT, Progress

__all__ = ["NETWORK_FORMATS", "format_of", "write_network"]

NETWORK_FORMATS: dict[str, tuple[str, tuple[str, ...]]] = {
    "native": ("native", (".h5", ".hdf5")),
    "snn": ("records", (".snn",)),
    "axh": ("records", (".axh",)),
    "hgr": ("hgr", (".hgr", ".hmetis")),
    "edges": ("links", (".csv", ".tsv", ".edges", ".edgelist")),
    "mtx": ("links", (".mtx",)),
    "sparse": ("links", (".npz",)),
    "pairs": ("links", (".npy",)),
    "graphml": ("graphs", (".graphml",)),
    "gexf": ("graphs", (".gexf",)),
    "hif": ("hif", (".hif.json", ".hif")),
    "nodelink": ("graphs", (".json",)),
}
"""Formats that can be written: name -> (module with ``write_NAME``, suffixes)."""


def write_network(
    hypergraph: Hypergraph,
    path: str | Path,
    *,
    format: str | None = None,
    progress: Progress = SILENT,
    **options: Any,
) -> list[str]:
    """Write a network file; it appears whole or not at all.

    Args:
        hypergraph: the network.
        path: the file; its suffix tells the format unless `format` does.
        format: a key of :data:`NETWORK_FORMATS`.
        progress: told of the work.
        options: further keyword arguments of the format's writer, e.g. ``weight_scale=100`` (.hgr).

    Returns:
        One sentence for each thing that the format cannot hold and was left out or rounded.

    Raises:
        ConfigError: an unknown format or option.
        OutputError: the network does not fit the format, or the file cannot be written.
    """
    path = Path(path)
    name = format_of(path, format)
    module = import_module(f"snnmap.writers.{NETWORK_FORMATS[name][0]}")
    writer: Callable[..., list[str]] = getattr(module, f"write_{name}")
    known = inspect.signature(writer).parameters.keys() - {"hypergraph", "path", "progress"}
    for option in options.keys() - known:
        raise ConfigError(
            f"{path}: format {name!r} is written without an option {option!r}; "
            f"it has {', '.join(sorted(known)) or 'none'}"
        )
    return writer(hypergraph, path, progress=progress, **options)


def format_of(path: Path, format: str | None = None) -> str:
    """The format to write a file in: `format` if given, else as its suffix tells.

    Raises:
        ConfigError: a format that cannot be written.
        OutputError: a suffix that tells none.
    """
    if format is not None:
        if format not in NETWORK_FORMATS:
            known = ", ".join(NETWORK_FORMATS)
            raise ConfigError(f"cannot write format {format!r}; can write {known}")
        return format
    for name, (_, suffixes) in NETWORK_FORMATS.items():
        if path.name.lower().endswith(suffixes):
            return name
    known = ", ".join(s for _, suffixes in NETWORK_FORMATS.values() for s in suffixes)
    raise OutputError(
        f"{path}: its suffix {path.suffix!r} tells no format to write; expected one of {known}"
    )
