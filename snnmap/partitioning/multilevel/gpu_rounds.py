"""All rounds of refinement on a level in one launch on the GPU (``kernels/rounds.cu``, ``prefix.cu``)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from snnmap.partitioning.multilevel.device import word
from snnmap.partitioning.multilevel.gpu_choosing import GpuChoosing
from snnmap.partitioning.multilevel.gpu_rows import defines_of
from snnmap.partitioning.multilevel.gpu_weighing import GpuWeighing, Noted
from snnmap.partitioning.multilevel.level import Level
from snnmap.partitioning.multilevel.state import State
from snnmap.partitioning.multilevel.turns import RoundsGaveUpError, Turn
from snnmap.partitioning.multilevel.upload import Arrival
from snnmap.progress import Progress

Array = Any  # cupy.ndarray

_LARGE = (
    1 << 28
)  # bytes of memory of rounds, of which no more is taken than needed, and rooms that lie apart
_AT_ONCE = 1 << 29  # pins x rounds of a launch, between two looks at the clock
_SCRATCH_WORDS, _WARP_BYTES, _PIECE, _WORK_BYTES = 128, 2304, 64, 512  # as in the kernels
_LEAST_BYTES = 800  # of those of lists, where tables of few slots need the rest
_ROW, _LOOK = 16, 40  # bytes of their structs; a row's counts apart
_PROGRESS_WORDS, _GAVE_UP, _DONE, _N_TURNS, _STALLED, _COUNTERS = 41, 16, 17, 38, 39, 8
_SOURCES = {"refine_rounds": "rounds", "refine_by_prefix": "prefix", "repair_rounds": "repair"}
_NEEDS_LISTS = 2  # sums are too large to keep what nodes find
_MOST = 1 << 15  # parts, turns: two of them are a word
_ASKED = 21  # field of the struct
_MOST_TWIN_PARTS = 512
_TURN = struct.Struct("=dqqqq")
_STRIPE_PINS = (
    12  # pins for each node and stripe of parts, so that bests of stripes take less than the pins
)

WAYS = "kept", "swept", "by nets"
"""How it is known what nodes find in parts: kept from round to round (`round_found.cuh`); summed up part by part in
every round (`round_sweep.cuh`); summed up by each node's nets. The first for which there is memory is taken."""


class Room(NamedTuple):
    """A field of a kernel's struct that is memory of its own.

    Attributes:
        n_bytes: how much.
        zeroed: whether it is zero at first.
    """

    n_bytes: int
    zeroed: bool = False


class Size(NamedTuple):
    """Of a launch of rounds.

    Attributes:
        threads: of a block.
        team: warps that share a table.
        shared: bytes of shared memory of a block.
        words: of 4 bytes, of all its tables.
        slots: of a warp's own table for the rows of nets, or 0: those are a team's.
        lists: bytes of a warp for lists.
    """

    threads: int
    team: int
    shared: int
    words: int
    slots: int
    lists: int


class Awaited(NamedTuple):
    """Rounds that the host has not waited for.

    Attributes:
        told: what the launch tells.
        parts: int32[n_nodes] at its end and its start, or none.
    """

    told: Arrival
    parts: tuple[Array, ...]


class Played(NamedTuple):
    """What rounds in one launch made.

    Attributes:
        parts: int32[n_nodes].
        n_turns, stalled: of repair, how many rounds it took, and whether the last was in vain.
    """

    parts: Array
    n_turns: int
    stalled: bool


