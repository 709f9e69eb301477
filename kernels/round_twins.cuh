// Rounds in one launch: the best moves of twins, whose nets are summed up once.
#ifndef SNNMAP_ROUND_TWINS_CUH
#define SNNMAP_ROUND_TWINS_CUH

// What it costs that a part overflows, which holds so much, when v comes to it and with it `added` counts.
__device__ __forceinline__ i64 price_of_overload(const Work& work, const Prices& prices, i64 v, const i64* added, const i64* held) {
    i64 price = 0;
    for (i32 r = 0; r < N_LOADS; ++r) {
        const i64 more = r < N_ADDITIVE ? work.additive(v, r) : added[r < N_ADDITIVE ? 0 : r - N_ADDITIVE];
        const i64 over = held[r] + more - work.in.limits[r];
        if (over > 0) price += prices.of[r] * smaller(over, more);
    }
    return price;
}

// Which of equal moves of v is taken.
__device__ __forceinline__ u64 tie_of(const Work& work, const Prices& prices, i64 v, i32 p) {
    return scramble(static_cast<u64>(work.name_of(p) * 1000003 + v), static_cast<u64>(prices.seed));
}

// The best move of a node so far, by one thread.
struct Choice {
    Best best;
    i64 plain, relief, brought[ROOM];

    // `relief`: what overload of its part v takes with it.
    __device__ __forceinline__ Choice(const Work& work, const Prices& prices, const Standing& node) : best{-(1ll << 62), 0, -1, 0}, plain(0), relief(0) {
        const i64* held = work.loads(work.measured) + static_cast<i64>(node.part) * N_LOADS;
        for (i32 r = 0; r < N_LOADS; ++r) {
            const i64 over = held[r] - work.in.limits[r];
            if (over > 0) relief += prices.of[r] * smaller(over, r < N_ADDITIVE ? work.additive(node.v, r) : node.freed[r < N_ADDITIVE ? 0 : r - N_ADDITIVE]);
        }
        for (i32 c = 0; c < ROOM; ++c) brought[c] = 0;
    }
    // Whether part p, where v finds so much, may be better than what is known.
    __device__ __forceinline__ bool asks(const Prices& prices, const Standing& node, i32 p, i64 found) const {
        const i64 gain = found - node.here + relief;
        return p != node.part && found != 0 && gain >= best.value && (gain >= 0 || gain * 64 >= -prices.slack * node.here);
    }
    // What the node finds in the part that was chosen.
    __device__ __forceinline__ void finds(const Standing& node, const Place& place) {
        plain = place.value - node.here;
        for (i32 c = 0; c < N_DISTINCT; ++c) brought[c] = node.total[c] - place.counts[c];
    }
    // Takes part p if it is better.
    __device__ __forceinline__ void weigh_place(const Work& work, const Prices& prices, const Standing& node, i32 p, const Place& place) {
        i64 added[ROOM];
        for (i32 c = 0; c < N_DISTINCT; ++c) added[c] = node.total[c] - place.counts[c];
        weigh(work, prices, node, p, place.value, added, work.loads(work.measured) + static_cast<i64>(p) * N_LOADS);
    }
    // The same: `added` counts come to its loads.
    __device__ __forceinline__ void weigh(const Work& work, const Prices& prices, const Standing& node, i32 p, i64 found, const i64* added, const i64* held) {
        const i64 gain = found - node.here + relief - price_of_overload(work, prices, node.v, added, held);
        const Best candidate = {gain, tie_of(work, prices, node.v, p), p, 0};
        if (!best.below(candidate)) return;
        best = candidate;
        plain = found - node.here;
        for (i32 c = 0; c < N_DISTINCT; ++c) brought[c] = added[c];
    }
};

