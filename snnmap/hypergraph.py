"""The one network structure: an immutable directed hypergraph in grouped form.

A node is a neuron; a hyperedge (h-edge) is an axon: its source(s), its destinations and a weight
(spike rate). A *group* is a destination set stored once together with all h-edges that share it:

    group g --- destinations[group_offsets[g] : group_offsets[g + 1]]          ascending, distinct
       |
       +------- h-edges hedge_offsets[g] .. hedge_offsets[g + 1] - 1
                   |
                   +--- sources[source_offsets[e] : source_offsets[e + 1]]     ascending, distinct
                   +--- weights[e], axon_counts[e]

A network without shared destination sets has one h-edge a group and nothing else changes. The pins
of h-edge e are its sources and its group's destinations, each node once; a node that is both has
both roles. An h-edge may have no source (undirected input, or a source that is off the chip).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntFlag
from functools import cached_property
from typing import Any

import numpy as np

from snnmap import _csr
from snnmap.errors import InputError

Array = np.ndarray[Any, Any]

MAX_NODES = 2**31 - 1


class Role(IntFlag):
    """What a node is to an h-edge; a self-loop makes it both."""

    SOURCE = 1
    DESTINATION = 2
    BOTH = 3


@dataclass(frozen=True, slots=True)
class Population:
    """A named, contiguous range of nodes: a layer, a SONATA population, the inputs.

    Attributes:
        name: unique within the network.
        start, stop: nodes ``start <= node < stop``.
        shape: e.g. (height, width, channels); row-major; its product is ``stop - start``.
        is_input: external input (spike source), which may be kept off the chip.
    """

    name: str
    start: int
    stop: int
    shape: tuple[int, ...]
    is_input: bool = False

    @property
    def size(self) -> int:
        """Number of nodes."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Projection:
    """Delays between two populations, carried along from the network's description.

    Attributes:
        source, target: names of populations.
        delay_ms: (smallest, largest) synaptic delay in milliseconds; None if not stated.
    """

    source: str
    target: str
    delay_ms: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class Hypergraph:
    """A directed hypergraph in grouped form (see the module's text). Arrays are read-only.

    Attributes:
        n_nodes: number of nodes (neurons).
        group_offsets: int64[n_groups + 1].
        destinations: int32[n_destination_pins].
        hedge_offsets: int64[n_groups + 1].
        source_offsets: int64[n_hedges + 1].
        sources: int32[n_source_pins].
        weights: float64[n_hedges], spikes/s (or any rate), finite and >= 0.
        axon_counts: int64[n_hedges], axons that an h-edge stands for (1 unless contracted).
        node_sizes: int64[n_nodes], neurons a node stands for (1 unless contracted or weighted).
        populations: named node ranges, ascending and disjoint; may be empty.
        projections: delays between populations; may be empty.
        name: of the network, for reports.

    Use :meth:`from_hedges` or :meth:`from_groups`, which check and normalise; the plain constructor
    trusts its caller.
    """

    n_nodes: int
    group_offsets: Array
    destinations: Array
    hedge_offsets: Array
    source_offsets: Array
    sources: Array
    weights: Array
    axon_counts: Array
    node_sizes: Array
    populations: tuple[Population, ...] = ()
    projections: tuple[Projection, ...] = ()
    name: str = "network"

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    # ------------------------------------------------------------------ building

    @classmethod
    def from_groups(
        cls,
        n_nodes: int,
        group_offsets: Array,
        destinations: Array,
        hedge_groups: Array,
        sources: Array,
        weights: Array,
        *,
        source_offsets: Array | None = None,
        axon_counts: Array | None = None,
        node_sizes: Array | None = None,
        populations: Sequence[Population] = (),
        projections: Sequence[Projection] = (),
        name: str = "network",
    ) -> Hypergraph:
        """Build from destination sets and the h-edges that use them; checks everything.

        Args:
            n_nodes: number of nodes.
            group_offsets: int64[n_groups + 1] into `destinations`.
            destinations: integer[n_pins]; rows may be unsorted and hold duplicates (one pin then).
            hedge_groups: integer[n_hedges], the group of each h-edge, in any order.
            sources: integer[n_hedges], or integer[source_offsets[-1]] with `source_offsets`.
            weights: float[n_hedges].
            source_offsets: int64[n_hedges + 1] if h-edges do not have exactly one source each.
            axon_counts: int64[n_hedges], default 1 each.
            node_sizes: int64[n_nodes], default 1 each.
            populations: see the class.
            projections: see the class.
            name: of the network.

        Raises:
            InputError: an id out of range, a weight that is negative or not finite, offsets that do
                not fit, populations that overlap; the text names the h-edge or group.
        """
        if not 0 <= n_nodes <= MAX_NODES:
            raise InputError(name, f"{n_nodes} nodes; expected 0 to {MAX_NODES}")
        group_offsets = _checked_offsets(group_offsets, len(destinations), name, "group")
        pins = _as_ids(destinations, n_nodes, name, "destination")
        _check_ids(group_offsets, pins, n_nodes, name, "destination group")
        group_offsets, pins = _csr.sort_unique(group_offsets, pins)

        n_hedges = len(weights)
        if source_offsets is None:
            source_offsets = np.arange(n_hedges + 1, dtype=np.int64)
        source_offsets = _checked_offsets(source_offsets, len(sources), name, "h-edge")
        if len(source_offsets) != n_hedges + 1 or len(hedge_groups) != n_hedges:
            raise InputError(name, "sources, groups and weights of h-edges differ in length")
        source_pins = _as_ids(sources, n_nodes, name, "source")
        _check_ids(source_offsets, source_pins, n_nodes, name, "sources of h-edge")
        source_offsets, source_pins = _csr.sort_unique(source_offsets, source_pins)

        hedge_groups = np.asarray(hedge_groups, np.int64)
        n_groups = len(group_offsets) - 1
        if n_hedges and not 0 <= hedge_groups.min() <= hedge_groups.max() < n_groups:
            raise InputError(name, f"an h-edge names a group outside 0..{n_groups - 1}")
        weights = np.array(weights, np.float64)
        wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
        if len(wrong):
            e = int(wrong[0])
            raise InputError(
                name, f"weight {weights[e]} is not a finite number >= 0", place=f"h-edge {e}"
            )
        axons = (
            np.ones(n_hedges, np.int64) if axon_counts is None else np.array(axon_counts, np.int64)
        )
        if len(axons) != n_hedges or (n_hedges and axons.min() < 1):
            raise InputError(name, "axon counts must be one whole number >= 1 for each h-edge")
        sizes = np.ones(n_nodes, np.int64) if node_sizes is None else np.array(node_sizes, np.int64)
        if len(sizes) != n_nodes or (n_nodes and sizes.min() < 0):
            raise InputError(name, "node sizes must be one whole number >= 0 for each node")

        if n_hedges and (np.diff(hedge_groups) < 0).any():
            order = np.argsort(hedge_groups, kind="stable")
            counts = np.diff(source_offsets)[order]
            starts, source_offsets = source_offsets[order], _csr.offsets_of(counts)
            source_pins = _csr.take_rows(source_pins, starts, counts, source_offsets)
            weights, axons = weights[order], axons[order]
        hedge_offsets = _csr.offsets_of(np.bincount(hedge_groups, minlength=n_groups))
        return cls(
            n_nodes,
            group_offsets,
            pins,
            hedge_offsets,
            source_offsets,
            source_pins,
            weights,
            axons,
            sizes,
            _checked_populations(populations, n_nodes, name),
            tuple(projections),
            name,
        )

    @classmethod
    def from_hedges(
        cls,
        n_nodes: int,
        sources: Array,
        offsets: Array,
        destinations: Array,
        weights: Array,
        **others: Any,
    ) -> Hypergraph:
        """Build from one destination row for each h-edge.

        Args:
            n_nodes: number of nodes.
            sources: integer[n_hedges] (or as `source_offsets` says, see :meth:`from_groups`).
            offsets: int64[n_hedges + 1] into `destinations`.
            destinations: integer[n_pins].
            weights: float[n_hedges].
            others: keyword arguments of :meth:`from_groups`.
        """
        groups = np.arange(len(weights), dtype=np.int64)
        return cls.from_groups(n_nodes, offsets, destinations, groups, sources, weights, **others)

    # ------------------------------------------------------------------ counts

    @property
    def n_groups(self) -> int:
        """Number of stored destination sets."""
        return len(self.group_offsets) - 1

    @property
    def n_hedges(self) -> int:
        """Number of h-edges."""
        return len(self.weights)

    @cached_property
    def n_pins(self) -> int:
        r"""Sum over h-edges of distinct sources and destinations (the literature's sum of \|e\|)."""
        return int(self.hedge_cardinalities.sum())

    @cached_property
    def hedge_cardinalities(self) -> Array:
        r"""int64[n_hedges]: \|e\|, distinct pins of each h-edge, sources included."""
        fan_out = np.diff(self.group_offsets)[self.hedge_groups]
        return fan_out + np.diff(self.source_offsets) - self._self_loops

    @cached_property
    def hedge_groups(self) -> Array:
        """int64[n_hedges]: the group of each h-edge."""
        return np.repeat(np.arange(self.n_groups, dtype=np.int64), np.diff(self.hedge_offsets))

    @cached_property
    def _self_loops(self) -> Array:
        """int64[n_hedges]: how many sources of each h-edge are among its destinations."""
        hedges = np.repeat(np.arange(self.n_hedges, dtype=np.int64), np.diff(self.source_offsets))
        groups = self.hedge_groups[hedges]
        found = _csr.rows_contain(self.group_offsets, self.destinations, groups, self.sources)
        return np.bincount(hedges, weights=found, minlength=self.n_hedges).astype(np.int64)

    # ------------------------------------------------------------------ views

    @cached_property
    def incidence(self) -> tuple[Array, Array]:
        """(offsets int64[n_nodes + 1], groups int32): groups with each node among destinations."""
        return _csr.transpose(self.group_offsets, self.destinations, self.n_nodes)

    @cached_property
    def outgoing(self) -> tuple[Array, Array]:
        """(offsets int64[n_nodes + 1], h-edges int32): h-edges with each node among sources."""
        return _csr.transpose(self.source_offsets, self.sources, self.n_nodes)

    @cached_property
    def group_axons(self) -> Array:
        """int64[n_groups]: axons that share each destination set (what Delta counts)."""
        return _csr.sum_segments(self.hedge_offsets, self.axon_counts)

    @cached_property
    def has_single_sources(self) -> bool:
        """Whether every h-edge has exactly one source."""
        return _csr.has_single_rows(self.source_offsets)

    @cached_property
    def fan_ins(self) -> Array:
        """int64[n_nodes]: inbound axons of each node (a self-loop counts)."""
        return _csr.sum_weights(
            self.group_offsets, self.destinations, self.group_axons, self.n_nodes
        )

    def pins(self, hedge: int) -> tuple[Array, Array]:
        """The nodes of one h-edge, ascending, and their roles (int8 of :class:`Role`)."""
        group = int(np.searchsorted(self.hedge_offsets, hedge, side="right")) - 1
        into = self.destinations[self.group_offsets[group] : self.group_offsets[group + 1]]
        out = self.sources[self.source_offsets[hedge] : self.source_offsets[hedge + 1]]
        nodes = np.union1d(out, into)
        roles = Role.SOURCE * np.isin(nodes, out) + Role.DESTINATION * np.isin(nodes, into)
        return nodes, roles.astype(np.int8)

    def population_of(self, node: int) -> Population | None:
        """The population that holds `node`, or None."""
        for population in self.populations:
            if population.start <= node < population.stop:
                return population
        return None

    def describe_node(self, node: int) -> str:
        """``"neuron 7 of 'conv1' (node 1031)"`` with a layer, ``"node 1031"`` without."""
        population = self.population_of(node)
        if population is None:
            return f"node {node}"
        kind = "input" if population.is_input else "neuron"
        return f"{kind} {node - population.start} of {population.name!r} (node {node})"

    # ------------------------------------------------------------------ new hypergraphs

    def grouped(self) -> Hypergraph:
        """The same network with every distinct destination set stored once (lossless, exact)."""
        starts, counts = self.group_offsets[:-1], np.diff(self.group_offsets)
        group, firsts = _csr.group_equal_rows(self.destinations, starts, counts)
        if len(firsts) == self.n_groups:
            return self
        offsets = _csr.offsets_of(counts[firsts])
        pins = _csr.take_rows(self.destinations, starts[firsts], counts[firsts], offsets)
        return self._with_groups(offsets, pins, group[self.hedge_groups], len(firsts))

    def _with_groups(self, offsets: Array, pins: Array, groups: Array, n_groups: int) -> Hypergraph:
        hedge_offsets, order = _csr.sort_places(groups.astype(np.int32), n_groups)
        counts = np.diff(self.source_offsets)
        if (counts == 1).all():
            source_offsets, sources = self.source_offsets, self.sources[order]
        else:
            counts = counts[order]
            source_offsets = _csr.offsets_of(counts)
            sources = _csr.take_rows(
                self.sources, self.source_offsets[order], counts, source_offsets
            )
        return replace(
            self,
            group_offsets=offsets,
            destinations=pins,
            hedge_offsets=hedge_offsets,
            source_offsets=source_offsets,
            sources=sources,
            weights=self.weights[order],
            axon_counts=self.axon_counts[order],
        )

    def contract(self, clusters: Array) -> Hypergraph:
        """Merge nodes: node n becomes part of coarse node ``clusters[n]``.

        Roles survive (a cluster can be source and destination of an h-edge), h-edges with equal
        sources and destinations become one whose weight and axon count are the sums. Populations
        and projections are dropped, for clusters need not respect them.

        Args:
            clusters: integer[n_nodes], values 0..n_clusters-1.
        """
        clusters = np.ascontiguousarray(clusters, np.int32)
        n_clusters = int(clusters.max()) + 1 if len(clusters) else 0
        offsets, pins = _csr.contract(self.group_offsets, self.destinations, clusters, n_clusters)
        source_offsets, sources = _csr.contract(
            self.source_offsets, self.sources, clusters, n_clusters
        )
        sizes = np.zeros(n_clusters, np.int64)
        np.add.at(sizes, clusters, self.node_sizes)
        coarse = replace(
            self,
            n_nodes=n_clusters,
            group_offsets=offsets,
            destinations=pins,
            source_offsets=source_offsets,
            sources=sources,
            node_sizes=sizes,
            populations=(),
            projections=(),
        )
        return coarse.grouped()._merge_identical_hedges()

    def _merge_identical_hedges(self) -> Hypergraph:
        same, _ = _csr.group_equal_rows(
            self.sources, self.source_offsets[:-1], np.diff(self.source_offsets)
        )
        n_same = int(same.max()) + 1 if len(same) else 1
        _, firsts, merged = np.unique(
            self.hedge_groups * n_same + same, return_index=True, return_inverse=True
        )
        if len(firsts) == self.n_hedges:
            return self
        n_merged = len(firsts)
        axons = np.zeros(n_merged, np.int64)
        np.add.at(axons, merged, self.axon_counts)
        counts = np.diff(self.source_offsets)[firsts]
        source_offsets = _csr.offsets_of(counts)
        return replace(
            self,
            hedge_offsets=_csr.offsets_of(
                np.bincount(self.hedge_groups[firsts], minlength=self.n_groups)
            ),
            source_offsets=source_offsets,
            sources=_csr.take_rows(
                self.sources, self.source_offsets[firsts], counts, source_offsets
            ),
            weights=np.bincount(merged, weights=self.weights, minlength=n_merged),
            axon_counts=axons,
        )

    def without_inputs(self) -> tuple[Hypergraph, Array]:
        """The network with its input populations off the chip, and the nodes that remain.

        The h-edges of inputs stay (they still take inbound axons) but lose their source.

        Returns:
            (hypergraph, int64[n_remaining] old node ids of the new nodes).
        """
        keep = np.ones(self.n_nodes, bool)
        for population in self.populations:
            if population.is_input:
                keep[population.start : population.stop] = False
        kept = np.flatnonzero(keep)
        if len(kept) == self.n_nodes:
            return self, kept
        new_id = np.cumsum(keep) - 1
        group_offsets, pins = _keep_pins(self.group_offsets, self.destinations, keep, new_id)
        source_offsets, sources = _keep_pins(self.source_offsets, self.sources, keep, new_id)
        populations = tuple(
            replace(p, start=int(new_id[p.start]), stop=int(new_id[p.start]) + p.size)
            for p in self.populations
            if not p.is_input and p.size
        )
        names = {p.name for p in populations}
        return (
            replace(
                self,
                n_nodes=len(kept),
                group_offsets=group_offsets,
                destinations=pins,
                source_offsets=source_offsets,
                sources=sources,
                node_sizes=self.node_sizes[kept],
                populations=populations,
                projections=tuple(
                    p for p in self.projections if p.source in names and p.target in names
                ),
            ),
            kept,
        )


