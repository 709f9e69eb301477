"""From neurons to parts: the small hypergraph that placement and traffic work on."""

from __future__ import annotations

import numpy as np

from snnmap.errors import InputError
from snnmap.hypergraph import Hypergraph
from snnmap.partitioning.result import Partition


def part_hypergraph(hypergraph: Hypergraph, partition: Partition) -> Hypergraph:
    """The hypergraph whose nodes are the parts of `partition`.

    H-edges with the same source part(s) and the same destination parts become one: weights and axon
    counts are summed. A part that holds source and destination keeps both roles.

    Args:
        hypergraph: the network.
        partition: a part for each of its nodes.

    Returns:
        A hypergraph with ``partition.n_parts`` nodes; node sizes are the neurons of each part.

    Raises:
        InputError: the partition is not one of this network.
    """
    parts = np.asarray(partition.parts)
    if len(parts) != hypergraph.n_nodes:
        raise InputError(
            hypergraph.name,
            f"the partition has {len(parts)} entries; expected one for each of "
            f"{hypergraph.n_nodes} nodes",
        )
    found = np.bincount(parts, minlength=partition.n_parts) if len(parts) else np.zeros(0, int)
    if len(found) != partition.n_parts or not found.all():
        raise InputError(
            hypergraph.name,
            f"the partition must use every part 0..{partition.n_parts - 1} at least once",
        )
    return hypergraph.contract(parts)
