"""Every algorithm on every network of a suite: resumable, time-limited, one record a run."""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from snnmap.bench.available import why_unavailable
from snnmap.bench.external import EXTERNAL
from snnmap.bench.making import make_suite
from snnmap.bench.manifest import Record
from snnmap.bench.process import Job, run_job
from snnmap.bench.records import (
    FAILED,
    RUNS,
    SKIPPED,
    RunRecord,
    Task,
    commit,
    machine,
    read_record,
    versions,
    write_record,
)
from snnmap.errors import ConfigError, OutputError
from snnmap.hardware import load_profile
from snnmap.networks.suites import Suite, SuiteEntry
from snnmap.partitioning import ALGORITHMS
from snnmap.partitioning.multilevel import PRESETS
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
        at_once: how many methods run at once on the CPU, each on cores of its own: the cores of the
            machine divided by this number. What runs on a GPU always runs alone.
    """

    algorithms: tuple[str, ...] = ("one-pass", "overlap", "hierarchical", "multilevel")
    engines: tuple[str, ...] = ("cpu",)
    seeds: int = 3
    profile: str = "auto"
    time_limit_s: float | None = None
    memory_limit_mb: int | None = None
    retry: bool = False
    at_once: int = 1

    def __post_init__(self) -> None:
        known = [*ALGORITHMS, *EXTERNAL]
        for word in self.algorithms:
            name, _, preset = word.partition(":")
            if name not in known:
                raise ConfigError(f"unknown algorithm {name!r}; known: {', '.join(known)}")
            if preset and name != "multilevel":
                raise ConfigError(f"algorithm {name!r} has no presets; leave {preset!r} out")
            if preset and preset not in PRESETS:
                raise ConfigError(f"unknown preset {preset!r}; known: {', '.join(PRESETS)}")
        for engine in self.engines:
            if engine not in ("cpu", "gpu", "auto"):
                raise ConfigError(f"unknown engine {engine!r}; known: cpu, gpu, auto")
        if self.seeds < 1:
            raise ConfigError(f"seeds is {self.seeds}; expected at least 1")
        if self.time_limit_s is not None and self.time_limit_s <= 0:
            raise ConfigError(f"time limit is {self.time_limit_s}; expected more than 0 seconds")
        if not 1 <= self.at_once <= len(_cores()):
            raise ConfigError(
                f"runs at once are {self.at_once}; expected 1 to {len(_cores())}, the cores that may be used"
            )

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
    for entry in suite.entries:  # found out before anything is made
        load_profile(_profile_of(entry, config))
    try:
        (folder / RUNS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made: {error.strerror}") from None
    networks = [made.record for made in make_suite(suite, folder / "networks", progress=progress)]
    jobs = [job for network in networks for job in _jobs(network, folder, config)]
    jobs, missing = _sort_out(jobs)
    for record in missing:
        write_record(folder, record)
        yield record
    progress.start("bench", sum(len(job.tasks) for job in jobs), "runs")
    for record in _run(jobs, config.at_once, progress):
        progress.advance(note=f"{record.task.network}, {record.task.method}")
        yield record
    progress.finish()


def _sort_out(jobs: list[Job]) -> tuple[list[Job], list[RunRecord]]:
    """(jobs that can run here, records of the runs that cannot, which say why)."""
    methods = {(job.tasks[0].algorithm, job.tasks[0].engine) for job in jobs}
    problems = {method: why_unavailable(*method) for method in sorted(methods)}
    able: list[Job] = []
    missing: list[RunRecord] = []
    here: dict[str, Any] = (
        {"machine": machine(), "commit": commit()} if any(problems.values()) else {}
    )
    for job in jobs:
        problem = problems[job.tasks[0].algorithm, job.tasks[0].engine]
        if not problem:
            able.append(job)
        for record in job.records if problem else []:
            missing.append(replace(record, status=SKIPPED, message=problem, **here))
    return able, missing


def _run(jobs: list[Job], at_once: int, progress: Progress) -> Iterator[RunRecord]:
    """Run jobs; those on the CPU side by side, if that is wanted."""
    alone = jobs
    if at_once > 1:
        alone = [job for job in jobs if job.tasks[0].engine != "cpu"]
        shared = [job for job in jobs if job.tasks[0].engine == "cpu"]
        shared.sort(key=lambda job: -job.records[0].pins)  # none is left alone at the end
        yield from _run_side_by_side(shared, at_once, progress)
    for job in alone:
        yield from run_job(job, lambda: progress.cancelled)


def _run_side_by_side(jobs: list[Job], at_once: int, progress: Progress) -> Iterator[RunRecord]:
    """Run jobs on equal shares of the cores, in any order."""
    cores, waiting = _cores(), deque(jobs)
    share = len(cores) // at_once
    told: queue.SimpleQueue[RunRecord | BaseException | None] = queue.SimpleQueue()
    over = threading.Event()

    def work(own: tuple[int, ...]) -> None:
        try:
            while waiting:
                job = replace(waiting.popleft(), cores=own, at_once=at_once)
                for record in run_job(job, lambda: progress.cancelled or over.is_set()):
                    told.put(record)
        except IndexError:
            pass  # another thread took the last one
        except BaseException as error:
            told.put(error)
        finally:
            told.put(None)

    shares = [tuple(cores[i * share : (i + 1) * share]) for i in range(at_once)]
    threads = [threading.Thread(target=work, args=(own,)) for own in shares]
    for thread in threads:
        thread.start()
    try:
        for _ in threads:
            while (found := told.get()) is not None:
                if isinstance(found, BaseException):
                    raise found
                yield found
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _jobs(network: Record, folder: Path, config: BenchConfig) -> Iterator[Job]:
    """What is left to do for one network, method by method."""
    profile = _profile_of(network, config)
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


def _profile_of(network: Record | SuiteEntry, config: BenchConfig) -> str:
    """Name or file of the hardware profile to use for a network."""
    profile = network.profile if config.profile == "auto" else config.profile
    if profile is None:
        raise ConfigError(f"network {network.name!r} recommends no profile; give --profile NAME")
    return profile


def _is_known(record: RunRecord, folder: Path, retry: bool) -> bool:
    path = folder / RUNS / record.task.file_name
    if not path.exists():
        return False
    known = read_record(path)
    if known.status == SKIPPED:  # what was missing may be there by now
        return False
    return known.is_same_question(record) and (known.has_result or not retry)


def _cores() -> list[int]:
    """Numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
