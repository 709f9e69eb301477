"""What ``map`` and ``partition`` share: from options to a summary and files in a folder."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from snnmap.cli.loading import load, reader_options, use_jobs
from snnmap.cli.progress import TerminalProgress, listening
from snnmap.errors import ConfigError

if TYPE_CHECKING:
    from snnmap.hardware import HardwareProfile
    from snnmap.hypergraph import Hypergraph
    from snnmap.limits import Limits
    from snnmap.mapping import Mapping


@dataclass(frozen=True, slots=True)
class Job:
    """The options of ``map`` and ``partition``, named as on the command line."""

    network: str
    profile: str | None
    output: Path | None
    algorithm: str
    preset: str
    engine: str
    seed: int
    overrides: tuple[str, ...]
    inputs_off_chip: bool
    time_limit: float | None
    parts: int | None
    imbalance: float
    config: Path | None
    dump_config: bool
    file_format: str | None
    read: tuple[str, ...]
    rates: str | None
    plots: bool
    neurons: bool
    as_json: bool
    jobs: int | None
    quiet: bool
    placer: str = "auto"
    refine: str | None = None
    joint: bool = False
    only_partition: bool = False


def run_job(job: Job) -> None:
    """Map or partition, print and write; exit code 1 if the result fails its verification."""
    use_jobs(job.jobs)
    from snnmap.writers.atomic import result_folder, writing
    from snnmap.writers.mapping import RESULT_FILES, mapping_record, write_files

    _check_names(job)
    if job.dump_config:
        typer.echo(_settings(job))
        return
    profile = _profile(job)
    with ExitStack() as stack:
        stage = None
        if job.output is not None:  # refused here, before any work, if it cannot be written
            stage = stack.enter_context(result_folder(job.output, known=RESULT_FILES))
        progress = stack.enter_context(listening(quiet=job.quiet, time_limit=job.time_limit))
        mapping = _map(job, profile, progress)
        if not (job.quiet or job.as_json):
            typer.echo(mapping.summary())
        names = []
        if stage is not None:
            progress.start("write", total=None)
            with writing(stage.parent):
                names = write_files(mapping, stage, plots=job.plots, neurons=job.neurons)
            progress.finish()
    if job.as_json:
        typer.echo(json.dumps(mapping_record(mapping), indent=1, allow_nan=False))
    elif not job.quiet:
        typer.echo(_where(job.output, names))
    if not mapping.is_verified:
        raise typer.Exit(1)


def _map(job: Job, profile: HardwareProfile, progress: TerminalProgress) -> Mapping:
    from snnmap.cli.warmup import announce
    from snnmap.mapping import map_network

    announce(progress, placing=not job.only_partition)
    network, source = load(
        job.network,
        progress,
        file_format=job.file_format,
        options=reader_options(list(job.read)),
        rates=job.rates,
    )
    limits = _limits(job, profile, network)
    mapping = map_network(
        network,
        profile,
        algorithm=job.algorithm,
        preset=job.preset,
        config=job.config,
        engine=job.engine,
        seed=job.seed,
        placer=job.placer,
        refine=job.refine,
        joint=job.joint,
        inputs_off_chip=job.inputs_off_chip,
        limits=limits,
        only_partition=job.only_partition,
        source=source,
        progress=progress,
    )
    return replace(mapping, overrides=job.overrides)


def _check_names(job: Job) -> None:
    """Refuse names that do not exist before anything is read."""
    from snnmap.partitioning import ALGORITHMS
    from snnmap.partitioning.multilevel import resolve_config
    from snnmap.placement import AUTO, PLACERS, REFINEMENTS

    for what, name, known in (
        ("algorithm", job.algorithm, ALGORITHMS),
        ("placer", job.placer, [AUTO, *PLACERS]),
        ("refinement", job.refine, [None, *REFINEMENTS]),
        ("engine", job.engine, ("auto", "cpu", "gpu")),
    ):
        if name not in known:
            names = ", ".join(filter(None, known))
            raise ConfigError(f"unknown {what} {name!r}; known: {names}")
    if job.algorithm == "multilevel":
        resolve_config(job.preset, job.config)


def _settings(job: Job) -> str:
    """The effective settings of the partitioner as TOML, ready for ``--config``."""
    from snnmap.partitioning.multilevel import resolve_config

    if job.algorithm != "multilevel":
        raise ConfigError(f"algorithm {job.algorithm!r} has no settings but a seed")
    values = resolve_config(job.preset, job.config).as_dict()
    plain = {key: value for key, value in values.items() if not isinstance(value, dict)}
    lines = [f"{key} = {json.dumps(value)}" for key, value in plain.items()]
    for name, table in values.items():
        if isinstance(table, dict):
            lines += ["", f"[{name}]"]
            lines += [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    return "\n".join(lines).strip()


def _profile(job: Job) -> HardwareProfile:
    from snnmap.hardware import HardwareProfile, load_profile

    if job.profile is not None:
        return load_profile(job.profile, job.overrides)
    if job.parts is None:
        raise ConfigError("nothing limits the parts; give --profile NAME, --parts K, or both")
    if job.overrides:
        raise ConfigError("--set changes a profile; give --profile NAME as well")
    return HardwareProfile(
        name=f"{job.parts} parts", width=job.parts, height=1, description="k-way partitioning"
    )


def _limits(job: Job, profile: HardwareProfile, network: Hypergraph) -> Limits:
    """The profile's limits, tightened by ``--parts`` and ``--imbalance``."""
    from snnmap.partitioning.kway import kway_limits

    limits = profile.limits
    if job.parts is None:
        return limits
    if job.inputs_off_chip:
        network, _ = network.without_inputs()
    balanced = kway_limits(network, job.parts, job.imbalance)
    return replace(
        limits,
        max_size=_least(limits.max_size, balanced.max_size),
        max_parts=_least(limits.max_parts, balanced.max_parts),
    )


def _least(*values: int | None) -> int | None:
    known = [value for value in values if value is not None]
    return min(known, default=None)


def _where(output: Path | None, names: list[str]) -> str:
    if output is None:
        return "nothing written; add -o DIR for the files"
    return f"wrote {output}: {', '.join(sorted(names))}"


def read_record(path: Path) -> Any:
    """The content of a JSON file that snnmap wrote.

    Raises:
        InputError: it is missing or damaged.
    """
    from snnmap.errors import InputError

    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(path, f"is not JSON: {error}") from None
