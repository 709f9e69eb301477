"""Space-filling curves over a rectangle of cells: the order in which cells are taken."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Vector = tuple[int, int]


def hilbert(width: int, height: int) -> Array:
    """int64[width * height, 2]: cells (x, y) along a Hilbert curve for any rectangle.

    Consecutive cells are neighbours wherever parity allows (a diagonal step remains only when the
    longer side is odd and the shorter even). The rectangle is halved along its longer side, or cut
    into an entry, a body and an exit whose curves are turned to meet, until one cell wide strips
    remain. With width = height = 2^k it is the classical curve.
    """
    known: dict[tuple[Vector, Vector], Array] = {}
    if width >= height:
        return _hilbert(known, (width, 0), (0, height))
    return _hilbert(known, (0, height), (width, 0))


def _hilbert(known: dict[tuple[Vector, Vector], Array], along: Vector, across: Vector) -> Array:
    """The curve that enters at (0, 0), runs along `along` and fills `across` of width.

    Rectangles come again and again; those seen are `known`.
    """
    if (along, across) not in known:
        known[along, across] = _hilbert_anew(known, along, across)
    return known[along, across]


def _hilbert_anew(
    known: dict[tuple[Vector, Vector], Array], along: Vector, across: Vector
) -> Array:
    length, breadth = abs(sum(along)), abs(sum(across))
    step, side = _unit(along), _unit(across)
    if breadth <= 1 or length == 1:
        straight = step if breadth == 1 else side
        return np.outer(np.arange(length * breadth), straight)
    half, half_across = _half(along), _half(across)
    if 2 * length > 3 * breadth:
        if abs(sum(half)) % 2 and length > 2:
            half = _plus(half, step)
        second = _hilbert(known, _minus(along, half), across) + half
        return np.concatenate([_hilbert(known, half, across), second])
    if abs(sum(half_across)) % 2 and breadth > 2:
        half_across = _plus(half_across, side)
    corner = _plus(_minus(along, step), _minus(half_across, side))
    back = _minus((0, 0), half_across), _minus((0, 0), _minus(along, half))
    return np.concatenate(
        [
            _hilbert(known, half_across, half),
            _hilbert(known, along, _minus(across, half_across)) + half_across,
            _hilbert(known, *back) + corner,
        ]
    )


def _unit(v: Vector) -> Vector:
    return (v[0] > 0) - (v[0] < 0), (v[1] > 0) - (v[1] < 0)


def _half(v: Vector) -> Vector:
    return int(v[0] / 2), int(v[1] / 2)


def _plus(a: Vector, b: Vector) -> Vector:
    return a[0] + b[0], a[1] + b[1]


def _minus(a: Vector, b: Vector) -> Vector:
    return a[0] - b[0], a[1] - b[1]


def snake(width: int, height: int) -> Array:
    """int64[n, 2]: row by row along the shorter side, every second row backwards."""
    if width > height:
        return snake(height, width)[:, ::-1]
    y, x = np.divmod(np.arange(width * height, dtype=np.int64), width)
    return np.stack([np.where(y % 2, width - 1 - x, x), y], axis=1)


def z_order(width: int, height: int) -> Array:
    """int64[n, 2]: cells by their interleaved bits (Morton order); cells outside are skipped."""
    n_bits = max(width - 1, height - 1, 1).bit_length()
    x, y = np.divmod(np.arange(width * height, dtype=np.int64), height)
    keys = np.zeros(width * height, np.int64)
    for bit in range(n_bits):
        keys |= ((x >> bit) & 1) << (2 * bit)
        keys |= ((y >> bit) & 1) << (2 * bit + 1)
    order = np.argsort(keys, kind="stable")
    return np.stack([x[order], y[order]], axis=1)


def quadtree(width: int, height: int) -> Array:
    """int64[n, 2]: cells by recursive quartering of the rectangle itself, quadrants in a U turn.

    Unlike Z-order the halves follow the rectangle's own sides, so no quadrant is mostly outside;
    quadrants are visited so that consecutive ones share a side.
    """
    cells: list[Vector] = []
    _quadtree(cells, 0, 0, width, height)
    return np.array(cells, np.int64).reshape(-1, 2)


def _quadtree(cells: list[Vector], x: int, y: int, width: int, height: int) -> None:
    if width < 1 or height < 1:
        return
    if width == 1 and height == 1:
        cells.append((x, y))
        return
    left, low = (width + 1) // 2, (height + 1) // 2
    _quadtree(cells, x, y, left, low)
    _quadtree(cells, x, y + low, left, height - low)
    _quadtree(cells, x + left, y + low, width - left, height - low)
    _quadtree(cells, x + left, y, width - left, low)


CURVES = {"hilbert": hilbert, "snake": snake, "z-order": z_order, "quadtree": quadtree}
"""Command-line name -> curve."""
