"""A partition of a level with what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from snnmap.partitioning.multilevel.level import Level

Array = Any  # of the engine's array library


@dataclass(eq=False)
class State:
    """A partition of a level with what is known of it.

    Attributes:
        parts: int32[n_nodes].
        n_parts: their number.
        connectivity: constant apart.
        loads: int64[n_parts, n_loads], on the host unless there is a table; None: valid, and not measured yet.
        overload: int64[n_loads] on the host, summed over parts.
        table: pins-per-part table, or None.
    """

    parts: Array
    n_parts: int
    connectivity: int
    loads: Array
    overload: Any
    table: Any

    @property
    def valid(self) -> bool:
        """Whether every part keeps every limit."""
        return not self.overload.any()

    def take_table(self) -> Any:
        """The table, which is the caller's from now on."""
        table, self.table = self.table, None
        return table


def examine(
    engine: Any,
    level: Level,
    limits: Array,
    parts: Array,
    n_parts: int,
    known: State | None = None,
    moved: Array | None = None,
) -> State:
    """Measure a partition, faster with a known one from which only nodes that `moved` differ.

    `moved` is bool[n_nodes]. The known one loses its table, which is large, so that it can go before
    the new one is made.
    """
    if known is None or known.n_parts != n_parts:
        table, connectivity, loads = engine.measure(level, parts, n_parts)
    else:
        table, connectivity, loads = engine.remeasure(
            level, known.take_table(), known.connectivity, known.loads, known.parts, parts, moved
        )
    connectivity, overload = engine.sum_up(level, limits, connectivity, loads)
    return State(parts, n_parts, connectivity, loads, overload, table)


def weigh(engine: Any, level: Level, limits: Array, parts: Array, n_parts: int) -> State:
    """Measure a partition; without its table, unless the engine makes one on the way."""
    table, connectivity, loads, overload = engine.weigh(level, limits, parts, n_parts)
    return State(parts, n_parts, connectivity, loads, overload, table)


def price_overload(level: Level, engine: Any, worth: int) -> Any:
    """float64[n_loads] on the host: average worth of a unit of each load."""
    totals = np.concatenate(
        [
            engine.to_host(level.resources.sum(axis=0)),
            engine.to_host(level.counts.sum(axis=0)),
        ]
    )
    return worth / np.maximum(totals, 1)
