"""Model files: a network as a list of layers in TOML (or a plain dict), read strictly.

docs/networks.md describes the format. Every layer names its input with `from` (default: the layer
before it). A layer is made of neurons or, with ``neurons = false``, only passes links on; `add`,
`concat` and `flatten` have none unless asked. ``links`` adds projections between populations in
any direction.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snnmap.errors import InputError, NetworkError
from snnmap.hypergraph import Hypergraph
from snnmap.networks.layer_graph import LayerGraph, tables
from snnmap.networks.layer_types import MODEL, Table
from snnmap.networks.rates import rates_from
from snnmap.progress import SILENT, Progress

if TYPE_CHECKING:
    from snnmap.partitioning.multilevel.device import Device


@dataclass(frozen=True, eq=False)
class Model:
    """A network description, checked on its surface; :meth:`build` makes the network.

    Attributes:
        values: keys of the file with defaults filled in.
        path: of the file, or a name for errors.
    """

    values: dict[str, Any]
    path: Path

    @property
    def name(self) -> str:
        """Name of the network."""
        return str(self.values["name"])

    @property
    def description(self) -> str:
        """One line for lists."""
        return str(self.values["description"])

    @property
    def stand_in(self) -> bool:
        """Made up to the counts of a network whose layers were never published."""
        return bool(self.values["stand_in"])

    @property
    def profile(self) -> str | None:
        """Recommended hardware profile."""
        profile = self.values["profile"]
        return None if profile is None else str(profile)

    def build(self, progress: Progress = SILENT, device: Device | None = None) -> Hypergraph:
        """Make the network.

        Args:
            progress: told of work that takes long.
            device: a GPU to link reservoirs on; the network is the same.

        Raises:
            NetworkError: the file and the layer at fault, quantity and value.
        """
        try:
            graph = LayerGraph(self.values, self.path.parent, progress, device)
            for table in tables(self.values["layers"], "layers"):
                graph.add_layer(table)
            links = tables(self.values["links"], "links")
            progress.start("linking populations", len(links), "links")
            for number, table in enumerate(links):
                if progress.cancelled:
                    raise KeyboardInterrupt
                graph.add_link(table, number)
                progress.advance()
            progress.finish()
            graph.check_ends()
            rates = rates_from(self.values["rates"], self.path.parent)
            return graph.builder.build(rates)
        except NetworkError as error:
            raise NetworkError(f"{self.path}: {error}") from None


def read_model(path: str | Path) -> Model:
    """Read a model file; the network is not built yet.

    Raises:
        InputError: the file cannot be read or is no TOML.
        NetworkError: a key of the file itself is unknown, missing or wrong.
    """
    return model_from(read_table(Path(path)), path)


def read_table(path: Path) -> dict[str, Any]:
    """The content of a TOML file.

    Raises:
        InputError: the file cannot be read or is no TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise InputError(path, f"cannot be read: {reason}") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(path, f"is not TOML: {error}") from None


def model_from(table: Table, path: str | Path = "model") -> Model:
    """A model from a dict with the keys of a model file; `path` names it in errors.

    Raises:
        NetworkError: a key is unknown, missing or wrong.
    """
    return Model(MODEL.read(table, str(path)), Path(path))
