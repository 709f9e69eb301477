"""Three-dimensional reservoirs: neurons in the unit cube, linked mostly to their neighbours.

n points uniform in the cube; fan-outs Poisson; a share of each fan-out goes anywhere, the rest to
near neurons drawn without replacement with probability ~ exp(-d^2 / (2 sigma^2)). Neuron j may be
a near target of i only if (z_j - z_i) * direction_j >= 0, with direction +1 for most neurons, so
that activity flows upwards. Duplicates and self-connections are dropped.

The random numbers are NumPy's PCG64, consumed block by block; candidates are the 5 * fan_out + 64
nearest points, and no near link is longer than 0.386.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from snnmap import _csr
from snnmap.errors import NetworkError
from snnmap.networks import _kernels_reservoir
from snnmap.networks.relations import Relation
from snnmap.parallel import for_chunks
from snnmap.progress import SILENT, Progress

Array = np.ndarray[Any, Any]

BLOCK = 4096
REACH = 0.386


@dataclass(frozen=True, slots=True)
class Reservoir:
    """Parameters of a reservoir.

    Attributes:
        neurons: how many.
        fan_out: mean of the Poisson distribution of fan-outs.
        seed: of NumPy's PCG64.
        sigma: length scale of the near links, in sides of the cube.
        long_range: share of the links that go anywhere, 0..1.
        forward: share of the neurons with direction +1, 0..1.
    """

    neurons: int
    fan_out: float
    seed: int = 192
    sigma: float = 0.01
    long_range: float = 0.01
    forward: float = 0.9

    def __post_init__(self) -> None:
        for what, value, fine, wanted in (
            ("neurons", self.neurons, self.neurons >= 1, "at least 1"),
            ("fan_out", self.fan_out, 0 <= self.fan_out < np.inf, "at least 0"),
            ("seed", self.seed, self.seed >= 0, "at least 0"),
            ("sigma", self.sigma, 0 < self.sigma < np.inf, "more than 0"),
            ("long_range", self.long_range, 0 <= self.long_range <= 1, "0 to 1"),
            ("forward", self.forward, 0 <= self.forward <= 1, "0 to 1"),
        ):
            if not fine:
                raise NetworkError(f"{what} of the reservoir is {value}; expected {wanted}")

    def blocks(self, progress: Progress = SILENT) -> Iterator[tuple[Array, Array]]:
        """Draw the links, a block of neurons after the other.

        Args:
            progress: told of every block.

        Yields:
            (int64[block] fan-outs, int32[sum] targets, ascending for each neuron).
        """
        n = self.neurons
        rng = np.random.default_rng(self.seed)
        xyz = rng.random((n, 3))
        direction = rng.choice((-1, 1), size=n, p=(round(1 - self.forward, 12), self.forward))
        totals = rng.poisson(self.fan_out, n)
        n_far = np.rint(self.long_range * totals).astype(np.int64)
        near = min(n, int(5.0 * self.fan_out) + 64)
        grid, cells, order = _sort_into_cells(xyz)
        points, names = xyz[order], order.astype(np.int32)
        radius = 1.05 * (3 * near / (4 * np.pi * n)) ** (1 / 3)

        def draw(start: int) -> tuple[Array, Array]:
            stop = min(n, start + BLOCK)
            noise = rng.gumbel(size=(stop - start, near))
            return noise, rng.integers(0, n, int(n_far[start:stop].sum()))

        progress.start("linking neurons", n, "neurons")
        with ThreadPoolExecutor(1) as ahead:  # the next block's numbers, while this one is linked
            pending = ahead.submit(draw, 0)
            for start in range(0, n, BLOCK):
                gumbel, far = pending.result()
                if start + BLOCK < n:
                    pending = ahead.submit(draw, start + BLOCK)
                ids = slice(start, min(n, start + BLOCK))
                size = ids.stop - start
                offsets, counts = _csr.offsets_of(totals[ids]), np.empty(size, np.int64)
                out = np.empty(int(offsets[-1]), np.int32)
                for_chunks(
                    _kernels_reservoir.choose_targets, size, cells, grid, points, names, xyz,
                    direction, start, near, radius, self.sigma, REACH, gumbel,
                    (totals - n_far)[ids], _csr.offsets_of(n_far[ids]), far, offsets, out, counts,
                    grain=64,
                )  # fmt: skip
                offsets, out = _csr.sort_unique(*_csr.compact(offsets, out, counts))
                yield np.diff(offsets), out
                progress.advance(size)
        progress.finish()

    def links(self, progress: Progress = SILENT) -> Relation:
        """All links as a relation of the neurons to themselves.

        Raises:
            KeyboardInterrupt: the work was cancelled; a part of a network is no network.
        """
        counts, targets = [], []
        for block_counts, block_targets in self.blocks(progress):
            if progress.cancelled:
                raise KeyboardInterrupt
            counts.append(block_counts)
            targets.append(block_targets)
        offsets = _csr.offsets_of(np.concatenate(counts))
        rows = np.arange(self.neurons, dtype=np.int32)
        return Relation(rows, offsets, np.concatenate(targets), self.neurons)


def _sort_into_cells(xyz: Array) -> tuple[int, Array, Array]:
    """(cells a side, int64[cells + 1] first point of each cell, int64[n] points cell by cell)."""
    n = len(xyz)
    grid = max(1, int((n / 8) ** (1 / 3)))
    place = np.minimum((xyz * grid).astype(np.int64), grid - 1)
    cell = (place[:, 0] * grid + place[:, 1]) * grid + place[:, 2]
    order = np.argsort(cell, kind="stable")
    return grid, _csr.offsets_of(np.bincount(cell, minlength=grid**3)), order