def _keep_pins(offsets: Array, pins: Array, keep: Array, new_id: Array) -> tuple[Array, Array]:
    kept = keep[pins]
    totals = np.concatenate([[0], np.cumsum(kept)])
    return totals[offsets], new_id[pins[kept]].astype(np.int32)


def _as_ids(ids: Array, n_nodes: int, name: str, what: str) -> Array:
    """A fresh, writeable int32 copy; ids that would wrap around are refused first."""
    ids = np.asarray(ids)
    if ids.dtype.kind not in "iu":
        if len(ids):
            raise InputError(name, f"{what} ids have type {ids.dtype}; expected integers")
        ids = ids.astype(np.int32)
    if ids.dtype.itemsize > 4 and len(ids) and not 0 <= ids.min() <= ids.max() < n_nodes:
        bad = int(np.flatnonzero((ids < 0) | (ids >= n_nodes))[0])
        raise InputError(
            name, f"{what} id {ids[bad]} is outside 0..{n_nodes - 1}", place=f"pin {bad}"
        )
    if ids.dtype == np.uint32:
        return ids.view(np.int32).copy()
    return np.array(ids, np.int32)


def _check_ids(offsets: Array, pins: Array, n_nodes: int, name: str, what: str) -> None:
    bad, _ = _csr.find_bad_row(pins, offsets[:-1], np.diff(offsets), n_nodes)
    if bad >= 0:
        row = pins[offsets[bad] : offsets[bad + 1]].view(np.uint32)
        raise InputError(
            name,
            f"id {row[row >= n_nodes][0]} is outside 0..{n_nodes - 1}",
            place=f"{what} {bad}",
        )


def _checked_offsets(offsets: Array, n_pins: int, name: str, what: str) -> Array:
    offsets = np.array(offsets, np.int64)  # the hypergraph's own from here on
    if len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != n_pins or (np.diff(offsets) < 0).any():
        raise InputError(name, f"{what} offsets must rise from 0 to {n_pins}, the number of pins")
    return offsets


def _checked_populations(
    populations: Sequence[Population], n_nodes: int, name: str
) -> tuple[Population, ...]:
    ordered = tuple(sorted(populations, key=lambda p: (p.start, p.stop)))
    end, names = 0, set()
    for p in ordered:
        if p.start < end or p.stop < p.start or p.stop > n_nodes:
            raise InputError(
                name,
                f"population {p.name!r} covers nodes {p.start}..{p.stop - 1}, which overlap another "
                f"or leave 0..{n_nodes - 1}",
            )
        if int(np.prod(p.shape, dtype=np.int64)) != p.size:
            raise InputError(name, f"population {p.name!r} of {p.size} nodes has shape {p.shape}")
        if p.name in names:
            raise InputError(name, f"two populations are named {p.name!r}")
        names.add(p.name)
        end = p.stop
    return ordered
