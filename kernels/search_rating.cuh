// Turns in which the nodes of a small level join clusters: what is known of the level, and whom each would join
// best. Written into hierarchies.cu.
#ifndef SNNMAP_SEARCH_RATING_CUH
#define SNNMAP_SEARCH_RATING_CUH

const i32 WIDEST = 256;  // as in _kernels_cluster.py
const i64 ONE = 1 << 12;
const i32 ROUNDS = 12;
const i64 LOW = (1 << 20) - 1;
const double STALLED = 0.98, ENOUGH = 0.7;  // as in search.py
const i64 NEXT_TURN = 1009;

// Words of global memory that a crew shares, zero before: its gate, and what its first block tells the others.
const i32 STATE_LEFT = GATE_WORDS, STATE_LARGEST = GATE_WORDS + 1, STATE_WORDS = 2 * GATE_WORDS;

// The finest level, as `Level` of level.py has it.
struct Finest {
    Global<const i64> net_offsets;
    Global<const i32> net_pins;
    Global<const i64> source_offsets;
    Global<const i32> source_nodes;
    Global<const i64> source_weights, node_offsets;
    Global<const i32> node_nets;
    Global<const i64> out_offsets;
    Global<const i32> out_nets;
    Global<const i64> out_weights, net_weights, counts, resources;
    i64 n, n_nets, n_pins, n_sources;
};

#define FINEST_ARGUMENTS                                                                                      \
    const i64 *net_offsets, const i32 *net_pins, const i64 *source_offsets, const i32 *source_nodes,          \
        const i64 *source_weights, const i64 *node_offsets, const i32 *node_nets, const i64 *out_offsets,     \
        const i32 *out_nets, const i64 *out_weights, const i64 *net_weights, const i64 *counts,               \
        const i64 *resources, i64 n, i64 n_nets, i64 n_pins, i64 n_sources
#define FINEST                                                                                                \
    {net_offsets, net_pins, source_offsets, source_nodes, source_weights, node_offsets, node_nets,            \
     out_offsets, out_nets, out_weights, net_weights, counts, resources, n, n_nets, n_pins, n_sources}

// Blocks that work together and wait for each other.
struct Crew {
    u64* gate;
    i64 index, n_blocks;  // of this block; of the crew
    u64 n_gone;           // blocks that have passed the gate once the next meeting is over

    __device__ __forceinline__ Crew(u64* gate, i64 index, i64 n_blocks)
        : gate(gate), index(index), n_blocks(n_blocks), n_gone(0) {}
    __device__ __forceinline__ i64 thread() const { return index * blockDim.x + threadIdx.x; }
    __device__ __forceinline__ i64 n_threads() const { return n_blocks * blockDim.x; }

    // Wait for all blocks; what they wrote before is seen afterwards.
    __device__ __forceinline__ void meet() {
        __syncthreads();
        if (threadIdx.x == 0) {
            n_gone += n_blocks;
            __threadfence();
            atomicAdd(gate, 1ull);
            while (*const_cast<const volatile u64*>(gate) < n_gone) WAIT_A_LITTLE();
            __threadfence();
        }
        __syncthreads();
    }
};

// The level as it is after some turns, its nodes' wishes, and which of its nodes the finest ones are in.
struct Lists {
    Global<i32> net_pins, net_sizes;      // [n_pins] from each net's first place on, distinct; [n_nets] how many
    Global<i32> source_nodes;             // [n_sources]
    Global<i32> node_nets, out_nets;      // [n_pins], [n_sources] from node_firsts[v], out_firsts[v] on
    Global<i64> out_weights;              // [n_sources]
    Global<u32> node_firsts, node_sizes, out_firsts, out_sizes;  // [n]
    Global<i64> loads, next_loads;        // [n * N_LOADS] of each node alone; after this turn
    Global<double> factors;               // [n] of what it shares with others
    Global<i32> targets, numbers;         // [n] whom a node would join best; its cluster
    Global<i64> keys;                     // [n]
    Global<i32> common;                   // [n * N_DISTINCT] distinct loads that it shares with its target
    Global<i32> clusters;                 // [n] of the finest level

