"""Fewest parts: merge parts that fit together; a merge never raises connectivity."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

Array = np.ndarray[Any, Any]


def merge_parts(
    parts: Array,
    n_parts: int,
    loads: Array,
    limits: Array,
    table: Any,
    counts: Array,
    weights: Array,
) -> tuple[Array, int]:
    """Join pairs of parts whose union keeps all limits, the most shared weight first.

    Args:
        parts: int32[n_nodes].
        n_parts: number of parts, empty ones included.
        loads: int64[n_parts, n_loads], additive loads first.
        limits: int64[n_loads].
        table: pins-per-part table on the host.
        counts: int64[n_nets, n_distinct].
        weights: int64[n_nets].

    Returns:
        (int32[n_nodes] parts numbered 0.. without gaps, their number).
    """
    n_nets, n_distinct = counts.shape
    n_additive = len(limits) - n_distinct
    held = table.pins > 0
    nets = np.repeat(np.arange(n_nets), np.diff(table.offsets))[held]
    touching = sparse.csr_array(
        (np.ones(len(nets), np.int64), (table.parts[held], nets)), shape=(n_parts, n_nets)
    )
    columns = [counts[:, c] for c in range(n_distinct)] + [weights]
    shared = [
        np.asarray((touching @ sparse.diags_array(column, dtype=np.int64) @ touching.T).todense())
        for column in columns
    ]
    loads = loads.copy()
    owner = np.arange(n_parts)
    alive = np.asarray(loads.any(axis=1))
    pairs = np.triu(alive[:, None] & alive[None, :], 1)
    while True:
        fits = pairs.copy()
        for load in range(len(limits)):
            union = loads[:, None, load] + loads[None, :, load]
            if load >= n_additive:
                union = union - shared[load - n_additive]
            fits &= union <= limits[load]
        if not fits.any():
            break
        gone, host = divmod(int(np.where(fits, shared[-1], -1).argmax()), n_parts)
        for load in range(n_distinct):
            loads[host, n_additive + load] -= shared[load][gone, host]
        loads[host] += loads[gone]
        owner[owner == gone] = host
        pairs[gone, :] = pairs[:, gone] = False
        row = touching[[host]] + touching[[gone]]
        row.data[:] = 1
        touching = touching + sparse.csr_array(
            (row.data, (np.full(len(row.data), host), row.indices)), shape=touching.shape
        )
        touching.data[:] = 1
        for column, known in zip(columns, shared, strict=True):
            new = np.asarray(touching @ (np.bincount(row.indices, minlength=n_nets) * column))
            known[host, :] = known[:, host] = new
    _, numbered = np.unique(owner[parts], return_inverse=True)
    return numbered.astype(np.int32), int(numbered.max(initial=-1)) + 1
