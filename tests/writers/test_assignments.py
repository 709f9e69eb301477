"""Partition and placement files that other programs read and write."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnmap.errors import InputError
from snnmap.readers import lines
from snnmap.writers.assignments import (
    read_partition,
    read_placement,
    write_partition,
    write_placement,
)


@given(ids=st.lists(st.integers(-1, 2**31 - 2), min_size=1, max_size=20))
def test_partition_round_trip(tmp_path_factory: pytest.TempPathFactory, ids: list[int]) -> None:
    path = tmp_path_factory.mktemp("parts") / "partition.txt"
    write_partition(np.array(ids, np.int32), path)
    assert path.read_text() == "".join(f"{i}\n" for i in ids)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "LINES_A_STEP", 3)
        assert read_partition(path, len(ids)).tolist() == ids


PARTITION_FAULTS = {
    "empty": ("", 2, "is empty", None),
    "too-few": ("0\n1\n", 3, "is too short", None),
    "too-few-lines": ("0\n1\n%%\n", 3, "the file ends after part id 2 of 3", "line 3"),
    "too-many": ("0\n1\n2\n", 2, "content follows; expected the end after the part ids", "line 3"),
    "word": ("0\none\n2\n", 3, "part id 'one'; expected a whole number >= 0, or -1", "line 2"),
    "below-minus-one": ("0\n-2\n", 2, "part id '-2'", "line 2"),
    "two-a-line": ("0\n1 2\n", 2, "2 part ids; expected 1", "line 2"),
    "too-large": ("0\n2147483647\n", 2, "part id 2147483647", "line 2"),
    "decimal": ("0.0\n1\n", 2, "part id '0.0'", "line 1"),
}


@pytest.mark.parametrize("name", PARTITION_FAULTS)
def test_malformed_partitions_are_refused_with_the_line(tmp_path: Path, name: str) -> None:
    text, n_nodes, problem, place = PARTITION_FAULTS[name]
    path = tmp_path / f"{name}.txt"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_partition(path, n_nodes)
    assert problem in caught.value.problem
    assert caught.value.place == place


def test_placement_is_what_the_peer_reads(tmp_path: Path) -> None:
    path = tmp_path / "placement.bin"
    cores = np.array([[0, 3], [-1, 2**31 - 1]])
    write_placement(cores, path)
    assert path.read_bytes() == struct.pack("<Qiiii", 2, 0, 3, -1, 2**31 - 1)
    assert read_placement(path).tolist() == cores.tolist()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\1\0\0\0",
        struct.pack("<Qii", 2, 0, 3),
        struct.pack("<Qiii", 1, 0, 3, 4),
        b"\xff" * 16,
    ],
    ids=["empty", "short", "cut", "long", "count-2e64"],
)
def test_malformed_placements_are_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "placement.bin"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"empty|expected 8 and 8 for each of"):
        read_placement(path)
