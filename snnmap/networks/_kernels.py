"""Compiled loops that write the destination rows of layers. Bounds of the chunk come last."""

from __future__ import annotations

import numpy as np
from numba import njit, uint64


@njit(cache=True, nogil=True)
def fill_windows(
    y_offsets, y_outputs, x_offsets, x_outputs, out_height, out_width,
    n_groups, block, channels_last, offsets, targets, start, stop,
):  # fmt: skip
    """Write the targets of rows start..stop-1 of a sliding window (convolution or pooling).

    A row is one input pixel and one channel group; it reaches `block` channels of every output
    pixel whose window covers the pixel. Row = pixel * n_groups + group with channels last, row =
    group * n_pixels + pixel with channels first. Targets come out ascending.
    """
    width = len(x_offsets) - 1
    n_pixels = (len(y_offsets) - 1) * width
    n_out = n_groups * block
    for row in range(start, stop):
        pixel = row // n_groups if channels_last else row % n_pixels
        first = (row % n_groups if channels_last else row // n_pixels) * block
        y = pixel // width
        x = pixel - y * width
        k = offsets[row]
        if channels_last and row > start and row % n_groups > 0:  # as the group before it
            n = offsets[row + 1] - k
            for i in range(uint64(k), uint64(k + n)):
                targets[i] = targets[i - uint64(n)] + block
        elif channels_last:
            for i in range(y_offsets[y], y_offsets[y + 1]):
                for j in range(x_offsets[x], x_offsets[x + 1]):
                    base = (y_outputs[i] * out_width + x_outputs[j]) * n_out + first
                    for channel in range(block):
                        targets[k] = base + channel
                        k += 1
        else:
            for channel in range(first, first + block):
                for i in range(y_offsets[y], y_offsets[y + 1]):
                    base = (channel * out_height + y_outputs[i]) * out_width
                    for j in range(x_offsets[x], x_offsets[x + 1]):
                        targets[k] = base + x_outputs[j]
                        k += 1


@njit(cache=True, nogil=True)
def copy_shifted_rows(targets, starts, counts, shift, out, out_starts, start, stop):
    """Set out[out_starts[i]:][:counts[i]] = targets[starts[i]:][:counts[i]] + shift."""
    for row in range(start, stop):
        a, b = starts[row], out_starts[row]
        for j in range(counts[row]):
            out[b + j] = targets[a + j] + shift


@njit(cache=True, nogil=True)
def join_rows(lists, list_offsets, offsets, targets, out, out_offsets, start, stop):
    """Row i of out = the rows lists[list_offsets[i]:list_offsets[i + 1]], one after another."""
    for i in range(start, stop):
        k = out_offsets[i]
        for j in range(list_offsets[i], list_offsets[i + 1]):
            row = lists[j]
            for p in range(offsets[row], offsets[row + 1]):
                out[k] = targets[p]
                k += 1


@njit(cache=True, nogil=True)
def number_keys(keys, table, numbers, firsts, sizes):
    """Number distinct keys (>= -1) by first appearance.

    numbers[i] = number of key i, firsts[k] = where the k-th appears, sizes[k] = how often; `table` is -1
    for every key. Returns (how many there are, whether the numbers ascend).
    """
    n = 0
    last = np.int32(-1)
    ascends = True
    for i in range(len(keys)):
        number = table[keys[i] + 1]
        if number < 0:
            number = np.int32(n)
            table[keys[i] + 1] = n
            firsts[n] = i
            sizes[n] = 0
            n += 1
        ascends &= number >= last
        last = number
        numbers[i] = number
        sizes[number] += 1
    return n, ascends
