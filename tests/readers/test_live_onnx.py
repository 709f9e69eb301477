"""ONNX models: links against the reference evaluator, where the package onnx is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snnmap.errors import InputError
from snnmap.readers import read_network
from snnmap.readers.live_onnx import from_onnx
from tests.readers.naive_layers import links, one_axon_each

pytestmark = pytest.mark.filterwarnings("default")
onnx = pytest.importorskip("onnx")
helper = onnx.helper
FLOAT = onnx.TensorProto.FLOAT


def model(shape: tuple[Any, ...], nodes: list[Any], output: str, **constants: Any) -> Any:
    given = helper.make_tensor_value_info("x", FLOAT, shape)
    result = helper.make_empty_tensor_value_info(output)
    arrays = [onnx.numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    graph = helper.make_graph(nodes, "g", [given], [result], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def by_impulse(m: Any, shape: tuple[int, ...]) -> Any:
    """bool[inputs, outputs]: where an impulse arrives (positive weights)."""
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(m)
    n = int(np.prod(shape))
    rows = []
    for impulse in np.eye(n, dtype=np.float32):
        (out,) = evaluator.run(None, {"x": impulse.reshape(1, *shape)})
        rows.append(out.ravel() != 0)
    return np.array(rows)


def node(kind: str, *inputs: str, out: str = "y", **attributes: Any) -> Any:
    return helper.make_node(kind, list(inputs), [out], name=f"{kind.lower()}_{out}", **attributes)


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


CASES: dict[str, tuple[tuple[int, ...], list[Any], dict[str, Any]]] = {
    "conv": (
        (2, 6, 5),
        [node("Conv", "x", "w", strides=[2, 1], pads=[1, 0, 0, 2], dilations=[1, 2])],
        {"w": ones(3, 2, 3, 2)},
    ),
    "conv_groups": ((4, 5, 5), [node("Conv", "x", "w", group=2)], {"w": ones(4, 2, 3, 3)}),
    "conv_same_upper": (
        (1, 6, 6),
        [node("Conv", "x", "w", auto_pad="SAME_UPPER", strides=[2, 2])],
        {"w": ones(1, 1, 3, 3)},
    ),
    "conv_1d": ((2, 9), [node("Conv", "x", "w", strides=[2], pads=[1, 1])], {"w": ones(3, 2, 3)}),
    "conv_transpose": (
        (2, 3, 3),
        [node("ConvTranspose", "x", "w", strides=[2, 2], pads=[1, 1, 1, 1])],
        {"w": ones(2, 3, 3, 3)},
    ),
    "average_pool": (
        (2, 6, 6),
        [node("AveragePool", "x", kernel_shape=[2, 3], strides=[2, 2])],
        {},
    ),
    "global_pool": ((3, 4, 4), [node("GlobalAveragePool", "x")], {}),
    "gemm": (
        (4,),
        [node("Gemm", "x", "w", "b", transB=1)],
        {"w": ones(3, 4), "b": np.zeros(3, np.float32)},
    ),
    "matmul": ((2, 4), [node("MatMul", "x", "w")], {"w": ones(4, 3)}),
    "flatten": (
        (2, 3, 2),
        [node("Flatten", "x", out="f"), node("MatMul", "f", "w")],
        {"w": ones(12, 2)},
    ),
    "reshape_transpose": (
        (2, 6),
        [node("Reshape", "x", "s", out="r"), node("Transpose", "r", perm=[0, 3, 1, 2])],
        {"s": np.array([1, 2, 3, 2])},
    ),
    "shape_arithmetic": (
        (2, 3, 3),
        [
            node("Shape", "x", out="a", start=0, end=1),
            node("Concat", "a", "m", out="s", axis=0),
            node("Reshape", "x", "s"),
        ],
        {"m": np.array([-1])},
    ),
    "slice_pad": (
        (4, 5),
        [node("Slice", "x", "a", "b", "c", out="s"), node("Pad", "s", "p")],
        {
            "a": np.array([1]),
            "b": np.array([5]),
            "c": np.array([2]),
            "p": np.array([0, 1, 0, 0, 0, 2]),
        },
    ),
    "concat_add": (
        (2, 3),
        [node("Concat", "x", "x", out="c", axis=1), node("Add", "c", "k")],
        {"k": np.zeros((1, 4, 3), np.float32)},
    ),
    "gather": ((5,), [node("Gather", "x", "i", axis=1)], {"i": np.array([4, 0, 0])}),
    "reduce": ((2, 3, 4), [node("ReduceSum", "x", "a", keepdims=0)], {"a": np.array([2])}),
    "residual": (
        (3,),
        [node("MatMul", "x", "w", out="h"), node("Add", "h", "x")],
        {"w": np.eye(3, dtype=np.float32)[::-1].copy()},
    ),
    "resize": (
        (1, 2, 2),
        [node("Resize", "x", "", "s", mode="nearest")],
        {"s": np.array([1, 1, 2, 2], np.float32)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_links_equal_where_impulses_arrive(name: str) -> None:
    shape, nodes, constants = CASES[name]
    m = model((1, *shape), nodes, "y", **constants)
    network = from_onnx(m, drop_zeros=True)
    assert (links(network, "x", "y") == by_impulse(m, shape)).all()
    assert one_axon_each(network)


def network_of_layers() -> Any:
    nodes = [
        node("Conv", "x", "w", out="c", pads=[1, 1, 1, 1]),
        node("BatchNormalization", "c", "one", "one", "one", "one", out="n"),
        node("Relu", "n", out="r"),
        node("MaxPool", "r", out="p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", "p", out="f"),
        node("Gemm", "f", "v", out="logits"),
        node("Softmax", "logits", out="y"),
    ]
    one = np.ones(4, np.float32)
    return model(("N", 1, 6, 6), nodes, "y", w=ones(4, 1, 3, 3), v=ones(36, 3), one=one)


def test_activations_and_outputs_are_neurons(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(network_of_layers(), str(path))
    network = read_network(path)
    assert network.name == "net"
    assert [(p.name, p.shape, p.is_input) for p in network.populations] == [
        ("x", (1, 6, 6), True), ("relu_r", (4, 6, 6), False), ("y", (3,), False)
    ]  # fmt: skip
    assert links(network, "relu_r", "y").all()


def test_other_neurons_and_open_shapes() -> None:
    m = network_of_layers()
    assert len(from_onnx(m, neurons=()).populations) == 2
    m.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "height"
    with pytest.raises(InputError, match=r"input 'x': has shape \(N, 1, height, 6\)"):
        from_onnx(m)
    assert from_onnx(m, input_shape=(1, 6, 6)).n_nodes == 36 + 144 + 3


def test_unknown_operators_are_listed() -> None:
    nodes = [node("NonZero", "x", out="a"), node("Cast", "a", out="y", to=FLOAT)]
    with pytest.raises(InputError, match=r"links cannot be told: NonZero \(nonzero_a\)"):
        from_onnx(model((1, 3), nodes, "y"))


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"node 'matmul_y' \(MatMul\): cannot be followed|weight takes 5"
    ):
        from_onnx(model((1, 3), [node("MatMul", "x", "w")], "y", w=ones(5, 2)))
    with pytest.raises(InputError, match="takes 'z', which nothing before it gives"):
        from_onnx(model((1, 3), [node("Relu", "z")], "y"))
    with pytest.raises(InputError, match=r"expected an onnx\.ModelProto"):
        from_onnx(7)
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"\x08\x07garbage" * 9)
    with pytest.raises(InputError, match=r"bad\.onnx"):
        read_network(bad)
