"""Links of every NIR layer against slow loops, through files that the `nir` package writes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnmap.hypergraph import Hypergraph
from snnmap.readers import read_network
from tests.readers import naive_layers
from tests.readers.naive_layers import links, one_axon_each

nir = pytest.importorskip("nir")


def write(path: Path, nodes: dict[str, Any], edges: list[tuple[str, str]]) -> Path:
    nir.write(path, nir.NIRGraph(nodes, edges, type_check=False))
    return path


def lif(*shape: int) -> Any:
    ones = np.ones(shape)
    return nir.LIF(tau=ones, r=ones, v_leak=ones, v_threshold=ones)


def chain(path: Path, shape: tuple[int, ...], *layers: Any) -> Path:
    """input -> layers -> Output; layer i is called str(i)."""
    nodes = {"input": nir.Input({"input": np.array(shape)})}
    nodes.update({str(i): layer for i, layer in enumerate(layers)})
    nodes["output"] = nir.Output({"output": np.array([1])})  # wrong, and nobody minds
    names = list(nodes)
    return write(path, nodes, list(pairwise(names)))


def scalar_lif() -> Any:
    return lif(1)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nir") / "network.nir"


@st.composite
def windows(draw: st.DrawFn, rank: int) -> dict[str, Any]:
    """Sizes of a convolution that fits."""
    kernel = tuple(draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank)))
    dilation = tuple(draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank)))
    stride = tuple(draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank)))
    padding = draw(
        st.sampled_from(["same", "valid"])
        | st.lists(st.integers(0, 3), min_size=rank, max_size=rank).map(tuple)
    )
    pads = (0,) * rank if isinstance(padding, str) else padding
    sizes = tuple(
        draw(st.integers(max(1, d * (k - 1) + 1 - (99 if padding == "same" else 2 * p)), 8 + d * k))
        for k, d, p in zip(kernel, dilation, pads, strict=True)
    )
    return {
        "kernel": kernel, "dilation": dilation, "stride": stride, "padding": padding, "sizes": sizes
    }  # fmt: skip


@given(st.data(), st.sampled_from([1, 2]))
def test_convolutions(file: Path, data: st.DataObject, rank: int) -> None:
    w = data.draw(windows(rank))
    groups = data.draw(st.integers(1, 3))
    in_group, out_group = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 2))
    pruned = data.draw(st.booleans())
    shape = (out_group * groups, in_group, *w["kernel"])
    present = np.ones(shape, bool)
    if pruned:
        seed = data.draw(st.integers(0, 2**16))
        present = np.random.default_rng(seed).random(shape) < 0.6
    one = data.draw(st.booleans())  # numbers instead of pairs where all are equal
    fields = {
        k: w[k][0] if one and len(set(w[k])) == 1 else (w[k] if rank == 2 else w[k][0])
        for k in ("stride", "dilation")
    }
    padding = w["padding"]
    if not isinstance(padding, str) and rank == 1:
        padding = padding[0]
    layer = (nir.Conv1d if rank == 1 else nir.Conv2d)(
        input_shape=w["sizes"] if rank == 2 else w["sizes"][0],
        weight=present.astype(np.float32),
        padding=padding,
        groups=groups,
        bias=np.zeros(shape[0]),
        **fields,
    )
    chain(file, (in_group * groups, *w["sizes"]), layer, scalar_lif())
    if data.draw(st.booleans()):
        with h5py.File(file, "r+") as written:  # not every writer states it
            del written["node/nodes/0/input_shape"]
    network = read_network(file, drop_zeros=pruned)
    expected, out_shape = naive_layers.convolution(
        w["sizes"], present, w["stride"], w["padding"], w["dilation"], groups
    )
    assert network.populations[1].shape == out_shape
    assert (links(network, "input", "1") == expected).all()
    assert one_axon_each(network)


def test_zero_weights_are_links_unless_dropped(file: Path) -> None:
    weight = np.zeros((2, 1, 2, 2))
    weight[1, 0, 0, 1] = -1
    conv = nir.Conv2d((3, 3), weight, 1, 0, 1, 1, np.zeros(2))
    chain(file, (1, 3, 3), conv, scalar_lif())
    ones = np.ones((2, 1, 2, 2), bool)
    kept, _ = naive_layers.convolution((3, 3), ones, (1, 1), (0, 0), (1, 1), 1)
    dropped, _ = naive_layers.convolution((3, 3), weight != 0, (1, 1), (0, 0), (1, 1), 1)
    assert (links(read_network(file), "input", "1") == kept).all()
    assert (links(read_network(file, drop_zeros=True), "input", "1") == dropped).all()


@given(st.data(), st.sampled_from(["SumPool2d", "AvgPool2d"]))
def test_pooling(file: Path, data: st.DataObject, kind: str) -> None:
    pair = st.tuples(st.integers(1, 3), st.integers(1, 3))
    kernel, stride = data.draw(pair), data.draw(pair)
    padding = tuple(data.draw(st.integers(0, k - 1)) for k in kernel)
    shape = (data.draw(st.integers(1, 3)), *(data.draw(st.integers(k, 8)) for k in kernel))
    layer = getattr(nir, kind)(np.array(kernel), np.array(stride), np.array(padding))
    chain(file, shape, layer, scalar_lif())
    expected, out_shape = naive_layers.pooling(shape, kernel, stride, padding)
    network = read_network(file)
    assert network.populations[1].shape == out_shape
    assert (links(network, "input", "1") == expected).all()


@given(
    st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**16), st.sampled_from([0.0, 0.5, 1.0])
)
def test_dense(file: Path, n_in: int, n_out: int, seed: int, density: float) -> None:
    weight = (np.random.default_rng(seed).random((n_out, n_in)) < density).astype(float)
    layer = nir.Affine(weight, np.zeros(n_out)) if seed % 2 else nir.Linear(weight)
    chain(file, (n_in,), layer, lif(n_out))
    assert links(read_network(file), "input", "1").all()
    assert (links(read_network(file, drop_zeros=True), "input", "1") == (weight.T != 0)).all()


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2**16))
def test_dense_along_the_last_axis(file: Path, lead: int, n_in: int, n_out: int, seed: int) -> None:
    one = np.random.default_rng(seed).random((n_out, n_in)) < 0.5
    expected = np.kron(np.eye(lead, dtype=bool), one.T)
    full = np.kron(np.eye(lead, dtype=bool), np.ones_like(one.T))
    stack = np.repeat(one[None], lead, axis=0)
    for weight in (one, stack):  # shared by all rows, or one matrix a row
        layer = nir.Linear(weight.astype(float))
        chain(file, (lead, n_in), layer, lif(lead, n_out))
        network = read_network(file, drop_zeros=True)
        assert (links(network, "input", "1") == expected).all()
        assert (links(read_network(file), "input", "1") == full).all()


@given(st.data())
def test_chains_compose(file: Path, data: st.DataObject) -> None:
    """Convolution, pooling, scaling, flattening and weights without neurons: a boolean product."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    drop = data.draw(st.booleans())
    shape: tuple[int, ...] = (2, 6, 5)
    expected = np.eye(60, dtype=bool)
    layers = []
    for kind in data.draw(st.lists(st.sampled_from("cps"), max_size=3)):
        step = np.eye(expected.shape[1], dtype=bool)
        if kind == "c":
            present = rng.random((2, shape[0], 2, 3)) < (0.5 if drop else 2)
            pads = (1, 1)
            step, out = naive_layers.convolution(shape[1:], present, (1, 1), pads, (1, 1), 1)
            weight = present.astype(float)
            layers.append(nir.Conv2d(shape[1:], weight, 1, pads, 1, 1, np.zeros(2)))
            shape = out
        elif kind == "p" and min(shape[1:]) > 1:
            step, shape = naive_layers.pooling(shape, (2, 2), (2, 2), (0, 0))
            layers.append(nir.SumPool2d(np.array([2, 2]), np.array([2, 2]), np.array([0, 0])))
        else:
            layers.append(nir.Scale(np.ones(shape)))
        expected = (expected.astype(int) @ step) > 0
    layers.append(nir.Flatten({"input": np.array(shape)}, data.draw(st.integers(0, 1)), -1))
    if data.draw(st.booleans()):
        present = rng.random((4, expected.shape[1])) < (0.3 if drop else 2)
        layers.append(nir.Linear(present.astype(float)))
        expected = (expected.astype(int) @ present.T) > 0
    layers.append(scalar_lif())
    chain(file, (2, 6, 5), *layers)
    network = read_network(file, drop_zeros=drop)
    assert (links(network, "input", str(len(layers) - 1)) == expected).all()
    assert one_axon_each(network)


