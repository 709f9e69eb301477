"""Fiduccia-Mattheyses on the finest level: what has the last word in `quality`.

The moves of the search (`search.py`) see each other and pass through overfull states; rounds of
refinement do neither well where parts are nearly full. Both engines let the host do it.
"""

from __future__ import annotations

from typing import Any

from snnmap.parallel import each_task
from snnmap.partitioning.multilevel.run import Run
from snnmap.partitioning.multilevel.search import Search
from snnmap.partitioning.multilevel.state import State

Array = Any  # of the engine's array library


def wants_fm(run: Run, n_parts: int) -> bool:
    """Whether the settings let it have the last word on the finest level of the run."""
    cells = run.finest.slim.n_nodes * n_parts
    return cells <= run.config.refinement.fm_cells and not run.progress.expired()


def refine_by_fm(run: Run, starts: list[tuple[Array, int]], seed: int) -> State:
    """The best that comes of partitions of the finest level; it may be a little overfull.

    Args:
        run: what every phase needs.
        starts: parts (int32[n_nodes], where the engine works) and their number, of each.
        seed: breaks ties.
    """
    engine, problem, progress = run.engine, run.problem, run.progress
    level = engine.download(run.finest.level)
    run.finest.shed()
    search = Search(level, problem.limits, run.config.search, problem.max_parts)
    tasks = [(engine.to_host(parts), n_parts, seed) for parts, n_parts in starts]
    progress.start("moving neurons", len(tasks), "partitions")
    best = None
    for one in each_task(search.polish, tasks):
        best = one if best is None or one.cost < best.cost else best
        progress.advance(1, note=search.note(best))
        if progress.expired():
            break
    progress.finish()
    assert best is not None, "there is a partition to start with"
    return run.weigh(engine.from_host(best.parts), best.n_parts)
