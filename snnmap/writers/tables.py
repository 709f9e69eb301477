"""Axon and routing tables of every core as CSV: the way of each spike, to be followed by hand.

    axons_in.csv    one line for each axon that enters a core: where it comes from
    routing.csv     one line for each axon that leaves a core: all cores it goes to

An axon has the number of its h-edge. To follow a spike of neuron n, look up n's lines in
``routing.csv``; each ``x,y`` under ``destinations`` has a line for the same axon in
``axons_in.csv``. ``mapping.h5`` holds the same tables in binary.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from snnmap.stored import StoredMapping

FILES = ("axons_in.csv", "routing.csv")
INBOUND = ("part", "x", "y", "axon", "axons", "rate", "sources")
OUTBOUND = ("part", "x", "y", "axon", "axons", "rate", "neurons", "destinations")


def write_tables(stored: StoredMapping, folder: Path) -> list[str]:
    """Write ``axons_in.csv`` and ``routing.csv`` into an existing folder.

    Columns: ``part`` and its core ``x``, ``y``; ``axon`` its number, ``axons`` how many it stands
    for, ``rate`` in spikes/s. ``sources`` lists ``neuron@x,y`` for each source neuron (only the
    number for an input off the chip); ``neurons`` the sources on this core; ``destinations`` lists
    ``x,y`` of each core reached, in order of parts. Lists are separated by blanks.

    Args:
        stored: a placed mapping (:func:`snnmap.stored.read_mapping`).
        folder: where to write.

    Returns:
        The names of the files.

    Raises:
        InputError: the mapping is not placed.
    """
    cores = stored.placement.cores.tolist()
    for name, header, rows in (
        (FILES[0], INBOUND, _inbound(stored, cores)),
        (FILES[1], OUTBOUND, _outbound(stored, cores)),
    ):
        with (folder / name).open("w", newline="") as file:
            _write(file, header, rows)
    return list(FILES)


def _write(file: Any, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)


def _inbound(stored: StoredMapping, cores: list[list[int]]) -> Iterator[Sequence[Any]]:
    t, parts = stored.tables, stored.node_parts
    for part, (x, y) in enumerate(cores):
        groups = t["inbound/groups"][t["inbound/offsets"][part] : t["inbound/offsets"][part + 1]]
        for group in groups.tolist():
            for axon in range(*t["groups/axon_offsets"][group : group + 2].tolist()):
                sources = " ".join(
                    f"{n}@{cores[parts[n]][0]},{cores[parts[n]][1]}" if parts[n] >= 0 else str(n)
                    for n in _sources(stored, axon)
                )
                yield part, x, y, axon, t["axons/count"][axon], _rate(stored, axon), sources


def _outbound(stored: StoredMapping, cores: list[list[int]]) -> Iterator[Sequence[Any]]:
    t, parts = stored.tables, stored.node_parts
    for part, (x, y) in enumerate(cores):
        axons = t["outbound/axons"][t["outbound/offsets"][part] : t["outbound/offsets"][part + 1]]
        groups = np.searchsorted(t["groups/axon_offsets"], axons, side="right") - 1
        for axon, group in zip(axons.tolist(), groups.tolist(), strict=True):
            reached = t["groups/parts"][slice(*t["groups/part_offsets"][group : group + 2])]
            neurons = " ".join(str(n) for n in _sources(stored, axon) if parts[n] == part)
            destinations = " ".join(f"{cores[p][0]},{cores[p][1]}" for p in reached.tolist())
            count, rate = t["axons/count"][axon], _rate(stored, axon)
            yield part, x, y, axon, count, rate, neurons, destinations


def _sources(stored: StoredMapping, axon: int) -> list[int]:
    t = stored.tables
    row = t["axons/sources"][slice(*t["axons/source_offsets"][axon : axon + 2])]
    return [int(n) for n in row]


def _rate(stored: StoredMapping, axon: int) -> str:
    return f"{stored.tables['axons/weight'][axon]:.9g}"
