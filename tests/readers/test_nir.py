"""What NIR files in the wild do: nesting, ports, recurrence, scalars, batches, odd shapes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from snnmap.errors import ConfigError, InputError
from snnmap.hypergraph import Projection
from snnmap.readers import find_format, read_network
from tests.readers.naive_layers import links, one_axon_each, real_input
from tests.readers.refusing import refusal
from tests.readers.test_nir_links import chain, lif, nir, write


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "network.nir"


def dense(n_out: int, n_in: int) -> Any:
    return nir.Affine(np.ones((n_out, n_in)), np.zeros(n_out))


def box(*shape: int) -> Any:
    return nir.Input({"input": np.array(shape)})


def out(*shape: int) -> Any:
    return nir.Output({"output": np.array(shape)})


# ---------------------------------------------------------------------- real files


def test_nmnist_cnn() -> None:
    network = read_network(real_input("nir/nmnist_cnn.nir"))
    inputs = sum(p.size for p in network.populations if p.is_input)
    assert (network.n_nodes - inputs, inputs) == (8970, 2 * 34 * 34)
    assert [p.shape for p in network.populations] == [
        (2, 34, 34), (16, 16, 16), (16, 16, 16), (8, 8, 8), (256,), (10,)
    ]  # fmt: skip
    assert links(network, "10", "12").all()
    assert links(network, "6", "10").all()  # through a pooling and a flattening
    assert one_axon_each(network)


def test_braille_rnn() -> None:
    network = read_network(real_input("nir/braille_rnn.nir"))
    sizes = [(p.name, p.size, p.is_input) for p in network.populations]
    assert sizes == [("input", 12, True), ("lif1.lif", 38, False), ("lif2", 7, False)]
    assert links(network, "lif1.lif", "lif1.lif").all()  # 38 self-loops among them
    assert network.n_hedges == 50
    assert network.n_pins == 12 * (1 + 38) + 38 * (38 + 7)


def test_single_lif() -> None:
    network = read_network(real_input("nir/lif.nir"))
    assert (network.n_nodes, network.n_hedges, network.n_pins) == (2, 1, 2)


# ---------------------------------------------------------------------- nested graphs


def recurrent(n: int) -> Any:
    """A graph of neurons that excite themselves."""
    return nir.NIRGraph(
        {"in": box(n), "lif": lif(n), "w": dense(n, n), "out": out(n)},
        [("in", "lif"), ("lif", "w"), ("w", "lif"), ("lif", "out")],
        type_check=False,
    )


def test_nested_graph_equals_the_flat_one(tmp_path: Path) -> None:
    edges = [("input", "w"), ("w", "rnn"), ("rnn", "v"), ("v", "last"), ("last", "output")]
    ends = {"input": box(3), "w": dense(4, 3), "v": dense(2, 4), "last": lif(2), "output": out(2)}
    nested = read_network(write(tmp_path / "nested.nir", {**ends, "rnn": recurrent(4)}, edges))
    flat_nodes = {**ends, "rnn.lif": lif(4), "rnn.w": dense(4, 4)}
    flat_edges = [("input", "w"), ("w", "rnn.lif"), ("rnn.lif", "rnn.w"), ("rnn.w", "rnn.lif"),
                  ("rnn.lif", "v"), ("v", "last"), ("last", "output")]  # fmt: skip
    flat = read_network(write(tmp_path / "flat.nir", flat_nodes, flat_edges))
    assert nested.populations == flat.populations
    assert [p.name for p in nested.populations] == ["input", "rnn.lif", "last"]
    assert (nested.destinations == flat.destinations).all()
    assert (nested.sources == flat.sources).all()


def test_graphs_in_graphs_in_graphs(file: Path) -> None:
    graph = recurrent(2)
    for _ in range(5):
        graph = nir.NIRGraph(
            {"i": box(2), "deep": graph, "o": out(2)},
            [("i", "deep"), ("deep", "o")],
            type_check=False,
        )
    network = read_network(write(file, {"input": box(2), "g": graph}, [("input", "g")]))
    assert [p.name for p in network.populations] == ["input", "g." + "deep." * 5 + "lif"]
    assert links(network, network.populations[1].name, network.populations[1].name).all()


def two_ports() -> Any:
    return nir.NIRGraph(
        {"a": box(2), "b": box(3), "p": lif(2), "q": lif(3), "x": out(2), "y": out(3)},
        [("a", "p"), ("b", "q"), ("p", "x"), ("q", "y")],
        type_check=False,
    )


def test_ports_of_nested_graphs(file: Path) -> None:
    nodes = {"i2": box(2), "i3": box(3), "g": two_ports(), "w": dense(4, 3), "last": lif(4)}
    edges = [("i2", "g.a"), ("i3", "g.b"), ("g.y", "w"), ("w", "last")]
    network = read_network(write(file, nodes, edges))
    assert (links(network, "i2", "g.p") == np.eye(2, dtype=bool)).all()
    assert (links(network, "i3", "g.q") == np.eye(3, dtype=bool)).all()
    assert links(network, "g.q", "last").all()
    assert not links(network, "g.p", "last").any()


def test_edge_to_a_graph_of_two_inputs_must_name_one(file: Path) -> None:
    write(file, {"i2": box(2), "g": two_ports()}, [("i2", "g")])
    error = refusal(file)
    assert "must name one; there are g.a, g.b" in str(error)
    assert "edge 0 ('i2' -> 'g')" in str(error)


def test_nested_graph_without_input_and_output_nodes(file: Path) -> None:
    inner = nir.NIRGraph({"w": dense(2, 3), "lif": lif(2)}, [("w", "lif")], type_check=False)
    write(file, {"input": box(3), "g": inner, "v": dense(1, 2), "end": lif(1)},
          [("input", "g"), ("g", "v"), ("v", "end")])  # fmt: skip
    network = read_network(file)
    assert links(network, "input", "g.lif").all()
    assert links(network, "g.lif", "end").all()


def test_unconnected_inner_input_is_an_external_input(file: Path) -> None:
    network = read_network(write(file, {"g": two_ports()}, []))
    assert {p.name for p in network.populations if p.is_input} == {"g.a", "g.b"}


# ---------------------------------------------------------------------- shapes


@pytest.mark.parametrize("shape", [(1, 2, 5, 5), (32, 2, 5, 5), (1, 1, 2, 5, 5)])
def test_batch_dimension_of_an_image(file: Path, shape: tuple[int, ...]) -> None:
    conv = nir.Conv2d((5, 5), np.ones((3, 2, 3, 3)), 1, 0, 1, 1, np.zeros(3))
    network = read_network(chain(file, shape, conv, lif(3, 3, 3)))
    assert [p.shape for p in network.populations] == [(2, 5, 5), (3, 3, 3)]


def test_batch_dimension_of_a_vector(file: Path) -> None:
    network = read_network(chain(file, (16, 7), dense(3, 7), lif(3)))
    assert [p.size for p in network.populations] == [7, 3]


def test_leading_dimension_that_is_no_batch(file: Path) -> None:
    network = read_network(chain(file, (4, 7), nir.Linear(np.ones((3, 7))), lif(4, 3)))
    assert [p.shape for p in network.populations] == [(4, 7), (4, 3)]
    assert (links(network, "input", "1") == np.kron(np.eye(4), np.ones((7, 3)))).all()


def test_missing_channel_dimension(file: Path) -> None:
    conv = nir.Conv2d((5, 5), np.ones((3, 1, 3, 3)), 1, 0, 1, 1, np.zeros(3))
    network = read_network(chain(file, (5, 5), conv, lif(3, 3, 3)))
    assert links(network, "input", "1").sum() == 9 * 9 * 3


@pytest.mark.parametrize("shape", [(), (1,), (3, 1, 1), (3,), (3, 4, 4), (48,)])
def test_neuron_parameters_of_any_shape(file: Path, shape: tuple[int, ...]) -> None:
    conv = nir.Conv2d((6, 6), np.ones((3, 1, 3, 3)), 1, 0, 1, 1, np.zeros(3))
    chain(file, (1, 6, 6), conv, lif(*shape) if shape else lif(1))
    if not shape:
        with h5py.File(file, "r+") as written:
            for name in ("tau", "r", "v_leak", "v_threshold", "v_reset"):
                del written[f"node/nodes/1/{name}"]
                written[f"node/nodes/1/{name}"] = 1.0
    network = read_network(file)
    assert network.populations[1].shape == ((48,) if shape == (48,) else (3, 4, 4))


def test_scalar_parameters_in_a_cycle_take_their_size_from_the_weights(file: Path) -> None:
    nodes = {"a": lif(1), "w": dense(4, 4)}
    network = read_network(write(file, nodes, [("a", "w"), ("w", "a")]))
    assert [p.size for p in network.populations] == [4]
    assert links(network, "a", "a").all()


@pytest.mark.parametrize("start", [0, 1])
def test_flatten_from_either_dimension(file: Path, start: int) -> None:
    flat = nir.Flatten({"input": np.array([2, 3, 3])}, start_dim=start)
    network = read_network(chain(file, (2, 3, 3), flat, dense(4, 18), lif(4)))
    assert links(network, "input", "2").all()


def test_all_neuron_types_are_populations(file: Path) -> None:
    one = np.ones(2)
    neurons = {
        "I": nir.I(one),
        "IF": nir.IF(one, one),
        "LI": nir.LI(one, one, one),
        "LIF": lif(2),
        "CubaLI": nir.CubaLI(one, one, one, one),
        "CubaLIF": nir.CubaLIF(one, one, one, one, one),
        "Threshold": nir.Threshold(one),
    }
    names = ["input", *neurons]
    edges = list(pairwise(names))
    network = read_network(write(file, {"input": box(2), **neurons}, edges))
    assert [p.name for p in network.populations] == names
    assert all((links(network, a, b) == np.eye(2)).all() for a, b in edges)


def test_v_reset_may_be_missing(file: Path) -> None:
    chain(file, (2,), lif(2))
    with h5py.File(file, "r+") as written:
        del written["node/nodes/0/v_reset"]
    assert read_network(file).n_nodes == 4


def test_only_one_node_in_the_file(file: Path) -> None:
    nir.write(file, lif(5))
    network = read_network(file)
    assert (network.n_nodes, network.n_hedges) == (5, 0)


def test_missing_output_and_dead_ends(file: Path) -> None:
    nodes = {"input": box(2), "w": dense(3, 2), "lif": lif(3), "v": dense(9, 3), "lonely": lif(4)}
    network = read_network(write(file, nodes, [("input", "w"), ("w", "lif"), ("lif", "v")]))
    assert {p.name: p.size for p in network.populations} == {"input": 2, "lif": 3, "lonely": 4}
    assert network.n_hedges == 2  # neurons that reach none have no h-edge


def test_missing_input_is_supplied(file: Path) -> None:
    network = read_network(write(file, {"w": dense(3, 2), "lif": lif(3)}, [("w", "lif")]))
    assert [(p.name, p.size, p.is_input) for p in network.populations] == [
        ("input_w", 2, True),
        ("lif", 3, False),
    ]


def test_layers_are_numbered_in_the_order_of_the_data(file: Path) -> None:
    network = read_network(chain(file, (2,), *(lif(2) for _ in range(12))))
    assert [p.name for p in network.populations] == ["input", *map(str, range(12))]


def test_parallel_paths_are_one_axon(file: Path) -> None:
    nodes = {
        "input": box(2),
        "a": dense(3, 2),
        "b": dense(3, 2),
        "s": lif(3),
        "skip": nir.Scale(np.ones(3)),
    }
    edges = [("input", "a"), ("input", "b"), ("a", "s"), ("b", "skip"), ("skip", "s"), ("s", "s")]
    network = read_network(write(file, nodes, edges))
    assert links(network, "input", "s").all()
    assert (links(network, "s", "s") == np.eye(3)).all()  # an edge from a node to itself
    assert network.n_hedges == 2 + 3


# ---------------------------------------------------------------------- delays, options


def test_delays_add_up_on_a_way_and_span_all_ways(file: Path) -> None:
    d1, d2 = nir.Delay(np.array([1.0, 3.0])), nir.Delay(np.array([2.0, 2.0]))
    nodes = {"input": box(2), "d1": d1, "d2": d2, "w": dense(2, 2), "a": lif(2), "b": lif(2)}
    edges = [("input", "d1"), ("d1", "w"), ("w", "d2"), ("d2", "a"), ("input", "a"), ("a", "b")]
    network = read_network(write(file, nodes, edges))
    assert Projection("a", "b", None) in network.projections
    (delayed,) = (p for p in network.projections if p.source == "input")
    assert delayed.delay_ms is not None
    assert delayed.delay_ms[1] == 5.0
    in_seconds = read_network(file, delay_unit="s")
    (delayed,) = (p for p in in_seconds.projections if p.source == "input")
    assert delayed.delay_ms is not None
    assert delayed.delay_ms[1] == 5000.0


def test_unknown_types_are_listed_at_once_or_skipped(file: Path) -> None:
    chain(file, (2,), dense(2, 2), nir.Scale(np.ones(2)), lif(2), nir.Scale(np.ones(2)))
    with h5py.File(file, "r+") as written:
        for name in ("1", "3"):
            del written[f"node/nodes/{name}/type"]
            written[f"node/nodes/{name}/type"] = f"Strange{name}"
    error = refusal(file)
    assert "'1' (Strange1), '3' (Strange3)" in str(error)
    assert links(read_network(file, unknown="skip"), "input", "2").all()


@pytest.mark.parametrize("options", [{"unknown": "ignore"}, {"delay_unit": "us"}, {"dropzeros": 1}])
def test_unknown_options(file: Path, options: dict[str, Any]) -> None:
    chain(file, (2,), lif(2))
    with pytest.raises(ConfigError):
        read_network(file, **options)


@pytest.mark.parametrize("version", ["0.1", "0.2.0", "1.0.8", None])
def test_any_version(file: Path, version: str | None) -> None:
    chain(file, (2,), lif(2))
    with h5py.File(file, "r+") as written:
        del written["version"]
        if version:
            written["version"] = version
    assert read_network(file).n_nodes == 4


def test_recognised_by_content(tmp_path: Path) -> None:
    path = chain(tmp_path / "network.h5", (2,), lif(2))
    assert find_format(path).name == "nir"
    assert read_network(path).n_nodes == 4


def test_network_is_named_after_the_file(file: Path) -> None:
    assert read_network(chain(file, (2,), lif(2))).name == "network"


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_network(tmp_path / "nowhere.nir", format="nir")
