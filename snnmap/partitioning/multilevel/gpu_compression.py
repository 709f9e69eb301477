"""Compression on the GPU (``kernels/classes.cu``): one launch for all rounds, one wait."""

from __future__ import annotations

from typing import Any

import numpy as np

from snnmap.partitioning.multilevel.compression import Classes, Classified
from snnmap.partitioning.multilevel.gpu_contraction import GATE_WORDS, GpuContraction, Space
from snnmap.partitioning.multilevel.level import Level
from snnmap.progress import SILENT, Progress

Array = Any  # cupy.ndarray


class GpuCompression(GpuContraction):
    """The steps of compression; see `engine_cpu.CpuEngine`."""

    def classify(
        self, level: Level, rounds: int, most: int, progress: Progress = SILENT
    ) -> Classified | None:
        """What `compression.classify_in_rounds` finds, by one launch; time is looked at before it."""
        if progress.expired():
            return None
        level = self.restore(level)
        xp, n, n_nets = self.xp, level.n_nodes, level.n_nets
        bits = max((2 * n - 1).bit_length(), 1)
        n_words = ((1 << bits) + n) // 32 + 1
        sums = [n_nets, n_nets, n, n]
        blocks = self.device.multiprocessors
        zeroed, marks = [GATE_WORDS + 3, *sums, 32 * n_words], n_words // 2 + 1
        space, numbers = Space(xp, zeroed, [marks, marks, blocks]), xp.empty(n, xp.int32)
        sizes = (n_nets, level.n_pins, len(level.source_nodes), n)
        args = (*level[:4], *level[5:9], *sizes, rounds, most, bits, n_words, *space.pieces)
        self._run_together("classes", "classify_nodes", 0, *args, numbers)
        n_classes, least = self.to_host(space.array[GATE_WORDS + 1 : GATE_WORDS + 3]).tolist()
        return Classified(numbers, n_classes, least)

    def sort_classes(self, level: Level, classes: Array, n_classes: int) -> Classes:
        """The nodes of each class together."""
        offsets, order = self._list_items(None, classes, level.n_nodes, n_classes)
        sizes = self.xp.zeros(n_classes, self.xp.int64)
        self._add_rows(offsets, order, level.resources, sizes)
        return Classes(order, offsets, sizes)

    def count_chunks(self, classes: Classes, largest: list[int]) -> list[int]:
        """How many chunks there are if they are to be at most about so large, for each size."""
        counts, n = self.xp.zeros(len(largest), self.xp.int64), len(classes.sizes)
        sizes = self.from_host(np.array(largest, np.int64))
        args = (classes.offsets, classes.sizes, n, sizes, len(largest), counts)
        self._run("classes", "count_chunks", n, *args)
        return [int(count) for count in self.to_host(counts)]

    def split_classes(self, classes: Classes, largest: int) -> Array:
        """int32[n_nodes]: chunks of classes of at most about `largest` in size."""
        return self._split(classes, largest, 0, len(classes.order))

    def nest_chunks(self, classes: Classes, fine: int, coarse: int, n_fine: int) -> Array:
        """int32[n_fine]: the chunk of size `coarse` that holds each of size `fine`."""
        return self._split(classes, fine, coarse, n_fine)

    def _split(self, classes: Classes, fine: int, coarse: int, n: int) -> Array:
        n_classes, blocks = len(classes.sizes), self.device.multiprocessors
        space = Space(self.xp, [GATE_WORDS], [n_classes, n_classes, 2 * blocks])
        chunks = self.xp.empty(n, self.xp.int32)
        args = (*classes, n_classes, len(classes.order), fine, coarse, *space.pieces, chunks)
        self._run_together("classes", "split_classes", 0, *args)
        return chunks
