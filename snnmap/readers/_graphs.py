"""networkx graphs to hypergraphs.

A node's outgoing edges form its one axon; an undirected edge goes both ways. A number `rate` of a
node is its spike rate. In a bipartite graph (option) some nodes stand for h-edges instead: those
with the attribute ``bipartite`` = 1.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from snnmap import _csr
from snnmap.errors import InputError
from snnmap.hypergraph import Hypergraph
from snnmap.progress import Progress
from snnmap.readers._arrays import brief, refusing
from snnmap.readers._links import check_link_weights, from_links
from snnmap.readers.checks import input_size, located

Array = np.ndarray[Any, Any]


def from_networkx(
    graph: Any,
    *,
    path: Path | None = None,
    bipartite: bool = False,
    link_weights: str = "ignore",
    drop_zeros: bool = False,
    name: str | None = None,
) -> Hypergraph:
    """The network of a networkx graph; nodes are numbered in the graph's order.

    Args:
        graph: any networkx graph; parallel edges are one link.
        path: where it comes from, for messages.
        bipartite: nodes with the attribute ``bipartite`` = 1 are h-edges: their incoming edges come
            from sources, their outgoing edges go to destinations (undirected: all pins are
            destinations); their attribute ``weight`` (1 if absent) is the spike rate.
        link_weights: what the edges' attribute ``weight`` says about rates of nodes without a
            ``rate``: "ignore" (1), or "max" or "sum" over the node's outgoing edges.
        drop_zeros: edges of weight zero are no links.
        name: default: the file's or the graph's.

    Raises:
        InputError: an attribute is no number, or a bipartite edge joins two nodes of a kind.
    """
    where = Path(graph.name or "graph") if path is None else path
    name = where.stem if name is None else name
    if bipartite:
        return _from_bipartite(graph, where, name)
    check_link_weights(link_weights)
    number = {node: i for i, node in enumerate(graph)}
    links = [(number[s], number[t]) for s, t in graph.edges()]
    pairs = np.array(links, np.int32).reshape(-1, 2)
    weights = None
    if drop_zeros or link_weights != "ignore":
        found = graph.edges(data="weight", default=1.0)
        weights = np.array(
            [_number(where, w, f"weight of edge {s!r} to {t!r}") for s, t, w in found]
        )
    if not graph.is_directed():
        pairs = np.concatenate([pairs, pairs[:, ::-1]])
        weights = weights if weights is None else np.concatenate([weights, weights])
    rates = None
    stated = dict(graph.nodes(data="rate"))
    if any(rate is not None for rate in stated.values()):
        missing = next((node for node, rate in stated.items() if rate is None), None)
        if missing is not None:
            raise InputError(where, f"node {missing!r} has no rate, others have", place="nodes")
        rates = np.array([_number(where, r, f"rate of node {n!r}") for n, r in stated.items()])
        for i in np.flatnonzero(~(np.isfinite(rates) & (rates >= 0)))[:1]:
            problem = f"rate {rates[i]} of node {list(graph)[i]!r}; expected a finite number >= 0"
            raise InputError(where, problem)
    return from_links(
        where,
        len(number),
        pairs[:, 0],
        pairs[:, 1],
        weights,
        link_weights=link_weights,
        drop_zeros=drop_zeros,
        rates=rates,
        name=name,
    )


def _from_bipartite(graph: Any, where: Path, name: str) -> Hypergraph:
    is_hedge = {node: kind in (1, "1") for node, kind in graph.nodes(data="bipartite")}
    hedges = {n: i for i, n in enumerate(node for node in graph if is_hedge[node])}
    nodes = {n: i for i, n in enumerate(node for node in graph if not is_hedge[node])}
    sources: list[list[int]] = [[] for _ in hedges]
    destinations: list[list[int]] = [[] for _ in hedges]
    for a, b in graph.edges():
        if is_hedge[a] == is_hedge[b]:
            kind = "h-edges" if is_hedge[a] else "nodes"
            raise InputError(where, f"edge {a!r} to {b!r} joins two {kind} of a bipartite graph")
        if is_hedge[a]:
            destinations[hedges[a]].append(nodes[b])
        elif graph.is_directed():
            sources[hedges[b]].append(nodes[a])
        else:
            destinations[hedges[b]].append(nodes[a])
    weights = dict(graph.nodes(data="weight"))
    rates = [_number(where, weights[h], f"weight of h-edge {h!r}", default=1.0) for h in hedges]
    with located(where):
        return from_rows(len(nodes), sources, destinations, rates, name=name)


def from_rows(
    n_nodes: int,
    sources: list[list[int]],
    destinations: list[list[int]],
    weights: list[float],
    **others: Any,
) -> Hypergraph:
    """The hypergraph of lists of sources and destinations, one each an h-edge."""
    return Hypergraph.from_hedges(
        n_nodes,
        np.array([n for row in sources for n in row], np.int64),
        _csr.offsets_of(np.array([len(row) for row in destinations], np.int64)),
        np.array([n for row in destinations for n in row], np.int64),
        np.array(weights, np.float64),
        source_offsets=_csr.offsets_of(np.array([len(row) for row in sources], np.int64)),
        **others,
    ).grouped()


def read_graph(
    path: Path, progress: Progress, load: Callable[[Path], Any], what: str, **options: Any
) -> Hypergraph:
    """The network of a graph file that `load` (a function of networkx) understands.

    Raises:
        InputError: it does not; `what` names what was expected.
    """
    size = input_size(path)
    progress.start(f"reading {path.name}", size, "B")
    with refusing(path, f"is no {what}"):
        graph = load(path)
    progress.advance(size)
    progress.finish()
    return from_networkx(graph, path=path, name=path.stem, **options)


def load_json(path: Path) -> Any:
    """The content of a JSON file.

    Raises:
        InputError: it is no JSON; the line is named.
    """
    try:
        with path.open(encoding="utf-8") as file:
            return json.load(file)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(path, f"is no JSON: {error.msg}", place=place) from None
    except (UnicodeDecodeError, RecursionError, ValueError, OSError) as error:
        raise InputError(path, f"is no JSON: {brief(error)}") from None


def _number(where: Path, value: Any, what: str, default: float | None = None) -> float:
    if value is None and default is not None:
        return default
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(where, f"{what} is {value!r}; expected a number") from None
    if math.isnan(number):
        raise InputError(where, f"{what} is not a number; expected a number")
    return number
