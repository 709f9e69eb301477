"""Compiled kernels over chunks of a range, on as many threads as the machine has.

Kernels are Numba functions compiled with ``nogil=True`` whose last two arguments are the bounds of
their chunk. Each writes only what belongs to its chunk (or returns an order-free integer), so the
number of threads never changes a result.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
_THREADS = "snnmap-worker"


def thread_count() -> int:
    """Threads to use: ``SNNMAP_NUM_THREADS`` if set, else the CPUs this process may run on."""
    wanted = os.environ.get("SNNMAP_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not every platform has affinities
        return os.cpu_count() or 1


@lru_cache(maxsize=4)
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix=_THREADS)


def each_task(
    function: Callable[..., T], tasks: Sequence[tuple[Any, ...]]
) -> Generator[T, None, None]:
    """Call `function(*task)` for every task, in parallel; yields results in the order of the tasks.

    Called from within a task it works through its own tasks alone: no task waits for another. Tasks
    that have not begun are dropped when the caller wants no more results.
    """
    n_threads = thread_count()
    nested = threading.current_thread().name.startswith(_THREADS)
    if n_threads == 1 or len(tasks) < 2 or nested:
        yield from (function(*task) for task in tasks)
        return
    futures = [_pool(n_threads).submit(function, *task) for task in tasks]
    try:
        for future in futures:
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def map_tasks(function: Callable[..., T], tasks: Sequence[tuple[Any, ...]]) -> list[T]:
    """All results of :func:`each_task`."""
    return list(each_task(function, tasks))


def run_side_by_side(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Results of a few long jobs of different kinds, each on a thread of its own.

    Unlike in :func:`map_tasks`, each may use the worker threads for parts of its work.
    """
    if thread_count() == 1 or len(jobs) < 2:
        return [job() for job in jobs]
    with ThreadPoolExecutor(len(jobs), thread_name_prefix="snnmap-job") as threads:
        return [future.result() for future in [threads.submit(job) for job in jobs]]


def chunk_bounds(
    n: int, n_chunks: int, offsets: np.ndarray[Any, Any] | None = None
) -> list[tuple[int, int]]:
    """(start, stop) of each chunk of ``range(n)``; some may be empty.

    Args:
        n: length of the range.
        n_chunks: how many chunks.
        offsets: int64[n + 1]; chunks then hold about equal shares of ``offsets[n]`` work.
    """
    total = n if offsets is None else int(offsets[n])
    bounds = [total * i // n_chunks for i in range(n_chunks + 1)]
    if offsets is not None:
        bounds = [int(b) for b in np.searchsorted(offsets[: n + 1], bounds)]
        bounds[0], bounds[-1] = 0, n
    return list(pairwise(bounds))


def for_chunks(
    kernel: Callable[..., Any],
    n: int,
    *args: Any,
    offsets: np.ndarray[Any, Any] | None = None,
    grain: int = 16384,
) -> list[Any]:
    """Run `kernel(*args, start, stop)` over chunks that cover ``range(n)``.

    Args:
        kernel: compiled function that releases the GIL.
        n: length of the range.
        args: arguments before the bounds.
        offsets: int64[n + 1]; chunks then hold about equal shares of ``offsets[-1]`` work.
        grain: least work a chunk (in items, or in units of `offsets`) worth a thread.

    Returns:
        What the kernel returned for each chunk, in order of the chunks.
    """
    total = int(offsets[n]) if offsets is not None else n
    n_chunks = max(1, min(4 * thread_count(), total // max(grain, 1)))
    if n_chunks == 1 or thread_count() == 1:
        return [kernel(*args, 0, n)]
    tasks = [(*args, a, b) for a, b in chunk_bounds(n, n_chunks, offsets) if a < b]
    return map_tasks(kernel, tasks)


@lru_cache(maxsize=1)
def _heap_trimmer() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # not the GNU C library
        return None


_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MOST = -1, -3, (1 << 31) - 1  # of mallopt


@lru_cache(maxsize=1)
def keep_heap() -> None:
    """From now on, let the C library keep what is freed, large arrays too, until :func:`trim_heap`.

    Where arrays of tens of megabytes come and go, fresh pages cost more than the passes over them.
    """
    try:
        change = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not the GNU C library
        return
    for threshold in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
        change(threshold, _MOST)


def trim_heap() -> None:
    """Return free pages of the heap to the system, where the C library knows how.

    It keeps what is freed below something that is still used: arrays of many sizes that come and go
    leave as much as they took. Takes about a millisecond.
    """
    trimmer = _heap_trimmer()
    if trimmer is not None:
        trimmer(0)
