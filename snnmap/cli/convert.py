"""``snnmap convert``: a network from any format that is read to any that is written."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from snnmap.cli.loading import load, reader_options
from snnmap.cli.options import FormatOption, JsonOption, NetworkArgument, QuietOption, ReadOption


def command(
    network: NetworkArgument,
    output: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="The file to write; its suffix tells the format: .h5, .snn, .axh, .hgr, .csv, "
            ".tsv, .mtx, .npz, .npy, .graphml, .gexf, .json, .hif.",
            show_default=False,
        ),
    ],
    file_format: FormatOption = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="Format to write, if the suffix does not tell.",
            show_default=False,
        ),
    ] = None,
    read: ReadOption = None,
    write: Annotated[
        list[str] | None,
        typer.Option(
            "--write",
            metavar="KEY=VALUE",
            help="Option of the writer, e.g. weight_scale=1000 (.hgr); may be repeated.",
            show_default=False,
        ),
    ] = None,
    rates: Annotated[
        str | None,
        typer.Option(
            "--rates",
            metavar="RATES",
            help="Other spike rates: constant:R, lognormal:median=M,cv=C,seed=S, or a file (.toml, "
            ".csv, .npy, recorded spikes in .h5), with @POPULATION if it is that population's.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Convert a network file to another format; says what the other format cannot hold.

    The output appears whole or not at all. A shipped network may be written, too.

    Try:

        snnmap convert net.nir net.h5

        snnmap convert lenet lenet.snn

        snnmap convert circuit.hgr net.axh --read first_pin_is_source=true

        snnmap convert lenet lenet.hgr --write weight_scale=1000
    """
    from snnmap.cli.progress import listening
    from snnmap.rates import with_rates
    from snnmap.writers import format_of, write_network

    began = time.perf_counter()
    name = format_of(output, to)
    writer_options = reader_options(write, "--write")
    with listening(quiet=quiet) as progress:
        hypergraph, source = load(
            network, progress, file_format=file_format, options=reader_options(read)
        )
        notes: list[str] = []
        if rates is not None:
            hypergraph, notes = with_rates(hypergraph, rates)
        notes += write_network(hypergraph, output, format=name, progress=progress, **writer_options)
    record = {
        "network": source.path,
        "output": str(output),
        "format": name,
        "nodes": hypergraph.n_nodes,
        "hyperedges": hypergraph.n_hedges,
        "pins": hypergraph.n_pins,
        "bytes": output.stat().st_size,
        "seconds": round(time.perf_counter() - began, 3),
        "notes": notes,
    }
    if as_json:
        typer.echo(json.dumps(record, indent=1))
        return
    if quiet:
        return
    typer.echo(
        f"{output}: {hypergraph.n_nodes:,} nodes, {hypergraph.n_hedges:,} h-edges, "
        f"{hypergraph.n_pins:,} pins, {output.stat().st_size:,} bytes, {record['seconds']:.1f} s"
    )
    for note in notes:
        typer.echo(f"note: {note}")
