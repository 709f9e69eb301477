"""``snnmap info``: what is in a network."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from snnmap.cli.loading import load, reader_options
from snnmap.cli.options import FormatOption, JsonOption, NetworkArgument, ReadOption

if TYPE_CHECKING:
    from snnmap.hypergraph import Hypergraph
    from snnmap.mapping import Source


def command(
    network: NetworkArgument,
    file_format: FormatOption = None,
    read: ReadOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a network: neurons, axons, pins, layers, fan-in, fan-out, rates.

    Try:

        snnmap info vgg11

        snnmap info net.snn --json
    """
    from snnmap.cli.progress import listening

    with listening() as progress:
        hypergraph, source = load(
            network, progress, file_format=file_format, options=reader_options(read)
        )
    record = _record(hypergraph, source)
    typer.echo(json.dumps(record, indent=1) if as_json else _text(record))


def _record(network: Hypergraph, source: Source) -> dict[str, Any]:
    fan_outs = np.diff(network.group_offsets)[network.hedge_groups]
    return {
        "name": network.name,
        "nodes": network.n_nodes,
        "hyperedges": network.n_hedges,
        "pins": network.n_pins,
        "destination_sets": network.n_groups,
        "stored_pins": len(network.destinations),
        "mean_cardinality": network.n_pins / network.n_hedges if network.n_hedges else 0.0,
        "fan_in": _spread(network.fan_ins),
        "fan_out": _spread(fan_outs),
        "weight": _spread(network.weights),
        "sha256": source.sha256,
        "layers": [
            {
                "name": p.name,
                "neurons": p.size,
                "shape": list(p.shape),
                "input": p.is_input,
                "fan_in": _spread(network.fan_ins[p.start : p.stop]),
            }
            for p in network.populations
        ],
        "projections": [
            {"source": p.source, "target": p.target, "delay_ms": p.delay_ms}
            for p in network.projections
        ],
    }


def _spread(values: Any) -> dict[str, float]:
    if not len(values):
        return {"min": 0, "median": 0, "mean": 0.0, "max": 0}
    return {
        "min": values.min().item(),
        "median": float(np.median(values)),
        "mean": float(values.mean()),
        "max": values.max().item(),
    }


def _text(record: dict[str, Any]) -> str:
    from snnmap.report import table

    lines = [
        f"{record['name']}: {record['nodes']:,} neurons, {record['hyperedges']:,} axons, "
        f"{record['pins']:,} pins ({record['mean_cardinality']:,.2f} an axon)",
        f"{record['destination_sets']:,} different destination sets hold "
        f"{record['stored_pins']:,} pins",
        "",
        table(
            ("", "min", "median", "mean", "max"),
            [(title, *_numbers(record[key])) for title, key in _ROWS],
        ),
    ]
    if record["layers"]:
        rows = [
            (
                layer["name"] + (" (input)" if layer["input"] else ""),
                f"{layer['neurons']:,}",
                f"{layer['fan_in']['min']:,}",
                f"{layer['fan_in']['max']:,}",
                " x ".join(map(str, layer["shape"])),
            )
            for layer in record["layers"]
        ]
        header = ("layer", "neurons", "fan-in min", "max", "shape")
        lines += ["", table(header, rows, left=(0, 4))]
    delays = [p for p in record["projections"] if p["delay_ms"] is not None]
    if delays:
        rows = [(p["source"], p["target"], *(f"{d:g}" for d in p["delay_ms"])) for p in delays]
        lines += ["", table(("from", "to", "delay min ms", "max"), rows, left=(0, 1))]
    return "\n".join(lines)


_ROWS = (("fan-in of a neuron", "fan_in"), ("fan-out of an axon", "fan_out"), ("weight", "weight"))


def _numbers(spread: dict[str, float]) -> list[str]:
    return [f"{spread[key]:,.6g}" for key in ("min", "median", "mean", "max")]
