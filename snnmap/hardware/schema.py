"""The keys of a profile: what each means, its type, and how a value is read and checked.

In a TOML file a value is either plain or, better, a table that says who knows it:

    neurons_per_core = { value = 1024, source = "Davies et al. 2018", confidence = "published" }

``value = "none"`` says that the chip has no such limit, ``"unknown"`` that it is not public.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from snnmap.errors import ProfileError
from snnmap.hardware.profile import CONFIDENCES, TOPOLOGIES, Provenance

MAX_LIMIT = 2**62
MAX_DEAD_CORES = 10_000_000


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a profile.

    Attributes:
        section: TOML table that holds it.
        read: turns a TOML value (or the text after ``--set key=``) into a value; raises ValueError
            with what was expected.
        meaning: one line for the documentation and messages.
        optional: may be ``"none"`` or ``"unknown"``.
    """

    section: str
    read: Callable[[Any], Any]
    meaning: str
    optional: bool = True


@dataclass(frozen=True, slots=True)
class Entry:
    """The value of a key with what is said of it."""

    value: Any
    provenance: Provenance
    soft: bool = False
    unknown: bool = False


def _whole(value: Any) -> int:
    expected = "a whole number >= 1"
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            raise ValueError(expected) from None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_LIMIT:
        raise ValueError(expected)
    return value


def _number(value: Any) -> float:
    expected = "a finite number >= 0"
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise ValueError(expected) from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(expected)
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(expected)
    return float(value)


def _duration(value: Any) -> float:
    try:
        number = _number(value)
    except ValueError:
        number = 0.0
    if number == 0:
        raise ValueError("a finite number > 0")
    return number


def _topology(value: Any) -> str:
    if value not in TOPOLOGIES:
        raise ValueError("one of " + ", ".join(TOPOLOGIES))
    return str(value)


def _pair(value: Any) -> tuple[int, int]:
    expected = "two whole numbers >= 1, as 2x3 or [2, 3]"
    if isinstance(value, str):
        value = re.split(r"[x,]", value)
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(expected)
    try:
        return _whole(value[0]), _whole(value[1])
    except ValueError:
        raise ValueError(expected) from None


def _cores(value: Any) -> frozenset[tuple[int, int]]:
    """``"3,4; 0-7,5"`` or ``[[3, 4], ...]`` or ``["0-7,5", ...]``; both ends of a range count."""
    expected = "cores as x,y or ranges as x0-x1,y0-y1, several separated by ;"
    items = value.split(";") if isinstance(value, str) else value
    if not isinstance(items, list):
        raise ValueError(expected)
    cores: set[tuple[int, int]] = set()
    for item in items:
        if isinstance(item, list) and len(item) == 2 and all(type(v) is int for v in item):
            item = f"{item[0]},{item[1]}"
        if isinstance(item, str) and item.strip() in ("", "none"):
            continue
        found = re.fullmatch(r"(\d+)(?:-(\d+))?,(\d+)(?:-(\d+))?", re.sub(r"\s", "", str(item)))
        if not found:
            raise ValueError(expected)
        x0, x1, y0, y1 = (int(found[i] or found[i - 1]) for i in (1, 2, 3, 4))
        if x1 < x0 or y1 < y0:
            raise ValueError(expected + "; ranges rise")
        if len(cores) + (x1 - x0 + 1) * (y1 - y0 + 1) > MAX_DEAD_CORES:
            raise ValueError(f"at most {MAX_DEAD_CORES} cores")
        cores.update((x, y) for x in range(x0, x1 + 1) for y in range(y0, y1 + 1))
    return frozenset(cores)


