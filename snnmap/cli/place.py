"""``snnmap place``: put the parts of a mapping on other cores."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from snnmap.cli.options import (
    JobsOption,
    JointOption,
    JsonOption,
    PlacerEngineOption,
    PlotsOption,
    QuietOption,
    SeedOption,
    TimeLimitOption,
)
from snnmap.cli.restoring import MappingArgument, NetworkOption, restore
from snnmap.errors import ConfigError

if TYPE_CHECKING:
    from snnmap.mapping import Mapping
    from snnmap.placement.region import Core
    from snnmap.progress import Progress


def command(
    folder: MappingArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder for the new mapping; without one nothing is written.",
            show_default=False,
        ),
    ] = None,
    placer: Annotated[
        str,
        typer.Option(
            "--placer",
            metavar="NAME",
            help="hilbert, snake, z-order, quadtree, spectral, minimum-distance, "
            "recursive-bisection, or auto: all of them, the best is kept.",
        ),
    ] = "auto",
    refine: Annotated[
        str | None,
        typer.Option(
            "--refine",
            metavar="NAME",
            help="none, neighbour-swaps, force-directed or annealing (default: annealing after "
            "auto, force-directed after the others).",
            show_default=False,
        ),
    ] = None,
    seed: SeedOption = 0,
    fix: Annotated[
        list[str] | None,
        typer.Option(
            "--fix",
            metavar="PART=X,Y",
            help="Keep a part on a core; may be repeated.",
            show_default=False,
        ),
    ] = None,
    forbid: Annotated[
        list[str] | None,
        typer.Option(
            "--forbid",
            metavar="CORES",
            help="Cores to leave empty, as x,y or ranges as 0-7,5; several separated by ;.",
            show_default=False,
        ),
    ] = None,
    joint: JointOption = False,
    engine: PlacerEngineOption = "auto",
    network: NetworkOption = None,
    time_limit: TimeLimitOption = None,
    plots: PlotsOption = True,
    as_json: JsonOption = False,
    jobs: JobsOption = None,
    quiet: QuietOption = False,
) -> None:
    """Place the parts of a mapping anew.

    Who shares a core with whom stays as it is, unless **--joint** is given. Takes a folder that
    **snnmap map** or **snnmap partition** wrote, and writes a mapping like theirs, measured and
    verified anew.

    Try:

        snnmap partition lenet --profile loihi64 -o parts && snnmap place parts -o out

        snnmap place out --joint -o better

        snnmap place out --placer spectral --fix 0=0,0 --forbid "0-63,5; 3,4" -o elsewhere
    """
    import json

    from snnmap.cli.loading import use_jobs
    from snnmap.cli.progress import listening
    from snnmap.writers.atomic import result_folder, writing
    from snnmap.writers.mapping import RESULT_FILES, mapping_record, write_files

    use_jobs(jobs)
    fixed, forbidden = read_fixed(fix or []), read_cores(forbid or [])
    _, mapping = restore(folder, network, quiet=quiet)
    with listening(quiet=quiet, time_limit=time_limit) as progress:
        mapping = placed_anew(
            mapping,
            placer,
            refine,
            seed,
            engine=engine,
            fixed=fixed,
            forbidden=forbidden,
            progress=progress,
        )
        if joint:
            if fixed or forbidden:
                raise ConfigError("--joint moves parts freely; leave out --fix and --forbid")
            mapping = improved_jointly(mapping, progress)
    if not (as_json or quiet):
        typer.echo(mapping.summary())
    if output is not None:
        with result_folder(output, known=RESULT_FILES) as stage, writing(output):
            names = write_files(mapping, stage, plots=plots)
        if not (as_json or quiet):
            typer.echo(f"wrote {output}: {', '.join(sorted(names))}")
    if as_json:
        typer.echo(json.dumps(mapping_record(mapping), indent=1, allow_nan=False))
    if not mapping.is_verified:
        raise typer.Exit(1)


def placed_anew(
    mapping: Mapping,
    placer: str,
    refine: str | None,
    seed: int,
    *,
    engine: str,
    fixed: dict[int, Core],
    forbidden: set[Core],
    progress: Progress,
) -> Mapping:
    """The same partition on other cores, measured and verified."""
    import time

    from snnmap.placement import place

    began = time.perf_counter()
    placement = place(
        mapping.part_graph,
        mapping.profile,
        placer=placer,
        refine=refine,
        seed=seed,
        engine=engine,
        fixed=fixed,
        forbidden=forbidden,
        progress=progress,
    )
    seconds = {"place": time.perf_counter() - began}
    return checked(replace(mapping, placement=placement, seconds=seconds), progress)


def improved_jointly(mapping: Mapping, progress: Progress) -> Mapping:
    """Neurons on other parts and parts on other cores, measured and verified."""
    from snnmap.partitioning.metrics import measure
    from snnmap.placement import part_hypergraph
    from snnmap.placement.joint import improve_jointly

    assert mapping.placement is not None
    found = improve_jointly(
        mapping.hypergraph,
        mapping.partition,
        mapping.placement,
        mapping.profile,
        mapping.limits,
        progress=progress,
    )
    joint = found.placement.seconds["joint"]
    mapping = replace(
        mapping,
        partition=found.partition,
        placement=found.placement,
        part_graph=part_hypergraph(mapping.hypergraph, found.partition),
        metrics=measure(mapping.hypergraph, found.partition.parts),
        seconds={**mapping.seconds, "joint": joint},
    )
    return checked(mapping, progress)


def checked(mapping: Mapping, progress: Progress) -> Mapping:
    """The mapping with its traffic measured and everything verified."""
    import time

    from snnmap.traffic import measure_traffic
    from snnmap.verification import verify_mapping

    assert mapping.placement is not None
    began = time.perf_counter()
    traffic = measure_traffic(
        mapping.part_graph, mapping.placement, mapping.profile, progress=progress
    )
    violations = verify_mapping(
        mapping.hypergraph,
        mapping.partition.parts,
        mapping.placement.cores,
        mapping.profile,
        mapping.limits,
        connectivity=mapping.metrics.connectivity,
        traffic=traffic,
    )
    seconds = {**mapping.seconds, "traffic and verify": time.perf_counter() - began}
    seconds["total"] = sum(value for name, value in seconds.items() if name != "total")
    return replace(mapping, traffic=traffic, violations=violations, seconds=seconds)


def read_fixed(words: list[str]) -> dict[int, Core]:
    """``["3=0,5"]`` as part -> core.

    Raises:
        ConfigError: a word of another form, or a part twice.
    """
    fixed: dict[int, Core] = {}
    for word in words:
        found = re.fullmatch(r"\s*(\d+)\s*=\s*(\d+)\s*,\s*(\d+)\s*", word)
        if not found:
            raise ConfigError(f"--fix {word!r}; expected PART=X,Y, e.g. 3=0,5")
        part = int(found[1])
        if part in fixed:
            raise ConfigError(f"--fix {word!r}; part {part} is fixed twice")
        fixed[part] = (int(found[2]), int(found[3]))
    return fixed


def read_cores(words: list[str]) -> set[Core]:
    """``["0-7,5; 3,4"]`` as cores, in the notation of a profile's ``dead_cores``.

    Raises:
        ConfigError: a word of another form.
    """
    from snnmap.hardware.schema import KEYS

    cores: set[Core] = set()
    for word in words:
        try:
            cores |= KEYS["dead_cores"].read(word)
        except ValueError as error:
            raise ConfigError(f"--forbid {word!r}; expected {error}") from None
    return cores
