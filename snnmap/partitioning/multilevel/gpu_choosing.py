"""Choosing among proposed moves on the GPU (``kernels/choose.cu``); nothing waits for the host.

All nodes take part in every pass, those that do not count with a key that sorts last, so that no
length has to be known.
"""

from __future__ import annotations

from typing import Any

from snnmap.partitioning.multilevel.choosing import Chosen
from snnmap.partitioning.multilevel.engine_cpu import Moves
from snnmap.partitioning.multilevel.gpu_refinement import GpuRefinement
from snnmap.partitioning.multilevel.level import Level
from snnmap.partitioning.multilevel.state import State

Array = Any  # cupy.ndarray


class GpuChoosing(GpuRefinement):
    """The steps of choosing; see `choosing.py`."""

    def _choose(self, name: str, level: Level, threads: int, *args: Any) -> None:
        self._run_for(level, "choose", name, threads, *args)

    def _rank(self, level: Level, targets: Array, gains: Array) -> tuple[Array, Array]:
        """(int64[n_nodes] nodes by falling gain, int32[n_nodes] their places); others come last."""
        xp, n = self.xp, level.n_nodes
        keys, ranks = xp.empty(n, xp.int64), xp.empty(n, xp.int32)
        self._choose("key_gains", level, n, targets, gains, n, keys)
        order = xp.argsort(keys)  # stable: ties by id
        self._choose("set_ranks", level, n, order, n, ranks)
        return order, ranks

    def _accept(self, level: Level, keys: Array, amounts: Array, room: Array) -> Array:
        """bool[n_nodes]: for which there is room; keys are group << 32 | rank."""
        n = level.n_nodes
        accepted = self.xp.zeros(n, bool)
        self._choose(
            "accept_prefix", level, n, self.xp.argsort(keys), keys, n, amounts, room, accepted
        )
        return accepted

    def choose_moves(
        self, level: Level, limits: Array, state: State, moves: Moves, *, roomy: bool
    ) -> Chosen:
        """The moves that pay and fit together (see `choosing.py`)."""
        args: tuple[Any, ...]
        xp, n, parts = self.xp, level.n_nodes, state.parts
        _, ranks = self._rank(level, moves.targets, moves.gains)
        later = self.gains_in_sequence(
            level, state.table, parts, moves.targets, ranks, state.n_parts
        )
        keys, leaving = xp.empty(n, xp.int64), xp.zeros_like(state.loads)
        gains = (moves.gains, moves.plain_gains, later)
        args = (moves.targets, parts, *gains, ranks, moves.outgoing, n, keys, leaving)
        self._choose("key_winners", level, n, *args)
        room, enough = xp.empty_like(leaving), xp.empty_like(leaving)
        args = (state.loads, limits, leaving, state.n_parts, int(roomy), room, enough)
        self._choose("find_room", level, leaving.size, *args)
        accepted = self._accept(level, keys, moves.incoming, room)
        chosen = Chosen(xp.empty(n, xp.int32), xp.empty(n, bool), xp.zeros((), xp.uint64))
        args = (accepted, later, parts, moves.targets, ranks, n, keys, *chosen[:2])
        self._choose("move_accepted", level, n, *args)
        relieving = self._accept(level, keys, moves.outgoing, enough)
        self._choose("move_relieving", level, n, relieving, moves.targets, n, *chosen)
        return chosen

    def choose_prefix(
        self, level: Level, limits: Array, state: State, targets: Array, gains: Array
    ) -> Chosen:
        """The best prefix of all moves in order of gain (see `choosing.py`)."""
        args: tuple[Any, ...]
        xp, n, parts = self.xp, level.n_nodes, state.parts
        order, ranks = self._rank(level, targets, gains)
        shape = (n, level.counts.shape[1])
        effects = (xp.zeros(n, xp.int64), xp.zeros(shape, xp.int64), xp.zeros(shape, xp.int64))
        moves = (parts, targets, ranks)
        self._replay(level, state.table, moves, state.n_parts, effects)
        keys, saved, changed = (
            xp.empty(2 * n, xp.int64),
            xp.empty(n, xp.int64),
            xp.zeros(n, xp.int64),
        )
        self._choose("split_moves", level, n, order, targets, parts, effects[0], n, keys, saved)
        loads = (level.resources, *effects[1:], state.loads, limits)
        args = (xp.argsort(keys), keys, 2 * n, order, *loads, changed)
        self._choose("change_overload", level, 2 * n, *args)
        before = xp.maximum(state.loads - limits, 0).sum()
        after = before + xp.cumsum(changed)
        least = xp.minimum(before, after.min())
        totals = xp.where(after == least, xp.cumsum(saved), xp.int64(-1 << 62))
        best = totals.argmax()
        chosen = Chosen(xp.empty(n, xp.int32), xp.empty(n, bool), xp.zeros((), xp.uint64))
        args = (order, targets, parts, n, best, totals, least, before, *chosen)
        self._choose("move_prefix", level, n, *args)
        return chosen
