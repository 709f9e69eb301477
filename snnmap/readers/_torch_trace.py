"""Which PyTorch functions touched which values: the graph of layers behind one run of a module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from snnmap.errors import InputError
from snnmap.hypergraph import Hypergraph
from snnmap.readers._layer_graph import LayerGraph
from snnmap.readers._live import At, Linked, moved
from snnmap.readers._steps import Dense, Shape, Step
from snnmap.readers._windows import Convolution, Padding, Pooling

_CONVOLUTIONS = {"conv1d": 1, "conv2d": 2, "conv_transpose1d": 1, "conv_transpose2d": 2}
_POOLINGS = {"max_pool1d": 1, "max_pool2d": 2, "avg_pool1d": 1, "avg_pool2d": 2, "lp_pool2d": 2}
_ADAPTIVE = {
    "adaptive_avg_pool1d": 1, "adaptive_max_pool1d": 1,
    "adaptive_avg_pool2d": 2, "adaptive_max_pool2d": 2,
}  # fmt: skip
_MOVES = {
    "reshape", "view", "view_as", "reshape_as", "flatten", "unflatten", "ravel", "squeeze",
    "unsqueeze", "permute", "transpose", "t", "movedim", "moveaxis", "swapaxes", "swapdims",
    "flip", "roll", "__getitem__", "narrow", "select", "index_select", "chunk", "split",
    "tensor_split", "unbind", "cat", "concat", "concatenate", "stack", "hstack", "vstack",
    "expand", "expand_as", "broadcast_to", "repeat", "tile", "pad", "pixel_shuffle",
    "pixel_unshuffle", "channel_shuffle", "unfold", "upsample", "interpolate", "clone",
    "contiguous", "masked_select", "take",
}  # fmt: skip
_REDUCTIONS = {
    "sum",
    "mean",
    "amax",
    "amin",
    "max",
    "min",
    "prod",
    "any",
    "all",
    "logsumexp",
    "var",
}
_SILENT = {
    "size",
    "dim",
    "numel",
    "shape",
    "item",
    "tolist",
    "backward",
    "requires_grad_",
    "stride",
}


class Trace:
    """Watches functions and keeps, for each tensor, the node that it comes from."""

    def __init__(self, torch: Any, title: str, unknown: str, drop_zeros: bool) -> None:
        self.torch = torch
        self.title = title
        self.unknown = unknown
        self.drop_zeros = drop_zeros
        self.graph = LayerGraph(title, "layer")
        self.origin: dict[int, str] = {}
        self.kept: list[Any] = []  # tensors stay alive, so that ids stay unique
        self.strange: dict[str, None] = {}
        self.depth = 0
        self.steps: dict[tuple[Any, ...], str] = {}
        self.pending: dict[str, list[Any]] = {}

    def build(self) -> Hypergraph:
        if self.strange and self.unknown == "error":
            listed = ", ".join(self.strange)
            raise InputError(
                self.title,
                f"uses functions whose links cannot be told: {listed}; unknown='skip' takes them "
                "to work value by value",
            )
        return self.graph.build(self.title)

    # ------------------------------------------------------------------ tensors and nodes

    def _tag(self, tensor: Any, node: str) -> None:
        self.origin[id(tensor)] = node
        self.kept.append(tensor)

    def _node_of(self, value: Any) -> str | None:
        return self.origin.get(id(value)) if isinstance(value, self.torch.Tensor) else None

    def add_input(self, name: str, tensor: Any) -> None:
        shape = (
            tuple(tensor.shape[1:]) if tensor.dim() > 1 and tensor.shape[0] == 1 else tensor.shape
        )
        self.graph.add_input(name, tuple(shape))
        self._tag(tensor, name)

    def _step(self, label: str, source: str, shape: Shape, step: Step, *key: Any) -> str:
        """A node for a step; the same step again (a later time step) is the same node."""
        key = (label, source, shape, *key)
        if key in self.steps:
            return self.steps[key]
        node = f"{label} #{len(self.graph.nodes)}"
        self.graph.add_step(node, At(shape, step))
        self.graph.connect(source, node)
        self.steps[key] = node
        return node

    def _sum(self, label: str, nodes: list[str], tensor: Any) -> None:
        """Tag a tensor with the sum of nodes (or the only one)."""
        if len(nodes) == 1:
            self._tag(tensor, nodes[0])
        elif nodes:
            key = (label, *nodes)
            if key not in self.steps:
                self.steps[key] = node = f"{label} #{len(self.graph.nodes)}"
                self.graph.add_step(node, Step())
                for source in nodes:
                    self.graph.connect(source, node)
            self._tag(tensor, self.steps[key])

    # ------------------------------------------------------------------ neurons

    def hooks(self, name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """What to call before and after a module of neurons."""

        def before(module: Any, args: Any, kwargs: Any) -> None:
            self.depth += 1
            tensors = [*args, *kwargs.values()]
            self.pending[name] = tensors[:1]

        def after(module: Any, args: Any, kwargs: Any, output: Any) -> None:
            self.depth -= 1
            given = self.pending.pop(name)
            outputs = _tensors(self.torch, output)
            if not outputs:
                raise InputError(self.title, "returns no tensor", place=f"layer {name!r}")
            first = outputs[0]
            if name not in self.graph.nodes:
                shape = first.shape[1:] if first.dim() > 1 and first.shape[0] == 1 else first.shape
                self.graph.add_neurons(name, tuple(shape))
            for tensor in given:
                source = self._node_of(tensor)
                if source is not None:
                    self._feed(name, source, tensor, module)
            size = prod(self.graph.nodes[name].shape or ())
            for tensor in outputs:
                if tensor.numel() == size:
                    self._tag(tensor, name)
            self._recur(name, module, first)

        return before, after

    def _feed(self, name: str, source: str, tensor: Any, module: Any) -> None:
        weights = getattr(module, "input_weights", None)  # Norse's recurrent cells hold their own
        if isinstance(weights, self.torch.Tensor):
            source = self._weights("input weights", name, source, weights)
        if source is not None:
            self.graph.connect(source, name)

    def _recur(self, name: str, module: Any, output: Any) -> None:
        """Recurrent links that a module of neurons holds itself."""
        weights = getattr(module, "recurrent_weights", None)
        if isinstance(weights, self.torch.Tensor):
            self.graph.connect(self._weights("recurrent weights", name, name, weights), name)
        for attribute in ("recurrent", "rec_connect"):
            inner = getattr(module, attribute, None)
            if isinstance(inner, self.torch.nn.Module):
                back = self._node_of(inner(output))
                if back is not None:
                    self.graph.connect(back, name)

    def _weights(self, label: str, name: str, source: str, weights: Any) -> str:
        node = f"{label} of {name}"
        if node not in self.graph.nodes:
            self.graph.add_step(node, self._dense(weights))
            self.graph.connect(source, node)
        return node

    # ------------------------------------------------------------------ functions

    @contextmanager
    def watching(self) -> Iterator[None]:
        trace = self

        class Watch(self.torch.overrides.TorchFunctionMode):  # type: ignore[name-defined,misc]
            def __torch_function__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                kwargs = kwargs or {}
                output = func(*args, **kwargs)  # functions inside this one are not seen
                if not trace.depth:
                    trace.seen(func, args, kwargs, output)
                return output

        with Watch():
            yield

    def seen(self, func: Any, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        """Note what a function did with tensors that are known."""
        name = getattr(func, "__name__", str(func))
        known = [t for t in _tensors(self.torch, (args, kwargs)) if self._node_of(t) is not None]
        outputs = [t for t in _tensors(self.torch, output) if t.dim() or t.numel() == 1]
        if not known or not outputs or name in _SILENT or name == "__get__":
            if name == "__get__" and known and outputs and outputs[0].numel() == known[0].numel():
                self._elementwise(name, known, outputs[:1])  # .data, .T of vectors, .grad
            return
        base = name.strip("_")
        first = known[0]
        if base in _CONVOLUTIONS:
            self._convolution(base, args, kwargs, output)
        elif base in ("linear", "matmul", "mm", "addmm", "bmm", "rmatmul", "einsum"):
            self._matrix(base, args, kwargs, output)
        elif base in _POOLINGS:
            self._pool(base, args, kwargs, outputs[0])
        elif base in _ADAPTIVE:
            self._adaptive(base, first, outputs[0])
        elif name in _MOVES or base in _MOVES:
            self._move(func, name, args, kwargs, known, outputs)
        elif base in _REDUCTIONS and outputs[0].numel() < first.numel():
            self._reduce(base, args, kwargs, first, outputs)
        elif all(_broadcasts(t.shape, o.shape) for t in known for o in outputs):
            self._elementwise(base, known, outputs)
        else:
            self.strange[base] = None

    def _array(self, tensor: Any) -> Any:
        return tensor.detach().cpu().numpy()

    def _dense(self, weights: Any) -> Dense:
        return Dense(
            tuple(weights.shape), (lambda: self._array(weights)) if self.drop_zeros else None
        )

    def _matrix(self, base: str, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        given = [*args, *kwargs.values()]
        tensors = [t for t in given if isinstance(t, self.torch.Tensor)]
        if base == "addmm":
            tensors = tensors[1:]
        if base == "linear":
            values, weights = tensors[0], tensors[1]
        elif len(tensors) == 2 and self._node_of(tensors[0]) and not self._node_of(tensors[1]):
            values, weights = (
                tensors[0],
                tensors[1].transpose(-1, -2) if tensors[1].dim() == 2 else None,
            )
        elif len(tensors) == 2 and self._node_of(tensors[1]) and tensors[0].dim() == 2:
            values, weights = tensors[1], tensors[0]
            if values.dim() > 1 and values.shape[-1] != 1:
                weights = None
        else:
            values, weights = tensors[0], None
        source = self._node_of(values)
        if weights is None or weights.dim() != 2 or base in ("bmm", "einsum"):
            self.strange[base] = None
        elif source is not None:
            lead, n_in = values.numel() // weights.shape[1], int(weights.shape[1])
            shape = (n_in,) if lead == 1 else (lead, n_in)
            key = weights.data_ptr(), tuple(weights.shape)
            self._tag(output, self._step(base, source, shape, self._dense(weights), *key))

    def _convolution(self, base: str, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        rank, transposed = _CONVOLUTIONS[base], "transpose" in base
        names = ["input", "weight", "bias", "stride", "padding"]
        names += ["output_padding", "groups", "dilation"] if transposed else ["dilation", "groups"]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        values, weight = given["input"], given["weight"]
        source = self._node_of(values)
        if source is None:
            self.strange[f"{base} with computed weights"] = None
            return
        groups = int(given.get("groups", 1))
        out, group = int(weight.shape[0]), int(weight.shape[1])
        if transposed:
            out, group = group * groups, out // groups
        padding: Padding = given.get("padding", 0)
        if not isinstance(padding, str):
            padding = _each(padding, rank)
        sizes = tuple(int(n) for n in values.shape[-rank:])
        step = Convolution(
            out,
            group,
            tuple(int(n) for n in weight.shape[2:]),
            _each(given.get("stride", 1), rank),
            padding,
            _each(given.get("dilation", 1), rank),
            groups,
            sizes,
            (lambda: self._array(weight)) if self.drop_zeros and not transposed else None,
            _each(given.get("output_padding", 0), rank) if transposed else None,
        )
        self._one_sample(base, values, prod(sizes) * step.in_channels)
        key = weight.data_ptr(), step.stride, step.padding, step.dilation, out
        self._tag(output, self._step(base, source, (step.in_channels, *sizes), step, *key))

    def _pool(self, base: str, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        rank = _POOLINGS[base]
        names = ["input", "kernel_size", "stride", "padding"]
        names += ["dilation", "ceil_mode"] if "max" in base else ["ceil_mode"]
        if base.startswith("lp"):
            names = ["input", "norm_type", "kernel_size", "stride", "ceil_mode"]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        values = given["input"]
        source = self._node_of(values)
        kernel = _each(given["kernel_size"], rank)
        stride = given.get("stride")
        if source is None:
            return
        shape = tuple(int(n) for n in values.shape[-rank - 1 :])
        step = Pooling(
            kernel,
            kernel if stride is None or stride == () else _each(stride, rank),
            _each(given.get("padding", 0), rank),
            _each(given.get("dilation", 1), rank),
            bool(given.get("ceil_mode", False)),
        )
        self._one_sample(base, values, prod(shape))
        self._tag(output, self._step(base, source, shape, step, step))

    def _adaptive(self, base: str, values: Any, output: Any) -> None:
        """Windows of adaptive pooling: output o sees floor(o n / m) to ceil((o + 1) n / m) - 1."""
        rank = _ADAPTIVE[base]
        source = self._node_of(values)
        sizes, out = values.shape[-rank:], output.shape[-rank:]
        lead = values.numel() // prod(sizes)
        a, b = np.arange(lead), np.arange(lead)
        for n, m in zip(sizes, out, strict=True):
            seen = [(i, o) for o in range(m) for i in range(o * n // m, -(-(o + 1) * n // m))]
            i, o = np.array(seen).T
            a, b = (a[:, None] * n + i).ravel(), (b[:, None] * m + o).ravel()
        assert source is not None
        shape = tuple(output.shape[-rank - 1 :])
        step = Linked(a, b, shape)
        self._tag(output, self._step(base, source, tuple(values.shape), step, tuple(out)))

    def _one_sample(self, base: str, values: Any, size: int) -> None:
        if values.numel() != size:
            raise InputError(
                self.title,
                f"{base} gets {tuple(values.shape)}, more than one sample of {size} values; call "
                "with one sample (every batch and time dimension of length 1)",
            )

    # ------------------------------------------------------------------ moves, sums, the rest

    def _move(
        self, func: Any, name: str, args: Any, kwargs: Any, known: list[Any], outputs: list[Any]
    ) -> None:
        """Run the function on places (1, 2, ...; 0 = from elsewhere) and see where they went."""
        starts: dict[int, int] = {}
        total = 1
        for tensor in known:
            if id(tensor) not in starts:
                starts[id(tensor)] = total
                total += tensor.numel()

        def places(value: Any) -> Any:
            if isinstance(value, self.torch.Tensor):
                if id(value) in starts:
                    start = starts[id(value)]
                    stop = start + value.numel()
                    numbers = self.torch.arange(start, stop, dtype=self.torch.float64)
                    return numbers.reshape(value.shape)
                floating = value.is_floating_point()
                return (
                    self.torch.zeros(value.shape, dtype=self.torch.float64) if floating else value
                )
            if isinstance(value, (list, tuple)):
                items = [places(v) for v in value]
                return tuple(items) if isinstance(value, tuple) else items
            return value

        results = func(*places(args), **{k: places(v) for k, v in kwargs.items()})
        for output, result in zip(outputs, _tensors(self.torch, results), strict=True):
            where = np.rint(self._array(result)).astype(np.int64)
            nodes = []
            for tensor in {id(t): t for t in known}.values():
                step = moved(where, tuple(output.shape), starts[id(tensor)], tensor.numel())
                source = self._node_of(tensor)
                assert source is not None
                assert isinstance(step, Linked)
                same = len(step.sources) == tensor.numel() == output.numel()
                if same and (step.sources == np.arange(tensor.numel())).all():
                    nodes.append(source)
                elif len(step.sources):
                    shape, key = (
                        tuple(tensor.shape),
                        step.sources.tobytes() + step.targets.tobytes(),
                    )
                    nodes.append(self._step(name.strip("_"), source, shape, step, step.shape, key))
            self._sum(name.strip("_"), nodes, output)

    def _reduce(self, base: str, args: Any, kwargs: Any, values: Any, outputs: list[Any]) -> None:
        dims = kwargs.get("dim", args[1] if len(args) > 1 else None)
        rank = values.dim()
        axes = range(rank) if dims is None else [dims] if isinstance(dims, int) else dims
        gone = {int(d) % max(rank, 1) for d in axes}
        kept = tuple(1 if d in gone else int(n) for d, n in enumerate(values.shape))
        targets = np.broadcast_to(np.arange(prod(kept)).reshape(kept), tuple(values.shape)).ravel()
        source = self._node_of(values)
        assert source is not None
        step = Linked(np.arange(values.numel()), targets, tuple(outputs[0].shape))
        node = self._step(base, source, tuple(values.shape), step, kept)
        for output in outputs:
            self._tag(output, node)

    def _elementwise(self, base: str, known: list[Any], outputs: list[Any]) -> None:
        for output in outputs:
            nodes = []
            for tensor in {id(t): t for t in known}.values():
                source = self._node_of(tensor)
                assert source is not None
                if tensor.numel() == output.numel():
                    nodes.append(source)
                    continue
                places = np.arange(tensor.numel()).reshape(tuple(tensor.shape))
                where = np.broadcast_to(places, tuple(output.shape))
                step = moved(where, tuple(output.shape))
                shape = tuple(output.shape)
                nodes.append(self._step(base, source, tuple(tensor.shape), step, shape))
            self._sum(base, list(dict.fromkeys(nodes)), output)


def _broadcasts(shape: Any, to: Any) -> bool:
    """Whether one shape can be broadcast to the other."""
    if len(shape) > len(to):
        return int(prod(shape)) == int(prod(to))
    return all(int(a) in (1, int(b)) for a, b in zip(shape[::-1], to[::-1], strict=False))


def _tensors(torch: Any, value: Any) -> list[Any]:
    """All tensors in nested arguments or results, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [t for item in value for t in _tensors(torch, item)]
    return []


def _each(value: Any, rank: int) -> tuple[int, ...]:
    if isinstance(value, (tuple, list)):
        values = tuple(int(v) for v in value)
        return values * rank if len(values) == 1 else values
    return (int(value),) * rank
