"""``snnmap plot``: draw the figures of a mapping again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from snnmap.cli.options import JsonOption, QuietOption
from snnmap.cli.restoring import MappingArgument, NetworkOption, restore


def command(
    folder: MappingArgument,
    network: NetworkOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder for the figures (default: beside the mapping).",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Draw a mapping's figures: what each core holds, the mesh with its layers, links, spreads.

    utilization.png (used and limit of every resource, per core), mesh.png (spike load and layers),
    links.png (load of every link, unicast and multicast), distributions.png (fan-in, span of axons,
    synaptic reuse).

    Try:

        snnmap plot out

        snnmap plot out -o figures
    """
    import json

    from snnmap.plots import write_plots
    from snnmap.writers.atomic import result_folder, writing

    _, mapping = restore(folder, network, quiet=quiet)
    where = output or (folder if folder.is_dir() else folder.parent)
    with result_folder(where) as stage, writing(where):
        names = write_plots(mapping, stage)
    if as_json:
        typer.echo(json.dumps({"figures": sorted(str(where / name) for name in names)}))
    elif not quiet:
        typer.echo(f"wrote {where}: {', '.join(sorted(names))}")
