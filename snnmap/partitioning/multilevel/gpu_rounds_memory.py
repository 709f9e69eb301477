"""Memory of rounds of refinement in one launch: the struct of the kernels, and what it points to.

Which rooms a launch gets decides how it works: see `WAYS`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from snnmap.partitioning.multilevel.device import word
from snnmap.partitioning.multilevel.gpu_rows import GpuRows
from snnmap.partitioning.multilevel.level import Level
from snnmap.partitioning.multilevel.turns import Turn

Array = Any  # cupy.ndarray

_LARGE = 1 << 28  # bytes: rooms that lie apart, memory of which no more is taken than needed
_SCRATCH_WORDS, _WARP_BYTES, _PIECE, _WORK_BYTES = 128, 2304, 64, 512  # as in the kernels
_LEAST_BYTES = 800  # of those of lists, where tables of few slots need the rest
_ROW, _LOOK, _CARD = 16, 40, 32  # bytes of their structs; a row's counts apart
PROGRESS_WORDS, _COUNTERS = 41, 9  # of structs
_MOST_TWIN_PARTS = 512  # parts where twins are looked at together
_TURN = struct.Struct("=dqqqq")

WAYS = "kept", "gathered", "by nets"
"""How it is known what nodes find in parts: kept from round to round (`round_found.cuh`); gathered from each node's nets
in every round (`round_gather.cuh`), with two sums of all its nets kept; or those summed up, too. The first for which there
is memory is taken."""


class Room(NamedTuple):
    """A field of a kernel's struct that is memory of its own.

    Attributes:
        n_bytes: how much.
        zeroed: whether it is zero at first.
    """

    n_bytes: int
    zeroed: bool = False

    @property
    def place(self) -> int:
        """Bytes that it takes among others."""
        return -(-self.n_bytes // 256) * 256


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


class GpuRoundsMemory(GpuRows):
    """Lays out the memory of rounds.

    Attributes:
        round_threads: most threads of a block.
        entries_of_net: a table has at most so many entries a net, or half of it and one for 32 pins.
        table_slots: of a warp's table for the rows of nets where not every warp has room for a slot for each part: a
            power of two. 0: then tables are a team's.
        tile_nodes: what nodes find is summed up in tiles of so many nodes at most.
        few_nets, many_nodes: nodes with so few nets in the mean, of levels of at least so many nodes, are looked at by their
            nets, whatever the memory.
    """

    round_threads: int = 1024
    entries_of_net: int = 24
    table_slots: int = 256
    tile_nodes: int = 1 << 20
    few_nets: int = 32
    many_nodes: int = 1 << 15

    def lay_out(self, fields: list[Any], turns: Sequence[Turn]) -> tuple[Array, Array, list[Array]]:
        """(the struct and its turns, words of the last field, all memory, to be kept until the launch).

        They lie in scratch if that has room. Else large ones lie apart: so the others may find a place that something
        large has left.
        """
        places, end, zeroed = {}, 0, 0
        memory = self.scratch.lend(bytes_of(fields))
        rooms = [(i, field) for i, field in enumerate(fields) if isinstance(field, Room)]
        apart = [] if memory is not None else rooms
        large = {i: room for i, room in apart if room.n_bytes >= _LARGE and not room.zeroed}
        kept = {i: self.xp.empty(room.n_bytes, np.uint8) for i, room in large.items()}
        fields = [kept.get(i, field) for i, field in enumerate(fields)]
        rooms = [(i, room) for i, room in rooms if i not in kept]
        for i, room in sorted(rooms, key=lambda one: not one[1].zeroed):
            places[i] = end
            end += room.place
            zeroed = end if room.zeroed else zeroed
        if memory is None:
            # So that the pool can give levels that are alike the same block.
            some_more = _next_size(end)
            spacious = some_more <= min(self.room_bytes(), _LARGE) and not self.device.pools.joins
            memory = self.xp.empty(some_more if spacious else end, np.uint8)
        memory.data.memset_async(0, zeroed)
        base = word(memory)
        words = [base + places[i] if i in places else word(f) for i, f in enumerate(fields)]
        told = memory[places[len(fields) - 1] :][: fields[-1].n_bytes].view(np.int64)
        packed = struct.pack(f"={len(words)}Q", *words) + b"".join(
            _TURN.pack(*turn) for turn in turns
        )
        return self.from_host(np.frombuffer(packed, np.uint64)), told, [memory, *kept.values()]

    def fit_tables(self, level: Level, n_parts: int, *, spread: bool = True) -> Size:
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

    def has_twins(self, level: Level, size: Size, n_parts: int) -> bool:
        """Whether nodes have few nets, so that these are summed up in every round, once for all twins."""
        few = level.n_pins <= self.few_nets * level.n_nodes and level.n_nodes >= self.many_nodes
        return few and size.team == 1 and n_parts <= _MOST_TWIN_PARTS

    def fields_of(
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
        found = told = nets_of_parts = cards = packed = None
        tile = 1
        if way != "by nets":
            room = (4 * size.words + size.lists * threads // 32) // 8  # a word of a place at a time
            room = max(min(room, self.tile_nodes), 1)
            tile = _even(n, min(room, max(-(-n * n_parts // (2 * blocks)), -(-n // 16))))
            found = Room(place * n * (2 + (n_parts if way == "kept" else 0)))
            told = Room(4 * n_nets * (-(-n // tile) + 1))
            if way == "kept":
                nets_of_parts = Room(4 * most_entries)
            else:
                cards, packed = Room(_CARD * n_nets), Room(2 * most_entries)
        both = (ids, result) if name == "refine_rounds" else (result, None)
        lists: list[Any] = list(level)
        if not len(level.node_offsets):
            lists[5:7] = None, None  # those by node
        listed = Room(4 * n_nets)
        twins: tuple[Any, ...] = None, listed, None, None
        if self.has_twins(level, size, n_parts):
            twins = ids, listed, Room(4 * n_nets, zeroed=True), Room(4 * (n // 32 + 1))
        changed, looks = (
            (words, Room(_LOOK * blocks)) if name == "refine_by_prefix" else (None, None)
        )
        return [
            *lists, n_nets, n, n_parts, team, node_team, size.words, size.slots, limits, 0.0, 0, 0, parts, names, *both,
            ids, ids, ids, ids, words, words, words, distinct, distinct,
            Room(n_nets * row_bytes), Room(8 * most_entries), Room(8 * most_entries),
            found, tile, told, nets_of_parts, cards, packed, Room(len(level.source_nodes)), most_entries, piece, size.lists,
            words, words, ids, Room(8 * n), changed, looks, ids, ids,
            Room(16 * n_parts * n_loads, zeroed=True), Room(8 * n_counters, zeroed=True),
            Room(4 * (min(n_items // 1024, n_nets) + 1)), ids, *twins,
            Room(8 * (PROGRESS_WORDS + 2 * (1 + n_loads + n_parts * n_loads)), zeroed=True),
        ]  # fmt: skip


def bytes_of(fields: list[Any]) -> int:
    """All rooms among the fields."""
    return sum(field.place for field in fields if isinstance(field, Room))


def _even(n: int, most: int) -> int:
    """The size of equal shares of n items, at most `most` each."""
    return max(-(-n // max(-(-n // max(most, 1)), 1)), 1)


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
