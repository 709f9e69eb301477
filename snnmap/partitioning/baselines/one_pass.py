"""Nodes in order; a new part whenever a limit would break."""

from __future__ import annotations

import time

import numpy as np

from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.partitioning.baselines._kernels_grow import fill_in_order, growing
from snnmap.partitioning.baselines.network import network_of
from snnmap.partitioning.result import Partition
from snnmap.progress import SILENT, Progress


def partition_one_pass(
    hypergraph: Hypergraph, limits: Limits, *, seed: int = 0, progress: Progress = SILENT
) -> Partition:
    """Fill parts with nodes in the order of their ids; linear in the pins of the grouped form.

    Args:
        hypergraph: the network.
        limits: of a part; every node must fit a part of its own.
        seed: recorded only, for nothing is random.
        progress: told of the one phase, which takes seconds at most and is never cut short.
    """
    began = time.perf_counter()
    progress.start("one-pass", hypergraph.n_nodes, "neurons")
    parts = np.full(hypergraph.n_nodes, -1, np.int32)
    net = network_of(hypergraph, limits)
    last = fill_in_order(net, growing(hypergraph.n_groups, hypergraph.n_hedges), parts, -1)
    progress.advance(hypergraph.n_nodes)
    progress.finish()
    seconds = {"one-pass": time.perf_counter() - began}
    return Partition(parts, last + 1, "one-pass", seed=seed, seconds=seconds)
