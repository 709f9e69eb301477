"""Node-link JSON: ``nodes`` and ``links`` (or ``edges``), as networkx and d3 write it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import networkx as nx

from snnmap.errors import InputError
from snnmap.hypergraph import Hypergraph
from snnmap.progress import SILENT, Progress
from snnmap.readers._graphs import load_json, read_graph


def recognise(path: Path, head: bytes) -> bool:
    """Whether the file is JSON with the keys of a node-link graph."""
    keys = set(re.findall(rb'"(\w+)"\s*:', head))
    return (
        head.lstrip()[:1] == b"{"
        and b"nodes" in keys
        and not keys & {b"incidences", b"networks", b"manifest"}
        and bool(keys & {b"links", b"edges", b"directed", b"multigraph"})
    )


def read_nodelink(
    path: Path,
    *,
    progress: Progress = SILENT,
    bipartite: bool = False,
    link_weights: str = "ignore",
    drop_zeros: bool = False,
) -> Hypergraph:
    """Read node-link JSON; the options are those of `snnmap.readers._graphs.from_networkx`.

    Raises:
        InputError: the file is malformed.
    """
    return read_graph(
        path,
        progress,
        _load,
        "node-link graph",
        bipartite=bipartite,
        link_weights=link_weights,
        drop_zeros=drop_zeros,
    )


def _load(path: Path) -> Any:
    data = load_json(path)
    lists = [key for key in ("links", "edges") if isinstance(data, dict) and key in data]
    if not lists or not isinstance(data.get("nodes"), list):
        raise InputError(path, "expected an object with the lists nodes and links (or edges)")
    known = set()
    for place, node in enumerate(data["nodes"]):
        if not isinstance(node, dict) or "id" not in node:
            raise InputError(
                path, "has no id; expected an object with an id", place=f"node {place}"
            )
        known.add(_key(path, node["id"], f"node {place}"))
    for place, link in enumerate(data[lists[0]]):
        if not isinstance(link, dict) or not {"source", "target"} <= link.keys():
            raise InputError(
                path, "expected an object with source and target", place=f"link {place}"
            )
        for end in ("source", "target"):
            if _key(path, link[end], f"link {place}") not in known:
                problem = f"{end} {link[end]!r} is none of the nodes"
                raise InputError(path, problem, place=f"link {place}")
    return nx.node_link_graph(data, edges=lists[0])


def _key(path: Path, value: Any, place: str) -> Any:
    """An id as networkx takes it: a list means a tuple."""
    if isinstance(value, list):
        return tuple(_key(path, item, place) for item in value)
    if isinstance(value, dict):
        raise InputError(path, "id is an object; expected a text or a number", place=place)
    return value
