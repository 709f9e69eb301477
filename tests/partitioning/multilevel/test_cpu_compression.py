"""The CPU engine's own steps of compression against their slow twins."""

from __future__ import annotations

import numpy as np
import pytest

from snnmap.partitioning.multilevel import cpu_compression
from snnmap.partitioning.multilevel.compression import (
    Classes,
    plan_pieces,
    sign_nodes,
)
from snnmap.partitioning.multilevel.engine_cpu import CpuEngine
from snnmap.partitioning.multilevel.level import Level, make_level, project, with_lists
from tests.partitioning.multilevel.twins import random_level


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("threads", [1, 3])
def test_nodes_are_signed_from_the_lists_by_net(
    seed: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNNMAP_NUM_THREADS", str(threads))
    rng = np.random.default_rng(seed)
    size = {"n_nodes": 300, "n_nets": 40 * (1 + seed), "mean_pins": 1 + 3 * (seed % 3)}
    level = random_level(rng, **size, n_additive=1, n_distinct=1)
    engine, slim = CpuEngine(), _without_lists(level)
    classes = rng.integers(0, 40, level.n_nodes)
    assert (engine.sign_nodes(slim, None) == sign_nodes(engine, level, None)).all()
    for known in (classes, classes // 3):
        expected = sign_nodes(engine, level, known)
        assert (engine.sign_nodes(slim, known.astype(np.int32)) == expected).all()


def test_pins_of_large_levels_are_shared_among_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNNMAP_NUM_THREADS", "3")
    rng = np.random.default_rng(5)
    level = random_level(
        rng, n_nodes=2000, n_nets=9000, mean_pins=40, n_additive=2, n_distinct=2, repeats=0.5
    )
    assert level.n_pins > cpu_compression.SMALL_PINS
    engine, slim = CpuEngine(), _without_lists(level)
    classes = np.arange(level.n_nodes) // 7
    assert (engine.sign_nodes(slim, None) == sign_nodes(engine, level, None)).all()
    found = engine.sign_nodes(slim, classes.astype(np.int32))
    assert (found == sign_nodes(engine, level, classes)).all()
    assert all((a == b).all() for a, b in zip(with_lists(slim), level, strict=True))


@pytest.mark.parametrize("width", [1, 30, 400])
def test_runs_of_nets_contract_to_what_nets_do(width: int) -> None:
    rng = np.random.default_rng(width)
    level = random_level(
        rng, n_nodes=3000, n_nets=8000, mean_pins=40, n_additive=2, n_distinct=2, repeats=0.6
    )
    assert level.n_pins > cpu_compression.SMALL_PINS
    clusters = (np.arange(level.n_nodes) // width).astype(np.int32)
    n_clusters = int(clusters.max()) + 1
    engine = CpuEngine()
    expected = engine.restore(engine.contract_nets(level, clusters, n_clusters))
    found = engine.contract(_without_lists(level), clusters, n_clusters)
    for name, mine, other in zip(Level._fields, found, expected, strict=True):
        assert mine.dtype == other.dtype
        assert (mine == other).all(), name


def test_layers_contract_to_what_nets_do() -> None:
    """Nets in rows of equal neighbours, as layers have them; some empty, some without source."""
    rng = np.random.default_rng(1)
    n_nodes, n_rows, repeats = 4000, 3000, 20
    rows = [np.unique(rng.integers(0, n_nodes, rng.integers(0, 12))) for _ in range(n_rows)]
    pins = [row for row in rows for _ in range(repeats)]
    sizes = np.array([len(row) for row in pins])
    n_nets, n_sources = len(pins), rng.integers(0, 3, len(pins))
    level = make_level(
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate(pins).astype(np.int32),
        np.concatenate([[0], np.cumsum(n_sources)]),
        rng.integers(0, n_nodes, n_sources.sum()).astype(np.int32),
        rng.integers(0, 99, n_sources.sum()),
        rng.integers(0, 99, n_nets),
        rng.integers(0, 9, (n_nets, 1)),
        np.ones((n_nodes, 1), np.int64),
    )
    assert level.n_pins > cpu_compression.SMALL_PINS
    clusters = rng.integers(0, 500, n_nodes).astype(np.int32)
    engine = CpuEngine()
    expected = engine.restore(engine.contract_nets(level, clusters, 500))
    found = engine.contract(level, clusters, 500)
    for name, mine, other in zip(Level._fields, found, expected, strict=True):
        assert (mine == other).all(), name


@pytest.mark.parametrize("seed", range(5))
def test_finer_chunks_lie_in_coarser_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    members = rng.integers(1, 60, 9)
    sizes = members * rng.integers(0, 5, len(members))
    offsets = np.concatenate([[0], np.cumsum(members)])
    order = np.arange(offsets[-1], dtype=np.int32)
    classes, engine = Classes(order, offsets, sizes), CpuEngine()
    for sizes_of in ((1, 2), (1, 16), (3, 12), (5, 500)):
        fine, coarse = (plan_pieces(np, classes, size) for size in sizes_of)
        finer, coarser = (engine.split_classes(classes, size) for size in sizes_of)
        nested = engine.nest_chunks(classes, *sizes_of, int(fine.firsts[-1]))
        assert (nested == project(np, coarser, finer, len(nested))).all()
        whole = np.repeat(fine.pieces <= members, members)
        assert (nested[finer] == coarser)[whole].all()
        assert nested.max() < coarse.firsts[-1]
        assert (np.diff(nested) >= 0).all()


@pytest.mark.parametrize("width", [1, 5, 3000])
@pytest.mark.parametrize("n_values", [3, 30_000, 300_000])
def test_runs_of_values_are_numbered_as_values_are(width: int, n_values: int) -> None:
    rng = np.random.default_rng(width)
    heads = rng.integers(0, 2**64 - 1, n_values, np.uint64)[rng.integers(0, n_values, 300_000)]
    values = np.repeat(heads, rng.integers(1, 2 * width, len(heads)))[: 1 << 19]
    distinct, places = np.unique(values, return_inverse=True)
    n, found = CpuEngine().number(values)
    assert n == len(distinct)
    assert (found == places).all()


def _without_lists(level: Level) -> Level:
    """The level as it is posed: nothing by node."""
    none, nobody = np.zeros(0, np.int64), np.zeros(0, np.int32)
    return level._replace(
        node_offsets=none, node_nets=nobody, out_offsets=none, out_nets=nobody, out_weights=none
    )
