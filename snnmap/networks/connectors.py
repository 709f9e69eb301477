"""Random links between two populations, every neuron drawing its own.

Draws come from a counter-based integer generator: the same seed gives the same links on every
machine, whatever the number of threads. Numbers of links that vary (a probability) are drawn from
the exact binomial distribution, so p = 0 gives no link and p = 1 all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from snnmap import _csr
from snnmap.errors import NetworkError
from snnmap.networks import _kernels_random
from snnmap.networks.relations import Relation, dense
from snnmap.parallel import for_chunks

Array = np.ndarray[Any, Any]


def random_links(
    n_sources: int,
    n_targets: int,
    *,
    probability: float | None = None,
    fan_in: int | None = None,
    fan_out: int | None = None,
    seed: int = 0,
    allow_self: bool = True,
) -> Relation:
    """Random links, by exactly one of three rules.

    Args:
        n_sources: neurons of the source population.
        n_targets: neurons of the target population.
        probability: each pair is linked with this probability, independently.
        fan_in: every target is reached by exactly so many distinct sources.
        fan_out: every source reaches exactly so many distinct targets.
        seed: whole number >= 0.
        allow_self: False leaves out links from neuron i to neuron i (of one population).

    Raises:
        NetworkError: none or several of the rules, a probability outside 0..1, more links than
            there are neurons.
    """
    given = [probability is not None, fan_in is not None, fan_out is not None]
    if sum(given) != 1:
        raise NetworkError("random links need exactly one of probability, fan_in and fan_out")
    if not allow_self and n_sources != n_targets:
        raise NetworkError(
            f"links without self-connections need one population, not {n_sources} and {n_targets} "
            "neurons; leave self_connections out"
        )
    if seed < 0:
        raise NetworkError(f"seed is {seed}; expected a whole number >= 0")
    if fan_in is not None:
        counts = _fixed(fan_in, n_targets, n_sources - (not allow_self), "fan_in", "sources")
        offsets, pins = _sample(counts, n_sources, seed, allow_self)
        return _unshared(*_csr.transpose(offsets, pins, n_sources), n_targets)
    pool = n_targets - (not allow_self)
    if fan_out is not None:
        counts = _fixed(fan_out, n_sources, pool, "fan_out", "targets")
    else:
        assert probability is not None
        if not 0 <= probability <= 1:
            raise NetworkError(f"probability is {probability}; expected 0 to 1")
        counts = binomial_counts(n_sources, max(pool, 0), probability, seed)
    if allow_self and n_sources and n_targets and (counts == n_targets).all():
        return dense(n_sources, n_targets)
    return _unshared(*_sample(counts, n_targets, seed, allow_self), n_targets)


def distance_links(
    sources_xy: Array,
    targets_xy: Array,
    *,
    peak: float,
    sigma: float,
    seed: int = 0,
    allow_self: bool = True,
) -> Relation:
    """Links whose probability falls with distance: peak * exp(-d^2 / (2 sigma^2)).

    Args:
        sources_xy: float64[n_sources, 2] places, in any unit of length.
        targets_xy: float64[n_targets, 2] places, none negative.
        peak: probability at distance 0.
        sigma: length scale in the same unit; nothing beyond 4 sigma is linked.
        seed: whole number >= 0.
        allow_self: False leaves out links from neuron i to neuron i (of one population).

    Raises:
        NetworkError: a peak outside 0..1, a sigma that is not positive.
    """
    if not 0 <= peak <= 1:
        raise NetworkError(f"probability is {peak}; expected 0 to 1")
    if not 0 < sigma < np.inf:
        raise NetworkError(f"sigma is {sigma}; expected a number > 0")
    n, n_targets = len(sources_xy), len(targets_xy)
    if peak == 0 or n_targets == 0:
        return random_links(n, n_targets, probability=0.0)
    extent = targets_xy.max(axis=0, initial=0.0)
    size = max(sigma, float(extent.max()) / 1024) or 1.0
    grid = (extent / size).astype(np.int64) + 1
    place = (targets_xy / size).astype(np.int64)
    cell = place[:, 0] * grid[1] + place[:, 1]
    order = np.argsort(cell, kind="stable")
    cells = _csr.offsets_of(np.bincount(cell, minlength=int(grid.prod())))
    names, points = order.astype(np.int32), targets_xy[order]
    where = (stream_of(seed), sources_xy, cells, grid, size, points, names, peak, sigma)
    counts, nothing = np.zeros(n, np.int64), np.empty(0, np.int32)
    args = (not allow_self, False, counts, counts, nothing)
    for_chunks(_kernels_random.link_near, n, *where, *args, grain=64)
    offsets = _csr.offsets_of(counts)
    pins = np.empty(int(offsets[-1]), np.int32)
    args = (not allow_self, True, offsets, counts, pins)
    for_chunks(_kernels_random.link_near, n, *where, *args, grain=64)
    return _unshared(*_csr.sort_unique(offsets, pins), n_targets)


def binomial_counts(n_rows: int, n: int, probability: float, seed: int) -> Array:
    """int64[n_rows] independent draws from Binomial(n, probability), by inversion of its table."""
    if probability in (0.0, 1.0) or n == 0:
        return np.full(n_rows, n if probability == 1.0 else 0, np.int64)
    low, table = _binomial_table(n, probability)
    counts = np.empty(n_rows, np.int64)
    for_chunks(_kernels_random.draw_counts, n_rows, stream_of(seed), low, table, counts)
    return counts


def stream_of(seed: int, *indices: int) -> np.uint64:
    """A 64-bit stream number from a seed and the place of its use."""
    words = np.random.SeedSequence([seed, *indices]).generate_state(1, np.uint64)
    return np.uint64(words[0])


def _fixed(count: int, n_rows: int, pool: int, what: str, kind: str) -> Array:
    if count < 0:
        raise NetworkError(f"{what} is {count}; expected at least 0")
    if n_rows and count > max(pool, 0):
        raise NetworkError(
            f"{what} {count} exceeds the {max(pool, 0)} {kind} there are to choose from"
        )
    return np.full(n_rows, count, np.int64)


def _sample(counts: Array, n_ids: int, seed: int, allow_self: bool) -> tuple[Array, Array]:
    offsets = _csr.offsets_of(counts)
    pins = np.empty(int(offsets[-1]), np.int32)
    pool = max(n_ids - (not allow_self), 0)
    for_chunks(
        _kernels_random.sample_rows, len(counts), stream_of(seed), pool, not allow_self, offsets,
        pins, offsets=offsets,
    )  # fmt: skip
    return _csr.sort_unique(offsets, pins)


def _unshared(offsets: Array, pins: Array, n_targets: int) -> Relation:
    rows = np.arange(len(offsets) - 1, dtype=np.int32)
    return Relation(rows, offsets, pins, n_targets)


def _binomial_table(n: int, p: float) -> tuple[int, Array]:
    """(smallest count, uint64 thresholds): P(count > smallest + i) = 1 - threshold[i] / 2^64.

    The probabilities follow from the ratio of neighbours, starting at the mode, by products and
    quotients only, which every machine rounds alike.
    """
    mode = min(int((n + 1) * p), n)
    odds = p / (1 - p)
    up = [1.0]
    down: list[float] = []
    while mode + len(up) <= n and up[-1] > 1e-25:
        k = mode + len(up)
        up.append(up[-1] * ((n - k + 1) / k) * odds)
    below = 1.0
    while mode - len(down) > 0 and below > 1e-25:
        k = mode - len(down)
        below = below * (k / (n - k + 1)) / odds
        down.append(below)
    cumulative = np.cumsum(np.array(down[::-1] + up))
    shares = cumulative[:-1] / cumulative[-1]
    table = np.minimum(shares * 2.0**64, 2.0**64 - 2048).astype(np.uint64)
    return mode - len(down), table
