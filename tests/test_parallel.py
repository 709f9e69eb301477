"""Work on threads: results in order, whatever runs inside of what."""

from __future__ import annotations

import time

import numpy as np
import pytest

from snnmap.parallel import each_task, for_chunks, map_tasks, run_side_by_side


def total(values: np.ndarray, start: int, stop: int) -> int:
    return int(values[start:stop].sum())


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_jobs_side_by_side_may_use_the_workers(
    threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More jobs than threads, each with chunks and tasks of its own: none waits for ever."""
    monkeypatch.setenv("SNNMAP_NUM_THREADS", threads)
    values = np.arange(1000)

    def job(i: int) -> int:
        parts = for_chunks(total, 1000, values, grain=10)
        return sum(parts) + sum(map_tasks(lambda k: k * i, [(1,), (2,), (3,)]))

    jobs = [lambda i=i: job(i) for i in range(12)]
    assert run_side_by_side(jobs) == [499500 + 6 * i for i in range(12)]
    assert run_side_by_side([]) == []


@pytest.mark.parametrize("threads", ["1", "4"])
def test_an_error_in_a_job_is_raised(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNNMAP_NUM_THREADS", threads)
    with pytest.raises(ZeroDivisionError):
        run_side_by_side([lambda: 1.0, lambda: 1 / 0])


@pytest.mark.parametrize("threads", ["1", "3"])
def test_tasks_that_nobody_waits_for_are_dropped(
    threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNNMAP_NUM_THREADS", threads)
    begun: list[int] = []

    def work(i: int) -> int:
        begun.append(i)
        time.sleep(0.01)
        return i * i

    results = each_task(work, [(i,) for i in range(100)])
    assert [next(results), next(results)] == [0, 1]
    results.close()
    assert len(begun) < 50
    assert map_tasks(work, [(i,) for i in range(9)]) == [i * i for i in range(9)]
