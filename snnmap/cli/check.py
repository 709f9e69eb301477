"""``snnmap check``: does a network fit a chip, what does not, and what would?"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from snnmap.cli.loading import load, reader_options
from snnmap.cli.options import (
    FormatOption,
    InputsOffChipOption,
    JsonOption,
    NetworkArgument,
    ProfileOption,
    ReadOption,
    SetOption,
)

if TYPE_CHECKING:
    from snnmap.check import CheckReport, Layer, LimitUse, Offence, Spread

_NEEDS = {
    "neurons_per_core": "stands for {} neurons, a core holds {}",
    "inbound_axons_per_core": "needs {} inbound axons, a core holds {}",
    "outbound_axons_per_core": "needs {} outbound axons, a core holds {}",
    "incident_axons_per_core": "needs {} incident axons, a core holds {}",
    "synapses_per_core": "needs {} synapses, a core holds {}",
    "fan_in_per_neuron": "has a fan-in of {}, a neuron takes {}",
    "destinations_per_neuron": "reaches neurons on {} cores or more, an axon goes to {}",
}
_SHOWN = 12
_COLOURS = {"fits": "green", "may fit": "yellow", "does not fit": "red"}


def check(
    network: NetworkArgument,
    profile: ProfileOption,
    set_: SetOption = None,
    inputs_off_chip: InputsOffChipOption = False,
    file_format: FormatOption = None,
    read: ReadOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say whether a network fits a chip, and if not, which neurons do not and what would help.

    Nothing is partitioned, so the answer comes at once. Exit code: 0 it fits (or nothing speaks
    against it), 1 it does not, 2 a mistake in what was asked.

    Try:

        snnmap check lenet --profile truenorth

        snnmap check model.nir -p loihi --inputs-off-chip --set chips=2x2
    """
    from snnmap.check import check_network
    from snnmap.cli.progress import listening
    from snnmap.hardware import load_profile

    chip = load_profile(profile, tuple(set_ or ()))
    with listening() as progress:
        hypergraph, _ = load(
            network, progress, file_format=file_format, options=reader_options(read)
        )
    report = check_network(hypergraph, chip, inputs_off_chip=inputs_off_chip)
    if as_json:
        json.dump(report.to_dict(), sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        print_report(report, Console())
    if not report.fits:
        raise typer.Exit(1)


command = check


def print_report(report: CheckReport, console: Console) -> None:
    """Print the verdict, the layers, the limits, the offenders and the remedies."""
    console.print(_headline(report), soft_wrap=True)
    console.print(_layer_table(report.layers))
    console.print(_limit_table(report))
    for line in _notes(report):
        console.print(line, soft_wrap=True)


def _headline(report: CheckReport) -> Text:
    text = Text.assemble(
        f"{report.network} on {report.profile}: ",
        (report.verdict, f"bold {_COLOURS[report.verdict]}"),
    )
    inputs = f" (with {report.inputs:,} inputs)" if report.inputs else ""
    if report.inputs_off_chip:
        inputs = f", {report.inputs:,} inputs off the chip" if report.inputs else ""
    return text.append(
        f"\n{report.neurons:,} neurons{inputs}, {report.hedges:,} axons, "
        f"{report.synapses:,} synapses\n{_cores(report)}"
    )


def _cores(report: CheckReport) -> str:
    at_least = f"at least {_count(report.cores_at_least, 'core')} of {report.cores:,}"
    if report.cores_by_filling is None:
        return at_least
    filled = f"a plain filling takes {report.cores_by_filling:,}"
    if report.fits and not report.certain:
        filled += ", more than there are: only a better partition (snnmap map) can tell"
    return f"{at_least}; {filled}"


def _layer_table(layers: tuple[Layer, ...]) -> Table:
    table = _table("layer", "neurons", "fan-in", "fan-out", "synapses")
    table.caption = "fan-in and fan-out: smallest / median / largest of the layer's neurons"
    for layer in layers:
        kind = " (input)" if layer.is_input else ""
        kind = " (input, off the chip)" if not layer.on_chip else kind
        table.add_row(
            Text(layer.name + kind),
            f"{layer.neurons:,}",
            _spread(layer.fan_in),
            _spread(layer.fan_out),
            f"{layer.synapses:,}",
        )
    return table


def _limit_table(report: CheckReport) -> Table:
    table = _table("limit", "used", "of", "share", "cores at least", "offenders")
    table.caption = "used: the most that one neuron needs, whatever the partition"
    for use in report.limits:
        bad = "red" if use.n_offenders or (use.cores_at_least or 0) > report.cores else ""
        table.add_row(
            use.key.replace("_", " ") + (" (default)" if use.soft else ""),
            f"{use.largest:,}",
            _limit(use),
            _percent(use.largest, use.limit),
            "" if use.cores_at_least is None else f"{use.cores_at_least:,}",
            f"{use.n_offenders:,}" if use.n_offenders else "",
            style=bad,
        )
    short = report.cores_at_least > report.cores
    table.add_row(
        "cores",
        f"{report.cores_at_least:,}",
        f"{report.cores:,}",
        _percent(report.cores_at_least, report.cores),
        f"{report.cores_at_least:,}",
        "",
        style="red" if short else "",
    )
    return table


def _notes(report: CheckReport) -> Iterator[Text]:
    for offence in report.offences[:_SHOWN]:
        yield Text.assemble(("does not fit: ", "red"), _offence(offence))
    if len(report.offences) > _SHOWN:
        more = len(report.offences) - _SHOWN
        yield Text.assemble(("does not fit: ", "red"), f"{more} more such lines (--json has all)")
    for delay in report.delays:
        steps = "" if delay.steps is None else f" = {delay.steps:,} time steps"
        where = f"delay {delay.source} to {delay.target}: {delay.delay_ms:g} ms{steps}"
        if delay.fits is False:
            yield Text.assemble(("does not fit: ", "red"), f"{where}, at most {delay.limit:,}")
        elif delay.fits is None:
            unknown = "the chip's longest delay is not known"
            if delay.limit is not None:
                unknown = (
                    f"at most {delay.limit:,} time steps of no fixed length; --set timestep_ms=1"
                )
            yield Text(f"cannot tell: {where}; {unknown}")
    for key in report.unknown:
        yield Text(f"not checked: {key.replace('_', ' ')}, not public; --set {key}=... to check it")
    if report.remedies:
        yield Text("\nwhat would help:")
        for remedy in report.remedies:
            yield Text(f"  - {remedy}")
    if not report.fits:
        names = ", ".join(report.profiles_that_fit) or "none"
        yield Text(f"shipped profiles against which nothing speaks: {names}")


def _offence(offence: Offence) -> str:
    who = f"{offence.kind} {offence.index}"
    if offence.layer is not None:
        who += f" of {offence.layer!r}"
        if len(offence.place) > 1:
            who += f" at {offence.place}"
    text = f"{who} {_NEEDS[offence.key].format(f'{offence.value:,}', f'{offence.limit:,}')}"
    if offence.count == 1:
        return text
    shown = ", ".join(str(i) for i in offence.examples)
    dots = ", ..." if offence.count > len(offence.examples) else ""
    return f"{text}; the worst of {offence.count:,} there ({shown}{dots})"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), caption_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left", no_wrap=bool(i))
    return table


def _limit(use: LimitUse) -> str:
    if use.limit is not None:
        return f"{use.limit:,}"
    return "no limit" if use.known else "n/a"


def _percent(used: int, limit: int | None) -> str:
    return "" if not limit else f"{100 * used / limit:,.1f} %"


def _spread(spread: Spread) -> str:
    if spread.minimum == spread.maximum:
        return f"{spread.maximum:,}"
    return f"{spread.minimum:,} / {spread.median:,g} / {spread.maximum:,}"


def _count(n: int, word: str) -> str:
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"
