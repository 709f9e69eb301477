"""A mapping as files.

    mapping.json      summary: network, profile, partition, placement, traffic, provenance
    mapping.h5        everything: neuron -> part -> core, axon tables, routing, the profile
    partition.txt     part of each node, one a line (-1: an input off the chip)
    placement.csv     one line a core
    placement.bin     u64 count, then (i32 x, i32 y) a part, little-endian
    traffic.csv       one line a directed link that carries spikes
    neurons.csv       one line a neuron (on request)
    *.png             figures

``mapping.h5`` (format 1) keeps axons in groups: a group is a set of destination parts that several
axons share. The axons of group g are ``axon_offsets[g] .. axon_offsets[g + 1] - 1``, so that

    axons into part p = those of groups inbound/groups[offsets[p] : offsets[p + 1]]
    axons out of part p = outbound/axons[offsets[p] : offsets[p + 1]]
    where axon e goes = groups/parts[part_offsets[g] : part_offsets[g + 1]] of its group g

and each spike's path can be followed from its source neuron to every core it reaches. Texts under
``about/`` are JSON.
"""

from __future__ import annotations

import csv
import json
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from snnmap import __version__, _csr
from snnmap.hardware import HardwareProfile
from snnmap.writers.assignments import write_partition, write_placement
from snnmap.writers.hdf5 import hdf5_file

if TYPE_CHECKING:
    from snnmap.mapping import Mapping

Array = np.ndarray[Any, Any]

FORMAT = "snnmap mapping"
FORMAT_VERSION = 1

FIGURES = ("utilization.png", "mesh.png", "links.png", "distributions.png")
RESULT_FILES = (
    "mapping.json",
    "mapping.h5",
    "partition.txt",
    "placement.csv",
    "placement.bin",
    "traffic.csv",
    "neurons.csv",
    "simulation.json",
    "simulation_latency.csv",
    "simulation_links.csv",
    "simulation_time.csv",
    "simulation.png",
    *FIGURES,
)
"""Names in a result folder (`snnmap simulate` adds some); a later run removes stale ones."""


def write_files(
    mapping: Mapping, folder: Path, *, plots: bool = True, neurons: bool = False
) -> list[str]:
    """Write all files of a mapping into an existing folder (see :meth:`Mapping.write`).

    Returns:
        The names of the files.
    """
    write_json(mapping, folder / "mapping.json")
    write_h5(mapping, folder / "mapping.h5")
    write_partition(mapping.node_parts, folder / "partition.txt")
    names = ["mapping.json", "mapping.h5", "partition.txt"]
    if mapping.placement is not None:
        _write_csv(folder / "placement.csv", *cores_table(mapping))
        write_placement(mapping.placement.cores, folder / "placement.bin")
        names += ["placement.csv", "placement.bin"]
    if mapping.traffic is not None:
        _write_csv(folder / "traffic.csv", *traffic_table(mapping))
        names.append("traffic.csv")
    if neurons:
        write_neurons(mapping, folder / "neurons.csv")
        names.append("neurons.csv")
    if plots:
        from snnmap.plots import write_plots

        names += write_plots(mapping, folder)
    return names


# ---------------------------------------------------------------------- JSON


