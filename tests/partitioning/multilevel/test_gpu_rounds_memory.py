"""How tiles, stripes and blocks of memory of rounds are sized."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from snnmap.partitioning.multilevel.gpu_rounds_memory import _next_size, _spread


@given(
    st.integers(1, 1 << 22), st.integers(1, 5000), st.integers(1, 132), st.integers(1, 30000),
    st.integers(0, 1 << 31),
)  # fmt: skip
def test_tiles_and_stripes_for_all_blocks(
    n: int, n_parts: int, blocks: int, most: int, n_pins: int
) -> None:
    tile, stripes = _spread(n, n_parts, blocks, most, n_pins)
    assert 1 <= tile <= most
    assert 1 <= stripes <= n_parts
    assert -(-n // tile) * stripes <= max(blocks, -(-n // tile))
    assert stripes == 1 or 12 * stripes * n <= n_pins


def test_almost_no_block_is_idle() -> None:
    tile, stripes = _spread(262144, 600, 132, 26000, 227 * 262144)
    assert (-(-262144 // tile), stripes) == (11, 12)


@given(n=st.integers(0, 1 << 40))
def test_sizes_are_few(n: int) -> None:
    size = _next_size(n)
    assert n <= size <= n + n // 4 + 1
    assert _next_size(size) == size
