"""The types of layers and links a model file knows: their keys, and what each does to signals."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from snnmap.errors import NetworkError
from snnmap.networks import builder as nb
from snnmap.networks import layers, relations, schema
from snnmap.networks.builder import Signal
from snnmap.networks.connectors import random_links
from snnmap.networks.schema import Keys

Table = Mapping[str, Any]

_RANDOM: dict[str, tuple[schema.Check, Any]] = {
    "probability": (schema.share, None),
    "fan_in": (schema.count_or_zero, None),
    "fan_out": (schema.count_or_zero, None),
    "seed": (schema.count_or_zero, None),
}
_COMMON: dict[str, tuple[schema.Check, Any]] = {
    "type": (schema.text, None),
    "name": (schema.text, None),
    "rates": (schema.anything, None),
}
_FED: dict[str, tuple[schema.Check, Any]] = {
    **_COMMON,
    "from": (schema.names, None),
    "neurons": (schema.flag, True),
    "delay_ms": (schema.delay, None),
}
_SILENT: dict[str, tuple[schema.Check, Any]] = {**_FED, "neurons": (schema.flag, False)}
_WINDOW: dict[str, tuple[schema.Check, Any]] = {
    **_FED,
    "stride": (schema.counts, 1),
    "padding": (schema.padding, "valid"),
    "dilation": (schema.counts, 1),
}

LAYERS: dict[str, Keys] = {
    "input": Keys({"shape": schema.shape}, _COMMON),
    "population": Keys({"shape": schema.shape}, {**_COMMON, "extent": (schema.extent, None)}),
    "conv": Keys(
        {"filters": schema.count, "kernel": schema.counts},
        {**_WINDOW, "groups": (schema.count, 1)},
    ),
    "depthwise": Keys({"kernel": schema.counts}, {**_WINDOW, "multiplier": (schema.count, 1)}),
    "pool": Keys(
        {"kernel": schema.counts},
        {**_WINDOW, "stride": (schema.counts, None), "ceil_mode": (schema.flag, False)},
    ),
    "global-pool": Keys({}, _FED),
    "dense": Keys({"units": schema.count_or_zero}, _FED),
    "flatten": Keys({}, {**_SILENT, "start": (schema.whole, 0), "end": (schema.whole, -1)}),
    "add": Keys({}, _SILENT),
    "concat": Keys({}, {**_SILENT, "axis": (schema.whole, None)}),
    "one-to-one": Keys({}, {**_FED, "units": (schema.count_or_zero, None)}),
    "random": Keys(
        {"units": schema.count_or_zero},
        {**_FED, **_RANDOM},
    ),
    "recurrent": Keys(
        {"units": schema.count_or_zero},
        {**_FED, **_RANDOM, "self_connections": (schema.flag, True)},
    ),
    "circuit": Keys(
        {"cells": schema.count},
        {**_COMMON, "rent": (schema.share, 0.65), "seed": (schema.count_or_zero, 0)},
    ),
    "reservoir": Keys(
        {"neurons": schema.count, "fan_out": schema.non_negative},
        {
            **_COMMON,
            "from": (schema.names, None),
            "delay_ms": (schema.delay, None),
            "seed": (schema.count_or_zero, 192),
            "sigma": (schema.positive, 0.01),
            "long_range": (schema.share, 0.01),
            "forward": (schema.share, 0.9),
            "input_probability": (schema.share, 0.1),
        },
    ),
}
"""Keys of every type of layer."""

LINK = Keys(
    {"from": schema.text, "to": schema.text},
    {
        "type": (schema.one_of("dense", "one-to-one", "chain", "random", "distance"), "dense"),
        "sigma": (schema.positive, None),
        **_RANDOM,
        "self_connections": (schema.flag, True),
        "delay_ms": (schema.delay, None),
    },
)
MODEL = Keys(
    {"name": schema.text, "layers": schema.anything},
    {
        "description": (schema.text, ""),
        "source": (schema.text, ""),
        "stand_in": (schema.flag, False),
        "profile": (schema.text, None),
        "layout": (schema.one_of("hwc", "chw"), "hwc"),
        "seed": (schema.count_or_zero, 0),
        "rates": (schema.anything, None),
        "links": (schema.anything, []),
    },
)


RULES = ("probability", "fan_in", "fan_out")
"""How random links are drawn: exactly one of these is given."""

JOINING = ("add", "concat", "dense", "random", "recurrent", "one-to-one", "reservoir")
"""Layers that take several inputs; for all but concat each input feeds the neurons by itself."""


def connect_pairs(keys: Table, kind: str, n: int, m: int, seed: int) -> relations.Relation:
    """Links between n and m neurons of a type of `LINK` that needs no places.

    Raises:
        NetworkError: rules that do not fit the type, see :func:`random_links`.
    """
    rules = {rule: keys[rule] for rule in RULES}
    given = [rule for rule in RULES if rules[rule] is not None]
    if kind != "random" and given:
        raise NetworkError(f'{kind} links take no {given[0]}; expected type = "random"')
    if kind == "one-to-one":
        return _one_to_one(n, m)
    if kind == "chain":
        if n != m:
            raise NetworkError(f"a chain needs one population, not {n} and {m} neurons")
        return relations.chain(n)
    if kind == "dense" and keys["self_connections"]:
        return relations.dense(n, m)
    if kind == "dense":
        rules["probability"] = 1.0
    return random_links(n, m, **rules, seed=seed, allow_self=keys["self_connections"])


def _one_to_one(n: int, m: int) -> relations.Relation:
    if n != m:
        warnings.warn(
            f"one-to-one links between {n} and {m} neurons: only {min(n, m)} are made", stacklevel=2
        )
    return relations.one_to_one(n, m)


def _conv(sources: list[Signal], keys: Table, layout: layers.Layout) -> Signal:
    (source,) = sources
    names = ("filters", "kernel", "stride", "padding", "dilation", "groups")
    relation, shape = layers.conv(source.shape, **{k: keys[k] for k in names}, layout=layout)
    return source.through(relation, shape)


def _depthwise(sources: list[Signal], keys: Table, layout: layers.Layout) -> Signal:
    _, channels = layers.split_channels(sources[0].shape, layout)
    filters = channels * keys["multiplier"]
    return _conv(sources, {**keys, "filters": filters, "groups": channels}, layout)


def _pool(sources: list[Signal], keys: Table, layout: layers.Layout) -> Signal:
    (source,) = sources
    names = ("kernel", "stride", "padding", "dilation", "ceil_mode")
    relation, shape = layers.pool(source.shape, **{k: keys[k] for k in names}, layout=layout)
    return source.through(relation, shape)


def _global_pool(sources: list[Signal], keys: Table, layout: layers.Layout) -> Signal:
    return sources[0].through(*layers.global_pool(sources[0].shape, layout=layout))


def _dense(sources: list[Signal], keys: Table, layout: layers.Layout) -> Signal:
    units = keys["units"]
    layers.check_size(units)
    return nb.add([s.through(relations.dense(s.size, units), (units,)) for s in sources])


def _random(sources: list[Signal], keys: Table, layout: layers.Layout) -> Signal:
    units, seed = keys["units"], keys["seed"]
    layers.check_size(units)
    rules = {rule: keys[rule] for rule in RULES}
    return nb.add(
        [
            s.through(random_links(s.size, units, **rules, seed=seed + i), (units,))
            for i, s in enumerate(sources)
        ]
    )


def _to_each(sources: list[Signal], keys: Table, layout: layers.Layout) -> Signal:
    units = keys["units"]
    shape = sources[0].shape if units is None else (units,)
    return nb.add([s.through(_one_to_one(s.size, prod(shape)), shape) for s in sources])


def _flatten(sources: list[Signal], keys: Table, layout: layers.Layout) -> Signal:
    return sources[0].reshape(layers.flatten_shape(sources[0].shape, keys["start"], keys["end"]))


def _add(sources: list[Signal], keys: Table, layout: layers.Layout) -> Signal:
    return nb.add(sources)


def _concat(sources: list[Signal], keys: Table, layout: layers.Layout) -> Signal:
    axis = keys["axis"]
    if axis is None:  # the channels
        axis = -1 if layout == "hwc" else 0
    return nb.concat(sources, axis)


OPERATORS: dict[str, Callable[[list[Signal], Table, layers.Layout], Signal]] = {
    "conv": _conv,
    "depthwise": _depthwise,
    "pool": _pool,
    "global-pool": _global_pool,
    "dense": _dense,
    "recurrent": _dense,
    "random": _random,
    "one-to-one": _to_each,
    "flatten": _flatten,
    "add": _add,
    "concat": _concat,
}
"""From (input signals, keys, layout) to the signal a layer gives."""