    __device__ __forceinline__ void swap_loads() {
        const Global<i64> before = loads;
        loads = next_loads;
        next_loads = before;
    }
};

__device__ Lists cut_lists(unsigned char*& memory, i64 n, i64 n_nets, i64 n_pins, i64 n_sources) {
    Lists l;
    l.net_pins.pointer = cut<i32>(memory, n_pins);
    l.net_sizes.pointer = cut<i32>(memory, n_nets);
    l.source_nodes.pointer = cut<i32>(memory, n_sources);
    l.node_nets.pointer = cut<i32>(memory, n_pins);
    l.out_nets.pointer = cut<i32>(memory, n_sources);
    l.out_weights.pointer = cut<i64>(memory, n_sources);
    l.node_firsts.pointer = cut<u32>(memory, n);
    l.node_sizes.pointer = cut<u32>(memory, n);
    l.out_firsts.pointer = cut<u32>(memory, n);
    l.out_sizes.pointer = cut<u32>(memory, n);
    l.loads.pointer = cut<i64>(memory, n * N_LOADS);
    l.next_loads.pointer = cut<i64>(memory, n * N_LOADS);
    l.factors.pointer = cut<double>(memory, n);
    l.targets.pointer = cut<i32>(memory, n);
    l.numbers.pointer = cut<i32>(memory, n);
    l.keys.pointer = cut<i64>(memory, n);
    l.common.pointer = cut<i32>(memory, n * N_DISTINCT);
    l.clusters.pointer = cut<i32>(memory, n);
    return l;
}

__device__ __forceinline__ double factor_of(i64 size) {
    return __ddiv_rn(1.0, __dsqrt_rn(static_cast<double>(larger(size, 1))));
}

// ------------------------------------------------------------------------------------ rating

// Pins or sources of a net of a node, all of which share `score` with it; sources their weight times it.
struct Segment {
    i32 first, length;
    i64 score;
    u32 counts[N_LOADS];  // distinct loads of a net that the node is a pin of
    i32 sources;          // whether these are sources
};

// The k-th segment of a node: pins of its nets, their sources, then pins of the nets that it is a source of.
__device__ __forceinline__ Segment segment_of(const Finest& f, const Lists& l, i32 v, i32 k) {
    Segment s = {0, 0, 0, {0}, 0};
    const i32 n_in = l.node_sizes[v], n_out = l.out_sizes[v];
    if (k >= 2 * n_in + n_out) return s;
    const bool pins = k < n_in;
    const i64 out = l.out_firsts[v] + k - 2 * n_in;
    s.sources = !pins && k < 2 * n_in;
    const i32 net = k < 2 * n_in ? l.node_nets[l.node_firsts[v] + (pins ? k : k - n_in)] : l.out_nets[out];
    const i32 size = l.net_sizes[net];
    if (size == 0 || size > WIDEST) return s;
    s.first = static_cast<i32>(s.sources ? f.source_offsets[net] : f.net_offsets[net]);
    s.length = s.sources ? static_cast<i32>(f.source_offsets[net + 1]) - s.first : size;
    s.score = ONE / size;
    if (s.sources) return s;
    i64 strength = (pins ? f.net_weights[net] : l.out_weights[out]) << 6;
    if (pins) {
        for (i32 d = 0; d < N_DISTINCT; ++d) s.counts[d] = static_cast<u32>(f.counts[static_cast<i64>(net) * N_DISTINCT + d]);
        if (N_DISTINCT > 0) strength += s.counts[0];
        if (size == 1) s.length = 0;  // itself
    }
    s.score *= strength;
    return s;
}

// A pin or source next to a node, and what both share by that; id EMPTY: none.
struct Tie {
    i32 id;
    i64 score;
    u32 counts[N_LOADS];
};

