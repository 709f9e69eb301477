"""Files to hypergraphs: one module a format, all through :func:`read_network`.

The module of format NAME has two functions:

    recognise(path: Path, head: bytes) -> bool      cheap: looks at the first 64 KiB (b"" = folder)
    read_NAME(path: Path, *, progress=SILENT, ...) -> Hypergraph

Options of a reader are its further keyword arguments. Modules are imported when first needed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from snnmap.errors import ConfigError, InputError
from snnmap.hypergraph import Hypergraph
from snnmap.progress import SILENT, Progress
from snnmap.readers.checks import input_size, is_folder

__all__ = ["FORMATS", "Format", "find_format", "read_network"]

HEAD_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file.

    Attributes:
        name: key of :data:`FORMATS` and value of ``--from``.
        title: for people.
        suffixes: usual ends of file names, lower case.
        marked: its files carry a mark that no other format has, so that they are recognised
            whatever their name; others only if their suffix is theirs or tells nothing.
        folder: a folder may be such a network.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    marked: bool = True
    folder: bool = False

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the content of the file is of this format."""
        return bool(self._module().recognise(path, head))

    def reader(self) -> Callable[..., Hypergraph]:
        """The function ``read_NAME``."""
        reader: Callable[..., Hypergraph] = getattr(self._module(), f"read_{self.name}")
        return reader

    def _module(self) -> Any:
        return import_module(f"snnmap.readers.{self.name}")


FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("native", "snnmap network (HDF5)", (".h5", ".hdf5")),
        Format("toml", "network of layers (TOML)", (".toml",), marked=False),
        Format("nir", "Neuromorphic Intermediate Representation", (".nir", ".h5", ".hdf5")),
        Format("lava", "lava-dl network", (".net", ".h5", ".hdf5")),
        Format("sonata", "SONATA circuit", (".json", ".h5", ".hdf5"), folder=True),
        Format("onnx", "ONNX model", (".onnx",), marked=False),
        Format("snn", "one-source hyperedge records", (".snn",), marked=False),
        Format("axh", "multi-source hyperedge records", (".axh",), marked=False),
        Format("hgr", "hMETIS hypergraph", (".hgr", ".hmetis"), marked=False),
        Format("mtx", "Matrix Market matrix", (".mtx",)),
        Format("sparse", "SciPy sparse matrix", (".npz",)),
        Format("pairs", "NumPy arrays of links", (".npy", ".npz")),
        Format("graphml", "GraphML graph", (".graphml",)),
        Format("gexf", "GEXF graph", (".gexf",)),
        Format("hif", "HIF hypergraph (JSON)", (".hif", ".json")),
        Format("nodelink", "node-link graph (JSON)", (".json",)),
        Format(
            "edges", "edge list (CSV, TSV)", (".csv", ".tsv", ".edges", ".edgelist"), marked=False
        ),
    )
}
"""Every format that can be read, by name; the order is the order in which they are tried."""


def read_network(
    path: str | Path, *, format: str | None = None, progress: Progress = SILENT, **options: Any
) -> Hypergraph:
    """Read a network file of any known format.

    Args:
        path: the file (or, for SONATA, its folder).
        format: a key of :data:`FORMATS`; None recognises it by content and suffix.
        progress: told of the work.
        options: further keyword arguments of the format's reader, e.g. ``grouped=False`` (.snn),
            ``first_pin_is_source=True`` (.hgr).

    Returns:
        The network, named after the file.

    Raises:
        InputError: no such file, of no known format, or malformed (the place is named).
        ConfigError: an unknown format or an option that the format does not have.
    """
    path = Path(path)
    if format is not None and format not in FORMATS:
        raise ConfigError(f"unknown format {format!r}; known are {', '.join(sorted(FORMATS))}")
    chosen = find_format(path) if format is None else FORMATS[format]
    reader = chosen.reader()
    parameters = inspect.signature(reader).parameters.values()
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        known = sorted({p.name for p in parameters} - {"path", "progress"})
        for name in options.keys() - set(known):
            raise ConfigError(
                f"{path}: files of format {chosen.name!r} have no option {name!r}; "
                f"they have {', '.join(known) or 'none'}"
            )
    return reader(path, progress=progress, **options)


def find_format(path: Path) -> Format:
    """The format of a file, by its content first and its suffix second.

    A file whose suffix belongs to one format but whose content does not is still given to that
    format, whose reader then says what is wrong with it.

    Raises:
        InputError: no such file, or no format fits.
    """
    if is_folder(path):
        head, formats = b"", [f for f in FORMATS.values() if f.folder]
    else:
        input_size(path)
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        formats = list(FORMATS.values())
    suffix = path.suffix.lower()
    own = [f for f in formats if suffix in f.suffixes]
    others = [f for f in formats if f not in own and (f.marked or not own)]
    for candidate in [*own, *others]:
        if candidate.recognises(path, head):
            return candidate
    if len(own) == 1:
        return own[0]
    known = ", ".join(sorted({s for f in formats for s in f.suffixes}))
    expected = " or ".join(f.title for f in own) or f"a network file ({known})"
    raise InputError(path, f"its content is of no known format; expected {expected}")
