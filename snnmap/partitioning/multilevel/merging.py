"""Fewest parts: merge parts that fit together; a merge never raises connectivity."""

from __future__ import annotations

from typing import Any

import numpy as np

from snnmap.partitioning.multilevel.level import Level
from snnmap.progress import SILENT, Progress

Array = Any  # of the engine's array library

_AT_ONCE = 10  # a turn merges at most one in so many parts, so that the closest go first


def merge_parts(
    engine: Any,
    level: Level,
    parts: Array,
    n_parts: int,
    loads: Array,
    table: Any,
    limits: Array,
    progress: Progress = SILENT,
) -> tuple[Array, int]:
    """Join pairs of parts whose union keeps all limits, the most shared weight first.

    In turns: every part asks for the one it shares most with among those it fits with; the closest
    pairs join. All sums are integers below 2**53 in float64, exact in every order.

    Args:
        engine: where the arrays are.
        level: the level.
        parts: int32[n_nodes].
        n_parts: number of parts, empty ones included.
        loads: int64[n_parts, n_loads], additive loads first.
        table: pins-per-part table.
        limits: int64[n_loads].
        progress: asked between turns whether to stop.

    Returns:
        (int32[n_nodes] parts numbered 0.. without gaps, their number).
    """
    xp, sparse = engine.xp, engine.sparse
    n_nets, n_distinct = level.counts.shape
    n_additive = len(limits) - n_distinct
    columns = [level.counts[:, c].astype(np.float64) for c in range(n_distinct)]
    columns.append(level.net_weights.astype(np.float64))
    used, numbered = xp.unique(parts, return_inverse=True)
    loads = loads[used]
    rows = xp.zeros(n_parts, np.int64)
    rows[used] = xp.arange(len(used))
    entries = xp.flatnonzero(table.pins > 0)
    places = (
        rows[table.parts[entries]],
        xp.searchsorted(table.offsets, entries, side="right") - 1,
    )
    ones = xp.ones(len(entries), np.float64)
    touching = sparse.csr_matrix((ones, places), shape=(len(used), n_nets))
    owner = xp.arange(len(used))
    while len(loads) > 1 and not progress.expired():
        k = len(loads)
        ids = xp.arange(k)
        fits = ids[:, None] != ids[None, :]
        for load in range(n_additive):
            fits &= loads[:, None, load] + loads[None, :, load] <= limits[load]
        able = xp.flatnonzero(fits.any(axis=1))  # the others are too full for any part
        if len(able) == 0:
            break
        each = xp.arange(len(able))
        picks = sparse.csr_matrix((xp.ones(len(able)), (each, able)), shape=(len(able), k))
        fits, some = fits[able][:, able], picks @ touching
        shared = [_gram(some, column) for column in columns]
        for c, load in enumerate(range(n_additive, len(limits))):
            held = loads[able, load]
            fits &= held[:, None] + held[None, :] - shared[c] <= limits[load]
        wish = xp.where(fits, shared[-1], -1.0)
        mates, worth = xp.zeros(k, xp.int64), xp.full(k, -1.0)
        mates[able] = able[wish.argmax(axis=1)]
        worth[able] = wish.max(axis=1)
        hosts = _pair_up(engine.to_host(mates), engine.to_host(worth), max(k // _AT_ONCE, 1))
        left, joined = np.unique(hosts, return_inverse=True)
        n_left = len(left)
        if n_left == k:
            break
        groups = engine.from_host(joined)
        owner = groups[owner]
        joins = sparse.csr_matrix((xp.ones(k, np.float64), (groups, ids)), shape=(n_left, k))
        touching = joins @ touching
        touching.data[:] = 1
        merged = xp.zeros((n_left, len(limits)), np.int64)
        engine.add_at(merged, groups, loads)
        for c in range(n_distinct):
            merged[:, n_additive + c] = (touching @ columns[c]).astype(np.int64)
        loads = merged
    return owner[numbered].astype(np.int32), len(loads)


def _gram(touching: Any, column: Array) -> Array:
    """float64[k, k]: the sum of `column` over the nets that two parts share."""
    scaled = touching.copy()
    scaled.data *= column[scaled.indices]
    return (scaled @ touching.T).toarray()


def _pair_up(mates: Array, worth: Array, most: int) -> Array:
    """int64[k]: the part that each joins, itself for most; the closest disjoint pairs, `most` of them."""
    hosts = np.arange(len(mates))
    taken = np.zeros(len(mates), bool)
    for i in np.argsort(-worth, kind="stable"):
        if worth[i] < 0 or most == 0:
            break
        j = mates[i]
        if not taken[i] and not taken[j]:
            taken[i] = taken[j] = True
            hosts[max(i, j)] = min(i, j)
            most -= 1
    return hosts


def fold_parts(parts: Array, sizes: Array, most: int) -> tuple[Array, int]:
    """At most `most` parts, whatever that overfills: the largest first, each to where least is.

    Args:
        parts: int32[n_nodes].
        sizes: int64[n_parts], size of each part.
        most: parts wanted.

    Returns:
        (int32[n_nodes] parts, their number).
    """
    hosts = np.zeros(len(sizes), np.int32)
    held = np.zeros(most, np.int64)
    for p in np.argsort(-sizes, kind="stable"):
        hosts[p] = held.argmin()
        held[hosts[p]] += sizes[p]
    return hosts[parts], most