def mapping_record(mapping: Mapping) -> dict[str, Any]:
    """The content of ``mapping.json``: plain values, ``None`` for what is not known."""
    limits, m, partition = mapping.limits, mapping.metrics, mapping.partition
    record: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "network": network_record(mapping),
        "profile": {
            "name": mapping.profile.name,
            "overrides": list(mapping.overrides),
            "neurons_per_core": limits.max_size,
            "inbound_axons_per_core": limits.max_inbound,
            "outbound_axons_per_core": limits.max_outbound,
            "synapses_per_core": limits.max_synapses,
            "cores": mapping.profile.n_cores,
        },
        "partition": {
            "algorithm": partition.algorithm,
            "engine": partition.engine,
            "preset": mapping.preset,
            "seed": partition.seed,
            "complete": partition.complete,
            "parts": partition.n_parts,
            "connectivity": m.connectivity,
            "cut_net": m.cut_net,
            "soed": m.soed,
            "max_neurons": int(m.sizes.max(initial=0)),
            "max_inbound_axons": int(m.inbound.max(initial=0)),
            "max_outbound_axons": int(m.outbound.max(initial=0)),
            "max_synapses": int(m.synapses.max(initial=0)),
            "synaptic_reuse": {
                "arithmetic_mean": m.reuse_arithmetic_mean,
                "geometric_mean": m.reuse_geometric_mean,
            },
            "lower_bounds": {"parts": mapping.bounds[0], "connectivity": mapping.bounds[1]},
            "config": partition.config,
            "seconds": {**mapping.seconds, "phases": dict(partition.seconds)},
        },
        "utilization": [
            {
                "resource": r.name,
                "mean": float(np.mean(r.used)) if len(r.used) else 0.0,
                "max": int(r.used.max(initial=0)),
                "limit": r.limit,
                "soft": r.is_soft,
            }
            for r in mapping.resources
        ],
        "layers": _layer_records(mapping),
    }
    if mapping.placement is not None:
        placement = mapping.placement
        record["placement"] = {
            "placer": placement.placer,
            "start": placement.start,
            "refine": placement.refine,
            "joint": placement.joint,
            "engine": placement.engine,
            "seed": placement.seed,
            "complete": placement.complete,
            "objective": placement.objective,
            "cores": placement.cores.tolist(),
        }
    if mapping.traffic is not None:
        record["traffic"] = mapping.traffic.summary()
    record["verified"] = mapping.is_verified
    record["violations"] = list(mapping.violations)
    record["made_by"] = {
        "snnmap": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return record


def network_record(mapping: Mapping) -> dict[str, Any]:
    """What identifies the network; ``sha256`` is the file's if there is one, else the content's."""
    network, source = mapping.network, mapping.source
    return {
        "name": network.name,
        "nodes": network.n_nodes,
        "hyperedges": network.n_hedges,
        "pins": network.n_pins,
        "groups": network.n_groups,
        "inputs_off_chip": network.n_nodes - mapping.hypergraph.n_nodes,
        "source": source.path,
        "options": dict(source.options),
        "sha256": source.sha256 or mapping.content_sha256,
        "content_sha256": mapping.content_sha256,
    }


def _layer_records(mapping: Mapping) -> list[dict[str, Any]]:
    _, shares = mapping.layer_shares()
    return [
        {
            "name": layer.name,
            "neurons": layer.size,
            "shape": list(layer.shape),
            "input": layer.is_input,
            "cores": int(np.count_nonzero(shares[:, i])),
        }
        for i, layer in enumerate(mapping.hypergraph.populations)
    ]


def write_json(mapping: Mapping, path: Path) -> None:
    """Write :func:`mapping_record`."""
    path.write_text(json.dumps(mapping_record(mapping), indent=1, allow_nan=False) + "\n")


# ---------------------------------------------------------------------- HDF5


def write_h5(mapping: Mapping, path: Path) -> None:
    """Write ``mapping.h5`` (see the module's text); equal mappings give equal bytes."""
    hypergraph, m = mapping.hypergraph, mapping.metrics
    parts, n_parts = mapping.partition.parts, mapping.partition.n_parts
    part_offsets, group_parts = _csr.contract(
        hypergraph.group_offsets, hypergraph.destinations, parts, n_parts
    )
    inbound_offsets, inbound_groups = _csr.transpose(part_offsets, group_parts, n_parts)
    out_offsets, out_parts = _csr.contract(
        hypergraph.source_offsets, hypergraph.sources, parts, n_parts
    )
    outbound_offsets, outbound_axons = _csr.transpose(out_offsets, out_parts, n_parts)
    network = mapping.network
    tables: dict[str, Array] = {
        "nodes/part": mapping.node_parts,
        "parts/neurons": m.sizes,
        "parts/inbound_axons": m.inbound,
        "parts/outbound_axons": m.outbound,
        "parts/incident_axons": m.incident,
        "parts/synapses": m.synapses,
        "groups/part_offsets": part_offsets,
        "groups/parts": group_parts,
        "groups/axon_offsets": hypergraph.hedge_offsets,
        "axons/source_offsets": network.source_offsets,
        "axons/sources": network.sources,
        "axons/weight": hypergraph.weights,
        "axons/count": hypergraph.axon_counts,
        "inbound/offsets": inbound_offsets,
        "inbound/groups": inbound_groups,
        "outbound/offsets": outbound_offsets,
        "outbound/axons": outbound_axons,
    }
    if mapping.placement is not None:
        cores = mapping.placement.cores
        tables["parts/core"] = cores
        size = (mapping.profile.width, mapping.profile.height)
        tables["parts/chip"] = (cores // np.array(size, np.int32)).astype(np.int32)
    with hdf5_file(path) as file:
        file.attrs["format"] = FORMAT
        file.attrs["format_version"] = FORMAT_VERSION
        file.attrs["snnmap"] = __version__
        for key, value in (
            ("network", network_record(mapping)),
            ("profile", profile_record(mapping.profile)),
            ("limits", asdict(mapping.limits)),
            ("partition", _settings(mapping)),
            ("populations", [asdict(p) for p in network.populations]),
        ):
            file.create_dataset(f"about/{key}", data=json.dumps(value))
        for name, array in tables.items():
            large = array.nbytes > 4096
            how = {"compression": "gzip", "compression_opts": 1, "shuffle": True} if large else {}
            file.create_dataset(name, data=array, **how)


def _settings(mapping: Mapping) -> dict[str, Any]:
    """What was asked for, so that the mapping can be made again."""
    partition, placement = mapping.partition, mapping.placement
    return {
        "algorithm": partition.algorithm,
        "preset": mapping.preset,
        "engine": partition.engine,
        "seed": partition.seed,
        "complete": mapping.is_complete,
        "config": partition.config,
        "connectivity": mapping.metrics.connectivity,
        "overrides": list(mapping.overrides),
        "placer": None if placement is None else placement.placer,
        "start": None if placement is None else placement.start,
        "refine": None if placement is None else placement.refine,
        "joint": placement is not None and placement.joint,
        "placement_engine": "cpu" if placement is None else placement.engine,
    }


def profile_record(profile: HardwareProfile) -> dict[str, Any]:
    """A profile as plain values; :func:`snnmap.stored.profile_from_record` is the way back."""
    return {
        "name": profile.name,
        "description": profile.description,
        "topology": profile.topology,
        "width": profile.width,
        "height": profile.height,
        "chips": list(profile.chips),
        "tile": list(profile.tile),
        "dead_cores": sorted(map(list, profile.dead_cores)),
        "limits": asdict(profile.limits),
        "costs": asdict(profile.costs),
        "max_delay_steps": profile.max_delay_steps,
        "timestep_ms": profile.timestep_ms,
        "soft": sorted(profile.soft),
        "unknown": sorted(profile.unknown),
        "provenance": {key: asdict(p) for key, p in sorted(profile.provenance.items())},
    }


# ---------------------------------------------------------------------- text


def cores_table(mapping: Mapping) -> tuple[tuple[str, ...], Iterable[Sequence[Any]]]:
    """(header, rows) of ``placement.csv``: where each used core is, what it holds, which layers."""
    placement = mapping.placement
    cores = [] if placement is None else placement.cores.tolist()
    names, shares = mapping.layer_shares()
    m, width, height = mapping.metrics, mapping.profile.width, mapping.profile.height
    rows = (
        (
            p,
            x,
            y,
            x // width,
            y // height,
            m.sizes[p],
            m.inbound[p],
            m.outbound[p],
            m.synapses[p],
            f"{mapping.spike_loads[p]:.9g}",
            " ".join(f"{names[i]}:{shares[p, i]}" for i in np.flatnonzero(shares[p])),
        )
        for p, (x, y) in enumerate(cores)
    )
    header = ("part", "x", "y", "chip_x", "chip_y", "neurons", "inbound_axons", "outbound_axons")
    return (*header, "synapses", "spikes_per_s", "layers"), rows


def traffic_table(mapping: Mapping) -> tuple[tuple[str, ...], Iterable[Sequence[Any]]]:
    """(header, rows) of ``traffic.csv``: each directed link that carries spikes."""
    links = {} if mapping.traffic is None else mapping.traffic.links()
    return tuple(links), zip(*(column.tolist() for column in links.values()), strict=True)


def write_neurons(mapping: Mapping, path: Path) -> None:
    """Write :func:`neurons_table`."""
    _write_csv(path, *neurons_table(mapping))


def neurons_table(mapping: Mapping) -> tuple[tuple[str, ...], Iterable[Sequence[Any]]]:
    """(header, rows) of ``neurons.csv``: each neuron's layer, place in it, part and core."""
    layers = np.full(mapping.network.n_nodes, -1)
    starts = np.zeros(mapping.network.n_nodes, np.int64)
    for i, layer in enumerate(mapping.network.populations):
        layers[layer.start : layer.stop] = i
        starts[layer.start : layer.stop] = layer.start
    names = [layer.name for layer in mapping.network.populations] + [""]
    parts = mapping.node_parts.tolist()
    cores = [] if mapping.placement is None else mapping.placement.cores.tolist()
    rows = (
        (n, names[layer], n - start, part, *(cores[part] if cores and part >= 0 else ("", "")))
        for n, (layer, start, part) in enumerate(
            zip(layers.tolist(), starts.tolist(), parts, strict=True)
        )
    )
    return ("neuron", "layer", "index", "part", "x", "y"), rows


def _write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
