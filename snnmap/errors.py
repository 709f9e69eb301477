"""Every error a user can meet, as one tree.

    SnnmapError                 base: one clear line, command-line exit code 2
    ├── InputError              a file or argument is malformed: path, place, what was expected
    ├── NetworkError            a network description cannot be built (layer, quantity, value)
    ├── ProfileError            a hardware profile is unknown or malformed (key, value, remedy)
    ├── ConfigError             a partitioner or placer setting is unknown or out of range
    ├── LimitError              a hardware limit cannot be met (object, value, limit, remedy)
    ├── EngineError             the engine asked for cannot run here, and what to install
    └── OutputError             a result cannot be written (path, reason)

Bugs of snnmap itself raise ordinary Python exceptions; users' mistakes raise these.
"""

from __future__ import annotations

from pathlib import Path


class SnnmapError(Exception):
    """Base of all errors caused by input, settings or the machine; its text is one line."""

    exit_code = 2


class InputError(SnnmapError):
    """A file or value handed in is malformed.

    Args:
        path: the file (or a short name of the object) at fault.
        problem: what is wrong and what was expected, in one sentence.
        place: where in the file, e.g. ``"h-edge 17, byte 4092"``.
    """

    def __init__(self, path: str | Path, problem: str, *, place: str | None = None) -> None:
        self.path = str(path)
        self.place = place
        self.problem = problem
        where = f"{path}: {place}" if place else f"{path}"
        super().__init__(_one_line(f"{where}: {problem}"))


def _one_line(text: str) -> str:
    """The text on one printable line: names from a damaged file may hold anything."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class NetworkError(SnnmapError):
    """A network description cannot be turned into a hypergraph."""


class ProfileError(SnnmapError):
    """A hardware profile is unknown or malformed."""


class ConfigError(SnnmapError):
    """A setting of an algorithm is unknown, of the wrong type or out of range."""


class EngineError(SnnmapError):
    """The engine that was asked for cannot run on this machine."""


class OutputError(SnnmapError):
    """A result cannot be written."""


class LimitError(SnnmapError):
    """A hardware limit cannot be met.

    Args:
        what: the object at fault with its name, e.g. ``"neuron 17 of layer 'dense1'"``.
        quantity: what is limited, e.g. ``"inbound axons"``.
        value: how much the object needs.
        limit: how much is allowed.
        remedy: what would make it fit.
        profile: name of the hardware profile the limit comes from, if any.
    """

    def __init__(
        self,
        what: str,
        quantity: str,
        value: float,
        limit: float,
        *,
        remedy: str,
        profile: str | None = None,
    ) -> None:
        self.what = what
        self.quantity = quantity
        self.value = value
        self.limit = limit
        self.remedy = remedy
        self.profile = profile
        of = f" of profile {profile!r}" if profile else ""
        super().__init__(f"{what}: {quantity} {value:,} exceeds the limit {limit:,}{of}; {remedy}")
