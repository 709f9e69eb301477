"""Every step of the GPU engine gives the integers of the CPU engine: on a GPU, and emulated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.networks import load_network
from snnmap.partitioning import multilevel
from snnmap.partitioning.multilevel.config import CoarseningConfig
from snnmap.partitioning.multilevel.engine_cpu import CpuEngine
from snnmap.partitioning.multilevel.engine_gpu import GpuEngine
from snnmap.partitioning.multilevel.gpu_rows import largest_power, power_of_two
from snnmap.partitioning.multilevel.level import make_level, pose_problem, with_lists
from tests.emulator.starting import KINDS, start_gpu
from tests.partitioning.cases import counted_hypergraphs, feasible_limits
from tests.partitioning.multilevel import twins

BRIEF: dict[str, Any] = {
    "search": {"population": 3, "batch": 2, "generations": 2, "deep_generations": 2}
}
PARALLEL: dict[str, Any] = {"coarsening": {"small_pins": 0}, "refinement": {"rounds": 4}}
needs_gpu = pytest.mark.gpu


@pytest.fixture(scope="module", params=KINDS)
def gpu(request: pytest.FixtureRequest) -> Iterator[GpuEngine]:
    return start_gpu(GpuEngine, request.param)


def compare(gpu: GpuEngine, step: str, level: Any, seed: int) -> None:
    expected = twins.run_step(CpuEngine(), step, level, seed)
    found = twins.run_step(gpu, step, level, seed)
    assert expected, "the step has no results to compare"
    assert list(twins.differences(expected, found)) == []


@pytest.mark.parametrize("step", sorted(twins.STEPS))
@pytest.mark.parametrize("seed", range(4))
def test_steps_on_random_levels(gpu: GpuEngine, step: str, seed: int) -> None:
    n_nodes, n_nets, mean_pins = [(1, 0, 1.0), (5, 3, 2.0), (60, 70, 6.0), (260, 90, 30.0)][seed]
    level = twins.random_level(
        np.random.default_rng(seed),
        n_nodes=n_nodes,
        n_nets=n_nets,
        mean_pins=mean_pins,
        n_additive=1 + seed % 2,
        n_distinct=1 + seed % 2,
    )
    compare(gpu, step, level, seed)


@pytest.mark.parametrize("step", ["measure", "moves", "neighbours"])
def test_tables_too_large_for_shared_memory(
    gpu: GpuEngine, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu.device, "shared_bytes", 8192 + 2048)
    rng = np.random.default_rng(8)
    level = twins.random_level(rng, n_nodes=320, n_nets=24, mean_pins=200, mean_sources=20)
    compare(gpu, step, level, 8)


@pytest.mark.parametrize("step", sorted(twins.STEPS))
@given(h=counted_hypergraphs(min_nodes=1, max_nodes=12), data=st.data())
@settings(max_examples=6)
def test_steps_on_any_hypergraph(
    gpu: GpuEngine, step: str, h: Hypergraph, data: st.DataObject
) -> None:
    limits = data.draw(feasible_limits(h))
    compare(gpu, step, pose_problem(h, limits).level, data.draw(st.integers(0, 99)))


@pytest.mark.parametrize("window", [16, 1 << 30], ids=["windows", "one bitmap"])
@pytest.mark.parametrize(
    ("n_nodes", "n_nets", "mean_pins", "mean_sources"),
    [(900, 12, 600, 500), (8, 1500, 5, 5)],
    ids=["nets", "nodes"],
)
def test_long_rows(
    gpu: GpuEngine,
    monkeypatch: pytest.MonkeyPatch,
    window: int,
    n_nodes: int,
    n_nets: int,
    mean_pins: float,
    mean_sources: float,
) -> None:
    monkeypatch.setattr(gpu, "window_bytes", window)
    rng = np.random.default_rng(5)
    sizes = {"n_nodes": n_nodes, "n_nets": n_nets, "mean_pins": mean_pins}
    level = twins.random_level(rng, **sizes, mean_sources=mean_sources)
    rows = (level.net_offsets, level.source_offsets, level.node_offsets, level.out_offsets)
    assert any(np.diff(offsets).max() > 384 for offsets in rows)
    compare(gpu, "contract", level, 5)
    compare(gpu, "compress", level, 5)


def test_more_clusters_than_a_warp_has_bits(gpu: GpuEngine) -> None:
    rng = np.random.default_rng(7)
    level = twins.random_level(rng, n_nodes=60_000, n_nets=60, mean_pins=200, mean_sources=40)
    compare(gpu, "contract", level, 7)


@pytest.mark.parametrize("kept", [0, 1 << 16], ids=["global sums", "shared sums"])
@pytest.mark.parametrize("window", [16, 1 << 30], ids=["windows", "one bitmap"])
def test_weighing_long_nets_and_many_parts(
    gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch, window: int, kept: int
) -> None:
    """Nets of more than a warp's pins; more parts than a warp's bits, and than a window's."""
    monkeypatch.setattr(gpu, "window_bytes", window)
    monkeypatch.setattr(gpu, "kept_bytes", kept)
    rng = np.random.default_rng(6)
    level = twins.random_level(rng, n_nodes=1500, n_nets=8, mean_pins=900, mean_sources=300)
    compare(gpu, "weigh", level, 6)
    n_parts = 17_000
    parts = rng.integers(0, n_parts, 1500).astype(np.int32)
    limits = twins.random_limits(rng, level, 700)
    there = gpu.from_host(limits), gpu.from_host(parts), n_parts
    _, connectivity, loads, overload = gpu.weigh(gpu.upload(level), *there)
    _, *expected = CpuEngine().weigh(level, limits, parts, n_parts)
    assert connectivity == expected[0]
    assert (gpu.to_host(loads) == expected[1]).all()
    assert (overload == expected[2]).all()
    assert overload.any()


