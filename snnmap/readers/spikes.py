"""Recorded spikes: SONATA spike files and NIR event data (both HDF5), as rates.

Sources of the formats: https://github.com/AllenInstitute/sonata (reports: spikes) and the
`read_data` of the NIR reference implementation, version 1.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from snnmap.errors import ConfigError
from snnmap.readers._arrays import refusing
from snnmap.readers._hdf5 import Fields, looks_like, open_hdf5

Array = np.ndarray[Any, Any]

SECONDS = {"s": 1.0, "seconds": 1.0, "ms": 1e-3, "milliseconds": 1e-3, "us": 1e-6}
SPIKES_A_STEP = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """What was recorded of one population.

    Attributes:
        population: its name in the file, or None if the file names none.
        ids: int64[n], neurons that fired, ascending, counted from 0 within the population.
        rates: float64[n], spikes/s of each.
        n_spikes: in all.
        note: how long was recorded, and how that is known.
    """

    population: str | None
    ids: Array
    rates: Array
    n_spikes: int
    note: str


def is_spike_file(path: Path) -> bool:
    """Whether this is an HDF5 file with recorded spikes."""
    with path.open("rb") as file:
        head = file.read(8)
    return looks_like(path, head, "spikes") or _is_nir_data(path, head)


def read_spikes(
    path: Path, *, duration_ms: float | None = None, time_unit: str | None = None
) -> list[Recording]:
    """Rates of every population in a spike file.

    Args:
        path: a SONATA spike file or NIR data.
        duration_ms: how long was recorded; default: what the file says, else until the last spike.
        time_unit: "s", "ms" or "us"; default: what the file says, else ms (SONATA) or s (NIR).

    Raises:
        InputError: the file is malformed, or its spikes do not tell a duration.
        ConfigError: an option is out of range.
    """
    if duration_ms is not None and not 0 < duration_ms < 1e300:
        raise ConfigError(f"duration_ms is {duration_ms}; expected a number > 0")
    if time_unit is not None and time_unit not in SECONDS:
        raise ConfigError(f"time_unit is {time_unit!r}; expected one of {', '.join(SECONDS)}")
    with path.open("rb") as file:
        is_nir = _is_nir_data(path, file.read(8))
    with open_hdf5(path, "recorded spikes") as root:
        if is_nir:
            return list(_nir_graph(root, "", duration_ms, time_unit))
        spikes = root.child("spikes")
        if spikes.has("timestamps"):
            return [_sonata(spikes, None, duration_ms, time_unit)]
        names = spikes.children()
        if not names:
            raise spikes.error("holds no population; expected timestamps and node_ids")
        return [_sonata(spikes.child(name), name, duration_ms, time_unit) for name in names]


def _sonata(
    group: Fields, population: str | None, duration_ms: float | None, time_unit: str | None
) -> Recording:
    ids_name = "gids" if not group.has("node_ids") and group.has("gids") else "node_ids"
    shape = group.shape("timestamps")
    if len(shape) != 1 or group.shape(ids_name) != shape:
        raise group.error(f"timestamps and {ids_name} differ in shape; expected one time an id")
    stated = group.attribute("timestamps", "units")
    unit = time_unit or stated or "ms"
    if unit not in SECONDS:
        raise group.error(f"has units {unit!r}; expected s, ms or us", "timestamps")
    last, found, counts = 0.0, [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for start in range(0, shape[0], SPIKES_A_STEP):
        stop = min(start + SPIKES_A_STEP, shape[0])
        times, ids = group.slice("timestamps", start, stop), group.slice(ids_name, start, stop)
        _refuse(group, "timestamps", start, times, ~(np.isfinite(times) & (times >= 0)))
        if ids.dtype.kind not in "iu":
            raise group.error(f"holds {ids.dtype}; expected whole numbers", ids_name)
        _refuse(group, ids_name, start, ids, (ids < 0) | (ids >= 2**31))
        last = max(last, float(times.max(initial=0)))
        some, n = np.unique(ids.astype(np.int64), return_counts=True)
        found.append(some)
        counts.append(n)
    ids, each = np.unique(np.concatenate(found), return_inverse=True)
    n_spikes = np.bincount(each, weights=np.concatenate(counts), minlength=len(ids))
    seconds, how = last * SECONDS[unit], "until the last spike"
    if duration_ms is not None:
        seconds, how = duration_ms / 1000, "as asked"
    if seconds <= 0 and shape[0]:
        raise group.error("all spikes are at time 0; say how long was recorded by duration_ms")
    note = f"{seconds * 1000:g} ms {how}" + ("" if stated else f", times in {unit}")
    return Recording(population, ids, n_spikes / max(seconds, 1e-300), shape[0], note)


def _refuse(group: Fields, name: str, start: int, values: Array, wrong: Array) -> None:
    for i in np.flatnonzero(wrong)[:1]:
        expected = "a time >= 0" if name == "timestamps" else "an id from 0"
        raise group.error(f"entry {start + i} is {values[i]}; expected {expected}", name)


# ---------------------------------------------------------------------- NIR data


def _is_nir_data(path: Path, head: bytes) -> bool:
    if not looks_like(path, head, "nodes"):
        return False
    with open_hdf5(path, "NIR data") as root:
        return _attribute(root, "__type__") in ("NIRGraphData", b"NIRGraphData")


def _attribute(group: Fields, key: str) -> Any:
    """An attribute of a group, or None."""
    with refusing(Path(group.path), f"attribute {key} of {group.place or 'the root'}"):
        return group.node.attrs.get(key)


def _number(group: Fields, key: str) -> float:
    value = _attribute(group, key)
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise group.error(f"attribute {key} is {value!r}; expected a number") from None
    if not 0 < number < 1e300:
        raise group.error(f"attribute {key} is {number}; expected a number > 0")
    return number


def _nir_graph(
    group: Fields, prefix: str, duration_ms: float | None, time_unit: str | None
) -> Iterator[Recording]:
    nodes = group.child("nodes")
    for name in nodes.children():
        node = nodes.child(name)
        if node.has("nodes"):
            if prefix.count(".") > 32:
                raise node.error("graphs are nested too deeply; expected at most 32 levels")
            yield from _nir_graph(node, f"{prefix}{name}.", duration_ms, time_unit)
            continue
        observables = node.child("observables")
        known = observables.children()
        events = ["spikes"] if "spikes" in known else known
        if len(events) != 1:
            problem = f"holds {', '.join(known) or 'nothing'}; expected the observable spikes"
            raise observables.error(problem)
        yield _nir_events(observables.child(events[0]), prefix + name, duration_ms, time_unit)


def _nir_events(
    group: Fields, population: str, duration_ms: float | None, time_unit: str | None
) -> Recording:
    scale = SECONDS[time_unit or "s"]
    if group.has("data"):
        data = group.array("data")
        if data.ndim != 3 or data.dtype.kind not in "biu":
            problem = f"has shape {data.shape} of {data.dtype}; expected samples, steps, neurons"
            raise group.error(f"{problem} of truth values", "data")
        n_samples, n_steps, n_neurons = data.shape
        counts = np.count_nonzero(data, axis=(0, 1))
        seconds = n_steps * _number(group, "dt") * scale
        ids = np.arange(n_neurons)
    else:
        shape = group.shape("idx")
        if len(shape) != 2 or group.shape("time") != shape:
            raise group.error("idx and time differ in shape; expected samples, events")
        n_samples = shape[0]
        events = group.array("idx").ravel()
        n_neurons = int(_number(group, "n_neurons"))
        if events.dtype.kind not in "iu":
            raise group.error(f"holds {events.dtype}; expected whole numbers", "idx")
        _refuse(group, "idx", 0, events, (events < -1) | (events >= n_neurons))
        ids, counts = np.unique(events[events >= 0].astype(np.int64), return_counts=True)
        seconds = _number(group, "t_max") * scale
    how = "as the file says"
    if duration_ms is not None:
        seconds, how = duration_ms / 1000, "as asked"
    if not 0 < seconds < 1e300:
        raise group.error(f"lasts {seconds} s; expected a time > 0")
    note = f"{seconds * 1000:g} ms {how}, {n_samples} samples, times in {time_unit or 's'}"
    fired = counts > 0
    return Recording(
        population,
        ids[fired],
        counts[fired] / (max(n_samples, 1) * seconds),
        int(counts.sum()),
        note,
    )
