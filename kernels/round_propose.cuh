// Rounds in one launch: the best moves of all nodes.
#ifndef SNNMAP_ROUND_PROPOSE_CUH
#define SNNMAP_ROUND_PROPOSE_CUH

// Proposals of the nodes that are long, or of those that are not, by a team each.
template <Kind KIND>
__device__ __noinline__ void propose_by_teams(const Work& work, Team team, const Prices& prices, i32 width, bool only_long) {
    const Rounds& in = work.in;
    const i64 n = only_long ? static_cast<i64>(in.progress->n_long_nodes) : in.n_nodes;
    for (i64 i = team.index(); i < n; i += team.number()) {
        const i32 v = only_long ? in.long_nodes[i] : static_cast<i32>(i);
        if (!only_long && work.n_nets_of(v) > work.long_node()) continue;
        if (KIND == STRICT ? overfull(work, v) : !rests<KIND>(work, v) && (work.n_nets_of(v) > PARTLY || at_border_of(work, v)))
            propose<KIND>(work, team, prices, v, width);
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
            asks = KIND == STRICT ? overfull(work, v) : !rests<KIND>(work, v) && at_border(work, v);
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
    const auto asks = [&](i64 v) { return !rests<KIND>(work, v); };
    for_asking(Warp(), work.in.n_nodes, asks, [&](i64 v) {
        const i64 next = v + Warp().number();  // its row is on its way then
        for (i32 i = 16 * Warp().rank(); next < work.in.n_nodes && i < work.in.n_parts * PLACE_WORDS; i += 512)
            PREFETCH(found_by(work.in, next, 0) + i);
        propose_by_found<KIND>(work, prices, static_cast<i32>(v));
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
    if (KIND != STRICT && in.segments != nullptr)
        propose_by_segments<KIND>(work, prices, width);
    else if (team.warps > 1)
        propose_by_teams<KIND>(work, team, prices, width, false);
    else
        propose_by_warps<KIND>(work, prices, width);
}

// Proposals of all nodes but those that rest; how many want to come to and go from each part.
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
        if (desk.ins[p] != 0) add64(work.wanted_in() + p, desk.ins[p]);
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
