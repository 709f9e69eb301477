"""The rectangle of cores that a placer works in, so that cost follows the parts, not the chip."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil, sqrt
from typing import Any

import numpy as np

from snnmap.errors import ConfigError, LimitError
from snnmap.placement.metric import Metric, both_ways

Array = np.ndarray[Any, Any]
Core = tuple[int, int]

BLOCKED = -2
EMPTY = -1

SLACK = 0.2
"""Share by which each side of the needed rectangle grows for refinement, at least one core."""


@dataclass(frozen=True, eq=False)
class Region:
    """Cells (columns x rows of global core coordinates) and what stands in the way.

    Cell c is the core ``(xs[c // n_rows], ys[c % n_rows])``.

    Attributes:
        metric: distances.
        xs, ys: int64, ascending global coordinates of the columns and rows.
        blocked: bool[n_cells], cells that are dead, forbidden or outside the rectangle.
        fixed: int64[n_parts], cell of each part that must not move, -1 for the others.
    """

    metric: Metric
    xs: Array
    ys: Array
    blocked: Array
    fixed: Array

    @property
    def n_rows(self) -> int:
        """Rows of cells."""
        return len(self.ys)

    @property
    def shape(self) -> tuple[int, int]:
        """(columns, rows) of cells."""
        return len(self.xs), len(self.ys)

    @property
    def n_cells(self) -> int:
        """Columns x rows."""
        return len(self.xs) * len(self.ys)

    @cached_property
    def cores(self) -> Array:
        """int64[n_cells, 2]: global (x, y) of each cell."""
        return np.stack([np.repeat(self.xs, len(self.ys)), np.tile(self.ys, len(self.xs))], axis=1)

    @cached_property
    def free_cells(self) -> Array:
        """int64: cells that a movable part may take, ascending."""
        taken = self.blocked.copy()
        taken[self.fixed[self.fixed >= 0]] = True
        return np.flatnonzero(~taken)

    @cached_property
    def movable(self) -> Array:
        """int64: parts that are not fixed, ascending."""
        return np.flatnonzero(self.fixed < 0)

    @cached_property
    def tables(self) -> tuple[Array, Array]:
        """(int64[nx, nx], int64[ny, ny]): cost of a route = first[x, x'] + second[y, y'].

        On a hex-torus distances do not split by axis: the first table is then between all cells
        and the second is [[0]]; :meth:`axes` gives the indices in both cases.
        """
        if not self.metric.is_hex:
            return self.metric.axis_table(self.xs, 0), self.metric.axis_table(self.ys, 1)
        routers = self.metric.router_of(self.cores)
        table = np.empty((self.n_cells, self.n_cells), np.int64)
        for row, router in zip(table, routers, strict=True):
            row[:] = self.metric.cost(np.broadcast_to(router, routers.shape), routers)
        return both_ways(table), np.zeros((1, 1), np.int64)

    @cached_property
    def diameter(self) -> int:
        """Largest cost between two cells (an upper bound)."""
        return sum(int(table.max(initial=0)) for table in self.tables)

    def axes(self, cells: Array) -> tuple[Array, Array]:
        """Indices of `cells` into the two tables."""
        if self.metric.is_hex:
            return cells, np.zeros_like(cells)
        return cells // self.n_rows, cells % self.n_rows

    def including(self, cores: Array) -> Region:
        """The same cells, and those columns and rows that hold `cores` int[n, 2] as well.

        New cells are blocked unless they are among `cores`; all of `cores` are free.
        """
        xs, ys = np.union1d(self.xs, cores[:, 0]), np.union1d(self.ys, cores[:, 1])
        wide = Region(self.metric, xs, ys, np.ones(len(xs) * len(ys), bool), self.fixed.copy())
        wide.blocked[wide.cells_of(self.cores)] = self.blocked
        wide.blocked[wide.cells_of(np.asarray(cores, np.int64))] = False
        kept = self.fixed >= 0
        wide.fixed[kept] = wide.cells_of(self.cores[self.fixed[kept]])
        return wide

    def cells_of(self, cores: Array) -> Array:
        """int64[n]: cells of global cores int[n, 2] that lie in the region."""
        columns, rows = np.searchsorted(self.xs, cores[:, 0]), np.searchsorted(self.ys, cores[:, 1])
        return np.asarray(columns * self.n_rows + rows, np.int64)


@dataclass(frozen=True, eq=False)
class Site:
    """What a user asks of places: which cores are free and which parts are fixed.

    Attributes:
        metric: distances on the chip.
        unusable: int64[n, 2], distinct dead and forbidden cores that no part is fixed to.
        fixed: part -> core.
        n_parts: number of parts to place.
    """

    metric: Metric
    unusable: Array
    fixed: Mapping[int, Core]
    n_parts: int

    def region(self, *, slack: float = 0.0) -> Region:
        """A near-square rectangle with room for all parts that are not fixed.

        Args:
            slack: share by which to lengthen each side beyond what is needed.
        """
        n_free = self.n_parts - len(self.fixed)
        x0, y0, width, height = self._rectangle(n_free)
        if slack:
            x0, width = _grown(x0, width, slack, self.metric.profile.grid_width)
            y0, height = _grown(y0, height, slack, self.metric.profile.grid_height)
        anchors = np.array(sorted(self.fixed.values()), np.int64).reshape(-1, 2)
        xs = np.union1d(np.arange(x0, x0 + width), anchors[:, 0])
        ys = np.union1d(np.arange(y0, y0 + height), anchors[:, 1])
        inside = np.logical_and.outer(
            (xs >= x0) & (xs < x0 + width), (ys >= y0) & (ys < y0 + height)
        )
        region = Region(self.metric, xs, ys, ~inside.ravel(), np.full(self.n_parts, -1, np.int64))
        within = _within(self.unusable, x0, y0, width, height)
        region.blocked[region.cells_of(within)] = True
        for part, core in self.fixed.items():
            cell = region.cells_of(np.array([core]))[0]
            region.fixed[part] = cell
            region.blocked[cell] = False
        return region

    def _rectangle(self, n_free: int) -> tuple[int, int, int, int]:
        """(x0, y0, width, height): the cheapest shape with `n_free` free cells."""
        profile = self.metric.profile
        grid_w, grid_h = profile.grid_width, profile.grid_height
        best: tuple[float, tuple[int, int, int, int]] | None = None
        widest = min(grid_w, 4 * ceil(sqrt(n_free or 1)) * max(profile.tile) + 4)
        widths = [*range(1, widest + 1), *([grid_w] if widest < grid_w else [])]
        for width in widths:
            height = ceil(n_free / width) if n_free else 1
            while height <= grid_h:
                x0, y0 = self._origin(width, height)
                free = width * height - self._taken(x0, y0, width, height)
                if free >= n_free:
                    break
                height += max(1, (n_free - free) // width)
            else:
                continue
            score = self._spread(width, height)
            if best is None or score < best[0]:
                best = score, (x0, y0, width, height)
        return best[1] if best else (0, 0, grid_w, grid_h)

    def _origin(self, width: int, height: int) -> Core:
        """Where a rectangle starts: the corner of a chip, or around the fixed parts."""
        if not self.fixed:
            return 0, 0
        profile = self.metric.profile
        places = list(self.fixed.values())
        x = sum(p[0] for p in places) // len(places) - width // 2
        y = sum(p[1] for p in places) // len(places) - height // 2
        return (
            min(max(x, 0), profile.grid_width - width),
            min(max(y, 0), profile.grid_height - height),
        )

    def _taken(self, x0: int, y0: int, width: int, height: int) -> int:
        fixed = np.array(list(self.fixed.values()), np.int64).reshape(-1, 2)
        return sum(len(_within(c, x0, y0, width, height)) for c in (self.unusable, fixed))

    def _spread(self, width: int, height: int) -> float:
        """Mean cost between two random cores of a width x height rectangle, times three."""
        profile, metric = self.metric.profile, self.metric
        score = 0.0
        for axis, side in enumerate((width, height)):
            per_hop = (metric.cost_x, metric.cost_y)[axis]
            steps = side / profile.tile[axis] - 1
            crossings = ceil(side / (profile.width, profile.height)[axis]) - 1
            score += per_hop * max(steps - crossings, 0) + metric.cost_chip * crossings
        return score


def make_site(
    metric: Metric,
    n_parts: int,
    fixed: Mapping[int, Core],
    forbidden: Collection[Core],
    name: str = "network",
) -> Site:
    """Check what the user asks and count whether all parts find a core.

    Raises:
        ConfigError: a fixed or forbidden core is off the grid, dead or asked for twice.
        LimitError: fewer usable cores than parts.
    """
    profile = metric.profile
    for part, core in fixed.items():
        if not 0 <= part < n_parts:
            raise ConfigError(f"fixed part {part} does not exist; parts are 0..{n_parts - 1}")
        why = "forbidden" if core in forbidden else "dead"
        if not (0 <= core[0] < profile.grid_width and 0 <= core[1] < profile.grid_height):
            why = f"outside the grid of {profile.grid_width}x{profile.grid_height} cores"
        elif profile.is_usable(*core) and core not in forbidden:
            continue
        raise ConfigError(f"part {part} is fixed to core {core}, which is {why}")
    if len(set(fixed.values())) < len(fixed):
        twice = sorted(c for c in set(fixed.values()) if list(fixed.values()).count(c) > 1)
        raise ConfigError(f"several parts are fixed to core {twice[0]}; a core takes one part")
    for x, y in forbidden:
        if not (0 <= x < profile.grid_width and 0 <= y < profile.grid_height):
            raise ConfigError(
                f"forbidden core ({x}, {y}) is outside the grid of "
                f"{profile.grid_width}x{profile.grid_height} cores"
            )
    unusable = sorted(profile.dead_cores | set(forbidden))
    n_usable = profile.grid_width * profile.grid_height - len(unusable)
    if n_parts > n_usable:
        raise LimitError(
            f"placement of {name!r}",
            "cores needed",
            n_parts,
            n_usable,
            remedy=f"parts 0..{n_usable - 1} fit, the last {n_parts - n_usable} do not: use more "
            "chips (--set chips=2x1), a larger profile, fewer forbidden cores or fuller parts",
            profile=profile.name,
        )
    return Site(metric, np.array(unusable, np.int64).reshape(-1, 2), dict(fixed), n_parts)


def _within(cores: Array, x0: int, y0: int, width: int, height: int) -> Array:
    x, y = cores[:, 0], cores[:, 1]
    return np.asarray(cores[(x >= x0) & (x < x0 + width) & (y >= y0) & (y < y0 + height)])


def _grown(start: int, length: int, slack: float, limit: int) -> tuple[int, int]:
    extra = max(1, ceil(length * slack / 2))
    begin, end = max(0, start - extra), min(limit, start + length + extra)
    missing = length + 2 * extra - (end - begin)
    if begin == 0:
        end = min(limit, end + missing)
    else:
        begin = max(0, begin - missing)
    return begin, end - begin
