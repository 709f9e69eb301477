"""The part-level hypergraph keeps what traffic needs."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.errors import InputError
from snnmap.hypergraph import Hypergraph
from snnmap.partitioning.result import Partition
from snnmap.placement import part_hypergraph
from snnmap.placement.flows import directed_flows, symmetric_flows
from tests.small import small, to_rows
from tests.strategies import hypergraphs, partitions


def merged_rows(graph: Hypergraph, parts: np.ndarray) -> dict[object, float]:
    sums: dict[object, float] = defaultdict(float)
    for sources, destinations, weight in to_rows(graph):
        key = frozenset(parts[sources].tolist()), frozenset(parts[destinations].tolist())
        sums[key] += weight
    return sums


@given(hypergraphs(min_nodes=1), st.data())
@settings(deadline=None)
def test_rows_are_merged_and_weights_summed(graph: Hypergraph, data: st.DataObject) -> None:
    parts = data.draw(partitions(graph.n_nodes))
    n_parts = int(parts.max()) + 1
    part_graph = part_hypergraph(graph, Partition(parts, n_parts, "by hand"))
    assert part_graph.n_nodes == n_parts
    rows = to_rows(part_graph)
    found = {(frozenset(out), frozenset(into)): weight for out, into, weight in rows}
    assert len(found) == len(rows)
    assert found == pytest.approx(merged_rows(graph, parts))
    assert part_graph.axon_counts.sum() == graph.axon_counts.sum()


@given(hypergraphs(min_nodes=1))
@settings(deadline=None)
def test_flows_sum_weights_over_sources_and_destinations(graph: Hypergraph) -> None:
    expected = np.zeros((graph.n_nodes, graph.n_nodes))
    for sources, destinations, weight in to_rows(graph):
        for source in sources:
            expected[source, destinations] += weight
    assert np.allclose(directed_flows(graph).toarray(), expected)
    flows = symmetric_flows(graph, 100)
    dense = np.zeros_like(expected)
    dense[flows.row_ids, flows.neighbours] = flows.rates / flows.scale
    both = expected + expected.T
    np.fill_diagonal(both, 0)
    assert np.allclose(dense, both, rtol=1e-6, atol=both.sum() * 2**-30)
    assert int(flows.rates.sum()) * 100 < 2**61


def test_wrong_partitions_are_refused() -> None:
    with pytest.raises(InputError, match="3 entries; expected one for each of 8 nodes"):
        part_hypergraph(small(), Partition(np.zeros(3, np.int32), 1, "by hand"))
    with pytest.raises(InputError, match=r"every part 0\.\.2 at least once"):
        part_hypergraph(small(), Partition(np.zeros(8, np.int32), 3, "by hand"))
