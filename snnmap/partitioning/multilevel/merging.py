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
    owner = open_parts = xp.arange(len(used))  # parts may still grow while they are open
    shared: list[Array] = []
    while len(open_parts) > 1 and not progress.expired():
        k = len(open_parts)
        ids = xp.arange(k)
        fits = ids[:, None] != ids[None, :]
        for load in range(n_additive):
            fits &= loads[:, None, load] + loads[None, :, load] <= limits[load]
        able = xp.flatnonzero(fits.any(axis=1))
        if len(able) < k:  # the others are too full for any part, and stay so
            fits = fits[able][:, able]
            touching = _rows(engine, touching, able)
            open_parts, loads = open_parts[able], loads[able]
            shared = [known[able][:, able] for known in shared]
            k = len(able)
        if k < 2:
            break
        shared = shared or [_gram(touching, touching, column) for column in columns]
        for c, load in enumerate(range(n_additive, len(limits))):
            fits &= loads[:, None, load] + loads[None, :, load] - shared[c] <= limits[load]
        wish = xp.where(fits, shared[-1], -1.0)
        mates, worth = engine.to_host(wish.argmax(axis=1)), engine.to_host(wish.max(axis=1))
        hosts = _pair_up(mates, worth, max(k // _AT_ONCE, 1))
        grown = np.unique(hosts[hosts != np.arange(k)])
        if len(grown) == 0:
            break
        left, joined = np.unique(hosts, return_inverse=True)
        target = xp.arange(len(used))
        target[open_parts] = open_parts[engine.from_host(hosts)]
        owner = target[owner]
        groups, kept = engine.from_host(joined), engine.from_host(left)
        joins = (xp.ones(k, np.float64), (groups, xp.arange(k)))
        touching = sparse.csr_matrix(joins, shape=(len(left), k)) @ touching
        touching.data[:] = 1
        merged = xp.zeros((len(left), len(limits)), np.int64)
        engine.add_at(merged, groups, loads)
        for c in range(n_distinct):
            merged[:, n_additive + c] = (touching @ columns[c]).astype(np.int64)
        open_parts, loads = open_parts[kept], merged
        changed = engine.from_host(np.searchsorted(left, grown))
        some = _rows(engine, touching, changed)
        for i, column in enumerate(columns):
            known, new = shared[i][kept][:, kept], _gram(some, touching, column)
            known[changed] = new
            known[:, changed] = new.T
            shared[i] = known
    left, numbers = xp.unique(owner, return_inverse=True)
    return numbers[numbered].astype(np.int32), len(left)


def _rows(engine: Any, matrix: Any, ids: Array) -> Any:
    """Some rows of a sparse matrix."""
    xp = engine.xp
    picks = (xp.ones(len(ids), np.float64), (xp.arange(len(ids)), ids))
    return engine.sparse.csr_matrix(picks, shape=(len(ids), matrix.shape[0])) @ matrix


def _gram(some: Any, all_parts: Any, column: Array) -> Array:
    """float64[k_some, k]: the sum of `column` over the nets that two parts share."""
    scaled = some.copy()
    scaled.data *= column[scaled.indices]
    return (scaled @ all_parts.T).toarray()


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