class GpuRounds(GpuWeighing, GpuChoosing):
    """`refine` as one launch; the host waits once, or only when the next rounds are on their way (`deferred`).

    Attributes:
        round_threads: most threads of a block.
        entries_of_net: a table has at most so many entries a net, or half of it and one for 32 pins.
        whole_rounds: whether to do so at all.
        ways: those of `WAYS` that may be taken.
        whole_parts: for so many parts at most where nodes are looked at by their nets: tables for more leave too few warps on a
            multiprocessor.
        table_slots: of a warp's table for the rows of nets where not every warp has room for a slot for each part: a
            power of two. 0: then tables are a team's.
        tile_nodes: what nodes find is summed up in tiles of so many nodes at most.
        gapless_parts: so many parts or more are numbered without those that are empty.
        few_nets, many_nodes: nodes with so few nets in the mean, of levels of at least so many nodes, are looked at by their
            nets, whatever the memory.
    """

    restore: Callable[[Level], Level]
    round_threads: int = 1024
    entries_of_net: int = 24
    whole_rounds: bool = True
    ways: tuple[str, ...] = WAYS
    whole_parts: int = 512
    table_slots: int = 256
    tile_nodes: int = 1 << 20
    gapless_parts: int = 256
    few_nets: int = 32
    many_nodes: int = 1 << 15
    _by_node: Level | None = None
    _awaited: Awaited | None = None

    def refine_rounds(
        self,
        level: Level,
        limits: Array,
        parts: Array,
        n_parts: int,
        turns: Sequence[Turn],
        progress: Progress,
        *,
        overload_price: float,
        patience: int,
        deferred: bool = False,
    ) -> Array | None:
        """The best parts of these rounds (see `refine`), or None: one step after the other, then.

        That is where a block's shared memory cannot hold the tables, or a list outgrew its memory. If `deferred`
        the device may still be at it; the next such call, or whoever weighs parts, raises :class:`RoundsGaveUpError` then.
        """
        where = (level, limits, parts, n_parts)
        asked = (turns, progress, overload_price, patience)
        played = self._play("refine_rounds", where, *asked, deferred=deferred)
        return None if played is None else played.parts

    def refine_by_prefix(
        self,
        level: Level,
        limits: Array,
        parts: Array,
        n_parts: int,
        turns: Sequence[Turn],
        progress: Progress,
    ) -> Array | None:
        """The parts after these rounds (see `refine_in_sequence`), or None as above."""
        where = (level, limits, parts, n_parts)
        played = self._play("refine_by_prefix", where, turns, progress)
        return None if played is None else played.parts

    def repair_rounds(
        self,
        level: Level,
        limits: Array,
        state: State,
        turns: Sequence[Turn],
        progress: Progress,
        *,
        may_grow: bool,
    ) -> tuple[Array, int, bool] | None:
        """(parts, how many rounds they took, whether the last was in vain); None as above.

        In vain are rounds that free nothing where there `may_grow` another part, else those in which
        nothing moves. The state loses its table.
        """
        state.take_table()
        where = (level, limits, state.parts, state.n_parts)
        played = self._play("repair_rounds", where, turns, progress, may_grow=may_grow)
        return None if played is None else (played.parts, played.n_turns, played.stalled)

    def _play(
        self,
        name: str,
        where: tuple[Level, Array, Array, int],
        turns: Sequence[Turn],
        progress: Progress,
        overload_price: float = 0.0,
        patience: int = 0,
        may_grow: bool = False,
        *,
        spread: bool = True,
        deferred: bool = False,
    ) -> Played | None:
        """What a kernel made of the parts; None if it cannot take them or gave up. `spread`: see `_fit_tables`.

        If `deferred`, and one launch is enough, it is not waited for (see `refine_rounds`).
        """
        level, limits, parts, n_parts = where
        names = None
        if n_parts >= self.gapless_parts and name != "repair_rounds":  # that fills empty ones
            names, parts = self._close_gaps(parts, n_parts)
            n_parts = len(names)
        xp, blocks = self.xp, self.device.multiprocessors
        size = self._fit_tables(level, n_parts, spread=spread)
        n_items = level.n_pins + len(level.source_nodes)
        fits = size.threads > 0 and max(n_items, 2 * level.n_nodes) < 1 << 31
        fits &= max(n_parts, len(turns)) < _MOST
        if not self.whole_rounds or not fits:
            return None
        result = xp.empty_like(parts)
        numbered = limits, parts, n_parts, names
        needs_nets = name == "repair_rounds" or self._has_twins(level, size, n_parts)
        ways = ("by nets",) if needs_nets else self.ways
        for way in ways:
            if way == "by nets":
                if n_parts > self.whole_parts:
                    return None
                level = self._with_lists(level)
            fields = self._fields(level, numbered, name, size, result, way)
            if _bytes_of(fields) <= self.room_bytes():
                break
        if not turns or progress.expired():
            return Played(where[2], 0, False)
        fields[_ASKED : _ASKED + 3] = float(overload_price), patience, int(may_grow)
        layout, told, _kept = self._lay_out(fields, turns)
        kernel = self.device.kernel(_SOURCES[name], name, defines_of(level))
        some = max(_AT_ONCE // max(n_items, 1), 1)
        for first in range(0, len(turns), some):
            if first:
                told[:1] = 0
            args = (layout, first, min(first + some, len(turns)))
            self.device.launch_together(kernel, blocks, size.threads, args, size.shared)
            arrival = Arrival(xp, told) if deferred and len(turns) <= some else None
            self._settle()  # what was deferred before, now that this is on its way
            if arrival is not None:
                self._awaited = Awaited(arrival, (result, parts) if names is None else ())
                return Played(result if names is None else names[result], len(turns), False)
            words = self.to_host(told)
            asked = turns, progress, overload_price, patience, may_grow
            if words[_GAVE_UP] == _NEEDS_LISTS:
                return self._play(
                    name, (self._with_lists(level), *where[1:]), *asked, spread=spread
                )
            if words[_GAVE_UP] and size.slots:
                return self._play(name, where, *asked, spread=False)
            if words[_GAVE_UP]:
                return None
            if words[_DONE] or progress.expired():
                break
        if names is not None:
            result = names[result]
        elif name != "repair_rounds":
            self._note((result, parts)[: 2 - (name == "refine_by_prefix")], words)
        return Played(result, int(words[_N_TURNS]), bool(words[_STALLED]))

    def _note(self, parts: Sequence[Array], words: Any) -> None:
        """Keep what a launch tells of the parts at its end and its start."""
        found = words[_PROGRESS_WORDS:].reshape(2, -1)
        self._noted = [Noted(*one) for one in zip(parts, found, strict=False)]

    def _settle(self) -> None:
        """Wait for the rounds that were deferred, if there are any."""
        awaited, self._awaited = self._awaited, None
        if awaited is None:
            return
        words = awaited.told.wait()
        if words[_GAVE_UP]:
            raise RoundsGaveUpError
        self._note(awaited.parts, words)

    def weigh(
        self, level: Level, limits: Array, parts: Array, n_parts: int
    ) -> tuple[None, int, Array, Any]:
        """See `GpuWeighing`; rounds that were deferred are waited for."""
        self._settle()
        return super().weigh(level, limits, parts, n_parts)

    def _close_gaps(self, parts: Array, n_parts: int) -> tuple[Array, Array]:
        """(int32[n]: the parts that have nodes, ascending; int32[n_nodes]: which of these each node is in)."""
        xp = self.xp
        taken = xp.zeros(n_parts, xp.int32)
        taken[parts] = 1
        numbers = (xp.cumsum(taken) - 1).astype(xp.int32)
        return xp.flatnonzero(taken).astype(xp.int32), numbers[parts]

    def _with_lists(self, level: Level) -> Level:
        """The level with its lists by node, which are kept for the next rounds on it."""
        self._by_node = self.restore(level)
        return self._by_node

    def _lay_out(
        self, fields: list[Any], turns: Sequence[Turn]
    ) -> tuple[Array, Array, list[Array]]:
        """(the struct and its turns, words of the last field, all memory, to be kept until the launch).

        Large rooms lie apart: so the others may find a place that something large has left.
        """
        places, end, zeroed = {}, 0, 0
        rooms = [(i, field) for i, field in enumerate(fields) if isinstance(field, Room)]
        large = {i: room for i, room in rooms if room.n_bytes >= _LARGE and not room.zeroed}
        kept = {i: self.xp.empty(room.n_bytes, np.uint8) for i, room in large.items()}
        fields = [kept.get(i, field) for i, field in enumerate(fields)]
        rooms = [(i, room) for i, room in rooms if i not in kept]
        for i, room in sorted(rooms, key=lambda one: not one[1].zeroed):
            places[i] = end
            end += -(-room.n_bytes // 256) * 256
            zeroed = end if room.zeroed else zeroed
        some_more = _next_size(end)  # levels are alike: so the pool can give them the same block
        spacious = some_more <= min(self.room_bytes(), _LARGE)
        memory = self.xp.empty(some_more if spacious else end, np.uint8)
        memory.data.memset_async(0, zeroed)
        base = word(memory)
        words = [base + places[i] if i in places else word(f) for i, f in enumerate(fields)]
        told = memory[places[len(fields) - 1] :][: fields[-1].n_bytes].view(np.int64)
        packed = struct.pack(f"={len(words)}Q", *words) + b"".join(
            _TURN.pack(*turn) for turn in turns
        )
        return self.from_host(np.frombuffer(packed, np.uint64)), told, [memory, *kept.values()]

    def _fit_tables(self, level: Level, n_parts: int, *, spread: bool = True) -> Size:
        """How a block divides its shared memory; 0 threads: no room. `spread`: with tables of few slots."""
        n_additive, n_distinct = level.resources.shape[1], level.counts.shape[1]
        threads, team = self.round_threads, 1
        warps = threads // 32
        free = self.device.shared_bytes - 8192 - _WORK_BYTES - 8 * _SCRATCH_WORDS - 4 * warps
        free -= (8 * (n_additive + n_distinct) + 16) * n_parts
        table = 4 * max(4, 2 + 2 * n_distinct) * n_parts
        while team <= warps:
            used = warps // team * table + _WARP_BYTES * warps
            if used <= free:
                break
            team = _larger(team, warps)
        if team > warps:
            return Size(0, 0, 0, 0, 0, 0)
        words, slots, lists = (
            warps // team * table // 4,
            self.table_slots if spread else 0,
            _WARP_BYTES,
        )
        if team > 1 and slots:
            more = max(words, 5 * slots * warps)
            lists = min((free - 4 * more) // warps // 8 * 8, _WARP_BYTES)
            if lists >= _LEAST_BYTES and lists * warps >= _WARP_BYTES:
                words = more
            else:
                slots, lists = 0, _WARP_BYTES
        else:
            slots = 0
        used = 4 * words + lists * warps
        return Size(
            threads, team, self.device.shared_bytes - 8192 - free + used, words, slots, lists
        )

    def _has_twins(self, level: Level, size: Size, n_parts: int) -> bool:
        """Whether nodes have few nets, so that these are summed up in every round, once for all twins."""
        few = level.n_pins <= self.few_nets * level.n_nodes and level.n_nodes >= self.many_nodes
        return few and size.team == 1 and n_parts <= _MOST_TWIN_PARTS

    def _fields(
        self,
        level: Level,
        numbered: tuple[Array, Array, int, Array | None],
        name: str,
        size: Size,
        result: Array,
        way: str,
    ) -> list[Any]:
        """The struct `Rounds` of the kernels; `numbered`: limits, parts, how many, their names; `way`: of `WAYS`."""
        limits, parts, n_parts, names = numbered
        n, n_nets, n_loads, n_distinct = (
            level.n_nodes,
            level.n_nets,
            len(limits),
            level.counts.shape[1],
        )
        n_items = level.n_pins + len(level.source_nodes)
        most_entries = min(n_items, n_nets * n_parts)
        most_entries += most_entries // 3  # a quarter of each piece may stay free
        # Entries of a row: nets are local, or have few pins; see gpu_memory.py.
        usual = max(self.entries_of_net * n_nets, self.entries_of_net // 2 * n_nets + n_items // 32)
        most_entries = min(most_entries, usual)
        blocks, threads, team = self.device.multiprocessors, size.threads, size.team
        n_warps, node_team = blocks * threads // 32, team
        # More warps for a node while some are idle and nodes have nets for them.
        while node_team < threads // 32:
            more = _larger(node_team, threads // 32)
            if 32 * more * n > min(n_items, 32 * n_warps):
                break
            node_team = more
        piece = min(most_entries // (4 * n_warps), _PIECE)
        most_entries += piece * n_warps
        row_bytes = _ROW + (max(n_distinct, 1) + 1) // 2 * 16
        n_counters = 2 * (_COUNTERS + n_parts * (n_loads + 4))
        ids, words, distinct = Room(4 * n), Room(8 * n), Room(8 * n * n_distinct)
        place = 8 * (1 + n_distinct // 2)
        found = told = nets_of_parts = None
        bests: tuple[Any, ...] = None, None, None, None
        tile, n_stripes = 1, 1
        if way != "by nets":
            sum_bytes = place if way == "swept" else 8  # a word of a place at a time
            room = (4 * size.words + size.lists * threads // 32) // sum_bytes
            room = max(min(room, self.tile_nodes), 1)
            if way == "swept":
                tile, n_stripes = _spread(n, n_parts, blocks, room, level.n_pins)
                sums, ids_of_all = place * n * n_stripes, 4 * n * n_stripes
                bests = Room(8 * n * n_stripes), Room(sums), Room(ids_of_all), Room(4 * n_nets)
            else:
                tile = _even(n, min(room, max(-(-n * n_parts // (2 * blocks)), -(-n // 16))))
            found = Room(place * n * (2 + (n_parts if way == "kept" else 0)))
            told = Room(4 * n_nets * (-(-n // tile) + 1))
            nets_of_parts = Room(4 * most_entries)
        both = (ids, result) if name == "refine_rounds" else (result, None)
        lists: list[Any] = list(level)
        if not len(level.node_offsets):
            lists[5:7] = None, None  # those by node
        listed = Room(4 * n_nets)
        twins: tuple[Any, ...] = None, listed, None, None
        if self._has_twins(level, size, n_parts):
            twins = ids, listed, Room(4 * n_nets, zeroed=True), Room(4 * (n // 32 + 1))
        changed, looks = (
            (words, Room(_LOOK * blocks)) if name == "refine_by_prefix" else (None, None)
        )
        return [
            *lists, n_nets, n, n_parts, team, node_team, size.words, size.slots, limits, 0.0, 0, 0, parts, names, *both,
            ids, ids, ids, ids, words, words, words, distinct, distinct,
            Room(n_nets * row_bytes), Room(8 * most_entries), Room(8 * most_entries),
            found, tile, told, nets_of_parts, n_stripes, *bests, Room(len(level.source_nodes)), most_entries, piece, size.lists,
            words, words, ids, Room(8 * n), changed, looks, ids, ids,
            Room(16 * n_parts * n_loads, zeroed=True), Room(8 * n_counters, zeroed=True),
            Room(4 * (min(n_items // 1024, n_nets) + 1)), ids, *twins,
            Room(8 * (_PROGRESS_WORDS + 2 * (1 + n_loads + n_parts * n_loads)), zeroed=True),
        ]  # fmt: skip


def _bytes_of(fields: list[Any]) -> int:
    """All rooms among the fields."""
    return sum(-(-field.n_bytes // 256) * 256 for field in fields if isinstance(field, Room))


def _even(n: int, most: int) -> int:
    """The size of equal shares of n items, at most `most` each."""
    return max(-(-n // max(-(-n // max(most, 1)), 1)), 1)


def _spread(n: int, n_parts: int, blocks: int, most: int, n_pins: int) -> tuple[int, int]:
    """(nodes of a tile, at most `most`; stripes of the parts) that give almost all blocks one stripe of a tile each."""
    least = max(-(-n // most), 1)
    stripes = max(min(n_parts, n_pins // (_STRIPE_PINS * max(n, 1))), 1)
    busy = {
        t: t * min(blocks // t, stripes)
        for t in range(least, max(min(4 * least, blocks), least) + 1)
    }
    n_tiles = max(busy, key=lambda t: (busy[t], -t))
    return _even(n, -(-n // n_tiles)), max(min(blocks // n_tiles, stripes), 1)


def _next_size(n: int) -> int:
    """At least n: of four sizes between two powers of two."""
    step = 1 << max(n.bit_length() - 3, 0)
    return -(-n // step) * step


def _larger(team: int, warps: int) -> int:
    """The next size of teams in a block: a power of two; there are at most 15 of several warps."""
    team *= 2
    while 15 * team < warps:
        team *= 2
    return team
