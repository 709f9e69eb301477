# mypy: disable-error-code="no-untyped-def"
"""Compiled steps of parallel refinement; each has a twin in ``kernels/refine.cu``.

All work on the sparse table of a partition: for every net the parts it touches, with the number of
its pins there and the weight of its sources there. Every step is a map over nets or nodes whose
outputs are integers that do not depend on the order of the work.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from snnmap.partitioning.multilevel._kernels_search import scramble

_DENSE = 4  # nodes with more than one net for so many parts are taken to touch every part
_NONE = np.int64(-(1 << 62))


@njit(cache=True, nogil=True)
def mark_nets(node_offsets, node_nets, out_offsets, out_nets, ids, marks, start, stop):
    """marks[g] = True for the nets of the nodes ids[start:stop]; other marks stay."""
    for i in range(start, stop):
        v = ids[i]
        for j in range(node_offsets[v], node_offsets[v + 1]):
            marks[node_nets[j]] = True
        for j in range(out_offsets[v], out_offsets[v + 1]):
            marks[out_nets[j]] = True


@njit(cache=True, nogil=True)
def count_parts(
    net_offsets,
    net_pins,
    source_offsets,
    source_nodes,
    parts,
    n_parts,
    changed,
    old_offsets,
    sizes,
    start,
    stop,
):
    """sizes[g] = parts that net g touches with pins or sources; as before where nothing changed."""
    seen = np.full(n_parts, -1, np.int64)
    for g in range(start, stop):
        if not changed[g]:
            sizes[g] = old_offsets[g + 1] - old_offsets[g]
            continue
        n = 0
        for j in range(net_offsets[g], net_offsets[g + 1]):
            p = parts[net_pins[j]]
            if seen[p] != g:
                seen[p] = g
                n += 1
        for j in range(source_offsets[g], source_offsets[g + 1]):
            p = parts[source_nodes[j]]
            if seen[p] != g:
                seen[p] = g
                n += 1
        sizes[g] = n


@njit(cache=True, nogil=True)
def fill_table(
    net_offsets,
    net_pins,
    source_offsets,
    source_nodes,
    source_weights,
    net_weights,
    counts,
    parts,
    n_parts,
    changed,
    old_offsets,
    old_parts,
    old_pins,
    old_sources,
    offsets,
    table_parts,
    table_pins,
    table_sources,
    start,
    stop,
):
    """Fill the table's rows, those of nets that did not change from the old table.

    Returns by how much (connectivity, distinct loads int64[n_parts, n_distinct]) change; without an
    old table (no rows) what they are.
    """
    place = np.full(n_parts, -1, np.int64)
    loads = np.zeros((n_parts, counts.shape[1]), np.int64)
    total = np.int64(0)
    known = len(old_offsets) == len(offsets)
    g = np.int64(start)
    while g < stop:
        begin = offsets[g]
        if not changed[g]:
            same = g
            while g < stop and not changed[g]:
                g += 1
            shift = old_offsets[same] - begin
            for s in range(begin, offsets[g]):
                table_parts[s] = old_parts[s + shift]
                table_pins[s] = old_pins[s + shift]
                table_sources[s] = old_sources[s + shift]
            continue
        end = begin
        for j in range(net_offsets[g], net_offsets[g + 1]):
            p = parts[net_pins[j]]
            if place[p] < begin:
                place[p] = end
                table_parts[end] = p
                table_pins[end] = 0
                table_sources[end] = 0
                end += 1
            table_pins[place[p]] += 1
        for j in range(source_offsets[g], source_offsets[g + 1]):
            p = parts[source_nodes[j]]
            if place[p] < begin:
                place[p] = end
                table_parts[end] = p
                table_pins[end] = 0
                table_sources[end] = 0
                end += 1
            table_sources[place[p]] += source_weights[j]
        for s in range(begin, end):
            place[table_parts[s]] = -1
            if table_pins[s] > 0:
                total += net_weights[g] - table_sources[s]
                for c in range(counts.shape[1]):
                    loads[table_parts[s], c] += counts[g, c]
        if known:
            for s in range(old_offsets[g], old_offsets[g + 1]):
                if old_pins[s] > 0:
                    total -= net_weights[g] - old_sources[s]
                    for c in range(counts.shape[1]):
                        loads[old_parts[s], c] -= counts[g, c]
        g += 1
    return total, loads


@njit(cache=True, nogil=True)
def propose_moves(
    node_offsets,
    node_nets,
    out_offsets,
    out_nets,
    out_weights,
    net_weights,
    counts,
    resources,
    parts,
    offsets,
    table_parts,
    table_pins,
    table_sources,
    loads,
    limits,
    prices,
    locked,
    strict,
    haven,
    seed,
    slack,
    targets,
    gains,
    plain_gains,
    incoming,
    outgoing,
    start,
    stop,
):
    """Best move of every node in isolation, or target -1.

    Soft (strict = 0): gain = connectivity saved - price * overload made; moves down to
    ``-slack / 64`` of what ties the node to its part are proposed. Strict: only nodes of overfull
    parts move, only to where they fit, `haven` included; gain = -loss for each freed unit.
    incoming / outgoing: what the move adds to the target's and takes from the origin's loads.
    """
    n_parts = len(loads)
    n_additive, n_distinct = resources.shape[1], counts.shape[1]
    gathered = np.zeros(n_parts, np.int64)  # what v finds in each part
    outward = np.zeros(n_parts, np.int64)  # of that, for v as a source
    shared = np.zeros((n_parts, n_distinct), np.int64)
    touched = np.empty(n_parts + 1, np.int32)
    marked = np.zeros(n_parts, np.bool_)
    total = np.zeros(n_distinct, np.int64)
    freed = np.zeros(n_distinct, np.int64)
    partial = np.zeros(n_distinct, np.int64)
    n_inward, n_touched = 0, 0  # parts touched by nets that v is a pin of, and by all nets
    last = -1  # the node whose nets were gathered
    for v in range(start, stop):
        targets[v] = -1
        if locked[v]:
            continue
        a = parts[v]
        overfull = False
        if strict:
            for r in range(n_additive + n_distinct):
                overfull |= loads[a, r] > limits[r]
            if not overfull:
                continue
        first, size = node_offsets[v], node_offsets[v + 1] - node_offsets[v]
        # Twins in one part find the same: there no net has one of them as its only pin.
        same = (
            last >= 0 and parts[last] == a and node_offsets[last + 1] - node_offsets[last] == size
        )
        if same:
            for j in range(size):
                if node_nets[node_offsets[last] + j] != node_nets[first + j]:
                    same = False
                    break
        first_out, last_out = out_offsets[v], out_offsets[v + 1]
        if same:
            for t in range(n_touched):
                gathered[touched[t]] -= outward[touched[t]]
                outward[touched[t]] = 0
            for t in range(n_inward, n_touched):
                marked[touched[t]] = False
            n_touched = n_inward
        else:
            for t in range(n_touched):
                p = touched[t]
                gathered[p] = 0
                outward[p] = 0
                marked[p] = False
                for c in range(n_distinct):
                    shared[p, c] = 0
            n_touched = 0
            for c in range(n_distinct):
                total[c] = 0
                freed[c] = 0
                partial[c] = 0
            o = first_out
            everywhere = _DENSE * size > n_parts  # no list of the parts it touches is kept
            if everywhere:
                n_touched = n_parts
                for p in range(n_parts):
                    touched[p] = p
                    marked[p] = True
            for j in range(first, first + size):
                g = np.uint32(node_nets[j])
                weight, count = net_weights[g], counts[g, uint64(0)]
                for c in range(n_distinct):
                    total[c] += counts[g, c]
                begin, end = uint64(offsets[g]), uint64(offsets[g + np.uint32(1)])
                while table_pins[end - uint64(1)] == 0:  # parts with sources only stand last
                    end -= uint64(1)
                    p = np.uint32(table_parts[end])
                    gathered[p] += table_sources[end]
                    touched[n_touched] = p
                    n_touched += not marked[p]
                    marked[p] = True
                own = begin
                if everywhere:
                    for s in range(begin, end):
                        p = np.uint32(table_parts[s])  # unsigned: no index from the end
                        gathered[p] += weight
                        shared[p, uint64(0)] += count
                        own = s if p == a else own
                else:
                    for s in range(begin, end):
                        p = np.uint32(table_parts[s])
                        gathered[p] += weight
                        shared[p, uint64(0)] += count
                        own = s if p == a else own
                        touched[n_touched] = p
                        n_touched += not marked[p]
                        marked[p] = True
                for c in range(1, n_distinct):
                    for s in range(begin, end):
                        shared[np.uint32(table_parts[s]), c] += counts[g, c]
                if (
                    table_pins[own] == 1
                ):  # v is alone in its part: without it only sources wait there
                    waiting = table_sources[own]
                    while o < last_out and out_nets[o] < g:
                        o += 1
                    if o < last_out and out_nets[o] == g:
                        waiting -= out_weights[o]
                    gathered[a] += waiting - weight
                    for c in range(n_distinct):
                        freed[c] += counts[g, c]
                        shared[a, c] -= counts[g, c]
                if strict:
                    for c in range(n_distinct):
                        partial[c] += counts[g, c] // table_pins[own]
            n_inward = n_touched
            last = v
        j = first
        for o in range(first_out, last_out):
            g = out_nets[o]
            while j < first + size and node_nets[j] < g:
                j += 1
            if j < first + size and node_nets[j] == g:
                continue  # v is a pin itself: its source term never changes
            for s in range(offsets[g], offsets[g + 1]):
                if table_pins[s] > 0:
                    p = table_parts[s]
                    if not marked[p]:
                        marked[p] = True
                        touched[n_touched] = p
                        n_touched += 1
                    gathered[p] += out_weights[o]
                    outward[p] += out_weights[o]
        here = gathered[a]
        relief = np.int64(0)
        if not strict:
            for r in range(n_additive):
                over = loads[a, r] - limits[r]
                if over > 0:
                    relief += prices[r] * min(over, resources[v, r])
            for c in range(n_distinct):
                over = loads[a, n_additive + c] - limits[n_additive + c]
                if over > 0:
                    relief += prices[n_additive + c] * min(over, freed[c])
        best = -1
        best_gain = _NONE
        best_plain = np.int64(0)
        best_tie = uint64(0)
        if strict and not marked[haven]:
            marked[haven] = True
            touched[n_touched] = haven
            n_touched += 1
        for t in range(n_touched):
            p = touched[t]
            plain = gathered[p] - here
            gain = plain + relief
            if gain < best_gain or p == a or (gathered[p] == 0 and not (strict and p == haven)):
                continue
            fits = True
            for r in range(n_additive):
                over = loads[p, r] + resources[v, r] - limits[r]
                if over > 0:
                    fits = False
                    gain -= prices[r] * min(over, resources[v, r])
            for c in range(n_distinct):
                new = total[c] - shared[p, c]
                over = loads[p, n_additive + c] + new - limits[n_additive + c]
                if over > 0:
                    fits = False
                    gain -= prices[n_additive + c] * min(over, new)
            if gain < best_gain or (strict and not fits):
                continue
            tie = scramble(p * 1000003 + v, seed)
            if gain > best_gain or tie > best_tie or (tie == best_tie and p < best):
                best, best_gain, best_plain, best_tie = p, gain, plain, tie
        if best < 0 or (not strict and best_gain * 64 < -slack * here):
            continue
        if strict:
            units = np.int64(1)
            for r in range(n_additive):
                if loads[a, r] > limits[r]:
                    units += (resources[v, r] << 16) // limits[r]
            for c in range(n_distinct):
                if loads[a, n_additive + c] > limits[n_additive + c]:
                    units += (max(partial[c], 1) << 16) // limits[n_additive + c]
            best_gain = (best_plain << 8) // units
        targets[v] = best
        gains[v] = best_gain
        plain_gains[v] = best_plain
        for r in range(n_additive):
            incoming[v, r] = resources[v, r]
            outgoing[v, r] = resources[v, r]
        for c in range(n_distinct):
            incoming[v, n_additive + c] = total[c] - shared[best, c]
            outgoing[v, n_additive + c] = max(partial[c], 1) if strict else freed[c]
