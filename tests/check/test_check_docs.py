"""What the pages on profiles and the check show is what happens."""

import re
from pathlib import Path

import pytest

from snnmap.cli import main
from snnmap.hardware import profile_names

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["check.md", "profiles.md"])
def test_python_runs(page: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {})


@pytest.mark.parametrize("page", ["check.md", "profiles.md"])
def test_commands_run_and_print_what_is_shown(
    page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = re.findall(r"```console\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    for example in re.split(r"^\$ snnmap ", block, flags=re.MULTILINE)[1:]:
        command, *shown = example.splitlines()
        words = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', command)]
        assert main(words) in (0, 1)
        printed = {line.strip() for line in capsys.readouterr().out.splitlines()}
        for line in shown:
            assert line == "..." or line.strip() in printed


def test_every_shipped_profile_is_in_the_table() -> None:
    listed = re.findall(r"^\| `([\w-]+)` \| \d", (DOCS / "profiles.md").read_text(), re.MULTILINE)
    assert sorted(listed) == profile_names()
