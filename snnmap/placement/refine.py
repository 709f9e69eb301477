"""Force-directed refinement: parts swap places, or move to empty cores, while that saves cost.

Each round is a chain of data-parallel steps on integers, which a GPU can repeat bit for bit:

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
        part_at: int64[n_cells], part on each cell, EMPTY or BLOCKED.
    """

    flows: Flows
    region: Region
    cell_of: Array
    part_at: Array

    @classmethod
    def of(cls, flows: Flows, region: Region, cell_of: Array) -> Board:
        """A board with the parts on the given cells (int64[n_parts], distinct)."""
        part_at = np.where(region.blocked, BLOCKED, EMPTY).astype(np.int64)
        part_at[cell_of] = np.arange(flows.n_parts)
        return cls(flows, region, np.array(cell_of, np.int64), part_at)

    def cost(self) -> int:
        """Exact sum over pairs of rate x distance."""
        f = self.flows
        return int(
            _kernels.total_cost(f.offsets, f.neighbours, f.rates, self.cell_of, *self.region.tables)
        )

    def swap_round(self, reach: int = EVERYWHERE) -> int:
        """One round of the steps above; returns what it saved (0 when nothing improves)."""
        f, tables = self.flows, self.region.tables
        graph = (f.offsets, f.neighbours, f.rates)
        n_parts = f.n_parts
        fields = [np.empty((n_parts, len(table)), np.int64) for table in tables]
        for field, table, places in zip(
            fields, tables, self.region.axes(self.cell_of), strict=True
        ):
            for_chunks(_kernels.fill_fields, n_parts, *graph, places, table, field, grain=256)
        n_cells = len(self.part_at)
        locked = self.region.fixed >= 0
        stay = np.empty(n_cells, np.int64)
        leave = [np.empty((len(table), n_cells), np.int64) for table in tables]
        cell_args = (self.part_at, locked, len(tables[1]), *fields, stay, *leave)
        for_chunks(_kernels.fill_cells, n_cells, *cell_args, grain=1024)
        best_cells = np.empty(n_parts, np.int64)
        best_gains = np.empty(n_parts, np.int64)
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
        order = np.argsort(-best_gains, kind="stable")
        order = order[: np.count_nonzero(best_gains)]
        claimed = np.zeros(len(self.part_at), bool)
        return int(
            _kernels.apply_swaps(
                *graph, self.cell_of, self.part_at, *tables, order, best_cells, claimed
            )
        )


def force_directed(
    flows: Flows,
    region: Region,
    cell_of: Array,
    *,
    reach: int = EVERYWHERE,
    progress: Progress = SILENT,
) -> Array:
    """Swap until no swap saves cost, or `progress` has expired.

    Short swaps come first and cheapest: the reach doubles whenever a round saves nothing.

    Args:
        flows: rates between parts.
        region: cells, distances, fixed parts.
        cell_of: int64[n_parts], where the parts are; not changed.
        reach: columns and rows that a part may jump in one swap, at most.
        progress: told of every round.

    Returns:
        int64[n_parts]: improved cells.
    """
    board = Board.of(flows, region, cell_of)
    widest = min(reach, region.n_cells if region.metric.is_hex else max(region.shape))
    now = widest if region.metric.is_hex else 1
    while not progress.expired():
        if board.swap_round(now) > 0:
            progress.advance()
        elif now < widest:
            now = min(2 * now, widest)
        else:
            break
    return board.cell_of
