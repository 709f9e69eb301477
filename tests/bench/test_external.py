import sys
from types import SimpleNamespace

import numpy as np
import pytest

from snnmap.bench import external
from snnmap.bench.external import EXTERNAL
from snnmap.errors import ConfigError, EngineError, LimitError
from snnmap.limits import Limits
from snnmap.networks import model_from
from snnmap.partitioning.verify import verify_partition
from snnmap.progress import Progress


def network(n=60, fan_out=6):
    return model_from(
        {
            "name": "net",
            "rates": {"kind": "lognormal"},
            "layers": [{"type": "population", "name": "a", "shape": n}],
            "links": [{"from": "a", "to": "a", "type": "random", "fan_out": fan_out}],
        }
    ).build()


class FakeMtKaHyPar:
    """Cuts the nodes into k runs of equal length and keeps what it was given."""

    PresetType = SimpleNamespace(DEFAULT="default")
    Objective = SimpleNamespace(KM1="km1")

    def __init__(self):
        self.asked = []

    def set_seed(self, seed):
        self.seed = seed

    def initialize(self, threads):
        return self

    def context_from_preset(self, preset):
        return self

    def set_partitioning_parameters(self, k, epsilon, objective):
        self.asked.append((k, epsilon))

    def create_hypergraph(self, context, n_nodes, n_edges, rows, sizes, weights):
        assert len(rows) == len(weights) == n_edges
        self.rows, self.weights, self.n_nodes = rows, weights, n_nodes
        return self

    def partition(self, context):
        blocks = np.arange(self.n_nodes) * self.asked[-1][0] // self.n_nodes
        return SimpleNamespace(get_partition=blocks.tolist)


@pytest.fixture
def fake(monkeypatch):
    library = FakeMtKaHyPar()
    monkeypatch.setitem(sys.modules, "mtkahypar", library)
    external._initialised.cache_clear()
    return library


def test_parts_are_raised_until_the_inbound_limit_holds(fake):
    h = network()
    limits = Limits(max_size=30, max_inbound=45)
    found = EXTERNAL["mtkahypar"](h, limits, seed=7)
    assert verify_partition(h, found.parts, limits).ok
    assert (found.algorithm, found.seed, fake.seed) == ("mtkahypar", 7, 7)
    tried = [k for k, _ in fake.asked]
    assert tried == list(range(2, found.n_parts + 1))
    assert found.n_parts > 2
    assert fake.asked[0][1] == pytest.approx(0.0)  # 30 a block is the average with two blocks
    assert fake.asked[1][1] == pytest.approx(0.5)


def test_edges_are_handed_over_with_whole_weights(fake):
    h = network()
    EXTERNAL["mtkahypar"](h, Limits(max_size=30))
    assert len(fake.rows) == h.n_hedges
    for e in (0, 17):
        assert fake.rows[e] == h.pins(e)[0].tolist()
        assert fake.weights[e] == round(h.weights[e] * 1000)


def test_without_a_way_the_last_problem_is_told(fake):
    with pytest.raises(LimitError, match="inbound axons"):
        EXTERNAL["mtkahypar"](network(), Limits(max_size=30, max_inbound=5))
    progress = Progress()
    progress.cancel()
    with pytest.raises(LimitError, match="give it more time"):
        EXTERNAL["mtkahypar"](network(), Limits(max_size=30), progress=progress)


def test_what_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "mtkahypar", None)
    with pytest.raises(EngineError, match="mtkahypar is not installed; install it with"):
        EXTERNAL["mtkahypar"](network(), Limits(max_size=30))
    monkeypatch.setitem(sys.modules, "kahypar", SimpleNamespace())
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EngineError, match=r"kahypar needs km1_kKaHyPar_sea20\.ini"):
        EXTERNAL["kahypar"](network(), Limits(max_size=30))


def test_networks_too_large_are_refused(fake, monkeypatch):
    monkeypatch.setattr(external, "MOST_PINS", 100)
    with pytest.raises(ConfigError, match=r"\d+ pins exceed the 100"):
        EXTERNAL["mtkahypar"](network(), Limits(max_size=30))


def test_the_real_mtkahypar_keeps_the_limits():
    pytest.importorskip("mtkahypar", reason="*** SKIPPED: mtkahypar is not installed ***")
    external._initialised.cache_clear()
    h = network(400, 8)
    limits = Limits(max_size=60, max_inbound=330)
    found = [EXTERNAL["mtkahypar"](h, limits, seed=3) for _ in range(2)]
    for one in found:
        assert verify_partition(h, one.parts, limits).ok
        assert one.n_parts >= 7