@given(st.data())
def test_any_graph_of_neurons_and_weights(file: Path, data: st.DataObject) -> None:
    """Random graphs, with cycles, self-loops, branches and unreachable neurons."""
    n = data.draw(st.integers(1, 5))
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    joined = data.draw(st.lists(pairs, max_size=8))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    nodes: dict[str, Any] = {f"n{i}": lif(size) for i, size in enumerate(sizes)}
    nodes["n0"] = nir.Input({"input": np.array([sizes[0]])})
    edges = []
    expected = {(a, b): np.zeros((sizes[a], sizes[b]), bool) for a in range(n) for b in range(n)}
    for k, (a, b) in enumerate(joined):
        if b == 0:
            continue  # nothing leads into an input
        present = rng.random((sizes[b], sizes[a])) < 0.5
        nodes[f"w{k}"] = nir.Linear(present.astype(float))
        edges += [(f"n{a}", f"w{k}"), (f"w{k}", f"n{b}")]
        expected[a, b] |= present.T
    rng.shuffle(edges)
    write(file, nodes, [tuple(e) for e in edges])
    network: Hypergraph = read_network(file, drop_zeros=True)
    assert [p.size for p in sorted(network.populations, key=lambda p: p.name)] == sizes
    for (a, b), matrix in expected.items():
        assert (links(network, f"n{a}", f"n{b}") == matrix).all()
    assert one_axon_each(network)
