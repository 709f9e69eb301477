"""The sequential multi-level method under limits on axons, made fair.

Heavy-edge matching, best pairs first, merges nodes for as long as any pair fits; the coarse nodes
that remain are the parts. They are then unfolded level by level, with greedy sweeps and FM passes
on each. Limits are inclusive and exact on every level, because contraction keeps the roles of pins
and the number of axons of an h-edge; gains are those of the connectivity; no valid state is left
for a worse one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.partitioning.baselines._kernels_cells import cells_of
from snnmap.partitioning.baselines._kernels_grow import fill_in_order, growing
from snnmap.partitioning.baselines._kernels_match import (
    match_nodes,
    matching,
    number_pairs,
    rate_nodes,
)
from snnmap.partitioning.baselines._kernels_refine import fm_pass, moves, sweep
from snnmap.partitioning.baselines.network import Network, network_of, read_only
from snnmap.partitioning.baselines.overlap import grow_parts
from snnmap.partitioning.result import Partition
from snnmap.progress import SILENT, Progress

Array = np.ndarray[Any, Any]

_CHUNK = 4096  # nodes between two looks at the clock
_WINDOW = 512  # candidates for packing nodes whose neighbours do not fit
_MIN_SHRINK = 0.05  # a level that merges less is not kept as one of its own
_MAX_SWEEPS = 8
_MAX_PASSES = 3
_LEAST_SHARE = 0.05  # of the best sweep's gain, below which another one does not pay
_PATIENCE = 200  # losing moves in a row before an FM pass gives up
_UPDATES = 1  # nodes that an FM pass rates anew after its moves, per node of the level


@dataclass
class _Level:
    hypergraph: Hypergraph
    synapses: Array
    clusters: Array | None = None  # coarse node of each node, once there is a coarser level


def partition_hierarchical(
    hypergraph: Hypergraph, limits: Limits, *, seed: int = 0, progress: Progress = SILENT
) -> Partition:
    """Multi-level partition by pair matching and FM refinement, on one thread.

    Args:
        hypergraph: the network.
        limits: of a part; every node must fit a part of its own.
        seed: of the order in which nodes choose partners and are refined.
        progress: told of every level; once it expires, the parts are projected without further
            refinement and marked incomplete.
    """
    rng = np.random.default_rng(seed)
    clock = {"coarsen": time.perf_counter()}
    progress.start("coarsen", hypergraph.n_nodes, "neurons")
    levels = _coarsen(hypergraph, limits, rng, progress)
    progress.finish()
    clock["initial"] = time.perf_counter()
    parts, depth = _initial_parts(levels, limits, progress)
    clock["refine"] = time.perf_counter()
    progress.start("refine", depth + 1, "levels")
    for i in range(depth, -1, -1):
        level = levels[i]
        if level.clusters is not None and i < depth:
            parts = parts[level.clusters]
        if not progress.expired():
            parts = _refine(
                network_of(level.hypergraph, limits, synapses=level.synapses), parts, rng, progress
            )
        del levels[i + 1 :]
        progress.advance(1)
    progress.finish()
    ends = [*list(clock.values())[1:], time.perf_counter()]
    return Partition(
        parts,
        int(parts.max()) + 1 if len(parts) else 0,
        "hierarchical",
        seed=seed,
        complete=not progress.expired(),
        seconds={name: end - clock[name] for name, end in zip(clock, ends, strict=True)},
    )


def _coarsen(
    hypergraph: Hypergraph, limits: Limits, rng: np.random.Generator, progress: Progress
) -> list[_Level]:
    """Levels from fine to coarse, until no pair of coarse nodes fits into one part."""
    levels = [_Level(hypergraph, hypergraph.fan_ins)]
    coarse, window = levels[0], 0
    while not progress.expired():
        n_nodes = coarse.hypergraph.n_nodes
        clusters, n_coarse = _match(coarse, limits, rng, window, progress)
        if n_coarse > (1 - _MIN_SHRINK) * n_nodes and window == 0:
            window = _WINDOW
        elif n_coarse == n_nodes:
            break
        if n_coarse == n_nodes:
            continue
        synapses = np.zeros(n_coarse, np.int64)
        np.add.at(synapses, clusters, coarse.synapses)
        coarse = _Level(coarse.hypergraph.contract(clusters), synapses)
        last = levels[-1]
        last.clusters = clusters if last.clusters is None else clusters[last.clusters]
        if n_coarse <= (1 - _MIN_SHRINK) * last.hypergraph.n_nodes:
            levels.append(coarse)
        progress.advance(n_nodes - n_coarse)
    if levels[-1] is not coarse:
        levels.append(coarse)
    return levels


def _match(
    level: _Level, limits: Limits, rng: np.random.Generator, window: int, progress: Progress
) -> tuple[Array, int]:
    """(coarse node of each node, number of coarse nodes) of one round of matching."""
    h = level.hypergraph
    net = network_of(h, limits, synapses=level.synapses)
    state = matching(h.n_nodes, h.n_groups)
    ratings = np.full(h.n_nodes, -1, np.int64)
    bounds = [*range(0, h.n_nodes, _CHUNK), h.n_nodes]
    for start, stop in pairwise(bounds):
        if progress.expired():
            break
        rate_nodes(net, state, 0, ratings, start, stop)
    order = rng.permutation(h.n_nodes)  # among equals
    order = order[np.argsort(-ratings[order], kind="stable")]
    for start, stop in pairwise(bounds):
        if progress.expired():
            break
        match_nodes(net, state, order, window, start, stop)
    clusters = np.empty(h.n_nodes, np.int32)
    return clusters, number_pairs(state.mates, clusters)


def _initial_parts(levels: list[_Level], limits: Limits, progress: Progress) -> tuple[Array, int]:
    """(parts, level they belong to): the coarsest nodes, or what packs them into fewer parts.

    Where coarse nodes outnumber the cores, or coarsening was stopped, they are packed greedily; the
    coarsest level on which that succeeds is taken, or the finest.
    """
    coarsest = levels[-1].hypergraph.n_nodes
    wanted = limits.max_parts or coarsest
    if coarsest <= wanted and not progress.expired():
        return np.arange(coarsest, dtype=np.int32), len(levels) - 1
    for depth in range(len(levels) - 1, -1, -1):
        level = levels[depth]
        net = network_of(level.hypergraph, limits, synapses=level.synapses)
        if progress.expired():
            parts = np.full(level.hypergraph.n_nodes, -1, np.int32)
            state = growing(level.hypergraph.n_groups, level.hypergraph.n_hedges)
            n_parts = fill_in_order(net, state, parts, -1) + 1
        else:
            parts, n_parts, _ = grow_parts(net, SILENT)
        if n_parts <= wanted:
            break
    return parts, depth


def _refine(net: Network, parts: Array, rng: np.random.Generator, progress: Progress) -> Array:
    """Sweeps, then FM passes, while they gain; parts that became empty are closed up."""
    parts = np.array(parts, np.int32)
    n_nodes, n_groups, n_parts = len(parts), len(net.group_axons), int(parts.max(initial=-1)) + 1
    cells = cells_of(net, read_only(parts), n_parts)
    work = moves(n_nodes, n_groups, n_parts)
    most = 0
    for _ in range(_MAX_SWEEPS):
        order, gain = rng.permutation(n_nodes), 0
        for start in range(0, n_nodes, _CHUNK):
            if progress.expired():
                break
            gain += sweep(net, cells, work, parts, order, start, min(start + _CHUNK, n_nodes))
        most = max(most, gain)
        if gain <= _LEAST_SHARE * most:
            break
    for _ in range(_MAX_PASSES):
        if progress.expired() or not fm_pass(
            net, cells, work, parts, _PATIENCE, _UPDATES * n_nodes
        ):
            break
    _, closed_up = np.unique(parts, return_inverse=True)
    return closed_up.astype(np.int32)
