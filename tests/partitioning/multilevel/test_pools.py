"""A pool, and an arena where what is free joins what lies beside it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnmap.partitioning.multilevel.engine_gpu import GpuEngine
from snnmap.partitioning.multilevel.pools import Arena, Pools
from tests.emulator.starting import start_gpu

UNIT = 512
TAKE = st.tuples(st.integers(1, 12), st.integers(0, UNIT - 1))  # units, bytes less
GIVE = st.integers(0, 30)  # which of those taken


@given(st.integers(0, 40), st.integers(0, 9), st.lists(TAKE | GIVE, max_size=60))
def test_places_of_an_arena(size: int, large: int, steps: list[tuple[int, int] | int]) -> None:
    """The first or last place that has room in one piece, apart from all others."""
    arena = Arena(size * UNIT + 7, large * UNIT)
    taken: dict[int, int] = {}  # units from a unit on
    for step in steps:
        if isinstance(step, int):
            if taken:
                place = sorted(taken)[step % len(taken)]
                del taken[place]
                arena.freed.append(place * UNIT)
            continue
        n, less = step
        busy = {u for p, m in taken.items() for u in range(p, p + m)}
        fits = [u for u in range(size - n + 1) if busy.isdisjoint(range(u, u + n))]
        found = arena.take(n * UNIT - less)
        if not fits:
            assert found is None
            continue
        place = fits[-1] if n * UNIT - less >= large * UNIT else fits[0]
        assert found == place * UNIT
        taken[place] = n
        assert arena.used == sum(taken.values()) * UNIT
    arena.freed.extend(place * UNIT for place in taken)
    arena.collect()
    assert arena.used == 0
    assert size == 0 or arena.take(size * UNIT) == 0  # all in one piece again


def test_small_arrays_do_not_split_what_large_ones_leave() -> None:
    arena = Arena(10 * UNIT, 3 * UNIT)
    places = [arena.take(n * UNIT) for n in (4, 1, 3, 1)]
    assert places == [6 * UNIT, 0, 3 * UNIT, UNIT]
    arena.freed.extend((6 * UNIT, 3 * UNIT))
    assert arena.take(8 * UNIT) == 2 * UNIT


class FullError(Exception):
    """The device has no more."""


class Block:
    """Taken from the device at once; arrays take some of it."""

    def __init__(self, size: int) -> None:
        self.size, self.used = size, 0


class Memory:
    """Of an array, until nobody refers to it."""

    def __init__(self, block: Block, n_bytes: int) -> None:
        self.block, self.n_bytes = block, n_bytes
        block.used += n_bytes

    def __del__(self) -> None:
        self.block.used -= self.n_bytes


class Alone:
    """Memory taken from the device as it is, until nobody refers to it."""

    device_id = 3

    def __init__(self, device: Device, n_bytes: int) -> None:
        if n_bytes > device.left:
            raise FullError
        device.left -= n_bytes
        self.device, self.size, self.ptr = device, n_bytes, 1 << 20

    def __del__(self) -> None:
        if hasattr(self, "size"):
            self.device.left += self.size


class Device:
    """Stands for CuPy: memory of a device, and a pool that takes blocks of it."""

    def __init__(self, capacity: int) -> None:
        self.left = capacity
        self.pool = Pool(self)
        self.cuda = SimpleNamespace(
            Memory=lambda n_bytes: Alone(self, n_bytes),
            UnownedMemory=lambda *given: SimpleNamespace(given=given),
            MemoryPointer=lambda memory, offset: SimpleNamespace(memory=memory, offset=offset),
            memory=SimpleNamespace(OutOfMemoryError=FullError),
        )

    def get_default_memory_pool(self) -> Pool:
        return self.pool


class Pool:
    """Keeps blocks of which arrays are gone."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.blocks: list[Block] = []
        self.bound = 0

    def malloc(self, n_bytes: int) -> Memory:
        for block in self.blocks:
            if block.size - block.used >= n_bytes:
                return Memory(block, n_bytes)
        over = self.bound and self.total_bytes() + n_bytes > self.bound
        if over or n_bytes > self.device.left:
            raise FullError
        self.device.left -= n_bytes
        self.blocks.append(Block(n_bytes))
        return Memory(self.blocks[-1], n_bytes)

    def free_all_blocks(self) -> None:
        self.device.left += sum(block.size for block in self.blocks if not block.used)
        self.blocks = [block for block in self.blocks if block.used]

    def used_bytes(self) -> int:
        return sum(block.used for block in self.blocks)

    def total_bytes(self) -> int:
        return sum(block.size for block in self.blocks)

    def get_limit(self) -> int:
        return self.bound

    def set_limit(self, size: int) -> None:
        self.bound = size


def reserved(left: int = 100 * UNIT) -> tuple[Device, Pools]:
    """A device of which 60 units are reserved, for arrays of one or more, those of 20 at the end."""
    device = Device(left)
    pools = Pools(device)
    pools.reserve(60 * UNIT, UNIT, 20 * UNIT)
    return device, pools


