"""The GPU engine of placement: the steps of `refine` and `anneal` in ``kernels/placement.cu``.

Same integers as on the CPU. What the CPU settles one proposal after the other is the fixed point of
passes over all proposals at once (see the kernels); a fixed number of passes is started without
asking, and more only where they are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np

from snnmap.errors import EngineError
from snnmap.partitioning.multilevel.device import THREADS, Device
from snnmap.placement import refine
from snnmap.placement.flows import Flows
from snnmap.placement.region import BLOCKED, EMPTY, Region

Array = Any  # cupy.ndarray
HostArray = np.ndarray[Any, Any]

_PASSES = 5  # started without asking
_TOP_EPOCH = 2**40 - 2  # entries of `firsts` begin as 2^64 - 1
_MOST_PARTS = 2**24 - 1
_WARPS = THREADS // 32


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
            self.device.kernel("placement", "apply_swaps")

    def guard(self) -> AbstractContextManager[None]:
        """Context in which faults of the device are EngineErrors."""
        return self.device.guard()

    def board(self, flows: Flows, region: Region, cell_of: HostArray) -> GpuBoard:
        """A board with the parts on cells int64[n_parts]."""
        return GpuBoard(self._ground(flows, region), cell_of)

    def chains(
        self, flows: Flows, region: Region, starts: list[HostArray], exponentials: HostArray
    ) -> GpuChains:
        """Boards for annealing, one for each of `starts`."""
        return GpuChains(self._ground(flows, region), starts, exponentials)

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


class Settling:
    """Arrays of the passes that settle proposals on boards side by side.

    Attributes:
        targets, gains, accepted: int32, int64, uint8 [n_boards, n_parts]: proposals.
        firsts: uint64[n_boards, 2, n_cells].
        clock: int64[1], rounds so far.
        step: epochs of a round.
    """

    def __init__(self, ground: Ground, n_boards: int) -> None:
        xp, n = ground.device.xp, ground.n_parts
        self.ground, self.n_boards = ground, n_boards
        self.targets = xp.empty((n_boards, n), np.int32)
        self.gains = xp.zeros((n_boards, n), np.int64)
        self.accepted = xp.zeros((n_boards, n), np.uint8)
        self.firsts = ~xp.zeros((n_boards, 2, ground.n_cells), np.uint64)
        self.changed = xp.zeros((n_boards, _PASSES), np.uint64)
        self.saved = xp.zeros(n_boards, np.uint64)
        self.clock = xp.zeros(1, np.int64)
        self.step = n + _PASSES + 4

    def top_epoch(self, n_rounds: int) -> int:
        """Epoch of the first pass when the clock says 0, if `n_rounds` were played before."""
        return _TOP_EPOCH - n_rounds * self.step

    def boards(
        self,
        cell_of: Array,
        part_at: Array,
        top_epoch: int,
        *,
        order: Array = None,
        ranks: Array = None,
        floors: Array = None,
        schedule: tuple[Any, ...] = (None, None, None, 0, 0, None, None),
    ) -> Array:
        """uint64[n_fields] on the device: the struct `Boards` of the kernels.

        Without `order` and `ranks` parts are settled in the order of their ids; without `floors`
        gains must be above 0; only annealing has a `schedule`.
        """
        ground = self.ground
        proposals = (self.targets, order, ranks, floors, self.accepted, self.gains)
        passes = (self.firsts, self.changed, self.saved, self.clock, _PASSES, top_epoch, self.step)
        where = (ground.locked, cell_of, part_at, self.n_boards)
        fields = (*ground.head, ground.n_rows, *where, *proposals, *passes, *schedule)
        self._kept = fields  # the device holds their addresses only
        return ground.device.xp.asarray(np.array([_word(field) for field in fields], np.uint64))

    def steps(self, boards: Array) -> list[Callable[[], None]]:
        """What to start, in this order, once the proposals and `firsts` are filled."""
        n = self.n_boards * self.ground.n_parts
        prepare = partial(self.ground.device.prepare, "placement")
        return [
            *(prepare("decide_all", -(-n // _WARPS), (boards, k)) for k in range(_PASSES)),
            prepare("decide_rest", self.n_boards, (boards,)),
            prepare("apply_swaps", -(-n // THREADS), (boards,)),
        ]

    def take_saved(self) -> HostArray:
        """int64[n_boards]: what swaps saved since the last call."""
        found = self.ground.device.xp.asnumpy(self.saved).view(np.int64)
        self.saved[:] = 0
        return np.asarray(found)


class GpuBoard:
    """A placement being changed, with the face of :class:`snnmap.placement.refine.Board`."""

    def __init__(self, ground: Ground, cell_of: HostArray) -> None:
        xp, self._ground = ground.device.xp, ground
        self._cell_of, self._part_at = (array[0] for array in ground.boards([cell_of]))
        self._settling = Settling(ground, 1)
        self._active = xp.ones(ground.n_parts, np.uint8)
        self._order = xp.empty(ground.n_parts, np.int32)
        self._ranks = xp.empty(ground.n_parts, np.int32)
        settling = self._settling
        boards = settling.boards(
            self._cell_of,
            self._part_at,
            settling.top_epoch(0),
            order=self._order,
            ranks=self._ranks,
        )
        self._steps = settling.steps(boards)
        self._looked, self._rounds = 0, 0

    @property
    def cell_of(self) -> HostArray:
        """int64[n_parts]: cell of each part."""
        return np.asarray(self._ground.device.xp.asnumpy(self._cell_of), np.int64)

    @property
    def active(self) -> HostArray:
        """bool[n_parts]: parts for which something changed since they last looked around."""
        return np.asarray(self._ground.device.xp.asnumpy(self._active), bool)

    def swap_round(self, reach: int) -> int:
        """One round; returns what it saved (0 when nothing improves)."""
        ground, s = self._ground, self._settling
        n = ground.n_parts
        if reach > self._looked:
            self._active[:] = 1
        proposals = (s.targets, s.gains)
        state = (*ground.head, ground.locked, self._cell_of, self._part_at)
        if refine.is_near(ground.flows, ground.region, reach):
            ground.call("propose_near", 32 * n, *state, self._active, reach, *proposals)
        else:
            ground.call("propose_far", THREADS * n, *state, *self._fields(), reach, *proposals)
        by_gain = ground.device.xp.argsort(-s.gains[0])
        args = (by_gain, n, self._cell_of, s.targets, s.top_epoch(self._rounds))
        results = (self._order, self._ranks, s.accepted, s.firsts)
        ground.call("rank_proposals", n, *args, *results)
        before = self._cell_of.copy()
        for start in self._steps:
            start()
        self._rounds += 1
        self._active[:] = 0
        args = (*ground.graph[:2], n, before, self._cell_of, self._part_at)
        sizes = (ground.n_cells, ground.n_y, reach)
        ground.call("mark_active", 32 * n, *args, *sizes, s.targets, self._active)
        self._looked = reach
        return int(s.take_saved()[0])

    def _fields(self) -> tuple[Array, ...]:
        """Fields by part for x and y, what parts pay where they are, fields by cell for x and y."""
        ground, xp = self._ground, self._ground.device.xp
        fields, leave = [], []
        for axis, (table, n) in enumerate((ground.ways[:2], ground.ways[2:])):
            field = xp.empty((ground.n_parts, n), np.int64)
            args = (*ground.graph, ground.n_parts, table, n, self._cell_of, ground.n_y, axis, field)
            ground.call("fill_fields", ground.n_parts * n, *args)
            by_cell = xp.empty((n, ground.n_cells), np.int64)
            args = (field, n, self._part_at, ground.n_cells, by_cell)
            ground.call("fill_leave", n * ground.n_cells, *args)
            fields.append(field)
            leave.append(by_cell)
        stay = xp.empty(ground.n_cells, np.int64)
        args = (fields[0], ground.n_x, fields[1], ground.n_y, self._part_at, ground.locked)
        ground.call("fill_stay", ground.n_cells, *args, ground.n_cells, stay)
        return (*fields, stay, *leave)


class GpuChains:
    """Annealing chains, with the face of :class:`snnmap.placement.engine_cpu.CpuChains`."""

    def __init__(self, ground: Ground, starts: list[HostArray], exponentials: HostArray) -> None:
        xp, self._ground, self._n = ground.device.xp, ground, len(starts)
        self._cell_of, self._part_at = ground.boards(starts)
        self._settling = Settling(ground, self._n)
        self._floors = xp.zeros((self._n, ground.n_parts), np.int64)
        self._exponentials = xp.asarray(exponentials)
        self._losses = xp.zeros((self._n, 2), np.uint64)
        self._played = 0

    def cells(self) -> list[HostArray]:
        """int64[n_parts] for each chain: a copy of its cells."""
        return list(np.asarray(self._ground.device.xp.asnumpy(self._cell_of), np.int64))

    def rounds(
        self, temperatures: HostArray, radii: HostArray, first: int, seeds: HostArray
    ) -> HostArray:
        """As :meth:`snnmap.placement.engine_cpu.CpuChains.rounds`."""
        ground, s, xp = self._ground, self._settling, self._ground.device.xp
        n, n_rounds = self._n * ground.n_parts, temperatures.shape[1]
        top_epoch = s.top_epoch(self._played)
        self._played += n_rounds
        s.clock[:] = 0
        self._losses[:] = 0
        given = (xp.asarray(np.ascontiguousarray(a)) for a in (temperatures, radii))
        schedule = (self._exponentials, *given, n_rounds, first, xp.asarray(seeds), self._losses)
        where = (self._cell_of, self._part_at, top_epoch)
        boards = s.boards(*where, floors=self._floors, schedule=schedule)
        propose = ground.device.prepare("placement", "propose_random", -(-n // _WARPS), (boards,))
        steps = s.steps(boards)
        for _ in range(n_rounds):
            propose()
            for start in steps:
                start()
        losses = xp.asnumpy(self._losses).astype(np.int64)
        return np.column_stack([s.take_saved(), losses])


def _word(value: Any) -> int:
    """A field of the kernels' struct as 64 bits: an array's address, 0 for none, or an integer."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value % 2**64
    return int(value.__cuda_array_interface__["data"][0])
