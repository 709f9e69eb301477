"""README and documentation are run: every command and every line of Python in them."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from snnmap.cli import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LENIENT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
RUN = ("README.md", "quickstart.md")  # other pages are run by the tests of their rooms


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def sessions(page: Path) -> list[tuple[str, str]]:
    """(command, expected output) of each ``$ command`` of a page."""
    found = []
    for block in blocks(page, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


@pytest.mark.parametrize("name", RUN)
def test_commands_print_what_the_page_says(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = next(p for p in PAGES if p.name == name)
    monkeypatch.chdir(tmp_path)
    checker = doctest.OutputChecker()
    ran = 0
    for command, expected in sessions(page):
        words = shlex.split(command, comments=True)
        if words[0] != "snnmap":
            continue
        ran += 1
        code = main(words[1:])
        out, err = capsys.readouterr()
        assert code in (0, 1), err
        assert checker.check_output(expected, out, LENIENT), checker.output_difference(
            doctest.Example(command, expected), out, LENIENT
        )
    assert ran
    for block in blocks(page, "python"):
        exec(compile(block, name, "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_exist(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command, _ in sessions(page):
        words = shlex.split(command, comments=True)
        if words[0] == "snnmap":
            assert main([words[1], "--help"]) == 0, command
        elif words[0].startswith("scripts/"):
            assert (ROOT / words[0]).exists(), command
    capsys.readouterr()


def test_the_site_shows_every_page() -> None:
    import yaml

    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    docs = ROOT / "docs"
    assert sorted(nav) == sorted(p.relative_to(docs).as_posix() for p in docs.rglob("*.md"))


def test_the_command_page_is_up_to_date() -> None:
    import runpy

    made = runpy.run_path(str(ROOT / "scripts" / "make_cli_page.py"))["page"]()
    assert made == (ROOT / "docs" / "cli.md").read_text(), "run scripts/make_cli_page.py"
