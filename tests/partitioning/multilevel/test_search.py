"""The search on small levels: its compiled steps beside slow twins, threads, and stopping."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.partitioning.multilevel import _kernels_individual as ki
from snnmap.partitioning.multilevel import _kernels_search as ks
from snnmap.partitioning.multilevel.config import SearchConfig
from snnmap.partitioning.multilevel.level import UNLIMITED, Level
from snnmap.partitioning.multilevel.search import Search
from snnmap.progress import Progress
from tests.partitioning.multilevel.twins import random_level

Array = np.ndarray[Any, Any]
BRIEF = SearchConfig(newcomers=6, population=5, batch=4, generations=2)


def make_level(seed: int, *, n_nodes: int = 120, n_distinct: int = 2) -> Level:
    rng = np.random.default_rng(seed)
    return random_level(
        rng, n_nodes=n_nodes, n_nets=90, mean_pins=4, n_additive=2, n_distinct=n_distinct
    )


def make_limits(level: Level, n_parts: int) -> Array:
    """What about `n_parts` parts need, and the first distinct load without a limit."""
    totals = np.concatenate([level.resources.sum(axis=0), level.counts.sum(axis=0) * 3])
    limits = totals * 5 // (4 * n_parts) + 8
    limits[level.resources.shape[1]] = UNLIMITED
    return np.asarray(limits, np.int64)


def measure(level: Level, parts: Array, n_parts: int, limits: Array) -> tuple[int, Array]:
    """Connectivity and the sum of each overload, from dense tables."""
    pins = np.zeros((level.n_nets, n_parts), bool)
    pins[np.repeat(np.arange(level.n_nets), np.diff(level.net_offsets)), parts[level.net_pins]] = 1
    nets = np.repeat(np.arange(level.n_nets), np.diff(level.source_offsets))
    saved = level.source_weights * pins[nets, parts[level.source_nodes]]
    additive = np.zeros((n_parts, level.resources.shape[1]), np.int64)
    np.add.at(additive, parts, level.resources)
    loads = np.hstack([additive, pins.T.astype(np.int64) @ level.counts])
    connectivity = (pins.sum(axis=1) * level.net_weights).sum() - saved.sum()
    return int(connectivity), np.maximum(loads - limits, 0).sum(axis=0)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1 << 20), st.integers(1, 12), st.integers(0, 2))
def test_judge_is_its_twin(seed: int, n_parts: int, n_distinct: int) -> None:
    level = make_level(seed, n_distinct=n_distinct)
    limits = np.asarray(
        np.concatenate([level.resources.mean(axis=0), level.counts.mean(axis=0)]) * 9, np.int64
    )
    given_parts = np.random.default_rng(seed).integers(0, n_parts, level.n_nodes).astype(np.int32)
    given_parts[given_parts == n_parts // 2] = 0  # a part without nodes
    parts = given_parts.copy()
    n_left, connectivity, over = ki.judge(tuple(level), parts, n_parts, limits)
    used, renumbered = np.unique(given_parts, return_inverse=True)
    assert n_left == len(used)
    assert np.array_equal(parts, renumbered)
    expected = measure(level, renumbered, n_left, limits)
    assert connectivity == expected[0]
    assert np.array_equal(over, expected[1])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1 << 20), st.integers(2, 8), st.sampled_from([0.5, 16.0]))
def test_refinement_never_makes_its_objective_worse(seed: int, n_parts: int, factor: float) -> None:
    """Connectivity + price * overload, as measured from scratch before and after."""
    level = make_level(seed)
    limits = make_limits(level, n_parts)
    totals = np.concatenate([level.resources.sum(axis=0), level.counts.sum(axis=0)])
    parts = np.random.default_rng(seed).integers(0, n_parts, level.n_nodes).astype(np.int32)
    worth, over = measure(level, parts, n_parts, limits)
    prices = (worth * factor / np.maximum(totals, 1)).astype(np.int64)
    before = worth + int((over * prices).sum())
    ki.refine(tuple(level), parts, n_parts, limits, totals, np.array([factor]), 3, 100, 99, seed)
    assert parts.min() >= 0
    assert parts.max() < n_parts
    worth, over = measure(level, parts, n_parts, limits)
    assert worth + int((over * prices).sum()) < before  # a random partition can be improved


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_a_pass_takes_at_most_so_many_turns(turns: int) -> None:
    """In each of which a part gives or takes at most one node."""
    level, n_parts = make_level(4), 6
    limits = make_limits(level, n_parts)
    totals = np.concatenate([level.resources.sum(axis=0), level.counts.sum(axis=0)])
    before = np.random.default_rng(4).integers(0, n_parts, level.n_nodes).astype(np.int32)
    parts = before.copy()
    how = (np.array([1.0]), 1, 100, turns, 0)
    ki.refine(tuple(level), parts, n_parts, limits, totals, *how)
    moved = np.flatnonzero(parts != before)
    concerned = np.bincount(np.concatenate([parts[moved], before[moved]]), minlength=n_parts)
    assert concerned.max() <= turns
    assert (len(moved) > 0) == (turns > 0)


@pytest.mark.parametrize("max_parts", [None, 5])
def test_threads_do_not_change_the_result(
    max_parts: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    level = make_level(1, n_nodes=400)
    limits = make_limits(level, 8)
    found = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("SNNMAP_NUM_THREADS", threads)
        found.append(Search(level, limits, BRIEF, max_parts).run(3)[0])
    one = found[0]
    assert one.parts.max() + 1 == one.n_parts <= (max_parts or level.n_nodes)
    assert (one.connectivity, one.overload) == (
        measure(level, one.parts, one.n_parts, limits)[0],
        int(measure(level, one.parts, one.n_parts, limits)[1].sum()),
    )
    for other in found[1:]:
        assert other.cost == one.cost
        assert np.array_equal(other.parts, one.parts)


def test_offspring_are_no_worse_than_both_parents() -> None:
    """What both agree on moves as one from the better one's parts, then every node alone."""
    level = make_level(2, n_nodes=300)
    search = Search(level, make_limits(level, 6), BRIEF, None)
    first, second = search.create(1), search.create(2)
    child = search.combine(first, second, 7)
    assert child.cost <= min(first.cost, second.cost)
    assert np.array_equal(child.parts, search.combine(second, first, 7).parts)


