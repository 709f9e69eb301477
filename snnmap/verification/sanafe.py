"""Exported files for SANA-FE: the architecture, neurons on their cores, links to the right ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from snnmap.errors import InputError
from snnmap.hypergraph import Hypergraph
from snnmap.verification.truth import Truth

Array = np.ndarray[Any, Any]

_SHOWN = 5


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8") as file:
            for line in file:
                yield line.partition("#")[0].rstrip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(path, f"cannot be read: {error}") from None


def _window(truth: Truth) -> tuple[Array, Array]:
    """(first router int64[2], routers along x and y int64[2]) of the cores in use."""
    routers = truth.cores // np.array(truth.stored.profile.tile)
    low = routers.min(axis=0) if len(routers) else np.zeros(2, np.int64)
    high = routers.max(axis=0) if len(routers) else low
    return low, high - low + 1


def architecture_faults(path: Path, truth: Truth) -> Iterator[str]:
    """Faults of ``arch.yaml``: size of the mesh, cores of a tile, costs of the profile."""
    profile = truth.stored.profile
    costs, (_, shape) = profile.costs, _window(truth)
    pattern = re.compile(r"\s*(?:- )?(\w+): (.+)")
    said: dict[str, list[str]] = {}
    for line in _lines(path):
        found = pattern.fullmatch(line)
        if found:
            said.setdefault(found[1], []).append(found[2])
    route_energy, route_latency = costs.route_energy_pj or 0.0, costs.route_latency_ns or 0.0
    right: dict[str, float] = {"width": shape[0], "height": shape[1]}
    for directions, energy, latency in (
        ("east west", costs.hop_energy_x_pj, costs.hop_latency_x_ns),
        ("north south", costs.hop_energy_y_pj, costs.hop_latency_y_ns),
    ):
        for direction in directions.split():
            right[f"energy_{direction}_hop"] = (route_energy + (energy or 0.0)) * 1e-12
            right[f"latency_{direction}_hop"] = (route_latency + (latency or 0.0)) * 1e-9
    right["energy_message_out"] = route_energy * 1e-12
    right["latency_message_out"] = route_latency * 1e-9
    right["energy_process_spike"] = (costs.synapse_energy_pj or 0.0) * 1e-12
    for key, value in right.items():
        words = said.get(key, [])
        if len(words) != 1 or not _is_number(words[0], float(value)):
            yield f"{key} is {', '.join(words) or 'missing'}; {float(value):.9g} is right"
    counts = {"tile": int(shape.prod()), "core": int(np.prod(profile.tile))}
    for name, n in counts.items():
        if f"{name}[0..{n - 1}]" not in said.get("name", []):
            yield f"there must be {n} of {name}: {name}[0..{n - 1}]"


def _is_number(word: str, right: float) -> bool:
    try:
        return bool(np.isclose(float(word), right, rtol=1e-8, atol=1e-24))
    except ValueError:
        return False


def network_faults(path: Path, truth: Truth) -> Iterator[str]:
    """Neurons in their order, each on its core; links to the right neurons and to every core."""
    h, parts = truth.hypergraph, truth.stored.node_parts
    parts = parts[parts >= 0]
    names: dict[str, int] = {}
    chances: list[float] = []
    links: list[tuple[int, int]] = []
    places: dict[int, tuple[int, int, str]] = {}
    group = ""
    shapes = {
        "group": re.compile(r"    - name: (\w+)"),
        "neuron": re.compile(r"        - (\d+): \[poisson: (\S+)\]"),
        "link": re.compile(r"    - (\w+\.\d+) -> (\w+\.\d+): \[weight: \S+\]"),
        "place": re.compile(r'  - (\w+\.\d+): \[core: (\d+)\.(\d+), soma: "(\S+)"\]'),
    }
    for number, line in enumerate(_lines(path), 1):
        matches = ((kind, shape.fullmatch(line)) for kind, shape in shapes.items())
        kind, found = next(((k, m) for k, m in matches if m), ("", None))
        if found is None:
            continue
        words = found.groups()
        known = [names[w] for w in words[:2] if w in names]
        if kind == "group":
            group = words[0]
        elif kind == "neuron":
            if not _is_number(words[1], 0.0) and not re.fullmatch(r"[\d.e+-]+", words[1]):
                raise InputError(path, f"poisson is {words[1]!r}", place=f"line {number}")
            names[f"{group}.{words[0]}"] = len(names)
            chances.append(float(words[1]))
        elif kind == "link" and len(known) == 2:
            links.append((known[0], known[1]))
        elif kind == "place" and known:
            places[known[0]] = (int(words[1]), int(words[2]), words[3])
        else:
            yield f"line {number} names a neuron that does not exist"
    if not len(names) == len(chances) == h.n_nodes:
        yield f"{len(names):,} neurons; {h.n_nodes:,} take a core"
        return
    yield from _chance_faults(np.array(chances), h)
    yield from _core_faults(places, parts, truth)
    yield from _link_faults(np.array(links, np.int64).reshape(-1, 2), parts, truth)


def _chance_faults(chances: Array, h: Hypergraph) -> Iterator[str]:
    rates = np.zeros(h.n_nodes)
    np.maximum.at(rates, h.sources, np.repeat(h.weights, np.diff(h.source_offsets)))
    sure = (chances > 0) & (chances < 1) & (rates > 0)
    first = int(sure.argmax()) if sure.any() else -1
    step = float(chances[first] / rates[first]) if first >= 0 else np.inf
    right = np.minimum(1.0, np.where(rates > 0, rates, 0.0) * min(step, 1e300))
    for n in np.flatnonzero(~np.isclose(chances, right, rtol=1e-6, atol=1e-12))[:_SHOWN].tolist():
        yield f"neuron {n} fires with probability {chances[n]:g}; {right[n]:g} goes with its rate"


def _core_faults(
    places: dict[int, tuple[int, int, str]], parts: Array, truth: Truth
) -> Iterator[str]:
    low, shape = _window(truth)
    tile = np.array(truth.stored.profile.tile)
    taken = set()
    for n, part in enumerate(parts.tolist()):
        if n not in places:
            yield f"neuron {n} is on no core"
            continue
        router, core, unit = places[n]
        at_router = low + np.array(divmod(router, int(shape[1])))
        x, y = at_router * tile + np.array(divmod(core, int(tile[1])))
        if f"{x},{y}" != truth.places[part] or core >= tile.prod():
            yield f"neuron {n} is on core {x},{y}; its part is on {truth.places[part]}"
        if (part, unit) in taken:
            yield f"neuron {n} shares {unit} of its core with another"
        taken.add((part, unit))


def _link_faults(links: Array, parts: Array, truth: Truth) -> Iterator[str]:
    h, n_parts = truth.hypergraph, truth.n_parts
    offsets, axons = h.outgoing
    counts = np.diff(offsets)
    # every link is in a group of an axon of its source
    each = np.repeat(np.arange(len(links)), counts[links[:, 0]])
    within = np.arange(len(each)) - np.repeat(
        np.cumsum(counts[links[:, 0]]) - counts[links[:, 0]], counts[links[:, 0]]
    )
    groups = truth.groups[axons[offsets[links[each, 0]] + within]]
    rows = np.repeat(np.arange(h.n_groups), np.diff(h.group_offsets))
    keys = np.sort(rows * h.n_nodes + h.destinations)
    wanted = groups * h.n_nodes + links[each, 1]
    at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    right = np.zeros(len(links), bool)
    if len(keys):
        right[each[keys[at] == wanted]] = True
    for i in np.flatnonzero(~right)[:_SHOWN].tolist():
        yield f"the network has no link from neuron {links[i, 0]} to {links[i, 1]}"
    # every core that an axon reaches gets a link of that axon, or one for each destination
    sources = np.repeat(np.arange(h.n_nodes), counts)
    reached_offsets, reached = truth.reached
    n_reached = np.diff(reached_offsets)[truth.groups[axons]]
    starts = np.repeat(reached_offsets[:-1][truth.groups[axons]], n_reached)
    run = np.arange(len(starts)) - np.repeat(np.cumsum(n_reached) - n_reached, n_reached)
    keys = np.repeat(sources, n_reached) * n_parts + reached[starts + run]
    needed, least = np.unique(keys, return_counts=True)
    given, found = np.unique(links[:, 0] * n_parts + parts[links[:, 1]], return_counts=True)
    have = np.zeros(len(needed), np.int64)
    at = np.minimum(np.searchsorted(needed, given), max(len(needed) - 1, 0))
    known = needed[at] == given if len(needed) else np.zeros(len(given), bool)
    have[at[known]] = found[known]
    for i in np.flatnonzero(have < least)[:_SHOWN].tolist():
        neuron, place = int(needed[i]) // n_parts, truth.places[int(needed[i]) % n_parts]
        yield f"neuron {neuron} needs {least[i]} link(s) to core {place}; there are {have[i]}"
    every = int(np.diff(h.group_offsets)[truth.groups[axons]].sum())
    if len(links) not in (len(keys), every):
        yield f"{len(links):,} links; {every:,} are right, or {len(keys):,} with one a core"
