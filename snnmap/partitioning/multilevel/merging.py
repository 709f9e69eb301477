"""Fewest parts: merge parts that fit together; a merge never raises connectivity."""

from __future__ import annotations

from typing import Any

import numpy as np

from snnmap.partitioning.multilevel.level import Level
from snnmap.partitioning.multilevel.state import State
from snnmap.progress import SILENT, Progress

Array = Any  # of the engine's array library

AT_ONCE = 10  # a turn merges at most one in so many parts, so that the closest go first


def none_fit(loads: Array, limits: Array, n_additive: int) -> bool:
    """Whether merging would change nothing, as a look at the least of each additive load tells.

    No part is empty then, and no two keep the additive limits together. False means that it may be so still.

    Args:
        loads: int64[n_parts, n_loads] on the host, additive loads first.
        limits: int64[n_loads] on the host.
        n_additive: how many loads are additive.
    """
    if (loads[:, 0] <= 0).any():
        return False
    if len(loads) < 2:
        return True
    least = np.partition(loads[:, :n_additive], 1, axis=0)[:2].sum(axis=0)
    return bool((least > limits[:n_additive]).any())


def merge_parts(
    engine: Any, level: Level, state: State, limits: Array, progress: Progress = SILENT
) -> tuple[Array, int]:
    """Join pairs of parts whose union keeps all limits, the most shared weight first.

    In turns: every part asks for the one it shares most with among those it fits with; the closest
    pairs join. All sums are integers below 2**53 in float64, exact in every order.

    Args:
        engine: where the arrays are.
        level: the level.
        state: a partition of it, empty parts included; it loses its table, if there is one.
        limits: int64[n_loads].
        progress: asked between turns whether to stop.

    Returns:
        (int32[n_nodes] parts numbered 0.. without gaps, their number).
    """
    parts, n_parts, loads = state.parts, state.n_parts, state.loads
    xp, sparse = engine.xp, engine.sparse
    n_distinct = level.counts.shape[1]
    n_additive = len(limits) - n_distinct
    held = xp.zeros(n_parts, bool)
    held[parts] = True
    used = xp.flatnonzero(held)
    loads = loads[used]
    owner = xp.arange(len(used))
    open_parts = _able(xp, *_fit_together(xp, loads, limits, n_additive))
    if len(open_parts) < 2:
        return _renumber(xp, parts, n_parts, used, owner), len(used)
    loads = loads[open_parts]
    small = xp.flatnonzero(_is_small(loads, limits))
    table = state.take_table() or engine.measure(level, parts, n_parts)[0]
    touching, columns = _shared_nets(engine, level, n_parts, table, used[open_parts], small)
    del table  # the largest array here
    shared: list[Array] = []
    while len(open_parts) > 1 and not progress.expired():
        small, fits = _fit_together(xp, loads, limits, n_additive)
        able = _able(xp, small, fits)
        k = len(able)
        if k < 2:
            break
        if k < len(open_parts):  # the others are too full for any part, and stay so
            touching = _rows(engine, touching, able)
            open_parts, loads = open_parts[able], loads[able]
            rows = xp.flatnonzero(fits.any(axis=1))
            shared = [known[rows][:, able] for known in shared]
            small, fits = _fit_together(xp, loads, limits, n_additive)
        some = touching if len(small) == k else _rows(engine, touching, small)
        shared = shared or [_gram(engine, some, touching, column) for column in columns]
        for c, load in enumerate(range(n_additive, len(limits))):
            fits &= loads[small, load][:, None] + loads[None, :, load] - shared[c] <= limits[load]
        wish = xp.where(fits, shared[-1], -1.0)
        mates, worth = small[wish.argmax(axis=0)], wish.max(axis=0)
        mates[small], worth[small] = wish.argmax(axis=1), wish.max(axis=1)
        hosts = _pair_up(engine.to_host(mates), engine.to_host(worth), max(k // AT_ONCE, 1))
        guests = np.flatnonzero(hosts != np.arange(k))
        if len(guests) == 0:
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
        rows = xp.full(k, -1, np.int64)
        rows[small] = xp.arange(len(small))
        one, other = engine.from_host(guests), engine.from_host(hosts[guests])
        one, other = xp.where(rows[one] >= 0, one, other), xp.where(rows[one] >= 0, other, one)
        for c in range(n_distinct):  # what both had counts once
            merged[groups[one], n_additive + c] -= shared[c][rows[one], other].astype(np.int64)
        open_parts, loads = open_parts[kept], merged
        still = xp.flatnonzero(_is_small(loads, limits))
        rows = rows[kept[still]]
        changed = engine.from_host(np.unique(joined[guests]))
        grown = xp.zeros(len(left), bool)
        grown[changed] = True
        some = _rows(engine, touching, changed)
        for i, column in enumerate(columns):
            known, new = shared[i][rows][:, kept], _gram(engine, some, touching, column)
            known[grown[still]] = new[_is_small(loads[changed], limits)]
            known[:, changed] = new.T[still]
            shared[i] = known
    left, numbers = xp.unique(owner, return_inverse=True)
    return _renumber(xp, parts, n_parts, used, numbers), len(left)


def _is_small(loads: Array, limits: Array) -> Array:
    """bool[k]: parts of at most half the size that fits; of any two that fit together, one is."""
    small: Array = 2 * loads[:, 0] <= limits[0]
    return small


def _fit_together(xp: Any, loads: Array, limits: Array, n_additive: int) -> tuple[Array, Array]:
    """(small parts, bool[n_small, k] whether each keeps the additive limits with another part)."""
    small = xp.flatnonzero(_is_small(loads, limits))
    fits = small[:, None] != xp.arange(len(loads))[None, :]
    for load in range(n_additive):
        fits &= loads[small, load][:, None] + loads[None, :, load] <= limits[load]
    return small, fits


def _able(xp: Any, small: Array, fits: Array) -> Array:
    """Parts that fit together with some other."""
    able = fits.any(axis=0)
    able[small] |= fits.any(axis=1)
    return xp.flatnonzero(able)


def _shared_nets(
    engine: Any, level: Level, n_parts: int, table: Any, some_parts: Array, small: Array
) -> tuple[Any, list[Array]]:
    """(sparse parts x nets, 1 where they touch; distinct counts and weight of each of these nets).

    Only nets that a small one of `some_parts` touches: what others share is never asked.
    """
    xp = engine.xp
    asking = xp.zeros(n_parts, bool)
    asking[some_parts[small]] = True
    entries = xp.flatnonzero(asking[table.parts] & (table.pins > 0))
    nets = xp.searchsorted(table.offsets, entries, side="right") - 1
    firsts = xp.ones(len(nets), bool)
    firsts[1:] = nets[1:] != nets[:-1]
    nets = nets[firsts]
    columns = [level.counts[nets, c].astype(np.float64) for c in range(level.counts.shape[1])]
    columns.append(level.net_weights[nets].astype(np.float64))
    lasts = table.offsets[nets + 1]
    ends = xp.cumsum(lasts - table.offsets[nets])  # all entries of these nets
    entries = xp.arange(int(ends[-1]) if len(nets) else 0)
    places = xp.searchsorted(ends, entries, side="right").astype(np.int32)
    entries += (lasts - ends)[places]
    rows = xp.full(n_parts, -1, np.int32)
    rows[some_parts] = xp.arange(len(some_parts))
    rows = rows[table.parts[entries]]
    touch = (table.pins[entries] > 0) & (rows >= 0)
    del entries  # each of these arrays is as large as the table
    rows, places = rows[touch], places[touch]
    ones = xp.ones(len(rows), np.float64)
    shape = (len(some_parts), max(len(nets), 1))
    return engine.sparse.csr_matrix((ones, (rows, places)), shape=shape), columns


def _renumber(xp: Any, parts: Array, n_parts: int, used: Array, numbers: Array) -> Array:
    """int32[n_nodes]: numbers[i] where the part was used[i]."""
    new = xp.empty(n_parts, np.int32)
    new[used] = numbers
    return new[parts]


def _rows(engine: Any, matrix: Any, ids: Array) -> Any:
    """Some rows of a sparse matrix."""
    xp = engine.xp
    picks = (xp.ones(len(ids), np.float64), (xp.arange(len(ids)), ids))
    return engine.sparse.csr_matrix(picks, shape=(len(ids), matrix.shape[0])) @ matrix


def _gram(engine: Any, some: Any, all_parts: Any, column: Array) -> Array:
    """float64[k_some, k]: the sum of `column` over the nets that two parts share."""
    scaled = some.copy()
    scaled.data *= column[scaled.indices]
    product: Array = (all_parts @ scaled.T.tocsr()).toarray().T
    return product


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
