"""Brian2 networks, where Brian2 is installed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from snnmap.errors import InputError
from snnmap.hypergraph import Projection
from snnmap.readers.live_brian2 import from_brian2
from tests.readers.naive_layers import links, one_axon_each

pytestmark = pytest.mark.filterwarnings("default")
try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import brian2 as b2
except Exception as error:  # absent, or too old for this NumPy
    pytest.skip(f"Brian2 cannot be imported: {error}", allow_module_level=True)


@pytest.fixture(autouse=True)
def _numpy_only() -> None:
    b2.prefs.codegen.target = "numpy"


def group(n: int, name: str) -> Any:
    return b2.NeuronGroup(
        n, "dv/dt = -v / (10*ms) : 1", threshold="v > 1", reset="v = 0", name=name
    )


def test_populations_links_delays_and_self_loops() -> None:
    a, p = group(4, "a"), b2.PoissonGroup(3, 10 * b2.Hz, name="p")
    s = b2.Synapses(p, a, "w : 1", on_pre="v += w", name="s")
    s.connect(i=[0, 1, 2, 2], j=[1, 1, 3, 3])  # twice the same pair
    s.w = [1, 0, 1, 1]
    s.delay = [1, 2, 3, 4] * b2.ms
    r = b2.Synapses(a, a, on_pre="v += 1", name="r")
    r.connect(condition="i == j")
    network = from_brian2(b2.Network(a, p, s, r))
    assert [(q.name, q.size, q.is_input) for q in network.populations] == [
        ("p", 3, True),
        ("a", 4, False),
    ]
    assert np.argwhere(links(network, "p", "a")).tolist() == [[0, 1], [1, 1], [2, 3]]
    assert (links(network, "a", "a") == np.eye(4)).all()
    assert Projection("p", "a", (1.0, 4.0)) in network.projections
    assert one_axon_each(network)
    pruned = from_brian2([a, p, s], weight="w")
    assert np.argwhere(links(pruned, "p", "a")).tolist() == [[0, 1], [2, 3]]


def test_subgroups() -> None:
    a, g = group(6, "a"), b2.SpikeGeneratorGroup(2, [0], [0] * b2.ms, name="g")
    s = b2.Synapses(a[2:5], a[4:], on_pre="v += 1", name="s")
    s.connect(i=[0, 2], j=[0, 1])
    t = b2.Synapses(g, a[1:2], on_pre="v += 1", name="t")
    t.connect()
    network = from_brian2(b2.Network(a, g, s, t))
    assert np.argwhere(links(network, "a", "a")).tolist() == [[2, 4], [4, 5]]
    assert np.argwhere(links(network, "g", "a")).tolist() == [[0, 1], [1, 1]]


def test_groups_outside_the_list_are_found() -> None:
    a = group(2, "a")
    s = b2.Synapses(a, a, on_pre="v += 1", name="s")
    s.connect()
    assert from_brian2([s]).n_nodes == 2


def test_mistakes() -> None:
    a = group(2, "a")
    s = b2.Synapses(a, a, on_pre="v += 1", name="s")
    with pytest.raises(InputError, match=r"synapses 's': are not connected yet"):
        from_brian2([a, s])
    s.connect()
    with pytest.raises(InputError, match="have no variable 'w'"):
        from_brian2([a, s], weight="w")
    with pytest.raises(InputError, match="has no group of neurons"):
        from_brian2([])
