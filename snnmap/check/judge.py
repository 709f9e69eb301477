"""Hold a network's demand against one profile: limits, offenders, cores, delays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from snnmap.check.demand import Demand
from snnmap.check.report import DelayUse, LimitUse
from snnmap.errors import NetworkError
from snnmap.hardware import HardwareProfile
from snnmap.limits import Limits

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Verdict:
    """One profile's answer.

    Attributes:
        limits: one row a limit.
        needs: what each neuron asks for, int64[n_nodes], by key, of limits that are broken.
        spans: int64[n_groups], fewest cores over which each destination set spreads.
        delays: one row a projection that states a delay.
        cores_at_least: fewest cores of any partition.
        fits: nothing speaks against it.
    """

    limits: tuple[LimitUse, ...]
    needs: dict[str, Array]
    spans: Array
    delays: tuple[DelayUse, ...]
    cores_at_least: int
    fits: bool


@dataclass(frozen=True)
class _Row:
    """One limit: what each neuron needs of it and, if cores share it out, all of them together.

    `sourceless` are the needs of axons without a source, which no neuron can be blamed for.
    """

    key: str
    limit: int | None
    needs: Array
    total: int | None = None
    packed: bool = False
    sourceless: Array | None = None

    @property
    def largest(self) -> int:
        """The most that one neuron or axon needs."""
        axons = 0 if self.sourceless is None else int(self.sourceless.max(initial=0))
        return max(int(self.needs.max(initial=0)), axons)

    @property
    def n_offenders(self) -> int:
        """Neurons, and axons without a source, that need more than the limit."""
        if self.limit is None:
            return 0
        every = [self.needs] if self.sourceless is None else [self.needs, self.sourceless]
        return sum(int(np.count_nonzero(needs > self.limit)) for needs in every)

    @property
    def cores_at_least(self) -> int | None:
        """Cores for the total; neurons larger than half a core cannot share one (`packed`)."""
        if self.limit is None or self.total is None:
            return None
        large = int(np.count_nonzero(2 * self.needs > self.limit)) if self.packed else 0
        return max(-(-self.total // self.limit), large)

    def sufficient(self, n_cores: int) -> int:
        """The least value of the limit at which `n_cores` and every neuron are content."""
        least = max(1, self.largest, -(-(self.total or 0) // n_cores))
        if self.packed and len(self.needs) > n_cores:
            rank = len(self.needs) - n_cores - 1
            least = max(least, 2 * int(np.partition(self.needs, rank)[rank]))
        return least


def judge(demand: Demand, profile: HardwareProfile) -> Verdict:
    """Hold `demand` against every limit of `profile`."""
    uses: list[LimitUse] = []
    needs: dict[str, Array] = {}
    spans = demand.spans(profile.limits)
    for row in _rows(demand, profile.limits, spans):
        n_offenders = row.n_offenders
        if n_offenders:
            needs[row.key] = row.needs
        uses.append(
            LimitUse(
                row.key,
                row.limit,
                row.largest,
                row.cores_at_least,
                n_offenders,
                row.sufficient(profile.n_cores),
                known=row.key not in profile.unknown,
                soft=row.key in profile.soft,
            )
        )
    delays = tuple(_delays(demand, profile))
    least = 1 if demand.on_chip.any() else 0
    cores = max([least, *(use.cores_at_least or 0 for use in uses)])
    in_time = all(delay.fits is not False for delay in delays)
    fits = not needs and cores <= profile.n_cores and in_time
    return Verdict(tuple(uses), needs, spans, delays, cores, fits)


def fits(demand: Demand, profile: HardwareProfile) -> bool:
    """What ``judge(demand, profile).fits`` says, as soon as it is known."""
    if any(delay.fits is False for delay in _delays(demand, profile)):
        return False
    rows = _rows(demand, profile.limits, demand.spans(profile.limits), only_limited=True)
    return all(
        row.largest <= (row.limit or 0) and (row.cores_at_least or 0) <= profile.n_cores
        for row in rows
    )


def sourceless_hedges(demand: Demand) -> Array:
    """int64[...]: h-edges that have no source in the network itself."""
    return np.flatnonzero(np.diff(demand.network.source_offsets) == 0)


def _rows(
    demand: Demand, limits: Limits, spans: Array, *, only_limited: bool = False
) -> Iterator[_Row]:
    """Each neuron takes its room and synapses once, each axon an entry in each core of its span.

    Rows are made when they are asked for; `only_limited` leaves out those without a limit.
    """
    h = demand.network

    def wanted(limit: int | None) -> bool:
        return limit is not None or not only_limited

    if wanted(limits.max_size):
        neurons = int(demand.sizes.sum())
        yield _Row("neurons_per_core", limits.max_size, demand.sizes, neurons, packed=True)
    if wanted(limits.max_inbound):
        inbound = int(h.group_axons @ spans)
        yield _Row("inbound_axons_per_core", limits.max_inbound, demand.fan_ins, inbound)
    if wanted(limits.max_outbound):
        outbound = int(h.axon_counts[demand.sent_on_chip].sum())
        yield _Row("outbound_axons_per_core", limits.max_outbound, demand.axons_out, outbound)
    if limits.max_incident is not None:
        cores = np.maximum(spans[h.hedge_groups], demand.sent_on_chip)
        incident = int(h.axon_counts @ cores)
        yield _Row("incident_axons_per_core", limits.max_incident, demand.incident, incident)
    if wanted(limits.max_synapses):
        synapses = int(demand.fan_ins.sum())
        yield _Row("synapses_per_core", limits.max_synapses, demand.fan_ins, synapses, packed=True)
    if wanted(limits.max_fan_in):
        yield _Row("fan_in_per_neuron", limits.max_fan_in, demand.fan_ins)
    if wanted(limits.max_destinations):
        yield _Row(
            "destinations_per_neuron",
            limits.max_destinations,
            demand.spans_out(spans),
            sourceless=spans[h.hedge_groups[sourceless_hedges(demand)]],
        )


def _delays(demand: Demand, profile: HardwareProfile) -> Iterator[DelayUse]:
    limit, step = profile.max_delay_steps, profile.timestep_ms
    for projection in demand.network.projections:
        if projection.delay_ms is None:
            continue
        longest = projection.delay_ms[1]
        if not math.isfinite(longest):
            raise NetworkError(
                f"network {demand.network.name!r}: projection {projection.source!r} to "
                f"{projection.target!r}: longest delay is {longest} ms; expected a finite number"
            )
        steps = None if step is None else math.ceil(longest / step - 1e-9)
        if limit is None:
            fits = None if "max_delay_steps" in profile.unknown else True
        else:
            fits = None if steps is None else steps <= limit
        yield DelayUse(projection.source, projection.target, longest, steps, limit, fits)
