// Rounds in one launch: the best move of a node in isolation.
#ifndef SNNMAP_ROUND_MOVE_CUH
#define SNNMAP_ROUND_MOVE_CUH

// What is known of a node: where it is, what keeps it there, and the counts of its nets, all of them and those that
// its part would be free of (strict: their shares).
struct Standing {
    i32 v, part;
    i64 here, total[ROOM], freed[ROOM];
};

// The same from columns, of a node that finds `there` in its part.
__device__ __forceinline__ Standing standing_of(const Rounds& in, i32 v, i64 there) {
    const Place all(found_by(in, v, ALL_NETS), in.n_nodes), alone(found_by(in, v, LONE_NETS), in.n_nodes);
    Standing node = {v, in.parts[v], there - alone.value, {0}, {0}};
    for (i32 c = 0; c < N_DISTINCT; ++c) {
        node.total[c] = all.counts[c];
        node.freed[c] = alone.counts[c];
    }
    return node;
}

// A move of a node; by a thread. `place`: in the list of those that have one.
template <Kind KIND>
__device__ __forceinline__ void offer(const Work& work, const Standing& node, const Best& best, i64 plain, const i64* brought, i64 place) {
    const Rounds& in = work.in;
    const i64 v = node.v;
    in.proposed[place] = node.v;
    in.targets[v] = best.id;
    in.moves[v] = (node.part << 16) + best.id;
    in.gains[v] = best.value;
    in.sorted_gains[place] = best.value;
    in.plain_gains[v] = plain;
    in.later[v] = 0;
    for (i32 c = 0; c < N_DISTINCT; ++c) {
        in.incoming[v * N_DISTINCT + c] = KIND != REPLAYED ? brought[c] : 0;
        in.outgoing[v * N_DISTINCT + c] = KIND != REPLAYED ? node.freed[c] : 0;
    }
    atomicAdd(work.desk.ins + best.id, 1u);
    atomicAdd(work.desk.outs + node.part, 1u);
}

// The best move of a node, if any (see `propose_moves` of _kernels_refine.py). look(p, shared) = what it finds in
// part p, and `shared` the counts of those of its nets that have pins there.
// Parallel over parts.
template <Kind KIND, class G, class Look>
__device__ __forceinline__ void choose_part(const Work& work, G group, const Prices& prices, Standing& node, Look look) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    const i32 v = node.v, a = node.part;
    const bool strict = KIND == STRICT;
    const i64* loads = work.loads(work.measured);
    i64 relief = 0, units = 1;
    for (i32 r = 0; r < N_LOADS; ++r) {
        const i64 over = loads[static_cast<i64>(a) * N_LOADS + r] - in.limits[r];
        i64 released = r < N_ADDITIVE ? work.additive(v, r) : node.freed[r < N_ADDITIVE ? 0 : r - N_ADDITIVE];
        if (strict && r >= N_ADDITIVE) released = node.freed[r < N_ADDITIVE ? 0 : r - N_ADDITIVE] = larger(released, 1);
        if (over <= 0) continue;
        if (strict)
            units += (released << 16) / in.limits[r];
        else
            relief += prices.of[r] * smaller(over, released);
    }
    // Softly what loses more than the slack is not looked at.
    Best best = {strict ? -(1ll << 62) : -(prices.slack * node.here >> 6), 0, -1, 0};
    i64 plain = 0, brought[ROOM];
    for (i32 c = 0; c < ROOM; ++c) brought[c] = 0;
#pragma unroll 1
    for (i32 p = group.rank(); p < desk.n_parts; p += group.size()) {
        i64 added[ROOM];
        const i64 found = look(p, added);
        for (i32 c = 0; c < N_DISTINCT; ++c) added[c] = node.total[c] - added[c];
        if (p == a || (found == 0 && (!strict || p != prices.haven))) continue;  // nothing of v is there
        i64 gain = found - node.here + relief;
        if (gain < best.value) continue;
        bool fits = true;
        for (i32 r = 0; r < N_LOADS; ++r) {
            const i64 more = r < N_ADDITIVE ? work.additive(v, r) : added[r < N_ADDITIVE ? 0 : r - N_ADDITIVE];
            const i64 over = loads[static_cast<i64>(p) * N_LOADS + r] + more - in.limits[r];
            if (over <= 0) continue;
            fits = false;
            if (!strict) gain -= prices.of[r] * smaller(over, more);
        }
        if (strict && !fits) continue;
        const u64 tie = scramble(static_cast<u64>(work.name_of(p) * 1000003 + v), static_cast<u64>(prices.seed));
        const Best candidate = {gain, tie, p, 0};
        if (!best.below(candidate)) continue;
        best = candidate;
        plain = found - node.here;
        for (i32 c = 0; c < N_DISTINCT; ++c) brought[c] = added[c];
    }
    const i32 own = best.id;
    best = best_of(group, best, desk.scratch);
    const bool moves = best.id >= 0;
    if (moves && own == best.id) {
        if (strict) best.value = floor_div(plain * 256, units);
        const i64 place = static_cast<i64>(atomicAdd(&work.counters().n_proposed, 1ull));
        offer<KIND>(work, node, best, plain, brought, place);
    }
    if (moves && in.segments.given()) list_nets_of(work, group, v, TOUCHED);
    group.sync();
}

