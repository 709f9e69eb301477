"""The shell around all commands: help, errors, faults, interruptions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

import snnmap
from snnmap.cli import EXIT_FAULT, PANELS, main

COMMANDS = [name for names in PANELS.values() for name in names]
Capture = pytest.CaptureFixture[str]


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snnmap", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_the_version_is_the_package_s(capsys: Capture) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"snnmap {snnmap.__version__}\n"


def test_every_command_is_there(capsys: Capture) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for name in COMMANDS:
        assert f" {name} " in out, f"{name} is missing in snnmap --help"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_is_a_manual_with_an_example(name: str, capsys: Capture) -> None:
    assert main([name, "--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    module = import_module(f"snnmap.cli.{name}")
    if hasattr(module, "app"):  # a group: its members show their own
        return
    assert f"snnmap {name}" in out.split("Usage:")[1].split("─")[0].partition("]")[2], (
        f"snnmap {name} --help shows no example"
    )


@pytest.mark.parametrize("words", [["nonsense"], ["map"], ["map", "lenet", "--nonsense"]])
def test_wrong_usage_is_exit_code_2(words: list[str], capsys: Capture) -> None:
    assert main(words) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_no_words_show_the_help(capsys: Capture) -> None:
    main([])
    out, err = capsys.readouterr()
    assert "Usage" in out + err


def test_a_fault_of_snnmap_keeps_its_traceback(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("snnmap.hardware.load_profile", broken)
    assert main(["map", "lenet", "-p", "loihi64"]) == EXIT_FAULT
    err = capsys.readouterr().err
    assert "ZeroDivisionError" in err
    assert "please report" in err


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (MemoryError("1 TB"), 2, "out of memory: 1 TB"),
        (OSError(28, "No space left on device", "out/x"), 2, "out/x: No space left on device"),
        (KeyboardInterrupt(), 130, "interrupted; nothing was written"),
    ],
)
def test_trouble_of_the_machine_is_one_line(
    error: BaseException,
    code: int,
    words: str,
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("snnmap.networks.load_network", broken)
    assert main(["map", "lenet", "-p", "loihi64", "-o", str(tmp_path / "out")]) == code
    err = capsys.readouterr().err
    assert words in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_leaves_early_is_no_error() -> None:
    done = subprocess.run(
        f"{sys.executable} -m snnmap info alexnet --json | head -1; exit ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "{\n"
    assert "Traceback" not in done.stderr


# ---------------------------------------------------------------------- interruptions

PATIENT = """
import sys, time
import numpy as np
from snnmap.partitioning import ALGORITHMS, Partition
from snnmap.cli import main

def patient(hypergraph, limits, *, seed, progress, **_):
    progress.start("search")
    print("searching", file=sys.stderr, flush=True)
    while not progress.expired():
        time.sleep(0.02)
    time.sleep(LINGER)
    progress.finish()
    parts = (np.arange(hypergraph.n_nodes) // 500).astype(np.int32)
    return Partition(parts, int(parts.max()) + 1, "patient", seed=seed, complete=False)

ALGORITHMS["patient"] = patient
sys.exit(main(sys.argv[1:]))
"""


def start(folder: Path, *extra: str, linger: float = 0.0) -> subprocess.Popen[str]:
    """``snnmap map`` with a partitioner that searches until it is stopped."""
    words = ["map", "lenet", "-p", "loihi64", "-a", "patient", "--no-plots", "-o", str(folder)]
    return subprocess.Popen(
        [sys.executable, "-c", PATIENT.replace("LINGER", str(linger)), *words, *extra],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(process: subprocess.Popen[str], words: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return
    pytest.fail(f"{words!r} was never said")


def test_ctrl_c_keeps_the_best_result_so_far(tmp_path: Path) -> None:
    process = start(tmp_path / "out")
    wait_for(process, "searching")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "press Ctrl-C again" in err
    assert "stopped early" in out
    record = json.loads((tmp_path / "out" / "mapping.json").read_text())
    assert record["partition"]["complete"] is False
    assert record["verified"] is True


@pytest.mark.parametrize(
    ("signals", "code"),
    [([signal.SIGINT, signal.SIGINT], 130), ([signal.SIGTERM], 128 + signal.SIGTERM)],
)
def test_leaving_at_once_writes_nothing(
    tmp_path: Path, signals: list[signal.Signals], code: int
) -> None:
    process = start(tmp_path / "deep" / "out", linger=60)
    wait_for(process, "searching")
    for i, number in enumerate(signals):
        if i:
            wait_for(process, "press Ctrl-C again")
        process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert process.returncode == code
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fault", [SystemExit, KeyboardInterrupt])
def test_a_signal_that_a_finalizer_swallows_comes_again(
    fault: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    number = {SystemExit: signal.SIGTERM, KeyboardInterrupt: signal.SIGINT}[fault]

    class Finalized:
        def __del__(self) -> None:
            signal.raise_signal(number)  # what the handler raises is lost here

    def work() -> None:
        Finalized()
        time.sleep(60)

    monkeypatch.setattr("snnmap.cli.build_app", lambda: lambda **_: work())
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs us may ignore it
    try:
        assert main([]) == 128 + number
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_time_limit_does_the_same(tmp_path: Path) -> None:
    began = time.monotonic()
    process = start(tmp_path / "out", "--time-limit", "0.5")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert time.monotonic() - began > 0.5
    assert "stopped early" in out


def test_jobs_set_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    from snnmap.parallel import thread_count

    monkeypatch.setenv("SNNMAP_NUM_THREADS", "7")
    assert main(["map", "lenet", "-p", "loihi64", "-a", "one-pass", "-q", "--jobs", "1"]) == 0
    assert thread_count() == 1
    assert os.environ["SNNMAP_NUM_THREADS"] == "1"
