"""Layers as relations: shape in, (relation, shape) out. No neuron is expanded.

Shapes are those of populations, row-major. ``layout`` says where channels stand: ``"hwc"``
(channels last: (height, width, channels), or (length, channels) in one dimension) or ``"chw"``
(channels first, as PyTorch, NIR and lava order neurons). A flat layer has shape (units,).

Whether a layer's outputs are neurons is for the caller to say. Give each relation to
:meth:`snnmap.networks.builder.Signal.through`; a chain of layers without neurons composes there
(convolution, average pooling, flattening, dense: one relation from neuron to neuron), and
:meth:`snnmap.networks.builder.NetworkBuilder.population` ends the chain with neurons:

    builder = NetworkBuilder("net")
    image = builder.population("input", (2, 34, 34), is_input=True)
    signal = image.through(*conv(image.shape, 16, 5, stride=2, layout="chw"))
    conv1 = builder.population("lif1", signal.shape, signal)
    signal = conv1.through(*pool(conv1.shape, 2, layout="chw"))  # a pooling without neurons
    signal = signal.reshape((signal.size,)).through(dense(signal.size, 10), (10,))
    builder.population("lif2", (10,), signal)
    network = builder.build()
"""

from __future__ import annotations

from math import prod
from typing import Any, Literal

import numpy as np

from snnmap import _csr
from snnmap.errors import NetworkError
from snnmap.hypergraph import MAX_NODES
from snnmap.networks import _kernels
from snnmap.networks.relations import Relation
from snnmap.parallel import for_chunks

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Layout = Literal["hwc", "chw"]
Pair = int | tuple[int, ...]
Padding = int | Literal["same", "valid"] | tuple[int | tuple[int, int], ...]


def conv(
    shape: Shape,
    filters: int,
    kernel: Pair,
    *,
    stride: Pair = 1,
    padding: Padding = "valid",
    dilation: Pair = 1,
    groups: int = 1,
    layout: Layout = "hwc",
) -> tuple[Relation, Shape]:
    """Convolution over one or two dimensions.

    Args:
        shape: of the input, with channels.
        filters: output channels, a multiple of `groups`.
        kernel: one number, or one a dimension (height, width).
        stride: likewise.
        dilation: likewise.
        padding: zeros added on both sides (one number, or one a dimension), a (before, after) pair
            a dimension, ``"valid"`` (none) or ``"same"`` (output = ceil(input / stride); an odd
            total puts the extra zero after).
        groups: channel groups; group g of the output sees only group g of the input. Equal to the
            input channels: depthwise.
        layout: where the channels stand.

    Returns:
        (relation from every input element to the outputs whose kernel covers it, output shape).

    Raises:
        NetworkError: values out of range, channels that `groups` does not divide, a kernel larger
            than its padded input.
    """
    return _slide(shape, filters, kernel, stride, padding, dilation, groups, layout, False)


def pool(
    shape: Shape,
    kernel: Pair,
    *,
    stride: Pair | None = None,
    padding: Padding = "valid",
    dilation: Pair = 1,
    ceil_mode: bool = False,
    layout: Layout = "hwc",
) -> tuple[Relation, Shape]:
    """Pooling (sum, average or maximum: the links are the same), each channel by itself.

    Args:
        shape: of the input, with channels.
        kernel: window, one number or one a dimension.
        stride: default: the kernel.
        padding: as in :func:`conv`.
        dilation: as in :func:`conv`.
        layout: as in :func:`conv`.
        ceil_mode: also keep a last window that starts inside the input but leaves it.
    """
    channels = split_channels(shape, layout)[1]
    stride = kernel if stride is None else stride
    return _slide(shape, channels, kernel, stride, padding, dilation, channels, layout, ceil_mode)


def global_pool(shape: Shape, *, layout: Layout = "hwc") -> tuple[Relation, Shape]:
    """Pooling of each channel over the whole image, to one value a channel."""
    spatial, channels = split_channels(shape, layout)
    ids = np.arange(channels, dtype=np.int32)
    rows = np.tile(ids, prod(spatial)) if layout == "hwc" else np.repeat(ids, prod(spatial))
    relation = Relation(rows, np.arange(channels + 1, dtype=np.int64), ids, channels)
    return relation, join_channels((1,) * len(spatial), channels, layout)


