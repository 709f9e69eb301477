"""SONATA networks: a config (JSON), a folder, or the node and edge files (HDF5 and CSV) themselves.

Every node population becomes a population; those of ``model_type`` virtual are inputs. An edge
file may hold millions of synapses: it is read in chunks, several synapses between two neurons are
one link, and the index groups of the format are not needed.

Source of the format: https://github.com/AllenInstitute/sonata, the developer guide.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array

from snnmap.errors import InputError
from snnmap.hypergraph import MAX_NODES, Hypergraph, Population, Projection
from snnmap.progress import SILENT, Progress
from snnmap.readers._hdf5 import SIGNATURE, looks_like, open_hdf5
from snnmap.readers._sonata_edges import EdgeFile, Edges, read_edges
from snnmap.readers._sonata_files import (
    Sources,
    find_sources,
    is_config,
    sources_of_config,
    type_table,
)
from snnmap.readers._sonata_nodes import Nodes, read_nodes, virtual_name
from snnmap.readers._steps import available_bytes

__all__ = ["read_sonata", "recognise"]

Array = np.ndarray[Any, Any]


def recognise(path: Path, head: bytes) -> bool:
    """Whether this is a SONATA config, a file of nodes or edges, or a folder of these."""
    if path.is_dir():
        return any(_is_sonata_file(p) for p in sorted(path.glob("*.h5"))) or any(
            is_config(p) for p in sorted(path.glob("*.json"))
        )
    if head.startswith(SIGNATURE):
        return _is_sonata_file(path)
    return is_config(path)


def _is_sonata_file(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(8)
    if not looks_like(path, head, "nodes", "edges"):
        return False
    try:
        with open_hdf5(path, "a SONATA file") as root:
            for kind, needed in (("nodes", "node_type_id"), ("edges", "source_node_id")):
                if root.has(kind) and root.is_group(kind):
                    group = root.child(kind)
                    if any(group.child(name).has(needed) for name in group.children()):
                        return True
    except InputError:
        pass
    return False


def read_sonata(
    path: Path,
    *,
    progress: Progress = SILENT,
    nodes: tuple[str | Path, ...] = (),
    edges: tuple[str | Path, ...] = (),
    drop_zeros: bool = False,
) -> Hypergraph:
    """Read a SONATA network.

    Args:
        path: a circuit or simulation config; an edge or node file, whose companions are looked for
            beside it (``*.h5``, and for each its ``*_types.csv``); or their folder.
        progress: told of the work.
        nodes: node files to use instead of looking for them.
        edges: edge files to use instead of looking for them.
        drop_zeros: synapses with a ``syn_weight`` of exactly zero are no links; by default they
            are. Edges with ``nsyns`` 0 never are.

    Returns:
        The network; nodes in the order of the files, rates 1, delays for each pair of populations.

    Raises:
        InputError: a file is missing or malformed, an edge leads to no node; names the place.
    """
    path = Path(path)
    sources = sources_of_config(path) if is_config(path) else find_sources(path)
    if nodes or edges:
        sources = Sources.of_files(nodes or sources.nodes, edges or sources.edges)
    populations = _read_populations(sources, path)
    edge_files = [
        EdgeFile(file, type_table(types, "edge")) for file, types in sources.edges.items()
    ]
    links = read_edges(edge_files, populations, drop_zeros, progress)
    return _assemble(path, populations, links)


def _read_populations(sources: Sources, path: Path) -> dict[str, Nodes]:
    populations: dict[str, Nodes] = {}
    for file, types in sources.nodes.items():
        table = type_table(types, "node")
        with open_hdf5(file, "a SONATA node file") as root:
            group = root.child("nodes")
            names = group.children()
            if not names:
                raise group.error("holds no population")
            for name in names:
                if name in populations:
                    raise group.error(f"population {name!r} is in two node files", name)
                virtual = sources.virtual.get((file, name))
                populations[name] = read_nodes(group.child(name), name, table, virtual)
    total = sum(nodes.n for nodes in populations.values())
    if total > MAX_NODES:
        raise InputError(path, f"{total:,} nodes; at most {MAX_NODES:,} fit in a network")
    return populations


def _assemble(path: Path, populations: dict[str, Nodes], edges: Edges) -> Hypergraph:
    ranges: list[Population] = []
    place: dict[str, Array] = {}
    start = 0
    for nodes in populations.values():
        place[nodes.name] = np.empty(nodes.n, np.int64)
        for name, members, is_input in nodes.parts():
            stop = start + len(members)
            ranges.append(Population(name, start, stop, (len(members),), is_input))
            place[nodes.name][members] = np.arange(start, stop)
            start = stop
    if start > MAX_NODES or start * 64 > available_bytes():
        raise InputError(path, f"{start:,} nodes are more than this machine has memory for")
    for block in edges.blocks:
        block.sources = place[block.source][block.sources].astype(np.int32)
        block.targets = place[block.target][block.targets].astype(np.int32)
    sources = np.concatenate([np.empty(0, np.int32), *(b.sources for b in edges.blocks)])
    targets = np.concatenate([np.empty(0, np.int32), *(b.targets for b in edges.blocks)])
    edges.blocks.clear()
    matrix = coo_array((np.ones(len(sources), bool), (sources, targets)), (start, start)).tocsr()
    del sources, targets
    offsets = matrix.indptr.astype(np.int64)
    linked = np.flatnonzero(np.diff(offsets) > 0)
    return Hypergraph.from_hedges(
        start,
        linked.astype(np.int32),
        np.append(offsets[:-1][linked], offsets[-1]),
        matrix.indices,
        np.ones(len(linked)),
        populations=ranges,
        projections=_projections(ranges, edges),
        name=path.stem or "sonata",
    )


def _projections(ranges: list[Population], edges: Edges) -> list[Projection]:
    known = {p.name for p in ranges}

    def names(population: str) -> list[str]:
        return [n for n in (population, virtual_name(population)) if n in known]

    return [
        Projection(a, b, delay)
        for (source, target), delay in edges.delays.items()
        for a in names(source)
        for b in names(target)
    ]
