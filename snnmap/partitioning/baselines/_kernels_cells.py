"""Who is where: for every group the list of parts that hold pins of it, kept exact under moves.

A cell is a (group, part) pair with at least one pin. With W the weight and A the axons of a group:

    connectivity + constant = sum over cells of  (W if the cell has a destination else own_weight)
    inbound(p)  = sum over cells of p with a destination of A
    incident(p) = sum over cells of p of  (A if the cell has a destination else own_axons)
    outbound(p) = sum over cells of p of own_axons

where own_weight and own_axons sum up the group's h-edges that have a source in the part. Lists are
short (lambda of a group), so they are searched from front to back; memory follows the pins.
"""

# mypy: allow-untyped-defs, allow-untyped-decorators, allow-untyped-calls
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from snnmap.partitioning.baselines.network import Network


class Cells(NamedTuple):
    """Cells of group g: ``offsets[g]`` up to ``offsets[g] + lengths[g]``.

    Attributes:
        offsets: int64[n_groups + 1], room for the cells of each group.
        lengths: int32[n_groups].
        parts: int32, part of each cell.
        pins: int32, destinations in it.
        own_weights, own_axons: int64, of the group's h-edges with a source in it.
        loads: int64[n_parts, 5], size, inbound, outbound, incident, synapses of each part.
    """

    offsets: np.ndarray[Any, Any]
    lengths: np.ndarray[Any, Any]
    parts: np.ndarray[Any, Any]
    pins: np.ndarray[Any, Any]
    own_weights: np.ndarray[Any, Any]
    own_axons: np.ndarray[Any, Any]
    loads: np.ndarray[Any, Any]


def cells_of(net: Network, parts: np.ndarray[Any, Any], n_parts: int) -> Cells:
    """The cells of a partition of `net`."""
    sources = np.diff(net.source_offsets[net.hedge_offsets])
    room = np.minimum(np.diff(net.group_offsets) + sources, n_parts)
    offsets = np.concatenate([[0], np.cumsum(room)])
    n_cells = int(offsets[-1])
    cells = Cells(
        offsets,
        np.zeros(len(room), np.int32),
        np.empty(n_cells, np.int32),
        np.empty(n_cells, np.int32),
        np.empty(n_cells, np.int64),
        np.empty(n_cells, np.int64),
        np.zeros((n_parts, 5), np.int64),
    )
    fill_cells(net, cells, parts)
    return cells


@njit(cache=True, nogil=True)
def find_cell(cells, group, part):
    """The cell of `part` in the list of `group`, or -1."""
    first = cells.offsets[group]
    for i in range(first, first + cells.lengths[group]):
        if cells.parts[i] == part:
            return i
    return -1


@njit(cache=True, nogil=True)
def pins_in(cells, group, part):
    """Destinations of `group` in `part`."""
    i = find_cell(cells, group, part)
    return cells.pins[i] if i >= 0 else np.int32(0)


@njit(cache=True, nogil=True)
def cell_of(cells, group, part):
    """The cell of `part` in the list of `group`, appended if it is missing."""
    i = find_cell(cells, group, part)
    if i < 0:
        i = cells.offsets[group] + cells.lengths[group]
        cells.lengths[group] += 1
        cells.parts[i] = part
        cells.pins[i] = 0
        cells.own_weights[i] = 0
        cells.own_axons[i] = 0
    return i


@njit(cache=True, nogil=True)
def has_other_source(net, hedge, node, parts, part):
    """Whether `hedge` has a source in `part` besides `node`."""
    for i in range(net.source_offsets[hedge], net.source_offsets[hedge + 1]):
        if net.sources[i] != node and parts[net.sources[i]] == part:
            return True
    return False


@njit(cache=True, nogil=True)
def remove_node(net, cells, parts, node):
    """Take the pins of `node` out of its part ``parts[node]``."""
    part = parts[node]
    loads = cells.loads
    for j in range(net.in_offsets[node], net.in_offsets[node + 1]):
        g = net.in_groups[j]
        i = find_cell(cells, g, part)
        cells.pins[i] -= 1
        if cells.pins[i] == 0:
            loads[part, 1] -= net.group_axons[g]
            loads[part, 3] -= net.group_axons[g] - cells.own_axons[i]
            _drop_if_empty(cells, g, i)
    for j in range(net.out_offsets[node], net.out_offsets[node + 1]):
        e = net.out_hedges[j]
        if has_other_source(net, e, node, parts, part):
            continue
        g = net.hedge_groups[e]
        i = find_cell(cells, g, part)
        cells.own_weights[i] -= net.hedge_weights[e]
        cells.own_axons[i] -= net.hedge_axons[e]
        loads[part, 2] -= net.hedge_axons[e]
        if cells.pins[i] == 0:
            loads[part, 3] -= net.hedge_axons[e]
            _drop_if_empty(cells, g, i)
    loads[part, 0] -= net.needs[node, 0]
    loads[part, 4] -= net.needs[node, 4]


@njit(cache=True, nogil=True)
def insert_node(net, cells, parts, node, part):
    """Put the pins of `node` into `part`; other sources of its h-edges are where `parts` says."""
    loads = cells.loads
    for j in range(net.in_offsets[node], net.in_offsets[node + 1]):
        g = net.in_groups[j]
        i = cell_of(cells, g, part)
        if cells.pins[i] == 0:
            loads[part, 1] += net.group_axons[g]
            loads[part, 3] += net.group_axons[g] - cells.own_axons[i]
        cells.pins[i] += 1
    for j in range(net.out_offsets[node], net.out_offsets[node + 1]):
        e = net.out_hedges[j]
        if has_other_source(net, e, node, parts, part):
            continue
        i = cell_of(cells, net.hedge_groups[e], part)
        cells.own_weights[i] += net.hedge_weights[e]
        cells.own_axons[i] += net.hedge_axons[e]
        loads[part, 2] += net.hedge_axons[e]
        if cells.pins[i] == 0:
            loads[part, 3] += net.hedge_axons[e]
    loads[part, 0] += net.needs[node, 0]
    loads[part, 4] += net.needs[node, 4]
    parts[node] = part


@njit(cache=True, nogil=True)
def fill_cells(net, cells, parts):
    """Fill empty cells with every node of `parts`."""
    nobody = np.full(len(parts), -1, np.int32)  # nodes appear one by one
    for node in range(len(parts)):
        insert_node(net, cells, nobody, node, np.int64(parts[node]))


@njit(cache=True, nogil=True)
def _drop_if_empty(cells, group, i):
    if cells.pins[i] == 0 and cells.own_axons[i] == 0:
        cells.lengths[group] -= 1
        last = cells.offsets[group] + cells.lengths[group]
        cells.parts[i] = cells.parts[last]
        cells.pins[i] = cells.pins[last]
        cells.own_weights[i] = cells.own_weights[last]
        cells.own_axons[i] = cells.own_axons[last]
