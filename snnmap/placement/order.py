"""Orders of parts: the sequence in which parts are laid along a curve."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from snnmap.hypergraph import Hypergraph
from snnmap.placement.flows import directed_flows

Array = np.ndarray[Any, Any]


def feed_forward_order(part_graph: Hypergraph) -> Array:
    """int64[n_parts]: parts from the inputs to the outputs of the network.

    Greedy: the next part is the one whose inflow comes most from parts already in order,
    i.e. with the largest (inflow from placed - inflow from unplaced) / inflow. A feed-forward graph
    gives a topological order that follows the strongest links; cycles are cut where they are
    weakest. Ties go to the part with more inflow from placed ones, then to the lower id.
    """
    flows = directed_flows(part_graph)
    n_parts = part_graph.n_nodes
    inflow = np.asarray(flows.sum(axis=0)).ravel() - flows.diagonal()
    placed_inflow = np.zeros(n_parts)
    ready = np.where(inflow > 0, 0.0, 1.0)
    queue = [(-float(ready[p]), -0.0, p) for p in range(n_parts)]
    heapq.heapify(queue)
    done = np.zeros(n_parts, bool)
    order = []
    while queue:
        key, _, part = heapq.heappop(queue)
        if done[part] or -key != ready[part]:
            continue
        done[part] = True
        order.append(part)
        row = slice(flows.indptr[part], flows.indptr[part + 1])
        targets, rates = flows.indices[row], flows.data[row]
        open_ = ~done[targets] & (rates > 0)
        targets = targets[open_]
        placed_inflow[targets] += rates[open_]
        ready[targets] = placed_inflow[targets] / inflow[targets]
        for target in targets.tolist():
            heapq.heappush(queue, (-float(ready[target]), -float(placed_inflow[target]), target))
    return np.array(order, np.int64)
