"""A process for each method on each network, watched from outside: stopped when it is over time."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO

from snnmap.bench.records import (
    FAILED,
    RUNS,
    TIMEOUT,
    RunRecord,
    Task,
    commit,
    machine,
    read_record,
    write_record,
)

GRACE = 1.25
GRACE_S = 30.0
START_S = 600.0
"""A run may take GRACE * its time limit + GRACE_S seconds before it is stopped by force; reading a
network and loading compiled code may take START_S, or the time limit if that is longer."""

POLL_S = 0.2
WORKER = [sys.executable, "-m", "snnmap.bench.worker"]


@dataclass(frozen=True, slots=True)
class Job:
    """The runs of one method on one network.

    Attributes:
        folder: of the bench.
        file: the network.
        records: what each run's record holds before it ran, seed by seed.
        time_limit_s: of each run.
        memory_limit_mb: of the process.
        cores: that the process may use; None for all.
        at_once: most runs that go on at the same time.
    """

    folder: Path
    file: Path
    records: list[RunRecord]
    time_limit_s: float | None
    memory_limit_mb: int | None
    cores: tuple[int, ...] | None = None
    at_once: int = 1

    @property
    def tasks(self) -> list[Task]:
        """What is to be run."""
        return [record.task for record in self.records]


def run_job(job: Job, is_cancelled: Callable[[], bool]) -> Iterator[RunRecord]:
    """Run all seeds; a new process takes over after one that died.

    Args:
        job: what to run.
        is_cancelled: asked now and then whether to stop.

    Yields:
        The record of each run; of one that was stopped or died, too.

    Raises:
        KeyboardInterrupt: the work was cancelled.
    """
    left = list(job.records)
    while left:
        watch = _Watch(job, left, is_cancelled)
        try:
            for _ in watch.finished_seeds():
                yield read_record(job.folder / RUNS / left.pop(0).task.file_name)
        finally:
            watch.stop()
        if not left:
            return
        failed = left.pop(0)
        status, message = watch.verdict()
        yield _give_up(job, failed, status, message)
        if status == TIMEOUT or not watch.is_ready:  # the other seeds would fare alike
            for record in left:
                why = f"not run, as seed {failed.task.seed} ended so: {message}"
                yield _give_up(job, record, status, why)
            return


def _give_up(job: Job, record: RunRecord, status: str, message: str) -> RunRecord:
    """Record a run that could not speak for itself."""
    found = machine() | ({"cores": len(job.cores)} if job.cores else {})
    record = replace(
        record, status=status, message=message, at_once=job.at_once, machine=found, commit=commit()
    )
    write_record(job.folder, record)
    return record


class _Watch:
    """One worker process and what it said so far."""

    def __init__(
        self, job: Job, records: list[RunRecord], is_cancelled: Callable[[], bool]
    ) -> None:
        self.is_ready = False
        self._job, self._is_cancelled = job, is_cancelled
        self._limit = job.time_limit_s
        self._late = False
        self._ended = False
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (closed by stop)
        self._process = subprocess.Popen(
            WORKER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=_environment(job),
            start_new_session=True,  # Ctrl-C is ours to handle: it must not look like a crash
        )
        assert self._process.stdin is not None
        content = {
            "folder": str(job.folder),
            "file": str(job.file),
            "records": [asdict(record) for record in records],
            "memory_limit_mb": job.memory_limit_mb,
            "cores": job.cores,
            "at_once": job.at_once,
        }
        try:  # the pipe stays open: the worker ends when it closes, whatever becomes of us
            self._process.stdin.write(json.dumps(content) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it died at once; its last words tell why
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.strip())
        self._lines.put(None)

    def finished_seeds(self) -> Iterator[int]:
        """Seeds whose record is written, until the process ends or is over time.

        Raises:
            KeyboardInterrupt: the work was cancelled.
        """
        deadline = self._deadline(START_S, self._limit)
        while True:
            if self._is_cancelled():
                raise KeyboardInterrupt
            try:
                line = self._lines.get(timeout=POLL_S)
            except queue.Empty:
                if deadline is not None and time.monotonic() > deadline:
                    self._late = True
                    return
                continue
            if line is None:
                self._ended = True
                return
            word, _, seed = line.partition(" ")
            if word == "ready":
                self.is_ready = True
            elif word == "start" and self._limit is not None:
                deadline = self._deadline(GRACE * self._limit + GRACE_S, 0.0)
            elif word == "done":
                yield int(seed)

    def _deadline(self, seconds: float, at_least: float | None) -> float | None:
        return None if at_least is None else time.monotonic() + max(seconds, at_least)

    def stop(self) -> None:
        """End the process if it still runs, and free what belongs to it."""
        if not self._ended:
            self._process.kill()
        self._process.wait()
        self._listener.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self._errors.seek(0)
        self._last_words = self._errors.read().decode(errors="replace").strip().splitlines()
        self._errors.close()

    def verdict(self) -> tuple[str, str]:
        """(status, message) of the run that did not finish."""
        if self._late:
            doing = "running" if self.is_ready else "reading the network"
            return TIMEOUT, f"stopped by force while {doing}: over {self._limit} s and the grace"
        last = f": {self._last_words[-1]}" if self._last_words else ""
        return FAILED, f"the process ended with code {self._process.returncode}{last}"


def _environment(job: Job) -> dict[str, str]:
    """The worker's environment: as many threads as cores."""
    threads = {"SNNMAP_NUM_THREADS": str(len(job.cores))} if job.cores else {}
    return {**os.environ, **threads}
