"""Networks from layers, generators and files.

The short way is :func:`load_network`. Networks in code are put together with
:class:`NetworkBuilder` (see :mod:`snnmap.networks.builder` and :mod:`snnmap.networks.layers`) or
from a dict with the keys of a model file (:func:`model_from`).
"""

from __future__ import annotations

from pathlib import Path

from snnmap.errors import NetworkError
from snnmap.hypergraph import Hypergraph
from snnmap.networks.builder import NetworkBuilder, Signal
from snnmap.networks.connectors import random_links
from snnmap.networks.model import Model, model_from, read_model
from snnmap.networks.rates import ConstantRates, GivenRates, LognormalRates, Rates
from snnmap.networks.relations import Relation
from snnmap.networks.reservoir import Reservoir
from snnmap.networks.schema import suggest
from snnmap.progress import SILENT, Progress
from snnmap.resources import resource_dir, resource_names

__all__ = [
    "ConstantRates",
    "GivenRates",
    "LognormalRates",
    "Model",
    "NetworkBuilder",
    "Rates",
    "Relation",
    "Reservoir",
    "Signal",
    "load_model",
    "load_network",
    "model_from",
    "network_names",
    "random_links",
    "read_model",
]


def network_names() -> list[str]:
    """Names of the networks that come with snnmap, sorted."""
    return resource_names("models", ".toml")


def load_model(name: str) -> Model:
    """The description of a network that comes with snnmap.

    Raises:
        NetworkError: an unknown name.
    """
    if name not in network_names():
        raise NetworkError(f"no network is called {name!r}; {suggest(name, network_names())}")
    return read_model(resource_dir("models") / f"{name}.toml")


def load_network(name_or_path: str | Path, progress: Progress = SILENT) -> Hypergraph:
    """A network by name or from a file of any format snnmap reads.

    Args:
        name_or_path: a name of :func:`network_names`, a model file (``.toml``), or a file for
            :func:`snnmap.readers.read_network`.
        progress: told of work that takes long.

    Raises:
        NetworkError: neither a known name nor a file, or a description that cannot be built.
        InputError: a file that is malformed.
    """
    name = str(name_or_path)
    if isinstance(name_or_path, str) and name in network_names():
        return load_model(name).build(progress)
    path = Path(name_or_path)
    if not path.exists():
        known = suggest(name, network_names())
        raise NetworkError(f"{name!r} is neither a file nor a network that comes along; {known}")
    if path.suffix == ".toml":
        return read_model(path).build(progress)
    from snnmap.readers import read_network

    return read_network(path, progress=progress)
