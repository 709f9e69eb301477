"""Edges of SONATA files, read chunk by chunk."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from snnmap.errors import InputError, NetworkError
from snnmap.progress import Progress
from snnmap.readers._hdf5 import Fields, open_hdf5
from snnmap.readers._sonata_nodes import Nodes
from snnmap.readers._steps import check_links

Array = np.ndarray[Any, Any]
Delay = tuple[float, float]
Types = dict[int, dict[str, str]]

CHUNK = 1 << 20


@dataclass(frozen=True)
class EdgeFile:
    """An edge file and its table of types."""

    path: Path
    types: Types


@dataclass
class Block:
    """Links between two populations, as positions in them."""

    source: str
    target: str
    sources: Array
    targets: Array


@dataclass
class Edges:
    """All links, and (smallest, largest) delay in ms for each pair of populations."""

    blocks: list[Block] = field(default_factory=list)
    delays: dict[tuple[str, str], Delay | None] = field(default_factory=dict)


def read_edges(
    files: list[EdgeFile], populations: dict[str, Nodes], drop_zeros: bool, progress: Progress
) -> Edges:
    """Read every population of edges; populations that no node file gave are implied by them."""
    edges = Edges()
    given = bool(populations)
    for file in files:
        with open_hdf5(file.path, "a SONATA edge file") as root:
            group = root.child("edges")
            for name in group.children():
                reader = _Reader(group.child(name), name, file.types, drop_zeros)
                for end in (reader.source, reader.target):
                    if end not in populations:
                        if given:
                            raise reader.fields.error(
                                f"edges lead to population {end!r}, which no node file holds; "
                                f"known are {', '.join(map(repr, populations))}"
                            )
                        populations[end] = Nodes(end, None, 0, np.zeros(0, bool), implied=True)
                reader.read(populations, edges, progress)
    return edges


class _Reader:
    """One population of edges."""

    def __init__(self, fields: Fields, name: str, types: Types, drop_zeros: bool) -> None:
        self.fields = fields
        self.types = types
        self.drop_zeros = drop_zeros
        self.source = self._population(name, "source_node_id", 0)
        self.target = self._population(name, "target_node_id", 1)
        shapes = {n: fields.shape(n) for n in ("source_node_id", "target_node_id")}
        for optional in ("edge_type_id", "edge_group_id", "edge_group_index"):
            if fields.has(optional):
                shapes[optional] = fields.shape(optional)
        if len(set(shapes.values())) != 1 or len(shapes["source_node_id"]) != 1:
            listed = ", ".join(f"{n} {s}" for n, s in shapes.items())
            raise fields.error(f"columns differ in shape: {listed}")
        self.n = shapes["source_node_id"][0]
        self.groups = [g for g in fields.children() if g.isdecimal()]
        self.low, self.high = inf, -inf

    def _population(self, name: str, end: str, which: int) -> str:
        for attribute in ("node_population", "network"):
            found = self.fields.attribute(end, attribute)
            if found:
                return found
        halves = name.split("_to_")
        if len(halves) == 2:
            return halves[which]
        raise self.fields.error("has no attribute node_population to say whose ids these are", end)

    def read(self, populations: dict[str, Nodes], edges: Edges, progress: Progress) -> None:
        for column in ("source_node_id", "target_node_id"):
            self.fields.dataset(column)  # sizes checked before memory is taken
        try:
            check_links(self.n)
        except NetworkError as error:
            raise self.fields.error(str(error)) from None
        sources, targets = np.empty(self.n, np.int32), np.empty(self.n, np.int32)
        kept = 0
        progress.start(f"read edges {self.source} -> {self.target}", self.n, "edges")
        for start in range(0, self.n, CHUNK):
            stop = min(start + CHUNK, self.n)
            a = self._find(populations[self.source], "source_node_id", start, stop)
            b = self._find(populations[self.target], "target_node_id", start, stop)
            keep = self._attributes(start, stop)
            if keep is not None:
                a, b = a[keep], b[keep]
            sources[kept : kept + len(a)], targets[kept : kept + len(a)] = a, b
            kept += len(a)
            progress.advance(stop - start)
        progress.finish()
        edges.blocks.append(Block(self.source, self.target, sources[:kept], targets[:kept]))
        pair = (self.source, self.target)
        known = edges.delays.get(pair)
        if self.low <= self.high:
            low, high = known or (self.low, self.high)
            edges.delays[pair] = (min(low, self.low), max(high, self.high))
        elif kept or self.n == 0:
            edges.delays.setdefault(pair, None)

    def _find(self, nodes: Nodes, column: str, start: int, stop: int) -> Array:
        ids = self.fields.slice(column, start, stop)
        if ids.dtype.kind not in "iu":
            raise self.fields.error(f"holds {ids.dtype}; expected whole numbers", column)
        places, bad = nodes.find(ids)
        if bad >= 0:
            raise InputError(
                self.fields.path,
                f"node {ids[bad]} is not in population {nodes.name!r} of {nodes.n} nodes",
                place=f"{self.fields.place}/{column}, edge {start + bad}",
            )
        return places

    # ------------------------------------------------------------------ attributes

    def _attributes(self, start: int, stop: int) -> Array | None:
        """Note delays; bool[stop - start] of the edges to keep, None for all."""
        keep = np.ones(stop - start, bool)
        delays = self._values("delay", start, stop)
        if delays is not None:
            stated = delays[~np.isnan(delays)]
            if len(stated):
                if not (np.isfinite(stated).all() and stated.min() >= 0):
                    raise self.fields.error(f"a delay is {stated.min()} ms; expected a number >= 0")
                self.low = min(self.low, float(stated.min()))
                self.high = max(self.high, float(stated.max()))
        counts = self._values("nsyns", start, stop)
        if counts is not None:
            keep &= ~(counts == 0)
        if self.drop_zeros:
            weights = self._values("syn_weight", start, stop)
            if weights is not None:
                keep &= ~(weights == 0)
        return None if keep.all() else keep

    def _values(self, name: str, start: int, stop: int) -> Array | None:
        """float64[stop - start] of an attribute, NaN where it is not stated; None if nowhere.

        The column of an edge's group in the HDF5 file goes before that of its type in the CSV.
        """
        in_groups = [g for g in self.groups if self.fields.child(g).has(name)]
        in_types = {i: row[name] for i, row in self.types.items() if name in row}
        if not in_groups and not in_types:
            return None
        out = np.full(stop - start, np.nan)
        if in_types and self.fields.has("edge_type_id"):
            type_ids = self.fields.slice("edge_type_id", start, stop)
            for type_id in np.unique(type_ids):
                if int(type_id) in in_types:
                    out[type_ids == type_id] = self._number(name, in_types[int(type_id)])
        for group in in_groups:
            fields = self.fields.child(group)
            members, rows = self._members(group, start, stop)
            if len(rows):
                n = (fields.shape(name) or (0,))[0]
                if not 0 <= rows.min() <= rows.max() < n:
                    place = f"edge {start + int(members[rows.argmax()])}"
                    raise self.fields.error(
                        f"{place}: {rows.max()} is outside the {n} entries of group {group}",
                        "edge_group_index",
                    )
                first = int(rows.min())
                out[members] = fields.slice(name, first, int(rows.max()) + 1)[rows - first]
        return out

    def _members(self, group: str, start: int, stop: int) -> tuple[Array, Array]:
        """(edges of the chunk in a group, their rows in it)."""
        members = np.arange(stop - start)
        if self.fields.has("edge_group_id"):
            ids = self.fields.slice("edge_group_id", start, stop)
            members = np.flatnonzero(ids == int(group))
        if not self.fields.has("edge_group_index"):
            return members, members + start
        rows = self.fields.slice("edge_group_index", start, stop)[members]
        return members, rows.astype(np.int64)

    def _number(self, name: str, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise self.fields.error(
                f"its table of types gives {name} {text!r}; expected a number"
            ) from None
