// A small level as a block of the search sees it: its memory, scans, and contraction.
// Written into search.cu.
#ifndef SNNMAP_SEARCH_LEVEL_CUH
#define SNNMAP_SEARCH_LEVEL_CUH

typedef unsigned short u16;

const i32 TEAM = 8;          // threads that share a short net or look at one node
const i64 SHORT_NET = 64;    // pins and sources that a team works on; more are a warp's
const i32 ID_BITS = 13;      // of a node within a key
const i64 NONE = -(1ll << 62);  // the key of a node that has no move
const i64 LEAST_GAIN = (1ll << ID_BITS) - 1;  // keys above it are of nodes that gain
const i32 MOVED = 1 << 30;      // above every turn

// Pointers that say where they point: loads, stores and, above all, additions to what may be anywhere are much longer.
#ifndef ASSUME
#define ASSUME(condition) __builtin_assume(condition)
#endif

template <class T>
struct Global {
    T* pointer;
    __device__ __forceinline__ operator T*() const {
        ASSUME(__isGlobal(pointer));
        return pointer;
    }
    template <class Other>
    __device__ __forceinline__ Other* as() const {
        return reinterpret_cast<Other*>(static_cast<T*>(*this));
    }
};

template <class T>
struct Shared {
    T* pointer;
    __device__ __forceinline__ operator T*() const {
        ASSUME(__isShared(pointer));
        return pointer;
    }
    template <class Other>
    __device__ __forceinline__ Other* as() const {
        return reinterpret_cast<Other*>(static_cast<T*>(*this));
    }
};

// The level as it lies on the device.
struct Fine {
    Global<const i64> net_offsets;
    Global<const i32> net_pins;
    Global<const i64> source_offsets;
    Global<const i32> source_nodes;
    Global<const i64> source_weights, net_weights, counts, resources;
    i64 n, n_nets, n_pins, n_sources;
};

// A contracted level: nets keep their first places and their sources' places; pins are distinct clusters, and so
// are sources: of those that are one cluster the first has their weight.
struct Graph {
    Global<i32> net_ends;        // [n_nets]
    Global<i32> net_pins;        // [n_pins]
    Global<i32> source_nodes;    // [n_sources] -1: one cluster with an earlier source
    Global<i64> source_weights;  // [n_sources]
    Global<i64> source_gains;    // [n_sources] what a source finds where its net has pins, -1 if it is a pin itself
    Global<i32> node_offsets;    // [n + 1]
    Global<i32> node_nets;       // [n_pins]
    Global<i32> out_offsets;     // [n + 1]
    Global<i32> out_nets;        // [n_sources]
    Global<i64> out_gains;       // [n_sources] the same, by node
    Global<i64> resources;       // [n * N_ADDITIVE]
    Global<i64> weights;         // [n] of the nets that a node is a pin of, together
    Global<i32> brought;         // [n * N_DISTINCT] and their counts
    i32 n;
};

// A net that a move may change for others.
struct alignas(16) Mark {
    i32 net;
    i32 mover;  // node, times two; plus one if it is only a source of the net
    i32 from, to;
};

// What a block works with, in global memory.
struct Scratch {
    Graph coarse;
    Global<i64> gains;      // [n * n_parts] what each node finds in each part; zero while no tables are filled
    Global<i32> covered;    // [n * n_parts * N_DISTINCT] counts of its nets that the part has already; the same
    Global<u16> pins;       // [n_nets * n_parts] pins of each net in each part
    Global<u16> touched;    // [n_pins] parts where a net has pins, from its first place on; only while filling
    Global<i32> n_touched;  // [n_nets] how many
    Global<i64> stays;      // [n] what a node finds less where it is because nets are there for it alone
    Global<i32> freed;      // [n * N_DISTINCT] counts of these nets
    Global<i32> moved, origins, turns, clusters, coarse_parts;  // [n]
    Global<u32> numbers;    // [most pairs of parts + 1]
    Global<Mark> marks;     // [n_pins + n_sources] also what contraction works with
};

