"""Spike rates from distributions and files of every kind; what was chosen is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import nir
import numpy as np
import pytest

from snnmap.errors import ConfigError, InputError, NetworkError, SnnmapError
from snnmap.hypergraph import Hypergraph
from snnmap.networks.rates import GivenRates, LognormalRates
from snnmap.rates import with_rates
from snnmap.readers import read_network, spikes
from tests.readers.test_fuzz_files import damage
from tests.small import SMALL_ROWS, small

INPUTS = Path(__file__).parents[2] / "shared" / "inputs"


def rates_of(network: Hypergraph, rates: Any) -> list[float]:
    """Weights after `with_rates`, in the order of SMALL_ROWS."""
    return with_rates(network, rates)[0].weights.tolist()


def net() -> Hypergraph:
    """The small network, h-edges in the order of SMALL_ROWS."""
    return small(grouped=False)


def test_an_axon_carries_the_sum_of_its_sources(tmp_path: Path) -> None:
    np.save(tmp_path / "r.npy", np.arange(8) * 10.0)
    new, notes = with_rates(net(), tmp_path / "r.npy")
    assert new.weights.tolist() == [0, 10, 20, 30, 40, 50, 1.5, 110]
    assert notes == ["rates: r.npy", "1 of 8 axons keep the rates they had"]
    assert new.populations == net().populations


def test_constant_and_lognormal() -> None:
    new, notes = with_rates(net(), "constant:2.5")
    assert new.weights.tolist() == [2.5] * 6 + [1.5, 5.0]
    assert notes[0] == "rates: constant 2.5"
    new, notes = with_rates(net(), "lognormal:median=3,cv=0.5,seed=9")
    drawn = LognormalRates(3, 0.5, 9).draw(np.arange(7), 8)
    assert new.weights.tolist() == [*drawn[:6].tolist(), 1.5, drawn[5] + drawn[6]]
    assert notes[0] == "rates: log-normal, median 3, cv 0.5, seed 9"
    assert rates_of(net(), "lognormal") == rates_of(net(), LognormalRates())
    assert rates_of(net(), GivenRates(np.ones(8)))[-1] == 2


@pytest.mark.parametrize(
    "text",
    [
        "10\n0\n20\n0\n40\n0.5\n0\n0\n",
        "rate\n10\n0\n20\n0\n40\n5e-1\n0\n0",
        "# r\n10\n0\n20\n0\n40\n.5\n0\n0",
    ],
    ids=["plain", "header", "comment"],
)
def test_a_rate_a_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.csv").write_text(text)
    assert rates_of(net(), tmp_path / "r.csv") == [10, 0, 20, 0, 40, 0.5, 1.5, 0.5]


@pytest.mark.parametrize("text", ["neuron,rate\n4,7.5\n1,2\n", "4 7.5\n1 2\n", "1;2\n4;7.5\n"])
def test_a_neuron_and_its_rate_a_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.txt").write_text(text)
    new, notes = with_rates(net(), tmp_path / "r.txt")
    assert new.weights.tolist() == [0, 2, 0, 0, 7.5, 0, 1.5, 0]
    assert notes[0] == "rates: r.txt, 0 for neurons that are not listed"


def test_of_one_population(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("0,7\n3,9\n")
    new, notes = with_rates(net(), f"{tmp_path / 'r.csv'}@hidden")
    assert new.weights.tolist() == [1, 2, 0.5, 7, 0, 0, 1.5, 9]
    assert notes[0].startswith("rates of 'hidden': r.csv")
    np.save(tmp_path / "a@b.npy", np.ones(8))
    assert rates_of(net(), tmp_path / "a@b.npy")[0] == 1


def _sonata(
    path: Path, populations: dict[str, tuple[list[float], list[int]]], units: str | None
) -> None:
    with h5py.File(path, "w") as file:
        for name, (times, ids) in populations.items():
            group = file.create_group(f"spikes/{name}")
            group["timestamps"] = np.array(times, float)
            group["node_ids"] = np.array(ids, np.uint64)
            if units is not None:
                group["timestamps"].attrs["units"] = units


def test_sonata_spikes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "spikes.h5"
    recorded = {"in": ([1.0, 2.0, 500.0], [0, 0, 2]), "hidden": ([250.0], [1])}
    _sonata(path, recorded, "milliseconds")
    new, notes = with_rates(net(), path)
    assert new.weights.tolist() == [4, 0, 2, 0, 4, 0, 1.5, 0]
    assert notes[:2] == [
        "rates of 'hidden': 1 spikes in spikes.h5, 250 ms until the last spike; "
        "3 of 4 neurons never fired",
        "rates of 'in': 3 spikes in spikes.h5, 500 ms until the last spike; "
        "1 of 3 neurons never fired",
    ]
    monkeypatch.setattr(spikes, "SPIKES_A_STEP", 1)
    assert rates_of(net(), path) == new.weights.tolist()
    _sonata(path, recorded, "seconds")
    assert rates_of(net(), path)[0] == 0.004
    _sonata(path, recorded, None)
    assert "times in ms" in with_rates(net(), path)[1][0]


def test_spikes_without_a_population(tmp_path: Path) -> None:
    path = tmp_path / "spikes.h5"
    with h5py.File(path, "w") as file:
        file["spikes/timestamps"], file["spikes/gids"] = [10.0, 100.0], np.array([3, 3], np.uint64)
    with pytest.raises(InputError, match="does not say whose spikes it holds; add @POPULATION"):
        with_rates(net(), path)
    assert rates_of(net(), f"{path}@hidden") == [1, 2, 0.5, 0, 0, 0, 1.5, 20]
    bare = Hypergraph.from_hedges(4, np.array([3]), np.array([0, 1]), np.array([0]), np.ones(1))
    assert rates_of(bare, path) == [20]


def test_a_real_recording() -> None:
    folder = INPUTS / "sonata_300_pointneurons"
    if not folder.exists():
        pytest.skip("../shared/inputs is not here: a real recording is not read")
    network = read_network(folder)
    file = folder / "inputs" / "external_spike_trains.h5"
    external = next(p for p in network.populations if p.is_input)
    new, notes = with_rates(network, f"{file}@{external.name}")
    [recording] = spikes.read_spikes(file)
    assert recording.n_spikes == 4334
    assert "4334 spikes in external_spike_trains.h5" in notes[0]
    axons = np.isin(new.sources, external.start + recording.ids)
    assert new.weights[axons].sum() > 0
    assert (new.weights[axons] > 0).all()


def test_nir_event_data(tmp_path: Path) -> None:
    path = tmp_path / "data.h5"
    events = nir.EventData(
        np.array([[0, 0, 2, -1], [0, 1, -1, -1]]),
        np.array([[0.1, 0.2, 0.3, np.inf], [0.1, 0.2, np.inf, np.inf]]),
        n_neurons=3,
        t_max=0.5,
    )
    gridded = nir.TimeGriddedData(np.ones((1, 10, 4), bool), dt=0.1)
    nodes = {
        "in": nir.NIRNodeData({"spikes": events, "v": gridded}),
        "hidden": nir.NIRNodeData({"spikes": gridded}),
    }
    nir.write_data(path, nir.NIRGraphData(nodes))
    new, notes = with_rates(net(), path)
    assert new.weights.tolist() == pytest.approx([3, 1, 1, 10, 10, 10, 1.5, 20])
    assert "5 spikes in data.h5, 500 ms as the file says, 2 samples, times in s" in notes[1]


def test_rates_by_population(tmp_path: Path) -> None:
    _sonata(tmp_path / "s.h5", {"a": ([1000.0], [0]), "b": ([1000.0, 1.0], [1, 2])}, "ms")
    np.save(tmp_path / "out.npy", np.array([8.0]))
    (tmp_path / "rates.toml").write_text(
        """
        default = 0.25
        [populations]
        in = { kind = "lognormal", median = 2.0, cv = 1.0, seed = 3 }
        hidden = { kind = "spikes", file = "s.h5", population = "b", duration_ms = 500 }
        out = { kind = "file", file = "out.npy" }
        """
    )
    new, notes = with_rates(net(), tmp_path / "rates.toml")
    drawn = LognormalRates(2, 1, 3).draw(np.arange(3), 3).tolist()
    assert new.weights.tolist() == [*drawn, 0, 2, 2, 1.5, 2]
    assert [note.split(":")[0] for note in notes[:4]] == [
        "rates",
        "rates of 'in'",
        "rates of 'hidden'",
        "rates of 'out'",
    ]
    assert "500 ms as asked" in notes[2]


FILE_FAULTS: dict[str, tuple[str, str, str | None]] = {
    # file name: (text, part of the problem, place)
    "empty.csv": ("", "is empty", None),
    "comment.csv": ("# nothing\n", "has no rates", None),
    "too-few.csv": ("1\n2\n", "holds 2 rates; expected one for the 8 neurons", None),
    "too-many.csv": ("1\n" * 9, "holds 9 rates", None),
    "negative.csv": ("1\n" * 7 + "-1\n", "rate '-1'; expected a finite number >= 0", "line 8"),
    "nan.csv": ("0,nan\n", "rate 'nan'", "line 1"),
    "word.csv": ("0,1\n1,fast\n", "rate 'fast'", "line 2"),
    "three-columns.csv": ("0,1,2\n", "3 columns; expected a rate, or", "line 1"),
    "ragged.csv": ("0,1\n1\n", "1 values; expected 2", "line 2"),
    "neuron-unknown.csv": ("8,1\n", "neuron 8 is none of the 8 neurons", None),
    "neuron-word.csv": ("0,1\nx,1\n", "neuron 'x'; expected a whole number", "line 2"),
    "neuron-twice.csv": ("1,1\n1,2\n", "neuron 1 occurs twice", None),
    "no-toml.toml": ("= 3", "is no TOML", None),
    "key-unknown.toml": ("rates = 3", "unknown key 'rates'", None),
    "default-text.toml": ("default = 'fast'", "rates are 'fast'; expected a number or", None),
    "default-negative.toml": ("default = -1", "rate of the rates is -1.0", None),
    "population-unknown.toml": (
        "[populations]\nhiden = 1",
        "no population 'hiden'; did you mean 'hidden'",
        None,
    ),
    "populations-list.toml": ("populations = [1]", "populations is no table", None),
    "kind-unknown.toml": ("[populations]\nin = {kind = 'slow'}", "'slow'", "population 'in'"),
    "spikes-no-file.toml": (
        "[populations]\nin = {kind = 'spikes'}",
        "expected file = 'NAME'",
        "population 'in'",
    ),
    "spikes-key-unknown.toml": (
        "[populations]\nin = {kind = 'spikes', file = 'x.h5', dt = 1}",
        "unknown key 'dt'",
        "population 'in'",
    ),
    "spikes-duration.toml": (
        "[populations]\nin = {kind = 'spikes', file = 'x.h5', duration_ms = 'long'}",
        "duration_ms is 'long'",
        "population 'in'",
    ),
    "file-missing.toml": (
        "[populations]\nin = {kind = 'file', file = 'x.npy'}",
        "no such file",
        None,
    ),
}


@pytest.mark.parametrize("name", FILE_FAULTS)
def test_malformed_files_of_rates(tmp_path: Path, name: str) -> None:
    text, problem, place = FILE_FAULTS[name]
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        with_rates(net(), path)
    assert problem in caught.value.problem
    assert caught.value.place == place
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def _put(name: str, value: Any) -> Callable[[Any], None]:
    def change(file: Any) -> None:
        del file[name]
        if value is not None:
            file[name] = value

    return change


SPIKE_FAULTS: dict[str, tuple[Callable[[Any], None], str]] = {
    "times-missing": (_put("spikes/in/timestamps", None), "timestamps: is missing"),
    "ids-missing": (_put("spikes/in/node_ids", None), "node_ids: is missing"),
    "lengths-differ": (_put("spikes/in/node_ids", [0]), "timestamps and node_ids differ in shape"),
    "time-negative": (
        _put("spikes/in/timestamps", [1.0, -1.0]),
        "entry 1 is -1.0; expected a time",
    ),
    "time-nan": (_put("spikes/in/timestamps", [np.nan, 1.0]), "entry 0 is nan"),
    "times-zero": (_put("spikes/in/timestamps", [0.0, 0.0]), "all spikes are at time 0; say how"),
    "id-negative": (_put("spikes/in/node_ids", [0, -1]), "entry 1 is -1; expected an id"),
    "id-beyond": (_put("spikes/in/node_ids", [0, 3]), "neuron 3 is none of the 3 neurons of 'in'"),
    "ids-float": (_put("spikes/in/node_ids", [0.0, 1.0]), "holds float64; expected whole"),
    "no-population": (lambda file: file["spikes"].pop("in"), "holds no population"),
    "population-unknown": (lambda file: file.move("spikes/in", "spikes/inn"), "did you mean 'in'"),
    "units-unknown": (
        lambda file: file["spikes/in/timestamps"].attrs.__setitem__("units", "fortnights"),
        "has units 'fortnights'",
    ),
}


@pytest.mark.parametrize("name", SPIKE_FAULTS)
def test_malformed_spike_files(tmp_path: Path, name: str) -> None:
    change, problem = SPIKE_FAULTS[name]
    path = tmp_path / f"{name}.h5"
    _sonata(path, {"in": ([1.0, 2.0], [0, 1])}, "ms")
    with h5py.File(path, "r+") as file:
        change(file)
    with pytest.raises(InputError) as caught:
        with_rates(net(), path)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


NIR_FAULTS: dict[str, tuple[Callable[[Any], None], str]] = {
    "index-beyond": (_put("nodes/in/observables/spikes/idx", [[5]]), "entry 0 is 5"),
    "shapes-differ": (_put("nodes/in/observables/spikes/time", [[1.0, 2.0]]), "differ in shape"),
    "no-observable": (lambda f: f["nodes/in/observables"].pop("spikes"), "the observable spikes"),
    "t-max-zero": (
        lambda f: f["nodes/in/observables/spikes"].attrs.__setitem__("t_max", 0),
        "attribute t_max is 0.0; expected a number > 0",
    ),
    "t-max-text": (
        lambda f: f["nodes/in/observables/spikes"].attrs.__setitem__("t_max", "long"),
        "attribute t_max is 'long'; expected a number",
    ),
    "nodes-missing": (_put("nodes/in/observables", None), "expected a group"),
}


@pytest.mark.parametrize("name", NIR_FAULTS)
def test_malformed_nir_data(tmp_path: Path, name: str) -> None:
    change, problem = NIR_FAULTS[name]
    path = tmp_path / f"{name}.h5"
    events = nir.EventData(np.array([[0]]), np.array([[0.1]]), n_neurons=3, t_max=0.5)
    nir.write_data(path, nir.NIRGraphData({"in": nir.NIRNodeData({"spikes": events})}))
    with h5py.File(path, "r+") as file:
        change(file)
    with pytest.raises(InputError) as caught:
        with_rates(net(), path)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("rates", "error", "problem"),
    [
        ("constant", ConfigError, "expected constant:RATE, lognormal"),
        ("constant:fast", ConfigError, "are of no known form"),
        ("lognormal:mean=3", ConfigError, "are of no known form"),
        ("lognormal:median=-3", NetworkError, "median of the rates is -3"),
        ("constant:-1", NetworkError, "rate of the rates is -1"),
        ("nothing.csv", InputError, "nothing.csv: no such file"),
        ("nothing.csv@in", InputError, "nothing.csv: no such file"),
    ],
)
def test_specifications_of_no_known_form(
    rates: str, error: type[SnnmapError], problem: str
) -> None:
    with pytest.raises(error) as caught:
        with_rates(net(), rates)
    assert problem in str(caught.value)


def test_small_rows_are_as_assumed() -> None:
    assert [s for s, _, _ in SMALL_ROWS] == [[0], [1], [2], [3], [4], [5], [], [5, 6]]


def test_damaged_recordings_are_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "spikes.h5"
    _sonata(path, {"in": ([1.0, 2.0], [0, 1]), "hidden": ([3.0], [3])}, "ms")
    events = nir.EventData(np.array([[0]]), np.array([[0.1]]), n_neurons=3, t_max=0.5)
    nir.write_data(
        tmp_path / "data.h5", nir.NIRGraphData({"in": nir.NIRNodeData({"spikes": events})})
    )
    rng = np.random.default_rng(5)
    refused = 0
    for valid in (path.read_bytes(), (tmp_path / "data.h5").read_bytes()):
        for _ in range(100):
            path.write_bytes(damage(valid, rng))
            try:
                with_rates(net(), path)
            except InputError:
                refused += 1
    assert refused > 5