// Lists the moves of the nodes that are looked at by a warp, one a lane, unless they lose too much; whether this one moves.
template <Kind KIND>
__device__ __forceinline__ bool offer_best(const Work& work, const Prices& prices, bool given, const Standing& node, const Choice& choice) {
    const i32 lane = threadIdx.x & 31;
    const bool moves = given && choice.best.id >= 0 && choice.best.value * 64 >= -prices.slack * node.here;
    const u32 movers = __ballot_sync(ALL_LANES, moves);
    if (movers == 0) return false;
    i64 place = lane == 0 ? static_cast<i64>(atomicAdd(&work.counters().n_proposed, static_cast<u64>(__popc(movers)))) : 0;
    place = __shfl_sync(ALL_LANES, place, 0) + __popc(movers & ((1u << lane) - 1));
    if (moves) offer<KIND>(work, node, choice.best, choice.plain, choice.brought, place);
    return moves;
}

// What a segment finds in 32 parts, one a lane, by the nets that its nodes are pins of; cleared.
struct Finds {
    i64 value, counts[ROOM], held[N_LOADS];
    u32 some;  // a bit for each lane: of the parts where any node finds something

    __device__ __forceinline__ Finds(const Work& work, const Sums& gathered, const Sums& shared, u32 reached, i32 base) {
        const i32 lane = threadIdx.x & 31, n_parts = work.desk.n_parts, p = base + lane;
        value = p < n_parts ? gathered.get(p) : 0;
        some = __ballot_sync(ALL_LANES, value != 0) | reached;
        if (value != 0) gathered.clear(p);
        counts[0] = 0;
        for (i32 c = 0; c < N_DISTINCT; ++c) {
            counts[c] = p < n_parts ? shared.get(c * n_parts + p) : 0;
            if (counts[c] != 0) shared.clear(c * n_parts + p);
        }
        for (i32 r = 0; r < N_LOADS; ++r) held[r] = some >> lane & 1 ? work.loads(work.measured)[p * N_LOADS + r] : 0;
    }
};

// The net to which a node sends, unless it is a pin of it: there its source term never changes.
struct Sending {
    i64 weight;
    Row row;

    __device__ __forceinline__ Sending(const Work& work, i64 v, i64 first_net, i64 n_nets) : weight(0), row{0, 0, 0, 0, {0}} {
        const Rounds& in = work.in;
        const i32 g = out_net_of(in, v);
        if (g < 0) return;
        const i64 j = lower_bound<i32>(in.node_nets, first_net, first_net + n_nets, g);
        if (j < first_net + n_nets && in.node_nets[j] == g) return;
        weight = in.out_weights[in.out_offsets[v]];
        if (weight != 0) row = in.rows[g];
    }
    // Of the 32 parts from `base` on those where the net has pins, a bit each.
    __device__ __forceinline__ u32 reaches(const Rounds& in, i32 base) const {
        u32 bits = 0;
#pragma unroll 4
        for (i32 s = 0; s < row.size; ++s) {
            const Entry entry = in.entries[row.first + s];
            if (entry.pins != 0 && entry.part >> 5 == base >> 5) bits |= 1u << (entry.part & 31);
        }
        return bits;
    }
};

