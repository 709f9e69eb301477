"""A stand-in for the part of CuPy that snnmap uses; put it into ``sys.modules["cupy"]``."""

from __future__ import annotations

import ctypes
import hashlib
import re
import subprocess
import tempfile
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy import int32, int64, uint8, uint64  # noqa: F401  (part of CuPy's face)

__version__ = "on the host"

_HERE = Path(__file__).parent
_SHARED_BYTES = 227 * 1024  # of a block, as on Hopper
_STATIC_BYTES = 4 * 1024  # at most what kernels take of it by themselves


class ndarray(np.ndarray):  # noqa: N801  (CuPy's name)
    """A device array: operations with host arrays are errors, as in CuPy."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"data": (self.ctypes.data, False)}

    @property
    def data(self) -> Any:
        return _Pointer(self.ctypes.data)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        return _on_device(getattr(ufunc, method))(*inputs, **named)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        return _on_device(function)(*args, **named)

    def __getitem__(self, index: Any) -> Any:
        return device(bare(self)[bare(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        bare(self)[bare(index)] = bare(value)

    def sort(self) -> None:  # type: ignore[override]
        memory.touch(self.nbytes)
        bare(self).sort(kind="stable")

    def copy(self) -> Any:  # type: ignore[override]
        return device(bare(self).copy())

    def astype(self, dtype: Any) -> Any:  # type: ignore[override]
        return device(bare(self).astype(dtype))


class _Pointer:
    """Where an array lies."""

    def __init__(self, address: int) -> None:
        self.ptr = address

    def __add__(self, n_bytes: int) -> _Pointer:
        return _Pointer(self.ptr + n_bytes)

    def copy_from_host_async(self, address: int, n_bytes: int, stream: Any) -> None:
        ctypes.memmove(self.ptr, address, n_bytes)

    def copy_to_host_async(self, address: int, n_bytes: int, stream: Any) -> None:
        ctypes.memmove(address, self.ptr, n_bytes)

    def memset_async(self, value: int, n_bytes: int) -> None:
        ctypes.memset(self.ptr, value, n_bytes)


def _reduction(name: str) -> Callable[..., Any]:
    """A method that leaves its result on the device, also when that is a single number."""

    def reduce(self: ndarray, *args: Any, **named: Any) -> Any:
        return device(getattr(bare(self), name)(*bare(args), **named))

    return reduce


for _name in ("sum", "min", "max", "any", "all", "argmin", "argmax"):
    setattr(ndarray, _name, _reduction(_name))


def bare(value: Any) -> Any:
    """What NumPy works on; refuses host arrays."""
    if isinstance(value, ndarray):
        return value.view(np.ndarray)
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError("a host array meets a device array")
    if isinstance(value, tuple | list):
        return type(value)(bare(one) for one in value)
    return value


class Memory:
    """The device's memory: arrays that live on it, the most there ever was, and how much fits.

    Attributes:
        capacity, live, peak: bytes.
    """

    def __init__(self) -> None:
        self.capacity = 1 << 36
        self.live = self.peak = 0
        self._known: set[int] = set()

    def own(self, value: np.ndarray[Any, Any]) -> None:
        """Count the array that owns the memory of this one until it is gone."""
        while isinstance(value.base, np.ndarray):
            value = value.base
        if id(value) not in self._known:
            self.touch(value.nbytes)
            self.live += value.nbytes
            self._known.add(id(value))
            weakref.finalize(value, self._forget, id(value), value.nbytes).atexit = False

    def _forget(self, known: int, n_bytes: int) -> None:
        self._known.discard(known)
        self.live -= n_bytes

    def touch(self, n_bytes: int) -> None:
        """Take so much more for a moment."""
        if self.live + n_bytes > self.capacity:
            raise _OutOfMemoryError(f"Out of memory allocating {n_bytes:,} bytes")
        self.peak = max(self.peak, self.live + n_bytes)


memory = Memory()


def device(value: Any) -> Any:
    """The same value as a device array."""
    if isinstance(value, tuple):
        return tuple(device(one) for one in value)
    if not isinstance(value, np.ndarray | np.generic):
        return value
    found = np.asarray(value).view(ndarray)
    memory.own(found)
    return found


def _on_device(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **named: Any) -> Any:
        out = named.get("out")
        found = function(*bare(args), **{k: bare(v) for k, v in named.items()})
        return device(found) if out is None else out[0] if isinstance(out, tuple) else out

    return call


def __getattr__(name: str) -> Any:
    """Functions that CuPy has under NumPy's names."""
    allowed = (
        "arange zeros empty ones full zeros_like empty_like ones_like where maximum minimum "
        "concatenate cumsum diff flatnonzero searchsorted ascontiguousarray unique frexp"
    )
    if name not in allowed.split():
        raise AttributeError(name)
    return _on_device(getattr(np, name))


def array(values: Any, dtype: Any = None) -> ndarray:
    return device(np.array(values, dtype))


def asarray(values: Any, dtype: Any = None) -> ndarray:
    return values if isinstance(values, ndarray) and dtype is None else array(values, dtype)


def asnumpy(values: Any) -> Any:
    return np.array(values).view(np.ndarray)


