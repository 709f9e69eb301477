"""Uncoarsening of `hierarchical`: the best valid move of a node, greedy sweeps, and an FM pass.

The exact gain and the exact new loads of every part that shares an h-edge with a node come from one
walk over the cells of its groups. (Moving a node to a part that shares nothing never helps more.)
"""

# mypy: allow-untyped-defs, allow-untyped-decorators, allow-untyped-calls
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from snnmap.partitioning.baselines._kernels_cells import (
    has_other_source,
    insert_node,
    pins_in,
    remove_node,
)
from snnmap.partitioning.baselines._kernels_overlap import DROPPED, UNSEEN, pop, sift_up


class Moves(NamedTuple):
    """Workspace of the moves of one level.

    Attributes:
        present: int64[n_parts, 4], of what the node at hand needs, what each part already has:
            weight, inbound, outbound and incident axons.
        touched: int32[n_parts], parts to reset; is_touched: bool[n_parts].
        seen_groups: int32[n_groups], last node that had each group inbound.
        heap, place, keys: queue of the FM pass, keys int64[n_nodes, 2] of (-gain, 0).
        log: int32[n_nodes, 2], (node, part it came from) of each move of the FM pass.
        updated: int32[n_nodes], last move of the pass after which each node was rated anew.
    """

    present: np.ndarray[Any, Any]
    touched: np.ndarray[Any, Any]
    is_touched: np.ndarray[Any, Any]
    seen_groups: np.ndarray[Any, Any]
    heap: np.ndarray[Any, Any]
    place: np.ndarray[Any, Any]
    keys: np.ndarray[Any, Any]
    log: np.ndarray[Any, Any]
    updated: np.ndarray[Any, Any]


def moves(n_nodes: int, n_groups: int, n_parts: int) -> Moves:
    """A fresh workspace."""
    return Moves(
        np.zeros((n_parts, 4), np.int64),
        np.zeros(n_parts, np.int32),
        np.zeros(n_parts, np.bool_),
        np.full(n_groups, -1, np.int32),
        np.zeros(n_nodes, np.int32),
        np.full(n_nodes, UNSEEN, np.int32),
        np.zeros((n_nodes, 2), np.int64),
        np.zeros((n_nodes, 2), np.int32),
        np.zeros(n_nodes, np.int32),
    )


@njit(cache=True, nogil=True)
def _touch(work, part, n_touched):
    if not work.is_touched[part]:
        work.is_touched[part] = True
        work.touched[n_touched] = part
        n_touched += 1
    return n_touched


@njit(cache=True, nogil=True)
def _walk_inbound(net, cells, work, node, home):
    """Note what parts have of the groups into `node`; (touched, weight needed, saved here)."""
    n_touched = 0
    weight = saving = 0
    for j in range(net.in_offsets[node], net.in_offsets[node + 1]):
        g = net.in_groups[j]
        work.seen_groups[g] = node
        weight += net.group_weights[g]
        first = cells.offsets[g]
        for i in range(first, first + cells.lengths[g]):
            part = cells.parts[i]
            if part == home:
                if cells.pins[i] == 1:
                    saving += net.group_weights[g] - cells.own_weights[i]
                continue
            n_touched = _touch(work, part, n_touched)
            present = work.present[part]
            if cells.pins[i] > 0:
                present[0] += net.group_weights[g]
                present[1] += net.group_axons[g]
                present[3] += net.group_axons[g]
            else:
                present[0] += cells.own_weights[i]
                present[3] += cells.own_axons[i]
    return n_touched, weight, saving


@njit(cache=True, nogil=True)
def _walk_outbound(net, cells, work, parts, node, home, n_touched):
    """The same for the h-edges that start at `node`; (touched, weight needed, saved here)."""
    weight = saving = 0
    for j in range(net.out_offsets[node], net.out_offsets[node + 1]):
        e = net.out_hedges[j]
        g = net.hedge_groups[e]
        inside = work.seen_groups[g] == node  # then the group comes along as inbound
        if pins_in(cells, g, home) == inside and not has_other_source(net, e, node, parts, home):
            saving += net.hedge_weights[e]
        if not inside:
            weight += net.hedge_weights[e]
            first = cells.offsets[g]
            for i in range(first, first + cells.lengths[g]):
                part = cells.parts[i]
                if part != home and cells.pins[i] > 0:
                    n_touched = _touch(work, part, n_touched)
                    work.present[part, 0] += net.hedge_weights[e]
                    work.present[part, 3] += net.hedge_axons[e]
        first = net.source_offsets[e]
        for i in range(first, net.source_offsets[e + 1]):  # other sources of the h-edge
            part = parts[net.sources[i]]
            known = part == home or net.sources[i] == node
            for k in range(first, i):
                known |= parts[net.sources[k]] == part and net.sources[k] != node
            if known:
                continue
            n_touched = _touch(work, part, n_touched)
            work.present[part, 2] += net.hedge_axons[e]
            if not inside and pins_in(cells, g, part) == 0:
                work.present[part, 0] += net.hedge_weights[e]
                work.present[part, 3] += net.hedge_axons[e]
    return n_touched, weight, saving


