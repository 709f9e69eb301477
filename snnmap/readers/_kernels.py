"""Compiled passes over the words of a record file and over the bytes of a text file."""

from __future__ import annotations

import numpy as np
from numba import njit

from snnmap._rows import sort_range

_NEWLINE, _PERCENT, _ZERO, _POINT, _PLUS, _MINUS = 10, 37, 48, 46, 43, 45
_POWERS_OF_TEN = 10.0 ** np.arange(23)  # exact in float64


@njit(cache=True, nogil=True)
def walk_records(words, n_edges, edge, position, until, starts, counts, seconds, weights):
    """Note where records lie: u32 count, u32 second, u32 row[count], u32 weight bits.

    Begins with record `edge` at word `position` and stops at `until`, at the last record or before
    one that does not fit into `words`. Returns (next record, its word).
    """
    n_words = len(words)
    while edge < n_edges and position < until:
        room = n_words - position - 3
        if room < 0 or np.int64(words[position]) > room:
            break
        count = np.int64(words[position])
        starts[edge] = position + 2
        counts[edge] = count
        seconds[edge] = words[position + 1]
        weights[edge] = words[position + 2 + count]
        position += 3 + count
        edge += 1
    return edge, position


@njit(cache=True, nogil=True)
def sort_rows_in_place(pins, starts, counts, start, stop):
    """Sort rows where they lie and move duplicates out; counts[i] = distinct ids of row i.

    Rows that ascend already are only read, so that a copy-on-write map keeps their pages shared.
    """
    for row in range(start, stop):
        first = starts[row]
        last = first + counts[row]
        ascending = True
        for j in range(first + 1, last):
            if pins[j] <= pins[j - 1]:
                ascending = False
                break
        if ascending:
            continue
        sort_range(pins, first, last)
        kept = first + 1
        for j in range(first + 1, last):
            if pins[j] != pins[j - 1]:
                pins[kept] = pins[j]
                kept += 1
        counts[row] = kept - first


@njit(cache=True, nogil=True, inline="always")
def _is_blank(byte, separator):
    """Whether a byte parts tokens: white space as in C's `isspace`, or the separator."""
    return byte == 32 or (9 <= byte <= 13) or byte == separator


@njit(cache=True, nogil=True)
def find_lines(text, separator, comment, position, starts, tokens):
    """Note content lines (not blank, no comments): their first byte and number of tokens.

    Comments begin with `%` or with the byte `comment`. Stops when `starts` is full. Returns (number
    of lines, byte after the last one noted).
    """
    n_lines = 0
    n_bytes = len(text)
    while position < n_bytes and n_lines < len(starts):
        first = -1
        n_tokens = 0
        inside = False
        while position < n_bytes and text[position] != _NEWLINE:
            if _is_blank(text[position], separator):
                inside = False
            elif not inside:
                if first < 0:
                    if text[position] == _PERCENT or text[position] == comment:
                        while position < n_bytes and text[position] != _NEWLINE:
                            position += 1
                        break
                    first = position
                inside = True
                n_tokens += 1
            position += 1
        position += 1
        if first >= 0:
            starts[n_lines] = first
            tokens[n_lines] = n_tokens
            n_lines += 1
    return n_lines, position


@njit(cache=True, nogil=True)
def parse_lines(text, separator, starts, offsets, values, start, stop):
    """values[offsets[i]:offsets[i + 1]] = the whole numbers of the line at starts[i].

    A token that is not a whole number below 10**18 becomes -1 - (its first byte).
    """
    for line in range(start, stop):
        position = starts[line]
        for i in range(offsets[line], offsets[line + 1]):
            while _is_blank(text[position], separator):
                position += 1
            first = position
            value = np.int64(0)
            while position < len(text) and not _is_blank(text[position], separator):
                digit = np.int64(text[position]) - _ZERO
                if value >= 0 and 0 <= digit <= 9 and position - first < 18:
                    value = value * 10 + digit
                else:
                    value = np.int64(-1)
                position += 1
            values[i] = value if value >= 0 else -1 - first


@njit(cache=True, nogil=True)
def parse_decimals(text, separator, positions, numbers, start, stop):
    """numbers[i] = the decimal at positions[i]; NaN where it is none or needs long arithmetic.

    Exact: digits that fit float64 times or through a power of ten that fits, too (Clinger 1990).
    """
    for i in range(start, stop):
        position = positions[i]
        minus = text[position] == _MINUS
        if minus or text[position] == _PLUS:
            position += 1
        mantissa = np.int64(0)
        n_digits, scale, exponent = 0, 0, 0
        in_fraction = in_exponent = exponent_minus = False
        fine = True
        while position < len(text) and not _is_blank(text[position], separator):
            byte = int(text[position])
            digit = byte - _ZERO
            if 0 <= digit <= 9:
                if in_exponent:
                    exponent = exponent * 10 + digit if exponent < 1000 else exponent
                else:
                    fine &= n_digits < 18
                    mantissa = mantissa * 10 + digit
                    scale -= in_fraction
                n_digits += 1
            elif byte == _POINT and not in_fraction and not in_exponent:
                in_fraction = True
            elif (byte == 69 or byte == 101) and not in_exponent and n_digits > 0:
                in_exponent, n_digits = True, 0
                if position + 1 < len(text) and (
                    text[position + 1] == _MINUS or text[position + 1] == _PLUS
                ):
                    position += 1
                    exponent_minus = text[position] == _MINUS
            else:
                fine = False
            position += 1
        scale += -exponent if exponent_minus else exponent
        numbers[i] = np.nan
        if fine and n_digits > 0 and mantissa <= 1 << 53 and -22 <= scale <= 22:
            number = np.float64(mantissa)
            number = (
                number * _POWERS_OF_TEN[scale] if scale > 0 else number / _POWERS_OF_TEN[-scale]
            )
            numbers[i] = -number if minus else number
