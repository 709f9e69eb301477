// A small level as a block of the search sees it: its memory, scans, and contraction.
// Written into search.cu.
#ifndef SNNMAP_SEARCH_LEVEL_CUH
#define SNNMAP_SEARCH_LEVEL_CUH

const i64 NONE = -(1ll << 62);  // the key of a node that has no move
const i32 MOVED = 1 << 30;      // above every turn

// The level as it lies on the device.
struct Fine {
    const i64* net_offsets;
    const i32* net_pins;
    const i64* source_offsets;
    const i32* source_nodes;
    const i64 *source_weights, *net_weights, *counts, *resources;
    i64 n, n_nets, n_pins, n_sources;
};

// A contracted level: nets keep their first places and their sources' places, pins are distinct clusters.
struct Graph {
    i64* net_ends;      // [n_nets]
    i32* net_pins;      // [n_pins]
    i32* ranks;         // [n_pins] place of the net in the list of each pin
    i32* source_nodes;  // [n_sources]
    i64* node_offsets;  // [n + 1]
    i32* node_nets;     // [n_pins]
    i64* selfs;         // [n_pins] weight of the node as a source of that net
    i64* out_offsets;   // [n + 1]
    i32* out_nets;      // [n_sources]
    i32* out_ranks;     // [n_sources] place of each source in its node's list
    i64* out_weights;   // [n_sources]
    i64* source_gains;  // [n_sources] what a source finds where its net has pins: 0 if it is a pin itself
    i64* alone;         // [n * N_LOADS] what each node alone puts on a part
    i32 n;
};

// A net that a move changed: what its nodes find more in the two parts.
struct Mark {
    i64 from, to;  // what pins find more in the part that was left, in the other
    i32 net;
    i32 parts;  // the one left | the other << 12 | no pins are left there << 24 | the first came << 25
};

// What a block works with.
struct Scratch {
    Graph coarse;
    i32* pins;     // [max(n_nets, n_parts + 1) * n_parts] pins of each net in each part
    i64* sources;  // [the same] weight of its sources there
    i64* finds;    // [the same] what a pin of the net finds there
    i64* gains;    // [n * n_parts] what each node finds in each part
    i32* covered;  // [n * n_parts * N_DISTINCT] counts of its nets that the part has already
    i64* keys;     // [n] gain of each node's best move when it was last looked at
    i32 *wishes, *seen, *moved, *origins, *turns, *queue, *clusters, *coarse_parts;  // [n]
    Mark* marks;  // [n_pins + n_sources]
};

// Moves within a block's shared memory, and what they are decided by.
struct Table {
    i32 n_parts;
    i64* loads;     // [n_parts * N_LOADS]
    i64* best;      // [n_parts] largest key of a node that wants to leave or enter the part
    i32* first;     // [n_parts] its smallest id
    i32* failed;    // [n_parts] the last turn in which a move into it gained less than thought
    i32* chosen;    // [n_parts]
    const i64 *limits, *prices;
    u64 seed;
};

__device__ __forceinline__ i32 n_warps() { return blockDim.x >> 5; }
__device__ __forceinline__ i32 warp_index() { return threadIdx.x >> 5; }
__device__ __forceinline__ i32 lane_index() { return threadIdx.x & 31; }

// Cuts a piece of memory for `n` values off the front.
template <class T>
__device__ __forceinline__ T* cut(unsigned char*& memory, i64 n) {
    T* piece = reinterpret_cast<T*>(memory);
    memory += (n * sizeof(T) + 15) / 16 * 16;
    return piece;
}

