"""Reservoirs linked on a GPU: the same bytes as on the CPU, checked neuron by neuron.

``kernels/reservoir.cu`` finds the same neighbours and draws the same random numbers, PCG64 entered
anywhere in its sequence. A GPU's logarithm may differ from the CPU's in its last bits; the kernel
therefore tells of every neuron whose choice hangs on a relative difference of 1e-12, far more than
such bits can make, and the CPU then links its block. That is rare: one neuron in ten millions or so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from snnmap import _csr
from snnmap.networks.reservoir import REACH, Array, CpuChooser, Ground

if TYPE_CHECKING:
    from snnmap.partitioning.multilevel.device import Device

_PAIR = 12  # bytes of a candidate in shared memory: squared distance or key, and id
_STATIC = 1024  # bytes that the kernel may hold besides
_MASK = (1 << 64) - 1


def fits(ground: Ground, device: Device) -> bool:
    """Whether a multiprocessor has room for the candidates of a neuron."""
    return _room(ground) * _PAIR + _STATIC <= device.shared_bytes


class GpuChooser:
    """Chooses on a GPU; see :class:`snnmap.networks.reservoir.Chooser`.

    Attributes:
        redone: blocks that the CPU linked, because of a doubtful neuron.
    """

    def __init__(self, ground: Ground, device: Device) -> None:
        self.ground, self.device, self.redone = ground, device, 0
        self._cpu = CpuChooser(ground)
        xp = device.xp
        numbers = np.array([ground.radius, ground.reservoir.sigma, REACH])
        with device.guard():
            self._kernel = device.kernel("reservoir", "choose_targets")
            self._numbers = xp.asarray(numbers)
            self._fixed = (
                xp.asarray(ground.cells),
                ground.grid,
                xp.asarray(ground.points),
                xp.asarray(ground.order.astype(np.int32)),
                xp.asarray(ground.direction[ground.order].astype(np.int8)),
                xp.asarray(ground.xyz),
            )

    def draw(self, rng: np.random.Generator, size: int) -> dict[str, Any]:
        """State of the generator before the noise of `size` neurons, which is passed over."""
        before = dict(rng.bit_generator.state)
        rng.bit_generator.advance(size * self.ground.near)  # type: ignore[attr-defined]
        after = rng.bit_generator.state  # half a word that is left over stays for the next integer
        keys = ("has_uint32", "uinteger")
        rng.bit_generator.state = {**after, **{key: before[key] for key in keys}}
        return before

    def choose(
        self, start: int, stop: int, noise: dict[str, Any], far: Array
    ) -> tuple[Array, Array]:
        """See :class:`snnmap.networks.reservoir.Chooser`."""
        g, size, ids, room = self.ground, stop - start, slice(start, stop), _room(self.ground)
        words = [noise["state"][key] for key in ("state", "inc")]
        stream = np.array([part for w in words for part in (w >> 64, w & _MASK)], np.uint64)
        offsets, xp = _csr.offsets_of(g.totals[ids]), self.device.xp
        with self.device.guard():
            out = xp.empty(max(int(offsets[-1]), 1), np.int32)
            counts, doubtful = xp.zeros(size, np.int64), xp.zeros(size, np.int32)
            rows = ((g.totals - g.n_far)[ids], _csr.offsets_of(g.n_far[ids]), far, offsets)
            args = (*self._fixed, start, g.near, self._numbers, room, xp.asarray(stream))
            args = (*args, *(xp.asarray(row) for row in rows), out, counts, doubtful)
            self.device.launch(self._kernel, size, args, shared=room * _PAIR)
            is_doubtful = bool(xp.asnumpy(doubtful).any())
            found = None if is_doubtful else (xp.asnumpy(out), xp.asnumpy(counts))
        if found is not None:
            return _csr.compact(offsets, found[0][: offsets[-1]], found[1])
        self.redone += 1
        rng = np.random.Generator(np.random.PCG64())
        rng.bit_generator.state = noise
        return self._cpu.choose(start, stop, self._cpu.draw(rng, size), far)


def _room(ground: Ground) -> int:
    """Candidates that a neuron may have at hand: a power of two."""
    most = max(ground.near + ground.near // 4 + 64, ground.near + int(ground.n_far.max()))
    return 1 << (most - 1).bit_length()
