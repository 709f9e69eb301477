// Rounds in one launch: the best moves of twins, whose nets are summed up once.
#ifndef SNNMAP_ROUND_TWINS_CUH
#define SNNMAP_ROUND_TWINS_CUH

// What a segment finds in 32 parts, one a lane: by all nets that its nodes are pins of, and whether that to which they send
// has pins there.
struct Finds {
    i64 value, counts[ROOM];
    i64 held[N_LOADS];
    u32 some, outward;  // a bit for each lane

    __device__ __forceinline__ Finds(const Work& work, const Sums& gathered, const Sums& shared, u32 reached, i32 base) {
        const i32 lane = threadIdx.x & 31, n_parts = work.desk.n_parts, p = base + lane;
        value = p < n_parts ? gathered.get(p) : 0;
        outward = reached;
        some = __ballot_sync(ALL_LANES, value != 0) | reached;
        const bool asked = some >> lane & 1;
        if (value != 0) gathered.clear(p);
        counts[0] = 0;
        for (i32 c = 0; c < N_DISTINCT; ++c) {
            counts[c] = p < n_parts ? shared.get(c * n_parts + p) : 0;
            if (counts[c] != 0) shared.clear(c * n_parts + p);
        }
        for (i32 r = 0; r < N_LOADS; ++r) held[r] = asked ? work.loads(work.measured)[p * N_LOADS + r] : 0;
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
    const i64 out = in.out_offsets[first], own_out = in.out_offsets[v];
    const i32 out_net = in.out_offsets[first + 1] > out ? in.out_nets[out] : -1;
    const i32 a = in.parts[v];
    const bool asks = lane < n && !(KIND == ALONE && in.moved[v] == work.turn);
    const Sums gathered(desk.table(warp), n_parts);
    const Sums shared(gathered.high + n_parts, static_cast<i64>(N_DISTINCT) * n_parts);
    const Sums alone(desk.list(warp), 32 * (1 + N_DISTINCT));  // of each node: what differs where it is a net's only pin
    u32* reached = alone.high + 32 * (1 + N_DISTINCT);         // parts, a bit each
    static_assert(16 * 16 * (1 + N_DISTINCT) + 64 <= sizeof(Event) * WARP_EVENTS, "room for the nodes of a segment, and for parts");
    for (i32 i = lane; i < 32 * (1 + N_DISTINCT); i += 32) alone.clear(i);
    for (i32 i = lane; 32 * i < n_parts; i += 32) reached[i] = 0;
    __syncwarp();
    i32 width = 32;
    while (width > 1 && 32 < n_nets * width) width >>= 1;
    i64 total[ROOM], value_of_out = 0;
    for (i32 c = 0; c < ROOM; ++c) total[c] = 0;
    bool sends_to_own = false;
    for (i64 j = lane / width; j < n_nets; j += 32 / width) {
        const i32 g = in.node_nets[first_net + j];
        const Row row = in.rows[g];
        sends_to_own |= g == out_net;
        if (lane % width == 0)
            for (i32 c = 0; c < N_DISTINCT; ++c) total[c] += row.counts[c];
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
            const i64 waits = in.waiting[row.first + s] - (g == out_net ? in.out_weights[in.out_offsets[u]] : 0);
            alone.add(k, waits - row.weight);
            for (i32 c = 0; c < N_DISTINCT; ++c) alone.add(32 * (1 + c) + k, row.counts[c]);
        }
    }
    // A source that is a pin itself: its source term never changes.
    const bool sends = __ballot_sync(ALL_LANES, sends_to_own) == 0 && out_net >= 0;
    if (sends) {
        const Row row = in.rows[out_net];
        value_of_out = in.out_weights[own_out];
        for (i32 s = lane; s < row.size; s += 32) {
            const Entry entry = in.entries[row.first + s];
            if (entry.pins != 0) atomicOr(reached + (entry.part >> 5), 1u << (entry.part & 31));
        }
    }
    __syncwarp();
    Standing node = {v, a, gathered.get(a) + alone.get(lane) + (reached[a >> 5] >> (a & 31) & 1 ? value_of_out : 0), {0}, {0}};
    for (i32 c = 0; c < N_DISTINCT; ++c) {
        node.total[c] = sum_warp(total[c]);
        node.freed[c] = alone.get(32 * (1 + c) + lane);
    }
    const i64* loads = work.loads(work.measured);
    i64 relief = 0;
    for (i32 r = 0; r < N_LOADS; ++r) {
        const i64 over = loads[static_cast<i64>(a) * N_LOADS + r] - in.limits[r];
        if (over > 0) relief += prices.of[r] * smaller(over, r < N_ADDITIVE ? work.additive(v, r) : node.freed[r < N_ADDITIVE ? 0 : r - N_ADDITIVE]);
    }
    __syncwarp();
    Best best = {-(1ll << 62), 0, -1, 0};
    i64 plain = 0, brought[ROOM];
    for (i32 c = 0; c < ROOM; ++c) brought[c] = 0;
#pragma unroll 1
    for (i32 base = 0; base < n_parts; base += 32) {
        const Finds finds(work, gathered, shared, reached[base >> 5], base);
#pragma unroll 1
        for (u32 left = finds.some; left != 0; left &= left - 1) {
            const i32 k = __ffs(static_cast<i32>(left)) - 1, p = base + k;
            const i64 found = __shfl_sync(ALL_LANES, finds.value, k) + (finds.outward >> k & 1 ? value_of_out : 0);
            i64 gain = found - node.here + relief;
            bool may = asks && p != a && found != 0 && gain >= best.value;
            may &= gain >= 0 || gain * 64 >= -prices.slack * node.here;
            if (__ballot_sync(ALL_LANES, may) == 0) continue;
            i64 added[ROOM];
            added[0] = 0;
            for (i32 c = 0; c < N_DISTINCT; ++c) added[c] = node.total[c] - __shfl_sync(ALL_LANES, finds.counts[c], k);
            for (i32 r = 0; r < N_LOADS; ++r) {
                const i64 more = r < N_ADDITIVE ? work.additive(v, r) : added[r < N_ADDITIVE ? 0 : r - N_ADDITIVE];
                const i64 over = __shfl_sync(ALL_LANES, finds.held[r], k) + more - in.limits[r];
                if (over > 0) gain -= prices.of[r] * smaller(over, more);
            }
            const u64 tie = scramble(static_cast<u64>(work.name_of(p) * 1000003 + v), static_cast<u64>(prices.seed));
            const Best candidate = {gain, tie, p, 0};
            if (!may || !best.below(candidate)) continue;
            best = candidate;
            plain = found - node.here;
            for (i32 c = 0; c < N_DISTINCT; ++c) brought[c] = added[c];
        }
    }
    const bool moves = best.id >= 0 && best.value * 64 >= -prices.slack * node.here;
    const u32 movers = __ballot_sync(ALL_LANES, moves);
    if (movers == 0) return;
    i64 place = lane == 0 ? static_cast<i64>(atomicAdd(&work.counters().n_proposed, static_cast<u64>(__popc(movers)))) : 0;
    place = __shfl_sync(ALL_LANES, place, 0) + __popc(movers & ((1u << lane) - 1));
    if (moves) offer<KIND>(work, node, best, plain, brought, place);
    list_nets_of(work, warp, first, TOUCHED);
    __syncwarp();
}

// Proposals of all segments: those whose nets touch no other part than their own have none.
template <Kind KIND>
__device__ __noinline__ void propose_by_segments(const Work& work, const Prices& prices, i32 width) {
    const Rounds& in = work.in;
    const auto asks = [&](i64 i) { return at_border(work, in.segments[i]); };
    for_asking(Warp(), static_cast<i64>(in.progress->n_segments), asks, [&](i64 i) {
        const i32 v = in.segments[i];
        if (!is_single(work, v))
            propose_twins<KIND>(work, prices, v);
        else if (!(KIND == ALONE && in.moved[v] == work.turn))
            propose<KIND>(work, Warp(), prices, v, width);
    });
}

#endif
