"""Which files make a SONATA network: configs with variables, companion files, type tables."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py

from snnmap.errors import InputError
from snnmap.readers._hdf5 import SIGNATURE

_MAX_CONFIG_BYTES = 64 << 20
_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")


@dataclass
class Sources:
    """The files of a network.

    Attributes:
        nodes: node file -> its table of types, or None.
        edges: edge file -> its table of types, or None.
        virtual: (node file, population) -> whether a config calls the population virtual.
    """

    nodes: dict[Path, Path | None] = field(default_factory=dict)
    edges: dict[Path, Path | None] = field(default_factory=dict)
    virtual: dict[tuple[Path, str], bool] = field(default_factory=dict)

    @classmethod
    def of_files(cls, nodes: Iterable[str | Path], edges: Iterable[str | Path]) -> Sources:
        """Files named by the user, each with the table that lies beside it."""
        out = cls()
        for file in map(Path, nodes):
            out.nodes[file] = _companion(file, "node_types")
        for file in map(Path, edges):
            out.edges[file] = _companion(file, "edge_types")
        return out


def find_sources(path: Path) -> Sources:
    """The network that a node file, an edge file or a folder belongs to."""
    if not path.exists():
        raise InputError(path, "no such file; expected a SONATA config, edge file or folder")
    if path.is_dir():
        configs = [p for p in sorted(path.glob("*.json")) if is_config(p)]
        for config in configs:
            if "networks" in _load(config):
                return sources_of_config(config)
        nodes, edges = _split(sorted(path.glob("*.h5")))
        if not nodes and not edges:
            raise InputError(path, "holds no SONATA config, node file or edge file (*.json, *.h5)")
        return Sources.of_files(nodes, edges)
    nodes, edges = _split([path])
    if not nodes and not edges:
        raise InputError(path, "holds neither /nodes nor /edges; expected a SONATA file or config")
    beside_nodes, beside_edges = _split(p for p in sorted(path.parent.glob("*.h5")) if p != path)
    if edges:
        wanted = _populations_of(path, "edges")
        nodes += [
            p for p in beside_nodes if p not in nodes and wanted & _populations_of(p, "nodes")
        ]
    else:
        known = _populations_of(path, "nodes")
        edges = [p for p in beside_edges if _populations_of(p, "edges") <= known]
    return Sources.of_files(nodes, edges)


def _split(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Files with /nodes and files with /edges."""
    nodes, edges = [], []
    for path in paths:
        try:
            with h5py.File(path, "r") as file:
                nodes += [path] if isinstance(file.get("nodes"), h5py.Group) else []
                edges += [path] if isinstance(file.get("edges"), h5py.Group) else []
        except (OSError, RuntimeError, KeyError, ValueError):
            with path.open("rb") as plain:
                if plain.read(8) == SIGNATURE:
                    edges.append(path)  # damaged: let its reader say how
    return nodes, edges


def _populations_of(path: Path, kind: str) -> set[str]:
    """Names of the node populations in a node file, or between which an edge file runs."""
    try:
        with h5py.File(path, "r") as file:
            if kind == "nodes":
                return set(file["nodes"])
            names = set()
            for group in file["edges"].values():
                for end in ("source_node_id", "target_node_id"):
                    value = group[end].attrs.get("node_population")
                    names.add(value.decode() if isinstance(value, bytes) else str(value))
            return names
    except (OSError, RuntimeError, KeyError, ValueError, AttributeError, TypeError):
        return set()


def _companion(file: Path, kind: str) -> Path | None:
    """The table of types beside a file: ``v1_nodes.h5`` has ``v1_node_types.csv``."""
    stem = re.sub(r"_?(nodes|edges)$", "", file.stem)
    for name in (f"{stem}_{kind}.csv", f"{file.stem}_types.csv", f"{kind}.csv"):
        if (file.parent / name).is_file():
            return file.parent / name
    return None


# ---------------------------------------------------------------------- configs


def is_config(path: Path) -> bool:
    """Whether a file is a SONATA circuit or simulation config."""
    if not path.is_file() or path.suffix.lower() not in (".json", ""):
        return False
    try:
        config = _load(path)
    except InputError:
        return False
    networks, network = config.get("networks"), config.get("network")
    if isinstance(networks, Mapping):
        return "nodes" in networks or "edges" in networks
    return isinstance(network, str) and ("simulation" in config or "manifest" in config)


