"""The native file: damaged, tampered-with and later versions are refused with the dataset."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from snnmap.readers import read_network
from snnmap.readers.native import ROOT
from snnmap.writers import write_network
from tests.readers.refusing import refusal
from tests.small import small

Change = Callable[[Any], None]


def _replace(name: str, value: object) -> Change:
    def change(group: Any) -> None:
        del group[name]
        group[name] = value

    return change


def _unallocated(name: str, shape: tuple[int, ...], dtype: type) -> Change:
    def change(group: Any) -> None:
        del group[name]
        group.create_dataset(name, shape, dtype, chunks=(1024,) * len(shape))

    return change


def _remove(name: str) -> Change:
    return lambda group: group.__delitem__(name)


def _overwrite_root(group: Any) -> None:
    file = group.file
    del file[ROOT]
    file[ROOT] = 1


LAYER = '{"name": "a", "start": 0, "stop": 2, "shape": [3], "is_input": false}'

FAULTS: dict[str, tuple[Change, str, str | None]] = {
    # name: (what is changed, part of the problem, place below the root or whole)
    "version-later": (_replace("version", 2), "upgrade snnmap", "/version"),
    "version-zero": (_replace("version", 0), "schema version 0; expected 1", "/version"),
    "version-text": (_replace("version", "one"), "expected numbers", "/version"),
    "version-missing": (_remove("version"), "is missing", "/version"),
    "weights-missing": (_remove("weights"), "is missing", "/weights"),
    "weights-integers": (
        _replace("weights", np.ones(8, int)),
        "one dimension of floats",
        "/weights",
    ),
    "weights-short": (_replace("weights", np.ones(7)), "ends at 8", "/hedge_offsets"),
    "weights-nan": (_replace("weights", np.full(8, np.nan)), "weight nan", "h-edge 0"),
    "weights-2e40": (_unallocated("weights", (2**40,), float), "claims shape", "/weights"),
    "offsets-fall": (
        _replace("hedge_offsets", [0, 2, 1, 8, 8, 8, 8, 8]),
        "must rise",
        "/hedge_offsets",
    ),
    "offsets-empty": (_replace("hedge_offsets", np.zeros(0, int)), "must rise", "/hedge_offsets"),
    "offsets-short": (
        _replace("group_offsets", [0, 17]),
        "has 2 entries; expected 8",
        "/group_offsets",
    ),
    "offsets-beyond": (
        _replace("group_offsets", [0, 3, 5, 6, 8, 10, 12, 99]),
        "group offsets must rise",
        None,
    ),
    "destinations-2d": (
        _replace("destinations", np.zeros((2, 2), int)),
        "2 dimensions",
        "/destinations",
    ),
    "destinations-2e60": (
        _unallocated("destinations", (2**60,), np.int32),
        "claims shape",
        "/destinations",
    ),
    "destination-out-of-range": (_replace("destinations", np.full(16, 8)), "outside 0..7", "pin 0"),
    "source-negative": (_replace("sources", np.full(8, -1)), "outside 0..7", "pin 0"),
    "nodes-2e31": (_replace("n_nodes", 2**31), "expected 0 to", "/n_nodes"),
    "nodes-2e9": (_replace("n_nodes", 2 * 10**9), "only long enough", "/n_nodes"),
    "nodes-negative": (_replace("n_nodes", -1), "-1 nodes", "/n_nodes"),
    "nodes-three": (_replace("n_nodes", [1, 2, 3]), "holds 3 numbers", "/n_nodes"),
    "layers-no-json": (_replace("layers", "{"), "JSONDecodeError", "/layers"),
    "layers-a-list": (_replace("layers", "[]"), "TypeError", "/layers"),
    "layers-nested": (_replace("layers", "[" * 60_000), "RecursionError", "/layers"),
    "layer-incomplete": (
        _replace("layers", '{"populations": [{"name": 1}]}'),
        "KeyError",
        "/layers",
    ),
    "layer-shape": (
        _replace("layers", f'{{"populations": [{LAYER}], "projections": []}}'),
        "population 'a' of 2 nodes has shape (3,)",
        None,
    ),
    "root-a-dataset": (_overwrite_root, "expected a group", ""),
}


@pytest.mark.parametrize("name", FAULTS)
def test_tampered_files_are_refused_with_the_dataset(tmp_path: Path, name: str) -> None:
    change, problem, place = FAULTS[name]
    path = tmp_path / f"{name}.h5"
    write_network(small(), path)
    with h5py.File(path, "r+") as file:
        change(file[ROOT])
    error = refusal(path)
    assert problem in error.problem
    in_the_group = place is not None and " " not in place
    assert error.place == (f"{ROOT}{place}" if in_the_group else place)


@pytest.mark.parametrize("kept", [0.02, 0.3, 0.9])
def test_truncated_files_are_refused(tmp_path: Path, kept: float) -> None:
    path = tmp_path / "cut.h5"
    write_network(small(), path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept)])
    error = refusal(path, format="native")
    assert "truncated" in error.problem


def test_other_hdf5_files_are_not_ours(tmp_path: Path) -> None:
    path = tmp_path / "other.h5"
    with h5py.File(path, "w") as file:
        file["x"] = 1
    assert "its content is of no known format" in refusal(path).problem
    assert refusal(path, format="native").place == ROOT


def test_a_damaged_chunk_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "damaged.h5"
    write_network(small(), path)
    with h5py.File(path, "r+") as file:
        group = file[ROOT]
        del group["weights"]
        noise = np.random.default_rng(0).random(8)
        group.create_dataset("weights", data=noise, chunks=(8,), compression="gzip")
        chunk = group["weights"].id.get_chunk_info(0)
    data = bytearray(path.read_bytes())
    data[chunk.byte_offset : chunk.byte_offset + chunk.size] = b"\0" * chunk.size
    path.write_bytes(data)
    assert refusal(path).place == f"{ROOT}/weights"


def test_its_own_name_stays(tmp_path: Path) -> None:
    path = tmp_path / "renamed.hdf5"
    write_network(small(), path)
    assert read_network(path).name == "small"
