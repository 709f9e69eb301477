// Parallel coarsening: nodes join clusters in a few turns. The twin is `cluster_in_turns` of
// snnmap/partitioning/multilevel/coarsening.py; both give the same integers.
//
// One cooperative launch. In its turn a node rates the clusters around it: a warp's hash table where it
// looks at few pins, else a block's: a hash table, or, where that has no room or more slots than there
// are clusters, sums for a range of clusters after the other. Then each cluster takes its suitors by
// score while it stays within its limits.
#include "common.cuh"
#include "grid.cuh"
#include "rating.cuh"

// Shared memory: after the scratch of the grid the picks of a block and its table; or for each warp its
// own picks and table.
const i32 WARP_SLOTS = 512, WARP_VISITS = 384;
const i32 WARP_PICK_BYTES = 32 * 12 + 16, WARP_BYTES = WARP_PICK_BYTES + 12 * WARP_SLOTS;
const i32 BLOCK_PICK_BYTES = GRID_THREADS * 12 + 16;

typedef unsigned char u8;

struct Clustering {
    Incidence around;
    const i64 *counts, *resources, *limits;
    const i32* borders;  // null: none
    i64 n_nodes, n_pins, n_turns;
    u64 salt;      // of the turns
    double growth; // a cluster weighs at most so many average nodes
    u64* state;    // gate, then the fields of Counter; zero
    i64* n_suitors;  // of each cluster; zero
    i64 *first_suitors, *totals, *loads, *scores;
    i32 *turns, *targets, *suitors, *list, *numbers, *leaders;
    u8* settled;
    i32* clusters;
};

// Words of `state` after the gate; from N_LISTED on two lengths of lists for each turn.
enum Counter { TOTAL_SIZE = GATE_WORDS, LARGEST, N_CLUSTERS, N_LISTED };

__device__ __forceinline__ i64 own_load(const Clustering& in, i64 v, i32 r) { return in.loads[v * N_LOADS + r]; }

// Whether cluster u, the best so far among those that score `score`, can take node v.
__device__ __forceinline__ bool can_join(const Clustering& in, i32 v, i32 u, i64 turn, i64 cap) {
    if (in.turns[u] == turn && !in.settled[u]) return false;
    if (in.borders != nullptr && in.borders[u] != in.borders[v]) return false;
    bool fits = own_load(in, u, 0) + own_load(in, v, 0) <= cap;
    for (i32 r = 0; r < N_LOADS; ++r) fits &= own_load(in, u, r) + own_load(in, v, r) <= in.limits[r];
    return fits;
}

// `best`, or cluster u if it is better and can take v.
__device__ __forceinline__ void consider(const Clustering& in, i32 v, i32 u, i64 score, i64 turn, i64 cap, Best& best) {
    if (u == v || score < best.value) return;
    const u64 tie = scramble(static_cast<u64>(static_cast<i64>(u)), static_cast<u64>(in.around.seed + 1));
    const Best candidate = {score, tie, u, 0};
    if (best.below(candidate) && can_join(in, v, u, turn, cap)) best = candidate;
}

// The best cluster around node v by a hash table of so many slots; of the threads' own slots.
template <bool BLOCK>
__device__ __forceinline__ Best rate_by_hash(const Clustering& in, i32 v, const Picks& picks, u32* memory, u32 n_slots,
                                             i64 turn, i64 cap) {
    const Sums gathered(memory, n_slots);
    i32* keys = reinterpret_cast<i32*>(memory) + 2 * n_slots;
    for (u32 s = Group<BLOCK>::rank(); s < n_slots; s += Group<BLOCK>::size()) {
        keys[s] = EMPTY;
        gathered.clear(s);
    }
    Group<BLOCK>::sync();
    visit_neighbours<BLOCK>(
        in.around, v, picks, [&](i32 u) { return in.leaders[u]; },
        [&](i32 u, i64 score, i32, bool) { gathered.add(claim(keys, n_slots - 1, u), score); });
    Best best = {0, 0, -1, 0};
    for (u32 s = Group<BLOCK>::rank(); s < n_slots; s += Group<BLOCK>::size())
        if (keys[s] != EMPTY) consider(in, v, keys[s], gathered.get(s), turn, cap, best);
    Group<BLOCK>::sync();
    return best;
}

