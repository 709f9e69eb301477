"""ONNX files (``.onnx``): layers of activations as populations; needs the package onnx."""

from __future__ import annotations

from pathlib import Path

from snnmap.hypergraph import Hypergraph
from snnmap.progress import SILENT, Progress
from snnmap.readers.live_onnx import from_onnx

__all__ = ["read_onnx", "recognise"]


def recognise(path: Path, head: bytes) -> bool:
    """Whether this may be an ONNX model: by its suffix and its first field, a version number."""
    return path.suffix.lower() == ".onnx" and head[:1] == b"\x08"


def read_onnx(
    path: Path,
    *,
    progress: Progress = SILENT,
    input_shape: tuple[int, ...] | None = None,
    unknown: str = "error",
    drop_zeros: bool = False,
) -> Hypergraph:
    """Read an ONNX model; see :func:`snnmap.readers.live_onnx.from_onnx`.

    Args:
        path: the file.
        progress: told of the work.
        input_shape: of the (only) input without batch; needed if the model leaves it open.
        unknown: ``"error"`` refuses operators whose links cannot be told; ``"skip"`` takes them to
            work value by value.
        drop_zeros: weights of exactly zero are no links; by default they are.

    Raises:
        EngineError: the package onnx is not installed.
        InputError: the model is malformed, its shapes disagree or cannot be told.
    """
    return from_onnx(
        Path(path),
        input_shape=input_shape,
        unknown=unknown,
        drop_zeros=drop_zeros,
        progress=progress,
    )