// What is looked at all the time, in shared memory.
struct Table {
    i32 n_parts;
    Shared<i64> loads;   // [n_parts * N_LOADS]
    Shared<i64> best;    // [4 * n_parts] largest key of a node that wants to leave or enter the part, then of one that concerns
                         // no part for which one is found; of even turns, of odd ones
    Shared<i32> failed;  // [n_parts] the last turn in which a move into it gained less than thought
    Shared<i64> keys;    // [n] gain of each node's best move when it was last looked at, then id; or NONE
    Shared<i32> wishes;  // [n] where it would move
    Shared<i32> seen;    // [n] the last turn after which it was looked at, or MOVED
    Shared<i32> parts;   // [n]
    Shared<u16> queue;   // [n] nodes to look at
    Shared<u16> players; // [2 * n] nodes that gain, and others, of even turns, of odd ones
    Shared<u32> listed;  // [words_of(n)] a bit for each node: whether it is among them
    Shared<u32> near;    // [n * words_of(n_parts)] a bit for each part in which the node finds something, or did
    bool has_near;       // else all parts count as near: shared memory has no room
    Shared<const i64> limits, prices;
    u64 seed;
};

__device__ __forceinline__ i32 n_warps() { return blockDim.x >> 5; }
__device__ __forceinline__ i32 warp_index() { return threadIdx.x >> 5; }
__device__ __forceinline__ i32 lane_index() { return threadIdx.x & 31; }

// Words of n bits.
__device__ __forceinline__ i32 words_of(i32 n) { return (n + 31) >> 5; }

// Cuts a piece of memory for `n` values off the front.
template <class T>
__device__ __forceinline__ T* cut(unsigned char*& memory, i64 n) {
    T* piece = reinterpret_cast<T*>(memory);
    memory += (n * sizeof(T) + 15) / 16 * 16;
    return piece;
}

__device__ Graph cut_graph(unsigned char*& memory, const Fine& f) {
    Graph g;
    g.source_weights.pointer = cut<i64>(memory, f.n_sources);
    g.source_gains.pointer = cut<i64>(memory, f.n_sources);
    g.out_gains.pointer = cut<i64>(memory, f.n_sources);
    g.resources.pointer = cut<i64>(memory, f.n * N_ADDITIVE);
    g.weights.pointer = cut<i64>(memory, f.n);
    g.brought.pointer = cut<i32>(memory, f.n * N_DISTINCT);
    g.net_ends.pointer = cut<i32>(memory, f.n_nets);
    g.net_pins.pointer = cut<i32>(memory, f.n_pins);
    g.source_nodes.pointer = cut<i32>(memory, f.n_sources);
    g.node_offsets.pointer = cut<i32>(memory, f.n + 1);
    g.node_nets.pointer = cut<i32>(memory, f.n_pins);
    g.out_offsets.pointer = cut<i32>(memory, f.n + 1);
    g.out_nets.pointer = cut<i32>(memory, f.n_sources);
    g.n = 0;
    return g;
}

// `clear`: of the block's tables of what nodes find.
__device__ Scratch cut_scratch(unsigned char* clear, unsigned char* memory, const Fine& f, i64 most_parts) {
    Scratch s;
    s.gains.pointer = cut<i64>(clear, f.n * most_parts);
    s.covered.pointer = cut<i32>(clear, f.n * most_parts * N_DISTINCT);
    s.coarse = cut_graph(memory, f);
    s.numbers.pointer = cut<u32>(memory, most_parts * most_parts + 1);
    s.stays.pointer = cut<i64>(memory, f.n);
    s.marks.pointer = cut<Mark>(memory, f.n_pins + f.n_sources);
    s.freed.pointer = cut<i32>(memory, f.n * N_DISTINCT);
    s.moved.pointer = cut<i32>(memory, f.n);
    s.origins.pointer = cut<i32>(memory, f.n);
    s.turns.pointer = cut<i32>(memory, f.n);
    s.clusters.pointer = cut<i32>(memory, f.n);
    s.coarse_parts.pointer = cut<i32>(memory, f.n);
    s.n_touched.pointer = cut<i32>(memory, f.n_nets);
    s.touched.pointer = cut<u16>(memory, f.n_pins);
    s.pins.pointer = cut<u16>(memory, f.n_nets * most_parts);
    return s;
}

// ------------------------------------------------------------------------------------ blocks

