"""`check_network`: measure a network, hold it against a chip, and say what would make it fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from snnmap.check.demand import Demand
from snnmap.check.judge import Verdict, fits, judge, sourceless_hedges
from snnmap.check.remedies import find_remedies
from snnmap.check.report import CheckReport, Layer, Offence, Spread
from snnmap.hardware import HardwareProfile, load_profile, profile_names
from snnmap.hypergraph import Hypergraph, Population

Array = np.ndarray[Any, Any]

_EXAMPLES = 5


def check_network(
    hypergraph: Hypergraph, profile: HardwareProfile, *, inputs_off_chip: bool = False
) -> CheckReport:
    """Say whether a network fits a chip, which neurons do not, and what would make it fit.

    Takes time and memory with the pins of distinct destination sets, never with those of expanded
    layers. Nothing is partitioned: a report that `fits` may still need a good partition, unless it
    is `certain`.

    Args:
        hypergraph: the network.
        profile: the chip, with the user's overrides.
        inputs_off_chip: input populations take no core; their axons still enter cores.

    Raises:
        NetworkError: a delay is not a finite number.
    """
    demand = Demand(hypergraph, inputs_off_chip=inputs_off_chip)
    verdict = judge(demand, profile)
    offences = tuple(_offences(demand, verdict))
    fitting: list[str] = []
    remedies: list[str] = []
    if not verdict.fits:
        shipped = {name: load_profile(name) for name in profile_names()}
        fitting = [name for name, other in shipped.items() if fits(demand, other)]
        without_inputs = not inputs_off_chip and _fits_without_inputs(hypergraph, profile)
        remedies = list(find_remedies(verdict, offences, profile, without_inputs))
    return CheckReport(
        network=hypergraph.name,
        profile=profile.name,
        neurons=int(demand.sizes.sum()),
        inputs=sum(p.size for p in hypergraph.populations if p.is_input),
        hedges=hypergraph.n_hedges,
        synapses=int(demand.fan_ins.sum()),
        inputs_off_chip=inputs_off_chip,
        layers=tuple(_layers(demand)),
        limits=verdict.limits,
        offences=offences,
        delays=verdict.delays,
        cores=profile.n_cores,
        cores_at_least=verdict.cores_at_least,
        cores_by_filling=None if verdict.needs else demand.fill(profile.limits),
        remedies=tuple(remedies),
        profiles_that_fit=tuple(fitting),
        unknown=tuple(use.key for use in verdict.limits if not use.known),
    )


def _fits_without_inputs(hypergraph: Hypergraph, profile: HardwareProfile) -> bool:
    if not any(p.is_input and p.size for p in hypergraph.populations):
        return False
    return fits(Demand(hypergraph, inputs_off_chip=True), profile)


def _layers(demand: Demand) -> Iterator[Layer]:
    """One row a population, then one for the nodes outside all of them."""
    h = demand.network
    outside = np.ones(h.n_nodes, bool)
    for p in h.populations:
        outside[p.start : p.stop] = False
        yield _layer(demand, p.name, slice(p.start, p.stop), p.is_input)
    if outside.any():
        name = "(no layer)" if h.populations else "(all neurons)"
        yield _layer(demand, name, np.flatnonzero(outside), False)


def _layer(demand: Demand, name: str, nodes: slice | Array, is_input: bool) -> Layer:
    fan_ins = demand.fan_ins[nodes]
    neurons = int(demand.network.node_sizes[nodes].sum())
    spreads = _spread(fan_ins), _spread(demand.fan_outs[nodes])
    off_chip = is_input and not demand.on_chip[nodes].any()
    return Layer(name, neurons, *spreads, int(fan_ins.sum()), is_input, not off_chip)


def _spread(values: Array) -> Spread:
    if not len(values):
        return Spread(0, 0.0, 0)
    return Spread(int(values.min()), float(np.median(values)), int(values.max()))


def _offences(demand: Demand, verdict: Verdict) -> Iterator[Offence]:
    """Offenders by limit, then by layer in order of the network."""
    for use in verdict.limits:
        if use.limit is None or use.key not in verdict.needs:
            continue
        needs = verdict.needs[use.key]
        nodes = np.flatnonzero(needs > use.limit)
        inside = np.zeros(len(nodes), bool)
        for p in demand.network.populations:
            first, last = np.searchsorted(nodes, [p.start, p.stop])
            if last > first:
                inside[first:last] = True
                yield _offence(use.key, use.limit, "neuron", nodes[first:last], needs, p)
        if not inside.all():
            yield _offence(use.key, use.limit, "neuron", nodes[~inside], needs, None)
        if use.key == "destinations_per_neuron":
            spans = verdict.spans[demand.network.hedge_groups]
            hedges = sourceless_hedges(demand)
            hedges = hedges[spans[hedges] > use.limit]
            if len(hedges):
                yield _offence(use.key, use.limit, "h-edge", hedges, spans, None)


def _offence(
    key: str, limit: int, kind: str, ids: Array, needs: Array, population: Population | None
) -> Offence:
    worst = int(ids[np.argmax(needs[ids])])
    start = population.start if population else 0
    place = np.unravel_index(worst - start, population.shape) if population else (worst,)
    return Offence(
        key,
        kind,
        population.name if population else None,
        len(ids),
        worst - start,
        tuple(int(i) for i in place),
        worst,
        int(needs[worst]),
        limit,
        tuple(int(i) - start for i in ids[:_EXAMPLES]),
    )
