"""Networks that live in other libraries, brought over without a file.

    from_nir(graph)                          a graph of the nir package
    from_torch(module, sample)               snnTorch, Norse, SpikingJelly, sinabs, own neurons
    from_brian2(network)                     Brian2
    from_pynn(populations, projections)      PyNN, any backend
    from_nengo(model)                        Nengo
    from_onnx(model)                         ONNX, activations as neurons

Each library is imported when its function is called; if it is missing, the error says what to
install.
"""

from __future__ import annotations

from typing import Any

from snnmap.errors import InputError
from snnmap.hypergraph import Hypergraph
from snnmap.readers._hdf5 import Fields
from snnmap.readers.live_brian2 import from_brian2
from snnmap.readers.live_nengo import from_nengo
from snnmap.readers.live_onnx import from_onnx
from snnmap.readers.live_pynn import from_pynn
from snnmap.readers.live_torch import from_torch
from snnmap.readers.nir import from_fields

__all__ = ["from_brian2", "from_nengo", "from_nir", "from_onnx", "from_pynn", "from_torch"]


def from_nir(graph: Any, *, name: str = "NIR graph", **options: Any) -> Hypergraph:
    """The network of a ``nir.NIRGraph``, as exporters of frameworks give it.

    Args:
        graph: a node of the package nir, or its ``to_dict()``.
        name: of the network.
        options: as for :func:`snnmap.readers.nir.read_nir`.

    Raises:
        InputError: shapes disagree or cannot be told; names the node.
    """
    fields = graph if isinstance(graph, dict) else getattr(graph, "to_dict", lambda: None)()
    if not isinstance(fields, dict):
        raise InputError(name, f"got a {type(graph).__name__}; expected a nir.NIRGraph")
    return from_fields(Fields(name, fields), name=name, **options)