// Best moves of the nodes of a segment, as `propose` finds them for one.
// Parallel over nets, `width` threads each, and over their entries; then over nodes.
template <Kind KIND>
__device__ __forceinline__ void propose_twins(const Work& work, const Prices& prices, i32 first) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    const Warp warp;
    const i32 n_parts = desk.n_parts, lane = warp.rank(), n = size_of_segment(in, first), v = first + (lane < n ? lane : 0);
    const i64 first_net = in.node_offsets[first], n_nets = in.node_offsets[first + 1] - first_net;
    const bool given = lane < n && !rests<KIND>(work, v);
    const Sending sending(work, v, first_net, n_nets);
    const Sums gathered(desk.table(warp), n_parts);
    const Sums shared(gathered.high + n_parts, static_cast<i64>(N_DISTINCT) * n_parts);
    const Sums alone(desk.list(warp), 32 * (1 + N_DISTINCT));  // of each node: what differs where it is a net's only pin
    u32* reached = alone.high + 32 * (1 + N_DISTINCT);         // parts to which any sends, a bit each
    static_assert(16 * 16 * (1 + N_DISTINCT) + 64 <= WARP_BYTES, "room for the nodes of a segment, and for parts");
    for (i32 i = lane; i < 32 * (1 + N_DISTINCT); i += 32) alone.clear(i);
    for (i32 i = lane; 32 * i < n_parts; i += 32) reached[i] = 0;
    __syncwarp();
    i32 width = 32;
    while (width > 1 && 32 < n_nets * width) width >>= 1;
    Standing node = {v, in.parts[v], 0, {0}, {0}};
    for (i64 j = lane / width; j < n_nets; j += 32 / width) {
        const i32 g = in.node_nets[first_net + j];
        const Row row = in.rows[g];
        if (lane % width == 0)
            for (i32 c = 0; c < N_DISTINCT; ++c) node.total[c] += row.counts[c];
        for (i32 s = lane % width; s < row.size; s += width) {
            const Entry entry = in.entries[row.first + s];
            const i64 value = entry.pins != 0 ? row.weight : in.waiting[row.first + s];
            if (value != 0) gathered.add(entry.part, value);
            if (entry.pins == 0) continue;
            for (i32 c = 0; c < N_DISTINCT; ++c)
                if (row.counts[c] != 0) shared.add(c * n_parts + entry.part, row.counts[c]);
            const i32 u = ~entry.pins, k = u - first;
            if (entry.pins > 0 || k < 0 || k >= n) continue;
            // u is the only pin there: without it only sources wait
            const i64 waits = in.waiting[row.first + s] - (out_net_of(in, u) == g ? in.out_weights[in.out_offsets[u]] : 0);
            alone.add(k, waits - row.weight);
            for (i32 c = 0; c < N_DISTINCT; ++c) alone.add(32 * (1 + c) + k, row.counts[c]);
        }
    }
#pragma unroll 1
    for (i32 s = 0; s < sending.row.size; ++s) {
        const Entry entry = in.entries[sending.row.first + s];
        if (entry.pins != 0) atomicOr(reached + (entry.part >> 5), 1u << (entry.part & 31));
    }
    __syncwarp();
    const i32 a = node.part;
    node.here = gathered.get(a) + alone.get(lane) + (sending.reaches(in, a) >> (a & 31) & 1 ? sending.weight : 0);
    for (i32 c = 0; c < N_DISTINCT; ++c) {
        node.total[c] = sum_warp(node.total[c]);
        node.freed[c] = alone.get(32 * (1 + c) + lane);
    }
    __syncwarp();
    Choice choice(work, prices, node);
#pragma unroll 1
    for (i32 base = 0; base < n_parts; base += 32) {
        const Finds finds(work, gathered, shared, reached[base >> 5], base);
        const u32 own = finds.some != 0 ? sending.reaches(in, base) : 0;
#pragma unroll 1
        for (u32 left = finds.some; left != 0; left &= left - 1) {
            const i32 k = __ffs(static_cast<i32>(left)) - 1, p = base + k;
            const i64 found = __shfl_sync(ALL_LANES, finds.value, k) + (own >> k & 1 ? sending.weight : 0);
            const bool asks = given && choice.asks(prices, node, p, found);
            if (__ballot_sync(ALL_LANES, asks) == 0) continue;
            i64 added[ROOM], held[N_LOADS];
            added[0] = 0;
            for (i32 c = 0; c < N_DISTINCT; ++c) added[c] = node.total[c] - __shfl_sync(ALL_LANES, finds.counts[c], k);
            for (i32 r = 0; r < N_LOADS; ++r) held[r] = __shfl_sync(ALL_LANES, finds.held[r], k);
            if (asks) choice.weigh(work, prices, node, p, found, added, held);
        }
    }
    const bool moves = offer_best<KIND>(work, prices, given, node, choice);
    if (moves && n_outs_of(in, v) == 1) list_net(work, out_net_of(in, v), TOUCHED);
    if (__ballot_sync(ALL_LANES, moves) != 0)
        for (i64 j = lane; j < n_nets; j += 32) list_net(work, in.node_nets[first_net + j], TOUCHED);
    __syncwarp();
}

