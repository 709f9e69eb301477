// Parallel coarsening: nodes join clusters in a few turns. The twin is `cluster_in_turns` of
// snnmap/partitioning/multilevel/coarsening.py; both give the same integers.
//
// One cooperative launch, which needs no lists by node. First the nets that each node will look at are picked: those of
// small hashes, the same few for all nodes. In each turn these nets list the clusters of their pins that somebody may
// join. A node of that turn gathers scores for what its nets list, by a warp's hash table; or, where that has no room, by
// a block's, or by sums for a range of clusters after the other. Then each cluster takes its suitors by score while it
// stays within its limits.
#include "common.cuh"
#include "grid.cuh"
#include "block.cuh"
#include "rating.cuh"
#include "cluster_nets.cuh"
#include "cluster_table.cuh"
#include "cluster_rating.cuh"

// The most that a cluster may weigh, and the least that a node does.
struct Sizes {
    i64 cap, least;
};

// ------------------------------------------------------------------------------------ joining

// Accepts the suitors of cluster u in the order of ids[0 : n] while there is room for all of them; a
// warp. Nobody wants a suitor as a cluster, so nobody else looks at its loads.
__device__ __forceinline__ void accept(const Clustering& in, i32 u, const i32* ids, i64 n, const Sizes& sizes) {
    const i32 lane = threadIdx.x & 31;
    i64 taken[N_LOADS], room[N_LOADS];
    for (i32 r = 0; r < N_LOADS; ++r) {
        taken[r] = 0;
        room[r] = smaller(in.limits[r], r == 0 ? sizes.cap : 1ll << 60) - own_load(in, u, r);
    }
    u32 accepted = ALL_LANES;
    bool any = false;
#pragma unroll 1
    for (i64 i = lane; accepted == ALL_LANES; i += 32) {
        const i32 v = i < n ? ids[i] : -1;
        bool fits = v >= 0;
        i64 totals[N_LOADS];
        for (i32 r = 0; r < N_LOADS; ++r) {
            totals[r] = taken[r] + scan_warp(v >= 0 ? own_load(in, v, r) : 0);
            fits &= totals[r] <= room[r];
        }
        accepted = __ballot_sync(ALL_LANES, fits);
        if (accepted == 0) break;
        any = true;
        for (i32 r = 0; r < N_LOADS; ++r) taken[r] = __shfl_sync(ALL_LANES, totals[r], __popc(accepted) - 1);
        if (!fits) continue;
        in.leaders[v] = u;
        in.turns[v] = SETTLED;
    }
    __syncwarp();
    if (lane == 0) in.n_suitors[u] = 0;  // for the next turn
    if (lane != 0 || !any) return;
    for (i32 r = 0; r < N_LOADS; ++r) in.loads[static_cast<i64>(u) * N_LOADS + r] += taken[r];
    in.turns[u] = taken[0] + sizes.least > room[0] ? FULL : SETTLED;
}

// Everybody alone, with its turn and loads; the nets that it will look at.
__device__ __forceinline__ void begin(const Clustering& in, const Grid& grid) {
    i64 size = 0, largest = 0, smallness = ~((1ll << 62) - 1), total;
#pragma unroll 1
    for (i64 v = grid.thread(); v < in.n_nodes; v += grid.n_threads()) {
        in.leaders[v] = static_cast<i32>(v);
        in.turns[v] = static_cast<i32>(mix64(static_cast<u64>(v) + in.salt) % static_cast<u64>(in.n_turns));
        for (i32 r = 0; r < N_ADDITIVE; ++r) in.loads[v * N_LOADS + r] = in.resources[v * N_ADDITIVE + r];
        size += in.resources[v * N_ADDITIVE];
        largest = larger(largest, in.resources[v * N_ADDITIVE]);
        smallness = larger(smallness, ~in.resources[v * N_ADDITIVE]);
    }
    grid.sum_before(size, total);
    if (threadIdx.x == 0) atomicAdd(in.state + TOTAL_SIZE, static_cast<u64>(total));
    for (i32 step = 16; step > 0; step >>= 1) {
        largest = larger(largest, __shfl_xor_sync(ALL_LANES, largest, step));
        smallness = larger(smallness, __shfl_xor_sync(ALL_LANES, smallness, step));
    }
    if ((threadIdx.x & 31) == 0) {
        atomicMax(in.state + LARGEST, static_cast<u64>(largest));
        atomicMax(in.state + SMALLNESS, static_cast<u64>(smallness));
    }
    count_nets(in, grid);
}

