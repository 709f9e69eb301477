"""What a method needs beside snnmap, looked for once before anything runs."""

from __future__ import annotations

import subprocess
import sys

from snnmap.bench.external import EXTERNAL, what_is_missing

PROBE = """
from snnmap.errors import SnnmapError
from snnmap.partitioning.multilevel.engine import choose_engine
try:
    choose_engine("gpu")
except SnnmapError as error:
    print(error)
"""
PROBE_S = 300.0
"""Loading CuPy and waking a GPU may take so long."""


def why_unavailable(algorithm: str, engine: str) -> str:
    """Why a method cannot run here, in one line; "" if it can.

    A GPU is looked for in a process of its own, so that no memory on it stays taken.
    """
    if algorithm in EXTERNAL:
        return what_is_missing(algorithm)
    if engine != "gpu":
        return ""
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROBE],
            capture_output=True,
            text=True,
            timeout=PROBE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"the GPU did not answer within {PROBE_S:g} s"
    if done.returncode:
        return f"looking for a GPU failed: {_last_line(done.stderr)}"
    return _last_line(done.stdout)


def _last_line(text: str) -> str:
    return "".join(text.strip().splitlines()[-1:])
