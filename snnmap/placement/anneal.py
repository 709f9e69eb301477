"""Annealing: swaps that may also lose a little, less and less, so that a layout can reorder itself.

A round is a data-parallel step (see `_kernels_anneal`): its random numbers are hashes of (seed,
round, part), its decisions integer comparisons, so another engine can repeat it bit for bit. The
temperature falls geometrically from a share of the mean loss of a long swap to a small share of
that of a swap between neighbours, then to 0, while swaps get shorter.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from snnmap.placement import _kernels_anneal
from snnmap.placement.flows import Flows
from snnmap.placement.refine import Board
from snnmap.placement.region import Region
from snnmap.progress import SILENT, Progress

Array = np.ndarray[Any, Any]

WORK = 600_000_000
"""Visits of a neighbour, all chains together (1 to 3 CPU seconds); sets the number of rounds."""

MAX_ROUNDS = 20_000
HOT, COLD = 0.2, 0.01
QUENCH = 0.1
SEGMENTS = 25

EXPONENTIALS = np.rint(-np.log((np.arange(4096) + 0.5) / 4096) * 2**16).astype(np.int64)
"""Quantiles of the exponential distribution in units of 2^-16: integer Metropolis thresholds."""


def anneal(
    flows: Flows,
    region: Region,
    cell_of: Array,
    *,
    seed: int = 0,
    hot: float = HOT,
    work: int = WORK,
    progress: Progress = SILENT,
) -> Array:
    """One annealing chain; never worse than what it is given.

    Args:
        flows: rates between parts.
        region: cells, distances, fixed parts.
        cell_of: int64[n_parts], where the parts are; not changed.
        seed: of the chain.
        hot: first temperature as a share of the mean loss of a swap over half the region.
        work: visits of neighbours to spend.
        progress: asked now and then whether to end.

    Returns:
        int64[n_parts]: cells of the best layout seen between segments.
    """
    board = Board.of(flows, region, cell_of)
    best, best_cost = board.cell_of.copy(), board.cost()
    n_movable = len(region.movable)
    if n_movable < 1 or len(region.free_cells) < 2 or not len(flows.rates):
        return best
    per_round = n_movable * (16 + 2 * len(flows.rates) // flows.n_parts)
    n_rounds = int(min(MAX_ROUNDS, max(SEGMENTS, work // per_round)))
    temperatures, radii = _schedule(board, n_rounds, hot, seed)
    bounds = np.linspace(0, n_rounds, SEGMENTS + 1).astype(np.int64)
    cost = best_cost
    for begin, end in pairwise(bounds.tolist()):
        if progress.expired():
            break
        saved, _ = _rounds(board, temperatures[begin:end], radii[begin:end], begin, seed)
        cost -= saved
        if cost < best_cost:
            best, best_cost = board.cell_of.copy(), cost
    return best


def _schedule(board: Board, n_rounds: int, hot: float, seed: int) -> tuple[Array, Array]:
    """(temperatures, radii) of each round, int64[n_rounds], from losses on a copy of the board."""
    radius = max(1, max(board.region.shape) // 2)
    losses = []
    for reach in (radius, 1):
        probe = Board.of(board.flows, board.region, board.cell_of)
        _, stats = _rounds(probe, np.zeros(8, np.int64), np.full(8, reach), 0, seed)
        losses.append((int(stats[1]) << 20) / max(int(stats[2]), 1))
    first, last = hot * losses[0], COLD * losses[1]
    first, last = max(first, 1.0), min(max(last, 1.0), max(first, 1.0))
    n_cold = int(n_rounds * QUENCH)
    temperatures = np.zeros(n_rounds, np.int64)
    temperatures[: n_rounds - n_cold] = np.geomspace(first, last, n_rounds - n_cold)
    radii = np.ones(n_rounds, np.int64)
    radii[: n_rounds - n_cold] = np.rint(np.geomspace(radius, 1, n_rounds - n_cold))
    return temperatures, radii


def _rounds(
    board: Board, temperatures: Array, radii: Array, first: int, seed: int
) -> tuple[int, Array]:
    flows, region = board.flows, board.region
    stats = np.zeros(3, np.int64)
    saved = _kernels_anneal.anneal_rounds(
        flows.offsets,
        flows.neighbours,
        flows.rates,
        board.cell_of,
        board.places,
        board.part_at,
        region.movable,
        region.fixed >= 0,
        *region.tables,
        region.n_rows,
        EXPONENTIALS,
        temperatures,
        radii,
        first,
        np.uint64(seed % 2**64),
        stats,
    )
    return int(saved), stats
