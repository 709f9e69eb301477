"""``snnmap profiles``: the chips that snnmap knows, their numbers, and who says so."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from snnmap.cli.options import JsonOption, SetOption

if TYPE_CHECKING:
    from snnmap.hardware import HardwareProfile


def profiles(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME|FILE]",
            help="Show every number of this profile with its source; all profiles otherwise.",
            show_default=False,
        ),
    ] = None,
    set_: SetOption = None,
    template: Annotated[
        bool,
        typer.Option(
            "--template", help="Print a commented profile to start your own from, and nothing else."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the hardware profiles, or show one with the source of each number.

    Write your own: **snnmap profiles --template > mychip.toml**.
    """
    from snnmap.errors import ConfigError

    if template:
        from snnmap.hardware import template_text

        if name or set_ or as_json:
            raise ConfigError("--template prints the template alone; leave the other words out")
        sys.stdout.write(template_text())
    elif name is None:
        if set_:
            raise ConfigError("--set needs the name of the profile that it changes")
        profiles_list(as_json=as_json)
    else:
        profiles_show(name, set_, as_json=as_json)


command = profiles


def profiles_list(*, as_json: bool = False) -> None:
    """Print one line a profile."""
    from snnmap.hardware import load_profile, profile_names

    known = [load_profile(name) for name in profile_names()]
    if as_json:
        _dump([_summary(profile) for profile in known])
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column, right in (
        ("profile", False),
        ("cores", True),
        ("neurons/core", True),
        ("axons in/core", True),
        ("chip", False),
    ):
        table.add_column(column, justify="right" if right else "left", no_wrap=column != "chip")
    for profile in known:
        limits = profile.limits
        table.add_row(
            profile.name,
            f"{profile.n_cores:,}",
            _limit(profile, "neurons_per_core", limits.max_size),
            _limit(profile, "inbound_axons_per_core", limits.max_inbound),
            Text(profile.description),
        )
    table.caption = "* a default of the software; n/a exists, but is not public"
    table.caption_justify = "left"
    Console().print(table)


def profiles_show(name: str, set_: list[str] | None = None, *, as_json: bool = False) -> None:
    """Print every number of one profile with its source and confidence."""
    from snnmap.hardware import load_profile

    profile = load_profile(name, tuple(set_ or ()))
    rows = _rows(profile)
    if as_json:
        _dump(
            {
                **_summary(profile),
                "numbers": {
                    key: {"value": value, "soft": key in profile.soft, **_said(profile, key)}
                    for key, value in rows.items()
                },
            }
        )
        return
    console = Console()
    console.print(Text.assemble((profile.name, "bold"), f": {profile.description}"))
    console.print(
        f"{profile.n_cores:,} usable cores, {profile.grid_width}x{profile.grid_height} over "
        f"{profile.n_chips:,} chip{'s' * (profile.n_chips > 1)}\n"
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("key", no_wrap=True)
    table.add_column("value", justify="right", overflow="fold")
    table.add_column("confidence", no_wrap=True)
    table.add_column("source", overflow="fold")
    for key, value in rows.items():
        said = _said(profile, key)
        default = " (default)" if key in profile.soft else ""
        confidence = said["confidence"] if value is not None else ""
        table.add_row(key + default, _text(profile, key, value), confidence, Text(said["source"]))
    console.print(table)


def _summary(profile: HardwareProfile) -> dict[str, Any]:
    limits = {f.name: getattr(profile.limits, f.name) for f in fields(profile.limits)}
    return {
        "name": profile.name,
        "description": profile.description,
        "cores": profile.n_cores,
        "cores_per_chip": profile.cores_per_chip,
        "limits": limits,
    }


def _rows(profile: HardwareProfile) -> dict[str, Any]:
    """Value of each key of the profile, in the order of the TOML file."""
    from snnmap.hardware.schema import BOTH_AXES, KEYS, LIMIT_FIELDS

    values: dict[str, Any] = {}
    for key, spec in KEYS.items():
        if key in LIMIT_FIELDS:
            values[key] = getattr(profile.limits, LIMIT_FIELDS[key])
        elif spec.section == "costs" and key not in BOTH_AXES:
            values[key] = getattr(profile.costs, key)
        elif key in ("topology", "width", "height", "max_delay_steps", "timestep_ms"):
            values[key] = getattr(profile, key)
        elif key in ("chips", "tile"):
            values[key] = list(getattr(profile, key))
        elif key == "dead_cores":
            values[key] = len(profile.dead_cores)
    return values


def _said(profile: HardwareProfile, key: str) -> dict[str, str]:
    lookup = key
    if key == "dead_cores" and key not in profile.provenance:
        lookup = "missing_cores"
    found = profile.provenance.get(lookup)
    if found is None:
        return {"source": "", "confidence": ""}
    return {"source": found.source, "confidence": found.confidence}


def _text(profile: HardwareProfile, key: str, value: Any) -> str:
    from snnmap.hardware.schema import KEYS

    if value is None:
        if key in profile.unknown or KEYS[key].section == "costs":
            return "n/a"
        return "no limit" if key != "timestep_ms" else "not fixed"
    if isinstance(value, list):
        return "x".join(str(v) for v in value)
    return f"{value:,}" if isinstance(value, int) else f"{value}"


def _limit(profile: HardwareProfile, key: str, value: int | None) -> str:
    return _text(profile, key, value) + ("*" if key in profile.soft else "")


def _dump(value: Any) -> None:
    json.dump(value, sys.stdout, indent=2)
    sys.stdout.write("\n")
