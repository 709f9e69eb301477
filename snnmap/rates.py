"""Spike rates for a network whose file has none, or others: measured, given or drawn.

A rate belongs to a neuron; an axon carries the sum over its sources. What was chosen is said in
notes, a sentence each: nothing is assumed silently.
"""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from snnmap.errors import ConfigError, InputError, NetworkError
from snnmap.hypergraph import Hypergraph, Population
from snnmap.networks.rates import ConstantRates, LognormalRates, Rates, rates_from
from snnmap.progress import SILENT
from snnmap.readers._arrays import load_npy
from snnmap.readers.checks import input_size
from snnmap.readers.lines import NumberLines
from snnmap.readers.spikes import is_spike_file, read_spikes

Array = np.ndarray[Any, Any]

FORMS = (
    "constant:RATE, lognormal[:median=M,cv=C,seed=S], or a file: .toml (by population), .csv, "
    ".npy, SONATA spikes or NIR data (.h5), with @POPULATION if it is that population's"
)
"""The forms of a rate specification, for messages and help."""


def with_rates(network: Hypergraph, rates: str | Path | Rates) -> tuple[Hypergraph, list[str]]:
    """The network with other spike rates.

    Args:
        network: its populations are what files refer to.
        rates: a specification (see :data:`FORMS`) or a distribution of `snnmap.networks.rates`.

    Returns:
        (the network with new weights, notes on what was chosen).

    Raises:
        ConfigError: a specification of unknown form.
        InputError: a file that is malformed or does not fit the network.
        NetworkError: rates out of range.
    """
    chosen = _Chosen(network)
    if not isinstance(rates, str | Path):
        chosen.draw(rates, None)
    else:
        _choose(chosen, str(rates))
    return chosen.network_with_rates(), chosen.notes


@dataclass(eq=False)
class _Chosen:
    """Rates collected for a network, NaN where nothing was said.

    Attributes:
        network: whose rates they are.
        values: float64[n_nodes].
        notes: what was chosen.
    """

    network: Hypergraph
    values: Array = field(init=False)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.values = np.full(self.network.n_nodes, np.nan)

    def range_of(self, population: Population | None) -> tuple[int, int]:
        """First node and node after the last of a population, or of the network."""
        if population is None:
            return 0, self.network.n_nodes
        return population.start, population.stop

    def draw(self, rates: Rates, population: Population | None) -> None:
        """Draw rates for the neurons of a population that have an axon, in order of their ids."""
        start, stop = self.range_of(population)
        sources = np.unique(self.network.sources)
        sources = sources[(sources >= start) & (sources < stop)]
        self.values[start:stop] = 0.0  # without an axon there is nothing to send
        self.values[sources] = rates.draw(sources - start, stop - start)
        self.notes.append(f"rates{_of(population)}: {_said(rates)}")

    def give(
        self, path: Path, population: Population | None, ids: Array | None, given: Array
    ) -> None:
        """Take rates from a file: of the neurons `ids`, or of every neuron in order."""
        start, stop = self.range_of(population)
        n = stop - start
        whose = f"the {n} neurons{_of(population)}"
        if ids is None:
            if len(given) != n:
                raise InputError(path, f"holds {len(given)} rates; expected one for {whose}")
            ids = np.arange(n)
        for i in np.flatnonzero((ids < 0) | (ids >= n))[:1]:
            raise InputError(path, f"neuron {ids[i]} is none of {whose}")
        for i in np.flatnonzero(~(np.isfinite(given) & (given >= 0)))[:1]:
            problem = f"rate {given[i]}; expected a finite number >= 0"
            raise InputError(path, problem, place=f"neuron {ids[i]}")
        self.values[start:stop] = 0.0
        self.values[start + ids] = given

    def population(self, path: Path | str, name: str) -> Population:
        """The population called `name`."""
        known = [p.name for p in self.network.populations]
        for p in self.network.populations:
            if p.name == name:
                return p
        close = difflib.get_close_matches(name, known, n=1)
        hint = (
            f"did you mean {close[0]!r}"
            if close
            else f"known are {', '.join(known[:12]) or 'none'}"
        )
        raise InputError(path, f"the network has no population {name!r}; {hint}")

    def network_with_rates(self) -> Hypergraph:
        """The network with these rates; axons of whose sources nothing was said keep theirs."""
        h = self.network
        edges = np.repeat(np.arange(h.n_hedges), np.diff(h.source_offsets))
        sums = np.bincount(edges, weights=self.values[h.sources], minlength=h.n_hedges)
        unsaid = np.isnan(sums) | (np.diff(h.source_offsets) == 0)
        weights = np.where(unsaid, h.weights, sums)
        n_kept = int(np.count_nonzero(unsaid))
        if n_kept:
            self.notes.append(f"{n_kept} of {h.n_hedges} axons keep the rates they had")
        return replace(h, weights=weights)


