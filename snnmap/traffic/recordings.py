"""Recorded spikes by neuron of the whole network: CSV, SONATA, NIR data or NWB units."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from snnmap.errors import InputError
from snnmap.hypergraph import Population
from snnmap.readers.checks import input_size
from snnmap.readers.events import is_event_file, read_events

Array = np.ndarray[Any, Any]

LATEST_MS = 1e9


def read_recording(
    what: str | Path, n_neurons: int, populations: Sequence[Population] = ()
) -> tuple[Array, Array, list[str]]:
    """Spikes of a file.

    Args:
        what: the file; ``FILE@POPULATION`` if its neurons are those of one population, counted
            from 0 within it. Files that name populations (SONATA, NIR) need no such hint.
        n_neurons: of the network.
        populations: of the network.

    Returns:
        (float64[n] times in ms, int64[n] neurons of the network, notes on what was read).

    Raises:
        InputError: the file is malformed or does not fit the network.
    """
    path, home = _split(what, populations)
    input_size(path)
    if not is_event_file(path):
        times, ids = _read_rows(path)
        start, stop = (0, n_neurons) if home is None else (home.start, home.stop)
        _refuse(path, ids, stop - start, home, line=True)
        return times, start + ids, []
    recordings = read_events(path)
    if home is not None and len(recordings) > 1:
        named = [r for r in recordings if r.population == home.name]
        if not named:
            known = ", ".join(str(r.population) for r in recordings)
            raise InputError(path, f"has no spikes of {home.name!r}; it has those of {known}")
        recordings = named
    every_time, every_neuron, notes = [np.zeros(0)], [np.zeros(0, np.int64)], []
    for recording in recordings:
        whose = home
        if whose is None and recording.population is not None:
            whose = _population(path, recording.population, populations)
        elif whose is None and len(populations) > 1:
            known = ", ".join(p.name for p in populations)
            raise InputError(
                path, f"does not say whose spikes it holds; add @POPULATION, one of {known}"
            )
        start, stop = (0, n_neurons) if whose is None else (whose.start, whose.stop)
        _refuse(path, recording.ids, stop - start, whose, line=False)
        for time in recording.times_ms[recording.times_ms >= LATEST_MS][:1]:
            raise InputError(path, f"time {time} ms is outside 0..{LATEST_MS:g}")
        every_time.append(recording.times_ms)
        every_neuron.append(start + recording.ids)
        of = "" if whose is None else f" of {whose.name!r}"
        notes.append(f"{len(recording.ids):,} spikes{of}: {recording.note}")
    return np.concatenate(every_time), np.concatenate(every_neuron), notes


def _split(what: str | Path, populations: Sequence[Population]) -> tuple[Path, Population | None]:
    """The file, and the population that was named after it."""
    name, at, population = str(what).rpartition("@")
    if not at or Path(what).exists():
        return Path(what), None
    return Path(name), _population(Path(name), population, populations)


def _population(path: Path, name: str, populations: Sequence[Population]) -> Population:
    for population in populations:
        if population.name == name:
            return population
    known = ", ".join(p.name for p in populations) or "none"
    raise InputError(path, f"the network has no population {name!r}; known are {known}")


def _refuse(path: Path, ids: Array, n: int, home: Population | None, *, line: bool) -> None:
    for i in np.flatnonzero((ids < 0) | (ids >= n))[:1]:
        of = "" if home is None else f" of {home.name!r}"
        place = f"line {i + 2}" if line else f"spike {i}"
        raise InputError(path, f"neuron {ids[i]} is outside 0..{n - 1}{of}", place=place)


def _read_rows(path: Path) -> tuple[Array, Array]:
    """(float64 times in ms, int64 neurons) of a CSV file."""
    try:
        with path.open(newline="") as file:
            rows = csv.reader(file)
            header = [name.strip() for name in next(rows, [])]
            if "time_ms" not in header or "neuron" not in header:
                raise InputError(
                    path,
                    f"columns {', '.join(header)}; expected time_ms and neuron",
                    place="line 1",
                )
            at_time, at_neuron = header.index("time_ms"), header.index("neuron")
            times, neurons = [], []
            for row in rows:
                if not row:
                    continue
                try:
                    time, neuron = float(row[at_time]), int(row[at_neuron])
                except (ValueError, IndexError):
                    raise InputError(
                        path,
                        "expected a time in ms and a neuron's number",
                        place=f"line {rows.line_num}",
                    ) from None
                if not 0 <= time < LATEST_MS:
                    raise InputError(
                        path, f"time {time} ms is outside 0..1e9", place=f"line {rows.line_num}"
                    )
                if not abs(neuron) < 2**31:
                    raise InputError(
                        path, f"neuron {neuron} does not exist", place=f"line {rows.line_num}"
                    )
                times.append(time)
                neurons.append(neuron)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(path, f"cannot be read: {error}") from None
    return np.array(times, np.float64), np.array(neurons, np.int64)
