"""Round trips through every format that can be written, and what each says it cannot hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from snnmap.errors import ConfigError, OutputError
from snnmap.hypergraph import Hypergraph
from snnmap.readers import read_network
from snnmap.writers import NETWORK_FORMATS, records, write_network
from tests import slow_hypergraph as slow
from tests.readers.bytes_of import records as bytes_of_records
from tests.small import SMALL_ROWS, from_rows, small, to_rows
from tests.strategies import hypergraphs


def through(
    h: Hypergraph, folder: Path, name: str, **options: object
) -> tuple[Hypergraph, list[str]]:
    notes = write_network(h, folder / name)
    assert [file.name for file in folder.iterdir()] == [name], "a temporary file is left"
    back = read_network(folder / name, **options)
    (folder / name).unlink()
    return back, notes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("round-trips")


@given(h=hypergraphs(max_size=3))
def test_native_keeps_everything(folder: Path, h: Hypergraph) -> None:
    axons = np.arange(1, h.n_hedges + 1)
    h = replace(h, name="naïve", axon_counts=axons if h.n_hedges % 2 else h.axon_counts)
    back, notes = through(h, folder, "net.h5")
    assert notes == []
    assert (back.n_nodes, back.name) == (h.n_nodes, h.name)
    assert (back.populations, back.projections) == (h.populations, h.projections)
    for name, value in vars(h).items():
        if isinstance(value, np.ndarray) and name in Hypergraph.__dataclass_fields__:
            assert np.array_equal(getattr(back, name), value), name
            assert getattr(back, name).dtype == value.dtype, name


def test_native_keeps_layers_and_delays_and_its_bytes(tmp_path: Path) -> None:
    write_network(small(), tmp_path / "a.h5")
    write_network(small(), tmp_path / "b.h5")
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()
    back = read_network(tmp_path / "a.h5")
    assert back.populations == small().populations
    assert back.projections == small().projections


def test_native_compresses(tmp_path: Path) -> None:
    n = 100_000
    h = Hypergraph.from_hedges(n, np.arange(n), np.arange(n + 1), np.arange(n), np.ones(n))
    write_network(h, tmp_path / "net.h5")
    assert (tmp_path / "net.h5").stat().st_size < h.destinations.nbytes
    assert np.array_equal(read_network(tmp_path / "net.h5").destinations, h.destinations)


@given(h=hypergraphs(min_sources=1, max_sources=1, populations=False))
def test_snn_keeps_h_edges(folder: Path, h: Hypergraph) -> None:
    back, notes = through(h, folder, "net.snn", grouped=False)
    assert (to_rows(back), back.n_nodes, notes) == (to_rows(h), h.n_nodes, [])


@given(h=hypergraphs(min_sources=1, populations=False))
def test_axh_keeps_h_edges(folder: Path, h: Hypergraph) -> None:
    back, notes = through(h, folder, "net.axh", grouped=False)
    assert (to_rows(back), back.n_nodes, notes) == (to_rows(h), h.n_nodes, [])


def test_snn_to_the_byte(tmp_path: Path) -> None:
    rows = [(3, [1, 2], 0.5), (0, [], 2.0), (3, [0, 1, 3], 0.0)]
    h = from_rows(4, [([s], d, w) for s, d, w in rows])
    write_network(h, tmp_path / "net.snn")
    assert (tmp_path / "net.snn").read_bytes() == bytes_of_records(4, rows)


@given(h=hypergraphs(min_sources=1))
def test_steps_of_any_size_give_the_same_file(folder: Path, h: Hypergraph) -> None:
    path = folder / "steps.axh"
    write_network(h, path)
    whole = path.read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "WORDS_A_STEP", 5)
        write_network(h, path)
    assert path.read_bytes() == whole
    path.unlink()


def _rounded(h: Hypergraph) -> list[tuple[frozenset[int], float]]:
    return [
        (sources | into, float(np.rint(weight)))
        for sources, into, weight, _ in slow.hedges(h)
        if sources | into
    ]


@given(h=hypergraphs(max_size=3))
def test_hgr_keeps_pins_whole_weights_and_sizes(folder: Path, h: Hypergraph) -> None:
    back, notes = through(h, folder, "net.hgr")
    expected = _rounded(h)
    assert [(into, w) for _, into, w, _ in slow.hedges(back)] == expected
    assert back.node_sizes.tolist() == h.node_sizes.tolist()
    wrong = np.abs(h.weights - np.rint(h.weights))
    assert any("rounded" in note for note in notes) == bool((wrong > 0).any())
    assert any("without pins" in note for note in notes) == (len(expected) < h.n_hedges)
    assert any("directions" in note for note in notes) == bool(len(h.sources))


def test_hgr_puts_sources_first(tmp_path: Path) -> None:
    rows = [([5], [0, 1], 3.0), ([2], [2, 4], 10.0**17), ([4, 0], [0, 1], 0.0)]
    write_network(from_rows(6, rows), tmp_path / "net.hgr")
    text = (tmp_path / "net.hgr").read_text()
    assert text == "3 6 1\n3 6 1 2\n100000000000000000 3 5\n0 1 5 2\n"
    back = read_network(tmp_path / "net.hgr", first_pin_is_source=True)
    assert to_rows(back)[0] == rows[0]


def test_hgr_without_weights_has_no_fmt(tmp_path: Path) -> None:
    write_network(from_rows(3, [([0], [1, 2], 1.0)]), tmp_path / "net.hgr")
    assert (tmp_path / "net.hgr").read_text() == "1 3\n1 2 3\n"


def test_hgr_says_how_much_was_rounded_and_scales(tmp_path: Path) -> None:
    h = from_rows(2, [([0], [1], 0.25), ([1], [0], 2.0)])
    notes = write_network(h, tmp_path / "net.hgr")
    assert "1 of 2 weights were rounded to whole numbers, by up to 0.25" in notes[-1]
    assert not any("round" in n for n in write_network(h, tmp_path / "net.hgr", weight_scale=4))
    assert (tmp_path / "net.hgr").read_text() == "2 2 1\n1 1 2\n8 2 1\n"


def test_notes_name_what_is_lost(tmp_path: Path) -> None:
    h = replace(small(), axon_counts=np.full(8, 2), node_sizes=np.full(8, 3))
    text = " ".join(write_network(h, tmp_path / "net.hgr"))
    for part in ("3 layers", "delays", "several axons", "directions"):
        assert part in text
    one_source = from_rows(3, [([0], [1], 1 / 3)], node_sizes=np.array([1, 1, 2]))
    notes = write_network(one_source, tmp_path / "net.snn")
    assert notes == ["node sizes are not kept", "1 of 1 weights were rounded to 32-bit floats"]


REFUSED: dict[str, tuple[Hypergraph, str, str]] = {
    "two-sources.snn": (from_rows(3, [([0, 1], [2], 1)]), "h-edge 0 has 2 sources", ".axh"),
    "no-source.snn": (from_rows(3, [([], [2], 1)]), "h-edge 0 has 0 sources", ".hgr"),
    "no-source.axh": (from_rows(3, [([1], [2], 1), ([], [2], 1)]), "h-edge 1 has no", ".h5"),
    "weight-1e300.snn": (from_rows(3, [([1], [2], 1e300)]), "largest 32-bit float", ".h5"),
    "weight-1e300.hgr": (from_rows(3, [([1], [2], 1e300)]), "exceeds 999", "weight_scale"),
    "net.xyz": (small(), "suffix '.xyz' tells no format", ".snn"),
    "missing/net.snn": (from_rows(3, [([0], [2], 1)]), "cannot be written", "No such file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    h, problem, remedy = REFUSED[name]
    with pytest.raises(OutputError) as caught:
        write_network(h, tmp_path / name)
    assert problem in str(caught.value)
    assert remedy in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_unknown_formats_and_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot write format 'nir'"):
        write_network(small(), tmp_path / "net.x", format="nir")
    with pytest.raises(ConfigError, match="'scale'; it has weight_scale"):
        write_network(small(), tmp_path / "net.hgr", scale=2)
    with pytest.raises(ConfigError, match="expected a finite number > 0"):
        write_network(small(), tmp_path / "net.hgr", weight_scale=float("nan"))


def test_format_goes_before_suffix(tmp_path: Path) -> None:
    write_network(small(), tmp_path / "net.txt", format="hgr")
    assert (tmp_path / "net.txt").read_text().startswith("8 8 1\n")
    counts = Counter(frozenset([*s, *d]) for s, d, _ in SMALL_ROWS)
    back = read_network(tmp_path / "net.txt")
    assert Counter(frozenset(d) for _, d, _ in to_rows(back)) == counts


def test_every_suffix_leads_to_one_format() -> None:
    suffixes = [s for _, known in NETWORK_FORMATS.values() for s in known]
    assert len(set(suffixes)) == len(suffixes)
