"""The check against every partition of tiny networks, in plain Python."""

from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.check import check_network
from snnmap.check.demand import Demand
from snnmap.check.judge import fits, judge
from snnmap.hardware import HardwareProfile
from snnmap.hardware.schema import LIMIT_FIELDS
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from tests.small import to_rows
from tests.strategies import hypergraphs


def all_partitions(n_nodes: int) -> Iterator[list[int]]:
    """Every way to split nodes into parts, as part ids numbered by first use."""

    def grow(parts: list[int]) -> Iterator[list[int]]:
        if len(parts) == n_nodes:
            yield parts
            return
        for part in range(max(parts, default=-1) + 2):
            yield from grow([*parts, part])

    yield from grow([])


def is_valid(h: Hypergraph, parts: list[int], limits: Limits) -> bool:
    """Whether a partition respects every limit but the number of parts, by definition."""
    rows = to_rows(h)
    axons = [int(a) for a in h.axon_counts]
    fan_ins = [sum(a for (_, into, _), a in zip(rows, axons, strict=True) if n in into)
               for n in range(h.n_nodes)]  # fmt: skip

    def within(value: int, limit: int | None) -> bool:
        return limit is None or value <= limit

    for part in set(parts):
        nodes = {n for n, p in enumerate(parts) if p == part}
        into = [bool(nodes & set(d)) for _, d, _ in rows]
        out = [bool(nodes & set(s)) for s, _, _ in rows]
        if not (
            within(sum(int(h.node_sizes[n]) for n in nodes), limits.max_size)
            and within(sum(a for a, i in zip(axons, into, strict=True) if i), limits.max_inbound)
            and within(sum(a for a, o in zip(axons, out, strict=True) if o), limits.max_outbound)
            and within(
                sum(a for a, i, o in zip(axons, into, out, strict=True) if i or o),
                limits.max_incident,
            )
            and within(sum(fan_ins[n] for n in nodes), limits.max_synapses)
        ):
            return False
    if limits.max_fan_in is not None and max(fan_ins, default=0) > limits.max_fan_in:
        return False
    return all(
        within(len({parts[d] for d in into}), limits.max_destinations) for _, into, _ in rows
    )


@st.composite
def tight_limits(draw: st.DrawFn) -> Limits:
    few = st.none() | st.integers(1, 6)
    many = st.none() | st.integers(1, 20)
    return Limits(
        max_size=draw(few),
        max_inbound=draw(many),
        max_outbound=draw(many),
        max_incident=draw(many),
        max_synapses=draw(many),
        max_fan_in=draw(st.none() | st.none() | st.integers(1, 12)),
        max_destinations=draw(st.none() | st.integers(1, 4)),
    )


def profile_of(limits: Limits, n_cores: int) -> HardwareProfile:
    return HardwareProfile("test", n_cores, 1, limits=limits)


@settings(max_examples=200)
@given(hypergraphs(max_nodes=5, max_hedges=10, max_size=3), tight_limits(), st.integers(1, 5))
def test_no_partition_contradicts_the_verdict(h: Hypergraph, limits: Limits, n_cores: int) -> None:
    report = check_network(h, profile_of(limits, n_cores))
    counts = [len(set(parts)) for parts in all_partitions(h.n_nodes) if is_valid(h, parts, limits)]
    fewest = min(counts, default=None)
    possible = fewest is not None and fewest <= n_cores
    if not report.fits:
        assert not possible
    elif report.certain:
        assert possible
    if fewest is not None:
        assert report.cores_at_least <= fewest
        assert not report.offences
    if report.cores_by_filling is not None:
        assert fewest is not None
        assert report.cores_by_filling >= fewest


@given(hypergraphs(max_size=3, min_nodes=1), tight_limits())
def test_on_a_single_core_the_verdict_is_certain_and_right(h: Hypergraph, limits: Limits) -> None:
    report = check_network(h, profile_of(limits, 1))
    possible = is_valid(h, [0] * h.n_nodes, limits)
    assert (report.verdict == "fits") == possible
    assert report.certain


