"""`check_network` on networks with known answers, boundary cases and its sentences."""

import time
from dataclasses import replace

import numpy as np
import pytest

from snnmap.check import Layer, Spread, check_network
from snnmap.errors import NetworkError
from snnmap.hardware import HardwareProfile, load_profile
from snnmap.hypergraph import Hypergraph, Population, Projection
from snnmap.limits import Limits
from tests.small import from_rows, small


def dense(n_in: int, n_out: int, *, inputs: bool = False) -> Hypergraph:
    """All of layer 'a' to all of layer 'b': one group."""
    return Hypergraph.from_groups(
        n_in + n_out,
        np.array([0, n_out]),
        np.arange(n_in, n_in + n_out),
        np.zeros(n_in, np.int64),
        np.arange(n_in),
        np.ones(n_in),
        populations=(
            Population("a", 0, n_in, (n_in,), is_input=inputs),
            Population("b", n_in, n_in + n_out, (n_out,)),
        ),
        projections=(Projection("a", "b", (1.0, 3.0)),),
        name="dense",
    )


def chip(n_cores: int = 1, **limits: int) -> HardwareProfile:
    return HardwareProfile("chip", n_cores, 1, limits=Limits(**limits))


def test_layers_of_the_small_network() -> None:
    report = check_network(small(), load_profile("loihi64"))
    assert report.layers == (
        Layer("in", 3, Spread(0, 0.0, 0), Spread(2, 3.0, 3), 0, True, True),
        Layer("hidden", 4, Spread(3, 4.0, 4), Spread(1, 3.0, 6), 15, False, True),
        Layer("out", 1, Spread(4, 4.0, 4), Spread(0, 0.0, 0), 4, False, True),
    )
    assert (report.neurons, report.inputs, report.hedges, report.synapses) == (8, 3, 8, 19)
    assert (report.verdict, report.cores_at_least, report.cores_by_filling) == ("fits", 1, 1)
    assert report.remedies == report.profiles_that_fit == report.offences == ()


def test_nodes_outside_every_layer_have_their_own_row() -> None:
    rows = [([0], [1, 2], 1.0), ([3], [2], 1.0)]
    bare = check_network(from_rows(4, rows), chip())
    assert [layer.name for layer in bare.layers] == ["(all neurons)"]
    some = from_rows(4, rows, populations=(Population("mid", 1, 3, (2,)),))
    names = [(layer.name, layer.neurons) for layer in check_network(some, chip()).layers]
    assert names == [("mid", 2), ("(no layer)", 2)]


@pytest.mark.parametrize(
    ("limits", "fits"),
    [
        ({"max_size": 8}, True),
        ({"max_size": 7}, False),
        ({"max_inbound": 3}, True),
        ({"max_inbound": 2}, False),
        ({"max_outbound": 3}, True),
        ({"max_outbound": 2}, False),
        ({"max_incident": 3}, True),
        ({"max_incident": 2}, False),
        ({"max_synapses": 15}, True),
        ({"max_synapses": 14}, False),
        ({"max_fan_in": 3}, True),
        ({"max_fan_in": 2}, False),
        ({"max_destinations": 1}, True),
    ],
)
def test_limits_are_inclusive_on_a_single_core(limits: dict[str, int], fits: bool) -> None:
    report = check_network(dense(3, 5), chip(1, **limits))
    assert report.fits is fits
    assert report.certain


def test_exact_multiples_need_no_further_core() -> None:
    report = check_network(from_rows(256, []), chip(1, max_size=256))
    assert (report.fits, report.cores_at_least, report.cores_by_filling) == (True, 1, 1)
    assert check_network(from_rows(257, []), chip(1, max_size=256)).cores_at_least == 2


def test_an_empty_network_fits_everything() -> None:
    report = check_network(from_rows(0, []), chip(1, max_size=1, max_destinations=1))
    assert (report.verdict, report.cores_at_least, report.cores_by_filling) == ("fits", 0, 0)


