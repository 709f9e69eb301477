"""docs/gpu.md and the record behind it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "benchmarks" / "gpu.json"


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    import gpu_page

    return gpu_page


def test_the_page_says_what_is_on_record(page: ModuleType) -> None:
    text = (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")
    written = text.partition(page.START)[2].partition(page.END)[0].strip()
    assert written == page.tables(page.read_record(RECORD)).strip(), "run scripts/bench_gpu --page"


def test_a_page_is_written_around_the_words(page: ModuleType, tmp_path: Path) -> None:
    path, image = tmp_path / "gpu.md", tmp_path / "gpu.png"
    path.write_text(f"before\n{page.START}\nold\n{page.END}\nafter\n", encoding="utf-8")
    page.write_page(RECORD, path, image)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    for run in page.default_runs(page.read_record(RECORD)):
        assert f"| {run['network']} |" in text
    assert image.read_bytes().startswith(b"\x89PNG")


def test_geometric_mean(page: ModuleType) -> None:
    assert page.mean([1.0, 4.0]) == pytest.approx(2.0)
