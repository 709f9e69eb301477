"""Text files of whole numbers, parsed by compiled code a few thousand lines at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from snnmap import _csr
from snnmap.errors import InputError
from snnmap.parallel import for_chunks
from snnmap.progress import Progress
from snnmap.readers import _kernels
from snnmap.readers.checks import input_size

Array = np.ndarray[Any, Any]

LINES_A_STEP = 1 << 16


class NumberLines:
    """The content lines of a file, taken in steps; blank lines and `%` comments are passed over.

    Each step gives (offsets int64[n_lines + 1], values int64): the whole numbers of each line. What
    is no whole number below 10**18 becomes -1 - (its first byte), to be refused or read otherwise.

    Args:
        path: the file.
        progress: told of the bytes read.
    """

    def __init__(self, path: Path, progress: Progress) -> None:
        self.path = path
        self.progress = progress
        self.text = np.memmap(path, np.uint8, mode="r", shape=(input_size(path),)).view(np.ndarray)
        self.position = 0

    def steps(self, n_lines: int, what: str) -> Iterator[tuple[Array, Array]]:
        """(offsets, values) of the tokens of the next `n_lines` lines, some lines at a time."""
        n_found = 0
        for offsets, values in self.some(n_lines):
            n_found += len(offsets) - 1
            yield offsets, values
        if n_found < n_lines:
            raise self.error(
                len(self.text) - 1, f"the file ends after {what} {n_found} of {n_lines}"
            )

    def some(self, n_lines: int) -> Iterator[tuple[Array, Array]]:
        """As :meth:`steps`, but ends quietly where the file ends."""
        while n_lines:
            n = min(n_lines, LINES_A_STEP)
            starts, tokens = np.empty(n, np.int64), np.empty(n, np.int32)
            n_found, end = _kernels.find_lines(self.text, self.position, starts, tokens)
            if not n_found:
                return
            starts, offsets = starts[:n_found], _csr.offsets_of(tokens[:n_found])
            values = np.empty(int(offsets[-1]), np.int64)
            args = (self.text, starts, offsets, values)
            for_chunks(_kernels.parse_lines, n_found, *args, offsets=offsets)
            self.progress.advance(end - self.position)
            self.position = end
            n_lines -= n_found
            self.starts, self.offsets, self.values = starts, offsets, values
            yield offsets, values

    def first_numbers(self) -> Array:
        """float64: the first token of each line of this step, which may be written as a decimal."""
        firsts = self.offsets[:-1]
        numbers = self.values[firsts].astype(np.float64)
        for i in np.flatnonzero(numbers < 0):
            try:
                word = self._word(-1 - int(self.values[firsts[i]]))
                numbers[i] = float(word.replace("_", "?"))
            except ValueError:
                numbers[i] = np.nan
        wrong = np.zeros(len(self.values), bool)
        wrong[firsts] = ~(np.isfinite(numbers) & (numbers >= 0))
        self.refuse(wrong, "weight", "a finite number >= 0")
        return numbers

    def refuse(self, wrong: Array, what: str, expected: str) -> None:
        """Raise for the first value of this step that is wrong."""
        for i in np.flatnonzero(wrong)[:1]:
            value = int(self.values[i])
            found = str(value) if value >= 0 else repr(self._word(-1 - value)[:40])
            row = int(np.searchsorted(self.offsets, i, side="right")) - 1
            raise self.error(int(self.starts[row]), f"{what} {found}; expected {expected}")

    def equal(self, word: str) -> Array:
        """bool: which values of this step are written as `word`, which is no whole number."""
        found = np.zeros(len(self.values), bool)
        for i in np.flatnonzero(self.values < 0):
            found[i] = self._word(-1 - int(self.values[i])) == word
        return found

    def refuse_long(self, offsets: Array, what: str) -> None:
        """Raise for the first line of this step with more than one number."""
        for row in np.flatnonzero(np.diff(offsets) != 1)[:1]:
            n_numbers = int(offsets[row + 1] - offsets[row])
            problem = f"{n_numbers} numbers; expected one {what}"
            raise self.error(int(self.starts[row]), problem)

    def refuse_more(self, announced: str) -> None:
        """Raise if content is left after what was `announced`."""
        for _ in self.some(1):
            at = int(self.starts[0])
            raise self.error(at, f"content follows; expected the end after {announced}")

    def error(self, at: int, problem: str) -> InputError:
        """The error for the line that holds byte `at`."""
        return InputError(self.path, problem, place=f"line {self._line(at)}")

    def _word(self, at: int) -> str:
        return bytes(self.text[at : at + 400]).split()[0].decode("ascii", "replace")

    def _line(self, at: int) -> int:
        return int(np.count_nonzero(self.text[:at] == ord("\n"))) + 1
