"""Circuit-like hypergraphs: cells on a square grid, nets with few pins and mostly short wires.

Each cell drives one net. The number of sinks follows P(k) ~ k^-1.85 (k = 1..40): about the 3.6
pins a net of the ISPD98 circuits; wire lengths in grid steps follow P(l) ~ l^(2 r - 3) with Rent
exponent r (Donath 1981), all sites at one length equally likely. Sinks off the grid are reflected;
duplicates and the driver itself are dropped.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from snnmap import _csr
from snnmap.networks.relations import Relation, from_rows

Array = np.ndarray[Any, Any]

MOST_SINKS = 40


def circuit_links(cells: int, *, rent: float = 0.65, seed: int = 0) -> Relation:
    """Nets of a made-up circuit.

    Args:
        cells: number of cells, at least 1.
        rent: Rent exponent, 0..1; larger means longer wires.
        seed: of NumPy's PCG64.
    """
    rng = np.random.default_rng(seed)
    side = math.isqrt(cells - 1) + 1
    counts = 1 + _draw(np.arange(1, MOST_SINKS + 1) ** -1.85, cells, rng)
    total = int(counts.sum())
    lengths = 1 + _draw(np.arange(1, 2 * side + 1) ** (2.0 * rent - 3.0), total, rng)
    along = rng.integers(0, lengths)  # a quarter of the diamond of that radius, then turned
    steps_x, steps_y = along, lengths - along
    turn = rng.integers(0, 4, total)
    steps_x, steps_y = (
        np.choose(turn, [steps_x, -steps_y, -steps_x, steps_y]),
        np.choose(turn, [steps_y, steps_x, -steps_y, -steps_x]),
    )
    drivers = np.repeat(np.arange(cells), counts)
    x = _reflect(drivers % side + steps_x, side)
    y = _reflect(drivers // side + steps_y, side)
    sinks = y * side + x
    kept = (sinks < cells) & (sinks != drivers)
    offsets = _csr.offsets_of(np.bincount(drivers[kept], minlength=cells))
    return from_rows(offsets, sinks[kept], cells, share=False)


def _draw(weights: Array, n: int, rng: np.random.Generator) -> Array:
    """int64[n] indices drawn in proportion to `weights`."""
    cumulative = np.cumsum(weights)
    return np.asarray(np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right"))


def _reflect(values: Array, side: int) -> Array:
    values = np.abs(values) % max(2 * side - 2, 1)
    return np.where(values >= side, 2 * side - 2 - values, values)
