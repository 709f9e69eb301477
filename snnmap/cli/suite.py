"""``snnmap suite``: lists of networks to compare mappers on, and their files."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from snnmap.cli.options import JsonOption

if TYPE_CHECKING:
    from snnmap.bench.making import Made
    from snnmap.networks.suites import Suite, SuiteEntry

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Benchmark suites: list them, show what is in one, make its files.",
)

SuiteArgument = Annotated[
    str,
    typer.Argument(
        metavar="SUITE",
        help="Name of a suite (see **snnmap suite list**) or a TOML file.",
        show_default=False,
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        "--seed",
        min=0,
        help="Replace every seed of the networks; by default those of the suite stand.",
        show_default=False,
    ),
]
ScaleOption = Annotated[
    float,
    typer.Option(
        "--scale", help="Factor on the size of every network (images keep theirs, channels do not)."
    ),
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="NAME",
        help="Only this network of the suite; may be repeated.",
        show_default=False,
    ),
]


@app.command("list")
def list_suites(as_json: JsonOption = False) -> None:
    """List the suites that come with snnmap."""
    from snnmap.networks.suites import load_suite, suite_names

    suites = [load_suite(name) for name in suite_names()]
    if as_json:
        _dump(
            [
                {"name": s.name, "description": s.description, "networks": len(s.entries)}
                for s in suites
            ]
        )
        return
    table = _table("suite", "networks", "description")
    for suite in suites:
        table.add_row(suite.name, str(len(suite.entries)), Text(suite.description))
    _console().print(table)


@app.command("show")
def show_suite(
    suite: SuiteArgument,
    seed: SeedOption = None,
    scale: ScaleOption = 1.0,
    as_json: JsonOption = False,
) -> None:
    """Show the networks of a suite: sizes, parameters, recommended profile."""
    from snnmap.networks.suites import load_suite

    shown = load_suite(suite, seed=seed, scale=scale)
    if as_json:
        _dump(_summary(shown))
        return
    console = _console()
    console.print(Text.assemble((shown.name, "bold"), f": {shown.description}\n"))
    table = _table("network", "neurons", "axons", "pins", "profile", "description")
    above = ""
    for entry in shown.entries:
        numbers = [f"{entry.expect[k]:,}" for k in _COUNTS] if entry.expect else ["", "", ""]
        text = "" if entry.model.description == above else entry.model.description
        table.add_row(Text(entry.name), *numbers, entry.profile or "", Text(text))
        above = entry.model.description
    console.print(table)
    if any(entry.expect is None for entry in shown.entries):
        console.print("\ncounts are known when the networks are made")


@app.command("make")
def make(
    suite: SuiteArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the files.")
    ],
    only: OnlyOption = None,
    format: Annotated[
        str, typer.Option("--format", metavar="h5|snn|axh|hgr", help="Format of the files.")
    ] = "h5",
    seed: SeedOption = None,
    scale: ScaleOption = 1.0,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="cpu|gpu|auto",
            help="Who links the neurons of reservoirs: cpu, gpu, or auto: gpu if there is one. "
            "The files are the same byte for byte.",
        ),
    ] = "cpu",
    as_json: JsonOption = False,
) -> None:
    """Write the networks of a suite as files, with a manifest of counts and digests.

    The same seed gives the same networks. A file that is there already and right is kept, so an
    interrupted run goes on where it stopped: **snnmap suite make table1 -o table1 --format snn**.
    """
    from snnmap.bench.making import make_suite
    from snnmap.cli.progress import listening
    from snnmap.networks.suites import load_suite

    chosen = load_suite(suite, seed=seed, scale=scale)
    if only:
        chosen = chosen.only(only)
    records = []
    with listening(quiet=as_json) as progress:
        for made in make_suite(chosen, output, format=format, engine=engine, progress=progress):
            records.append(asdict(made.record))
            if not as_json:
                typer.echo(_line(made))
    if as_json:
        _dump({"suite": chosen.name, "folder": str(output), "networks": records})


_COUNTS = ("nodes", "hyperedges", "pins")


def _line(made: Made) -> str:
    r = made.record
    how = "kept" if made.reused else f"{made.seconds:.1f} s"
    return (
        f"{r.file}: {r.nodes:,} neurons, {r.hyperedges:,} axons, {r.pins:,} pins, "
        f"{r.bytes / 1e6:,.1f} MB, sha256 {r.sha256[:16]} ({how})"
    )


def _summary(suite: Suite) -> dict[str, Any]:
    return {
        "name": suite.name,
        "description": suite.description,
        "networks": [_entry(entry) for entry in suite.entries],
    }


def _entry(entry: SuiteEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "description": entry.model.description,
        "profile": entry.profile,
        "parameters": entry.parameters,
        "seed": entry.seed,
        "scale": entry.scale,
        **{key: entry.expect[key] if entry.expect else None for key in _COUNTS},
    }


def _console() -> Console:
    """As wide as the terminal; wide, where no terminal wraps lines."""
    console = Console()
    return console if console.is_terminal else Console(width=160)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        right = column in ("networks", "neurons", "axons", "pins")
        table.add_column(
            column, justify="right" if right else "left", no_wrap=column != "description"
        )
    return table


def _dump(value: Any) -> None:
    json.dump(value, sys.stdout, indent=2)
    sys.stdout.write("\n")
