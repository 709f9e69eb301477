"""Model files: a network as a list of layers in TOML (or a plain dict), read strictly.

docs/networks.md describes the format. Every layer names its input with `from` (default: the layer
before it). A layer is made of neurons or, with ``neurons = false``, only passes links on; `add`,
`concat` and `flatten` have none unless asked. ``links`` adds projections between populations in
any direction.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from snnmap.errors import InputError, NetworkError
from snnmap.hypergraph import Hypergraph
from snnmap.networks import layers, schema
from snnmap.networks.builder import NetworkBuilder, Signal
from snnmap.networks.connectors import random_links, stream_of
from snnmap.networks.layer_types import (
    JOINING,
    LAYERS,
    LINK,
    MODEL,
    OPERATORS,
    RULES,
    Table,
    connect_pairs,
)
from snnmap.networks.rates import Rates, rates_from
from snnmap.networks.reservoir import Reservoir
from snnmap.progress import SILENT, Progress


@dataclass(frozen=True, eq=False)
class Model:
    """A network description, checked on its surface; :meth:`build` makes the network.

    Attributes:
        values: keys of the file with defaults filled in.
        path: of the file, or a name for errors.
    """

    values: dict[str, Any]
    path: Path

    @property
    def name(self) -> str:
        """Name of the network."""
        return str(self.values["name"])

    @property
    def description(self) -> str:
        """One line for lists."""
        return str(self.values["description"])

    @property
    def stand_in(self) -> bool:
        """Made up to the counts of a network whose layers were never published."""
        return bool(self.values["stand_in"])

    @property
    def profile(self) -> str | None:
        """Recommended hardware profile."""
        profile = self.values["profile"]
        return None if profile is None else str(profile)

    def build(self, progress: Progress = SILENT) -> Hypergraph:
        """Make the network.

        Raises:
            NetworkError: the file and the layer at fault, quantity and value.
        """
        try:
            graph = _Graph(self.values, self.path.parent, progress)
            for table in _tables(self.values["layers"], "layers"):
                graph.add_layer(table)
            for number, table in enumerate(_tables(self.values["links"], "links")):
                graph.add_link(table, number)
            graph.check_ends()
            rates = rates_from(self.values["rates"], self.path.parent)
            return graph.builder.build(rates)
        except NetworkError as error:
            raise NetworkError(f"{self.path}: {error}") from None


def read_model(path: str | Path) -> Model:
    """Read a model file; the network is not built yet.

    Raises:
        InputError: the file cannot be read or is no TOML.
        NetworkError: a key of the file itself is unknown, missing or wrong.
    """
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise InputError(path, f"cannot be read: {reason}") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(path, f"is not TOML: {error}") from None
    return model_from(table, path)


def model_from(table: Table, path: str | Path = "model") -> Model:
    """A model from a dict with the keys of a model file; `path` names it in errors.

    Raises:
        NetworkError: a key is unknown, missing or wrong.
    """
    return Model(MODEL.read(table, str(path)), Path(path))


def _tables(value: Any, what: str) -> Sequence[Table]:
    if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
        raise NetworkError(
            f"{what} is not a list of tables, as [[{what}]] or [{{...}}, ...] give it"
        )
    if what == "layers" and not value:
        raise NetworkError("there are no layers")
    return value


@dataclass
class _Graph:
    """The network while its layers are added."""

    values: dict[str, Any]
    folder: Path
    progress: Progress
    builder: NetworkBuilder = field(init=False)
    signals: dict[str, Signal] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    _counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.builder = NetworkBuilder(self.values["name"])

    def add_layer(self, table: Table) -> None:
        kind = table.get("type")
        number = self._counts[str(kind)] = self._counts.get(str(kind), 0) + 1
        default = "input" if kind == "input" and number == 1 else f"{kind}{number}"
        name = table.get("name", default)
        where = f"layer {name!r}"
        if kind is None:
            raise NetworkError(f"layer {len(self.signals) + 1}: key 'type' is missing")
        if kind not in LAYERS:
            raise NetworkError(
                f"{where}: unknown type {kind!r}; {schema.suggest(str(kind), LAYERS)}"
            )
        keys = LAYERS[str(kind)].read(table, where)
        if name in self.signals:
            raise NetworkError(f"two layers are named {name!r}; give each its own name")
        try:
            self.signals[name] = self._signal(str(kind), name, keys)
        except NetworkError as error:
            text = str(error)
            raise NetworkError(text if text.startswith("layer ") else f"{where}: {text}") from None

    def _signal(self, kind: str, name: str, keys: dict[str, Any]) -> Signal:
        rates = rates_from(keys["rates"], self.folder)
        if kind in ("input", "population"):
            layers.check_size(prod(keys["shape"]))
            return self.builder.population(
                name, keys["shape"], is_input=kind == "input", rates=rates
            )
        if kind == "reservoir" and keys["from"] is None:
            sources = []
        else:
            sources = self._sources(keys["from"])
        if len(sources) > 1 and kind not in JOINING:
            raise NetworkError(
                f"{len(sources)} inputs to a {kind} layer; join them with add or concat"
            )
        if keys["delay_ms"] is not None:
            sources = [s.delayed(keys["delay_ms"]) for s in sources]
        if kind == "reservoir":
            return self._reservoir(name, keys, sources, rates)
        seed = self._seed(keys.get("seed"), len(self.signals))
        signal = OPERATORS[kind](sources, {**keys, "seed": seed}, self.values["layout"])
        if not keys["neurons"]:
            if kind == "recurrent":
                raise NetworkError(
                    "a recurrent layer is made of neurons; leave out neurons = false"
                )
            if rates is not None:
                raise NetworkError("rates belong to neurons; this layer has none (neurons = true?)")
            return signal
        signal = self.builder.population(name, signal.shape, signal, rates=rates)
        if kind == "recurrent":
            n = signal.size
            kind = "random" if any(keys[rule] is not None for rule in RULES) else "dense"
            links = connect_pairs(keys, kind, n, n, seed)
            self.builder.connect(signal.through(links, signal.shape), name)
        return signal

    def _reservoir(
        self, name: str, keys: dict[str, Any], sources: list[Signal], rates: Rates | None
    ) -> Signal:
        n = keys["neurons"]
        parameters = ("fan_out", "seed", "sigma", "long_range", "forward")
        reservoir = Reservoir(n, **{key: keys[key] for key in parameters})
        signal = self.builder.population(name, (n,), rates=rates)
        for source in sources:
            seed = self._seed(None, len(self.signals))
            links = random_links(source.size, n, probability=keys["input_probability"], seed=seed)
            self.builder.connect(source.through(links, (n,)), name)
        links = reservoir.links(self.progress)
        self.builder.connect(signal.through(links, (n,)), name)
        return signal

    def add_link(self, table: Table, number: int) -> None:
        where = f"link {number + 1}"
        keys = LINK.read(table, where)
        where = f"link {keys['from']!r} -> {keys['to']!r}"
        if keys["to"] not in self.builder.populations:
            known = schema.suggest(keys["to"], self.builder.populations)
            raise NetworkError(f"{where}: {keys['to']!r} is no layer of neurons; {known}")
        try:
            (source,) = self._sources((keys["from"],))
            n_targets = self.builder.populations[keys["to"]].size
            seed = self._seed(keys["seed"], 10**6 + number)
            relation = connect_pairs(keys, keys["type"], source.size, n_targets, seed)
            signal = source.through(relation, (n_targets,))
            if keys["delay_ms"] is not None:
                signal = signal.delayed(keys["delay_ms"])
            self.builder.connect(signal, keys["to"])
        except NetworkError as error:
            raise NetworkError(f"{where}: {error}") from None

    def _sources(self, names: tuple[str, ...] | None) -> list[Signal]:
        if names is None:
            if not self.signals:
                raise NetworkError("nothing comes before it; start with an input or a population")
            names = (next(reversed(self.signals)),)
        for name in names:
            if name not in self.signals:
                known = schema.suggest(name, self.signals)
                raise NetworkError(f"its input {name!r} is no layer before it; {known}")
        self.used.update(names)
        return [self.signals[name] for name in names]

    def _seed(self, own: int | None, place: int) -> int:
        return int(stream_of(self.values["seed"], place)) if own is None else own

    def check_ends(self) -> None:
        for name in self.signals:
            if name not in self.used and name not in self.builder.populations:
                raise NetworkError(f"layer {name!r}: has no neurons and nothing comes after it")
