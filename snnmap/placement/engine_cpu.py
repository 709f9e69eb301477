"""The CPU engine of placement: compiled kernels on as many threads as there are."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from snnmap.parallel import map_tasks
from snnmap.placement import _kernels_anneal, _kernels_order
from snnmap.placement.flows import Flows
from snnmap.placement.refine import Board
from snnmap.placement.region import Region

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Schedule:
    """What the chains of annealing do in each round.

    Attributes:
        exponentials: int64[4096], see :mod:`snnmap.placement.anneal`.
        temperatures: int64[n_chains, n_rounds].
        radii: int64[n_chains, n_rounds], farthest a part jumps.
        seeds: uint64[n_chains], of the random numbers.
    """

    exponentials: Array
    temperatures: Array
    radii: Array
    seeds: Array


class CpuEngine:
    """Boards on the host."""

    name = "cpu"

    def guard(self) -> AbstractContextManager[None]:
        """Context for all work; the CPU needs none."""
        return nullcontext()

    def board(self, flows: Flows, region: Region, cell_of: Array) -> Board:
        """A board with the parts on cells int64[n_parts]."""
        return Board.of(flows, region, cell_of)

    def chains(
        self, flows: Flows, region: Region, starts: list[Array], schedule: Schedule
    ) -> CpuChains:
        """Boards for annealing, one for each of `starts`."""
        return CpuChains([Board.of(flows, region, cells) for cells in starts], schedule)

    def nearest_cells(
        self,
        flows: Flows,
        region: Region,
        order: Array,
        cell_of: Array,
        part_at: Array,
        centre: int,
    ) -> Array:
        """Cells int64[n_parts] after `order` were put on the nearest cells, one after the other.

        Args:
            flows: rates between parts.
            region: cells and distances.
            order: int64, parts to place.
            cell_of: int64[n_parts], -1 for parts to place.
            part_at: int64[n_cells], part on each cell, EMPTY or BLOCKED.
            centre: cell near which parts without placed neighbours go.
        """
        cell_of, part_at = cell_of.copy(), part_at.copy()
        centre_x, centre_y = region.axes(np.array([centre]))
        graph = (flows.offsets, flows.neighbours, flows.rates)
        state = (order, cell_of, part_at)
        _kernels_order.nearest_cells(*graph, *state, *region.tables, centre_x[0], centre_y[0])
        return cell_of


class CpuChains:
    """Annealing chains on the host, a thread each.

    Args:
        boards: one for each chain; not shared with anybody.
        schedule: what they do.
    """

    def __init__(self, boards: list[Board], schedule: Schedule) -> None:
        self._boards = boards
        self._schedule = schedule

    def cells(self) -> list[Array]:
        """int64[n_parts] for each chain: a copy of its cells."""
        return [board.cell_of.copy() for board in self._boards]

    def rounds(self, first: int, n: int) -> Array:
        """Play rounds first .. first + n; int64[n_chains, 3]: saved, proposed losses, their number.

        Losses are in units of 2^20.
        """
        schedule = self._schedule

        def play(board: Board, temperatures: Array, radii: Array, seed: np.uint64) -> Array:
            flows, region = board.flows, board.region
            stats = np.zeros(3, np.int64)
            stats[0] = _kernels_anneal.anneal_rounds(
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
                schedule.exponentials,
                temperatures[first : first + n],
                radii[first : first + n],
                first,
                seed,
                stats,
            )
            return stats

        chains = (self._boards, schedule.temperatures, schedule.radii, schedule.seeds)
        return np.stack(map_tasks(play, list(zip(*chains, strict=True))))
