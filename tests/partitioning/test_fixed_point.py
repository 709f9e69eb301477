from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnmap.partitioning.fixed_point import fixed_point

finite = st.floats(0, 1e300, allow_nan=False, allow_subnormal=True)


@given(st.lists(finite, max_size=40), st.integers(1, 2**31))
def test_sums_never_overflow_and_scale_is_a_power_of_two(weights, most):
    fixed, scale = fixed_point(np.array(weights, np.float64), most)
    assert math.frexp(scale)[0] == 0.5
    assert fixed.dtype == np.int64
    assert all(f >= 0 for f in fixed.tolist())
    assert sum(fixed.tolist()) * most < 2**62 + len(weights) * most
    for w, f in zip(weights, fixed.tolist(), strict=True):
        assert abs(f / scale - w) <= 0.5 / scale


@given(st.lists(st.integers(0, 2**20), max_size=40))
def test_whole_numbers_are_exact(weights):
    fixed, scale = fixed_point(np.array(weights, np.float64))
    assert scale >= 1
    assert (fixed / scale).tolist() == weights


def test_the_scale_is_fine_for_usual_rates():
    rates = np.random.default_rng(0).lognormal(0, 1, 300_000)
    fixed, scale = fixed_point(rates)
    assert scale >= 2**20
    assert fixed.sum() / scale == pytest.approx(rates.sum(), rel=1e-9)


def test_huge_weights_do_not_overflow():
    fixed, scale = fixed_point(np.full(1000, 1.7e308))
    assert scale < 1
    assert fixed.min() > 0
    assert fixed.sum() * 2**20 < 2**62


def test_silence():
    fixed, scale = fixed_point(np.zeros(3))
    assert (fixed.tolist(), scale) == ([0, 0, 0], 1.0)
    assert fixed_point(np.zeros(0))[1] == 1.0
