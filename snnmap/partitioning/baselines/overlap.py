"""Greedy h-edge overlap: grow one part at a time by the node that fits its inbound axons best."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.partitioning.baselines._kernels_grow import fill_in_order, growing
from snnmap.partitioning.baselines._kernels_overlap import (
    candidates,
    grow_part,
    inbound_weights,
)
from snnmap.partitioning.baselines.network import SIZE, Network, network_of
from snnmap.partitioning.result import Partition
from snnmap.progress import SILENT, Progress

Array = np.ndarray[Any, Any]


def partition_overlap(
    hypergraph: Hypergraph, limits: Limits, *, seed: int = 0, progress: Progress = SILENT
) -> Partition:
    """Grow parts by the node that needs the fewest inbound axons which the part does not have.

    Costs O(sum over groups of parts it reaches x its destinations x log n) in the worst case.

    Args:
        hypergraph: the network.
        limits: of a part; every node must fit a part of its own.
        seed: recorded only, for nothing is random.
        progress: told of every part; once it expires, the rest is filled in the order of ids.
    """
    began = time.perf_counter()
    progress.start("overlap", hypergraph.n_nodes, "neurons")
    parts, n_parts, complete = grow_parts(network_of(hypergraph, limits), progress)
    progress.finish()
    seconds = {"overlap": time.perf_counter() - began}
    return Partition(parts, n_parts, "overlap", seed=seed, complete=complete, seconds=seconds)


def grow_parts(net: Network, progress: Progress) -> tuple[Array, int, bool]:
    """(int32[n_nodes] parts, number of parts, whether time sufficed) of a network or a level."""
    n_nodes, n_groups, n_hedges = len(net.needs), len(net.group_axons), len(net.hedge_axons)
    parts = np.full(n_nodes, -1, np.int32)
    state, found = growing(n_groups, n_hedges), candidates(n_nodes)
    weights = inbound_weights(net)
    smallest = int(net.needs[:, SIZE].min()) if n_nodes else 0
    part, first = -1, 0
    while first < n_nodes:
        if progress.expired():
            return parts, fill_in_order(net, state, parts, part) + 1, False
        part += 1
        first = grow_part(net, weights, state, found, parts, part, first, smallest)
        progress.advance(int(np.count_nonzero(parts == part)))
    return parts, part + 1, True
