"""Find a profile by name or path, apply the user's overrides, and build it."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from snnmap.errors import ProfileError
from snnmap.hardware.profile import CONFIDENCES, Costs, HardwareProfile, Provenance
from snnmap.hardware.schema import (
    BOTH_AXES,
    KEYS,
    LIMIT_FIELDS,
    MAX_DEAD_CORES,
    SECTIONS,
    Entry,
    read_entry,
    read_value,
    suggest,
    unknown_key,
)
from snnmap.limits import Limits
from snnmap.resources import resource_dir, resource_names

_SUFFIX = ".toml"
_TEMPLATE = "_template"
_MAX_BYTES = 1 << 20


def profile_names() -> list[str]:
    """Sorted names of the profiles that come with snnmap (the template is not one)."""
    return [n for n in resource_names("hardware_profiles", _SUFFIX) if not n.startswith("_")]


def template_text() -> str:
    """The commented TOML text from which users write their own profile."""
    path = resource_dir("hardware_profiles") / f"{_TEMPLATE}{_SUFFIX}"
    return path.read_text(encoding="utf-8")


def load_profile(
    name_or_path: str | Path | HardwareProfile, overrides: Sequence[str] = ()
) -> HardwareProfile:
    """Load a hardware profile.

    Args:
        name_or_path: a name of :func:`profile_names` or the path of a TOML file (anything that ends
            in ``.toml`` or names a folder). A ready profile is returned as it is.
        overrides: texts ``"key=value"`` that replace what the profile says, e.g.
            ``"neurons_per_core=512"``, ``"chips=2x2"``, ``"dead_cores=3,4;0-7,5"``;
            ``"inbound_axons_per_core=none"`` lifts a limit. Later ones win.

    Raises:
        ProfileError: unknown name or key, wrong type, unreadable file; one line with the remedy.
    """
    if isinstance(name_or_path, HardwareProfile):
        if overrides:
            raise ProfileError(
                "overrides apply to a profile's name or path, not to a ready profile"
            )
        return name_or_path
    path = _find(name_or_path)
    name, description, entries = _read(path)
    for text in overrides:
        new = _read_override(text, f"profile {name!r}")
        entries.update(new)
        _check_effect(name, entries, new)
    return _build(name, description, entries)


def _find(name_or_path: str | Path) -> Path:
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or text.endswith(_SUFFIX) or "/" in text or "\\" in text:
        return Path(text)
    names = profile_names()
    if text not in names:
        raise ProfileError(
            f"unknown hardware profile {text!r}; {suggest(text.lower(), names)}known: "
            f"{', '.join(names)}; or give the path of a {_SUFFIX} file"
        )
    return resource_dir("hardware_profiles") / f"{text}{_SUFFIX}"


def _read(path: Path) -> tuple[str, str, dict[str, Entry]]:
    where = f"profile {path}"
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise ProfileError(f"{where}: more than {_MAX_BYTES} bytes; is it a profile?")
        document = tomllib.loads(data.decode("utf-8"))
    except OSError as error:
        raise ProfileError(f"{where}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ProfileError(f"{where}: byte {error.start} is not UTF-8 text") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ProfileError(f"{where}: not valid TOML: {error}") from None
    top = ("name", "description", *SECTIONS)
    for key in document:
        if key not in top:
            raise unknown_key(key, top, where)
    name = _text(document, "name", path.stem, where)
    description = _text(document, "description", "", where)
    return name, description, _read_sections(document, where)


def _text(document: dict[str, Any], key: str, default: str, where: str) -> str:
    value = document.get(key, default)
    if not isinstance(value, str):
        raise ProfileError(f"{where}: {key} is {value!r}; expected text")
    return value


def _read_sections(document: dict[str, Any], where: str) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for section in SECTIONS:
        table = document.get(section, {})
        if not isinstance(table, dict):
            raise ProfileError(f"{where}: {section} is {table!r}; expected a table [{section}]")
        known = [key for key, spec in KEYS.items() if spec.section == section]
        for key, raw in table.items():
            if key not in known:
                raise unknown_key(key, known, f"{where}: [{section}]")
            for target in BOTH_AXES.get(key, (key,)):
                if target in entries or (target != key and target in table):
                    raise ProfileError(f"{where}: give either {key} or {target}, not both")
                entries[target] = read_entry(key, raw, where)
    for key in ("width", "height"):
        if key not in entries:
            raise ProfileError(f"{where}: [grid] lacks {key}; {KEYS[key].meaning}")
    return entries


def _read_override(text: str, where: str) -> dict[str, Entry]:
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not value.strip():
        raise ProfileError(
            f"{where}: override {text!r}; expected key=value, e.g. neurons_per_core=512"
        )
    if key not in KEYS:
        raise unknown_key(key, KEYS, f"{where}: override {text!r}")
    checked, unknown = read_value(key, value, f"{where}: override")
    said_by = Provenance(f"set by the user: {key}={value.strip()}", "assumed")
    return {
        target: Entry(checked, said_by, unknown=unknown) for target in BOTH_AXES.get(key, (key,))
    }


def _check_effect(name: str, entries: dict[str, Entry], new: dict[str, Entry]) -> None:
    """Refuse an override that would change nothing: bits of synapses that are not counted so."""
    memory = ("synapse_bits_per_core", "bits_per_synapse")
    for key in memory:
        if key not in new:
            continue
        if "synapses_per_core" in entries:
            why = "the profile states synapses_per_core itself; override that"
        elif not all(k in entries for k in memory):
            why = f"synapses follow only from both {' and '.join(memory)}"
        else:
            continue
        raise ProfileError(f"profile {name!r}: override of {key} has no effect: {why}")


def _build(name: str, description: str, entries: dict[str, Entry]) -> HardwareProfile:
    entries = {**_derive_synapses(name, entries), **entries}

    def value(key: str, default: Any = None) -> Any:
        return entries[key].value if key in entries else default

    chips = value("chips", (1, 1))
    width, height = value("width"), value("height")
    return HardwareProfile(
        name=name,
        description=description,
        topology=value("topology", "mesh"),
        width=width,
        height=height,
        chips=chips,
        tile=value("tile", (1, 1)),
        dead_cores=value("dead_cores", frozenset())
        | _in_every_chip(name, value("missing_cores", frozenset()), width, height, chips),
        limits=Limits(**{field: value(key) for key, field in LIMIT_FIELDS.items()}),
        costs=Costs(**{field.name: value(field.name) for field in fields(Costs)}),
        max_delay_steps=value("max_delay_steps"),
        timestep_ms=value("timestep_ms"),
        soft=frozenset(key for key, entry in entries.items() if entry.soft),
        unknown=frozenset(key for key, entry in entries.items() if entry.unknown),
        provenance={key: entry.provenance for key, entry in entries.items()},
    )


def _derive_synapses(name: str, entries: dict[str, Entry]) -> dict[str, Entry]:
    """``synapses_per_core`` from the bits of the memory and of a synapse, where both are given."""
    memory, each = entries.get("synapse_bits_per_core"), entries.get("bits_per_synapse")
    if not (memory and memory.value and each and each.value):
        return {}
    if memory.value < each.value:
        raise ProfileError(
            f"profile {name!r}: bits_per_synapse is {each.value}, more than the {memory.value} of "
            "synapse_bits_per_core"
        )
    said_by = Provenance(
        f"{memory.value} bits ({memory.provenance.source}) / {each.value} bits a synapse "
        f"({each.provenance.source})",
        max(
            "derived",
            memory.provenance.confidence,
            each.provenance.confidence,
            key=CONFIDENCES.index,
        ),
    )
    soft = memory.soft or each.soft
    return {"synapses_per_core": Entry(memory.value // each.value, said_by, soft)}


def _in_every_chip(
    name: str, cores: frozenset[tuple[int, int]], width: int, height: int, chips: tuple[int, int]
) -> frozenset[tuple[int, int]]:
    if len(cores) * chips[0] * chips[1] > MAX_DEAD_CORES:
        raise ProfileError(
            f"profile {name!r}: {len(cores)} missing cores in each of {chips[0]}x{chips[1]} chips "
            f"are more than {MAX_DEAD_CORES}; use fewer chips"
        )
    for x, y in sorted(cores):
        if x >= width or y >= height:
            raise ProfileError(
                f"profile {name!r}: missing core ({x}, {y}) is outside a chip of {width}x{height} "
                "cores"
            )
    return frozenset(
        (x + cx * width, y + cy * height)
        for x, y in cores
        for cx in range(chips[0])
        for cy in range(chips[1])
    )
