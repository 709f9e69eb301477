"""nvcc compiles every kernel without a warning, also for three loads of each kind (`scripts/test`: one)."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from snnmap.resources import resource_dir

SOURCES = sorted(resource_dir("kernels").glob("*.cu"))
NVCC = shutil.which("nvcc")


@pytest.mark.skipif(NVCC is None, reason="*** SKIPPED, KERNELS NOT COMPILED: there is no nvcc ***")
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_compiles_without_a_warning(source: Path, tmp_path: Path) -> None:
    defines = ("-DN_ADDITIVE=3", "-DN_DISTINCT=3")
    flags = ("-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", *defines)
    command = [str(NVCC), *flags, "-cubin", "-o", str(tmp_path / "out.cubin"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr


def test_there_are_kernels() -> None:
    names = (
        "choose classes cluster contract hierarchies lists matching merge neighbours placement prefix refine repair "
        "reservoir rounds rows search sequence table weigh"
    )
    assert [path.stem for path in SOURCES] == names.split()


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_every_kernel_has_a_comment_and_only_our_names(source: Path) -> None:
    lines = source.read_text().splitlines()
    kernels = [i for i, line in enumerate(lines) if "__global__" in line]
    assert kernels
    for i in kernels:
        assert lines[i - 1].startswith("//"), f"{source.name}:{i + 1} has no comment above it"
        bounds = r"(__launch_bounds__\(\d+, 1\) )?"
        assert re.match(rf'extern "C" {bounds}__global__ void \w+\(', lines[i]), lines[i]
