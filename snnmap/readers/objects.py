"""Networks that a user already holds: NumPy arrays, SciPy matrices, networkx graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from snnmap.errors import InputError
from snnmap.hypergraph import Hypergraph
from snnmap.readers._links import from_matrix
from snnmap.readers.pairs import links_of

Array = np.ndarray[Any, Any]


def is_network_object(value: object) -> bool:
    """Whether :func:`from_object` takes `value`."""
    return (
        isinstance(value, Hypergraph | np.ndarray)
        or scipy.sparse.issparse(value)
        or _is_graph(value)
    )


def from_object(value: Any, *, name: str = "network", **options: Any) -> Hypergraph:
    """The network of a NumPy array, a SciPy sparse matrix or a networkx graph.

    Args:
        value: integers of shape (n, 2) (source, target) or a square matrix; any sparse matrix
            (entry (i, j) links i to j); a networkx graph; a `Hypergraph` is returned as it is.
        name: of the network.
        options: of arrays: `n_nodes`; of matrices and graphs: `bipartite`; of all: `link_weights`
            ("ignore", "max" or "sum": what links' weights say about rates) and `drop_zeros`.

    Raises:
        InputError: the object is of no known kind, or malformed.
        TypeError: an option that this kind of object does not have.
    """
    where = Path(name)
    if isinstance(value, Hypergraph):
        return value
    if scipy.sparse.issparse(value):
        return from_matrix(where, value, name=name, **options)
    if isinstance(value, np.ndarray):
        chosen = {"n_nodes": None, "link_weights": "ignore", "drop_zeros": False, **options}
        return links_of(where, {"pairs": value}, name=name, **chosen)
    if _is_graph(value):
        from snnmap.readers._graphs import from_networkx

        return from_networkx(value, path=where, name=name, **options)
    raise InputError(
        name,
        f"is {type(value).__name__}; expected a file, a NumPy array, a SciPy sparse matrix, a "
        "networkx graph or a Hypergraph",
    )


def _is_graph(value: object) -> bool:
    return all(hasattr(value, method) for method in ("nodes", "edges", "is_directed"))
