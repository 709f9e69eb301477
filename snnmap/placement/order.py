"""Orders of parts: the sequence in which parts are laid along a curve."""

from __future__ import annotations

from typing import Any

import numpy as np

from snnmap.hypergraph import Hypergraph
from snnmap.parallel import for_chunks
from snnmap.placement import _kernels_order
from snnmap.placement.flows import Flows, directed_flows

Array = np.ndarray[Any, Any]

LARGEST_BISECTION = 65_536
"""Blocks with more parts are halved as they stand."""


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
    order = np.array(start, np.int64)
    n = len(order)
    bounds = np.array([0, n])
    places, middle = np.empty(n, np.int64), np.empty(n)
    middle[order] = np.arange(n) + 0.5
    graph = (flows.offsets, flows.neighbours, flows.rates)
    while len(bounds) <= n:  # all blocks of a level side by side
        places[order] = np.arange(n)
        cuts = np.empty(len(bounds) - 1, np.int64)
        args = (*graph, order, bounds, places, middle, LARGEST_BISECTION, cuts)
        for_chunks(_kernels_order.halve, len(cuts), *args, offsets=bounds, grain=256)
        bounds = np.union1d(bounds, cuts)
        middle[order] = np.repeat((bounds[:-1] + bounds[1:]) / 2, np.diff(bounds))
    return order
