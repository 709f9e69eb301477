"""Greedy h-edge overlap: grow one part at a time by the node that fits its inbound axons best."""

from __future__ import annotations

import time

import numpy as np

from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.partitioning.baselines._kernels_grow import fill_in_order, growing
from snnmap.partitioning.baselines._kernels_overlap import candidates, grow_part
from snnmap.partitioning.baselines.network import inbound_weights, network_of
from snnmap.partitioning.result import Partition
from snnmap.progress import SILENT, Progress


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
    h = hypergraph
    progress.start("overlap", h.n_nodes, "neurons")
    parts = np.full(h.n_nodes, -1, np.int32)
    net = network_of(h, limits)
    state, found = growing(h.n_groups, h.n_hedges), candidates(h.n_nodes)
    weights = inbound_weights(net)
    smallest = int(h.node_sizes.min()) if h.n_nodes else 0
    part, first, complete = -1, 0, True
    while first < h.n_nodes:
        if progress.expired():
            part, complete = fill_in_order(net, state, parts, part), False
            break
        part += 1
        first = grow_part(net, weights, state, found, parts, part, first, smallest)
        progress.advance(int(np.count_nonzero(parts == part)))
    progress.finish()
    seconds = {"overlap": time.perf_counter() - began}
    return Partition(parts, part + 1, "overlap", seed=seed, complete=complete, seconds=seconds)
