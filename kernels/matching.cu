// Coarsening by matching: the best neighbours of each node, and a matching of the largest weight in
// the pseudo-forest of their proposals. The twins are in
// snnmap/partitioning/multilevel/_kernels_match.py and give the same integers.
#include "common.cuh"
#include "rating.cuh"

// ------------------------------------------------------------------------------------ neighbours

struct Neighbourhoods {
    Incidence around;
    const i64 *counts, *loads, *limits;
    const i32 *borders;
    i64 candidates;
    i32 *neighbours;
    i64 *scores;
};

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
    const i32 rank = Group<BLOCK>::rank(), size = Group<BLOCK>::size();
    for (i64 i = Group<BLOCK>::index(); i < n; i += Group<BLOCK>::number()) {
        const i32 v = list[i];
        const u32 mask = slots[v] - 1;
        for (u32 s = rank; s <= mask; s += size) {
            keys[s] = EMPTY;
            gathered.clear(s);
            for (i32 c = 0; c < N_DISTINCT; ++c) shared.clear(c * capacity + s);
        }
        Group<BLOCK>::sync();
        visit_neighbours<BLOCK>(in.around, v, [&](i32 u, i64 score, i32 g, bool both) {
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

// ------------------------------------------------------------------------------------ matching
//
// targets[v] = the other end of v's one edge, of weight weights[v] > 0, or -1: trees that hang on roots
// or on cycles. gains[v] = max(0, max over tree children c of weights[c] - gains[c]) is what v wins by
// taking a child. One launch each: count children, peel the trees, choose children, match cycles,
// match chains.

// children[targets[v]] += 1.
// Parallel over nodes; one atomic each. Deterministic: counts.
extern "C" __global__ void count_children(const i32* targets, i64 n, i32* children) {
    const i64 v = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (v < n && targets[v] >= 0) atomicAdd(children + targets[v], 1);
}

// gains of all tree nodes and of what hangs on cycles; left (at first a copy of children) ends as 1
// on cycles and 0 elsewhere.
// Parallel over leaves; the thread that brings a node its last child goes on from there, so every
// edge is walked once. Deterministic: a maximum over all children, complete before it is read.
extern "C" __global__ void peel_trees(const i32* targets, const i64* weights, i64 n, const i32* children,
                                      i32* left, i64* gains) {
    const i64 leaf = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (leaf >= n || children[leaf] != 0) return;
    i32 v = static_cast<i32>(leaf);
    while (targets[v] >= 0) {
        const i32 parent = targets[v];
        atomicMax(gains + parent, weights[v] - *const_cast<volatile i64*>(gains + v));
        __threadfence();  // all children's maxima are there before the last one is counted
        if (atomicAdd(left + parent, -1) != 1) return;
        __threadfence();
        v = parent;
    }
}

// choices[v] = the tree child with the smallest id that gives gains[v] > 0 (at first -1, as unsigned
// the largest).
// Parallel over nodes; at most one atomic each. Deterministic: a minimum.
extern "C" __global__ void choose_children(const i32* targets, const i64* weights, i64 n, const i32* left,
                                           const i64* gains, u32* choices) {
    const i64 v = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (v >= n || left[v] != 0 || targets[v] < 0) return;
    const i64 value = weights[v] - gains[v];
    if (value > 0 && value == gains[targets[v]]) atomicMin(choices + targets[v], static_cast<u32>(v));
}

// The best edges of each cycle, by dynamic programming without and with the edge that closes it
// (bits 0 and 1 of flags; see the twin). before[v] = the node before v on its cycle.
// Parallel over cycle nodes: a thread follows its cycle until it meets a smaller id; the thread of
// the smallest one does the work. With symmetric ratings all cycles have two nodes. Deterministic:
// one thread a cycle.
extern "C" __global__ void match_cycles(const i32* targets, const i64* weights, i64 n, const i32* left,
                                        const i64* gains, i32* before, unsigned char* flags, i32* partners) {
    const i64 start = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (start >= n || left[start] == 0) return;
    const i32 leader = static_cast<i32>(start);
    i32 v = targets[leader];
    while (v > leader) v = targets[v];
    if (v != leader) return;
    i64 best = 0, last = 0, closed = 0, closed_last = 0, closing = 0;
    for (bool first = true;; first = false) {
        const i32 u = targets[v];
        before[u] = v;
        const i64 worth = weights[v] - gains[v] - gains[u];
        if (u == leader) {
            closing = worth;
            break;
        }
        const bool take = last + worth > best;
        const bool take_closed = !first && targets[u] != leader && closed_last + worth > closed;
        flags[v] = (take ? 1 : 0) | (take_closed ? 2 : 0);
        const i64 next = take ? last + worth : best;
        last = best;
        best = next;
        if (!first && targets[u] != leader) {
            const i64 next_closed = take_closed ? closed_last + worth : closed;
            closed_last = closed;
            closed = next_closed;
        }
        v = u;
    }
    i32 bit = 1;
    if (closing + closed > best) {
        bit = 2;
        partners[v] = leader;
        partners[leader] = v;
    }
    while (v != leader) {
        v = before[v];
        const i32 u = targets[v];
        if ((flags[v] & bit) != 0 && partners[u] < 0 && partners[v] < 0) {
            partners[v] = u;
            partners[u] = v;
        }
    }
}

// partners of tree nodes: along a chain of choices every second edge is taken, the first one if the
// chain's top is not matched on its cycle.
// Parallel over the tops of chains; every node is on one chain. Pure map.
extern "C" __global__ void match_chains(const i32* targets, const i32* choices, i64 n, i32* partners) {
    const i64 top = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (top >= n || (targets[top] >= 0 && choices[targets[top]] == top)) return;
    i32 v = static_cast<i32>(top);
    for (bool free = partners[v] < 0; v >= 0; free = !free) {
        const i32 chosen = choices[v];
        if (free && chosen >= 0) {
            partners[v] = chosen;
            partners[chosen] = v;
        }
        v = chosen;
    }
}
