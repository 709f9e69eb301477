"""``snnmap bench``: algorithms compared on a suite; every run recorded, nothing run twice."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from snnmap.bench.records import RunRecord


def command(
    suite: Annotated[
        str | None,
        typer.Argument(
            metavar="[SUITE]",
            help="Name of a suite (see **snnmap suite list**) or a TOML file.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder for networks, records and the report.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="DIR",
            help="Only draw the report of the records in this folder.",
            show_default=False,
        ),
    ] = None,
    profile: Annotated[
        str,
        typer.Option(
            "--profile",
            "-p",
            metavar="NAME|FILE|auto",
            help="Hardware profile; auto takes the one that each network recommends.",
        ),
    ] = "auto",
    algorithms: Annotated[
        str,
        typer.Option(
            "--algorithms",
            "-a",
            metavar="A,B,...",
            help="Algorithms, multilevel also as **multilevel:quality**; **mtkahypar** and "
            "**kahypar** if they are installed.",
        ),
    ] = "one-pass,overlap,hierarchical,multilevel",
    engines: Annotated[
        str,
        typer.Option("--engines", metavar="A,B", help="cpu, gpu or both (multilevel only)."),
    ] = "cpu",
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Runs of each, seeds 0, 1, ...")] = 3,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            metavar="SECONDS",
            help="Of each run; one that does not stop by itself is stopped and recorded so.",
            show_default=False,
        ),
    ] = None,
    memory_limit: Annotated[
        int | None,
        typer.Option(
            "--memory-limit",
            min=256,
            metavar="MB",
            help="Address space of each run's process.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="NAME",
            help="Only this network of the suite; may be repeated.",
            show_default=False,
        ),
    ] = None,
    at_once: Annotated[
        int,
        typer.Option(
            "--at-once",
            min=1,
            metavar="N",
            help="Methods that run side by side, each on its own share of the cores (as many as "
            "cores: one core each); what runs on a GPU runs alone.",
        ),
    ] = 1,
    retry: Annotated[
        bool, typer.Option("--retry", help="Repeat runs that were recorded without a result.")
    ] = False,
) -> None:
    """Compare algorithms on the networks of a suite.

    Every run is recorded with machine, versions and commit. The same command again runs only what
    has no record yet, so an interrupted bench goes on where it stopped.

    Try:

        snnmap bench smoke -o out

        snnmap bench table1 -a hierarchical,multilevel --seeds 3 --time-limit 600 -o out

        snnmap bench --report out
    """
    from snnmap.bench.report import write_report
    from snnmap.errors import ConfigError

    if report is not None:
        if suite is not None or output is not None:
            raise ConfigError("--report takes no suite and no --output; it draws what is there")
        _say_files(write_report(report))
        return
    if suite is None or output is None:
        raise ConfigError("a suite and --output DIR are needed (or --report DIR alone)")

    from snnmap.bench.records import SKIPPED
    from snnmap.bench.running import BenchConfig, run_bench
    from snnmap.cli.progress import listening
    from snnmap.networks.suites import load_suite

    config = BenchConfig(
        algorithms=tuple(_words(algorithms)),
        engines=tuple(_words(engines)),
        seeds=seeds,
        profile=profile,
        time_limit_s=time_limit,
        memory_limit_mb=memory_limit,
        retry=retry,
        at_once=at_once,
    )
    chosen = load_suite(suite)
    if only:
        chosen = chosen.only(only)
    skipped = set()
    with listening() as progress:
        for record in run_bench(chosen, output, config, progress=progress):
            if record.status != SKIPPED:
                typer.echo(_line(record))
            elif record.task.method not in skipped:
                skipped.add(record.task.method)
                typer.echo(f"{record.task.method}: skipped on every network: {record.message}")
    _say_files(write_report(output))


def _line(record: RunRecord) -> str:
    task = record.task
    name = f"{task.network}, {task.method}, seed {task.seed}"
    if record.connectivity is None or not record.has_result:
        return f"{name}: {record.status}: {record.message}"
    state = "" if record.status == "done" else f" ({record.status})"
    return (
        f"{name}: connectivity {record.connectivity:,.1f}, {record.parts:,} parts, "
        f"{record.seconds['total']:.3g} s{state}"
    )


def _say_files(files: list[Path]) -> None:
    typer.echo("\n".join(str(file) for file in files))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
