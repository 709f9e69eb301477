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
    from snnmap.check import CheckReport, check_network
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
    from snnmap.hardware import Costs, HardwareProfile, load_profile, profile_names
    from snnmap.hypergraph import Hypergraph, Population, Projection
    from snnmap.limits import Limits
    from snnmap.mapping import Mapping, map_network, restore_mapping
    from snnmap.networks import NetworkBuilder, load_network, network_names
    from snnmap.partitioning import Partition, partition
    from snnmap.placement import Placement, part_hypergraph
    from snnmap.placement.place import place
    from snnmap.progress import Progress
    from snnmap.readers import read_network
    from snnmap.readers.objects import from_object
    from snnmap.stored import StoredMapping, read_mapping
    from snnmap.traffic import TrafficReport, measure_traffic
    from snnmap.writers import write_network

_HOMES = {
    "CheckReport": "snnmap.check",
    "ConfigError": "snnmap.errors",
    "Costs": "snnmap.hardware",
    "EngineError": "snnmap.errors",
    "HardwareProfile": "snnmap.hardware",
    "Hypergraph": "snnmap.hypergraph",
    "InputError": "snnmap.errors",
    "LimitError": "snnmap.errors",
    "Limits": "snnmap.limits",
    "Mapping": "snnmap.mapping",
    "NetworkBuilder": "snnmap.networks",
    "NetworkError": "snnmap.errors",
    "OutputError": "snnmap.errors",
    "Partition": "snnmap.partitioning",
    "Placement": "snnmap.placement",
    "Population": "snnmap.hypergraph",
    "ProfileError": "snnmap.errors",
    "Progress": "snnmap.progress",
    "Projection": "snnmap.hypergraph",
    "SnnmapError": "snnmap.errors",
    "StoredMapping": "snnmap.stored",
    "TrafficReport": "snnmap.traffic",
    "check_network": "snnmap.check",
    "from_object": "snnmap.readers.objects",
    "load_network": "snnmap.networks",
    "load_profile": "snnmap.hardware",
    "map_network": "snnmap.mapping",
    "measure_traffic": "snnmap.traffic",
    "network_names": "snnmap.networks",
    "part_hypergraph": "snnmap.placement",
    "partition": "snnmap.partitioning",
    "place": "snnmap.placement",
    "profile_names": "snnmap.hardware",
    "read_mapping": "snnmap.stored",
    "read_network": "snnmap.readers",
    "restore_mapping": "snnmap.mapping",
    "write_network": "snnmap.writers",
}

__all__ = [
    "CheckReport",
    "ConfigError",
    "Costs",
    "EngineError",
    "HardwareProfile",
    "Hypergraph",
    "InputError",
    "LimitError",
    "Limits",
    "Mapping",
    "NetworkBuilder",
    "NetworkError",
    "OutputError",
    "Partition",
    "Placement",
    "Population",
    "ProfileError",
    "Progress",
    "Projection",
    "SnnmapError",
    "StoredMapping",
    "TrafficReport",
    "__version__",
    "check_network",
    "from_object",
    "load_network",
    "load_profile",
    "map_network",
    "measure_traffic",
    "network_names",
    "part_hypergraph",
    "partition",
    "place",
    "profile_names",
    "read_mapping",
    "read_network",
    "restore_mapping",
    "write_network",
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
