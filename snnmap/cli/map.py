"""``snnmap map``: a network onto a chip, from file to verified result files."""

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
    JointOption,
    JsonOption,
    NetworkArgument,
    NeuronsOption,
    OutputOption,
    PartsOption,
    PlotsOption,
    PresetOption,
    ProfileOption,
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
    profile: ProfileOption,
    output: OutputOption = None,
    algorithm: AlgorithmOption = "multilevel",
    preset: PresetOption = "default",
    engine: EngineOption = "auto",
    seed: SeedOption = 0,
    placer: Annotated[
        str,
        typer.Option(
            "--placer",
            metavar="NAME",
            help="How parts find cores: hilbert, snake, z-order, quadtree, spectral, "
            "minimum-distance, recursive-bisection, or auto: all of them, the best is kept.",
        ),
    ] = "auto",
    refine: Annotated[
        str | None,
        typer.Option(
            "--refine",
            metavar="NAME",
            help="How the placement is improved: none, neighbour-swaps, force-directed or "
            "annealing (default: annealing after auto, force-directed after the others).",
            show_default=False,
        ),
    ] = None,
    joint: JointOption = False,
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
    """Map a network onto a chip: partition, place, measure traffic, verify, write.

    Prints a summary: network, chip, parts against their lower bound, what each core holds of each
    resource, energy and latency. With **-o DIR** it writes mapping.json, mapping.h5, partition.txt,
    placement.csv, placement.bin, traffic.csv and figures, all or none.

    Ctrl-C stops the search and keeps the best valid result so far; a second Ctrl-C leaves at once
    and writes nothing.

    Try:

        snnmap map lenet --profile loihi64 -o out

        snnmap map net.snn -p loihi2 --set neurons_per_core=512 --preset quality -o out

        snnmap map lenet --profile loihi64 --joint -o shorter

        snnmap map model.nir -p loihi --inputs-off-chip --time-limit 60 --json
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
            placer=placer,
            refine=refine,
            joint=joint,
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
        )
    )
