"""Reservoirs straight to ``.snn`` files, block by block: memory does not grow with the links."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from snnmap import _csr
from snnmap.networks.layer_types import LAYERS
from snnmap.networks.model import Model
from snnmap.networks.rates import ConstantRates, LognormalRates, Rates, rates_from
from snnmap.networks.reservoir import Reservoir
from snnmap.progress import Progress
from snnmap.writers.atomic import whole_file

if TYPE_CHECKING:
    from snnmap.partitioning.multilevel.device import Device

Counts = tuple[int, int, int]
_PARAMETERS = ("neurons", "fan_out", "seed", "sigma", "long_range", "forward")


def reservoir_of(model: Model) -> tuple[Reservoir, Rates] | None:
    """The reservoir and rates of a model that is nothing but one reservoir, else None.

    Rates must not depend on the neuron's id, so that they can be drawn as axons come.
    """
    layers = model.values["layers"]
    if model.values["links"] or len(layers) != 1 or layers[0].get("type") != "reservoir":
        return None
    keys = LAYERS["reservoir"].read(layers[0], "reservoir")
    rates = rates_from(model.values["rates"], model.path.parent) or ConstantRates()
    own = keys["rates"] is not None or keys["from"] is not None
    if own or not isinstance(rates, ConstantRates | LognormalRates):
        return None
    return Reservoir(**{key: keys[key] for key in _PARAMETERS}), rates


def stream_reservoir(
    reservoir: Reservoir,
    rates: Rates,
    path: Path,
    progress: Progress,
    check: Callable[[Counts], None] = lambda counts: None,
    device: Device | None = None,
) -> Counts:
    """Write a reservoir as ``.snn``; the same bytes as building it and writing that.

    Args:
        reservoir: what to write.
        rates: of its axons, in order.
        path: the file.
        progress: told of every block.
        check: called with the counts before the file gets its name.
        device: a GPU to link neurons on; the bytes are the same.

    Returns:
        (nodes, h-edges, pins).

    Raises:
        OutputError: the file cannot be written.
        KeyboardInterrupt: the work was cancelled.
    """
    n = reservoir.neurons
    weights = rates.draw(np.arange(n), n).astype(np.float32)  # as many as there may be axons
    first, n_axons, n_pins = 0, 0, 0
    with whole_file(path) as temporary, temporary.open("wb") as file:
        file.write(np.array([n, 0], "<u4").tobytes())
        for counts, targets in reservoir.blocks(progress, device):
            if progress.cancelled:
                raise KeyboardInterrupt
            linked = np.flatnonzero(counts)
            block = weights[n_axons : n_axons + len(linked)]
            file.write(_records(first + linked, counts[linked], targets, block).data)
            first += len(counts)
            n_axons += len(linked)
            n_pins += len(targets) + len(linked)
        file.seek(4)
        file.write(np.array([n_axons], "<u4").tobytes())
        check((n, n_axons, n_pins))
    return n, n_axons, n_pins


def _records(sources: Any, counts: Any, targets: Any, weights: Any) -> Any:
    """u32 words: for each axon its number of targets, source, targets, weight."""
    offsets = _csr.offsets_of(counts + 3)
    starts = offsets[:-1]
    words = np.empty(int(offsets[-1]), "<u4")
    is_target = np.ones(len(words), bool)
    places = (starts, starts + 1, starts + 2 + counts)
    for place, value in zip(places, (counts, sources, weights.view(np.uint32)), strict=True):
        words[place] = value
        is_target[place] = False
    words[is_target] = targets
    return words
