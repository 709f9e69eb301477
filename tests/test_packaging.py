"""Wheel, sdist, editable install and bare clone all find kernels, profiles and models."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import snnmap

ROOT = Path(__file__).parents[1]
KINDS = {"kernels": ".cu", "hardware_profiles": ".toml", "models": ".toml"}

LOOK = """
import json, sys
from pathlib import Path
import snnmap
from snnmap.hardware import load_profile
from snnmap.networks import load_network
from snnmap.resources import resource_dir, resource_names
kinds = json.loads(sys.argv[1])
print(json.dumps({
    "package": str(Path(snnmap.__file__).parent),
    "version": snnmap.__version__,
    "names": {kind: resource_names(kind, suffix) for kind, suffix in kinds.items()},
    "dirs": [str(resource_dir(kind)) for kind in kinds],
    "neurons": load_network("lenet").n_nodes,
    "limit": load_profile("loihi64").limits.max_size,
}))
"""


def build(target: str, source: Path, out: Path) -> Path:
    """Build a wheel or an sdist with the project's own build backend."""
    code = f"import hatchling.build as b, sys; print(b.build_{target}(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(out)],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out / done.stdout.split()[-1]


def look(folder: Path, elsewhere: Path) -> dict[str, object]:
    """What a Python with `folder` first on its path, started elsewhere, finds."""
    done = subprocess.run(
        [sys.executable, "-c", LOOK, json.dumps(KINDS)],
        cwd=elsewhere,
        env={**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(elsewhere / "numba")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def expected_names() -> dict[str, list[str]]:
    return {
        kind: sorted(p.name.removesuffix(suffix) for p in (ROOT / kind).glob(f"*{suffix}"))
        for kind, suffix in KINDS.items()
    }


def check(found: dict[str, object], home: Path) -> None:
    assert found["package"] == str(home / "snnmap")
    assert found["version"] == snnmap.__version__
    assert found["names"] == expected_names()
    assert all(Path(folder).is_relative_to(home) for folder in found["dirs"])
    assert found["neurons"] == 13846
    assert found["limit"] == 1024


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution: also what a bare clone looks like."""
    out = tmp_path_factory.mktemp("sdist")
    with tarfile.open(build("sdist", ROOT, out)) as archive:
        archive.extractall(out, filter="data")
    (folder,) = (p for p in out.iterdir() if p.is_dir())
    return folder


def test_a_bare_clone_finds_everything(sdist: Path, tmp_path: Path) -> None:
    check(look(sdist, tmp_path), sdist)


def test_a_wheel_built_from_the_sdist_finds_everything(sdist: Path, tmp_path: Path) -> None:
    wheel = build("wheel", sdist, tmp_path)
    home = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(home)
    check(look(home, tmp_path), home)
    assert (home / "snnmap" / "_models" / "lenet.toml").is_file()
    (info,) = home.glob("*.dist-info")
    assert "snnmap = snnmap.cli:main" in (info / "entry_points.txt").read_text()
    assert list(info.rglob("LICENSE*"))
    assert {p.name for p in home.iterdir()} == {"snnmap", info.name}, "only snnmap is importable"


def test_an_editable_install_finds_everything(tmp_path: Path) -> None:
    found = look(tmp_path, tmp_path)  # nothing there: Python falls back on what is installed
    if found["package"] != str(ROOT / "snnmap"):
        pytest.skip(f"snnmap is not installed editable here, but in {found['package']}")
    check(found, ROOT)


def test_the_sdist_carries_what_a_maintainer_needs(sdist: Path) -> None:
    for name in (
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "scripts/test",
        "tests/conftest.py",
    ):
        assert (sdist / name).is_file(), name
    assert os.access(sdist / "scripts" / "test", os.X_OK)


def test_the_changelog_knows_this_version() -> None:
    assert f"## {snnmap.__version__}" in (ROOT / "CHANGELOG.md").read_text()