// The same with a slot for every cluster of a range, one range after the other. A score is never 0.
__device__ __forceinline__ Best rate_by_ranges(const Clustering& in, i32 v, const Picks& picks, u32* memory, i64 n_slots,
                                               i64 turn, i64 cap) {
    const Sums gathered(memory, n_slots);
    Best best = {0, 0, -1, 0};
    for (i64 first = 0; first < in.n_nodes; first += n_slots) {
        const i64 n = smaller(n_slots, in.n_nodes - first);
        for (i64 s = threadIdx.x; s < n; s += blockDim.x) gathered.clear(s);
        __syncthreads();
        visit_neighbours<true>(
            in.around, v, picks, [&](i32 u) { return in.leaders[u]; },
            [&](i32 u, i64 score, i32, bool) {
                if (u >= first && u < first + n) gathered.add(u - first, score);
            });
        for (i64 s = threadIdx.x; s < n; s += blockDim.x) {
            const i64 score = gathered.get(s);
            if (score != 0) consider(in, v, static_cast<i32>(first + s), score, turn, cap, best);
        }
        __syncthreads();
    }
    return best;
}

// The best of all threads' candidates, for thread 0 of the block.
__device__ __forceinline__ Best best_of_block(const Grid& grid, Best best) {
    Best* bests = reinterpret_cast<Best*>(grid.scratch);
    const i32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    best = best_of_group<false>(best);
    if (lane == 0) bests[warp] = best;
    __syncthreads();
    if (warp == 0) best = best_of_group<false>(lane < blockDim.x >> 5 ? bests[lane] : best);
    __syncthreads();
    return best;
}

__device__ __forceinline__ void wish(const Clustering& in, i32 v, const Best& best) {
    in.targets[v] = best.id;
    in.scores[v] = best.value;
    if (best.id >= 0) add64(in.n_suitors + best.id, 1);
}

// Accepts the suitors of cluster u in the order of ids[0 : n] while there is room for all of them; a
// warp. Nobody wants a suitor as a cluster, so nobody else looks at its loads.
__device__ __forceinline__ void accept(const Clustering& in, i32 u, const i32* ids, i64 n, i64 cap) {
    const i32 lane = threadIdx.x & 31;
    i64 taken[N_LOADS], room[N_LOADS];
    for (i32 r = 0; r < N_LOADS; ++r) {
        taken[r] = 0;
        room[r] = smaller(in.limits[r], r == 0 ? cap : 1ll << 60) - own_load(in, u, r);
    }
    u32 accepted = ALL_LANES;
    bool any = false;
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
        in.settled[v] = 1;
    }
    __syncwarp();
    if (lane != 0 || !any) return;
    for (i32 r = 0; r < N_LOADS; ++r) in.loads[static_cast<i64>(u) * N_LOADS + r] += taken[r];
    in.settled[u] = 1;
}

// Everybody alone, with its turn and loads; returns the most that a cluster may weigh.
__device__ __forceinline__ i64 begin(const Clustering& in, Grid& grid) {
    i64 size = 0, largest = 0, total;
    for (i64 v = grid.thread(); v < in.n_nodes; v += grid.n_threads()) {
        in.leaders[v] = static_cast<i32>(v);
        in.settled[v] = 0;
        in.turns[v] = static_cast<i32>(mix64(static_cast<u64>(v) + in.salt) % static_cast<u64>(in.n_turns));
        for (i32 r = 0; r < N_LOADS; ++r)
            in.loads[v * N_LOADS + r] = r < N_ADDITIVE ? in.resources[v * N_ADDITIVE + r] : 0;
        size += in.resources[v * N_ADDITIVE];
        largest = larger(largest, in.resources[v * N_ADDITIVE]);
    }
    grid.sum_before(size, total);
    if (threadIdx.x == 0) atomicAdd(in.state + TOTAL_SIZE, static_cast<u64>(total));
    for (i32 step = 16; step > 0; step >>= 1) largest = larger(largest, __shfl_xor_sync(ALL_LANES, largest, step));
    if ((threadIdx.x & 31) == 0) atomicMax(in.state + LARGEST, static_cast<u64>(largest));
    grid.meet();
    for (i32 c = 0; c < N_DISTINCT; ++c)
        add_all_rows(grid, in.around.node_offsets, in.n_nodes, in.around.node_nets, in.n_pins,
                     in.loads + N_ADDITIVE + c, N_LOADS,
                     [&](i64, i32 net) { return static_cast<u64>(in.counts[static_cast<i64>(net) * N_DISTINCT + c]); });
    const i64 average = static_cast<i64>(in.state[TOTAL_SIZE]) / larger(in.n_nodes, 1);
    const i64 cap = static_cast<i64>(__dmul_rn(static_cast<double>(average), in.growth));
    grid.meet();
    return smaller(larger(cap, static_cast<i64>(in.state[LARGEST])), in.limits[0]);
}

