"""Lists of links (edge lists, matrices, graphs) to hypergraphs.

A neuron has one axon: all links out of a neuron form one h-edge. What a link's weight means is not
said by such files: usually it is a synaptic weight, which is no spike rate and is not needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from snnmap.errors import ConfigError, InputError
from snnmap.hypergraph import Hypergraph, Population
from snnmap.readers.checks import located

Array = np.ndarray[Any, Any]

LINK_WEIGHTS = ("ignore", "max", "sum")


def check_link_weights(link_weights: str) -> None:
    """Refuse an unknown value of the option `link_weights`."""
    if link_weights not in LINK_WEIGHTS:
        raise ConfigError(f"link_weights is {link_weights!r}; expected one of {LINK_WEIGHTS}")


def from_links(
    path: Path,
    n_nodes: int,
    sources: Array,
    targets: Array,
    weights: Array | None = None,
    *,
    link_weights: str = "ignore",
    drop_zeros: bool = False,
    rates: Array | None = None,
    populations: tuple[Population, ...] = (),
    name: str | None = None,
) -> Hypergraph:
    """The network of a list of links; links that repeat are one.

    Args:
        path: where they come from, for messages.
        n_nodes: number of nodes; all ids are below it.
        sources: integer[n_links].
        targets: integer[n_links].
        weights: float[n_links] or None.
        link_weights: what the links' weights say about the axon's rate: ``"ignore"`` (nothing: the
            rate is 1), ``"max"`` or ``"sum"`` of the weights of its links.
        drop_zeros: links of weight zero do not count.
        rates: float[n_nodes], the axons' rates, instead of weights.
        populations: of the network.
        name: default: the file's.
    """
    check_link_weights(link_weights)
    if weights is not None:
        _check_weights(path, weights, negative=link_weights == "ignore")
        if drop_zeros:
            kept = weights != 0
            sources, targets, weights = sources[kept], targets[kept], weights[kept]
    ones = np.ones(len(sources), np.uint8)
    matrix = coo_array((ones, (sources, targets)), shape=(n_nodes, n_nodes)).tocsr()
    if rates is None:
        rates = _rates(n_nodes, sources, weights, link_weights)
    return _from_rows(path, matrix, rates, populations, name)


def from_matrix(
    path: Path,
    matrix: Any,
    *,
    link_weights: str = "ignore",
    drop_zeros: bool = False,
    bipartite: bool = False,
    name: str | None = None,
) -> Hypergraph:
    """The network of a sparse matrix: entry (i, j) links node i to node j.

    Args:
        path: where it comes from, for messages.
        matrix: any SciPy sparse matrix or array, or a dense one; stored zeros are links.
        link_weights: see :func:`from_links`.
        drop_zeros: stored zeros are no links.
        bipartite: rows and columns are two populations, "rows" (inputs) and "columns"; otherwise
            the matrix must be square, and row i and column i are the same node.
        name: default: the file's.
    """
    coo = coo_array(matrix)
    if coo.ndim != 2:
        raise InputError(path, f"has {coo.ndim} dimensions; expected a matrix")
    n_rows, n_columns = coo.shape
    if coo.dtype.kind not in "biuf":
        raise InputError(path, f"holds {coo.dtype}; expected real numbers")
    populations: tuple[Population, ...] = ()
    sources, targets = coo.coords
    n_nodes = n_rows
    if bipartite:
        n_nodes = n_rows + n_columns
        targets = targets.astype(np.int64) + n_rows
        populations = (
            Population("rows", 0, n_rows, (n_rows,), is_input=True),
            Population("columns", n_rows, n_nodes, (n_columns,)),
        )
    elif n_rows != n_columns:
        raise InputError(
            path,
            f"has {n_rows} rows and {n_columns} columns; expected a square matrix, or the option "
            "bipartite for rows and columns that are two populations",
        )
    return from_links(
        path,
        n_nodes,
        sources,
        targets,
        coo.data.astype(np.float64),
        link_weights=link_weights,
        drop_zeros=drop_zeros,
        populations=populations,
        name=name,
    )


def _check_weights(path: Path, weights: Array, *, negative: bool) -> None:
    wrong = ~np.isfinite(weights) if negative else ~(np.isfinite(weights) & (weights >= 0))
    for i in np.flatnonzero(wrong)[:1]:
        expected = "a finite number" if negative else "a finite number >= 0 for a spike rate"
        raise InputError(path, f"weight {weights[i]}; expected {expected}", place=f"link {i}")


def _rates(n_nodes: int, sources: Array, weights: Array | None, link_weights: str) -> Array:
    if weights is None or link_weights == "ignore":
        return np.ones(n_nodes)
    if link_weights == "sum":
        return np.bincount(sources, weights=weights, minlength=n_nodes)
    rates = np.zeros(n_nodes)
    np.maximum.at(rates, sources, weights)
    return rates


def _from_rows(
    path: Path,
    matrix: csr_array[Any],
    rates: Array,
    populations: tuple[Population, ...],
    name: str | None,
) -> Hypergraph:
    offsets = np.asarray(matrix.indptr, np.int64)
    nodes = np.flatnonzero(np.diff(offsets))
    with located(path):
        return Hypergraph.from_hedges(
            len(offsets) - 1,
            nodes,
            np.append(offsets[nodes], offsets[-1]),
            matrix.indices,
            rates[nodes],
            populations=populations,
            name=path.stem if name is None else name,
        ).grouped()