// The best move of a node that is a pin of one net at most and sends to one at most, by a thread; a warp calls it for
// 32 nodes, of which `given` ones count.
template <Kind KIND>
__device__ __forceinline__ void propose_simple(const Work& work, const Prices& prices, i32 v, bool given) {
    const Rounds& in = work.in;
    const i64 first_net = in.node_offsets[v];
    const bool pin = given && in.node_offsets[v + 1] > first_net;
    const i32 g = pin ? in.node_nets[first_net] : -1;
    const Sending sending(work, v, first_net, pin);
    Row row = {0, 0, 0, 0, {0}};
    if (pin) row = in.rows[g];
    Standing node = {v, in.parts[v], 0, {0}, {0}};
    for (i32 c = 0; c < N_DISTINCT; ++c) node.total[c] = row.counts[c];
    for (i32 s = 0; s < row.size; ++s) {
        const Entry entry = in.entries[row.first + s];
        if (entry.part != node.part) continue;
        node.here = row.weight;
        if (entry.pins >= 0) continue;
        node.here = in.waiting[row.first + s] - (out_net_of(in, v) == g ? in.out_weights[in.out_offsets[v]] : 0);
        for (i32 c = 0; c < N_DISTINCT; ++c) node.freed[c] = row.counts[c];
    }
    if (sending.reaches(in, node.part) >> (node.part & 31) & 1) node.here += sending.weight;
    Choice choice(work, prices, node);
    const i64* loads = work.loads(work.measured);
    const auto look = [&](i32 p, i64 found, const i64* added) {
        if (choice.asks(prices, node, p, found)) choice.weigh(work, prices, node, p, found, added, loads + static_cast<i64>(p) * N_LOADS);
    };
    const i64 nothing[ROOM] = {0};
    for (i32 s = 0; given && s < row.size; ++s) {
        const Entry entry = in.entries[row.first + s];
        const i32 p = entry.part;
        const i64 found = entry.pins != 0 ? row.weight : in.waiting[row.first + s];
        look(p, found + (sending.reaches(in, p) >> (p & 31) & 1 ? sending.weight : 0), entry.pins != 0 ? nothing : node.total);
    }
    for (i32 s = 0; given && s < sending.row.size; ++s) {
        const Entry entry = in.entries[sending.row.first + s];
        bool known = entry.pins == 0;
        for (i32 i = 0; i < row.size; ++i) known |= in.entries[row.first + i].part == entry.part;
        if (!known) look(entry.part, sending.weight, node.total);
    }
    if (!offer_best<KIND>(work, prices, given, node, choice)) return;
    if (pin) list_net(work, g, TOUCHED);
    if (n_outs_of(in, v) == 1) list_net(work, out_net_of(in, v), TOUCHED);
}

// Whether the nets of a segment touch other parts than its own. By a thread.
__device__ __forceinline__ bool segment_at_border(const Work& work, i64 first) {
    const Rounds& in = work.in;
    if (at_border(work, first)) return true;
    bool some = false;
#pragma unroll 4
    for (i64 o = in.out_offsets[first]; o < in.out_offsets[first + size_of_segment(in, first)]; ++o) some |= in.rows[in.out_nets[o]].size != 1;
    return some;
}

// Proposals of all segments: those whose nets touch no other part than their own have none.
template <Kind KIND>
__device__ __noinline__ void propose_by_segments(const Work& work, const Prices& prices, i32 width) {
    const Rounds& in = work.in;
    const i64 n = static_cast<i64>(in.progress->n_segments[0]), n_simple = static_cast<i64>(in.progress->n_segments[1]);
    const auto asks = [&](i64 i) { return segment_at_border(work, in.segments[i]); };
    for_asking(Warp(), n, asks, [&](i64 i) {
        const i32 first = in.segments[i];
        if (!is_single(work, first))
            propose_twins<KIND>(work, prices, first);
        else if (!rests<KIND>(work, first))
            propose<KIND>(work, Warp(), prices, first, width);
    });
#pragma unroll 1
    for (i64 base = 32 * Warp().index(); base < n_simple; base += work.n_threads()) {
        const i64 i = base + Warp().rank();
        const i32 v = i < n_simple ? in.segments[in.n_nodes - 1 - i] : 0;
        propose_simple<KIND>(work, prices, v, i < n_simple && !rests<KIND>(work, v) && at_border(work, v));
        __syncwarp();
    }
}

#endif
