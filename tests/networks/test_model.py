import numpy as np
import pytest

from snnmap.errors import InputError, NetworkError
from snnmap.networks import load_network, model_from, read_model
from tests.networks.slow import conv_links, rows_of

INPUT = {"type": "input", "shape": [4, 4, 2]}


def build(*layers, **others):
    return model_from({"name": "net", "layers": list(layers), **others}).build()


def names(h):
    return [(p.name, p.shape) for p in h.populations]


def test_layers_in_a_row_get_names_and_shapes():
    h = build(
        INPUT,
        {"type": "conv", "filters": 3, "kernel": 3, "padding": "same"},
        {"type": "pool", "kernel": 2},
        {"type": "conv", "filters": 4, "kernel": [1, 2], "stride": [1, 1], "dilation": 1},
        {"type": "depthwise", "kernel": 1, "multiplier": 2},
        {"type": "global-pool"},
        {"type": "dense", "units": 5},
    )
    assert names(h) == [
        ("input", (4, 4, 2)),
        ("conv1", (4, 4, 3)),
        ("pool1", (2, 2, 3)),
        ("conv2", (2, 1, 4)),
        ("depthwise1", (2, 1, 8)),
        ("global-pool1", (1, 1, 8)),
        ("dense1", (5,)),
    ]
    assert [p.is_input for p in h.populations] == [True] + [False] * 6
    assert h.name == "net"


def test_layout_chw():
    layers = [{"type": "input", "shape": [2, 4, 5]}, {"type": "conv", "filters": 3, "kernel": 2}]
    h = build(*layers, layout="chw")
    assert names(h)[1] == ("conv1", (3, 3, 4))
    slow = conv_links((2, 4, 5), (3, 3, 4), (2, 2), (1, 1), (0, 0), (1, 1), 1, "chw")
    rows = rows_of(h)
    assert [rows[s][0] for s in range(40)] == [(40 + np.flatnonzero(r)).tolist() for r in slow]


def test_layers_without_neurons_pass_links_on():
    layers = [
        INPUT,
        {"type": "pool", "kernel": 2, "neurons": False},
        {"type": "flatten"},
        {"type": "dense", "units": 3},
    ]
    h = build(*layers)
    assert names(h) == [("input", (4, 4, 2)), ("dense1", (3,))]
    assert h.n_groups == 1
    assert h.n_hedges == 32
    layers[2] = {"type": "flatten", "neurons": True}
    assert names(build(*layers))[1] == ("flatten1", (8,))


def test_branches_join_by_add_and_concat():
    h = build(
        {"type": "input", "shape": [2, 2, 1]},
        {"type": "conv", "name": "a", "filters": 2, "kernel": 1},
        {"type": "conv", "name": "b", "from": "input", "filters": 2, "kernel": 1},
        {"type": "add", "name": "sum", "from": ["a", "b"], "neurons": True},
        {"type": "concat", "from": ["a", "sum"]},
        {"type": "one-to-one", "name": "all"},
    )
    assert names(h)[-1] == ("all", (2, 2, 4))
    starts = {p.name: p.start for p in h.populations}
    rows = rows_of(h)
    assert rows[0][0] == [4, 5, 12, 13]  # one axon of the input for both branches
    assert rows[starts["a"]][0] == [starts["sum"], starts["all"]]
    assert rows[starts["sum"] + 3][0] == [starts["all"] + 7]  # pixel 1, channel 2 + 1


def test_several_inputs_of_a_dense_layer():
    h = build(
        {"type": "input", "name": "left", "shape": [2]},
        {"type": "input", "name": "right", "shape": 3},
        {"type": "dense", "units": 2, "from": ["left", "right"]},
    )
    assert {s: row for s, (row, _) in rows_of(h).items()} == {s: [5, 6] for s in range(5)}


def test_recurrent_layers():
    full = build({"type": "input", "shape": 2}, {"type": "recurrent", "units": 3})
    assert rows_of(full)[2][0] == [2, 3, 4]
    no_self = build(
        {"type": "input", "shape": 2},
        {"type": "recurrent", "units": 3, "self_connections": False},
    )
    assert [rows_of(no_self)[s][0] for s in (2, 3, 4)] == [[3, 4], [2, 4], [2, 3]]
    sparse = build({"type": "input", "shape": 2}, {"type": "recurrent", "units": 50, "fan_out": 4})
    assert all(len(rows_of(sparse)[s][0]) == 4 for s in range(2, 52))


def test_random_layers_and_links_draw_differently_unless_seeded():
    layers = [{"type": "population", "name": n, "shape": 40} for n in "abc"]
    link = {"from": "a", "type": "random", "fan_out": 5}
    h = build(*layers, links=[{**link, "to": "b"}, {**link, "to": "c"}])
    rows = [row for s, (row, _) in rows_of(h).items() if s < 40]
    assert all(len(row) == 10 for row in rows)
    assert any([t - 40 for t in row[:5]] != [t - 80 for t in row[5:]] for row in rows)
    seeded = [{**link, "to": "b", "seed": 3}, {**link, "to": "c", "seed": 3}]
    rows = [row for s, (row, _) in rows_of(build(*layers, links=seeded)).items() if s < 40]
    assert all([t - 40 for t in row[:5]] == [t - 80 for t in row[5:]] for row in rows)
    other = build(*layers, links=[{**link, "to": "b"}], seed=1)
    assert rows_of(other) != rows_of(build(*layers, links=[{**link, "to": "b"}]))


