"""Joint improvement: exact, never worse, within every limit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap import mapping
from snnmap.errors import ConfigError
from snnmap.hardware import HardwareProfile
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.partitioning.metrics import measure
from snnmap.partitioning.result import Partition
from snnmap.partitioning.verify import verify_partition
from snnmap.placement import Placement, joint, part_hypergraph, place
from snnmap.placement.joint import copy_costs, improve_jointly
from snnmap.placement.metric import Metric
from snnmap.progress import Progress
from snnmap.traffic import measure_traffic
from tests.placement.chips import mesh, profiles
from tests.small import from_rows, to_rows
from tests.strategies import hypergraphs, partitions


def slow_cost(
    graph: Hypergraph, parts: np.ndarray, cores: np.ndarray, profile: HardwareProfile
) -> float:
    """Sum of rate x cost over all copies of all spikes, from the definition."""
    metric = Metric.of(profile)
    costs = copy_costs(metric, cores) / copy_costs(metric, cores).min()
    total = 0.0
    for sources, destinations, weight in to_rows(graph):
        for s in parts[sources]:
            total += weight * costs[s, np.unique(parts[destinations])].sum()
    return total


@st.composite
def mapped(
    draw: st.DrawFn,
) -> tuple[Hypergraph, Partition, Placement, HardwareProfile, Limits]:
    """A random network, partition and placement, with limits that hold, some of them tightly."""
    graph = draw(hypergraphs(min_nodes=2, max_nodes=14, max_hedges=12, max_size=2))
    parts = draw(partitions(graph.n_nodes, max_parts=4))
    partition = Partition(parts, int(parts.max()) + 1, "by hand")
    profile = draw(profiles(max_side=4))
    while profile.n_cores < partition.n_parts:
        profile = mesh(3, 3)
    placement = place(part_hypergraph(graph, partition), profile, placer="snake", refine="none")
    m = measure(graph, parts)
    spare = st.none() | st.integers(0, 3)
    kinds = {
        "max_size": m.sizes,
        "max_inbound": m.inbound,
        "max_outbound": m.outbound,
        "max_incident": m.incident,
        "max_synapses": m.synapses,
        "max_destinations": np.array([m.max_destinations]),
    }
    drawn = {name: draw(spare) for name in kinds}
    limits = Limits(
        **{
            name: None if drawn[name] is None else max(1, int(values.max()) + drawn[name])
            for name, values in kinds.items()
        }
    )
    return graph, partition, placement, profile, limits


@given(mapped(), st.booleans())
@settings(deadline=None, max_examples=200)
def test_never_worse_and_within_every_limit(
    case: tuple[Hypergraph, Partition, Placement, HardwareProfile, Limits], move_parts: bool
) -> None:
    graph, partition, placement, profile, limits = case
    found = improve_jointly(graph, partition, placement, profile, limits, move_parts=move_parts)
    parts, cores = found.partition.parts, found.placement.cores
    verify_partition(graph, parts, limits).raise_if_invalid()
    assert len(np.unique(parts)) == partition.n_parts
    assert found.cost_after <= found.cost_before * (1 + 1e-12)
    before = slow_cost(graph, partition.parts, placement.cores, profile)
    after = slow_cost(graph, parts, cores, profile)
    if before > 0:
        assert after / before == pytest.approx(found.cost_after / found.cost_before, rel=1e-6)
    assert len({tuple(core) for core in cores.tolist()}) == partition.n_parts
    assert all(profile.is_usable(x, y) for x, y in cores.tolist())
    if not move_parts:
        assert np.array_equal(cores, placement.cores)
    again = improve_jointly(graph, partition, placement, profile, limits, move_parts=move_parts)
    assert np.array_equal(again.partition.parts, parts)


def two_chains(n: int = 40) -> tuple[Hypergraph, Partition]:
    """Two chains of neurons, shuffled over four parts of n / 2 neurons."""
    rows = [([i], [i + 1], 1.0) for i in range(2 * n - 1) if i != n - 1]
    graph = from_rows(2 * n, rows)
    parts = np.random.default_rng(0).permutation(np.arange(2 * n) % 4).astype(np.int32)
    return graph, Partition(parts, 4, "by hand")


def test_full_parts_improve_by_swaps() -> None:
    """No neuron can move alone, for every part is full; swaps still untangle the chains."""
    graph, partition = two_chains()
    profile = mesh(2, 2)
    placement = place(part_hypergraph(graph, partition), profile)
    found = improve_jointly(graph, partition, placement, profile, Limits(max_size=20))
    assert np.bincount(found.partition.parts).tolist() == [20, 20, 20, 20]
    assert found.cost_after < 0.75 * found.cost_before
    assert found.moves >= 10


def test_twins_move_together() -> None:
    """Ten neurons with the same inputs sit far from them; none of them alone has a reason to move."""
    rows = [([i], list(range(4, 14)), 1.0) for i in range(4)] + [([14], [15], 0.1)]
    graph = from_rows(16, rows).grouped()
    parts = np.array([0] * 4 + [1] * 10 + [2, 1], np.int32)
    partition = Partition(parts, 3, "by hand")
    placement = Placement(np.array([(0, 0), (3, 3), (3, 2)], np.int32), "by hand")
    found = improve_jointly(graph, partition, placement, mesh(), move_parts=False)
    assert (found.partition.parts[4:14] == 0).all()
    assert found.partition.parts[15] in (1, 2)


def test_the_gain_is_one_of_energy_and_latency() -> None:
    graph, partition = two_chains(60)
    profile = mesh(3, 3)
    graph_before = part_hypergraph(graph, partition)
    placement = place(graph_before, profile)
    before = measure_traffic(graph_before, placement, profile).unicast
    found = improve_jointly(graph, partition, placement, profile, Limits(max_size=32))
    after = measure_traffic(
        part_hypergraph(graph, found.partition), found.placement, profile
    ).unicast
    assert after.energy_latency < before.energy_latency
    assert found.cost_after / found.cost_before == pytest.approx(
        after.energy_pj / before.energy_pj, rel=0.15
    )


def test_an_expired_search_changes_nothing() -> None:
    graph, partition = two_chains()
    profile = mesh(2, 2)
    placement = place(part_hypergraph(graph, partition), profile)
    found = improve_jointly(graph, partition, placement, profile, progress=Progress(time_limit=0.0))
    assert np.array_equal(found.partition.parts, partition.parts)
    assert found.cost_after == found.cost_before


def test_too_many_parts_are_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint, "MAX_PARTS", 3)
    monkeypatch.setattr(mapping, "run_partition", None)
    graph = from_rows(8, [([0], [1], 1.0)])
    profile = HardwareProfile(name="small", width=4, height=4, limits=Limits(max_size=2))
    with pytest.raises(ConfigError, match="4 parts; joint improvement keeps"):
        mapping.map_network(graph, profile, joint=True)


def test_too_many_parts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("snnmap.placement.joint.MAX_PARTS", 3)
    graph, partition = two_chains()
    profile = mesh(2, 2)
    placement = place(part_hypergraph(graph, partition), profile)
    with pytest.raises(ConfigError, match="4 parts; joint improvement"):
        improve_jointly(graph, partition, placement, profile)
