// Coarsening by matching: a matching of the largest weight in a pseudo-forest. The twin is
// `match_forest` in snnmap/partitioning/multilevel/_kernels_match.py; both give the same integers.
//
// targets[v] = the other end of v's one edge, of weight weights[v] > 0, or -1: trees that hang on roots
// or on cycles. gains[v] = max(0, max over tree children c of weights[c] - gains[c]) is what v wins by
// taking a child. One launch each: count children, peel the trees, choose children, match cycles,
// match chains.
#include "common.cuh"

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
