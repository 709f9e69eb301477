"""lava-dl networks: real files, every layer against slow loops, malformed files."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnmap.errors import ConfigError
from snnmap.readers import find_format, read_network
from tests.readers import naive_layers
from tests.readers.naive_layers import links, one_axon_each, real_input
from tests.readers.refusing import refusal

Layer = dict[str, Any]


def write(path: Path, *layers: Layer, **simulation: float) -> Path:
    """A file as lava-dl exports it; `neuron` is added to what has neurons."""
    with h5py.File(path, "w") as file:
        for i, layer in enumerate(layers):
            group = file.create_group(f"layer/{i}")
            group.create_dataset("type", (1,), "S10", [layer["type"].encode()])
            fields = {k: v for k, v in layer.items() if k != "type"}
            if layer["type"] not in ("flatten", "concat", "average", "input"):
                fields.setdefault("neuron", {"type": "LOIHI", "vThMant": 25})
            for name, value in fields.items():
                if isinstance(value, dict):
                    for key, inner in value.items():
                        group[f"{name}/{key}"] = inner
                elif value is not None:
                    group[name] = value
        for key, value in simulation.items():
            file[f"simulation/{key}"] = value
    return path


def image(*shape: int) -> Layer:
    return {"type": "input", "shape": shape}


def dense(n_out: int, n_in: int, **more: Any) -> Layer:
    return {"type": "dense", "shape": (n_out, 1, 1), "weight": np.ones((n_out, n_in)), **more}


def conv(shape: tuple[int, ...], weight: Any, **more: Any) -> Layer:
    fields = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
    return {"type": "conv", "shape": shape, "weight": weight, **fields, **more}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "network.net"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lava") / "network.net"


# ---------------------------------------------------------------------- real files


def test_pilotnet() -> None:
    path = real_input("lava/pilotnet.net")
    read_network(path)  # compiles
    tracemalloc.start()
    network = read_network(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    inputs = sum(p.size for p in network.populations if p.is_input)
    assert (network.n_nodes - inputs, inputs) == (118_909, 39_600)
    assert [p.shape for p in network.populations] == [
        (3, 66, 200), (24, 32, 99), (36, 15, 49), (48, 7, 24), (64, 4, 22), (64, 2, 20),
        (100, 1, 1), (50, 1, 1), (10, 1, 1), (1,),
    ]  # fmt: skip
    assert len(network.destinations) < 1_100_000 < network.n_pins  # groups are not expanded
    assert peak < 150e6


def test_pilotnet_layers_against_slow_loops() -> None:
    network = read_network(real_input("lava/pilotnet.net"))
    expected, _ = naive_layers.convolution(
        (7, 24), np.ones((64, 48, 3, 3), bool), (2, 1), (1, 0), (1, 1), 1
    )
    assert (links(network, "3:conv", "4:conv") == expected).all()
    assert links(network, "5:conv", "7:dense").all()
    assert links(network, "9:dense", "10:dense").all()  # its weight is a vector
    assert one_axon_each(network)


def test_tiny() -> None:
    network = read_network(real_input("lava/tiny.net"))  # weights have a time axis
    assert [p.size for p in network.populations] == [3 * 16 * 16, 24 * 6 * 6, 36]
    one = np.ones((24, 3, 5, 5), bool)
    expected, _ = naive_layers.convolution((16, 16), one, (2, 2), (0, 0), (1, 1), 1)
    assert (links(network, "0:input", "1:conv") == expected).all()


# ---------------------------------------------------------------------- layers


@given(st.data())
def test_convolution(shared: Path, data: st.DataObject) -> None:
    pair = st.tuples(st.integers(1, 3), st.integers(1, 3))
    kernel, stride, dilation = data.draw(pair), data.draw(pair), data.draw(pair)
    padding = data.draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
    groups = data.draw(st.integers(1, 3))
    sizes = tuple(
        d * (k - 1) + data.draw(st.integers(1, 5)) for k, d in zip(kernel, dilation, strict=True)
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    present = rng.random((2 * groups, 2, *kernel)) < 0.7
    expected, shape = naive_layers.convolution(sizes, present, stride, padding, dilation, groups)
    weight = present[..., None] if data.draw(st.booleans()) else present
    if data.draw(st.booleans()):  # complex weights are stored as halves
        weight = {"real": weight * 1.0, "imag": np.zeros(weight.shape)}
    fields = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    layer = conv(shape, weight if isinstance(weight, dict) else weight * 1.0, **fields)
    network = read_network(write(shared, image(2 * groups, *sizes), layer), drop_zeros=True)
    assert (links(network, "0:input", "1:conv") == expected).all()
    full, _ = naive_layers.convolution(
        sizes, np.ones_like(present), stride, padding, dilation, groups
    )
    assert (links(read_network(shared), "0:input", "1:conv") == full).all()


@given(st.data())
def test_transposed_convolution(shared: Path, data: st.DataObject) -> None:
    """Its links are those of the convolution the other way, reversed."""
    pair = st.tuples(st.integers(1, 3), st.integers(1, 3))
    kernel, stride, dilation = data.draw(pair), data.draw(pair), data.draw(pair)
    sizes = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    groups, n_in, n_out = data.draw(st.integers(1, 2)), 2, 3
    big = tuple(
        (n - 1) * s + d * (k - 1) + 1
        for n, s, d, k in zip(sizes, stride, dilation, kernel, strict=True)
    )
    one = np.ones((n_in * groups, n_out, *kernel), bool)
    back, shape = naive_layers.convolution(big, one, stride, (0, 0), dilation, groups)
    assert shape == (n_in * groups, *sizes)
    fields = {"stride": stride, "dilation": dilation, "groups": groups}
    layer = {**conv((n_out * groups, *big), one * 1.0, **fields), "type": "convT"}
    network = read_network(write(shared, image(*shape), layer))
    assert (links(network, "0:input", "1:convT") == back.T).all()


def test_pool_and_unpool(file: Path) -> None:
    down, up = {"type": "pool", "shape": (2, 3, 2)}, {"type": "unpool", "shape": (2, 6, 4)}
    window = {"kernelSize": (2, 2), "stride": (2, 2), "padding": (0, 0), "dilation": (1, 1)}
    network = read_network(write(file, image(2, 6, 4), {**down, **window}, {**up, **window}))
    expected, _ = naive_layers.pooling((2, 6, 4), (2, 2), (2, 2), (0, 0))
    assert (links(network, "0:input", "1:pool") == expected).all()
    assert (links(network, "1:pool", "2:unpool") == expected.T).all()


def test_flatten_and_average_have_no_neurons(file: Path) -> None:
    write(file, image(2, 2, 2), {"type": "flatten", "shape": (1, 1, 8)}, dense(6, 8),
          {"type": "average", "shape": (3, 1, 1)}, dense(2, 3))  # fmt: skip
    network = read_network(file)
    assert [p.name for p in network.populations] == ["0:input", "2:dense", "4:dense"]
    assert links(network, "2:dense", "4:dense").all()


def test_affine_readout_has_no_neurons(file: Path) -> None:
    network = read_network(write(file, image(4), dense(3, 4), {**dense(2, 3), "neuron": None}))
    assert network.n_nodes == 7
    assert network.n_hedges == 4


def test_recurrent_dense(file: Path) -> None:
    layer = {**dense(3, 4), "type": "dense_rec", "weight_rec": np.eye(3)}
    network = read_network(write(file, image(4), layer), drop_zeros=True)
    assert (links(network, "1:dense_rec", "1:dense_rec") == np.eye(3)).all()


def test_skip_connection(file: Path) -> None:
    """concat joins the layer before with those it names."""
    write(file, image(2), dense(3, 2), {"type": "concat", "shape": (5, 1, 1), "layers": [0]},
          {**dense(4, 5), "weight": np.tri(4, 5)})  # fmt: skip
    network = read_network(file, drop_zeros=True)
    assert (links(network, "1:dense", "3:dense") == np.tri(4, 5).T[:3]).all()
    assert (links(network, "0:input", "3:dense") == np.tri(4, 5).T[3:]).all()


def test_recurrent_connection_through_concat(file: Path) -> None:
    """A layer may be joined with one that comes after it."""
    write(file, image(2), {"type": "concat", "shape": (5, 1, 1), "layers": [2]}, dense(3, 5))
    network = read_network(file)
    assert links(network, "0:input", "2:dense").all()
    assert links(network, "2:dense", "2:dense").all()


@pytest.mark.parametrize("shape", [(5,), (5, 1, 1), (1, 1, 5)])
def test_shapes_of_a_dense_layer(file: Path, shape: tuple[int, ...]) -> None:
    network = read_network(write(file, image(3), {**dense(5, 3), "shape": shape}))
    assert [p.size for p in network.populations] == [3, 5]


def test_axonal_delays(file: Path) -> None:
    layers = image(2), dense(3, 2, delay=[0.0, 4.0, 2.0]), dense(2, 3)
    (first, second) = read_network(write(file, *layers, Ts=2)).projections
    assert (first.delay_ms, second.delay_ms) == (None, (0.0, 8.0))
    (_, second) = read_network(file, timestep_ms=0.5).projections
    assert second.delay_ms == (0.0, 2.0)


def test_unknown_types(file: Path) -> None:
    write(
        file, image(2), {"type": "odd", "shape": (2,)}, {"type": "even", "shape": (2,)}, dense(1, 2)
    )
    assert "unknown layer types: 1 (odd), 2 (even); expected" in str(refusal(file))
    assert links(read_network(file, unknown="skip"), "0:input", "3:dense").all()


@pytest.mark.parametrize(
    "options", [{"unknown": "x"}, {"timestep_ms": 0.0}, {"timestep_ms": np.nan}]
)
def test_unknown_options(file: Path, options: dict[str, Any]) -> None:
    write(file, image(2), dense(3, 2))
    with pytest.raises(ConfigError):
        read_network(file, **options)


def test_recognised_by_content(tmp_path: Path) -> None:
    assert find_format(write(tmp_path / "network.h5", image(2), dense(3, 2))).name == "lava"


# ---------------------------------------------------------------------- malformed


def put(group: h5py.Group, name: str, value: Any) -> None:
    if name in group:
        del group[name]
    if value is not None:
        group[name] = value


def claim(group: h5py.Group, name: str) -> None:
    del group[name]
    group.create_dataset(name, (2**30, 2**33), "f4", chunks=(64, 64))


FAULTS: dict[str, tuple[Callable[[h5py.File], Any], str]] = {
    "layer_missing": (lambda f: f["layer"].move("1", "9"), "numbered 0 to 3: 1 is missing, '9'"),
    "no_layers": (lambda f: f.__delitem__("layer"), "layer: expected a group, found nothing"),
    "type_missing": (lambda f: put(f["layer/1"], "type", None), "layer/1/type: is missing"),
    "type_is_a_number": (lambda f: put(f["layer/1"], "type", 3), "expected text"),
    "shape_missing": (lambda f: put(f["layer/0"], "shape", None), "layer/0/shape: is missing"),
    "shape_negative": (lambda f: put(f["layer/1"], "shape", [-4, 2, 2]), "layer/1/shape: is"),
    "shape_2_63": (lambda f: put(f["layer/0"], "shape", [2**62, 4, 4]), "layer '0:input'"),
    "shapes_disagree": (lambda f: put(f["layer/1"], "shape", [4, 3, 3]),
                        "layer '1:conv': has parameters for 4x3x3 = 36 neurons, but 4x2x2 = 16"),
    "weights_disagree": (lambda f: put(f["layer/3"], "weight", np.ones((3, 7))),
                         "layer 'weights of 3:dense': weights of shape 3x7 take 7 values"),
    "weight_missing": (lambda f: put(f["layer/1"], "weight", None), "layer/1/weight: is missing"),
    "weight_of_three": (lambda f: put(f["layer/1"], "weight", np.ones((4, 2, 3))), "4x2x3"),
    "weight_of_six": (lambda f: put(f["layer/1"], "weight", np.ones((1, 2) * 3)), "expected 4"),
    "weight_does_not_divide": (lambda f: put(f["layer/3"], "weight", np.ones(50)), "do not divide"),
    "weight_claims_2_65": (lambda f: claim(f["layer/3"], "weight"), "weights of 3:dense"),
    "stride_0": (lambda f: put(f["layer/1"], "stride", [0, 1]), "stride is 0"),
    "padding_of_four": (lambda f: put(f["layer/1"], "padding", [0] * 4), "has 4 values"),
    "first_is_no_input": (lambda f: put(f["layer/0"], "type", "flatten"), "expected 'input'"),
    "flatten_disagrees": (lambda f: put(f["layer/2"], "shape", [1, 1, 17]), "layer '2:flatten'"),
    "ts_0": (lambda f: put(f["simulation"], "Ts", 0.0), "simulation/Ts: is"),
    "delay_negative": (lambda f: put(f["layer/1"], "delay", [-1.0]), "layer/1/delay"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_fault(tmp_path: Path, fault: str) -> None:
    path = write(
        tmp_path / f"{fault}.net",
        image(2, 4, 4),
        conv((4, 2, 2), np.ones((4, 2, 3, 3))),
        {"type": "flatten", "shape": (1, 1, 16)},
        dense(3, 16),
        Ts=1,
    )
    spoil, text = FAULTS[fault]
    with h5py.File(path, "r+") as file:
        spoil(file)
    error = refusal(path, format="lava")
    assert re.search(text, str(error)), str(error)


@pytest.mark.parametrize(
    ("n", "text"), [(2**31 - 8, "GB of memory"), (2**26, "but the file stores")]
)
def test_size_that_the_file_cannot_hold(tmp_path: Path, n: int, text: str) -> None:
    path = write(tmp_path / "claim.net", image(4), dense(2, 4))
    with h5py.File(path, "r+") as file:
        put(file["layer/0"], "shape", [n])
        del file["layer/1/weight"]
        file["layer/1"].create_dataset("weight", (2, n), "f4", chunks=(1, 64))
    assert text in str(refusal(path, drop_zeros=True))


def test_concat_of_no_layer(file: Path) -> None:
    write(file, image(2), {"type": "concat", "shape": (4,), "layers": [7]}, dense(1, 4))
    assert "layer/1/layers: names layer 7; expected 0 to 2" in str(refusal(file))


@pytest.mark.parametrize("share", [0.2, 0.6, 0.95])
def test_truncated(file: Path, share: float) -> None:
    data = write(file, image(2), dense(3, 2)).read_bytes()
    file.write_bytes(data[: int(len(data) * share)])
    refusal(file, format="lava")
