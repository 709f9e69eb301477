"""One part that grows: would a node break a limit, and add it; for `one-pass` and `overlap`.

Only one part is open at a time, so membership is a stamp: group g is inbound to the open part p if
``inbound[g] == p``. No memory of parts x groups is needed, whatever the number of parts.
"""

# mypy: allow-untyped-defs, allow-untyped-decorators, allow-untyped-calls
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit


class Growing(NamedTuple):
    """State of the open part.

    Attributes:
        inbound: int32[n_groups], last part that took each group in.
        outbound: int32[n_hedges], last part with a source of each h-edge.
        own: int32[n_groups], part that `own_axons` speaks of.
        own_axons: int64[n_groups], axons of each group with a source in that part.
        tried: int32[n_groups], last node asked about that has each group inbound.
        used: int64[5], loads of the open part.
        extra: int64[5], what the node asked about would add.
    """

    inbound: np.ndarray[Any, Any]
    outbound: np.ndarray[Any, Any]
    own: np.ndarray[Any, Any]
    own_axons: np.ndarray[Any, Any]
    tried: np.ndarray[Any, Any]
    used: np.ndarray[Any, Any]
    extra: np.ndarray[Any, Any]


def growing(n_groups: int, n_hedges: int) -> Growing:
    """A state in which no part is open yet."""
    return Growing(
        np.full(n_groups, -1, np.int32),
        np.full(n_hedges, -1, np.int32),
        np.full(n_groups, -1, np.int32),
        np.zeros(n_groups, np.int64),
        np.full(n_groups, -1, np.int32),
        np.zeros(5, np.int64),
        np.zeros(5, np.int64),
    )


@njit(cache=True, nogil=True)
def fits(net, state, part, node):
    """Whether `node` may join the open part; fills ``state.extra``. Exact for all five limits."""
    extra = state.extra
    extra[:] = 0
    extra[0] = net.needs[node, 0]
    extra[4] = net.needs[node, 4]
    for j in range(net.in_offsets[node], net.in_offsets[node + 1]):
        g = net.in_groups[j]
        state.tried[g] = node
        if state.inbound[g] != part:
            extra[1] += net.group_axons[g]
            extra[3] += net.group_axons[g]
            if state.own[g] == part:
                extra[3] -= state.own_axons[g]  # already incident through their sources
    for j in range(net.out_offsets[node], net.out_offsets[node + 1]):
        e = net.out_hedges[j]
        if state.outbound[e] != part:
            extra[2] += net.hedge_axons[e]
            g = net.hedge_groups[e]
            if state.inbound[g] != part and state.tried[g] != node:
                extra[3] += net.hedge_axons[e]
    for k in range(5):
        if state.used[k] + extra[k] > net.caps[k]:
            return False
    return True


@njit(cache=True, nogil=True)
def add(net, state, part, node):
    """Put `node`, the one last asked about, into the open part."""
    for j in range(net.in_offsets[node], net.in_offsets[node + 1]):
        state.inbound[net.in_groups[j]] = part
    for j in range(net.out_offsets[node], net.out_offsets[node + 1]):
        e = net.out_hedges[j]
        if state.outbound[e] != part:
            state.outbound[e] = part
            g = net.hedge_groups[e]
            if state.own[g] != part:
                state.own[g] = part
                state.own_axons[g] = 0
            state.own_axons[g] += net.hedge_axons[e]
    for k in range(5):
        state.used[k] += state.extra[k]


@njit(cache=True, nogil=True)
def fill_in_order(net, state, parts, part):
    """Give every node without a part (-1), by id, the open part or, if a limit says no, a new one.

    Returns the last part used; start with part -1 when none is open.
    """
    for node in range(len(parts)):
        if parts[node] >= 0:
            continue
        if part < 0 or not fits(net, state, part, node):
            part += 1
            state.used[:] = 0
            fits(net, state, part, node)
        add(net, state, part, node)
        parts[node] = part
    return part
