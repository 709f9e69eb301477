# mypy: disable-error-code="no-untyped-def"
"""Compiled sequential search on small levels: exact moves on dense tables.

``pins[g, p]`` counts the pins of net g in part p and ``sources[g, p]`` sums the weights of its sources
there. A pin of g finds in p the net's weight if p holds another pin, else the weight of the sources
that wait there; a source of g finds its weight where the net has pins. ``gains[v, p]`` is the sum of
what v finds in p over its nets. A move changes few of these sums, so they are kept, not made again.

The objective is soft: connectivity + price * overload, for every limited load of every part, so
that the search can pass through overfull states; rising prices lead it back to valid ones.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from snnmap._rows import mix64

_NONE = np.int64(-(1 << 62))
_BLOCK = 64  # nodes whose largest key is kept
_LARGEST = np.int64(1 << 48)  # larger gains count as this one
_MOVED = np.int32(1 << 30)  # above every turn
_TAKEN = np.int32(-2)  # in place of a node: the part has one


@njit(cache=True, nogil=True, inline="always")
def scramble(x, seed):
    """Hash of (x, seed) that breaks ties."""
    return mix64(uint64(x) * uint64(0x9E3779B97F4A7C15) + uint64(seed) * uint64(0xD1B54A32D192ED03))


@njit(cache=True, nogil=True, inline="always")  # has one caller
def fill_state(level, parts, pins, sources, loads):
    """Fill the tables and the loads of a partition, given as zeros.

    Returns its connectivity (constant apart).
    """
    (
        net_offsets,
        net_pins,
        source_offsets,
        source_nodes,
        source_weights,
        _,
        _,
        _,
        _,
        _,
        net_weights,
        counts,
        resources,
    ) = level
    n_additive, n_distinct = resources.shape[1], counts.shape[1]
    total = np.int64(0)
    for v in range(len(parts)):
        for r in range(n_additive):
            loads[parts[v], r] += resources[v, r]
    for g in range(len(net_weights)):
        for j in range(source_offsets[g], source_offsets[g + 1]):
            sources[g, parts[source_nodes[j]]] += source_weights[j]
        for j in range(net_offsets[g], net_offsets[g + 1]):
            p = parts[net_pins[j]]
            if pins[g, p] == 0:
                total += net_weights[g] - sources[g, p]
                for c in range(n_distinct):
                    loads[p, n_additive + c] += counts[g, c]
            pins[g, p] += 1
    return total


@njit(cache=True, nogil=True, inline="always")  # has one caller
def fill_gains(level, parts, sources, gains, looped):
    """Fill `gains`, given as zeros, and mark the sources that are also pins of their net."""
    net_offsets, net_pins, source_offsets, source_nodes, source_weights = level[:5]
    net_weights = level[10]
    near = np.empty(gains.shape[1], np.int64)
    found = np.empty(gains.shape[1], np.int64)
    listed = np.full(gains.shape[1], -1, np.int32)
    stamps = np.full(len(gains), -1, np.int32)
    for g in range(len(net_weights)):
        n = 0  # parts where a pin finds something; first those with pins
        for j in range(net_offsets[g], net_offsets[g + 1]):
            p = parts[net_pins[j]]
            if listed[p] != g:
                listed[p] = g
                near[n] = p
                found[n] = net_weights[g]
                n += 1
        n_pinned = n
        for j in range(source_offsets[g], source_offsets[g + 1]):
            stamps[source_nodes[j]] = g
            p = parts[source_nodes[j]]
            if listed[p] != g:
                listed[p] = g
                near[n] = p
                found[n] = sources[g, p]
                n += 1
        for j in range(net_offsets[g], net_offsets[g + 1]):
            v = net_pins[j]
            for i in range(n):
                gains[v, near[i]] += found[i]
            if stamps[v] == g:
                stamps[v] = -2
        for j in range(source_offsets[g], source_offsets[g + 1]):
            v = source_nodes[j]
            looped[j] = stamps[v] == -2
            if not looped[j]:
                for i in range(n_pinned):
                    gains[v, near[i]] += source_weights[j]


@njit(cache=True, nogil=True)
def find_moves(nodes, n, state, prices, seed, wishes, found, again):
    """Best move by the soft objective of each of nodes[:n]: its part to wishes[node], its gain to found.

    Wish -1 where there is none. `again`: only the move to the part wished for is looked at, and the wish
    stays; found is then _NONE where it is none any more. A part may be overfilled to at most 5/4 of a
    limit with a price, and not at all without.
    """
    level, parts, pins, sources, loads, gains, _, alone, limits, tight = state
    node_offsets, node_nets, out_offsets, out_nets, out_weights, net_weights, counts = level[5:12]
    n_distinct = counts.shape[1]
    n_additive = len(limits) - n_distinct
    for i in range(n):
        v = nodes[i]
        a = parts[v]
        first, last = node_offsets[v], node_offsets[v + 1]
        here = gains[v, a]  # corrected for v itself being there
        o, last_out = out_offsets[v], out_offsets[v + 1]
        for j in range(first, last):
            g = node_nets[j]
            if pins[g, a] == 1:
                while o < last_out and out_nets[o] < g:
                    o += 1
                here += sources[g, a] - net_weights[g]
                if o < last_out and out_nets[o] == g:
                    here -= out_weights[o]
        relief = np.int64(0)
        if tight[a]:
            for r in range(n_additive):
                over = loads[a, r] - limits[r]
                if over > 0:
                    relief += prices[r] * min(over, alone[v, r])
            for c in range(n_distinct):
                over = loads[a, n_additive + c] - limits[n_additive + c]
                if over > 0:
                    freed = np.int64(0)
                    for j in range(first, last):
                        if pins[node_nets[j], a] == 1:
                            freed += counts[node_nets[j], c]
                    relief += prices[n_additive + c] * min(over, freed)
        best = -1
        best_gain = _NONE
        bar = np.int64(relief == 0)  # the least that v must find in a part worth a look
        first_part, end_part = (wishes[v], wishes[v] + 1) if again else (0, len(loads))
        for p in range(first_part, end_part):
            if gains[v, p] < bar or p == a:
                continue
            gain = gains[v, p] - here + relief
            if tight[p]:
                fits = True
                for r in range(n_additive):
                    over = loads[p, r] + alone[v, r] - limits[r]
                    if over > 0:
                        fits &= prices[r] > 0 and over <= limits[r] >> 2
                        gain -= prices[r] * min(over, alone[v, r])
                if not fits or gain < best_gain:
                    continue
                for c in range(n_distinct):
                    limit = limits[n_additive + c]
                    new = alone[v, n_additive + c]
                    if loads[p, n_additive + c] + new <= limit:
                        continue
                    for j in range(first, last):
                        if pins[node_nets[j], p] > 0:
                            new -= counts[node_nets[j], c]
                    over = loads[p, n_additive + c] + new - limit
                    if over > 0:
                        fits &= prices[n_additive + c] > 0 and over <= limit >> 2
                        gain -= prices[n_additive + c] * min(over, new)
                if not fits or gain < best_gain:
                    continue
            ties = best >= 0 and gain == best_gain
            if ties and scramble(p * 1000003 + v, seed) < scramble(best * 1000003 + v, seed):
                continue
            best, best_gain = p, gain
            bar = max(bar, gain + here - relief)
        if not again:
            wishes[v] = best
        found[i] = min(max(best_gain, -_LARGEST), _LARGEST) if best >= 0 else _NONE


@njit(cache=True, nogil=True)
def is_tight(loads, most, limits):
    """Whether a part with these loads is overfull, or some node alone could make it so."""
    for i in range(len(limits)):
        if loads[i] + most[i] > limits[i]:
            return True
    return False


@njit(cache=True, nogil=True)
def move(v, b, state):
    """Put v into part b and keep the tables and the loads true."""
    level, parts, pins, sources, loads, gains, looped, _, _, _ = state
    (
        net_offsets,
        net_pins,
        source_offsets,
        source_nodes,
        source_weights,
        node_offsets,
        node_nets,
        out_offsets,
        out_nets,
        out_weights,
        net_weights,
        counts,
        resources,
    ) = level
    n_additive, n_distinct = resources.shape[1], counts.shape[1]
    a = parts[v]
    parts[v] = b
    for r in range(n_additive):
        loads[a, r] -= resources[v, r]
        loads[b, r] += resources[v, r]
    for o in range(out_offsets[v], out_offsets[v + 1]):
        g = out_nets[o]
        sources[g, a] -= out_weights[o]
        sources[g, b] += out_weights[o]
        if pins[g, a] == 0 or pins[g, b] == 0:
            less = out_weights[o] if pins[g, a] == 0 else 0
            more = out_weights[o] if pins[g, b] == 0 else 0
            for i in range(net_offsets[g], net_offsets[g + 1]):
                gains[net_pins[i], a] -= less
                gains[net_pins[i], b] += more
    for j in range(node_offsets[v], node_offsets[v + 1]):
        g = node_nets[j]
        pins[g, a] -= 1
        pins[g, b] += 1
        leaves, enters = pins[g, a] == 0, pins[g, b] == 1
        if not (leaves or enters):
            continue
        less = net_weights[g] - sources[g, a] if leaves else 0
        more = net_weights[g] - sources[g, b] if enters else 0
        for i in range(net_offsets[g], net_offsets[g + 1]):
            gains[net_pins[i], a] -= less
            gains[net_pins[i], b] += more
        for i in range(source_offsets[g], source_offsets[g + 1]):
            if not looped[i]:
                gains[source_nodes[i], a] -= source_weights[i] * leaves
                gains[source_nodes[i], b] += source_weights[i] * enters
        for c in range(n_distinct):
            loads[a, n_additive + c] -= counts[g, c] * leaves
            loads[b, n_additive + c] += counts[g, c] * enters


@njit(cache=True, nogil=True)
def node_loads(level):
    """int64[n_nodes, n_loads]: what each node alone would put on a part."""
    (_, _, _, _, _, node_offsets, node_nets, _, _, _, _, counts, resources) = level
    n_additive, n_distinct = resources.shape[1], counts.shape[1]
    loads = np.zeros((len(resources), n_additive + n_distinct), np.int64)
    for v in range(len(resources)):
        for r in range(n_additive):
            loads[v, r] = resources[v, r]
        for j in range(node_offsets[v], node_offsets[v + 1]):
            for c in range(n_distinct):
                loads[v, n_additive + c] += counts[node_nets[j], c]
    return loads


@njit(cache=True, nogil=True)
def set_key(keys, crests, v, key):
    """Give v a key, and keep the largest key of its block of nodes true."""
    block, old = v // _BLOCK, keys[v]
    keys[v] = key
    if key >= crests[block]:
        crests[block] = key
    elif old == crests[block]:
        crest = key
        for w in range(block * _BLOCK, min((block + 1) * _BLOCK, len(keys))):
            crest = max(crest, keys[w])
        crests[block] = crest


@njit(cache=True, nogil=True)
def choose_matched(keys, crests, parts, wishes, firsts, in_play, chosen):
    """Nodes that are the best in play both where they are and where they want to go.

    Then the same once more among those that concern other parts. In play are gains above zero, or, where there
    are none, losses of at most four times the least. Writes all nodes in play to `in_play` and those
    chosen to `chosen`; returns how many. `firsts` (int32[n_parts]) is scratch.
    """
    top = _NONE
    for block in range(len(crests)):
        top = max(top, crests[block])
    if top == _NONE:
        return 0, 0
    bar = np.int64(1) if top > 0 else 4 * top
    n_in_play = 0
    for block in range(len(crests)):
        if crests[block] < bar:
            continue
        for v in range(block * _BLOCK, min((block + 1) * _BLOCK, len(keys))):
            if keys[v] >= bar:
                in_play[n_in_play] = v
                n_in_play += 1
    n_chosen = 0
    firsts[:] = -1
    for _ in range(2):
        for p in range(len(firsts)):
            if firsts[p] != _TAKEN:
                firsts[p] = -1
        for i in range(n_in_play):
            v = in_play[i]
            a, b = parts[v], wishes[v]
            if firsts[a] == _TAKEN or firsts[b] == _TAKEN:
                continue
            if firsts[a] < 0 or keys[v] > keys[firsts[a]]:
                firsts[a] = v
            if firsts[b] < 0 or keys[v] > keys[firsts[b]]:
                firsts[b] = v
        before = n_chosen
        for i in range(n_in_play):
            v = in_play[i]
            if firsts[parts[v]] == v and firsts[wishes[v]] == v:
                chosen[n_chosen] = v
                n_chosen += 1
        for i in range(before, n_chosen):
            firsts[parts[chosen[i]]] = firsts[wishes[chosen[i]]] = _TAKEN
    return n_in_play, n_chosen


@njit(cache=True, nogil=True, inline="always")  # has one caller
def matched_pass(
    level, parts, pins, sources, loads, gains, looped, alone, limits, prices, seed, patience, turns
):
    """One pass of moves by the soft objective; returns what it gained.

    Fiduccia-Mattheyses, many moves a turn: of the nodes that want to leave or to enter a part only
    the best may move, and one moves that is best at both its parts; of the others, those that are best
    where none of these is. So moves of one turn concern different parts, and their gains add up exactly.
    Each gain is checked again before; where one was too high, all in play that want the same part are
    looked at again. Every node moves once, the best prefix of turns stays; `patience` moves without a
    new best end the pass, or so many `turns`.
    """
    net_offsets, net_pins, source_offsets, source_nodes, _, node_offsets, node_nets = level[:7]
    out_offsets, out_nets = level[7:9]
    n = len(parts)
    keys = np.full(n, _NONE)  # gain of each node's best move when it was last looked at
    crests = np.full((n + _BLOCK - 1) // _BLOCK, _NONE)  # largest of each block of nodes
    wishes = np.empty(n, np.int32)  # the part that it would move to
    seen = np.full(n, -1, np.int32)  # the turn after which it was looked at, or _MOVED
    moved = np.empty(n, np.int32)
    origins = np.empty(n, np.int32)
    queue = np.arange(n).astype(np.int32)  # nodes to look at, and what was found
    found = np.empty(n, np.int64)
    firsts = np.empty(len(loads), np.int32)
    failed = np.full(len(loads), -1, np.int32)  # the last turn in which a move into it was too good
    in_play = np.empty(n, np.int32)
    chosen = np.empty(len(loads), np.int32)
    most = np.zeros(len(limits), np.int64)
    for w in range(n):
        for i in range(len(limits)):
            most[i] = max(most[i], alone[w, i])
    tight = np.empty(len(loads), np.bool_)
    for p in range(len(loads)):
        tight[p] = is_tight(loads[p], most, limits)
    state = (level, parts, pins, sources, loads, gains, looped, alone, limits, tight)
    queued = np.int64(n)
    n_moved = 0
    n_kept = 0
    current = np.int64(0)
    best = np.int64(0)
    turn = 0
    while n_moved - n_kept <= patience and turn < turns:
        find_moves(queue, queued, state, prices, seed, wishes, found, False)
        for i in range(queued):
            set_key(keys, crests, queue[i], found[i])
        n_in_play, n_chosen = choose_matched(keys, crests, parts, wishes, firsts, in_play, chosen)
        if n_in_play == 0:
            break
        find_moves(chosen, np.int64(n_chosen), state, prices, seed, wishes, found, True)
        first_moved = n_moved
        for i in range(n_chosen):
            v = chosen[i]
            if found[i] < keys[v]:
                failed[wishes[v]] = turn
                continue
            moved[n_moved] = v
            origins[n_moved] = parts[v]
            n_moved += 1
            current += found[i]
            seen[v] = _MOVED
            set_key(keys, crests, v, _NONE)
        queued = np.int64(0)
        for i in range(n_in_play):
            u = in_play[i]
            if failed[wishes[u]] == turn and seen[u] < turn:
                seen[u] = turn
                queue[queued] = u
                queued += 1
        for m in range(first_moved, n_moved):
            v = np.int64(moved[m])
            a, b = np.int64(origins[m]), np.int64(wishes[v])
            move(v, b, state)
            tight[a] = is_tight(loads[a], most, limits)
            tight[b] = is_tight(loads[b], most, limits)
            # Only nets whose pins in a or b became few enough change somebody's gain.
            for side in range(2):
                first, last = (
                    (node_offsets[v], node_offsets[v + 1])
                    if side == 0
                    else (out_offsets[v], out_offsets[v + 1])
                )
                for j in range(first, last):
                    g = node_nets[j] if side == 0 else out_nets[j]
                    if side == 0 and pins[g, a] > 1 and pins[g, b] > 2:
                        continue
                    if side == 1 and pins[g, a] > 0 and pins[g, b] > 0:
                        continue
                    begin, end = net_offsets[g], net_offsets[g + 1]
                    n_sources = 0
                    if side == 0 and (pins[g, a] == 0 or pins[g, b] == 1):
                        n_sources = source_offsets[g + 1] - source_offsets[g]
                    for i in range(begin, end + n_sources):
                        u = net_pins[i] if i < end else source_nodes[source_offsets[g] + i - end]
                        if seen[u] < turn:
                            seen[u] = turn
                            queue[queued] = u
                            queued += 1
        if current > best:
            best = current
            n_kept = n_moved
        turn += 1
    for i in range(n_moved - 1, n_kept - 1, -1):
        move(np.int64(moved[i]), np.int64(origins[i]), state)
    return best
