"""One method on one network, seed after seed, in a process: ``python -m snnmap.bench.worker``.

It reads a job (JSON) from stdin, writes a record for each seed, and says on stdout what it is doing
("ready", "start SEED", "done SEED"), so that whoever started it can time it and stop it. A run that
hangs, crashes or eats the memory takes nothing else with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from snnmap.bench.external import EXTERNAL
from snnmap.bench.records import (
    DONE,
    FAILED,
    MEMORY,
    REFUSED,
    TIMEOUT,
    RunRecord,
    Task,
    record_from,
    surroundings,
    write_record,
)
from snnmap.errors import SnnmapError
from snnmap.hardware import load_profile
from snnmap.hypergraph import Hypergraph
from snnmap.limits import Limits
from snnmap.networks import model_from
from snnmap.partitioning import Partition, partition
from snnmap.partitioning.bounds import connectivity_lower_bound, parts_lower_bound
from snnmap.partitioning.feasibility import check_feasible
from snnmap.partitioning.metrics import measure
from snnmap.partitioning.verify import verify_partition
from snnmap.progress import SILENT, Progress
from snnmap.readers import read_network


def main(say: Callable[[str], None]) -> None:
    """Do the job given on stdin, telling `say` what is being done."""
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if job["cores"] and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):  # a system that does not let us: threads are as many
            os.sched_setaffinity(0, job["cores"])
    folder = Path(job["folder"])
    records = [record_from(record) for record in job["records"]]
    limits = load_profile(records[0].profile).limits
    about = surroundings() | {"at_once": job["at_once"]}
    if job["cores"]:
        about["machine"]["cores"] = len(job["cores"])
    if job["memory_limit_mb"]:
        most = int(job["memory_limit_mb"]) << 20
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    began = time.perf_counter()
    try:
        network = read_network(job["file"])
        about["read_seconds"] = time.perf_counter() - began
        about["lower_bounds"] = {
            "parts": parts_lower_bound(network, limits),
            "connectivity": connectivity_lower_bound(network, limits),
        }
        warm_up(records[0].task)
    except MemoryError:
        for record in records:
            message = f"over {job['memory_limit_mb']} MB while reading"
            write_record(folder, replace(record, status=MEMORY, message=message, **about))
            say(f"done {record.task.seed}")
        return
    say("ready")
    for record in records:
        say(f"start {record.task.seed}")
        started = datetime.now(UTC).isoformat(timespec="seconds")
        write_record(folder, _run(replace(record, started=started, **about), network, limits))
        say(f"done {record.task.seed}")


def _run(record: RunRecord, network: Hypergraph, limits: Limits) -> RunRecord:
    _forget_peak()
    began = time.perf_counter()
    try:
        found = _partition(record.task, network, limits, Progress(record.time_limit_s))
        seconds, peak = time.perf_counter() - began, _peak()
        metrics = measure(network, found.parts)
        report = verify_partition(network, found.parts, limits, connectivity=metrics.connectivity)
    except MemoryError:
        return replace(record, status=MEMORY, message="while running", peak_memory_mb=_peak())
    except SnnmapError as error:
        return replace(record, status=REFUSED, message=str(error), peak_memory_mb=_peak())
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        return replace(record, status=FAILED, message=text, peak_memory_mb=_peak())
    status, message = (DONE, "") if found.complete else (TIMEOUT, "best valid state so far")
    if not report.ok:
        status, message = FAILED, f"not valid: {report.violations[0]}"
    return replace(
        record,
        status=status,
        message=message,
        parts=found.n_parts,
        connectivity=metrics.connectivity,
        cut_net=metrics.cut_net,
        max_neurons=int(metrics.sizes.max(initial=0)),
        max_inbound_axons=int(metrics.inbound.max(initial=0)),
        verified=report.ok,
        seconds={"total": seconds, **found.seconds},
        peak_memory_mb=peak,
    )


def _partition(task: Task, network: Hypergraph, limits: Limits, progress: Progress) -> Partition:
    if task.algorithm in EXTERNAL:
        check_feasible(network, limits)
        return EXTERNAL[task.algorithm](network, limits, seed=task.seed, progress=progress)
    settings: dict[str, Any] = {"preset": task.preset} if task.preset else {}
    return partition(
        network,
        limits,
        algorithm=task.algorithm,
        engine=task.engine,
        seed=task.seed,
        progress=progress,
        **settings,
    )


def warm_up(task: Task) -> None:
    """Run the method on small networks, so that loading compiled code is not timed."""
    limits = Limits(max_size=48, max_inbound=400)
    layered: dict[str, Any] = {
        "name": "warm-up",
        "layers": [
            {"type": "input", "shape": [8, 8, 2]},
            {"type": "conv", "filters": 4, "kernel": 3, "padding": "same"},
            {"type": "dense", "units": 10},
        ],
    }
    reservoir = {"name": "warm-up", "layers": [{"type": "reservoir", "neurons": 500, "fan_out": 8}]}
    for description in (layered, reservoir):
        try:
            _partition(task, model_from(description).build(), limits, SILENT)
        except SnnmapError:
            return  # the timed run will say what is wrong


def _end_with_parent() -> None:
    """Wait until whoever started this process is gone, and go, too."""
    sys.stdin.read()
    os._exit(1)


def _forget_peak() -> None:
    """Let the peak start again at what is held now, where the system can do that."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def _peak() -> float:
    """Largest resident memory of this process, the network included, since _forget_peak, MB."""
    try:  # ru_maxrss starts at what the parent held when it started this process
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return round(int(status.partition("VmHWM:")[2].split()[0]) / (1 << 10), 1)
    except (OSError, ValueError, IndexError):
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1 << 20 if sys.platform == "darwin" else 1 << 10), 1)


if __name__ == "__main__":
    with os.fdopen(os.dup(1), "w", buffering=1) as _speech:
        os.dup2(2, 1)  # what libraries print must not look like what we say
        main(lambda text: print(text, file=_speech, flush=True))