__device__ __forceinline__ Sizes find_sizes(const Clustering& in) {
    const i64 average = static_cast<i64>(in.state[TOTAL_SIZE]) / larger(in.n_nodes, 1);
    const i64 cap = static_cast<i64>(__dmul_rn(static_cast<double>(average), in.growth));
    return {smaller(larger(cap, static_cast<i64>(in.state[LARGEST])), in.limits[0]), static_cast<i64>(~in.state[SMALLNESS])};
}

// Nodes by turn and by who rates them: where nodes are few, half of all warps, with twice the room. Nobody can join or be
// joined by who leaves no room for the smallest.
__device__ __forceinline__ void list_nodes(const Clustering& in, const Grid& grid, const Sizes& sizes) {
    const i64 lane = threadIdx.x & 31, most_short = 64 * in.n_nodes > in.n_turns * grid.n_threads() ? WIDE_VISITS : 0;
#pragma unroll 1
    for (i64 base = grid.thread() - lane; base < in.n_nodes; base += grid.n_threads()) {
        const i64 v = base + lane, visits = v < in.n_nodes ? in.visits[v] : 0;
        const i32 kind = visits < most_short ? SHORT : WIDE;
        i32 turn = -1;
        if (v < in.n_nodes && own_load(in, v, 0) + sizes.least > sizes.cap)
            in.turns[v] = FULL;
        else if (visits > 0)
            turn = in.turns[v];
#pragma unroll 1
        for (i32 k = 0; k < N_KINDS; ++k)
#pragma unroll 1
            for (i32 t = 0; t < in.n_turns; ++t)
                list_ids(kind == k && turn == t, static_cast<i32>(v), list_of(in, k, t), &n_listed(in, k, t));
    }
}

// Room for the suitors of each cluster, and lists of the clusters that have some.
__device__ __forceinline__ void make_room(const Clustering& in, const Grid& grid, u64* counters) {
    const i64 lane = threadIdx.x & 31;
#pragma unroll 1
    for (i64 base = grid.thread() - lane; base < in.n_nodes; base += grid.n_threads()) {
        const i64 u = base + lane, n = u < in.n_nodes ? in.n_suitors[u] : 0, up_to = scan_warp(n);
        const i64 all = __shfl_sync(ALL_LANES, up_to, 31);
        if (all == 0) continue;
        i64 first = 0;
        if (lane == 0) first = static_cast<i64>(atomicAdd(counters, static_cast<u64>(all)));
        first = __shfl_sync(ALL_LANES, first, 0) + up_to;
        if (n != 0) in.ends[u] = first - n;
        list_ids(n != 0 && n <= SHORT_ROW, static_cast<i32>(u), in.wanted, counters + 1);
        list_ids(n > SHORT_ROW, static_cast<i32>(u), in.wanted + in.n_nodes, counters + 2);
    }
}

// Every cluster takes its suitors, the best score first, then the smallest id.
__device__ __forceinline__ void join_turn(const Clustering& in, Grid& grid, i64 turn, const Sizes& sizes) {
    u64* counters = suitors_in(in, turn);
    make_room(in, grid, counters);
    grid.meet();
#pragma unroll 1
    for (i64 kind = 0; kind < N_KINDS; ++kind) {
        const i64 n = static_cast<i64>(n_listed(in, kind, turn));
#pragma unroll 1
        for (i64 i = grid.thread(); i < n; i += grid.n_threads()) {
            const i32 v = list_of(in, kind, turn)[i], u = in.turns[v] == turn ? in.targets[v] : -1;
            if (u < 0) continue;
            in.suitors[atomicAdd(reinterpret_cast<u64*>(in.ends + u), 1ull)] = v;
        }
    }
    grid.meet();
    const auto before = [&](i32 a, i32 b) {
        const i64 score = in.scores[a], other = in.scores[b];
        return score != other ? score > other : a < b;
    };
    i32* ids = reinterpret_cast<i32*>(grid.own_words());
#pragma unroll 1
    for (i64 i = grid.thread() >> 5; i < static_cast<i64>(counters[1]); i += grid.n_threads() >> 5) {
        const i32 u = in.wanted[i];
        const i64 n = in.n_suitors[u], first = in.ends[u] - n;
#pragma unroll 1
        for (i64 k = threadIdx.x & 31; k < n; k += 32) ids[k] = in.suitors[first + k];
        __syncwarp();
        sort_ids<false>(ids, n, before);
        accept(in, u, ids, n, sizes);
        __syncwarp();
    }
    for_long_rows(in.wanted + in.n_nodes, counters + 2, [&](i64 u) {
        const i64 n = in.n_suitors[u], first = in.ends[u] - n;
        sort_ids<true>(in.suitors + first, n, before);
        if (threadIdx.x < 32) accept(in, static_cast<i32>(u), in.suitors + first, n, sizes);
    });
    grid.meet();
}