// values[i] becomes the sum of those before it, values[n] the sum of all.
__device__ __noinline__ void scan_block(u32* values, i64 n) {
    __shared__ i64 scratch[SCRATCH_WORDS];
    const i64 all = place_lists(n, values, scratch, [&](i64 i) { return static_cast<i64>(values[i]); });
    if (threadIdx.x == 0) values[n] = static_cast<u32>(all);
    __syncthreads();
}

// The largest value of a warp's lanes.
__device__ __forceinline__ i64 largest_of_warp(i64 value) {
    #pragma unroll 1
    for (i32 step = 16; step > 0; step >>= 1) value = larger(value, __shfl_xor_sync(ALL_LANES, value, step));
    return value;
}

// A place at the end of a list for each lane with `vote`.
__device__ __forceinline__ i32 place_in(u32* length, bool vote) {
    const u32 votes = __ballot_sync(ALL_LANES, vote);
    i32 start = 0;
    if (lane_index() == 0 && votes != 0) start = atomicAdd(length, static_cast<u32>(__popc(votes)));
    start = __shfl_sync(ALL_LANES, start, 0);
    return start + __popc(votes & ((1u << lane_index()) - 1));
}

// Pins and sources of a net.
__device__ __forceinline__ i64 size_of(const Fine& f, i32 net) {
    return f.net_offsets[net + 1] - f.net_offsets[net] + f.source_offsets[net + 1] - f.source_offsets[net];
}

// Lanes of this one's group of `size` neighbours.
__device__ __forceinline__ u32 lanes_of_group(i32 size) { return (ALL_LANES >> (32 - size)) << (lane_index() & ~(size - 1)); }

// Calls work(net, rank, size) for every net: by a team of a few threads, or, if it is long, by a warp. All lanes
// of a warp call it together, a net of -1 for nothing.
template <class Work>
__device__ __forceinline__ void each_net(const Fine& f, Work work) {
    const i32 lane = lane_index(), n_nets = static_cast<i32>(f.n_nets);
    #pragma unroll 1
    for (i32 size = TEAM; size <= 32; size *= 32 / TEAM) {
        const bool by_team = size == TEAM;
        const i32 step = by_team ? blockDim.x / TEAM : blockDim.x;
        #pragma unroll 1
        for (i32 base = 0; base < n_nets; base += step) {  // long neighbours, which may be alike, go to different warps
            const i32 net = base + (by_team ? threadIdx.x / TEAM : lane * n_warps() + warp_index());
            const bool its = net < n_nets && (size_of(f, net) <= SHORT_NET) == by_team;
            u32 left = __ballot_sync(ALL_LANES, its);
            left = by_team && left != 0 ? 1 : left;
            #pragma unroll 1
            for (; left != 0; left &= left - 1)
                work(by_team ? (its ? net : -1) : net + (__ffs(left) - 1 - lane) * n_warps(), lane & (size - 1), size);
        }
    }
}

// ------------------------------------------------------------------------------------ contraction

