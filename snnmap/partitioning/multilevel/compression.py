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

import numpy as np

from snnmap.partitioning.multilevel.config import CompressionConfig
from snnmap.partitioning.multilevel.level import UNLIMITED, Level
from snnmap.progress import SILENT, Progress

Array = Any  # of the engine's array library

STEP = 0x9E3779B97F4A7C15  # between the values that signatures mix


def find_classes(
    engine: Any, level: Level, config: CompressionConfig, progress: Progress = SILENT
) -> tuple[Array, int] | None:
    """(integer[n_nodes] class of each node, their number), or None where there is no such structure.

    None also when `progress` expires.
    """
    n = level.n_nodes
    if n == 0 or config.rounds == 0:
        return None
    most = int(0.98 * n)
    found = engine.classify(level, config.rounds, most, progress)
    if found is None or found.n_classes > most or found.least >= config.keep * n:
        return None
    return found.numbers, found.n_classes


class Classified(NamedTuple):
    """Classes of the last round.

    Attributes:
        numbers: int32[n_nodes], of each node's class.
        n_classes: how many.
        least: how many after the last round with fewer than before.
    """

    numbers: Array
    n_classes: int
    least: int


def classify_in_rounds(
    engine: Any, level: Level, rounds: int, most: int, progress: Progress
) -> Classified | None:
    """Classes of twins, then in up to so many rounds of class twins; None when `progress` expires.

    Until there are more than `most`, or no fewer than before.
    """
    numbers, least = None, level.n_nodes + 1
    for _ in range(rounds + 1):
        if progress.expired():
            return None
        n_classes, numbers = engine.number(engine.sign_nodes(level, numbers))
        if n_classes > most or n_classes >= least:
            break
        least = n_classes
    return Classified(numbers, n_classes, least)


def sign_nodes(engine: Any, level: Level, classes: Array | None) -> Array:
    """uint64[n_nodes]: equal for twins, or, with classes, for class twins.

    What it means, step by step; the engines' ways are in `cpu_compression.py` and ``classes.cu``.
    """
    xp = engine.xp

    def mixed(values: Array, salt: int) -> Array:
        return engine.mix(values, STEP, salt)

    nets = xp.arange(level.n_nets)
    if classes is None:
        inward, outward = mixed(nets, 1), mixed(nets, 77)
    else:
        inward = engine.sum_rows(level.source_offsets, level.source_nodes, mixed(classes, 5))
        sourceless = xp.flatnonzero(level.source_offsets[1:] == level.source_offsets[:-1])
        inward[sourceless] = mixed(nets[sourceless], 3)
        to_pins = engine.sum_rows(level.net_offsets, level.net_pins, mixed(classes, 9))
        outward = mixed(to_pins, 11)
    signatures: Array = engine.sum_rows(level.node_offsets, level.node_nets, inward)
    outbound = engine.sum_rows(level.out_offsets, level.out_nets, outward)
    no_inbound = xp.flatnonzero(level.node_offsets[1:] == level.node_offsets[:-1])
    signatures[no_inbound] = outbound[no_inbound] ^ xp.uint64(STEP)
    return signatures


class Classes(NamedTuple):
    """Nodes by class; within a class by id.

    Attributes:
        order: int32[n_nodes] node ids.
        offsets: int64[n_classes + 1], places of each class in `order`.
        sizes: int64[n_classes], its size (neurons).
    """

    order: Array
    offsets: Array
    sizes: Array

    @property
    def members(self) -> Array:
        """int64[n_classes]: nodes of each class, one at least."""
        return self.offsets[1:] - self.offsets[:-1]


class Pieces(NamedTuple):
    """How classes are split.

    Attributes:
        pieces: int64[n_classes], wanted of each class: a power of two.
        alone: int64[n_classes], nodes without company where those are more than members.
        firsts: int64[n_classes + 1], first chunk of each class, then the number of chunks.
    """

    pieces: Array
    alone: Array
    firsts: Array


def sort_classes(engine: Any, level: Level, classes: Array, n_classes: int) -> Classes:
    """Bring the nodes of each class together; the steps of the CPU engine."""
    xp, (order, offsets) = engine.xp, engine.order_by(classes, n_classes)
    sizes = xp.ascontiguousarray(level.resources[:, 0]).view(xp.uint64)
    sizes = engine.sum_rows(offsets, order, sizes).view(xp.int64)
    return Classes(order, offsets, sizes)


