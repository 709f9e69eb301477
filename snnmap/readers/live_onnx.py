"""ONNX models: layers of activations become populations of neurons.

An ONNX model has no neurons; its activations (ReLU and the like) are where a converted network has
them, and so are its outputs. Convolutions, poolings and weights in between become links, operators
that only move values are asked where each value went, and what is constant is computed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from snnmap.errors import ConfigError, InputError
from snnmap.hypergraph import Hypergraph
from snnmap.progress import SILENT, Progress
from snnmap.readers._layer_graph import LayerGraph
from snnmap.readers._live import At, Linked, moved, require
from snnmap.readers._steps import Dense, Shape, Step, check_links, check_shape, times
from snnmap.readers._windows import Convolution, Pooling

__all__ = ["ACTIVATIONS", "from_onnx"]

Array = np.ndarray[Any, Any]

ACTIVATIONS = (
    "Relu", "LeakyRelu", "PRelu", "ThresholdedRelu", "Clip", "Elu", "Selu", "Celu", "Gelu",
    "Sigmoid", "HardSigmoid", "HardSwish", "Swish", "Mish", "Tanh", "Softplus", "Softsign",
)  # fmt: skip
"""Operators that stand for neurons unless the caller says otherwise."""

_MOVES = {
    "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Concat", "Slice", "Split", "Pad",
    "Gather", "Expand", "Tile", "DepthToSpace", "SpaceToDepth", "Resize", "Upsample", "Identity",
}  # fmt: skip
_VALUE_BY_VALUE = {
    "Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mean", "Sum", "Where", "Neg", "Abs", "Sqrt",
    "Exp", "Log", "Floor", "Ceil", "Round", "Sign", "Erf", "Reciprocal", "Equal", "Greater", "Less",
    "GreaterOrEqual", "LessOrEqual", "Not", "And", "Or", "Cast", "Dropout", "BatchNormalization",
    "InstanceNormalization", "GroupNormalization", "LayerNormalization", "LRN", "Softmax",
    "LogSoftmax", "Hardmax", "QuantizeLinear", "DequantizeLinear", *ACTIVATIONS,
}  # fmt: skip
_GLOBAL = {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}


@dataclass(frozen=True)
class _Value:
    """A value that depends on the input: the node that it comes from and its shape, batch first."""

    node: str
    shape: Shape


def from_onnx(
    model: Any,
    *,
    neurons: Iterable[str] = ACTIVATIONS,
    input_shape: Shape | None = None,
    unknown: str = "error",
    drop_zeros: bool = False,
    name: str | None = None,
    progress: Progress = SILENT,
) -> Hypergraph:
    """The network of an ONNX model.

    Args:
        model: an ``onnx.ModelProto`` or the path of one.
        neurons: operators whose outputs are neurons.
        input_shape: of the (only) input without batch; needed if the model leaves it open.
        unknown: ``"error"`` refuses operators whose links cannot be told (all are listed at once);
            ``"skip"`` takes them to work value by value.
        drop_zeros: weights of exactly zero are no links; by default they are.
        name: of the network; default: the file's or the graph's.
        progress: told of the work.

    Returns:
        The network: inputs, one population for each activation, named after its node, and one for
        each output of the model that is not an activation.

    Raises:
        EngineError: the package onnx is not installed.
        InputError: the model is malformed, its shapes disagree or cannot be told.
    """
    onnx = require("onnx", "onnx", "reading ONNX models")
    if unknown not in ("error", "skip"):
        raise ConfigError(f"unknown is {unknown!r}; expected 'error' or 'skip'")
    path = "ONNX model"
    if isinstance(model, (str, Path)):
        path = str(model)
        model = _load(onnx, Path(model))
    if not isinstance(model, onnx.ModelProto):
        raise InputError(
            path, f"got a {type(model).__name__}; expected an onnx.ModelProto or a path"
        )
    title = name or (Path(path).stem if path != "ONNX model" else model.graph.name or path)
    reader = _Reader(onnx, model, path, frozenset(neurons), unknown, drop_zeros)
    reader.read_inputs(input_shape)
    reader.read_nodes()
    reader.read_outputs()
    return reader.graph.build(title, progress)


def _load(onnx: Any, path: Path) -> Any:
    try:
        return onnx.load(str(path))
    except FileNotFoundError as error:
        raise InputError(path, f"no such file: {error.filename or path}") from None
    except Exception as error:
        text = " ".join(str(error).split())[:200]
        raise InputError(path, f"not an ONNX model: {text}") from None


class _Reader:
    def __init__(
        self, onnx: Any, model: Any, path: str, neurons: frozenset[str], unknown: str, drop: bool
    ) -> None:
        self.onnx = onnx
        self.model = model
        self.path = path
        self.neurons = neurons
        self.unknown = unknown
        self.drop_zeros = drop
        self.graph = LayerGraph(path, "node")
        self.values: dict[str, _Value | Array | None] = {"": None}
        self.strange: dict[str, None] = {}

    # ------------------------------------------------------------------ the ends

    def read_inputs(self, stated: Shape | None) -> None:
        for tensor in self.model.graph.initializer:
            try:
                self.values[tensor.name] = self.onnx.numpy_helper.to_array(tensor)
            except Exception as error:
                text = " ".join(str(error).split())[:200]
                place = f"initializer {tensor.name!r}"
                raise InputError(self.path, f"cannot be read: {text}", place=place) from None
        inputs = [i for i in self.model.graph.input if i.name not in self.values]
        if stated is not None and len(inputs) != 1:
            raise InputError(self.path, f"has {len(inputs)} inputs; input_shape needs exactly one")
        for value in inputs:
            shape = self._input_shape(value, stated)
            self.graph.add_input(value.name, shape)
            self.values[value.name] = _Value(value.name, (1, *shape))

    def _input_shape(self, value: Any, stated: Shape | None) -> Shape:
        dims = value.type.tensor_type.shape.dim
        if stated is not None:
            return tuple(stated)
        shape = tuple(int(d.dim_value) for d in dims)[1:] if len(dims) > 1 else (0,)
        if 0 in shape or min(shape) < 0:
            text = ", ".join(str(d.dim_value or d.dim_param or "?") for d in dims)
            raise InputError(
                self.path,
                f"has shape ({text}); expected a batch and known sizes, or say input_shape=...",
                place=f"input {value.name!r}",
            )
        return shape

    def read_outputs(self) -> None:
        if self.strange:
            raise InputError(
                self.path,
                f"operators whose links cannot be told: {', '.join(self.strange)}; "
                "unknown='skip' takes them to work value by value",
            )
        for output in self.model.graph.output:
            value = self.values.get(output.name)
            if isinstance(value, _Value) and self.graph.nodes[value.node].kind == "step":
                name = self._unique(output.name)
                self.graph.add_neurons(name, value.shape[1:])
                self.graph.connect(value.node, name)

    # ------------------------------------------------------------------ nodes

    def read_nodes(self) -> None:
        for i, node in enumerate(self.model.graph.node):
            place = f"node {node.name or i!r} ({node.op_type})"
            for name in node.input:
                if name not in self.values:
                    known = ", ".join(map(repr, [n for n in self.values if n][-6:]))
                    problem = f"takes {name!r}, which nothing before it gives; known are {known}"
                    raise InputError(self.path, problem, place=place)
            try:
                self._read(node)
            except InputError:
                raise
            except Exception as error:
                text = " ".join(str(error).split())[:200]
                problem = f"cannot be followed: {type(error).__name__}: {text}"
                raise InputError(self.path, problem, place=place) from error

    def _read(self, node: Any) -> None:
        given = [self.values[name] for name in node.input]
        known = [v for v in given if isinstance(v, _Value)]
        attributes = {a.name: self.onnx.helper.get_attribute_value(a) for a in node.attribute}
        kind = node.op_type
        for value in known:
            check_links(prod(value.shape))
        if kind == "ConstantOfShape" and not known:
            check_links(prod(int(n) for n in self._constant(given[0], "its shape").ravel()))
        outputs = [name for name in node.output if name]
        if kind in ("Shape", "Size") and known:
            whole = np.array(known[0].shape, np.int64)
            start, end = attributes.get("start", 0), attributes.get("end", len(whole))
            result = whole[start:end] if kind == "Shape" else np.array(whole.prod())
            self.values[outputs[0]] = result
        elif not known:
            for name, array in zip(node.output, self._run(node, given), strict=False):
                self.values[name] = array
        elif kind in ("Conv", "ConvTranspose"):
            self._convolution(node, attributes, given, transposed=kind == "ConvTranspose")
        elif kind in ("Gemm", "MatMul"):
            self._matrix(node, attributes, given)
        elif kind in ("MaxPool", "AveragePool", "LpPool"):
            self._pool(node, attributes, known[0])
        elif kind in _GLOBAL or kind.startswith("Reduce"):
            self._reduce(node, attributes, given, known[0])
        elif kind in _MOVES and attributes.get("mode", b"nearest") in (
            b"nearest",
            b"constant",
            b"DCR",
            b"CRD",
            b"reflect",
            b"edge",
        ):
            self._move(node, given)
        elif kind in _VALUE_BY_VALUE or self.unknown == "skip":
            self._value_by_value(node, given, known)
        else:
            self.strange[f"{kind} ({node.name or outputs[0]})"] = None
            for name in outputs:
                self.values[name] = known[0]
        for name in outputs:
            self.values.setdefault(name, None)
        if kind in self.neurons and known:
            self._make_neurons(node, outputs[0])

    def _make_neurons(self, node: Any, output: str) -> None:
        value = self.values[output]
        if isinstance(value, _Value):
            name = self._unique(node.name or output)
            self.graph.add_neurons(name, value.shape[1:])
            self.graph.connect(value.node, name)
            self.values[output] = _Value(name, value.shape)

    def _unique(self, name: str) -> str:
        while name in self.graph.nodes:
            name += "'"
        return name

    def _add(
        self, node: Any, source: _Value, inner: Shape, step: Step, shape: Shape, k: int = 0
    ) -> None:
        """A step from `source`, seen as shape `inner`, that gives output k in `shape`."""
        self.values[node.output[k]] = _Value(
            self._step(node, source, inner, step), check_shape(shape)
        )

    def _step(self, node: Any, source: _Value, inner: Shape, step: Step) -> str:
        name = self._unique(f"{node.op_type} of {node.name or node.output[0]}")
        self.graph.add_step(name, At(inner, step))
        self.graph.connect(source.node, name)
        return name

    def _constant(self, value: Any, what: str) -> Array:
        if not isinstance(value, np.ndarray):
            raise ValueError(f"{what} is computed; expected a constant")
        return value

    # ------------------------------------------------------------------ kinds of nodes

    def _convolution(
        self, node: Any, attributes: Any, given: list[Any], *, transposed: bool
    ) -> None:
        values, weight = given[0], self._constant(given[1], "its weight")
        if not isinstance(values, _Value):
            raise ValueError("its input is constant")
        rank = weight.ndim - 2
        if rank not in (1, 2):
            raise ValueError(f"{rank} dimensions; expected 1 or 2")
        if len(values.shape) != rank + 2:
            raise ValueError(
                f"input {times(values.shape)}; expected batch, channels and {rank} sizes"
            )
        sizes, kernel = values.shape[2:], tuple(weight.shape[2:])
        strides = tuple(attributes.get("strides", [1] * rank))
        dilations = tuple(attributes.get("dilations", [1] * rank))
        groups = int(attributes.get("group", 1))
        out, group = weight.shape[:2]
        if transposed:
            out, group = group * groups, out // groups
        step = Convolution(
            int(out),
            int(group),
            kernel,
            strides,
            _pads(attributes, sizes, kernel, strides, dilations),
            dilations,
            groups,
            sizes,
            (lambda: weight) if self.drop_zeros and not transposed else None,
            tuple(attributes.get("output_padding", [0] * rank)) if transposed else None,
        )
        inner = values.shape[1:]
        self._add(node, values, inner, step, (values.shape[0], *step.output(inner)))

    def _pool(self, node: Any, attributes: Any, values: _Value) -> None:
        kernel = tuple(attributes["kernel_shape"])
        rank = len(kernel)
        strides = tuple(attributes.get("strides", [1] * rank))
        dilations = tuple(attributes.get("dilations", [1] * rank))
        pads = _pads(attributes, values.shape[2:], kernel, strides, dilations)
        ceil = bool(attributes.get("ceil_mode", 0))
        step = Pooling(kernel, strides, pads, dilations, ceil)
        inner = values.shape[1:]
        self._add(node, values, inner, step, (values.shape[0], *step.output(inner)))

    def _matrix(self, node: Any, attributes: Any, given: list[Any]) -> None:
        values, weight = given[0], given[1]
        if not isinstance(values, _Value) or not isinstance(weight, np.ndarray):
            values, weight = given[1], given[0]
            if not isinstance(values, _Value) or not isinstance(weight, np.ndarray):
                raise ValueError("both factors are computed; expected one constant weight")
            if len(values.shape) != 2 or values.shape[1] != 1:
                raise ValueError("its weight stands on the left; expected it on the right")
            weight = weight.T
            values = _Value(values.node, values.shape[::-1])
        if weight.ndim == 1:
            weight = weight[:, None]
        if weight.ndim != 2:
            raise ValueError(f"weight {times(weight.shape)}; expected a matrix")
        matrix = weight if attributes.get("transB") else weight.T  # (out, in)
        n_out, n_in = matrix.shape
        lead = values.shape[:-1]
        if not values.shape or values.shape[-1] != n_in:
            raise ValueError(f"weight takes {n_in} values, but the input is {times(values.shape)}")
        inner = (n_in,) if prod(lead) == 1 else (prod(lead), n_in)
        step = Dense((n_out, n_in), (lambda: matrix) if self.drop_zeros else None)
        self._add(node, values, inner, step, (*lead, n_out))

    def _reduce(self, node: Any, attributes: Any, given: list[Any], values: _Value) -> None:
        rank = len(values.shape)
        axes: Any = attributes.get("axes")
        if node.op_type in _GLOBAL:
            axes = range(2, rank)
        elif len(given) > 1 and given[1] is not None:
            axes = self._constant(given[1], "its axes").ravel()
        gone = {int(a) % rank for a in (range(rank) if axes is None else axes)}
        kept = tuple(1 if d in gone else n for d, n in enumerate(values.shape))
        to = np.broadcast_to(np.arange(prod(kept)).reshape(kept), values.shape).ravel()
        shape = kept
        if not attributes.get("keepdims", 1):
            shape = tuple(n for d, n in enumerate(values.shape) if d not in gone)
        step = Linked(np.arange(prod(values.shape)), to, shape)
        self._add(node, values, values.shape, step, shape)

    def _move(self, node: Any, given: list[Any]) -> None:
        """Run the operator on places (1, 2, ...; 0 = from elsewhere) and see where they went."""
        feeds, starts, total = [], [], 1
        for value in given:
            starts.append(total)
            if isinstance(value, _Value):
                size = prod(value.shape)
                feeds.append(np.arange(total, total + size, dtype=np.float64).reshape(value.shape))
                total += size
            elif (
                value is not None
                and value.dtype.kind == "f"
                and value.ndim
                and node.op_type == "Concat"
            ):
                feeds.append(np.zeros(value.shape))
            elif value is not None and node.op_type == "Pad" and len(feeds) == 2:
                feeds.append(np.zeros((), np.float64))
            else:
                feeds.append(value)
        for k, where in enumerate(self._run(node, feeds)):
            places = np.rint(where).astype(np.int64)
            nodes = []
            for value, start in zip(given, starts, strict=True):
                if isinstance(value, _Value):
                    step = moved(places, places.shape, start, prod(value.shape))
                    nodes.append(self._step(node, value, value.shape, step))
            self._sum(node, nodes, places.shape, k)

    def _value_by_value(self, node: Any, given: list[Any], known: list[_Value]) -> None:
        shapes = [v.shape for v in known]
        if node.op_type not in ("BatchNormalization", "Dropout", "LayerNormalization", "PRelu"):
            shapes += [v.shape for v in given if isinstance(v, np.ndarray) and v.ndim]
        try:
            shape = np.broadcast_shapes(*shapes)
        except ValueError:
            shape = known[0].shape
        nodes = []
        for value in dict.fromkeys(known):
            if prod(value.shape) == prod(shape):
                nodes.append(value.node)
                continue
            places = np.arange(prod(value.shape)).reshape(value.shape)
            step = moved(np.broadcast_to(places, shape), shape)
            nodes.append(self._step(node, value, value.shape, step))
        self._sum(node, list(dict.fromkeys(nodes)), shape)

    def _sum(self, node: Any, nodes: list[str], shape: Shape, k: int = 0) -> None:
        """Output k is the sum of nodes (or the only one)."""
        name = nodes[0]
        if len(nodes) > 1:
            name = self._unique(f"{node.op_type} of {node.name or node.output[0]}")
            self.graph.add_step(name, Step())
            for source in nodes:
                self.graph.connect(source, name)
        self.values[node.output[k]] = _Value(name, tuple(shape))

    def _run(self, node: Any, given: list[Any]) -> list[Array]:
        """Compute one operator with the package's reference implementation."""
        onnx = self.onnx
        evaluator = require("onnx.reference", "onnx", "reading ONNX models").ReferenceEvaluator
        feeds = {n: v for n, v in zip(node.input, given, strict=True) if n and v is not None}
        info = onnx.helper.make_tensor_value_info
        element = onnx.helper.np_dtype_to_tensor_dtype
        inputs = [info(n, element(v.dtype), v.shape) for n, v in feeds.items()]
        outputs = [onnx.helper.make_empty_tensor_value_info(n) for n in node.output if n]
        graph = onnx.helper.make_graph([node], "one", inputs, outputs)
        model = onnx.helper.make_model(graph, opset_imports=self.model.opset_import)
        return [np.asarray(a) for a in evaluator(model).run(None, feeds)]


def _pads(attributes: Any, sizes: Shape, kernel: Shape, strides: Shape, dilations: Shape) -> Any:
    """(before, after) for each axis."""
    rank = len(kernel)
    auto = attributes.get("auto_pad", b"NOTSET")
    if auto == b"VALID":
        return ((0, 0),) * rank
    if auto in (b"SAME_UPPER", b"SAME_LOWER"):
        out = []
        for n, k, s, d in zip(sizes, kernel, strides, dilations, strict=True):
            total = max((-(-n // s) - 1) * s + d * (k - 1) + 1 - n, 0)
            small, large = total // 2, total - total // 2
            out.append((small, large) if auto == b"SAME_UPPER" else (large, small))
        return tuple(out)
    pads = attributes.get("pads") or [0] * (2 * rank)
    return tuple(zip(pads[:rank], pads[rank:], strict=True))