def test_an_axon_counts_in_every_core_over_which_its_destinations_spread() -> None:
    # 3 axons to 100 neurons, 10 to a core: 10 cores x 3 entries, at most 4 a core
    report = check_network(dense(3, 100), chip(20, max_size=10, max_inbound=4))
    inbound = next(u for u in report.limits if u.key == "inbound_axons_per_core")
    assert inbound.cores_at_least == 8
    assert report.cores_at_least == 11


def test_neurons_of_more_than_half_a_core_do_not_share_one() -> None:
    h = replace(from_rows(3, []), node_sizes=np.array([6, 6, 6]))
    assert check_network(h, chip(3, max_size=10)).cores_at_least == 3
    assert check_network(h, chip(3, max_size=12)).cores_at_least == 2
    assert next(iter(check_network(h, chip(2, max_size=10)).limits)).sufficient == 12


def test_offenders_are_named_with_layer_index_and_place() -> None:
    h = from_rows(
        8,
        [([0], [4, 5], 1.0), ([1], [5, 7], 1.0), ([2], [5, 7], 1.0)],
        populations=(Population("in", 0, 4, (4,), True), Population("map", 4, 8, (2, 2))),
    )
    report = check_network(h, chip(4, max_fan_in=1))
    (offence,) = report.offences
    assert (offence.key, offence.kind, offence.layer) == ("fan_in_per_neuron", "neuron", "map")
    assert (offence.count, offence.index, offence.place, offence.node) == (2, 1, (0, 1), 5)
    assert (offence.value, offence.limit, offence.examples) == (3, 1, (1, 3))
    assert report.verdict == "does not fit"
    assert report.cores_by_filling is None
    text = "\n".join(report.remedies)
    assert "at most 1 fan in per neuron in 'map': use a smaller kernel" in text
    assert "--set fan_in_per_neuron=3" in text


def test_axons_without_source_may_reach_too_many_cores() -> None:
    report = check_network(
        from_rows(4, [([], [0, 1, 2, 3], 1.0)]), chip(4, max_size=1, max_destinations=3)
    )
    assert not report.fits
    (offence,) = report.offences
    assert (offence.kind, offence.index, offence.value, offence.limit) == ("h-edge", 0, 4, 3)


def test_too_few_cores_ask_for_chips_or_larger_cores() -> None:
    odin = load_profile("odin")
    report = check_network(from_rows(1000, [], name="lone"), odin)
    assert (report.cores_at_least, report.cores, report.fits) == (4, 1, False)
    text = "\n".join(report.remedies)
    assert "4 chips of this kind or more, for 4 cores: --set chips=2x2" in text
    assert "--set neurons_per_core=1000" in text
    assert check_network(from_rows(1000, []), load_profile("odin", ["chips=2x2"])).fits
    assert "loihi" in report.profiles_that_fit
    assert "brainscales2" not in report.profiles_that_fit


@pytest.mark.parametrize("n_neurons", [300, 5_000, 70_000, 1_000_000])
@pytest.mark.parametrize("name", ["odin", "darwin3", "spinnaker1", "dynap-se2"])
def test_the_chips_asked_for_suffice(name: str, n_neurons: int) -> None:
    h = from_rows(n_neurons, [])
    report = check_network(h, load_profile(name))
    if report.fits:
        return
    (chips,) = (r.split("--set ")[1] for r in report.remedies if "chips=" in r)
    assert check_network(h, load_profile(name, [chips])).verdict == "fits"


def test_profiles_that_fit_are_those_whose_own_check_says_so() -> None:
    h = dense(300, 2000)
    report = check_network(h, load_profile("odin"))
    from snnmap.hardware import profile_names

    fit = tuple(n for n in profile_names() if check_network(h, load_profile(n)).fits)
    assert report.profiles_that_fit == fit
    assert "loihi64" in fit
    assert "truenorth" not in fit  # a fan-in of 300


def test_inputs_off_the_chip_take_no_core_but_still_send_axons() -> None:
    h = dense(6, 4, inputs=True)
    on = check_network(h, chip(1, max_size=4, max_inbound=6))
    assert not on.fits
    assert "keep the inputs off the chip: --inputs-off-chip" in on.remedies
    off = check_network(h, chip(1, max_size=4, max_inbound=6), inputs_off_chip=True)
    assert off.verdict == "fits"
    assert (off.neurons, off.inputs, off.synapses) == (4, 6, 24)
    assert [layer.on_chip for layer in off.layers] == [False, True]
    assert off.layers[0].fan_out == Spread(4, 4.0, 4)
    assert not check_network(h, chip(1, max_inbound=5), inputs_off_chip=True).fits


