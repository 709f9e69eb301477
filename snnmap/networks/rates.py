"""Spike rates of neurons: the weights of their axons.

A distribution over a whole network is drawn once, for the neurons that have an axon, in order of
their ids; a layer with rates of its own overrides its share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from snnmap.errors import NetworkError

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


def _check(fine: bool, what: str, value: float, wanted: str) -> None:
    if not (fine and math.isfinite(value)):
        raise NetworkError(f"{what} of the rates is {value}; expected {wanted}")
