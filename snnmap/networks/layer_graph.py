"""From the tables of a model file to populations and links, layer after layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from snnmap.errors import NetworkError
from snnmap.networks import layers, schema
from snnmap.networks.builder import NetworkBuilder, Signal
from snnmap.networks.circuit import circuit_links
from snnmap.networks.connectors import distance_links, random_links, stream_of
from snnmap.networks.layer_types import (
    JOINING,
    LAYERS,
    LINK,
    OPERATORS,
    RULES,
    Table,
    connect_pairs,
)
from snnmap.networks.rates import Rates, rates_from
from snnmap.networks.relations import Relation
from snnmap.networks.reservoir import Reservoir
from snnmap.progress import Progress

if TYPE_CHECKING:
    from snnmap.partitioning.multilevel.device import Device

Array = np.ndarray[Any, Any]


def tables(value: Any, what: str) -> Sequence[Table]:
    """`value` as a list of tables.

    Raises:
        NetworkError: it is none, or there are no layers.
    """
    if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
        raise NetworkError(
            f"{what} is not a list of tables, as [[{what}]] or [{{...}}, ...] give it"
        )
    if what == "layers" and not value:
        raise NetworkError("there are no layers")
    return value


@dataclass
class LayerGraph:
    """The network while its layers are added.

    Attributes:
        values: keys of the model file, defaults filled in.
        folder: that file names in it are relative to.
        progress: told of work that takes long.
        device: a GPU to link reservoirs on, None for the CPU.
        builder: the populations and links so far.
        signals: what each layer gives, by name, in order.
        used: layers that another one takes as input.
        places: float64[neurons, 2] of the populations with an extent.
    """

    values: dict[str, Any]
    folder: Path
    progress: Progress
    device: Device | None = None
    builder: NetworkBuilder = field(init=False)
    signals: dict[str, Signal] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    places: dict[str, Array] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.builder = NetworkBuilder(self.values["name"])

    def add_layer(self, table: Table) -> None:
        """Add one layer.

        Raises:
            NetworkError: the layer, what is wrong with it, what was expected.
        """
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
            self._place(name, prod(keys["shape"]), keys.get("extent"))
            return self.builder.population(
                name, keys["shape"], is_input=kind == "input", rates=rates
            )
        if kind == "circuit":
            links = circuit_links(keys["cells"], rent=keys["rent"], seed=keys["seed"])
            signal = self.builder.population(name, (keys["cells"],), rates=rates)
            self.builder.connect(signal.through(links, signal.shape), name)
            return signal
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
        links = reservoir.links(self.progress, self.device)
        self.builder.connect(signal.through(links, (n,)), name)
        return signal

    def add_link(self, table: Table, number: int) -> None:
        """Add one entry of ``links``, the `number`-th.

        Raises:
            NetworkError: the link, what is wrong with it, what was expected.
        """
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
            if keys["type"] == "distance":
                relation = self._near(keys, seed)
            elif keys["sigma"] is not None:
                raise NetworkError(
                    f'{keys["type"]} links take no sigma; expected type = "distance"'
                )
            else:
                relation = connect_pairs(keys, keys["type"], source.size, n_targets, seed)
            signal = source.through(relation, (n_targets,))
            if keys["delay_ms"] is not None:
                signal = signal.delayed(keys["delay_ms"])
            self.builder.connect(signal, keys["to"])
        except NetworkError as error:
            raise NetworkError(f"{where}: {error}") from None

    def _place(self, name: str, n: int, extent: tuple[float, float] | None) -> None:
        if extent is not None:
            seed = self._seed(None, len(self.signals))
            self.places[name] = np.random.default_rng(seed).random((n, 2)) * extent

    def _near(self, keys: dict[str, Any], seed: int) -> Relation:
        if keys["probability"] is None or keys["sigma"] is None:
            raise NetworkError("distance links need a probability (at distance 0) and a sigma")
        for rule in ("fan_in", "fan_out"):
            if keys[rule] is not None:
                raise NetworkError(f'distance links take no {rule}; expected type = "random"')
        ends = (keys["from"], keys["to"])
        for end in ends:
            if end not in self.places:
                raise NetworkError(
                    f"distance links need populations with an extent; {end!r} has none"
                )
        return distance_links(
            self.places[ends[0]],
            self.places[ends[1]],
            peak=keys["probability"],
            sigma=keys["sigma"],
            seed=seed,
            allow_self=keys["self_connections"] or ends[0] != ends[1],
        )

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
        """Refuse layers that lead nowhere.

        Raises:
            NetworkError: a layer without neurons that no other one uses.
        """
        for name in self.signals:
            if name not in self.used and name not in self.builder.populations:
                raise NetworkError(f"layer {name!r}: has no neurons and nothing comes after it")