def test_links_of_every_type():
    layers = [{"type": "population", "name": "a", "shape": 3}]
    rows = lambda **link: {  # noqa: E731
        s: row
        for s, (row, _) in rows_of(build(*layers, links=[{"from": "a", "to": "a", **link}])).items()
    }
    assert rows() == {s: [0, 1, 2] for s in range(3)}
    assert rows(self_connections=False) == {0: [1, 2], 1: [0, 2], 2: [0, 1]}
    assert rows(type="one-to-one") == {0: [0], 1: [1], 2: [2]}
    assert rows(type="random", probability=0.0) == {}
    assert rows(type="random", fan_in=2, self_connections=False) == {
        0: [1, 2],
        1: [0, 2],
        2: [0, 1],
    }


def test_chains_and_distances():
    layers = [{"type": "population", "name": "a", "shape": 4, "extent": [1, 1]}]
    chain = build(*layers, links=[{"from": "a", "to": "a", "type": "chain"}])
    assert {s: row for s, (row, _) in rows_of(chain).items()} == {0: [1], 1: [2], 2: [3]}
    near = {"from": "a", "to": "a", "type": "distance", "probability": 1.0, "sigma": 1000.0}
    assert all(row == [0, 1, 2, 3] for row, _ in rows_of(build(*layers, links=[near])).values())
    no_self = build(*layers, links=[{**near, "self_connections": False}])
    assert rows_of(no_self)[1][0] == [0, 2, 3]


@pytest.mark.parametrize(
    ("link", "text"),
    [
        ({"type": "distance", "probability": 0.5}, "need a probability .* and a sigma"),
        ({"type": "distance", "probability": 0.5, "sigma": 1, "fan_in": 2}, "take no fan_in"),
        ({"type": "dense", "sigma": 1}, "dense links take no sigma"),
        ({"type": "distance", "probability": 0.5, "sigma": 1, "to": "b"}, "'b' has none"),
        ({"type": "chain", "to": "b"}, "a chain needs one population, not 4 and 3"),
        ({"type": "chain", "fan_out": 1}, "chain links take no fan_out"),
    ],
)
def test_links_that_cannot_be(link, text):
    layers = [
        {"type": "population", "name": "a", "shape": 4, "extent": [1, 1]},
        {"type": "population", "name": "b", "shape": 3},
    ]
    with pytest.raises(NetworkError, match=text):
        build(*layers, links=[{"from": "a", "to": "a", **link}])


def test_delays_and_rates():
    h = build(
        {"type": "input", "shape": 2, "rates": 5},
        {"type": "dense", "units": 2, "delay_ms": [1, 3]},
        links=[{"from": "dense1", "to": "dense1", "delay_ms": 2.0}],
        rates={"kind": "constant", "rate": 0.5},
    )
    assert [p.delay_ms for p in h.projections] == [(1.0, 3.0), (2.0, 2.0)]
    assert h.weights.tolist() == [5.0, 5.0, 0.5, 0.5]


def test_reservoir_layer_with_an_input():
    h = build(
        {"type": "input", "shape": 10},
        {
            "type": "reservoir",
            "from": "input",
            "neurons": 200,
            "fan_out": 6,
            "input_probability": 1,
        },
        {"type": "dense", "units": 2},
    )
    rows = rows_of(h)
    assert rows[0][0] == list(range(10, 210))
    assert all(rows[s][0][-2:] == [210, 211] for s in range(10, 210))


def test_unequal_one_to_one_warns():
    with pytest.warns(UserWarning, match="between 3 and 2 neurons: only 2 are made"):
        h = build({"type": "input", "shape": 3}, {"type": "one-to-one", "units": 2})
    assert rows_of(h) == {0: ([3], 1.0), 1: ([4], 1.0)}


CONV = {"type": "conv", "filters": 2, "kernel": 3}