@given(hypergraphs(max_size=3), tight_limits(), st.integers(1, 5))
def test_the_values_said_to_suffice_do(h: Hypergraph, limits: Limits, n_cores: int) -> None:
    report = check_network(h, profile_of(limits, n_cores))
    raised = replace(
        limits,
        **{
            LIMIT_FIELDS[use.key]: use.sufficient
            for use in report.limits
            if use.n_offenders or (use.cores_at_least or 0) > n_cores
        },
    )
    assert check_network(h, profile_of(raised, n_cores)).fits
    assert (raised == limits) == report.fits


@given(hypergraphs(max_size=3), tight_limits(), st.integers(1, 3))
def test_no_smaller_value_of_a_limit_suffices(h: Hypergraph, limits: Limits, n_cores: int) -> None:
    for use in check_network(h, profile_of(limits, n_cores)).limits:
        if (use.limit is not None and use.sufficient < use.limit) or use.sufficient == 1:
            continue
        lower = replace(limits, **{LIMIT_FIELDS[use.key]: use.sufficient - 1})
        if use.key in ("neurons_per_core", "synapses_per_core", "fan_in_per_neuron"):
            assert not check_network(h, profile_of(lower, n_cores)).fits


@given(hypergraphs(max_size=3), tight_limits(), st.integers(1, 5))
def test_the_short_answer_is_the_long_one(h: Hypergraph, limits: Limits, n_cores: int) -> None:
    profile = profile_of(limits, n_cores)
    assert fits(Demand(h), profile) == judge(Demand(h), profile).fits


@given(hypergraphs(grouped=False), tight_limits(), st.booleans())
def test_shared_destination_sets_change_nothing(
    h: Hypergraph, limits: Limits, inputs_off_chip: bool
) -> None:
    profile = profile_of(limits, 3)
    assert (
        check_network(h, profile, inputs_off_chip=inputs_off_chip).to_dict()["limits"]
        == (
            check_network(h.grouped(), profile, inputs_off_chip=inputs_off_chip).to_dict()["limits"]
        )
    )


@given(hypergraphs(max_size=3), tight_limits())
def test_inputs_off_the_chip_are_a_network_without_them(h: Hypergraph, limits: Limits) -> None:
    off = check_network(h, profile_of(limits, 3), inputs_off_chip=True)
    without = check_network(h.without_inputs()[0], profile_of(limits, 3))
    for there, here in zip(off.limits, without.limits, strict=True):
        # an axon counts by its sources in the one, itself in the other
        assert bool(there.n_offenders) == bool(here.n_offenders)
        assert replace(there, n_offenders=0) == replace(here, n_offenders=0)
    for name in ("neurons", "synapses", "cores_at_least", "cores_by_filling", "fits", "certain"):
        assert getattr(off, name) == getattr(without, name)


@given(hypergraphs(max_size=3), st.booleans())
def test_demands_equal_their_definition(h: Hypergraph, inputs_off_chip: bool) -> None:
    demand = Demand(h, inputs_off_chip=inputs_off_chip)
    rows = to_rows(h)
    on_chip = set(range(h.n_nodes)) - {
        n
        for p in h.populations
        for n in range(p.start, p.stop)
        if p.is_input and inputs_off_chip
    }  # fmt: skip
    for n in range(h.n_nodes):
        here = n in on_chip
        assert demand.sizes[n] == here * h.node_sizes[n]
        assert demand.fan_ins[n] == here * sum(n in into for _, into, _ in rows)
        assert demand.axons_out[n] == here * sum(n in out for out, _, _ in rows)
        assert demand.incident[n] == here * sum(n in out or n in into for out, into, _ in rows)
        assert demand.fan_outs[n] == sum(len(into) for out, into, _ in rows if n in out)


def test_every_limit_is_checked() -> None:
    checked = set(LIMIT_FIELDS.values())
    assert checked == {field.name for field in fields(Limits)} - {"max_parts"}
    rng = np.random.default_rng(1)
    n = 12
    h = Hypergraph.from_hedges(
        n, np.arange(n), np.arange(n + 1) * 6, rng.integers(0, n, 6 * n), np.ones(n)
    )
    for key, field in LIMIT_FIELDS.items():
        limits = replace(Limits(max_size=2), **{field: 1})
        report = check_network(h, HardwareProfile("one", 3, 1, limits=limits))
        row = next(use for use in report.limits if use.key == key)
        assert not report.fits
        assert row.limit == 1
        assert row.n_offenders or (row.cores_at_least or 0) > 3
