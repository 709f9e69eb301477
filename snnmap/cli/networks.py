"""``snnmap networks``: the networks that come along, and what is in them."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from snnmap.cli.options import JsonOption

if TYPE_CHECKING:
    from snnmap.hypergraph import Hypergraph
    from snnmap.networks import Model


def networks(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME|FILE]",
            help="Build this network (or this TOML model file) and show its layers; "
            "list all networks otherwise.",
            show_default=False,
        ),
    ] = None,
    toml: Annotated[
        bool,
        typer.Option("--toml", help="Print the model file of NAME, to start your own from."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the networks that come with snnmap, or show the layers of one.

    Any of the names can stand where a command asks for a network: **snnmap map lenet ...**.
    Write your own: **snnmap networks lenet --toml > mynet.toml**.
    """
    from snnmap.errors import ConfigError

    if name is None:
        if toml:
            raise ConfigError(
                "--toml needs the name of a network, e.g. snnmap networks lenet --toml"
            )
        networks_list(as_json=as_json)
    elif toml:
        sys.stdout.write(_model(name).path.read_text(encoding="utf-8"))
    else:
        networks_show(name, as_json=as_json)


command = networks


def networks_list(*, as_json: bool = False) -> None:
    """Print one line a network."""
    from snnmap.networks import load_model, network_names

    models = [load_model(name) for name in network_names()]
    if as_json:
        _dump([_summary(model) for model in models])
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("network", "profile", "description"):
        table.add_column(column, no_wrap=column != "description")
    for model in models:
        table.add_row(model.name, model.profile or "", Text(model.description))
    table.caption = "profile: a chip that the network suits; any other may be tried"
    table.caption_justify = "left"
    Console().print(table)


def networks_show(name: str, *, as_json: bool = False) -> None:
    """Build one network and print its layers and counts."""
    from snnmap.cli.progress import listening

    model = _model(name)
    with listening(quiet=as_json) as progress:
        network = model.build(progress)
    layers: list[dict[str, Any]] = [
        {
            "name": p.name,
            "shape": list(p.shape),
            "neurons": p.size,
            "first": p.start,
            "is_input": p.is_input,
        }
        for p in network.populations
    ]
    if as_json:
        _dump({**_summary(model), **_counts(network), "layers": layers})
        return
    console = Console()
    console.print(Text.assemble((model.name, "bold"), f": {model.description}"))
    console.print(Text(f"source: {model.values['source'] or 'not stated'}\n"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("layer", "shape", "neurons", "first node"):
        table.add_column(column, justify="left" if column in ("layer", "shape") else "right")
    for layer in layers:
        table.add_row(
            Text(layer["name"] + (" (input)" if layer["is_input"] else "")),
            "x".join(map(str, layer["shape"])),
            f"{layer['neurons']:,}",
            f"{layer['first']:,}",
        )
    console.print(table)
    counts = _counts(network)
    console.print(
        f"\n{counts['nodes']:,} neurons, {counts['hyperedges']:,} axons, {counts['pins']:,} pins; "
        f"stored as {counts['groups']:,} groups with {counts['stored_pins']:,} pins"
    )


def _model(name: str) -> Model:
    from snnmap.networks import load_model, read_model

    return read_model(name) if name.endswith(".toml") else load_model(name)


def _summary(model: Model) -> dict[str, Any]:
    return {
        "name": model.name,
        "description": model.description,
        "source": model.values["source"],
        "stand_in": model.stand_in,
        "profile": model.profile,
    }


def _counts(network: Hypergraph) -> dict[str, int]:
    return {
        "nodes": network.n_nodes,
        "hyperedges": network.n_hedges,
        "pins": network.n_pins,
        "groups": network.n_groups,
        "stored_pins": len(network.destinations),
    }


def _dump(value: Any) -> None:
    json.dump(value, sys.stdout, indent=2)
    sys.stdout.write("\n")