@pytest.mark.parametrize(
    ("layers", "others", "text"),
    [
        (
            [INPUT, {**CONV, "filter": 3}],
            {},
            "model: layer 'conv1': unknown key 'filter'; did you mean 'filters'",
        ),
        (
            [INPUT, {**CONV, "kernel": "big"}],
            {},
            "layer 'conv1': kernel is 'big'; expected a whole number >= 1",
        ),
        ([INPUT, {**CONV, "padding": "some"}], {}, 'padding is \'some\'; expected "same", "valid"'),
        ([INPUT, {**CONV, "neurons": 1}], {}, "neurons is 1; expected true or false"),
        ([INPUT, {"type": "conv", "filters": 2}], {}, "layer 'conv1': key 'kernel' is missing"),
        (
            [INPUT, {"type": "convolution"}],
            {},
            "unknown type 'convolution'; .*known: add, circuit, concat, conv",
        ),
        ([INPUT, {"filters": 2}], {}, "layer 2: key 'type' is missing"),
        (
            [INPUT, {**CONV, "kernel": 9}],
            {},
            "layer 'conv1': kernel 9 with dilation 1 spans 9 values, more than the 4",
        ),
        ([INPUT, {**CONV, "groups": 4}], {}, "layer 'conv1': groups 4 does not divide the 2 input"),
        (
            [INPUT, {**CONV, "from": "inputs"}],
            {},
            "its input 'inputs' is no layer before it; did you mean 'input'",
        ),
        ([INPUT, CONV, {**CONV, "name": "conv1"}], {}, "two layers are named 'conv1'"),
        (
            [INPUT, {**CONV, "from": ["input", "input"]}],
            {},
            "2 inputs to a conv layer; join them with add or concat",
        ),
        ([CONV], {}, "nothing comes before it"),
        (
            [INPUT, {**CONV, "neurons": False}],
            {},
            "layer 'conv1': has no neurons and nothing comes after",
        ),
        ([INPUT, {**CONV, "neurons": False, "rates": 1}], {}, "rates belong to neurons"),
        (
            [INPUT, {"type": "recurrent", "units": 2, "neurons": False}],
            {},
            "recurrent layer is made of neurons",
        ),
        (
            [INPUT, {"type": "dense", "units": 2}, {"type": "add", "from": ["input", "dense1"]}],
            {},
            "layer 'add1': inputs of shapes",
        ),
        (
            [INPUT, {"type": "dense", "units": 10**12}],
            {},
            "layer 'dense1': 1,000,000,000,000 values exceed",
        ),
        ([INPUT, {**CONV, "filters": 2**31}], {}, "layer 'conv1': .* values exceed"),
        ([{"type": "input", "shape": [2**20, 2**20]}], {}, "layer 'input': .* values exceed"),
        (
            [INPUT, {"type": "random", "units": 2}],
            {},
            "layer 'random1': random links need exactly one",
        ),
        (
            [INPUT, {"type": "random", "units": 2, "fan_in": 99}],
            {},
            "layer 'random1': fan_in 99 exceeds the 32 sources",
        ),
        (
            [INPUT],
            {"links": [{"from": "input", "to": "out"}]},
            "link 'input' -> 'out': 'out' is no layer of neurons",
        ),
        (
            [INPUT],
            {"links": [{"from": "in", "to": "input"}]},
            "link 'in' -> 'input': its input 'in'",
        ),
        (
            [INPUT],
            {"links": [{"from": "input", "to": "input", "probability": 0.5}]},
            "dense links take no probability",
        ),
        (
            [INPUT],
            {"links": [{"from": "input", "to": "input", "weight": 0.5}]},
            "link 1: unknown key 'weight'",
        ),
        ([INPUT], {"links": {"from": "input"}}, "links is not a list of tables"),
        ([], {}, "there are no layers"),
        ([INPUT], {"layer": []}, "unknown key 'layer'; did you mean 'layers'"),
        ([INPUT], {"layout": "nchw"}, 'layout is \'nchw\'; expected "hwc" or "chw"'),
        (
            [{**INPUT, "rates": {"kind": "values", "values": [1]}}, CONV],
            {},
            "layer 'input': 1 rates for 32 neurons",
        ),
    ],
)
def test_wrong_descriptions_name_the_layer_and_the_value(layers, others, text):
    with pytest.raises(NetworkError, match=text):
        build(*layers, **others)


def test_model_files(tmp_path):
    path = tmp_path / "net.toml"
    path.write_text(
        'name = "net"\n[[layers]]\ntype = "input"\nshape = [2]\n'
        '[[layers]]\ntype = "dense"\nunits = 3\n'
        '[rates]\nkind = "file"\nfile = "rates.txt"\n'
    )
    (tmp_path / "rates.txt").write_text("1 2 3 4 5")
    model = read_model(path)
    assert (model.name, model.stand_in, model.profile) == ("net", False, None)
    assert load_network(path).weights.tolist() == [1.0, 2.0]
    assert load_network(str(path)).n_nodes == 5


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "cannot be read"),
        (b'name = "x', "is not TOML"),
        (b"\xff\xfe\x00", "is not UTF-8"),
        (b'name = "x"\n', "key 'layers' is missing"),
        (b"name = 1\nlayers = []\n", "name is 1; expected text"),
        (
            b'name = "x"\nlayers = [{type = "input", shape = [1.5]}]',
            "shape is .*expected a whole number >= 0",
        ),
    ],
)
def test_bad_files_name_the_file(content, text, tmp_path):
    path = tmp_path / "bad.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises((InputError, NetworkError), match=f"bad.toml: .*{text}|bad.toml: {text}"):
        read_model(path).build()
