"""Damaged NIR, lava-dl and SONATA files: read or refused, whatever the HDF5 library does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.readers import test_lava, test_sonata
from tests.readers.test_fuzz_files import SECONDS
from tests.readers.test_nir import box, recurrent
from tests.readers.test_nir_links import lif, nir, write


def nir_file(folder: Path) -> Path:
    conv = nir.Conv2d((6, 6), np.ones((4, 2, 3, 3)), 1, 0, 1, 1, np.zeros(4))
    pool = nir.SumPool2d(np.array([2, 2]), np.array([2, 2]), np.array([0, 0]))
    flat = nir.Flatten({"input": np.array([4, 2, 2])}, 0, -1)
    nodes = {"input": box(2, 6, 6), "c": conv, "l": lif(4, 4, 4), "p": pool, "f": flat}
    edges = [("input", "c"), ("c", "l"), ("l", "p"), ("p", "f"), ("f", "r")]
    return write(folder / "network.nir", {**nodes, "r": recurrent(16)}, edges)


def lava_file(folder: Path) -> Path:
    return test_lava.write(
        folder / "network.net",
        test_lava.image(2, 4, 4),
        test_lava.conv((4, 2, 2), np.ones((4, 2, 3, 3))),
        {"type": "flatten", "shape": (1, 1, 16)},
        test_lava.dense(3, 16, delay=[1.0, 2.0, 3.0]),
        Ts=1,
    )


def sonata_file(folder: Path) -> Path:
    path = test_sonata.nodes(folder / "both.h5", "a", 4, model_type=["virtual"] * 4)
    columns = {"delay": [1.0, 2.0, 3.0], "syn_weight": [1.0, 0.0, 1.0]}
    return test_sonata.edges(path, "a", "a", [(0, 1), (1, 2), (3, 3)], g0=columns)


@pytest.mark.parametrize("make", [nir_file, lava_file, sonata_file])
def test_damaged_files_are_read_or_refused(
    tmp_path: Path, make: object, request: pytest.FixtureRequest
) -> None:
    assert callable(make)
    path = make(tmp_path)
    format = make.__name__.removesuffix("_file")
    command = [
        sys.executable,
        "-m",
        "tests.readers.fuzz_hdf5",
        format,
        str(path),
        str(SECONDS),
        "7",
    ]
    done = subprocess.run(
        command, cwd=request.config.rootpath, capture_output=True, text=True, timeout=SECONDS + 120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    n_read, n_refused = map(int, done.stdout.split())
    assert n_read > 0
    assert n_refused > 5