// The i-th of the pins of 32 segments, one of each lane; up_to: how many those of this lane and before it have.
__device__ __forceinline__ Tie tie_of(const Finest& f, const Lists& l, const Segment& own, i32 up_to, i32 i, i32 total) {
    i32 k = 0;
    for (i32 step = 16; step > 0; step >>= 1)
        if (__shfl_sync(ALL_LANES, up_to, k + step - 1) <= i) k += step;
    const i32 at = __shfl_sync(ALL_LANES, own.first - (up_to - own.length), k) + i;
    const bool sources = __shfl_sync(ALL_LANES, own.sources, k) != 0;
    Tie tie;
    tie.score = __shfl_sync(ALL_LANES, own.score, k);
    for (i32 d = 0; d < N_DISTINCT; ++d) tie.counts[d] = __shfl_sync(ALL_LANES, own.counts[d], k);
    tie.id = i >= total ? EMPTY : sources ? l.source_nodes[at] : l.net_pins[at];
    if (i < total && sources) tie.score *= f.source_weights[at] << 6;
    return tie;
}

// A warp's hash table of neighbours in its shared memory: what they share with a node. Its slots are left clear.
struct Neighbours {
    u32 n_slots;
    Sums scores;
    i32* ids;
    u32* used;    // [n_slots] slots that are taken
    u32* common;  // [N_DISTINCT * n_slots]

    __device__ __forceinline__ Neighbours(u32* memory, u32 n_slots)
        : n_slots(n_slots), scores(memory, n_slots), ids(reinterpret_cast<i32*>(memory) + 2 * n_slots),
          used(memory + 3 * n_slots), common(memory + 4 * n_slots) {
#pragma unroll 1
        for (u32 slot = threadIdx.x & 31; slot < n_slots; slot += 32) clear(slot);
        __syncwarp();
    }
    __device__ __forceinline__ void clear(u32 slot) const {
        ids[slot] = EMPTY;
        scores.clear(slot);
        for (i32 d = 0; d < N_DISTINCT; ++d) common[d * n_slots + slot] = 0;
    }
    // Adds a tie of each lane, where `vote`.
    __device__ __forceinline__ void add(const Tie& tie, bool vote, u32& n_used) const {
        bool fresh = false;
        u32 slot = 0;
        if (vote) {
            slot = claim(ids, n_slots - 1, tie.id, fresh);
            scores.add(slot, tie.score);
            for (i32 d = 0; d < N_DISTINCT; ++d)
                if (tie.counts[d] != 0) atomicAdd(common + d * n_slots + slot, tie.counts[d]);
        }
        const u32 votes = __ballot_sync(ALL_LANES, fresh);
        if (fresh) used[n_used + __popc(votes & ((1u << (threadIdx.x & 31)) - 1))] = slot;
        n_used += __popc(votes);
    }
};

// Sums up what node v shares with those of its neighbours whose hash falls into `part` of `n_parts` (a power of
// two); false if they are too many for the table. By a warp: a lane looks at a segment, then all of them at
// the pins of 32 segments, two a lane at once.
__device__ __forceinline__ bool gather_neighbours(const Finest& f, const Lists& l, i32 v, const Neighbours& table,
                                                  u32 part, u32 n_parts, u32& n_used) {
    const i32 lane = threadIdx.x & 31, n_segments = 2 * l.node_sizes[v] + l.out_sizes[v];
    const auto counts = [&](const Tie& tie) {
        return tie.id != EMPTY && tie.id != v && (hash_of(tie.id) >> 16 & (n_parts - 1)) == part;
    };
#pragma unroll 1
    for (i32 base = 0; base < n_segments; base += 32) {
        const Segment own = segment_of(f, l, v, base + lane);
        const i32 up_to = static_cast<i32>(scan_warp(own.length)), total = __shfl_sync(ALL_LANES, up_to, 31);
#pragma unroll 1
        for (i32 start = 0; start < total; start += 64) {
            const Tie tie = tie_of(f, l, own, up_to, start + lane, total);
            const Tie next = tie_of(f, l, own, up_to, start + lane + 32, total);
            table.add(tie, counts(tie), n_used);
            table.add(next, counts(next), n_used);
            if (n_used + 96 > table.n_slots) return false;  // the next 64 could fill it
        }
    }
    return true;
}

