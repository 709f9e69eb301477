"""Variants of a network description: other parameters, another seed, another size."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from snnmap.errors import NetworkError
from snnmap.networks.schema import suggest

_SIZES = ("units", "filters", "neurons", "cells")
_FANS = ("fan_in", "fan_out")
_WHOLE = re.compile(r"\{(\w+)\}")


def filled(value: Any, parameters: Mapping[str, Any]) -> Any:
    """A copy of `value` (tables, lists, text) with ``"{name}"`` replaced by the parameter.

    Text that is nothing but ``{name}`` becomes the parameter itself, of whatever type; inside
    longer text it is written out.

    Raises:
        NetworkError: an unknown parameter.
    """
    if isinstance(value, dict):
        return {key: filled(v, parameters) for key, v in value.items()}
    if isinstance(value, list):
        return [filled(v, parameters) for v in value]
    if not isinstance(value, str):
        return value
    for name in _WHOLE.findall(value):
        if name not in parameters:
            raise NetworkError(f"{value!r} names an unknown parameter; {suggest(name, parameters)}")
    alone = _WHOLE.fullmatch(value)
    if alone:
        return parameters[alone[1]]
    return _WHOLE.sub(lambda match: str(parameters[match[1]]), value)


def reseeded(values: dict[str, Any], seed: int) -> dict[str, Any]:
    """The description with every seed in it set to `seed`.

    Random layers and links without a seed of their own follow the description's, each in a stream
    of its own; those that state one get `seed` itself.
    """
    values = _with_seeds(values, seed)
    return {**values, "seed": seed}


def _with_seeds(value: Any, seed: int) -> Any:
    if isinstance(value, list):
        return [_with_seeds(v, seed) for v in value]
    if not isinstance(value, dict):
        return value
    new = {key: _with_seeds(v, seed) for key, v in value.items()}
    seeded = new.get("type") in ("reservoir", "circuit") or new.get("kind") == "lognormal"
    if seeded or new.get("seed") is not None:
        new["seed"] = seed
    return new


def scaled(values: dict[str, Any], factor: float) -> dict[str, Any]:
    """The description of a network `factor` times as large (a factor of 1 changes nothing).

    Multiplied, rounded and kept at least 1: units, filters, neurons and cells, and the shapes of
    flat inputs and populations; also fan_in and fan_out of random links, so that their densities
    stay. Left alone: images (so convolutional networks become wider or narrower, as by a width
    multiplier), the mean fan-out of reservoirs, the classes of the last layer if it is dense, and
    areas of populations, whose sides grow with the square root so that their densities stay.
    """
    if factor == 1:
        return values
    last = len(values["layers"]) - 1
    layers = [
        _scaled_layer(layer, factor, keep_units=i == last and layer.get("type") == "dense")
        for i, layer in enumerate(values["layers"])
    ]
    links = [_scaled_layer(link, factor) for link in values.get("links") or []]
    return {**values, "layers": layers, "links": links}


def _scaled_layer(
    layer: dict[str, Any], factor: float, *, keep_units: bool = False
) -> dict[str, Any]:
    new = dict(layer)
    kind = layer.get("type")
    for key in (*_SIZES, *(() if kind == "reservoir" else _FANS)):
        if type(layer.get(key)) is int and not (keep_units and key == "units"):  # no truth value
            new[key] = _times(layer[key], factor)
    shape = layer.get("shape")
    if kind in ("input", "population") and isinstance(shape, int):
        new["shape"] = _times(shape, factor)
    elif kind in ("input", "population") and isinstance(shape, list) and len(shape) == 1:
        new["shape"] = [_times(shape[0], factor)]
    if isinstance(layer.get("extent"), list):
        new["extent"] = [side * factor**0.5 for side in layer["extent"]]
    return new


def _times(number: int, factor: float) -> int:
    return max(1, round(number * factor)) if number else 0