__device__ Graph cut_graph(unsigned char*& memory, const Fine& f) {
    Graph g;
    g.net_ends = cut<i64>(memory, f.n_nets);
    g.node_offsets = cut<i64>(memory, f.n + 1);
    g.out_offsets = cut<i64>(memory, f.n + 1);
    g.selfs = cut<i64>(memory, f.n_pins);
    g.out_weights = cut<i64>(memory, f.n_sources);
    g.source_gains = cut<i64>(memory, f.n_sources);
    g.alone = cut<i64>(memory, f.n * N_LOADS);
    g.net_pins = cut<i32>(memory, f.n_pins);
    g.ranks = cut<i32>(memory, f.n_pins);
    g.node_nets = cut<i32>(memory, f.n_pins);
    g.source_nodes = cut<i32>(memory, f.n_sources);
    g.out_nets = cut<i32>(memory, f.n_sources);
    g.out_ranks = cut<i32>(memory, f.n_sources);
    g.n = 0;
    return g;
}

__device__ Scratch cut_scratch(unsigned char* memory, const Fine& f, i64 most_parts) {
    Scratch s;
    const i64 entries = larger(f.n_nets, most_parts + 1) * most_parts;
    s.coarse = cut_graph(memory, f);
    s.sources = cut<i64>(memory, entries);
    s.finds = cut<i64>(memory, entries);
    s.gains = cut<i64>(memory, f.n * most_parts);
    s.keys = cut<i64>(memory, f.n);
    s.marks = cut<Mark>(memory, f.n_pins + f.n_sources);
    s.pins = cut<i32>(memory, entries);
    s.covered = cut<i32>(memory, f.n * most_parts * N_DISTINCT);
    s.wishes = cut<i32>(memory, f.n);
    s.seen = cut<i32>(memory, f.n);
    s.moved = cut<i32>(memory, f.n);
    s.origins = cut<i32>(memory, f.n);
    s.turns = cut<i32>(memory, f.n);
    s.queue = cut<i32>(memory, f.n);
    s.clusters = cut<i32>(memory, f.n);
    s.coarse_parts = cut<i32>(memory, f.n);
    return s;
}

// ------------------------------------------------------------------------------------ blocks

// values[i] becomes the sum of those before it, values[n] the sum of all.
__device__ __noinline__ void scan_block(i64* values, i64 n) {
    __shared__ i64 sums[32];
    const i32 lane = lane_index(), warp = warp_index();
    i64 carry = 0;
    for (i64 base = 0; base < n; base += blockDim.x) {
        const i64 i = base + threadIdx.x;
        const i64 own = i < n ? values[i] : 0;
        const i64 total = scan_warp(own);
        if (lane == 31) sums[warp] = total;
        __syncthreads();
        i64 before = carry;
        for (i32 w = 0; w < n_warps(); ++w) {
            if (w < warp) before += sums[w];
            carry += sums[w];
        }
        if (i < n) values[i] = before + total - own;
        __syncthreads();
    }
    if (threadIdx.x == 0) values[n] = carry;
    __syncthreads();
}

// The largest value of the block, known to all its threads.
__device__ __forceinline__ i64 largest_of_block(i64 value) {
    __shared__ i64 largest[32];
    for (i32 step = 16; step > 0; step >>= 1) value = larger(value, __shfl_xor_sync(ALL_LANES, value, step));
    if (lane_index() == 0) largest[warp_index()] = value;
    __syncthreads();
    value = lane_index() < n_warps() ? largest[lane_index()] : NONE;
    for (i32 step = 16; step > 0; step >>= 1) value = larger(value, __shfl_xor_sync(ALL_LANES, value, step));
    return value;  // the next use is behind another barrier
}

// A place at the end of a list for each lane with `vote`.
__device__ __forceinline__ i32 place_in(u32* length, bool vote) {
    const u32 votes = __ballot_sync(ALL_LANES, vote);
    i32 start = 0;
    if (lane_index() == 0 && votes != 0) start = atomicAdd(length, static_cast<u32>(__popc(votes)));
    start = __shfl_sync(ALL_LANES, start, 0);
    return start + __popc(votes & ((1u << lane_index()) - 1));
}

// ------------------------------------------------------------------------------------ contraction

