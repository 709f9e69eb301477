"""PyNN networks with the backend that PyNN brings for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from snnmap.errors import InputError
from snnmap.readers.live_pynn import from_pynn
from tests.readers.naive_layers import links, one_axon_each

pytestmark = pytest.mark.filterwarnings("default")
sim = pytest.importorskip("pyNN.mock")


@pytest.fixture(autouse=True)
def _set_up() -> None:
    sim.setup(timestep=0.1, min_delay=0.1)


def cells(n: int, label: str) -> Any:
    return sim.Population(n, sim.IF_cond_exp(), label=label)


def project(pre: Any, post: Any, connector: Any, weight: float = 1.0, delay: float = 1.5) -> Any:
    return sim.Projection(pre, post, connector, sim.StaticSynapse(weight=weight, delay=delay))


def test_populations_links_and_delays() -> None:
    a, p = cells(4, "a"), sim.Population(3, sim.SpikeSourcePoisson(rate=5.0), label="p")
    pairs = [(0, 1, 1.0, 0.5), (2, 3, 0.0, 2.5)]
    one = project(p, a, sim.FromListConnector(pairs, column_names=["weight", "delay"]))
    two = project(a, a, sim.AllToAllConnector())
    network = from_pynn([p, a], [one, two])
    assert [(q.name, q.is_input) for q in network.populations] == [("p", True), ("a", False)]
    assert np.argwhere(links(network, "p", "a")).tolist() == [[0, 1], [2, 3]]
    assert links(network, "a", "a").all()
    delays = {(q.source, q.target): q.delay_ms for q in network.projections}
    assert delays == {("p", "a"): (0.5, 2.5), ("a", "a"): (1.5, 1.5)}
    assert one_axon_each(network)
    assert np.argwhere(links(from_pynn([p, a], [one], drop_zeros=True), "p", "a")).tolist() == [
        [0, 1]
    ]


def test_views_and_assemblies() -> None:
    a, b = cells(5, "a"), cells(3, "b")
    view = project(a[2:4], b, sim.AllToAllConnector())
    both = project(sim.Assembly(a, b), b, sim.FromListConnector([(4, 0), (6, 2)]))
    network = from_pynn([a, b], [view, both])
    expected = np.zeros((5, 3), bool)
    expected[2:4] = True
    expected[4, 0] = True
    assert (links(network, "a", "b") == expected).all()
    assert np.argwhere(links(network, "b", "b")).tolist() == [[1, 2]]


def test_no_links() -> None:
    a = cells(2, "a")
    nothing = project(a, a, sim.FromListConnector([(0, 0)]))
    assert from_pynn([a], []).n_hedges == 0
    assert from_pynn([a], [nothing]).n_hedges == 1


def test_mistakes() -> None:
    a, b = cells(2, "a"), cells(2, "b")
    link = project(a, b, sim.OneToOneConnector())
    with pytest.raises(InputError, match="leads to population 'b', which was not given"):
        from_pynn([a], [link])
    with pytest.raises(InputError, match="expected a Population"):
        from_pynn([3], [])
    with pytest.raises(InputError, match="two populations are named 'a'"):
        from_pynn([a, cells(1, "a")], [])