def concat_ids(shapes: list[Shape], axis: int) -> tuple[list[Array], Shape]:
    """Where the elements of each input of a concatenation stand in its output.

    Returns:
        (for each input int32[size] of flat output ids, output shape); hand them to
        :meth:`snnmap.networks.builder.Signal.relabel`.

    Raises:
        NetworkError: shapes that differ elsewhere than in `axis`.
    """
    rank = len(shapes[0])
    if not -rank <= axis < rank:
        raise NetworkError(f"axis {axis} is outside the {rank} dimensions of its inputs")
    axis %= rank
    rests = {s[:axis] + s[axis + 1 :] for s in shapes}
    if len(rests) != 1 or any(len(s) != rank for s in shapes):
        listed = ", ".join(map(str, shapes))
        raise NetworkError(
            f"inputs of shapes {listed} differ outside axis {axis}; cannot concatenate"
        )
    total = sum(s[axis] for s in shapes)
    shape = (*shapes[0][:axis], total, *shapes[0][axis + 1 :])
    ids = np.arange(prod(shape), dtype=np.int32).reshape(shape)
    bounds = np.cumsum([s[axis] for s in shapes])[:-1]
    return [part.ravel() for part in np.split(ids, bounds, axis=axis)], shape


def flatten_shape(shape: Shape, start_dim: int = 0, end_dim: int = -1) -> Shape:
    """Shape after flattening dimensions start_dim..end_dim (inclusive); elements keep their order.

    Raises:
        NetworkError: dimensions out of range.
    """
    rank = len(shape)
    if not (-rank <= start_dim < rank and -rank <= end_dim < rank):
        raise NetworkError(f"cannot flatten dimensions {start_dim}..{end_dim} of shape {shape}")
    first, last = start_dim % rank, end_dim % rank
    if first > last:
        raise NetworkError(f"cannot flatten dimensions {start_dim}..{end_dim} of shape {shape}")
    return (*shape[:first], prod(shape[first : last + 1]), *shape[last + 1 :])


def split_channels(shape: Shape, layout: Layout) -> tuple[Shape, int]:
    """(spatial shape, channels) of a shape of one or two spatial dimensions.

    Raises:
        NetworkError: another number of dimensions.
    """
    if len(shape) not in (2, 3):
        wanted = "(height, width, channels)" if layout == "hwc" else "(channels, height, width)"
        raise NetworkError(f"input shape {shape} has {len(shape)} dimensions; expected {wanted}")
    return (shape[:-1], shape[-1]) if layout == "hwc" else (shape[1:], shape[0])


def join_channels(spatial: Shape, channels: int, layout: Layout) -> Shape:
    """Inverse of :func:`split_channels`."""
    return (*spatial, channels) if layout == "hwc" else (channels, *spatial)


def check_size(size: int) -> None:
    """Refuse a layer that 32-bit ids cannot number, before any memory is taken.

    Raises:
        NetworkError: more than `MAX_NODES` values.
    """
    if size > MAX_NODES:
        raise NetworkError(f"{size:,} values exceed the {MAX_NODES:,} ids there are")