// The level whose nodes are `n` clusters. `bits` is shared memory of (n + 31) / 32 words for each warp.
// Parallel over nets (a warp each), their pins and sources; distinct clusters by bit maps. Lists
// are in any order; nobody looks at it.
__device__ __noinline__ void contract(const Fine& f, const i32* clusters, i32 n, Graph& g, u32* bits) {
    const i32 lane = lane_index(), words = (n + 31) / 32;
    u32* own = bits + warp_index() * words;
    if (threadIdx.x == 0) g.n = n;
    for (i32 i = threadIdx.x; i < n; i += blockDim.x) g.node_offsets[i] = g.out_offsets[i] = 0;
    for (i32 i = threadIdx.x; i < n * N_LOADS; i += blockDim.x) g.alone[i] = 0;
    for (i32 i = lane; i < words; i += 32) own[i] = 0;
    __syncthreads();
    for (i32 v = threadIdx.x; v < f.n; v += blockDim.x)
        for (i32 r = 0; r < N_ADDITIVE; ++r)
            add64(g.alone + static_cast<i64>(clusters[v]) * N_LOADS + r, f.resources[v * N_ADDITIVE + r]);
    for (i64 s = threadIdx.x; s < f.n_sources; s += blockDim.x) {
        const i32 c = clusters[f.source_nodes[s]];
        g.source_nodes[s] = c;
        g.out_ranks[s] = static_cast<i32>(atomicAdd(reinterpret_cast<u64*>(g.out_offsets + c), 1ull));
    }
    for (i64 net = warp_index(); net < f.n_nets; net += n_warps()) {
        const i64 first = f.net_offsets[net], last = f.net_offsets[net + 1];
        i64 end = first;
        for (i64 base = first; base < last; base += 32) {
            const i64 j = base + lane;
            const i32 c = j < last ? clusters[f.net_pins[j]] : 0;
            const u32 bit = 1u << (c & 31);
            const bool fresh = j < last && !(atomicOr(own + (c >> 5), bit) & bit);
            const u32 votes = __ballot_sync(ALL_LANES, fresh);
            if (fresh) {
                const i64 place = end + __popc(votes & ((1u << lane) - 1));
                g.net_pins[place] = c;
                g.ranks[place] = static_cast<i32>(atomicAdd(reinterpret_cast<u64*>(g.node_offsets + c), 1ull));
                for (i32 d = 0; d < N_DISTINCT; ++d)
                    add64(g.alone + static_cast<i64>(c) * N_LOADS + N_ADDITIVE + d, f.counts[net * N_DISTINCT + d]);
            }
            end += __popc(votes);
        }
        __syncwarp();
        for (i64 j = first + lane; j < end; j += 32) own[g.net_pins[j] >> 5] = 0;
        if (lane == 0) g.net_ends[net] = end;
        __syncwarp();
    }
    __syncthreads();
    scan_block(g.node_offsets, n);
    scan_block(g.out_offsets, n);
    for (i64 net = warp_index(); net < f.n_nets; net += n_warps()) {
        const i64 first = f.net_offsets[net], end = g.net_ends[net];
        for (i64 j = first + lane; j < end; j += 32) {
            const i64 place = g.node_offsets[g.net_pins[j]] + g.ranks[j];
            g.node_nets[place] = static_cast<i32>(net);
            g.selfs[place] = 0;
        }
        __syncwarp();
        for (i64 s = f.source_offsets[net]; s < f.source_offsets[net + 1]; ++s) {
            const i32 c = g.source_nodes[s];
            const i64 weight = f.source_weights[s];
            bool looped = false;
            for (i64 j = first + lane; j < end; j += 32) {
                if (g.net_pins[j] != c) continue;
                looped = true;
                g.selfs[g.node_offsets[c] + g.ranks[j]] += weight;
            }
            looped = __ballot_sync(ALL_LANES, looped) != 0;
            if (lane == 0) {
                const i64 place = g.out_offsets[c] + g.out_ranks[s];
                g.out_nets[place] = static_cast<i32>(net);
                g.out_weights[place] = weight;
                g.source_gains[s] = looped ? 0 : weight;
            }
        }
    }
    __syncthreads();
}

#endif
