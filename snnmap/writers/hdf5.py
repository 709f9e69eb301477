"""HDF5 files on disks that may be full, by programs that may be told to stop.

The HDF5 library does not survive a write that fails while it closes a file: it may end the whole
process. So it writes through :class:`_Sink`, which keeps the first failure to itself, drops all that
comes after it, and lets :func:`hdf5_file` raise it once the library is done. Nor does it survive what
a signal's handler raises while it writes: signals wait, too.
"""

from __future__ import annotations

import io
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py


@contextmanager
def hdf5_file(path: Path) -> Iterator[Any]:
    """A new h5py.File at `path`, to be filled in the block; SIGINT and SIGTERM wait for its end.

    Raises:
        OSError: what the system said of the first write that failed.
    """
    with _signals_waiting(), path.open("w+b", buffering=0) as file:
        sink = _Sink(file)
        try:
            with h5py.File(sink, "w") as content:
                yield content
        except (OSError, RuntimeError):
            if sink.failure is None:
                raise
        if sink.failure is not None:
            raise sink.failure


@contextmanager
def _signals_waiting() -> Iterator[None]:
    """What would run a handler in the block runs it at the end of the block."""
    ours = threading.current_thread() is threading.main_thread()  # no other runs handlers
    numbers = (signal.SIGINT, signal.SIGTERM) if ours else ()
    handlers = {number: signal.getsignal(number) for number in numbers}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    came: list[int] = []
    try:
        for number in handlers:
            signal.signal(number, lambda one, _frame: came.append(one))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for one in came:
            signal.raise_signal(one)


class _Sink(io.RawIOBase):
    """A file that seems to take everything.

    Attributes:
        failure: of the first write that was not taken.
    """

    def __init__(self, file: io.FileIO) -> None:
        self.failure: OSError | None = None
        self._file = file

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: Any) -> int | None:
        return self._file.readinto(buffer)

    def write(self, data: Any) -> int:
        self._attempt(lambda: self._write_all(memoryview(data)))
        return len(data)

    def truncate(self, size: int | None = None) -> int:
        self._attempt(lambda: self._file.truncate(size))
        return size or 0

    def _attempt(self, work: Callable[[], Any]) -> None:
        if self.failure is None:
            try:
                work()
            except OSError as error:
                self.failure = error

    def _write_all(self, rest: memoryview) -> None:
        while rest:
            rest = rest[self._file.write(rest) :]
