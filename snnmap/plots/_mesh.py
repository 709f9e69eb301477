"""Drawing primitives: a window of the mesh, its cells and its links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, LogNorm, Normalize
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

Array = np.ndarray[Any, Any]

UNUSED = "#e4e4e4"
DEAD = "#5a5a5a"
NIGHT = "#161616"
MIN_LABEL_SIZE = 4.5  # points
MAX_LABELLED_CELLS = 160
"""Beyond this many cells in the window, numbers inside them would not be readable."""


@dataclass(frozen=True)
class Window:
    """The part of the grid that is drawn: x in [x0, x1], y in [y0, y1], both inclusive."""

    x0: int
    y0: int
    x1: int
    y1: int
    grid_width: int
    grid_height: int

    @classmethod
    def around(cls, cells: Array, grid_width: int, grid_height: int) -> Window:
        """The used cells (int[n, 2]) and a margin of one cell, or everything if it is small."""
        if (grid_width <= 16 and grid_height <= 16) or not len(cells):
            return cls(
                0, 0, min(grid_width, 64) - 1, min(grid_height, 64) - 1, grid_width, grid_height
            )
        (x0, y0), (x1, y1) = cells.min(axis=0) - 1, cells.max(axis=0) + 1
        return cls(
            max(int(x0), 0),
            max(int(y0), 0),
            min(int(x1), grid_width - 1),
            min(int(y1), grid_height - 1),
            grid_width,
            grid_height,
        )

    @property
    def width(self) -> int:
        """Cells along x."""
        return self.x1 - self.x0 + 1

    @property
    def height(self) -> int:
        """Cells along y."""
        return self.y1 - self.y0 + 1

    @property
    def is_cropped(self) -> bool:
        """Whether the grid goes on outside."""
        return self.width < self.grid_width or self.height < self.grid_height

    def image(self, cells: Array, values: Array) -> Array:
        """float64[height, width]: values at their cells, NaN elsewhere."""
        image = np.full((self.height, self.width), np.nan)
        inside = (
            (cells[:, 0] >= self.x0)
            & (cells[:, 0] <= self.x1)
            & (cells[:, 1] >= self.y0)
            & (cells[:, 1] <= self.y1)
        )
        x, y = cells[inside, 0] - self.x0, cells[inside, 1] - self.y0
        image[y, x] = np.asarray(values, np.float64)[inside]
        return image

    def caption(self) -> str:
        """Which part of the grid is shown."""
        grid = f"{self.grid_width} x {self.grid_height}"
        return f"used corner of the {grid} grid" if self.is_cropped else f"{grid} grid"


def draw_cells(
    axes: Axes,
    window: Window,
    cells: Array,
    values: Array,
    *,
    cmap: str | Colormap,
    norm: Normalize,
    dead: Array | None = None,
) -> AxesImage:
    """Colour each cell by its value; unused cells light grey, dead ones dark grey."""
    axes.set_facecolor(UNUSED)
    extent = (window.x0 - 0.5, window.x1 + 0.5, window.y0 - 0.5, window.y1 + 0.5)
    if dead is not None and len(dead):
        axes.imshow(
            window.image(dead, np.ones(len(dead))),
            cmap=_flat(DEAD),
            extent=extent,
            origin="lower",
            interpolation="nearest",
        )
    picture = axes.imshow(
        window.image(cells, values),
        cmap=cmap,
        norm=norm,
        extent=extent,
        origin="lower",
        interpolation="nearest",
    )
    frame(axes, window)
    return picture


def frame(axes: Axes, window: Window, *, grid: bool = True) -> None:
    """Limits, ticks on whole cores, borders of cells that are large enough, axis names."""
    axes.set_xlim(window.x0 - 0.5, window.x1 + 0.5)
    axes.set_ylim(window.y0 - 0.5, window.y1 + 0.5)
    axes.set_aspect("equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(8, integer=True))
    if grid and window.width * window.height <= 40 * 40:
        x, y = np.arange(window.x0, window.x1) + 0.5, np.arange(window.y0, window.y1) + 0.5
        low, high = (window.x0 - 0.5, window.y0 - 0.5), (window.x1 + 0.5, window.y1 + 0.5)
        borders = [[(at, low[1]), (at, high[1])] for at in x.tolist()]
        borders += [[(low[0], at), (high[0], at)] for at in y.tolist()]
        axes.add_collection(LineCollection(borders, colors="white", linewidths=0.6), autolim=False)
    axes.set_xlabel("core x")
    axes.set_ylabel("core y")


def label_cells(
    axes: Axes, window: Window, picture: AxesImage, cells: Array, texts: list[str]
) -> None:
    """Write a short text into every cell if the cells are few and wide enough for it."""
    if window.width * window.height > MAX_LABELLED_CELLS or not texts:
        return
    box = axes.get_window_extent().transformed(axes.figure.dpi_scale_trans.inverted())
    across = 72 * min(box.width / window.width, box.height / window.height)
    fits = across / (0.65 * max(len(text) for text in texts))  # a digit is about 0.6 em wide
    size = float(np.clip(min(150 / max(window.width, window.height), fits), 0, 10))
    if size < MIN_LABEL_SIZE:
        return
    values = np.asarray(picture.get_array(), np.float64)
    for (x, y), text in zip(cells.tolist(), texts, strict=True):
        if not (window.x0 <= x <= window.x1 and window.y0 <= y <= window.y1):
            continue
        rgba = picture.to_rgba(values[y - window.y0, x - window.x0])
        dark = 0.299 * rgba[0] + 0.587 * rgba[1] + 0.114 * rgba[2] < 0.5
        axes.text(
            x, y, text, ha="center", va="center", fontsize=size, color="white" if dark else "black"
        )


def draw_links(
    axes: Axes,
    window: Window,
    starts: Array,
    steps: Array,
    loads: Array,
    *,
    routers: Array,
    norm: Normalize,
    cmap: str,
) -> LineCollection:
    """One short stroke a directed link, each direction on its own side, coloured by load.

    Args:
        axes: where.
        window: what part of the grid.
        starts: int[n_links, 2], router that a link leaves.
        steps: int[n_links, 2], -1, 0 or 1 along each axis; a link that wraps around a torus leaves
            the grid.
        loads: float[n_links].
        routers: int[n, 2], routers with a used core, marked by a dot.
        norm: from loads to 0..1.
        cmap: name of the colour map.
    """
    a, step = np.asarray(starts, np.float64), np.asarray(steps, np.float64)
    side = np.stack([step[:, 1], -step[:, 0]], axis=1) * 0.14
    segments = np.stack([a + 0.16 * step + side, a + 0.84 * step + side], axis=1)
    span = max(window.width, window.height)
    order = np.argsort(loads, kind="stable")
    lines = LineCollection(
        list(segments[order]),
        cmap=cmap,
        norm=norm,
        linewidths=float(np.clip(70 / span, 0.8, 6)),
        capstyle="butt",
    )
    lines.set_array(np.asarray(loads, np.float64)[order])
    axes.set_facecolor(NIGHT)
    axes.add_collection(lines)
    size = float(np.clip(70 / span, 1, 8))
    x, y = np.unique(routers, axis=0).T
    axes.scatter(x, y, s=size**2, color="#9a9a9a", linewidths=0)
    frame(axes, window, grid=False)
    return lines


def load_norm(values: Array) -> Normalize:
    """Linear from 0, or logarithmic where loads spread over more than a factor of 200."""
    positive = np.asarray(values, np.float64)
    positive = positive[positive > 0]
    if not len(positive):
        return Normalize(0, 1)
    high, low = float(positive.max()), float(np.quantile(positive, 0.02))
    return LogNorm(max(low, high * 1e-6), high) if high / low > 200 else Normalize(0, high)


def _flat(colour: str) -> Colormap:
    from matplotlib.colors import ListedColormap

    return ListedColormap([colour])
