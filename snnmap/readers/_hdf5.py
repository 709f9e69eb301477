"""HDF5 files and nested dicts behind one small, suspicious face.

Every access is checked: what is missing, of the wrong kind, damaged, or larger than the file could
hold becomes an :class:`InputError` that names the place. Sizes in headers are compared with the
bytes that are stored before memory is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from snnmap.errors import InputError
from snnmap.readers._global_heap import damaged_heap

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

SIGNATURE = b"\x89HDF\r\n\x1a\n"
_FREE_BYTES = 1 << 20  # nobody minds a claim below this
_BEST_RATIO = 1100  # deflate, the usual filter, cannot compress better than 1032 : 1
_H5PY_ERRORS = (
    OSError, KeyError, RuntimeError, ValueError, TypeError, OverflowError, MemoryError,
    NotImplementedError, AttributeError,
)  # fmt: skip


class Fields:
    """A group of an HDF5 file, or a dict that looks like one (for live objects).

    Args:
        path: of the file, for messages.
        node: the h5py group or the mapping.
        place: where it stands in the file, e.g. ``"node/nodes/lif1"``.
    """

    def __init__(
        self, path: str | Path, node: Any, place: str = "", checked: set[str] | None = None
    ) -> None:
        self.path = path
        self.node = node
        self.place = place
        self._checked = set() if checked is None else checked

    def error(self, problem: str, name: str = "") -> InputError:
        """An error at this place (or at one of its fields) to raise."""
        return InputError(self.path, problem, place=self._at(name) or None)

    def names(self) -> list[str]:
        """Names of all fields, in the file's order."""
        with self._guard():
            return [str(name) for name in self.node]

    def has(self, name: str) -> bool:
        """Whether a field exists (and is not a dangling link, nor None)."""
        with self._guard(name):
            return name in self.node and self.node.get(name) is not None

    def is_group(self, name: str) -> bool:
        """Whether a field exists and holds further fields."""
        with self._guard(name):
            return isinstance(self.node.get(name), (h5py.Group, Mapping))

    def child(self, name: str) -> Fields:
        """A group inside this one."""
        if not self.is_group(name):
            found = "a plain value" if self.has(name) else "nothing"
            raise self.error(f"expected a group, found {found}", name)
        with self._guard(name):
            return Fields(self.path, self.node[name], self._at(name), self._checked)

    def children(self) -> list[str]:
        """Names of the groups inside this one."""
        return [name for name in self.names() if self.is_group(name)]

    def shape(self, name: str) -> Shape:
        """Shape of an array; nothing is read."""
        with self._guard(name):
            shape = np.shape(self._value(name))
        return tuple(int(n) for n in shape)

    def dataset(self, name: str) -> Any:
        """An array-like that is read by slicing, once its size has been checked."""
        value = self._value(name)
        if isinstance(value, h5py.Dataset):
            self._check_size(name, value)
        return value

    def array(self, name: str) -> Array:
        """A numeric array, read whole."""
        value = self._numeric(name, "biufc")
        with self._guard(name):
            return np.asarray(value[()] if isinstance(value, h5py.Dataset) else value)

    def slice(self, name: str, start: int, stop: int) -> Array:
        """Entries ``start..stop - 1`` of a one-dimensional numeric array."""
        value = self._numeric(name, "biuf")
        if value.ndim != 1:
            raise self.error(f"has {value.ndim} dimensions; expected one", name)
        with self._guard(name):
            return np.asarray(value[start:stop])

    def _numeric(self, name: str, kinds: str) -> Any:
        """An array or dataset whose type is numeric, known before anything is read."""
        value = self.dataset(name)
        with self._guard(name):
            value = value if isinstance(value, h5py.Dataset) else np.asarray(value)
            if value.dtype.kind not in kinds:
                raise self.error(f"holds {value.dtype}; expected numbers", name)
        return value

    def integers(self, name: str) -> tuple[int, ...]:
        """A scalar or a one-dimensional array of whole numbers."""
        array = self.array(name)
        if array.ndim > 1 or array.size > 64:
            raise self.error(f"has shape {array.shape}; expected a few whole numbers", name)
        values = array.ravel()
        if values.dtype.kind == "f" and not (
            np.isfinite(values).all() and (values == np.rint(values)).all()
        ):
            raise self.error(f"is {values.tolist()}; expected whole numbers", name)
        if values.dtype.kind == "c":
            raise self.error("holds complex numbers; expected whole numbers", name)
        return tuple(int(v) for v in values)

    def text(self, name: str) -> str:
        """A string, whether scalar or the only entry of an array."""
        strings = self.texts(name)
        if strings.size != 1:
            raise self.error(f"has shape {strings.shape}; expected one string", name)
        return str(strings.ravel()[0])

    def is_text(self, name: str) -> bool:
        """Whether a field holds strings."""
        with self._guard(name):
            value = self._value(name)
            dtype = value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
            return _is_text(dtype)

    def texts(self, name: str) -> Array:
        """object[...]: an array of str; empty arrays of any type count as no strings."""
        value = self.dataset(name)
        with self._guard(name):
            array = value if isinstance(value, h5py.Dataset) else np.asarray(value)
            if not array.size:
                return np.empty(array.shape, object)
            if not _is_text(array.dtype):
                raise self.error(f"holds {array.dtype}; expected text", name)
            if isinstance(array, h5py.Dataset):
                self._check_heaps()
                array = np.asarray(array[()])
            out = np.empty(array.shape, object)
            for index, item in np.ndenumerate(array):
                if not isinstance(item, (bytes, str)):
                    raise self.error(f"holds {type(item).__name__}; expected text", name)
                out[index] = item.decode("utf-8") if isinstance(item, bytes) else str(item)
            return out

    def attribute(self, name: str, key: str) -> str | None:
        """A text attribute of a field, or None."""
        with self._guard(name):
            value = self._value(name)
            if not isinstance(value, h5py.Dataset) or key not in value.attrs:
                return None
            if not _is_text(value.attrs.get_id(key).dtype):
                raise self.error(f"its attribute {key} is not text", name)
            self._check_heaps()
            found = value.attrs[key]
            if isinstance(found, np.ndarray):
                found = found.ravel()[0] if found.size else None
            return found.decode("utf-8") if isinstance(found, bytes) else str(found)

    def _value(self, name: str) -> Any:
        if not self.has(name):
            known = ", ".join(self.names()[:12]) or "nothing"
            raise self.error(f"is missing; found {known}", name)
        if self.is_group(name):
            raise self.error("is a group; expected an array or a value", name)
        with self._guard(name):
            return self.node[name]

    def _at(self, name: str) -> str:
        return f"{self.place}/{name}".strip("/") if name else self.place

    def _check_size(self, name: str, dataset: h5py.Dataset) -> None:
        with self._guard(name):
            if dataset.shape is None:
                raise self.error("is empty; expected values", name)
            claimed = dataset.dtype.itemsize
            for n in dataset.shape:
                claimed *= int(n)
            if claimed <= _FREE_BYTES:
                return
            stored = int(dataset.id.get_storage_size())
            held = min(stored, Path(self.path).stat().st_size)
            if claimed > held * _BEST_RATIO:
                raise self.error(
                    f"claims shape {tuple(dataset.shape)} ({claimed:,} bytes), but the file stores "
                    f"{held:,} bytes for it",
                    name,
                )

    def _check_heaps(self) -> None:
        """Before the first string is read: damaged heaps would crash the library."""
        if "heaps" in self._checked or not isinstance(self.node, h5py.Group):
            return
        at = damaged_heap(Path(self.path))
        if at is not None:
            raise InputError(
                self.path, "the strings stored there are damaged", place=f"byte {at:,}"
            )
        self._checked.add("heaps")

    @contextmanager
    def _guard(self, name: str = "") -> Iterator[None]:
        try:
            yield
        except InputError:
            raise
        except _H5PY_ERRORS as error:
            raise self.error(f"cannot be read: {_brief(error)}", name) from error


