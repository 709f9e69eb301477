"""Compiled: sums over pins, and filling cores neuron by neuron."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def sum_rows(offsets, pins, values, sums, start, stop):
    """sums[row] = sum of values[p] over the row's pins p."""
    for row in range(start, stop):
        total = 0
        for j in range(offsets[row], offsets[row + 1]):
            total += values[pins[j]]
        sums[row] = total


@njit(cache=True, nogil=True)
def fill_cores(
    on_chip,
    sizes,
    fan_ins,
    in_offsets,
    in_groups,
    group_axons,
    out_offsets,
    out_hedges,
    hedge_groups,
    axons,
    caps,
    parts,
):
    """Fill cores in order of ids; returns their number, 0 if some neuron fits no empty core.

    on_chip: bool[n_nodes], nodes that take a core; sizes and fan_ins: int64[n_nodes]; in_offsets
    int64[n_nodes + 1] and in_groups int32[...]: the groups that end in each node; group_axons:
    int64[n_groups]; out_offsets and out_hedges likewise: the h-edges that begin in each node;
    hedge_groups and axons: int64[n_hedges]; caps: int64[5], neurons, inbound, outbound and incident
    axons, synapses of a core; parts: int32[n_nodes], filled (-1: off the chip). A node that does
    not fit leaves marks of a core that is closed then, which nobody reads.
    """
    entered = np.full(len(group_axons), -1, np.int32)  # core whose inbound axons hold the group
    left = np.full(len(axons), -1, np.int32)  # core whose outbound axons hold the h-edge
    sending = np.zeros(len(group_axons), np.int64)  # axons of the group that begin in core ...
    sending_core = np.full(len(group_axons), -1, np.int32)  # ... this one
    part = 0
    size = inbound = outbound = incident = synapses = 0
    for node in range(len(sizes)):
        if not on_chip[node]:
            parts[node] = -1
            continue
        for fresh in range(2):
            for i in range(in_offsets[node], in_offsets[node + 1]):
                g = in_groups[i]
                if entered[g] != part:
                    entered[g] = part
                    inbound += group_axons[g]
                    incident += group_axons[g]
                    if sending_core[g] == part:
                        incident -= sending[g]
            for i in range(out_offsets[node], out_offsets[node + 1]):
                e = out_hedges[i]
                g = hedge_groups[e]
                if left[e] != part:
                    left[e] = part
                    outbound += axons[e]
                    if sending_core[g] != part:
                        sending_core[g] = part
                        sending[g] = 0
                    sending[g] += axons[e]
                    if entered[g] != part:
                        incident += axons[e]
            size += sizes[node]
            synapses += fan_ins[node]
            if (
                size <= caps[0]
                and inbound <= caps[1]
                and outbound <= caps[2]
                and incident <= caps[3]
                and synapses <= caps[4]
            ):
                break
            if fresh:
                return 0
            part += 1
            size = inbound = outbound = incident = synapses = 0
        parts[node] = part
    return part + 1
