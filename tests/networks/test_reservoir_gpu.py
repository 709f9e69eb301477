"""Reservoirs linked on a GPU are those of the CPU, byte for byte: on a GPU, and emulated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from snnmap.networks import reservoir as room
from snnmap.networks import reservoir_gpu
from snnmap.networks.reservoir import CpuChooser, Ground, Reservoir
from snnmap.networks.reservoir_gpu import GpuChooser
from snnmap.partitioning.multilevel.device import Device
from tests.emulator.starting import KINDS, start_gpu


@pytest.fixture(scope="module", params=KINDS)
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    return start_gpu(Device, request.param)


@pytest.fixture
def choosers(monkeypatch: pytest.MonkeyPatch) -> list[GpuChooser]:
    """Those that were used."""
    used: list[GpuChooser] = []

    class Kept(GpuChooser):
        def __init__(self, *args):
            super().__init__(*args)
            used.append(self)

    monkeypatch.setattr(reservoir_gpu, "GpuChooser", Kept)
    return used


def assert_equal(r: Reservoir, device: Device) -> None:
    expected, found = r.links(), r.links(device=device)
    assert np.array_equal(found.offsets, expected.offsets)
    assert np.array_equal(found.targets, expected.targets)


@pytest.mark.parametrize(
    "r",
    [
        Reservoir(900, 12, seed=5),
        Reservoir(300, 30, seed=1, sigma=0.2, long_range=0.3, forward=0.5),
        Reservoir(200, 9, seed=3, long_range=1.0),  # far ones only, some twice
        Reservoir(200, 9, seed=4, long_range=0.0, forward=0.0),
        Reservoir(40, 20, seed=2, sigma=1.0),  # everybody is a candidate
        Reservoir(30, 90, seed=2, long_range=0.5),  # more far links than neurons
        Reservoir(1, 3),
        Reservoir(50, 0),
    ],
)
def test_links_are_those_of_the_cpu(r, device, choosers, monkeypatch):
    monkeypatch.setattr(room, "BLOCK", 129)  # odd: halves of words are left over between blocks
    assert_equal(r, device)
    assert [chooser.redone for chooser in choosers] == [0]


def test_numbers_beyond_all_bounds_are_left_to_the_cpu(device, choosers, monkeypatch):
    monkeypatch.setattr(room, "BLOCK", 64)
    assert_equal(Reservoir(200, 9, seed=3, sigma=1e-170), device)
    assert choosers[0].redone == 4


def test_too_many_candidates_are_left_to_the_cpu(device):
    ground = Ground(Reservoir(4, 1))
    assert reservoir_gpu.fits(ground, device)
    ground.near = device.shared_bytes // 12
    assert not reservoir_gpu.fits(ground, device)


def chosen_by_both(r: Reservoir, device: Device, move, size: int = 40) -> GpuChooser:
    """Let both choose for some neurons, perhaps moved elsewhere; the results must be equal."""
    found = []
    for kind in (CpuChooser, lambda ground: GpuChooser(ground, device)):
        ground = Ground(r)
        move(ground.xyz)
        ground.grid, ground.cells, ground.order = room._sort_into_cells(ground.xyz)
        ground.points = ground.xyz[ground.order]
        chooser = kind(ground)
        for start in (0, r.neurons - size):
            noise = chooser.draw(ground.rng, size)
            n_far = int(ground.n_far[start : start + size].sum())
            far = np.zeros(n_far, np.int64)
            found.append(chooser.choose(start, start + size, noise, far))
    for expected, got in zip(found[:2], found[2:], strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(expected, got, strict=True))
    return chooser


def test_what_hangs_on_a_hair_is_chosen_by_the_cpu(device):
    def double(xyz):
        xyz[100:] = xyz[:100]

    r = Reservoir(200, 9, seed=3, sigma=1e-12)  # noise below the last bit of every key
    assert chosen_by_both(r, device, double).redone == 2


def test_a_crowd_in_one_place(device):
    """The radius grows and shrinks until it holds neither too few points nor too many."""

    def crowd(xyz):
        xyz[:1500] *= 0.02

    assert chosen_by_both(Reservoir(2000, 8, seed=6, sigma=0.3), device, crowd).redone == 0


def test_neurons_of_the_largest_published_network(device):
    r = Reservoir(262_144, 256)
    assert chosen_by_both(r, device, lambda xyz: None, size=16).redone == 0


@pytest.mark.gpu
def test_a_published_network_on_a_gpu():
    assert_equal(Reservoir(65_536, 192), start_gpu(Device, "device"))
