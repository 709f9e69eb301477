"""Every knob of the multilevel partitioner as plain values; presets are complete configurations."""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from snnmap.errors import ConfigError


@dataclass(frozen=True, slots=True)
class CompressionConfig:
    """Structural compression: nodes of one class become one coarse node (`compression.py`).

    Attributes:
        rounds: most rounds of class signatures; 0 switches compression off.
        keep: the least shrinkage worth it: classes are used when they are fewer than this share of nodes.
        finest, coarsest: a class is split into chunks of at most 1/finest .. 1/coarsest of a part.
        nodes: the finest chunks that leave at most this many nodes are searched.
        step: chunks of the level between neurons and the searched level are finer by this factor.
        bundles: some hierarchies of the search begin with chunks of at most 1/bundles of a part; 0: none.
        whole_pins: neurons of larger networks stay in their finest chunks, if that can be valid.
    """

    rounds: int = 4
    keep: float = 0.5
    finest: int = 256
    coarsest: int = 16
    nodes: int = 2000
    step: int = 8
    bundles: int = 4
    whole_pins: int = 12_500_000


@dataclass(frozen=True, slots=True)
class CoarseningConfig:
    """Parallel clustering of levels too large for the search (`coarsening.py`).

    Attributes:
        scheme: ``"clusters"``, or ``"matching"``: pairs by the published scheme (`matching.py`).
        small_pins: levels with at most this many pins are searched instead.
        turns: nodes move in this many turns, each seeing the clusters of those before; of matching,
            most rounds.
        candidates: neighbours that a node keeps for the rounds of matching.
        growth: a cluster weighs at most this many average nodes; on large levels `large_growth`, if that is more.
        max_nets, max_pins: nets of a node, and pins of a net, that a rating looks at.
        stall: stop when a level keeps more than this share of its nodes.
        enough: stop at this many nodes for each part that there must be (half of `merge_at_most` at most), where
            first parts are joined from them.
    """

    scheme: Literal["clusters", "matching"] = "clusters"
    small_pins: int = 150_000
    turns: int = 2
    candidates: int = 4
    growth: float = 4.0
    large_growth: float = 8.0
    max_nets: int = 24
    max_pins: int = 128
    stall: float = 0.95
    enough: float = 12.0


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """Memetic search on a small level (`search.py`).

    Attributes:
        newcomers: new partitions, made at the start.
        population: partitions kept.
        batch: offspring of one generation; drawn together, made in parallel.
        generations: how many.
        shrink: a coarsening step stops at this share of the nodes.
        growth: a cluster weighs at most this many average nodes.
        hierarchies: of clusters, from which new partitions start.
        passes, patience, turns: passes at each price; moves without a new best, or turns (of many moves
            each), that end one.
        coarse_prices, fine_prices: prices of overload in turn, in units of its average worth.
        spare_parts: empty parts that refinement at the finest level may fill.
        fill: clusters fill parts to a share of the limits in this range, another in each hierarchy.
        overload_price: price by which partitions are compared.
        deep: offspring on levels of more nodes than this are made through several levels, and every new
            partition has a hierarchy of its own; passes may take any number of turns.
        deep_growth, deep_patience, deep_generations, deep_coarse_prices: growth, patience, generations and
            prices on coarse levels there.
        most_work: levels with more pins x parts than this are refined in parallel instead.
        restarts: descents of a searched network; the best is kept.
        finalists: the best partitions, of which each is refined to the end, where that is by
            Fiduccia-Mattheyses (`refinement.fm_cells`).
    """

    newcomers: int = 48
    population: int = 16
    batch: int = 48
    generations: int = 1
    shrink: float = 0.4
    growth: float = 4.0
    hierarchies: int = 8
    passes: int = 1
    patience: int = 5
    turns: int = 8
    coarse_prices: tuple[float, ...] = (0.5, 4.0)
    fine_prices: tuple[float, ...] = (4096.0,)
    spare_parts: int = 1
    fill: tuple[float, float] = (0.9, 1.0)
    overload_price: float = 4096.0
    deep: int = 6000
    deep_growth: float = 2.0
    deep_patience: int = 100
    deep_generations: int = 2
    deep_coarse_prices: tuple[float, ...] = (0.5, 2.0)
    most_work: int = 12_000_000
    restarts: int = 1
    finalists: int = 1


