"""Where arrays on the device take their memory: a pool for all, and a block for large ones."""

from __future__ import annotations

import sys
from typing import Any


class Pools:
    """Two pools of device memory.

    Levels of a network without structure are a few arrays that take almost all its memory, each of another size.
    What one leaves in CuPy's pool never joins what others leave, so holes as large as themselves
    would stay between them. Such arrays lie in one block, reserved before: there what is free joins what lies beside it.

    Args:
        xp: CuPy.
    """

    def __init__(self, xp: Any) -> None:
        self._xp = xp
        self._large = xp.cuda.MemoryPool()
        self._least = sys.maxsize

    @property
    def _all(self) -> tuple[Any, Any]:
        return self._xp.get_default_memory_pool(), self._large

    def used_bytes(self) -> int:
        """What arrays take."""
        return sum(int(pool.used_bytes()) for pool in self._all)

    def held_bytes(self) -> int:
        """What was taken from the device, for arrays and for what comes after them."""
        return sum(int(pool.total_bytes()) for pool in self._all)

    def release(self) -> None:
        """Give back what no array takes."""
        for pool in self._all:
            pool.free_all_blocks()

    def reserve(self, n_bytes: int, least: int) -> None:
        """Let arrays of at least `least` bytes lie in one block of `n_bytes`; 0: in none.

        Where the device has no such block they lie where there is room.
        """
        pool = self._large
        self._least = least if n_bytes else sys.maxsize
        if n_bytes and n_bytes <= pool.total_bytes() <= n_bytes + n_bytes // 4:
            return
        pool.free_all_blocks()
        if n_bytes > pool.total_bytes():
            try:
                pool.malloc(n_bytes)  # nobody takes it, so the pool keeps it
            except self._xp.cuda.memory.OutOfMemoryError:
                self._least = sys.maxsize

    def keep_within(self, n_bytes: int) -> None:
        """Let freed blocks, the reserved one apart, be kept only up to so many bytes in all."""
        pool = self._xp.get_default_memory_pool()
        pool.set_limit(size=int(pool.used_bytes()) + n_bytes)

    def limit(self) -> int:
        """What may be kept now; 0: all."""
        return int(self._xp.get_default_memory_pool().get_limit())

    def set_limit(self, n_bytes: int) -> None:
        """See :meth:`limit`."""
        self._xp.get_default_memory_pool().set_limit(size=n_bytes)

    def allocate(self, n_bytes: int) -> Any:
        """Memory of an array (``cupy.cuda.MemoryPointer``).

        At the limit first what is only kept is given back, and then the limit for once.

        Raises:
            OutOfMemoryError: CuPy's, if the device has no more.
        """
        full = self._xp.cuda.memory.OutOfMemoryError
        pool = self._all[n_bytes >= self._least]
        try:
            return pool.malloc(n_bytes)
        except full:
            self.release()
        try:
            return pool.malloc(n_bytes)
        except full:
            limit = pool.get_limit()
            pool.set_limit(size=0)
        try:
            return pool.malloc(n_bytes)
        finally:
            pool.set_limit(size=limit)
