"""Suites to files: every network built, checked against its expected counts, written whole."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from snnmap import __version__
from snnmap.bench.folder import own_folder
from snnmap.bench.manifest import (
    MANIFEST,
    Record,
    file_digest,
    is_current,
    read_manifest,
    recipe_of,
    write_manifest,
)
from snnmap.bench.streaming import reservoir_of, stream_reservoir
from snnmap.errors import ConfigError, EngineError, InputError, NetworkError, OutputError
from snnmap.networks.suites import Suite, SuiteEntry
from snnmap.progress import SILENT, Progress
from snnmap.writers import write_network

if TYPE_CHECKING:
    from snnmap.partitioning.multilevel.device import Device

SUFFIXES = {"h5": "native", "snn": "snn", "axh": "axh", "hgr": "hgr"}
"""Word for a format on the command line -> key of :data:`snnmap.writers.NETWORK_FORMATS`."""
ENGINES = ("cpu", "gpu", "auto")


@dataclass(frozen=True, slots=True)
class Made:
    """What became of one network.

    Attributes:
        record: its line of the manifest.
        notes: what the format could not hold.
        seconds: that it took; 0 where the file was there already.
        reused: the file was there already and is right.
    """

    record: Record
    notes: list[str]
    seconds: float
    reused: bool = False


def make_suite(
    suite: Suite,
    folder: str | Path,
    *,
    format: str = "h5",
    engine: str = "cpu",
    progress: Progress = SILENT,
) -> Iterator[Made]:
    """Write the networks of a suite, one file each, and a manifest.

    Files of an earlier run are kept if they are what would be made again; nothing half-written is
    left behind by whatever interruption.

    Args:
        suite: what to make.
        folder: made if missing.
        format: a key of :data:`SUFFIXES`.
        engine: "gpu" links reservoirs on a GPU, "auto" if there is one; the bytes are the same.
        progress: told of the work.

    Yields:
        Each network when it is done.

    Raises:
        ConfigError: an unknown format or engine.
        EngineError: a GPU was asked for and cannot be used.
        InputError: a folder that holds another suite.
        NetworkError: a network with other counts than its suite expects.
        OutputError: a file that cannot be written.
        KeyboardInterrupt: the work was cancelled.
    """
    if format not in SUFFIXES:
        raise ConfigError(f"unknown format {format!r}; known are {', '.join(sorted(SUFFIXES))}")
    device = _find_device(engine)
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made: {error.strerror}") from None
    names = [MANIFEST, *(f"{entry.name}.{format}" for entry in suite.entries)]
    with own_folder(folder, names, progress):
        yield from _make(suite, folder, format, progress, device)


def _make(
    suite: Suite, folder: Path, format: str, progress: Progress, device: Device | None
) -> Iterator[Made]:
    """Make what is not there yet."""
    before = read_manifest(folder)
    if before["suite"] not in (None, suite.name):
        raise InputError(
            folder, f"holds suite {before['suite']!r}; choose another folder for {suite.name!r}"
        )
    records: dict[str, Record] = before["networks"]
    for entry in suite.entries:
        if progress.cancelled:
            raise KeyboardInterrupt
        file = folder / f"{entry.name}.{format}"
        known = records.get(entry.name)
        if known is not None and is_current(known, entry, file):
            yield Made(known, [], 0.0, reused=True)
            continue
        began = time.perf_counter()
        counts, notes = _write(entry, file, format, progress, device)
        record = Record(
            entry.name, file.name, entry.profile, entry.parameters, entry.seed, entry.scale,
            *counts, file.stat().st_size, file_digest(file), __version__, recipe_of(entry),
        )  # fmt: skip
        records[entry.name] = record
        write_manifest(folder, suite, list(records.values()))
        yield Made(record, notes, time.perf_counter() - began)


def _write(
    entry: SuiteEntry, file: Path, format: str, progress: Progress, device: Device | None
) -> tuple[tuple[int, int, int], list[str]]:
    """(nodes, h-edges, pins) and what was lost."""
    reservoir = reservoir_of(entry.model) if format == "snn" else None
    if reservoir is not None:
        counts = stream_reservoir(
            *reservoir, file, progress, check=lambda c: _check(entry, c), device=device
        )
        return counts, []
    network = entry.model.build(progress, device)
    if progress.cancelled:
        raise KeyboardInterrupt
    counts = (network.n_nodes, network.n_hedges, network.n_pins)
    _check(entry, counts)
    if format != "h5":  # the others spell out every pin
        _check_space(file, 4 * (counts[2] + 2 * counts[1]))
    return counts, write_network(network, file, format=SUFFIXES[format], progress=progress)


def _find_device(engine: str) -> Device | None:
    """The GPU, or None for the CPU."""
    if engine not in ENGINES:
        raise ConfigError(f"unknown engine {engine!r}; known are {', '.join(ENGINES)}")
    if engine == "cpu":
        return None
    from snnmap.partitioning.multilevel.device import Device

    try:
        return Device()
    except EngineError:
        if engine == "gpu":
            raise
        return None


def _check_space(file: Path, least: int) -> None:
    free = shutil.disk_usage(file.parent).free
    if least > free:
        raise OutputError(
            f"{file}: needs {least / 1e6:,.3f} MB but only {free / 1e6:,.3f} MB are free; "
            "format h5 stores shared destinations once"
        )


def _check(entry: SuiteEntry, counts: tuple[int, int, int]) -> None:
    for what, count in zip(("nodes", "hyperedges", "pins"), counts, strict=True):
        wanted = entry.expect[what] if entry.expect else count
        if count != wanted:
            raise NetworkError(
                f"network {entry.name!r}: {what} {count:,} but its suite expects {wanted:,}"
            )