KEYS: dict[str, Key] = {
    # geometry
    "topology": Key("grid", _topology, "how routers are joined: " + " | ".join(TOPOLOGIES), False),
    "width": Key("grid", _whole, "cores of one chip along x", False),
    "height": Key("grid", _whole, "cores of one chip along y", False),
    "chips": Key("grid", _pair, "chips along x and y", False),
    "tile": Key("grid", _pair, "cores along x and y that share a router", False),
    "missing_cores": Key("grid", _cores, "cores no chip offers, x,y within the chip", False),
    "dead_cores": Key("grid", _cores, "unusable cores, x,y over all chips", False),
    # limits
    "neurons_per_core": Key("limits", _whole, "neurons of a core"),
    "inbound_axons_per_core": Key("limits", _whole, "distinct axons that end in a core"),
    "outbound_axons_per_core": Key("limits", _whole, "distinct axons that begin in a core"),
    "incident_axons_per_core": Key("limits", _whole, "distinct axons that begin or end in a core"),
    "synapses_per_core": Key("limits", _whole, "synapses (sum of the fan-ins) of a core"),
    "synapse_bits_per_core": Key("limits", _whole, "synapse memory of a core in bits"),
    "bits_per_synapse": Key("limits", _whole, "bits that one synapse takes of that memory"),
    "fan_in_per_neuron": Key("limits", _whole, "axons that end in a neuron"),
    "destinations_per_neuron": Key("limits", _whole, "distinct cores that a neuron's axon reaches"),
    # costs
    "route_energy_pj": Key("costs", _number, "energy of passing a router, pJ a spike"),
    "hop_energy_pj": Key("costs", _number, "energy of a link along either axis, pJ a spike"),
    "hop_energy_x_pj": Key("costs", _number, "energy of a link along x, pJ a spike"),
    "hop_energy_y_pj": Key("costs", _number, "energy of a link along y, pJ a spike"),
    "route_latency_ns": Key("costs", _number, "time to pass a router, ns"),
    "hop_latency_ns": Key("costs", _number, "time to pass a link along either axis, ns"),
    "hop_latency_x_ns": Key("costs", _number, "time to pass a link along x, ns"),
    "hop_latency_y_ns": Key("costs", _number, "time to pass a link along y, ns"),
    "chip_hop_energy_pj": Key("costs", _number, "energy of a link between chips, pJ a spike"),
    "chip_hop_latency_ns": Key("costs", _number, "time to pass a link between chips, ns"),
    "synapse_energy_pj": Key("costs", _number, "energy of a synaptic operation, pJ"),
    "link_bandwidth_spikes_s": Key("costs", _number, "spikes/s that one directed link carries"),
    # time
    "max_delay_steps": Key("time", _whole, "longest synaptic delay in time steps"),
    "timestep_ms": Key("time", _duration, "length of a time step in ms"),
}

SECTIONS = tuple(dict.fromkeys(key.section for key in KEYS.values()))
BOTH_AXES = {
    "hop_energy_pj": ("hop_energy_x_pj", "hop_energy_y_pj"),
    "hop_latency_ns": ("hop_latency_x_ns", "hop_latency_y_ns"),
}
LIMIT_FIELDS = {
    "neurons_per_core": "max_size",
    "inbound_axons_per_core": "max_inbound",
    "outbound_axons_per_core": "max_outbound",
    "incident_axons_per_core": "max_incident",
    "synapses_per_core": "max_synapses",
    "fan_in_per_neuron": "max_fan_in",
    "destinations_per_neuron": "max_destinations",
}
"""Key of a limit -> field of :class:`snnmap.limits.Limits`."""


def suggest(word: str, known: Iterable[str]) -> str:
    """``"did you mean 'loihi2'? "`` or nothing, for error messages."""
    near = difflib.get_close_matches(word, list(known), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(repr(n) for n in near)}? " if near else ""


def unknown_key(key: str, known: Iterable[str], where: str) -> ProfileError:
    """The error for a key that does not exist, with the nearest and all known ones."""
    known = list(known)
    return ProfileError(
        f"{where}: unknown key {key!r}; {suggest(key, known)}known keys: {', '.join(known)}"
    )


def read_value(key: str, value: Any, where: str) -> tuple[Any, bool]:
    """(checked value or None, whether it is "unknown") of one key.

    Raises:
        ProfileError: wrong type or range; names the key, the value and what was expected.
    """
    spec = KEYS[key]
    if isinstance(value, str):
        value = value.strip()
    if spec.optional and value in ("none", "unknown"):
        return None, value == "unknown" or spec.section == "costs"
    try:
        return spec.read(value), False
    except ValueError as error:
        alternatives = ', or "none" or "unknown"' if spec.optional else ""
        raise ProfileError(f"{where}: {key} is {value!r}; expected {error}{alternatives}") from None


def read_entry(key: str, raw: Any, where: str) -> Entry:
    """Read what a TOML file says of one key: a plain value or a table with value and source."""
    if not isinstance(raw, dict):
        value, unknown = read_value(key, raw, where)
        return Entry(value, Provenance("not stated in the profile", "assumed"), unknown=unknown)
    allowed = ("value", "source", "confidence", "soft")
    for name in raw:
        if name not in allowed:
            raise unknown_key(name, allowed, f"{where}: {key}")
    for name in ("value", "source", "confidence"):
        if name not in raw:
            raise ProfileError(f"{where}: {key} lacks {name!r}; write value, source and confidence")
    if not isinstance(raw["source"], str) or not raw["source"].strip():
        raise ProfileError(f"{where}: {key}: source is {raw['source']!r}; expected some text")
    if raw["confidence"] not in CONFIDENCES:
        raise ProfileError(
            f"{where}: {key}: confidence is {raw['confidence']!r}; expected one of "
            f"{', '.join(CONFIDENCES)}"
        )
    soft = raw.get("soft", False)
    if not isinstance(soft, bool):
        raise ProfileError(f"{where}: {key}: soft is {soft!r}; expected true or false")
    value, unknown = read_value(key, raw["value"], where)
    return Entry(value, Provenance(raw["source"], raw["confidence"]), soft, unknown)
