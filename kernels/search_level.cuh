// A small level as a block of the search sees it: its memory, scans, and contraction.
// Written into search.cu.
#ifndef SNNMAP_SEARCH_LEVEL_CUH
#define SNNMAP_SEARCH_LEVEL_CUH

typedef unsigned short u16;

const i32 TEAM = 8;          // threads that share a short net
const i32 SHORT_NET = 64;    // pins and sources that a team works on; more are a warp's
const i32 NEAR_MARKS = 256;  // that lie in shared memory
const i32 ID_BITS = 13;      // of a node within a key
const i32 AT_ONCE = 4;       // loads of a thread on their way
const i64 NONE = -(1ll << 62);  // the key of a node that has no move
const i64 LEAST_GAIN = (1ll << ID_BITS) - 1;  // keys above it are of nodes that gain
const i32 MOVED = 1 << 30;      // above every turn

// The level as it lies on the device.
struct Fine {
    Global<const i64> net_offsets;
    Global<const i32> net_pins;
    Global<const i64> source_offsets;
    Global<const i32> source_nodes;
    Global<const i64> source_weights, net_weights, counts, resources;
    i64 n, n_nets, n_pins, n_sources;
    Global<i32> source_nets;  // [n_sources] net of each source
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
    Global<u16> owners;          // [n_pins] the nodes whose nets these are
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

// Where the pins and the sources of a net lie.
struct alignas(16) Reach {
    i32 first, n_pins, first_source, n_sources;
};

// How many nets are marked, and how many of them are long.
struct Marked {
    u32 n, n_long;
};

// What a block works with, in global memory.
struct Scratch {
    Graph coarse;
    Global<i64> gains;      // [n * n_parts] what each node finds in each part; zero while no tables are filled
    i64 n_words;            // of 32 bits in these, at least one for each net
    Global<i32> covered;    // [n * n_parts * N_DISTINCT] counts of its nets that the part has already; the same
    Global<u16> pins;       // [n_nets * n_parts] pins of each net in each part
    Global<u16> touched;    // [n_pins] parts where a net has pins, from its first place on; only while filling
    Global<i32> n_touched;  // [n_nets] how many
    Global<i64> stays;      // [n] what a node finds less where it is because nets are there for it alone
    Global<i32> freed;      // [n * N_DISTINCT] counts of these nets
    Global<i32> moved, origins, turns, clusters, coarse_parts;  // [n]
    Global<u32> numbers;    // [most pairs of parts + 1]
    Global<Mark> marks;     // [n_pins + n_sources] those that are not in shared memory; also what contraction works with
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
    Shared<Mark> marks;      // [NEAR_MARKS] the first ones
    Shared<Reach> reaches;   // [NEAR_MARKS] of their nets
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
    g.owners.pointer = cut<u16>(memory, f.n_pins);
    g.out_offsets.pointer = cut<i32>(memory, f.n + 1);
    g.out_nets.pointer = cut<i32>(memory, f.n_sources);
    g.n = 0;
    return g;
}

// `clear`: of the block's tables of what nodes find.
__device__ Scratch cut_scratch(unsigned char* clear, unsigned char* memory, const Fine& f, i64 most_parts) {
    Scratch s;
    s.n_words = 2 * larger(f.n * most_parts, (f.n_nets + 1) / 2);
    s.gains.pointer = cut<i64>(clear, s.n_words / 2);
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

// Lanes of this one's group of `size` neighbours.
__device__ __forceinline__ u32 lanes_of_group(i32 size) { return (ALL_LANES >> (32 - size)) << (lane_index() & ~(size - 1)); }

// A place at the end of a list for each lane with `vote`.
__device__ __forceinline__ i32 place_in(u32* length, bool vote) {
    const u32 votes = __ballot_sync(ALL_LANES, vote);
    i32 start = 0;
    if (lane_index() == 0 && votes != 0) start = atomicAdd(length, static_cast<u32>(__popc(votes)));
    start = __shfl_sync(ALL_LANES, start, 0);
    return start + __popc(votes & ((1u << lane_index()) - 1));
}

__device__ __forceinline__ Reach reach_of(const Fine& f, const Graph& g, i32 net) {
    const i32 first = static_cast<i32>(f.net_offsets[net]), source = static_cast<i32>(f.source_offsets[net]);
    return {first, g.net_ends[net] - first, source, static_cast<i32>(f.source_offsets[net + 1]) - source};
}

// ------------------------------------------------------------------------------------ contraction

// Calls work(net, cluster, place) for pins of the finest level, place = places[j], with a few of them on their way at once.
template <class Work>
__device__ __forceinline__ void each_pin(const Graph& fine, Global<const i32> clusters, const i32* places, i32 n_pins, Work work) {
    const i32 size = blockDim.x;
    #pragma unroll 1
    for (i32 base = threadIdx.x; base < n_pins; base += AT_ONCE * size) {
        i32 nets[AT_ONCE], theirs[AT_ONCE], places_here[AT_ONCE];
        #pragma unroll
        for (i32 e = 0; e < AT_ONCE; ++e) {
            const i32 j = base + e * size;
            nets[e] = j < n_pins ? fine.node_nets[j] : 0;
            theirs[e] = j < n_pins ? clusters[fine.owners[j]] : -1;
            places_here[e] = j < n_pins ? places[j] : 0;
        }
        #pragma unroll
        for (i32 e = 0; e < AT_ONCE; ++e)
            if (theirs[e] >= 0) work(nets[e], theirs[e], places_here[e]);
    }
}

// The level whose nodes are `n` clusters. `shared`: 2 (n + 1) words.
// Parallel over pins by node, and over sources; distinct clusters of a net by a bit for each in the tables of what nodes find,
// which are clear before and after: of as many clusters at once as there is room for. Lists are in any order; nobody
// looks at it.
__device__ __noinline__ void contract(const Fine& f, const Graph& fine, Global<const i32> clusters, i32 n, Graph& g, const Scratch& s,
                                      u32* shared) {
    u32 *degrees = shared, *outs = degrees + n + 1, *bits = s.gains.as<u32>();
    i32 *ranks = s.marks.as<i32>(), *source_ranks = ranks + f.n_pins;  // places in the lists of nodes, or -1
    const i32 n_pins = static_cast<i32>(f.n_pins), n_nets = static_cast<i32>(f.n_nets), n_sources = static_cast<i32>(f.n_sources);
    const i32 size = blockDim.x, words = words_of(n), width = static_cast<i32>(smaller(words, s.n_words / larger(n_nets, 1)));
    if (threadIdx.x == 0) g.n = n;
    for (i32 i = threadIdx.x; i < 2 * (n + 1); i += size) shared[i] = 0;
    for (i32 i = threadIdx.x; i < n * N_ADDITIVE; i += size) g.resources[i] = 0;
    for (i32 i = threadIdx.x; i < n * N_DISTINCT; i += size) g.brought[i] = 0;
    for (i32 i = threadIdx.x; i < n; i += size) g.weights[i] = 0;
    for (i32 i = threadIdx.x; i < n_nets; i += size) g.net_ends[i] = static_cast<i32>(f.net_offsets[i]);
    for (i32 i = threadIdx.x; i < n_sources; i += size) g.source_weights[i] = 0;
    __syncthreads();
    for (i32 v = threadIdx.x; v < f.n; v += size)
        for (i32 r = 0; r < N_ADDITIVE; ++r) add64(g.resources + clusters[v] * N_ADDITIVE + r, f.resources[v * N_ADDITIVE + r]);
    for (i32 i = threadIdx.x; i < n_sources; i += size) {
        const i32 c = clusters[f.source_nodes[i]];
        i32 same = static_cast<i32>(f.source_offsets[f.source_nets[i]]);  // the first of its net in this cluster
        while (clusters[f.source_nodes[same]] != c) ++same;
        add64(g.source_weights + same, f.source_weights[i]);
        g.source_nodes[i] = same == i ? c : -1;
        g.source_gains[i] = same == i ? 0 : -1;
        if (same == i) source_ranks[i] = static_cast<i32>(atomicAdd(outs + c, 1u));
    }
    #pragma unroll 1
    for (i32 first = 0; first < words; first += width) {
        const auto word_of = [&](i32 net, i32 c) { return static_cast<i64>(net) * width + (c >> 5) - first; };
        const auto is_here = [&](i32 c) { return c >= 32 * first && c < 32 * (first + width); };
        #pragma unroll 1
        for (i32 base = threadIdx.x; base < n_pins; base += AT_ONCE * size) {
            i32 nets[AT_ONCE], theirs[AT_ONCE];
            bool fresh[AT_ONCE];
            #pragma unroll
            for (i32 e = 0; e < AT_ONCE; ++e) {
                const i32 j = base + e * size;
                nets[e] = j < n_pins ? fine.node_nets[j] : 0;
                theirs[e] = j < n_pins ? clusters[fine.owners[j]] : -1;
            }
            #pragma unroll
            for (i32 e = 0; e < AT_ONCE; ++e) {
                const i32 c = theirs[e];
                const u32 bit = 1u << (c & 31);
                fresh[e] = is_here(c) && !(atomicOr(bits + word_of(nets[e], c), bit) & bit);
            }
            #pragma unroll
            for (i32 e = 0; e < AT_ONCE; ++e) {
                const i32 net = nets[e], c = theirs[e];
                if (is_here(c)) ranks[base + e * size] = fresh[e] ? static_cast<i32>(atomicAdd(degrees + c, 1u)) : -1;
                if (!fresh[e]) continue;
                g.net_pins[atomicAdd(g.net_ends + net, 1)] = c;
                add64(g.weights + c, f.net_weights[net]);
                for (i32 d = 0; d < N_DISTINCT; ++d)
                    atomicAdd(g.brought + c * N_DISTINCT + d, static_cast<i32>(f.counts[net * N_DISTINCT + d]));
            }
        }
        __syncthreads();
        for (i32 i = threadIdx.x; i < n_sources; i += size) {
            const i32 c = g.source_nodes[i];
            if (c >= 0 && is_here(c) && (bits[word_of(f.source_nets[i], c)] >> (c & 31) & 1)) g.source_gains[i] = -1;
        }
        __syncthreads();
        each_pin(fine, clusters, ranks, n_pins, [&](i32 net, i32 c, i32) {
            if (is_here(c)) bits[word_of(net, c)] = 0;
        });
        __syncthreads();
    }
    scan_block(degrees, n);
    scan_block(outs, n);
    for (i32 i = threadIdx.x; i <= n; i += size) {
        g.node_offsets[i] = static_cast<i32>(degrees[i]);
        g.out_offsets[i] = static_cast<i32>(outs[i]);
    }
    each_pin(fine, clusters, ranks, n_pins, [&](i32 net, i32 c, i32 rank) {
        if (rank < 0) return;
        const i32 place = degrees[c] + rank;
        g.node_nets[place] = net;
        g.owners[place] = static_cast<u16>(c);
    });
    for (i32 i = threadIdx.x; i < n_sources; i += size) {
        const i32 c = g.source_nodes[i];
        if (c < 0) continue;
        const i32 place = outs[c] + source_ranks[i];
        const i64 gain = g.source_gains[i] < 0 ? -1 : g.source_weights[i];
        g.source_gains[i] = gain;
        g.out_nets[place] = f.source_nets[i];
        g.out_gains[place] = gain;
    }
    __syncthreads();
}

#endif
