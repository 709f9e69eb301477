"""Rounds of refinement in one launch give the parts of the CPU engine, or give up and say so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.hypergraph import Hypergraph
from snnmap.partitioning.multilevel import gpu_rounds, gpu_rounds_memory
from snnmap.partitioning.multilevel.config import RefinementConfig
from snnmap.partitioning.multilevel.engine_cpu import CpuEngine
from snnmap.partitioning.multilevel.engine_gpu import GpuEngine
from snnmap.partitioning.multilevel.gpu_rounds_memory import WAYS
from snnmap.partitioning.multilevel.level import Level, make_level, pose_problem, with_lists
from snnmap.partitioning.multilevel.refinement import refine, repair
from snnmap.partitioning.multilevel.turns import RoundsGaveUpError, plan_turns
from snnmap.progress import Progress
from tests.emulator.starting import KINDS, start_gpu
from tests.partitioning.cases import counted_hypergraphs, feasible_limits
from tests.partitioning.multilevel import twins

SHAPES: dict[str, dict[str, Any]] = {
    "no nets": {"n_nodes": 3, "n_nets": 0, "mean_pins": 1},
    "few nodes of many nets": {"n_nodes": 40, "n_nets": 900, "mean_pins": 4},
    "two loads each": {"n_nodes": 150, "n_nets": 90, "mean_pins": 9, "n_additive": 2, "n_distinct": 2},
    "many events": {"n_nodes": 500, "n_nets": 30, "mean_pins": 200, "mean_sources": 6},
    "many moves": {"n_nodes": 900, "n_nets": 500, "mean_pins": 5},
    "many pins": {"n_nodes": 400, "n_nets": 300, "mean_pins": 50, "mean_sources": 2},
    "long nets": {"n_nodes": 1300, "n_nets": 6, "mean_pins": 3000},
}  # fmt: skip


@pytest.fixture(params=KINDS)
def gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[GpuEngine]:
    engine = start_gpu(GpuEngine, request.param)
    monkeypatch.setattr(engine, "entries_of_net", 64)  # random parts touch more than good ones
    monkeypatch.setattr(engine, "room_bytes", lambda: 1 << 40)
    if request.param == "emulated":
        monkeypatch.setattr(engine, "round_threads", 64)
        monkeypatch.setattr(engine, "tile_nodes", 100)  # some for each level
    return engine


def refined(
    engine: Any, level: Level, seed: int, n_parts: int, config: RefinementConfig, **changes: Any
) -> Any:
    """Refined parts on the host, from random ones with random limits; rounds know what weighing tells."""
    rng = np.random.default_rng(seed)
    limits = twins.random_limits(rng, level, n_parts)
    parts = rng.integers(0, n_parts, level.n_nodes).astype(np.int32)
    knobs: dict[str, Any] = {
        "rounds": 7, "schedule": (0.5, 2.0, 16.0), "overload_price": 20.0, "roomy": False, "seed": seed
    }  # fmt: skip
    knobs |= changes
    level = engine.for_rounds(engine.upload(level))
    where = (engine, level, engine.from_host(limits), engine.from_host(parts))
    found = refine(*where, n_parts, config, **knobs)
    at_once, measured = (engine.weigh(level, where[2], found, n_parts)[1:] for _ in range(2))
    for one, other in zip(at_once, measured, strict=True):
        assert np.array_equal(engine.to_host(one), engine.to_host(other))
    return engine.to_host(found)


SCHEMES = {"jet": RefinementConfig(), "sequence": RefinementConfig(scheme="sequence")}


def watch(gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each call so far gave up."""
    gave_up: list[bool] = []
    whole = gpu._play

    def ask(*asked: Any, **more: Any) -> Any:
        found = whole(*asked, **more)
        gave_up.append(found is None)
        return found

    monkeypatch.setattr(gpu, "_play", ask)
    return gave_up


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_parts", [1, 2, 23])
@pytest.mark.parametrize("shape", SHAPES)
def test_same_parts(
    gpu: GpuEngine, shape: str, n_parts: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether or not there is memory to keep what nodes find."""
    gave_up = watch(gpu, monkeypatch)
    monkeypatch.setattr(gpu, "ways", (way,))
    monkeypatch.setattr(gpu_rounds_memory, "_LARGE", 1 << 12)  # large rooms lie apart
    level = twins.random_level(np.random.default_rng(n_parts), **SHAPES[shape])
    for scheme, roomy in (("jet", False), ("jet", True), ("sequence", False)):
        asked = (level, n_parts, n_parts, SCHEMES[scheme])
        found = refined(gpu, *asked, roomy=roomy)
        assert (found == refined(CpuEngine(), *asked, roomy=roomy)).all()
    assert gave_up == [False, False, False]


def repaired(
    engine: Any, level: Level, seed: int, n_parts: int, max_parts: int | None, **changes: Any
) -> tuple[Any, int, list[int]]:
    """(repaired parts on the host, their number, overload), from random ones with random limits."""
    rng = np.random.default_rng(seed)
    limits = twins.random_limits(rng, level, n_parts)
    parts = rng.integers(0, n_parts, level.n_nodes).astype(np.int32)
    level = engine.for_rounds(engine.upload(level))
    where = (engine, level, engine.from_host(limits), engine.from_host(parts))
    config = RefinementConfig(repairs=12)
    state = repair(*where, n_parts, max_parts, config, seed=seed, **changes)
    return engine.to_host(state.parts), state.n_parts, list(state.overload)


@pytest.mark.parametrize("most", [0, 4, None])
@pytest.mark.parametrize("n_parts", [1, 2, 23])
@pytest.mark.parametrize("shape", SHAPES)
def test_same_repair(
    gpu: GpuEngine,
    shape: str,
    n_parts: int,
    most: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gave_up = watch(gpu, monkeypatch)
    level = twins.random_level(np.random.default_rng(n_parts), **SHAPES[shape])
    asked = (level, n_parts, n_parts, None if most is None else n_parts + most)
    found, expected = (repaired(engine, *asked) for engine in (gpu, CpuEngine()))
    assert (found[0] == expected[0]).all()
    assert found[1:] == expected[1:]
    assert not any(gave_up)


def test_repair_goes_on_where_a_launch_gave_up(
    gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    gave_up = watch(gpu, monkeypatch)
    monkeypatch.setattr(gpu, "entries_of_net", 0)
    level = twins.random_level(np.random.default_rng(1), **SHAPES["many events"])
    found, expected = (repaired(engine, level, 3, 9, None) for engine in (gpu, CpuEngine()))
    assert (found[0] == expected[0]).all()
    assert any(gave_up)


def test_the_next_rounds_need_not_wait(gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deferred rounds are the same; where they gave up, whoever comes next is told."""
    level = twins.random_level(np.random.default_rng(1), **SHAPES["many events"])
    again = {"deferred": True, "rounds": 3}
    found = refined(gpu, level, 3, 9, SCHEMES["jet"], **again)
    assert (found == refined(CpuEngine(), level, 3, 9, SCHEMES["jet"], **again)).all()
    monkeypatch.setattr(gpu, "entries_of_net", 0)
    with pytest.raises(RoundsGaveUpError):  # by weighing
        refined(gpu, level, 3, 9, SCHEMES["jet"], **again)
    there, parts = gpu.upload(level), np.zeros(level.n_nodes, np.int32)
    limits = gpu.from_host(np.full(len(level.totals()), 5))
    turns = plan_turns(RefinementConfig(), 2, (1.0,), roomy=False, seed=1)
    asked = (there, limits, gpu.from_host(parts), 2, turns, Progress())
    how = {"overload_price": 1.0, "patience": 2}
    monkeypatch.setattr(gpu, "entries_of_net", 64)
    assert gpu.refine_rounds(*asked, **how, deferred=True) is not None
    assert gpu.refine_rounds(*asked, **how, deferred=True) is not None  # after a look at the first
    monkeypatch.setattr(gpu._awaited.told, "wait", lambda: np.ones(99, np.int64))
    with pytest.raises(RoundsGaveUpError):  # by rounds
        gpu.refine_rounds(*asked, **how)
    assert gpu.refine_rounds(*asked, **how) is not None


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("slots", [0, 8, 256])
@pytest.mark.parametrize("threads", [128, 512])
def test_more_parts_than_tables_of_warps_hold(
    gpu: GpuEngine, threads: int, slots: int, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table is a team's, or has slots for some parts; if those do not suffice, the launch starts again."""
    gave_up = watch(gpu, monkeypatch)
    monkeypatch.setattr(gpu, "table_slots", slots)
    monkeypatch.setattr(gpu, "gapless_parts", 2000)
    monkeypatch.setattr(gpu, "round_threads", threads)
    monkeypatch.setattr(gpu, "tile_nodes", 1 << 20)  # many parts take long
    room = 8192 + 24 * 1024 + (80 if threads == 128 else 160) * 1024
    monkeypatch.setattr(gpu.device, "shared_bytes", room)
    monkeypatch.setattr(gpu, "whole_parts", 2000)
    level = twins.random_level(np.random.default_rng(8), n_nodes=900, n_nets=120, mean_pins=40)
    asked = (level, 8, 1300 if threads == 128 else 900, SCHEMES[scheme])
    team = gpu.fit_tables(level, asked[2])[1]
    assert team > 1
    assert (refined(gpu, *asked, rounds=3) == refined(CpuEngine(), *asked, rounds=3)).all()
    assert gave_up == ([False, False] if slots == 8 else [False])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_fewer_warps_gather_where_parts_are_many(
    gpu: GpuEngine, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gave_up = watch(gpu, monkeypatch)
    monkeypatch.setattr(gpu, "ways", ("gathered",))
    monkeypatch.setattr(gpu, "gapless_parts", 2000)
    monkeypatch.setattr(gpu, "round_threads", 128)
    monkeypatch.setattr(gpu, "tile_nodes", 1 << 20)
    monkeypatch.setattr(gpu.device, "shared_bytes", 84 * 1024)
    level = twins.random_level(np.random.default_rng(8), n_nodes=900, n_nets=120, mean_pins=40)
    asked = (level, 8, 1300, SCHEMES[scheme])
    size = gpu.fit_tables(level, asked[2])
    places = 4 * size.words + size.lists * size.threads // 32
    assert 8 * asked[2] < places < 4 * 8 * asked[2]
    assert (refined(gpu, *asked, rounds=3) == refined(CpuEngine(), *asked, rounds=3)).all()
    assert gave_up == [False]


@pytest.mark.parametrize("n_weights", [1, 3, 1000])
def test_more_want_to_move_than_there_is_room_for(gpu: GpuEngine, n_weights: int) -> None:
    """Nodes each tied to one of few anchors elsewhere: many moves of equal gain."""
    rng = np.random.default_rng(n_weights)
    n, n_anchors = 900, 30
    parts = (np.arange(n + n_anchors) >= n).astype(np.int32)
    pairs = [np.array([v, n + rng.integers(n_anchors)], np.int32) for v in range(n)]
    none = np.zeros(0, np.int64)
    level = with_lists(make_level(
        *twins.flatten(pairs), np.zeros(n + 1, np.int64), none.astype(np.int32), none,
        rng.integers(1, n_weights + 1, n), np.ones((n, 1), np.int64), rng.integers(1, 4, (n + n_anchors, 1)),
    ))  # fmt: skip
    limits = np.array([1200, 2 * n])
    knobs = {"rounds": 1, "schedule": (4.0,), "overload_price": 4.0, "roomy": False, "seed": 1}
    found = []
    for engine in (gpu, CpuEngine()):
        where = (engine, engine.for_rounds(engine.upload(level)), engine.from_host(limits))
        state = repair(*where, engine.from_host(parts), 2, 2, RefinementConfig(repairs=1), seed=1)
        refined = refine(*where, engine.from_host(parts), 2, RefinementConfig(), **knobs)
        found.append([engine.to_host(result) for result in (refined, state.parts)])
    for mine, other in zip(*found, strict=True):
        assert (mine == other).all()
        assert 0 < (mine != parts).sum() < n


def with_twins(level: Level, rng: np.random.Generator, most: int) -> Level:
    """The level with up to so many twins of each node, one after the other, which send to one net or none."""
    copies = rng.integers(1, most + 1, level.n_nodes)
    last = np.cumsum(copies)
    rows = np.split(level.net_pins, level.net_offsets[1:-1])
    pins = [[u for v in row for u in range(last[v] - copies[v], last[v])] for row in rows]
    goals = np.repeat(rng.integers(-1, level.n_nets, level.n_nodes), copies)
    sources = [np.flatnonzero(goals == g) for g in range(level.n_nets)]
    source_offsets, source_nodes = twins.flatten(sources)
    weights = rng.integers(0, 9, len(source_nodes))
    goals_of_all = np.repeat(np.arange(level.n_nets), np.diff(source_offsets))
    sent = np.bincount(goals_of_all, weights, level.n_nets)
    made = make_level(
        *twins.flatten(pins), source_offsets, source_nodes, weights,
        level.net_weights + sent.astype(np.int64), level.counts, np.repeat(level.resources, copies, 0),
    )  # fmt: skip
    return with_lists(made)


@pytest.mark.parametrize("most", [1, 40])
@pytest.mark.parametrize("n_parts", [2, 40])
@pytest.mark.parametrize(
    "shape",
    [
        {"n_nodes": 20, "n_nets": 30, "mean_pins": 5, "n_additive": 2, "n_distinct": 2},
        {"n_nodes": 30, "n_nets": 8, "mean_pins": 9},
        {"n_nodes": 120, "n_nets": 60, "mean_pins": 3},
    ],
)
def test_twins(
    gpu: GpuEngine,
    shape: dict[str, Any],
    n_parts: int,
    most: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are looked at together, whatever their parts."""
    gave_up = watch(gpu, monkeypatch)
    monkeypatch.setattr(gpu, "many_nodes", 0)
    monkeypatch.setattr(gpu, "few_nets", 1 << 40)
    rng = np.random.default_rng(n_parts)
    level = with_twins(twins.random_level(rng, **shape), rng, most)
    for scheme in SCHEMES:
        asked = (level, n_parts, n_parts, SCHEMES[scheme])
        assert (refined(gpu, *asked, rounds=4) == refined(CpuEngine(), *asked, rounds=4)).all()
    assert gave_up == [False, False]
    found, expected = (repaired(e, level, 3, n_parts, None) for e in (gpu, CpuEngine()))
    assert (found[0] == expected[0]).all()


@pytest.mark.parametrize("way", ["kept", "gathered"])
@pytest.mark.parametrize("n_parts", [2, 5])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_nets_of_many_sources(
    gpu: GpuEngine, scheme: str, n_parts: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of them move than shared memory has room for."""
    gave_up = watch(gpu, monkeypatch)
    monkeypatch.setattr(gpu, "ways", (way,))
    rng = np.random.default_rng(9)
    sizes: dict[str, Any] = {"n_nodes": 900, "n_nets": 60, "mean_pins": 1, "mean_sources": 500}
    level = twins.random_level(rng, **sizes)
    sent = np.add.reduceat(level.source_weights, level.source_offsets[:-1])  # no net without any
    level = level._replace(net_weights=level.net_weights + sent)
    asked = (level, 9, n_parts, SCHEMES[scheme])
    assert (refined(gpu, *asked, rounds=3) == refined(CpuEngine(), *asked, rounds=3)).all()
    assert gave_up == [False]


def test_many_parts_take_one_step_after_the_other_where_memory_is_short(
    gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    gave_up = watch(gpu, monkeypatch)
    level = twins.random_level(np.random.default_rng(2), n_nodes=60, n_nets=40, mean_pins=5)
    for most, room, gives_up in ((7, 0, True), (8, 0, False), (7, 1 << 40, False)):
        monkeypatch.setattr(gpu, "whole_parts", most)
        monkeypatch.setattr(gpu, "room_bytes", lambda room=room: room)
        asked = (level, 1, 8, SCHEMES["jet"])
        assert (refined(gpu, *asked, rounds=2) == refined(CpuEngine(), *asked, rounds=2)).all()
        assert gave_up[-1] is gives_up


def test_the_first_way_for_which_there_is_room(
    gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: dict[str, int] = {}
    fields = gpu.fields_of

    def note(*asked: Any) -> list[Any]:
        found = fields(*asked)
        sizes[asked[-1]] = gpu_rounds_memory.bytes_of(found)
        return found

    monkeypatch.setattr(gpu, "fields_of", note)
    level = twins.random_level(np.random.default_rng(2), n_nodes=600, n_nets=400, mean_pins=20)
    asked = (level, 1, 50, SCHEMES["jet"])
    room = 1 << 40
    for i, way in enumerate(WAYS):
        sizes.clear()
        monkeypatch.setattr(gpu, "room_bytes", lambda room=room: room)
        assert (refined(gpu, *asked, rounds=2) == refined(CpuEngine(), *asked, rounds=2)).all()
        assert tuple(sizes) == WAYS[: i + 1]
        room = sizes[way] - 1


@pytest.mark.parametrize("blocks", [1, 7, 38])
def test_all_moves_by_rank(gpu: GpuEngine, blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block sorts its share of the nodes, then shares are merged, six at a time."""
    monkeypatch.setattr(gpu.device, "multiprocessors", blocks)
    for n_nodes in (30, 700):
        level = twins.random_level(
            np.random.default_rng(blocks), n_nodes=n_nodes, n_nets=400, mean_pins=4
        )
        asked = (level, 2, 5, SCHEMES["sequence"])
        found = refined(gpu, *asked, rounds=3)
        assert (found == refined(CpuEngine(), *asked, rounds=3)).all()


def test_moves_of_a_part_that_fill_the_memory_of_tables(
    gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are zero again afterwards."""
    monkeypatch.setattr(gpu_rounds_memory, "_WARP_BYTES", 704)
    level = twins.random_level(np.random.default_rng(4), n_nodes=2000, n_nets=2500, mean_pins=4)
    asked = (level, 3, 30, RefinementConfig(scheme="sequence", temperature=1.0))
    assert (refined(gpu, *asked, rounds=3) == refined(CpuEngine(), *asked, rounds=3)).all()


@pytest.mark.parametrize("way", ["kept", "gathered"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_empty_parts_are_left_out(
    gpu: GpuEngine, scheme: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ties are broken by the numbers that parts had."""
    monkeypatch.setattr(gpu, "ways", (way,))
    sizes = []
    fit = gpu.fit_tables

    def note(level: Level, n_parts: int, *, spread: bool) -> gpu_rounds_memory.Size:
        sizes.append(n_parts)
        return fit(level, n_parts, spread=spread)

    monkeypatch.setattr(gpu, "fit_tables", note)
    level = twins.random_level(np.random.default_rng(3), n_nodes=40, n_nets=300, mean_pins=4)
    same = {"net_weights": 3000, "source_weights": 500, "out_weights": 500}  # many ties
    level = level._replace(**{k: np.full_like(getattr(level, k), w) for k, w in same.items()})
    for gapless, expected in ((1, True), (60, True), (61, False)):
        monkeypatch.setattr(gpu, "gapless_parts", gapless)
        asked, free = (level, 3, 60, SCHEMES[scheme]), {"schedule": (0.0,)}
        assert (refined(gpu, *asked, **free) == refined(CpuEngine(), *asked, **free)).all()
        assert (sizes[-1] < 60) is expected


@given(h=counted_hypergraphs(min_nodes=1, max_nodes=14), data=st.data())
@settings(max_examples=10)
def test_same_parts_of_any_hypergraph(h: Hypergraph, data: st.DataObject) -> None:
    gpu = start_gpu(GpuEngine, "emulated")
    gpu.round_threads = 32
    gpu.ways = data.draw(st.sampled_from([WAYS, ("gathered",)]))
    level = pose_problem(h, data.draw(feasible_limits(h))).level
    config = data.draw(st.sampled_from(list(SCHEMES.values())))
    config = replace(config, patience=data.draw(st.integers(0, 3)))
    asked = (level, data.draw(st.integers(0, 99)), data.draw(st.integers(1, 6)), config)
    changes = {
        "rounds": data.draw(st.integers(0, 9)),
        "schedule": tuple(data.draw(st.lists(st.floats(0, 1e4), min_size=1, max_size=4))),
    }
    assert (refined(gpu, *asked, **changes) == refined(CpuEngine(), *asked, **changes)).all()
    most = (asked[2] + 2,) if data.draw(st.booleans()) else (None,)
    found, expected = (repaired(e, *asked[:3], *most) for e in (gpu, CpuEngine()))
    assert (found[0] == expected[0]).all()
    assert found[1:] == expected[1:]


@pytest.mark.parametrize("ways", [WAYS, ("gathered", "by nets")])
@pytest.mark.parametrize("heavy", [("net_weights", "source_weights", "out_weights"), ("counts",)])
def test_sums_that_a_place_may_not_hold(
    gpu: GpuEngine,
    heavy: tuple[str, ...],
    ways: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nodes are looked at by their nets then: a launch without lists by node asks for them and starts again."""
    gave_up = watch(gpu, monkeypatch)
    monkeypatch.setattr(gpu, "ways", ways)
    level = twins.random_level(np.random.default_rng(4), n_nodes=80, n_nets=50, mean_pins=6)
    factor = 1 << (17 if heavy == ("counts",) else 26)
    level = level._replace(**{field: getattr(level, field) * factor for field in heavy})
    asked = (level, 4, 6, SCHEMES["jet"])
    assert (refined(gpu, *asked) == refined(CpuEngine(), *asked)).all()
    assert gave_up == ([False, False] if ways[0] == "kept" else [False])


@pytest.mark.parametrize("way", ["kept", "gathered"])
def test_sums_of_more_than_a_word(
    gpu: GpuEngine, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Additions to low words overflow into high ones; without, the two are added up apart."""
    gave_up = watch(gpu, monkeypatch)
    monkeypatch.setattr(gpu, "ways", (way,))
    level = twins.random_level(np.random.default_rng(4), n_nodes=30, n_nets=50, mean_pins=12)
    total = int(level.net_weights.sum() + level.source_weights.sum())
    factor = (1 << 38) // total - 1
    own = np.repeat(level.net_weights, np.diff(level.net_offsets))
    assert np.bincount(level.net_pins, own).max() * factor > 1 << 34  # in three parts
    fields = ("net_weights", "source_weights", "out_weights")
    level = level._replace(**{field: getattr(level, field) * factor for field in fields})
    asked = (level, 4, 3, SCHEMES["jet"])
    assert (refined(gpu, *asked) == refined(CpuEngine(), *asked)).all()
    assert gave_up == [False]


@pytest.mark.parametrize("way", ["kept", "gathered"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_many_launches_are_one(
    gpu: GpuEngine, scheme: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "ways", (way,))
    level = twins.random_level(np.random.default_rng(5), n_nodes=200, n_nets=150, mean_pins=8)
    asked = (level, 5, 9, SCHEMES[scheme])
    monkeypatch.setattr(gpu_rounds, "_AT_ONCE", 2 * (level.n_pins + len(level.source_nodes)))
    assert (refined(gpu, *asked) == refined(CpuEngine(), *asked)).all()


class Impatient(Progress):
    """Expires when it is asked once too often."""

    def __init__(self, patience: int) -> None:
        super().__init__()
        self.patience = patience

    def expired(self) -> bool:
        self.patience -= 1
        return self.patience < 0


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("patience", [0, 1, 2])
def test_stops_between_launches(
    gpu: GpuEngine, patience: int, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    level = twins.random_level(np.random.default_rng(2), n_nodes=200, n_nets=150, mean_pins=8)
    asked = (level, 2, 9, SCHEMES[scheme])
    monkeypatch.setattr(gpu_rounds, "_AT_ONCE", 1)
    found = [refined(e, *asked, progress=Impatient(patience)) for e in (gpu, CpuEngine())]
    assert (found[0] == found[1]).all()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    ("what", "value"),
    [("entries_of_net", 0), ("round_threads", 32)],
)
def test_gives_up_where_memory_is_short(
    gpu: GpuEngine, what: str, value: int, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gave_up = watch(gpu, monkeypatch)
    level = twins.random_level(np.random.default_rng(7), **SHAPES["many events"])
    monkeypatch.setattr(gpu, "upload", gpu.bring)  # keeps the settings
    monkeypatch.setattr(gpu, what, value)
    if what == "round_threads":
        monkeypatch.setattr(gpu.device, "shared_bytes", 8192 + 4096)
    asked = (level, 7, 30, SCHEMES[scheme])
    assert (refined(gpu, *asked) == refined(CpuEngine(), *asked)).all()
    assert gave_up == [True]


def test_costs_that_64_bits_may_not_hold(gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    gave_up = watch(gpu, monkeypatch)
    level = twins.random_level(np.random.default_rng(3), n_nodes=60, n_nets=40, mean_pins=9)
    asked = (level, 3, 5, RefinementConfig())
    price = 2.0**46
    found = [refined(e, *asked, overload_price=price, rounds=2) for e in (gpu, CpuEngine())]
    assert (found[0] == found[1]).all()
    assert gave_up == [True]


def test_what_rounds_noted_is_not_measured_again(
    gpu: GpuEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the parts at the start and of those at the end, each once, and only where they have no gaps to close."""
    weighed: list[str] = []
    run = gpu._run_together

    def note(source: str, *args: Any, **named: Any) -> None:
        weighed.append(source)
        run(source, *args, **named)

    rng = np.random.default_rng(3)
    level = twins.random_level(rng, n_nodes=60, n_nets=40, mean_pins=5)
    limits = twins.random_limits(rng, level, 4)
    there = gpu.for_rounds(gpu.upload(level)), gpu.from_host(limits)
    start = gpu.from_host(rng.integers(0, 4, 60).astype(np.int32))
    knobs: dict[str, Any] = {
        "rounds": 3, "schedule": (2.0,), "overload_price": 20.0, "roomy": False, "seed": 1
    }  # fmt: skip
    found = refine(gpu, *there, start, 4, RefinementConfig(), **knobs)
    monkeypatch.setattr(gpu, "_run_together", note)
    states = [gpu.weigh(*there, parts, 4) for parts in (found, start, found)]
    assert weighed == ["weigh"]
    for parts, state in zip((found, start, found), states, strict=True):
        expected = CpuEngine().weigh(level, limits, gpu.to_host(parts), 4)
        assert state[1] == expected[1]
        assert np.array_equal(gpu.to_host(state[2]), expected[2])
        assert np.array_equal(state[3], expected[3])
    assert states[0][1] != states[1][1]