@njit(cache=True, nogil=True)
def best_move(net, cells, work, parts, node):
    """(gain, part) of the best valid move of `node`; part -1 if there is none.

    gain = what its part saves when it leaves - what the other part then costs more. Ties go to the
    smaller part id.
    """
    home = parts[node]
    n_touched, weight, saving = _walk_inbound(net, cells, work, node, home)
    n_touched, more, more_saving = _walk_outbound(net, cells, work, parts, node, home, n_touched)
    base = saving + more_saving - weight - more
    best, best_gain = np.int64(-1), np.int64(0)
    for i in range(n_touched):
        part = work.touched[i]
        present = work.present[part]
        gain = base + present[0]
        if best < 0 or gain > best_gain or (gain == best_gain and part < best):
            loads, needs, caps = cells.loads[part], net.needs[node], net.caps
            if (
                loads[0] + needs[0] <= caps[0]
                and loads[1] + needs[1] - present[1] <= caps[1]
                and loads[2] + needs[2] - present[2] <= caps[2]
                and loads[3] + needs[3] - present[3] <= caps[3]
                and loads[4] + needs[4] <= caps[4]
            ):
                best, best_gain = part, gain
        present[:] = 0
        work.is_touched[part] = False
    return best_gain, best


@njit(cache=True, nogil=True)
def sweep(net, cells, work, parts, order, start, stop):
    """Apply the best valid move of each node of order[start:stop] if it gains; total gain."""
    total = 0
    for at in range(start, stop):
        node = order[at]
        gain, part = best_move(net, cells, work, parts, node)
        if part >= 0 and gain > 0:
            remove_node(net, cells, parts, node)
            insert_node(net, cells, parts, node, part)
            total += gain
    return total


@njit(cache=True, nogil=True)
def fm_pass(net, cells, work, parts, patience, updates):
    """One pass of Fiduccia-Mattheyses: best move first, even losing ones, then back to the best.

    Every node moves at most once; the pass ends after `patience` moves without a new best. Gains in
    the queue may be out of date: a popped node is rated anew and goes back if it got worse. Those
    that may have got better share a group with the moved node of which now one destination is left
    behind, or the moved one is the first in its new part; up to `updates` of them are rated anew,
    which bounds the pass. Returns the gain kept (>= 0).
    """
    length = 0
    for n in range(len(parts)):
        gain, part = best_move(net, cells, work, parts, n)
        work.place[n] = DROPPED
        work.updated[n] = 0
        if part >= 0:
            work.keys[n, 0] = -gain
            sift_up(work.heap, work.place, work.keys, n, length)
            length += 1
    total = best = 0
    n_moves = n_best = 0
    while length > 0 and n_moves - n_best <= patience:
        node = pop(work.heap, work.place, work.keys, length)
        length -= 1
        gain, part = best_move(net, cells, work, parts, node)
        if part < 0:
            continue
        if length > 0 and gain < -work.keys[work.heap[0], 0]:
            work.keys[node, 0] = -gain
            sift_up(work.heap, work.place, work.keys, node, length)
            length += 1
            continue
        home = np.int64(parts[node])
        work.log[n_moves, 0] = node
        work.log[n_moves, 1] = home
        n_moves += 1
        remove_node(net, cells, parts, node)
        insert_node(net, cells, parts, node, part)
        total += gain
        if total > best:
            best, n_best = total, n_moves
        for j in range(net.in_offsets[node], net.in_offsets[node + 1]):
            g = net.in_groups[j]
            first, last = net.group_offsets[g], net.group_offsets[g + 1]
            if pins_in(cells, g, home) != 1 and pins_in(cells, g, part) != 1:
                continue
            if last - first > updates:
                continue
            for i in range(first, last):
                other = np.int64(net.destinations[i])
                if work.place[other] < 0 or work.updated[other] == n_moves:
                    continue
                work.updated[other] = n_moves
                updates -= 1
                other_gain, other_part = best_move(net, cells, work, parts, other)
                if other_part >= 0 and -other_gain < work.keys[other, 0]:
                    work.keys[other, 0] = -other_gain
                    place = np.int64(work.place[other])
                    sift_up(work.heap, work.place, work.keys, other, place)
    while n_moves > n_best:
        n_moves -= 1
        mover, home = np.int64(work.log[n_moves, 0]), np.int64(work.log[n_moves, 1])
        remove_node(net, cells, parts, mover)
        insert_node(net, cells, parts, mover, home)
    return best
