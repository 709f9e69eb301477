"""HardwareProfile: geometry, limits, dead cores; nothing costs memory per core."""

import pickle
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnmap.errors import ProfileError
from snnmap.hardware import Costs, HardwareProfile
from snnmap.limits import Limits


def test_defaults_are_one_bare_mesh() -> None:
    profile = HardwareProfile("bare", 3, 2)
    assert (profile.grid_width, profile.grid_height) == (3, 2)
    assert profile.n_cores == profile.cores_per_chip == 6
    assert profile.limits == Limits(max_parts=6)
    assert profile.costs == Costs()
    assert profile.costs.route_energy_pj is None


def test_limits_follow_the_usable_cores() -> None:
    profile = HardwareProfile("p", 4, 4, dead_cores=frozenset({(0, 0), (7, 3)}), chips=(2, 1))
    assert profile.n_cores == 30
    assert profile.limits.max_parts == 30
    assert replace(profile, chips=(2, 2)).limits.max_parts == 62


@given(
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.sets(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=5),
)
def test_usable_cores_are_counted_and_belong_to_their_chip(
    side: tuple[int, int], chips: tuple[int, int], dead: set[tuple[int, int]]
) -> None:
    grid = side[0] * chips[0], side[1] * chips[1]
    inside = frozenset((x, y) for x, y in dead if x < grid[0] and y < grid[1])
    if len(inside) == grid[0] * grid[1]:
        return
    profile = HardwareProfile("p", *side, chips=chips, dead_cores=inside)
    usable = [
        (x, y)
        for x in range(-1, grid[0] + 1)
        for y in range(-1, grid[1] + 1)
        if profile.is_usable(x, y)
    ]
    assert len(usable) == profile.n_cores
    assert not inside & set(usable)
    for x, y in usable:
        cx, cy = profile.chip_of(x, y)
        assert cx * side[0] <= x < (cx + 1) * side[0]
        assert cy * side[1] <= y < (cy + 1) * side[1]


def test_cores_of_a_tile_share_a_router() -> None:
    profile = HardwareProfile("p", 4, 4, tile=(2, 2))
    assert profile.router_of(2, 1) == profile.router_of(3, 0) == (1, 0)
    assert profile.router_of(1, 1) != profile.router_of(2, 1)


def test_a_huge_grid_takes_no_memory() -> None:
    tracemalloc.start()
    profile = HardwareProfile("huge", 1024, 1024, chips=(1024, 1024))
    assert profile.n_cores == 2**40
    assert profile.is_usable(2**20 - 1, 2**20 - 1)
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()


def test_profiles_are_values() -> None:
    one, other = HardwareProfile("p", 4, 4), HardwareProfile("p", 4, 4)
    assert one == other
    assert hash(one) == hash(other)
    assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"width": 0}, "at least 1"),
        ({"chips": (1, 0)}, "at least 1"),
        ({"tile": (3, 1)}, "tiles of 3x1 cores do not divide a chip of 4x4"),
        ({"topology": "ring"}, "topology is 'ring'; expected one of mesh, torus, hex-torus"),
        ({"dead_cores": frozenset({(4, 0)})}, r"dead core \(4, 0\) is outside the grid of 4x4"),
        ({"dead_cores": frozenset({(-1, 0)})}, r"dead core \(-1, 0\)"),
        ({"width": 2**20, "chips": (2, 1)}, "too large"),
        ({"width": 1, "height": 1, "dead_cores": frozenset({(0, 0)})}, "every core is dead"),
    ],
)
def test_impossible_geometry_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        HardwareProfile(**{"name": "p", "width": 4, "height": 4, **arguments})


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_costs_are_finite_and_not_negative(value: float) -> None:
    with pytest.raises(ProfileError, match="hop_energy_x_pj"):
        Costs(hop_energy_x_pj=value)
