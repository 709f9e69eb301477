"""Arrays of any size arrive whole on the device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from snnmap.partitioning.multilevel import upload
from snnmap.partitioning.multilevel.device import Device
from snnmap.partitioning.multilevel.upload import Arrival, Uploader
from tests.emulator.starting import KINDS, start_gpu


@pytest.fixture(scope="module", params=KINDS)
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    return start_gpu(Device, request.param)


@pytest.mark.parametrize("tiny", [0, 128], ids=["buffers", "ring"])
@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 1000])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.bool_])
def test_arrays_arrive_through_small_buffers(
    device: Device, length: int, dtype: type, tiny: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("BUFFER_BYTES", 64), ("SMALL_BYTES", 8), ("_SLICE_BYTES", 24)):
        monkeypatch.setattr(upload, name, value)
    monkeypatch.setattr(upload, "TINY_BYTES", tiny)
    monkeypatch.setattr(upload, "RING_BYTES", 300)
    send, rng = Uploader(device.xp), np.random.default_rng(length)
    arrays = [rng.integers(-99, 99, (length, 2)).astype(dtype) for _ in range(5)]
    arrived = [send(array) for array in arrays]  # the buffers are used again in between
    for array, there in zip(arrays, arrived, strict=True):
        found = device.xp.asnumpy(there)
        assert found.dtype == array.dtype
        assert found.shape == array.shape
        assert (found == array).all()


def test_arrays_larger_than_a_buffer(device: Device) -> None:
    array = np.arange(upload.BUFFER_BYTES // 8 * 2 + 5)[::-1]
    assert (device.xp.asnumpy(Uploader(device.xp)(array)) == array).all()


@pytest.mark.parametrize("shape", [(1,), (3, 5), (700, 4)])
def test_arrays_come_back(device: Device, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(1).integers(-99, 99, shape)
    there = Uploader(device.xp)(array)
    arrival = Arrival(device.xp, there)
    there[:] = 0  # started later
    found = arrival.wait()
    assert found.dtype == array.dtype
    assert (found == array).all()