// The level whose nodes are `n` clusters. `shared`: a bit map of n bits for each team, and 2 (n + 1) words; `ranks`:
// [n_pins + n_sources], place of the net in the list of each pin and source.
// Parallel over nets, their pins and sources; distinct clusters by bit maps. Lists are in any order; nobody
// looks at it.
__device__ __noinline__ void contract(const Fine& f, const i32* clusters, i32 n, Graph& g, u32* shared, i32* ranks) {
    const i32 lane = lane_index(), words = words_of(n), n_teams = blockDim.x / TEAM;
    u32 *degrees = shared + n_teams * words, *outs = degrees + n + 1;
    i32* source_ranks = ranks + f.n_pins;
    if (threadIdx.x == 0) g.n = n;
    for (i32 i = threadIdx.x; i < n_teams * words + 2 * (n + 1); i += blockDim.x) shared[i] = 0;
    for (i32 i = threadIdx.x; i < n * N_ADDITIVE; i += blockDim.x) g.resources[i] = 0;
    for (i32 i = threadIdx.x; i < n * N_DISTINCT; i += blockDim.x) g.brought[i] = 0;
    for (i32 i = threadIdx.x; i < n; i += blockDim.x) g.weights[i] = 0;
    __syncthreads();
    for (i32 v = threadIdx.x; v < f.n; v += blockDim.x)
        for (i32 r = 0; r < N_ADDITIVE; ++r)
            add64(g.resources + static_cast<i64>(clusters[v]) * N_ADDITIVE + r, f.resources[v * N_ADDITIVE + r]);
    for (i64 s = threadIdx.x; s < f.n_sources; s += blockDim.x) {
        g.source_nodes[s] = clusters[f.source_nodes[s]];
        g.source_weights[s] = f.source_weights[s];
    }
    __syncthreads();
    each_net(f, [&](i32 net, i32 rank, i32 size) {
        u32* own = shared + (threadIdx.x - (lane & (size - 1))) / TEAM * words;
        const i64 first = net < 0 ? 0 : f.net_offsets[net], last = net < 0 ? 0 : f.net_offsets[net + 1];
        const u32 group = lanes_of_group(size);
        const i64 weight = net < 0 ? 0 : f.net_weights[net];
        i64 end = first;
        for (i64 base = first; __ballot_sync(ALL_LANES, base < last) != 0; base += size) {
            const i64 j = base + rank;
            const i32 c = j < last ? clusters[f.net_pins[j]] : 0;
            const u32 bit = 1u << (c & 31);
            const bool fresh = j < last && !(atomicOr(own + (c >> 5), bit) & bit);
            const u32 votes = __ballot_sync(ALL_LANES, fresh) & group;
            if (fresh) {
                const i64 place = end + __popc(votes & ((1u << lane) - 1));
                g.net_pins[place] = c;
                ranks[place] = static_cast<i32>(atomicAdd(degrees + c, 1u));
                add64(g.weights + c, weight);
                for (i32 d = 0; d < N_DISTINCT; ++d)
                    atomicAdd(g.brought + c * N_DISTINCT + d, static_cast<i32>(f.counts[net * N_DISTINCT + d]));
            }
            end += __popc(votes);
        }
        __syncwarp();
        if (net >= 0) {
            if (rank == 0) g.net_ends[net] = static_cast<i32>(end);
            const i64 first_source = f.source_offsets[net], last_source = f.source_offsets[net + 1];
            for (i64 s = first_source + rank; s < last_source; s += size) {
                const i32 c = clusters[f.source_nodes[s]];
                i64 same = first_source;
                while (clusters[f.source_nodes[same]] != c) ++same;
                if (same == s) {
                    source_ranks[s] = static_cast<i32>(atomicAdd(outs + c, 1u));
                } else {
                    g.source_nodes[s] = -1;
                    add64(g.source_weights + same, f.source_weights[s]);
                }
            }
        }
        __syncwarp();
        if (net >= 0) {
            for (i64 s = f.source_offsets[net] + rank; s < f.source_offsets[net + 1]; s += size) {
                const i32 c = g.source_nodes[s];
                if (c < 0) g.source_weights[s] = 0;
                g.source_gains[s] = c < 0 || (own[c >> 5] >> (c & 31) & 1) ? -1 : g.source_weights[s];
            }
        }
        __syncwarp();
        for (i32 i = rank; i < words; i += size) own[i] = 0;
        __syncwarp();
    });
    __syncthreads();
    scan_block(degrees, n);
    scan_block(outs, n);
    for (i32 i = threadIdx.x; i <= n; i += blockDim.x) {
        g.node_offsets[i] = static_cast<i32>(degrees[i]);
        g.out_offsets[i] = static_cast<i32>(outs[i]);
    }
    each_net(f, [&](i32 net, i32 rank, i32 size) {
        if (net < 0) return;
        for (i64 j = f.net_offsets[net] + rank; j < g.net_ends[net]; j += size)
            g.node_nets[degrees[g.net_pins[j]] + ranks[j]] = net;
        for (i64 s = f.source_offsets[net] + rank; s < f.source_offsets[net + 1]; s += size) {
            const i32 c = g.source_nodes[s];
            if (c < 0) continue;
            const u32 place = outs[c] + source_ranks[s];
            g.out_nets[place] = net;
            g.out_gains[place] = g.source_gains[s];
        }
    });
    __syncthreads();
}

#endif
