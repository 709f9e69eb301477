"""Exact structure of layered networks, found from the hypergraph alone.

Shared destination sets are already one net (`Hypergraph.grouped`). Here *classes* of nodes follow
by iterated signatures: two nodes are twins when they lie in the same nets, and class twins when the
classes of the sources of their inbound h-edges agree (nodes without inbound h-edges: the classes of
their destinations). All channels of a pixel become one class, also behind pooling. Signatures are
64-bit sums of hashes; a chance collision would only make one more coarse node, never a wrong result.

Classes are split into equal chunks so that packing stays possible; chunks of a finer split nest in
those of a coarser one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from snnmap.partitioning.multilevel.config import CompressionConfig
from snnmap.partitioning.multilevel.level import UNLIMITED, Level, project
from snnmap.progress import SILENT, Progress

Array = Any  # of the engine's array library

_STEP = 0x9E3779B97F4A7C15


def find_classes(
    engine: Any, level: Level, config: CompressionConfig, progress: Progress = SILENT
) -> Array | None:
    """int64[n_nodes] class of each node, or None where the network has no such structure.

    None also when `progress` expires.
    """
    xp = engine.xp
    n = level.n_nodes
    if n == 0 or config.rounds == 0:
        return None

    def mixed(values: Array, salt: int) -> Array:
        return engine.mix(values.astype(xp.uint64) * xp.uint64(_STEP) + xp.uint64(salt))

    nets = xp.arange(level.n_nets)
    no_inbound = xp.diff(level.node_offsets) == 0
    sourceless = xp.diff(level.source_offsets) == 0
    own = mixed(nets, 3)
    inbound = engine.sum_rows(level.node_offsets, level.node_nets, mixed(nets, 1))
    outbound = engine.sum_rows(level.out_offsets, level.out_nets, mixed(nets, 77))
    n_classes = n + 1
    for _ in range(config.rounds + 1):
        if progress.expired():
            return None
        signatures = xp.where(no_inbound, outbound ^ xp.uint64(_STEP), inbound)
        n_distinct, classes = engine.number(signatures)
        if n_distinct > 0.98 * n:
            return None
        if n_distinct >= n_classes:
            break
        n_classes = n_distinct
        from_sources = engine.sum_rows(level.source_offsets, level.source_nodes, mixed(classes, 5))
        from_sources = xp.where(sourceless, own, from_sources)
        inbound = engine.sum_rows(level.node_offsets, level.node_nets, from_sources)
        to_pins = engine.sum_rows(level.net_offsets, level.net_pins, mixed(classes, 9))
        outbound = engine.sum_rows(level.out_offsets, level.out_nets, mixed(to_pins, 11))
    return classes if n_classes < config.keep * n else None


class Classes(NamedTuple):
    """Nodes by class; within a class by id.

    Attributes:
        order: int64[n_nodes] node ids.
        runs: int64[n_nodes], class of each place in `order`, counted from 0.
        starts: int64[n_classes], first place of each class.
        members: int64[n_classes], its nodes.
        sizes: int64[n_classes], its size (neurons).
    """

    order: Array
    runs: Array
    starts: Array
    members: Array
    sizes: Array


def sort_classes(engine: Any, level: Level, classes: Array) -> Classes:
    """Bring the nodes of each class together."""
    xp = engine.xp
    n = level.n_nodes
    order = xp.argsort(classes, kind="stable")
    ranked = classes[order]
    new = xp.ones(n, bool)
    new[1:] = ranked[1:] != ranked[:-1]
    starts = xp.flatnonzero(new)
    ends = xp.concatenate([starts[1:], xp.array([n])])
    sizes = xp.concatenate([xp.zeros(1, xp.int64), xp.cumsum(level.resources[order, 0])])
    return Classes(order, xp.cumsum(new) - 1, starts, ends - starts, sizes[ends] - sizes[starts])


def count_pieces(xp: Any, classes: Classes, largest: int) -> tuple[Array, int]:
    """(int64[n_classes] into how many pieces each class is split, the chunks that this makes)."""
    pieces = xp.ones(len(classes.starts), xp.int64)
    members = classes.members
    while True:
        too_large = (classes.sizes > pieces * largest) & (pieces < members)
        if not bool(too_large.any()):
            break
        pieces = xp.where(too_large, pieces * 2, pieces)
    # With more pieces than members only the last ones share a chunk (see `split_classes`).
    alone = xp.minimum(-(-(members - 1) * members // pieces), members)
    chunks = xp.where(pieces <= members, pieces, alone + (alone < members))
    return pieces, int(chunks.sum())


def split_classes(engine: Any, classes: Classes, largest: int) -> tuple[Array, int]:
    """Chunks of classes of at most about `largest` in size: (int32[n_nodes] chunk, their number)."""
    xp = engine.xp
    n = len(classes.order)
    pieces, n_chunks = count_pieces(xp, classes, largest)
    members = classes.members[classes.runs]
    chunks = xp.arange(n) - classes.starts[classes.runs]
    chunks = xp.minimum(chunks * pieces[classes.runs] // members, members - 1)
    first = xp.ones(n, bool)
    first[1:] = (chunks[1:] != chunks[:-1]) | (classes.runs[1:] != classes.runs[:-1])
    numbers = xp.cumsum(first, dtype=xp.int32) - xp.int32(1)
    result = xp.empty(n, xp.int32)
    result[classes.order] = numbers
    return result, n_chunks


def compress(
    engine: Any,
    level: Level,
    limits: Array,
    config: CompressionConfig,
    progress: Progress = SILENT,
) -> list[tuple[Level, Array]]:
    """Levels of chunks, from fine to coarse, each with the map from the level before it.

    The last one is to be searched. Empty where the network has no structure to use, and when
    `progress` expires.
    """
    classes = find_classes(engine, level, config, progress)
    if classes is None or progress.expired():
        return []
    size = (
        int(limits[0])
        if int(limits[0]) < UNLIMITED
        else max(int(level.resources[:, 0].sum()) // 8, 1)
    )
    share, ranked = config.finest, sort_classes(engine, level, classes)
    del classes

    def chunks_of(share: int) -> int:
        return count_pieces(engine.xp, ranked, max(size // share, 1))[1]

    while chunks_of(share) > config.nodes and share > config.coarsest:
        share //= 2
    chunks, n_chunks = split_classes(engine, ranked, max(size // share, 1))
    levels: list[tuple[Level, Array]] = []
    current = level
    if n_chunks * 5 // 4 < chunks_of(share * config.step) < level.n_nodes // 2:
        finer, n_finer = split_classes(engine, ranked, max(size // (share * config.step), 1))
        current = engine.contract(level, finer, n_finer)
        levels.append((current, finer))
        chunks = project(engine.xp, chunks, finer, n_finer)
    levels.append((engine.contract(current, chunks, n_chunks), chunks))
    return levels
