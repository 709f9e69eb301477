"""What is kept of every run: one JSON file each, written whole, so that nothing is ever lost."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from snnmap import __version__
from snnmap.errors import InputError
from snnmap.writers.atomic import whole_file

RUNS = "runs"
DONE, TIMEOUT, REFUSED, MEMORY, FAILED = "done", "timeout", "refused", "out of memory", "failed"
SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Task:
    """One algorithm on one network with one seed.

    Attributes:
        network: its name in the suite.
        algorithm: command-line name, or an external partitioner's.
        preset: of ``multilevel``; "" for the others.
        engine: that was asked for.
        seed: of the algorithm.
    """

    network: str
    algorithm: str
    preset: str
    engine: str
    seed: int

    @property
    def method(self) -> str:
        """Algorithm, preset and engine in one word, for tables and file names."""
        preset = f":{self.preset}" if self.preset not in ("", "default") else ""
        engine = f" ({self.engine})" if self.engine != "cpu" else ""
        return f"{self.algorithm}{preset}{engine}"

    @property
    def file_name(self) -> str:
        """Name of its record's file."""
        preset = f"-{self.preset}" if self.preset else ""
        return f"{self.network}.{self.algorithm}{preset}.{self.engine}.{self.seed}.json"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What one run gave.

    Attributes:
        task: what was run.
        status: "done"; "timeout" (with a result if the algorithm could still give a valid one);
            "refused" (a limit that cannot be met); "out of memory"; "failed"; "skipped" (what it
            needs is not there: a GPU, another package).
        message: why it is not "done".
        sha256: digest of the network's file.
        nodes, hyperedges, pins: of the network.
        profile: name of the hardware profile.
        limits: the limits of a part.
        time_limit_s: asked for, None if none was.
        parts, connectivity, cut_net, max_neurons, max_inbound_axons: of the result, None without.
        lower_bounds: of parts and connectivity.
        verified: by the independent verifier; None without a result.
        seconds: wall clock of the algorithm, "total" and by phase.
        read_seconds: of reading the network.
        peak_memory_mb: largest resident memory of the process in the run, the network and Python
            included (of the process so far, where the system cannot tell).
        at_once: most runs that went on at the same time, this one among them.
        machine: CPU, cores that the run might use, memory, GPU, system.
        versions: of snnmap, Python and the libraries that matter.
        commit: of the checkout, None outside one.
        started: UTC, ISO 8601.
    """

    task: Task
    status: str
    message: str = ""
    sha256: str = ""
    nodes: int = 0
    hyperedges: int = 0
    pins: int = 0
    profile: str = ""
    limits: dict[str, int | None] = field(default_factory=dict)
    time_limit_s: float | None = None
    parts: int | None = None
    connectivity: float | None = None
    cut_net: float | None = None
    max_neurons: int | None = None
    max_inbound_axons: int | None = None
    lower_bounds: dict[str, float] = field(default_factory=dict)
    verified: bool | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    read_seconds: float = 0.0
    peak_memory_mb: float = 0.0
    at_once: int = 1
    machine: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    commit: str | None = None
    started: str = ""

    @property
    def has_result(self) -> bool:
        """Whether there is a valid partition to report."""
        return self.connectivity is not None and bool(self.verified)

    def is_same_question(self, other: RunRecord) -> bool:
        """Whether both answer the same question: task, network, limits, time limit, version."""
        names = ("task", "sha256", "profile", "limits", "time_limit_s")
        same = all(getattr(self, name) == getattr(other, name) for name in names)
        return same and self.versions.get("snnmap") == other.versions.get("snnmap")


def write_record(folder: Path, record: RunRecord) -> None:
    """Write ``runs/NAME.json`` whole.

    Raises:
        OutputError: it cannot be written.
    """
    with whole_file(folder / RUNS / record.task.file_name) as path:
        path.write_text(json.dumps(asdict(record), indent=1, allow_nan=False) + "\n", "utf-8")


def read_record(path: Path) -> RunRecord:
    """A record from its file.

    Raises:
        InputError: the file holds none.
    """
    try:
        return record_from(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(path, f"is no record of a run ({error}); remove it") from None


def record_from(content: dict[str, Any]) -> RunRecord:
    """A record from its JSON object; keys of other versions are left out."""
    known = {f.name for f in fields(RunRecord)} - {"task"}
    return RunRecord(
        Task(**content["task"]), **{key: content[key] for key in known if key in content}
    )


def read_records(folder: Path) -> list[RunRecord]:
    """All records of a folder, by file name.

    Raises:
        InputError: no records there, or a file that is none.
    """
    paths = sorted((folder / RUNS).glob("*.json"))
    if not paths:
        raise InputError(folder, f"holds no records; expected {RUNS}/*.json of snnmap bench")
    return [read_record(path) for path in paths]


def machine() -> dict[str, Any]:
    """CPU, cores this process may use, memory (GB), GPUs and system of this machine."""
    found: dict[str, Any] = {
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
    }
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found["memory_gb"] = round(
            os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1
        )
    gpus = _output(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    if gpus:
        found["gpus"] = gpus.splitlines()
    return found


def versions() -> dict[str, str]:
    """Versions of snnmap, Python and the libraries that may change a result or its time."""
    found = {"snnmap": __version__, "python": platform.python_version()}
    wanted = (
        "numpy",
        "numba",
        "llvmlite",
        "scipy",
        "cupy-cuda12x",
        "cupy-cuda13x",
        "mtkahypar",
        "kahypar",
    )
    for name in wanted:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str | None:
    """Commit of the checkout that snnmap runs from, with a "+" if files differ from it."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    head = _output(["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"])
    if not head:
        return None
    changed = _output(["git", "-C", str(root), "status", "--porcelain", "--untracked-files=no"])
    return head + ("+" if changed else "")


def surroundings() -> dict[str, Any]:
    """What a record says beside its figures: machine, versions, commit."""
    return {"machine": machine(), "versions": versions(), "commit": commit()}


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _output(words: list[str]) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
