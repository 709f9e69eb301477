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

// The same where it is kept what nodes find, whatever their nets: a thread a node. Of 32 parts first those are found that
// are worth what keeps it where it is, few of a partition that is nearly final.
template <Kind KIND>
__device__ __noinline__ void propose_by_tables(const Work& work, const Prices& prices) {
    const Rounds& in = work.in;
    const i64 n = in.n_nodes, lane = Warp().rank();
    const i64* loads = work.loads(work.measured);
#pragma unroll 1
    for (i64 base = 32 * Warp().index(); base < n; base += work.n_threads()) {
        const i32 v = static_cast<i32>(smaller(base + lane, n - 1)), a = in.parts[v];
        const bool given = base + lane < n && !rests<KIND>(work, v);
        const Place there(found_by(in, v, a), n), all(found_by(in, v, in.n_parts), n), alone(found_by(in, v, in.n_parts + 1), n);
        Standing node = {v, a, there.value - alone.value, {0}, {0}};
        for (i32 c = 0; c < N_DISTINCT; ++c) {
            node.total[c] = all.counts[c];
            node.freed[c] = alone.counts[c];
        }
        Choice choice(work, prices, node);
#pragma unroll 1
        for (i32 first = 0; first < in.n_parts; first += 32) {
            u32 asking = 0;
#pragma unroll 1
            for (i32 some = first; some < smaller(first + 32, in.n_parts); some += COLUMNS) {
                i64 words[COLUMNS];
#pragma unroll
                for (i32 k = 0; k < COLUMNS; ++k) words[k] = some + k < in.n_parts ? *found_by(in, v, some + k) : 0;
#pragma unroll
                for (i32 k = 0; k < COLUMNS; ++k)
                    if (given && choice.asks(prices, node, some + k, Place::value_of(words[k]))) asking |= 1u << (some + k - first);
            }
            while (__ballot_sync(ALL_LANES, asking != 0) != 0) {
                if (asking == 0) continue;
                const i32 p = first + __ffs(static_cast<i32>(asking)) - 1;
                asking &= asking - 1;
                const Place place(found_by(in, v, p), n);
                if (!choice.asks(prices, node, p, place.value)) continue;
                i64 added[ROOM];
                for (i32 c = 0; c < N_DISTINCT; ++c) added[c] = node.total[c] - place.counts[c];
                choice.weigh(work, prices, node, p, place.value, added, loads + static_cast<i64>(p) * N_LOADS);
            }
        }
        offer_best<KIND>(work, prices, given, node, choice);
    }
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
    if (KIND != STRICT && in.segments.given())
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
        if (desk.ins[p] != 0) add_to(work.wanted_in() + p, desk.ins[p]);
        if (desk.outs[p] != 0) add_to(work.wanted_out() + p, desk.outs[p]);
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
