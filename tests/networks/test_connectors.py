import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from snnmap.errors import NetworkError
from snnmap.networks.connectors import binomial_counts, distance_links, random_links
from tests.networks.slow import matrix_of


@given(
    *[st.integers(0, 40)] * 2, st.sampled_from([0.0, 0.02, 0.5, 0.97, 1.0]), st.booleans(),
    st.integers(0, 5),
)  # fmt: skip
def test_probability_links(n, m, p, allow_self, seed):
    m = m if allow_self else n
    matrix = matrix_of(random_links(n, m, probability=p, seed=seed, allow_self=allow_self))
    possible = np.ones((n, m), bool) if allow_self else ~np.eye(n, dtype=bool)
    assert not (matrix & ~possible).any()
    if p in (0.0, 1.0):
        assert np.array_equal(matrix, possible if p else np.zeros_like(possible))


@given(st.integers(1, 60), st.integers(1, 60), st.data(), st.booleans())
def test_fixed_fans_are_exact(n, m, data, allow_self):
    m = m if allow_self else n
    k = data.draw(st.integers(0, m - (not allow_self)))
    out = matrix_of(random_links(n, m, fan_out=k, seed=3, allow_self=allow_self))
    assert (out.sum(1) == k).all()
    k = data.draw(st.integers(0, n - (not allow_self)))
    into = matrix_of(random_links(n, m, fan_in=k, seed=3, allow_self=allow_self))
    assert (into.sum(0) == k).all()
    if not allow_self:
        assert not out.diagonal().any()
        assert not into.diagonal().any()


@pytest.mark.parametrize("k", [3, 20, 70])  # sorted, marked and inverted sampling
def test_every_target_is_equally_likely(k):
    matrix = matrix_of(random_links(6000, 100, fan_out=k, seed=1))
    hits = matrix.sum(0)
    spread = 6000 * k / 100 * (1 - k / 100)  # variance of a hypergeometric count
    assert (((hits - 60 * k) ** 2).sum() / spread) == pytest.approx(100, abs=60)
    pairs = matrix[:, :-1] & matrix[:, 1:]
    expected = k / 100 * (k - 1) / 99
    assert pairs.mean() == pytest.approx(expected, abs=4 * np.sqrt(expected / pairs.size))


@pytest.mark.parametrize(("n", "p"), [(1000, 0.1), (100000, 1e-5), (17, 0.93), (1, 0.5)])
def test_numbers_of_links_are_binomial(n, p):
    counts = binomial_counts(20000, n, p, seed=4)
    values, observed = np.unique(counts, return_counts=True)
    expected = 20000 * stats.binom.pmf(values, n, p)
    usual = expected > 10
    chi2 = ((observed - expected)[usual] ** 2 / expected[usual]).sum()
    assert stats.chi2.sf(chi2, usual.sum()) > 1e-4
    assert 0 <= counts.min() <= counts.max() <= n


def test_neurons_draw_their_own_sets():
    relation = random_links(50, 1000, fan_out=20, seed=9)
    assert len({tuple(relation.row(s)) for s in range(50)}) == 50


def test_the_same_seed_gives_the_same_links_on_any_number_of_threads(monkeypatch):
    drawn = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("SNNMAP_NUM_THREADS", threads)
        drawn.append(random_links(3000, 2000, probability=0.05, seed=5))
    for other in drawn[1:]:
        assert np.array_equal(other.offsets, drawn[0].offsets)
        assert np.array_equal(other.targets, drawn[0].targets)
    again = random_links(3000, 2000, probability=0.05, seed=6)
    assert not np.array_equal(again.targets[:100], drawn[0].targets[:100])


def test_links_are_the_same_on_every_machine():
    relation = random_links(4, 1000, probability=0.005, seed=42)
    assert [relation.row(s).tolist() for s in range(4)] == [
        [144, 216, 221, 341, 501, 547, 769],
        [104, 251, 299, 374, 507],
        [416, 509, 533, 598, 845, 977],
        [6, 111, 147, 157, 190, 221, 282, 383, 410, 749, 805],
    ]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "exactly one of"),
        ({"probability": 0.5, "fan_in": 2}, "exactly one of"),
        ({"probability": 1.5}, "probability is 1.5; expected 0 to 1"),
        ({"fan_out": 11}, "fan_out 11 exceeds the 10 targets"),
        ({"fan_in": 6}, "fan_in 6 exceeds the 5 sources"),
        ({"fan_in": -1}, "fan_in is -1"),
        ({"fan_in": 1, "seed": -1}, "seed is -1"),
        ({"fan_in": 1, "allow_self": False}, "need one population"),
    ],
)
def test_impossible_requests_are_refused(arguments, text):
    with pytest.raises(NetworkError, match=text):
        random_links(5, 10, **arguments)


def test_all_but_itself_is_the_most_without_self_connections():
    assert matrix_of(random_links(5, 5, fan_out=4, allow_self=False)).sum() == 20
    with pytest.raises(NetworkError, match="exceeds the 4 targets"):
        random_links(5, 5, fan_out=5, allow_self=False)


@pytest.mark.parametrize("peak", [1.0, 0.3, 0.02])
def test_links_fall_off_with_distance_as_stated(peak):
    rng = np.random.default_rng(0)
    a, b = rng.random((1500, 2)) * [5, 3], rng.random((1600, 2)) * [5, 3]
    links = matrix_of(distance_links(a, b, peak=peak, sigma=0.5, seed=3))
    distance = np.linalg.norm(a[:, None] - b[None], axis=2)
    assert not links[distance > 2].any()
    expected = peak * np.exp(-(distance**2) / 0.5)
    for low in np.arange(0, 2, 0.25):
        ring = (distance >= low) & (distance < min(low + 0.25, 2))
        spread = np.sqrt((expected * (1 - expected))[ring].sum())
        assert abs(links[ring].sum() - expected[ring].sum()) < 4 * spread


def test_distance_links_of_one_population():
    xy = np.random.default_rng(1).random((400, 2))
    with_self = matrix_of(distance_links(xy, xy, peak=1.0, sigma=5.0, seed=1))
    without = matrix_of(distance_links(xy, xy, peak=1.0, sigma=5.0, seed=1, allow_self=False))
    assert with_self.diagonal().all()
    assert not without.diagonal().any()
    assert matrix_of(distance_links(xy, xy, peak=0.0, sigma=1.0)).sum() == 0
    assert matrix_of(distance_links(xy[:0], xy, peak=0.5, sigma=1.0)).shape == (0, 400)
    assert matrix_of(distance_links(xy, xy[:0], peak=0.5, sigma=1.0)).shape == (400, 0)
    with pytest.raises(NetworkError, match="probability is 2"):
        distance_links(xy, xy, peak=2.0, sigma=1.0)
    with pytest.raises(NetworkError, match="sigma is 0"):
        distance_links(xy, xy, peak=0.5, sigma=0.0)
