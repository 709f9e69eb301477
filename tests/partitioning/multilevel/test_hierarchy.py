"""Levels that are dropped and made again are the same, whatever is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.partitioning.multilevel.engine_cpu import CpuEngine
from snnmap.partitioning.multilevel.hierarchy import Finest, Hierarchy
from snnmap.partitioning.multilevel.level import Level
from tests.partitioning.multilevel import twins

ENGINE = CpuEngine()


def random_maps(rng: np.random.Generator, n_nodes: int, depth: int) -> list[Any]:
    """Maps that each leave about two thirds of the nodes."""
    maps = []
    for _ in range(depth):
        _, clusters = np.unique(rng.integers(0, n_nodes * 2 // 3 + 1, n_nodes), return_inverse=True)
        maps.append(clusters.astype(np.int32))
        n_nodes = int(clusters.max()) + 1
    return maps


def build(level: Level, maps: list[Any]) -> tuple[Hierarchy, list[Level]]:
    """The hierarchy of these maps, and all its levels made one after the other."""
    levels = [level]
    found = Hierarchy(ENGINE, Finest(ENGINE, level))
    for clusters in maps:
        n_clusters = int(clusters.max()) + 1
        levels.append(ENGINE.contract(levels[-1], clusters, n_clusters))
        found.coarsen(clusters, n_clusters)
    return found, levels


def assert_same(found: Level, expected: Level) -> None:
    for name, mine, other in zip(Level._fields, found, expected, strict=True):
        assert mine.dtype == other.dtype, name
        assert mine.shape == other.shape, name
        assert (mine == other).all(), name


@given(seed=st.integers(0, 10**6), share=st.sampled_from([0, 2, 8, 10**9]))
@settings(max_examples=40)
def test_levels_are_made_again(seed: int, share: int) -> None:
    rng = np.random.default_rng(seed)
    level = twins.random_level(rng, n_nodes=60, n_nets=50, mean_pins=6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ENGINE, "kept_share", share)
        patch.setattr(ENGINE, "kept_pins", 0)
        found, levels = build(level, random_maps(rng, 60, 4))
    assert len(found) == len(levels)
    for depth in (4, 2, 0, 3, 1):
        assert found.n_nodes(depth) == levels[depth].n_nodes
        assert_same(found.level(depth), levels[depth])
    assert_same(found.level(-1), levels[-1])
    for depth in (4, 3):
        found.leave(depth)
    for depth in (3, 4):
        assert_same(found.level(depth), levels[depth])


def test_large_levels_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those beyond the sequential kernel, and what is held meanwhile."""
    for module in ("engine_cpu", "cpu_compression"):
        monkeypatch.setattr(f"snnmap.partitioning.multilevel.{module}.SMALL_PINS", 0)
    rng = np.random.default_rng(5)
    level = twins.random_level(rng, n_nodes=3000, n_nets=2000, mean_pins=60)
    monkeypatch.setattr(ENGINE, "kept_share", 2)
    monkeypatch.setattr(ENGINE, "kept_pins", 0)
    found, levels = build(level, random_maps(rng, 3000, 6))
    assert [one is None for one in found._levels] == [
        2 * b.n_pins > level.n_pins for b in levels[1:-1]
    ] + [False]
    assert any(one is None for one in found._levels)
    assert any(one is not None for one in found._levels[:-1])
    assert len(found._finest.slim.node_nets) == 0
    assert all(len(one.node_nets) == 0 for one in found._levels if one)
    for depth in (6, 5, 4, 3, 2, 1, 0):
        assert_same(found.level(depth), levels[depth])
        found.leave(depth)
    assert all(one is None for one in found._levels)
    assert len(found._finest.slim.node_nets) == level.n_pins


def test_bundles_are_of_the_level_that_compression_made() -> None:
    level = twins.random_level(np.random.default_rng(1), n_nodes=40, n_nets=30, mean_pins=4)
    (first, second), bundles = random_maps(np.random.default_rng(2), 40, 2), np.zeros(40, np.int32)
    n = int(first.max()) + 1
    found = Hierarchy(
        ENGINE, Finest(ENGINE, level), [(ENGINE.contract(level, first, n), first)], bundles
    )
    assert found.bundles is bundles
    found.coarsen(second, int(second.max()) + 1)
    assert found.bundles is None
