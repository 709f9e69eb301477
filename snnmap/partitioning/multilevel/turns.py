"""What each round of refinement is asked to do."""

from __future__ import annotations

from typing import NamedTuple

from snnmap.partitioning.multilevel.config import RefinementConfig


class RoundsGaveUpError(Exception):
    """Rounds that were not waited for gave up: what was made of their parts since means nothing."""


class Turn(NamedTuple):
    """One round, for the host and (as 8-byte words in this order) for the GPU.

    Attributes:
        factor: price of overload, in units of its average worth.
        slack: moves that lose up to so many 64ths of what ties a node to its part are proposed.
        seed: breaks ties.
        roomy: whether parts may take a little more than fits.
        cold: whether refinement ends when nothing moves.
    """

    factor: float
    slack: int
    seed: int
    roomy: bool
    cold: bool


def plan_turns(
    config: RefinementConfig, rounds: int, schedule: tuple[float, ...], *, roomy: bool, seed: int
) -> list[Turn]:
    """The rounds of `refine`, cooling down; parts are roomy until the last price, or always."""
    turns = []
    for turn in range(rounds):
        factor = schedule[turn * len(schedule) // rounds]
        warmth = config.temperature * (1 - turn / max(rounds - 1, 1))
        spacious = roomy or factor < schedule[-1]
        turns.append(Turn(factor, int(64 * warmth), seed * 1009 + turn, spacious, warmth == 0))
    return turns


def plan_sequence(
    config: RefinementConfig, rounds: int, schedule: tuple[float, ...], *, seed: int
) -> list[Turn]:
    """The rounds of `refine_in_sequence`, which end when nothing moves at the last price."""
    slack, turns = int(64 * config.temperature), []
    for turn in range(rounds):
        factor = schedule[turn * len(schedule) // rounds]
        turns.append(Turn(factor, slack, seed * 1009 + turn, False, factor == schedule[-1]))
    return turns


def plan_repair(config: RefinementConfig, *, seed: int) -> list[Turn]:
    """The rounds of `repair`, where nothing has a price."""
    return [Turn(0.0, 0, seed * 1009 + turn, False, False) for turn in range(config.repairs)]
