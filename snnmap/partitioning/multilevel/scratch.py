"""Memory that the search works in, and between searches rounds of refinement."""

from __future__ import annotations

from typing import Any

import numpy as np

from snnmap.partitioning.multilevel.device import Device

Array = Any  # cupy.ndarray


class Scratch:
    """Memory that is kept for the next partition: freed and asked for again, it would be in pieces.

    The current stream keeps those apart who have it one after the other.

    Attributes:
        most: bytes that it may take.
        beside: bytes that the pool may keep besides.
        turn: another one since somebody but a search had the memory: nothing is as a search left it.

    Args:
        device: where it lies.
    """

    most: int = 0
    beside: int = 0
    turn: int = 0

    def __init__(self, device: Device) -> None:
        self._device = device
        self.release()

    def __len__(self) -> int:
        return len(self._memory)

    def release(self) -> None:
        """Give it back to the pool."""
        self._memory: Array = self._device.xp.empty(0, np.uint8)

    def borrow(self, least: int, wanted: int) -> Array:
        """uint8[n] for a search, `least` bytes or, if it may take more, up to `wanted`."""
        size = max(least, min(wanted, self.most))
        if len(self) < size:
            self.release()
            size = max(least, min(size, self._device.free_bytes() // 4))
            self._device.keep_within(self.beside + size)
            self._memory = self._device.xp.empty(size, np.uint8)
        return self._memory[:size]

    def lend(self, n_bytes: int) -> Array | None:
        """uint8[n_bytes] for what is done before the next search; None: there is not as much."""
        if len(self) < n_bytes:
            return None
        self.turn += 1
        return self._memory[:n_bytes]
