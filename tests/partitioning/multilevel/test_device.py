"""Devices of one process share compiled kernels, and what these may use."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from snnmap.partitioning.multilevel.device import Device
from tests.emulator.starting import KINDS, start_gpu


@pytest.mark.parametrize("kind", KINDS)
def test_shared_memory_once_granted_stays(kind: str) -> None:
    """A second device that needs less takes nothing from the first."""
    kernel = SimpleNamespace(max_dynamic_shared_size_bytes=48 << 10)
    for wanted, granted in ((100 << 10, 100 << 10), (60 << 10, 100 << 10), (120 << 10, 120 << 10)):
        start_gpu(Device, kind)._grant(kernel, wanted)
        assert kernel.max_dynamic_shared_size_bytes == granted
