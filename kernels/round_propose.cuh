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

const i32 COLUMNS = 8;  // places of a node that are read at once

// The best of what slices of the parts give to 32 nodes, one a lane: each slice is a warp's, `lists` those of their warps.
struct Bests {
    i64 values[32];
    u64 ties[32];
    i32 ids[32];

    static __device__ __forceinline__ Bests& of(const Desk& desk, i32 warp) { return *reinterpret_cast<Bests*>(desk.lists + warp * desk.warp_bytes); }
    __device__ __forceinline__ void set(const Best& best) {
        const i32 lane = threadIdx.x & 31;
        values[lane] = best.value;
        ties[lane] = best.tie;
        ids[lane] = best.id;
    }
    __device__ __forceinline__ Best get() const {
        const i32 lane = threadIdx.x & 31;
        return {values[lane], ties[lane], ids[lane], 0};
    }
};

// Looks at the parts from `begin` on before `end` for a node. Of 32 first those are found that are worth what keeps it where it is,
// few of a partition that is nearly final.
__device__ __forceinline__ void look_at_parts(const Work& work, const Prices& prices, bool given, const Standing& node, i32 begin, i32 end, Choice& choice) {
    const Rounds& in = work.in;
    const i64 n = in.n_nodes;
#pragma unroll 1
    for (i32 first = begin; first < end; first += 32) {
        u32 asking = 0;
#pragma unroll 1
        for (i32 some = first; some < smaller(first + 32, end); some += COLUMNS) {
            i64 words[COLUMNS];
#pragma unroll
            for (i32 k = 0; k < COLUMNS; ++k) words[k] = some + k < end ? *found_by(in, node.v, some + k) : 0;
#pragma unroll
            for (i32 k = 0; k < COLUMNS; ++k)
                if (given && choice.asks(prices, node, some + k, Place::value_of(words[k]))) asking |= 1u << (some + k - first);
        }
        while (__ballot_sync(ALL_LANES, asking != 0) != 0) {
            if (asking == 0) continue;
            const i32 p = first + __ffs(static_cast<i32>(asking)) - 1;
            asking &= asking - 1;
            const Place place(found_by(in, node.v, p), n);
            if (choice.asks(prices, node, p, place.value)) choice.weigh_place(work, prices, node, p, place);
        }
    }
}

// The same where it is kept what nodes find, whatever their nets: a thread a node, of several warps where nodes are few and parts
// many, which look at a slice of the parts each.
template <Kind KIND>
__device__ __noinline__ void propose_by_tables(const Work& work, const Prices& prices) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    const i64 n = in.n_nodes, lane = Warp().rank(), n_groups = (n + 31) / 32;
    const i32 n_warps = static_cast<i32>(blockDim.x >> 5), n_parts = desk.n_parts;
    i32 slices = 1;
    while (2 * slices <= n_warps && 2 * slices * COLUMNS <= n_parts && n_groups * slices < 4 * Warp().number()) slices *= 2;
    const i32 slice = Warp().place() % slices, each = (n_parts + slices - 1) / slices;
    const i32 begin = slice * each, end = begin + each < n_parts ? begin + each : n_parts;
#pragma unroll 1
    for (i64 first = blockIdx.x * (n_warps / slices); first < n_groups; first += gridDim.x * (n_warps / slices)) {
        const i64 base = 32 * (first + Warp().place() / slices);
        const i32 v = static_cast<i32>(smaller(base + lane, n - 1));
        const bool given = base + lane < n && !rests<KIND>(work, v);
        const Standing node = standing_of(in, v, Place::value_of(*found_by(in, v, in.parts[v])));
        Choice choice(work, prices, node);
        look_at_parts(work, prices, given, node, begin, end, choice);
        if (slices > 1) {
            Bests::of(desk, Warp().place()).set(choice.best);
            __syncthreads();
        }
        if (slice == 0) {
#pragma unroll 1
            for (i32 other = 1; other < slices; ++other) {
                const Best best = Bests::of(desk, Warp().place() + other).get();
                if (choice.best.below(best)) choice.best = best;
            }
            if (slices > 1 && choice.best.id >= 0) choice.finds(node, Place(found_by(in, v, choice.best.id), n));
            offer_best<KIND>(work, prices, given, node, choice);
        }
        if (slices > 1) __syncthreads();
    }
}

// Proposals of all nodes by what their nets sum up to.
template <Kind KIND>
__device__ __forceinline__ void propose_by_nets(Work& work, const Prices& prices) {
    const Rounds& in = work.in;
    const Team team = {static_cast<i32>(in.node_warps)};
    const u64 n_entries = in.progress->n_entries;
    i32 width = 4;
    while (width < 32 && static_cast<u64>(width) * in.n_nets < n_entries) width *= 2;
    if (KIND != STRICT && work.finds) {
        pack_rows(work);
        meet(work);
    }
    if (in.progress->n_long_nodes != 0) propose_by_teams<KIND>(work, Team::of_block(), prices, width, true);
    __syncthreads();
    if (KIND != STRICT && work.finds && apart(in))
        propose_by_gathering<KIND, true>(work, prices, width);
    else if (KIND != STRICT && work.finds)
        propose_by_gathering<KIND, false>(work, prices, width);
    else if (KIND != STRICT && in.segments.given())
        propose_by_segments<KIND>(work, prices, width);
    else if (team.warps > 1)
        propose_by_teams<KIND>(work, team, prices, width, false);
    else
        propose_by_warps<KIND>(work, prices, width);
}

// Proposals of all nodes but those that rest; how many want to come to and go from each part.
template <Kind KIND>
__device__ __forceinline__ void propose_all(Work& work, const Prices& prices) {
    const Desk& desk = work.desk;
    if (KIND != STRICT && work.tells)
        propose_by_tables<KIND>(work, prices);
    else
        propose_by_nets<KIND>(work, prices);
    __syncthreads();
#pragma unroll 1
    for (i32 p = threadIdx.x; p < desk.n_parts; p += blockDim.x) {
        if (desk.ins[p] != 0) add_to(work.wanted_in() + p, desk.ins[p]);
        if (desk.outs[p] != 0) add_to(work.wanted_out() + p, desk.outs[p]);
        desk.ins[p] = desk.outs[p] = 0;
    }
}

#endif
