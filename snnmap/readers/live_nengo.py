"""Nengo models: ensembles become populations, decoders and encoders become dense links.

A connection between ensembles is a product of decoders, a transform and encoders. Its links are
found dimension by dimension: every neuron of an ensemble feeds each decoded dimension, a dimension
feeds every neuron that it is encoded in, and transforms, slices and passthrough nodes (as ensemble
arrays have) lead dimensions to dimensions, where a transform's zeros are no links.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from snnmap.errors import ConfigError, InputError
from snnmap.hypergraph import Hypergraph
from snnmap.networks import layers
from snnmap.networks.builder import Signal
from snnmap.readers._layer_graph import LayerGraph
from snnmap.readers._live import Linked, require
from snnmap.readers._steps import Dense, Shape, Step

__all__ = ["from_nengo"]


def from_nengo(
    model: Any, *, unknown: str = "error", drop_zeros: bool = False, name: str | None = None
) -> Hypergraph:
    """The network of a Nengo model; it need not be built.

    Args:
        model: a ``nengo.Network``, with its subnetworks.
        unknown: ``"error"`` refuses transforms whose links cannot be told; ``"skip"`` takes them to
            link everything.
        drop_zeros: zeros in transforms between *neurons* are no links; by default they are.
        name: of the network; default: its label.

    Returns:
        The network: an input population for each node that gives values, a population for each
        ensemble. What leads into such nodes and into learning rules is off the chip.

    Raises:
        EngineError: Nengo is not installed.
        InputError: the model has no ensembles, or an unknown transform.
    """
    nengo = require("nengo", "nengo", "from_nengo")
    if unknown not in ("error", "skip"):
        raise ConfigError(f"unknown is {unknown!r}; expected 'error' or 'skip'")
    if not isinstance(model, nengo.Network):
        raise InputError("from_nengo", f"got a {type(model).__name__}; expected a nengo.Network")
    title = name or str(model.label or "nengo model")
    if not model.all_ensembles:
        raise InputError(title, "has no ensembles")
    graph = LayerGraph(title, "object")
    names = _names([*model.all_nodes, *model.all_ensembles])
    for node in model.all_nodes:
        if node.output is None:
            graph.add_step(names[node], _Sized(node.size_in))
        elif node.size_out:
            graph.add_input(names[node], (node.size_out,))
    for ensemble in model.all_ensembles:
        graph.add_neurons(names[ensemble], (ensemble.n_neurons,))
    for k, connection in enumerate(model.all_connections):
        _connect(nengo, graph, names, connection, k, unknown, drop_zeros)
    _drop_unfed(graph)
    return graph.build(title)


def _names(objects: list[Any]) -> dict[Any, str]:
    """A unique name for each object: its label, with a number if several have it."""
    names: dict[Any, str] = {}
    taken: set[str] = set()
    for thing in objects:
        label = str(thing.label or type(thing).__name__.lower())
        name, k = label, 1
        while name in taken:
            k += 1
            name = f"{label} {k}"
        taken.add(name)
        names[thing] = name
    return names


class _Sized(Step):
    """A passthrough node: dimensions that are handed on."""

    def __init__(self, size: int) -> None:
        self.size = size

    def own_input(self) -> Shape | None:
        return (self.size,)


class _Related(Step):
    """A convolution over neurons or dimensions, channels last or first."""

    def __init__(self, transform: Any) -> None:
        self.transform = transform

    def output(self, shape: Shape) -> Shape:
        return (int(self.transform.size_out),)

    def apply(self, signal: Signal) -> Signal:
        t = self.transform
        relation, _ = layers.conv(
            tuple(t.input_shape.shape),
            t.n_filters,
            tuple(t.kernel_size),
            stride=tuple(t.strides),
            padding=t.padding,
            groups=getattr(t, "groups", 1),
            layout="hwc" if t.channels_last else "chw",
        )
        return signal.through(relation, (int(t.size_out),))


def _drop_unfed(graph: LayerGraph) -> None:
    """Passthrough nodes that nothing feeds hand on nothing."""
    while unfed := [n for n in graph.nodes.values() if n.kind == "step" and not n.before]:
        for node in unfed:
            for after in node.after:
                graph.nodes[after].before.remove(node.name)
            del graph.nodes[node.name]


def _connect(
    nengo: Any,
    graph: LayerGraph,
    names: dict[Any, str],
    connection: Any,
    k: int,
    unknown: str,
    drop_zeros: bool,
) -> None:
    pre, post = connection.pre_obj, connection.post_obj
    between_neurons = isinstance(pre, nengo.ensemble.Neurons)
    source = names.get(pre.ensemble if between_neurons else pre)
    target = names.get(post.ensemble if isinstance(post, nengo.ensemble.Neurons) else post)
    if source not in graph.nodes or target not in graph.nodes:
        return  # a learning rule, or a node that gives nothing
    assert source is not None
    assert target is not None
    if graph.nodes[target].kind == "input":
        return  # leaves the chip
    label = f"{source} -> {target} ({k})"

    def step(what: str, step: Step) -> None:
        nonlocal source
        assert source is not None
        graph.add_step(f"{what} of {label}", step)
        graph.connect(source, f"{what} of {label}")
        source = f"{what} of {label}"

    if isinstance(pre, nengo.Ensemble):  # a slice of the represented value still needs all neurons
        step("decoders", Dense((connection.size_mid, pre.n_neurons)))
    elif connection.pre_slice != slice(None):
        picked = np.arange(pre.size_out)[connection.pre_slice]
        step("slice", Linked(picked, np.arange(len(picked)), (len(picked),)))
    if connection.function is not None and not isinstance(pre, nengo.Ensemble):
        step("function", Dense((connection.size_mid, connection.size_in)))
    dense_neurons = between_neurons and isinstance(post, nengo.ensemble.Neurons)
    transform = _transform(
        nengo, connection, dense_neurons and not drop_zeros, unknown, graph, label
    )
    if transform is not None:
        step("transform", transform)
    if connection.post_slice != slice(None):
        picked = np.arange(post.size_in)[connection.post_slice]
        step("places", Linked(np.arange(len(picked)), picked, (int(post.size_in),)))
    if isinstance(post, nengo.Ensemble):
        fed = np.zeros(post.dimensions, bool)
        fed[connection.post_slice] = True
        n = post.n_neurons
        sources = np.repeat(np.flatnonzero(fed), n)
        step("encoders", Linked(sources, np.tile(np.arange(n), int(fed.sum())), (n,)))
    graph.connect(source, target)


def _transform(
    nengo: Any, connection: Any, keep_zeros: bool, unknown: str, graph: LayerGraph, label: str
) -> Step | None:
    """The step of a connection's transform; None where it hands values on one to one."""
    transform = connection.transform
    n_in, n_out = int(connection.size_mid), int(connection.size_out)
    if transform is None or isinstance(transform, nengo.transforms.NoTransform):
        return None
    if isinstance(transform, nengo.transforms.Convolution) and len(transform.kernel_size) <= 2:
        return _Related(transform)
    if isinstance(transform, nengo.transforms.Sparse):
        init = transform.init
        if isinstance(init, nengo.transforms.SparseMatrix):
            rows, columns = np.asarray(init.indices).T
        else:
            entries = init.tocoo()
            rows, columns = entries.row, entries.col
        return Linked(columns, rows, (n_out,))
    if isinstance(transform, nengo.transforms.Dense):
        if not isinstance(transform.init, np.ndarray):
            return Dense((n_out, n_in))  # drawn when the model is built
        matrix = np.asarray(transform.init)
        if matrix.ndim < 2:  # a factor for all, or one a dimension
            kept = np.flatnonzero(np.broadcast_to(matrix != 0, (n_in,)) | keep_zeros)
            return Linked(kept, kept, (n_out,))
        if keep_zeros:
            return Dense((n_out, n_in))
        rows, columns = np.nonzero(matrix)
        return Linked(columns, rows, (n_out,))
    if unknown == "skip":
        return Dense((n_out, n_in))
    raise graph.error(
        label,
        f"has a {type(transform).__name__} transform, whose links are not known; unknown='skip' "
        "takes it to link everything",
    )