def window_geometry(
    n_in: int, kernel: int, stride: int, padding: Any, dilation: int, ceil_mode: bool = False
) -> tuple[int, int]:
    """(number of outputs, zeros before the first input) of one dimension.

    Args:
        n_in: inputs.
        kernel: at least 1.
        stride: at least 1.
        dilation: at least 1.
        padding: number, (before, after), ``"same"`` or ``"valid"``.
        ceil_mode: see :func:`pool`.

    Raises:
        NetworkError: a number out of range or a kernel that does not fit.
    """
    for what, value in (("kernel", kernel), ("stride", stride), ("dilation", dilation)):
        if value < 1:
            raise NetworkError(f"{what} is {value}; expected at least 1")
    reach = dilation * (kernel - 1) + 1
    if padding == "same":
        n_out = -(-n_in // stride)
        return n_out, max((n_out - 1) * stride + reach - n_in, 0) // 2
    if padding == "valid":
        padding = 0
    before, after = padding if isinstance(padding, tuple) else (padding, padding)
    if before < 0 or after < 0:
        raise NetworkError(f"padding is {padding}; expected at least 0")
    slack = n_in + before + after - reach
    if slack < 0:
        raise NetworkError(
            f"kernel {kernel} with dilation {dilation} spans {reach} values, more than the "
            f"{n_in + before + after} of its padded input; use a smaller kernel or more padding"
        )
    n_out = slack // stride + 1
    if ceil_mode and slack % stride and n_out * stride < n_in + before:
        n_out += 1
    return n_out, before


def _slide(
    shape: Shape,
    filters: int,
    kernel: Pair,
    stride: Pair,
    padding: Padding,
    dilation: Pair,
    groups: int,
    layout: Layout,
    ceil_mode: bool,
) -> tuple[Relation, Shape]:
    spatial, channels = split_channels(shape, layout)
    if filters < 1:
        raise NetworkError(f"filters is {filters}; expected at least 1")
    if groups < 1 or channels % groups or filters % groups:
        raise NetworkError(
            f"groups {groups} does not divide the {channels} input and {filters} output channels"
        )
    rank = len(spatial)
    kernels, strides = _each(kernel, rank, "kernel"), _each(stride, rank, "stride")
    dilations = _each(dilation, rank, "dilation")
    paddings = (padding,) * rank if isinstance(padding, str) else _each(padding, rank, "padding")
    windows, out = [], []
    for n_in, k, s, p, d in zip(spatial, kernels, strides, paddings, dilations, strict=True):
        n_out, before = window_geometry(n_in, k, s, p, d, ceil_mode)
        windows.append(_axis_windows(n_in, n_out, k, s, before, d))
        out.append(n_out)
    if rank == 1:
        windows.insert(0, (np.zeros(1, np.int32), np.array([0, 1]), np.zeros(1, np.int64)))
    height, width = (1, *out) if rank == 1 else out
    check_size(height * width * filters)
    (y_rows, y_offsets, y_outputs), (x_rows, x_offsets, x_outputs) = windows

    block, n_x = filters // groups, len(x_offsets) - 1
    pixels = (y_rows[:, None] * np.int32(n_x) + x_rows).ravel()  # the row of each, but for groups
    counts = np.outer(np.diff(y_offsets), np.diff(x_offsets)).ravel() * block
    n_windows, per_group = len(counts), channels // groups
    channel_groups = np.arange(groups, dtype=np.int32)
    if layout == "hwc":
        counts = np.repeat(counts, groups)
        rows = np.repeat((pixels[:, None] * np.int32(groups) + channel_groups).ravel(), per_group)
    else:
        counts = np.tile(counts, groups)
        of_channel = np.repeat(channel_groups, per_group)
        rows = (of_channel[:, None] * np.int32(n_windows) + pixels).ravel()
    offsets = _csr.offsets_of(counts)
    targets = np.empty(int(offsets[-1]), np.int32)
    for_chunks(
        _kernels.fill_windows, len(counts), y_offsets, y_outputs, x_offsets, x_outputs,
        height, width, groups, block, layout == "hwc", offsets, targets, offsets=offsets,
    )  # fmt: skip
    relation = Relation(rows, offsets, targets, height * width * filters)
    return relation, join_channels(tuple(out), filters, layout)


def _axis_windows(
    n_in: int, n_out: int, kernel: int, stride: int, before: int, dilation: int
) -> tuple[Array, Array, Array]:
    """For each input of one dimension the outputs whose window covers it.

    Returns:
        (int32[n_in] row of each input, offsets of the different rows, their outputs, ascending).
    """
    outputs = np.repeat(np.arange(n_out, dtype=np.int64), kernel)
    inputs = outputs * stride - before + np.tile(np.arange(kernel) * dilation, n_out)
    inside = (inputs >= 0) & (inputs < n_in)
    inputs, outputs = inputs[inside], outputs[inside]
    outputs = outputs[np.argsort(inputs, kind="stable")].astype(np.int32)
    offsets = _csr.offsets_of(np.bincount(inputs, minlength=n_in))
    counts = np.diff(offsets)
    rows, firsts = _csr.group_equal_rows(outputs, offsets[:-1], counts)
    distinct = _csr.offsets_of(counts[firsts])
    outputs = _csr.take_rows(outputs, offsets[firsts], counts[firsts], distinct)
    return rows.astype(np.int32), distinct, outputs.astype(np.int64)


def _each(value: Any, rank: int, what: str) -> tuple[Any, ...]:
    """One value a dimension."""
    if isinstance(value, int):
        return (value,) * rank
    values = tuple(value)
    if len(values) != rank:
        raise NetworkError(f"{what} {values} has {len(values)} values; expected {rank}")
    return values
