"""``snnmap export``: a mapping in the forms of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from snnmap.cli.options import JsonOption, QuietOption
from snnmap.cli.restoring import MappingArgument, NetworkOption, restore
from snnmap.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

FORMATS = ("sanafe", "tables")


def command(
    folder: MappingArgument,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="sanafe (arch.yaml and snn.yaml for the simulator SANA-FE) or tables "
            "(axons_in.csv and routing.csv: the axons into and out of every core).",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder for the files; made if missing.",
            show_default=False,
        ),
    ],
    timestep_ms: Annotated[
        float,
        typer.Option(
            "--timestep-ms", metavar="MS", help="Time step in which a neuron fires once (sanafe)."
        ),
    ] = 1.0,
    one_link_a_core: Annotated[
        bool,
        typer.Option(
            "--one-link-a-core",
            help="Of each axon write only one link into each core: the same messages, far smaller "
            "files (sanafe).",
        ),
    ] = False,
    network: NetworkOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a mapping for other programs.

    Try:

        snnmap export out --to tables -o tables

        snnmap export out --to sanafe -o sanafe --one-link-a-core
    """
    import json

    from snnmap.stored import read_mapping
    from snnmap.writers.atomic import result_folder, writing
    from snnmap.writers.sanafe import write_sanafe
    from snnmap.writers.tables import write_tables

    write: Callable[[Path], list[str]]
    if to == "tables":
        stored = read_mapping(folder)

        def write(stage: Path) -> list[str]:
            return write_tables(stored, stage)

    elif to == "sanafe":
        _, mapping = restore(folder, network, quiet=quiet)

        def write(stage: Path) -> list[str]:
            return write_sanafe(
                mapping, stage, timestep_ms=timestep_ms, one_link_a_core=one_link_a_core
            )

    else:
        raise ConfigError(f"unknown format {to!r}; known: {', '.join(FORMATS)}")
    with result_folder(output) as stage, writing(output):
        names = write(stage)
    if as_json:
        typer.echo(json.dumps({"files": [str(output / name) for name in names]}))
    elif not quiet:
        typer.echo(f"wrote {output}: {', '.join(names)}")
