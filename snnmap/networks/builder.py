"""Populations and the links between them, put together into a grouped hypergraph.

Neurons are numbered population by population in the order of creation, row-major within each. A
neuron has one axon: its destination set is the union over all links of its population, whatever
they lead to. Neurons with equal destination sets (the channels of a pixel, the units of a dense
layer) share a group; nothing is expanded.

Layers without neurons of their own live only in a :class:`Signal`: an array of values, each of
which is fed by neurons through known relations. Adding, concatenating, flattening or pooling
signals composes relations; :meth:`NetworkBuilder.population` turns a signal into neurons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import numpy as np

from snnmap import _csr
from snnmap.errors import NetworkError
from snnmap.hypergraph import MAX_NODES, Hypergraph, Population, Projection
from snnmap.networks import _kernels, layers
from snnmap.networks.rates import ConstantRates, Rates
from snnmap.networks.relations import Relation, identity
from snnmap.parallel import for_chunks, map_tasks

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Delay = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Feed:
    """How one population reaches the values of a signal.

    Attributes:
        population: its name.
        relation: from its neurons to the signal's values; None is the identity.
        delay_ms: (smallest, largest) delay on the way, None if not stated.
    """

    population: str
    relation: Relation | None = None
    delay_ms: Delay | None = None


@dataclass(frozen=True, slots=True)
class Signal:
    """An array of values between layers, each fed by neurons.

    Attributes:
        shape: of the array, row-major.
        feeds: the populations that reach it; one population may stand there several times.
    """

    shape: Shape
    feeds: tuple[Feed, ...]

    @property
    def size(self) -> int:
        """Number of values."""
        return prod(self.shape)

    def through(self, relation: Relation, shape: Shape) -> Signal:
        """The signal after an operator without neurons, given as its relation and output shape."""
        return Signal(
            shape,
            tuple(
                Feed(
                    f.population, f.relation.then(relation) if f.relation else relation, f.delay_ms
                )
                for f in self.feeds
            ),
        )

    def relabel(self, new_ids: Array, shape: Shape) -> Signal:
        """The signal with value i moved to flat place ``new_ids[i]`` (-1: dropped) of `shape`."""
        size = prod(shape)
        return Signal(
            shape,
            tuple(
                Feed(
                    f.population,
                    (f.relation or identity(self.size)).relabel(new_ids, size),
                    f.delay_ms,
                )
                for f in self.feeds
            ),
        )

    def reshape(self, shape: Shape) -> Signal:
        """The same values in another shape; flattening is this.

        Raises:
            NetworkError: another number of values.
        """
        if prod(shape) != self.size:
            raise NetworkError(f"{self.size} values of shape {self.shape} do not fit shape {shape}")
        return Signal(shape, self.feeds)

    def delayed(self, delay_ms: Delay) -> Signal:
        """The signal after a delay of (smallest, largest) milliseconds; delays on a way add up."""
        low, high = delay_ms
        feeds = []
        for f in self.feeds:
            before = f.delay_ms or (0.0, 0.0)
            feeds.append(Feed(f.population, f.relation, (before[0] + low, before[1] + high)))
        return Signal(self.shape, tuple(feeds))


def add(signals: Sequence[Signal]) -> Signal:
    """Element-wise sum (a residual connection): every value is fed by what feeds its terms.

    Raises:
        NetworkError: shapes differ.
    """
    shapes = {s.shape for s in signals}
    if len(shapes) != 1:
        listed = ", ".join(str(s.shape) for s in signals)
        raise NetworkError(f"inputs of shapes {listed} cannot be added; expected equal shapes")
    return Signal(signals[0].shape, tuple(f for s in signals for f in s.feeds))


def concat(signals: Sequence[Signal], axis: int) -> Signal:
    """Concatenation along one axis.

    Raises:
        NetworkError: shapes that differ elsewhere.
    """
    places, shape = layers.concat_ids([s.shape for s in signals], axis)
    moved = [s.relabel(ids, shape) for s, ids in zip(signals, places, strict=True)]
    return Signal(shape, tuple(f for s in moved for f in s.feeds))


@dataclass(eq=False)
class NetworkBuilder:
    """Collects populations and links; :meth:`build` makes the hypergraph.

    Attributes:
        name: of the network.
        populations: so far, in order.
    """

    name: str = "network"
    populations: dict[str, Population] = field(default_factory=dict)
    _links: dict[str, list[tuple[str, Relation | None]]] = field(default_factory=dict)
    _delays: dict[tuple[str, str], Delay | None] = field(default_factory=dict)
    _rates: dict[str, Rates] = field(default_factory=dict)

    @property
    def n_neurons(self) -> int:
        """Neurons (inputs included) so far."""
        return next(reversed(self.populations.values())).stop if self.populations else 0

    def population(
        self,
        name: str,
        shape: Shape,
        source: Signal | None = None,
        *,
        is_input: bool = False,
        rates: Rates | None = None,
    ) -> Signal:
        """Add neurons.

        Args:
            name: unique.
            shape: of the population, row-major; a size of 0 is legal.
            source: what feeds the neurons, value i to neuron i; None for nothing (yet).
            is_input: external input, see :class:`snnmap.hypergraph.Population`.
            rates: of these neurons; default: the network's.

        Returns:
            The neurons' own signal.

        Raises:
            NetworkError: a name used twice, a negative shape, more neurons than 32-bit ids hold, a
                source of another size.
        """
        if name in self.populations:
            raise NetworkError(f"two layers are named {name!r}; give each its own name")
        if min(shape, default=1) < 0:
            raise NetworkError(f"layer {name!r}: shape {shape} has a negative dimension")
        start = self.n_neurons
        if start + prod(shape) > MAX_NODES:
            raise NetworkError(
                f"layer {name!r}: {start + prod(shape):,} neurons exceed the {MAX_NODES:,} ids"
            )
        self.populations[name] = Population(
            name, start, start + prod(shape), tuple(shape), is_input
        )
        self._links[name] = []
        if rates is not None:
            self._rates[name] = rates
        signal = Signal(tuple(shape), (Feed(name),))
        if source is not None:
            self.connect(source, name)
        return signal

    def connect(self, source: Signal, target: str) -> None:
        """Link a signal to an existing population, value i to neuron i (recurrence, branches).

        Raises:
            NetworkError: sizes that differ.
        """
        size = self.populations[target].size
        if source.size != size:
            raise NetworkError(
                f"layer {target!r}: {source.size} values {source.shape} feed {size} neurons"
            )
        for feed in source.feeds:
            self._links[feed.population].append((target, feed.relation))
            pair = (feed.population, target)
            self._delays[pair] = _span(self._delays.get(pair), feed.delay_ms)

    def build(self, rates: Rates | None = None, *, name: str | None = None) -> Hypergraph:
        """Make the hypergraph; the builder may be used on.

        Args:
            rates: of the neurons whose population has none of its own; default: 1 each.
            name: default: the builder's.

        Raises:
            NetworkError: rates that do not fit the neurons.
        """
        plans = map_tasks(_Plan.of, [(self, p) for p in self.populations.values()])
        offsets = _csr.offsets_of(_joined([plan.counts for plan in plans], np.int64))
        targets = np.empty(int(offsets[-1]), np.int32)
        n_axons = sum(len(plan.neurons) for plan in plans)
        sources, n_hedges = np.empty(n_axons, np.int32), np.empty(len(offsets) - 1, np.int64)
        group, axon, unsorted = 0, 0, []
        for plan in plans:
            groups = slice(group, group + len(plan.counts))
            axons = slice(axon, axon + len(plan.neurons))
            plan.write(targets, offsets[groups])
            np.add(plan.neurons, plan.population.start, out=sources[axons], casting="unsafe")
            n_hedges[groups] = plan.sizes
            if not plan.ascends:
                unsorted.append((axons, np.argsort(plan.group_of, kind="stable")))
            group, axon = groups.stop, axons.stop
        weights = self._draw_rates(sources, rates or ConstantRates())
        for axons, order in unsorted:
            sources[axons], weights[axons] = sources[axons][order], weights[axons][order]
        offsets, targets = _csr.sort_unique(offsets, targets)
        return Hypergraph(
            self.n_neurons,
            offsets,
            targets,
            _csr.offsets_of(n_hedges),
            np.arange(n_axons + 1, dtype=np.int64),
            sources,
            weights,
            np.ones(n_axons, np.int64),
            np.ones(self.n_neurons, np.int64),
            tuple(p for p in self.populations.values()),
            tuple(Projection(*pair, delay_ms=delay) for pair, delay in self._delays.items()),
            name or self.name,
        )

    def _draw_rates(self, axon_sources: Array, rates: Rates) -> Array:
        weights = rates.draw(axon_sources, self.n_neurons)
        for name, own in self._rates.items():
            population = self.populations[name]
            bounds = np.searchsorted(axon_sources, [population.start, population.stop])
            neurons = axon_sources[bounds[0] : bounds[1]] - population.start
            try:
                weights[bounds[0] : bounds[1]] = own.draw(neurons, population.size)
            except NetworkError as error:
                raise NetworkError(f"layer {name!r}: {error}") from None
        return weights


class _Link(NamedTuple):
    """What one link contributes to the destination sets of a population.

    Attributes:
        relation: of the link.
        shift: from its targets to global ids.
        rows: int64[n_groups], the row of each group; n_rows for none.
        lengths: int64[n_groups], its pins.
    """

    relation: Relation
    shift: int
    rows: Array
    lengths: Array


@dataclass(slots=True)
class _Plan:
    """The destination sets of one population, before they are written.

    Attributes:
        population: whose.
        neurons: integer[n_axons] local ids of the neurons that reach anything, ascending.
        group_of: integer[n_axons] their groups, numbered from 0.
        ascends: whether `group_of` does.
        sizes: int64[n_groups] axons of each group.
        counts: int64[n_groups] pins to write a group (before duplicates are dropped).
        links: what to write.
    """

    population: Population
    neurons: Array
    group_of: Array
    ascends: bool
    sizes: Array
    counts: Array
    links: list[_Link]

    @classmethod
    def of(cls, builder: NetworkBuilder, population: Population) -> _Plan:
        n = population.size
        links = [
            (relation or identity(n), builder.populations[target].start)
            for target, relation in builder._links[population.name]
        ]
        links.sort(key=lambda link: link[1])
        keys, firsts = np.zeros(n, np.int32), np.zeros(min(1, n), np.int64)
        sizes, ascends, n_keys = np.full(min(1, n), n, np.int64), True, 1
        for i, (relation, _) in enumerate(links):  # one key a distinct combination of rows
            n_keys, combined = len(firsts) * (relation.n_rows + 1), relation.rows
            if i > 0:
                combined = keys * np.int64(relation.n_rows + 1) + combined
            keys, firsts, sizes, ascends = _distinct(combined, n_keys)
        found, counts = [], np.zeros(len(firsts), np.int64)
        for relation, shift in links:
            rows = relation.rows[firsts].astype(np.int64)
            rows[rows < 0] = relation.n_rows
            lengths = np.append(np.diff(relation.offsets), 0)[rows]
            counts += lengths
            found.append(_Link(relation, shift, rows, lengths))
        neurons: Array = np.arange(n, dtype=np.int32)
        if not (counts > 0).all():
            used = counts > 0
            neurons = np.flatnonzero(used[keys])
            keys = (np.cumsum(used) - 1)[keys[neurons]]
            found = [_Link(*link[:2], *(array[used] for array in link[2:])) for link in found]
            counts, sizes = counts[used], sizes[used]
        return cls(population, neurons, keys, ascends, sizes, counts, found)

    def write(self, targets: Array, starts: Array) -> None:
        """Write the pins of each group at `starts` of `targets`, link after link."""
        cursor = starts if len(self.links) == 1 else starts.copy()
        for relation, shift, rows, lengths in self.links:
            args = (relation.targets, relation.offsets[rows], lengths, shift, targets, cursor)
            for_chunks(_kernels.copy_shifted_rows, len(rows), *args, grain=4096)
            if len(self.links) > 1:
                cursor += lengths


def _distinct(keys: Array, n_keys: int) -> tuple[Array, Array, Array, bool]:
    """Distinct keys (integers >= -1, below `n_keys`) by first appearance.

    Returns:
        (int32 number of each key, int64 where each appears first, int64 how often, whether the numbers
        ascend).
    """
    n = len(keys)
    if n_keys <= 8 * n + 1024:
        numbers = np.empty(n, np.int32)
        firsts, sizes = (
            np.empty(min(n, n_keys + 1), np.int64),
            np.empty(min(n, n_keys + 1), np.int64),
        )
        table = np.full(n_keys + 1, -1, np.int32)
        n_distinct, ascends = _kernels.number_keys(
            keys.astype(np.int64), table, numbers, firsts, sizes
        )
        return numbers, firsts[:n_distinct], sizes[:n_distinct], ascends
    _, firsts, index, sizes = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(firsts)
    numbers = np.empty(len(order), np.int32)
    numbers[order] = np.arange(len(order))
    return numbers[index], firsts[order], sizes[order], False


def _joined(arrays: list[Array], dtype: Any) -> Array:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype)


def _span(a: Delay | None, b: Delay | None) -> Delay | None:
    if a is None or b is None:
        return a or b
    return min(a[0], b[0]), max(a[1], b[1])
