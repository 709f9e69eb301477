"""From records of runs to medians, spreads and geometric means."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from snnmap.bench.manifest import read_manifest
from snnmap.bench.records import RunRecord, read_records

BASELINES = ("hierarchical", "overlap", "one-pass")
"""Our baselines; everything else is compared with them, and figures with the first that ran."""

QUANTITIES = ("connectivity", "seconds", "parts", "memory")


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and range of one quantity over seeds.

    Attributes:
        median, low, high: of the values.
        n: how many there are.
    """

    median: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """The spread of some values; None of none."""
        if not values:
            return None
        return cls(statistics.median(values), min(values), max(values), len(values))


@dataclass(frozen=True, slots=True)
class Cell:
    """All runs of one method on one network.

    Attributes:
        network: its name.
        method: its name.
        records: seed by seed.
        connectivity, seconds, parts, memory: spreads over runs with a valid result (seconds of
            the algorithm, megabytes); None without one.
    """

    network: str
    method: str
    records: tuple[RunRecord, ...]
    connectivity: Spread | None
    seconds: Spread | None
    parts: Spread | None
    memory: Spread | None

    @property
    def unfinished(self) -> tuple[RunRecord, ...]:
        """Runs that ended otherwise than done."""
        return tuple(r for r in self.records if r.status != "done")


@dataclass(frozen=True, eq=False)
class Summary:
    """A folder of records, put in order.

    Attributes:
        suite: name of the suite, "" if the folder does not tell.
        records: all runs.
        networks: names, in the order of the suite.
        methods: names, baselines first.
        cells: by (network, method); only those with runs.
    """

    suite: str
    records: tuple[RunRecord, ...]
    networks: tuple[str, ...]
    methods: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]

    def pins(self, network: str) -> int:
        """Pins of a network."""
        return next(r.pins for r in self.records if r.task.network == network)

    def values(self, method: str, quantity: str) -> list[Spread | None]:
        """Spread of one of `QUANTITIES` on every network, in order."""
        found = [self.cells.get((network, method)) for network in self.networks]
        return [getattr(cell, quantity) if cell else None for cell in found]

    def ratio(self, method: str, baseline: str, quantity: str) -> tuple[float, int] | None:
        """(geometric mean of method / baseline over networks, number of networks).

        Medians are compared, on networks where both have a result and neither is 0.
        """
        logs = [
            math.log(a.median / b.median)
            for a, b in zip(
                self.values(method, quantity), self.values(baseline, quantity), strict=True
            )
            if a and b and a.median > 0 and b.median > 0
        ]
        return (math.exp(statistics.fmean(logs)), len(logs)) if logs else None

    def growth(self, method: str) -> tuple[float, float] | None:
        """(exponent, factor) of the power law seconds = factor * pins^exponent, least squares.

        None with fewer than three networks of different size.
        """
        points = [
            (math.log(self.pins(network)), math.log(spread.median))
            for network, spread in zip(self.networks, self.values(method, "seconds"), strict=True)
            if spread and spread.median > 0 and self.pins(network) > 0
        ]
        if len({x for x, _ in points}) < 3:
            return None
        slope, intercept = statistics.linear_regression(*zip(*points, strict=True))
        return slope, math.exp(intercept)


def summarise(folder: str | Path) -> Summary:
    """Read and order all records of a bench folder.

    Raises:
        InputError: a folder without records.
    """
    folder = Path(folder)
    records = read_records(folder)
    manifest = read_manifest(folder / "networks")
    order = list(manifest["networks"])
    found = {r.task.network: r.pins for r in records}
    networks = [n for n in order if n in found]
    networks += sorted(found.keys() - set(networks), key=lambda n: (found[n], n))
    cells = {}
    for network in networks:
        of_network = [r for r in records if r.task.network == network]
        for method in sorted({r.task.method for r in of_network}):
            runs = sorted((r for r in of_network if r.task.method == method), key=_seed)
            cells[network, method] = _cell(network, method, tuple(runs))
    methods = tuple(sorted({method for _, method in cells}, key=_rank))
    return Summary(manifest["suite"] or "", tuple(records), tuple(networks), methods, cells)


def _cell(network: str, method: str, runs: tuple[RunRecord, ...]) -> Cell:
    good = [r for r in runs if r.has_result]
    return Cell(
        network,
        method,
        runs,
        Spread.of([r.connectivity for r in good if r.connectivity is not None]),
        Spread.of([r.seconds["total"] for r in good]),
        Spread.of([r.parts for r in good if r.parts is not None]),
        Spread.of([r.peak_memory_mb for r in good]),
    )


def _seed(record: RunRecord) -> int:
    return record.task.seed


def _rank(method: str) -> tuple[int, str]:
    ours = ("one-pass", "overlap", "hierarchical")
    return (ours.index(method) if method in ours else len(ours), method)
