"""GEXF (``.gexf``, Gephi's format), read by networkx."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx

from snnmap.hypergraph import Hypergraph
from snnmap.progress import SILENT, Progress
from snnmap.readers._graphs import read_graph
from snnmap.readers._xml import check_xml_graph


def recognise(path: Path, head: bytes) -> bool:
    """Whether the file is XML with a ``gexf`` element."""
    return b"<gexf" in head[:4096]


def read_gexf(
    path: Path,
    *,
    progress: Progress = SILENT,
    bipartite: bool = False,
    link_weights: str = "ignore",
    drop_zeros: bool = False,
) -> Hypergraph:
    """Read a GEXF file; the options are those of `snnmap.readers._graphs.from_networkx`.

    Raises:
        InputError: the file is malformed.
    """
    return read_graph(
        path,
        progress,
        _load,
        "GEXF file",
        bipartite=bipartite,
        link_weights=link_weights,
        drop_zeros=drop_zeros,
    )


def _load(path: Path) -> Any:
    check_xml_graph(path, "GEXF file")
    return nx.read_gexf(path)
