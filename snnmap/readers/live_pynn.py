"""PyNN networks, of any backend: populations and projections as they stand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from snnmap.errors import InputError
from snnmap.hypergraph import Hypergraph
from snnmap.readers._live import Neurons, Projected, from_projections, require

__all__ = ["from_pynn"]


def from_pynn(
    populations: Iterable[Any],
    projections: Iterable[Any],
    *,
    drop_zeros: bool = False,
    name: str = "PyNN network",
) -> Hypergraph:
    """The network of PyNN populations and projections.

    Args:
        populations: ``pyNN`` populations of any backend.
        projections: projections between them, between views of them, or between assemblies.
        drop_zeros: connections of weight zero are no links; by default they are.
        name: of the network.

    Returns:
        The network: spike sources are inputs; delays in ms.

    Raises:
        EngineError: PyNN is not installed.
        InputError: a projection between populations that were not given, labels used twice.
    """
    common = require("pyNN.common", "pyNN", "from_pynn")
    known: dict[Any, Neurons] = {}
    for population in populations:
        if not isinstance(population, common.BasePopulation):
            kind = type(population).__name__
            raise InputError(name, f"got a {kind} among the populations; expected a Population")
        whole = getattr(population, "grandparent", population)
        if whole not in known:
            is_input = not getattr(whole.celltype, "receptor_types", ())
            known[whole] = Neurons(str(whole.label), int(whole.size), is_input)
    links = []
    for projection in projections:
        links += _projected(common, projection, known, drop_zeros, name)
    return from_projections(name, known.values(), links)


def _projected(
    common: Any, projection: Any, known: dict[Any, Neurons], drop_zeros: bool, name: str
) -> list[Projected]:
    """One entry for each pair of populations (an assembly holds several)."""
    place = f"projection {str(projection.label)!r}"
    rows = projection.get(["weight", "delay"], format="list", multiple_synapses="last")
    table = np.array(rows, float).reshape(-1, 4)
    if drop_zeros:
        table = table[table[:, 2] != 0]
    sources, from_population = _places(common, projection.pre, known, name, place)
    targets, to_population = _places(common, projection.post, known, name, place)
    i, j, delays = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 3]
    out = []
    pairs = np.stack([from_population[i], to_population[j]], axis=1)
    names = [n.name for n in known.values()]
    for a, b in np.unique(pairs, axis=0):
        inside = (pairs == (a, b)).all(axis=1)
        stated = delays[inside & np.isfinite(delays)]
        out.append(
            Projected(
                names[a],
                names[b],
                sources[i[inside]],
                targets[j[inside]],
                stated if len(stated) else None,
            )
        )
    return out


def _places(
    common: Any, end: Any, known: dict[Any, Neurons], name: str, place: str
) -> tuple[Any, Any]:
    """For each cell of an end: (place in its population, number of the population)."""
    parts = end.populations if isinstance(end, common.Assembly) else [end]
    numbers = {whole: k for k, whole in enumerate(known)}
    places, which = [], []
    for part in parts:
        whole = getattr(part, "grandparent", part)
        if whole not in numbers:
            label = str(getattr(whole, "label", whole))
            raise InputError(
                name, f"leads to population {label!r}, which was not given", place=place
            )
        inside = np.arange(int(part.size))
        if whole is not part:
            inside = np.asarray(part.index_in_grandparent(inside), np.int64)
        places.append(inside)
        which.append(np.full(len(inside), numbers[whole]))
    return np.concatenate(places), np.concatenate(which)
