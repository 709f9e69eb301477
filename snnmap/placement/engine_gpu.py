"""The GPU engine of placement: the steps of `refine` and `anneal` in ``kernels/placement.cu``.

Same integers as on the CPU. What the CPU settles one proposal after the other is the fixed point of
passes over all proposals at once (see the kernels). Many rounds are one launch, whose blocks wait for
each other between steps, and the host hears of them afterwards.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from snnmap.errors import EngineError
from snnmap.partitioning.multilevel.device import THREADS, Device, word
from snnmap.placement import refine
from snnmap.placement.engine_cpu import Schedule
from snnmap.placement.flows import Flows
from snnmap.placement.region import BLOCKED, EMPTY, Region
from snnmap.progress import Progress

Array = Any  # cupy.ndarray
HostArray = np.ndarray[Any, Any]

_TOP_EPOCH = 2**40 - 2  # entries of `firsts` begin as 2^64 - 1
_MOST_PARTS = 2**24 - 1
_TEAM_THREADS = 1024  # of a block of those that wait for each other; one fits a multiprocessor
_LANES = 16  # threads that work on a part
_ROUNDS = 64  # of swaps, between two looks at the clock
_STATE_WORDS, _SAVED, _N_ROUNDS, _STATS = 32, 20, 23, slice(20, 23)  # struct State of the kernels


class GpuEngine:
    """CuPy and CUDA C++ kernels on the current device.

    Raises:
        EngineError: CuPy, the driver or a device is missing, or the kernels do not compile.
    """

    name = "gpu"

    def __init__(self) -> None:
        self.device = Device()
        self._last: tuple[Flows, Region, Ground] | None = None
        with self.device.guard():
            self.device.kernel("placement", "anneal_rounds")

    def guard(self) -> AbstractContextManager[None]:
        """Context in which faults of the device are EngineErrors."""
        return self.device.guard()

    def board(self, flows: Flows, region: Region, cell_of: HostArray) -> GpuBoard:
        """A board with the parts on cells int64[n_parts]."""
        return GpuBoard(self._ground(flows, region), cell_of)

    def chains(
        self, flows: Flows, region: Region, starts: list[HostArray], schedule: Schedule
    ) -> GpuChains:
        """Boards for annealing, one for each of `starts`."""
        return GpuChains(self._ground(flows, region), starts, schedule)

    def nearest_cells(
        self,
        flows: Flows,
        region: Region,
        order: HostArray,
        cell_of: HostArray,
        part_at: HostArray,
        centre: int,
    ) -> HostArray:
        """As :meth:`snnmap.placement.engine_cpu.CpuEngine.nearest_cells`."""
        xp, ground = self.device.xp, self._ground(flows, region)
        where = xp.asarray(cell_of.astype(np.int32))
        x, y = (int(axis[0]) for axis in region.axes(np.array([centre])))
        along = xp.empty(ground.n_x + ground.n_y, np.int64)
        args = (*ground.graph, xp.asarray(order), len(order), *ground.ways, ground.n_cells, x, y)
        state = (where, xp.asarray(part_at.astype(np.int32)), along)
        self.device.launch(self.device.kernel("placement", "nearest_cells"), 1, (*args, *state))
        return np.asarray(xp.asnumpy(where), np.int64)

    def _ground(self, flows: Flows, region: Region) -> Ground:
        """Flows and region on the device; the last ones stay there."""
        if self._last is None or self._last[0] is not flows or self._last[1] is not region:
            self._last = None
            self._last = (flows, region, Ground(self.device, flows, region))
        return self._last[2]


class Ground:
    """What placements of the same parts in the same region share, on the device.

    Raises:
        EngineError: it does not fit into the memory of the device.
    """

    def __init__(self, device: Device, flows: Flows, region: Region) -> None:
        xp, self.device = device.xp, device
        self.n_parts, self.n_rows = flows.n_parts, region.n_rows
        self.n_x, self.n_y = (len(table) for table in region.tables)
        self.n_cells = len(region.blocked)
        self._check_size(flows)
        self.flows, self.region = flows, region
        rows = (flows.offsets, flows.neighbours, flows.rates)
        self.graph = tuple(xp.asarray(np.ascontiguousarray(row)) for row in rows)
        table_x, table_y = (xp.asarray(np.ascontiguousarray(table)) for table in region.tables)
        self.ways = (table_x, self.n_x, table_y, self.n_y)
        self.locked = xp.asarray((region.fixed >= 0).astype(np.uint8))

    @property
    def head(self) -> tuple[Any, ...]:
        """First arguments of most kernels."""
        return (*self.graph, self.n_parts, *self.ways, self.n_cells)

    def boards(self, starts: list[HostArray]) -> tuple[Array, Array]:
        """(int32[n_boards, n_parts] cells of parts, int32[n_boards, n_cells] parts on cells)."""
        cell_of = np.stack([np.asarray(start, np.int32) for start in starts])
        part_at = np.where(self.region.blocked, BLOCKED, EMPTY).astype(np.int32)
        part_at = np.tile(part_at, (len(starts), 1))
        for board, cells in zip(part_at, cell_of, strict=True):
            board[cells] = np.arange(self.n_parts)
        return self.device.xp.asarray(cell_of), self.device.xp.asarray(part_at)

    def call(self, name: str, threads: int, *args: Any) -> None:
        """Start a kernel with at least so many threads."""
        self.device.launch(self.device.kernel("placement", name), -(-threads // THREADS), args)

    def _check_size(self, flows: Flows) -> None:
        sides = self.n_x + self.n_y
        needed = 8 * (self.n_x**2 + self.n_y**2 + (self.n_parts + self.n_cells) * (sides + 16))
        needed += 12 * len(flows.rates)
        free = self.device.free_bytes()
        if needed > free or self.n_parts > _MOST_PARTS:
            raise EngineError(
                f"placing {self.n_parts:,} parts needs about {needed / 2**30:.1f} GiB of GPU memory, "
                f"{free / 2**30:.1f} GiB are free on {self.device.name}, and at most "
                f"{_MOST_PARTS:,} parts; use --engine cpu"
            )


class Boards:
    """Boards side by side, and the proposals of a round on them: the struct `Boards` of the kernels.

    Args:
        ground: what they share.
        starts: int64[n_parts] for each board, cells of the parts.
        annealing: exponentials, temperatures, radii, number of rounds, seeds, floors.
        swapping: active parts, where they were before, the list of proposals by any order and by
            rank, and their gains.
    """

    def __init__(
        self,
        ground: Ground,
        starts: list[HostArray],
        *,
        annealing: tuple[Any, ...] = (None, None, None, 0, None, None),
        swapping: tuple[Any, ...] = (None, None, None, None, None),
    ) -> None:
        xp, n, n_parts = ground.device.xp, len(starts), ground.n_parts
        self.ground, self._n = ground, n
        self.cell_of, self.part_at = ground.boards(starts)
        self.targets = xp.empty((n, n_parts), np.int32)
        self.gains = xp.empty((n, n_parts), np.int64)
        accepted = xp.empty((n, n_parts), np.uint8)
        firsts = ~xp.zeros((n, 2, ground.n_cells), np.uint64)
        epochs = xp.full(n, _TOP_EPOCH, np.uint64)
        self._states = xp.zeros((n, _STATE_WORDS), np.uint64)
        where = (ground.locked, n, self.cell_of, self.part_at)
        proposals = (self.targets, self.gains, accepted, firsts, epochs, self._states)
        fields = (*ground.head, ground.n_rows, *where, *proposals, *annealing, *swapping)
        self._kept = fields  # the device holds their addresses only
        self._struct = xp.asarray(np.array([word(field) for field in fields], np.uint64))

    def play(self, kernel: str, *args: int) -> HostArray:
        """Run rounds with as many blocks as may wait for each other; int64[n_boards, n_words] states."""
        device, threads = self.ground.device, _TEAM_THREADS
        needed = -(-self.ground.n_parts * _LANES // threads)
        blocks = min(self._n, device.multiprocessors)
        blocks *= min(needed, device.multiprocessors // blocks)
        self._states[:] = 0
        program = device.kernel("placement", kernel)
        device.launch_together(program, blocks, threads, (self._struct, *args))
        return np.asarray(device.xp.asnumpy(self._states).view(np.int64))


class GpuBoard:
    """A placement being changed, with the face of :class:`snnmap.placement.refine.Board`."""

    def __init__(self, ground: Ground, cell_of: HostArray) -> None:
        xp, n, self._ground = ground.device.xp, ground.n_parts, ground
        self._active = xp.ones(n, np.uint8)
        lists = tuple(xp.empty(n, np.int32) for _ in range(3))
        swapping = (self._active, *lists, xp.empty(n, np.int64))
        self._boards = Boards(ground, [cell_of], swapping=swapping)
        self._looked = 0

    @property
    def cell_of(self) -> HostArray:
        """int64[n_parts]: cell of each part."""
        return np.asarray(self._ground.device.xp.asnumpy(self._boards.cell_of)[0], np.int64)

    @property
    def active(self) -> HostArray:
        """bool[n_parts]: parts for which something changed since they last looked around."""
        return np.asarray(self._ground.device.xp.asnumpy(self._active), bool)

    def descend(self, reach: int, progress: Progress) -> None:
        """Rounds until one saves nothing, or `progress` has expired."""
        near = refine.is_near(self._ground.flows, self._ground.region, reach)
        most = _ROUNDS if near else 1
        while not progress.expired():
            done, _ = self.swap_rounds(reach, most)
            progress.advance(done)
            if done < most:
                break

    def swap_rounds(self, reach: int, most: int) -> tuple[int, int]:
        """(rounds that saved something, what they saved); `most` is 1 for a far reach."""
        near = refine.is_near(self._ground.flows, self._ground.region, reach)
        if reach > self._looked:
            self._active[:] = 1
        self._looked = reach
        if not near:
            self._propose_far(reach)
        state = self._boards.play("swap_rounds", reach, int(near), most)[0]
        return int(state[_N_ROUNDS]), int(state[_SAVED])

    def _propose_far(self, reach: int) -> None:
        """The best proposals of all parts, by way of fields."""
        ground, boards = self._ground, self._boards
        state = (*ground.head, ground.locked, boards.cell_of, boards.part_at, *self._fields())
        args = (*state, reach, boards.targets, boards.gains)
        ground.call("propose_far", THREADS * ground.n_parts, *args)

    def _fields(self) -> tuple[Array, ...]:
        """Fields by part for x and y, what parts pay where they are, fields by cell for x and y."""
        ground, xp, boards = self._ground, self._ground.device.xp, self._boards
        fields, leave = [], []
        for axis, (table, n) in enumerate((ground.ways[:2], ground.ways[2:])):
            field = xp.empty((ground.n_parts, n), np.int64)
            args = (
                *ground.graph,
                ground.n_parts,
                table,
                n,
                boards.cell_of,
                ground.n_y,
                axis,
                field,
            )
            ground.call("fill_fields", ground.n_parts * n, *args)
            by_cell = xp.empty((n, ground.n_cells), np.int64)
            args = (field, n, boards.part_at, ground.n_cells, by_cell)
            ground.call("fill_leave", n * ground.n_cells, *args)
            fields.append(field)
            leave.append(by_cell)
        stay = xp.empty(ground.n_cells, np.int64)
        args = (fields[0], ground.n_x, fields[1], ground.n_y, boards.part_at, ground.locked)
        ground.call("fill_stay", ground.n_cells, *args, ground.n_cells, stay)
        return (*fields, stay, *leave)


class GpuChains:
    """Annealing chains, with the face of :class:`snnmap.placement.engine_cpu.CpuChains`."""

    def __init__(
        self,
        ground: Ground,
        starts: list[HostArray],
        schedule: Schedule,
    ) -> None:
        xp, n = ground.device.xp, len(starts)
        rows = (schedule.exponentials, schedule.temperatures, schedule.radii)
        given = (xp.asarray(np.ascontiguousarray(row)) for row in rows)
        floors = xp.empty((n, ground.n_parts), np.int64)
        n_rounds = schedule.temperatures.shape[1]
        annealing = (*given, n_rounds, xp.asarray(schedule.seeds), floors)
        self._boards = Boards(ground, starts, annealing=annealing)

    def cells(self) -> list[HostArray]:
        """int64[n_parts] for each chain: a copy of its cells."""
        boards = self._boards
        return list(np.asarray(boards.ground.device.xp.asnumpy(boards.cell_of), np.int64))

    def rounds(self, first: int, n: int) -> HostArray:
        """As :meth:`snnmap.placement.engine_cpu.CpuChains.rounds`."""
        return self._boards.play("anneal_rounds", first, n)[:, _STATS]
