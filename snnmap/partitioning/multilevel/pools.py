"""Where arrays on the device take their memory: CuPy's pool, and an arena for networks without structure."""

from __future__ import annotations

from bisect import bisect
from collections import deque
from typing import Any

_ALIGNED = 512  # bytes


class Arena:
    """Places in one block of memory: large arrays lie at its end, others at its beginning.

    Each finds the first place that has room, from its own end of the block; what is free joins what lies beside it. So
    small arrays that live long never split what large ones leave.

    Attributes:
        size: bytes.
        used: bytes that are taken.
        freed: places that are not taken any more, put in by whoever had them, at any time and in any thread.

    Args:
        size: bytes of the block.
        large: bytes of an array that lies at the end.
        memory: the block; it is kept as long as somebody has a place there.
    """

    def __init__(self, size: int, large: int, memory: Any = None) -> None:
        self.size, self.large, self.memory = size // _ALIGNED * _ALIGNED, large, memory
        self.used = 0
        self.freed: deque[int] = deque()
        # (first, end) of each, ascending, none beside another.
        self._free = [(0, self.size)] if self.size else []
        self._taken: dict[int, int] = {}  # end by first place

    def take(self, n_bytes: int) -> int | None:
        """First place of so many bytes, or None if they have no room."""
        if self.freed:
            self.collect()
        size, free = -(-n_bytes // _ALIGNED) * _ALIGNED, self._free
        at_end = n_bytes >= self.large
        for i in reversed(range(len(free))) if at_end else range(len(free)):
            first, end = free[i]
            if end - first < size:
                continue
            place = end - size if at_end else first
            left = (first, place) if at_end else (place + size, end)
            free[i : i + 1] = [left] if left[0] < left[1] else []
            self._taken[place] = place + size
            self.used += size
            return place
        return None

    def collect(self) -> None:
        """Make free what is not taken any more."""
        while self.freed:
            first = self.freed.popleft()
            end, free = self._taken.pop(first), self._free
            self.used -= end - first
            i = bisect(free, (first, end))
            before, after = i > 0 and free[i - 1][1] == first, i < len(free) and free[i][0] == end
            joined = free[i - 1][0] if before else first, free[i][1] if after else end
            free[i - before : i + after] = [joined]


class _Piece:
    """Memory of an array in an arena, until nobody refers to it."""

    __slots__ = ("_arena", "_place")

    def __init__(self, arena: Arena, place: int) -> None:
        self._arena, self._place = arena, place

    def __del__(self) -> None:
        self._arena.freed.append(self._place)


class Pools:
    """CuPy's pool of device memory, and an arena.

    Levels of a network without structure are a few arrays that take almost all its memory, each of another size.
    What one leaves in CuPy's pool never joins what others leave, so holes as large as themselves
    would stay between them. Such a network has one block, reserved before: there what is free joins what lies beside it.

    Attributes:
        allowed: bytes that may be held at most; 0: any.

    Args:
        xp: CuPy.
    """

    allowed: int = 0

    def __init__(self, xp: Any) -> None:
        self._xp = xp
        self._arena = Arena(0, 0)
        self._least = 0

    @property
    def _pool(self) -> Any:
        return self._xp.get_default_memory_pool()

    @property
    def joins(self) -> bool:
        """Whether all but tiny arrays lie in one block, where what is free joins what lies beside it."""
        return self._arena.size > 0

    def used_bytes(self) -> int:
        """What arrays take."""
        self._arena.collect()
        return int(self._pool.used_bytes()) + self._arena.used

    def held_bytes(self) -> int:
        """What was taken from the device, for arrays and for what comes after them."""
        return int(self._pool.total_bytes()) + self._arena.size

    def release(self) -> None:
        """Give back what no array takes."""
        self._arena.collect()
        if self._arena.used == 0:
            self._arena = Arena(0, 0)
        self._pool.free_all_blocks()

    def reserve(self, n_bytes: int, least: int, large: int) -> None:
        """Let arrays of at least `least` bytes lie in one block of `n_bytes`, those of `large` at its end; 0: in none.

        A block of about that size that is there from the network before stays. Where the device has no such block
        arrays lie where there is room.
        """
        self._arena.collect()
        unused = self._arena.used == 0
        if unused and 0 < n_bytes <= self._arena.size <= n_bytes + n_bytes // 4:
            self._arena.large, self._least = large, least
            return
        self._arena = Arena(0, 0)
        if n_bytes:
            self._pool.free_all_blocks()
            try:
                memory = self._xp.cuda.Memory(n_bytes)
            except self._xp.cuda.memory.OutOfMemoryError:
                return
            self._arena, self._least = Arena(n_bytes, large, memory), least

    def keep_within(self, n_bytes: int) -> None:
        """Let freed blocks, the reserved one apart, be kept only up to so many bytes in all."""
        size, most = int(self._pool.used_bytes()) + n_bytes, self._most()
        self._pool.set_limit(size=min(size, most) if most else size)

    def _most(self) -> int:
        """What CuPy's pool is allowed beside the arena; 0: any."""
        return max(self.allowed - self._arena.size, 1) if self.allowed else 0

    def limit(self) -> int:
        """What may be kept now; 0: all."""
        return int(self._pool.get_limit())

    def set_limit(self, n_bytes: int) -> None:
        """See :meth:`limit`."""
        self._pool.set_limit(size=n_bytes)

    def allocate(self, n_bytes: int) -> Any:
        """Memory of an array (``cupy.cuda.MemoryPointer``).

        At the limit first what is only kept is given back, and then the limit for once, up to what is allowed.

        Raises:
            OutOfMemoryError: CuPy's, if the device has no more, or no more is allowed.
        """
        found = self._in_arena(n_bytes)
        if found is not None:
            return found
        full, pool = self._xp.cuda.memory.OutOfMemoryError, self._pool
        try:
            return pool.malloc(n_bytes)
        except full:
            self.release()
        try:
            return pool.malloc(n_bytes)
        except full:
            limit = pool.get_limit()
            pool.set_limit(size=self._most())
        try:
            return pool.malloc(n_bytes)
        finally:
            pool.set_limit(size=limit)

    def _in_arena(self, n_bytes: int) -> Any:
        """Memory in the arena, which has it back once nobody refers to that; None if it has no room."""
        arena = self._arena
        place = arena.take(n_bytes) if arena.size and n_bytes >= self._least else None
        if place is None:
            return None
        cuda, block, owner = self._xp.cuda, arena.memory, _Piece(arena, place)
        memory = cuda.UnownedMemory(block.ptr + place, n_bytes, owner, block.device_id)
        return cuda.MemoryPointer(memory, 0)
