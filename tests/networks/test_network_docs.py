"""The examples of docs/networks.md and docs/suites.md work as they stand."""

import re
from pathlib import Path

import pytest

from snnmap.networks import read_model
from snnmap.networks.suites import load_suite

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def test_the_model_file_can_be_built(tmp_path):
    (text,) = blocks("networks.md", "toml")
    (tmp_path / "small.toml").write_text(text)
    network = read_model(tmp_path / "small.toml").build()
    assert [p.name for p in network.populations] == ["input", "conv1", "pool1", "recurrent1", "out"]
    assert network.projections[-1].delay_ms == (2.0, 2.0)


def test_the_python_example_runs():
    (text,) = blocks("networks.md", "python")
    names: dict[str, object] = {}
    exec(text, names)
    assert names["network"].n_nodes == 28 * 28 + 28 * 28 * 16 + 10
    assert names["same_as_a_file"].n_nodes == 5


def test_the_suite_has_the_counts_it_states(tmp_path):
    (text,) = blocks("suites.md", "toml")
    (tmp_path / "mine.toml").write_text(text)
    suite = load_suite(tmp_path / "mine.toml")
    assert len(suite.entries) == 3 + 4
    (stated,) = [e for e in suite.entries if e.expect]
    network = stated.model.build()
    assert network.n_pins == stated.expect["pins"]
    assert network.n_hedges == stated.expect["hyperedges"]


@pytest.mark.parametrize("kind", ["type", "kind"])
def test_every_type_and_kind_is_documented(kind):
    from snnmap.networks.layer_types import LAYERS
    from snnmap.networks.rates import _TABLES

    text = (DOCS / "networks.md").read_text()
    for name, keys in LAYERS.items() if kind == "type" else _TABLES.items():
        row = next((line for line in text.splitlines() if line.startswith(f"| `{name}` |")), "")
        assert row, name
        common = {"type", "kind", "name", "from", "rates", "delay_ms", "neurons"}
        for key in {*keys.required, *keys.optional} - common:
            assert f"`{key}`" in row, f"{name}: {key}"
