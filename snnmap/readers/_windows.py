"""Steps with a sliding window: convolutions, their transposes and pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np

from snnmap import _csr
from snnmap.errors import NetworkError
from snnmap.networks import layers
from snnmap.networks.builder import Signal
from snnmap.networks.relations import Relation, from_links, from_rows
from snnmap.readers._steps import Array, Shape, Step, check_links, check_shape, times

Padding = Literal["same", "valid"] | tuple[int | tuple[int, int], ...]


@dataclass(frozen=True)
class Convolution(Step):
    """A convolution in one or two dimensions, or its transpose.

    Attributes:
        out_channels: channels of the output.
        group_channels: input channels of one group (the second dimension of the weights).
        kernel: one size a dimension; `stride`, `padding` and `dilation` likewise.
        groups: channel groups.
        sizes: input positions, if the file states them.
        weights: as for :class:`Dense`, shape (out_channels, group_channels, *kernel).
        extra: output padding of a transposed convolution; None for an ordinary convolution.
    """

    out_channels: int
    group_channels: int
    kernel: Shape
    stride: Shape
    padding: Padding
    dilation: Shape
    groups: int = 1
    sizes: Shape | None = None
    weights: Callable[[], Array] | None = None
    extra: Shape | None = None

    @property
    def in_channels(self) -> int:
        """Channels of the input."""
        return self.group_channels * self.groups

    def own_input(self) -> Shape | None:
        """See :class:`Step`."""
        return None if self.sizes is None else (self.in_channels, *self.sizes)

    def fit(self, shape: Shape) -> int:
        """See :class:`Step`."""
        normal = self._normal(shape)
        return 0 if normal is None else 1 + (normal == shape)

    def _normal(self, shape: Shape) -> Shape | None:
        """The input as (channels, *positions), or None."""
        rank = len(self.kernel)
        if len(shape) == rank + 1 and shape[0] == self.in_channels:
            return shape
        if len(shape) == rank and self.in_channels == 1:
            return (1, *shape)
        own = self.own_input()
        return own if own is not None and prod(own) == prod(shape) else None

    def _checked(self, shape: Shape) -> Shape:
        normal = self._normal(shape)
        rank = len(self.kernel)
        if normal is None:
            where = ("length",) if rank == 1 else ("height", "width")
            raise NetworkError(
                f"expects (channels {self.in_channels}, {', '.join(where)}), but the input is "
                f"{times(shape)}"
            )
        if self.sizes is not None and normal[1:] != self.sizes:
            raise NetworkError(
                f"says that its input is {times(self.sizes)}, but gets {times(normal[1:])}"
            )
        return normal

    def output(self, shape: Shape) -> Shape:
        """See :class:`Step`."""
        sizes = self._checked(shape)[1:]
        if self.extra is not None:
            out = _transposed_sizes(
                sizes, self.kernel, self.stride, self.padding, self.dilation, self.extra
            )
        else:
            out = window_sizes(sizes, self.kernel, self.stride, self.padding, self.dilation)
        return check_shape((self.out_channels, *out))

    def apply(self, signal: Signal) -> Signal:
        """See :class:`Step`."""
        shape = self._checked(signal.shape)
        out = self.output(shape)
        small, large, filters = (shape, out, self.out_channels)
        if self.extra is not None:  # the links of the convolution from output to input, reversed
            small, large, filters = (out, shape, self.in_channels)
        check_links(filters * prod(large[1:]) * prod(self.kernel))
        present = None if self.weights is None else self.weights() != 0
        if present is not None and not present.all() and self.extra is None:
            return signal.through(self._pruned(shape, out, present), out)
        relation, reached = layers.conv(
            small,
            filters,
            self.kernel,
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
            groups=self.groups,
            layout="chw",
        )
        if reached != large:
            raise NetworkError(f"gives {times(reached)}; expected {times(large)}")
        return signal.through(relation if self.extra is None else reverse(relation), out)

    def _pruned(self, shape: Shape, out: Shape, present: Array) -> Relation:
        """Links of those weights that are not zero: one row an input value."""
        taps = self._taps(shape[1:], out[1:])
        present = present.reshape(self.out_channels, self.group_channels, -1)
        n_in, n_out, block = prod(shape[1:]), prod(out[1:]), self.out_channels // self.groups
        counts, pins, total = [], [], 0
        for channel in range(self.in_channels):
            group, within = divmod(channel, self.group_channels)
            mask = present[group * block : (group + 1) * block, within]
            inputs, targets = [], []
            for tap, (seen, outputs) in enumerate(taps):
                channels = np.flatnonzero(mask[:, tap]) + group * block
                inputs.append(np.repeat(seen, len(channels)))
                targets.append((outputs[:, None] + channels * n_out).ravel())
            all_inputs = np.concatenate(inputs)
            order = np.argsort(all_inputs, kind="stable")
            counts.append(np.bincount(all_inputs, minlength=n_in))
            pins.append(np.concatenate(targets)[order].astype(np.int32))
            total += len(order)
            check_links(total)
        offsets = _csr.offsets_of(np.concatenate(counts))
        return from_rows(offsets, np.concatenate(pins), prod(out))

    def _taps(self, sizes: Shape, out: Shape) -> list[tuple[Array, Array]]:
        """For each tap of the kernel the flat (input, output) positions that it links."""
        axes = []
        for axis, n_out in enumerate(out):
            before = _before(sizes, self.kernel, self.stride, self.padding, self.dilation, axis)
            outputs = np.arange(n_out)
            inputs = outputs * self.stride[axis] - before
            axes.append([inputs + k * self.dilation[axis] for k in range(self.kernel[axis])])
        taps = []
        for tap in np.ndindex(*self.kernel):
            seen, outputs = np.zeros(1, np.int64), np.zeros(1, np.int64)
            for axis, k in enumerate(tap):
                inside = np.flatnonzero((axes[axis][k] >= 0) & (axes[axis][k] < sizes[axis]))
                seen = (seen[:, None] * sizes[axis] + axes[axis][k][inside]).ravel()
                outputs = (outputs[:, None] * out[axis] + inside).ravel()
            taps.append((seen, outputs))
        return taps


@dataclass(frozen=True)
class Pooling(Step):
    """A pooling window over positions, each channel for itself.

    Attributes:
        kernel: one size a dimension; `stride`, `padding` and `dilation` likewise.
        ceil_mode: also keep a last window that leaves the input.
    """

    kernel: Shape
    stride: Shape
    padding: Padding
    dilation: Shape
    ceil_mode: bool = False

    def fit(self, shape: Shape) -> int:
        """See :class:`Step`."""
        return 2 if len(shape) == len(self.kernel) + 1 else 0

    def output(self, shape: Shape) -> Shape:
        """See :class:`Step`."""
        if not self.fit(shape):
            wanted = "height, width" if len(self.kernel) == 2 else "length"
            raise NetworkError(f"expects (channels, {wanted}), but the input is {times(shape)}")
        sizes = window_sizes(
            shape[1:], self.kernel, self.stride, self.padding, self.dilation, self.ceil_mode
        )
        return check_shape((shape[0], *sizes))

    def apply(self, signal: Signal) -> Signal:
        """See :class:`Step`."""
        check_links(prod(self.output(signal.shape)) * prod(self.kernel))
        relation, out = layers.pool(
            signal.shape,
            self.kernel,
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
            ceil_mode=self.ceil_mode,
            layout="chw",
        )
        return signal.through(relation, out)


def window_sizes(
    sizes: Shape,
    kernel: Shape,
    stride: Shape,
    padding: Padding,
    dilation: Shape,
    ceil_mode: bool = False,
) -> Shape:
    """Positions of a window over each axis."""
    axes = zip(sizes, kernel, stride, _each(padding, len(sizes)), dilation, strict=True)
    return tuple(layers.window_geometry(*axis, ceil_mode)[0] for axis in axes)


def _before(
    sizes: Shape, kernel: Shape, stride: Shape, padding: Padding, dilation: Shape, axis: int
) -> int:
    pad = _each(padding, len(sizes))[axis]
    return layers.window_geometry(sizes[axis], kernel[axis], stride[axis], pad, dilation[axis])[1]


def _each(padding: Padding, rank: int) -> Sequence[Any]:
    return (padding,) * rank if isinstance(padding, str) else padding


def _transposed_sizes(
    sizes: Shape, kernel: Shape, stride: Shape, padding: Padding, dilation: Shape, extra: Shape
) -> Shape:
    if padding == "same":
        return tuple(n * s for n, s in zip(sizes, stride, strict=True))
    out = []
    pads = _each(0 if padding == "valid" else padding, len(sizes))  # type: ignore[arg-type]
    for n, k, s, pad, d, e in zip(sizes, kernel, stride, pads, dilation, extra, strict=True):
        before, after = pad if isinstance(pad, tuple) else (pad, pad)
        out.append((n - 1) * s - before - after + d * (k - 1) + e + 1)
    if min(out) < 1:
        raise NetworkError(f"gives {times(tuple(out))} positions; expected at least 1 an axis")
    return tuple(out)


def reverse(relation: Relation) -> Relation:
    """The links turned round (listed one by one: for what is rare)."""
    fan_outs = relation.fan_outs()
    check_links(int(fan_outs.sum()))
    sources = np.repeat(np.arange(relation.n_sources, dtype=np.int32), fan_outs)
    used = relation.rows[fan_outs > 0]
    counts = fan_outs[fan_outs > 0]
    starts = relation.offsets[used]
    targets = _csr.take_rows(relation.targets, starts, counts, _csr.offsets_of(counts))
    return from_links(targets, sources, relation.n_targets, relation.n_sources)
