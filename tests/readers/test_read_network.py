"""`read_network`: which reader gets a file, and what is said when none does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from snnmap.errors import ConfigError, InputError, NetworkError
from snnmap.progress import Progress
from snnmap.readers import FORMATS, find_format, read_network
from snnmap.writers import write_network
from tests.readers.bytes_of import records
from tests.readers.refusing import refusal
from tests.small import from_rows, small

SHARED = Path(__file__).parents[3] / "shared" / "inputs"
SNN = records(3, [(0, [1, 2], 1.0), (2, [0], 1.0)])
AXH = records(3, [(1, [0, 1, 2], 1.0), (1, [2, 0], 1.0)])


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.snn", SNN, "snn"),
        ("A.SNN", SNN, "snn"),
        ("a.axh", AXH, "axh"),
        ("a", SNN, "snn"),
        ("a", AXH, "axh"),
        ("a.bin", SNN, "snn"),
        ("a.hgr", b"1 2\n1 2\n", "hgr"),
        ("a.txt", b"1 2\n1 2\n", "hgr"),
        ("a.snn", SNN[:-1], "snn"),  # damaged: its own reader explains
        ("a.axh", SNN, "axh"),
        ("a.hgr", b"\0", "hgr"),
        ("a.nir", b"\0", "nir"),
    ],
    ids=range(12),
)
def test_content_first_suffix_second(tmp_path: Path, name: str, data: bytes, expected: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    assert find_format(path).name == expected


def test_marked_files_are_recognised_whatever_their_name(tmp_path: Path) -> None:
    for name in ("net.h5", "net.nir", "net.snn", "net"):
        write_network(small(), tmp_path / name, format="native")
        assert find_format(tmp_path / name).name == "native"
        assert read_network(tmp_path / name).n_pins == small().n_pins


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nir/lif.nir", "nir"),
        ("nir/braille_rnn.nir", "nir"),
        ("lava/tiny.net", "lava"),
        ("sonata_300_pointneurons", "sonata"),
        ("sonata_300_pointneurons/circuit_config.json", "sonata"),
        ("hmetis/ibm01.hgr", "hgr"),
    ],
)
def test_files_of_others(tmp_path: Path, name: str, expected: str) -> None:
    path = SHARED / name
    if not path.exists():
        pytest.skip("../shared/inputs is not here: files of others are not recognised")
    assert find_format(path).name == expected
    if path.is_file() and path.suffix != ".json":
        (tmp_path / "renamed").symlink_to(path)
        assert find_format(tmp_path / "renamed").name == expected


def test_networks_of_layers(tmp_path: Path) -> None:
    text = 'name = "x"\nlayers = [{ type = "input", shape = [4] }, { type = "dense", units = 2 }]\n'
    for name in ("net.toml", "net"):
        (tmp_path / name).write_text(text)
        assert find_format(tmp_path / name).name == "toml"
        assert read_network(tmp_path / name).n_pins == 4 * 3
    (tmp_path / "net.toml").write_text("layers = [")
    assert "is not TOML" in refusal(tmp_path / "net.toml").problem
    (tmp_path / "net.toml").write_text('name = "x"\nlayers = [{ type = "dense", units = 2 }]')
    with pytest.raises(NetworkError, match="layer"):
        read_network(tmp_path / "net.toml")


PARTS = {"lenet": 17, "16k-model": 22, "64k-model": 124, "256k-model": 63, "64k-rand": 119}


@pytest.mark.parametrize("name", PARTS)
def test_networks_of_parts_of_others(name: str) -> None:
    path = SHARED.parent / "reference_suite" / "parts" / f"{name}.part.snn"
    if not path.exists():
        pytest.skip("../shared/reference_suite is not here: files of others are not read")
    h = read_network(path)
    assert h.n_nodes == PARTS[name]
    assert 0 < h.n_groups <= h.n_hedges
    assert h.n_hedges == read_network(path, grouped=False).n_hedges


def test_of_no_known_format(tmp_path: Path) -> None:
    path = tmp_path / "net.xyz"
    path.write_bytes(b"what is this?\n")
    text = str(refusal(path))
    assert "its content is of no known format" in text
    assert ".snn" in text
    (tmp_path / "folder").mkdir()
    assert "no known format" in refusal(tmp_path / "folder").problem


def test_not_files(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.snn").problem == "no such file"
    os.mkfifo(tmp_path / "pipe.snn")
    assert "not a regular file" in refusal(tmp_path / "pipe.snn").problem
    (tmp_path / "folder").mkdir()
    assert "folder" in refusal(tmp_path / "folder", format="snn").problem
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "cannot be read" in refusal(tmp_path / "loop").problem
    assert "cannot be read" in refusal(tmp_path / ("x" * 5000)).problem
    with pytest.raises(InputError, match="null byte"):
        read_network("a\0b.snn")


def test_unknown_formats_and_options(tmp_path: Path) -> None:
    path = tmp_path / "net.snn"
    path.write_bytes(SNN)
    with pytest.raises(ConfigError, match="unknown format 'gml5'; known are axh, "):
        read_network(path, format="gml5")
    with pytest.raises(ConfigError, match="no option 'sorted'; they have grouped"):
        read_network(path, sorted=True)


def test_format_goes_before_content(tmp_path: Path) -> None:
    path = tmp_path / "either.snn"
    path.write_bytes(records(3, [(1, [2, 0], 1.0)]))
    assert read_network(path).sources.tolist() == [1]
    assert read_network(path, format="axh").sources.tolist() == [2]


def test_progress_hears_of_all_bytes(tmp_path: Path) -> None:
    class Listener(Progress):
        total = done = 0.0

        def start(self, phase: str, total: float | None = None, unit: str = "") -> None:
            assert phase.startswith("reading net")
            assert unit == "B"
            self.total, self.done = total or 0, 0

        def advance(self, amount: float = 1, note: str = "") -> None:
            self.done += amount

    for name in ("net.snn", "net.axh", "net.hgr", "net.h5"):
        path = tmp_path / name
        write_network(from_rows(4, [([0], [1, 2], 1.0), ([3], [1], 2.0)]), path)
        listener = Listener()
        read_network(path, progress=listener)
        assert listener.total == path.stat().st_size, name
        assert abs(listener.total - listener.done) <= 10, name  # headers are not told of


def test_every_format_has_its_two_functions() -> None:
    for format_ in FORMATS.values():
        assert callable(format_.reader())
        assert not format_.recognises(Path(__file__), b"\0\1")
