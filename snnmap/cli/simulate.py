"""``snnmap simulate``: send spikes over a mapped chip and see how long they take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snnmap.cli.options import JsonOption, PlotsOption, QuietOption, SeedOption
from snnmap.cli.restoring import MappingArgument
from snnmap.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np

    from snnmap.hypergraph import Hypergraph
    from snnmap.stored import StoredMapping
    from snnmap.traffic import SimulationReport

FILES = (
    "simulation.json",
    "simulation_latency.csv",
    "simulation_links.csv",
    "simulation_time.csv",
)
FIGURE = "simulation.png"
N_BINS = 50


def command(
    folder: MappingArgument,
    timesteps: Annotated[
        int | None,
        typer.Option(
            "--timesteps",
            "-t",
            metavar="T",
            help="Time steps to simulate (default 1000, or all of a recording).",
            show_default=False,
        ),
    ] = None,
    timestep_ms: Annotated[
        float | None,
        typer.Option(
            "--timestep-ms",
            metavar="MS",
            help="Length of a time step (default: the profile's, else 1 ms).",
            show_default=False,
        ),
    ] = None,
    spikes: Annotated[
        str | None,
        typer.Option(
            "--spikes",
            metavar="FILE[@POPULATION]",
            help="Recorded spikes: CSV with the columns time_ms and neuron, SONATA spikes, NIR data "
            "or NWB units (HDF5); FILE@POPULATION if they are that population's (default: Poisson "
            "spikes at the network's rates).",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str, typer.Option("--model", metavar="NAME", help="multicast (x-y trees) or unicast.")
    ] = "multicast",
    link_bandwidth: Annotated[
        float | None,
        typer.Option(
            "--link-bandwidth",
            metavar="SPIKES/S",
            help="Spikes/s that a link carries (default: the profile's; unlimited if unknown).",
            show_default=False,
        ),
    ] = None,
    buffer: Annotated[
        int | None,
        typer.Option(
            "--buffer",
            metavar="N",
            help="Spikes that may wait for a link; the next one is dropped (default: no limit).",
            show_default=False,
        ),
    ] = None,
    arrivals: Annotated[
        str,
        typer.Option(
            "--arrivals",
            metavar="NAME",
            help="spread (Poisson spikes at any time) or burst (all at the start of their step).",
        ),
    ] = "spread",
    rate_scale: Annotated[
        float, typer.Option("--rate-scale", metavar="F", help="Multiply all rates.")
    ] = 1.0,
    seed: SeedOption = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder for simulation.json, tables of latency, links and time, and a figure; may "
            "be DIR.",
            show_default=False,
        ),
    ] = None,
    plots: PlotsOption = True,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Simulate the spikes of a mapping: latency, waiting, drops and load of links over time.

    Spikes queue for links that carry one at a time; routers and links take the profile's latencies.
    The network itself is not needed.

    Try:

        snnmap simulate out --timesteps 1000

        snnmap simulate out --link-bandwidth 1e6 --buffer 8 --arrivals burst --json
    """
    import json

    from snnmap.cli.progress import listening
    from snnmap.stored import read_mapping
    from snnmap.traffic import poisson_spikes, read_recording, recorded_spikes, simulate

    if spikes is not None and (arrivals != "spread" or rate_scale != 1.0):
        raise ConfigError("--arrivals and --rate-scale shape Poisson spikes; --spikes has its own")
    stored = read_mapping(folder)
    notes: list[str] = []
    step_ms = timestep_ms or stored.profile.timestep_ms or 1.0
    if spikes is None:
        graph = stored.part_graph
        sent = poisson_spikes(
            graph,
            1000 if timesteps is None else timesteps,
            timestep_ms=step_ms,
            rate_scale=rate_scale,
            arrivals=arrivals,
            seed=seed,
        )
    else:
        graph, streams = axon_graph(stored)
        times, neurons, notes = read_recording(spikes, len(stored.node_parts), stored.populations)
        notes += unsent(stored, neurons, streams[0])
        sent = recorded_spikes(times, neurons, streams, timestep_ms=step_ms)
        if timesteps is not None:
            sent = sent.first(timesteps)
    with listening(quiet=quiet) as progress:
        report = simulate(
            graph,
            stored.placement,
            stored.profile,
            sent,
            model=model,
            bandwidth_spikes_s=link_bandwidth,
            buffer=buffer,
            progress=progress,
        )
    record = {
        "network": stored.about_network["name"],
        "profile": stored.profile.name,
        "spikes_from": "poisson" if spikes is None else Path(spikes).name,
        "notes": notes,
        "seed": seed,
        "buffer": buffer,
        **report.summary(),
    }
    names: list[str] = []
    if output is not None:
        names = write_simulation(report, record, output, plots=plots)
    if as_json:
        typer.echo(json.dumps(record, indent=1))
    elif not quiet:
        typer.echo(simulation_text(report, record))
        if output is not None:
            typer.echo(f"wrote {output}: {', '.join(names)}")


