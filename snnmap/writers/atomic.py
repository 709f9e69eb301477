"""Files that are either whole or not there: written under a temporary name, then renamed."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from snnmap.errors import OutputError


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path` to write to; renamed to `path` if the block succeeds.

    Raises:
        OutputError: the folder is missing or cannot be written, or the disk is full; whatever the
            failure, neither the temporary file nor a half-written `path` stays behind.
    """
    path = Path(path)
    if path.is_dir():
        raise OutputError(f"{path}: is a folder; expected the name of a file")
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{path.name}.", suffix=path.suffix or ".tmp", dir=path.parent
        )
    except OSError as error:
        raise _refusal(path, error) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise _refusal(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def result_folder(path: str | Path, *, known: tuple[str, ...] = ()) -> Iterator[Path]:
    """A staging folder whose files move to folder `path` together if the block succeeds.

    The folder is made, and found writable, before the block runs: an output that cannot be written
    is refused before any work. If the block fails, folders made for it are removed again.

    Args:
        path: the result folder; made with its parents if missing.
        known: names that results may have; those of an earlier run which this one did not write
            are removed, so that a folder never mixes two runs.

    Raises:
        OutputError: the folder cannot be made or written.
    """
    path = Path(path)
    made: list[Path] = []
    try:
        for folder in [*reversed(path.parents), path]:
            if not folder.exists():
                folder.mkdir()
                made.append(folder)
        if not path.is_dir():
            raise OutputError(f"{path}: is a file; expected a folder for the results")
        stage = Path(tempfile.mkdtemp(prefix=".snnmap-", dir=path))
    except OSError as error:
        _remove_empty(made)
        raise _refusal(path, error) from error
    try:
        yield stage
        with writing(path):
            written = {file.name for file in stage.iterdir()}
            for file in sorted(stage.iterdir()):
                file.replace(path / file.name)
            for name in set(known) - written:
                (path / name).unlink(missing_ok=True)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        _remove_empty(made)


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Turn what the system says against writing to `path` into an OutputError."""
    try:
        yield
    except OSError as error:
        raise _refusal(Path(path), error) from error


def _refusal(path: Path, error: OSError) -> OutputError:
    where = f" ({error.filename})" if error.filename and str(error.filename) != str(path) else ""
    return OutputError(f"{path}: cannot be written: {error.strerror or error}{where}")


def _remove_empty(folders: list[Path]) -> None:
    for folder in reversed(folders):
        with contextlib.suppress(OSError):  # it holds results: it stays
            folder.rmdir()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
