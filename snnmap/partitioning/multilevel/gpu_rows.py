"""What all steps of the GPU engine share: launches over rows sorted by size, sums.

Rows (nets, nodes) are sorted into lists by the hash table that each needs, and worked on by a warp,
a block with little or much shared memory, or a block with global memory; the lengths of the lists
stay on the device, so that no step waits for it in vain.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from snnmap.partitioning.multilevel.device import THREADS, Device
from snnmap.partitioning.multilevel.level import Level
from snnmap.partitioning.multilevel.scratch import Scratch

Array = Any  # cupy.ndarray

CHUNK = 16  # items of a thread in the kernels that run over chunks of items
_WARPS = THREADS // 32
_WARP_SLOTS = 256  # largest hash table of a warp
_WARP_VISITS = 2048  # most insertions of a warp's row


class Lists(NamedTuple):
    """Rows by the hash table they need (see `list_rows` in ``kernels/rows.cu``).

    Attributes:
        n: number of rows.
        slots: int32[n], slots of each row's table.
        ids: int32[4 * n], the four lists.
        counters: uint64[5], their lengths, and the most slots of a row in the fourth.
        limits: most slots of a row in the first three lists.
        largest: at least the most slots of a row in the fourth.
    """

    n: int
    slots: Array
    ids: Array
    counters: Array
    limits: tuple[int, int, int]
    largest: int


class Step(NamedTuple):
    """Kernels ``<name>_warp`` and ``<name>_block``, bytes of a slot of their tables, macros."""

    source: str
    name: str
    slot_bytes: int
    defines: tuple[str, ...]


class GpuRows:
    """Passes over rows on one device.

    Attributes:
        device: where the kernels run.
        xp: CuPy.
        scratch: memory of the search, for others in between.
        scratch_bytes: of global memory for tables that fit no shared memory, but one at least.
        most_bytes: that arrays may take by the plan, others' included.
    """

    device: Device
    xp: Any
    scratch: Scratch
    scratch_bytes: int = 1 << 28
    most_bytes: int = 1 << 60

    def room_bytes(self) -> int:
        """What is left of the planned memory, or in scratch."""
        return max(self.most_bytes - self.device.used_bytes(), len(self.scratch))

    def to_host(self, array: Array) -> Any:
        """An array on the host."""
        return self.xp.asnumpy(array)

    def from_host(self, array: Any) -> Array:
        """An array on the device."""
        return self.xp.asarray(array)

    def _run(
        self, source: str, name: str, threads: int, *args: Any, defines: tuple[str, ...] = ()
    ) -> None:
        """A kernel with (at least) that many threads and no shared memory."""
        self.device.launch(self.device.kernel(source, name, defines), -(-threads // THREADS), args)

    def _run_on(
        self, lists: Lists, step: Step, args: tuple[Any, ...], results: tuple[Any, ...]
    ) -> None:
        """The kernels of a step over their lists; `args` and `results` stand around the lists."""
        device, n, bytes_each = self.device, lists.n, step.slot_bytes
        warp, block = (
            device.kernel(step.source, f"{step.name}_{kind}", step.defines)
            for kind in ("warp", "block")
        )

        def arguments(kind: int, capacity: int) -> tuple[Any, ...]:
            ids, length = lists.ids[kind * n :], lists.counters[kind:]
            return (*args, lists.slots, ids, length, capacity, *results)

        many = 8 * device.multiprocessors
        shared = _WARPS * lists.limits[0] * bytes_each
        device.launch(warp, min(-(-n // _WARPS), many), arguments(0, lists.limits[0]), shared)
        for kind, slots in ((1, lists.limits[1]), (2, lists.limits[2])):
            if kind == 1 or slots > lists.limits[1]:
                values = (*arguments(kind, slots), None)
                device.launch(block, min(n, many), values, slots * bytes_each)
        if lists.largest > lists.limits[2]:
            size = lists.largest * bytes_each
            blocks = max(1, min(n, 2 * device.multiprocessors, self.scratch_bytes // size))
            scratch = self.xp.empty(blocks * size, self.xp.uint8)
            device.launch(block, blocks, (*arguments(3, lists.largest), scratch))

    def _list_rows(self, visits: Array, n_keys: int, slot_bytes: int, *, dense: bool) -> Lists:
        """Sort rows by the table they need; `dense`: a slot for each of `n_keys` keys suffices."""
        xp, n = self.xp, len(visits)
        most = power_of_two(n_keys if dense else 2 * n_keys)
        room = self.device.shared_bytes - 8192  # the kernels themselves take some
        little, much = (min(most, largest_power(room // k // slot_bytes)) for k in (4, 2))
        if most * slot_bytes <= room:
            much = most
        limits = (min(_WARP_SLOTS, most), little, much)
        slots, ids = xp.empty(n, xp.int32), xp.empty(4 * n, xp.int32)
        counters = xp.zeros(5, xp.uint64)
        args = (visits, n, most, _WARP_VISITS, *limits, slots, ids, counters)
        self._run("rows", "list_rows", n, *args)
        largest = most
        if not dense and most > much:
            largest = int(counters[4])
        return Lists(n, slots, ids, counters, limits, largest)

    def _offsets(self, counts: Array) -> Array:
        """int64[n + 1]: exclusive prefix sums."""
        offsets = self.xp.zeros(len(counts) + 1, self.xp.int64)
        if len(counts):
            self.xp.cumsum(counts, out=offsets[1:])
        return offsets

    def _add_rows(
        self,
        offsets: Array,
        items: Array,
        values: Array,
        sums: Array,
        column: tuple[int, int] = (0, 0),
    ) -> None:
        """Add to a column of `sums` the sums over rows of items of a column of `values`."""
        widths = [a.shape[1] if a.ndim == 2 else 1 for a in (values, sums)]
        values, sums = values.ravel()[column[0] :], sums.ravel()[column[1] :]
        n = len(items)
        args = (offsets, len(offsets) - 1, items, n, values, widths[0], sums, widths[1])
        self._run("rows", "sum_rows", -(-n // CHUNK), *args)


def defines_of(level: Level) -> tuple[str, ...]:
    """Compiler options of the kernels that know how many loads there are."""
    return (f"-DN_ADDITIVE={level.resources.shape[1]}", f"-DN_DISTINCT={level.counts.shape[1]}")


def power_of_two(n: int) -> int:
    """The smallest power of two, at least 32, that is not below n."""
    return 1 << max(5, (n - 1).bit_length())


def largest_power(n: int) -> int:
    """The largest power of two, at least 32, that is not above n."""
    return 1 << max(5, n.bit_length() - 1)