def axon_graph(
    stored: StoredMapping,
) -> tuple[Hypergraph, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """The parts that every single axon reaches, and the axons of each neuron.

    Returns:
        (hypergraph with a node a part and an h-edge an axon, not merged; (offsets
        int64[n_neurons + 1], streams) for :func:`snnmap.traffic.recorded_spikes`).
    """
    import numpy as np

    from snnmap.hypergraph import Hypergraph

    t = stored.tables
    parts = stored.node_parts[t["axons/sources"]]
    inside = parts >= 0
    axons = np.repeat(np.arange(len(t["axons/weight"])), np.diff(t["axons/source_offsets"]))
    counts = np.bincount(axons[inside], minlength=len(t["axons/weight"]))
    graph = Hypergraph(
        n_nodes=stored.n_parts,
        group_offsets=t["groups/part_offsets"],
        destinations=t["groups/parts"],
        hedge_offsets=t["groups/axon_offsets"],
        source_offsets=np.concatenate([[0], np.cumsum(counts)]),
        sources=parts[inside],
        weights=t["axons/weight"],
        axon_counts=t["axons/count"],
        node_sizes=t["parts/neurons"],
        name=stored.about_network["name"],
    )
    neurons = t["axons/sources"][inside]
    per_neuron = np.bincount(neurons, minlength=len(stored.node_parts))
    offsets = np.concatenate([[0], np.cumsum(per_neuron)])
    return graph, (offsets, np.argsort(neurons, kind="stable"))


def unsent(
    stored: StoredMapping, neurons: np.ndarray[Any, Any], offsets: np.ndarray[Any, Any]
) -> list[str]:
    """Notes on recorded spikes that nothing sends: of inputs off the chip, of neurons without axon.

    Args:
        stored: the mapping.
        neurons: int64[n_spikes], who fired.
        offsets: int64[n_neurons + 1] of the neurons' axons on the chip.
    """
    import numpy as np

    away = stored.node_parts[neurons] < 0
    mute = ~away & (np.diff(offsets)[neurons] == 0)
    found = ((away, "inputs off the chip, which"), (mute, "neurons without axons, which"))
    return [
        f"{np.count_nonzero(which):,} of {len(neurons):,} spikes are of {whose} send nothing here"
        for which, whose in found
        if which.any()
    ]


def simulation_text(report: SimulationReport, record: dict[str, Any]) -> str:
    """The summary for people."""
    from snnmap.report import count, quantity, table

    def ns(key: str) -> str:
        return quantity(record[key], "ns")

    where = f"{record['network']} on {record['profile']}, {report.model}"
    sent = f"{report.n_spikes:,} spikes in {report.n_steps:,} time steps"
    rows = [
        ("delivered", f"{report.n_delivered:,}"),
        ("dropped", f"{report.n_dropped:,}"),
        ("latency, mean", ns("mean_latency_ns")),
        ("  median", ns("median_latency_ns")),
        ("  95 % within", ns("p95_latency_ns")),
        ("  99 % within", ns("p99_latency_ns")),
        ("  largest", ns("max_latency_ns")),
        ("waiting, all spikes", ns("waiting_ns")),
        ("most that waited for a link", count(report.max_waiting)),
        ("last spike arrived after", ns("drained_ns")),
        ("link bandwidth", quantity(report.bandwidth_spikes_s, "spikes/s")),
        ("  mean share of used links", _percent(record["mean_link_share"])),
        ("  largest share of a link", _percent(record["max_link_share"])),
    ]
    notes = [f"note: {note}" for note in record["notes"]]
    if not report.has_latency:
        notes.append("note: latencies that the profile does not know count as 0")
    if report.bandwidth_spikes_s is None:
        notes.append("note: no link bandwidth is known, so nothing waits; see --link-bandwidth")
    busiest = [
        (f"({x}, {y}) {direction}", f"{load:,.4g}", f"{wait:,.4g} ns")
        for x, y, direction, load, wait in report.busiest(5)
    ]
    blocks = [f"{where}: {sent}", table(("", "simulated"), rows), "\n".join(notes)]
    if busiest:
        blocks.append(table(("busiest links", "spikes/s", "longest wait"), busiest))
    return "\n\n".join(block for block in blocks if block)


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{100 * share:.3g} %"


def write_simulation(
    report: SimulationReport, record: dict[str, Any], folder: Path, *, plots: bool = True
) -> list[str]:
    """Write summary, tables and figure into `folder`, beside whatever is there; returns names.

    Raises:
        OutputError: it cannot be written; then nothing is.
    """
    import json

    import numpy as np

    from snnmap.plots import write_simulation_plot
    from snnmap.traffic import DIRECTIONS
    from snnmap.writers.atomic import result_folder, writing

    step_ns = report.duration_ns / len(report.link_counts)
    counts = report.link_counts.reshape(len(report.link_counts), -1)
    used = np.nonzero(report.link_counts.sum(axis=0))
    per_link = report.link_counts.sum(axis=0)
    edges = np.linspace(0.0, float(report.latencies_ns.max(initial=1.0)), N_BINS + 1)
    spread, _ = np.histogram(report.latencies_ns, edges)
    with result_folder(folder, known=(*FILES, FIGURE)) as stage, writing(folder):
        (stage / FILES[0]).write_text(json.dumps(record, indent=1) + "\n")
        _write_csv(
            stage / FILES[1],
            ("from_ns", "to_ns", "deliveries"),
            zip(edges[:-1].tolist(), edges[1:].tolist(), spread.tolist(), strict=True),
        )
        _write_csv(
            stage / FILES[2],
            ("x", "y", "direction", "spikes", "spikes_per_s", "longest_wait_ns"),
            (
                (
                    x + report.origin[0],
                    y + report.origin[1],
                    DIRECTIONS[d],
                    int(per_link[d, x, y]),
                    f"{per_link[d, x, y] / (report.duration_ns * 1e-9):.9g}",
                    f"{report.longest_waits_ns[d, x, y]:.9g}",
                )
                for d, x, y in zip(*(index.tolist() for index in used), strict=True)
            ),
        )
        _write_csv(
            stage / FILES[3],
            ("from_ns", "spikes_on_links", "spikes_on_busiest_link", "mean_share", "largest_share"),
            _time_rows(counts, step_ns, report.utilisation),
        )
        if not plots:
            return list(FILES)
        title = f"{record['network']} on {record['profile']}"
        write_simulation_plot(report, title, stage / FIGURE)
    return [*FILES, FIGURE]


def _time_rows(
    counts: np.ndarray[Any, Any], step_ns: float, shares: np.ndarray[Any, Any] | None
) -> Iterable[Sequence[Any]]:
    for i, row in enumerate(counts):
        known = ("", "") if shares is None else tuple(f"{share:.9g}" for share in shares[i])
        yield (f"{i * step_ns:.9g}", int(row.sum()), int(row.max(initial=0)), *known)


def _write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    import csv

    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