// The best move of node v, whose nets are summed up.
// Parallel over nets, `width` threads each, and over their entries; then over parts.
template <Kind KIND, class G>
__device__ __forceinline__ void propose(const Work& work, G group, const Prices& prices, i32 v, i32 width) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    const i32 n_parts = desk.n_parts, rank = group.rank(), size = group.size();
    const Sums gathered(desk.table(group), n_parts);
    const Sums shared(gathered.high + n_parts, static_cast<i64>(N_DISTINCT) * n_parts);
    const i32 a = in.parts[v], team = rank / width, teams = size / width, lane = rank & (width - 1);
    const i64 first = in.node_offsets[v], last = in.node_offsets[v + 1];
    const i64 first_out = in.out_offsets[v], last_out = in.out_offsets[v + 1];
    const bool strict = KIND == STRICT;
    Standing node = {v, a, 0, {0}, {0}};
    i64 j = first + team;
    i32 g = j < last ? in.node_nets[j] : -1, g_next = j + teams < last ? in.node_nets[j + teams] : -1;
    Row row;
    if (g >= 0) row = in.rows[g];
    while (g >= 0) {
        const i32 net = g;
        const Row now = row;
        j += teams;
        g = g_next;
        if (g >= 0) row = in.rows[g];  // on its way while this one is worked on
        g_next = j + teams < last ? in.node_nets[j + teams] : -1;
        if (lane == 0)
            for (i32 c = 0; c < N_DISTINCT; ++c) node.total[c] += now.counts[c];
        for (i32 s = lane; s < now.size; s += width) {
            const Entry entry = in.entries[now.first + s];
            if (entry.part == a) {
                for (i32 c = 0; strict && c < N_DISTINCT; ++c) node.freed[c] += now.counts[c] / entry.n_pins();
                if (entry.pins >= 0) {
                    node.here += now.weight;
                    continue;
                }
                // v is the only pin here: without it only sources wait
                const i64 o = lower_bound<i32>(in.out_nets, first_out, last_out, net);
                node.here += in.waiting[now.first + s];
                if (o < last_out && in.out_nets[o] == net) node.here -= in.out_weights[o];
                for (i32 c = 0; !strict && c < N_DISTINCT; ++c) node.freed[c] += now.counts[c];
                continue;
            }
            const i64 value = entry.pins != 0 ? now.weight : in.waiting[now.first + s];
            if (value != 0) gathered.add(entry.part, value);
            if (entry.pins != 0)
                for (i32 c = 0; c < N_DISTINCT; ++c)
                    if (now.counts[c] != 0) shared.add(c * n_parts + entry.part, now.counts[c]);
        }
    }
    for (i64 o = first_out + team; o < last_out; o += teams) {
        const i32 net = in.out_nets[o];
        const i64 k = lower_bound<i32>(in.node_nets, first, last, net);
        if (k < last && in.node_nets[k] == net) continue;  // v is a pin itself: its source term never changes
        const i64 weight = in.out_weights[o];
        if (weight == 0) continue;
        const i32 begin = in.rows[net].first, end = begin + in.rows[net].size;
        for (i32 s = begin + lane; s < end; s += width) {
            const Entry entry = in.entries[s];
            if (entry.pins == 0) continue;
            if (entry.part == a)
                node.here += weight;
            else
                gathered.add(entry.part, weight);
        }
    }
    group.sync();
    node.here = sum_of(group, node.here, desk.scratch);
    for (i32 c = 0; c < N_DISTINCT; ++c) {
        node.total[c] = sum_of(group, node.total[c], desk.scratch);
        node.freed[c] = sum_of(group, node.freed[c], desk.scratch);
    }
    choose_part<KIND>(work, group, prices, node, [&](i32 p, i64* counts) {
        const i64 found = gathered.get(p);
        if (found != 0) gathered.clear(p);
        for (i32 c = 0; c < N_DISTINCT; ++c) {
            counts[c] = shared.get(c * n_parts + p);
            if (counts[c] != 0) shared.clear(c * n_parts + p);
        }
        return found;
    });
}

// Whether v moved in the last round.
template <Kind KIND>
__device__ __forceinline__ bool rests(const Work& work, i64 v) {
    return KIND == ALONE && work.in.moved[v] >> 16 == work.turn;
}

// Whether a strict proposal may move v.
__device__ __forceinline__ bool overfull(const Work& work, i64 v) {
    const i64* held = work.loads(work.measured) + static_cast<i64>(work.in.parts[v]) * N_LOADS;
    bool found = false;
    for (i32 r = 0; r < N_LOADS; ++r) found |= held[r] > work.in.limits[r];
    return found;
}

// Whether v's nets touch other parts than its own. One thread looks at few nets; of many it is assumed.
__device__ __forceinline__ bool at_border(const Work& work, i64 v) {
    const Rounds& in = work.in;
    if (work.n_nets_of(v) > PARTLY) return true;
    for (i64 j = in.node_offsets[v]; j < in.node_offsets[v + 1]; ++j)
        if (in.rows[in.node_nets[j]].size != 1) return true;
    for (i64 j = in.out_offsets[v]; j < in.out_offsets[v + 1]; ++j)
        if (in.rows[in.out_nets[j]].size != 1) return true;
    return false;
}

// The same for one of many nets, by a warp.
__device__ __forceinline__ bool at_border_of(const Work& work, i64 v) {
    const Rounds& in = work.in;
    bool found = false;
    for (i64 j = in.node_offsets[v] + (threadIdx.x & 31); j < in.node_offsets[v + 1]; j += 32)
        found |= in.rows[in.node_nets[j]].size != 1;
    for (i64 j = in.out_offsets[v] + (threadIdx.x & 31); j < in.out_offsets[v + 1]; j += 32)
        found |= in.rows[in.out_nets[j]].size != 1;
    return __ballot_sync(ALL_LANES, found) != 0;
}

#endif
