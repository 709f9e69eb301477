"""Compiled moves and swaps of neurons between placed parts; see `joint` for what they optimise.

Every group keeps two short lists, in the room that its own pins leave: the parts of its
destinations with their number of pins, and the parts of its sources with their number and rate.
"""

# mypy: allow-untyped-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

CANDIDATES = 6
Array = np.ndarray[Any, Any]


class Net(NamedTuple):
    """What does not change: a hypergraph of neurons, or of clusters of them.

    ``rates`` int64[n_hedges] are fixed-point spikes/s, ``members`` the neurons of each node; the
    other arrays are those of the hypergraph.
    """

    group_offsets: Array
    destinations: Array
    hedge_offsets: Array
    source_offsets: Array
    sources: Array
    rates: Array
    axon_counts: Array
    hedge_groups: Array
    group_axons: Array
    in_offsets: Array
    in_groups: Array
    out_offsets: Array
    out_hedges: Array
    node_sizes: Array
    fan_ins: Array
    members: Array


class State(NamedTuple):
    """What moves change.

    The lists of group g begin at ``group_offsets[g]`` and at the first source pin of its h-edges.
    ``loads`` int64[5, n_parts] holds neurons, inbound, outbound, incident axons and synapses.
    """

    parts: Array
    to_parts: Array
    to_counts: Array
    to_lengths: Array
    from_parts: Array
    from_counts: Array
    from_rates: Array
    from_lengths: Array
    n_members: Array
    loads: Array


@njit(cache=True, nogil=True)
def find(keys, start, length, part):
    """Index of `part` in keys[start : start + length], -1 if it is not there."""
    for i in range(start, start + length):
        if keys[i] == part:
            return i
    return -1


@njit(cache=True, nogil=True)
def add_destination(net, state, g, part, count):
    """Add pins of a part to the destinations of group g; an entry without pins goes."""
    start = net.group_offsets[g]
    i = find(state.to_parts, start, state.to_lengths[g], part)
    if i < 0:
        i = start + state.to_lengths[g]
        state.to_parts[i] = part
        state.to_counts[i] = 0
        state.to_lengths[g] += 1
    state.to_counts[i] += count
    if state.to_counts[i] == 0:
        last = start + state.to_lengths[g] - 1
        state.to_parts[i], state.to_counts[i] = state.to_parts[last], state.to_counts[last]
        state.to_lengths[g] -= 1


@njit(cache=True, nogil=True)
def add_source(net, state, g, part, count, rate):
    """Add sources of a part, with their rate, to group g; an entry without sources goes."""
    start = net.source_offsets[net.hedge_offsets[g]]
    i = find(state.from_parts, start, state.from_lengths[g], part)
    if i < 0:
        i = start + state.from_lengths[g]
        state.from_parts[i] = part
        state.from_counts[i] = state.from_rates[i] = 0
        state.from_lengths[g] += 1
    state.from_counts[i] += count
    state.from_rates[i] += rate
    if state.from_counts[i] == 0:
        last = start + state.from_lengths[g] - 1
        state.from_parts[i] = state.from_parts[last]
        state.from_counts[i] = state.from_counts[last]
        state.from_rates[i] = state.from_rates[last]
        state.from_lengths[g] -= 1


@njit(cache=True, nogil=True)
def fill_lists(net, state):
    """Fill the empty lists of all groups."""
    for g in range(len(net.group_offsets) - 1):
        for i in range(net.group_offsets[g], net.group_offsets[g + 1]):
            add_destination(net, state, g, np.int64(state.parts[net.destinations[i]]), 1)
        for e in range(net.hedge_offsets[g], net.hedge_offsets[g + 1]):
            for i in range(net.source_offsets[e], net.source_offsets[e + 1]):
                part = np.int64(state.parts[net.sources[i]])
                add_source(net, state, g, part, 1, net.rates[e])