// A neighbour that a node could join, and the distinct loads that both have in common.
struct Choice {
    Best best;
    i32 common[N_LOADS];
};

__device__ __forceinline__ i64 own_load(const Lists& l, i64 v, i32 r) { return l.loads[v * N_LOADS + r]; }

// Makes a neighbour the choice of v if it is better and both keep within the limits together.
__device__ __forceinline__ void consider(const Lists& l, i32 v, const Neighbours& table, u32 slot, const i64* limits,
                                         i64 cap, i64 seed, Choice& choice) {
    const i32 u = table.ids[slot];
    const i64 score = table.scores.get(slot), size = own_load(l, u, 0) + own_load(l, v, 0);
    const double value = __dmul_rn(static_cast<double>(score), __dmul_rn(l.factors[u], l.factors[v]));
    bool fits = score > 0 && size <= cap;
    for (i32 r = 0; r < N_LOADS; ++r) {
        const i64 twice = r < N_ADDITIVE ? 0 : table.common[(r - N_ADDITIVE) * table.n_slots + slot];
        fits &= own_load(l, u, r) + own_load(l, v, r) - twice <= limits[r];
    }
    const u64 pair = static_cast<u64>(smaller(u, v)) << 32 | static_cast<u64>(larger(u, v));
    const Best found = {__double_as_longlong(value), scramble(pair, static_cast<u64>(seed)), u, slot};
    if (!fits || !choice.best.below(found)) return;
    choice.best = found;
    for (i32 d = 0; d < N_DISTINCT; ++d) choice.common[d] = table.common[d * table.n_slots + slot];
}

// Whom each of the n nodes would join best: targets, keys, common (see `rate_nodes` of _kernels_cluster.py).
// A warp rates a node; its table of `n_slots` slots is in shared memory. Neighbours that are too many for it
// are looked at in parts.
__device__ __noinline__ void rate_nodes(const Crew& crew, const Finest& f, const Lists& l, const i64* limits, i64 n, i64 cap,
                                        i64 seed, unsigned char* memory, u32 n_slots) {
    const i32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const Neighbours table(reinterpret_cast<u32*>(memory) + static_cast<i64>(warp) * (4 + N_DISTINCT) * n_slots, n_slots);
#pragma unroll 1
    for (i64 i = crew.index + warp * crew.n_blocks; i < n; i += crew.n_threads() >> 5) {
        const i32 v = static_cast<i32>(i);
        Choice choice;
        bool done = false;
        for (u32 n_parts = 1; !done; n_parts *= 2) {
            choice.best = {0, 0, -1, 0};
            done = true;
            for (u32 part = 0; part < n_parts && done; ++part) {
                u32 n_used = 0;
                done = gather_neighbours(f, l, v, table, part, n_parts, n_used);
                __syncwarp();
#pragma unroll 1
                for (u32 i = lane; i < n_used; i += 32) {
                    if (done) consider(l, v, table, table.used[i], limits, cap, seed, choice);
                    table.clear(table.used[i]);
                }
                __syncwarp();
            }
        }
        const Best best = best_of_group<false>(choice.best);
        if (best.id < 0 ? lane != 0 : choice.best.id != best.id) continue;
        l.targets[v] = best.id;
        l.keys[v] = (best.value & ~LOW) | (LOW - v);
        for (i32 d = 0; d < N_DISTINCT; ++d) l.common[static_cast<i64>(v) * N_DISTINCT + d] = best.id < 0 ? 0 : choice.common[d];
    }
}

#endif
