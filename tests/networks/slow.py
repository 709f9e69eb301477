"""Slow twins: links of layers found one by one, straight from their definitions."""

from __future__ import annotations

from itertools import product

import numpy as np

from snnmap.hypergraph import Hypergraph
from snnmap.networks.relations import Relation


def matrix_of(relation: Relation) -> np.ndarray:
    """bool[n_sources, n_targets]."""
    matrix = np.zeros((relation.n_sources, relation.n_targets), bool)
    for source in range(relation.n_sources):
        matrix[source, relation.row(source)] = True
    return matrix


def relation_of(matrix: np.ndarray) -> Relation:
    """One row a source, in the plainest form; sources that reach nothing have row -1."""
    rows, offsets, targets = [], [0], []
    for line in matrix:
        found = np.flatnonzero(line)
        rows.append(len(offsets) - 1 if len(found) else -1)
        if len(found):
            targets.extend(found)
            offsets.append(len(targets))
    return Relation(
        np.array(rows, np.int32),
        np.array(offsets, np.int64),
        np.array(targets, np.int32),
        matrix.shape[1],
    )


def conv_links(shape, out_shape, kernel, stride, before, dilation, groups, layout):
    """bool[inputs, outputs] of a convolution, output by output; one value a dimension."""
    ids, out_ids = np.arange(np.prod(shape)), np.arange(np.prod(out_shape))
    ids, out_ids = ids.reshape(shape), out_ids.reshape(out_shape)
    if layout == "chw":
        ids, out_ids = np.moveaxis(ids, 0, -1), np.moveaxis(out_ids, 0, -1)
    links = np.zeros((ids.size, out_ids.size), bool)
    channels, filters = ids.shape[-1], out_ids.shape[-1]
    for place in product(*map(range, out_ids.shape[:-1])):
        for tap in product(*map(range, kernel)):
            at = [
                o * s - b + t * d
                for o, s, b, t, d in zip(place, stride, before, tap, dilation, strict=True)
            ]
            if any(not 0 <= i < n for i, n in zip(at, ids.shape[:-1], strict=True)):
                continue
            for c in range(channels):
                for f in range(filters):
                    if c * groups // channels == f * groups // filters:
                        links[ids[(*at, c)], out_ids[(*place, f)]] = True
    return links


def rows_of(hypergraph: Hypergraph) -> dict[int, tuple[list[int], float]]:
    """{source: (destinations, weight)} of a network with one axon a neuron."""
    found = {}
    for e in range(hypergraph.n_hedges):
        (source,) = hypergraph.sources[hypergraph.source_offsets[e] :][:1]
        g = hypergraph.hedge_groups[e]
        bounds = hypergraph.group_offsets[g : g + 2]
        assert source not in found, "two axons of one neuron"
        row = hypergraph.destinations[bounds[0] : bounds[1]].tolist()
        found[int(source)] = (row, float(hypergraph.weights[e]))
    return found
