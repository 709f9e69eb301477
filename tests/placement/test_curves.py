"""Curves visit every cell once and stay together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.placement.curves import CURVES, hilbert, quadtree, snake, z_order

sides = st.integers(1, 40)


def jumps(path: np.ndarray) -> np.ndarray:
    return np.abs(np.diff(path, axis=0)).sum(axis=1)


@given(sides, sides, st.sampled_from(sorted(CURVES)))
@settings(deadline=None)
def test_every_cell_once(width: int, height: int, name: str) -> None:
    path = CURVES[name](width, height)
    assert path.shape == (width * height, 2)
    assert (path >= 0).all()
    assert (path < [width, height]).all()
    assert len({tuple(cell) for cell in path.tolist()}) == width * height


@given(sides, sides)
@settings(deadline=None)
def test_hilbert_steps_to_neighbours(width: int, height: int) -> None:
    """One diagonal step is left only if the longer side is odd and the shorter even."""
    steps = jumps(hilbert(width, height))
    longer, shorter = max(width, height), min(width, height)
    spare = 1 if longer % 2 and not shorter % 2 and shorter > 2 else 0
    assert np.count_nonzero(steps != 1) <= spare
    assert steps.max(initial=1) <= 1 + spare


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_hilbert_is_the_classical_curve_on_powers_of_two(k: int) -> None:
    """Every aligned 2^j block is visited without leaving it."""
    path = hilbert(2**k, 2**k)
    for j in range(k):
        blocks = [tuple(cell) for cell in (path >> j).tolist()]
        entered = [b for i, b in enumerate(blocks) if i == 0 or b != blocks[i - 1]]
        assert len(entered) == len(set(entered)) == 4 ** (k - j)


@given(sides, sides)
@settings(deadline=None)
def test_snake_steps_to_neighbours(width: int, height: int) -> None:
    assert (jumps(snake(width, height)) == 1).all()


def test_z_order_interleaves_bits() -> None:
    expected = [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (3, 0), (2, 1), (3, 1)]
    assert z_order(4, 2).tolist() == [list(cell) for cell in expected]


@pytest.mark.parametrize(("width", "height"), [(8, 8), (6, 10), (5, 3)])
def test_quadtree_fills_quadrants_one_after_another(width: int, height: int) -> None:
    path = quadtree(width, height)
    left, low = (width + 1) // 2, (height + 1) // 2
    quadrant = [(int(x >= left), int(y >= low)) for x, y in path.tolist()]
    order = [q for i, q in enumerate(quadrant) if i == 0 or q != quadrant[i - 1]]
    assert order == [(0, 0), (0, 1), (1, 1), (1, 0)]
