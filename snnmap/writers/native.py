"""snnmap's own network file (see `snnmap.readers.native`): HDF5, compressed, nothing lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from snnmap.hypergraph import Hypergraph
from snnmap.progress import SILENT, Progress
from snnmap.readers.native import ROOT, VERSION
from snnmap.writers.atomic import whole_file
from snnmap.writers.hdf5 import hdf5_file

CHUNK = 1 << 18


def write_native(hypergraph: Hypergraph, path: Path, *, progress: Progress = SILENT) -> list[str]:
    """Write a network with everything it holds; the same network gives the same bytes.

    Returns:
        No notes: nothing is lost.

    Raises:
        OutputError: the file cannot be written.
    """
    h = hypergraph
    arrays = {
        "group_offsets": h.group_offsets,
        "destinations": h.destinations,
        "hedge_offsets": h.hedge_offsets,
        "sources": h.sources,
        "weights": h.weights,
    }
    if (np.diff(h.source_offsets) != 1).any():
        arrays["source_offsets"] = h.source_offsets
    if (h.axon_counts != 1).any():
        arrays["axon_counts"] = h.axon_counts
    if (h.node_sizes != 1).any():
        arrays["node_sizes"] = h.node_sizes
    progress.start(f"writing {path.name}", sum(a.nbytes for a in arrays.values()), "B")
    with whole_file(path) as temporary, hdf5_file(temporary) as file:
        group = file.create_group(ROOT)
        group["version"] = VERSION
        group["name"] = h.name
        group["n_nodes"] = h.n_nodes
        group["layers"] = json.dumps(_layers(h))
        for name, array in arrays.items():
            if len(array) > 1024:
                group.create_dataset(
                    name,
                    data=array,
                    chunks=(min(len(array), CHUNK),),
                    compression="gzip",
                    compression_opts=1,
                    shuffle=True,
                )
            else:
                group.create_dataset(name, data=array)
            progress.advance(array.nbytes)
    progress.finish()
    return []


def _layers(h: Hypergraph) -> dict[str, list[dict[str, Any]]]:
    return {
        "populations": [
            {
                "name": p.name,
                "start": p.start,
                "stop": p.stop,
                "shape": list(p.shape),
                "is_input": p.is_input,
            }
            for p in h.populations
        ],
        "projections": [
            {"source": p.source, "target": p.target, "delay_ms": p.delay_ms and list(p.delay_ms)}
            for p in h.projections
        ],
    }
