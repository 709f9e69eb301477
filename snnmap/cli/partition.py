"""``snnmap partition``: the first half of ``map``, with or without a chip."""

from __future__ import annotations

from typing import Annotated

import typer

from snnmap.cli.options import (
    AlgorithmOption,
    ConfigOption,
    DumpConfigOption,
    EngineOption,
    FormatOption,
    ImbalanceOption,
    InputsOffChipOption,
    JobsOption,
    JsonOption,
    NetworkArgument,
    NeuronsOption,
    OutputOption,
    PartsOption,
    PlotsOption,
    PresetOption,
    QuietOption,
    RatesOption,
    ReadOption,
    SeedOption,
    SetOption,
    TimeLimitOption,
)
from snnmap.cli.running import Job, run_job


def command(
    network: NetworkArgument,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            "-p",
            metavar="NAME|FILE",
            help="Hardware profile whose limits hold; without one give **--parts**.",
            show_default=False,
        ),
    ] = None,
    output: OutputOption = None,
    algorithm: AlgorithmOption = "multilevel",
    preset: PresetOption = "default",
    engine: EngineOption = "auto",
    seed: SeedOption = 0,
    set_: SetOption = None,
    inputs_off_chip: InputsOffChipOption = False,
    time_limit: TimeLimitOption = None,
    parts: PartsOption = None,
    imbalance: ImbalanceOption = 0.03,
    config: ConfigOption = None,
    dump_config: DumpConfigOption = False,
    file_format: FormatOption = None,
    read: ReadOption = None,
    rates: RatesOption = None,
    plots: PlotsOption = True,
    neurons: NeuronsOption = False,
    as_json: JsonOption = False,
    jobs: JobsOption = None,
    quiet: QuietOption = False,
) -> None:
    """Partition a network into cores, without placing them.

    Writes the same files as **map** but for placement and traffic. With **--parts K** and no
    profile it is k-way partitioning, the problem of general-purpose partitioners.

    Try:

        snnmap partition alexnet --profile loihi84 -o out

        snnmap partition circuit.hgr --parts 8 --imbalance 0.03 -o out
    """
    run_job(
        Job(
            network=network,
            profile=profile,
            output=output,
            algorithm=algorithm,
            preset=preset,
            engine=engine,
            seed=seed,
            overrides=tuple(set_ or ()),
            inputs_off_chip=inputs_off_chip,
            time_limit=time_limit,
            parts=parts,
            imbalance=imbalance,
            config=config,
            dump_config=dump_config,
            file_format=file_format,
            read=tuple(read or ()),
            rates=rates,
            plots=plots,
            neurons=neurons,
            as_json=as_json,
            jobs=jobs,
            quiet=quiet,
            only_partition=True,
        )
    )
