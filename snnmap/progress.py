"""How long work reports that it is alive, without knowing who listens.

Library code takes a :class:`Progress` and calls it; the default listens to nothing. The command
line passes a subclass that draws bars. A listener may also stop the work: :meth:`Progress.expired`
is asked between steps, and long algorithms then return their best valid state so far.
"""

from __future__ import annotations

import time


class Progress:
    """Receives progress; this base class ignores it all and never stops the work.

    Args:
        time_limit: seconds of wall clock after which :meth:`expired` turns true; None for no limit.
    """

    def __init__(self, time_limit: float | None = None) -> None:
        self._deadline = None if time_limit is None else time.monotonic() + time_limit
        self._cancelled = False

    def start(self, phase: str, total: float | None = None, unit: str = "") -> None:
        """A phase begins: its name, how many units it has (None if unknown) and their name."""

    def advance(self, amount: float = 1, note: str = "") -> None:
        """`amount` more units of the current phase are done; `note` is a short remark to show."""

    def finish(self) -> None:
        """The current phase is over."""

    def say(self, text: str) -> None:
        """One line that the user should see: what was chosen, and why."""

    def cancel(self) -> None:
        """Ask the work to stop at the next step (Ctrl-C handlers call this)."""
        self._cancelled = True

    @property
    def cancelled(self) -> bool:
        """Whether :meth:`cancel` was called."""
        return self._cancelled

    def expired(self) -> bool:
        """True once the time budget is spent or the work was cancelled."""
        if self._cancelled:
            return True
        return self._deadline is not None and time.monotonic() > self._deadline


SILENT = Progress()
