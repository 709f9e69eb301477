"""Graph formats of networkx: GraphML, GEXF, node-link JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx

from snnmap.errors import OutputError
from snnmap.hypergraph import Hypergraph
from snnmap.progress import SILENT, Progress
from snnmap.writers.atomic import whole_file
from snnmap.writers.links import links_notes
from snnmap.writers.objects import count_links, to_networkx
from snnmap.writers.records import lost

MOST_EDGES = 10_000_000
"""Of a graph format; networkx needs about a kilobyte for each."""


def write_graphml(
    hypergraph: Hypergraph, path: Path, *, progress: Progress = SILENT, bipartite: bool = False
) -> list[str]:
    """Write GraphML.

    Args:
        hypergraph: to write.
        path: the file.
        progress: told of the work.
        bipartite: h-edges become nodes (nothing is lost); otherwise links become edges.

    Returns:
        Notes on what the format cannot hold.

    Raises:
        OutputError: an h-edge has no source, there are too many links, or the file cannot be
            written.
    """
    graph, notes = _graph(hypergraph, path, progress, bipartite)
    with whole_file(path) as temporary:
        nx.write_graphml(graph, temporary)
    progress.finish()
    return notes


def write_gexf(
    hypergraph: Hypergraph, path: Path, *, progress: Progress = SILENT, bipartite: bool = False
) -> list[str]:
    """Write GEXF; see :func:`write_graphml`."""
    graph, notes = _graph(hypergraph, path, progress, bipartite)
    with whole_file(path) as temporary:
        nx.write_gexf(graph, temporary)
    progress.finish()
    return notes


def write_nodelink(
    hypergraph: Hypergraph, path: Path, *, progress: Progress = SILENT, bipartite: bool = False
) -> list[str]:
    """Write node-link JSON; see :func:`write_graphml`."""
    graph, notes = _graph(hypergraph, path, progress, bipartite)
    with whole_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        json.dump(nx.node_link_data(graph, edges="links"), file)
    progress.finish()
    return notes


def _graph(h: Hypergraph, path: Path, progress: Progress, bipartite: bool) -> tuple[Any, list[str]]:
    notes = lost(h, axon_counts=True, node_sizes=True) if bipartite else links_notes(h, path)
    n_edges = h.n_pins if bipartite else count_links(h)
    if n_edges > MOST_EDGES:
        raise OutputError(
            f"{path}: {n_edges} edges exceed the limit of {MOST_EDGES} of graph formats; write "
            ".csv, .npz or .h5 instead"
        )
    progress.start(f"writing {path.name}", n_edges, "edges")
    return to_networkx(h, bipartite=bipartite), notes
