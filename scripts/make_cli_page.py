"""Write docs/cli.md from the commands' own help: python scripts/make_cli_page.py."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import typer

from snnmap.cli import PANELS, build_app

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cli.md"
INTRO = """# All commands

Made from `snnmap COMMAND --help` by `scripts/make_cli_page.py`.

Results go to stdout, progress and notes to stderr. Exit codes: 0 done, 1 the answer is no (`check`, `verify`), 2 a mistake in what was
asked, in one line on stderr, 70 a fault of snnmap itself, 130 interrupted. `SNNMAP_NUM_THREADS` sets the number of CPU threads
where there is no `--jobs`; `CUPY_GPU_MEMORY_LIMIT` (bytes or a share) is how much of a GPU's memory may be taken; `SNNMAP_DEBUG=1` adds the traceback to one-line errors.
"""


def page() -> str:
    """The whole page."""
    root = typer.main.get_command(build_app())
    sections = [INTRO]
    for panel, names in PANELS.items():
        sections.append(f"## {panel}\n")
        for name in names:
            sections += _command(f"snnmap {name}", root.commands[name])
    return "\n".join(sections)


def _command(title: str, command: Any) -> list[str]:
    members = getattr(command, "commands", None)
    text = inspect.cleandoc(command.help or "").replace("\f", "")
    if members:
        parts = [f"### {title}\n", f"{text}\n"]
        for name, member in members.items():
            parts += _command(f"{title} {name}", member)
        return parts
    usage = " ".join([title, *(f"{p.metavar or p.name.upper()}" for p in _arguments(command))])
    rows = [_row(p) for p in [*_arguments(command), *_options(command)]]
    table = "| | |\n|---|---|\n" + "\n".join(rows) + "\n"
    return [f"### {title}\n", f"`{usage} [OPTIONS]`\n", f"{text}\n", table]


def _arguments(command: Any) -> list[Any]:
    return [p for p in command.params if p.param_type_name == "argument"]


def _options(command: Any) -> list[Any]:
    return [p for p in command.params if p.param_type_name == "option" and p.name != "help"]


def _row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        name = f"`{parameter.metavar or parameter.name.upper()}`"
    else:
        words = [*parameter.opts, *parameter.secondary_opts]
        value = "" if parameter.is_flag else f" {parameter.metavar or 'VALUE'}"
        name = ", ".join(f"`{word}{value}`" for word in words)
    default = parameter.default
    known = default is not None and not isinstance(default, (bool, list, tuple))
    shown = f" Default: {default}." if known and not callable(default) else ""
    required = " Required." if parameter.required else ""
    text = " ".join((parameter.help or "").split()).replace("|", "\\|")
    return f"| {name.replace('|', chr(92) + '|')} | {text}{shown}{required} |"


if __name__ == "__main__":
    PAGE.write_text(page())
