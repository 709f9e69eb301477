"""The pages on placement and traffic are run: every command and every line of Python."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import h5py
import pytest

from snnmap.cli import main
from snnmap.placement import refinements

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", ["placement.md", "traffic.md"])
def test_page_runs(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(refinements, "WORK", 4_000_000)
    words = ["map", "lenet", "--profile", "loihi64", "--algorithm", "one-pass", "--no-plots", "-q"]
    assert main([*words, "-o", "out"]) == 0
    (tmp_path / "recorded.csv").write_text("time_ms,neuron\n0.5,5000\n1.5,5001\n")
    with h5py.File("spikes.h5", "w") as file:
        file["spikes/timestamps"], file["spikes/node_ids"] = [0.5, 2.5], [7, 900]
    text = (DOCS / name).read_text()
    commands = 0
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    for language, block in blocks:
        for line in [] if language else block.splitlines():
            program, *rest = shlex.split(line)
            assert program == "snnmap"
            if rest[0] in ("partition", "place"):
                rest += ["--no-plots", "--quiet"]
            if rest[0] == "partition":
                rest += ["--algorithm", "one-pass"]
            assert main(rest) == 0, capsys.readouterr().err
            commands += 1
    assert commands >= 3
    for language, block in blocks:
        if language == "python":
            exec(compile(block, name, "exec"), {})
