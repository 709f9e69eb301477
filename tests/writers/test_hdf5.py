"""HDF5 files are whole or refused, wherever the disk ends; never a crash."""

import gc
import signal
from pathlib import Path

import h5py
import numpy as np
import pytest

from snnmap.errors import OutputError
from snnmap.networks import load_network
from snnmap.readers import read_network
from snnmap.writers import write_network
from snnmap.writers.hdf5 import hdf5_file
from tests.full_disk import full_disk


def fill(path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 1000, 60_000)
    with hdf5_file(path) as file:
        file.attrs["text"] = "x" * 50
        file["a/text"] = "variable length"
        file.create_dataset("a/packed", data=values, compression="gzip", chunks=(5000,))
        file.create_dataset("plain", data=values)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    fill(tmp_path / "file.h5")
    with h5py.File(tmp_path / "file.h5") as file:
        assert file["a/text"][()] == b"variable length"
        assert np.array_equal(file["a/packed"][:], file["plain"][:])
        assert file["plain"][:].sum() > 0


@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.9999])
def test_a_disk_that_is_full_somewhere_is_said(share: float, tmp_path: Path) -> None:
    fill(tmp_path / "whole.h5")
    size = (tmp_path / "whole.h5").stat().st_size
    with full_disk(int(share * size)), pytest.raises(OSError, match="too large"):
        fill(tmp_path / "file.h5")
    gc.collect()  # what the library still holds must not fail later


def test_mistakes_in_the_block_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mine"), hdf5_file(tmp_path / "a.h5"):
        raise ValueError("mine")
    with pytest.raises(OSError, match="mine"), hdf5_file(tmp_path / "b.h5"):
        raise OSError("mine")


@pytest.mark.parametrize("most", [0, 100, 3000, 30_000, 90_000])
def test_networks_are_whole_or_not_there(most: int, tmp_path: Path) -> None:
    network, path = load_network("lenet"), tmp_path / "lenet.h5"
    with full_disk(most), pytest.raises(OutputError, match=r"lenet.h5: cannot be written: File"):
        write_network(network, path)
    assert list(tmp_path.iterdir()) == []
    write_network(network, path)
    assert read_network(path).n_pins == network.n_pins


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_wait_for_the_end_of_a_file(number: signal.Signals, tmp_path: Path) -> None:
    def leave(_number: int, _frame: object) -> None:
        raise KeyError(number)

    before = signal.signal(number, leave)
    try:
        with pytest.raises(KeyError), hdf5_file(tmp_path / "a.h5") as file:
            signal.raise_signal(number)
            file["all"] = np.arange(9)
        assert signal.getsignal(number) is leave
    finally:
        signal.signal(number, before)
    with h5py.File(tmp_path / "a.h5") as file:
        assert len(file["all"]) == 9
