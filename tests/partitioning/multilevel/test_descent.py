"""How far a descent coarsens, and with how many rounds it comes back."""

from __future__ import annotations

from typing import Any

import pytest

from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.networks import load_network
from snnmap.partitioning.multilevel import partition_multilevel
from snnmap.partitioning.multilevel.config import PRESETS, Config
from snnmap.partitioning.multilevel.level import pose_problem
from snnmap.partitioning.multilevel.refinement import refine
from tests.partitioning.cases import ring

LIMITS = Limits(max_size=50, max_inbound=400)


def small_ring() -> Hypergraph:
    return ring(600, 30, reach=30, seed=3)


def refined_levels(
    monkeypatch: pytest.MonkeyPatch,
    hypergraph: Hypergraph | None = None,
    limits: Limits = LIMITS,
    **settings: Any,
) -> list[tuple[int, int]]:
    """(nodes, most rounds) of each refinement before completion, from coarse to fine."""
    seen: list[tuple[int, int]] = []

    def note(engine: Any, level: Any, *args: Any, **asked: Any) -> Any:
        seen.append((level.n_nodes, asked["rounds"]))
        return refine(engine, level, *args, **asked)

    with monkeypatch.context() as patch:
        patch.setattr("snnmap.partitioning.multilevel.descent.refine", note)
        settings["coarsening"] = {"small_pins": 0} | settings.get("coarsening", {})
        partition_multilevel(hypergraph or small_ring(), limits, engine="cpu", config=settings)
    return seen[:-1]  # the last one is settling


def test_large_levels_take_fewer_steps_and_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    all_large = refined_levels(monkeypatch, large_pins=0, coarsening={"large_growth": 16})
    none_large = refined_levels(monkeypatch)
    knobs = Config().refinement
    assert [rounds for _, rounds in all_large[:-1]] == [knobs.large_rounds] * (len(all_large) - 1)
    assert [rounds for _, rounds in none_large[:-1]] == [knobs.rounds] * (len(none_large) - 1)
    assert all_large[-1] == none_large[-1] == (600, knobs.finest_rounds)
    assert 1 < len(all_large) < len(none_large)


def test_levels_of_compression_take_few_rounds_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """None but settling on the way back from a searched partition."""
    network, limits = load_network("lenet").grouped(), Limits(max_size=1024, max_inbound=4096)
    knobs = Config().refinement
    unsearched = refined_levels(monkeypatch, network, limits)
    assert unsearched[-1] == (network.n_nodes, knobs.unsearched_rounds)
    assert knobs.unsearched_rounds < knobs.finest_rounds
    assert refined_levels(monkeypatch, network, limits, coarsening={"small_pins": 150_000}) == []


def test_coarsening_stops_at_enough_nodes_for_the_first_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    least = pose_problem(small_ring(), LIMITS).least_parts()
    coarsest, before = (n for n, _ in refined_levels(monkeypatch)[:2])
    assert coarsest <= 12 * least < before
    assert refined_levels(monkeypatch, coarsening={"enough": 0})[0][0] < coarsest


def test_enough_nodes() -> None:
    default = PRESETS["default"]
    assert [default.enough_nodes(least) for least in (1, 100, 600)] == [12, 1200, 2048]
    assert default.enough_nodes(700) == 0  # fewer than three a part
    assert PRESETS["paper"].enough_nodes(100) == PRESETS["quality"].enough_nodes(100) == 0
