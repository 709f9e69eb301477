"""What stands between neurons in a layered file: steps that map a shape to a shape and compose.

All arrays are channels first, row-major, as NIR, lava-dl, PyTorch and ONNX store them. A step
raises :class:`NetworkError` without saying where; :class:`LayerGraph` adds the node's name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from snnmap.errors import NetworkError
from snnmap.hypergraph import MAX_NODES
from snnmap.networks import layers
from snnmap.networks.builder import Signal
from snnmap.networks.relations import dense, from_links

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


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
