"""The GPU engine: the steps of `engine_cpu.py` on CuPy arrays with the kernels of ``kernels/``.

Same methods, same integers; one file a phase (`gpu_compression.py`, `gpu_contraction.py`, ...).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from snnmap.errors import EngineError
from snnmap.partitioning.multilevel.config import CoarseningConfig, SearchConfig
from snnmap.partitioning.multilevel.device import Device
from snnmap.partitioning.multilevel.engine import REMEDY
from snnmap.partitioning.multilevel.gpu_coarsening import GpuCoarsening
from snnmap.partitioning.multilevel.gpu_compression import GpuCompression
from snnmap.partitioning.multilevel.gpu_memory import ANY_WORK, Plan, Work, plan_memory
from snnmap.partitioning.multilevel.gpu_merging import GpuMerging
from snnmap.partitioning.multilevel.gpu_rounds import GpuRounds
from snnmap.partitioning.multilevel.gpu_search import GpuSearch
from snnmap.partitioning.multilevel.level import Level
from snnmap.partitioning.multilevel.scratch import Scratch
from snnmap.partitioning.multilevel.search import Search
from snnmap.partitioning.multilevel.upload import Uploader

Array = Any  # cupy.ndarray

LEAST_POOL = 18 << 20
"""What the pool may keep even if less is planned, bytes: letting blocks go and asking for them again takes milliseconds."""

_LEAST_SHARE = 512  # of the raw pins' bytes: smaller arrays do not lie in the arena
_LARGE_SHARE = 8  # of them: arrays at its end

_IDS = {"net_pins", "source_nodes", "node_nets", "out_nets"}  # int32; all else is int64


class GpuEngine(GpuCompression, GpuCoarsening, GpuMerging, GpuRounds):
    """CuPy and CUDA C++ kernels on the current device.

    Attributes:
        spills: whether levels that are not worked on lie in host memory.
        kept_pins, kept_share: which coarse levels are kept (see the twin).
        least_parts: that the network must have.
        planned_bytes: that the pool may keep, scratch and what is reserved apart; needed_bytes: that the work takes.
        search_threads: of a block there.

    Raises:
        EngineError: CuPy, the driver or a device is missing, or the kernels do not compile.
    """

    name = "gpu"
    spills: bool = False
    kept_pins: int = 0
    kept_share: int = 3
    least_parts: int = 1
    planned_bytes: int = 0
    needed_bytes: int = 0
    search_threads: int = 1024

    def __init__(self) -> None:
        self.device = Device()
        self.xp = self.device.xp
        self.reason = f"GPU {self.device.name}"
        self.scratch = Scratch(self.device)
        self._upload = Uploader(self.xp)
        with self.device.guard():
            for source, kernel in (("rows", "sum_rows"), ("lists", "list_rows_of")):
                self.device.kernel(source, kernel)

    # ---------------------------------------------------------------- transfers and memory

    def guard(self) -> Any:
        """Context in which faults of the device are EngineErrors."""
        return self.device.guard()

    def plan(self, level: Level, work: Work = ANY_WORK) -> Plan:
        """How much memory the work on a level takes at its peak, and how much there is."""
        where = self.device.name
        if self.device.allowed_bytes():
            where += " within CuPy's limit"
        return plan_memory(level, self.device.free_bytes(), where, work)

    def upload(self, level: Level, work: Work = ANY_WORK) -> Level:
        """The level on the device, after checking that the work on it will fit.

        Args:
            level: on the host.
            work: what is to be done with it.

        Raises:
            EngineError: too little memory, with the numbers.
        """
        self.forget()
        plan = self.plan(level, work)
        if plan.mode.spills:
            self.release()
            plan = self.plan(level, work)
        if not plan.fits:
            raise EngineError(f"{plan}; {REMEDY}")
        self.spills, self.scratch_bytes = plan.mode
        # Bringing one back is less than making it again.
        self.kept_share = 1 if self.spills else type(self).kept_share
        self.least_parts = work.parts
        self.device.planned, self.needed_bytes = str(plan), plan.needed
        if plan.reserved or self.device.pools.joins:
            self.scratch.release()  # most such networks are not searched, and it may lie in the arena
        self.scratch.most = plan.search
        sizes = plan.raw // _LEAST_SHARE, plan.raw // _LARGE_SHARE
        self.device.pools.reserve(plan.reserved, *sizes)
        self.planned_bytes = plan.held - plan.reserved
        self.most_bytes = self.device.used_bytes() - len(self.scratch) + plan.most
        self._keep()
        return self.bring(level)

    def bring(self, level: Level) -> Level:
        """The level on the device, wherever it is."""
        if not self._on_host(level):
            return level
        dtypes = (np.int32 if field in _IDS else np.int64 for field in Level._fields)
        arrays = (np.ascontiguousarray(a, d) for a, d in zip(level, dtypes, strict=True))
        return Level(*(self._upload(a) for a in arrays))

    def searcher(
        self,
        level: Level,
        limits: Any,
        config: SearchConfig,
        max_parts: int | None,
        bundles: Array | None = None,
    ) -> Search:
        """The search of a small level, on the device where blocks can work on it and have memory."""
        if GpuSearch.suits(level, config, self.least_parts, self.scratch.most):
            rest = (limits, config, max_parts, bundles, self.scratch, self.search_threads)
            search = GpuSearch(self.device, self._upload, self.bring(level), *rest)
            if search.is_narrow:
                return search
        if bundles is not None:
            bundles = self.to_host(bundles)
        return Search(self.download(level), limits, config, max_parts, bundles)

    def release(self) -> None:
        """Give back what is kept on the device for the next partition."""
        self.scratch.release()
        self.device.pools.release()

    def shed(self, level: Level) -> Level:
        """The level without its lists by destination; on the host, where the device is short."""
        self._by_node = None
        return self.set_aside(level.without_lists(np if self._on_host(level) else self.xp))

    def set_aside(self, level: Level) -> Level:
        """A level that is not worked on for a while; on the host, where the device is short."""
        return self.download(level) if self.spills else level

    def restore(self, level: Level) -> Level:
        """The whole level on the device again."""
        level = self.bring(level)
        if len(level.node_offsets):
            return level
        if self._by_node is not None and self._by_node.net_pins is level.net_pins:
            return self._by_node
        node_offsets, node_nets = self._transpose(level.net_offsets, level.net_pins, level.n_nodes)
        return level._replace(node_offsets=node_offsets, node_nets=node_nets)

    def for_rounds(self, level: Level) -> Level:
        """The level without lists by node: refinement makes them where it cannot do without."""
        return self.bring(level).without_lists(self.xp)

    def for_clusters(self, level: Level, config: CoarseningConfig) -> Level:
        """The level without lists by node; matching needs them."""
        if config.scheme == "matching":
            return self.restore(level)
        self._by_node = None
        return self.for_rounds(level)

    def keep_memory(self) -> None:
        """Keep no more freed memory than the work needs: levels are small, also where neurons are many."""
        self.planned_bytes = min(self.planned_bytes, self.needed_bytes)
        self._keep()

    def _keep(self) -> None:
        self.scratch.beside = max(self.planned_bytes, LEAST_POOL)
        self.device.keep_within(self.scratch.beside)

    def tidy(self, *, finest: bool = False) -> None:
        """Forget what was kept for a level; of the finest its lists by node stay, as completion wants them."""
        self._listed = (None, 0, None)
        if not finest:
            self._by_node = None

    def forget(self) -> None:
        """Forget all of a partition that is done; what its work took can be given to the next."""
        self.tidy()
        self._noted, self._begun, self._awaited = (), None, None

    def download(self, level: Level) -> Level:
        """The level on the host."""
        return level if self._on_host(level) else Level(*(self.to_host(a) for a in level))

    def from_host(self, array: Any) -> Array:
        """An array on the device."""
        return array if isinstance(array, self.xp.ndarray) else self._upload(array)

    def _on_host(self, level: Level) -> bool:
        return not isinstance(level.net_pins, self.xp.ndarray)
