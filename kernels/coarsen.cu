// Parallel coarsening: which cluster a node would join. The twin is `rate_clusters` in
// snnmap/partitioning/multilevel/_kernels_coarsen.py; both give the same integers.
#include "common.cuh"
#include "rating.cuh"

// visits[v] = most clusters that v's rating inserts, -1 where v has no turn. targets[v] = -1.
// Parallel over nodes, a warp each; reads the nets of v and their sizes. Deterministic: integer sums.
extern "C" __global__ void count_visits(const i64* net_offsets, const i64* source_offsets,
                                        const i64* node_offsets, const i32* node_nets,
                                        const i64* out_offsets, const i32* out_nets, const bool* settled,
                                        const i32* turns, i64 turn, i64 max_nets, i64 max_pins, i64 seed,
                                        i64 n, i64* visits, i32* targets) {
    const i32 lane = Group<false>::rank();
    for (i64 v = Group<false>::index(); v < n; v += Group<false>::number()) {
        if (lane == 0) {
            visits[v] = -1;
            targets[v] = -1;
        }
        if (settled[v] || turns[v] != turn) continue;
        i64 found = 0;
        const i64 first = node_offsets[v], last = node_offsets[v + 1];
        u64 bar = bar_of(last - first, max_nets);
        for (i64 j = first + lane; j < last; j += 32) {
            const i32 g = node_nets[j];
            if (!looked_at(g, bar, seed)) continue;
            found += smaller(net_offsets[g + 1] - net_offsets[g], max_pins);
            found += smaller(source_offsets[g + 1] - source_offsets[g], max_pins);
        }
        const i64 first_out = out_offsets[v], last_out = out_offsets[v + 1];
        bar = bar_of(last_out - first_out, max_nets);
        for (i64 j = first_out + lane; j < last_out; j += 32) {
            const i32 g = out_nets[j];
            if (looked_at(g, bar, seed)) found += smaller(net_offsets[g + 1] - net_offsets[g], max_pins);
        }
        found = sum_warp(found);
        if (lane == 0) visits[v] = found;
    }
}

struct Ratings {
    Incidence around;
    const i32 *leaders;
    const bool *settled;
    const i64 *loads;
    i64 n_loads, cap;
    const i64 *limits;
    const i32 *turns, *borders;
    i64 turn;
    i32 *targets;
    i64 *scores;
};

// targets[v] = cluster that v shares most with, scores[v] = how much, for the nodes of a list:
// the sum over the nets looked at of (weight << 6) / pins + 1 for every pin or source looked at.
// Parallel over nodes (a group each), their nets and pins. Gathers leaders (cached), 12 bytes a slot
// of shared memory (or scratch). Deterministic: integer sums, and a maximum by (score, hash, cluster).
template <bool BLOCK>
__device__ __forceinline__ void rate_rows(const Ratings& in, const i32* slots, const i32* list, i64 n,
                                          unsigned char* memory, i64 capacity) {
    const Sums gathered(memory, capacity);
    i32* keys = reinterpret_cast<i32*>(memory) + 2 * capacity;
    const i32 rank = Group<BLOCK>::rank(), size = Group<BLOCK>::size();
    for (i64 i = Group<BLOCK>::index(); i < n; i += Group<BLOCK>::number()) {
        const i32 v = list[i];
        const u32 mask = slots[v] - 1;
        for (u32 s = rank; s <= mask; s += size) {
            keys[s] = EMPTY;
            gathered.clear(s);
        }
        Group<BLOCK>::sync();
        visit_neighbours<BLOCK>(in.around, v, [&](i32 u, i64 score, i32, bool) {
            gathered.add(claim(keys, mask, in.leaders[u]), score);
        });
        const i64* own = in.loads + static_cast<i64>(v) * in.n_loads;
        Best best = {0, 0, -1, 0};
        for (u32 s = rank; s <= mask; s += size) {
            const i32 u = keys[s];
            if (u == EMPTY || u == v) continue;
            const i64 score = gathered.get(s);
            if (score < best.value) continue;
            const u64 tie = scramble(static_cast<u64>(static_cast<i64>(u)), static_cast<u64>(in.around.seed + 1));
            const Best candidate = {score, tie, u, s};
            if (!best.below(candidate) || (in.turns[u] == in.turn && !in.settled[u])) continue;
            if (in.borders[u] != in.borders[v]) continue;
            const i64* held = in.loads + static_cast<i64>(u) * in.n_loads;
            bool fits = held[0] + own[0] <= in.cap;
            for (i64 r = 0; r < in.n_loads; ++r) fits &= held[r] + own[r] <= in.limits[r];
            if (fits) best = candidate;
        }
        best = best_of_group<BLOCK>(best);
        if (rank == 0) {
            in.targets[v] = best.id;
            in.scores[v] = best.value;
        }
        Group<BLOCK>::sync();
    }
}

#define RATING_ARGUMENTS                                                                                      \
    INCIDENCE_ARGUMENTS, const i32 *leaders, const bool *settled, const i64 *loads, i64 n_loads, i64 cap,     \
        const i64 *limits, const i32 *turns, const i32 *borders, i64 turn, i64 max_nets, i64 max_pins,        \
        i64 seed, i32 *targets, i64 *scores, const i32 *slots, const i32 *list, const u64 *length, i64 capacity
#define RATINGS {INCIDENCE, leaders, settled, loads, n_loads, cap, limits, turns, borders, turn, targets, scores}

// One warp for each node of list 0.
extern "C" __global__ void rate_clusters_warp(RATING_ARGUMENTS) {
    DYNAMIC_SHARED(memory);
    const Ratings in = RATINGS;
    rate_rows<false>(in, slots, list, *length, memory + (threadIdx.x >> 5) * capacity * 12, capacity);
}

// One block for each node of list 1 or 2 (scratch null) or 3.
extern "C" __global__ void rate_clusters_block(RATING_ARGUMENTS, unsigned char* scratch) {
    DYNAMIC_SHARED(memory);
    const Ratings in = RATINGS;
    if (scratch == nullptr)
        rate_rows<true>(in, slots, list, *length, memory, capacity);
    else
        rate_rows<true>(in, slots, list, *length, scratch + blockIdx.x * capacity * 12, capacity);
}
