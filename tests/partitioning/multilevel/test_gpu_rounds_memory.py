"""How tiles and blocks of memory of rounds are sized."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from snnmap.partitioning.multilevel.gpu_rounds_memory import _even, _next_size


@given(st.integers(1, 1 << 22), st.integers(0, 30000))
def test_tiles_are_even(n: int, most: int) -> None:
    tile = _even(n, most)
    assert 1 <= tile <= max(most, 1)
    assert -(-n // tile) == -(-n // max(min(most, n), 1))
    assert tile == 1 or (-(-n // tile)) * (tile - 1) < n


@given(n=st.integers(0, 1 << 40))
def test_sizes_are_few(n: int) -> None:
    size = _next_size(n)
    assert n <= size <= n + n // 4 + 1
    assert _next_size(size) == size
