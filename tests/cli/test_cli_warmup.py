"""Compiling on first use: who is told, and what a second process takes over."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from snnmap.cli import warmup
from snnmap.cli.progress import TerminalProgress


class FakeProcess:
    """Notes what would be started."""

    started: list[list[str]]

    def __init__(self, command: list[str], **_: Any) -> None:
        self.started.append(command)

    def wait(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("compiled", "placing", "threads", "helpers"),
    [(False, True, 2, 1), (False, False, 2, 0), (False, True, 1, 0), (True, True, 2, 0)],
)
def test_a_second_process_helps_on_first_use(
    compiled: bool, placing: bool, threads: int, helpers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeProcess.started = []
    monkeypatch.setattr(warmup, "is_compiled", lambda: compiled)
    monkeypatch.setattr(warmup, "thread_count", lambda: threads)
    monkeypatch.setattr(warmup.subprocess, "Popen", FakeProcess)
    progress = TerminalProgress(Console(file=io.StringIO()))
    excuses: list[str] = []
    monkeypatch.setattr(progress, "excuse", excuses.append)
    warmup.announce(progress, placing=placing)
    assert len(FakeProcess.started) == helpers
    assert bool(excuses) is not compiled


def test_what_the_second_process_runs() -> None:
    warmup.compile_later_steps()
