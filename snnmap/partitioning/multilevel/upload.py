"""Arrays onto the device, and back, through pinned memory.

To the device large ones through two buffers, one filled while the other travels; tiny ones each through a place of its own
in a ring, so that nothing is waited for before the ring is used up.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np

from snnmap.parallel import map_tasks

BUFFER_BYTES = 1 << 25
SMALL_BYTES = 1 << 22  # less is one plain copy
RING_BYTES, TINY_BYTES = 1 << 20, 1 << 16  # at most the latter go through the ring
_SLICE_BYTES = 1 << 23  # of a buffer, filled by one thread


def send_together(upload: Uploader, *arrays: Any) -> list[Any]:
    """Arrays of integers on the device (int64, flat), by one copy."""
    flat = [np.asarray(array, np.int64).reshape(-1) for array in arrays]
    sent = upload(np.concatenate(flat))
    ends = accumulate(len(one) for one in flat)
    return [sent[end - len(one) : end] for one, end in zip(flat, ends, strict=True)]


def _pinned(xp: Any, n_bytes: int) -> np.ndarray[Any, Any]:
    """uint8[n_bytes] of host memory that a device can reach."""
    return np.frombuffer(xp.cuda.alloc_pinned_memory(n_bytes), np.uint8, n_bytes)


class Arrival:
    """A small array on its way to the host, which nothing holds up that is started after it.

    Args:
        xp: CuPy.
        array: there, contiguous; it may go before it is waited for.
    """

    def __init__(self, xp: Any, array: Any) -> None:
        stream, n = xp.cuda.get_current_stream(), int(array.nbytes)
        memory = _pinned(xp, n)
        array.data.copy_to_host_async(memory.ctypes.data, n, stream)
        self._array, self._event = memory.view(array.dtype).reshape(array.shape), xp.cuda.Event()
        self._event.record(stream)

    def wait(self) -> Any:
        """The array on the host."""
        self._event.synchronize()
        return self._array


class Uploader:
    """Copies contiguous arrays; keeps its buffers (65 MiB of host memory, once something is large).

    The copy travels on the current stream and is not waited for: what is started on that stream
    afterwards finds it done.
    """

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self._buffers: list[tuple[Any, Any]] = []  # uint8[BUFFER_BYTES], event of its last journey
        self._ring: Any = None  # uint8[RING_BYTES]
        self._next = 0  # free place there

    def __call__(self, array: np.ndarray[Any, Any]) -> Any:
        """The array on the device, with the same shape and dtype."""
        array = np.ascontiguousarray(array)
        if 0 < array.nbytes <= TINY_BYTES:
            return self._send_tiny(array)
        if array.nbytes < SMALL_BYTES:
            return self.xp.asarray(array)
        target, stream = self.xp.empty(array.shape, array.dtype), self.xp.cuda.get_current_stream()
        source = array.reshape(-1).view(np.uint8)
        for i, start in enumerate(range(0, len(source), BUFFER_BYTES)):
            buffer, travelled = self._buffer(i % 2)
            travelled.synchronize()
            n = min(BUFFER_BYTES, len(source) - start)
            slices = [slice(a, min(a + _SLICE_BYTES, n)) for a in range(0, n, _SLICE_BYTES)]
            part = source[start : start + n]
            map_tasks(np.copyto, [(buffer[one], part[one]) for one in slices])
            (target.data + start).copy_from_host_async(buffer.ctypes.data, n, stream)
            travelled.record(stream)
        return target

    def _send_tiny(self, array: np.ndarray[Any, Any]) -> Any:
        stream, n = self.xp.cuda.get_current_stream(), array.nbytes
        if self._ring is None:
            self._ring = _pinned(self.xp, RING_BYTES)
        if self._next + n > RING_BYTES:
            stream.synchronize()
            self._next = 0
        place = self._ring[self._next : self._next + n]
        self._next += -(-n // 64) * 64
        place[:] = array.reshape(-1).view(np.uint8)
        target = self.xp.empty(array.shape, array.dtype)
        target.data.copy_from_host_async(place.ctypes.data, n, stream)
        return target

    def _buffer(self, i: int) -> tuple[Any, Any]:
        if len(self._buffers) <= i:
            self._buffers.append((_pinned(self.xp, BUFFER_BYTES), self.xp.cuda.Event()))
        return self._buffers[i]
