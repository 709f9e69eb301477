"""From records of runs to medians, spreads and geometric means."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from snnmap.bench.manifest import read_manifest
from snnmap.bench.records import DONE, RunRecord, read_records

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
    def is_whole(self) -> bool:
        """Whether every run that has a result ended by itself."""
        return all(r.status == DONE for r in self.records if r.has_result)

    @property
    def unfinished(self) -> tuple[RunRecord, ...]:
        """Runs that ended otherwise than done."""
        return tuple(r for r in self.records if r.status != DONE)


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

    @property
    def methods_with_results(self) -> tuple[str, ...]:
        """Those of the methods that have a result on any network."""
        return tuple(m for m in self.methods if any(self.values(m, "seconds")))

    def factors(self, method: str, baseline: str, quantity: str) -> dict[str, float]:
        """Median of method / median of baseline, by network.

        Only networks where both have a result, no run of either was cut short (it would have taken
        longer, and found better), and neither median is 0.
        """
        found = {}
        for network in self.networks:
            cells = [self.cells.get((network, name)) for name in (method, baseline)]
            a, b = (getattr(cell, quantity) if cell and cell.is_whole else None for cell in cells)
            if a and b and a.median > 0 and b.median > 0:
                found[network] = a.median / b.median
        return found

    def ratio(self, method: str, baseline: str, quantity: str) -> tuple[float, int] | None:
        """(geometric mean of :meth:`factors`, number of networks); None without any."""
        factors = self.factors(method, baseline, quantity).values()
        return (statistics.geometric_mean(factors), len(factors)) if factors else None

    def growth(self, method: str) -> tuple[float, float] | None:
        """(exponent, factor) of the power law seconds = factor * pins^exponent, least squares.

        Without networks where a run was cut short; None with fewer than three networks of
        different size.
        """
        cells = [self.cells.get((network, method)) for network in self.networks]
        points = [
            (math.log(self.pins(cell.network)), math.log(cell.seconds.median))
            for cell in cells
            if cell and cell.is_whole and cell.seconds and cell.seconds.median > 0
            if self.pins(cell.network) > 0
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
    manifest = read_manifest(Path(folder) / "networks")
    return summary_of(
        read_records(Path(folder)), manifest["suite"] or "", list(manifest["networks"])
    )


def summary_of(records: Sequence[RunRecord], suite: str, order: Sequence[str] = ()) -> Summary:
    """Put records in order.

    Args:
        records: of runs.
        suite: name of the suite, "" if it has none.
        order: of its networks; others follow, smallest first.
    """
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
    return Summary(suite, tuple(records), tuple(networks), methods, cells)


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
