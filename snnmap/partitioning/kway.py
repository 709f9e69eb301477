"""k-way partitioning, the problem of general-purpose partitioners, as limits."""

from __future__ import annotations

import math
from fractions import Fraction

from snnmap.errors import ConfigError
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits


def kway_limits(hypergraph: Hypergraph, n_parts: int, imbalance: float = 0.03) -> Limits:
    """Limits of a balanced k-way partition, without any limit on axons.

    Args:
        hypergraph: the network; its node sizes count.
        n_parts: k, the largest number of parts.
        imbalance: e; a part holds at most ``floor((1 + e) * ceil(total size / k))``, as in hMETIS
            and KaHyPar.

    Raises:
        ConfigError: `n_parts` < 1 or `imbalance` negative or not finite.
    """
    if n_parts < 1:
        raise ConfigError(f"number of parts is {n_parts}; expected at least 1")
    if not (math.isfinite(imbalance) and imbalance >= 0):
        raise ConfigError(f"imbalance is {imbalance}; expected a number >= 0, e.g. 0.03 for 3 %")
    total = int(hypergraph.node_sizes.sum())
    average = -(-total // n_parts)
    largest = math.floor((1 + Fraction(repr(float(imbalance)))) * average)  # 1.1 means 11/10 here
    return Limits(max_size=max(largest, 1), max_parts=n_parts)
