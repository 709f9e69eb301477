"""Fiduccia-Mattheyses on the finest level: never worse, the best of its starts, and only where it is wanted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.limits import Limits
from snnmap.networks import load_network
from snnmap.partitioning.multilevel import Clock, partition_multilevel, resolve_config
from snnmap.partitioning.multilevel.config import SearchConfig
from snnmap.partitioning.multilevel.engine_cpu import CpuEngine
from snnmap.partitioning.multilevel.fm import refine_by_fm, wants_fm
from snnmap.partitioning.multilevel.hierarchy import Finest
from snnmap.partitioning.multilevel.level import Problem
from snnmap.partitioning.multilevel.run import Run
from snnmap.partitioning.multilevel.search import Search
from snnmap.partitioning.verify import verify_partition
from snnmap.progress import SILENT, Progress
from tests.partitioning.multilevel.test_search import make_level, make_limits, measure

Array = np.ndarray[Any, Any]
SMALL = Limits(max_size=1024, max_inbound=4096)
BRIEF: dict[str, Any] = {
    "search": {"newcomers": 4, "population": 4, "batch": 3, "generations": 1, "finalists": 3}
}


class Phases(Progress):
    """Remembers which phases there were, and how many steps each had."""

    def __init__(self) -> None:
        super().__init__()
        self.totals: dict[str, float | None] = {}

    def start(self, phase: str, total: float | None = None, unit: str = "") -> None:
        self.totals[phase] = total


def random_parts(seed: int, n_nodes: int, n_parts: int) -> Array:
    return np.random.default_rng(seed).integers(0, n_parts, n_nodes).astype(np.int32)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1 << 20), n_parts=st.integers(1, 9))
def test_a_partition_is_never_worse_afterwards(seed: int, n_parts: int) -> None:
    level = make_level(seed)
    limits = make_limits(level, n_parts)
    search = Search(level, limits, SearchConfig(), None)
    parts = random_parts(seed, level.n_nodes, n_parts)
    before = parts.copy()
    once = search.polish(parts, n_parts, seed)
    assert np.array_equal(parts, before)
    connectivity, over = measure(level, once.parts, once.n_parts, limits)
    assert (once.connectivity, once.overload) == (connectivity, int(over.sum()))
    assert once.n_parts == once.parts.max() + 1
    start = measure(level, parts, n_parts, limits)
    if not over.any() and not start[1].any():
        assert connectivity <= start[0]
    again = search.polish(once.parts, once.n_parts, seed)
    assert again.cost <= once.cost


def test_the_best_of_several_starts() -> None:
    level, config = make_level(3), resolve_config("quality")
    limits = make_limits(level, 5)
    engine = CpuEngine()
    problem = Problem(level, limits, None, 1.0, level.totals())
    run = Run(engine, Finest(engine, level), limits, problem, config, SILENT, Clock())
    starts = [(random_parts(seed, level.n_nodes, 6), 6) for seed in range(4)]
    each = [refine_by_fm(run, [start], 1) for start in starts]
    best = refine_by_fm(run, starts, 1)
    search = Search(level, limits, config.search, None)
    costs = [search.polish(parts, n, 1).cost for parts, n in starts]
    assert len(set(costs)) > 1
    assert np.array_equal(best.parts, each[int(np.argmin(costs))].parts)
    assert best.connectivity == measure(level, best.parts, best.n_parts, limits)[0]


@pytest.mark.parametrize("more", [{}, {"coarsening": {"small_pins": 0}}], ids=["layers", "rounds"])
def test_has_the_last_word_where_it_is_wanted(more: dict[str, Any]) -> None:
    h = load_network("lenet").grouped()
    cells = 64 * h.n_nodes
    for fm_cells, wanted in ((cells, True), (h.n_nodes - 1, False)):
        heard = Phases()
        changes = BRIEF | more | {"refinement": {"fm_cells": fm_cells}}
        found = partition_multilevel(h, SMALL, engine="cpu", config=changes, progress=heard)
        assert verify_partition(h, found.parts, SMALL).ok
        assert ("moving neurons" in heard.totals) == wanted


def test_time_that_is_up_leaves_it_out() -> None:
    level, config = make_level(3), resolve_config("quality")
    engine, limits = CpuEngine(), make_limits(level, 5)
    problem = Problem(level, limits, None, 1.0, level.totals())
    for progress, wanted in ((SILENT, True), (Progress(time_limit=0.0), False)):
        run = Run(engine, Finest(engine, level), limits, problem, config, progress, Clock())
        assert wants_fm(run, 6) == wanted
        assert not wants_fm(run, config.refinement.fm_cells)