def test_arrays_lie_in_the_block() -> None:
    device, pools = reserved()
    assert pools.joins
    assert (device.left, pools.held_bytes(), pools.used_bytes()) == (40 * UNIT, 60 * UNIT, 0)
    small, large = pools.allocate(UNIT), pools.allocate(25 * UNIT)
    assert large.memory.given[:2] == ((1 << 20) + 35 * UNIT, 25 * UNIT)
    assert large.memory.given[3] == device.cuda.Memory(0).device_id
    assert small.memory.given[:2] == (1 << 20, UNIT)
    assert (device.left, pools.used_bytes()) == (40 * UNIT, 26 * UNIT)
    tiny = pools.allocate(UNIT - 1)
    assert (tiny.n_bytes, pools.held_bytes()) == (UNIT - 1, 61 * UNIT - 1)
    more = pools.allocate(35 * UNIT)  # where there is room
    assert device.pool.used_bytes() == UNIT - 1 + more.n_bytes
    del large
    assert pools.used_bytes() == UNIT + UNIT - 1 + 35 * UNIT


@pytest.mark.parametrize(
    ("again", "held"), [(60, 60), (50, 60), (47, 47), (70, 70), (0, 0), (200, 0)]
)
def test_a_block_is_kept_for_the_next_network_of_about_its_size(again: int, held: int) -> None:
    """One that the device does not have is done without."""
    device, pools = reserved()
    pools.reserve(again * UNIT, UNIT, 20 * UNIT)
    assert (pools.held_bytes(), pools.joins) == (held * UNIT, held > 0)
    assert device.left == (100 - held) * UNIT
    array = pools.allocate(2 * UNIT)
    assert device.pool.used_bytes() == (0 if held else array.n_bytes)


def test_who_has_a_place_keeps_the_block() -> None:
    device, pools = reserved(200 * UNIT)
    array: Any = pools.allocate(2 * UNIT)
    pools.reserve(60 * UNIT, UNIT, 20 * UNIT)
    assert (device.left, pools.used_bytes()) == (80 * UNIT, 0)
    del array
    assert device.left == 140 * UNIT


def test_what_is_reserved_counts_apart_from_what_may_be_kept() -> None:
    device, pools = reserved(1000)
    assert not pools.joins  # there is no such block
    pools.keep_within(30)
    assert pools.limit() == 30
    pools.allocate(20)
    assert device.pool.total_bytes() == 20
    array = pools.allocate(25)  # beyond the limit, unless blocks are given back
    assert (device.pool.total_bytes(), pools.limit()) == (25, 30)
    more = pools.allocate(10)  # beyond the limit, for once
    assert (device.pool.used_bytes(), pools.limit()) == (array.n_bytes + more.n_bytes, 30)


@pytest.mark.parametrize("arena", [False, True])
def test_no_more_is_taken_than_allowed(arena: bool) -> None:
    _, pools = reserved(100 * UNIT if arena else 1000)
    kept = pools.allocate(UNIT) if arena else None
    pools.allowed = 60 * UNIT * arena + 40
    pools.keep_within(50)
    assert pools.limit() == 40
    pools.keep_within(30)
    array = pools.allocate(35)  # beyond what may be kept
    with pytest.raises(FullError):
        pools.allocate(6)
    assert (pools.limit(), pools.used_bytes()) == (30, array.n_bytes + UNIT * arena)
    del kept


def test_what_no_array_takes_goes_before_the_device_is_full() -> None:
    device, pools = reserved()
    pools.allocate(UNIT - 1)
    array = pools.allocate(98 * UNIT)
    assert device.left == 2 * UNIT
    with pytest.raises(FullError):
        pools.allocate(3 * UNIT)
    del array
    pools.release()
    assert device.left == 100 * UNIT


@pytest.mark.gpu
def test_arrays_of_cupy_lie_in_the_arena() -> None:
    device = start_gpu(GpuEngine, "device").device
    xp, pools = device.xp, device.pools
    pools.reserve(1 << 22, 1 << 12, 1 << 20)
    try:
        with device.guard():
            first = int(pools._arena.memory.ptr)
            small, large = xp.arange(1 << 10), xp.full(1 << 18, 7)
            assert (int(small.data.ptr), int(large.data.ptr)) == (first, first + (1 << 21))
            assert pools.used_bytes() >= (1 << 21) + (1 << 13)
            half = large[: 1 << 17]
            del large
            other = xp.full(1 << 17, 3)  # beside it, as part of it is still there
            assert int(other.data.ptr) == first + (1 << 20)
            assert int(half.sum()) == 7 << 17
            del half, other
            again = xp.zeros(1 << 18)
            assert int(again.data.ptr) == first + (1 << 21)
            tiny = xp.arange(1 << 8)  # of CuPy's pool
            assert not first <= int(tiny.data.ptr) < first + (1 << 22)
            assert np.array_equal(xp.asnumpy(small), np.arange(1 << 10))
            del small, again, tiny
    finally:
        pools.reserve(0, 0, 0)
    assert not pools.joins
