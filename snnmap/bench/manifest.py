"""The manifest of a folder of suite networks: what each file is, and its digest.

``manifest.json`` is rewritten whole after every network, so that an interrupted run leaves a folder
whose manifest names only finished files. A later run trusts a file only if its recipe is the same
and its digest still right.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from snnmap import __version__
from snnmap.errors import InputError
from snnmap.networks.suites import Suite, SuiteEntry
from snnmap.writers.atomic import whole_file

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Record:
    """One network of the folder.

    Attributes:
        name: of the network.
        file: its file name in the folder.
        profile: recommended hardware profile, None if none is.
        parameters: of the sweep it belongs to.
        seed: that replaced the description's own; None where they stand.
        scale: factor on its size.
        nodes: neurons.
        hyperedges: axons.
        pins: sum over axons of distinct sources and destinations.
        bytes: size of the file.
        sha256: digest of the file's bytes (hex).
        version: of snnmap that made it.
        recipe: the network description.
    """

    name: str
    file: str
    profile: str | None
    parameters: dict[str, Any]
    seed: int | None
    scale: float
    nodes: int
    hyperedges: int
    pins: int
    bytes: int
    sha256: str
    version: str
    recipe: dict[str, Any]


def recipe_of(entry: SuiteEntry) -> dict[str, Any]:
    """The description of a network as plain JSON values, without keys that are not set."""
    values = {k: v for k, v in entry.model.values.items() if v not in (None, "", [])}
    plain: dict[str, Any] = json.loads(json.dumps(values))
    return plain


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder: suite, format and the records by name; empty if there is none.

    Raises:
        InputError: a manifest that is none.
    """
    path = folder / MANIFEST
    if not path.exists():
        return {"suite": None, "networks": {}}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        records = {r["name"]: Record(**r) for r in content["networks"]}
        return {"suite": content["suite"], "networks": records}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(path, f"is no manifest of a suite ({error}); remove it") from None


def write_manifest(folder: Path, suite: Suite, records: list[Record]) -> None:
    """Write ``manifest.json``, whole.

    Raises:
        OutputError: it cannot be written.
    """
    content = {
        "suite": suite.name,
        "description": suite.description,
        "snnmap": __version__,
        "networks": [asdict(record) for record in records],
    }
    with whole_file(folder / MANIFEST) as path:
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def is_current(record: Record, entry: SuiteEntry, file: Path) -> bool:
    """Whether `file` is what `entry` would be made into: same recipe, and its bytes unharmed."""
    return (
        record.file == file.name
        and record.version == __version__
        and record.recipe == recipe_of(entry)
        and file.is_file()
        and file.stat().st_size == record.bytes
        and file_digest(file) == record.sha256
    )


def file_digest(path: Path) -> str:
    """SHA-256 (hex) of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
