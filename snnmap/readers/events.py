"""Recorded spikes one by one: SONATA spike files, NIR event data and NWB units (all HDF5).

Sources of the formats: https://github.com/AllenInstitute/sonata (reports: spikes), the `read_data`
of the NIR reference implementation, and the NWB schema 2.x (table ``units``: ``spike_times`` in
seconds, ``spike_times_index`` the end of each unit's, ``id`` its number).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from snnmap.readers._hdf5 import Fields, looks_like, open_hdf5
from snnmap.readers.spikes import SECONDS, _is_nir_data, _number, _refuse

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Spikes of one population, in the order of the file.

    Attributes:
        population: its name in the file, or None if the file names none.
        times_ms: float64[n], >= 0.
        ids: int64[n], who fired, counted from 0 within the population.
        note: what of the file was taken and how times were read.
    """

    population: str | None
    times_ms: Array
    ids: Array
    note: str


def is_event_file(path: Path) -> bool:
    """Whether this is an HDF5 file with recorded spikes."""
    with path.open("rb") as file:
        head = file.read(8)
    return looks_like(path, head, "spikes", "units") or _is_nir_data(path, head)


def read_events(path: Path) -> list[Events]:
    """The spikes of every population in a file; of NIR data the first sample.

    Raises:
        InputError: the file is malformed.
    """
    with path.open("rb") as file:
        is_nir = _is_nir_data(path, file.read(8))
    with open_hdf5(path, "recorded spikes") as root:
        if is_nir:
            return list(_nir_graph(root, ""))
        if root.has("units"):
            return [_nwb(root.child("units"))]
        spikes = root.child("spikes")
        if spikes.has("timestamps"):
            return [_sonata(spikes, None)]
        names = spikes.children()
        if not names:
            raise spikes.error("holds no population; expected timestamps and node_ids")
        return [_sonata(spikes.child(name), name) for name in names]


def _sonata(group: Fields, population: str | None) -> Events:
    ids_name = "gids" if not group.has("node_ids") and group.has("gids") else "node_ids"
    times, ids = _times(group, "timestamps"), _ids(group, ids_name)
    if times.shape != ids.shape:
        raise group.error(f"timestamps and {ids_name} differ in shape; expected one time an id")
    unit = group.attribute("timestamps", "units") or "ms"
    if unit not in SECONDS:
        raise group.error(f"has units {unit!r}; expected s, ms or us", "timestamps")
    return Events(population, times * (SECONDS[unit] * 1000), ids, f"times in {unit}")


def _nwb(units: Fields) -> Events:
    times, ends = _times(units, "spike_times"), _ids(units, "spike_times_index")
    counts = np.diff(ends, prepend=0)
    if (counts < 0).any() or int(ends[-1] if len(ends) else 0) != len(times):
        raise units.error(f"must rise to the {len(times)} spike times", "spike_times_index")
    ids = _ids(units, "id") if units.has("id") else np.arange(len(ends))
    if len(ids) != len(ends):
        raise units.error(
            f"has {len(ids)} entries; expected one for each of {len(ends)} units", "id"
        )
    return Events(None, times * 1000, np.repeat(ids, counts), "NWB units, times in s")


def _nir_graph(group: Fields, prefix: str) -> Iterator[Events]:
    nodes = group.child("nodes")
    for name in nodes.children():
        node = nodes.child(name)
        if node.has("nodes"):
            if prefix.count(".") > 32:
                raise node.error("graphs are nested too deeply; expected at most 32 levels")
            yield from _nir_graph(node, f"{prefix}{name}.")
            continue
        observables = node.child("observables")
        known = observables.children()
        if "spikes" not in known and len(known) != 1:
            problem = f"holds {', '.join(known) or 'nothing'}; expected the observable spikes"
            raise observables.error(problem)
        yield _nir_events(
            observables.child("spikes" if "spikes" in known else known[0]), prefix + name
        )


def _nir_events(group: Fields, population: str) -> Events:
    if group.has("data"):
        data = group.array("data")
        if data.ndim != 3 or data.dtype.kind not in "biu":
            problem = f"has shape {data.shape} of {data.dtype}; expected samples, steps, neurons"
            raise group.error(f"{problem} of truth values", "data")
        n_samples = len(data)
        steps, ids = np.nonzero(data[0]) if n_samples else np.zeros((2, 0), np.int64)
        times = steps * _number(group, "dt")
    else:
        every, clock = group.array("idx"), group.array("time")
        if every.ndim != 2 or clock.shape != every.shape:
            raise group.error("idx and time differ in shape; expected samples, events")
        if every.dtype.kind not in "iu":
            raise group.error(f"holds {every.dtype}; expected whole numbers", "idx")
        n_samples = len(every)
        ids = every[0] if n_samples else np.zeros(0, np.int64)
        times = clock[0].astype(np.float64) if n_samples else np.zeros(0)
        n_neurons = int(_number(group, "n_neurons"))
        _refuse(group, "idx", 0, ids, (ids < -1) | (ids >= n_neurons))
        ids, times = ids[ids >= 0], times[ids >= 0]
        _refuse_times(group, "time", times)
    note = f"sample 0 of {n_samples}, times in s"
    return Events(population, times * 1000.0, np.asarray(ids, np.int64), note)


def _times(group: Fields, name: str) -> Array:
    times = _column(group, name)
    if times.dtype.kind == "c":
        raise group.error("holds complex numbers; expected times", name)
    times = times.astype(np.float64)
    _refuse_times(group, name, times)
    return times


def _refuse_times(group: Fields, name: str, times: Array) -> None:
    for i in np.flatnonzero(~(np.isfinite(times) & (times >= 0)))[:1]:
        raise group.error(f"entry {i} is {times[i]}; expected a time >= 0", name)


def _ids(group: Fields, name: str) -> Array:
    ids = _column(group, name)
    if ids.dtype.kind not in "iu":
        raise group.error(f"holds {ids.dtype}; expected whole numbers", name)
    _refuse(group, name, 0, ids, (ids < 0) | (ids >= 2**31))
    return ids.astype(np.int64)


def _column(group: Fields, name: str) -> Array:
    if len(group.shape(name)) != 1:
        raise group.error(f"has shape {group.shape(name)}; expected a list", name)
    return group.array(name)
