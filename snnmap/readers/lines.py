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
from snnmap.readers.checks import map_bytes

Array = np.ndarray[Any, Any]

LINES_A_STEP = 1 << 16


class NumberLines:
    """The content lines of a file, taken in steps; blank lines and `%` comments are passed over.

    Each step gives (offsets int64[n_lines + 1], values int64): the whole numbers of each line. What
    is no whole number below 10**18 becomes -1 - (its first byte), to be refused or read otherwise.

    Args:
        path: the file.
        progress: told of the bytes read.
        separator: a character that parts tokens besides white space.
        comment: a character that begins comments besides ``%``.
    """

    def __init__(
        self, path: Path, progress: Progress, *, separator: str = " ", comment: str = "%"
    ) -> None:
        self.path = path
        self.progress = progress
        self.separator = ord(separator)
        self.comment = ord(comment)
        self.text = map_bytes(path)
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
            n_found, end = _kernels.find_lines(
                self.text, self.separator, self.comment, self.position, starts, tokens
            )
            if not n_found:
                return
            starts, offsets = starts[:n_found], _csr.offsets_of(tokens[:n_found])
            values = np.empty(int(offsets[-1]), np.int64)
            args = (self.text, self.separator, starts, offsets, values)
            for_chunks(_kernels.parse_lines, n_found, *args, offsets=offsets)
            self.progress.advance(end - self.position)
            self.position = end
            n_lines -= n_found
            self.starts, self.offsets, self.values = starts, offsets, values
            yield offsets, values

    def numbers(self, at: Array) -> Array:
        """float64: tokens of this step that may be decimals, NaN where they are no numbers.

        Args:
            at: int64, their indices in `values`.
        """
        numbers = self.values[at].astype(np.float64)
        words = np.flatnonzero(numbers < 0)
        positions = -1 - self.values[at[words]]
        found = np.empty(len(words), np.float64)
        args = (self.text, self.separator, positions, found)
        for_chunks(_kernels.parse_decimals, len(words), *args)
        for i in np.flatnonzero(np.isnan(found)):
            try:
                found[i] = float(self._word(int(positions[i])).replace("_", "?"))
            except ValueError:
                found[i] = np.nan
        numbers[words] = found
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

    def checked_numbers(self, at: Array, what: str, *, negative: bool = True) -> Array:
        """As :meth:`numbers`; raises for the first that is not finite (or, if so asked, < 0)."""
        numbers = self.numbers(at)
        wrong = np.zeros(len(self.values), bool)
        wrong[at] = ~np.isfinite(numbers)
        if not negative:
            wrong[at] |= numbers < 0
        self.refuse(wrong, what, "a finite number" if negative else "a finite number >= 0")
        return numbers

    def refuse_width(self, offsets: Array, width: int, what: str = "values") -> None:
        """Raise for the first line of this step that has not `width` tokens."""
        for row in np.flatnonzero(np.diff(offsets) != width)[:1]:
            found = int(offsets[row + 1] - offsets[row])
            raise self.error(int(self.starts[row]), f"{found} {what}; expected {width}")

    def refuse_more(self, announced: str) -> None:
        """Raise if content is left after what was `announced`."""
        for _ in self.some(1):
            at = int(self.starts[0])
            raise self.error(at, f"content follows; expected the end after {announced}")

    def error(self, at: int, problem: str) -> InputError:
        """The error for the line that holds byte `at`."""
        return InputError(self.path, problem, place=f"line {self.line(at)}")

    def _word(self, at: int) -> str:
        words = bytes(self.text[at : at + 400]).replace(bytes([self.separator]), b" ").split()
        return words[0].decode("ascii", "replace")

    def line(self, at: int) -> int:
        """Number of the line that holds byte `at`, from 1."""
        return int(np.count_nonzero(self.text[:at] == ord("\n"))) + 1
