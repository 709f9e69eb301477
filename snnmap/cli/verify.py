"""``snnmap verify``: read a mapping back and check all of it against its network."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from snnmap.cli.options import JsonOption, QuietOption
from snnmap.cli.restoring import MappingArgument, NetworkOption, restore

if TYPE_CHECKING:
    from snnmap.mapping import Mapping

MAX_SHOWN = 20

_CLAIMS = ("network", "profile", "partition", "utilization", "layers", "placement", "traffic")
_HISTORY = ("source", "sha256", "options", "seconds", "config", "complete", "objective", "seed")


def command(
    folder: MappingArgument,
    exports: Annotated[
        list[Path] | None,
        typer.Option(
            "--exports",
            metavar="DIR",
            help="Folder of **snnmap export** to check as well; may be repeated. Exports in the "
            "mapping's own folder are checked anyway.",
            show_default=False,
        ),
    ] = None,
    network: NetworkOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check a mapping from first principles, with code that no partitioner or placer shares.

    Reads the mapping and its network again and checks: every neuron on exactly one core, every
    limit of the profile, cores inside the grid, alive and used once; connectivity, spikes, hops and
    energy recomputed; axon and routing tables; partition.txt, placement.csv, placement.bin,
    traffic.csv, neurons.csv and mapping.json telling the same story as mapping.h5; exported tables
    and SANA-FE files, followed row by row.

    Exit code 0 if all is right, 1 if not (one line a fault), 2 if it cannot be read.

    Try:

        snnmap map lenet --profile loihi64 -o out && snnmap verify out

        snnmap export out --to tables -o tables && snnmap verify out --exports tables

        snnmap verify out --network moved/net.snn
    """
    from snnmap.errors import InputError
    from snnmap.verification import EXPORTS, verify_exports, verify_tables

    for extra in exports or ():
        if not any((extra / name).exists() for name in EXPORTS):
            raise InputError(extra, f"holds no exports; expected {', '.join(EXPORTS)}")
    stored, mapping = restore(folder, network, quiet=quiet)
    faults = [*mapping.violations, *verify_tables(stored, mapping.hypergraph, mapping.network)]
    claimed = stored.settings["connectivity"]
    if not _same(claimed, mapping.metrics.connectivity):
        right = mapping.metrics.connectivity
        faults.append(f"mapping.h5: connectivity {claimed} was claimed, {right} is right")
    if folder.is_dir():
        faults += _file_faults(folder, mapping)
    for extra in [*([folder] if folder.is_dir() else []), *(exports or ())]:
        try:
            faults += verify_exports(extra, stored, mapping.hypergraph, mapping.network)
        except InputError as error:
            faults.append(str(error))
    if as_json:
        typer.echo(json.dumps(_record(mapping, faults), indent=1))
    elif not quiet:
        _print(mapping, faults)
    if faults:
        raise typer.Exit(1)


def _record(mapping: Mapping, faults: list[str]) -> dict[str, Any]:
    return {
        "verified": not faults,
        "faults": faults,
        "network": mapping.network.name,
        "profile": mapping.profile.name,
        "parts": mapping.partition.n_parts,
        "connectivity": mapping.metrics.connectivity,
    }


def _print(mapping: Mapping, faults: list[str]) -> None:
    what = (
        f"{mapping.network.name} on {mapping.profile.name}: {mapping.partition.n_parts:,} parts, "
        f"connectivity {mapping.metrics.connectivity:,.1f}"
    )
    if not faults:
        typer.echo(f"verified: {what}")
        return
    typer.echo(f"NOT VALID: {what}")
    for fault in faults[:MAX_SHOWN]:
        typer.echo(f"  {fault}")
    if len(faults) > MAX_SHOWN:
        typer.echo(f"  ... and {len(faults) - MAX_SHOWN:,} more")


# ---------------------------------------------------------------------- the other files


def _file_faults(folder: Path, mapping: Mapping) -> list[str]:
    from snnmap.cli.running import read_record
    from snnmap.errors import InputError
    from snnmap.writers.assignments import read_partition, read_placement
    from snnmap.writers.mapping import (
        cores_table,
        mapping_record,
        neurons_table,
        traffic_table,
    )

    faults = []
    try:
        written = read_partition(folder / "partition.txt", mapping.network.n_nodes)
        if not np.array_equal(written, mapping.node_parts):
            faults.append("partition.txt: differs from mapping.h5")
        claims = read_record(folder / "mapping.json")
        right = mapping_record(mapping)
        for section in _CLAIMS:
            faults += _differences(claims.get(section), right.get(section), section)
        if claims.get("verified") is not True:
            faults.append("mapping.json: does not claim to be verified")
        if mapping.placement is not None:
            if not np.array_equal(
                read_placement(folder / "placement.bin"), mapping.placement.cores
            ):
                faults.append("placement.bin: differs from mapping.h5")
            faults += _table_faults(folder / "placement.csv", *cores_table(mapping))
            faults += _table_faults(folder / "traffic.csv", *traffic_table(mapping))
        if (folder / "neurons.csv").exists():
            faults += _table_faults(folder / "neurons.csv", *neurons_table(mapping))
    except InputError as error:
        faults.append(str(error))
    return faults


def _differences(claimed: Any, right: Any, where: str) -> list[str]:
    """Where two JSON values differ, beyond rounding and history."""
    if isinstance(right, dict) and isinstance(claimed, dict):
        found = []
        for key in right:
            if key not in _HISTORY:
                found += _differences(claimed.get(key), right[key], f"{where}.{key}")
        return found
    if isinstance(right, list) and isinstance(claimed, list) and len(right) == len(claimed):
        found = []
        for i, (a, b) in enumerate(zip(claimed, right, strict=True)):
            found += _differences(a, b, f"{where}[{i}]")
        return found
    if _same(claimed, right):
        return []
    return [f"mapping.json: {where} is {_short(claimed)}; {_short(right)} is right"]


def _table_faults(path: Path, header: tuple[str, ...], rows: Any) -> list[str]:
    """Compare a CSV file with what it must say, cell by cell."""
    from snnmap.errors import InputError

    try:
        with path.open(newline="") as file:
            written = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(path, f"cannot be read: {error}") from None
    expected = [list(header), *([str(cell) for cell in row] for row in rows)]
    if len(written) != len(expected):
        return [f"{path.name}: {len(written)} lines; {len(expected)} are right"]
    for number, (line, right) in enumerate(zip(written, expected, strict=True), 1):
        if len(line) != len(right) or not all(map(_same_cell, line, right)):
            return [f"{path.name}: line {number} differs from mapping.h5"]
    return []


def _same_cell(a: str, b: str) -> bool:
    if a == b:
        return True
    try:
        return _same(float(a), float(b))
    except ValueError:
        return False


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return bool(np.isclose(a, b, rtol=1e-8, atol=1e-9))
    return bool(a == b)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
