"""Live NIR graphs, and what is said when a library is missing."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snnmap.errors import EngineError, InputError
from snnmap.readers import live, read_network
from tests.readers.naive_layers import links
from tests.readers.test_nir import box, dense, recurrent
from tests.readers.test_nir_links import lif, nir, write


def test_nir_graph_equals_its_file(tmp_path: Path) -> None:
    conv = nir.Conv2d((5, 5), np.ones((2, 1, 3, 3)), 1, "same", 1, 1, np.zeros(2))
    nodes = {
        "input": box(1, 5, 5),
        "c": conv,
        "l": lif(2, 5, 5),
        "f": nir.Flatten({"input": np.array([2, 5, 5])}, 0),
    }
    nodes |= {"w": dense(3, 50), "g": recurrent(3)}
    edges = [("input", "c"), ("c", "l"), ("l", "f"), ("f", "w"), ("w", "g")]
    network = live.from_nir(nir.NIRGraph(nodes, edges, type_check=False))
    stored = read_network(write(tmp_path / "n.nir", nodes, edges))
    assert network.populations == stored.populations
    assert (network.destinations == stored.destinations).all()
    assert links(network, "l", "g.lif").all()


def test_nir_graph_mistakes() -> None:
    with pytest.raises(InputError, match=r"expected a nir\.NIRGraph"):
        live.from_nir(3)
    graph = nir.NIRGraph({"i": box(2), "w": dense(1, 3)}, [("i", "w")], type_check=False)
    with pytest.raises(InputError, match="take 3 values"):
        live.from_nir(graph)


@pytest.mark.parametrize(
    ("function", "arguments", "package"),
    [
        (live.from_torch, (None, None), "torch"),
        (live.from_brian2, ([],), "brian2"),
        (live.from_pynn, ([], []), "pyNN"),
        (live.from_nengo, (None,), "nengo"),
        (live.from_onnx, (None,), "onnx"),
    ],
)
def test_missing_library(
    monkeypatch: pytest.MonkeyPatch, function: Any, arguments: tuple[Any, ...], package: str
) -> None:
    real = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {name!r}")
        return real(name, *args, **kwargs)

    for name in [n for n in sys.modules if n.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_Hidden(package), *sys.meta_path])
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(EngineError, match=f"install it: pip install {package}"):
        function(*arguments)


class _Hidden:
    """Finds nothing under one name, so that an installed package looks absent."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.split(".")[0] == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}")
