"""From the word DIR on the command line to the mapping that was written there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from snnmap.cli.loading import load
from snnmap.cli.progress import listening
from snnmap.errors import InputError

if TYPE_CHECKING:
    from snnmap.mapping import Mapping
    from snnmap.stored import StoredMapping

MappingArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DIR", help="Folder that **snnmap map -o DIR** wrote.", show_default=False
    ),
]

NetworkOption = Annotated[
    str | None,
    typer.Option(
        "--network",
        metavar="NETWORK",
        help="The network that was mapped, if it is no longer where it was.",
        show_default=False,
    ),
]


def restore(
    folder: Path, network: str | None = None, *, quiet: bool = False
) -> tuple[StoredMapping, Mapping]:
    """Read a mapping and its network, and measure everything anew.

    Args:
        folder: of the mapping.
        network: file or name, instead of the one that the mapping remembers.
        quiet: draw no progress.

    Raises:
        InputError: no mapping, no network, or not the network that was mapped.
    """
    from snnmap.mapping import restore_mapping
    from snnmap.networks import network_names
    from snnmap.stored import read_mapping

    stored = read_mapping(folder)
    about = stored.about_network
    word = network or about["source"]
    if word is None:
        raise InputError(folder, "its network came from no file; name it with --network")
    if network is None and word not in network_names() and not Path(word).exists():
        raise InputError(folder, f"its network {word} is gone; name it with --network")
    with listening(quiet=quiet) as progress:
        hypergraph, source = load(
            word,
            progress,
            file_format=about["options"].get("format"),
            options=about["options"].get("reader"),
            rates=about["options"].get("rates"),
        )
        progress.start("check")
        mapping = restore_mapping(stored, hypergraph, source=source, progress=progress)
        progress.finish()
    return stored, mapping