@contextmanager
def open_hdf5(path: Path, what: str) -> Iterator[Fields]:
    """Open an HDF5 file for reading; `what` names the format expected, for messages.

    Raises:
        InputError: the file does not exist, is truncated or is no HDF5 file.
    """
    try:
        file = h5py.File(path, "r")
    except FileNotFoundError:
        raise InputError(path, f"no such file; expected {what}") from None
    except _H5PY_ERRORS as error:
        problem = _brief(error)
        if "signature" in problem:
            problem = "not an HDF5 file"
        elif "truncated" in problem:
            problem = "the file is truncated: it is shorter than its header says"
        raise InputError(path, f"{problem}; expected {what}") from None
    try:
        yield Fields(path, file)
    finally:
        file.close()


def looks_like(path: Path, head: bytes, *needed: str) -> bool:
    """Whether a file is HDF5 and holds one of the groups or datasets `needed`."""
    if not head.startswith(SIGNATURE):
        return False
    try:
        with h5py.File(path, "r") as file:
            return any(name in file for name in needed)
    except _H5PY_ERRORS:
        return False


def _is_text(dtype: Any) -> bool:
    """Whether values are strings; other things of variable length are never read."""
    if dtype.kind == "O" and dtype.metadata is not None:
        return h5py.check_string_dtype(dtype) is not None
    return dtype.kind in "SUO"


def _brief(error: BaseException) -> str:
    """The gist of an error of the HDF5 library on one line."""
    text = str(error.args[0]) if error.args else type(error).__name__
    inner = text[text.find("(") + 1 : text.rfind(")")] if text.startswith("Unable") else text
    return " ".join((inner or text).split())[:200]
