"""A mapping for SANA-FE, an independent simulator of neuromorphic chips: two YAML files.

    arch.yaml   tiles (routers) of the used rectangle, their cores, hop costs of the profile
    snn.yaml    neurons that fire at the network's rates, links, and the core of each neuron

SANA-FE sends one message a spike to every core with a destination (unicast) along x, then y, so
its network energy is that of ``traffic.unicast``: a link costs E_route + E_hop and sending a
message the remaining E_route, since d links join d + 1 routers. The network has rates but no
weights, so neurons are spike generators and all links have weight 0. Costs that the profile does
not know are 0 and marked so. SANA-FE knows meshes of one kind of link: other chips are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from snnmap.errors import ConfigError

if TYPE_CHECKING:
    from snnmap.hardware import Costs
    from snnmap.mapping import Mapping

Array = np.ndarray[Any, Any]

FILES = ("arch.yaml", "snn.yaml")
MOST_LINKS = 5_000_000
"""Links are written one a line; more would make files of gigabytes that SANA-FE cannot load."""


def write_sanafe(
    mapping: Mapping, folder: Path, *, timestep_ms: float = 1.0, one_link_a_core: bool = False
) -> list[str]:
    """Write ``arch.yaml`` and ``snn.yaml`` into an existing folder.

    Args:
        mapping: placed on a mesh of one chip.
        folder: where to write.
        timestep_ms: a neuron fires in each time step with probability rate x time step.
        one_link_a_core: of each axon write only the first link into every core: the same messages
            and network energy with far fewer links (synapse counts are then not SANA-FE's).

    Returns:
        The names of the files.

    Raises:
        ConfigError: no placement, a chip that SANA-FE cannot describe, or too many links.
    """
    placement, profile = mapping.placement, mapping.profile
    if placement is None:
        raise ConfigError("the mapping is not placed; make a placement with snnmap place")
    if profile.topology != "mesh" or profile.n_chips > 1:
        raise ConfigError(
            f"profile {profile.name!r} is a {profile.topology} of {profile.n_chips} chip(s); "
            "SANA-FE knows meshes of one chip"
        )
    cores = np.asarray(placement.cores, np.int64)
    tile = np.array(profile.tile)
    routers = cores // tile
    origin = routers.min(axis=0, initial=int(routers.max(initial=0)))
    shape = (routers - origin).max(axis=0, initial=0) + 1
    links = _links(mapping, one_link_a_core=one_link_a_core)
    n_generators = int(mapping.metrics.sizes.max(initial=1))
    with (folder / FILES[0]).open("w") as file:
        file.writelines(_architecture(profile.name, profile.costs, shape, tile, n_generators))
    within = cores % tile
    addresses = [
        f"{x * shape[1] + y}.{k}"
        for (x, y), k in zip(
            (routers - origin).tolist(),
            (within[:, 0] * tile[1] + within[:, 1]).tolist(),
            strict=True,
        )
    ]
    with (folder / FILES[1]).open("w") as file:
        file.writelines(_network(mapping, links, addresses, timestep_ms))
    return list(FILES)


def _links(mapping: Mapping, *, one_link_a_core: bool) -> tuple[Array, Array, Array]:
    """(sources, destination offsets, destinations) of every axon of every source neuron."""
    h = mapping.hypergraph
    offsets, destinations = h.group_offsets, h.destinations
    if one_link_a_core:
        rows = np.repeat(np.arange(h.n_groups), np.diff(offsets))
        keys = rows * mapping.partition.n_parts + mapping.partition.parts[destinations]
        _, firsts = np.unique(keys, return_index=True)
        kept = np.sort(firsts)
        destinations = destinations[kept]
        offsets = np.searchsorted(rows[kept], np.arange(h.n_groups + 1))
    groups = np.repeat(h.hedge_groups, np.diff(h.source_offsets))
    counts = np.diff(offsets)[groups]
    total = int(counts.sum())
    if total > MOST_LINKS:
        raise ConfigError(
            f"{total:,} links are more than {MOST_LINKS:,}"
            + ("" if one_link_a_core else "; write one link a core (--one-link-a-core)")
        )
    within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    entries = np.repeat(offsets[:-1][groups], counts) + within
    return h.sources, np.concatenate([[0], np.cumsum(counts)]), destinations[entries]


def _architecture(
    name: str, costs: Costs, shape: Array, tile: Array, n_generators: int
) -> Iterator[str]:
    def cost(hop: float | None, unit: str) -> str:
        route = costs.route_energy_pj if unit == "e-12" else costs.route_latency_ns
        known = hop is not None and route is not None
        return f"{(hop or 0.0) + (route or 0.0):.9g}{unit}" + ("" if known else "  # not public")

    def alone(route: float | None, unit: str) -> str:
        return "0.0  # not public" if route is None else f"{route:.9g}{unit}"

    x_energy, y_energy = (cost(c, "e-12") for c in (costs.hop_energy_x_pj, costs.hop_energy_y_pj))
    x_delay, y_delay = (cost(c, "e-9") for c in (costs.hop_latency_x_ns, costs.hop_latency_y_ns))
    n_tiles, n_cores = int(shape[0] * shape[1]), int(tile[0] * tile[1])
    yield "architecture:\n"
    yield f"  name: {_word(name)}\n"
    yield "  attributes:\n"
    yield f"    topology: mesh\n    width: {shape[0]}\n    height: {shape[1]}\n"
    yield "    link_buffer_size: 16\n    sync_model: fixed\n    latency_sync: 0.0\n"
    yield f"  tile:\n    - name: tile[0..{n_tiles - 1}]\n      attributes:\n"
    for directions, energy, delay in (
        (("north", "south"), y_energy, y_delay),
        (("east", "west"), x_energy, x_delay),
    ):
        for direction in directions:
            yield f"        energy_{direction}_hop: {energy}\n"
            yield f"        latency_{direction}_hop: {delay}\n"
    yield f"      core:\n        - name: core[0..{n_cores - 1}]\n"
    yield "          attributes:\n            buffer_position: soma\n"
    yield "            buffer_inside_unit: false\n"
    yield f"            max_neurons_supported: {n_generators}\n"
    synapse = "0.0  # not public"
    if costs.synapse_energy_pj is not None:
        synapse = f"{costs.synapse_energy_pj:.9g}e-12"
    units: list[tuple[str, str, list[tuple[str, str]]]] = [
        ("axon_in", "in", [("energy_message_in", "0.0"), ("latency_message_in", "0.0")]),
        (
            "synapse",
            "synapses",
            [
                ("model", "current_based"),
                ("energy_process_spike", synapse),
                ("latency_process_spike", "0.0"),
            ],
        ),
        (
            "dendrite",
            "dendrites",
            [("model", "accumulator"), ("energy_update", "0.0"), ("latency_update", "0.0")],
        ),
        (
            "soma",
            f"generators[0..{n_generators - 1}]",
            [
                ("model", "input"),
                *(
                    (f"{what}_{when}", "0.0")
                    for when in ("access_neuron", "update_neuron", "spike_out")
                    for what in ("energy", "latency")
                ),
            ],
        ),
        (
            "axon_out",
            "out",
            [
                ("energy_message_out", alone(costs.route_energy_pj, "e-12")),
                ("latency_message_out", alone(costs.route_latency_ns, "e-9")),
            ],
        ),
    ]
    for unit, label, attributes in units:
        yield f"          {unit}:\n            - name: {label}\n              attributes:\n"
        for key, value in attributes:
            yield f"                {key}: {value}\n"


def _network(
    mapping: Mapping,
    links: tuple[Array, Array, Array],
    addresses: list[str],
    timestep_ms: float,
) -> Iterator[str]:
    h, parts = mapping.hypergraph, mapping.partition.parts
    sources, offsets, destinations = links
    rates = np.zeros(h.n_nodes)
    # an axon's weight is the rate of its neuron; a neuron with several axons fires at the largest
    np.maximum.at(rates, sources, np.repeat(h.weights, np.diff(h.source_offsets)))
    chances = np.minimum(1.0, rates * timestep_ms / 1000)
    names = _neuron_names(mapping)
    yield f"network:\n  name: {_word(h.name)}\n  groups:\n"
    last = ""
    for n, name in enumerate(names):
        group, _, index = name.partition(".")
        if group != last:
            yield f"    - name: {group}\n      attributes: []\n      neurons:\n"
            last = group
        yield f"        - {index}: [poisson: {chances[n]:.9g}]\n"
    yield "  edges:\n" if len(destinations) else "  edges: []\n"
    for i, source in enumerate(sources.tolist()):
        for d in destinations[offsets[i] : offsets[i + 1]].tolist():
            yield f"    - {names[source]} -> {names[d]}: [weight: 0]\n"
    yield "mappings:\n"
    taken = [0] * len(addresses)
    for n, part in enumerate(parts.tolist()):
        unit = f'"generators[{taken[part]}]"'
        yield f"  - {names[n]}: [core: {addresses[part]}, soma: {unit}]\n"
        taken[part] += 1


def _neuron_names(mapping: Mapping) -> list[str]:
    """``layer.index`` of each neuron; layers that have no name, or an equal one, get a number."""
    h = mapping.hypergraph
    names: list[str] = []
    used: set[str] = set()

    def extend(label: str, until: int) -> None:
        group, k = _word(label), 1
        while group in used:
            k += 1
            group = f"{_word(label)}_{k}"
        used.add(group)
        names.extend(f"{group}.{i}" for i in range(until - len(names)))

    for population in h.populations:
        if population.start > len(names):
            extend("neurons", population.start)
        if population.size:
            extend(population.name, population.stop)
    if h.n_nodes > len(names):
        extend("neurons", h.n_nodes)
    return names


def _word(text: str) -> str:
    """A name of letters, digits and underscores that YAML reads as text."""
    word = re.sub(r"\W", "_", text, flags=re.ASCII)
    return word if re.match(r"[A-Za-z]", word) else f"n_{word}"
