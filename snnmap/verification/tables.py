"""Exported axon and routing tables: every axon of every core once, from and to the right places."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from snnmap.errors import InputError
from snnmap.verification.truth import Truth

_INBOUND = ["part", "x", "y", "axon", "axons", "rate", "sources"]
_OUTBOUND = ["part", "x", "y", "axon", "axons", "rate", "neurons", "destinations"]


def _rows(path: Path, header: list[str]) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of a table with this header; the first line number is that of the header."""
    csv.field_size_limit(2**31 - 1)
    try:
        with path.open(newline="") as file:
            reader = csv.reader(file)
            if next(reader, None) != header:
                raise InputError(path, f"expected the columns {', '.join(header)}", place="line 1")
            for row in reader:
                if len(row) != len(header):
                    problem = f"{len(row)} cells; expected {len(header)}"
                    raise InputError(path, problem, place=f"line {reader.line_num}")
                yield reader.line_num, row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(path, f"cannot be read: {error}") from None


def _axon_rows(path: Path, header: list[str], truth: Truth) -> Iterator[Any]:
    """(line, part, axon, row) of every sound row; faults of the others as texts."""
    h, seen = truth.hypergraph, set()
    for line, row in _rows(path, header):
        try:
            part, axon, count, rate = int(row[0]), int(row[3]), int(row[4]), float(row[5])
        except ValueError:
            yield f"line {line} holds something that is no number"
            continue
        if not (0 <= part < len(truth.cores) and 0 <= axon < h.n_hedges):
            yield f"line {line}: there is no part {part} or no axon {axon}"
        elif f"{row[1]},{row[2]}" != truth.places[part]:
            yield f"line {line}: part {part} is on core {truth.places[part]}"
        elif (part, axon) in seen:
            yield f"line {line}: axon {axon} of part {part} occurs twice"
        elif count != h.axon_counts[axon] or not np.isclose(rate, h.weights[axon], rtol=1e-8):
            right = f"{h.axon_counts[axon]} axons at {h.weights[axon]:.9g} spikes/s"
            yield f"line {line}: axon {axon} stands for {right}"
        else:
            yield line, part, axon, row
        seen.add((part, axon))


def inbound_faults(path: Path, truth: Truth) -> Iterator[str]:
    """Faults of ``axons_in.csv``: one line for each axon and core that it enters."""
    n_found, parts = 0, truth.stored.node_parts
    for found in _axon_rows(path, _INBOUND, truth):
        if isinstance(found, str):
            yield found
            continue
        line, part, axon, row = found
        n_found += 1
        if part not in truth.destinations(axon):
            yield f"line {line}: axon {axon} does not reach part {part}"
        right = sorted(
            f"{n}@{truth.places[parts[n]]}" if parts[n] >= 0 else str(n)
            for n in truth.sources(axon)
        )
        if sorted(row[6].split()) != right:
            yield f"line {line}: the sources of axon {axon} are {_brief(right)}"
    expected = int(np.diff(truth.reached[0])[truth.groups].sum())
    if n_found < expected:
        yield f"{n_found:,} right lines; {expected:,} axons enter cores"


def outbound_faults(path: Path, truth: Truth) -> Iterator[str]:
    """Faults of ``routing.csv``: one line for each axon and core that it leaves."""
    n_found, parts = 0, truth.stored.node_parts
    for found in _axon_rows(path, _OUTBOUND, truth):
        if isinstance(found, str):
            yield found
            continue
        line, part, axon, row = found
        n_found += 1
        neurons = sorted(str(n) for n in truth.sources(axon) if parts[n] == part)
        if not neurons or sorted(row[6].split()) != neurons:
            right = _brief(neurons) if neurons else "none"
            yield f"line {line}: the neurons of axon {axon} on this core are {right}"
        places = sorted(truth.places[p] for p in truth.destinations(axon))
        if sorted(row[7].split()) != places:
            yield f"line {line}: axon {axon} goes to {_brief(places)}"
    axons = np.repeat(np.arange(truth.hypergraph.n_hedges), np.diff(truth.network.source_offsets))
    origins = parts[truth.network.sources].astype(np.int64)
    pairs = (axons * truth.n_parts + origins)[origins >= 0]
    expected = len(np.unique(pairs))
    if n_found < expected:
        yield f"{n_found:,} right lines; {expected:,} axons leave cores"


def _brief(words: list[str]) -> str:
    return " ".join(words[:4]) + (f" and {len(words) - 4} more" if len(words) > 4 else "")
