"""Placement: which part of the network sits on which core.

    part_graph = part_hypergraph(hypergraph, partition)
    placement = place(part_graph, profile, placer="auto")

`metric` knows distances, `region` where parts may go, `flows` how much they talk; `placers` lay the
parts out and `refine` improves any layout, `engine` says on which machine.
"""

from snnmap.placement.part_graph import part_hypergraph
from snnmap.placement.place import AUTO, place
from snnmap.placement.placers import PLACERS
from snnmap.placement.refinements import REFINEMENTS
from snnmap.placement.result import Placement

__all__ = ["AUTO", "PLACERS", "REFINEMENTS", "Placement", "part_hypergraph", "place"]
