"""Weights as integers: sums of int64 are associative, so scores tie and compare exactly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_MAX_EXPONENT = 40  # finer than 1e-12 of a spike/s serves nobody
_ROOM_BITS = 61  # |any sum| <= 2**62 even with the roundings


def fixed_point(weights: Array, most: int = 1 << 20) -> tuple[Array, float]:
    """Convert weights to 64-bit fixed point with one power-of-two scale.

    The scale is the largest for which ``most * sum(weights) * scale`` stays below 2**62, at most
    2**40, so that connectivities and gains never overflow. Whole numbers convert exactly as long as
    the scale is at least 1.

    Args:
        weights: float64[n], finite and >= 0.
        most: largest factor a sum of all weights is multiplied with (e.g. the number of parts).

    Returns:
        (int64[n] round(weights * scale), scale); ``fixed / scale`` gives the weights back.
    """
    largest = float(weights.max(initial=0.0))
    if largest == 0.0:
        return np.zeros(len(weights), np.int64), 1.0
    _, exponent = math.frexp(largest)
    scaled = np.ldexp(weights, -exponent)
    total = float(scaled.sum())  # cannot overflow; in 0.5..n
    bits = exponent + math.ceil(math.log2(total)) + (max(most, 1) - 1).bit_length()
    shift = min(_ROOM_BITS - bits, _MAX_EXPONENT)
    np.ldexp(weights, shift, out=scaled)
    return np.rint(scaled, out=scaled).astype(np.int64), math.ldexp(1.0, shift)