def _choose(chosen: _Chosen, text: str) -> None:
    kind, colon, rest = text.partition(":")
    if kind in ("constant", "lognormal") and not Path(text).exists():
        chosen.draw(_distribution(text, kind, rest if colon else None), None)
        return
    name, at, population_name = text.rpartition("@")
    path = Path(name if at and not Path(text).exists() else text)
    input_size(path)
    population = None
    if path != Path(text):
        population = chosen.population(path, population_name)
    if path.suffix.lower() == ".toml":
        if population is not None:
            raise ConfigError(f"rates {text!r}: a .toml file names its populations itself")
        _read_table(chosen, path)
    else:
        _read_file(chosen, path, population)


def _distribution(text: str, kind: str, rest: str | None) -> Rates:
    try:
        if kind == "constant":
            return ConstantRates(float(rest if rest is not None else ""))
        settings: dict[str, Any] = {}
        for word in (rest or "").split(",") if rest else []:
            key, _, value = word.partition("=")
            settings[key.strip()] = int(value) if key.strip() == "seed" else float(value)
        return LognormalRates(**settings)
    except (ValueError, TypeError):
        raise ConfigError(f"rates {text!r} are of no known form; expected {FORMS}") from None


def _read_file(
    chosen: _Chosen,
    path: Path,
    population: Population | None,
    *,
    recorded: str | None = None,
    duration_ms: float | None = None,
    time_unit: str | None = None,
) -> None:
    """Rates of one file; of a spike file only the population called `recorded`, if given."""
    if path.suffix.lower() == ".npy":
        given = load_npy(path)
        if given.ndim != 1 or given.dtype.kind not in "iuf":
            problem = f"holds {given.dtype} of shape {given.shape}; expected one number a neuron"
            raise InputError(path, problem)
        chosen.give(path, population, None, given.astype(np.float64))
        chosen.notes.append(f"rates{_of(population)}: {path.name}")
    elif is_spike_file(path):
        _read_spikes(chosen, path, population, recorded, duration_ms, time_unit)
    else:
        ids, given = _read_text(path)
        chosen.give(path, population, ids, given)
        silent = "" if ids is None else ", 0 for neurons that are not listed"
        chosen.notes.append(f"rates{_of(population)}: {path.name}{silent}")


def _read_text(path: Path) -> tuple[Array | None, Array]:
    """(ids or None, rates) of a text file with a rate, or a neuron and its rate, on each line."""
    with path.open("rb") as file:
        head = file.read(1 << 16)
    separator = next((s for s in ",;\t" if s.encode() in head), " ")
    lines = NumberLines(path, SILENT, separator=separator, comment="#")
    for _ in lines.some(1):  # a first line without numbers is a header
        if not np.isnan(lines.numbers(np.arange(len(lines.values)))).all():
            lines.position = 0
    ids, rates, width = [], [], 0
    for offsets, values in lines.some(input_size(path)):
        width = width or int(offsets[1])
        if width not in (1, 2):
            at = int(lines.starts[0])
            raise lines.error(at, f"{width} columns; expected a rate, or a neuron and its rate")
        lines.refuse_width(offsets, width)
        if width == 2:
            neuron = np.zeros(len(values), bool)
            neuron[::2] = True
            lines.refuse(neuron & ((values < 0) | (values >= 2**31)), "neuron", "a whole number")
            ids.append(values[::2])
        rates.append(lines.checked_numbers(offsets[1:] - 1, "rate", negative=False))
    if not rates:
        raise InputError(path, "has no rates; expected a line each")
    found = np.concatenate(ids) if ids else None
    if found is not None and len(np.unique(found)) < len(found):
        values, counts = np.unique(found, return_counts=True)
        raise InputError(path, f"neuron {values[counts > 1][0]} occurs twice")
    return found, np.concatenate(rates)


