"""The CUDA device: is it usable, compiled kernels, launches, memory, and faults as clear errors.

CuPy is imported here only, and only when somebody asks for the GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from snnmap.errors import EngineError
from snnmap.partitioning.multilevel.pools import Pools
from snnmap.resources import resource_dir

_INSTALL = "pip install 'snnmap[gpu13]' for CUDA 13, 'snnmap[gpu]' for CUDA 12"
_INSUFFICIENT_DRIVER, _NO_DEVICE = 35, 100  # cudaError_t
_MULTIPROCESSORS, _SHARED_MEMORY = 16, 97  # cudaDeviceAttr: number, opt-in bytes of a block
_SHARED_FREE = 32 * 1024  # 48 KiB, less what kernels hold in static arrays, need no permission
THREADS = 256


def find_cupy() -> Any:
    """The CuPy module, once it is sure that it can use a device.

    Raises:
        EngineError: what is missing (CuPy, driver or device) and what to install.
    """
    try:
        import cupy
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] == "cupy":
            raise EngineError(
                f"engine 'gpu' needs CuPy, which is not installed; {_INSTALL}"
            ) from None
        raise EngineError(f"engine 'gpu': CuPy cannot be loaded: {error}; {_INSTALL}") from None
    except ImportError as error:
        reason = " ".join(str(error).split())
        raise EngineError(f"engine 'gpu': CuPy cannot be loaded: {reason}; {_INSTALL}") from None
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        if error.status == _INSUFFICIENT_DRIVER:
            raise EngineError(
                "engine 'gpu': the NVIDIA driver is missing or too old for CuPy's CUDA "
                f"{_version(runtime.runtimeGetVersion())}; update the driver, or {_INSTALL}"
            ) from None
        if error.status != _NO_DEVICE:
            raise EngineError(f"engine 'gpu': the CUDA driver answers: {error}") from None
        count = 0
    if count == 0:
        raise EngineError(
            "engine 'gpu': there is no CUDA device; nvidia-smi lists those of this machine, and "
            "CUDA_VISIBLE_DEVICES may hide them"
        )
    return cupy


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def kernel_source(name: str) -> str:
    """Text of ``kernels/<name>.cu`` with its own headers written out in it.

    CuPy's cache of compiled kernels knows the text of a source, not that of included headers.
    """
    folder = resource_dir("kernels")

    def insert(match: re.Match[str]) -> str:
        return (folder / match[1]).read_text()

    return re.sub(r'^#include "([^"]+)"$', insert, (folder / f"{name}.cu").read_text(), flags=re.M)


class Device:
    """The current CUDA device, and kernels by name.

    Attributes:
        xp: CuPy.
        pools: where arrays take their memory.
        name: as the driver calls it.
        multiprocessors: their number.
        shared_bytes: shared memory that a block may ask for.
        planned: how much memory the work was planned with, in words.
    """

    planned: str = ""

    def __init__(self) -> None:
        self.xp = find_cupy()
        self.pools = Pools(self.xp)
        runtime = self.xp.cuda.runtime
        self._faults = (
            runtime.CUDARuntimeError,
            self.xp.cuda.driver.CUDADriverError,
            self.xp.cuda.compiler.CompileException,
            self.xp.cuda.nvrtc.NVRTCError,
        )
        self._last = ""
        self._guards = 0  # that are open
        self._granted: dict[int, int] = {}  # bytes of dynamic shared memory, by kernel
        with self.guard():
            current = runtime.getDevice()
            self.name = runtime.getDeviceProperties(current)["name"].decode()
            self.multiprocessors = int(runtime.deviceGetAttribute(_MULTIPROCESSORS, current))
            self.shared_bytes = int(runtime.deviceGetAttribute(_SHARED_MEMORY, current))
        self.kernel = lru_cache(maxsize=None)(self._kernel)
        self._module = lru_cache(maxsize=None)(self._compile)

    def _compile(self, source: str, defines: tuple[str, ...]) -> Any:
        options = ("-std=c++17", *defines)
        return self.xp.RawModule(code=kernel_source(source), options=options, backend="nvrtc")

    def _kernel(self, source: str, name: str, defines: tuple[str, ...] = ()) -> Any:
        self._last = name
        return self._module(source, defines).get_function(name)

    def launch(
        self,
        kernel: Any,
        blocks: int,
        args: tuple[Any, ...],
        shared: int = 0,
        threads: int = THREADS,
    ) -> None:
        """Start a kernel; integers are passed as int64.

        Args:
            kernel: from :meth:`kernel`.
            blocks: how many; none is started for 0.
            args: device arrays, integers, or None for a null pointer.
            shared: bytes of dynamic shared memory of a block.
            threads: of a block.
        """
        if blocks <= 0:
            return
        self._last = kernel.name
        self._grant(kernel, shared)
        values = tuple(_argument(a) for a in args)
        kernel((blocks,), (threads,), values, shared_mem=shared)

    def launch_together(
        self, kernel: Any, blocks: int, threads: int, args: tuple[Any, ...], shared: int = 0
    ) -> None:
        """Start a kernel whose blocks all run at once, so that they may wait for each other.

        Args:
            kernel: from :meth:`kernel`.
            blocks: how many, at most the number of multiprocessors.
            threads: of a block.
            args: as for :meth:`launch`.
            shared: bytes of dynamic shared memory of a block.
        """
        self._last = kernel.name
        self._grant(kernel, shared)
        values = tuple(_argument(a) for a in args)
        kernel.kernel((blocks,), (threads,), values, shared, enable_cooperative_groups=True)

    def _grant(self, kernel: Any, shared: int) -> None:
        """Let a kernel have so much dynamic shared memory, and no less than it has.

        CuPy compiles a source once in a process: other devices may have granted the same kernel more.
        """
        if shared > self._granted.get(id(kernel), _SHARED_FREE):
            if shared > kernel.max_dynamic_shared_size_bytes:
                kernel.max_dynamic_shared_size_bytes = shared
            self._granted[id(kernel)] = shared

    def synchronize(self) -> None:
        """Wait until all that was started is done."""
        self.xp.cuda.get_current_stream().synchronize()

    def free_bytes(self) -> int:
        """Memory that arrays may still take: what the device has free and what the pools keep, or CuPy's limit allows."""
        free, _ = self.xp.cuda.runtime.memGetInfo()
        used, allowed = self.pools.used_bytes(), self.allowed_bytes()
        free = int(free) + self.pools.held_bytes() - used
        return min(free, max(allowed - used, 0)) if allowed else free

    def allowed_bytes(self) -> int:
        """CuPy's limit (``CUPY_GPU_MEMORY_LIMIT``, or as a program set it) as it is while no guard is open; 0: none."""
        return self.pools.allowed if self._guards else self.pools.limit()

    def used_bytes(self) -> int:
        """Memory that arrays take now."""
        return self.pools.used_bytes()

    def keep_within(self, n_bytes: int) -> None:
        """Until the guard ends, let freed blocks be kept only up to so many bytes, the reserved one apart.

        Without a guard, whose allocator knows what to do at the limit, nothing changes.
        """
        if self._guards:
            self.pools.keep_within(n_bytes)

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Turn what goes wrong on the device into one :class:`EngineError`."""
        limit = self.pools.limit()
        self.pools.allowed = self.allowed_bytes()
        self._guards += 1
        try:
            with self.xp.cuda.using_allocator(self.pools.allocate):
                yield
        except self.xp.cuda.memory.OutOfMemoryError:
            free, total = (n / 2**30 for n in self.xp.cuda.runtime.memGetInfo())
            planned = f"; planned: {self.planned}" if self.planned else ""
            raise EngineError(
                f"the GPU is out of memory: {total:.1f} GiB in all, {free:.1f} GiB free "
                f"(at kernel {self._last!r}{planned}); use --engine cpu, or a GPU with more memory"
            ) from None
        except self._faults as error:
            reason = " ".join(str(error).split())[:400]
            where = f"kernel {self._last!r}" if self._last else "start"
            raise EngineError(
                f"the GPU failed at or before {where}: {reason}; --engine cpu works"
            ) from None
        finally:
            self._guards -= 1
            self.pools.set_limit(limit)


def word(value: Any) -> int:
    """A field of a kernel's struct as 64 bits: an array's address, 0 for None, or a number."""
    if value is None:
        return 0
    if isinstance(value, float):
        return int(np.float64(value).view(np.uint64))
    if isinstance(value, (int, np.integer)):
        return int(value) % 2**64
    return int(value.data.ptr)


def _argument(value: Any) -> Any:
    if value is None:
        return np.uint64(0)
    if isinstance(value, (int, np.integer)):
        return np.int64(value)
    return value
