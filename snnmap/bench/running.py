"""Every algorithm on every network of a suite: resumable, time-limited, one record a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from snnmap.bench.external import EXTERNAL
from snnmap.bench.making import make_suite
from snnmap.bench.manifest import Record
from snnmap.bench.process import Job, run_job
from snnmap.bench.records import FAILED, RUNS, RunRecord, Task, read_record, versions
from snnmap.errors import ConfigError, OutputError
from snnmap.hardware import load_profile
from snnmap.networks.suites import Suite
from snnmap.partitioning import ALGORITHMS
from snnmap.progress import SILENT, Progress


@dataclass(frozen=True, slots=True)
class BenchConfig:
    """What to run.

    Attributes:
        algorithms: names, or ``name:preset`` (of ``multilevel``).
        engines: "cpu", "gpu" or "auto"; only ``multilevel`` runs on others than "cpu".
        seeds: how many, from 0.
        profile: name or file, or "auto": the one each network recommends.
        time_limit_s: of each run, None for none.
        memory_limit_mb: address space of each run's process, None for no limit.
        retry: repeat runs that have a record but no result.
    """

    algorithms: tuple[str, ...] = ("one-pass", "overlap", "hierarchical", "multilevel")
    engines: tuple[str, ...] = ("cpu",)
    seeds: int = 3
    profile: str = "auto"
    time_limit_s: float | None = None
    memory_limit_mb: int | None = None
    retry: bool = False

    def __post_init__(self) -> None:
        known = [*ALGORITHMS, *EXTERNAL]
        for word in self.algorithms:
            name, _, preset = word.partition(":")
            if name not in known:
                raise ConfigError(f"unknown algorithm {name!r}; known: {', '.join(known)}")
            if preset and name != "multilevel":
                raise ConfigError(f"algorithm {name!r} has no presets; leave {preset!r} out")
        for engine in self.engines:
            if engine not in ("cpu", "gpu", "auto"):
                raise ConfigError(f"unknown engine {engine!r}; known: cpu, gpu, auto")
        if self.seeds < 1:
            raise ConfigError(f"seeds is {self.seeds}; expected at least 1")
        if self.time_limit_s is not None and self.time_limit_s <= 0:
            raise ConfigError(f"time limit is {self.time_limit_s}; expected more than 0 seconds")

    def methods(self) -> list[tuple[str, str, str]]:
        """(algorithm, preset, engine) of each method, without duplicates."""
        found: dict[tuple[str, str, str], None] = {}
        for word in self.algorithms:
            name, _, preset = word.partition(":")
            if name == "multilevel":
                found |= {(name, preset or "default", engine): None for engine in self.engines}
            else:
                found[name, "", "cpu"] = None
        return list(found)


def run_bench(
    suite: Suite, folder: str | Path, config: BenchConfig, *, progress: Progress = SILENT
) -> Iterator[RunRecord]:
    """Run what has no record yet.

    Args:
        suite: the networks; their files go to ``networks`` in the folder.
        folder: made if missing; records go to ``runs``.
        config: what to run.
        progress: told of every run.

    Yields:
        The record of each run of this call, as soon as it is there.

    Raises:
        ConfigError: a network that recommends no profile.
        OutputError: the folder cannot be written.
        KeyboardInterrupt: the work was cancelled; finished runs are kept.
    """
    folder = Path(folder)
    try:
        (folder / RUNS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made: {error.strerror}") from None
    networks = [made.record for made in make_suite(suite, folder / "networks", progress=progress)]
    jobs = [job for network in networks for job in _jobs(network, folder, config)]
    progress.start("bench", sum(len(job.tasks) for job in jobs), "runs")
    for job in jobs:
        for record in run_job(job, progress):
            progress.advance(note=f"{record.task.network}, {record.task.method}")
            yield record
    progress.finish()


def _jobs(network: Record, folder: Path, config: BenchConfig) -> Iterator[Job]:
    """What is left to do for one network, method by method."""
    profile = network.profile if config.profile == "auto" else config.profile
    if profile is None:
        raise ConfigError(f"network {network.name!r} recommends no profile; give --profile NAME")
    for algorithm, preset, engine in config.methods():
        records = [
            RunRecord(
                Task(network.name, algorithm, preset, engine, seed),
                FAILED,
                sha256=network.sha256,
                nodes=network.nodes,
                hyperedges=network.hyperedges,
                pins=network.pins,
                profile=profile,
                limits=asdict(load_profile(profile).limits),
                time_limit_s=config.time_limit_s,
                versions=versions(),
            )
            for seed in range(config.seeds)
        ]
        left = [record for record in records if not _is_known(record, folder, config.retry)]
        if left:
            file = folder / "networks" / network.file
            yield Job(folder, file, left, config.time_limit_s, config.memory_limit_mb)


def _is_known(record: RunRecord, folder: Path, retry: bool) -> bool:
    path = folder / RUNS / record.task.file_name
    if not path.exists():
        return False
    known = read_record(path)
    return known.is_same_question(record) and (known.has_result or not retry)
