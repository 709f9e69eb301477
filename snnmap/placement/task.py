"""Everything a placer is given."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from snnmap.hypergraph import Hypergraph
from snnmap.parallel import run_side_by_side
from snnmap.placement.engine_cpu import CpuEngine
from snnmap.placement.flows import Flows, symmetric_flows
from snnmap.placement.order import feed_forward_order
from snnmap.placement.region import SLACK, Region, Site
from snnmap.progress import SILENT, Progress

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Task:
    """Parts to place, the places there are, and the seed.

    Attributes:
        part_graph: nodes are parts.
        site: the chip with what the user asked of it.
        seed: for whatever draws random numbers.
        progress: told of rounds, asked whether time is up.
        engine: who does the integer work, see :mod:`snnmap.placement.engine`.
    """

    part_graph: Hypergraph
    site: Site
    seed: int = 0
    progress: Progress = SILENT
    engine: Any = field(default_factory=CpuEngine)

    @cached_property
    def region(self) -> Region:
        """The cells that parts may take, somewhat more than there are parts."""
        return self.site.region(slack=SLACK)

    @cached_property
    def tight(self) -> Region:
        """The smallest near-square rectangle that holds all parts; lies within `region`."""
        return self.site.region()

    @cached_property
    def flows(self) -> Flows:
        """Rates between parts."""
        return symmetric_flows(self.part_graph, self.region.diameter)

    @cached_property
    def forward(self) -> Array:
        """int64[n_parts]: parts from the inputs to the outputs of the network."""
        return feed_forward_order(self.part_graph)

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return self.part_graph.n_nodes

    def prepare(self) -> None:
        """Compute what all placers need, before several of them start at once."""
        _ = self.tight, self.region.tables, self.region.cores
        run_side_by_side([lambda: self.flows, lambda: self.forward])

    def along(self, order: Array, path: Array) -> Array:
        """Lay parts along a path of cells.

        Args:
            order: int64[n_parts], all parts; fixed ones stay where they are.
            path: int64[n, 2], positions (column, row) in the tight rectangle, each once.

        Returns:
            int64[n_parts]: cells of `region`.
        """
        tight = self.tight
        cells = path[:, 0] * tight.n_rows + path[:, 1]
        free = np.zeros(tight.n_cells, bool)
        free[tight.free_cells] = True
        movable = order[tight.fixed[order] < 0]
        cell_of = self.region.fixed.copy()
        cells = cells[free[cells]][: len(movable)]
        cell_of[movable] = self.region.cells_of(tight.cores[cells])
        return cell_of
