"""Memetic multilevel search on a small level: the quality of the whole product is found here.

A small level (a class quotient of a layered network, a circuit, the coarse end of a reservoir) is
solved by a steady population of partitions:

    individual   = refine(uncoarsen(coarsen to the end))        coarse nodes are the first parts
    offspring    = the same, but never merging across a border of either parent, from the better one
    V-cycle      = offspring of one parent with itself

Refinement is Fiduccia-Mattheyses with soft limits: overload has a price that rises within each
level. All is integer, each task has its own seed, and a generation's tasks are drawn
before any of them runs, so that the result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from snnmap.parallel import each_task, map_tasks
from snnmap.partitioning.multilevel import _kernels_cluster as kcl
from snnmap.partitioning.multilevel import _kernels_individual as ki
from snnmap.partitioning.multilevel import _kernels_search as ks
from snnmap.partitioning.multilevel.config import SearchConfig
from snnmap.partitioning.multilevel.level import UNLIMITED, Level, contract_small, project
from snnmap.progress import SILENT, Progress

Array = np.ndarray[Any, Any]
Levels = list[
    tuple[Level, Array]
]  # from fine to coarse, with the map from the one before; the first has none

_NO_MAP = np.zeros(0, np.int32)
STALLED = 0.98  # a turn that keeps more of the nodes merges (nearly) nothing
ENOUGH = 0.7  # a level that keeps less of the nodes is worth being one
NEXT_TURN = 1009


class Individual(NamedTuple):
    """A partition with its cost: (overload, connectivity) folded into one integer.

    Its parts are int32[n_nodes], or where they lie on a device.
    """

    cost: int
    connectivity: int
    overload: int
    n_parts: int
    parts: Any


cost_of = attrgetter("cost")


def _through(bundled: tuple[Level, Array], levels: Levels) -> Levels:
    """What follows on the finest level where `levels` follow on that of bundles."""
    level, numbers = bundled
    if len(levels) == 1:
        return [(level, numbers)]
    coarser, clusters = levels[1]
    return [(coarser, clusters[numbers]), *levels[2:]]


def sum_level(level: Level) -> tuple[Array, Array]:
    """Loads (int64[n_loads]) of all nodes and nets of a level together, and the largest of a node."""
    return level.totals(), ks.node_loads(tuple(level)).max(axis=0)


class Search:
    """The problem at hand: one level, its limits, and what overload costs."""

    def __init__(
        self,
        level: Level,
        limits: Array,
        config: SearchConfig,
        max_parts: int | None,
        bundles: Array | None = None,
        sums: tuple[Array, Array] | None = None,
    ):
        """Look at the level.

        Args:
            level: to be searched.
            limits: int64[n_loads].
            config: of the search.
            max_parts: most parts allowed, or None.
            bundles: int32[n_nodes], ascending: nodes that stay together first in some hierarchies have the same value.
            sums: loads (int64[n_loads]) of all nodes and nets together, and the largest of a node, if known.
        """
        self.level = level
        self.limits = limits
        self.config = config
        self.max_parts = max_parts
        self.bundles = bundles
        self.totals, self.largest = sums or sum_level(level)
        self.fine_prices = np.array(config.fine_prices, np.float64)
        self.deep = level.n_nodes > config.deep
        coarse = config.deep_coarse_prices if self.deep else config.coarse_prices
        self.coarse_prices = np.array(coarse, np.float64)
        # Passes at each price, moves without a new best, and turns, that end a pass.
        self.effort = (config.passes, config.patience, config.turns)
        if self.deep:
            self.effort = (config.passes, config.deep_patience, UNLIMITED)
        self.n_hierarchies = config.newcomers if self.deep else config.hierarchies
        self.generations = config.deep_generations if self.deep else config.generations
        self._hierarchies: dict[int, tuple[Levels, Array, int]] = {}

    # ---------------------------------------------------------------- building blocks

    def cluster(
        self, levels: Levels, limits: Array, seed: int, borders: Array | None = None
    ) -> bool:
        """Add a level of clusters within the limits; False if (nearly) nothing merges any more.

        With `borders` (int64[n_nodes]) nodes on different sides stay apart, and clusters are of any size.
        Clusters may weigh a few average nodes; where (nearly) nothing merges like that, more.
        """
        config, level = self.config, levels[-1][0]
        widest = min(int(limits[0]), int(self.totals[0]))
        n, whole = level.n_nodes, np.arange(level.n_nodes, dtype=np.int32)
        average = int(self.totals[0]) // max(n, 1)
        growth = config.deep_growth if self.deep else config.growth
        largest = int(level.resources[:, 0].max(initial=0))
        cap = min(widest, max(int(average * growth), largest, 1))
        target, within = int(n * config.shrink), borders
        if within is None:
            within = np.zeros(n, np.int64)
        else:
            cap = widest
        while level.n_nodes > target:
            flat = tuple(level)
            clusters, left = kcl.cluster_turn(flat, limits, cap, target, within, seed)
            stalled = left > STALLED * level.n_nodes
            if left < level.n_nodes:
                within = project(np, within, clusters, left)
                whole, level = clusters[whole], contract_small(level, clusters, left)
            if stalled and (cap == widest or left < ENOUGH * n):
                break
            if stalled:
                cap = min(widest, 2 * cap)
            seed += NEXT_TURN
        if level.n_nodes == n or (borders is not None and level.n_nodes > 0.95 * n):
            return False
        levels.append((level, whole))
        return True

    def coarsen(self, number: int) -> tuple[Levels, Array, int]:
        """(levels from fine to coarse, parts of the coarsest, their number) of a hierarchy.

        Each `number` from 0 is another one: its clusters stay within another share of the limits, and some begin with
        bundles. New partitions that start with the same one differ by their seeds.
        """
        if number in self._hierarchies:
            return self._hierarchies[number]
        bundled = self._bundled if self.keeps_bundles(number) else None
        levels: Levels = [(bundled[0] if bundled else self.level, _NO_MAP)]
        (limits,), (seed,) = self.narrow(np.array([number]))
        while self.cluster(levels, limits, int(seed) + len(levels)):
            pass
        if bundled:  # they are no level of their own if anything merged
            levels = [(self.level, _NO_MAP), *_through(bundled, levels)]
        level = levels[-1][0]
        n_parts, parts = level.n_nodes, np.arange(level.n_nodes, dtype=np.int32)
        if self.max_parts is not None and n_parts > self.max_parts:
            n_parts = self.max_parts
            parts = self.join(level, n_parts)
        return self._hierarchies.setdefault(number, (levels, parts, n_parts))

    def keeps_bundles(self, number: int) -> bool:
        """Whether a hierarchy begins with bundles: about half, those with the widest limits not among them."""
        return self.bundles is not None and number % 4 in (1, 2)

    @cached_property
    def _bundled(self) -> tuple[Level, Array] | None:
        """The level whose nodes are bundles, and the bundle of each node; None if each is one."""
        bundles: Any = self.bundles
        numbers = np.cumsum(np.diff(bundles, prepend=bundles[:1]) != 0).astype(np.int32)
        n = int(numbers[-1]) + 1
        if n == self.level.n_nodes:
            return None
        return contract_small(self.level, numbers, n), numbers

    def narrow(self, numbers: Array) -> tuple[Array, Array]:
        """(limits of the clusters, int64[n, n_loads]; seeds, int64[n]) of hierarchies."""
        low, high = self.config.fill
        shares = low + (high - low) * numbers / max(self.n_hierarchies - 1, 1)
        limits = (self.limits * shares[:, None]).astype(np.int64)
        return np.maximum(limits, np.minimum(self.largest, self.limits)), 7919 * numbers

    def coarsen_all(self, numbers: list[int]) -> list[int]:
        """Make these hierarchies, at once; how many parts partitions start with in each."""
        if any(self.keeps_bundles(number) for number in numbers):
            _ = self._bundled  # made by one thread, for all
        return [n_parts for _, _, n_parts in map_tasks(self.coarsen, [(i,) for i in numbers])]

    def uncoarsen(self, levels: Levels, parts: Array, n_parts: int, seed: int) -> Individual:
        """Refine from the coarsest level down to the finest, and weigh the result."""
        config, most = self.config, self.max_parts
        for depth in range(len(levels) - 1, -1, -1):
            level, clusters = levels[depth]
            prices = self.coarse_prices
            if depth == 0:
                prices = self.fine_prices
                n_parts += config.spare_parts
                n_parts = n_parts if most is None else min(n_parts, most)
            if depth == 0 or len(parts) > n_parts * 5 // 4:
                how = (prices, *self.effort, seed + depth)
                ki.refine(tuple(level), parts, n_parts, self.limits, self.totals, *how)
            if depth:
                parts = parts[clusters]
        return self.judge(parts, n_parts)

    def judge(self, parts: Array, n_parts: int) -> Individual:
        """A partition with its cost, its parts numbered without gaps (in place)."""
        n_left, connectivity, over = ki.judge(tuple(self.level), parts, n_parts, self.limits)
        return self.weigh([parts], np.array([[n_left, connectivity, *over]]))[0]

    def weigh(self, parts: Sequence[Any], results: Array) -> list[Individual]:
        """Partitions with their costs.

        Args:
            parts: of each.
            results: int64[n, 2 + n_loads], parts, connectivity, and the sum of each overload, of each.
        """
        price, totals = self.config.overload_price, np.maximum(self.totals, 1).tolist()
        found = []
        for where, (n_parts, connectivity, *over) in zip(parts, results.tolist(), strict=True):
            cost, overload = connectivity, sum(over)
            if overload:
                pairs = zip(over, totals, strict=True)
                cost += sum(excess * int(connectivity * price / total) for excess, total in pairs)
            found.append(Individual(cost, connectivity, overload, n_parts, where))
        return found

    # ---------------------------------------------------------------- individuals

    def polish(self, parts: Array, n_parts: int, seed: int) -> Individual:
        """Nodes of a partition move one by one; what comes of it, or the partition if that is better."""
        moved = parts.copy()
        how = (self.fine_prices, self.config.passes, self.config.deep_patience, UNLIMITED, seed)
        ki.refine(tuple(self.level), moved, n_parts, self.limits, self.totals, *how)
        sides = self.judge(parts.copy(), n_parts), self.judge(moved, n_parts)
        return min(sides, key=cost_of)

    def first_hierarchies(self) -> list[int]:
        """What must be made to know how many parts there are.

        Where new partitions need (nearly) all hierarchies anyway, all are made at once.
        """
        shared = self.config.newcomers >= self.n_hierarchies and not self.deep
        return list(range(self.n_hierarchies if shared else 1))

    def count_parts(self) -> int:
        """Parts that a partition of this level starts with."""
        return self.coarsen_all(self.first_hierarchies())[0]

    def create(self, seed: int) -> Individual:
        """A new partition."""
        levels, parts, n_parts = self.coarsen(seed % self.n_hierarchies)
        return self.uncoarsen(levels, parts.copy(), n_parts, seed)

    def combine(self, first: Individual, second: Individual, seed: int) -> Individual:
        """Offspring that keeps what both parents agree on, refined from the better one.

        What they agree on moves as one first, then nodes move alone; on large levels there are clusters of
        nodes that both leave together in between.
        """
        better, other = (first, second) if first.cost <= second.cost else (second, first)
        pairs = better.parts.astype(np.int64) * other.n_parts + other.parts
        levels: Levels = [(self.level, _NO_MAP)]
        if self.deep:
            unlimited = np.full_like(self.limits, UNLIMITED)
            while self.cluster(levels, unlimited, seed + len(levels), pairs):
                pairs = project(np, pairs, levels[-1][1], levels[-1][0].n_nodes)
        else:
            agreed, blocks = np.unique(pairs, return_inverse=True)
            if len(agreed) < len(pairs):
                blocks = blocks.astype(np.int32)
                levels.append((contract_small(self.level, blocks, len(agreed)), blocks))
                pairs = agreed
        parts = (pairs // other.n_parts).astype(np.int32)
        return self.uncoarsen(levels, parts, better.n_parts, seed)

    def create_all(self, seeds: list[int]) -> Iterator[list[Individual]]:
        """New partitions, in order, as many at a time as are ready."""
        self.coarsen_all(sorted({seed % self.n_hierarchies for seed in seeds}))
        return ([one] for one in each_task(self.create, [(seed,) for seed in seeds]))

    def combine_all(
        self, tasks: list[tuple[Individual, Individual, int]]
    ) -> Iterator[list[Individual]]:
        """Offspring, likewise; each task is two parents and a seed."""
        return ([one] for one in each_task(self.combine, tasks))

    def combine_ahead(self, drawn: list[tuple[int, int, int]]) -> Iterator[list[Individual]] | None:
        """The offspring of the first generation, if it can be made before anybody knows which partitions are best.

        Args:
            drawn: ranks of both parents among the new partitions, and a seed, of each.
        """
        return None

    def join(self, level: Level, n_parts: int) -> Array:
        """Parts of the coarsest nodes: the smallest joins its closest neighbour until n_parts are left.

        Neighbours are preferred that it fits with, then by shared weight for each unit of size.
        """
        parts = np.arange(level.n_nodes, dtype=np.int32)
        ones, shape = np.ones(level.n_pins, np.int64), (level.n_nets, level.n_nodes)
        touching = sparse.csr_array((ones, level.net_pins, level.net_offsets), shape=shape)
        shared = (
            touching.T @ sparse.diags_array(level.net_weights, dtype=np.int64) @ touching
        ).toarray()
        sizes = level.resources[:, 0].copy()
        alive = np.ones(len(parts), bool)
        while alive.sum() > n_parts:
            gone = int(np.where(alive, sizes, sizes.max() + 1).argmin())
            alive[gone] = False
            over = np.maximum(sizes + sizes[gone] - self.limits[0], 0)
            closeness = shared[gone] / np.maximum(sizes, 1)
            hosts = np.flatnonzero(alive)
            host = int(hosts[np.lexsort((-closeness[hosts], over[hosts]))[0]])
            parts[parts == gone] = host
            sizes[host] += sizes[gone]
            shared[host] += shared[gone]
            shared[:, host] += shared[:, gone]
        return np.unique(parts, return_inverse=True)[1].astype(np.int32)

    # ---------------------------------------------------------------- the search

    def run(self, seed: int | np.random.Generator, progress: Progress = SILENT) -> list[Individual]:
        """The best partitions after the generations that the settings allow, `finalists` at most.

        What a generation is made of is drawn while the one before is made: its parents are among as many
        of the best as there were before that.
        """
        config, draw = self.config, np.random.default_rng(seed)
        population: list[Individual] = []
        best: Individual | None = None
        made = self.create_all(draw.integers(0, 1 << 30, config.newcomers).tolist())
        for generation in range(self.generations + 1):
            n_parents = len(population) or min(config.newcomers, config.population)
            last = generation == self.generations
            drawn = [] if last else self._draw_tasks(draw, n_parents)
            ahead = None if generation or last else self.combine_ahead(drawn)
            costs = {one.cost for one in population}
            for some in made:
                for one in some:
                    if generation == 0 or one.cost not in costs:
                        population.append(one)
                        costs.add(one.cost)
                best = min(some if best is None else [best, *some], key=cost_of)
                progress.advance(len(some), note=self.note(best))
                if progress.expired():
                    break
            self.select(population)
            if last or progress.expired():
                break
            made = ahead or self.combine_all(
                [(population[i], population[j], own) for i, j, own in drawn]
            )
        return population[: config.finalists]

    def _draw_tasks(self, draw: np.random.Generator, n: int) -> list[tuple[int, int, int]]:
        """The parents, of the best n, and the seed of each offspring of a generation."""
        parents = draw.integers(0, n, (self.config.batch, 2)).tolist()
        seeds = draw.integers(0, 1 << 30, self.config.batch).tolist()
        return [(i, j, own) for (i, j), own in zip(parents, seeds, strict=True)]

    def select(self, population: list[Individual]) -> None:
        """Sort by cost, and keep the best."""
        population.sort(key=cost_of)
        del population[self.config.population :]

    @staticmethod
    def note(best: Individual) -> str:
        """What to show while searching."""
        return f"{best.n_parts} parts" + (f", {best.overload} over" if best.overload else "")
