"""HIF, the exchange format of hypergraph libraries (see `snnmap.readers.hif`), in one stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from snnmap.hypergraph import Hypergraph
from snnmap.progress import SILENT, Progress
from snnmap.writers.atomic import whole_file
from snnmap.writers.records import lost


def write_hif(hypergraph: Hypergraph, path: Path, *, progress: Progress = SILENT) -> list[str]:
    """Write HIF JSON; directed if any h-edge has a source.

    Returns:
        Notes on what the format cannot hold.

    Raises:
        OutputError: the file cannot be written.
    """
    h = hypergraph
    directed = len(h.sources) > 0
    progress.start(f"writing {path.name}", h.n_hedges, "h-edges")
    with whole_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        kind = "directed" if directed else "undirected"
        about = {"name": h.name, "written-by": "snnmap"}
        file.write(f'{{"network-type": "{kind}", "metadata": {json.dumps(about)},\n"nodes": [')
        sizes = h.node_sizes.tolist()
        file.write(",\n".join(json.dumps(_node(n, size)) for n, size in enumerate(sizes)))
        file.write('],\n"edges": [')
        weights = enumerate(h.weights.tolist())
        file.write(",\n".join(json.dumps({"edge": e, "weight": w}) for e, w in weights))
        file.write('],\n"incidences": [')
        before = ""
        for e, group in enumerate(h.hedge_groups.tolist()):
            rows = [(n, "tail") for n in _row(h.sources, h.source_offsets, e)]
            rows += [(n, "head") for n in _row(h.destinations, h.group_offsets, group)]
            for node, direction in rows:
                also = f', "direction": "{direction}"' if directed else ""
                file.write(f'{before}{{"edge": {e}, "node": {node}{also}}}')
                before = ",\n"
            progress.advance()
        file.write("]}\n")
    progress.finish()
    return lost(h, axon_counts=True)


def _node(node: int, size: int) -> dict[str, Any]:
    return {"node": node} if size == 1 else {"node": node, "attrs": {"size": size}}


def _row(ids: Any, offsets: Any, row: int) -> list[int]:
    return list(ids[offsets[row] : offsets[row + 1]].tolist())
