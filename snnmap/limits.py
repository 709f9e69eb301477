"""The limits a partition must respect, apart from any chip and any algorithm."""

from __future__ import annotations

from dataclasses import dataclass, fields

from snnmap.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Limits:
    """Hard limits, all inclusive (``<=``); None means unlimited.

    Per part (core):
        max_size: sum of node sizes (neurons), the literature's Omega.
        max_inbound: distinct h-edges with a destination in the part, the literature's Delta. An
            h-edge that stands for several axons counts as that many.
        max_outbound: distinct h-edges with a source in the part.
        max_incident: distinct h-edges with any pin in the part.
        max_synapses: destination pins in the part, i.e. the sum of the neurons' fan-ins.
    Per neuron:
        max_fan_in: inbound axons of one neuron.
        max_destinations: distinct parts that hold destinations of one h-edge.
    In all:
        max_parts: number of parts (usable cores of the chip).
    """

    max_size: int | None = None
    max_inbound: int | None = None
    max_outbound: int | None = None
    max_incident: int | None = None
    max_synapses: int | None = None
    max_fan_in: int | None = None
    max_destinations: int | None = None
    max_parts: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise ConfigError(f"limit {field.name} is {value!r}; expected a whole number")
            if value < 1:
                raise ConfigError(f"limit {field.name} is {value}; expected at least 1")
