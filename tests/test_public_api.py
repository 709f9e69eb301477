"""The public face: small, sorted, complete, documented, and cheap to import."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import snnmap

EXPECTED = """
CheckReport ConfigError Costs EngineError HardwareProfile Hypergraph InputError LimitError Limits
Mapping NetworkBuilder NetworkError OutputError Partition Placement Population ProfileError Progress
Projection SnnmapError StoredMapping TrafficReport __version__ check_network from_object
load_network load_profile map_network measure_traffic network_names part_hypergraph partition place
profile_names read_mapping read_network restore_mapping write_network
""".split()


def test_the_public_names_are_these() -> None:
    assert snnmap.__all__ == EXPECTED
    assert sorted(snnmap.__all__) == snnmap.__all__


@pytest.mark.parametrize("name", snnmap.__all__)
def test_each_name_exists_and_says_what_it_is(name: str) -> None:
    value = getattr(snnmap, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert (inspect.getdoc(value) or "").strip()


def test_unknown_names_are_refused_as_usual() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = snnmap.nonsense
    assert set(snnmap.__all__) <= set(dir(snnmap))


def test_the_error_tree_has_one_root() -> None:
    errors = [getattr(snnmap, name) for name in snnmap.__all__ if name.endswith("Error")]
    assert all(issubclass(error, snnmap.SnnmapError) for error in errors)


def test_importing_the_package_or_asking_for_help_loads_nothing_heavy() -> None:
    code = """
import sys
import snnmap, snnmap.cli
snnmap.cli.build_app()
print(sorted({"numba", "scipy", "matplotlib", "h5py", "networkx"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
