"""A graph of layers as files describe it, turned into a hypergraph.

Nodes are inputs, neurons or steps without neurons; edges come in any order and may form cycles as
long as each cycle has neurons in it. Shapes are found by walking from the inputs; what a file
leaves open (scalar parameters, a missing input shape) comes from the layers before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import prod
from pathlib import Path
from typing import Literal

import networkx as nx
import numpy as np

from snnmap.errors import InputError, NetworkError
from snnmap.hypergraph import MAX_NODES, Hypergraph
from snnmap.networks.builder import NetworkBuilder, Signal, add, concat
from snnmap.progress import SILENT, Progress
from snnmap.readers._steps import Shape, Step, amount, available_bytes, check_shape, fit

BYTES_PER_NEURON = 64  # what a hypergraph holds for each, at least


@dataclass(frozen=True)
class Concat(Step):
    """Several inputs, in the order of their edges, put together along one axis."""

    axis: int = 0


@dataclass
class Node:
    """A node of the graph.

    Attributes:
        name: unique; becomes the population's name.
        kind: what it is.
        shape: of inputs and neurons, None where only the layers before can tell.
        step: of steps.
        before: names of the nodes with an edge to this one, in the order of the edges.
        after: names of the nodes that this one has an edge to.
        in_shape: found by :meth:`LayerGraph.build`.
        out_shape: likewise.
    """

    name: str
    kind: Literal["input", "neurons", "step"]
    shape: Shape | None = None
    step: Step = field(default_factory=Step)
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    in_shape: Shape | None = None
    out_shape: Shape | None = None


class LayerGraph:
    """Collects nodes and edges; :meth:`build` makes the hypergraph.

    Args:
        path: of the file, for messages.
        what: how messages call a node, e.g. ``"node"`` or ``"layer"``.
    """

    def __init__(self, path: str | Path, what: str = "node") -> None:
        self.path = path
        self.what = what
        self.nodes: dict[str, Node] = {}

    def add_input(self, name: str, shape: Shape) -> None:
        """An external input."""
        self._add(Node(name, "input", shape))

    def add_neurons(self, name: str, shape: Shape | None) -> None:
        """Neurons; one parameter for all of them, or None, leaves their number to what comes in."""
        self._add(Node(name, "neurons", shape))

    def add_step(self, name: str, step: Step) -> None:
        """Something without neurons."""
        self._add(Node(name, "step", step=step))

    def _add(self, node: Node) -> None:
        if node.name in self.nodes:
            raise self.error(node.name, "two of them have this name; expected one")
        self.nodes[node.name] = node

    def connect(self, source: str, target: str) -> None:
        """An edge; the same edge twice is one edge."""
        for end, other in ((source, target), (target, source)):
            if end not in self.nodes:
                raise InputError(
                    self.path,
                    f"an edge between {other!r} and {end!r} leads nowhere: there is no "
                    f"{self.what} {end!r}; known are {_listed(self.nodes)}",
                )
        again = target in self.nodes[source].after
        if not again or isinstance(self.nodes[target].step, Concat):
            self.nodes[source].after.append(target)
            self.nodes[target].before.append(source)

    def error(self, name: str, problem: str) -> InputError:
        """An error about one node."""
        return InputError(self.path, problem, place=f"{self.what} {name!r}")

    def build(self, name: str, progress: Progress = SILENT) -> Hypergraph:
        """Resolve shapes and make the network.

        Raises:
            InputError: shapes that disagree or cannot be told, a cycle without neurons.
        """
        for node in list(self.nodes.values()):
            if node.kind == "step" and not node.before:
                self._supply_input(node)
        try:
            order = self._resolve(with_batch=False)
        except InputError as error:
            try:  # perhaps what looked like a batch was none
                order = self._resolve(with_batch=True)
            except InputError:
                raise error from None
        builder = NetworkBuilder(name)
        signals: dict[str, Signal] = {}
        populations = [n for n in order if n.kind != "step"]
        self._check_size(sum(prod(n.out_shape or ()) for n in populations))
        for node in populations:
            is_input = node.kind == "input"
            shape = node.out_shape or ()
            signals[node.name] = builder.population(node.name, shape, is_input=is_input)
        steps = self._steps_in_order(order)
        progress.start("link layers", len(steps) + len(populations), "layers")
        for node in steps:
            signals[node.name] = self._through(node, signals)
            progress.advance(note=node.name)
        for node in populations:
            for before in node.before:
                signal = signals[before]
                if signal.feeds:
                    builder.connect(signal.reshape((signal.size,)), node.name)
            progress.advance(note=node.name)
        progress.finish()
        return builder.build()

    def _through(self, node: Node, signals: dict[str, Signal]) -> Signal:
        shape = node.in_shape or ()
        try:
            if isinstance(node.step, Concat):
                parts = [signals[b] for b in node.before]
                shapes = _same_rank([part.shape for part in parts])
                parts = [p.reshape(shape) for p, shape in zip(parts, shapes, strict=True)]
                return concat(parts, node.step.axis)
            inputs = [signals[b].reshape(shape) for b in node.before]
            return node.step.apply(add(inputs) if inputs else Signal(shape, ()))
        except NetworkError as error:
            raise self.error(node.name, str(error)) from None

    # ------------------------------------------------------------------ order and shapes

    def _resolve(self, *, with_batch: bool) -> list[Node]:
        """Find all shapes; returns the nodes in the order of the data's flow."""
        for node in self.nodes.values():
            node.in_shape = node.out_shape = None
        graph = nx.DiGraph((n.name, after) for n in self.nodes.values() for after in n.after)
        graph.add_nodes_from(self.nodes)
        component = {
            name: i
            for i, names in enumerate(nx.strongly_connected_components(graph))
            for name in names
        }
        rank = {name: i for i, name in enumerate(sorted(self.nodes, key=_natural))}
        waiting = {n.name: len(n.before) for n in self.nodes.values()}
        ready: list[tuple[int, str]] = []
        for name, n in waiting.items():
            if not n:
                heappush(ready, (rank[name], name))
        open_names = dict.fromkeys(sorted(self.nodes, key=_natural))
        order: list[Node] = []
        while open_names:
            name = heappop(ready)[1] if ready else self._break_cycle(open_names, component)
            if name not in open_names:
                continue
            del open_names[name]
            node = self.nodes[name]
            self._set_shapes(node, with_batch)
            order.append(node)
            for after in node.after:
                waiting[after] -= 1
                if not waiting[after] and after in open_names:
                    heappush(ready, (rank[after], after))
        for node in order:
            self._check_edges(node)
        return order

    def _supply_input(self, node: Node) -> None:
        """An input before a step that nothing leads to, if the step says what it takes."""
        shape = node.step.own_input()
        if shape is None:
            if not node.after:
                return  # an Output that nothing reaches
            raise self.error(
                node.name,
                "nothing leads to it and its fields do not say what it takes; add an Input",
            )
        name = f"input_{node.name}"
        while name in self.nodes:
            name += "_"
        self.add_input(name, shape)
        self.connect(name, node.name)

    def _break_cycle(self, open_names: Iterable[str], component: dict[str, int]) -> str:
        """The node to go on with when every open one waits for another."""
        known, own = [], []
        for name in open_names:
            node = self.nodes[name]
            outside = [b for b in node.before if component[b] != component[name]]
            if isinstance(node.step, Concat) or any(
                self.nodes[b].out_shape is None for b in outside
            ):
                continue
            if any(self.nodes[b].out_shape is not None for b in node.before):
                known.append(name)
            elif node.kind == "neurons" and prod(node.shape or ()) > 1:
                return name if not known else known[0]
            elif node.kind == "step" and node.step.own_input() is not None:
                own.append(name)
        if not known and not own:
            raise InputError(
                self.path,
                f"{_listed(open_names)} form a cycle that no Input leads to and that does not say "
                "its sizes; add an Input or give its neurons one parameter each",
            )
        return (known or own)[0]

    def _set_shapes(self, node: Node, with_batch: bool) -> None:
        incoming = [s for b in node.before if (s := self.nodes[b].out_shape) is not None]
        first = incoming[0] if incoming else None
        try:
            if node.kind == "input":
                shape = node.shape or () if with_batch else self._without_batch(node)
                node.in_shape = node.out_shape = check_shape(shape)
            elif node.kind == "neurons":
                node.in_shape = node.out_shape = check_shape(_neuron_shape(node.shape, first))
            elif isinstance(node.step, Concat):
                signals = [Signal(shape, ()) for shape in _same_rank(incoming)]
                node.in_shape = node.out_shape = concat(signals, node.step.axis).shape
            elif not node.before:
                node.in_shape = node.out_shape = ()
            else:
                node.in_shape = first if first is not None else node.step.own_input() or ()
                node.out_shape = node.step.output(node.in_shape)
        except NetworkError as error:
            raise self.error(node.name, str(error)) from None

    def _without_batch(self, node: Node) -> Shape:
        """An input's shape, without leading dimensions (a batch) where that fits better."""
        shape = node.shape or ()
        after = [self.nodes[name] for name in node.after]

        def fits(start: int) -> int:
            rest = shape[start:]
            scores = (n.step.fit(rest) if n.kind == "step" else _fit(n, rest) for n in after)
            return min(scores, default=1)

        return shape[max(range(max(len(shape), 1)), key=lambda start: (fits(start), -start)) :]

    def _check_edges(self, node: Node) -> None:
        if isinstance(node.step, Concat):
            return
        for before in node.before:
            given, taken = self.nodes[before].out_shape or (), node.in_shape or ()
            if prod(given) != prod(taken):
                raise self.error(
                    node.name,
                    f"takes {amount(taken)} values, but {before!r} gives {amount(given)}",
                )

    def _check_size(self, n_neurons: int) -> None:
        need = n_neurons * BYTES_PER_NEURON
        if n_neurons > MAX_NODES or (need > 1 << 30 and need > available_bytes()):
            raise InputError(
                self.path,
                f"{n_neurons:,} neurons and inputs need about {need / 1e9:,.0f} GB of memory and "
                f"at most {MAX_NODES:,} fit; {available_bytes() / 1e9:,.1f} GB are free",
            )

    def _steps_in_order(self, order: list[Node]) -> list[Node]:
        """Steps so that each comes after those that lead to it without a neuron in between."""
        place = {node.name: i for i, node in enumerate(order)}
        steps = nx.DiGraph()
        steps.add_nodes_from(node.name for node in order if node.kind == "step")
        for name in list(steps):
            steps.add_edges_from(
                (name, after) for after in self.nodes[name].after if after in steps
            )
        try:
            return [
                self.nodes[name]
                for name in nx.lexicographical_topological_sort(steps, place.__getitem__)
            ]
        except nx.NetworkXUnfeasible:
            cycle = [a for a, _ in nx.find_cycle(steps)]
            chain = " -> ".join(repr(a) for a in [*cycle, cycle[0]])
            raise InputError(
                self.path, f"the cycle {chain} has no neurons in it; expected at least one"
            ) from None


