"""Networks of lava-dl (``.net``, HDF5): layers numbered from 0, one after the other.

Layers ``dense``, ``dense_rec``, ``conv``, ``convT``, ``pool`` and ``unpool`` have neurons (a dense
layer without ``neuron`` is an affine readout and has none), ``input`` is external; ``flatten``,
``concat`` and ``average`` only rearrange. Arrays are channels first, (C, H, W).

Source of the format: the netx description and the export functions of lava-dl (BSD-3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from snnmap.errors import ConfigError, InputError
from snnmap.hypergraph import Hypergraph
from snnmap.progress import SILENT, Progress
from snnmap.readers._hdf5 import Array, Fields, Shape, looks_like, open_hdf5
from snnmap.readers._layer_graph import Concat, LayerGraph
from snnmap.readers._steps import Delay, Dense, Reshape, Step, times
from snnmap.readers._windows import Convolution, Pooling

__all__ = ["read_lava", "recognise"]

_WITH_NEURONS = ("dense", "dense_rec", "conv", "convT", "pool", "unpool")
_WITHOUT = ("input", "flatten", "average", "concat")


def recognise(path: Path, head: bytes) -> bool:
    """Whether this is an HDF5 file with numbered layers."""
    return looks_like(path, head, "layer/0/type")


def read_lava(
    path: Path,
    *,
    progress: Progress = SILENT,
    unknown: str = "error",
    drop_zeros: bool = False,
    timestep_ms: float | None = None,
) -> Hypergraph:
    """Read a lava-dl network.

    Args:
        path: the file.
        progress: told of the work.
        unknown: ``"error"`` refuses unknown layer types (all are listed at once); ``"skip"`` takes
            them for wires.
        drop_zeros: weights of exactly zero are no links; by default they are.
        timestep_ms: length of a time step, in which the file gives axonal delays; None takes the
            file's ``simulation/Ts`` (1 ms if it has none).

    Returns:
        The network with a population for each layer with neurons, named ``"3:conv"`` after its
        number and type; rates are 1.

    Raises:
        InputError: the file is malformed or shapes disagree; names the layer.
        ConfigError: an unknown value of an option.
    """
    if unknown not in ("error", "skip"):
        raise ConfigError(f"unknown is {unknown!r}; expected 'error' or 'skip'")
    if timestep_ms is not None and not 0 < timestep_ms < float("inf"):
        raise ConfigError(f"timestep_ms is {timestep_ms}; expected a number above 0")
    with open_hdf5(path, "a lava-dl network") as root:
        layers = _layers(root.child("layer"))
        strange = [
            f"{i} ({layer.kind})"
            for i, layer in enumerate(layers)
            if layer.kind not in (*_WITH_NEURONS, *_WITHOUT)
        ]
        if strange and unknown == "error":
            raise InputError(
                path,
                f"unknown layer types: {', '.join(strange)}; expected "
                f"{', '.join((*_WITHOUT, *_WITH_NEURONS))}, or read with unknown='skip'",
            )
        if timestep_ms is None:
            timestep_ms = _file_timestep(root)
        graph = LayerGraph(path, "layer")
        reader = _Reader(graph, layers, drop_zeros, timestep_ms)
        for i in range(len(layers)):
            reader.add(i)
        for i in range(len(layers)):
            reader.connect(i)
        return graph.build(Path(path).stem, progress)


@dataclass
class _Layer:
    """One entry of the file.

    Attributes:
        kind: its ``type``.
        fields: the entry.
        first: the node that takes the layer's input.
        last: the node that gives its output, delayed if the layer delays it.
    """

    kind: str
    fields: Fields
    first: str = ""
    last: str = ""


def _layers(group: Fields) -> list[_Layer]:
    names = group.names()
    count = len(names)
    missing = [str(i) for i in range(count) if str(i) not in set(names)]
    if missing:
        strange = sorted(set(names) - {str(i) for i in range(count)})
        raise group.error(
            f"layers must be numbered 0 to {count - 1}: {missing[0]} is missing, {strange[0]!r} is "
            "one too many"
        )
    if not count:
        raise group.error("holds no layers; expected at least an input")
    return [_Layer(group.child(str(i)).text("type"), group.child(str(i))) for i in range(count)]


def _file_timestep(root: Fields) -> float:
    if not root.has("simulation") or not root.child("simulation").has("Ts"):
        return 1.0
    simulation = root.child("simulation")
    values = simulation.array("Ts").ravel()
    if values.size != 1 or not np.isfinite(values[0]) or values[0] <= 0:
        raise simulation.error(f"is {values.tolist()}; expected one number above 0", "Ts")
    return float(values[0])


@dataclass
class _Reader:
    graph: LayerGraph
    layers: list[_Layer]
    drop_zeros: bool
    timestep_ms: float

    def add(self, i: int) -> None:
        """Add the nodes of layer i: what transforms its input, its neurons, its axonal delay."""
        layer = self.layers[i]
        name, fields = f"{i}:{layer.kind}", layer.fields
        layer.first = layer.last = name
        shape = _shape(fields)
        if layer.kind == "input":
            self.graph.add_input(name, shape)
            return
        neurons = fields.has("neuron") or layer.kind not in ("dense", "dense_rec")
        if layer.kind not in _WITH_NEURONS or not neurons:
            self.graph.add_step(name, self._step(layer, shape))
            return
        self.graph.add_neurons(name, shape if prod(shape) != 1 else None)
        layer.first = f"weights of {name}"
        self.graph.add_step(layer.first, self._step(layer, shape))
        self.graph.connect(layer.first, name)
        if fields.has("delay"):
            layer.last = f"delay of {name}"
            self.graph.add_step(layer.last, self._delay(fields))
            self.graph.connect(name, layer.last)
        if fields.has("weight_rec"):
            recurrent = f"recurrent weights of {name}"
            weights = _Weights.of(fields, "weight_rec", 2)
            self.graph.add_step(recurrent, Dense(weights.shape, self._reader(weights)))
            self.graph.connect(layer.last, recurrent)
            self.graph.connect(recurrent, name)

    def connect(self, i: int) -> None:
        """Lead the layers before to layer i."""
        layer = self.layers[i]
        if layer.kind == "input":
            return
        if i == 0:
            raise layer.fields.error(f"the first layer is {layer.kind!r}; expected 'input'")
        sources = [i - 1]
        if layer.kind == "concat" and layer.fields.has("layers"):
            sources += layer.fields.integers("layers")
        for j in sources:
            if not 0 <= j < len(self.layers):
                raise layer.fields.error(
                    f"names layer {j}; expected 0 to {len(self.layers) - 1}", "layers"
                )
            self.graph.connect(self.layers[j].last, layer.first)

    def _step(self, layer: _Layer, shape: Shape) -> Step:
        fields, kind = layer.fields, layer.kind
        if kind in ("dense", "dense_rec"):
            weights = _Weights.of(fields, "weight", 2)
            if len(weights.shape) == 1:  # squeezed: one output, or one input
                weights.shape = (prod(shape), weights.shape[0] // max(prod(shape), 1))
                if prod(weights.shape) != prod(weights.stored):
                    raise fields.error(
                        f"has {times(weights.stored)} values, which {prod(shape)} neurons do not "
                        "divide",
                        "weight",
                    )
            return Dense(weights.shape, self._reader(weights))
        if kind == "flatten":
            return Reshape((prod(shape),))
        if kind == "average":
            return _Average(prod(shape))
        if kind == "concat":
            return Concat(0)
        if kind in ("pool", "unpool"):
            kernel = _pair(fields, "kernelSize", None)
            stride, padding = _pair(fields, "stride", kernel), _pair(fields, "padding", (0, 0))
            dilation = _pair(fields, "dilation", (1, 1))
            if kind == "pool":
                return Pooling(kernel, stride, padding, dilation)
            channels = shape[0]
            return Convolution(
                channels, 1, kernel, stride, padding, dilation, channels, extra=(0, 0)
            )
        if kind in ("conv", "convT"):
            return self._convolution(fields, transposed=kind == "convT", out=shape)
        return Step()

    def _convolution(self, fields: Fields, *, transposed: bool, out: Shape) -> Step:
        weights = _Weights.of(fields, "weight", 4)
        if len(weights.shape) != 4 or 0 in weights.shape:
            raise fields.error(
                f"has shape {times(weights.stored)}; expected (out, in / groups, height, width)",
                "weight",
            )
        groups = fields.integers("groups")[0] if fields.has("groups") else 1
        stride, padding = _pair(fields, "stride", (1, 1)), _pair(fields, "padding", (0, 0))
        dilation = _pair(fields, "dilation", (1, 1))
        first, second, *kernel = weights.shape
        extra = None
        if transposed:  # weights are (in, out / groups, height, width)
            first, second = second * groups, first // max(groups, 1)
            extra = (0, 0)
        return Convolution(
            first,
            second,
            tuple(kernel),
            stride,
            padding,
            dilation,
            groups,
            weights=None if transposed else self._reader(weights),
            extra=extra,
        )

    def _reader(self, weights: _Weights) -> Callable[[], Array] | None:
        return weights.read if self.drop_zeros else None

    def _delay(self, fields: Fields) -> Step:
        delays = fields.array("delay").real
        if not delays.size or not (np.isfinite(delays).all() and delays.min() >= 0):
            raise fields.error("holds delays that are not finite numbers >= 0", "delay")
        low, high = float(delays.min()), float(delays.max())
        return Delay((low * self.timestep_ms, high * self.timestep_ms))


@dataclass
class _Weights:
    """A weight array, or the real and imaginary halves of one; axes of length 1 at its end go.

    Attributes:
        parts: (fields, name) of each half.
        stored: shape in the file.
        shape: with at most as many dimensions as the layer needs.
    """

    parts: list[tuple[Fields, str]]
    stored: Shape
    shape: Shape

    @classmethod
    def of(cls, fields: Fields, name: str, rank: int) -> _Weights:
        parts = [(fields, name)]
        if fields.is_group(name):
            halves = fields.child(name)
            parts = [(halves, "real"), (halves, "imag")]
        stored = parts[0][0].shape(parts[0][1])
        for part, key in parts[1:]:
            if part.shape(key) != stored:
                raise part.error(
                    f"has shape {times(part.shape(key))}; expected {times(stored)}", key
                )
        shape = stored
        while len(shape) > rank and shape[-1] == 1:
            shape = shape[:-1]
        if len(shape) > rank or not shape:
            raise fields.error(f"has shape {times(stored)}; expected {rank} dimensions", name)
        return cls(parts, stored, shape)

    def read(self) -> Array:
        """The weights, nonzero where any half is."""
        arrays: list[Any] = [part.array(key) != 0 for part, key in self.parts]
        present = arrays[0] if len(arrays) == 1 else arrays[0] | arrays[1]
        return np.asarray(present).reshape(self.shape)


@dataclass(frozen=True)
class _Average(Step):
    """Consecutive values averaged into `groups` outputs."""

    groups: int

    def output(self, shape: Shape) -> Shape:
        return (self.groups,)

    def apply(self, signal: Any) -> Any:
        per_group = signal.size // max(self.groups, 1)
        pool = Pooling((per_group,), (per_group,), (0,), (1,))
        return pool.apply(signal.reshape((1, signal.size))).reshape((self.groups,))


def _shape(fields: Fields) -> Shape:
    shape = fields.integers("shape")
    if min(shape, default=1) < 0:
        raise fields.error(f"is {shape}; expected sizes >= 0", "shape")
    return shape


def _pair(fields: Fields, name: str, default: Shape | None) -> Shape:
    """(height, width) of a field that holds one or two numbers, or three with time at the end."""
    if not fields.has(name) and default is not None:
        return default
    values = fields.integers(name)
    if len(values) == 1:
        return values * 2
    if len(values) in (2, 3):
        return values[:2]
    raise fields.error(f"has {len(values)} values; expected 1 or 2", name)
