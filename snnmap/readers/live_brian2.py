"""Brian2 networks: groups become populations, synapses become links."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from snnmap.errors import InputError
from snnmap.hypergraph import Hypergraph
from snnmap.readers._live import Neurons, Projected, from_projections, require

__all__ = ["from_brian2"]


def from_brian2(
    network: Any, *, weight: str | None = None, name: str = "brian2 network"
) -> Hypergraph:
    """The network of a Brian2 simulation; it need not have been run.

    Args:
        network: a ``brian2.Network`` (``magic_network``-style scripts: ``Network(collect())``), or
            an iterable of groups and synapses.
        weight: a variable of the synapses; synapses where it is exactly zero are no links.
        name: of the network.

    Returns:
        The network: PoissonGroup and SpikeGeneratorGroup are inputs, every other group of neurons
        a population of its name; delays of all pathways, in ms.

    Raises:
        EngineError: Brian2 is not installed.
        InputError: synapses that are not connected yet, or that lead to a group outside.
    """
    b2 = require("brian2", "brian2", "from_brian2")
    objects = list(network.objects) if isinstance(network, b2.Network) else network
    if not isinstance(objects, Iterable):
        raise InputError(name, f"got a {type(network).__name__}; expected a Network or its objects")
    objects = sorted(objects, key=lambda o: str(getattr(o, "name", "")))
    sources = (b2.PoissonGroup, b2.SpikeGeneratorGroup)
    synapses = [o for o in objects if isinstance(o, b2.Synapses)]
    groups: dict[str, Any] = {}
    for thing in [*objects, *(end for s in synapses for end in (s.source, s.target))]:
        whole = getattr(thing, "source", thing) if isinstance(thing, b2.Subgroup) else thing
        if isinstance(whole, (b2.NeuronGroup, *sources)):
            groups.setdefault(whole.name, whole)
    if not groups:
        raise InputError(name, "has no group of neurons; expected NeuronGroup objects")
    ordered = sorted(groups.values(), key=lambda g: (not isinstance(g, sources), g.name))
    return from_projections(
        name,
        [Neurons(g.name, len(g), isinstance(g, sources)) for g in ordered],
        [_projected(b2, s, weight, name) for s in synapses],
    )


def _projected(b2: Any, synapses: Any, weight: str | None, name: str) -> Projected:
    place = f"synapses {synapses.name!r}"
    if not getattr(synapses, "_connect_called", True):
        raise InputError(name, "are not connected yet; call connect() first", place=place)
    i, j = np.asarray(synapses.i[:], np.int64), np.asarray(synapses.j[:], np.int64)
    ends, starts = [], []
    for end in (synapses.source, synapses.target):
        whole = end.source if isinstance(end, b2.Subgroup) else end
        if not isinstance(whole, (b2.NeuronGroup, b2.PoissonGroup, b2.SpikeGeneratorGroup)):
            kind = type(whole).__name__
            raise InputError(name, f"link a {kind}; expected groups of neurons", place=place)
        ends.append(whole.name)
        starts.append(end.start if isinstance(end, b2.Subgroup) else 0)
    delays = []
    for pathway in synapses._pathways:  # each has its own delays, scalar or one a synapse
        values = np.asarray(pathway.delay[:] / b2.ms, float).ravel()
        delays.append(np.broadcast_to(values, i.shape) if len(values) in (1, len(i)) else values)
    keep = slice(None)
    if weight is not None:
        if weight not in synapses.variables:
            known = ", ".join(sorted(synapses.variables))
            raise InputError(name, f"have no variable {weight!r}; known are {known}", place=place)
        values = np.broadcast_to(np.asarray(getattr(synapses, f"{weight}_")[:]), i.shape)
        keep = values != 0
    return Projected(
        ends[0],
        ends[1],
        i[keep] + starts[0],
        j[keep] + starts[1],
        np.concatenate([d[keep] for d in delays]) if delays else None,
    )
