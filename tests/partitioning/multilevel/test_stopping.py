"""Time is up, at any moment: a valid partition, after little more work, marked as cut short."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.networks import load_network
from snnmap.partitioning import metrics, multilevel
from snnmap.partitioning.multilevel import partition_multilevel
from snnmap.partitioning.multilevel.engine_cpu import CpuEngine
from snnmap.partitioning.multilevel.stopping import Watch
from snnmap.partitioning.verify import verify_partition
from snnmap.progress import Progress
from tests.partitioning.cases import counted_hypergraphs, feasible_limits

BRIEF: dict[str, Any] = {"search": {"population": 3, "batch": 2, "generations": 2}}
# Coarsens and refines in parallel, from first parts that are too full: they need repair.
PARALLEL: dict[str, Any] = {
    "coarsening": {"small_pins": 0},
    "refinement": {"rounds": 3, "finest_rounds": 3},
    "cycles": 1,
}
SETTINGS = {
    "search": BRIEF,
    "parallel": PARALLEL,
    "fm": {"search": BRIEF["search"] | {"finalists": 3}, "refinement": {"fm_cells": 1 << 20}},
    "uncompressed": PARALLEL | {"compression": {"rounds": 0}},
}
SMALL = Limits(max_size=1024, max_inbound=4096)


class Countdown(Progress):
    """Time is up after it was asked for `asks` times; counts how often it was asked."""

    def __init__(self, asks: int) -> None:
        super().__init__()
        self.left = asks
        self.asked = 0

    def expired(self) -> bool:
        self.asked += 1
        return self.asked > self.left


class Counting(CpuEngine):
    """Counts steps on the finest level and on others once time is up."""

    def __init__(self, progress: Countdown, n_nodes: int) -> None:
        self.progress = progress
        self.n_nodes = n_nodes
        self.late: Counter[str] = Counter()

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in ("measure", "propose", "gains_in_sequence", "rate", "contract"):
            return found

        def step(level: Any, *args: Any, **named: Any) -> Any:
            if self.progress.asked > self.progress.left:
                self.late["finest" if level.n_nodes == self.n_nodes else "coarse"] += 1
            return found(level, *args, **named)

        return step


def run(
    h: Hypergraph, limits: Limits, changes: Any, asks: int, patch: pytest.MonkeyPatch
) -> tuple[Any, Countdown, Counting]:
    progress = Countdown(asks)
    engine = Counting(progress, h.n_nodes)
    patch.setattr(multilevel, "choose_engine", lambda name: engine)
    return partition_multilevel(h, limits, config=changes, progress=progress), progress, engine


@pytest.mark.parametrize("kind", SETTINGS)
def test_stopped_at_any_moment(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    h = load_network("lenet").grouped()
    whole, progress, _ = run(h, SMALL, SETTINGS[kind], 10**9, monkeypatch)
    assert whole.complete
    moments = progress.asked
    for asks in sorted({*range(0, moments, max(moments // 8, 1)), moments - 1}):
        found, progress, engine = run(h, SMALL, SETTINGS[kind], asks, monkeypatch)
        assert not found.complete
        report = verify_partition(h, found.parts, SMALL)
        assert report.ok, (asks, report.violations)
        # One round that was under way, then measuring: no more work on the large level.
        assert engine.late["finest"] <= 8, (asks, engine.late)
        assert engine.late["coarse"] <= 40, (asks, engine.late)
    untouched, _, _ = run(h, SMALL, SETTINGS[kind], moments, monkeypatch)
    assert untouched.complete, "nobody was told that time is up"
    assert (untouched.parts == whole.parts).all()


@pytest.mark.parametrize("kind", SETTINGS)
@given(h=counted_hypergraphs(max_nodes=16), data=st.data())
@settings(max_examples=25)
def test_stopped_with_any_hypergraph_and_limits(
    kind: str, h: Hypergraph, data: st.DataObject
) -> None:
    limits = data.draw(feasible_limits(h))
    asks = data.draw(st.integers(0, 40))
    with pytest.MonkeyPatch.context() as patch:
        found, _, _ = run(h, limits, SETTINGS[kind], asks, patch)
    report = verify_partition(h, found.parts, limits)
    assert report.ok, report.violations


@pytest.mark.parametrize("kind", SETTINGS)
def test_parts_allowed_are_kept(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    h = load_network("lenet").grouped()
    largest = -(-h.n_nodes // 4) * 103 // 100
    limits = Limits(max_size=largest, max_parts=4)
    for asks in (0, 1, 3, 9, 15):
        found, _, _ = run(h, limits, SETTINGS[kind], asks, monkeypatch)
        assert found.n_parts <= 4
        assert metrics.part_sizes(h, found.parts).max() <= largest


def test_earlier_is_not_better(monkeypatch: pytest.MonkeyPatch) -> None:
    h = load_network("lenet").grouped()
    costs = []
    for asks in (0, 12, 10**9):
        found, _, _ = run(h, SMALL, BRIEF, asks, monkeypatch)
        costs.append(metrics.connectivity(h, found.parts))
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > costs[-1]


def test_watch_remembers_and_passes_on() -> None:
    heard = []

    class Listener(Progress):
        def start(self, phase: str, total: float | None = None, unit: str = "") -> None:
            heard.append((phase, total, unit))

        def advance(self, amount: float = 1, note: str = "") -> None:
            heard.append((amount, note))

        def finish(self) -> None:
            heard.append(())

    listener = Listener()
    watch = Watch(listener)
    watch.start("phase", 3, "units")
    watch.advance(2, "note")
    watch.finish()
    assert heard == [("phase", 3, "units"), (2, "note"), ()]
    assert not watch.expired()
    assert not watch.noticed
    watch.cancel()
    assert listener.cancelled
    assert watch.cancelled
    assert not watch.noticed, "nobody asked yet"
    assert watch.expired()
    assert watch.noticed
    assert Watch(Progress(time_limit=0.0)).expired()
