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
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from snnmap import _csr
from snnmap.errors import NetworkError
from snnmap.networks import _kernels_reservoir
from snnmap.networks.relations import Relation
from snnmap.parallel import for_chunks
from snnmap.progress import SILENT, Progress

if TYPE_CHECKING:
    from snnmap.partitioning.multilevel.device import Device

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

    def blocks(
        self, progress: Progress = SILENT, device: Device | None = None
    ) -> Iterator[tuple[Array, Array]]:
        """Draw the links, a block of neurons after the other.

        Args:
            progress: told of every block.
            device: a GPU to link neurons on; the links are the same.

        Yields:
            (int64[block] fan-outs, int32[sum] targets, ascending for each neuron).
        """
        ground, n = Ground(self), self.neurons
        chooser: Chooser = CpuChooser(ground)
        if device is not None:
            from snnmap.networks.reservoir_gpu import GpuChooser, fits

            chooser = GpuChooser(ground, device) if fits(ground, device) else chooser

        def draw(start: int) -> tuple[Any, Array]:
            stop = min(n, start + BLOCK)
            noise = chooser.draw(ground.rng, stop - start)
            return noise, ground.rng.integers(0, n, int(ground.n_far[start:stop].sum()))

        progress.start("linking neurons", n, "neurons")
        with ThreadPoolExecutor(1) as ahead:  # the next block's numbers, while this one is linked
            pending = ahead.submit(draw, 0)
            for start in range(0, n, BLOCK):
                noise, far = pending.result()
                if start + BLOCK < n:
                    pending = ahead.submit(draw, start + BLOCK)
                stop = min(n, start + BLOCK)
                offsets, targets = chooser.choose(start, stop, noise, far)
                yield np.diff(offsets), targets
                progress.advance(stop - start)
        progress.finish()

    def links(self, progress: Progress = SILENT, device: Device | None = None) -> Relation:
        """All links as a relation of the neurons to themselves; arguments as of :meth:`blocks`.

        Raises:
            KeyboardInterrupt: the work was cancelled; a part of a network is no network.
        """
        counts, targets = [], []
        for block_counts, block_targets in self.blocks(progress, device):
            if progress.cancelled:
                raise KeyboardInterrupt
            counts.append(block_counts)
            targets.append(block_targets)
        offsets = _csr.offsets_of(np.concatenate(counts))
        rows = np.arange(self.neurons, dtype=np.int32)
        return Relation(rows, offsets, np.concatenate(targets), self.neurons)


class Ground:
    """What the neurons of a reservoir share while they are linked.

    Attributes:
        reservoir: its parameters.
        rng: the random numbers, up to where they are drawn.
        xyz: float64[n, 3] places.
        direction: int64[n], +1 or -1.
        totals, n_far: int64[n] fan-outs, and the far links among them.
        near: how many of the nearest points, itself included, are candidates.
        grid, cells, order: cells a side; int64[grid^3 + 1] first point of each cell; int64[n]
            neurons cell by cell.
        points: float64[n, 3] places in that order.
        radius: of a ball that mostly holds the candidates.
    """

    def __init__(self, reservoir: Reservoir) -> None:
        self.reservoir, n = reservoir, reservoir.neurons
        forward = reservoir.forward
        self.rng = np.random.default_rng(reservoir.seed)
        self.xyz = self.rng.random((n, 3))
        self.direction = self.rng.choice((-1, 1), size=n, p=(round(1 - forward, 12), forward))
        self.totals = self.rng.poisson(reservoir.fan_out, n)
        self.n_far = np.rint(reservoir.long_range * self.totals).astype(np.int64)
        self.near = min(n, int(5.0 * reservoir.fan_out) + 64)
        self.grid, self.cells, self.order = _sort_into_cells(self.xyz)
        self.points = self.xyz[self.order]
        self.radius = 1.05 * (3 * self.near / (4 * np.pi * n)) ** (1 / 3)


class Chooser(Protocol):
    """Who chooses targets, a block of neurons after the other."""

    def draw(self, rng: np.random.Generator, size: int) -> Any:
        """Take the noise of the next `size` neurons from the generator."""

    def choose(self, start: int, stop: int, noise: Any, far: Array) -> tuple[Array, Array]:
        """(int64[size + 1] offsets, int32 targets, ascending) of neurons start..stop - 1.

        Args:
            start: the first neuron.
            stop: the neuron after the last.
            noise: what :meth:`draw` gave.
            far: int64, targets of the far links.
        """


class CpuChooser:
    """Chooses on the CPU."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self._names = ground.order.astype(np.int32)

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """float64[size, near] Gumbel noise."""
        return rng.gumbel(size=(size, self.ground.near))

    def choose(self, start: int, stop: int, noise: Array, far: Array) -> tuple[Array, Array]:
        """See :class:`Chooser`."""
        g, size, ids = self.ground, stop - start, slice(start, stop)
        offsets, counts = _csr.offsets_of(g.totals[ids]), np.empty(size, np.int64)
        out = np.empty(int(offsets[-1]), np.int32)
        for_chunks(
            _kernels_reservoir.choose_targets, size, g.cells, g.grid, g.points, self._names, g.xyz,
            g.direction, start, g.near, g.radius, g.reservoir.sigma, REACH, noise,
            (g.totals - g.n_far)[ids], _csr.offsets_of(g.n_far[ids]), far, offsets, out, counts,
            grain=64,
        )  # fmt: skip
        return _csr.sort_unique(*_csr.compact(offsets, out, counts))


def _sort_into_cells(xyz: Array) -> tuple[int, Array, Array]:
    """(cells a side, int64[cells + 1] first point of each cell, int64[n] points cell by cell)."""
    n = len(xyz)
    grid = max(1, int((n / 8) ** (1 / 3)))
    place = np.minimum((xyz * grid).astype(np.int64), grid - 1)
    cell = (place[:, 0] * grid + place[:, 1]) * grid + place[:, 2]
    order = np.argsort(cell, kind="stable")
    return grid, _csr.offsets_of(np.bincount(cell, minlength=grid**3)), order