def plan_pieces(xp: Any, classes: Classes, largest: int) -> Pieces:
    """Split classes in halves until the pieces are at most about `largest` in size."""
    members = classes.members
    pieces = xp.minimum(_power_of_two(xp, -(-classes.sizes // largest)), _power_of_two(xp, members))
    # Node i of a class is in piece min(i * pieces // members, members - 1).
    alone = xp.minimum(-(-(members - 1) * members // pieces), members)
    chunks = xp.where(pieces <= members, pieces, alone + (alone < members))
    firsts = xp.zeros(len(members) + 1, xp.int64)
    firsts[1:] = xp.cumsum(chunks)
    return Pieces(pieces, alone, firsts)


def _power_of_two(xp: Any, values: Array) -> Array:
    """int64[n]: the smallest power of two that is not below each value; 1 at least."""
    exponents = xp.frexp(xp.maximum(values - 1, 0).astype(np.float64))[1]
    powers: Array = xp.ones_like(values) << exponents.astype(values.dtype)
    return powers


def nest_pieces(xp: Any, classes: Classes, fine: Pieces, coarse: Pieces) -> Array:
    """int32[n_fine]: the chunk of the coarser split that holds each chunk of the finer one.

    The last chunk of a class may lie in several, if there are to be more pieces than members; its last
    node decides.
    """
    places = xp.arange(int(fine.firsts[-1]))
    of = xp.searchsorted(fine.firsts, places, side="right") - 1
    places -= fine.firsts[of]
    members, pieces = classes.members[of], fine.pieces[of]
    some = xp.where(places < fine.alone[of], places, members - 1)
    some = xp.where(pieces <= members, -(-places * members // pieces), some)  # a node of each
    pieces = coarse.pieces[of]
    within = xp.where(
        pieces <= members, some * pieces // members, xp.minimum(some, coarse.alone[of])
    )
    nested: Array = (coarse.firsts[of] + within).astype(np.int32)
    return nested


class Compressed(NamedTuple):
    """What compression made of a network.

    Attributes:
        levels: of chunks, from fine to coarse, each with the map from the level before it; the last is to be searched.
        bundles: int32[its nodes], ascending: the larger chunk that holds each of its chunks; or None.
    """

    levels: list[tuple[Level, Array]]
    bundles: Array | None = None


def compress(
    engine: Any,
    level: Level,
    limits: Array,
    config: CompressionConfig,
    progress: Progress = SILENT,
) -> Compressed:
    """Levels of chunks; none where the network has no structure to use, and when `progress` expires.

    `limits` are on the host.
    """
    classes = find_classes(engine, level, config, progress)
    if classes is None or progress.expired():
        return Compressed([])
    size = int(limits[0])
    if size >= UNLIMITED:
        size = max(int(level.resources[:, 0].sum()) // 8, 1)
    ranked = engine.sort_classes(level, *classes)
    del classes
    shares = [config.finest]
    while shares[-1] > config.coarsest:
        shares.append(shares[-1] // 2)
    coarse, fine = ([max(size // (s * step), 1) for s in shares] for step in (1, config.step))
    counts = engine.count_chunks(ranked, coarse + fine)
    enough = (i for i in range(len(shares)) if counts[i] <= config.nodes)
    chosen = next(enough, len(shares) - 1)
    n_chunks, n_finer = counts[chosen], counts[len(shares) + chosen]
    bundles = None
    if 0 < config.bundles < shares[chosen]:
        large = max(size // config.bundles, 1)
        bundles = engine.nest_chunks(ranked, coarse[chosen], large, n_chunks)
    if not n_chunks * 5 // 4 < n_finer < level.n_nodes // 2:
        chunks = engine.split_classes(ranked, coarse[chosen])
        return Compressed([(engine.contract(level, chunks, n_chunks), chunks)], bundles)
    finer = engine.split_classes(ranked, fine[chosen])
    chunks = engine.nest_chunks(ranked, fine[chosen], coarse[chosen], n_finer)
    del ranked
    between = engine.contract(level, finer, n_finer)
    levels = [(between, finer), (engine.contract(between, chunks, n_chunks), chunks)]
    return Compressed(levels, bundles)
