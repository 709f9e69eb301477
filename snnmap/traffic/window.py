"""The routers that spikes can pass: a window of the chip that follows the cores in use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from snnmap.placement.metric import Metric

Array = np.ndarray[Any, Any]

STEPS = np.array([(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1)])
"""Router step of each direction, in the order of :data:`snnmap.traffic.report.DIRECTIONS`."""


@dataclass(frozen=True, eq=False)
class Window:
    """A rectangle of routers that holds every route between the given ones.

    Attributes:
        metric: the chip.
        origin: global router at window position (0, 0).
        shape: (nx, ny) routers. A side is either long enough for all routes or a whole ring of a
            torus, so positions are always taken modulo the shape.
        routers: int64[n_parts, 2], global router of each part.
    """

    metric: Metric
    origin: tuple[int, int]
    shape: tuple[int, int]
    routers: Array

    @classmethod
    def around(cls, metric: Metric, routers: Array) -> Window:
        """The smallest window for routers int64[n_parts, 2]."""
        origin, shape = [0, 0], [1, 1]
        for axis in (0, 1):
            if not len(routers):
                continue
            low, high = int(routers[:, axis].min()), int(routers[:, axis].max())
            ring = metric.routers[axis]
            whole = metric.wraps and 2 * (high - low) >= ring
            origin[axis], shape[axis] = (0, ring) if whole else (low, high - low + 1)
        return cls(metric, (origin[0], origin[1]), (shape[0], shape[1]), routers)

    @property
    def n_routers(self) -> int:
        """Routers of the window."""
        return self.shape[0] * self.shape[1]

    @property
    def n_directions(self) -> int:
        """Links that leave a router: 4, on a hex-torus 6."""
        return 6 if self.metric.is_hex else 4

    @cached_property
    def local(self) -> tuple[Array, Array]:
        """(int64[n_parts] x, int64[n_parts] y) of each part's router within the window."""
        local = self.routers - np.array(self.origin)
        return np.ascontiguousarray(local[:, 0]), np.ascontiguousarray(local[:, 1])

    @cached_property
    def vectors(self) -> Array:
        """int32[2 nx - 1, 2 ny - 1, 2]: route vector by (difference of positions + n - 1)."""
        nx, ny = self.shape
        dx, dy = np.meshgrid(np.arange(1 - nx, nx), np.arange(1 - ny, ny), indexing="ij")
        steps = np.stack([dx.ravel(), dy.ravel()], axis=1)
        vectors = self.metric.vectors(np.zeros_like(steps), steps)
        return vectors.astype(np.int32).reshape(2 * nx - 1, 2 * ny - 1, 2)

    @cached_property
    def off_chip(self) -> Array:
        """bool[n_directions, nx, ny]: whether a link leads to another chip."""
        x = np.arange(self.shape[0]) + self.origin[0]
        y = np.arange(self.shape[1]) + self.origin[1]
        at = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1)
        chip = self.metric.chip_of_router
        return np.stack(
            [(chip(at) != chip(at + step)).any(axis=-1) for step in STEPS[: self.n_directions]]
        )

    def arriving(self, links: Array) -> Array:
        """[nx, ny]: sum over the links that lead to each router, from loads by direction."""
        total = np.zeros(self.shape, links.dtype)
        for loads, step in zip(links, STEPS[: self.n_directions], strict=True):
            total += np.roll(loads, tuple(step), axis=(0, 1))
        return total

    def at_routers(self, values: Array) -> Array:
        """[nx, ny]: values[n_parts] summed over the parts of each router."""
        total = np.zeros(self.shape, values.dtype)
        np.add.at(total, self.local, values)
        return total
