"""Two pools: large arrays lie in a block that is reserved for them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from snnmap.partitioning.multilevel.pools import Pools


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


class Device:
    """Stands for CuPy: memory of a device, and pools that take blocks of it."""

    def __init__(self, capacity: int) -> None:
        self.left = capacity
        self.small, self.large = Pool(self), Pool(self)
        self.cuda = SimpleNamespace(
            MemoryPool=lambda: self.large, memory=SimpleNamespace(OutOfMemoryError=FullError)
        )

    def get_default_memory_pool(self) -> Pool:
        return self.small


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


def test_large_arrays_lie_in_the_block() -> None:
    device = Device(1000)
    pools = Pools(device)
    pools.reserve(600, 50)
    assert (device.left, pools.held_bytes(), pools.used_bytes()) == (400, 600, 0)
    arrays = [pools.allocate(n_bytes) for n_bytes in (50, 300, 200)]
    assert (device.left, device.large.used_bytes(), pools.used_bytes()) == (400, 550, 550)
    arrays.append(pools.allocate(49))
    assert (device.left, device.small.used_bytes(), pools.held_bytes()) == (351, 49, 649)
    arrays.append(pools.allocate(51))  # where there is room
    assert (device.left, device.large.total_bytes()) == (300, 651)


@pytest.mark.parametrize(
    ("again", "held"), [(600, 600), (500, 600), (470, 470), (700, 700), (0, 0), (2000, 0)]
)
def test_a_block_is_kept_for_the_next_network_of_about_its_size(again: int, held: int) -> None:
    """One that the device does not have is done without."""
    device = Device(1000)
    pools = Pools(device)
    pools.reserve(600, 50)
    pools.reserve(again, 50)
    assert device.large.total_bytes() == held
    array = pools.allocate(60)
    assert device.small.used_bytes() == (0 if held else array.n_bytes)


def test_what_is_reserved_counts_apart_from_what_may_be_kept() -> None:
    device = Device(1000)
    pools = Pools(device)
    pools.reserve(600, 50)
    pools.keep_within(30)
    assert pools.limit() == 30
    pools.allocate(20)
    assert device.small.total_bytes() == 20
    array = pools.allocate(25)  # beyond the limit, unless blocks are given back
    assert (device.small.total_bytes(), pools.limit()) == (25, 30)
    more = pools.allocate(10)  # beyond the limit, for once
    assert (device.small.used_bytes(), pools.limit()) == (array.n_bytes + more.n_bytes, 30)


def test_what_no_array_takes_goes_before_the_device_is_full() -> None:
    device = Device(1000)
    pools = Pools(device)
    pools.reserve(600, 50)
    pools.allocate(40)
    array = pools.allocate(980)
    assert device.left == 1000 - array.n_bytes
    with pytest.raises(FullError):
        pools.allocate(21)
    del array
    pools.release()
    assert device.left == 1000