@dataclass(frozen=True, slots=True)
class RefinementConfig:
    """Parallel refinement in the style of Jet (`refinement.py`).

    Attributes:
        scheme: ``"jet"``, or ``"sequence"``: the published scheme (`sequence.py`).
        rounds: on every level but the finest; `finest_rounds` there.
        large_rounds: most rounds on large levels but the finest.
        unsearched_rounds: most rounds on levels that compression made, if none is searched.
        patience: rounds without a new best that end a level.
        polish_patience: the same on levels that compression made, where single moves gain little.
        polish_pins: most pins x rounds there, but two rounds at least.
        polish_rounds, polish_settle_rounds: instead of `rounds` and `settle_rounds` there, on the way back from a
            searched partition.
        temperature: at first, moves that lose up to this share of a node's ties are proposed.
        coarse_prices, fine_prices: prices of overload over the rounds, in units of its average worth.
        polish_prices: the same where a searched partition is refined.
        settle_price, settle_rounds: of the last rounds, which keep the repaired partition valid.
        settle_scheme: of rounds at `settle_price` only, these and others; as `scheme`.
        overload_price: price by which states are compared.
        repairs: most rounds of strict repair at the end.
        fm_cells: on a finest level of at most this many nodes x parts Fiduccia-Mattheyses has the last
            word (`fm.py`); of layered networks it is all refinement then.
    """

    scheme: Literal["jet", "sequence"] = "jet"
    rounds: int = 7
    large_rounds: int = 5
    unsearched_rounds: int = 4
    finest_rounds: int = 8
    patience: int = 12
    polish_patience: int = 2
    polish_pins: int = 50_000_000
    polish_rounds: int = 0
    polish_settle_rounds: int = 5
    temperature: float = 0.1
    coarse_prices: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    fine_prices: tuple[float, ...] = (8.0,)
    polish_prices: tuple[float, ...] = (16.0,)
    settle_price: float = 4096.0
    settle_rounds: int = 3
    settle_scheme: Literal["jet", "sequence"] = "sequence"
    overload_price: float = 20.0
    repairs: int = 200
    fm_cells: int = 0


