from __future__ import annotations

import numpy as np
import pytest

from snnmap.errors import ConfigError
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.partitioning.kway import kway_limits


def nodes(n: int, size: int = 1) -> Hypergraph:
    return Hypergraph.from_hedges(
        n, np.array([]), np.array([0]), np.array([]), np.array([]), node_sizes=np.full(n, size)
    )


@pytest.mark.parametrize(
    ("n", "k", "imbalance", "max_size"),
    [
        (12752, 2, 0.03, 6567),  # 1.03 * 6376 = 6567.28
        (12752, 32, 0.03, 410),  # 1.03 * ceil(398.5) = 410.97
        (100, 3, 0.0, 34),
        (100, 4, 0.1, 27),
        (1000, 1, 0.1, 1100),  # 1.1 * 1000 is 1100.0000000000001 in binary
        (1000, 10, 0.07, 107),  # (1 + 0.07) * 100 is 107.00000000000001
        (100, 1, 0.15, 115),  # 1.15 * 100 is 114.99999999999999
        (0, 5, 0.0, 1),
    ],
)
def test_balance_of_the_general_partitioners(n, k, imbalance, max_size):
    assert kway_limits(nodes(n), k, imbalance) == Limits(max_size=max_size, max_parts=k)


def test_node_sizes_count():
    assert kway_limits(nodes(10, size=5), 2, 0.0).max_size == 25


@pytest.mark.parametrize(("k", "imbalance"), [(0, 0.03), (-1, 0.03), (2, -0.1), (2, float("nan"))])
def test_nonsense_is_refused(k, imbalance):
    with pytest.raises(ConfigError, match="expected"):
        kway_limits(nodes(4), k, imbalance)