// What the nodes of a turn wish: targets, scores and how many suitors every cluster has.
__device__ __forceinline__ void rate_turn(const Clustering& in, Grid& grid, unsigned char* memory, i64 turn, i64 cap) {
    const i32 lane = threadIdx.x & 31;
    u64* n_listed = in.state + N_LISTED + 2 * turn;
    unsigned char* own = memory + SCRATCH_BYTES + (threadIdx.x >> 5) * WARP_BYTES;
    i64* scores = reinterpret_cast<i64*>(own);
    const Picks own_picks = {reinterpret_cast<i32*>(scores + 32), scores, reinterpret_cast<i32*>(scores + 48)};
    for (i64 v = grid.thread() >> 5; v < in.n_nodes; v += grid.n_threads() >> 5) {
        if (in.settled[v] || in.turns[v] != turn) {
            if (lane == 0) in.targets[v] = -1;
            continue;
        }
        const i64 visits = count_visits(in.around, v);
        if (visits <= WARP_VISITS) {
            u32 n_slots = 32;
            while (3 * n_slots < 4 * visits) n_slots *= 2;
            u32* table = reinterpret_cast<u32*>(own + WARP_PICK_BYTES);
            const Best best = best_of_group<false>(
                rate_by_hash<false>(in, static_cast<i32>(v), own_picks, table, n_slots, turn, cap));
            if (lane == 0) wish(in, static_cast<i32>(v), best);
        } else if (lane == 0) {
            in.scores[v] = visits;
            in.list[atomicAdd(n_listed, 1ull)] = static_cast<i32>(v);
        }
    }
    grid.meet();
    i64* block_scores = reinterpret_cast<i64*>(memory + SCRATCH_BYTES);
    i32* nets = reinterpret_cast<i32*>(block_scores + GRID_THREADS);
    const Picks picks = {nets, block_scores, nets + GRID_THREADS};
    for_long_rows(in.list, n_listed, [&](i64 row) {
        const i32 v = static_cast<i32>(row);
        const i64 visits = in.scores[v];
        i64 n_slots = 32;
        while (3 * n_slots < 4 * visits) n_slots *= 2;
        const bool hashed = 3 * n_slots <= grid.n_words && 3 * n_slots <= 2 * in.n_nodes;
        Best best = hashed ? rate_by_hash<true>(in, v, picks, grid.words, static_cast<u32>(n_slots), turn, cap)
                           : rate_by_ranges(in, v, picks, grid.words, grid.n_words / 2, turn, cap);
        best = best_of_block(grid, best);
        if (threadIdx.x == 0) wish(in, v, best);
    });
    grid.meet();
}

