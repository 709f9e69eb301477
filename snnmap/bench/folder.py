"""A folder of suite networks belongs to one run at a time; what a killed one left is removed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from snnmap.progress import Progress

if sys.platform != "win32":
    import fcntl

POLL_S = 0.1


@contextmanager
def own_folder(folder: Path, names: list[str], progress: Progress) -> Iterator[None]:
    """Wait until no other run makes files in `folder`, and keep others waiting in the block.

    Temporary files of `names` (see :func:`snnmap.writers.atomic.whole_file`) are then nobody's:
    they are removed.

    Raises:
        KeyboardInterrupt: the work was cancelled.
    """
    if sys.platform == "win32":  # folders cannot be locked: runs side by side are the user's affair
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        if not _lock(handle):
            progress.start(f"waiting for another run in {folder}", 1, "runs")
            while not _lock(handle):
                if progress.cancelled:
                    raise KeyboardInterrupt
                time.sleep(POLL_S)
            progress.finish()
        for name in names:
            for left in folder.glob(f".{name}.????????.*"):
                left.unlink(missing_ok=True)
        yield
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    """Whether the folder is ours now; true on file systems without locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
