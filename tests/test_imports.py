"""Imports go one way: up the table of ARCHITECTURE.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "snnmap"

# Conveniences that call downwards, each inside a function (never when the module is imported).
CALLS_DOWN = {
    ("networks", "readers"),  # load_network("file.snn")
    ("mapping", "report"),  # Mapping.summary()
    ("mapping", "writers"),  # Mapping.write()
}
# The package itself: the public face imports lazily, and the version is a plain text in it.
FACE = {"__init__", "__main__", "__version__"}


def _ranks() -> dict[str, int]:
    """Room -> row of the table in ARCHITECTURE.md."""
    ranks: dict[str, int] = {}
    rows = [line for line in (ROOT / "ARCHITECTURE.md").read_text().splitlines() if "|" in line]
    for rank, row in enumerate(rows):
        for room in re.findall(r"`(\w+)/?`", row.split("|")[1]):
            ranks[room] = rank
    return ranks


def _modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def _room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imports(node: ast.AST, in_function: bool = False) -> Iterator[tuple[str, bool]]:
    """(dotted name, whether inside a function) of every import that runs."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from ((alias.name, in_function) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "imports are absolute"
            yield from ((f"{child.module}.{alias.name}", in_function) for alias in child.names)
        inner = in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _imports(child, inner)


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_up_the_table(path: Path) -> None:
    ranks, room = _ranks(), _room(path)
    if room in FACE:
        return
    assert room in ranks, f"room {room!r} is missing in the table of ARCHITECTURE.md"
    for name, in_function in _imports(ast.parse(path.read_text())):
        parts = name.split(".")
        if parts[0] != "snnmap" or parts[1] in FACE or parts[1] == room:
            continue
        other = parts[1]
        assert other in ranks, f"{path.name} imports {name}, which the table does not know"
        if (room, other) in CALLS_DOWN:
            assert in_function, f"{path.name} imports {name} when it is imported itself"
        else:
            assert ranks[other] <= ranks[room], f"{room} imports {other}, which stands below it"


def test_exceptions_are_still_needed() -> None:
    used = {
        (_room(path), name.split(".")[1])
        for path in _modules()
        for name, _ in _imports(ast.parse(path.read_text()))
        if name.startswith("snnmap.")
    }
    assert used >= CALLS_DOWN


def test_cupy_is_imported_in_one_room_only() -> None:
    users = [
        path.relative_to(PACKAGE)
        for path in _modules()
        for name, _ in _imports(ast.parse(path.read_text()))
        if name.split(".")[0] in ("cupy", "cupyx")
    ]
    assert len({path.parent for path in users}) <= 1, f"several rooms import CuPy: {sorted(users)}"


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_nobody_uses_pyplot(path: Path) -> None:
    assert "pyplot" not in path.read_text(), "pyplot has global state; use matplotlib.figure"
