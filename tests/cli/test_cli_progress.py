"""Progress on and off a terminal."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from snnmap.cli import progress as progress_module
from snnmap.cli.progress import TerminalProgress, _short, listening


def make(*, terminal: bool) -> tuple[TerminalProgress, io.StringIO]:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=120, color_system=None)
    return TerminalProgress(console), file


def test_short_phases_are_never_shown() -> None:
    for terminal in (True, False):
        progress, file = make(terminal=terminal)
        with progress:
            progress.start("quick", total=3, unit="things")
            progress.advance(3)
            progress.finish()
        assert "quick" not in file.getvalue()


def test_a_long_phase_is_drawn_with_its_rate_and_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "PATIENCE_S", 0.0)
    progress, file = make(terminal=True)
    with progress:
        progress.start("refine", total=4000, unit="moves")
        progress.advance(1000, "level 3")
        time.sleep(0.01)
        progress.advance(1000)
        progress._bars.refresh()
        text = file.getvalue()
        progress.finish()
    for words in ("refine", "2k/4k moves", "/s", "level 3"):
        assert words in text


def test_without_a_terminal_a_long_phase_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "PATIENCE_S", 0.0)
    progress, file = make(terminal=False)
    with progress:
        progress.start("read", total=2_000_000, unit="B")
        progress.advance(2_000_000)
        progress.finish()
    line = file.getvalue()
    assert line.startswith("read: done after 0.0 s, 2M/2M B")
    assert line.count("\n") == 1


def test_without_a_terminal_long_silence_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "HEARTBEAT_S", 0.0)
    progress, file = make(terminal=False)
    with progress:
        progress.start("search")
        progress.advance(note="round 2")
        progress.finish()
    assert "search: still at it" in file.getvalue()
    assert "(round 2)" in file.getvalue()


def test_phases_nest() -> None:
    progress, _ = make(terminal=True)
    with progress:
        progress.start("outer", total=2)
        progress.start("inner", total=5)
        progress.advance(5)
        progress.finish()
        progress.advance()
        assert [phase.name for phase in progress._open] == ["outer"]
        assert progress._open[0].done == 1
        progress.finish()
        progress.finish()
        progress.advance()


def test_a_time_limit_expires() -> None:
    with listening(quiet=True, time_limit=0.0) as progress:
        time.sleep(0.001)
        assert progress.expired()
        assert not progress.cancelled
    with listening(quiet=True) as progress:
        assert not progress.expired()
        progress.cancel()
        assert progress.expired()
        assert progress.cancelled


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (12, "12"), (999, "999"), (1234, "1.2k"), (5_600_000, "5.6M"), (3e12, "3000G")],
)
def test_counts_at_a_glance(value: float, text: str) -> None:
    assert _short(value) == text


@pytest.mark.parametrize("terminal", [True, False])
def test_an_excuse_is_made_only_if_it_is_needed(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for patience, times in ((1.0, 0), (0.0, 1)):
        monkeypatch.setattr(progress_module, "PATIENCE_S", patience)
        progress, file = make(terminal=terminal)
        with progress:
            progress.excuse("first use")
            progress.start("partition")
            progress.finish()
            progress.start("place")
            progress._bars.refresh()
            progress.finish()
        assert (file.getvalue().count("first use") > 0) == (times > 0)
        if not terminal:
            assert file.getvalue().count("first use") == times
