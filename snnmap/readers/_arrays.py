"""NumPy's files, opened with suspicion: sizes in headers are compared with what is stored."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from snnmap.errors import InputError

Array = np.ndarray[Any, Any]

NPY_MAGIC = b"\x93NUMPY"
ZIP_MAGIC = b"PK\x03\x04"

_FREE_BYTES = 1 << 20
_BEST_RATIO = 1100  # deflate cannot compress better than 1032 : 1


def load_npy(path: Path) -> Array:
    """The array of a ``.npy`` file.

    Raises:
        InputError: the file is malformed or holds Python objects.
    """
    with refusing(path, "is no NumPy array"):
        with path.open("rb") as file:
            _check_header(path, file, path.stat().st_size, None)
        return np.asarray(np.load(path, allow_pickle=False))


def load_npz(path: Path) -> dict[str, Array]:
    """The arrays of an ``.npz`` file by name.

    Raises:
        InputError: the file is malformed, or an array in it claims more than is stored.
    """
    with refusing(path, "is no archive of NumPy arrays"):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if info.filename.endswith(".npy"):
                    with archive.open(info) as file:
                        stored = min(info.file_size, info.compress_size * _BEST_RATIO)
                        _check_header(path, file, stored, info.filename)
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}


def names_in_npz(path: Path) -> list[str]:
    """Names of the arrays in an ``.npz`` file; none if it is no such file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [n.removesuffix(".npy") for n in archive.namelist() if n.endswith(".npy")]
    except Exception:  # of any kind, see refusing
        return []


@contextmanager
def refusing(path: Path, problem: str) -> Iterator[None]:
    """Give any error of a library that reads a file the file's path.

    Damaged files make NumPy, SciPy and networkx raise all kinds of exceptions.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(path, f"{problem}: {brief(error)}") from None


def _check_header(path: Path, file: Any, stored: int, name: str | None) -> None:
    version = np.lib.format.read_magic(file)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read is None:
        raise InputError(path, f"has version {version} of the .npy format", place=name)
    shape, _, dtype = read(file)
    claimed = int(dtype.itemsize)
    for n in shape:
        claimed *= int(n)
    if dtype.hasobject:
        raise InputError(path, "holds Python objects; expected numbers", place=name)
    if claimed > max(stored, _FREE_BYTES):
        raise InputError(
            path, f"claims shape {shape} ({claimed} bytes), but stores {stored} bytes", place=name
        )


def brief(error: BaseException) -> str:
    """The gist of an error of another library on one line."""
    return " ".join(str(error).split())[:160] or type(error).__name__
