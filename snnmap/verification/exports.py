"""Exported files against the network: axon and routing tables, SANA-FE's architecture and network.

Rows are followed one by one, as a program that loads the files would: every axon of every core must
be there once, come from the right neurons and go to the right cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from snnmap.hypergraph import Hypergraph
from snnmap.stored import StoredMapping
from snnmap.verification.sanafe import architecture_faults, network_faults
from snnmap.verification.tables import inbound_faults, outbound_faults
from snnmap.verification.truth import Truth

EXPORTS = ("axons_in.csv", "routing.csv", "arch.yaml", "snn.yaml")
_SHOWN = 5  # faults of a file; more say nothing new


def verify_exports(
    folder: Path, stored: StoredMapping, hypergraph: Hypergraph, network: Hypergraph
) -> tuple[str, ...]:
    """What the exported files in a folder get wrong, one line each; files that lack are no fault.

    Args:
        folder: of ``snnmap export``.
        stored: the mapping, which must be placed if there are exports.
        hypergraph: what takes cores.
        network: with its inputs (the same object if they take cores).

    Raises:
        InputError: a file that cannot be read, or exports of a mapping without a placement.
    """
    there = [name for name in EXPORTS if (folder / name).exists()]
    if not there:
        return ()
    truth = Truth(stored, hypergraph, network, np.asarray(stored.placement.cores, np.int64))
    found: list[str] = []
    for name, faults in (
        ("axons_in.csv", inbound_faults),
        ("routing.csv", outbound_faults),
        ("arch.yaml", architecture_faults),
        ("snn.yaml", network_faults),
    ):
        if name in there:
            found += _first(name, faults(folder / name, truth))
    return tuple(found)


def _first(name: str, faults: Iterator[str]) -> list[str]:
    found = []
    for fault in faults:
        found.append(f"{name}: {fault}")
        if len(found) == _SHOWN:
            return [*found, f"{name}: and perhaps more"]
    return found