#define CLUSTERING_ARGUMENTS                                                                                    \
    INCIDENCE_ARGUMENTS, const i64 *counts, const i64 *resources, const i64 *limits, const i32 *borders,        \
        i64 n_nodes, i64 n_nets, i64 n_pins, i64 n_sources, i64 n_turns, i64 max_nets, i64 max_pins, i64 seed,  \
        i64 salt, i64 growth, u64 *state, i64 *n_suitors, i64 *loads, i64 *visits, i32 *degrees, i32 *n_picks,  \
        u8 *asked, i32 *picks, Offer *offers, i64 *pick_ends, i64 *ends, i64 *totals, i64 *scores, i32 *turns,  \
        i32 *targets, i32 *suitors, i32 *leaders, i32 *lists, i32 *wanted, i32 *kept, i32 *clusters
#define CLUSTERING                                                                                             \
    {INCIDENCE, counts, resources, limits, borders, n_nodes, n_nets, n_pins, n_sources, n_turns,               \
     static_cast<u64>(salt), __longlong_as_double(growth), state, n_suitors, loads, visits, degrees, n_picks,  \
     asked, picks, offers, pick_ends, ends, totals, scores, turns, targets, suitors, leaders, lists, wanted,    \
     kept, clusters}

// clusters[v] = number of v's cluster, numbered by their leaders; state[N_CLUSTERS] = how many.
// Parallel over pins, then in each turn over the nets that are looked at and their pins, over nodes (a warp each), their
// picked nets and what these offer, and over clusters and their suitors. Gathers leaders (cached). Deterministic: integer sums, a maximum by (score, hash, cluster), sorted suitors.
extern "C" __launch_bounds__(1024, 1) __global__ void cluster_nodes(CLUSTERING_ARGUMENTS, i64 n_bytes) {
    DYNAMIC_SHARED(memory);
    const Clustering in = CLUSTERING;
    Grid grid(in.state, memory, n_bytes);
    u32* own = grid.words + 2 * WARP_SLOTS * (threadIdx.x >> 5);
    begin(in, grid);
    grid.meet();
    set_bars(in, grid);
    grid.meet();
    count_picks(in, grid);
    grid.meet();
    const Sizes sizes = find_sizes(in);
    list_nodes(in, grid, sizes);
    place_picks(in, grid);
    make_offers(in, grid);
    grid.meet();
    pick_nets(in, grid);
#pragma unroll 1
    for (i64 turn = 0; turn < in.n_turns; ++turn) {
        renew_offers(in, grid, own, turn);
        grid.meet();
        rate_turn(in, grid, turn, sizes.cap);
        grid.meet();
        join_turn(in, grid, turn, sizes);
    }
    i32* numbers = in.targets;  // of which nobody has any more
    const auto leads = [&](i64 v) { return static_cast<i64>(in.leaders[v] == v); };
    grid.sum_share(in.totals, n_nodes, leads);
    grid.meet();
    const i64 n_clusters = grid.scan_share(in.totals, n_nodes, leads, [&](i64 v, i64, i64 place) {
        numbers[v] = static_cast<i32>(place);
    });
    if (grid.thread() == 0) in.state[N_CLUSTERS] = n_clusters;
    grid.meet();
#pragma unroll 1
    for (i64 v = grid.thread(); v < n_nodes; v += grid.n_threads()) in.clusters[v] = numbers[in.leaders[v]];
}