@njit(cache=True, nogil=True)
def cost_of_copy(net, state, costs, g, part):
    """Cost of bringing all spikes of group g to `part`."""
    total = 0
    start = net.source_offsets[net.hedge_offsets[g]]
    for i in range(start, start + state.from_lengths[g]):
        total += state.from_rates[i] * costs[state.from_parts[i], part]
    return total


@njit(cache=True, nogil=True)
def total_cost(net, state, costs):
    """Cost of bringing the spikes of all groups to all parts that they reach."""
    total = 0
    for g in range(len(net.group_offsets) - 1):
        for i in range(net.group_offsets[g], net.group_offsets[g] + state.to_lengths[g]):
            total += cost_of_copy(net, state, costs, g, np.int64(state.to_parts[i]))
    return total


@njit(cache=True, nogil=True)
def in_group(net, n, g):
    """Whether node n is among the destinations of group g (its groups are ascending)."""
    low, high = net.in_offsets[n], net.in_offsets[n + 1]
    while low < high:
        middle = (low + high) // 2
        if net.in_groups[middle] < g:
            low = middle + 1
        else:
            high = middle
    return low < net.in_offsets[n + 1] and net.in_groups[low] == g


@njit(cache=True, nogil=True)
def gain_of_move(net, state, costs, n, b):
    """(what moving node n to part b saves, inbound axons that b gets with it), exactly.

    First its axons start elsewhere, then it is reached elsewhere; a node that its own axon reaches
    meets that group with its source already moved.
    """
    a = np.int64(state.parts[n])
    gain, inbound = 0, 0
    for j in range(net.out_offsets[n], net.out_offsets[n + 1]):
        e = np.int64(net.out_hedges[j])
        g = net.hedge_groups[e]
        at_a, at_b = 0, 0
        for i in range(net.group_offsets[g], net.group_offsets[g] + state.to_lengths[g]):
            q = state.to_parts[i]
            gain += net.rates[e] * (costs[a, q] - costs[b, q])
            if q == a:
                at_a = state.to_counts[i]
            elif q == b:
                at_b = state.to_counts[i]
        if (at_a == 1 or at_b == 0) and in_group(net, n, g):
            if at_a == 1:
                gain += net.rates[e] * (costs[b, a] - costs[a, a])
            if at_b == 0:
                gain -= net.rates[e] * (costs[b, b] - costs[a, b])
    for j in range(net.in_offsets[n], net.in_offsets[n + 1]):
        g = np.int64(net.in_groups[j])
        at_a, at_b = 0, 0
        for i in range(net.group_offsets[g], net.group_offsets[g] + state.to_lengths[g]):
            if state.to_parts[i] == a:
                at_a = state.to_counts[i]
            elif state.to_parts[i] == b:
                at_b = state.to_counts[i]
        if at_a == 1:
            gain += cost_of_copy(net, state, costs, g, a)
        if at_b == 0:
            gain -= cost_of_copy(net, state, costs, g, b)
            inbound += net.group_axons[g]
    return gain, inbound


@njit(cache=True, nogil=True)
def has_source(net, state, e, part, but):
    """Whether h-edge e has a source in `part` other than node `but`."""
    for i in range(net.source_offsets[e], net.source_offsets[e + 1]):
        if net.sources[i] != but and state.parts[net.sources[i]] == part:
            return True
    return False


@njit(cache=True, nogil=True)
def reaches(net, state, g, part):
    """Whether group g has a destination in `part`."""
    return find(state.to_parts, net.group_offsets[g], state.to_lengths[g], part) >= 0


