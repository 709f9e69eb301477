"""The search on the device finds the partition of the search on the host: on a GPU, and emulated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.partitioning.multilevel import gpu_memory, gpu_search
from snnmap.partitioning.multilevel.config import SearchConfig
from snnmap.partitioning.multilevel.engine_gpu import GpuEngine
from snnmap.partitioning.multilevel.gpu_search import GpuSearch
from snnmap.partitioning.multilevel.level import Level
from snnmap.partitioning.multilevel.search import Search
from tests.emulator.starting import KINDS, start_gpu
from tests.partitioning.multilevel.twins import random_level, small_level, tight_limits

BRIEF = SearchConfig(newcomers=5, population=4, batch=3, generations=2, finalists=2)


@pytest.fixture(scope="module", params=KINDS)
def gpu(request: pytest.FixtureRequest) -> GpuEngine:
    return start_gpu(GpuEngine, request.param)


def compare(
    gpu: GpuEngine,
    level: Level,
    n_parts: int,
    config: SearchConfig,
    max_parts: int | None = None,
    in_bundle: int = 0,
) -> None:
    limits, bundles, sent = tight_limits(level, n_parts), None, None
    if in_bundle:
        bundles = np.arange(level.n_nodes, dtype=np.int32) // in_bundle
        sent = gpu.from_host(bundles)
    expected = Search(level, limits, config, max_parts, bundles).run(level.n_nodes)
    search = gpu.searcher(gpu.upload(level), limits, config, max_parts, sent)
    assert isinstance(search, GpuSearch)
    found = search.run(level.n_nodes)
    assert [one.cost for one in found] == [one.cost for one in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.overload == other.overload
        assert np.array_equal(gpu.to_host(one.parts), other.parts)


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 1 << 20),
    sizes=st.tuples(st.integers(1, 90), st.integers(1, 60), st.integers(2, 20)),
    n_loads=st.tuples(st.integers(1, 2), st.integers(0, 2)),
    n_parts=st.integers(1, 9),
    max_parts=st.sampled_from([None, 3]),
    in_bundle=st.sampled_from([0, 3]),
)
def test_same_partition_as_on_the_host(
    gpu: GpuEngine,
    seed: int,
    sizes: tuple[int, int, int],
    n_loads: tuple[int, int],
    n_parts: int,
    max_parts: int | None,
    in_bundle: int,
) -> None:
    level = small_level(seed, sizes, n_loads)
    compare(gpu, level, n_parts, BRIEF, max_parts, in_bundle)


def test_more_parts_than_lanes_and_several_passes(gpu: GpuEngine) -> None:
    level = random_level(np.random.default_rng(1), n_nodes=401, n_nets=300, mean_pins=5)
    compare(
        gpu,
        level,
        45,
        replace(BRIEF, passes=2, patience=9, newcomers=2, population=2, generations=1),
    )


@pytest.mark.parametrize("blocks", [3, 16])
def test_new_partitions_share_the_levels_of_their_hierarchies(
    gpu: GpuEngine, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A level is contracted in the memory of a block; where levels are more than blocks, by each for itself."""
    started: list[str] = []
    launch = gpu.device.launch

    def note(kernel: Any, *args: Any, **named: Any) -> None:
        started.append(kernel.name)
        launch(kernel, *args, **named)

    monkeypatch.setattr(gpu.device, "launch", note)
    monkeypatch.setattr(gpu.device, "multiprocessors", blocks)
    level = random_level(np.random.default_rng(6), n_nodes=90, n_nets=70, mean_pins=5)
    config = replace(BRIEF, newcomers=4, hierarchies=2, generations=1, turns=2)
    compare(gpu, level, 4, config)
    assert ("contract_steps" in started) == (blocks > 3)
    assert started.count("make_individuals") == 2
    assert started.count("choose_parents") == 1


def test_parents_of_many_new_partitions_are_chosen_on_the_host(
    gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_search, "_MOST_RANKED", 3)
    level = random_level(np.random.default_rng(7), n_nodes=40, n_nets=30, mean_pins=4)
    for newcomers in (3, 4):
        compare(gpu, level, 3, replace(BRIEF, newcomers=newcomers, generations=2, batch=4))


def test_blocks_take_turns_where_memory_is_short(
    gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_memory, "_SEARCH_BYTES", 0)
    monkeypatch.setattr(gpu_search, "_LEAST_BLOCKS", 0)
    level = random_level(np.random.default_rng(2), n_nodes=80, n_nets=60, mean_pins=5)
    compare(gpu, level, 4, BRIEF)


def test_so_many_nets_that_only_some_clusters_have_room_at_once(gpu: GpuEngine) -> None:
    level = random_level(np.random.default_rng(5), n_nodes=100, n_nets=1200, mean_pins=3)
    compare(gpu, level, 2, replace(BRIEF, newcomers=2, population=2, batch=2))


def test_near_parts_are_not_kept_where_shared_memory_is_short(
    gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    level = random_level(np.random.default_rng(4), n_nodes=70, n_nets=60, mean_pins=4)
    limits = tight_limits(level, 5)
    search = gpu.searcher(gpu.upload(level), limits, BRIEF, None)
    assert isinstance(search, GpuSearch)
    monkeypatch.setattr(gpu_search, "_MOST_SHARED", 0)
    expected = Search(level, limits, BRIEF, None).run(3)[0]
    assert np.array_equal(gpu.to_host(search.run(3)[0].parts), expected.parts)


def test_levels_too_large_for_blocks_are_searched_on_the_host(gpu: GpuEngine) -> None:
    level = random_level(np.random.default_rng(3), n_nodes=17_000, n_nets=3, mean_pins=2)
    assert not GpuSearch.suits(level, BRIEF, 1, 1 << 40)
    config = replace(BRIEF, newcomers=1, population=1, generations=0)
    limits = np.array([1 << 40, 1 << 40])
    assert not isinstance(gpu.searcher(gpu.upload(level), limits, config, None), GpuSearch)


def test_levels_are_searched_on_the_host_where_few_blocks_have_memory(gpu: GpuEngine) -> None:
    level = random_level(np.random.default_rng(3), n_nodes=90, n_nets=60, mean_pins=4)
    limits = tight_limits(level, 5)
    there = gpu.upload(level)
    for most, kind in ((gpu.scratch.most, GpuSearch), (10_000, Search)):
        gpu.scratch.most = most
        assert type(gpu.searcher(there, limits, BRIEF, None)) is kind
    each = gpu_search._clear_bytes(level, 11) + gpu_search._scratch_bytes(level, 11)
    assert GpuSearch.suits(level, BRIEF, 8, 4 * each)
    assert not GpuSearch.suits(level, BRIEF, 9, 4 * each)  # parts
    assert not GpuSearch.suits(level, BRIEF, 8, 4 * each - 1)
