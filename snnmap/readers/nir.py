"""NIR graphs (``.nir``, HDF5), read leniently and without the ``nir`` package.

A file holds a graph of nodes, some with neurons (I, IF, LI, LIF, CubaLI, CubaLIF, Threshold) and
some without (weights, convolutions, pooling, ...). Neurons and inputs become populations, named
after their nodes; what lies between composes into links. Nested graphs are flattened first:
node ``lif`` of graph ``rnn`` is called ``rnn.lif``.

Source of the format: https://neuroir.org/docs and the files of its reference implementation,
versions 0.1 to 1.0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np

from snnmap.errors import ConfigError, InputError
from snnmap.hypergraph import Hypergraph
from snnmap.progress import SILENT, Progress
from snnmap.readers._hdf5 import Fields, Shape, looks_like, open_hdf5
from snnmap.readers._layer_graph import LayerGraph
from snnmap.readers._steps import Delay, Dense, Flatten, Step, times
from snnmap.readers._windows import Convolution, Padding, Pooling

__all__ = ["NEURONS", "from_fields", "read_nir", "recognise"]

NEURONS = {
    "I": ("r",),
    "IF": ("r", "v_threshold", "v_reset"),
    "LI": ("tau", "r", "v_leak"),
    "LIF": ("tau", "r", "v_leak", "v_threshold", "v_reset"),
    "CubaLI": ("tau_syn", "tau_mem", "r", "v_leak", "w_in"),
    "CubaLIF": ("tau_syn", "tau_mem", "r", "v_leak", "v_threshold", "v_reset", "w_in"),
    "Threshold": ("threshold",),
}
"""Node types with neurons, and the parameters whose shape tells how many there are."""

_MAX_DEPTH = 32


def recognise(path: Path, head: bytes) -> bool:
    """Whether this is an HDF5 file with a NIR graph."""
    return looks_like(path, head, "node/type", "node/nodes")


def read_nir(
    path: Path,
    *,
    progress: Progress = SILENT,
    unknown: str = "error",
    drop_zeros: bool = False,
    delay_unit: str = "ms",
) -> Hypergraph:
    """Read a NIR graph.

    Args:
        path: the file.
        progress: told of the work.
        unknown: ``"error"`` refuses node types that NIR does not define (all are listed at once);
            ``"skip"`` takes such nodes for wires.
        drop_zeros: weights of exactly zero are no links; by default they are.
        delay_unit: unit of Delay nodes, ``"ms"`` as NIR's documentation says, or ``"s"``.

    Returns:
        The network with a population for each Input and each node with neurons; rates are 1.

    Raises:
        InputError: the file is malformed, shapes disagree or cannot be told; names the node.
        ConfigError: an unknown value of an option.
    """
    with open_hdf5(path, "a NIR graph") as root:
        graph = root.child("node") if root.has("node") else root
        if not graph.has("type") and not graph.has("nodes"):
            raise root.error("has neither a node nor a graph; expected a NIR graph", "node")
        return from_fields(
            graph,
            name=Path(path).stem,
            progress=progress,
            unknown=unknown,
            drop_zeros=drop_zeros,
            delay_unit=delay_unit,
        )


def from_fields(
    graph: Fields,
    *,
    name: str,
    progress: Progress = SILENT,
    unknown: str = "error",
    drop_zeros: bool = False,
    delay_unit: str = "ms",
) -> Hypergraph:
    """Build the network of a NIR graph given as nested fields (a file, or a dict); see read_nir."""
    if unknown not in ("error", "skip"):
        raise ConfigError(f"unknown is {unknown!r}; expected 'error' or 'skip'")
    if delay_unit not in ("ms", "s"):
        raise ConfigError(f"delay_unit is {delay_unit!r}; expected 'ms' or 's'")
    flat = _Flattener(graph)
    strange = [(n, t) for n, (t, _) in flat.leaves.items() if t not in _KINDS and t not in NEURONS]
    if strange and unknown == "error":
        listed = ", ".join(f"{n!r} ({t})" for n, t in strange)
        raise InputError(
            graph.path,
            f"unknown node types: {listed}; expected {', '.join(sorted({*_KINDS, *NEURONS}))}, or "
            "read with unknown='skip' to take them for wires",
        )
    layers = LayerGraph(graph.path)
    fed = {target for _, target in flat.edges}
    options = _Options(drop_zeros, 1000.0 if delay_unit == "s" else 1.0)
    for node, (kind, fields) in flat.leaves.items():
        if kind == "Input" and node not in fed:
            layers.add_input(node, _input_shape(fields))
        elif kind in NEURONS:
            layers.add_neurons(node, _neuron_shape(fields, kind))
        else:
            layers.add_step(node, _KINDS.get(kind, _wire)(fields, options))
    for source, target in flat.edges:
        layers.connect(source, target)
    return layers.build(name, progress)


# ---------------------------------------------------------------------- nested graphs


@dataclass
class _Ports:
    """How a nested graph is reached from outside: its leaves, inputs and outputs by inner name."""

    leaves: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)


class _Flattener:
    """All nodes and edges of a graph and of the graphs in it, under unique names.

    Attributes:
        leaves: name -> (type, fields).
        edges: (source, target) names.
    """

    def __init__(self, graph: Fields) -> None:
        self.leaves: dict[str, tuple[str, Fields]] = {}
        self.edges: list[tuple[str, str]] = []
        self._most = _most_nodes(graph)
        kind = _type_of(graph)
        if kind == "NIRGraph":
            self._flatten(graph, "", [])
        else:
            self.leaves[kind.lower()] = (kind, graph)

    def _flatten(self, graph: Fields, prefix: str, ancestors: list[Any]) -> _Ports:
        if len(ancestors) >= _MAX_DEPTH or any(_same(graph.node, a) for a in ancestors):
            raise graph.error(
                f"graphs are nested deeper than {_MAX_DEPTH}, or a graph holds itself"
            )
        ports, graphs = _Ports(), {}
        nodes = graph.child("nodes")
        for name in nodes.names():
            node = nodes.child(name)
            kind = _type_of(node)
            full = self._unique(prefix + name)
            if kind == "NIRGraph":
                graphs[name] = self._flatten(node, full + ".", [*ancestors, graph.node])
                continue
            if len(self.leaves) >= self._most:
                raise graph.error(f"more than {self._most:,} nodes in a file of this size")
            self.leaves[full] = (kind, node)
            ports.leaves[name] = full
            if kind == "Input":
                ports.inputs[name] = full
            elif kind == "Output":
                ports.outputs[name] = full
        edges = _edges(graph)
        for i, (source, target) in enumerate(edges):
            place = f"edge {i} ({source!r} -> {target!r})"
            a = self._resolve(graph, place, source, ports.leaves, graphs, outgoing=True)
            b = self._resolve(graph, place, target, ports.leaves, graphs, outgoing=False)
            self.edges.append((a, b))
        _add_missing_ports(ports, edges)
        for inner, deeper in graphs.items():
            ports.leaves.update({f"{inner}.{k}": v for k, v in deeper.leaves.items()})
        return ports

    def _unique(self, name: str) -> str:
        while name in self.leaves:
            name = name.replace(".", "/", 1) if "." in name else name + "_"
        return name

    def _resolve(
        self,
        graph: Fields,
        place: str,
        name: str,
        leaves: dict[str, str],
        graphs: dict[str, _Ports],
        *,
        outgoing: bool,
    ) -> str:
        """The leaf at one end of an edge: a node, a graph with one port, or ``graph.port``."""
        if name in leaves:
            return leaves[name]
        side = "output" if outgoing else "input"
        if name in graphs:
            ports = graphs[name].outputs if outgoing else graphs[name].inputs
            if len(ports) == 1:
                return next(iter(ports.values()))
            which = ", ".join(f"{name}.{port}" for port in ports) or "none"
            raise graph.error(
                f"{place}: {name!r} is a graph with {len(ports)} {side}s, so the edge must name "
                f"one; there are {which}",
                "edges",
            )
        for dot in range(len(name) - 1, 0, -1):
            if name[dot] != ".":
                continue
            owner, port = name[:dot], name[dot + 1 :]
            if owner in graphs and port in graphs[owner].leaves:
                return graphs[owner].leaves[port]
            if owner in leaves and port == side:
                return leaves[owner]
        known = ", ".join(repr(n) for n in [*leaves, *graphs][:12])
        raise graph.error(
            f"{place} leads nowhere: there is no node {name!r}; known are {known}", "edges"
        )


def _add_missing_ports(ports: _Ports, edges: list[tuple[str, str]]) -> None:
    """A graph without Input or Output nodes is entered at its roots and left at its ends."""
    if not ports.inputs:
        targets = {b for _, b in edges}
        ports.inputs.update({n: full for n, full in ports.leaves.items() if n not in targets})
    if not ports.outputs:
        sources = {a for a, _ in edges}
        ports.outputs.update({n: full for n, full in ports.leaves.items() if n not in sources})


def _edges(graph: Fields) -> list[tuple[str, str]]:
    if not graph.has("edges"):
        return []
    pairs = graph.texts("edges")
    if not pairs.size:
        return []
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise graph.error(f"has shape {times(pairs.shape)}; expected (edges, 2)", "edges")
    return [(str(a), str(b)) for a, b in pairs]


def _type_of(node: Fields) -> str:
    if node.has("type"):
        return node.text("type")
    if node.has("nodes"):
        return "NIRGraph"
    raise node.error("is missing: a node must say what it is", "type")


def _same(a: Any, b: Any) -> bool:
    """Whether two groups (or dicts) are one and the same."""
    return a is b or (isinstance(a, h5py.Group) and bool(a == b))


def _most_nodes(graph: Fields) -> int:
    """More nodes than a file of its size can hold come from links in circles."""
    if not isinstance(graph.node, h5py.Group):
        return 1 << 62
    return max(10_000, Path(graph.path).stat().st_size // 64)


# ---------------------------------------------------------------------- nodes


@dataclass(frozen=True)
class _Options:
    drop_zeros: bool
    ms: float

    def weights(self, fields: Fields) -> Callable[[], Any] | None:
        return (lambda: fields.array("weight")) if self.drop_zeros else None


def _input_shape(fields: Fields) -> Shape:
    name = "input_type" if not fields.has("shape") and fields.has("input_type") else "shape"
    if fields.is_group(name):  # written by early versions as {"input": shape}
        return fields.child(name).integers("input")
    return fields.integers(name)


def _neuron_shape(fields: Fields, kind: str) -> Shape | None:
    shapes = {name: fields.shape(name) for name in NEURONS[kind] if fields.has(name)}
    try:
        return np.broadcast_shapes(*shapes.values()) if shapes else None
    except ValueError:
        listed = ", ".join(f"{name} {times(shape)}" for name, shape in shapes.items())
        raise fields.error(f"parameters disagree about the number of neurons: {listed}") from None


def _wire(fields: Fields, options: _Options) -> Step:
    return Step()


def _dense(fields: Fields, options: _Options) -> Step:
    shape = fields.shape("weight")
    if len(shape) < 2:
        raise fields.error(f"has shape {times(shape)}; expected (..., out, in)", "weight")
    return Dense(shape, options.weights(fields))


def _convolution(rank: int) -> Callable[[Fields, _Options], Step]:
    def convolution(fields: Fields, options: _Options) -> Step:
        shape = fields.shape("weight")
        if len(shape) != rank + 2 or 0 in shape:
            kernel = "kernel" if rank == 1 else "kernel height, kernel width"
            raise fields.error(
                f"has shape {times(shape)}; expected (out, in / groups, {kernel})",
                "weight",
            )
        sizes = None
        if fields.has("input_shape"):
            sizes = _per_axis(fields, "input_shape", rank, 0)
        groups = fields.integers("groups") if fields.has("groups") else (1,)
        if len(groups) != 1:
            raise fields.error(f"is {groups}; expected one number", "groups")
        return Convolution(
            shape[0],
            shape[1],
            shape[2:],
            _per_axis(fields, "stride", rank, 1),
            _padding(fields, rank),
            _per_axis(fields, "dilation", rank, 1),
            groups[0],
            sizes,
            options.weights(fields),
        )

    return convolution


def _pooling(fields: Fields, options: _Options) -> Step:
    kernel = _per_axis(fields, "kernel_size", 2, None)
    stride = _per_axis(fields, "stride", 2, kernel)
    return Pooling(kernel, stride, _padding(fields, 2), _per_axis(fields, "dilation", 2, 1))


def _flatten(fields: Fields, options: _Options) -> Step:
    declared = fields.integers("input_type") if fields.has("input_type") else None

    def one(name: str, default: int) -> int:
        values = fields.integers(name) if fields.has(name) else (default,)
        if len(values) != 1:
            raise fields.error(f"is {values}; expected one number", name)
        return values[0]

    return Flatten(one("start_dim", 1), one("end_dim", -1), declared)


def _delay(fields: Fields, options: _Options) -> Step:
    delays = fields.array("delay").real * options.ms
    if not delays.size or not (np.isfinite(delays).all() and delays.min() >= 0):
        worst = delays.min() if delays.size else "nothing"
        raise fields.error(f"holds {worst}; expected finite delays >= 0", "delay")
    return Delay((float(delays.min()), float(delays.max())))


def _per_axis(fields: Fields, name: str, rank: int, default: int | Shape | None) -> Shape:
    """One number for every axis; longer ones (with a batch or channels in front) keep their end."""
    if not fields.has(name) and default is not None:
        return (default,) * rank if isinstance(default, int) else default
    values = fields.integers(name)
    if len(values) == 1:
        return values * rank
    if len(values) == rank or (name == "input_shape" and len(values) > rank):
        return values[-rank:]
    raise fields.error(f"has {len(values)} values; expected 1 or {rank}", name)


def _padding(fields: Fields, rank: int) -> Padding:
    if not fields.has("padding"):
        return (0,) * rank
    if not fields.is_text("padding"):
        return _per_axis(fields, "padding", rank, 0)
    text: str = fields.text("padding")
    if text not in ("same", "valid"):
        raise fields.error(f"is {text!r}; expected 'same', 'valid' or numbers", "padding")
    padding: Literal["same", "valid"] = "same" if text == "same" else "valid"
    return padding


_KINDS: dict[str, Callable[[Fields, _Options], Step]] = {
    "Input": _wire,
    "Output": _wire,
    "Scale": _wire,
    "Affine": _dense,
    "Linear": _dense,
    "Conv1d": _convolution(1),
    "Conv2d": _convolution(2),
    "SumPool2d": _pooling,
    "AvgPool2d": _pooling,
    "Flatten": _flatten,
    "Delay": _delay,
}
"""Node types without neurons."""
