"""``snnmap bench``: runs, records, report."""

from pathlib import Path

import pytest

from snnmap.cli import main

SUITE = """
name = "tiny"
[[networks]]
name = "pair"
profile = "loihi64"
layers = [{ type = "population", name = "a", shape = 80 }]
links = [{ from = "a", to = "a", type = "random", fan_out = 4 }]
"""


def test_a_bench_runs_records_and_reports(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "tiny.toml").write_text(SUITE)
    out = tmp_path / "out"
    words = ["bench", str(tmp_path / "tiny.toml"), "-o", str(out), "-a", "one-pass", "--seeds", "1"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("pair, one-pass, seed 0: connectivity 0.0, 1 parts")
    assert str(out / "report.md") in lines
    assert main(["bench", "--report", str(out)]) == 0
    assert (out / "comparison.png").exists()


def test_what_is_missing_is_said_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from snnmap.bench import running

    monkeypatch.setattr(running, "why_unavailable", lambda a, e: "no GPU" if e == "gpu" else "")
    (tmp_path / "tiny.toml").write_text(SUITE)
    words = ["bench", str(tmp_path / "tiny.toml"), "-o", str(tmp_path / "out"), "--seeds", "3"]
    assert main([*words, "-a", "multilevel", "--engines", "gpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "multilevel (gpu): skipped on every network: no GPU"
    assert sum("skipped" in line for line in lines) == 1
    assert (
        "| pair | multilevel (gpu) | 2 | skipped | no GPU |"
        in (tmp_path / "out" / "report.md").read_text().splitlines()
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "a suite and --output DIR are needed"),
        (["smoke", "--report", "DIR"], "--report takes no suite"),
        (["--report", "DIR"], "holds no records"),
        (["smoke", "-o", "DIR", "-a", "magic"], "unknown algorithm 'magic'"),
        (["nosuch", "-o", "DIR"], "'nosuch' is neither a suite nor a file"),
        (["smoke", "-o", "DIR", "--only", "x"], "suite 'smoke' has no network 'x'"),
    ],
)
def test_mistakes_are_one_line(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    assert main(["bench", *(str(folder) if w == "DIR" else w for w in words)]) == 2
    captured = capsys.readouterr()
    assert text in captured.err
    assert captured.err.count("\n") == 1
    assert not folder.exists()