def _read_spikes(
    chosen: _Chosen,
    path: Path,
    population: Population | None,
    recorded: str | None,
    duration_ms: float | None,
    time_unit: str | None,
) -> None:
    recordings = read_spikes(path, duration_ms=duration_ms, time_unit=time_unit)
    names = [r.population for r in recordings]
    if recorded is not None:
        recordings = [r for r in recordings if r.population == recorded]
        if not recordings:
            known = ", ".join(str(name) for name in names)
            raise InputError(path, f"has no spikes of {recorded!r}; it has those of {known}")
    if population is not None and len(recordings) > 1:
        known = ", ".join(str(name) for name in names)
        problem = f"has spikes of {known}; say which are those of {population.name!r} in a .toml"
        raise InputError(path, problem)
    for recording in recordings:
        home = population
        if home is None and recording.population is not None:
            home = chosen.population(path, recording.population)
        elif home is None and len(chosen.network.populations) > 1:
            known = ", ".join(p.name for p in chosen.network.populations)
            raise InputError(
                path, f"does not say whose spikes it holds; add @POPULATION, one of {known}"
            )
        chosen.give(path, home, recording.ids, recording.rates)
        start, stop = chosen.range_of(home)
        chosen.notes.append(
            f"rates{_of(home)}: {recording.n_spikes} spikes in {path.name}, {recording.note}; "
            f"{stop - start - len(recording.ids)} of {stop - start} neurons never fired"
        )


_SPIKE_KEYS = {"kind", "file", "population", "duration_ms", "time_unit"}


def _read_table(chosen: _Chosen, path: Path) -> None:
    """Rates by population: ``default`` and the table ``populations``."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(path, f"is no TOML: {error}") from None
    for key in table.keys() - {"default", "populations"}:
        raise InputError(path, f"unknown key {key!r}; expected default and populations")
    entries = table.get("populations", {})
    if not isinstance(entries, dict):
        raise InputError(path, "populations is no table; expected a rate for each population")
    try:
        if "default" in table:
            default = rates_from(table["default"], path.parent)
            if default is not None:
                chosen.draw(default, None)
        for name, value in entries.items():
            _read_entry(chosen, path, chosen.population(path, name), value)
    except NetworkError as error:
        raise InputError(path, str(error)) from None


def _read_entry(chosen: _Chosen, path: Path, population: Population, value: Any) -> None:
    place = f"population {population.name!r}"
    try:
        if not isinstance(value, dict) or value.get("kind") not in ("spikes", "file"):
            rates = rates_from(value, path.parent)
            if rates is not None:
                chosen.draw(rates, population)
            return
        for key in value.keys() - (_SPIKE_KEYS if value["kind"] == "spikes" else {"kind", "file"}):
            raise InputError(path, f"unknown key {key!r}", place=place)
        if not isinstance(value.get("file"), str):
            raise InputError(path, "expected file = 'NAME'", place=place)
        duration = value.get("duration_ms")
        if duration is not None and (
            isinstance(duration, bool) or not isinstance(duration, int | float)
        ):
            raise InputError(path, f"duration_ms is {duration!r}; expected a number", place=place)
        input_size(path.parent / value["file"])
        _read_file(
            chosen,
            path.parent / value["file"],
            population,
            recorded=value.get("population"),
            duration_ms=duration,
            time_unit=value.get("time_unit"),
        )
    except (NetworkError, ConfigError) as error:
        raise InputError(path, str(error), place=place) from None


def _of(population: Population | None) -> str:
    return "" if population is None else f" of {population.name!r}"


def _said(rates: Rates) -> str:
    if isinstance(rates, ConstantRates):
        return f"constant {rates.rate:g}"
    if isinstance(rates, LognormalRates):
        return f"log-normal, median {rates.median:g}, cv {rates.cv:g}, seed {rates.seed}"
    return f"given ({type(rates).__name__})"
