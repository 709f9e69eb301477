"""snnmap's own network file: HDF5 that keeps all a `Hypergraph` holds (docs/formats.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from snnmap.hypergraph import Hypergraph, Population, Projection
from snnmap.progress import SILENT, Progress
from snnmap.readers._hdf5 import Fields, looks_like, open_hdf5
from snnmap.readers.checks import check_node_count, input_size, located

Array = np.ndarray[Any, Any]

ROOT = "snnmap_network"
"""The group that holds a network and marks its file."""

VERSION = 1
"""Of the schema; a reader refuses files of a later one."""


def recognise(path: Path, head: bytes) -> bool:
    """Whether the file is HDF5 with a network of ours."""
    return looks_like(path, head, ROOT)


def read_native(path: Path, *, progress: Progress = SILENT) -> Hypergraph:
    """Read snnmap's own network file.

    Raises:
        InputError: the file is damaged or of a later version; the text names the dataset.
    """
    size = input_size(path)
    progress.start(f"reading {path.name}", size, "B")
    with open_hdf5(path, "a snnmap network") as root, located(path):
        hypergraph = _network(path, root.child(ROOT))
    progress.advance(size)
    progress.finish()
    return hypergraph


def _network(path: Path, fields: Fields) -> Hypergraph:
    version = _number(fields, "version")
    if version != VERSION:
        remedy = "upgrade snnmap to read it" if version > VERSION else f"expected {VERSION}"
        raise fields.error(f"schema version {version}; {remedy}", "version")
    weights = _vector(fields, "weights", "f")
    hedge_offsets = _vector(fields, "hedge_offsets", "iu").astype(np.int64)
    group_offsets = _vector(fields, "group_offsets", "iu").astype(np.int64)
    steps = np.diff(hedge_offsets)
    if not len(hedge_offsets) or hedge_offsets[0] != 0 or (steps < 0).any():
        raise fields.error("offsets must rise from 0", "hedge_offsets")
    if hedge_offsets[-1] != len(weights):
        problem = f"ends at {hedge_offsets[-1]}; expected the number of weights, {len(weights)}"
        raise fields.error(problem, "hedge_offsets")
    if len(group_offsets) != len(hedge_offsets):
        problem = f"has {len(group_offsets)} entries; expected {len(hedge_offsets)}"
        raise fields.error(problem, "group_offsets")
    destinations = _vector(fields, "destinations", "iu")
    sources = _vector(fields, "sources", "iu")
    optional = {
        name: _vector(fields, name, "iu")
        for name in ("source_offsets", "axon_counts", "node_sizes")
        if fields.has(name)
    }
    n_nodes = _number(fields, "n_nodes")
    n_ids = len(destinations) + len(sources) + len(optional.get("node_sizes", ()))
    check_node_count(path, n_nodes, n_ids, place=f"{ROOT}/n_nodes")
    populations, projections = _layers(fields)
    return Hypergraph.from_groups(
        n_nodes,
        group_offsets,
        destinations,
        np.repeat(np.arange(len(steps)), steps),
        sources,
        weights,
        populations=populations,
        projections=projections,
        name=fields.text("name"),
        **optional,
    )


def _vector(fields: Fields, name: str, kinds: str) -> Array:
    array = fields.array(name)
    if array.ndim != 1 or array.dtype.kind not in kinds:
        expected = "whole numbers" if kinds == "iu" else "floats"
        found = f"{array.dtype} of {array.ndim} dimensions"
        raise fields.error(f"holds {found}; expected one dimension of {expected}", name)
    return array


def _number(fields: Fields, name: str) -> int:
    numbers = fields.integers(name)
    if len(numbers) != 1:
        raise fields.error(f"holds {len(numbers)} numbers; expected one", name)
    return numbers[0]


def _layers(fields: Fields) -> tuple[list[Population], list[Projection]]:
    try:
        layers = json.loads(fields.text("layers"))
        populations = [
            Population(
                str(p["name"]),
                int(p["start"]),
                int(p["stop"]),
                tuple(int(n) for n in p["shape"]),
                bool(p["is_input"]),
            )
            for p in layers["populations"]
        ]
        projections = [
            Projection(
                str(p["source"]),
                str(p["target"]),
                None
                if p["delay_ms"] is None
                else (float(p["delay_ms"][0]), float(p["delay_ms"][1])),
            )
            for p in layers["projections"]
        ]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError, OverflowError) as error:
        problem = f"populations cannot be read ({type(error).__name__}: {error})"
        raise fields.error(problem, "layers") from None
    return populations, projections
