"""HIF, the JSON format in which hypergraph libraries exchange networks.

``incidences`` pairs edges with nodes; in a directed network the direction ``tail`` makes the node a
source of the edge and ``head`` a destination. The weight of an edge is its spike rate. Weights of
nodes and incidences have no meaning here; a whole number ``size`` among the ``attrs`` of a node is
the number of neurons it stands for.

Source: https://github.com/HIF-org/HIF-standard (schema 0.1.0).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from snnmap.errors import InputError
from snnmap.hypergraph import Hypergraph
from snnmap.progress import SILENT, Progress
from snnmap.readers._graphs import from_rows, load_json
from snnmap.readers.checks import input_size, located

Id = str | int


def recognise(path: Path, head: bytes) -> bool:
    """Whether the file is JSON with a key of HIF."""
    keys = set(re.findall(rb'"([\w-]+)"\s*:', head))
    return head.lstrip()[:1] == b"{" and bool(keys & {b"incidences", b"network-type"})


def read_hif(path: Path, *, progress: Progress = SILENT) -> Hypergraph:
    """Read a HIF file; nodes and h-edges are numbered in the order in which they are first named.

    Nodes listed under ``nodes`` come first.

    Raises:
        InputError: the file is malformed; the text names the entry.
    """
    size = input_size(path)
    progress.start(f"reading {path.name}", size, "B")
    data = load_json(path)
    if not isinstance(data, dict) or not isinstance(data.get("incidences"), list):
        raise InputError(path, "has no list of incidences; expected a HIF object")
    kind = data.get("network-type", "undirected")
    if kind not in ("undirected", "directed", "asc"):
        problem = f"network-type {kind!r}; expected undirected, directed or asc"
        raise InputError(path, problem, place="network-type")
    nodes: dict[Id, int] = {}
    sizes: list[int] = []
    for place, entry in _entries(path, data, "nodes"):
        node = _id(path, entry, "node", place)
        if node in nodes:
            raise InputError(path, f"node {node!r} occurs twice", place=place)
        nodes[node] = len(nodes)
        sizes.append(_size(path, entry, place))
    edges: dict[Id, int] = {}
    weights: list[float] = []
    for place, entry in _entries(path, data, "edges"):
        edge = _id(path, entry, "edge", place)
        if edge in edges:
            raise InputError(path, f"edge {edge!r} occurs twice", place=place)
        edges[edge] = len(edges)
        weights.append(_weight(path, entry, place))
    sources: list[list[int]] = [[] for _ in edges]
    destinations: list[list[int]] = [[] for _ in edges]
    for place, entry in _entries(path, data, "incidences"):
        edge, node = _id(path, entry, "edge", place), _id(path, entry, "node", place)
        if edge not in edges:
            edges[edge] = len(edges)
            weights.append(1.0)
            sources.append([])
            destinations.append([])
        if node not in nodes:
            nodes[node] = len(nodes)
            sizes.append(1)
        direction = entry.get("direction", "head")
        if direction not in ("head", "tail"):
            raise InputError(path, f"direction {direction!r}; expected head or tail", place=place)
        is_source = kind == "directed" and direction == "tail"
        (sources if is_source else destinations)[edges[edge]].append(nodes[node])
    progress.advance(size)
    progress.finish()
    with located(path):
        return from_rows(
            len(nodes),
            sources,
            destinations,
            weights,
            node_sizes=np.array(sizes, np.int64),
            name=_name(data, path),
        )


def _entries(path: Path, data: dict[str, Any], key: str) -> list[tuple[str, dict[str, Any]]]:
    entries = data.get(key, [])
    if not isinstance(entries, list):
        raise InputError(path, f"is {type(entries).__name__}; expected a list", place=key)
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict):
            problem = f"is {type(entry).__name__}; expected an object"
            raise InputError(path, problem, place=f"{key}[{i}]")
    return [(f"{key}[{i}]", entry) for i, entry in enumerate(entries)]


def _id(path: Path, entry: dict[str, Any], key: str, place: str) -> Id:
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, str | int):
        problem = f"{key} is {value!r}; expected a text or a whole number"
        raise InputError(path, problem, place=place)
    return value


def _weight(path: Path, entry: dict[str, Any], place: str) -> float:
    value = entry.get("weight", 1.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e308:
        raise InputError(path, f"weight {value!r}; expected a finite number >= 0", place=place)
    return float(value)


def _size(path: Path, entry: dict[str, Any], place: str) -> int:
    attributes = entry.get("attrs", {})
    value = attributes.get("size", 1) if isinstance(attributes, dict) else 1
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise InputError(path, f"size {value!r}; expected a whole number >= 0", place=place)
    return value


def _name(data: dict[str, Any], path: Path) -> str:
    metadata = data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) and name else path.stem