def sources_of_config(path: Path) -> Sources:
    """The files that a config names; a simulation config leads to its circuit config."""
    seen: list[Path] = []
    config = _load(path)
    while "networks" not in config:
        seen.append(path)
        further = config.get("network")
        if not isinstance(further, str):
            raise InputError(path, "has neither 'networks' nor a 'network' that names a config")
        path = _path(path, further, _variables(path, config), "network")
        if path in seen:
            raise InputError(path, "configs name one another in a circle")
        config = _load(path)
    variables, networks = _variables(path, config), config["networks"]
    if not isinstance(networks, Mapping):
        raise InputError(path, "expected an object with 'nodes' and 'edges'", place="networks")
    sources = Sources()
    for kind, files in (("nodes", sources.nodes), ("edges", sources.edges)):
        entries = networks.get(kind) or []
        if not isinstance(entries, list):
            raise InputError(path, "expected a list", place=f"networks.{kind}")
        for i, entry in enumerate(entries):
            place = f"networks.{kind}[{i}]"
            if not isinstance(entry, Mapping) or not isinstance(entry.get(f"{kind}_file"), str):
                raise InputError(path, f"expected an object with '{kind}_file'", place=place)
            if entry.get("enabled", True) is False:
                continue
            file = _path(path, entry[f"{kind}_file"], variables, f"{place}.{kind}_file")
            key = f"{kind[:-1]}_types_file"
            types = entry.get(key)
            if types is not None and not isinstance(types, str):
                raise InputError(path, "expected a file name or null", place=f"{place}.{key}")
            known = types and types.upper() not in ("NULL", "NONE")
            files[file] = (
                _path(path, types, variables, f"{place}.{key}") if known and types else None
            )
            populations = entry.get("populations")
            if kind == "nodes" and isinstance(populations, Mapping):
                for name, settings in populations.items():
                    if isinstance(settings, Mapping) and "type" in settings:
                        sources.virtual[file, str(name)] = settings["type"] == "virtual"
    if not sources.nodes:
        raise InputError(path, "names no node files", place="networks.nodes")
    return sources


def _load(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _MAX_CONFIG_BYTES:
            raise InputError(path, "is larger than 64 MB; expected a SONATA config")
        config = json.loads(path.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(path, f"{error.msg}; expected JSON", place=place) from None
    except (UnicodeDecodeError, RecursionError):
        raise InputError(path, "is not JSON text; expected a SONATA config") from None
    except OSError as error:
        raise InputError(path, f"{error.strerror}; expected a SONATA config") from None
    if not isinstance(config, dict):
        raise InputError(path, f"holds a {type(config).__name__}; expected an object")
    return config


def _variables(path: Path, config: dict[str, Any]) -> dict[str, str]:
    manifest = config.get("manifest") or {}
    if not isinstance(manifest, Mapping):
        raise InputError(path, "expected an object of variables", place="manifest")
    here = str(path.parent)
    variables = {"configdir": here, "workingdir": here}
    for key, value in manifest.items():
        if not isinstance(value, str):
            raise InputError(path, "expected text", place=f"manifest.{key}")
        variables[str(key).lstrip("$").strip("{}")] = value
    return variables


def _path(config: Path, text: str, variables: dict[str, str], place: str) -> Path:
    """A file name with its variables replaced, relative to the config."""
    full = text
    for _ in range(64):
        match = _VARIABLE.search(full)
        if match is None:
            break
        if match[1] not in variables:
            known = ", ".join(f"${name}" for name in variables)
            raise InputError(
                config, f"unknown variable ${match[1]}; known are {known}", place=place
            )
        full = full[: match.start()] + variables[match[1]] + full[match.end() :]
        if len(full) > 4096:
            raise InputError(
                config, f"{text!r} grows without end; a variable names itself", place=place
            )
    else:
        raise InputError(config, f"{text!r} has variables that name one another", place=place)
    path = config.parent / full
    if not path.is_file():
        raise InputError(config, f"there is no file {path}", place=place)
    return path


# ---------------------------------------------------------------------- types


def type_table(path: Path | None, kind: str) -> dict[int, dict[str, str]]:
    """A table of node or edge types: type id -> column -> text ("NULL" entries left out)."""
    if path is None:
        return {}
    key = f"{kind}_type_id"
    table: dict[int, dict[str, str]] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head = file.readline()
            delimiter = " " if " " in head.strip() or "," not in head else ","
            file.seek(0)
            rows = csv.DictReader(file, delimiter=delimiter, skipinitialspace=True)
            if key not in (rows.fieldnames or ()):
                found = ", ".join(rows.fieldnames or ()) or "nothing"
                raise InputError(
                    path, f"has columns {found}; expected {key} among them", place="line 1"
                )
            for row in rows:
                place = f"line {rows.line_num}"
                try:
                    type_id = int(row[key])
                except (TypeError, ValueError):
                    problem = f"{key} is {row[key]!r}; expected a whole number"
                    raise InputError(path, problem, place=place) from None
                if type_id in table:
                    raise InputError(path, f"{key} {type_id} stands twice", place=place)
                table[type_id] = {
                    str(k): v
                    for k, v in row.items()
                    if isinstance(v, str) and v not in ("", "NULL")
                }
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(path, f"{error}; expected a table of {kind} types") from None
    return table
