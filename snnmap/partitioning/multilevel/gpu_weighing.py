"""What is known of a partition without its table, on the GPU (``kernels/weigh.cu``): one launch, one wait."""

from __future__ import annotations

from typing import Any

import numpy as np

from snnmap.partitioning.multilevel.gpu_contraction import GATE_WORDS, GpuContraction, Space
from snnmap.partitioning.multilevel.gpu_rows import defines_of
from snnmap.partitioning.multilevel.level import Level

Array = Any  # cupy.ndarray


class GpuWeighing(GpuContraction):
    """Weighing partitions; see `engine_cpu.CpuEngine`.

    Attributes:
        kept_bytes: most shared memory of a block for its sums of loads.
    """

    kept_bytes: int = 96 * 1024

    def weigh(
        self, level: Level, limits: Array, parts: Array, n_parts: int
    ) -> tuple[None, int, Array, Any]:
        """(None, since no table is made; connectivity, loads, overload): see the twin."""
        n_loads = len(limits)
        n_found, n_kept = 1 + n_loads + n_parts * n_loads, 8 * n_parts * n_loads
        n_kept = n_kept if n_kept <= self.kept_bytes else 0
        space = Space(self.xp, [GATE_WORDS + 1, n_found], [level.n_nets // 2 + 1])
        arrays = (*level[:5], *level[10:], limits, parts)
        sizes = (level.n_nets, level.n_nodes, n_parts, n_kept)
        args, defines = (*arrays, *sizes, *space.pieces), defines_of(level)
        self._run_together(
            "weigh", "weigh_parts", n_parts, *args, apart=(n_kept, 0), defines=defines
        )
        found = space.array[GATE_WORDS + 1 :].view(np.int64)
        host = self.to_host(found)
        overload = host[1 + n_loads :].reshape(n_parts, n_loads) - host[1 : 1 + n_loads]
        loads = found[1 + n_loads :].reshape(n_parts, n_loads)
        return None, int(host[0]), loads, np.maximum(overload, 0).sum(axis=0)
