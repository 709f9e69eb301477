"""Recorded spikes of every format: the same spikes, whatever the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import nir
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnmap.errors import InputError
from snnmap.hypergraph import Population
from snnmap.traffic import read_recording

POPULATIONS = (Population("in", 0, 3, (3,), True), Population("hidden", 3, 8, (5,)))
INPUTS = Path(__file__).parents[3] / "shared" / "inputs"
Rows = list[tuple[float, int]]


def csv_file(path: Path, rows: Rows) -> Path:
    path = path.with_suffix(".csv")
    path.write_text("time_ms,neuron\n" + "".join(f"{t!r},{n}\n" for t, n in rows))
    return path


def sonata_file(path: Path, rows: Rows, unit: str = "milliseconds") -> Path:
    with h5py.File(path, "w") as file:
        group = file.create_group("spikes/hidden")
        scale = 1.0 if unit == "milliseconds" else 1e-3
        group["timestamps"] = np.array([t * scale for t, _ in rows], float)
        group["timestamps"].attrs["units"] = unit
        group["node_ids"] = np.array([n for _, n in rows], np.uint64)
    return path


def nir_file(path: Path, rows: Rows) -> Path:
    idx = np.array([[n for _, n in rows] + [-1], [-1] * (len(rows) + 1)])
    time = np.array([[t / 1000 for t, _ in rows] + [np.inf], [np.inf] * (len(rows) + 1)])
    node = nir.NIRNodeData({"spikes": nir.EventData(idx, time, n_neurons=5, t_max=10.0)})
    nir.write_data(path, nir.NIRGraphData({"hidden": node}))
    return path


def nwb_file(path: Path, rows: Rows) -> Path:
    with h5py.File(path, "w") as file:
        file.attrs["nwb_version"] = "2.7.0"
        units = file.create_group("units")
        times = [sorted(t / 1000 for t, n in rows if n == unit) for unit in range(5)]
        units["spike_times"] = np.array([t for some in times for t in some], float)
        units["spike_times_index"] = np.cumsum([len(some) for some in times])
        units["id"] = np.arange(5)
    return path


WRITERS: dict[str, Callable[[Path, Rows], Path]] = {
    "csv": csv_file,
    "sonata": sonata_file,
    "nir": nir_file,
    "nwb": nwb_file,
}


@pytest.mark.parametrize("form", WRITERS)
@given(rows=st.lists(st.tuples(st.integers(0, 9000).map(float), st.integers(0, 4)), max_size=12))
@settings(deadline=None, max_examples=25)
def test_every_format_tells_the_same_spikes(
    form: str, rows: Rows, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = WRITERS[form](tmp_path_factory.mktemp("recorded") / "spikes.h5", rows)
    times, neurons, notes = read_recording(f"{path}@hidden", 8, POPULATIONS)
    found = sorted(zip(np.rint(times).tolist(), neurons.tolist(), strict=True))
    assert found == sorted((t, 3 + n) for t, n in rows)
    assert np.allclose(times, np.rint(times))
    assert len(notes) == (form != "csv")


def test_populations_of_the_file_find_those_of_the_network(tmp_path: Path) -> None:
    for write in (sonata_file, nir_file):
        times, neurons, notes = read_recording(
            write(tmp_path / "s.h5", [(4.0, 4), (1.0, 0)]), 8, POPULATIONS
        )
        assert times.tolist() == pytest.approx([4.0, 1.0])
        assert neurons.tolist() == [7, 3]
        assert notes[0].startswith("2 spikes of 'hidden': ")
    seconds = sonata_file(tmp_path / "s.h5", [(4.0, 4)], "seconds")
    assert read_recording(seconds, 8, POPULATIONS)[0].tolist() == [4.0]


def test_one_of_several_populations_can_be_chosen(tmp_path: Path) -> None:
    path = sonata_file(tmp_path / "s.h5", [(4.0, 4)])
    with h5py.File(path, "a") as file:
        file["spikes/in/timestamps"], file["spikes/in/node_ids"] = [7.0, 8.0], [2, 1]
    assert sorted(read_recording(path, 8, POPULATIONS)[1].tolist()) == [1, 2, 7]
    assert read_recording(f"{path}@in", 8, POPULATIONS)[1].tolist() == [2, 1]
    more = (*POPULATIONS, Population("out", 8, 9, (1,)))
    with pytest.raises(InputError, match="no spikes of 'out'; it has those of hidden, in"):
        read_recording(f"{path}@out", 9, more)


def test_a_network_without_names_takes_neurons_as_they_are(tmp_path: Path) -> None:
    path = nwb_file(tmp_path / "s.h5", [(4.0, 4)])
    assert read_recording(path, 8)[1].tolist() == [4]
    with pytest.raises(InputError, match="whose spikes it holds; add @POPULATION, one of in, hidd"):
        read_recording(path, 8, POPULATIONS)
    path = sonata_file(tmp_path / "t.h5", [(4.0, 4)])
    with pytest.raises(InputError, match="no population 'hidden'; known are none"):
        read_recording(path, 8)


def test_gridded_nir_data(tmp_path: Path) -> None:
    data = np.zeros((2, 4, 5), bool)
    data[0, 3, 1] = data[0, 0, 2] = data[1, 1, 1] = True
    node = nir.NIRNodeData({"spikes": nir.TimeGriddedData(data, dt=0.002)})
    nir.write_data(tmp_path / "d.h5", nir.NIRGraphData({"hidden": node}))
    times, neurons, notes = read_recording(tmp_path / "d.h5", 8, POPULATIONS)
    assert list(zip(times.tolist(), neurons.tolist(), strict=True)) == [(0.0, 5), (6.0, 4)]
    assert "sample 0 of 2" in notes[0]


def test_a_real_recording() -> None:
    file = INPUTS / "sonata_300_pointneurons" / "inputs" / "external_spike_trains.h5"
    if not file.exists():
        pytest.skip("../shared/inputs is not here: a real recording is not read")
    times, neurons, notes = read_recording(file, 100)
    assert len(times) == len(neurons) == 4334
    assert 0 <= neurons.min() <= neurons.max() < 100
    assert "4,334 spikes: times in ms" in notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "line 1: columns a, b; expected time_ms and neuron"),
        ("time_ms,neuron\n1,x\n", "line 2: expected a time in ms and a neuron's number"),
        ("time_ms,neuron\n1,0\n-1,0\n", "line 3: time -1.0 ms is outside"),
        ("time_ms,neuron\n1,0\n1,8\n", r"line 3: neuron 8 is outside 0\.\.7"),
        ("time_ms,neuron\n1,99999999999999999999\n", "line 2: neuron 9999.* does not exist"),
        ("time_ms,neuron\n1,0\nnan,0\n", "line 3: time nan ms"),
    ],
)
def test_wrong_tables_are_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "spikes.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_recording(file, 8)


def test_missing_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv"):
        read_recording(tmp_path / "none.csv", 8)


def _put(name: str, value: object) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        if name in file:
            del file[name]
        if value is not None:
            file[name] = value

    return change


@pytest.mark.parametrize(
    ("write", "change", "message"),
    [
        (sonata_file, _put("spikes/hidden/timestamps", [1.0, -1.0]), "entry 1 is -1.0; expected a"),
        (sonata_file, _put("spikes/hidden/timestamps", [1.0]), "differ in shape"),
        (sonata_file, _put("spikes/hidden/timestamps", None), "timestamps: is missing"),
        (sonata_file, _put("spikes/hidden/timestamps", [1.0, 1e12]), "is outside 0..1e"),
        (sonata_file, _put("spikes/hidden/node_ids", [0, 5]), "spike 1: neuron 5 is outside 0..4"),
        (sonata_file, _put("spikes/hidden/node_ids", [0, -5]), "entry 1 is -5; expected"),
        (sonata_file, _put("spikes/hidden", None), "holds no population"),
        (nwb_file, _put("units/spike_times_index", [0, 0, 3, 2, 2]), "must rise to the 2 spike"),
        (nwb_file, _put("units/spike_times_index", [0, 0, 0, 0, 9]), "must rise to the 2 spike"),
        (nwb_file, _put("units/id", [1, 2]), "has 2 entries; expected one for each of 5"),
        (nwb_file, _put("units/spike_times", [[1.0]]), "expected a list"),
        (nwb_file, _put("units/spike_times", [np.nan, 1.0]), "entry 0 is nan"),
        (nir_file, _put("nodes/hidden/observables/spikes/time", [[1.0]]), "differ in shape"),
        (nir_file, _put("nodes/hidden/observables/spikes/idx", [[9, 1, -1]] * 2), "entry 0 is 9"),
    ],
)
def test_damaged_files_are_refused(
    tmp_path: Path,
    write: Callable[[Path, Rows], Path],
    change: Callable[[h5py.File], None],
    message: str,
) -> None:
    path = write(tmp_path / "s.h5", [(1.0, 0), (2.0, 3)])
    with h5py.File(path, "a") as file:
        change(file)
    with pytest.raises(InputError, match=message) as caught:
        read_recording(f"{path}@hidden", 8, POPULATIONS)
    assert "\n" not in str(caught.value)