def test_moves_of_a_turn_concern_different_parts() -> None:
    """The best at both its parts, of those in play: gains above 0, or losses up to four times the least.

    Then the same once more of those where none of them is.
    """
    rng = np.random.default_rng(3)
    for trial in range(50):
        n, n_parts = int(rng.integers(1, 200)), int(rng.integers(2, 9))
        keys = rng.integers(-40, 10 if trial % 2 else 0, n)
        keys[rng.random(n) < 0.2] = ks._NONE
        parts = rng.integers(0, n_parts, n).astype(np.int32)
        wishes = ((parts + rng.integers(1, n_parts, n)) % n_parts).astype(np.int32)
        padded = np.concatenate([keys, np.full(-n % ks._BLOCK, ks._NONE)])
        crests = padded.reshape(-1, ks._BLOCK).max(axis=1)
        firsts, in_play = np.empty(n_parts, np.int32), np.empty(n, np.int32)
        chosen = np.empty(n_parts, np.int32)
        sizes = ks.choose_matched(keys, crests, parts, wishes, firsts, in_play, chosen)
        top = keys.max()
        bar = 1 if top > 0 else 4 * top
        expected = [v for v in range(n) if keys[v] >= bar and top != ks._NONE]
        assert in_play[: sizes[0]].tolist() == expected

        together: list[int] = []
        taken: set[int] = set()
        ranked = sorted(expected, key=lambda v, keys=keys: (-keys[v], v))
        for _ in range(2):
            firsts_seen: dict[int, int] = {}
            ranked = [v for v in ranked if not {int(parts[v]), int(wishes[v])} & taken]
            for v in ranked:
                for p in (int(parts[v]), int(wishes[v])):
                    firsts_seen.setdefault(p, v)
            both = [v for v in ranked if firsts_seen[parts[v]] == v == firsts_seen[wishes[v]]]
            together += sorted(both)
            taken |= {int(p) for v in both for p in (parts[v], wishes[v])}
        assert chosen[: sizes[1]].tolist() == together
        assert not expected or together


class Clock(Progress):
    """Time is up once `most` partitions were made; remembers what it was told."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.made = 0.0

    def advance(self, amount: float = 1, note: str = "") -> None:
        assert "parts" in note
        self.made += amount

    def expired(self) -> bool:
        return self.made >= self.most


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("most", [0, 1, 3, 5, 7, 9, 100])
def test_search_stops_when_time_is_up(
    threads: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNNMAP_NUM_THREADS", threads)
    level = make_level(1)
    limits = make_limits(level, 4)
    clock = Clock(most)
    found = Search(level, limits, BRIEF, None).run(0, clock)[0]
    total = BRIEF.newcomers + BRIEF.generations * BRIEF.batch
    assert clock.made == min(max(most, 1), total)
    assert measure(level, found.parts, found.n_parts, limits)[0] == found.connectivity


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1 << 20), st.integers(1, 9), st.integers(2, 9))
def test_some_hierarchies_keep_bundles_together(seed: int, in_bundle: int, n_parts: int) -> None:
    level, config = make_level(seed), SearchConfig()
    limits = make_limits(level, n_parts)
    bundles = (np.arange(level.n_nodes) // in_bundle * 5).astype(np.int32)
    search, plain = (Search(level, limits, config, None, given) for given in (bundles, None))
    for number in range(config.hierarchies):
        levels, parts, n = search.coarsen(number)
        same, _, expected_n = plain.coarsen(number)
        if number % 4 in (0, 3) or in_bundle == 1:
            assert n == expected_n
            assert all(
                (mine[1] == other[1]).all() for mine, other in zip(levels, same, strict=True)
            )
            continue
        clusters, shrunk = levels[1][1], [one.n_nodes for one, _ in levels]
        assert (clusters[1:] == clusters[:-1])[bundles[1:] == bundles[:-1]].all()
        assert (np.diff(shrunk) < 0).all()
        assert n == len(parts) == levels[-1][0].n_nodes


def test_the_widest_limits_are_of_a_hierarchy_without_bundles() -> None:
    level = make_level(1)
    search = Search(level, make_limits(level, 4), SearchConfig(), None, np.zeros(120, np.int32))
    kept = [number for number in range(8) if search.keeps_bundles(number)]
    assert kept == [1, 2, 5, 6]
    limits, _ = search.narrow(np.arange(8))
    assert limits[7, 0] > limits[kept, 0].max()
