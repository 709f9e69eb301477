// Coarsening by matching: the best neighbours of each node. The twin is `rate_neighbours` in
// snnmap/partitioning/multilevel/_kernels_match.py; both give the same integers.
#include "common.cuh"
#include "rating.cuh"

const i32 MAX_THREADS = 256;  // of a block

struct Neighbourhoods {
    Incidence around;
    const i64 *counts, *loads, *limits;
    const i32 *borders;
    i64 candidates;
    i32 *neighbours;
    i64 *scores;
};

// visits[v] = most neighbours that v's rating inserts.
// Parallel over nodes, a warp each; reads the nets of v and their sizes. Deterministic: integer sums.
extern "C" __global__ void count_neighbours(INCIDENCE_ARGUMENTS, i64 max_nets, i64 max_pins, i64 seed, i64 n,
                                            i64* visits) {
    const Incidence in = INCIDENCE;
    for (i64 v = Group<false>::index(); v < n; v += Group<false>::number()) {
        const i64 found = count_visits(in, v);
        if (Group<false>::rank() == 0) visits[v] = found;
    }
}

// The admissible neighbours that v shares most with, best first (see `rate_neighbours` in the twin),
// for the nodes of a list. gathered[u] = what they share, shared[u] = distinct loads that both have.
// Parallel over nodes (a group each), their nets and pins; sums in 12 + 8 * N_DISTINCT bytes a slot
// of shared memory (or scratch); the k-th best is the best below the one before it.
// Deterministic: integer sums, and maxima by (score, hash of the pair, neighbour).
template <bool BLOCK>
__device__ __forceinline__ void rate_rows(const Neighbourhoods& in, const i32* slots, const i32* list, i64 n,
                                          unsigned char* memory, i64 capacity) {
    const Sums gathered(memory, capacity);
    const Sums shared(gathered.high + capacity, N_DISTINCT * capacity);
    i32* keys = reinterpret_cast<i32*>(shared.high + N_DISTINCT * capacity);
    const i32 rank = Group<BLOCK>::rank(), size = Group<BLOCK>::size(), start = threadIdx.x - rank;
    __shared__ i32 picked_nets[MAX_THREADS];
    __shared__ i64 picked_scores[MAX_THREADS];
    __shared__ i32 picked_number[MAX_THREADS / 32];
    const Picks picks = {picked_nets + start, picked_scores + start, picked_number + (start >> 5)};
    const auto itself = [](i32 u) { return u; };
    for (i64 i = Group<BLOCK>::index(); i < n; i += Group<BLOCK>::number()) {
        const i32 v = list[i];
        const u32 mask = slots[v] - 1;
        for (u32 s = rank; s <= mask; s += size) {
            keys[s] = EMPTY;
            gathered.clear(s);
            for (i32 c = 0; c < N_DISTINCT; ++c) shared.clear(c * capacity + s);
        }
        Group<BLOCK>::sync();
        visit_neighbours<BLOCK>(in.around, v, picks, itself, [&](i32 u, i64 score, i32 g, bool both) {
            const u32 slot = claim(keys, mask, u);
            gathered.add(slot, score);
            for (i32 c = 0; both && c < N_DISTINCT; ++c)
                shared.add(c * capacity + slot, in.counts[static_cast<i64>(g) * N_DISTINCT + c]);
        });
        const i64* own = in.loads + static_cast<i64>(v) * N_LOADS;
        for (u32 s = rank; s <= mask; s += size) {  // only what v may join stays
            const i32 u = keys[s];
            if (u == EMPTY) continue;
            const i64* held = in.loads + static_cast<i64>(u) * N_LOADS;
            bool fits = u != v && in.borders[u] == in.borders[v];
            for (i32 r = 0; r < N_LOADS; ++r) {
                const i32 c = r < N_ADDITIVE ? 0 : r - N_ADDITIVE;
                const i64 both = r < N_ADDITIVE ? 0 : shared.get(c * capacity + s);
                fits &= held[r] + own[r] - both <= in.limits[r];
            }
            if (!fits) keys[s] = EMPTY;
        }
        Best last = {0x7FFFFFFFFFFFFFFFll, 0, -1, 0};
        for (i64 k = 0; k < in.candidates; ++k) {
            Best best = {0, 0, -1, 0};
            for (u32 s = rank; s <= mask && (k == 0 || last.id >= 0); s += size) {
                const i32 u = keys[s];
                if (u == EMPTY) continue;
                const i64 score = gathered.get(s);
                if (score < best.value || score > last.value) continue;
                const u64 pair = static_cast<u64>(smaller(u, v)) << 32 | static_cast<u64>(larger(u, v));
                const Best candidate = {score, scramble(pair, static_cast<u64>(in.around.seed)), u, s};
                if (best.below(candidate) && candidate.below(last)) best = candidate;
            }
            last = best_of_group<BLOCK>(best);
            if (rank == 0) {
                in.neighbours[v * in.candidates + k] = last.id;
                in.scores[v * in.candidates + k] = last.value;
            }
        }
        Group<BLOCK>::sync();
    }
}

const i64 NEIGHBOUR_BYTES = 12 + 8 * N_DISTINCT;  // of a slot

#define NEIGHBOUR_ARGUMENTS                                                                                  \
    INCIDENCE_ARGUMENTS, const i64 *counts, const i64 *loads, const i64 *limits, const i32 *borders,         \
        i64 max_nets, i64 max_pins, i64 seed, i64 candidates, i32 *neighbours, i64 *scores, const i32 *slots, \
        const i32 *list, const u64 *length, i64 capacity
#define NEIGHBOURHOODS {INCIDENCE, counts, loads, limits, borders, candidates, neighbours, scores}

// One warp for each node of list 0.
extern "C" __global__ void rate_neighbours_warp(NEIGHBOUR_ARGUMENTS) {
    DYNAMIC_SHARED(memory);
    const Neighbourhoods in = NEIGHBOURHOODS;
    rate_rows<false>(in, slots, list, *length, memory + (threadIdx.x >> 5) * capacity * NEIGHBOUR_BYTES, capacity);
}

// One block for each node of list 1 or 2 (scratch null) or 3.
extern "C" __global__ void rate_neighbours_block(NEIGHBOUR_ARGUMENTS, unsigned char* scratch) {
    DYNAMIC_SHARED(memory);
    const Neighbourhoods in = NEIGHBOURHOODS;
    if (scratch == nullptr)
        rate_rows<true>(in, slots, list, *length, memory, capacity);
    else
        rate_rows<true>(in, slots, list, *length, scratch + blockIdx.x * capacity * NEIGHBOUR_BYTES, capacity);
}
