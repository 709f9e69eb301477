"""snnmap: put spiking neural networks onto neuromorphic chips.

    network = snnmap.load_network("lenet")
    profile = snnmap.load_profile("loihi64")
    mapping = snnmap.map_network(network, profile)
    print(mapping.summary())
    mapping.write("out")

The names in ``__all__`` are the public face; each is imported from its room on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from snnmap.errors import (
        ConfigError,
        EngineError,
        InputError,
        LimitError,
        NetworkError,
        OutputError,
        ProfileError,
        SnnmapError,
    )
    from snnmap.hypergraph import Hypergraph, Population
    from snnmap.limits import Limits
    from snnmap.partitioning.result import Partition
    from snnmap.progress import Progress

_HOMES = {
    "ConfigError": "snnmap.errors",
    "EngineError": "snnmap.errors",
    "Hypergraph": "snnmap.hypergraph",
    "InputError": "snnmap.errors",
    "LimitError": "snnmap.errors",
    "Limits": "snnmap.limits",
    "NetworkError": "snnmap.errors",
    "OutputError": "snnmap.errors",
    "Partition": "snnmap.partitioning.result",
    "Population": "snnmap.hypergraph",
    "ProfileError": "snnmap.errors",
    "Progress": "snnmap.progress",
    "SnnmapError": "snnmap.errors",
}

__all__ = [
    "ConfigError",
    "EngineError",
    "Hypergraph",
    "InputError",
    "LimitError",
    "Limits",
    "NetworkError",
    "OutputError",
    "Partition",
    "Population",
    "ProfileError",
    "Progress",
    "SnnmapError",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its room when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'snnmap' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
