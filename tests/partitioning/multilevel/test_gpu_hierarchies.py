"""Hierarchies of clusters made on the device are those of the host: on a GPU, and emulated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.partitioning.multilevel import gpu_hierarchies
from snnmap.partitioning.multilevel.config import SearchConfig
from snnmap.partitioning.multilevel.engine_gpu import GpuEngine
from snnmap.partitioning.multilevel.gpu_hierarchies import Starts
from snnmap.partitioning.multilevel.gpu_search import GpuSearch
from snnmap.partitioning.multilevel.level import Array, Level
from snnmap.partitioning.multilevel.search import Search
from tests.emulator.starting import KINDS, start_gpu
from tests.partitioning.multilevel.twins import random_level, small_level, tight_limits

CONFIG = SearchConfig(hierarchies=3)


@pytest.fixture(scope="module", params=KINDS)
def gpu(request: pytest.FixtureRequest) -> GpuEngine:
    return start_gpu(GpuEngine, request.param)


def compare(
    gpu: GpuEngine,
    level: Level,
    n_parts: int,
    config: SearchConfig = CONFIG,
    max_parts: int | None = None,
    bundles: Array | None = None,
) -> Starts:
    """Make all hierarchies on both, two launches on the device, and compare every level of use."""
    limits = tight_limits(level, n_parts)
    search = Search(level, limits, config, max_parts, bundles)
    sent = None if bundles is None else gpu.from_host(bundles)
    on_device = gpu.searcher(gpu.upload(level), limits, config, max_parts, sent)
    assert isinstance(on_device, GpuSearch)
    assert np.array_equal(on_device.totals, search.totals)
    assert np.array_equal(on_device.largest, search.largest)
    starts = on_device.starts
    starts.make(on_device, [1])
    starts.make(on_device, [number for number in range(config.hierarchies) if number != 1])
    for number in range(config.hierarchies):
        levels, parts, count = search.coarsen(number)
        start = starts.known(on_device)[number]
        found = {depth: (n, gpu.to_host(starts.maps[row])) for row, n, depth in start.steps}
        fine = np.arange(level.n_nodes)
        for depth, (coarse, clusters) in enumerate(levels[1:], 1):
            fine = clusters[fine]
            if coarse.n_nodes > count * 5 // 4:
                n, clusters = found.pop(depth)
                assert n == coarse.n_nodes
                assert np.array_equal(clusters, fine)
        assert not found
        assert [depth for *_, depth in start.steps] == sorted(
            (depth for *_, depth in start.steps), reverse=True
        )
        assert start.n_parts == count
        assert np.array_equal(gpu.to_host(starts.maps[start.row]), parts[fine])
    return starts


def bundles_of(level: Level, largest: int) -> Array:
    """Of about so many nodes, with gaps between their numbers."""
    rng = np.random.default_rng(level.n_nodes)
    if largest == 1:
        return np.arange(level.n_nodes, dtype=np.int32)
    drawn = 3 * rng.integers(0, -(-level.n_nodes // largest), level.n_nodes)
    return np.sort(drawn).astype(np.int32)


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 1 << 20),
    sizes=st.tuples(st.integers(1, 200), st.integers(1, 120), st.integers(2, 20)),
    n_loads=st.tuples(st.integers(1, 2), st.integers(0, 2)),
    n_parts=st.integers(1, 9),
    max_parts=st.sampled_from([None, 3]),
    blocks=st.sampled_from([1, 3, 7]),
    in_bundle=st.sampled_from([None, 1, 2, 5, 200]),
)
def test_same_clusters_as_on_the_host(
    gpu: GpuEngine,
    seed: int,
    sizes: tuple[int, int, int],
    n_loads: tuple[int, int],
    n_parts: int,
    max_parts: int | None,
    blocks: int,
    in_bundle: int | None,
) -> None:
    """Crews of one block that make one hierarchy after the other, of one, and of two and a block too many."""
    level = small_level(seed, sizes, n_loads)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu.device, "multiprocessors", blocks)
        bundles = None if in_bundle is None else bundles_of(level, in_bundle)
        compare(gpu, level, n_parts, max_parts=max_parts, bundles=bundles)


def test_more_neighbours_than_a_table_has_room_for(
    gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_hierarchies, "MOST_SLOTS", 128)
    level = random_level(np.random.default_rng(4), n_nodes=280, n_nets=9, mean_pins=180)
    assert np.diff(level.net_offsets).max() > 256  # too wide to count, until it shrinks
    compare(gpu, level, 4, replace(CONFIG, hierarchies=2))


@pytest.mark.parametrize("bundled", [False, True])
def test_joining_in_global_memory(
    gpu: GpuEngine, bundled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu.device, "shared_bytes", 10_240 + gpu.search_threads * 128)
    level = random_level(np.random.default_rng(5), n_nodes=2000, n_nets=700, mean_pins=6)
    bundles = bundles_of(level, 3) if bundled else None
    compare(gpu, level, 8, replace(CONFIG, hierarchies=2), bundles=bundles)


def test_nothing_but_bundles_merges(gpu: GpuEngine) -> None:
    level = random_level(np.random.default_rng(6), n_nodes=20, n_nets=5, mean_pins=1)
    limits, bundles = np.array([1, 1]), np.repeat(np.arange(5, dtype=np.int32), 4)
    search = Search(level, limits, CONFIG, None, bundles)
    on_device = gpu.searcher(gpu.upload(level), limits, CONFIG, None, gpu.from_host(bundles))
    assert isinstance(on_device, GpuSearch)
    starts = on_device.starts
    starts.make(on_device, [0, 1])
    assert [search.coarsen(i)[2] for i in (0, 1)] == [20, 5]
    assert [starts.known(on_device)[i].n_parts for i in (0, 1)] == [20, 5]
    row = starts.known(on_device)[1].row
    assert gpu.to_host(starts.maps[row]).tolist() == bundles.tolist()


def test_nothing_merges(gpu: GpuEngine) -> None:
    level = random_level(np.random.default_rng(6), n_nodes=20, n_nets=5, mean_pins=1)
    limits = np.array([1, 1])
    search = Search(level, limits, CONFIG, None)
    on_device = gpu.searcher(gpu.upload(level), limits, CONFIG, None)
    assert isinstance(on_device, GpuSearch)
    starts = on_device.starts
    starts.make(on_device, [0])
    assert search.coarsen(0)[2] == starts.known(on_device)[0].n_parts == 20
    assert not starts.known(on_device)[0].steps
    assert gpu.to_host(starts.maps[starts.known(on_device)[0].row]).tolist() == list(range(20))


def test_sizes_of_0(gpu: GpuEngine) -> None:
    level = random_level(np.random.default_rng(7), n_nodes=50, n_nets=40, mean_pins=4)
    level = level._replace(resources=np.zeros_like(level.resources))
    compare(gpu, level, 3)