def argsort(values: ndarray, axis: int = -1, kind: str | None = None) -> ndarray:
    assert kind in (None, "stable"), "CuPy knows no other"
    memory.touch(
        16 * values.size + 2 * values.nbytes
    )  # indices and keys, and where they are sorted to
    return _on_device(np.argsort)(values, axis, kind="stable")


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="snnmap-emulator-")


@cache
def _library(code: str, options: tuple[str, ...]) -> ctypes.CDLL:
    """Compile CUDA C++ for this machine, with a function that launches each kernel."""
    exports = "".join(
        f'extern "C" void launch_{name}(unsigned b, unsigned t, size_t s, int c, void** v)'
        f"{{ emulator::launch({name}, b, t, s, c, v); }}\n"
        f'extern "C" int arguments_of_{name}() {{ return emulator::count_arguments({name}); }}\n'
        for name in re.findall(r"__global__ void (\w+)\(", code)
    )
    stem = hashlib.sha256((code + str(options)).encode()).hexdigest()
    source, library = (Path(_folder().name) / f"{stem}.{end}" for end in ("cpp", "so"))
    source.write_text(f'#include "cuda_on_host.h"\n{code}\n{exports}')
    flags = ("-O1", "-w", "-fno-strict-aliasing", "-shared", "-fPIC", *options)
    command = ["g++", *flags, "-I", str(_HERE), str(source), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise cuda.compiler.CompileException(done.stderr)
    return ctypes.CDLL(str(library))


class RawKernel:
    """A kernel; checks a launch as strictly as the driver and more."""

    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        self.name = name
        self._launch = library[f"launch_{name}"]
        self._n_arguments = library[f"arguments_of_{name}"]()
        self.max_dynamic_shared_size_bytes = 48 * 1024 - _STATIC_BYTES

    @property
    def kernel(self) -> Callable[..., None]:
        """What CuPy lets choose how blocks are started."""
        return self._start

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0) -> None:
        self._start(grid, block, args, shared_mem)

    def _start(
        self,
        grid: Any,
        block: Any,
        args: Any,
        shared_mem: int = 0,
        *,
        enable_cooperative_groups: bool = False,
    ) -> None:
        assert self.max_dynamic_shared_size_bytes <= _SHARED_BYTES - _STATIC_BYTES
        assert shared_mem <= self.max_dynamic_shared_size_bytes, f"{self.name}: {shared_mem} bytes"
        assert len(args) == self._n_arguments, f"{self.name}: {len(args)} arguments"
        assert (len(grid), len(block), block[0] % 32) == (1, 1, 0)
        assert grid[0] > 0
        values = (ctypes.c_uint64 * len(args))()
        places = (ctypes.c_void_p * len(args))()
        for i, value in enumerate(args):
            if isinstance(value, ndarray):
                assert value.flags.c_contiguous, f"{self.name}: argument {i} is not contiguous"
                values[i] = value.ctypes.data
            else:
                assert isinstance(value, int64 | uint64), f"{self.name}: argument {i} is {value!r}"
                values[i] = int(value) & (2**64 - 1)
            places[i] = ctypes.addressof(values) + 8 * i
        together = ctypes.c_int(enable_cooperative_groups)
        sizes = ctypes.c_uint(grid[0]), ctypes.c_uint(block[0]), ctypes.c_size_t(shared_mem)
        self._launch(*sizes, together, places)


class RawModule:
    def __init__(self, code: str, options: tuple[str, ...] = (), backend: str = "nvrtc") -> None:
        self._library = _library(code, options)

    def get_function(self, name: str) -> RawKernel:
        return RawKernel(self._library, name)


class _CUDARuntimeError(RuntimeError):
    status = 0


class _OutOfMemoryError(MemoryError):
    pass


class _OtherError(RuntimeError):
    pass


cuda = SimpleNamespace(
    runtime=SimpleNamespace(
        CUDARuntimeError=_CUDARuntimeError,
        getDeviceCount=lambda: 1,
        getDevice=lambda: 0,
        getDeviceProperties=lambda device: {"name": b"emulator"},
        deviceGetAttribute=lambda attribute, device: {16: 2, 97: _SHARED_BYTES}[attribute],
        memGetInfo=lambda: (memory.capacity - memory.live, memory.capacity),
        runtimeGetVersion=lambda: 13000,
    ),
    driver=SimpleNamespace(CUDADriverError=_OtherError),
    compiler=SimpleNamespace(CompileException=_OtherError),
    nvrtc=SimpleNamespace(NVRTCError=_OtherError),
    memory=SimpleNamespace(OutOfMemoryError=_OutOfMemoryError),
    alloc_pinned_memory=bytearray,
    Event=lambda: SimpleNamespace(synchronize=lambda: None, record=lambda stream: None),
    using_allocator=nullcontext,
    get_current_stream=lambda: SimpleNamespace(synchronize=lambda: None),
)


class _Pool:
    """A pool that keeps nothing, and allocates nothing: arrays here have memory of their own."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self._limit = 0

    def used_bytes(self) -> int:
        return int(self._memory.live)

    def total_bytes(self) -> int:
        return int(self._memory.live)

    def malloc(self, n_bytes: int) -> int:
        return n_bytes

    def free_all_blocks(self) -> None:
        pass

    def get_limit(self) -> int:
        return self._limit

    def set_limit(self, size: int) -> None:
        self._limit = size


_pool = _Pool(memory)


def get_default_memory_pool() -> _Pool:
    return _pool
