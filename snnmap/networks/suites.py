"""Suites: named lists of networks to compare mappers on, as TOML files.

docs/suites.md describes the format. An entry is a network by name or file (``model``) or its layers
written out, possibly once for each combination of some parameters (``sweep``). What a suite lists
is a `SuiteEntry` each: a network description and all that makes it up, not yet built.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snnmap.errors import NetworkError
from snnmap.networks import schema
from snnmap.networks.model import Model, model_from, read_model, read_table
from snnmap.networks.schema import Keys, suggest
from snnmap.networks.variants import filled, reseeded, scaled
from snnmap.resources import resource_dir

SUITE = Keys(
    {"name": schema.text, "networks": schema.tables},
    {"description": (schema.text, ""), "expect": (schema.table, {})},
)
ENTRY = Keys(
    {"name": schema.text},
    {
        "model": (schema.text, None),
        "profile": (schema.text, None),
        "description": (schema.text, None),
        "seed": (schema.anything, None),
        "scale": (schema.anything, 1.0),
        "sweep": (schema.table, {}),
        **dict.fromkeys(("layers", "links", "rates", "layout"), (schema.anything, None)),
    },
)
MOST_SCALE = 1e6
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
COUNTS = Keys(dict.fromkeys(("nodes", "hyperedges", "pins"), schema.count_or_zero))


@dataclass(frozen=True, eq=False)
class SuiteEntry:
    """One network of a suite.

    Attributes:
        name: unique in the suite; also of the network.
        model: how to build it.
        parameters: of the sweep it belongs to.
        seed: that replaced the description's own seeds; None where they stand.
        scale: factor on its size.
        profile: recommended hardware profile.
        expect: nodes, hyperedges and pins it must have, if stated and not scaled or reseeded.
    """

    name: str
    model: Model
    parameters: dict[str, Any]
    seed: int | None
    scale: float
    profile: str | None
    expect: dict[str, int] | None


@dataclass(frozen=True, eq=False)
class Suite:
    """A suite, read and checked; nothing is built.

    Attributes:
        name: of the suite.
        description: one line.
        path: its file.
        entries: its networks, in order.
    """

    name: str
    description: str
    path: Path
    entries: tuple[SuiteEntry, ...]

    def only(self, names: list[str]) -> Suite:
        """The suite with some of its networks, in its own order.

        Raises:
            NetworkError: a name that is not in the suite.
        """
        known = [entry.name for entry in self.entries]
        for name in names:
            if name not in known:
                raise NetworkError(
                    f"suite {self.name!r} has no network {name!r}; {suggest(name, known)}"
                )
        kept = tuple(entry for entry in self.entries if entry.name in names)
        return Suite(self.name, self.description, self.path, kept)


def suite_names() -> list[str]:
    """Names of the suites that come with snnmap, sorted."""
    return sorted(path.stem for path in _folder().glob("*.toml"))


def load_suite(name_or_path: str | Path, *, seed: int | None = None, scale: float = 1.0) -> Suite:
    """A suite by name or from a file.

    Args:
        name_or_path: a name of :func:`suite_names` or a TOML file.
        seed: replaces every seed of every network; None leaves them.
        scale: further factor on the size of every network, see :func:`variants.scaled`.

    Raises:
        NetworkError: neither a known name nor a file, or a file that is wrong (entry and key).
        InputError: a file that is no TOML.
    """
    if not 0 < scale <= MOST_SCALE:
        raise NetworkError(f"scale is {scale}; expected a number > 0, at most {MOST_SCALE:g}")
    if isinstance(name_or_path, str) and name_or_path in suite_names():
        path = _folder() / f"{name_or_path}.toml"
    else:
        path = Path(name_or_path)
        if not path.exists():
            known = suggest(str(name_or_path), suite_names())
            raise NetworkError(f"{str(name_or_path)!r} is neither a suite nor a file; {known}")
    values = SUITE.read(read_table(path), str(path))
    entries: list[SuiteEntry] = []
    for number, table in enumerate(values["networks"]):
        where = f"{path}: network {table.get('name', number + 1)!r}"
        keys = ENTRY.read(table, where)
        for parameters in _combinations(keys["sweep"], where):
            try:
                entries.append(_entry(keys, parameters, path, values["expect"], seed, scale))
            except NetworkError as error:
                raise NetworkError(f"{where}: {error}") from None
    names = [entry.name for entry in entries]
    for name in names:
        if not _NAME.fullmatch(name):
            raise NetworkError(f"{path}: {name!r} is no file name; expected letters, digits, .-_")
        if names.count(name) > 1:
            raise NetworkError(
                f"{path}: two networks are named {name!r}; name the swept parameters"
            )
    for name in values["expect"]:
        if name not in names:
            raise NetworkError(f"{path}: expect names no network of the suite: {name!r}")
    return Suite(values["name"], values["description"], path, tuple(entries))


def _entry(
    keys: Mapping[str, Any],
    parameters: dict[str, Any],
    path: Path,
    expect: Mapping[str, Any],
    seed: int | None,
    scale: float,
) -> SuiteEntry:
    keys = filled({key: value for key, value in keys.items() if key != "sweep"}, parameters)
    name = keys["name"]
    own_seed = _checked(keys["seed"], schema.count_or_zero, "seed")
    own_scale = _checked(keys["scale"], _scale, "scale")
    given = {
        key: keys[key] for key in ("layers", "links", "rates", "layout") if keys[key] is not None
    }
    if keys["model"] is None and "layers" not in given:
        raise NetworkError("neither model nor layers; expected one of them")
    if keys["model"] is not None and given.keys() & {"layers", "links", "layout"}:
        raise NetworkError("both model and layers; expected one of them")
    base = (
        _model(keys["model"], path) if keys["model"] else model_from({"name": name, **given}, path)
    )
    values = {**base.values, **given, "name": name}
    if keys["description"]:
        values["description"] = keys["description"]
    values = scaled(values, own_scale * scale)
    chosen = own_seed if seed is None else seed
    if chosen is not None:
        values = reseeded(values, chosen)
    counts = None
    if name in expect and seed is None and scale == 1:
        counts = COUNTS.read(expect[name], f"expect of {name!r}")
    profile = keys["profile"] or values["profile"]
    model = Model(values, base.path)
    return SuiteEntry(name, model, parameters, chosen, own_scale * scale, profile, counts)


def _model(name: str, suite_path: Path) -> Model:
    """A model by name, or by a path relative to the suite."""
    shipped = resource_dir("models") / f"{name}.toml"
    if shipped.is_file():
        return read_model(shipped)
    path = suite_path.parent / name
    if not path.is_file():
        raise NetworkError(
            f"model {name!r} is neither a network that comes along nor a file {path}"
        )
    return read_model(path)


def _combinations(sweep: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    for key, values in sweep.items():
        if not isinstance(values, list) or not values:
            raise NetworkError(
                f"{where}: sweep of {key!r} is {values!r}; expected a list of values"
            )
    return [dict(zip(sweep, v, strict=True)) for v in itertools.product(*sweep.values())]


def _scale(value: Any) -> float:
    """A number > 0 that no size is multiplied out of sight with."""
    scale = schema.positive(value)
    if scale > MOST_SCALE:
        raise ValueError(f"at most {MOST_SCALE:g}")
    return scale


def _checked(value: Any, check: schema.Check, what: str) -> Any:
    if value is None:
        return None
    try:
        return check(value)
    except ValueError as error:
        raise NetworkError(f"{what} is {value!r}; expected {error}") from None


def _folder() -> Path:
    return resource_dir("models") / "suites"
