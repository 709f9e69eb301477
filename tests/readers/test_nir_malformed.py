"""Bad NIR files, each named by its fault: one line, the place, what was expected, little memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.readers.refusing import refusal
from tests.readers.test_nir import box, dense
from tests.readers.test_nir_links import chain, lif, nir, write

Graph = h5py.Group


def put(group: Graph, name: str, value: object) -> None:
    if name in group:
        del group[name]
    group[name] = value


def huge(group: Graph, name: str, shape: tuple[int, ...]) -> None:
    """A dataset that claims a shape and stores nothing."""
    if name in group:
        del group[name]
    group.create_dataset(name, shape, "f4", chunks=tuple(min(n, 64) for n in shape))


def loop(graph: Graph) -> None:
    graph["nodes/lif/nodes"] = graph["nodes"]  # a graph that holds itself
    put(graph["nodes/lif"], "type", "NIRGraph")


FAULTS: dict[str, tuple[Callable[[Graph], object], str]] = {
    "type_missing": (lambda g: g["nodes/w"].__delitem__("type"), "node/nodes/w/type: is missing"),
    "type_is_a_number": (
        lambda g: put(g["nodes/w"], "type", 7),
        "node/nodes/w/type.*expected text",
    ),
    "type_is_unknown": (
        lambda g: put(g["nodes/w"], "type", "Quux"),
        r"unknown node types: 'w' \(Quux\)",
    ),
    "node_is_a_dataset": (lambda g: put(g, "nodes/w", 3), "node/nodes/w: expected a group"),
    "nodes_missing": (
        lambda g: g.__delitem__("nodes"),
        "node/nodes: expected a group, found nothing",
    ),
    "edge_to_nowhere": (
        lambda g: put(g, "edges", [["input", "w"], ["w", "x"]]),
        r"node/edges: edge 1 \('w' -> 'x'\) leads nowhere.*known are 'input'",
    ),
    "edge_from_nowhere": (lambda g: put(g, "edges", [["q.z", "w"]]), "there is no node 'q.z'"),
    "edges_of_three": (
        lambda g: put(g, "edges", [["a", "b", "c"]]),
        r"node/edges: has shape 1x3; expected",
    ),
    "edges_are_numbers": (
        lambda g: put(g, "edges", np.ones((2, 2))),
        "node/edges: holds float64; expected text",
    ),
    "weight_missing": (
        lambda g: g["nodes/w"].__delitem__("weight"),
        "node/nodes/w/weight: is missing",
    ),
    "weight_is_a_vector": (
        lambda g: put(g["nodes/w"], "weight", [1.0, 2.0]),
        "w/weight: has shape 2; expected",
    ),
    "shapes_disagree": (
        lambda g: put(g["nodes/w"], "weight", np.ones((3, 5))),
        "node 'w': weights of shape 3x5 take 5 values, but the input is 2",
    ),
    "neurons_disagree": (
        lambda g: put(g["nodes/w"], "weight", np.ones((4, 2))),
        "node 'lif': has parameters for 3 neurons, but 4 values",
    ),
    "parameters_disagree": (
        lambda g: put(g["nodes/lif"], "r", np.ones(2)),
        "node/nodes/lif: parameters disagree.*r 2",
    ),
    "input_shape_missing": (
        lambda g: g["nodes/input"].__delitem__("shape"),
        "nodes/input/shape: is missing",
    ),
    "input_shape_is_text": (
        lambda g: put(g["nodes/input"], "shape", "two"),
        "shape: holds object; expected numbers",
    ),
    "input_shape_negative": (
        lambda g: put(g["nodes/input"], "shape", [-2]),
        "node 'input': shape -2: expected",
    ),
    "input_shape_fractional": (
        lambda g: put(g["nodes/input"], "shape", [1.5]),
        "expected whole numbers",
    ),
    "input_shape_nan": (
        lambda g: put(g["nodes/input"], "shape", [np.nan]),
        "expected whole numbers",
    ),
    "input_shape_2_63": (
        lambda g: put(g["nodes/input"], "shape", [2**62]),
        "node 'input'.*at most",
    ),
    "input_of_two_billion": (
        lambda g: put(g["nodes/input"], "shape", [2**31 - 2]),
        "take 2 values",
    ),
    "weight_claims_2_60": (
        lambda g: huge(g["nodes/w"], "weight", (2**30, 2**30)),
        "take 1073741824 values",
    ),
    "group_holds_itself": (loop, "holds itself"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault(tmp_path: Path, fault: str) -> None:
    path = write(
        tmp_path / f"{fault}.nir",
        {"input": box(2), "w": dense(3, 2), "lif": lif(3)},
        [("input", "w"), ("w", "lif")],
    )
    spoil, text = FAULTS[fault]
    with h5py.File(path, "r+") as file:
        spoil(file["node"])
    error = refusal(path, format="nir")
    assert re.search(text, str(error)), str(error)


CONVOLUTION: dict[str, tuple[str, object, str]] = {
    "stride_0": ("stride", 0, "node '0': stride is 0; expected at least 1"),
    "stride_of_three": ("stride", [1, 2, 3], "0/stride: has 3 values; expected 1 or 2"),
    "padding_word": ("padding", "full", "0/padding: is 'full'; expected 'same'"),
    "padding_negative": ("padding", [-1, 0], "node '0': padding is -1"),
    "padding_2_62": ("padding", [2**62, 2**62], "node '0'"),
    "dilation_0": ("dilation", [0, 1], "dilation is 0"),
    "groups_3": ("groups", 3, "node '0'"),
    "groups_0": ("groups", 0, "node '0'"),
    "kernel_too_large": ("weight", np.ones((4, 2, 9, 9)), "node '0': kernel 9.*more than the"),
    "kernel_empty": ("weight", np.ones((4, 2, 0, 3)), "weight: has shape 4x2x0x3; expected"),
    "weight_of_three": ("weight", np.ones((4, 2, 3)), "weight: has shape 4x2x3; expected"),
    "channels_disagree": (
        "weight",
        np.ones((4, 3, 3, 3)),
        r"node '0': expects \(channels 3, height.*is 2x6x6",
    ),
    "input_shape_disagrees": ("input_shape", [5, 6], "says that its input is 5x6, but gets 6x6"),
}


@pytest.mark.parametrize("fault", CONVOLUTION)
def test_fault_of_a_convolution(tmp_path: Path, fault: str) -> None:
    conv = nir.Conv2d((6, 6), np.ones((4, 2, 3, 3)), 1, 0, 1, 1, np.zeros(4))
    path = chain(tmp_path / f"{fault}.nir", (2, 6, 6), conv, lif(1))
    name, value, text = CONVOLUTION[fault]
    with h5py.File(path, "r+") as file:
        put(file["node/nodes/0"], name, value)
    error = refusal(path)
    assert re.search(text, str(error)), str(error)


def test_cycle_that_no_input_leads_to(tmp_path: Path) -> None:
    path = write(
        tmp_path / "cyclic_without_input.nir",
        {"a": lif(1), "b": lif(1)},
        [("a", "b"), ("b", "a")],
    )
    assert "'a', 'b' form a cycle that no Input leads to" in str(refusal(path))


def test_cycle_without_neurons(tmp_path: Path) -> None:
    path = write(
        tmp_path / "cyclic_without_neurons.nir",
        {"input": box(2), "v": dense(2, 2), "w": dense(2, 2), "lif": lif(2)},
        [("input", "v"), ("v", "w"), ("w", "v"), ("w", "lif")],
    )
    assert "the cycle 'v' -> 'w' -> 'v' has no neurons in it" in str(refusal(path))


def test_step_that_nothing_leads_to(tmp_path: Path) -> None:
    pool = nir.SumPool2d(np.array([2, 2]), np.array([2, 2]), np.array([0, 0]))
    path = write(tmp_path / "no_input.nir", {"p": pool, "lif": lif(1)}, [("p", "lif")])
    assert "node 'p': nothing leads to it" in str(refusal(path))


def test_delay_that_is_no_time(tmp_path: Path) -> None:
    for i, value in enumerate([-1.0, np.nan, np.inf]):
        path = chain(tmp_path / f"delay_{i}.nir", (2,), nir.Delay(np.array([1.0, value])), lif(2))
        assert "node/nodes/0/delay" in str(refusal(path))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_truncated(tmp_path: Path, share: float) -> None:
    path = chain(tmp_path / "truncated.nir", (2,), dense(3, 2), lif(3))
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    refusal(path, format="nir")


def test_other_content(tmp_path: Path) -> None:
    path = tmp_path / "text.nir"
    path.write_text("not a network\n" * 100)
    assert "not an HDF5 file; expected a NIR graph" in str(refusal(path, format="nir"))
    with h5py.File(tmp_path / "other.nir", "w") as file:
        file["data"] = [1, 2, 3]
    assert "expected a NIR graph" in str(refusal(tmp_path / "other.nir", format="nir"))


def test_strings_that_would_crash_the_library(tmp_path: Path) -> None:
    """The heap of strings: an object of size 0 never ends, a huge one leaves the file."""
    path = chain(tmp_path / "heap.nir", (2,), dense(3, 2), lif(3))
    data = path.read_bytes()
    at = data.find(b"GCOL")
    for size in (0, 2**63, 2**64 - 1):
        spoiled = bytearray(data)
        spoiled[at + 16 : at + 18] = b"\0\0"  # the free object
        spoiled[at + 24 : at + 32] = size.to_bytes(8, "little")
        path.write_bytes(spoiled)
        assert f"byte {at:,}: the strings stored there are damaged" in str(refusal(path))
