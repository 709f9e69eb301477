"""Compiled passes that lay h-edges out as the words or the text of a file."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def fill_records(
    words, positions, edges, seconds, n_first, sources, source_offsets,
    pins, pin_offsets, groups, weights, start, stop,
):  # fmt: skip
    """words[positions[i]:] = count, seconds[i], row, weight bits of h-edge edges + i.

    The row is the first n_first[i] sources of the h-edge and then the destinations of its group.
    """
    for i in range(start, stop):
        edge = edges + i
        group = groups[edge]
        at = positions[i]
        words[at] = n_first[i] + pin_offsets[group + 1] - pin_offsets[group]
        words[at + 1] = seconds[i]
        at += 2
        for j in range(source_offsets[edge], source_offsets[edge] + n_first[i]):
            words[at] = sources[j]
            at += 1
        for j in range(pin_offsets[group], pin_offsets[group + 1]):
            words[at] = pins[j]
            at += 1
        words[at] = weights[i]


@njit(cache=True, nogil=True)
def _put_number(text, at, number, end):
    """Write a whole number >= 0 and the byte `end` at text[at:]; returns the byte after."""
    n_digits = 1
    rest = number // 10
    while rest > 0:
        n_digits += 1
        rest //= 10
    for i in range(at + n_digits - 1, at - 1, -1):
        text[i] = 48 + number % 10
        number //= 10
    text[at + n_digits] = end
    return at + n_digits + 1


@njit(cache=True, nogil=True)
def print_rows(
    text, first_edge, last_edge, with_weights, weights, kept,
    sources, source_offsets, pins, pin_offsets, groups,
):  # fmt: skip
    """A line for each h-edge: [weight] sources, other destinations, counted from 1; returns bytes.

    H-edges that are not `kept` (they have no pins) get no line.
    """
    at = 0
    for edge in range(first_edge, last_edge):
        if not kept[edge]:
            continue
        if with_weights:
            at = _put_number(text, at, weights[edge], 32)
        for j in range(source_offsets[edge], source_offsets[edge + 1]):
            at = _put_number(text, at, np.int64(sources[j]) + 1, 32)
        group = groups[edge]
        for j in range(pin_offsets[group], pin_offsets[group + 1]):
            is_source = False
            for k in range(source_offsets[edge], source_offsets[edge + 1]):
                is_source |= sources[k] == pins[j]
            if not is_source:
                at = _put_number(text, at, np.int64(pins[j]) + 1, 32)
        text[at - 1] = 10  # the last blank becomes the end of the line
    return at


@njit(cache=True, nogil=True)
def print_links(text, separator, sources, targets, edges, end_offsets, ends):
    """A line for each link: source, separator, target and the end of its h-edge; returns bytes."""
    at = 0
    for i in range(len(sources)):
        at = _put_number(text, at, np.int64(sources[i]), separator)
        at = _put_number(text, at, np.int64(targets[i]), 0) - 1
        for j in range(end_offsets[edges[i]], end_offsets[edges[i] + 1]):
            text[at] = ends[j]
            at += 1
    return at
