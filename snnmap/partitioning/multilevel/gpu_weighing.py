"""What is known of a partition without its table, on the GPU (``kernels/weigh.cu``): one launch, one wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from snnmap.partitioning.multilevel.gpu_contraction import GATE_WORDS, GpuContraction, Space
from snnmap.partitioning.multilevel.gpu_rows import defines_of
from snnmap.partitioning.multilevel.level import Level

Array = Any  # cupy.ndarray


class Noted(NamedTuple):
    """What rounds in one launch know of the parts at their start and their end.

    Attributes:
        parts: int32[n_nodes] on the device; of this very array.
        found: int64[1 + n_loads + n_parts * n_loads] on the host: connectivity, limits, loads.
    """

    parts: Array
    found: Any


class GpuWeighing(GpuContraction):
    """Weighing partitions; see `engine_cpu.CpuEngine`.

    Attributes:
        kept_bytes: most shared memory of a block for its sums of loads.
    """

    kept_bytes: int = 96 * 1024
    _noted: Sequence[Noted] = ()  # by the last rounds, as long as nobody asked

    def weigh(
        self, level: Level, limits: Array, parts: Array, n_parts: int
    ) -> tuple[None, int, Array, Any]:
        """(None, since no table is made; connectivity, loads, overload): see the twin.

        All are on the host. What rounds have just noted is not measured again.
        """
        n_loads = len(limits)
        n_found, n_kept = 1 + n_loads + n_parts * n_loads, 8 * n_parts * n_loads
        known = [one.found for one in self._noted if one.parts is parts]
        self._noted = [one for one in self._noted if one.parts is not parts]
        if known and len(known[0]) == n_found:
            found = known[0]
        else:
            n_kept = n_kept if n_kept <= self.kept_bytes else 0
            space = Space(self.xp, [GATE_WORDS + 1, n_found], [level.n_nets // 2 + 1])
            arrays = (*level[:5], *level[10:], limits, parts)
            sizes = (level.n_nets, level.n_nodes, n_parts, n_kept)
            args, defines = (*arrays, *sizes, *space.pieces), defines_of(level)
            self._run_together(
                "weigh", "weigh_parts", n_parts, *args, apart=(n_kept, 0), defines=defines
            )
            found = self.to_host(space.array[GATE_WORDS + 1 :].view(np.int64))
        loads = found[1 + n_loads :].reshape(n_parts, n_loads)
        overload = np.maximum(loads - found[1 : 1 + n_loads], 0).sum(axis=0)
        return None, int(found[0]), loads, overload
