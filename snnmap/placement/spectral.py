"""Spectral placement: parts at their coordinates in the slowest modes of the flow graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from snnmap.placement.flows import Flows
from snnmap.placement.task import Task

Array = np.ndarray[Any, Any]

DENSE_LIMIT = 400
"""Up to so many parts all eigenvectors are computed at once, exactly."""


def spectral(task: Task) -> Array:
    """Parts by eigenvectors 2 and 3 of the normalised Laplacian, spread over free cells.

    These minimise the sum of rate x squared distance over all layouts of equal spread;
    :func:`spread` then gives every part a cell of its own and keeps the layout's left-right and
    top-down order.
    """
    return spread(task, embedding(task.flows))


def embedding(flows: Flows) -> Array:
    """float64[n_parts, 2]: coordinates of parts; signs are fixed so that runs agree.

    Random-walk eigenvectors, i.e. those of D^-1/2 A D^-1/2 scaled by D^-1/2. Parts without any flow
    sit at 0.
    """
    n = flows.n_parts
    if n < 3:
        return np.stack([np.arange(n), np.zeros(n)], axis=1).astype(float)
    rates = flows.rates / max(int(flows.rates.max(initial=1)), 1)
    adjacency = sparse.csr_array((rates, flows.neighbours, flows.offsets), shape=(n, n))
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    inverse = np.divide(1.0, np.sqrt(degree), out=np.zeros(n), where=degree > 0)
    walk = sparse.csr_array(adjacency.multiply(inverse[:, None]).multiply(inverse[None, :]))
    vectors = _largest(walk, 3)[:, 1:]
    vectors = vectors * inverse[:, None]
    peaks = vectors[np.abs(vectors).argmax(axis=0), np.arange(2)]
    return np.asarray(vectors * np.where(peaks < 0, -1.0, 1.0))


def _largest(matrix: Any, k: int) -> Array:
    """float64[n, k]: eigenvectors of the k largest eigenvalues, falling."""
    n = matrix.shape[0]
    if n <= DENSE_LIMIT:
        return np.asarray(np.linalg.eigh(matrix.toarray())[1][:, ::-1][:, :k])
    start = np.cos(np.arange(n))
    try:
        values, vectors = eigsh(matrix, k, which="LA", v0=start, ncv=40, tol=1e-4, maxiter=200)
    except ArpackNoConvergence as error:
        values, vectors = error.eigenvalues, error.eigenvectors
        missing = k - len(values)
        slow = np.cos(np.outer(np.arange(n), np.pi * np.arange(1, missing + 1) / n))
        values = np.concatenate([values, -np.ones(missing)])
        vectors = np.concatenate([vectors.reshape(n, -1), slow], axis=1)
    return np.asarray(vectors[:, np.argsort(-values, kind="stable")])


def spread(task: Task, points: Array) -> Array:
    """Give every part a free cell near its point: a legal layout with the same order.

    The free cells are halved along their longer side again and again, and the parts with them, by
    their coordinate along that side (ties by part).

    Args:
        task: parts and cells.
        points: float64[n_parts, 2].

    Returns:
        int64[n_parts]: cells of ``task.region``.
    """
    tight = task.tight
    parts = tight.movable
    n = len(parts)
    cells = _nearest_the_middle(tight.cores, tight.free_cells, n)
    cores = tight.cores[cells]
    ranks = np.empty((n, 2), np.int64)  # of cells along x and y, distinct
    ranks[np.lexsort((cores[:, 1], cores[:, 0])), 0] = np.arange(n)
    ranks[np.lexsort((cores[:, 0], cores[:, 1])), 1] = np.arange(n)
    values = [np.unique(points[:, axis], return_inverse=True)[1] for axis in (0, 1)]
    part_ranks = np.stack(values, axis=1)
    here = np.arange(n)  # places in `cells` in the order of `parts`
    bounds = np.array([0, n])
    while np.diff(bounds).max() > 1:  # all blocks of a level at once
        sizes = np.diff(bounds)
        block = np.repeat(np.arange(len(sizes)), sizes)
        now = cores[here]
        spans = np.maximum.reduceat(now, bounds[:-1]) - np.minimum.reduceat(now, bounds[:-1])
        axis = (spans[:, 1] > spans[:, 0]).astype(np.int64)[block]
        base = block * len(points)
        here = here[np.argsort(base + ranks[here, axis])]
        parts = parts[np.argsort(base + part_ranks[parts, axis], kind="stable")]
        bounds = np.unique(np.concatenate([bounds, bounds[:-1] + sizes // 2]))
    cells = cells[here]
    cell_of = task.region.fixed.copy()
    cell_of[parts] = task.region.cells_of(tight.cores[cells])
    return cell_of


def _nearest_the_middle(cores: Array, cells: Array, n: int) -> Array:
    """The `n` of `cells` closest to the middle of them all."""
    if len(cells) <= n:
        return cells
    away = np.abs(cores[cells] - cores[cells].mean(axis=0)).max(axis=1)
    return np.sort(cells[np.argsort(away, kind="stable")[:n]])
