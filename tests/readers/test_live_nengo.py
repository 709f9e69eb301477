"""Nengo models: links against the weights of the built model, where Nengo is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from snnmap.errors import InputError
from snnmap.readers.live_nengo import from_nengo
from tests.readers import naive_layers
from tests.readers.naive_layers import links, one_axon_each

pytestmark = pytest.mark.filterwarnings("default")
nengo = pytest.importorskip("nengo")


def test_decoded_connection_links_every_neuron() -> None:
    with nengo.Network() as model:
        stimulus = nengo.Node([0.0, 0.0], label="stimulus")
        a = nengo.Ensemble(5, 2, label="a")
        b = nengo.Ensemble(4, 1, label="b")
        nengo.Connection(stimulus, a)
        nengo.Connection(a, b, function=lambda x: x[0] * x[1])
        nengo.Connection(b, b, synapse=0.1)
        nengo.Probe(b)
    network = from_nengo(model)
    assert [(p.name, p.size, p.is_input) for p in network.populations] == [
        ("stimulus", 2, True), ("a", 5, False), ("b", 4, False)
    ]  # fmt: skip
    assert links(network, "stimulus", "a").all()
    assert links(network, "a", "b").all()
    assert links(network, "b", "b").all()
    assert one_axon_each(network)


def test_ensemble_arrays_keep_their_dimensions_apart() -> None:
    with nengo.Network() as model:
        a = nengo.networks.EnsembleArray(3, 4, label="a")
        b = nengo.networks.EnsembleArray(2, 4, label="b")
        nengo.Connection(a.output, b.input, transform=np.diag([1.0, 0.0, 1.0, 1.0]))
    network = from_nengo(model)
    assert network.n_nodes == 4 * 3 + 4 * 2
    names_a = [p.name for p in network.populations if p.size == 3]
    names_b = [p.name for p in network.populations if p.size == 2]
    for i, one in enumerate(names_a):
        for j, two in enumerate(names_b):
            assert links(network, one, two).all() == (i == j != 1)
            assert links(network, one, two).any() == (i == j != 1)


def test_slices() -> None:
    with nengo.Network() as model:
        stimulus = nengo.Node([0.0, 0.0, 0.0], label="s")
        a = nengo.Ensemble(2, 2, label="a")
        nengo.Connection(stimulus[[2, 0]], a)
    network = from_nengo(model)
    assert (links(network, "s", "a") == [[1, 1], [0, 0], [1, 1]]).all()


@pytest.mark.parametrize("drop", [False, True])
def test_between_neurons(drop: bool) -> None:
    matrix = np.tri(3, 4)
    with nengo.Network() as model:
        a, b = nengo.Ensemble(4, 1, label="a"), nengo.Ensemble(3, 1, label="b")
        nengo.Connection(a.neurons, b.neurons, transform=matrix)
        nengo.Connection(b.neurons, b.neurons)
        nengo.Connection(a.neurons[1:3], b.neurons[:2], transform=nengo.transforms.NoTransform(2))
    network = from_nengo(model, drop_zeros=drop)
    expected = matrix.T != 0 if drop else np.ones((4, 3), bool)
    expected[1, 0] = expected[2, 1] = True
    assert (links(network, "a", "b") == expected).all()
    assert (links(network, "b", "b") == np.eye(3)).all()


def test_sparse_and_convolution() -> None:
    sparse = nengo.transforms.Sparse((3, 4), indices=[(0, 1), (2, 3)], init=[1, 2])
    conv = nengo.transforms.Convolution(
        2, (5, 4, 3), strides=(2, 1), kernel_size=(3, 2), channels_last=False
    )
    with nengo.Network() as model:
        a, b = nengo.Ensemble(4, 1, label="a"), nengo.Ensemble(3, 1, label="b")
        nengo.Connection(a.neurons, b.neurons, transform=sparse)
        if conv.input_shape.shape != (5, 4, 3):
            pytest.skip("another convention of shapes")
        c, d = nengo.Ensemble(60, 1, label="c"), nengo.Ensemble(conv.size_out, 1, label="d")
        nengo.Connection(c.neurons, d.neurons, transform=conv)
    network = from_nengo(model)
    assert np.argwhere(links(network, "a", "b")).tolist() == [[1, 0], [3, 2]]
    present = np.ones((2, 5, 3, 2), bool)
    expected, _ = naive_layers.convolution((4, 3), present, (2, 1), "valid", (1, 1), 1)
    assert (links(network, "c", "d") == expected).all()


def test_subnetworks_learning_and_labels_used_twice() -> None:
    with nengo.Network(label="outer") as model:
        a = nengo.Ensemble(2, 1, label="x")
        with nengo.Network():
            b = nengo.Ensemble(3, 1, label="x")
        learned = nengo.Connection(a, b, learning_rule_type=nengo.PES())
        nengo.Connection(b, learned.learning_rule)
        nengo.Connection(b, nengo.Node(lambda t, x: None, size_in=1))
    network = from_nengo(model)
    assert network.name == "outer"
    assert [p.name for p in network.populations] == ["x", "x 2"]
    assert links(network, "x", "x 2").all()
    assert network.n_hedges == 2


def test_mistakes() -> None:
    with pytest.raises(InputError, match="has no ensembles"):
        from_nengo(nengo.Network(label="empty"))
    with pytest.raises(InputError, match=r"expected a nengo\.Network"):
        from_nengo(object())


def test_matches_the_weights_of_the_built_model() -> None:
    rng = np.random.default_rng(0)
    transform: Any = rng.random((2, 3)) * (rng.random((2, 3)) < 0.5)
    with nengo.Network(seed=1) as model:
        a, b = nengo.Ensemble(6, 3, label="a"), nengo.Ensemble(5, 2, label="b")
        connection = nengo.Connection(a, b, transform=transform)
    with nengo.Simulator(model, progress_bar=False) as simulation:
        decoders = simulation.data[connection].weights  # transform @ decoders
        weights = simulation.data[b].scaled_encoders @ decoders
    assert (links(from_nengo(model), "a", "b") == (weights != 0).T).all()