@njit(cache=True, nogil=True)
def account(net, state, n, part, sign, count_incident):
    """Add (or take away) what node n alone brings to the loads of `part`.

    The lists of destinations must not hold n's own pins. Incident axons are counted only if they
    are limited, for this visits every axon of n's groups.
    """
    inbound, outbound, incident = 0, 0, 0
    for j in range(net.in_offsets[n], net.in_offsets[n + 1]):
        g = np.int64(net.in_groups[j])
        if reaches(net, state, g, part):
            continue
        inbound += net.group_axons[g]
        if count_incident:
            for e in range(net.hedge_offsets[g], net.hedge_offsets[g + 1]):
                if not has_source(net, state, e, part, n):
                    incident += net.axon_counts[e]
    for j in range(net.out_offsets[n], net.out_offsets[n + 1]):
        axon = np.int64(net.out_hedges[j])
        if has_source(net, state, axon, part, n):
            continue
        outbound += net.axon_counts[axon]
        g = net.hedge_groups[axon]
        if count_incident and not reaches(net, state, g, part) and not in_group(net, n, g):
            incident += net.axon_counts[axon]
    state.loads[0, part] += sign * net.node_sizes[n]
    state.loads[1, part] += sign * inbound
    state.loads[2, part] += sign * outbound
    state.loads[3, part] += sign * incident
    state.loads[4, part] += sign * net.fan_ins[n]
    state.n_members[part] += sign * net.members[n]


@njit(cache=True, nogil=True)
def move(net, state, n, b, count_incident):
    """Take node n to part b."""
    a = np.int64(state.parts[n])
    for step in range(4):  # pins out of a, loads off a, loads onto b, pins into b
        part, sign = (a, -1) if step < 2 else (b, 1)
        if step == 1 or step == 2:
            account(net, state, n, part, sign, count_incident)
            continue
        for j in range(net.in_offsets[n], net.in_offsets[n + 1]):
            add_destination(net, state, np.int64(net.in_groups[j]), part, sign)
    for j in range(net.out_offsets[n], net.out_offsets[n + 1]):
        e = np.int64(net.out_hedges[j])
        for side in range(2):
            part, sign = (b, 1) if side else (a, -1)
            add_source(net, state, net.hedge_groups[e], part, sign, sign * net.rates[e])
    state.parts[n] = b


@njit(cache=True, nogil=True)
def is_allowed(net, state, limits, max_destinations, n, a, b):
    """Whether all limits hold for parts a and b and the axons that reach node n."""
    for k in range(5):
        if state.loads[k, a] > limits[k] or state.loads[k, b] > limits[k]:
            return False
    if state.n_members[a] < 1 or state.n_members[b] < 1:
        return False
    for j in range(net.in_offsets[n], net.in_offsets[n + 1]):
        if state.to_lengths[net.in_groups[j]] > max_destinations:
            return False
    return True


@njit(cache=True, nogil=True)
def find_candidates(net, state, n, tally, touched, candidates):
    """Parts that node n has most to do with, at most CANDIDATES; returns how many."""
    a = np.int64(state.parts[n])
    n_touched = 0
    for j in range(net.in_offsets[n], net.in_offsets[n + 1]):
        g = np.int64(net.in_groups[j])
        low = net.source_offsets[net.hedge_offsets[g]]
        weight = 1
        for i in range(low, low + state.from_lengths[g]):
            weight += state.from_rates[i]
        for i in range(net.group_offsets[g], net.group_offsets[g] + state.to_lengths[g]):
            n_touched = count(tally, touched, n_touched, np.int64(state.to_parts[i]), weight)
        for i in range(low, low + state.from_lengths[g]):
            rate = 1 + state.from_rates[i]
            n_touched = count(tally, touched, n_touched, np.int64(state.from_parts[i]), rate)
    for j in range(net.out_offsets[n], net.out_offsets[n + 1]):
        e = np.int64(net.out_hedges[j])
        g = net.hedge_groups[e]
        for i in range(net.group_offsets[g], net.group_offsets[g] + state.to_lengths[g]):
            weight = 1 + net.rates[e]
            n_touched = count(tally, touched, n_touched, np.int64(state.to_parts[i]), weight)
    tally[a] = 0
    n_found = 0
    while n_found < CANDIDATES:
        best = -1
        for i in range(n_touched):
            q = touched[i]
            if tally[q] > 0 and (
                best < 0 or tally[q] > tally[best] or (tally[q] == tally[best] and q < best)
            ):
                best = q
        if best < 0:
            break
        candidates[n_found] = best
        n_found += 1
        tally[best] = 0
    for i in range(n_touched):
        tally[touched[i]] = 0
    return n_found


