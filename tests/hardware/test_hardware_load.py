"""Profiles as TOML: strict keys and types, overrides, and the shipped files."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnmap.errors import ProfileError
from snnmap.hardware import (
    CONFIDENCES,
    Costs,
    HardwareProfile,
    load_profile,
    profile_names,
    template_text,
)
from snnmap.hardware.schema import KEYS
from snnmap.limits import Limits
from snnmap.resources import resource_dir

SHIPPED = [
    "brainscales2", "darwin3", "dynap-se2", "loihi", "loihi1024", "loihi2", "loihi64", "loihi84",
    "odin", "spinnaker1", "spinnaker2", "tianjic", "truenorth",
]  # fmt: skip

MINIMAL = "[grid]\nwidth = 4\nheight = 2\n"


def load_text(tmp_path: Path, text: str, *overrides: str) -> HardwareProfile:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return load_profile(path, overrides)


def test_the_shipped_profiles_are_these() -> None:
    assert profile_names() == SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_every_number_shipped_has_a_source(name: str) -> None:
    document = tomllib.loads((resource_dir("hardware_profiles") / f"{name}.toml").read_text())
    assert document["description"]
    for section in document.values():
        if isinstance(section, dict):
            for key, entry in section.items():
                assert len(entry["source"]) > 8, key
                assert entry["confidence"] in CONFIDENCES
    profile = load_profile(name)
    assert profile.name == name
    stated = {f for f in Costs.__dataclass_fields__ if getattr(profile.costs, f) is not None}
    stated |= {"width", "height", "topology", "neurons_per_core"}
    assert stated <= profile.provenance.keys()
    assert not profile.unknown & stated


@pytest.mark.parametrize(
    ("name", "cores", "size", "inbound"),
    [
        ("loihi", 128, 1024, 4096),
        ("loihi64", 64 * 64, 1024, 4096),
        ("loihi84", 84 * 84, 4096, 65536),
        ("loihi1024", 1024 * 1024, 4096, 65536),
        ("loihi2", 128, 8192, None),
        ("truenorth", 4096, 256, 256),
        ("spinnaker1", 144 * 17, 256, None),
        ("spinnaker2", 152, 256, None),
        ("dynap-se2", 4, 256, 2048),
        ("tianjic", 156, 256, 256),
        ("darwin3", 575, 4096, None),
        ("brainscales2", 1, 512, None),
        ("odin", 1, 256, 256),
    ],
)
def test_cores_and_axons_of_the_shipped_profiles(
    name: str, cores: int, size: int, inbound: int | None
) -> None:
    profile = load_profile(name)
    assert profile.n_cores == cores
    assert (profile.limits.max_size, profile.limits.max_inbound) == (size, inbound)


def test_costs_of_the_literature() -> None:
    costs = load_profile("loihi64").costs
    assert (costs.route_energy_pj, costs.hop_energy_x_pj, costs.hop_energy_y_pj) == (1.7, 3.5, 3.5)
    assert (costs.route_latency_ns, costs.hop_latency_x_ns, costs.hop_latency_y_ns) == (
        2.1,
        5.3,
        5.3,
    )
    costs = load_profile("loihi1024").costs
    assert (costs.route_energy_pj, costs.hop_energy_x_pj) == (1.0, 0.1)
    assert (costs.route_latency_ns, costs.hop_latency_x_ns) == (1.0, 0.01)


def test_what_is_not_public_stays_unknown() -> None:
    for name in ("truenorth", "loihi2", "spinnaker2", "darwin3", "tianjic"):
        profile = load_profile(name)
        assert profile.costs.hop_energy_x_pj is None
        assert "hop_energy_x_pj" in profile.unknown
    assert "inbound_axons_per_core" in load_profile("loihi2").unknown
    assert "inbound_axons_per_core" not in load_profile("spinnaker1").unknown


def test_spinnaker_is_a_hexagonal_torus_of_chips_without_their_monitors() -> None:
    profile = load_profile("spinnaker1")
    assert profile.topology == "hex-torus"
    assert profile.tile == (profile.width, profile.height)
    assert "neurons_per_core" in profile.soft
    monitors = {(cx * 6, cy * 3) for cx in range(12) for cy in range(12)}
    assert profile.dead_cores == monitors


def test_missing_cores_are_missing_in_every_chip() -> None:
    one, four = load_profile("darwin3"), load_profile("darwin3", ["chips=2x2"])
    assert four.n_cores == 4 * one.n_cores
    assert four.dead_cores == {(0, 0), (24, 0), (0, 24), (24, 24)}


def test_synapses_follow_from_the_bits_of_their_memory() -> None:
    assert load_profile("loihi").limits.max_synapses == 1024 * 1024 // 8
    narrow = load_profile("loihi", ["bits_per_synapse=3"])
    assert narrow.limits.max_synapses == 1024 * 1024 // 3
    assert "synapses_per_core" in load_profile("loihi").soft
    assert "synapses_per_core" not in narrow.soft
    assert load_profile("loihi", ["synapses_per_core=7"]).limits.max_synapses == 7
    assert load_profile("loihi", ["synapses_per_core=none"]).limits.max_synapses is None
    with pytest.raises(ProfileError, match="more than the 1048576"):
        load_profile("loihi", ["bits_per_synapse=2000000"])
    with pytest.raises(ProfileError, match="has no effect: the profile states synapses_per_core"):
        load_profile("loihi2", ["bits_per_synapse=4"])
    with pytest.raises(ProfileError, match="has no effect: synapses follow only from both"):
        load_profile("loihi64", ["bits_per_synapse=4"])


def test_the_template_loads_and_names_every_key(tmp_path: Path) -> None:
    profile = load_text(tmp_path, template_text())
    assert profile.name == "mychip"
    assert profile.limits == Limits(max_size=512, max_inbound=1024, max_parts=64)
    assert "template" not in profile_names()
    for key in KEYS:
        assert key in template_text()


# ------------------------------------------------------------------ overrides


@pytest.mark.parametrize(
    ("override", "attribute", "value"),
    [
        ("neurons_per_core=512", "limits.max_size", 512),
        (" neurons_per_core = 1_000 ", "limits.max_size", 1000),
        ("inbound_axons_per_core=none", "limits.max_inbound", None),
        ("outbound_axons_per_core=9", "limits.max_outbound", 9),
        ("incident_axons_per_core=9", "limits.max_incident", 9),
        ("synapses_per_core=9", "limits.max_synapses", 9),
        ("fan_in_per_neuron=9", "limits.max_fan_in", 9),
        ("destinations_per_neuron=9", "limits.max_destinations", 9),
        ("chips=2x3", "chips", (2, 3)),
        ("tile=2x2", "tile", (2, 2)),
        ("width=10", "width", 10),
        ("topology=torus", "topology", "torus"),
        ("dead_cores=3,4; 0-1,5", "dead_cores", {(3, 4), (0, 5), (1, 5)}),
        ("dead_cores=none", "dead_cores", set()),
        ("route_energy_pj=2.5e1", "costs.route_energy_pj", 25.0),
        ("hop_energy_pj=1", "costs.hop_energy_y_pj", 1.0),
        ("hop_latency_pj=1", None, "did you mean 'hop_latency_ns'"),
        ("hop_latency_x_ns=unknown", "costs.hop_latency_x_ns", None),
        ("max_delay_steps=7", "max_delay_steps", 7),
        ("timestep_ms=0.5", "timestep_ms", 0.5),
    ],
)
def test_overrides(override: str, attribute: str | None, value: object) -> None:
    if attribute is None:
        with pytest.raises(ProfileError, match=str(value)):
            load_profile("loihi64", [override])
        return
    found: object = load_profile("loihi64", [override])
    for part in attribute.split("."):
        found = getattr(found, part)
    assert found == value


def test_later_overrides_win_and_say_who_set_them() -> None:
    profile = load_profile("spinnaker1", ["neurons_per_core=5", "neurons_per_core=6"])
    assert profile.limits.max_size == 6
    assert "set by the user" in profile.provenance["neurons_per_core"].source
    assert "neurons_per_core" not in profile.soft


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("neurons_per_core", "expected key=value"),
        ("neurons_per_core=", "expected key=value"),
        ("neurons=5", "unknown key 'neurons'.*known keys: topology, width"),
        ("neurons_per_core=many", "neurons_per_core is 'many'; expected a whole number >= 1"),
        ("neurons_per_core=1.5", "expected a whole number >= 1"),
        ("neurons_per_core=0", "expected a whole number >= 1"),
        ("neurons_per_core=-4", "expected a whole number >= 1"),
        (f"neurons_per_core={2**63}", "expected a whole number >= 1"),
        ("width=none", "width is 'none'; expected a whole number >= 1$"),
        ("chips=4", "chips is '4'; expected two whole numbers"),
        ("chips=0x4", "expected two whole numbers"),
        ("tile=3x3", "do not divide"),
        ("topology=star", "expected one of mesh, torus, hex-torus"),
        ("dead_cores=99,0", r"dead core \(99, 0\) is outside"),
        ("dead_cores=5-3,0", "ranges rise"),
        ("dead_cores=0-99999999,0-99999999", "at most 10000000 cores"),
        (f"dead_cores=0-{10**30},0", "at most 10000000 cores"),
        ("dead_cores=a", "expected cores as x,y"),
        ("missing_cores=64,0", "outside a chip of 64x64"),
        ("dead_cores=0-63,0-63", "every core is dead"),
        ("route_energy_pj=-1", "expected a finite number >= 0"),
        ("route_energy_pj=nan", "expected a finite number >= 0"),
        ("timestep_ms=0", "expected a finite number > 0"),
        ("width=1048577", "too large"),
    ],
)
def test_wrong_overrides_name_key_value_and_remedy(override: str, message: str) -> None:
    with pytest.raises(ProfileError, match=message) as raised:
        load_profile("loihi64", [override])
    assert "\n" not in str(raised.value)


def test_missing_cores_of_very_many_chips_are_refused_before_they_take_memory() -> None:
    with pytest.raises(ProfileError, match="use fewer chips"):
        load_profile("spinnaker1", ["chips=40000x40000"])


def test_a_ready_profile_passes_through_but_takes_no_overrides() -> None:
    profile = load_profile("odin")
    assert load_profile(profile) is profile
    with pytest.raises(ProfileError, match="name or path"):
        load_profile(profile, ["width=2"])


# ------------------------------------------------------------------ files


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("loihi46", "unknown hardware profile 'loihi46'; did you mean .*'loihi64'"),
        ("LOIHI", "did you mean 'loihi'"),
        ("xyz", "unknown hardware profile 'xyz'; known: brainscales2, darwin3"),
        ("_template", "unknown hardware profile"),
        ("nowhere/chip.toml", "cannot be read: No such file"),
        ("", "unknown hardware profile ''"),
    ],
)
def test_unknown_names_list_the_known_ones(name: str, message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        load_profile(name)


def test_plain_values_are_accepted_as_assumed(tmp_path: Path) -> None:
    profile = load_text(tmp_path, MINIMAL + "chips = [2, 1]\nmissing_cores = ['0,0']\n")
    assert (profile.name, profile.n_cores, profile.topology) == ("mine", 14, "mesh")
    assert profile.provenance["width"].confidence == "assumed"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"\[grid\] lacks width"),
        ("[grid]\nwidth = 3", r"\[grid\] lacks height"),
        ("grid = 3", r"grid is 3; expected a table \[grid\]"),
        ("colour = 'red'\n" + MINIMAL, "unknown key 'colour'; known keys: name, description, grid"),
        ("name = 3\n" + MINIMAL, "name is 3; expected text"),
        (MINIMAL + "heigth = 3", r"\[grid\]: unknown key 'heigth'; did you mean 'height'"),
        (MINIMAL + "neurons_per_core = 3", r"\[grid\]: unknown key 'neurons_per_core'"),
        (MINIMAL + "[limits]\nneurons_per_core = true", "neurons_per_core is True; expected"),
        (MINIMAL + "[limits]\nneurons_per_core = 2.0", "neurons_per_core is 2.0; expected a whole"),
        (MINIMAL + "[limits]\nneurons_per_core = [1]", r"neurons_per_core is \[1\]; expected"),
        (MINIMAL + "[limits]\nneurons_per_core = {value = 3}", "neurons_per_core lacks 'source'"),
        (
            MINIMAL + "[limits]\nneurons_per_core = {value=3, source='x', confidence='sure'}",
            "confidence is 'sure'; expected one of published, derived, second-hand, assumed",
        ),
        (
            MINIMAL + "[limits]\nneurons_per_core = {value=3, source=' ', confidence='assumed'}",
            "source is ' '; expected some text",
        ),
        (
            MINIMAL
            + "[limits]\nneurons_per_core = {value=3, source='x', confidence='assumed', soft=1}",
            "soft is 1; expected true or false",
        ),
        (
            MINIMAL
            + "[limits]\nneurons_per_core = {value=3, source='x', confidence='assumed', unit='n'}",
            "neurons_per_core: unknown key 'unit'",
        ),
        (MINIMAL + "[costs]\nhop_energy_pj = 1\nhop_energy_x_pj = 2", "either hop_energy_pj or"),
        (
            MINIMAL + "[costs]\nhop_energy_pj = 'cheap'",
            "hop_energy_pj is 'cheap'; expected a finite",
        ),
        (MINIMAL + "[costs]\nhop_energy_pj = inf", "expected a finite number"),
        (MINIMAL + "chips = [1, 2, 3]", "chips is .*; expected two whole numbers"),
        (MINIMAL + "dead_cores = [[0, 0.5]]", "expected cores as x,y"),
        (MINIMAL + "dead_cores = 3", "expected cores as x,y"),
        ("[grid\n", "not valid TOML"),
        (MINIMAL + "width = 4", "not valid TOML"),
    ],
)
def test_malformed_files_are_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ProfileError, match=message) as raised:
        load_text(tmp_path, text)
    assert "mine.toml" in str(raised.value)


def test_files_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"[grid]\nwidth = \xff")
    with pytest.raises(ProfileError, match="byte 15 is not UTF-8"):
        load_profile(tmp_path / "binary.toml")
    (tmp_path / "large.toml").write_bytes(b"#" * (1 << 21))
    with pytest.raises(ProfileError, match="is it a profile"):
        load_profile(tmp_path / "large.toml")
    with pytest.raises(ProfileError, match="cannot be read"):
        load_profile(tmp_path)


@given(st.dictionaries(st.sampled_from(sorted(KEYS)), st.text(max_size=8), max_size=4))
def test_any_override_either_loads_or_is_refused_in_one_line(values: dict[str, str]) -> None:
    try:
        profile = load_profile("loihi64", [f"{key}={value}" for key, value in values.items()])
    except ProfileError as error:
        message = str(error)
        assert message.startswith("profile 'loihi64'")
        assert len(message.splitlines()) == 1
    else:
        assert profile.limits.max_parts == profile.n_cores >= 1
