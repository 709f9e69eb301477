// Rounds in one launch: every node's best move in isolation.
#ifndef SNNMAP_ROUND_PROPOSE_CUH
#define SNNMAP_ROUND_PROPOSE_CUH

// What is known of a node: where it is, what keeps it there, and the counts of its nets, all of them and those that
// its part would be free of (strict: their shares).
struct Standing {
    i32 v, part;
    i64 here, total[ROOM], freed[ROOM];
};

__device__ __forceinline__ void stay(const Rounds& in, i64 v) { in.targets[v] = in.moves[v] = -1; }

// The best move of a node, or target -1 (see `propose_moves` of _kernels_refine.py). look(p, shared) = what it finds in
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
    Best best = {-(1ll << 62), 0, -1, 0};
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
    const bool moves = best.id >= 0 && (strict || best.value * 64 >= -prices.slack * node.here);
    if (group.rank() == 0 && !moves) stay(in, v);
    if (moves && own == best.id) {
        in.targets[v] = own;
        in.moves[v] = (a << 16) + own;
        in.gains[v] = strict ? floor_div(plain * 256, units) : best.value;
        in.plain_gains[v] = plain;
        in.later[v] = 0;
        for (i32 c = 0; c < N_DISTINCT; ++c) {
            in.incoming[static_cast<i64>(v) * N_DISTINCT + c] = KIND != REPLAYED ? brought[c] : 0;
            in.outgoing[static_cast<i64>(v) * N_DISTINCT + c] = KIND != REPLAYED ? node.freed[c] : 0;
        }
        atomicAdd(desk.ins + own, 1u);
        atomicAdd(desk.outs + a, 1u);
    }
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
                const i64 o = lower_bound(in.out_nets, first_out, last_out, net);
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
        const i64 k = lower_bound(in.node_nets, first, last, net);
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

// The best move of node v by what it is known to find. By a warp.
template <Kind KIND>
__device__ __forceinline__ void propose_by_found(const Work& work, const Prices& prices, i32 v) {
    const Rounds& in = work.in;
    const i32 a = in.parts[v], n_parts = work.desk.n_parts;
    const i64* row = found_by(in, v, 0);
    const Place there(row + a * PLACE_WORDS), all(row + n_parts * PLACE_WORDS), alone(row + (n_parts + 1) * PLACE_WORDS);
    Standing node = {v, a, there.value - alone.value, {0}, {0}};
    for (i32 c = 0; c < N_DISTINCT; ++c) {
        node.total[c] = all.counts[c];
        node.freed[c] = alone.counts[c];
    }
    choose_part<KIND>(work, Warp(), prices, node, [&](i32 p, i64* counts) {
        const Place place(row + p * PLACE_WORDS);
        for (i32 c = 0; c < N_DISTINCT; ++c) counts[c] = place.counts[c];
        return place.value;
    });
}

