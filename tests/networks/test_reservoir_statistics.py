"""Statistics of the reservoirs of Table I against their definition, on samples of their neurons.

Neurons are numbered in no order of their places, so the first blocks are a fair sample.
"""

from dataclasses import dataclass
from itertools import islice

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.stats import binom, chi2, ks_2samp, poisson

from snnmap.networks import load_model
from snnmap.networks.reservoir import Reservoir

PUBLISHED = {"16k-rand": (128, 1.103), "64k-rand": (192, 0.603), "256k-rand": (256, 0.262)}


@dataclass
class Sample:
    """The first neurons of a reservoir, and what its definition says of all."""

    r: Reservoir
    fan_outs: np.ndarray
    targets: np.ndarray
    sources: np.ndarray
    xyz: np.ndarray
    direction: np.ndarray
    wanted: np.ndarray

    @property
    def n(self):
        return len(self.fan_outs)

    @property
    def n_far(self):
        return int(np.rint(self.r.long_range * self.wanted[: self.n]).sum())

    def lengths(self):
        return np.linalg.norm(self.xyz[self.targets] - self.xyz[self.sources], axis=1)

    def is_inside(self):
        """Far enough from every side to have its fill of near neurons."""
        reach = (3 * self.r.fan_out / self.r.neurons) ** (1 / 3)
        return ((self.xyz > reach) & (self.xyz < 1 - reach)).all(axis=1)


def sample(r: Reservoir, n_blocks: int) -> Sample:
    blocks = list(islice(r.blocks(), n_blocks))
    fan_outs = np.concatenate([counts for counts, _ in blocks])
    rng = np.random.default_rng(r.seed)
    xyz = rng.random((r.neurons, 3))
    direction = rng.choice((-1, 1), size=r.neurons, p=(round(1 - r.forward, 9), r.forward))
    wanted = rng.poisson(r.fan_out, r.neurons)
    sources = np.repeat(np.arange(len(fan_outs)), fan_outs)
    targets = np.concatenate([targets for _, targets in blocks])
    return Sample(r, fan_outs, targets, sources, xyz, direction, wanted)


@pytest.fixture(scope="module", params=list(PUBLISHED))
def published(request):
    """(sample, mean fan-out, published overlap)."""
    (layer,) = load_model(request.param).values["layers"]
    r = Reservoir(layer["neurons"], layer["fan_out"], seed=layer.get("seed", 192))
    return sample(r, 3), *PUBLISHED[request.param]


def test_fan_outs_are_poisson(published):
    s, mean, _ = published
    inside = s.is_inside()[: s.n]
    assert inside.sum() > 900
    assert (s.fan_outs <= s.wanted[: s.n]).all()
    lost = (s.wanted[: s.n] - s.fan_outs)[
        inside
    ]  # far links that hit a target twice, or the neuron
    assert lost.mean() < 0.05
    edges = poisson.ppf(np.arange(1, 20) / 20, mean)
    seen = np.bincount(np.searchsorted(edges, s.fan_outs[inside]), minlength=20)
    shares = np.diff(poisson.cdf(np.r_[-1, edges, np.inf], mean))
    deviation = ((seen - shares * seen.sum()) ** 2 / (shares * seen.sum())).sum()
    assert chi2.sf(deviation, 19) > 1e-3


def test_near_links_go_one_way(published):
    s, _, _ = published
    share = (s.direction > 0).mean()
    assert share == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / s.r.neurons))
    step = s.xyz[s.targets, 2] - s.xyz[s.sources, 2]
    against = int((step * s.direction[s.targets] < 0).sum())
    assert against <= s.n_far  # no near link does
    assert against == pytest.approx(s.n_far / 2, abs=4 * np.sqrt(s.n_far / 4))


def test_near_links_are_as_short_as_links_drawn_one_by_one(published):
    """Against drawing one target after the other without replacement, for some neurons."""
    s, _, _ = published
    ids = np.flatnonzero(s.is_inside()[: s.n])[:150]
    expected = draw_one_by_one(s, ids)
    lengths, mine = s.lengths(), np.isin(s.sources, ids)
    near = lengths[mine & (lengths < 1.2 * expected.max())]
    assert len(near) == pytest.approx(len(expected), rel=0.01)
    assert near.mean() == pytest.approx(expected.mean(), rel=0.01)
    assert np.quantile(near, [0.1, 0.5, 0.9]) == pytest.approx(
        np.quantile(expected, [0.1, 0.5, 0.9]), rel=0.02
    )


def draw_one_by_one(s: Sample, ids: np.ndarray) -> np.ndarray:
    """Lengths of near links of some neurons, drawn as the definition says."""
    r, rng = s.r, np.random.default_rng(1)
    distances, index = cKDTree(s.xyz).query(s.xyz[ids], k=int(5 * r.fan_out) + 64)
    drawn = []
    for node, d, j in zip(ids, distances, index, strict=True):
        upward = (s.xyz[j, 2] - s.xyz[node, 2]) * s.direction[j] >= 0
        d = d[upward & (j != node) & (d < 0.386)]
        logs = -0.5 * (d / r.sigma) ** 2
        left = np.ones(len(d), bool)
        n_near = s.wanted[node] - round(r.long_range * s.wanted[node])
        for _ in range(min(n_near, len(d))):
            weights = np.where(left, np.exp(logs - logs[left].max()), 0.0)
            chosen = rng.choice(len(d), p=weights / weights.sum())
            left[chosen] = False
        drawn.append(d[~left])
    return np.concatenate(drawn)


def test_probabilities_fall_with_the_distance_as_stated():
    """With a wide sigma chance decides: shares of lengths as of targets drawn one by one."""
    s = sample(Reservoir(4000, 24, sigma=0.05, long_range=0.0, seed=8), 1)
    ids = np.arange(400)
    found = s.lengths()[np.isin(s.sources, ids)]
    expected = draw_one_by_one(s, ids)
    assert len(found) == len(expected) > 8000
    assert ks_2samp(found, expected).pvalue > 1e-3
    wider = draw_one_by_one(
        Sample(Reservoir(4000, 24, sigma=0.07), *list(vars(s).values())[1:]), ids
    )
    assert ks_2samp(found, wider).pvalue < 1e-9  # the test would see another sigma


def test_far_links_go_anywhere(published):
    s, _, _ = published
    lengths = s.lengths()
    far = lengths > 0.386  # beyond the reach of near links
    share = 1 - (np.linalg.norm(np.diff(s.xyz[:200_000:2], axis=0), axis=1) < 0.386).mean()
    low, high = binom.interval(0.9999, s.n_far, share)
    assert 0.99 * low <= far.sum() <= 1.01 * high


def test_hyperedges_overlap_as_published(published):
    """Mean number of pins that two h-edges share, over all pairs of the sample."""
    s, _, overlap = published
    pins = np.concatenate([s.targets, np.arange(s.n)])  # each with its source
    looped = s.targets == s.sources
    assert not looped.any()
    degrees = np.bincount(pins, minlength=s.r.neurons)
    assert (degrees * (degrees - 1)).sum() / s.n / (s.n - 1) == pytest.approx(overlap, rel=0.02)
