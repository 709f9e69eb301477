"""Options that several commands share, so that they are spelled and explained alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

NetworkArgument = Annotated[
    str,
    typer.Argument(
        metavar="NETWORK",
        help="A file (.h5, .snn, .axh, .hgr, .nir, .net, .npz, .mtx, .csv, .toml, ...) or the name "
        "of a shipped network (see **snnmap networks**).",
        show_default=False,
    ),
]

ProfileOption = Annotated[
    str,
    typer.Option(
        "--profile",
        "-p",
        metavar="NAME|FILE",
        help="Hardware profile: a shipped name (see **snnmap profiles**) or a TOML file.",
        show_default=False,
    ),
]

SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override one value of the profile, e.g. neurons_per_core=512; may be repeated.",
        show_default=False,
    ),
]

InputsOffChipOption = Annotated[
    bool,
    typer.Option(
        "--inputs-off-chip",
        help="Input populations take no core; their axons still enter the cores they reach.",
    ),
]

SeedOption = Annotated[
    int, typer.Option("--seed", min=0, help="The same seed gives the same answer, always.")
]

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout instead of text.")
]

TimeLimitOption = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        min=0.0,
        metavar="SECONDS",
        help="Stop searching after this time and take the best valid result so far.",
        show_default=False,
    ),
]

JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        min=1,
        metavar="N",
        help="CPU threads to use (default: all that this process may). Never changes a result.",
        show_default=False,
    ),
]

FormatOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="FORMAT",
        help="Format of the file, if its content and name do not tell.",
        show_default=False,
    ),
]

ReadOption = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        metavar="KEY=VALUE",
        help="Option of the file's reader, e.g. first_pin_is_source=true (.hgr); may be repeated.",
        show_default=False,
    ),
]

RatesOption = Annotated[
    str | None,
    typer.Option(
        "--rates",
        metavar="RATES",
        help="Other spike rates: constant:R, lognormal:median=M,cv=C,seed=S, or a file (.toml, "
        ".csv, .npy, recorded spikes in .h5), with @POPULATION if it is that population's.",
        show_default=False,
    ),
]

AlgorithmOption = Annotated[
    str,
    typer.Option(
        "--algorithm",
        "-a",
        metavar="NAME",
        help="multilevel, or a baseline: hierarchical, overlap, one-pass.",
    ),
]

PresetOption = Annotated[
    str,
    typer.Option("--preset", metavar="NAME", help="fast, default, quality, or paper (multilevel)."),
]

EngineOption = Annotated[
    str, typer.Option("--engine", metavar="NAME", help="cpu, gpu, or auto: gpu if there is one.")
]

PlacerEngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="cpu, gpu, or auto: gpu if there is one and it pays (from 1024 parts on).",
    ),
]

JointOption = Annotated[
    bool,
    typer.Option(
        "--joint",
        help="After placement let neurons change parts too, weighing copies of spikes by how far "
        "they travel; all limits still hold.",
    ),
]

PartsOption = Annotated[
    int | None,
    typer.Option(
        "--parts",
        min=1,
        metavar="K",
        help="Use at most K parts of balanced size (k-way partitioning, see --imbalance).",
        show_default=False,
    ),
]

ImbalanceOption = Annotated[
    float,
    typer.Option(
        "--imbalance",
        min=0.0,
        metavar="E",
        help="With --parts: a part holds at most (1 + E) times the average.",
    ),
]

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="TOML file with settings of the partitioner, over those of the preset.",
        show_default=False,
    ),
]

DumpConfigOption = Annotated[
    bool,
    typer.Option(
        "--dump-config", help="Print the partitioner's effective settings as TOML and leave."
    ),
]

PlotsOption = Annotated[bool, typer.Option("--plots/--no-plots", help="Draw the figures.")]

NeuronsOption = Annotated[
    bool, typer.Option("--neurons", help="Also write neurons.csv, one line a neuron.")
]

OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Folder for the results; created if missing, refused before any work if it cannot "
        "be written.",
        show_default=False,
    ),
]

QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")]
