"""Contraction on the GPU, and rows the other way round (``kernels/contract.cu``, ``lists.cu``).

Launches whose blocks wait for each other: what a step needs of another one is there without the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from snnmap.partitioning.multilevel.engine_cpu import CpuEngine
from snnmap.partitioning.multilevel.gpu_rows import GpuRows, power_of_two
from snnmap.partitioning.multilevel.level import Level, Sizes

Array = Any  # cupy.ndarray

_THREADS = 1024  # of a block of those that wait for each other; one fits a multiprocessor
_WARP_BYTES = _THREADS // 32 * 2048  # shared memory for short rows, a warp each
_SCRATCH_BYTES = 1024  # before that
_KEPT_BYTES = 8192  # of shared memory, for the system and what kernels declare
GATE_WORDS = 16  # of 8 bytes, where blocks wait for each other
_SUMMARY = slice(2 * GATE_WORDS + 3, 2 * GATE_WORDS + 8)  # see `Counter` in contract.cu


class Space:
    """All that a step keeps in between; 8-byte words.

    Args:
        xp: CuPy.
        zeroed: words of each piece that is zero at first.
        others: words of each piece that is anything at first.

    Attributes:
        array: uint64, the pieces that were zero.
        pieces: addresses of all of them.
    """

    def __init__(self, xp: Any, zeroed: list[int], others: Sequence[int] = ()) -> None:
        self.pieces: list[int] = []
        made = []
        for words, make in ((zeroed, xp.zeros), (others, xp.empty)):
            *starts, total = accumulate(words, initial=0)
            made.append(make(total, xp.uint64))
            base = int(made[-1].data.ptr)
            self.pieces += [base + 8 * start for start in starts]
        self.array, self._others = made


class Begun(NamedTuple):
    """A contraction whose result has no room yet.

    Attributes:
        net_pins: of the level; clusters: int32[n_nodes], of its nodes.
        space: what the two launches keep.
        sizes: how many nets differ from those with the same hash, nets, pins, (net, source) pairs, clusters.
    """

    net_pins: Array
    clusters: Array
    space: Space
    sizes: list[int]


def _tables(level: Level) -> tuple[int, int]:
    """Slots for the sets of pins and for the (net, source) pairs of a contracted level."""
    sets, pairs = (power_of_two(4 * n // 3 + 1) for n in (level.n_nets, len(level.source_nodes)))
    return sets, pairs


class GpuContraction(GpuRows):
    """Contraction and lists; see `engine_cpu.CpuEngine`.

    Attributes:
        hash_mask: of the hashes of nets, to tell which may be equal.
        window_bytes: most shared memory for a block's table or bitmap.
        hashes_differ: whether all nets with other pins had another hash so far.
    """

    bring: Callable[[Level], Level]
    download: Callable[[Level], Level]
    restore: Callable[[Level], Level]
    hash_mask: int = -1
    window_bytes: int = 1 << 30
    hashes_differ: bool = True
    _begun: Begun | None = None  # by who made the clusters

    def contract(self, level: Level, clusters: Array, n_clusters: int) -> Level:
        """The level whose nodes are the clusters; nets with equal pins become one."""
        return self.restore(self.contract_nets(level, clusters, n_clusters))

    def contract_nets(
        self,
        level: Level,
        clusters: Array,
        n_clusters: int,
        sizes: Sizes | None = None,
    ) -> Level:
        """The same without lists by destination (see the twin); the level may lie on the host.

        Nets with equal 64-bit hashes are compared; should two of them differ, the host contracts. They did not
        when the level was made first if `sizes` of that are known: hashes are of sets of clusters.
        """
        xp, level, begun = self.xp, self.bring(level), self._begun
        self._begun = None
        if begun is None or begun.clusters is not clusters or begun.net_pins is not level.net_pins:
            known = sizes if self.hashes_differ else None
            begun = self._begin_contraction(level, clusters, n_clusters, known=known)
        differing, n_new, n_pins, n_pairs, _ = begun.sizes
        if differing:
            self.hashes_differ = False
            host = CpuEngine().contract_nets(self.download(level), xp.asnumpy(clusters), n_clusters)
            return self.bring(host)
        ids, words = xp.int32, xp.int64
        n_distinct, n_additive = level.counts.shape[1], level.resources.shape[1]
        sources = xp.empty(n_new + 1, words), xp.empty(n_pairs, ids), xp.empty(n_pairs, words)
        outs = xp.empty(n_clusters + 1, words), xp.empty(n_pairs, ids), xp.empty(n_pairs, words)
        nets = xp.empty(n_new + 1, words), xp.empty(n_pins, ids)
        sums = (
            xp.empty(n_new, words),
            xp.empty((n_new, n_distinct), words),
            xp.empty((n_clusters, n_additive), words),
        )
        args = *self._contraction(level, clusters, n_clusters, begun.space), *nets, *sources, *outs
        bits = max(n_clusters, level.n_nets)
        self._run_together("contract", "finish_contraction", bits, *args, *sums)
        none = xp.empty(0, words), xp.empty(0, ids)
        return Level(*nets, *sources, *none, *outs, *sums)

    def _begin_contraction(
        self,
        level: Level,
        clusters: Array,
        n_clusters: int,
        found: Array | None = None,
        known: Sizes | None = None,
    ) -> Begun:
        """The first launch, and the sizes of what the second one makes.

        Args:
            level: on the device.
            clusters: int32[n_nodes].
            n_clusters: their number, or the most that there may be.
            found: uint64[1], their number, if the host does not know it yet.
            known: sizes of the new level; then nothing is waited for.
        """
        n_nets, tables = level.n_nets, _tables(level)
        zeroed = [3 * GATE_WORDS, *(2 * tables[:1]), *(2 * tables[1:]), n_nets, n_clusters]
        wide = [n_nets, n_nets + 1, n_nets + 1, n_clusters + 1, 2 * self.device.multiprocessors]
        narrow = [n // 2 + 1 for n in (6 * [n_nets] + [n_clusters])]
        space = Space(self.xp, zeroed, wide + narrow)
        args = *self._contraction(level, clusters, n_clusters, space), found
        self._run_together("contract", "begin_contraction", max(n_clusters, n_nets), *args)
        if known is not None:
            return Begun(level.net_pins, clusters, space, [0, *known[1:], known[0]])
        sizes = [int(x) for x in self.xp.asnumpy(space.array[_SUMMARY])]
        return Begun(level.net_pins, clusters, space, sizes)

    def _contraction(
        self, level: Level, clusters: Array, n_clusters: int, space: Space
    ) -> tuple[Any, ...]:
        """Arguments of both launches."""
        sizes = level.n_nets, len(level.source_nodes), level.n_nodes, n_clusters
        columns = level.resources.shape[1], level.counts.shape[1]
        arrays = *level[:5], *level[10:], clusters
        return *arrays, *sizes, *columns, self.hash_mask, *space.pieces, *_tables(level)

    def _transpose(self, offsets: Array, items: Array, n: int) -> tuple[Array, Array]:
        """(int64[n + 1] offsets, int32 rows): the rows that hold each of n ids, ascending."""
        return self._list_items(offsets, items, len(offsets) - 1, n)

    def _list_items(
        self, offsets: Array | None, items: Array, n_rows: int, n: int
    ) -> tuple[Array, Array]:
        xp = self.xp
        space = Space(xp, [2 * GATE_WORDS, n], [self.device.multiprocessors, n // 2 + 1])
        found = xp.empty(n + 1, xp.int64), xp.empty(len(items), xp.int32)
        args = (offsets, items, n_rows, len(items), n, *space.pieces, *found)
        self._run_together("lists", "list_rows_of", n_rows, *args)
        return found

    def _run_together(
        self,
        source: str,
        name: str,
        n_bits: int,
        *args: Any,
        apart: tuple[int, int] = (0, _WARP_BYTES),
        defines: tuple[str, ...] = (),
    ) -> None:
        """A kernel whose blocks wait for each other.

        Args:
            source: of the kernel.
            name: of the kernel.
            n_bits: a table in shared memory would like to have.
            args: of the kernel; the last one is added, bytes of the scratch and the table.
            apart: bytes that a block needs before the table, bytes that its warps need instead of both.
            defines: macros.
        """
        device, (before, warps) = self.device, apart
        room = device.shared_bytes - _KEPT_BYTES - _SCRATCH_BYTES - before
        table = 4 * max(min(-(-n_bits // 32), room // 4, self.window_bytes // 4), 1)
        shared = _SCRATCH_BYTES + max(before + max(table, _WARP_BYTES), warps)
        kernel, blocks = device.kernel(source, name, defines), device.multiprocessors
        values = (*args, _SCRATCH_BYTES + table)
        device.launch_together(kernel, blocks, _THREADS, values, shared)
