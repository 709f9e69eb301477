"""Annealing: swaps that may also lose a little, less and less, so that a layout can reorder itself.

A round is a data-parallel step (see `_kernels_anneal`): its random numbers are hashes of (seed,
round, part), its decisions integer comparisons, so a GPU repeats it bit for bit. The
temperature falls geometrically from a share of the mean loss of a long swap to a small share of
that of a swap between neighbours, then to 0, while swaps get shorter. Several chains run side by
side.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from snnmap.placement.engine_cpu import CpuEngine, Schedule
from snnmap.placement.flows import Flows
from snnmap.placement.refine import Board
from snnmap.placement.region import Region
from snnmap.progress import SILENT, Progress

Array = np.ndarray[Any, Any]

WORK = 300_000_000
"""Visits of a neighbour by one chain (about a CPU second); sets the number of rounds."""

MAX_ROUNDS = 20_000
HOT, COLD = 0.2, 0.01
QUENCH = 0.1
SEGMENTS = 25
PROBES = 8

EXPONENTIALS = np.rint(-np.log((np.arange(4096) + 0.5) / 4096) * 2**16).astype(np.int64)
"""Quantiles of the exponential distribution in units of 2^-16: integer Metropolis thresholds."""


def anneal(
    flows: Flows,
    region: Region,
    starts: Sequence[Array],
    *,
    seeds: Sequence[int] = (0,),
    hots: Sequence[float] = (HOT,),
    work: int = WORK,
    progress: Progress = SILENT,
    engine: Any = None,
) -> list[Array]:
    """Annealing chains; none ends worse than it starts.

    Args:
        flows: rates between parts.
        region: cells, distances, fixed parts.
        starts: int64[n_parts] for each chain, where the parts are; not changed.
        seeds: of each chain.
        hots: first temperature of each as a share of the mean loss of a swap over half the region.
        work: visits of neighbours that each may spend.
        progress: asked now and then whether to end.
        engine: see :mod:`snnmap.placement.engine`; default the CPU.

    Returns:
        int64[n_parts] for each chain: cells of the best layout seen between segments.
    """
    best = [np.array(start, np.int64) for start in starts]
    n_movable = len(region.movable)
    if n_movable < 1 or len(region.free_cells) < 2 or not len(flows.rates):
        return best
    engine = engine or CpuEngine()
    per_round = n_movable * (16 + 2 * len(flows.rates) // flows.n_parts)
    n_rounds = int(min(MAX_ROUNDS, max(SEGMENTS, work // per_round)))
    keys = np.array([seed % 2**64 for seed in seeds], np.uint64)
    temperatures, radii = _schedules(flows, region, best, n_rounds, hots, keys, engine)
    costs = np.array([Board.of(flows, region, cells).cost() for cells in best])
    least = costs.copy()
    schedule = Schedule(EXPONENTIALS, temperatures, radii, keys)
    chains = engine.chains(flows, region, best, schedule)
    bounds = np.linspace(0, n_rounds, SEGMENTS + 1).astype(np.int64)
    for begin, end in pairwise(bounds.tolist()):
        if progress.expired():
            break
        costs -= chains.rounds(begin, end - begin)[:, 0]
        if (costs < least).any():
            cells = chains.cells()
            for i in np.flatnonzero(costs < least):
                best[i], least[i] = cells[i], costs[i]
    return best


def _schedules(
    flows: Flows,
    region: Region,
    starts: Sequence[Array],
    n_rounds: int,
    hots: Sequence[float],
    seeds: Array,
    engine: Any,
) -> tuple[Array, Array]:
    """(temperatures, radii) of each chain and round, int64, from losses on copies of the boards."""
    n = len(starts)
    radius = max(1, max(region.shape) // 2)
    losses = []
    for reach in (radius, 1):
        cold, near = np.zeros((n, PROBES), np.int64), np.full((n, PROBES), reach)
        schedule = Schedule(EXPONENTIALS, cold, near, seeds)
        stats = engine.chains(flows, region, list(starts), schedule).rounds(0, PROBES)
        losses.append([(int(amount) << 20) / max(int(count), 1) for _, amount, count in stats])
    n_cold = int(n_rounds * QUENCH)
    temperatures = np.zeros((n, n_rounds), np.int64)
    for i, (long, short) in enumerate(zip(*losses, strict=True)):
        first, last = max(hots[i] * long, 1.0), max(COLD * short, 1.0)
        temperatures[i, : n_rounds - n_cold] = np.geomspace(
            first, min(last, first), n_rounds - n_cold
        )
    radii = np.ones((n, n_rounds), np.int64)
    radii[:, : n_rounds - n_cold] = np.rint(np.geomspace(radius, 1, n_rounds - n_cold))
    return temperatures, radii
