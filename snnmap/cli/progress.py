"""Progress on the terminal, and Ctrl-C as a request to stop with the best result so far."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
)
from rich.progress import Progress as Bars
from rich.table import Column
from rich.text import Text

from snnmap.progress import Progress

PATIENCE_S = 1.0
"""A phase shorter than this is never shown."""

HEARTBEAT_S = 10.0
"""Without a terminal, a long phase says at this interval that it is alive."""


class _Rate(ProgressColumn):
    """Units done (of how many) and how fast, in engineering notation."""

    def render(self, task: Task) -> Text:
        unit = str(task.fields.get("unit", ""))
        if not task.completed:
            return Text("")
        of = f"/{_short(task.total)}" if task.total else ""
        rate = f", {_short(task.speed)}/s" if task.speed else ""
        return Text(f"{_short(task.completed)}{of} {unit}".rstrip() + rate, style="dim")


class _Clock(ProgressColumn):
    """Time spent, and an estimate of what is left."""

    def render(self, task: Task) -> Text:
        left = task.time_remaining
        rest = f", ~{left:.0f} s left" if left is not None and task.total else ""
        return Text(f"{task.elapsed or 0:.0f} s{rest}")


class _PatientBars(Bars):
    """Rich's bars, of those phases only that have lasted for `PATIENCE_S`."""

    preface = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        shown = [task for task in self.tasks if (task.elapsed or 0) >= PATIENCE_S]
        if shown:
            if self.preface:
                yield Text(self.preface, style="dim")
            yield self.make_tasks_table(shown)


class TerminalProgress(Progress):
    """Draws bars on a terminal; writes one line a long phase where there is no terminal.

    Args:
        console: where to draw (stderr, so that stdout holds results only).
        time_limit: seconds after which the work is asked to stop.
    """

    def __init__(self, console: Console, time_limit: float | None = None) -> None:
        super().__init__(time_limit)
        self._console = console
        self._bars = _PatientBars(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=14),
            _Clock(table_column=Column(no_wrap=True)),
            _Rate(table_column=Column(no_wrap=True)),
            TextColumn("[dim]{task.fields[note]}", table_column=Column(no_wrap=True)),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._open: list[_Phase] = []

    def __enter__(self) -> TerminalProgress:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def start(self, phase: str, total: float | None = None, unit: str = "") -> None:
        """See :meth:`snnmap.progress.Progress.start`; phases may nest."""
        task = self._bars.add_task(phase, total=total, unit=unit, note="")
        self._open.append(_Phase(phase, total, unit, task))

    def advance(self, amount: float = 1, note: str = "") -> None:
        """See :meth:`snnmap.progress.Progress.advance`."""
        if not self._open:
            return
        phase = self._open[-1]
        phase.done += amount
        if note:
            phase.note = note
            self._bars.update(phase.task, advance=amount, note=note)
        else:
            self._bars.update(phase.task, advance=amount)
        if not self._console.is_terminal and time.monotonic() - phase.told >= HEARTBEAT_S:
            phase.told = time.monotonic()
            self._tell(phase.report("still at it"))

    def finish(self) -> None:
        """See :meth:`snnmap.progress.Progress.finish`."""
        if not self._open:
            return
        phase = self._open.pop()
        self._bars.remove_task(phase.task)
        if not self._console.is_terminal and phase.seconds >= PATIENCE_S:
            self._tell(phase.report("done"))

    def excuse(self, text: str) -> None:
        """Say once, if anything takes long enough to be shown, why it may."""
        self._bars.preface = text

    def _tell(self, report: str) -> None:
        if self._bars.preface:
            self.say(self._bars.preface)
            self._bars.preface = ""
        self.say(report)

    def say(self, text: str) -> None:
        """Print one line above the bars."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class _Phase:
    def __init__(self, name: str, total: float | None, unit: str, task: TaskID) -> None:
        self.name, self.total, self.unit, self.task = name, total, unit, task
        self.done, self.note = 0.0, ""
        self.began = self.told = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def report(self, state: str) -> str:
        of = f"/{_short(self.total)}" if self.total else ""
        done = f", {_short(self.done)}{of} {self.unit}".rstrip() if self.done else ""
        note = f" ({self.note})" if self.note else ""
        return f"{self.name}: {state} after {self.seconds:.1f} s{done}{note}"


def _short(value: float | None) -> str:
    """``12``, ``3.4k``, ``56M``: a count at a glance."""
    number = float(value or 0)
    for unit in ("", "k", "M", "G"):
        if abs(number) < 1000 or unit == "G":
            break
        number /= 1000
    digits = 0 if number >= 100 or number == int(number) else 1
    return f"{number:.{digits}f}{unit}"


@contextmanager
def listening(
    *, quiet: bool = False, time_limit: float | None = None, console: Console | None = None
) -> Iterator[TerminalProgress]:
    """A progress that draws on stderr while Ctrl-C asks the work to stop.

    The first Ctrl-C cancels: algorithms return their best valid state so far and the command goes
    on to write it. The second raises KeyboardInterrupt: nothing is written.

    Args:
        quiet: draw nothing (Ctrl-C still works).
        time_limit: seconds after which `progress.expired()` turns true.
        console: default a console on stderr.
    """
    progress = TerminalProgress(console or Console(stderr=True, quiet=quiet), time_limit)

    def stop(_signal: int, _frame: FrameType | None) -> None:
        if progress.cancelled:
            raise KeyboardInterrupt
        progress.cancel()
        progress.say("stopping with the best result so far; press Ctrl-C again to leave at once")

    try:
        before = signal.signal(signal.SIGINT, stop)
    except ValueError:  # not the main thread: whoever runs us handles Ctrl-C
        with progress:
            yield progress
        return
    try:
        with progress:
            yield progress
    finally:
        signal.signal(signal.SIGINT, before)
        sys.stderr.flush()
