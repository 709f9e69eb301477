from pathlib import Path

import pytest

from snnmap.errors import InputError, NetworkError
from snnmap.networks.suites import load_suite, suite_names
from snnmap.networks.variants import filled, reseeded, scaled
from tests.networks.slow import rows_of

SUITE = """
name = "mine"
[[networks]]
name = "pair-{n}-{p}"
sweep = { n = [3, 5], p = [0.0, 1.0] }
layers = [{ type = "input", shape = "{n}" }, { type = "random", units = 4, probability = "{p}" }]
[[networks]]
name = "small-lenet"
model = "lenet"
scale = 0.5
profile = "loihi"
[[networks]]
name = "other"
model = "other.toml"
seed = 9
[expect]
"pair-5-1.0" = { nodes = 9, hyperedges = 5, pins = 25 }
"""
OTHER = """
name = "x"
profile = "loihi64"
layers = [{ type = "population", name = "a", shape = 30 }]
links = [{ from = "a", to = "a", type = "random", fan_out = 3 }]
rates = { kind = "lognormal", seed = 4 }
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "mine.toml").write_text(SUITE)
    (tmp_path / "other.toml").write_text(OTHER)
    return tmp_path / "mine.toml"


def test_a_sweep_gives_one_network_for_each_combination(mine):
    entries = load_suite(mine).entries
    assert [e.name for e in entries][:4] == ["pair-3-0.0", "pair-3-1.0", "pair-5-0.0", "pair-5-1.0"]
    assert entries[3].parameters == {"n": 5, "p": 1.0}
    network = entries[3].model.build()
    assert (network.n_nodes, network.n_hedges, network.n_pins, network.name) == (
        9,
        5,
        25,
        "pair-5-1.0",
    )
    assert entries[3].expect == {"nodes": 9, "hyperedges": 5, "pins": 25}
    assert entries[2].expect is None


def test_models_profiles_scales_and_seeds(mine):
    entries = {e.name: e for e in load_suite(mine).entries}
    half = entries["small-lenet"]
    assert (half.profile, half.scale) == ("loihi", 0.5)
    assert half.model.build().populations[1].shape == (32, 32, 3)
    other = entries["other"]
    assert (other.profile, other.seed, other.model.values["seed"]) == ("loihi64", 9, 9)
    assert other.model.values["rates"]["seed"] == 9


def test_the_caller_chooses_seed_and_scale(mine):
    first, again, third = (
        rows_of(load_suite(mine, seed=seed).only(["other"]).entries[0].model.build())
        for seed in (1, 1, 2)
    )
    assert first == again != third
    entries = load_suite(mine, scale=2.0).entries
    assert [e.scale for e in entries] == [2.0] * 4 + [1.0, 2.0]
    assert entries[3].expect is None  # counts of a scaled network are not those of the suite
    assert entries[-1].model.build().n_nodes == 60


def test_only_keeps_the_order_of_the_suite(mine):
    suite = load_suite(mine).only(["other", "pair-3-0.0"])
    assert [e.name for e in suite.entries] == ["pair-3-0.0", "other"]
    with pytest.raises(
        NetworkError, match="suite 'mine' has no network 'odder'; did you mean 'other'"
    ):
        suite.only(["odder"])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("scale = 0.5", "skale = 1"), "'small-lenet': unknown key 'skale'; did you mean 'scale'"),
        (("scale = 0.5", "scale = 0"), "network 'small-lenet': scale is 0; expected a number > 0"),
        (("scale = 0.5", "scale = 1e7"), "network 'small-lenet': scale is 1.*; expected at most"),
        (("scale = 0.5", "scale = nan"), "network 'small-lenet': scale is nan; expected a number"),
        (("seed = 9", "seed = -1"), "network 'other': seed is -1"),
        (('model = "lenet"', ""), "neither model nor layers"),
        (('model = "lenet"', 'model = "lenet"\nlayers = []'), "both model and layers"),
        (('model = "lenet"', 'model = "lenit"'), "model 'lenit' is neither"),
        (("n = [3, 5]", "n = 3"), "sweep of 'n' is 3; expected a list"),
        (('"{n}" }, {', '"{m}" }, {'), "'{m}' names an unknown parameter"),
        (("pair-{n}-{p}", "pair-{n}"), "two networks are named 'pair-3'"),
        (("pair-{n}-{p}", "pair/{n}-{p}"), "'pair/3-0.0' is no file name"),
        (('"pair-5-1.0" =', '"pair-6" ='), "expect names no network of the suite: 'pair-6'"),
        (("pins = 25", "pin = 25"), "unknown key 'pin'"),
        (('name = "mine"', ""), "key 'name' is missing"),
        (("[[networks]]", "[[network]]"), "unknown key 'network'"),
    ],
)  # fmt: skip
def test_wrong_suites_name_the_network_and_the_key(change, text, mine):
    content = mine.read_text()
    assert change[0] in content
    mine.write_text(content.replace(*change))
    with pytest.raises(NetworkError, match=text):
        load_suite(mine)


def test_unknown_suites_and_bad_files(tmp_path):
    with pytest.raises(
        NetworkError, match=r"neither a suite nor a file; did you mean 'table1'.*smoke"
    ):
        load_suite("table2")
    (tmp_path / "bad.toml").write_text("name = ")
    with pytest.raises(InputError, match="is not TOML"):
        load_suite(tmp_path / "bad.toml")
    for scale in (0, -1.0, float("nan"), float("inf"), 1e7):
        with pytest.raises(NetworkError, match=f"scale is {scale}; expected a number > 0, at most"):
            load_suite("smoke", scale=scale)


@pytest.mark.parametrize("name", suite_names())
def test_every_suite_states_its_counts_and_profiles(name):
    from snnmap.hardware import profile_names

    suite = load_suite(name)
    assert suite.name == name
    assert suite.description
    for entry in suite.entries:
        assert entry.expect is not None
        assert entry.profile in profile_names()
        assert entry.model.description


@pytest.mark.parametrize("name", ["smoke", "limits", "circuits"])
def test_small_suites_have_the_counts_they_state(name):
    for entry in load_suite(name).entries:
        network = entry.model.build()
        counts = (network.n_nodes, network.n_hedges, network.n_pins)
        assert dict(zip(("nodes", "hyperedges", "pins"), counts, strict=True)) == entry.expect


def test_table1_is_the_published_table():
    published = {"16k-model": 765_864, "1M-model": 256_105_600, "vgg11": 133_554_432}
    expects = {e.name: e.expect for e in load_suite("table1").entries}
    assert len(expects) == 10
    assert {name: expects[name]["pins"] for name in published} == published
    for name, published_mean in (("16k-rand", 129), ("64k-rand", 193), ("256k-rand", 257)):
        assert expects[name]["pins"] / expects[name]["hyperedges"] == pytest.approx(
            published_mean, rel=0.01
        )


def test_the_limits_are_where_they_say():
    networks = {
        e.name: e.model.build() for e in load_suite("limits").entries if "uniform" not in e.name
    }
    assert networks["one-core"].n_nodes == 1024
    assert networks["one-core-and-one"].n_nodes == 1025
    assert networks["delta-tight"].fan_ins.max() == 4096
    assert networks["delta-over"].fan_ins.max() == 4097
    assert networks["omega-tight"].fan_ins.max() == 128
    assert networks["silent"].weights.sum() == 0
    alone = networks["disconnected"]
    touched = set(alone.sources) | set(alone.destinations)
    assert max(touched) < 4500 < alone.n_nodes == 6500


@pytest.mark.parametrize("name", suite_names())
def test_suites_can_be_scaled(name):
    for entry in load_suite(name, scale=0.001).entries:
        whole = next(e for e in load_suite(name).entries if e.name == entry.name)
        network = entry.model.build()
        assert entry.expect is None
        assert 0 < network.n_nodes <= whole.expect["nodes"]


def test_filled_keeps_types_and_writes_out_in_text():
    value = {"a": "{n}", "b": ["x{n}y{p}", 3], "c": {"d": "{p}"}, "e": True}
    assert filled(value, {"n": 4, "p": 0.5}) == {
        "a": 4, "b": ["x4y0.5", 3], "c": {"d": 0.5}, "e": True,
    }  # fmt: skip


def test_scaled_keeps_images_classes_and_densities():
    values = {
        "layers": [
            {"type": "input", "shape": [8, 8, 3]},
            {"type": "conv", "filters": 6, "kernel": 3},
            {"type": "population", "shape": 40, "extent": [2.0, 8.0]},
            {"type": "reservoir", "neurons": 100, "fan_out": 10},
            {"type": "dense", "units": 10},
        ],
        "links": [{"from": "a", "to": "a", "type": "random", "fan_in": 20, "seed": 3}],
    }
    big = scaled(values, 4.0)
    assert [big["layers"][i].get(k) for i, k in ((0, "shape"), (1, "filters"), (2, "shape"))] == [
        [8, 8, 3], 24, 160,
    ]  # fmt: skip
    assert big["layers"][2]["extent"] == [4.0, 16.0]
    assert big["layers"][3] == {"type": "reservoir", "neurons": 400, "fan_out": 10}
    assert big["layers"][4]["units"] == 10
    assert big["links"][0]["fan_in"] == 80
    assert scaled(values, 0.001)["layers"][1]["filters"] == 1
    assert scaled(values, 1) is values
    assert reseeded(values, 5)["links"][0]["seed"] == 5
    assert reseeded(values, 5)["layers"][3]["seed"] == 5
    assert "seed" not in reseeded(values, 5)["layers"][1]