// Every cluster takes its suitors, the best score first, then the smallest id.
__device__ __forceinline__ void join_turn(const Clustering& in, Grid& grid, i64 turn, i64 cap) {
    const auto suitors_of = [&](i64 u) { return in.n_suitors[u]; };
    grid.sum_share(in.totals, in.n_nodes, suitors_of);
    grid.meet();
    const i64 n_all = grid.scan_share(in.totals, in.n_nodes, suitors_of,
                                      [&](i64 u, i64, i64 place) { in.first_suitors[u] = place; });
    if (grid.thread() == 0) in.first_suitors[in.n_nodes] = n_all;
    grid.meet();
    for (i64 v = grid.thread(); v < in.n_nodes; v += grid.n_threads()) {
        const i32 u = in.targets[v];
        if (u < 0) continue;
        const u64 left = atomicAdd(reinterpret_cast<u64*>(in.n_suitors + u), ~0ull) - 1;
        in.suitors[in.first_suitors[u] + left] = static_cast<i32>(v);
    }
    grid.meet();
    const auto before = [&](i32 a, i32 b) {
        const i64 score = in.scores[a], other = in.scores[b];
        return score != other ? score > other : a < b;
    };
    u64* n_crowded = in.state + N_LISTED + 2 * turn + 1;
    for_short_rows(grid, in.first_suitors, in.n_nodes, in.list, n_crowded, [&](i64 u) {
        const i64 first = in.first_suitors[u], n = in.first_suitors[u + 1] - first;
        if (n == 0) return;
        i32* ids = reinterpret_cast<i32*>(grid.own_words());
        for (i64 i = threadIdx.x & 31; i < n; i += 32) ids[i] = in.suitors[first + i];
        __syncwarp();
        sort_ids<false>(ids, n, before);
        accept(in, static_cast<i32>(u), ids, n, cap);
        __syncwarp();
    });
    grid.meet();
    for_long_rows(in.list, n_crowded, [&](i64 u) {
        const i64 first = in.first_suitors[u], n = in.first_suitors[u + 1] - first;
        sort_ids<true>(in.suitors + first, n, before);
        if (threadIdx.x < 32) accept(in, static_cast<i32>(u), in.suitors + first, n, cap);
    });
    grid.meet();
}

#define CLUSTERING_ARGUMENTS                                                                                  \
    INCIDENCE_ARGUMENTS, const i64 *counts, const i64 *resources, const i64 *limits, const i32 *borders,      \
        i64 n_nodes, i64 n_pins, i64 n_turns, i64 max_nets, i64 max_pins, i64 seed, i64 salt, i64 growth,     \
        u64 *state, i64 *n_suitors, i64 *first_suitors, i64 *totals, i64 *loads, i64 *scores, i32 *turns,     \
        i32 *targets, i32 *suitors, i32 *list, i32 *numbers, i32 *leaders, u8 *settled, i32 *clusters
#define CLUSTERING                                                                                         \
    {INCIDENCE, counts, resources, limits, borders, n_nodes, n_pins, n_turns, static_cast<u64>(salt),      \
     __longlong_as_double(growth), state, n_suitors, first_suitors, totals, loads, scores, turns, targets, \
     suitors, list, numbers, leaders, settled, clusters}

// clusters[v] = number of v's cluster, numbered by their leaders; state[N_CLUSTERS] = how many.
// Parallel over nodes (a warp or a block each), their nets and pins, and over clusters and their suitors.
// Gathers leaders (cached). Deterministic: integer sums, a maximum by (score, hash, cluster), sorted
// suitors.
extern "C" __launch_bounds__(1024, 1) __global__ void cluster_nodes(CLUSTERING_ARGUMENTS, i64 n_bytes) {
    DYNAMIC_SHARED(memory);
    const Clustering in = CLUSTERING;
    Grid grid(in.state, memory, n_bytes);
    grid.words += BLOCK_PICK_BYTES / 4;
    const i64 cap = begin(in, grid);
    for (i64 turn = 0; turn < in.n_turns; ++turn) {
        rate_turn(in, grid, memory, turn, cap);
        join_turn(in, grid, turn, cap);
    }
    const auto leads = [&](i64 v) { return static_cast<i64>(in.leaders[v] == v); };
    grid.sum_share(in.totals, n_nodes, leads);
    grid.meet();
    const i64 n_clusters = grid.scan_share(in.totals, n_nodes, leads, [&](i64 v, i64, i64 place) {
        in.numbers[v] = static_cast<i32>(place);
    });
    if (grid.thread() == 0) in.state[N_CLUSTERS] = n_clusters;
    grid.meet();
    for (i64 v = grid.thread(); v < n_nodes; v += grid.n_threads()) in.clusters[v] = in.numbers[in.leaders[v]];
}
