import numpy as np
import pytest
from scipy.spatial import cKDTree

from snnmap.errors import NetworkError
from snnmap.networks import reservoir as room
from snnmap.networks.reservoir import Reservoir
from snnmap.progress import Progress


def slow_reservoir(r: Reservoir, block: int) -> list[list[int]]:
    """The definition, with SciPy's tree and a full sort, neuron by neuron."""
    n, near = r.neurons, min(r.neurons, int(5 * r.fan_out) + 64)
    rng = np.random.default_rng(r.seed)
    xyz = rng.random((n, 3))
    direction = rng.choice((-1, 1), size=n, p=(round(1 - r.forward, 9), r.forward))
    totals = rng.poisson(r.fan_out, n)
    far_counts = np.rint(r.long_range * totals).astype(int)
    tree, rows = cKDTree(xyz), []
    for start in range(0, n, block):
        ids = np.arange(start, min(n, start + block))
        distance, index = tree.query(xyz[ids], k=list(range(1, near + 1)))
        noise = rng.gumbel(size=distance.shape)
        for i, node in enumerate(ids):
            ranked = []
            for d, j, g in zip(distance[i], index[i], noise[i], strict=True):
                upward = (xyz[j, 2] - xyz[node, 2]) * direction[j] >= 0
                if j != node and upward and d <= 0.386:
                    ranked.append((-(-0.5 * (d / r.sigma) ** 2 + g), j))
            local = [j for _, j in sorted(ranked)[: totals[node] - far_counts[node]]]
            far = rng.integers(0, n, far_counts[node])
            rows.append(sorted({*local, *far} - {node}))
    return rows


@pytest.mark.parametrize(
    "r",
    [
        Reservoir(700, 12, seed=5),
        Reservoir(300, 30, seed=1, sigma=0.2, long_range=0.3, forward=0.5),
        Reservoir(40, 20, seed=2, sigma=1.0),  # everybody is a candidate
        Reservoir(1, 3),
        Reservoir(50, 0),
    ],
)
def test_links_follow_the_definition(r, monkeypatch):
    monkeypatch.setattr(room, "BLOCK", 256)
    relation = r.links()
    rows = [relation.row(s).tolist() for s in range(r.neurons)]
    assert rows == [list(map(int, row)) for row in slow_reservoir(r, 256)]


def test_threads_do_not_change_the_links(monkeypatch):
    drawn = []
    for threads in ("1", "2"):
        monkeypatch.setenv("SNNMAP_NUM_THREADS", threads)
        drawn.append(Reservoir(5000, 16).links())
    assert np.array_equal(drawn[0].targets, drawn[1].targets)


def test_statistics_of_a_reservoir():
    r = Reservoir(6000, 100, sigma=0.05)
    relation = r.links()
    fan_outs = relation.fan_outs()
    rng = np.random.default_rng(r.seed)
    xyz = rng.random((r.neurons, 3))
    direction = rng.choice((-1, 1), size=r.neurons, p=(0.1, 0.9))
    wanted = rng.poisson(r.fan_out, r.neurons)
    inside = (np.abs(xyz - 0.5) < 0.3).all(axis=1)  # enough neurons on every side
    assert (fan_outs <= wanted).all()
    assert (wanted - fan_outs)[inside].mean() < 0.1
    assert fan_outs[inside].mean() == pytest.approx(100, rel=0.02)
    assert fan_outs[inside].var() == pytest.approx(100, rel=0.15)
    sources = np.repeat(np.arange(r.neurons), fan_outs)
    lengths = np.linalg.norm(xyz[sources] - xyz[relation.targets], axis=1)
    far = lengths > 0.386
    assert 0 < far.mean() < 0.012  # near links never reach so far, a few far ones are shorter
    upward = (xyz[relation.targets, 2] - xyz[sources, 2]) * direction[relation.targets]
    assert (upward[~far] < 0).mean() < 0.01  # only far links go against the direction
    assert np.median(lengths) < 0.2  # 0.66 between any two neurons


def test_progress_hears_of_every_neuron_and_can_stop():
    class Listener(Progress):
        done = 0.0

        def advance(self, amount=1, note=""):
            self.done += amount

    listener = Listener()
    Reservoir(5000, 4).links(listener)
    assert listener.done == 5000
    listener.cancel()
    with pytest.raises(KeyboardInterrupt):
        Reservoir(5000, 4).links(listener)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"neurons": 0}, "neurons of the reservoir is 0"),
        ({"fan_out": -1}, "fan_out of the reservoir is -1"),
        ({"sigma": 0.0}, "sigma"),
        ({"long_range": 2.0}, "long_range"),
        ({"forward": -0.1}, "forward"),
        ({"seed": -1}, "seed"),
    ],
)
def test_impossible_reservoirs_are_refused(arguments, text):
    with pytest.raises(NetworkError, match=text):
        Reservoir(**{"neurons": 10, "fan_out": 2, **arguments})
