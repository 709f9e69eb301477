"""The multilevel partitioner: valid on anything, deterministic, better than packing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.errors import ConfigError
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.networks import load_network
from snnmap.partitioning import metrics, multilevel
from snnmap.partitioning.feasibility import find_impossible
from snnmap.partitioning.multilevel import (
    PRESETS,
    engine_cpu,
    partition_multilevel,
    resolve_config,
)
from snnmap.partitioning.multilevel.compression import find_classes
from snnmap.partitioning.multilevel.engine_cpu import CpuEngine
from snnmap.partitioning.multilevel.level import pose_problem
from snnmap.partitioning.multilevel.refinement import examine
from snnmap.partitioning.verify import verify_partition
from snnmap.progress import Progress
from tests.partitioning.cases import counted_hypergraphs, feasible_limits
from tests.partitioning.multilevel import twins
from tests.strategies import hypergraphs

# Tiny searches: the same code, fewer repetitions.
BRIEF: dict[str, Any] = {
    "search": {"population": 3, "batch": 2, "generations": 2, "deep_generations": 2}
}
LARGE_PATH: dict[str, Any] = {"coarsening": {"small_pins": 0}, "refinement": {"rounds": 4}}


@pytest.mark.parametrize("preset", sorted(PRESETS))
@pytest.mark.parametrize("changes", [BRIEF, BRIEF | LARGE_PATH], ids=["search", "parallel"])
@given(h=counted_hypergraphs(max_nodes=24), data=st.data())
@settings(max_examples=30)
def test_any_hypergraph_any_limits(
    preset: str, changes: dict[str, Any], h: Hypergraph, data: st.DataObject
) -> None:
    limits = data.draw(feasible_limits(h))
    assert not list(find_impossible(h, limits))
    found = partition_multilevel(
        h, limits, preset=preset, config=changes, seed=data.draw(st.integers(0, 9))
    )
    report = verify_partition(h, found.parts, limits)
    assert report.ok, report.violations


@given(h=hypergraphs(min_nodes=1, max_nodes=20, max_size=3), data=st.data())
def test_internal_connectivity_and_loads_match_the_metrics(
    h: Hypergraph, data: st.DataObject
) -> None:
    limits = Limits(max_size=9, max_inbound=9, max_outbound=9, max_incident=9, max_synapses=9)
    problem = pose_problem(h, limits)
    k = data.draw(st.integers(1, 4))
    parts = np.array(
        data.draw(st.lists(st.integers(0, k - 1), min_size=h.n_nodes, max_size=h.n_nodes)), np.int32
    )
    other = np.array(
        data.draw(st.lists(st.integers(0, k - 1), min_size=h.n_nodes, max_size=h.n_nodes)), np.int32
    )
    engine = CpuEngine()
    state = examine(engine, problem.level, problem.limits, parts, k)
    second = examine(engine, problem.level, problem.limits, other, k)
    difference = (state.connectivity - second.connectivity) / problem.scale
    truth = metrics.connectivity(h, parts) - metrics.connectivity(h, other)
    assert difference == pytest.approx(truth, rel=1e-6, abs=1e-2)
    measured = metrics.measure(h, parts)
    n = measured.n_parts
    loads = {tuple(column) for column in state.loads[:n].T}
    for truth_loads in (
        measured.sizes,
        measured.inbound,
        measured.outbound,
        measured.incident,
        measured.synapses,
    ):
        assert tuple(truth_loads) in loads
    assert not state.loads[n:].any()


@given(h=hypergraphs(min_nodes=2, max_nodes=20), data=st.data())
def test_contraction_keeps_connectivity_and_loads(h: Hypergraph, data: st.DataObject) -> None:
    problem = pose_problem(h, Limits(max_size=9, max_inbound=9, max_incident=9))
    level, engine = problem.level, CpuEngine()
    n_clusters = data.draw(st.integers(1, h.n_nodes))
    clusters = np.r_[
        np.arange(n_clusters),
        data.draw(
            st.lists(
                st.integers(0, n_clusters - 1),
                min_size=h.n_nodes - n_clusters,
                max_size=h.n_nodes - n_clusters,
            )
        ),
    ].astype(np.int32)
    coarse = engine.contract(level, clusters, n_clusters)
    k = data.draw(st.integers(1, n_clusters))
    parts = (np.arange(n_clusters) % k).astype(np.int32)
    fine = examine(engine, level, problem.limits, parts[clusters], k)
    short = examine(engine, coarse, problem.limits, parts, k)
    assert fine.connectivity == short.connectivity
    assert (fine.loads == short.loads).all()


def moves_of(
    h: Hypergraph, parts: np.ndarray[Any, Any], k: int, strict: bool, inbound: int = 6
) -> Any:
    problem = pose_problem(h, Limits(max_size=max(h.n_nodes // k, 1), max_inbound=inbound))
    engine = CpuEngine()
    state = examine(engine, problem.level, problem.limits, parts, k)
    moves = engine.propose(
        problem.level,
        state.table,
        parts,
        state.loads,
        problem.limits,
        np.zeros_like(problem.limits),
        np.zeros(h.n_nodes, bool),
        strict=strict,
        haven=k - 1,
        seed=1,
        slack=1 << 40,
    )
    return problem, engine, state, moves


@given(h=hypergraphs(min_nodes=2, max_nodes=16, max_size=2), k=st.integers(2, 4), data=st.data())
def test_plain_gain_is_what_the_move_saves(h: Hypergraph, k: int, data: st.DataObject) -> None:
    parts = np.array(
        data.draw(st.lists(st.integers(0, k - 1), min_size=h.n_nodes, max_size=h.n_nodes)), np.int32
    )
    problem, engine, state, moves = moves_of(h, parts, k, strict=False)
    for v in np.flatnonzero(moves.targets >= 0):
        moved = parts.copy()
        moved[v] = moves.targets[v]
        after = examine(engine, problem.level, problem.limits, moved, k)
        assert state.connectivity - after.connectivity == moves.plain_gains[v]
        gained = after.loads - state.loads
        assert (gained[moves.targets[v]] == moves.incoming[v]).all()
        assert (-gained[parts[v]] == moves.outgoing[v]).all()


@pytest.mark.parametrize("strict", [False, True])
def test_moves_do_not_depend_on_the_nodes_before(
    strict: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twins share what was gathered for the one before: alone in its chunk nobody has one."""
    h = load_network("lenet").grouped()
    k = 6
    parts = (np.arange(h.n_nodes) // 31 % (k - 1)).astype(np.int32)
    together = moves_of(h, parts, k, strict, 4096)[3]

    def one_by_one(kernel: Any, n: int, *args: Any, **_: Any) -> list[Any]:
        return [kernel(*args, v, v + 1) for v in range(n)]

    monkeypatch.setattr(engine_cpu, "for_chunks", one_by_one)
    alone = moves_of(h, parts, k, strict, 4096)[3]
    moving = together.targets >= 0
    assert moving.any()
    assert (together.targets == alone.targets).all()
    for mine, other in zip(together[1:], alone[1:], strict=True):
        assert (mine[moving] == other[moving]).all()


@given(h=hypergraphs(min_nodes=2, max_nodes=16), k=st.integers(2, 4), data=st.data())
def test_gains_in_sequence_add_up(h: Hypergraph, k: int, data: st.DataObject) -> None:
    parts = np.array(
        data.draw(st.lists(st.integers(0, k - 1), min_size=h.n_nodes, max_size=h.n_nodes)), np.int32
    )
    problem, engine, state, moves = moves_of(h, parts, k, strict=False)
    order = np.array(data.draw(st.permutations(list(np.flatnonzero(moves.targets >= 0)))), np.int64)
    ranks = np.zeros(h.n_nodes, np.int32)
    ranks[order] = np.arange(len(order))
    gains = engine.gains_in_sequence(problem.level, state.table, parts, moves.targets, ranks, k)
    moved = parts.copy()
    before = state.connectivity
    for v in order:
        moved[v] = moves.targets[v]
        now = examine(engine, problem.level, problem.limits, moved, k).connectivity
        assert gains[v] == before - now
        before = now


def test_channels_of_a_pixel_are_one_class() -> None:
    h = load_network("lenet").grouped()
    level = pose_problem(h, Limits(max_size=1024, max_inbound=4096)).level
    engine = CpuEngine()
    found = find_classes(engine, level, PRESETS["default"].compression)
    assert found is not None
    classes, n_classes = found
    for population in h.populations:
        mine = classes[population.start : population.stop]
        if len(population.shape) == 3:
            pixels = mine.reshape(population.shape)
            assert (pixels == pixels[:, :, :1]).all()
        else:
            assert len(np.unique(mine)) == 1
    ranked = engine.sort_classes(level, classes, n_classes)
    chunks, coarser = engine.split_classes(ranked, 4), engine.split_classes(ranked, 16)
    n_chunks, _ = engine.count_chunks(ranked, [4, 16])
    assert np.bincount(chunks, minlength=n_chunks).max() <= 4
    assert len(np.unique(np.stack([chunks, coarser]), axis=1).T) == n_chunks  # chunks nest


@pytest.mark.parametrize("seed", range(6))
def test_measured_again_after_some_nodes_moved(seed: int) -> None:
    rng = np.random.default_rng(seed)
    level = twins.random_level(
        rng, n_nodes=90, n_nets=60, mean_pins=5, n_additive=1 + seed % 2, n_distinct=1 + seed % 3
    )
    engine, k = CpuEngine(), 5
    parts = rng.integers(0, k, level.n_nodes).astype(np.int32)
    table, before, loads = engine.measure(level, parts, k)
    moved = rng.random(level.n_nodes) < 0.07
    after = parts.copy()
    after[moved] = (after[moved] + 1) % k
    expected = engine.measure(level, after, k)
    found = engine.remeasure(level, table, before, loads, parts, after, moved)
    assert found[1] == expected[1]
    assert (found[2] == expected[2]).all()
    for name, array in twins.table_of(engine, expected[0]).items():
        assert (twins.table_of(engine, found[0])[name] == array).all(), name


def test_lists_by_node_are_made_again() -> None:
    level = twins.random_level(np.random.default_rng(2), n_nodes=40, n_nets=30, mean_pins=4)
    engine = CpuEngine()
    slim = engine.shed(level)
    assert sum(a.nbytes for a in slim) < sum(a.nbytes for a in level)
    assert slim.n_nodes == level.n_nodes
    for mine, other in zip(engine.restore(slim), level, strict=True):
        assert (mine == other).all()
    assert engine.restore(level) is level


@given(
    members=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    largest=st.integers(1, 30),
    size=st.integers(0, 9),
)
def test_chunks_are_counted_before_they_are_made(
    members: list[int], largest: int, size: int
) -> None:
    n = sum(members)
    h = Hypergraph.from_hedges(
        n, np.zeros(0), np.zeros(1, np.int64), np.zeros(0), np.zeros(0), node_sizes=np.full(n, size)
    )
    level = pose_problem(h, Limits(max_size=9)).level
    classes = np.repeat(np.arange(len(members)), members)
    engine = CpuEngine()
    ranked = engine.sort_classes(level, classes, len(members))
    (n_chunks,) = engine.count_chunks(ranked, [largest])
    chunks = engine.split_classes(ranked, largest)
    assert sorted(set(chunks.tolist())) == list(range(n_chunks))


@pytest.mark.parametrize(
    "values",
    [
        [],
        [7],
        [3, 3, 1, 9, 1],
        list(range(9000, 0, -2)) * 2,
        [v * 0x9E3779B97F4A7C15 % 2**64 for v in range(140_000)] * 2,  # numbered by leading bits
        [5 + v % 3 for v in range(70_000)],
        list(range(140_000)),  # all with the same leading bits
    ],
    ids=len,
)
def test_numbers_of_values(values: list[int]) -> None:
    array = np.array(values, np.uint64)
    distinct, places = np.unique(array, return_inverse=True)
    n, found = CpuEngine().number(array)
    assert n == len(distinct)
    assert (found == places).all()


@pytest.mark.parametrize("changes", [BRIEF, BRIEF | LARGE_PATH], ids=["search", "parallel"])
def test_same_seed_same_parts_with_any_number_of_threads(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    h = load_network("lenet")
    limits = Limits(max_size=1024, max_inbound=4096)
    found = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("SNNMAP_NUM_THREADS", threads)
        found.append(partition_multilevel(h, limits, config=changes, seed=3))
    assert (found[0].parts == found[1].parts).all()
    assert (found[0].parts == found[2].parts).all()
    other = partition_multilevel(h, limits, config=changes, seed=4)
    assert not np.array_equal(found[0].parts, other.parts)


def test_clusters_as_heavy_as_a_part_are_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where few nodes merge, heavier clusters may; but none weighs more than fits a part."""
    h = load_network("lenet")
    growths: list[float] = []

    def cluster(engine: Any, level: Any, limits: Any, config: Any, *rest: Any) -> tuple[Any, int]:
        growths.append(config.growth)
        return np.arange(level.n_nodes, dtype=np.int32), level.n_nodes

    monkeypatch.setattr(CpuEngine, "cluster", cluster)
    changes = BRIEF | {"coarsening": {"small_pins": 0}, "compression": {"rounds": 0}, "restarts": 1}
    limits = Limits(max_size=200, max_inbound=4096)
    partition_multilevel(h, limits, engine="cpu", config=changes, preset="fast")
    assert growths == [4.0, 16.0, 64.0, 256.0]
    del growths[:]
    partition_multilevel(h, Limits(max_inbound=4096), engine="cpu", config=changes, preset="fast")
    assert growths[-1] > h.n_nodes


@pytest.mark.parametrize("valid", [True, False])
def test_neurons_of_a_large_network_stay_in_their_chunks(
    valid: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    h = load_network("lenet")
    limits = Limits(max_size=1024, max_inbound=4096)
    sizes: list[int] = []

    def solve_levels(run: Any, levels: Any, seed: int) -> tuple[Any, bool]:
        sizes.append(run.finest.slim.n_nodes)
        parts, ok = solve(run, levels, seed)
        return parts, ok and valid

    solve = multilevel.solve_levels
    monkeypatch.setattr(multilevel, "solve_levels", solve_levels)
    changes = BRIEF | {"compression": {"whole_pins": 0}}
    found = partition_multilevel(h, limits, engine="cpu", config=changes, seed=2)
    assert verify_partition(h, found.parts, limits).ok
    assert sizes[0] < h.n_nodes // 2
    assert sizes[1:] == ([] if valid else [h.n_nodes])  # else again, neuron by neuron


def test_expired_progress_still_gives_a_valid_partition() -> None:
    h = load_network("lenet")
    limits = Limits(max_size=1024, max_inbound=4096)
    found = partition_multilevel(h, limits, progress=Progress(time_limit=0.0))
    assert not found.complete
    assert verify_partition(h, found.parts, limits).ok


def test_kway_needs_no_axon_limit() -> None:
    h = load_network("lenet")
    largest = -(-h.n_nodes // 4) * 103 // 100
    found = partition_multilevel(h, Limits(max_size=largest, max_parts=4), config=BRIEF)
    assert found.n_parts <= 4
    assert metrics.part_sizes(h, found.parts).max() <= largest


def test_presets_and_settings(tmp_path: Path) -> None:
    assert resolve_config("fast") == PRESETS["fast"]
    changed = resolve_config("default", {"search": {"generations": 3}})
    assert changed == replace(
        PRESETS["default"], search=replace(PRESETS["default"].search, generations=3)
    )
    file = tmp_path / "knobs.toml"
    file.write_text("[refinement]\ntemperature = 0.5\ncoarse_prices = [1, 2]\n")
    assert resolve_config("default", file).refinement.coarse_prices == (1.0, 2.0)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"serch": {}}, "serch"),
        ({"search": {"generation": 3}}, "generation"),
        ({"search": {"generations": 1.5}}, "whole number"),
        ({"search": {"generations": True}}, "whole number"),
        ({"search": 3}, "table"),
        ({"search": {"fill": [1.0]}}, "list"),
        ({"refinement": {"temperature": "hot"}}, "number"),
        ({"search": {"population": 0}}, "at least 1"),
        ({"search": {"shrink": 1.5}}, "below 1"),
        ({"coarsening": {"scheme": "jet"}}, "expected one of clusters, matching"),
        ({"refinement": {"scheme": 3}}, "expected one of jet, sequence"),
        ({"merge": "never"}, "expected one of always, needed"),
    ],
)
def test_wrong_settings_are_named(changes: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        resolve_config("default", changes)


def test_unknown_preset_and_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="fastest"):
        resolve_config("fastest")
    with pytest.raises(ConfigError, match="missing"):
        resolve_config("default", tmp_path / "missing.toml")
