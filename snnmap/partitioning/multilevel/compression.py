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

from typing import Any

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
        distinct, classes = xp.unique(signatures, return_inverse=True)
        if len(distinct) > 0.98 * n:
            return None
        if len(distinct) >= n_classes:
            break
        n_classes = len(distinct)
        from_sources = engine.sum_rows(level.source_offsets, level.source_nodes, mixed(classes, 5))
        from_sources = xp.where(sourceless, own, from_sources)
        inbound = engine.sum_rows(level.node_offsets, level.node_nets, from_sources)
        to_pins = engine.sum_rows(level.net_offsets, level.net_pins, mixed(classes, 9))
        outbound = engine.sum_rows(level.out_offsets, level.out_nets, mixed(to_pins, 11))
    return classes if n_classes < config.keep * n else None


def split_classes(engine: Any, level: Level, classes: Array, largest: int) -> tuple[Array, int]:
    """Chunks of classes of at most about `largest` in size: (int32[n_nodes] chunk, their number)."""
    xp = engine.xp
    n = level.n_nodes
    order = xp.argsort(classes, kind="stable")
    ranked = classes[order]
    new = xp.ones(n, bool)
    new[1:] = ranked[1:] != ranked[:-1]
    starts = xp.flatnonzero(new)
    runs = xp.cumsum(new) - 1
    members = xp.diff(xp.concatenate([starts, xp.array([n])]))
    sizes = xp.concatenate([xp.zeros(1, xp.int64), xp.cumsum(level.resources[order, 0])])
    sizes = sizes[xp.concatenate([starts[1:], xp.array([n])])] - sizes[starts]
    pieces = xp.ones(len(starts), xp.int64)
    while True:
        too_large = (sizes > pieces * largest) & (pieces < members)
        if not bool(too_large.any()):
            break
        pieces = xp.where(too_large, pieces * 2, pieces)
    places = xp.arange(n) - starts[runs]
    chunks = xp.minimum(places * pieces[runs] // members[runs], members[runs] - 1)
    first = xp.ones(n, bool)
    first[1:] = (chunks[1:] != chunks[:-1]) | new[1:]
    numbers = (xp.cumsum(first) - 1).astype(xp.int32)
    result = xp.empty(n, xp.int32)
    result[order] = numbers
    return result, int(numbers[-1]) + 1


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
    share = config.finest
    chunks, n_chunks = split_classes(engine, level, classes, max(size // share, 1))
    while n_chunks > config.nodes and share > config.coarsest:
        share //= 2
        chunks, n_chunks = split_classes(engine, level, classes, max(size // share, 1))
    levels: list[tuple[Level, Array]] = []
    finer, n_finer = split_classes(engine, level, classes, max(size // (share * config.step), 1))
    current = level
    if n_chunks * 5 // 4 < n_finer < level.n_nodes // 2:
        current = engine.contract(level, finer, n_finer)
        levels.append((current, finer))
        chunks = project(engine.xp, chunks, finer, n_finer)
    levels.append((engine.contract(current, chunks, n_chunks), chunks))
    return levels
