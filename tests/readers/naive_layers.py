"""Layers as slow loops over every output, tap and channel: the independent truth about links."""

from __future__ import annotations

from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snnmap.hypergraph import Hypergraph

Array = np.ndarray[Any, Any]

INPUTS = Path(__file__).parents[3] / "shared" / "inputs"


def real_input(name: str) -> Path:
    """A file that other people wrote; skips the test where the folder is not there."""
    path = INPUTS / name
    if not path.exists():
        pytest.skip(f"../shared/inputs/{name} is not here")
    return path


def links(network: Hypergraph, source: str, target: str) -> Array:
    """bool[source neurons, target neurons]: what the network links."""
    by_name = {p.name: p for p in network.populations}
    a, b = by_name[source], by_name[target]
    out = np.zeros((a.size, b.size), bool)
    for hedge in range(network.n_hedges):
        (node,) = network.sources[network.source_offsets[hedge] : network.source_offsets[hedge + 1]]
        if not a.start <= node < a.stop:
            continue
        group = network.hedge_groups[hedge]
        start, stop = network.group_offsets[group : group + 2]
        targets = network.destinations[start:stop]
        inside = targets[(targets >= b.start) & (targets < b.stop)]
        out[node - a.start, inside - b.start] = True
    return out


def one_axon_each(network: Hypergraph) -> bool:
    """Whether every neuron has at most one h-edge, none of them empty."""
    return len(np.unique(network.sources)) == network.n_hedges and bool(
        (np.diff(network.group_offsets) > 0).all()
    )


def same_padding(n: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """(outputs, padding before) so that every stride-th input is the middle of a window."""
    outputs = -(-n // stride)
    total = max((outputs - 1) * stride + dilation * (kernel - 1) + 1 - n, 0)
    return outputs, total // 2


def convolution(
    sizes: tuple[int, ...],
    present: Array,
    stride: tuple[int, ...],
    padding: tuple[int, ...] | str,
    dilation: tuple[int, ...],
    groups: int,
) -> tuple[Array, tuple[int, ...]]:
    """Links of a convolution of (channels, *sizes) with weights (out, in / groups, *kernel).

    Returns:
        (bool[inputs, outputs], output shape).
    """
    out_channels, in_group, *kernel = present.shape
    before, out_sizes = [], []
    for axis, n in enumerate(sizes):
        k, s, d = kernel[axis], stride[axis], dilation[axis]
        if padding == "same":
            n_out, pad = same_padding(n, k, s, d)
        else:
            pad = 0 if padding == "valid" else int(padding[axis])
            n_out = (n + 2 * pad - (d * (k - 1) + 1)) // s + 1
        before.append(pad)
        out_sizes.append(n_out)
    in_shape, out_shape = (in_group * groups, *sizes), (out_channels, *out_sizes)
    out = np.zeros((prod(in_shape), prod(out_shape)), bool)
    for place in product(*map(range, out_shape)):
        channel, *position = place
        group = channel // (out_channels // groups)
        for tap in product(range(in_group), *map(range, kernel)):
            seen = [
                p * stride[a] - before[a] + tap[1 + a] * dilation[a] for a, p in enumerate(position)
            ]
            if present[(channel, *tap)] and all(
                0 <= i < n for i, n in zip(seen, sizes, strict=True)
            ):
                source = (group * in_group + tap[0], *seen)
                out[
                    np.ravel_multi_index(source, in_shape), np.ravel_multi_index(place, out_shape)
                ] = 1
    return out, out_shape


def pooling(
    shape: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
) -> tuple[Array, tuple[int, ...]]:
    """Links of a pooling layer of (channels, *sizes)."""
    present = np.ones((shape[0], 1, *kernel), bool)
    return convolution(shape[1:], present, stride, padding, (1,) * len(kernel), shape[0])
