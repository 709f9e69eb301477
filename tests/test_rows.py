"""Rows of ids: contracted and closed up as by sets, however far apart the ids lie."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnmap import _csr, parallel

ROWS = st.lists(st.lists(st.integers(0, 39), max_size=30), max_size=12)


def flat(rows: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
    return offsets, np.array([i for row in rows for i in row], np.int32)


@given(
    rows=ROWS,
    clusters=st.lists(st.integers(0, 5000), min_size=40, max_size=40),
    narrow=st.booleans(),
)
def test_contracted_rows_are_sorted_sets(
    rows: list[list[int]], clusters: list[int], narrow: bool
) -> None:
    if narrow:
        clusters = [c % 130 for c in clusters]
    offsets, pins = flat(rows)
    found = _csr.contract(offsets, pins, np.array(clusters, np.int32), 5001)
    expected = flat([sorted({clusters[v] for v in row}) for row in rows])
    for mine, other in zip(found, expected, strict=True):
        assert mine.dtype == other.dtype
        assert mine.tolist() == other.tolist()


def test_every_place_of_a_word_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many rows on two threads, and every id alone and with all others."""
    monkeypatch.setenv("SNNMAP_NUM_THREADS", "2")
    ids = np.arange(700, dtype=np.int32)
    rows = [ids[::-1], *(ids[k : k + 1] for k in ids), *(ids[k:] for k in ids[::7])]
    rows = rows * 3
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    assert offsets[-1] > 1 << 16, "large enough for threads"
    found_offsets, found = _csr.contract(offsets, np.concatenate(rows), ids, len(ids))
    assert (found_offsets == offsets).all()
    assert (found == np.concatenate([np.sort(row) for row in rows])).all()


@given(rows=ROWS, data=st.data())
def test_gaps_are_closed_in_place(rows: list[list[int]], data: st.DataObject) -> None:
    kept = sorted(data.draw(st.sets(st.integers(0, len(rows) - 1)))) if rows else []
    offsets, pins = flat(rows)
    memory = pins.ctypes.data
    found_offsets, found = _csr.close_gaps(offsets, pins, np.array(kept, np.int64))
    expected_offsets, expected = flat([rows[k] for k in kept])
    assert found_offsets.tolist() == expected_offsets.tolist()
    assert found.tolist() == expected.tolist()
    assert found.ctypes.data == memory


def test_the_heap_can_be_trimmed_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    parallel.trim_heap()
    monkeypatch.setattr(parallel, "_heap_trimmer", lambda: None)
    parallel.trim_heap()


def test_the_heap_can_be_kept_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    library = SimpleNamespace(mallopt=lambda *what: asked.append(what))
    monkeypatch.setattr(parallel.ctypes, "CDLL", lambda name: library)
    parallel.keep_heap.__wrapped__()
    assert [threshold for threshold, _ in asked] == [-1, -3]  # of trimming, of mapping
    monkeypatch.setattr(parallel.ctypes, "CDLL", lambda name: SimpleNamespace())
    parallel.keep_heap.__wrapped__()
    assert len(asked) == 2


@pytest.mark.parametrize(("n_ids", "repeats"), [(40_000, 0), (40_000, 4000), (60, 0), (10**6, 3)])
def test_many_rows_are_grouped_by_their_ids(
    n_ids: int, repeats: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that mostly begin differently, rows that do not, far ids; some are empty, some equal."""
    monkeypatch.setattr(_csr, "_MANY_ROWS", 10)
    rng = np.random.default_rng(repeats)
    rows = [
        np.unique(rng.integers(v, n_ids, rng.integers(0, 4))) for v in range(20_000) if v < n_ids
    ]
    rows += [np.unique(rng.integers(0, n_ids, 3)) for _ in range(20_000 - len(rows))]
    for k in rng.integers(0, len(rows), repeats):
        rows[int(rng.integers(len(rows)))] = rows[k]
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    pins = np.concatenate(rows).astype(np.int32)
    known: dict[bytes, int] = {}
    expected = [known.setdefault(row.tobytes(), len(known)) for row in rows]
    groups, firsts = _csr.group_equal_rows(pins, offsets[:-1], np.diff(offsets))
    assert groups.tolist() == expected
    assert firsts.tolist() == np.unique(expected, return_index=True)[1].tolist()


@given(rows=ROWS)
def test_rows_are_sorted_only_if_they_must_be(rows: list[list[int]]) -> None:
    offsets, pins = flat(rows)
    found = _csr.sort_unique(offsets, pins.copy())
    expected = flat([sorted(set(row)) for row in rows])
    assert [array.tolist() for array in found] == [array.tolist() for array in expected]
    again = _csr.sort_unique(*found)
    assert again[1] is found[1]


@given(rows=ROWS)
def test_rows_are_summed_in_segments(rows: list[list[int]]) -> None:
    offsets, values = flat(rows)
    sums = _csr.sum_segments(offsets, values.astype(np.int64))
    assert sums.tolist() == [sum(row) for row in rows]
    assert _csr.has_single_rows(offsets) == all(len(row) == 1 for row in rows)
