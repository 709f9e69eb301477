import numpy as np
import pytest

from snnmap.networks.circuit import circuit_links


def test_a_circuit_has_small_nets_and_short_wires():
    n = 10_000
    relation = circuit_links(n, seed=3)
    fan_outs = relation.fan_outs()
    assert 1 + fan_outs[fan_outs > 0].mean() == pytest.approx(3.58, rel=0.03)
    assert fan_outs.max() <= 40
    drivers = np.repeat(np.arange(n), fan_outs)
    steps = np.abs(drivers % 100 - relation.targets % 100) + np.abs(
        drivers // 100 - relation.targets // 100
    )
    assert steps.min() >= 1
    assert np.median(steps) <= 4
    assert steps.max() > 100


def test_longer_wires_for_a_larger_rent_exponent():
    def mean_wire(rent):
        relation = circuit_links(4096, rent=rent)
        drivers = np.repeat(np.arange(4096), relation.fan_outs())
        return np.abs(drivers % 64 - relation.targets % 64).mean()

    assert mean_wire(0.4) < mean_wire(0.65) < mean_wire(0.9)


@pytest.mark.parametrize("cells", [1, 2, 3, 10])
def test_tiny_circuits(cells):
    relation = circuit_links(cells)
    for cell in range(cells):
        row = relation.row(cell).tolist()
        assert cell not in row
        assert all(0 <= sink < cells for sink in row)