@njit(cache=True, nogil=True)
def count(tally, touched, n_touched, part, weight):
    """Add to the tally of a part and remember that it was touched; returns how many are."""
    if tally[part] == 0:
        touched[n_touched] = part
        n_touched += 1
    tally[part] += weight
    return n_touched


@njit(cache=True, nogil=True)
def attempt(net, state, costs, limits, max_destinations, nodes, targets, count):
    """Move nodes[:count] to targets[:count], one after the other; what it saves.

    If that is nothing, or a limit is broken, all of them go back and it is 0. The moves are among
    two parts.
    """
    incident = limits[3] < 1 << 60
    origins = np.empty(2, np.int64)
    saved = 0
    for step in range(2 * count):
        if step == count:
            allowed = saved > 0
            for i in range(count):
                allowed = allowed and is_allowed(
                    net, state, limits, max_destinations, nodes[i], origins[i], targets[i]
                )
            if allowed:
                return saved
        if step < count:
            n, to = nodes[step], targets[step]
            origins[step] = state.parts[n]
            gain, _ = gain_of_move(net, state, costs, n, to)
            saved += gain
        else:
            n, to = nodes[2 * count - 1 - step], origins[2 * count - 1 - step]
        move(net, state, n, to, incident)
    return 0


@njit(cache=True, nogil=True)
def improve_pass(net, state, costs, limits, max_destinations, waiting, hopes):
    """Move every node, in order, to the part that saves most; swap it where a limit is in the way.

    ``costs`` int64[n_parts, n_parts] is the cost of a copy from part to part. A node that a limit
    keeps from a better part b waits there: ``waiting[a, b]`` (-1: nobody) is a node of a that would
    save ``hopes[a, b]`` in b, to be swapped with one of b that fits. All gains are exact and all
    limits hold after each step; every part keeps a neuron. Returns (saved, moves).
    """
    n_parts = len(state.n_members)
    tally = np.zeros(n_parts, np.int64)
    touched = np.empty(n_parts, np.int64)
    candidates = np.empty(CANDIDATES, np.int64)
    gains = np.empty(CANDIDATES, np.int64)
    inbound = np.empty(CANDIDATES, np.int64)
    nodes = np.empty(2, np.int64)
    targets = np.empty(2, np.int64)
    saved, moves = 0, 0
    for n in range(len(state.parts)):
        a = np.int64(state.parts[n])
        n_found = find_candidates(net, state, n, tally, touched, candidates)
        partner, most = -1, 0
        for c in range(n_found):
            b = candidates[c]
            gains[c], inbound[c] = gain_of_move(net, state, costs, n, b)
            m = waiting[b, a]
            if m >= 0 and state.parts[m] != b:
                waiting[b, a] = m = -1
            if m >= 0 and gains[c] + hopes[b, a] > most:
                partner, most = m, gains[c] + hopes[b, a]
        for k in range(
            n_found + 1
        ):  # the best that is allowed, then a swap; the best of all may wait
            nodes[0], count = n, 1
            if k < n_found:
                c = int(np.argmax(gains[:n_found]))
                b, gain = candidates[c], gains[c]
                gains[c] = 0
                if gain <= 0:
                    continue
                targets[0] = b
                fits = (
                    state.loads[0, b] + net.node_sizes[n] <= limits[0]
                    and state.loads[1, b] + inbound[c] <= limits[1]
                    and state.loads[4, b] + net.fan_ins[n] <= limits[4]
                )
            else:
                fits = partner >= 0
                if fits:
                    nodes[1], targets[0], targets[1], count = partner, state.parts[partner], a, 2
                    waiting[targets[0], a] = -1
            if fits:
                found = attempt(net, state, costs, limits, max_destinations, nodes, targets, count)
                if found > 0:
                    saved += found
                    moves += count
                    break
            if k == 0 and n_found and (waiting[a, b] < 0 or gain > hopes[a, b]):
                waiting[a, b], hopes[a, b] = n, gain
    return saved, moves