def _neuron_shape(own: Shape | None, incoming: Shape | None) -> Shape:
    """Shape of neurons from their parameters and what leads to them."""
    if incoming is None:
        return own or (1,)
    if own is None or prod(own) == 1:
        return incoming or own or (1,)
    if prod(own) == prod(incoming):
        return own
    try:
        if np.broadcast_shapes(own, incoming) == incoming:
            return incoming
    except ValueError:
        pass
    if len(own) == 1 and len(incoming) > 1 and own[0] == incoming[0]:
        return incoming  # one parameter a channel
    raise NetworkError(
        f"has parameters for {amount(own)} neurons, but {amount(incoming)} values lead to it"
    )


def _same_rank(shapes: list[Shape]) -> list[Shape]:
    """Shapes with ones at the end, so that (3,) and (2, 1, 1) can be put together."""
    rank = max(map(len, shapes), default=0)
    return [shape + (1,) * (rank - len(shape)) for shape in shapes]


def _fit(neurons: Node, shape: Shape) -> int:
    """How well what leads to neurons fits them, as :meth:`Step.fit` counts."""
    return fit(None if prod(neurons.shape or ()) == 1 else neurons.shape, shape)


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key under which ``"layer10"`` comes after ``"layer9"``."""
    parts = re.split(r"([0-9]{1,18})", name)
    return [(0, int(p), "") if p.isdecimal() and p.isascii() else (1, 0, p) for p in parts if p]


def _listed(names: Iterable[str], most: int = 8) -> str:
    names = list(names)
    text = ", ".join(repr(name) for name in names[:most])
    return f"{text} and {len(names) - most} more" if len(names) > most else text or "none"
