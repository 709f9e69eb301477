"""One level of the multilevel hierarchy: nets, pins and resources as flat integer arrays.

The partitioner sees *nets*: a pin set with a weight, plus the sources that hang on it.

    connectivity = sum over nets  weight * |parts(pins)|
                 - sum over sources (net, node, weight)  weight * [part(node) in parts(pins)]  + constant

A group of the hypergraph is one net whose pins are its destinations and whose sources are those of
its h-edges. Every part has additive loads (sum over its nodes of `resources`) and distinct loads (sum over
the nets with a pin in it of `counts`); :class:`Problem` says which loads there are and their limits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from snnmap import _csr
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.partitioning.fixed_point import fixed_point
from snnmap.partitioning.multilevel import _kernels_contract as kct

Array = np.ndarray[Any, Any]

Sizes = tuple[int, int, int, int]
"""Nodes, nets, pins, sources of a level."""

UNLIMITED = 1 << 60
_HEADROOM = 1 << 24  # sums of weights stay below 2**38, so that prices and scores fit beside them


class Level(NamedTuple):
    """Flat arrays of one level, on the host or on the device.

    Attributes:
        net_offsets: int64[n_nets + 1].
        net_pins: int32[n_pins], distinct pins of each net, ascending.
        source_offsets: int64[n_nets + 1].
        source_nodes: int32[n_sources], distinct sources of each net.
        source_weights: int64[n_sources], what a source saves when its part holds a pin of the net.
        node_offsets: int64[n_nodes + 1].
        node_nets: int32[n_pins], nets of each node, ascending.
        out_offsets: int64[n_nodes + 1].
        out_nets: int32[n_sources], nets that each node is a source of, ascending.
        out_weights: int64[n_sources].
        net_weights: int64[n_nets], at least the weights of its sources together.
        counts: int64[n_nets, n_distinct], what each net adds to the distinct loads of a part.
        resources: int64[n_nodes, n_additive], what each node adds to the additive loads of its part.
    """

    net_offsets: Array
    net_pins: Array
    source_offsets: Array
    source_nodes: Array
    source_weights: Array
    node_offsets: Array
    node_nets: Array
    out_offsets: Array
    out_nets: Array
    out_weights: Array
    net_weights: Array
    counts: Array
    resources: Array

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.resources)

    @property
    def n_nets(self) -> int:
        """Number of nets."""
        return len(self.net_weights)

    @property
    def n_pins(self) -> int:
        """Number of pins, sources apart."""
        return len(self.net_pins)

    @property
    def sizes(self) -> Sizes:
        """Nodes, nets, pins, sources."""
        return self.n_nodes, self.n_nets, self.n_pins, len(self.source_nodes)

    def totals(self) -> Array:
        """int64[n_loads]: loads of all nodes and nets together; of a level on the host."""
        return np.concatenate([self.resources.sum(axis=0), self.counts.sum(axis=0)])

    def without_lists(self, xp: Any) -> Level:
        """Without the nets of each node, which a transposition makes again; `xp`: array library."""
        if not len(self.node_offsets):
            return self
        return self._replace(node_offsets=xp.empty(0, xp.int64), node_nets=xp.empty(0, xp.int32))


def project(xp: Any, values: Array, clusters: Array, n_clusters: int) -> Array:
    """[n_clusters]: the value that all nodes of each cluster share, for values [n_nodes]."""
    projected: Array = xp.empty(n_clusters, values.dtype)
    projected[clusters] = values
    return projected


def contract_small(level: Level, clusters: Array, n_clusters: int) -> Level:
    """The level whose nodes are the clusters, by the sequential kernel.

    Compiled code gets plain tuples only: a named one would be a second type to compile for.
    """
    return Level(*kct.contract_level(tuple(level), clusters, n_clusters))


@dataclass(frozen=True, eq=False)
class Problem:
    """What is asked: the finest level, the limits of a part, and the scale of weights.

    Attributes:
        level: the finest level.
        limits: int64[n_additive + n_distinct], inclusive; :data:`UNLIMITED` where there is none.
        max_parts: most parts allowed, or None.
        scale: fixed-point weights divided by this are the rates again.
        totals: of the level's loads.
    """

    level: Level
    limits: Array
    max_parts: int | None
    scale: float
    totals: Array

    def without_lists(self) -> Problem:
        """The same without the level's lists by node, which are as large as those by net."""
        return replace(self, level=self.level.without_lists(np))

    def least_parts(self) -> int:
        """Parts that there must be at least, by the totals of the loads."""
        return int((-(-self.totals // np.maximum(self.limits, 1))).max(initial=1))


def pose_problem(hypergraph: Hypergraph, limits: Limits, *, lists: bool = True) -> Problem:
    """Flatten a hypergraph and its limits for the partitioner.

    Without `lists` by node those who need them make them (:func:`with_lists`).

    Additive loads: neurons, then synapses and outbound axons where limited. Distinct loads: inbound axons,
    then incident axons where limited. An h-edge with several sources becomes a net over all its pins
    that carries the weight, beside its group's net that carries the axons.
    """
    h = hypergraph
    weights, scale = fixed_point(h.weights, _HEADROOM)
    alone = h.has_single_sources
    n_sources = np.zeros(0, np.int64) if alone else np.diff(h.source_offsets)
    several = np.flatnonzero(n_sources > 1)
    whole = np.arange(h.n_hedges) if limits.max_incident is not None else several

    counts = [h.group_axons]
    if alone:
        hedges: Any = slice(None)
        net_weights = _csr.sum_segments(h.hedge_offsets, weights)
        source_offsets, source_nodes, source_weights = h.hedge_offsets, h.sources, weights
    else:
        carried = weights.copy()
        carried[several] = 0
        net_weights = _csr.sum_segments(h.hedge_offsets, carried)
        single = n_sources == 1
        hedges = np.flatnonzero(single)
        source_offsets = _csr.sum_segments(h.hedge_offsets, single.astype(np.int64))
        source_offsets = _csr.offsets_of(source_offsets)
        source_nodes = h.sources[h.source_offsets[:-1][hedges]]
        source_weights = weights[hedges]
    net_offsets, net_pins = h.group_offsets, h.destinations

    if (
        len(whole) or limits.max_incident is not None
    ):  # nets over sources and destinations, one for each such h-edge
        rows = [h.pins(int(e))[0] for e in whole]
        sizes = np.array([len(row) for row in rows], np.int64)
        net_offsets = np.concatenate([net_offsets, net_offsets[-1] + np.cumsum(sizes)])
        net_pins = np.concatenate([net_pins, *rows]).astype(np.int32)
        extra = np.zeros(len(whole), np.int64)
        multi = np.isin(whole, several)
        extra[multi] = weights[whole[multi]]
        net_weights = np.concatenate([net_weights, extra])
        source_offsets = np.concatenate(
            [source_offsets, np.full(len(whole), source_offsets[-1], np.int64)]
        )
        counts = [np.concatenate([counts[0], np.zeros(len(whole), np.int64)])]
        if limits.max_incident is not None:
            incident = np.zeros(len(net_weights), np.int64)
            incident[h.n_groups :] = h.axon_counts[whole]
            counts.append(incident)

    resources, bounds = [h.node_sizes], [limits.max_size]
    if limits.max_synapses is not None:
        resources.append(h.fan_ins)
        bounds.append(limits.max_synapses)
    distinct = [limits.max_inbound]
    if limits.max_outbound is not None:
        if len(several) == 0:
            outbound = np.zeros(h.n_nodes, np.int64)
            np.add.at(outbound, source_nodes, h.axon_counts[hedges])
            resources.append(outbound)
            bounds.append(limits.max_outbound)
        else:
            net_offsets, net_pins, source_offsets, net_weights, counts = _add_outbound(
                h, net_offsets, net_pins, source_offsets, net_weights, counts
            )
    if limits.max_incident is not None:
        distinct.append(limits.max_incident)
    if limits.max_outbound is not None and len(several):
        distinct.append(limits.max_outbound)
    level = make_level(
        net_offsets,
        net_pins,
        source_offsets,
        source_nodes,
        source_weights,
        net_weights,
        _columns(counts),
        _columns(resources),
    )
    level = with_lists(level) if lists else level
    values = [UNLIMITED if b is None else b for b in (*bounds, *distinct)]
    return Problem(level, np.array(values, np.int64), limits.max_parts, scale, level.totals())


def _add_outbound(
    h: Hypergraph,
    net_offsets: Array,
    net_pins: Array,
    source_offsets: Array,
    net_weights: Array,
    counts: list[Array],
) -> tuple[Array, Array, Array, Array, list[Array]]:
    """One more net for each h-edge over its sources, which only counts outbound axons."""
    n, more = len(net_weights), h.n_hedges
    zeros = np.zeros(more, np.int64)
    outbound = np.concatenate([np.zeros(n, np.int64), h.axon_counts])
    return (
        np.concatenate([net_offsets, net_offsets[-1] + h.source_offsets[1:]]),
        np.concatenate([net_pins, h.sources]).astype(np.int32),
        np.concatenate([source_offsets, np.full(more, source_offsets[-1], np.int64)]),
        np.concatenate([net_weights, zeros]),
        [*(np.concatenate([c, zeros]) for c in counts), outbound],
    )


def make_level(
    net_offsets: Array,
    net_pins: Array,
    source_offsets: Array,
    source_nodes: Array,
    source_weights: Array,
    net_weights: Array,
    counts: Array,
    resources: Array,
) -> Level:
    """A level of these arrays, without the lists by node, which :func:`with_lists` adds."""
    none, nobody = np.zeros(0, np.int64), np.zeros(0, np.int32)
    by_net = (net_offsets, net_pins, source_offsets, source_nodes, source_weights)
    by_node = (none, nobody, none, nobody, none)
    arrays = (*by_net, *by_node, net_weights, counts, resources)
    return Level(*(_writeable(a) for a in arrays))


def with_lists(level: Level) -> Level:
    """The level on the host with those of its lists by node that it lacks."""
    if not len(level.out_offsets):
        out_offsets, places = _csr.sort_places(level.source_nodes, level.n_nodes)
        n_sources = np.diff(level.source_offsets)
        nets = np.repeat(np.arange(level.n_nets, dtype=np.int32), n_sources)
        out_lists = out_offsets, nets[places], level.source_weights[places]
        names = ("out_offsets", "out_nets", "out_weights")
        level = level._replace(**dict(zip(names, out_lists, strict=True)))
    if not len(level.node_offsets):
        node_offsets, node_nets = _csr.transpose(*level[:2], level.n_nodes)
        level = level._replace(node_offsets=node_offsets, node_nets=node_nets)
    return level


def _columns(arrays: list[Array]) -> Array:
    """int64[n, n_arrays]; one array alone is not copied."""
    return arrays[0].reshape(-1, 1) if len(arrays) == 1 else np.stack(arrays, axis=1)


class _Unlocked:
    """Shares an array's memory without its read-only flag: compiled code knows one type, not two."""

    def __init__(self, array: Array) -> None:
        self.owner = array
        self.__array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data, False),
            "version": 3,
        }


def _writeable(array: Array) -> Array:
    """The same memory as compiled code expects it; kernels never write into a level."""
    array = np.ascontiguousarray(array)
    return array if array.flags.writeable else np.asarray(_Unlocked(array))
