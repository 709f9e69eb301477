"""From the word NETWORK on the command line to a network and where it came from."""

from __future__ import annotations

import hashlib
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snnmap.errors import ConfigError

if TYPE_CHECKING:
    from snnmap.cli.progress import TerminalProgress
    from snnmap.hypergraph import Hypergraph
    from snnmap.mapping import Source


def use_jobs(jobs: int | None) -> None:
    """Let this process use `jobs` CPU threads (None: as many as it may)."""
    if jobs is not None:
        os.environ["SNNMAP_NUM_THREADS"] = str(jobs)


def load(
    network: str,
    progress: TerminalProgress,
    *,
    file_format: str | None = None,
    options: dict[str, Any] | None = None,
    rates: str | None = None,
) -> tuple[Hypergraph, Source]:
    """Read or build a network; the digest of its file is taken meanwhile.

    Args:
        network: a file or the name of a shipped network.
        progress: told of the work.
        file_format: a key of ``snnmap.readers.FORMATS``; None recognises it.
        options: keyword arguments of the format's reader.
        rates: other spike rates (see :mod:`snnmap.rates`); what was chosen is said.

    Raises:
        KeyboardInterrupt: the user asked to stop while there was nothing to keep yet.
    """
    from snnmap.mapping import Source
    from snnmap.networks import load_network, network_names
    from snnmap.readers import read_network
    from snnmap.resources import resource_dir

    began = time.perf_counter()
    shipped = network in network_names()
    path = resource_dir("models") / f"{network}.toml" if shipped else Path(network)
    with ThreadPoolExecutor(1) as pool:
        digest = pool.submit(_file_digest, path)
        if file_format is None and not options:
            hypergraph = load_network(network, progress)
        else:
            hypergraph = read_network(
                path, format=file_format, progress=progress, **(options or {})
            )
        sha256 = digest.result()
    if rates is not None:
        from snnmap.rates import with_rates

        hypergraph, notes = with_rates(hypergraph, rates)
        for note in notes:
            progress.say(f"note: {note}")
    if progress.cancelled:
        raise KeyboardInterrupt
    chosen: dict[str, Any] = {
        key: value
        for key, value in (("format", file_format), ("reader", options), ("rates", rates))
        if value
    }
    source = Source(
        path=network if shipped else str(path.resolve()),
        sha256=sha256,
        options=chosen,
        seconds=time.perf_counter() - began,
    )
    return hypergraph, source


def reader_options(words: list[str] | None, flag: str = "--read") -> dict[str, Any]:
    """``["first_pin_is_source=true", "scale=2"]`` as keyword arguments.

    Raises:
        ConfigError: a word without ``=``.
    """
    options: dict[str, Any] = {}
    for word in words or ():
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise ConfigError(f"{flag} {word!r}; expected KEY=VALUE")
        options[key.strip().replace("-", "_")] = _plain(value.strip())
    return options


def _plain(text: str) -> Any:
    """A truth value, a whole number, a number or the text itself."""
    if text.lower() in ("true", "yes", "false", "no"):
        return text.lower() in ("true", "yes")
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _file_digest(path: Path) -> str | None:
    """SHA-256 of a file (hex); None if there is no such file (reading it will say why)."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
