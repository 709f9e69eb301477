"""Annealing in tests does a hundredth of its usual work, unless a test asks for all of it."""

from __future__ import annotations

import pytest

from snnmap.placement import refinements


@pytest.fixture
def full_work() -> None:
    """Ask for the usual amount of annealing."""


@pytest.fixture(autouse=True)
def little_work(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make annealing short."""
    if "full_work" not in request.fixturenames:
        monkeypatch.setattr(refinements, "WORK", 4_000_000)
