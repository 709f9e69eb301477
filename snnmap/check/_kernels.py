"""Compiled: filling cores neuron by neuron."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def fill_cores(sizes, fan_ins, axons_out, offsets, groups, axons, caps, parts):
    """Fill cores in order of ids; returns their number, 0 if some neuron fits no empty core.

    sizes, fan_ins, axons_out: int64[n_nodes]; offsets int64[n_nodes + 1] and groups int32[...]: the
    groups that end in each node; axons: int64[n_groups]; caps: int64[5], neurons, inbound,
    outbound and incident axons, synapses of a core; parts: int32[n_nodes], filled.
    """
    seen = np.full(len(axons), -1, np.int32)
    part = 0
    size = inbound = outbound = synapses = 0
    for node in range(len(sizes)):
        for fresh in range(2):
            new = 0
            for i in range(offsets[node], offsets[node + 1]):
                if seen[groups[i]] != part:
                    new += axons[groups[i]]
            into, out = inbound + new, outbound + axons_out[node]
            total, pins = size + sizes[node], synapses + fan_ins[node]
            if (
                total <= caps[0]
                and into <= caps[1]
                and out <= caps[2]
                and into + out <= caps[3]
                and pins <= caps[4]
            ):
                break
            if fresh:
                return 0
            part += 1
            size = inbound = outbound = synapses = 0
        size, inbound, outbound, synapses = total, into, out, pins
        for i in range(offsets[node], offsets[node + 1]):
            seen[groups[i]] = part
        parts[node] = part
    return part + 1
