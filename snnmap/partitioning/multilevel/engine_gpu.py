"""The GPU engine: the steps of `engine_cpu.py` on CuPy arrays with the kernels of ``kernels/``.

Same methods, same integers; one file a phase (`gpu_coarsening.py`, `gpu_refinement.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from snnmap.errors import EngineError
from snnmap.partitioning.multilevel.device import Device
from snnmap.partitioning.multilevel.gpu_choosing import GpuChoosing
from snnmap.partitioning.multilevel.gpu_coarsening import GpuCoarsening
from snnmap.partitioning.multilevel.level import Level
from snnmap.partitioning.multilevel.upload import Uploader

Array = Any  # cupy.ndarray

_IDS = {"net_pins", "source_nodes", "node_nets", "out_nets"}  # int32; all else is int64


class GpuEngine(GpuCoarsening, GpuChoosing):
    """CuPy and CUDA C++ kernels on the current device.

    Raises:
        EngineError: CuPy, the driver or a device is missing, or the kernels do not compile.
    """

    name = "gpu"

    def __init__(self) -> None:
        self.device = Device()
        self.xp = self.device.xp
        self.sparse = self.device.sparse
        self.reason = f"GPU {self.device.name}"
        self._upload = Uploader(self.xp)
        with self.device.guard():
            for source, kernel in (("rows", "sum_rows"), ("coarsen", "count_visits")):
                self.device.kernel(source, kernel)

    # ---------------------------------------------------------------- transfers and memory

    def guard(self) -> Any:
        """Context in which faults of the device are EngineErrors."""
        return self.device.guard()

    def plan(self, level: Level) -> Plan:
        """How much memory the work on a level takes at its peak, and how much there is."""
        return Plan(
            needed_bytes(level),
            self.device.free_bytes(),
            f"{level.n_pins:,} pins, {level.n_nets:,} nets, {level.n_nodes:,} nodes",
            self.device.name,
        )

    def upload(self, level: Level) -> Level:
        """The level on the device, after checking that the work on it will fit.

        Raises:
            EngineError: too little memory, with the numbers.
        """
        plan = self.plan(level)
        if not plan.fits:
            raise EngineError(f"{plan}; use --engine cpu")
        dtypes = (np.int32 if field in _IDS else np.int64 for field in Level._fields)
        arrays = (np.ascontiguousarray(a, d) for a, d in zip(level, dtypes, strict=True))
        return Level(*(self._upload(a) for a in arrays))

    def shed(self, level: Level) -> Level:
        """The level itself: its lists by destination would take a sort to make again."""
        return level

    def restore(self, level: Level) -> Level:
        """The level itself."""
        return level

    def contract_nets(self, level: Level, clusters: Array, n_clusters: int) -> Level:
        """See the twin."""
        return self.contract(level, clusters, n_clusters)

    def tidy(self) -> None:
        """Nothing yet."""

    def download(self, level: Level) -> Level:
        """The level on the host."""
        return Level(*(self.to_host(a) for a in level))


class Plan(NamedTuple):
    """Memory of the device before anything is started.

    Attributes:
        needed: bytes at the peak.
        free: bytes that arrays may take now.
        network: its size in words.
        device: its name.
    """

    needed: int
    free: int
    network: str
    device: str

    @property
    def fits(self) -> bool:
        """Whether there is enough."""
        return self.needed <= self.free

    def __str__(self) -> str:
        needed, free = (f"{n / 2**30:.2f} GiB" for n in (self.needed, self.free))
        return (
            f"the network needs about {needed} of GPU memory ({self.network}), "
            f"{free} are free on {self.device}"
        )


def needed_bytes(level: Level) -> int:
    """About how much device memory a partition of the level takes at its peak.

    The level and the coarser ones; then contraction (keys of all pins, their sorted copy) or
    refinement (two tables with an entry for every second pin, moves, events), whichever is more.
    """
    own = sum(int(a.nbytes) for a in level)
    ends = level.n_pins + len(level.source_nodes)
    n_loads = int(level.resources.shape[1] + level.counts.shape[1])
    refinement = 16 * ends + 28 * ends // 4 + level.n_nodes * (40 + 40 * n_loads)
    return own + own // 2 + max(18 * ends, refinement)
