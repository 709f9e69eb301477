import numpy as np
import pytest

from snnmap.errors import InputError, NetworkError
from snnmap.networks.rates import ConstantRates, GivenRates, LognormalRates, rates_from


def test_lognormal_rates_have_the_median_and_spread_asked_for():
    rates = LognormalRates(median=4.0, cv=0.9, seed=3).draw(np.arange(200_000), 200_000)
    assert np.median(rates) == pytest.approx(4.0, rel=0.01)
    assert rates.std() / rates.mean() == pytest.approx(0.9, rel=0.02)
    assert np.array_equal(rates, rates.astype(np.float32))


def test_rates_of_some_neurons():
    neurons = np.array([1, 3])
    assert ConstantRates(2.5).draw(neurons, 5).tolist() == [2.5, 2.5]
    assert GivenRates([9.0, 8.0, 7.0, 6.0]).draw(neurons, 4).tolist() == [8.0, 6.0]
    assert (LognormalRates(cv=0.0).draw(neurons, 5) == 1.0).all()


def test_tables_of_a_model_file(tmp_path):
    np.save(tmp_path / "r.npy", np.array([1.0, 2.0]))
    (tmp_path / "r.txt").write_text("3\n4.5\n")
    assert rates_from(None, tmp_path) is None
    assert rates_from(3, tmp_path) == ConstantRates(3.0)
    assert rates_from({"kind": "constant", "rate": 2}, tmp_path) == ConstantRates(2.0)
    assert rates_from({"kind": "lognormal", "cv": 0.5}, tmp_path) == LognormalRates(1.0, 0.5, 7)
    for value, expected in (
        ({"kind": "values", "values": [1, 2]}, [1, 2]),
        ({"kind": "file", "file": "r.npy"}, [1, 2]),
        ({"kind": "file", "file": "r.txt"}, [3, 4.5]),
    ):
        assert rates_from(value, tmp_path).draw(np.arange(2), 2).tolist() == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "expected a number or a table"),
        ("fast", "expected a number or a table"),
        ({"kind": "gamma"}, "of kind lognormal, constant"),
        ({"kind": "lognormal", "sigma": 1}, "unknown key 'sigma'"),
        ({"kind": "lognormal", "median": 0}, "median is 0; expected a number > 0"),
        ({"kind": "constant"}, "'rate' is missing"),
        ({"kind": "values", "values": [1, "x"]}, "expected one number a neuron"),
        ({"kind": "values", "values": [1.0, -2.0]}, "rate of neuron 1 is -2.0"),
        ({"kind": "values", "values": [[1.0]]}, "expected one number a neuron"),
        (-1, "rate of the rates is -1.0"),
    ],
)
def test_wrong_tables_are_refused(value, text, tmp_path):
    with pytest.raises(NetworkError, match=text):
        rates_from(value, tmp_path)


@pytest.mark.parametrize("content", [None, b"one\ntwo\n", b""])
def test_files_that_hold_no_rates_are_refused(content, tmp_path):
    for name in ("r.txt", "r.npy"):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises((InputError, NetworkError), match=r"r\.(txt|npy): rates cannot be read"):
            rates_from({"kind": "file", "file": name}, tmp_path)
