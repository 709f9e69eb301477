"""Numbers in text: the compiled parser against Python's."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnmap.progress import SILENT
from snnmap.readers.lines import NumberLines

WORDS = (
    st.floats().map(repr)
    | st.floats(0, 1000).map("{:.6f}".format)
    | st.floats().map("{:.3e}".format)
    | st.integers(-(10**30), 10**30).map(str)
    | st.text("0123456789+-.eE", min_size=1, max_size=12)
    | st.sampled_from(
        ["1e", "e5", ".", "-", "+.5", "5.", "1e+", "1e400", "0x1", "1_0", "nan", "inf"]
    )
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lines")


@given(words=st.lists(WORDS, min_size=1, max_size=20), separator=st.sampled_from(" ,;\t"))
def test_numbers_are_what_python_reads(folder: Path, words: list[str], separator: str) -> None:
    path = folder / "numbers"
    path.write_text(separator.join(words) + "\n")
    lines = NumberLines(path, SILENT, separator=separator)
    [(offsets, values)] = lines.steps(1, "line")
    assert offsets.tolist() == [0, len(words)]
    found = lines.numbers(np.arange(len(words)))
    for word, whole, number in zip(words, values.tolist(), found.tolist(), strict=True):
        try:
            expected = float(word) if "_" not in word else math.nan
        except ValueError:
            expected = math.nan
        assert number == expected or (math.isnan(number) and math.isnan(expected)), word
        if word.isdigit() and len(word) <= 18:
            assert whole == int(word)
        else:
            assert whole < 0


def test_comments_of_two_kinds(folder: Path) -> None:
    path = folder / "comments"
    path.write_text("# 1\n% 2\n3 # 4\n")
    [(_, values)] = NumberLines(path, SILENT, comment="#").some(9)
    assert values.tolist()[0] == 3
    assert len(values) == 3