def test_inputs_are_named_when_their_axons_reach_too_many_cores() -> None:
    h = dense(2, 4, inputs=True)
    limits = chip(4, max_size=1, max_destinations=2)
    (offence,) = check_network(h, limits, inputs_off_chip=True).offences
    assert (offence.layer, offence.index, offence.count, offence.value) == ("a", 0, 2, 4)


def test_offenders_keep_their_ids_when_inputs_leave() -> None:
    report = check_network(dense(6, 4, inputs=True), chip(9, max_fan_in=5), inputs_off_chip=True)
    (offence,) = report.offences
    assert (offence.layer, offence.index, offence.node, offence.count) == ("b", 0, 6, 4)


@pytest.mark.parametrize(
    ("max_steps", "step_ms", "unknown", "steps", "fits"),
    [
        (3, 1.0, False, 3, True),
        (2, 1.0, False, 3, False),
        (30, 0.1, False, 30, True),
        (29, 0.1, False, 30, False),
        (2, None, False, None, None),
        (None, 1.0, False, 3, True),
        (None, 1.0, True, 3, None),
    ],
)
def test_delays_in_time_steps(
    max_steps: int | None,
    step_ms: float | None,
    unknown: bool,
    steps: int | None,
    fits: bool | None,
) -> None:
    profile = replace(
        chip(),
        max_delay_steps=max_steps,
        timestep_ms=step_ms,
        unknown=frozenset({"max_delay_steps"} if unknown else ()),
    )
    report = check_network(dense(2, 2, inputs=True), profile, inputs_off_chip=True)
    (delay,) = report.delays
    assert (delay.source, delay.target, delay.delay_ms) == ("a", "b", 3.0)
    assert (delay.steps, delay.limit, delay.fits) == (steps, max_steps, fits)
    assert report.fits is (fits is not False)
    if fits is False:
        assert any(f"--set max_delay_steps={steps}" in r for r in report.remedies)
        assert any("--set timestep_ms=" in r for r in report.remedies)


def test_a_delay_that_is_no_number_is_refused() -> None:
    h = replace(dense(2, 2), projections=(Projection("a", "b", (0.0, float("inf"))),))
    with pytest.raises(NetworkError, match="projection 'a' to 'b': longest delay is inf ms"):
        check_network(h, chip())


def test_what_is_not_public_is_named_and_not_held_against_the_network() -> None:
    report = check_network(dense(10, 10), load_profile("loihi2"))
    assert report.fits
    assert report.unknown == ("inbound_axons_per_core", "outbound_axons_per_core")


def test_between_the_bounds_nothing_is_certain() -> None:
    # Pairs (0,2), (1,3) share an axon; in order of ids no two neighbours do.
    h = from_rows(4, [([], [0, 2], 1.0), ([], [1, 3], 1.0)])
    report = check_network(h, chip(2, max_inbound=1))
    assert (report.cores_at_least, report.cores_by_filling) == (2, 4)
    assert (report.verdict, report.fits, report.certain) == ("may fit", True, False)


def test_instant_on_groups_whatever_the_links() -> None:
    """A hundred million links between two layers are one group; a report takes no time."""
    h = dense(10_000, 10_000)
    check_network(dense(2, 2), load_profile("loihi64"))  # compile
    began = time.perf_counter()
    report = check_network(h, load_profile("loihi64"))
    assert time.perf_counter() - began < 2.0  # expanding the links alone would take longer
    assert report.synapses == 100_000_000
    assert report.offences[0].value == 10_000


def test_the_report_is_plain_data() -> None:
    import json

    report = check_network(dense(300, 4), load_profile("odin"))
    found = json.loads(json.dumps(report.to_dict()))
    assert found["verdict"] == "does not fit"
    assert found["offences"][0]["layer"] == "b"
    assert found["limits"][1]["key"] == "inbound_axons_per_core"
