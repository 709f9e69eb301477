"""Spike rates of neurons: the weights of their axons.

A distribution over a whole network is drawn once, for the neurons that have an axon, in order of
their ids; a layer with rates of its own overrides its share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from snnmap.errors import InputError, NetworkError
from snnmap.networks import schema
from snnmap.networks.schema import Keys

Array = np.ndarray[Any, Any]


class Rates(Protocol):
    """What gives every axon its rate."""

    def draw(self, neurons: Array, n_neurons: int) -> Array:
        """float64[len(neurons)]: rates (spikes/s) of `neurons`, ascending ids below `n_neurons`."""
        ...


@dataclass(frozen=True, slots=True)
class ConstantRates:
    """The same rate for every neuron.

    Attributes:
        rate: spikes/s, finite and >= 0.
    """

    rate: float = 1.0

    def __post_init__(self) -> None:
        _check(self.rate >= 0, "rate", self.rate, "a finite number >= 0")

    def draw(self, neurons: Array, n_neurons: int) -> Array:
        """See :class:`Rates`."""
        return np.full(len(neurons), self.rate)


@dataclass(frozen=True, slots=True)
class LognormalRates:
    """Log-normal rates, rounded to 32 bits so that every file format carries them exactly.

    Attributes:
        median: spikes/s, > 0.
        cv: coefficient of variation (standard deviation / mean), >= 0.
        seed: of NumPy's PCG64 generator.
    """

    median: float = 1.0
    cv: float = 1.58
    seed: int = 7

    def __post_init__(self) -> None:
        _check(self.median > 0, "median", self.median, "a finite number > 0")
        _check(self.cv >= 0, "cv", self.cv, "a finite number >= 0")
        _check(self.seed >= 0, "seed", self.seed, "a whole number >= 0")

    def draw(self, neurons: Array, n_neurons: int) -> Array:
        """See :class:`Rates`."""
        sigma = math.sqrt(math.log(1 + self.cv * self.cv))
        normal = np.random.default_rng(self.seed).normal(0.0, sigma, len(neurons))
        return (self.median * np.exp(normal)).astype(np.float32).astype(np.float64)


@dataclass(frozen=True, eq=False, slots=True)
class GivenRates:
    """Rates from an array.

    Attributes:
        values: float[n_neurons], spikes/s, one a neuron (of the layer, or of the network).
    """

    values: Array

    def __post_init__(self) -> None:
        values = np.asarray(self.values)
        if values.ndim != 1 or values.dtype.kind not in "iuf":
            raise NetworkError(
                f"rates have shape {values.shape} and type {values.dtype}; "
                "expected one number a neuron"
            )
        wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
        if len(wrong):
            raise NetworkError(
                f"rate of neuron {wrong[0]} is {values[wrong[0]]}; expected a finite number >= 0"
            )

    def draw(self, neurons: Array, n_neurons: int) -> Array:
        """See :class:`Rates`.

        Raises:
            NetworkError: not exactly one value a neuron.
        """
        values = np.asarray(self.values, np.float64)
        if len(values) != n_neurons:
            raise NetworkError(
                f"{len(values)} rates for {n_neurons} neurons; expected one a neuron"
            )
        return values[neurons]


_TABLES = {
    "lognormal": Keys(
        {},
        {
            "kind": (schema.text, ""),
            "median": (schema.positive, 1.0),
            "cv": (schema.non_negative, 1.58),
            "seed": (schema.count_or_zero, 7),
        },
    ),
    "constant": Keys({"rate": schema.non_negative}, {"kind": (schema.text, "")}),
    "values": Keys({"values": schema.anything}, {"kind": (schema.text, "")}),
    "file": Keys({"file": schema.text}, {"kind": (schema.text, "")}),
}


def rates_from(value: Any, folder: Path) -> Rates | None:
    """Rates as a model file gives them.

    Args:
        value: None, a number (constant), or a table: ``kind = "lognormal"`` with median, cv and
            seed; ``kind = "constant"`` with rate; ``kind = "values"`` with a list;
            ``kind = "file"`` with a .npy file or a text file of one number a line.
        folder: that file names are relative to.

    Raises:
        NetworkError: a value of another form.
        InputError: a file that cannot be read.
    """
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return ConstantRates(float(value))
    if not isinstance(value, dict) or value.get("kind") not in _TABLES:
        kinds = ", ".join(_TABLES)
        raise NetworkError(f"rates are {value!r}; expected a number or a table of kind {kinds}")
    kind = value["kind"]
    keys = _TABLES[kind].read(value, "rates")
    del keys["kind"]
    if kind == "lognormal":
        return LognormalRates(**keys)
    if kind == "constant":
        return ConstantRates(**keys)
    if kind == "values":
        return GivenRates(np.asarray(keys["values"]))
    path = folder / keys["file"]
    try:
        if path.suffix == ".npy":
            values = np.load(path)
        else:
            values = np.array(path.read_text(encoding="utf-8").split(), np.float64)
        if not values.size:
            raise ValueError
    except (OSError, ValueError, EOFError) as error:
        reason = getattr(error, "strerror", None) or "is no array of numbers"
        raise InputError(path, f"rates cannot be read: {reason}") from None
    return GivenRates(values)


def _check(fine: bool, what: str, value: float, wanted: str) -> None:
    if not (fine and math.isfinite(value)):
        raise NetworkError(f"{what} of the rates is {value}; expected {wanted}")
