"""One small hypergraph, drawn, for tests of every room.

nodes: 0 1 2 | 3 4 5 6 | 7        layers 'in' (input), 'hidden', 'out'

h-edge  source(s)  destinations  weight
  0        0         3 4 5         1.0     } one group: the same destinations
  1        1         3 4 5         2.0     }
  2        2         5 6           0.5
  3        3         7             4.0
  4        4         4 7           3.0       4 is source and destination (self-loop)
  5        5         3 7           0.0       silent
  6        -         6 7           1.5       no source (it is off the chip)
  7       5 6        3 4 5 6       2.5       two sources, both also destinations

in 0 --.                 pins: 4 + 4 + 3 + 2 + 2 + 3 + 2 + 4 = 24
in 1 --+--> {3 4 5}      fan-in: 0 0 0 | 4 4 4 3 | 4
in 2 -----> {5 6}
"""

from __future__ import annotations

import numpy as np

from snnmap.hypergraph import Hypergraph, Population, Projection

SMALL_ROWS: list[tuple[list[int], list[int], float]] = [
    ([0], [3, 4, 5], 1.0),
    ([1], [3, 4, 5], 2.0),
    ([2], [5, 6], 0.5),
    ([3], [7], 4.0),
    ([4], [4, 7], 3.0),
    ([5], [3, 7], 0.0),
    ([], [6, 7], 1.5),
    ([5, 6], [3, 4, 5, 6], 2.5),
]
"""(sources, destinations, weight) of each h-edge of :func:`small`."""

SMALL_PINS = 24
SMALL_FAN_INS = [0, 0, 0, 4, 4, 4, 3, 4]


def from_rows(
    n_nodes: int, rows: list[tuple[list[int], list[int], float]], **others: object
) -> Hypergraph:
    """A hypergraph (one group an h-edge) from (sources, destinations, weight) of each h-edge."""
    sources = [s for out, _, _ in rows for s in out]
    destinations = [d for _, into, _ in rows for d in into]
    return Hypergraph.from_hedges(
        n_nodes,
        np.array(sources, np.int64),
        np.cumsum([0] + [len(into) for _, into, _ in rows]),
        np.array(destinations, np.int64),
        np.array([weight for _, _, weight in rows], np.float64),
        source_offsets=np.cumsum([0] + [len(out) for out, _, _ in rows]),
        **others,
    )


def to_rows(hypergraph: Hypergraph) -> list[tuple[list[int], list[int], float]]:
    """(sources, destinations, weight) of each h-edge, as the hypergraph orders them."""
    h = hypergraph
    rows = []
    for e, g in enumerate(h.hedge_groups):
        out = h.sources[h.source_offsets[e] : h.source_offsets[e + 1]]
        into = h.destinations[h.group_offsets[g] : h.group_offsets[g + 1]]
        rows.append((out.tolist(), into.tolist(), float(h.weights[e])))
    return rows


def small(*, grouped: bool = True) -> Hypergraph:
    """The hypergraph above: 8 nodes, 8 h-edges, 7 groups (8 when not `grouped`)."""
    hypergraph = from_rows(
        8,
        SMALL_ROWS,
        populations=(
            Population("in", 0, 3, (3,), is_input=True),
            Population("hidden", 3, 7, (2, 2)),
            Population("out", 7, 8, (1,)),
        ),
        projections=(Projection("in", "hidden", (1.0, 2.0)), Projection("hidden", "out")),
        name="small",
    )
    return hypergraph.grouped() if grouped else hypergraph