@pytest.mark.parametrize(
    ("window", "n_nodes"),
    [(2048, 500), (12288, 1600), (1 << 30, 1600)],
    ids=["ranges", "blocks", "warps"],
)
def test_ratings_of_many_clusters(
    gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch, window: int, n_nodes: int
) -> None:
    monkeypatch.setattr(gpu, "window_bytes", window)
    rng = np.random.default_rng(8)
    level = twins.random_level(rng, n_nodes=n_nodes, n_nets=24, mean_pins=n_nodes / 11)
    compare(gpu, "cluster", level, 8)


def test_ratings_of_nets_with_many_pins(gpu: GpuEngine) -> None:
    """They list no clusters, and their pins are looked at themselves."""
    rng = np.random.default_rng(9)
    level = twins.random_level(rng, n_nodes=600, n_nets=9, mean_pins=330)
    assert np.diff(level.net_offsets).max() > 256
    compare(gpu, "cluster", level, 9)


def test_who_makes_clusters_begins_their_contraction(
    gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    host = twins.random_level(rng, n_nodes=90, n_nets=70, mean_pins=9)
    level, started = gpu.upload(host), []
    run = gpu._run_together

    def note(source: str, name: str, *args: Any, **knobs: Any) -> None:
        started.append(name)
        run(source, name, *args, **knobs)

    monkeypatch.setattr(gpu, "_run_together", note)
    limits = gpu.from_host(twins.random_limits(rng, host, 5))
    clusters, n = gpu.cluster(level, limits, CoarseningConfig(), 1, None)
    coarse = gpu.contract_nets(level, clusters, n)
    assert started == ["cluster_nodes", "begin_contraction", "finish_contraction"]
    again = gpu.contract_nets(level, clusters.copy(), n)  # whose clusters nobody knows
    assert started[3:] == ["begin_contraction", "finish_contraction"]
    for mine, other in zip(gpu.download(coarse), gpu.download(again), strict=True):
        assert np.array_equal(mine, other)


@pytest.mark.parametrize("mask", [-1, 3])
def test_a_level_of_known_size_is_not_waited_for(
    gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch, mask: int
) -> None:
    """Unless nets with different pins had the same hash, which then may be so again."""
    monkeypatch.setattr(gpu, "hash_mask", mask)
    monkeypatch.setattr(gpu, "hashes_differ", True)
    rng = np.random.default_rng(8)
    host = twins.random_level(rng, n_nodes=60, n_nets=50, mean_pins=6)
    level, clusters = gpu.upload(host), (np.arange(60) // 3).astype(np.int32)
    first = gpu.contract_nets(level, gpu.from_host(clusters), 20)
    assert gpu.hashes_differ == (mask == -1)
    waits, fetch = [], gpu.xp.asnumpy

    def note(array: Any) -> Any:
        waits.append(array)
        return fetch(array)

    monkeypatch.setattr(gpu.xp, "asnumpy", note)
    again = gpu.contract_nets(level, gpu.from_host(clusters), 20, first.sizes)
    assert (len(waits) == 0) == (mask == -1)
    for mine, other in zip(gpu.download(again), gpu.download(first), strict=True):
        assert np.array_equal(mine, other)


@pytest.mark.parametrize("window", [64, 1 << 30], ids=["ranges", "at once"])
def test_merging_many_parts(gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch, window: int) -> None:
    """More turns than one, rows of more than a warp's entries, more parts than a range."""
    monkeypatch.setattr(gpu, "window_bytes", window)
    rng = np.random.default_rng(11)
    level = twins.random_level(rng, n_nodes=140, n_nets=60, mean_pins=25, n_distinct=2)
    compare(gpu, "merge", level, 11)
    if window > 64:
        monkeypatch.setattr(gpu, "set_words", 0)
        compare(gpu, "merge", level, 11)


def test_many_suitors_of_one_cluster(gpu: GpuEngine) -> None:
    """More than a warp sorts want the hub, which shares a net with each."""
    n = 1800
    pins = np.stack([np.zeros(n - 1, np.int32), np.arange(1, n, dtype=np.int32)], axis=1).ravel()
    one, nobody = np.ones((n, 1), np.int64), np.zeros(0, np.int32)
    offsets, weights = np.arange(n) * 2, np.arange(n - 1) % 7
    none = np.zeros(n, np.int64)
    level = with_lists(make_level(offsets, pins, none, nobody, none[:0], weights, one[1:], one))
    compare(gpu, "cluster", level, 1)


def test_equal_hashes_of_different_rows_are_told_apart(
    gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "hash_mask", 0)
    level = twins.random_level(np.random.default_rng(3), n_nodes=20, n_nets=30, mean_pins=3)
    compare(gpu, "contract", level, 3)


@pytest.mark.parametrize(
    ("preset", "changes"),
    [
        ("fast", BRIEF),
        ("fast", BRIEF | PARALLEL),
        ("quality", BRIEF),
        ("quality", BRIEF | PARALLEL),
        ("paper", None),
    ],
    ids=["search", "parallel", "quality", "quality-parallel", "paper"],
)
@given(h=counted_hypergraphs(max_nodes=14), data=st.data())
@settings(max_examples=6)
def test_whole_partition_of_any_hypergraph(
    gpu: GpuEngine, preset: str, changes: dict[str, Any] | None, h: Hypergraph, data: st.DataObject
) -> None:
    limits, seed = data.draw(feasible_limits(h)), data.draw(st.integers(0, 9))
    assert partitions_differ(gpu, h, limits, preset, changes, seed) == []


@needs_gpu
@pytest.mark.parametrize("name", ["lenet", "16k-model", "16k-rand"])
@pytest.mark.parametrize(
    ("preset", "seed"), [("fast", 0), ("fast", 1), ("default", 2), ("paper", 0)]
)
def test_whole_partition_of_networks(name: str, preset: str, seed: int) -> None:
    gpu = start_gpu(GpuEngine, "device")
    limits = Limits(max_size=1024, max_inbound=4096)
    assert partitions_differ(gpu, load_network(name), limits, preset, None, seed) == []


@needs_gpu
def test_steps_on_a_large_level() -> None:
    gpu = start_gpu(GpuEngine, "device")
    rng = np.random.default_rng(0)
    level = twins.random_level(rng, n_nodes=20_000, n_nets=10_000, mean_pins=100)
    for step in twins.STEPS:
        compare(gpu, step, level, 1)


def partitions_differ(
    gpu: GpuEngine, h: Hypergraph, limits: Limits, preset: str, changes: Any, seed: int
) -> list[str]:
    """Differences between the partitions of both engines."""
    found = []
    for engine in (CpuEngine(), gpu):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(multilevel, "choose_engine", lambda name, engine=engine: engine)
            result = multilevel.partition_multilevel(
                h, limits, preset=preset, config=changes, seed=seed
            )
        assert result.engine == engine.name
        found.append({"parts": result.parts})
    return list(twins.differences(*found))


def test_powers_of_two() -> None:
    assert [power_of_two(n) for n in (1, 32, 33, 64, 65)] == [32, 32, 64, 64, 128]
    assert [largest_power(n) for n in (1, 32, 63, 64, 127)] == [32, 32, 32, 64, 64]
