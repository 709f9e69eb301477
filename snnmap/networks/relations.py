"""Links between two sets of neurons in grouped form, and how they compose.

A :class:`Relation` says which elements of a target array each element of a source array reaches.
Sources that reach the same targets share one *row*, so a dense layer is one row and a convolution
one row a pixel, whatever the number of channels:

    source s ---> rows[s] ---> targets[offsets[row] : offsets[row + 1]]

Operators without neurons of their own (a pooling or a flattening between two layers of neurons)
are relations too; :meth:`Relation.then` joins two of them without ever listing single links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from snnmap import _csr
from snnmap.networks import _kernels
from snnmap.parallel import for_chunks

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, slots=True)
class Relation:
    """Which targets each source reaches.

    Attributes:
        rows: int32[n_sources], the row of each source; -1 reaches nothing.
        offsets: int64[n_rows + 1] into `targets`.
        targets: int32[n_pins], local ids 0..n_targets-1, ascending and distinct within a row.
        n_targets: size of the target array.
    """

    rows: Array
    offsets: Array
    targets: Array
    n_targets: int

    @property
    def n_sources(self) -> int:
        """Size of the source array."""
        return len(self.rows)

    @property
    def n_rows(self) -> int:
        """Number of stored target sets."""
        return len(self.offsets) - 1

    def row(self, source: int) -> Array:
        """int32[...]: the targets of one source."""
        row = self.rows[source]
        return self.targets[self.offsets[row] : self.offsets[row + 1]] if row >= 0 else _NOTHING

    def fan_outs(self) -> Array:
        """int64[n_sources]: number of targets of each source."""
        counts = np.append(np.diff(self.offsets), 0)
        return np.asarray(counts[self.rows])

    def then(self, following: Relation) -> Relation:
        """The relation that leads through this one and `following`, a target reached twice once.

        Cost: the stored pins of both and of the result. Sources whose targets have the same onward
        rows share a row again, so channels that a pooling told apart are joined by the convolution
        after it.
        """
        if following.n_sources != self.n_targets:
            raise ValueError(f"{self.n_targets} targets meet {following.n_sources} sources")
        onward_rows, onward_offsets = following.rows, following.offsets
        if (onward_rows < 0).any():  # an extra empty row for those that reach nothing
            onward_rows = np.where(onward_rows < 0, following.n_rows, onward_rows)
            onward_offsets = np.append(onward_offsets, onward_offsets[-1])
        n_onward = len(onward_offsets) - 1
        list_offsets, lists = _csr.contract(self.offsets, self.targets, onward_rows, n_onward)
        row_of, firsts = _csr.group_equal_rows(lists, list_offsets[:-1], np.diff(list_offsets))
        counts = np.diff(list_offsets)[firsts]
        distinct_offsets = _csr.offsets_of(counts)
        lists = _csr.take_rows(lists, list_offsets[firsts], counts, distinct_offsets)
        totals = np.concatenate([[0], np.cumsum(np.diff(onward_offsets)[lists])])
        offsets = totals[distinct_offsets]
        targets = np.empty(int(offsets[-1]), np.int32)
        for_chunks(
            _kernels.join_rows, len(firsts), lists, distinct_offsets, onward_offsets,
            following.targets, targets, offsets, offsets=offsets,
        )  # fmt: skip
        offsets, targets = _csr.sort_unique(offsets, targets)
        rows = np.append(row_of, -1)[self.rows].astype(np.int32)
        return Relation(rows, offsets, targets, following.n_targets)

    def relabel(self, new_ids: Array, n_targets: int) -> Relation:
        """The same relation with target t called ``new_ids[t]`` (distinct; -1 drops the target)."""
        targets = np.asarray(new_ids, np.int32)[self.targets]
        offsets = self.offsets
        if (targets < 0).any():
            kept = targets >= 0
            offsets = np.concatenate([[0], np.cumsum(kept)])[offsets]
            targets = targets[kept]
        offsets, targets = _csr.sort_unique(offsets, targets)
        return Relation(self.rows, offsets, targets, n_targets)


_NOTHING = np.empty(0, np.int32)


def identity(n: int) -> Relation:
    """Element i reaches element i (n of them)."""
    return one_to_one(n, n)


def one_to_one(n_sources: int, n_targets: int) -> Relation:
    """Element i reaches element i, as far as both go: ``min(n_sources, n_targets)`` links."""
    n = min(n_sources, n_targets)
    rows = np.full(n_sources, -1, np.int32)
    rows[:n] = np.arange(n)
    return Relation(rows, np.arange(n + 1, dtype=np.int64), np.arange(n, dtype=np.int32), n_targets)


def chain(n: int) -> Relation:
    """Element i reaches element i + 1; the last reaches nothing."""
    moved = np.arange(1, n + 1, dtype=np.int32)
    moved[n - 1 :] = -1
    return one_to_one(n, n).relabel(moved, n)


def dense(n_sources: int, n_targets: int) -> Relation:
    """Every source reaches every target: one row."""
    offsets = np.array([0, n_targets], np.int64)
    return Relation(
        np.zeros(n_sources, np.int32), offsets, np.arange(n_targets, dtype=np.int32), n_targets
    )


def from_rows(offsets: Array, targets: Array, n_targets: int, *, share: bool = True) -> Relation:
    """One row a source, as CSR; `targets` may be unsorted and hold duplicates.

    Args:
        offsets: int64[n_sources + 1].
        targets: integer[offsets[-1]], values 0..n_targets-1.
        n_targets: size of the target array.
        share: find sources with equal rows and store their row once.
    """
    offsets = np.array(offsets, np.int64)
    offsets, pins = _csr.sort_unique(offsets, np.array(targets, np.int32))
    n_sources = len(offsets) - 1
    if not share:
        return Relation(np.arange(n_sources, dtype=np.int32), offsets, pins, n_targets)
    counts = np.diff(offsets)
    row_of, firsts = _csr.group_equal_rows(pins, offsets[:-1], counts)
    if len(firsts) < n_sources:
        shared = _csr.offsets_of(counts[firsts])
        pins = _csr.take_rows(pins, offsets[firsts], counts[firsts], shared)
        offsets = shared
    return Relation(row_of.astype(np.int32), offsets, pins, n_targets)


def from_weights(weights: Array, *, drop_zeros: bool = False) -> Relation:
    """Links of a weight matrix.

    Args:
        weights: any[n_targets, n_sources], as frameworks store them (row = output).
        drop_zeros: a weight of exactly 0 is no link; by default it is one.
    """
    n_targets, n_sources = weights.shape
    if not drop_zeros:
        return dense(n_sources, n_targets)
    linked = (np.asarray(weights) != 0).T
    sources, targets = np.nonzero(linked)
    offsets = _csr.offsets_of(np.bincount(sources, minlength=n_sources))
    return from_rows(offsets, targets, n_targets)


def from_links(sources: Array, targets: Array, n_sources: int, n_targets: int) -> Relation:
    """Links as pairs (sources[i], targets[i]): integer arrays, any order, duplicates joined."""
    sources = np.asarray(sources, np.int64)
    order = np.argsort(sources, kind="stable")
    offsets = _csr.offsets_of(np.bincount(sources, minlength=n_sources))
    return from_rows(offsets, np.asarray(targets)[order], n_targets)
