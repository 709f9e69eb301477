"""What importers of live objects share: optional packages, explicit links, odd steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from snnmap.errors import EngineError, InputError, NetworkError
from snnmap.hypergraph import Hypergraph
from snnmap.networks.builder import Feed, NetworkBuilder, Signal
from snnmap.networks.relations import Relation, from_links
from snnmap.readers._steps import Shape, Step, check_links, times

Array = np.ndarray[Any, Any]
Delay = tuple[float, float]


def require(module: str, package: str, what: str) -> Any:
    """Import an optional package.

    Raises:
        EngineError: it is not installed; says what to install.
    """
    try:
        return import_module(module)
    except Exception as error:  # also one that does not run with the other packages here
        raise EngineError(
            f"{what} needs the package {package}, which cannot be imported here "
            f"({' '.join(str(error).split())}); install it: pip install {package}"
        ) from None


@dataclass(frozen=True)
class At(Step):
    """A step that is told the shape of its input, whatever shape the values come in."""

    shape: Shape
    step: Step

    def own_input(self) -> Shape | None:
        """See :class:`Step`."""
        return self.shape

    def output(self, shape: Shape) -> Shape:
        """See :class:`Step`."""
        if prod(shape) != prod(self.shape):
            raise NetworkError(f"expects {times(self.shape)}, but gets {times(shape)}")
        return self.step.output(self.shape)

    def apply(self, signal: Signal) -> Signal:
        """See :class:`Step`."""
        return self.step.apply(signal.reshape(self.shape))


@dataclass(frozen=True, eq=False)
class Linked(Step):
    """Any links: from input values ``sources`` to output values ``targets`` (flat, in pairs)."""

    sources: Array
    targets: Array
    shape: Shape

    def output(self, shape: Shape) -> Shape:
        """See :class:`Step`."""
        return self.shape

    def apply(self, signal: Signal) -> Signal:
        """See :class:`Step`."""
        size = prod(self.shape)
        return signal.through(from_links(self.sources, self.targets, signal.size, size), self.shape)


def moved(places: Array, shape: Shape, start: int = 0, size: int | None = None) -> Step:
    """Values that only move: output t is input ``places[t] - start``; others come from elsewhere.

    Args:
        places: integer array of the output's shape.
        shape: of the output.
        start: the first place of the input.
        size: how many values the input has.
    """
    flat = places.ravel() - start
    inside = flat >= 0 if size is None else (flat >= 0) & (flat < size)
    targets = np.flatnonzero(inside)
    return Linked(flat[targets], targets, shape)


@dataclass
class Neurons:
    """A population of a live network."""

    name: str
    size: int
    is_input: bool = False
    shape: Shape | None = None


@dataclass
class Projected:
    """Explicit links between two populations (positions in them), with delays in ms if known."""

    source: str
    target: str
    sources: Array
    targets: Array
    delays: Array | None = None


def from_projections(
    name: str, populations: Iterable[Neurons], projections: Iterable[Projected]
) -> Hypergraph:
    """The network of populations and explicit links; several links of a pair are one."""
    builder = NetworkBuilder(name)
    sizes: dict[str, int] = {}
    for p in populations:
        if p.name in sizes:
            raise InputError(name, f"two populations are named {p.name!r}; give each its own name")
        sizes[p.name] = p.size
        builder.population(p.name, p.shape or (p.size,), is_input=p.is_input)
    for link in projections:
        place = f"projection {link.source!r} -> {link.target!r}"
        for end in (link.source, link.target):
            if end not in sizes:
                known = ", ".join(map(repr, sizes)) or "none"
                raise InputError(
                    name,
                    f"population {end!r} is not in the network; known are {known}",
                    place=place,
                )
        n_sources, n_targets = sizes[link.source], sizes[link.target]
        _check_ids(name, place, link.sources, n_sources, "source")
        _check_ids(name, place, link.targets, n_targets, "target")
        try:
            check_links(len(link.sources))
        except NetworkError as error:
            raise InputError(name, str(error), place=place) from None
        relation: Relation = from_links(link.sources, link.targets, n_sources, n_targets)
        span = _span(name, place, link.delays)
        builder.connect(Signal((n_targets,), (Feed(link.source, relation, span),)), link.target)
    return builder.build()


def _check_ids(name: str, place: str, ids: Array, n: int, what: str) -> None:
    bad = np.flatnonzero((ids < 0) | (ids >= n))
    if len(bad):
        raise InputError(
            name, f"{what} {ids[bad[0]]} of link {bad[0]} is outside 0..{n - 1}", place=place
        )


def _span(name: str, place: str, delays: Array | None) -> Delay | None:
    if delays is None or not len(delays):
        return None
    low, high = float(np.min(delays)), float(np.max(delays))
    if not (0 <= low <= high < float("inf")):
        raise InputError(name, f"delays reach from {low} to {high} ms; expected >= 0", place=place)
    return low, high
