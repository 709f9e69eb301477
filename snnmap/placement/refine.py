"""Force-directed refinement: parts swap places, or move to empty cores, while that saves cost.

Each round is a chain of data-parallel steps on integers, which a GPU repeats bit for bit:

    fields    cost of every part on every column and row
    propose   for every part the swap with the largest gain
    order     proposals by falling gain, then by part
    apply     those that touch no cell of an earlier one and still gain after all earlier ones

Every accepted swap lowers the exact cost, so rounds end where no single swap improves anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from snnmap.parallel import for_chunks
from snnmap.placement import _kernels
from snnmap.placement.flows import Flows
from snnmap.placement.region import BLOCKED, EMPTY, Region
from snnmap.progress import SILENT, Progress

Array = np.ndarray[Any, Any]

EVERYWHERE = 2**30


@dataclass(eq=False)
class Board:
    """A placement being changed: which part is where, and what that costs.

    Attributes:
        flows: rates between parts.
        region: the cells and their distances.
        cell_of: int64[n_parts], cell of each part.
        places: int32[n_parts, 2], its indices into the region's two tables of distances.
        part_at: int64[n_cells], part on each cell, EMPTY or BLOCKED.
        active: bool[n_parts], parts for which something changed since they last looked around.
        looked: how far they looked.
    """

    flows: Flows
    region: Region
    cell_of: Array
    places: Array
    part_at: Array
    active: Array
    looked: int = 0

    @classmethod
    def of(cls, flows: Flows, region: Region, cell_of: Array) -> Board:
        """A board with the parts on the given cells (int64[n_parts], distinct)."""
        part_at = np.where(region.blocked, BLOCKED, EMPTY).astype(np.int64)
        part_at[cell_of] = np.arange(flows.n_parts)
        places = np.stack(region.axes(np.asarray(cell_of)), axis=1).astype(np.int32)
        everyone = np.ones(flows.n_parts, bool)
        return cls(flows, region, np.array(cell_of, np.int64), places, part_at, everyone)

    def cost(self) -> int:
        """Exact sum over pairs of rate x distance."""
        f = self.flows
        return int(
            _kernels.total_cost(f.offsets, f.neighbours, f.rates, self.places, *self.region.tables)
        )

    def descend(self, reach: int, progress: Progress) -> None:
        """Rounds until one saves nothing, or `progress` has expired."""
        while not progress.expired() and self.swap_round(reach) > 0:
            progress.advance()

    def swap_round(self, reach: int = EVERYWHERE) -> int:
        """One round of the steps above; returns what it saved (0 when nothing improves)."""
        f = self.flows
        best_cells = np.empty(f.n_parts, np.int64)
        best_gains = np.empty(f.n_parts, np.int64)
        if reach > self.looked:
            self.active[:] = True
        if is_near(f, self.region, reach):
            for_chunks(
                _kernels.propose_near,
                f.n_parts,
                f.offsets,
                f.neighbours,
                f.rates,
                self.cell_of,
                self.places,
                self.part_at,
                self.region.fixed >= 0,
                self.active,
                *self.region.tables,
                reach,
                best_cells,
                best_gains,
                grain=256,
            )
        else:
            self._propose_far(reach, best_cells, best_gains)
        order = np.argsort(-best_gains, kind="stable")
        order = order[: np.count_nonzero(best_gains)]
        before = self.cell_of.copy()
        saved = _kernels.apply_swaps(
            f.offsets,
            f.neighbours,
            f.rates,
            self.cell_of,
            self.places,
            self.part_at,
            *self.region.tables,
            order,
            best_cells,
            np.zeros(len(self.part_at), bool),
        )
        # a proposal that lost its cell to another is still open, though nothing near it moved
        open_ = order[self.cell_of[order] == before[order]]
        n_rows = len(self.region.tables[1])
        _kernels.mark_active(
            f.offsets, f.neighbours, self.cell_of, self.part_at, n_rows, before, reach, self.active
        )
        self.active[open_] = True
        self.looked = reach
        return int(saved)

    def _propose_far(self, reach: int, best_cells: Array, best_gains: Array) -> None:
        """Fill the best cell and gain of every part by way of fields."""
        f, tables = self.flows, self.region.tables
        graph = (f.offsets, f.neighbours, f.rates)
        n_parts, n_cells = f.n_parts, len(self.part_at)
        fields = [np.empty((n_parts, len(table)), np.int64) for table in tables]
        for field, table, places in zip(
            fields, tables, self.region.axes(self.cell_of), strict=True
        ):
            for_chunks(_kernels.fill_fields, n_parts, *graph, places, table, field, grain=256)
        locked = self.region.fixed >= 0
        stay = np.empty(n_cells, np.int64)
        leave = [np.empty((len(table), n_cells), np.int64) for table in tables]
        cell_args = (self.part_at, locked, len(tables[1]), *fields, stay, *leave)
        for_chunks(_kernels.fill_cells, n_cells, *cell_args, grain=1024)
        for_chunks(
            _kernels.propose_swaps,
            n_parts,
            *graph,
            self.cell_of,
            self.part_at,
            locked,
            *tables,
            *fields,
            stay,
            *leave,
            reach,
            best_cells,
            best_gains,
            grain=64,
        )


def is_near(flows: Flows, region: Region, reach: int) -> bool:
    """Whether looking at all links for every cell within reach is less work than fields.

    Engines must agree: parts that are not active propose only by way of fields.
    """
    side_x, side_y = (len(table) for table in region.tables)
    links = len(flows.rates) / max(flows.n_parts, 1)
    cells = min(2 * reach + 1, side_x) * min(2 * reach + 1, side_y)
    fields = side_x * min(links, side_x) + side_y * min(links, side_y) + 2 * (side_x + side_y)
    return cells * 2 * links < fields


def force_directed(
    flows: Flows,
    region: Region,
    cell_of: Array,
    *,
    reach: int = EVERYWHERE,
    progress: Progress = SILENT,
    engine: Any = None,
) -> Array:
    """Swap until no swap saves cost, or `progress` has expired.

    Short swaps come first and cheapest: the reach doubles whenever a round saves nothing.

    Args:
        flows: rates between parts.
        region: cells, distances, fixed parts.
        cell_of: int64[n_parts], where the parts are; not changed.
        reach: columns and rows that a part may jump in one swap, at most.
        progress: told of every round.
        engine: see :mod:`snnmap.placement.engine`; default the CPU.

    Returns:
        int64[n_parts]: improved cells.
    """
    if not len(cell_of):
        return np.array(cell_of, np.int64)
    board = (
        Board.of(flows, region, cell_of) if engine is None else engine.board(flows, region, cell_of)
    )
    widest = min(reach, region.n_cells if region.metric.is_hex else max(region.shape))
    now = widest if region.metric.is_hex else 1
    while True:
        board.descend(now, progress)
        if now >= widest or progress.expired():
            break
        now = min(2 * now, widest)
    return np.asarray(board.cell_of)
