"""A mapping read back from its folder: for `verify`, `plot` and `simulate`.

`read_mapping` needs no network: parts, cores, profile, axon tables and what was claimed of them.
`snnmap.mapping.restore_mapping(stored, network)` measures and checks everything anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from snnmap.errors import InputError, SnnmapError
from snnmap.hardware import Costs, HardwareProfile, Provenance
from snnmap.hypergraph import Hypergraph, Population
from snnmap.limits import Limits
from snnmap.partitioning.result import Partition
from snnmap.placement import Placement
from snnmap.readers._hdf5 import Fields, open_hdf5

Array = np.ndarray[Any, Any]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class StoredMapping:
    """What ``mapping.h5`` says, checked for form but not for truth.

    Attributes:
        path: of the file.
        about_network: name, nodes, hyperedges, pins, source, options, sha256, content_sha256.
        profile: the chip as it was when the mapping was made.
        limits: what each part had to respect.
        settings: algorithm, preset, engine, seed, config, overrides, placer, refine, connectivity.
        node_parts: int32[n_nodes], part of each node of the network, -1 for inputs off the chip.
        cores: int32[n_parts, 2], or None if not placed.
        tables: the other arrays by their name in the file.
        populations: of the network.
    """

    path: Path
    about_network: dict[str, Any]
    profile: HardwareProfile
    limits: Limits
    settings: dict[str, Any]
    node_parts: Array
    cores: Array | None
    tables: dict[str, Array]
    populations: tuple[Population, ...] = ()

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.tables["parts/neurons"])

    @property
    def partition(self) -> Partition:
        """The partition of the nodes that take a core."""
        s = self.settings
        return Partition(
            parts=self.node_parts[self.node_parts >= 0],
            n_parts=self.n_parts,
            algorithm=s["algorithm"],
            engine=s["engine"],
            seed=s["seed"],
            complete=s["complete"],
            config=s["config"],
        )

    @property
    def placement(self) -> Placement:
        """The placement.

        Raises:
            InputError: the mapping was not placed (``snnmap partition`` made it).
        """
        if self.cores is None:
            raise InputError(self.path, "holds no placement; make one with snnmap place")
        s = self.settings
        return Placement(
            cores=self.cores,
            placer=s["placer"],
            start=s["start"],
            refine=s["refine"],
            seed=s["seed"],
            engine=s.get("placement_engine", "cpu"),
            joint=s.get("joint", False),
        )

    @property
    def part_graph(self) -> Hypergraph:
        """The hypergraph of parts, rebuilt from the axon tables."""
        t = self.tables
        sources = t["axons/sources"]
        counts = np.diff(t["axons/source_offsets"])
        placed = self.node_parts[sources]
        inside = placed >= 0
        axons = np.repeat(np.arange(len(counts)), counts)[inside]
        offsets = np.concatenate([[0], np.cumsum(np.bincount(axons, minlength=len(counts)))])
        groups = np.repeat(
            np.arange(len(t["groups/axon_offsets"]) - 1), np.diff(t["groups/axon_offsets"])
        )
        whole = Hypergraph.from_groups(
            self.n_parts,
            t["groups/part_offsets"],
            t["groups/parts"],
            groups,
            placed[inside],
            t["axons/weight"],
            source_offsets=offsets,
            axon_counts=t["axons/count"],
            node_sizes=t["parts/neurons"],
            name=self.about_network["name"],
        )
        return whole.contract(np.arange(self.n_parts, dtype=np.int32))

    def check_network(self, network: Hypergraph) -> None:
        """Refuse a network that is not the one that was mapped.

        Args:
            network: with shared destination sets stored once (:meth:`Hypergraph.grouped`).

        Raises:
            InputError: node count or content differ.
        """
        about = self.about_network
        for what, right, given in (
            ("nodes", about["nodes"], network.n_nodes),
            ("h-edges", about["hyperedges"], network.n_hedges),
            ("pins", about["pins"], network.n_pins),
        ):
            if right != given:
                raise InputError(
                    self.path,
                    f"network {network.name!r} has {given:,} {what}, but {right:,} were mapped",
                )
        if network_digest(network) != about["content_sha256"]:
            raise InputError(
                self.path,
                f"network {network.name!r} is not the one that was mapped: links or rates differ",
            )

    def check_nodes(self, nodes: Array) -> None:
        """Refuse parts for other nodes than those that take a core.

        Args:
            nodes: int64, ascending ids of the nodes that take a core.

        Raises:
            InputError: a node without a part, or an input off the chip with one.
        """
        if not np.array_equal(np.flatnonzero(self.node_parts >= 0), nodes):
            expected = np.zeros(len(self.node_parts), bool)
            expected[nodes] = True
            bad = int(np.flatnonzero(expected != (self.node_parts >= 0))[0])
            problem = "has no part" if expected[bad] else "is an input off the chip, but has a part"
            raise InputError(self.path, problem, place=f"nodes/part, node {bad}")


def network_digest(network: Hypergraph) -> str:
    """SHA-256 (hex) over node count, groups, sources, weights and sizes of a network."""
    digest = hashlib.sha256(str(network.n_nodes).encode())
    for array in (
        network.group_offsets,
        network.destinations,
        network.hedge_offsets,
        network.source_offsets,
        network.sources,
        network.weights,
        network.axon_counts,
        network.node_sizes,
    ):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


_TABLES = (
    "parts/neurons",
    "parts/inbound_axons",
    "parts/outbound_axons",
    "parts/incident_axons",
    "parts/synapses",
    "groups/part_offsets",
    "groups/parts",
    "groups/axon_offsets",
    "axons/source_offsets",
    "axons/sources",
    "axons/weight",
    "axons/count",
    "inbound/offsets",
    "inbound/groups",
    "outbound/offsets",
    "outbound/axons",
)


def read_mapping(folder: str | Path) -> StoredMapping:
    """Read a mapping back from its folder (or from a ``mapping.h5``).

    Raises:
        InputError: there is none, or it is damaged; the text says where.
    """
    path = Path(folder)
    if path.is_dir():
        path = path / "mapping.h5"
        if not path.exists():
            raise InputError(folder, "holds no mapping.h5; expected the folder of a snnmap map run")
    with open_hdf5(path, "a mapping (mapping.h5 of a snnmap map run)") as root:
        if not (root.is_group("about") and root.is_group("nodes")):
            raise InputError(path, "is not a mapping; expected mapping.h5 of a snnmap map run")
        about = root.child("about")
        tables = {name: _table(root, name) for name in _TABLES}
        placed = root.child("parts").has("core")
        if placed:
            tables["parts/chip"] = _table(root, "parts/chip")
        stored = StoredMapping(
            path=path,
            about_network=_json(about, "network", dict),
            profile=_built(about, "profile", profile_from_record),
            limits=_built(about, "limits", lambda record: Limits(**record)),
            settings=_json(about, "partition", dict),
            node_parts=_table(root, "nodes/part"),
            cores=_table(root, "parts/core") if placed else None,
            tables=tables,
            populations=_populations(about),
        )
    _check_form(stored)
    return stored


def profile_from_record(record: dict[str, Any]) -> HardwareProfile:
    """The profile that :func:`snnmap.writers.mapping.profile_record` described."""
    limits = {name: record["limits"].get(name) for name in (f.name for f in fields(Limits))}
    return HardwareProfile(
        name=record["name"],
        description=record["description"],
        topology=record["topology"],
        width=record["width"],
        height=record["height"],
        chips=tuple(record["chips"]),
        tile=tuple(record["tile"]),
        dead_cores=frozenset((x, y) for x, y in record["dead_cores"]),
        limits=Limits(**limits),
        costs=Costs(**record["costs"]),
        max_delay_steps=record["max_delay_steps"],
        timestep_ms=record["timestep_ms"],
        soft=frozenset(record["soft"]),
        unknown=frozenset(record["unknown"]),
        provenance={key: Provenance(**value) for key, value in record["provenance"].items()},
    )


def _table(root: Fields, name: str) -> Array:
    group, leaf = name.split("/")
    array = root.child(group).array(leaf)
    wanted = 2 if leaf in ("core", "chip") else 1
    if array.ndim != wanted:
        raise root.error(f"has shape {array.shape}; expected {wanted} dimension(s)", name)
    return array


def _json(about: Fields, name: str, kind: type[T]) -> T:
    try:
        value = json.loads(about.text(name))
    except ValueError as error:
        raise about.error(f"is not JSON: {error}", name) from None
    if not isinstance(value, kind):
        raise about.error(f"holds {type(value).__name__}; expected {kind.__name__}", name)
    return value


def _built(about: Fields, name: str, build: Callable[[dict[str, Any]], T]) -> T:
    record = _json(about, name, dict)
    try:
        return build(record)
    except SnnmapError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise about.error(f"is malformed: {type(error).__name__} {error}", name) from None


def _populations(about: Fields) -> tuple[Population, ...]:
    records = _json(about, "populations", list)
    try:
        found = tuple(Population(**r | {"shape": tuple(r["shape"])}) for r in records)
        for p in found:
            if not 0 <= int(p.start) <= int(p.stop) < 2**31 or not isinstance(p.name, str):
                raise ValueError(p)
    except (KeyError, TypeError, ValueError) as error:
        raise about.error(f"is malformed: {type(error).__name__} {error}", "populations") from None
    return found


def _check_form(stored: StoredMapping) -> None:
    """Offsets rise to the lengths of what they cut; ids lie in range."""
    t, path = stored.tables, stored.path
    n_parts = stored.n_parts
    n_groups = len(t["groups/axon_offsets"]) - 1
    n_axons = len(t["axons/weight"])
    for offsets, of, rows in (
        ("groups/part_offsets", len(t["groups/parts"]), n_groups),
        ("groups/axon_offsets", n_axons, n_groups),
        ("axons/source_offsets", len(t["axons/sources"]), n_axons),
        ("inbound/offsets", len(t["inbound/groups"]), n_parts),
        ("outbound/offsets", len(t["outbound/axons"]), n_parts),
    ):
        array = t[offsets]
        rising = len(array) == rows + 1 and array[0] == 0 and array[-1] == of
        if not rising or (np.diff(array) < 0).any():
            raise InputError(
                path, f"offsets must rise from 0 to {of} in {rows} rows", place=offsets
            )
    for name, array, low, high in (
        ("nodes/part", stored.node_parts, -1, n_parts),
        ("groups/parts", t["groups/parts"], 0, n_parts),
        ("axons/sources", t["axons/sources"], 0, len(stored.node_parts)),
        ("inbound/groups", t["inbound/groups"], 0, n_groups),
        ("outbound/axons", t["outbound/axons"], 0, n_axons),
    ):
        if len(array) and not low <= array.min() <= array.max() < high:
            raise InputError(path, f"an id is outside {low}..{high - 1}", place=name)
    if len(t["axons/count"]) != n_axons:
        raise InputError(path, f"{len(t['axons/count'])} counts of {n_axons} axons", place="axons")
    if stored.cores is not None and stored.cores.shape != (n_parts, 2):
        raise InputError(
            path, f"shape {stored.cores.shape}; expected ({n_parts}, 2)", place="parts/core"
        )
