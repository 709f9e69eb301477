"""Node populations of SONATA files: ids in any order, virtual nodes, implied populations."""

from __future__ import annotations

from typing import Any

import numpy as np

from snnmap.hypergraph import MAX_NODES
from snnmap.readers._hdf5 import Fields

Array = np.ndarray[Any, Any]
Types = dict[int, dict[str, str]]


class Nodes:
    """One SONATA population and where its nodes stand in the network.

    Args:
        name: of the population.
        ids: integer[n] node ids in the file's order; None if they are 0..n-1.
        n: how many nodes.
        virtual: bool[n], which are external inputs.
        implied: the file of the nodes was not given; grown to hold every id that edges name.
    """

    def __init__(
        self, name: str, ids: Array | None, n: int, virtual: Array, *, implied: bool = False
    ) -> None:
        self.name = name
        self.n = n
        self.virtual = virtual
        self.implied = implied
        self.ids = ids
        self.start = 0
        self._order = None if ids is None else np.argsort(ids, kind="stable")
        self._sorted = None if ids is None or self._order is None else ids[self._order]

    def find(self, ids: Array) -> tuple[Array, int]:
        """(int64 positions of node ids, first entry that is no node or -1)."""
        ids = ids.astype(np.int64, copy=False)
        if self.implied:
            bad = np.flatnonzero((ids < 0) | (ids > MAX_NODES))
            if not len(bad) and len(ids):
                self.n = max(self.n, int(ids.max()) + 1)
            return ids, int(bad[0]) if len(bad) else -1
        if self._sorted is None or self._order is None:
            bad = np.flatnonzero((ids < 0) | (ids >= self.n))
            return ids, int(bad[0]) if len(bad) else -1
        places = np.minimum(np.searchsorted(self._sorted, ids), max(self.n - 1, 0))
        bad = np.flatnonzero(self._sorted[places] != ids) if self.n else np.arange(len(ids))
        if len(bad):
            return ids, int(bad[0])
        return self._order[places], -1

    def parts(self) -> list[tuple[str, Array, bool]]:
        """(name, positions, is_input) of its neurons and its virtual nodes, whichever there are."""
        if self.implied:
            return [(self.name, np.arange(self.n), False)]
        inner, outer = np.flatnonzero(~self.virtual), np.flatnonzero(self.virtual)
        if not len(outer):
            return [(self.name, inner, False)]
        if not len(inner):
            return [(self.name, outer, True)]
        return [(self.name, inner, False), (virtual_name(self.name), outer, True)]


def virtual_name(population: str) -> str:
    """Name for the virtual nodes of a population that also has others."""
    return f"{population} (virtual)"


def read_nodes(group: Fields, name: str, types: Types, stated: bool | None) -> Nodes:
    """One population of a node file.

    Args:
        group: ``/nodes/<name>``.
        name: of the population.
        types: the table of node types.
        stated: whether a config says that the population is virtual; None if it does not say.
    """
    group.dataset("node_type_id")  # its size is checked before memory is taken
    n = group.shape("node_type_id")[0] if group.shape("node_type_id") else 0
    ids = None
    if group.has("node_id"):
        if group.shape("node_id") != (n,):
            raise group.error(
                f"has shape {group.shape('node_id')}; node_type_id has {n} entries", "node_id"
            )
        ids = whole(group, "node_id", n)
        if (ids == np.arange(n, dtype=ids.dtype)).all():
            ids = None
        elif len(np.unique(ids)) < n:
            raise group.error("holds an id twice; expected distinct ids", "node_id")
    virtual = np.zeros(n, bool)
    if stated is not None:
        virtual[:] = stated
        return Nodes(name, ids, n, virtual)
    type_ids = whole(group, "node_type_id", n)
    for type_id in np.unique(type_ids):
        row = types.get(int(type_id), {})
        virtual[type_ids == type_id] = row.get("model_type") == "virtual"
    for inner in group.children():  # values in the HDF5 file override those of the CSV
        models = group.child(inner)
        if models.has("model_type"):
            members = np.flatnonzero(whole(group, "node_group_id", n) == int(inner))
            rows = whole(group, "node_group_index", n)[members]
            kinds = _model_types(models)
            if len(rows) and not 0 <= rows.min() <= rows.max() < len(kinds):
                raise group.error(
                    f"{rows.max()} is outside the {len(kinds)} entries of group {inner}",
                    "node_group_index",
                )
            virtual[members] = kinds[rows] == "virtual"
    return Nodes(name, ids, n, virtual)


def _model_types(models: Fields) -> Array:
    """object[n]: the model_type of each entry; numbers stand for entries of ``@library``."""
    if models.is_text("model_type"):
        return models.texts("model_type")
    codes = models.array("model_type").astype(np.int64)
    if not models.has("@library"):
        raise models.error(
            "holds numbers but there is no @library to say what they mean", "model_type"
        )
    library = models.child("@library").texts("model_type")
    if codes.size and not 0 <= codes.min() <= codes.max() < library.size:
        raise models.error(
            f"holds {codes.max()}; @library has {library.size} entries", "model_type"
        )
    return np.asarray(library[codes])


def whole(group: Fields, name: str, n: int) -> Array:
    """int64[n] of whole numbers, checked."""
    values = group.array(name)
    if values.shape != (n,) or values.dtype.kind not in "iu":
        raise group.error(
            f"holds {values.dtype} of shape {values.shape}; expected {n} whole numbers", name
        )
    if values.dtype == np.uint64 and n and values.max() > 2**63 - 1:
        raise group.error(f"holds {values.max()}; expected ids below 2^63", name)
    return values.astype(np.int64)