// Whether v may move: where no part's find, whatever joining it costs, is worth what keeps v where it is, and there is
// no overload to relieve, it need not be asked. That is most nodes of a partition that is nearly final. By a warp.
__device__ __forceinline__ bool may_move(const Work& work, const Prices& prices, i32 v) {
    const Rounds& in = work.in;
    const i32 a = in.parts[v], n_parts = work.desk.n_parts;
    const i64 *row = found_by(in, v, 0), *held = work.loads(work.measured) + static_cast<i64>(a) * N_LOADS;
    const i64 here = Place(row + a * PLACE_WORDS).value - Place(row + (n_parts + 1) * PLACE_WORDS).value;
    bool some = false;
    for (i32 r = 0; r < N_LOADS; ++r) some |= held[r] > in.limits[r];
    for (i32 p = Warp().rank(); p < n_parts; p += Warp().size()) {
        const i64 found = Place(row + p * PLACE_WORDS).value;
        some |= p != a && found != 0 && (found - here) * 64 >= -prices.slack * here;
    }
    return __ballot_sync(ALL_LANES, some) != 0;
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

// Proposals of the nodes that are long, or of those that are not, by a team each.
template <Kind KIND>
__device__ __noinline__ void propose_by_teams(const Work& work, Team team, const Prices& prices, i32 width, bool only_long) {
    const Rounds& in = work.in;
    const i64 n = only_long ? static_cast<i64>(in.progress->n_long_nodes) : in.n_nodes;
    for (i64 i = team.index(); i < n; i += team.number()) {
        const i32 v = only_long ? in.long_nodes[i] : static_cast<i32>(i);
        if (!only_long && work.n_nets_of(v) > work.long_node()) continue;
        const bool rests = KIND == ALONE && in.moved[v];
        team.sync();
        if (KIND == STRICT ? overfull(work, v) : !rests && (work.n_nets_of(v) > PARTLY || at_border_of(work, v))) {
            propose<KIND>(work, team, prices, v, width);
        } else if (team.rank() == 0) {
            stay(in, v);
        }
        if (team.rank() == 0) in.moved[v] = false;
    }
}

// The same by warps: one looks which of some consecutive nodes are at a border, and works on those.
template <Kind KIND>
__device__ __noinline__ void propose_by_warps(const Work& work, const Prices& prices, i32 width) {
    const Rounds& in = work.in;
    const i64 n_warps = Warp().number(), some = smaller(32, (in.n_nodes + n_warps - 1) / n_warps);
    for (i64 base = Warp().index() * some; base < in.n_nodes; base += n_warps * some) {
        const i64 v = base + Warp().rank();
        bool asks = false;
        if (v < smaller(base + some, in.n_nodes) && work.n_nets_of(v) <= work.long_node()) {
            asks = KIND == STRICT ? overfull(work, v) : !(KIND == ALONE && in.moved[v]) && at_border(work, v);
            in.moved[v] = false;
            if (!asks) stay(in, v);
        }
        u32 left = __ballot_sync(ALL_LANES, asks);
        while (left != 0) {
            const i32 one = __ffs(left) - 1;
            left &= left - 1;
            propose<KIND>(work, Warp(), prices, static_cast<i32>(base + one), width);
        }
    }
}

// The same where it is kept what nodes find, whatever their nets.
template <Kind KIND>
__device__ __noinline__ void propose_by_tables(const Work& work, const Prices& prices) {
    const auto asks = [&](i64 v) {
        const bool rests = KIND == ALONE && work.in.moved[v];
        if (rests) stay(work.in, v);
        work.in.moved[v] = false;
        return !rests;
    };
    const bool many = work.in.n_nodes > 8 * Warp().number();  // for a warp, so that asking first pays
    for_asking(Warp(), work.in.n_nodes, asks, [&](i64 v) {
        if (!many || may_move(work, prices, static_cast<i32>(v)))
            propose_by_found<KIND>(work, prices, static_cast<i32>(v));
        else if (Warp().rank() == 0)
            stay(work.in, v);
    });
}

// Proposals of all nodes by what their nets sum up to.
template <Kind KIND>
__device__ __forceinline__ void propose_by_nets(const Work& work, const Prices& prices) {
    const Rounds& in = work.in;
    const Team team = {static_cast<i32>(in.node_warps)};
    const u64 n_entries = in.progress->n_entries;
    i32 width = 4;
    while (width < 32 && static_cast<u64>(width) * in.n_nets < n_entries) width *= 2;
    if (in.progress->n_long_nodes != 0) propose_by_teams<KIND>(work, Team::of_block(), prices, width, true);
    __syncthreads();
    if (team.warps > 1)
        propose_by_teams<KIND>(work, team, prices, width, false);
    else
        propose_by_warps<KIND>(work, prices, width);
}

// Proposals of all nodes but those that rest, which then do so no more; how many want to come to and go
// from each part.
template <Kind KIND>
__device__ __forceinline__ void propose_all(const Work& work, const Prices& prices) {
    const Desk& desk = work.desk;
    if (KIND != STRICT && work.finds)
        propose_by_tables<KIND>(work, prices);
    else
        propose_by_nets<KIND>(work, prices);
    __syncthreads();
#pragma unroll 1
    for (i32 p = threadIdx.x; p < desk.n_parts; p += blockDim.x) {
        if (desk.ins[p] != 0) {
            add64(work.wanted_in() + p, desk.ins[p]);
            work.counters().proposing = 1;
        }
        if (desk.outs[p] != 0) add64(work.wanted_out() + p, desk.outs[p]);
        desk.ins[p] = desk.outs[p] = 0;
    }
}

// Zero what the next round counts.
__device__ __forceinline__ void prepare_counters(const Work& work) {
    const i64 n = sizeof(Counters) / 8 + work.in.n_parts * (N_LOADS + 4);
    i64* next = work.set_of(work.turn + 1);
#pragma unroll 1
    for (i64 i = work.thread(); i < n; i += work.n_threads()) next[i] = 0;
}

#endif