@dataclass(frozen=True, slots=True)
class Config:
    """All settings of one run; see the phases' own classes.

    Attributes:
        compression, coarsening, search, refinement: the phases.
        large_pins: levels with more pins are large.
        merge: when first and final parts are joined: ``"always"``, or ``"needed"``: the coarsest nodes
            are the first parts, unless that is more than `max_parts`.
        merge_at_most: parts are merged pairwise when there are at most this many.
        merge_slack_percent: by how much the first parts of a large network may exceed distinct limits.
        restarts: descents from scratch of a network that is not searched; the best are kept.
        cycles: after them, recombinations of the best with the next ones (alone: V-cycles).
    """

    compression: CompressionConfig = field(default_factory=CompressionConfig)
    coarsening: CoarseningConfig = field(default_factory=CoarseningConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    refinement: RefinementConfig = field(default_factory=RefinementConfig)
    large_pins: int = 2_500_000
    merge: Literal["always", "needed"] = "always"
    merge_at_most: int = 4096
    merge_slack_percent: int = 10
    restarts: int = 1
    cycles: int = 0

    def enough_nodes(self, least_parts: int) -> int:
        """Nodes at which coarsening stops, of a network that needs so many parts at least; 0: it goes on.

        With fewer than three for each part there is little to choose from.
        """
        nodes = min(int(self.coarsening.enough * least_parts), self.merge_at_most // 2)
        return nodes if self.merge == "always" and nodes >= 3 * least_parts else 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as TOML and JSON hold them."""
        return asdict(self)


PRESETS: dict[str, Config] = {
    "fast": Config(
        search=SearchConfig(newcomers=2, population=2, batch=2, deep_generations=1),
        refinement=RefinementConfig(rounds=6, finest_rounds=5),
    ),
    "default": Config(),
    "quality": Config(
        compression=CompressionConfig(nodes=3000, whole_pins=1 << 40, bundles=0),
        coarsening=CoarseningConfig(turns=4, enough=0.0),
        search=SearchConfig(
            newcomers=96,
            population=96,
            batch=32,
            fine_prices=(2.0, 4096.0),
            deep_generations=60,
            restarts=4,
            finalists=8,
            deep=0,
            deep_growth=4.0,
        ),
        refinement=RefinementConfig(
            rounds=16,
            large_rounds=20,
            unsearched_rounds=20,
            finest_rounds=20,
            polish_rounds=16,
            polish_settle_rounds=3,
            patience=16,
            coarse_prices=(0.5, 1.0, 2.0, 4.0),
            fine_prices=(1.0, 2.0, 4.0, 8.0, 16.0),
            fm_cells=1 << 25,
        ),
        large_pins=1 << 40,
        merge_slack_percent=20,
        restarts=3,
        cycles=6,
    ),
    "paper": Config(
        compression=CompressionConfig(rounds=0),
        coarsening=CoarseningConfig(
            scheme="matching",
            small_pins=0,
            turns=4,
            max_nets=1 << 40,
            max_pins=1 << 40,
            stall=0.999,
        ),
        refinement=RefinementConfig(
            scheme="sequence",
            rounds=16,
            finest_rounds=16,
            temperature=1.0,
            coarse_prices=(4096.0,),
            fine_prices=(4096.0,),
            settle_rounds=0,
            polish_settle_rounds=0,
        ),
        large_pins=1 << 40,
        merge="needed",
    ),
}


_AT_LEAST_ONE = {
    "newcomers",
    "population",
    "batch",
    "turns",
    "max_nets",
    "max_pins",
    "candidates",
    "finest",
    "coarsest",
    "step",
    "growth",
    "deep_growth",
    "hierarchies",
    "finalists",
}
_BELOW_ONE = {"shrink", "stall", "keep"}


def resolve_config(preset: str = "default", overrides: Any = None) -> Config:
    """The effective settings: a preset, changed by a :class:`Config`, a mapping or a TOML file.

    Args:
        preset: a name in :data:`PRESETS`.
        overrides: None, a whole Config, nested mapping ``{"search": {"generations": 20}}``, or the
            path of a TOML file with such tables.

    Raises:
        ConfigError: unknown preset, table or key, or a value of the wrong type.
    """
    if isinstance(overrides, Config):
        return overrides
    if preset not in PRESETS:
        raise ConfigError(f"unknown preset {preset!r}; known: {', '.join(PRESETS)}")
    config = PRESETS[preset]
    if overrides is None:
        return config
    if isinstance(overrides, (str, Path)):
        try:
            overrides = tomllib.loads(Path(overrides).read_text())
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ConfigError(f"settings file {overrides}: {error}") from None
    changed: Config = _override(config, dict(overrides), "settings")
    return changed


def _override(base: Any, values: dict[str, Any], where: str) -> Any:
    hints = get_type_hints(type(base))
    known = {f.name for f in fields(base)}
    changes: dict[str, Any] = {}
    for key, value in values.items():
        if key not in known:
            raise ConfigError(f"{where} has no key {key!r}; known: {', '.join(sorted(known))}")
        current = getattr(base, key)
        if isinstance(value, dict):
            if not hasattr(type(current), "__dataclass_fields__"):
                raise ConfigError(f"{where} key {key!r} is a value, not a table")
            changes[key] = _override(current, value, f"table {key!r}")
        else:
            changes[key] = _checked(current, hints[key], value, f"{where} key {key!r}")
    return replace(base, **changes)


def _checked(current: Any, hint: Any, value: Any, where: str) -> Any:
    if hasattr(type(current), "__dataclass_fields__"):
        raise ConfigError(f"{where} is a table; got {value!r}")
    if isinstance(current, tuple):
        numbers = isinstance(value, (list, tuple)) and all(_is_number(v) and v >= 0 for v in value)
        if not numbers or not value or (hint == tuple[float, float] and len(value) != 2):
            raise ConfigError(
                f"{where} is {value!r}; expected a list of numbers >= 0 like {list(current)}"
            )
        return tuple(float(v) for v in value)
    if choices := get_args(hint):
        if value not in choices:
            raise ConfigError(f"{where} is {value!r}; expected one of {', '.join(choices)}")
        return value
    if not _is_number(value) or value < 0 or (isinstance(current, int) and value != int(value)):
        kind = "whole number" if isinstance(current, int) else "number"
        raise ConfigError(f"{where} is {value!r}; expected a {kind} >= 0")
    key = where.rsplit("'", 2)[-2]
    if key in _AT_LEAST_ONE and value < 1:
        raise ConfigError(f"{where} is {value!r}; expected at least 1")
    if key in _BELOW_ONE and not 0 < value < 1:
        raise ConfigError(f"{where} is {value!r}; expected a number above 0 and below 1")
    return type(current)(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
