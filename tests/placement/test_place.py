"""Every placer and refinement: valid, deterministic, honest about its cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.errors import ConfigError, LimitError
from snnmap.hardware import HardwareProfile
from snnmap.hypergraph import Hypergraph
from snnmap.placement import PLACERS, REFINEMENTS, Placement, place
from snnmap.placement.flows import directed_flows
from snnmap.placement.metric import Metric
from tests.placement.chips import mesh, profiles
from tests.small import from_rows, small
from tests.strategies import hypergraphs


def layered(n_layers: int = 5, width: int = 6, seed: int = 0) -> Hypergraph:
    """Layers of parts, each part sends to some of the next layer and a few back."""
    rng = np.random.default_rng(seed)
    rows = []
    for layer in range(n_layers - 1):
        for i in range(width):
            targets = (layer + 1) * width + rng.integers(0, width, 3)
            rows.append(([layer * width + i], targets.tolist(), float(rng.lognormal())))
            if rng.random() < 0.2:
                rows.append(([layer * width + i], [int(rng.integers(0, layer * width + 1))], 0.3))
    return from_rows(n_layers * width, rows)


def is_valid(placement: Placement, graph: Hypergraph, profile: HardwareProfile) -> bool:
    cores = [tuple(core) for core in placement.cores.tolist()]
    return (
        len(cores) == graph.n_nodes
        and len(set(cores)) == len(cores)
        and all(profile.is_usable(*core) for core in cores)
    )


def cost_of(cores: np.ndarray, graph: Hypergraph, profile: HardwareProfile) -> float:
    """Sum of rate x distance (mean of both ways), from its definition."""
    metric = Metric.of(profile)
    flows = directed_flows(graph).tocoo()
    routers = metric.router_of(cores)
    source, target = flows.coords
    there = metric.cost(routers[source], routers[target])
    back = metric.cost(routers[target], routers[source])
    return float((flows.data * (there + back)).sum() / 2 / metric.cost_hop)


@pytest.mark.parametrize("refine", REFINEMENTS)
@pytest.mark.parametrize("placer", [*PLACERS, "auto"])
def test_placements_are_valid_and_report_their_cost(placer: str, refine: str) -> None:
    graph = layered()
    profile = mesh(7, 7, dead_cores=frozenset({(0, 0), (3, 2)}))
    placement = place(graph, profile, placer=placer, refine=refine)
    assert is_valid(placement, graph, profile)
    assert placement.objective == pytest.approx(cost_of(placement.cores, graph, profile))
    again = place(graph, profile, placer=placer, refine=refine)
    assert np.array_equal(placement.cores, again.cores)


@given(
    hypergraphs(min_nodes=0, max_nodes=12),
    profiles(),
    st.sampled_from([*PLACERS, "auto"]),
    st.sampled_from(sorted(REFINEMENTS)),
    st.integers(0, 3),
)
@settings(deadline=None, max_examples=150)
def test_any_network_on_any_chip(
    graph: Hypergraph, profile: HardwareProfile, placer: str, refine: str, seed: int
) -> None:
    if graph.n_nodes > profile.n_cores:
        with pytest.raises(LimitError, match="cores needed"):
            place(graph, profile, placer=placer)
        return
    placement = place(graph, profile, placer=placer, refine=refine, seed=seed)
    assert is_valid(placement, graph, profile)


@given(st.data(), profiles(), st.sampled_from([*PLACERS, "auto"]))
@settings(deadline=None)
def test_fixed_and_forbidden_cores_are_honoured(
    data: st.DataObject, profile: HardwareProfile, placer: str
) -> None:
    graph = layered(2, 3)
    every = [
        (x, y)
        for x in range(profile.grid_width)
        for y in range(profile.grid_height)
        if profile.is_usable(x, y)
    ]
    n_spare = len(every) - graph.n_nodes
    if n_spare < 0:
        return
    shuffled = data.draw(st.permutations(every))
    n_fixed = data.draw(st.integers(0, graph.n_nodes))
    fixed = dict(zip(data.draw(st.permutations(range(6))), shuffled[:n_fixed], strict=False))
    forbidden = shuffled[n_fixed : n_fixed + data.draw(st.integers(0, n_spare))]
    placement = place(graph, profile, placer=placer, fixed=fixed, forbidden=forbidden)
    assert is_valid(placement, graph, profile)
    cores = [tuple(core) for core in placement.cores.tolist()]
    assert {part: cores[part] for part in fixed} == fixed
    assert not set(cores) & set(forbidden)


def test_refinement_reaches_a_local_optimum() -> None:
    graph, profile = layered(4, 4), mesh(5, 5)
    placement = place(graph, profile, placer="snake", refine="force-directed")
    best = cost_of(placement.cores, graph, profile)
    assert best < place(graph, profile, placer="snake", refine="none").objective
    cells = [(x, y) for x in range(5) for y in range(5)]
    taken = {tuple(core): part for part, core in enumerate(placement.cores.tolist())}
    for part in range(graph.n_nodes):
        for cell in cells:
            cores = placement.cores.copy()
            if cell in taken:
                cores[taken[cell]] = cores[part]
            cores[part] = cell
            assert cost_of(cores, graph, profile) >= best - 1e-9


def test_too_few_cores_says_what_fits() -> None:
    profile = mesh(3, 2, dead_cores=frozenset({(0, 0)}))
    with pytest.raises(LimitError) as caught:
        place(layered(2, 4), profile, forbidden=[(1, 1)])
    error = caught.value
    assert (error.value, error.limit, error.profile) == (8, 4, "test")
    assert "parts 0..3 fit, the last 4 do not" in str(error)
    assert "\n" not in str(error)


def test_exactly_full_chip() -> None:
    profile = mesh(3, 3, dead_cores=frozenset({(1, 1)}))
    placement = place(small(), profile)
    assert is_valid(placement, small(), profile)


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"placer": "hilbet"}, "unknown placer 'hilbet'"),
        ({"refine": "magic"}, "unknown refinement 'magic'"),
        ({"fixed": {9: (0, 0)}}, "fixed part 9 does not exist"),
        ({"fixed": {0: (9, 0)}}, r"core \(9, 0\), which is outside the grid of"),
        ({"fixed": {0: (1, 1)}, "forbidden": [(1, 1)]}, "which is forbidden"),
        ({"fixed": {0: (1, 1), 1: (1, 1)}}, "several parts are fixed to core"),
        ({"forbidden": [(0, 4)]}, r"forbidden core \(0, 4\) is outside"),
    ],
)
def test_wrong_settings_are_refused(settings_: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        place(small(), mesh(), **settings_)
