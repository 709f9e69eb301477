"""Orders of parts: the sequence in which parts are laid along a curve."""

from __future__ import annotations

from typing import Any

import numpy as np

from snnmap.hypergraph import Hypergraph
from snnmap.placement import _kernels_order
from snnmap.placement.flows import Flows, directed_flows

Array = np.ndarray[Any, Any]

LARGEST_BISECTION = 8192
"""Blocks with more parts are halved as they stand; a pass over n parts takes n^2 steps."""


def feed_forward_order(part_graph: Hypergraph) -> Array:
    """int64[n_parts]: parts from the inputs to the outputs of the network.

    Greedy: the next part is the one whose inflow comes most from parts already in order,
    i.e. with the largest (inflow from placed) / inflow. A feed-forward graph gives a topological
    order that follows the strongest links; cycles are cut where they are weakest. Ties go to the
    part with more inflow from placed ones, then to the lower id.
    """
    flows = directed_flows(part_graph)
    inflow = np.asarray(flows.sum(axis=0)).ravel() - flows.diagonal()
    return np.asarray(
        _kernels_order.feed_forward(
            flows.indptr.astype(np.int64), flows.indices.astype(np.int32), flows.data, inflow
        )
    )


def bisection_order(flows: Flows, start: Array) -> Array:
    """int64[n_parts]: leaves of a recursive bisection, reordered so that linked parts are near.

    Each block of parts is split into halves with a small cut (Fiduccia-Mattheyses from the halves
    of `start`), down to single parts. On the way the two halves of a block trade places where that
    shortens the links to parts outside of it, as far as those are ordered by then.

    Args:
        flows: rates between parts.
        start: int64[n_parts], an order of all parts to begin from.
    """
    graph = (flows.offsets, flows.neighbours, flows.rates)
    order = np.array(start, np.int64)
    side = np.full(flows.n_parts, 2, np.int8)
    position = np.empty(flows.n_parts)
    position[order] = np.arange(flows.n_parts) + 0.5
    blocks = [(0, flows.n_parts)]
    while blocks:
        halves = []
        for begin, end in blocks:
            if end - begin < 2:
                continue
            members = order[begin:end].copy()
            half = (end - begin) // 2
            if end - begin <= LARGEST_BISECTION:
                side[members[:half]], side[members[half:]] = 0, 1
                _kernels_order.bisect(*graph, members, side, max(1, (end - begin) // 16), 4)
                parted = [members[side[members] == s] for s in (0, 1)]
                side[members] = 2
            else:
                parted = [members[:half], members[half:]]
            if _pull(flows, parted[0], position, begin, end) > _pull(
                flows, parted[1], position, begin, end
            ):
                parted.reverse()
            middle = begin + len(parted[0])
            order[begin:middle], order[middle:end] = parted
            halves += [(begin, middle), (middle, end)]
        for begin, end in halves:
            position[order[begin:end]] = (begin + end) / 2
        blocks = halves
    return order


def _pull(flows: Flows, parts: Array, position: Array, begin: int, end: int) -> float:
    """Mean direction, per part, in which links to parts outside begin..end pull these parts."""
    if not len(parts):
        return 0.0
    starts, stops = flows.offsets[parts], flows.offsets[parts + 1]
    counts = stops - starts
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    entries = np.repeat(starts, counts) + within
    there, rates = position[flows.neighbours[entries]], flows.rates[entries].astype(np.float64)
    return float((rates * ((there > end) * 1.0 - (there < begin))).sum()) / len(parts)
