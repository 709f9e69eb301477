"""How much device memory a partition takes, known before anything is started.

Lean: the finest level's lists by net stay on the device while coarser levels are worked on, one at
a time with its lists by node. Short: what is not worked on goes to host memory. Either way arrays may
take more where the device has plenty (`Plan.most`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from snnmap.partitioning.multilevel.config import Config
from snnmap.partitioning.multilevel.level import Level, Problem

_LARGE_PINS = 1 << 20  # of a level whose arrays lie in an arena
_MERGED, _MOST_MERGED = 8, 4096  # coarsest nodes for each part that there must be, and at all
_BLOCK = 512  # bytes: CuPy's pool gives multiples
_BETWEEN = 16  # of so many bytes that arrays take one may be lost between them
_MOST = 4  # times the raw pins' bytes, where the device has twice that free
_SEARCH_BYTES = 146 << 20  # that the search may take of any network


class Mode(NamedTuple):
    """One way to go about the memory.

    Attributes:
        spills: whether levels that are not worked on go to host memory.
        scratch_bytes: of hash tables that fit no shared memory.
    """

    spills: bool
    scratch_bytes: int


MODES = Mode(False, 1 << 28), Mode(True, 1 << 24)
"""Lean and short."""


class Work(NamedTuple):
    """What the limits and settings make of a network's size.

    Attributes:
        wide: whether rating looks at whole neighbourhoods, whose tables fit no shared memory.
        merged: nodes of which first parts are made.
        parts: that there must be at least.
    """

    wide: bool = False
    merged: int = _MERGED
    parts: int = 1


ANY_WORK = Work()


class Plan(NamedTuple):
    """Memory of the device before anything is started.

    Attributes:
        lean, short: bytes at the peak in either mode.
        raw: bytes of all pins, those of each source apart.
        large: whether the level has so many pins that an arena is worth it.
        free: bytes that arrays may take now.
        network: its size in words.
        device: its name.
    """

    lean: int
    short: int
    raw: int
    large: bool
    free: int
    network: str
    device: str

    @property
    def fits(self) -> bool:
        """Whether there is enough in one of the modes."""
        return self.short <= self.free

    @property
    def needed(self) -> int:
        """Bytes at the peak of what is chosen."""
        return self.lean if self.lean <= self.free else self.short

    @property
    def held(self) -> int:
        """Bytes that may be taken from the device: more than is needed where there is plenty.

        What nodes find in parts is kept then, and not gathered anew in every round.
        """
        return max(self.needed, self._plenty)

    @property
    def most(self) -> int:
        """Bytes that arrays may take: the rest, of the plenty an eighth, is for what lies between them.

        Whole blocks of the pool, so that an array that just fits does so as the pool counts.
        """
        arrays = self.needed * _BETWEEN // (_BETWEEN + 1)
        return max(arrays, self._plenty // 8 * 7) // _BLOCK * _BLOCK

    @property
    def reserved(self) -> int:
        """Bytes of the arena for all but tiny arrays; 0: there is none, as levels are small."""
        alone = self.large and self.lean >= 2 * self.raw  # few sources share their pins
        return self.held // 128 * 127 if alone else 0

    @property
    def search(self) -> int:
        """Bytes that the search of a layered network's coarsest level may take: half of what nothing else needs."""
        most = max(_SEARCH_BYTES, 29 * self.raw // 8)
        return 0 if self.mode.spills else min(most, (self.free - self.needed) // 2)

    @property
    def _plenty(self) -> int:
        return 0 if self.mode.spills else min(_MOST * self.raw, self.free // 2)

    @property
    def mode(self) -> Mode:
        """Lean where that fits, else short."""
        return MODES[self.lean > self.free]

    def __str__(self) -> str:
        lean, short, free = (_gib(n) for n in (self.lean, self.short, self.free))
        left = f"{free} are free on {self.device}"
        if not self.fits:
            return f"the network needs at least {short} of GPU memory ({self.network}), {left}"
        text = f"the network needs about {lean} of GPU memory ({self.network}), {left}"
        if self.mode.spills:
            text += f"; with levels in host memory {short} suffice, which takes longer"
        return text


def _gib(n: int) -> str:
    return f"{n / 2**30:.2f} GiB" if n >= 1 << 27 else f"{n / 2**20:.1f} MiB"


def plan_memory(level: Level, free: int, device: str, work: Work) -> Plan:
    """What a partition of the level takes, beside the bytes that are free on a device.

    Args:
        level: the finest level, on the host.
        free: bytes that arrays may take.
        device: its name.
        work: what is to be done.
    """
    n_pins, n_sources = np.diff(level.net_offsets), np.diff(level.source_offsets)
    # Entries of a row of the pins-per-part table: nets are local, or have few pins.
    sizes = n_pins + n_sources
    entries = int(np.minimum(sizes, 8 + sizes // 32).sum())
    lean, short = (needed_bytes(level, entries, mode, work) for mode in MODES)
    # Shared pins are counted for each source.
    raw = 4 * (int((n_pins * np.maximum(n_sources, 1)).sum()) + len(level.source_nodes))
    return Plan(
        lean,
        short,
        raw,
        level.n_pins >= _LARGE_PINS,
        free,
        f"{level.n_pins:,} pins, {level.n_nets:,} nets, {level.n_nodes:,} nodes",
        device,
    )


def needed_bytes(level: Level, entries: int, mode: Mode, work: Work) -> int:
    """About how much device memory a partition of the level takes at its peak.

    The stages with the most: work on the finest level (its lists by net and by node, beside the
    table of the state before), clustering it, contracting it, work on the first coarser level beside
    it (unless it spills), which may have 4/5 of its pins, and merging the nodes of the coarsest
    level. Work is rating, or a round of refinement: a table of so many entries, moves.
    """
    lists = 4 * level.n_pins
    rest = sum(int(a.nbytes) for a in level) - int(level.net_pins.nbytes + level.node_nets.nbytes)
    n_sources = len(level.source_nodes)
    n_loads = int(level.resources.shape[1] + level.counts.shape[1])
    table = 16 * entries + 8 * level.n_nets
    round_ = 40 * (level.n_nets + level.n_nodes) + level.n_nodes * (64 + 48 * n_loads)
    round_ += table + (mode.scratch_bytes if work.wide else 0)
    below = 0 if mode.spills else lists + rest
    merged = min(work.merged, level.n_nodes, _MOST_MERGED)
    # Pins of a level fall about as the root of its nodes; there each is an entry of its own.
    coarsest = int(level.n_pins * min((merged / max(level.n_nodes, 1)) ** 0.5, 0.8))
    arrays = max(
        2 * lists + rest + round_ + table,
        3 * lists + rest + 20 * n_sources + 124 * level.n_nodes + 62 * level.n_nets,
        2 * lists + 2 * rest + 48 * n_sources + 104 * level.n_nets + 32 * level.n_nodes,
        0 if mode.spills else below + 2 * lists * 4 // 5 + rest + round_,
        below
        + max(4 * coarsest, lists // 4) * (1 if mode.spills else 2)
        + rest
        + table
        + 24 * max(coarsest - entries, 0)
        + 8 * entries
        + 8 * (1 + int(level.counts.shape[1])) * merged * merged
        + 64 * merged,
    )
    return arrays + -(-arrays // _BETWEEN)


def foresee(problem: Problem, config: Config) -> Work:
    """What the settings and limits make of a network's size."""
    rating, least = config.coarsening, problem.least_parts()
    merged = max(_MERGED * least, config.enough_nodes(least))
    return Work(rating.max_nets * rating.max_pins > 1 << 12, merged, least)
