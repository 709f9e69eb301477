"""What stands between neurons in a layered file: steps that map a shape to a shape and compose.

All arrays are channels first, row-major, as NIR, lava-dl, PyTorch and ONNX store them. A step
raises :class:`NetworkError` without saying where; :class:`LayerGraph` adds the node's name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np

from snnmap import _csr
from snnmap.errors import NetworkError
from snnmap.hypergraph import MAX_NODES
from snnmap.networks import layers
from snnmap.networks.builder import Signal
from snnmap.networks.relations import Relation, dense, from_links, from_rows

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Padding = Literal["same", "valid"] | tuple[int | tuple[int, int], ...]


def times(shape: Shape) -> str:
    """A shape as a person writes it: ``"2x34x34"``."""
    return "x".join(map(str, shape)) or "scalar"


def amount(shape: Shape) -> str:
    """A shape and how many values it has: ``"2x34x34 = 2312"``, but ``"7"``."""
    return times(shape) if len(shape) == 1 else f"{times(shape)} = {prod(shape)}"


def fit(stated: Shape | None, shape: Shape) -> int:
    """How well a shape fits a stated one, as :meth:`Step.fit` counts."""
    if stated is None:
        return 1
    return 2 if shape == stated else int(prod(shape) == prod(stated))


class Step:
    """No change: Output, Scale, a nested Input, an unknown node that is skipped."""

    def own_input(self) -> Shape | None:
        """Input shape as far as the step's own fields say it."""
        return None

    def fit(self, shape: Shape) -> int:
        """How well an input of this shape fits: 0 not at all, 1 somehow, 2 exactly as stated."""
        return 1

    def output(self, shape: Shape) -> Shape:
        """Output shape for an input shape."""
        return shape

    def apply(self, signal: Signal) -> Signal:
        """Lead a signal through the step."""
        return signal.reshape(self.output(signal.shape))


@dataclass(frozen=True)
class Delay(Step):
    """Every value is late by (smallest, largest) milliseconds."""

    span_ms: tuple[float, float]

    def apply(self, signal: Signal) -> Signal:
        """See :class:`Step`."""
        return signal.delayed(self.span_ms)


@dataclass(frozen=True)
class Flatten(Step):
    """Dimensions start..end become one; dimensions the input lacks are as good as flat."""

    start: int = 0
    end: int = -1
    declared: Shape | None = None

    def own_input(self) -> Shape | None:
        """See :class:`Step`."""
        return self.declared

    def fit(self, shape: Shape) -> int:
        """See :class:`Step`."""
        return fit(self.declared, shape)

    def output(self, shape: Shape) -> Shape:
        """See :class:`Step`."""
        if not self.fit(shape):
            raise NetworkError(f"expects {amount(self.declared or ())}, but gets {amount(shape)}")
        rank = len(shape)
        start = self.start + rank if self.start < 0 else self.start
        end = self.end + rank if self.end < 0 else min(self.end, rank - 1)
        if not 0 <= start <= end:
            return shape if start >= rank > 0 else (prod(shape),)
        return layers.flatten_shape(shape, start, end)


@dataclass(frozen=True)
class Reshape(Step):
    """The same values in a stated shape."""

    shape: Shape

    def output(self, shape: Shape) -> Shape:
        """See :class:`Step`."""
        if prod(shape) != prod(self.shape):
            raise NetworkError(
                f"turns values into {amount(self.shape)}, but the input is {amount(shape)}"
            )
        return self.shape


@dataclass(frozen=True)
class Dense(Step):
    """A weight matrix, or a stack of them: (..., out, in).

    Attributes:
        weight_shape: of the weights; the leading dimensions are those of the input.
        weights: reads them when links of weight zero are to be dropped; None keeps all links.
    """

    weight_shape: Shape
    weights: Callable[[], Array] | None = None

    def own_input(self) -> Shape | None:
        """See :class:`Step`."""
        return (*self.weight_shape[:-2], self.weight_shape[-1])

    def fit(self, shape: Shape) -> int:
        """See :class:`Step`."""
        along_last_axis = len(self.weight_shape) == 2 and shape[-1:] == self.weight_shape[-1:]
        return max(fit(self.own_input(), shape), int(along_last_axis))

    def output(self, shape: Shape) -> Shape:
        """See :class:`Step`."""
        *lead, n_out, n_in = self.weight_shape
        if not self.fit(shape):
            raise NetworkError(
                f"weights of shape {times(self.weight_shape)} take {prod(lead) * n_in} values, but "
                f"the input is {amount(shape)}"
            )
        if prod(shape) == prod(lead) * n_in:
            return check_shape((*lead, n_out))
        return check_shape((*shape[:-1], n_out))

    def apply(self, signal: Signal) -> Signal:
        """See :class:`Step`."""
        out = self.output(signal.shape)
        n_out, n_in = self.weight_shape[-2:]
        n_blocks = prod(out) // n_out if n_out else 0
        present = None
        if self.weights is not None:
            present = self.weights() != 0
            if not present.all():
                present = present.reshape(-1, n_out, n_in)
                sources, targets = _block_links(present, n_blocks)
                relation = from_links(sources, targets, n_blocks * n_in, n_blocks * n_out)
                return signal.through(relation, out)
        check_links(n_blocks * n_out)
        if n_blocks == 1 or not prod(out):
            return signal.through(dense(signal.size, prod(out)), out)
        relation, _ = layers.conv((n_blocks, n_in), n_out, 1, layout="hwc")
        return signal.through(relation, out)


def _block_links(present: Array, n_blocks: int) -> tuple[Array, Array]:
    """(sources, targets) of a block diagonal of `present` bool[1 or n_blocks, out, in]."""
    block, target, source = np.nonzero(present)
    _, n_out, n_in = present.shape
    if len(present) == n_blocks:
        return block * n_in + source, block * n_out + target
    shift = np.arange(n_blocks)[:, None]
    return (shift * n_in + source).ravel(), (shift * n_out + target).ravel()


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


def check_shape(shape: Shape) -> Shape:
    """Refuse shapes that no network of 32-bit ids can have; returns the shape."""
    if min(shape, default=1) < 0 or prod(shape) > MAX_NODES:
        raise NetworkError(
            f"shape {times(shape)}: expected sizes >= 0, {MAX_NODES:,} values at most"
        )
    return shape


def check_links(n_links: int) -> None:
    """Refuse stored links that this machine has no memory for (some 24 bytes each on the way)."""
    need = n_links * 24
    if need > 1 << 30 and need > available_bytes():
        raise NetworkError(
            f"needs {n_links:,} stored links, about {need / 1e9:,.0f} GB of memory, but only "
            f"{available_bytes() / 1e9:,.1f} GB are free"
        )


def available_bytes() -> int:
    """Memory that is free now, in bytes (a very large number where the system does not say)."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return 1 << 62
