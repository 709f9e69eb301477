// Individuals of the search on a small level, each made by one block. The twin is
// snnmap/partitioning/multilevel/_kernels_search.py; both give the same partitions.
//
// A block contracts the level by a map of its nodes, moves the coarse nodes, then the next finer
// map's, then the nodes themselves. Its tables lie in global memory (a few megabytes that stay in the L2 cache), what
// concerns parts in shared memory; it waits for nothing but its own barriers.
#include "common.cuh"

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
        i64 total = own;
        for (i32 step = 1; step < 32; step *= 2) {
            const i64 other = __shfl_sync(ALL_LANES, total, lane >= step ? lane - step : lane);
            if (lane >= step) total += other;
        }
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

// ------------------------------------------------------------------------------------ tables

// Fills the tables and loads of a partition, with `gains` those of nodes too; returns its connectivity
// (constant apart).
// Parallel over nets (a warp each), their pins and sources. Deterministic: integer sums.
__device__ __noinline__ i64 fill_tables(const Fine& f, const Graph& g, const Scratch& s, const Table& t, const i32* parts,
                                        bool gains) {
    __shared__ u64 connectivity;
    const i32 lane = lane_index(), k = t.n_parts;
    const i64 entries = f.n_nets * k;
    for (i64 i = threadIdx.x; i < entries; i += blockDim.x) s.finds[i] = s.sources[i] = s.pins[i] = 0;
    for (i32 i = threadIdx.x; i < k * N_LOADS; i += blockDim.x) t.loads[i] = 0;
    if (gains) {
        for (i32 i = threadIdx.x; i < g.n * k; i += blockDim.x) s.gains[i] = 0;
        for (i32 i = threadIdx.x; i < g.n * k * N_DISTINCT; i += blockDim.x) s.covered[i] = 0;
    }
    if (threadIdx.x == 0) connectivity = 0;
    __syncthreads();
    for (i32 v = threadIdx.x; v < g.n; v += blockDim.x)
        for (i32 r = 0; r < N_ADDITIVE; ++r)
            add64(t.loads + parts[v] * N_LOADS + r, g.alone[static_cast<i64>(v) * N_LOADS + r]);
    i64 total = 0;
    for (i64 net = warp_index(); net < f.n_nets; net += n_warps()) {
        const i64 first = f.net_offsets[net], end = g.net_ends[net], row = net * k;
        const i64 first_source = f.source_offsets[net], end_source = f.source_offsets[net + 1];
        const i64 weight = f.net_weights[net];
        for (i64 j = first_source + lane; j < end_source; j += 32)
            add64(s.sources + row + parts[g.source_nodes[j]], f.source_weights[j]);
        __syncwarp();
        for (i64 j = first_source + lane; j < end_source; j += 32) {
            const i32 p = parts[g.source_nodes[j]];
            s.finds[row + p] = s.sources[row + p];
        }
        __syncwarp();
        for (i64 j = first + lane; j < end; j += 32) {
            const i32 p = parts[g.net_pins[j]];
            if (atomicAdd(s.pins + row + p, 1) != 0) continue;
            s.finds[row + p] = weight;
            total += weight - s.sources[row + p];
            for (i32 d = 0; d < N_DISTINCT; ++d)
                add64(t.loads + p * N_LOADS + N_ADDITIVE + d, f.counts[net * N_DISTINCT + d]);
        }
        __syncwarp();
        for (i32 start = 0; gains && start < k; start += 32) {
            const i32 own = start + lane;
            const i64 finds = own < k ? s.finds[row + own] : 0;
            const bool pinned = own < k && s.pins[row + own] > 0;
            const u32 pins = __ballot_sync(ALL_LANES, pinned);
            for (u32 left = __ballot_sync(ALL_LANES, pinned || finds != 0); left != 0; left &= left - 1) {
                const i32 bit = __ffs(left) - 1, p = start + bit;
                const i64 found = __shfl_sync(ALL_LANES, finds, bit);
                for (i64 j = first + lane; j < end; j += 32) {
                    const i32 place = g.net_pins[j] * k + p;
                    add64(s.gains + place, found);
                    for (i32 d = 0; (pins >> bit & 1) && d < N_DISTINCT; ++d)
                        atomicAdd(s.covered + place * N_DISTINCT + d, static_cast<i32>(f.counts[net * N_DISTINCT + d]));
                }
                for (i64 j = first_source + lane; (pins >> bit & 1) && j < end_source; j += 32)
                    if (g.source_gains[j] != 0) add64(s.gains + g.source_nodes[j] * k + p, g.source_gains[j]);
            }
        }
    }
    total = sum_warp(total);
    if (lane == 0) atomicAdd(&connectivity, static_cast<u64>(total));
    __syncthreads();
    total = static_cast<i64>(connectivity);
    __syncthreads();
    return total;
}

struct Found {
    i32 target;  // -1: none
    i64 gain;
};

// Best move of a node by the soft objective; by a whole warp, a part each lane.
// Reads the node's row of the table of gains once. Deterministic: maximum of (gain, hash, id).
__device__ __noinline__ Found find_move(const Fine& f, const Graph& g, const Scratch& s, const Table& t,
                                        const i32* parts, i32 v) {
    const i32 lane = lane_index(), k = t.n_parts, a = parts[v];
    const i64 first = g.node_offsets[v], last = g.node_offsets[v + 1];
    const i64* alone = g.alone + static_cast<i64>(v) * N_LOADS;
    const i64* gains = s.gains + v * k;
    const i32* covered = s.covered + v * k * N_DISTINCT;
    i64 stays = 0, freed[N_DISTINCT + 1] = {0};
    #pragma unroll 4
    for (i64 j = first + lane; j < last; j += 32) {
        const i64 net = g.node_nets[j], at = net * k + a;
        const bool alone_there = s.pins[at] == 1;
        const i64 lost = s.sources[at] - f.net_weights[net] - g.selfs[j];
        stays += alone_there ? lost : 0;
        for (i32 d = 0; d < N_DISTINCT; ++d) freed[d] += alone_there ? f.counts[net * N_DISTINCT + d] : 0;
    }
    stays = sum_warp(stays);
    i64 relief = 0;
    for (i32 r = 0; r < N_LOADS; ++r) {
        const i64 over = t.loads[a * N_LOADS + r] - t.limits[r];
        if (over <= 0) continue;
        const i64 amount = r < N_ADDITIVE ? alone[r] : sum_warp(freed[r < N_ADDITIVE ? 0 : r - N_ADDITIVE]);
        relief += t.prices[r] * smaller(over, amount);
    }
    Best best = {NONE, 0, -1, 0};
    for (i32 p = lane; p < k; p += 32) {
        const i64 found = gains[p];
        if (p == a || found < (relief == 0 ? 1 : 0)) continue;
        bool fits = true;
        i64 value = found;
        for (i32 r = 0; r < N_LOADS; ++r) {
            i64 added = alone[r];
            if (r >= N_ADDITIVE) added -= covered[p * N_DISTINCT + r - N_ADDITIVE];
            const i64 over = t.loads[p * N_LOADS + r] + added - t.limits[r];
            if (over <= 0) continue;
            fits &= t.prices[r] > 0 && over <= t.limits[r] >> 2;
            value -= t.prices[r] * smaller(over, added);
        }
        if (!fits || value < best.value) continue;
        const Best candidate = {value, scramble(static_cast<u64>(static_cast<i64>(p) * 1000003 + v), t.seed), p, 0};
        if (best.below(candidate)) best = candidate;
    }
    best = best_of_group<false>(best);
    return {best.id, best.value - gains[a] - stays + relief};
}

// ------------------------------------------------------------------------------------ moves

__device__ __forceinline__ void look_again(const Fine& f, const Graph& g, const Scratch& s, const Table& t,
                                           const i32* parts, i32 v) {
    const Found found = find_move(f, g, s, t, parts, v);
    if (lane_index() != 0) return;
    s.wishes[v] = found.target;
    s.keys[v] = found.target < 0 ? NONE : found.gain;
}

// Moves a node to part b, keeps the tables of nets and the loads true, and marks the nets that may change what
// others find; by a whole warp, a net each lane. Other moves at the same time concern other parts.
__device__ void move_node(const Fine& f, const Graph& g, const Scratch& s, const Table& t, i32* parts, i32 v, i32 b,
                          u32* n_marks) {
    const i32 lane = lane_index(), k = t.n_parts, a = parts[v];
    const i64 first = g.node_offsets[v], last = g.node_offsets[v + 1];
    const i64 first_out = g.out_offsets[v], last_out = g.out_offsets[v + 1];
    for (i64 j = first_out + lane; j < last_out; j += 32) {
        i64* row = s.sources + static_cast<i64>(g.out_nets[j]) * k;
        add64(row + a, -g.out_weights[j]);
        add64(row + b, g.out_weights[j]);
    }
    if (lane < N_ADDITIVE) {
        const i64 amount = g.alone[static_cast<i64>(v) * N_LOADS + lane];
        add64(t.loads + a * N_LOADS + lane, -amount);
        add64(t.loads + b * N_LOADS + lane, amount);
    }
    __syncwarp();
    for (i64 base = first; base < last; base += 32) {
        const i64 j = base + lane;
        Mark mark = {0, 0, 0, a | b << 12};
        bool marked = false;
        if (j < last) {
            mark.net = g.node_nets[j];
            const i64 from = static_cast<i64>(mark.net) * k + a, to = static_cast<i64>(mark.net) * k + b;
            const i64 weight = f.net_weights[mark.net];
            const i32 left = --s.pins[from], now = ++s.pins[to];
            marked = left <= 1 || now <= 2;
            if (left == 0) {
                mark.parts |= 1 << 24;
                mark.from = s.sources[from] - weight;
                s.finds[from] = s.sources[from];
            }
            if (now == 1) {
                mark.parts |= 1 << 25;
                mark.to = weight - s.finds[to];
                s.finds[to] = weight;
            }
            for (i32 d = 0; d < N_DISTINCT; ++d) {
                const i64 count = f.counts[static_cast<i64>(mark.net) * N_DISTINCT + d];
                if (left == 0) add64(t.loads + a * N_LOADS + N_ADDITIVE + d, -count);
                if (now == 1) add64(t.loads + b * N_LOADS + N_ADDITIVE + d, count);
            }
        }
        const i32 place = place_in(n_marks, marked);
        if (marked) s.marks[place] = mark;
    }
    __syncwarp();
    for (i64 base = first_out; base < last_out; base += 32) {
        const i64 j = base + lane;
        Mark mark = {0, 0, 0, a | b << 12};
        bool marked = false;
        if (j < last_out) {
            mark.net = g.out_nets[j];
            i64* changes[2] = {&mark.from, &mark.to};
            for (i32 side = 0; side < 2; ++side) {
                const i64 at = static_cast<i64>(mark.net) * k + (side == 0 ? a : b);
                if (s.pins[at] > 0) continue;
                marked = true;  // a node may be a source of the net several times: only the first finds a change
                const i64 now = s.sources[at];
                *changes[side] = now - static_cast<i64>(atomicExch(reinterpret_cast<u64*>(s.finds + at), static_cast<u64>(now)));
            }
        }
        const i32 place = place_in(n_marks, marked);
        if (marked) s.marks[place] = mark;
    }
    if (lane == 0) parts[v] = b;
}

// Puts a node on the list of those to look at, unless it is there or has moved.
__device__ __forceinline__ void enqueue(const Scratch& s, i32 v, i32 turn, bool wanted, u32* length) {
    wanted = wanted && atomicMax(s.seen + (wanted ? v : 0), turn) < turn;
    const i32 place = place_in(length, wanted);
    if (wanted) s.queue[place] = v;
}

// Tells the nodes of marked nets what they find more, and puts them on the list of those to look at if
// `turn` is one. Parallel over nets (a warp each), their pins and sources.
__device__ __noinline__ void spread_marks(const Fine& f, const Graph& g, const Scratch& s, const Table& t, u32 n_marks,
                                          i32 turn, u32* n_queued) {
    const i32 lane = lane_index(), k = t.n_parts;
    for (u32 i = warp_index(); i < n_marks; i += n_warps()) {
        const Mark mark = s.marks[i];
        const i32 a = mark.parts & 0xFFF, b = mark.parts >> 12 & 0xFFF;
        const bool left = mark.parts >> 24 & 1, came = mark.parts >> 25 & 1;
        const i64 first = f.net_offsets[mark.net], n_pins = g.net_ends[mark.net] - first;
        const i64 first_source = f.source_offsets[mark.net];
        const i64 n = n_pins + (left || came ? f.source_offsets[mark.net + 1] - first_source : 0);
        for (i64 base = 0; base < n; base += 32) {
            const i64 j = base + lane;
            i64 more[2] = {mark.from, mark.to};
            i32 v = 0;
            if (j < n_pins) {
                v = g.net_pins[first + j];
                for (i32 d = 0; d < N_DISTINCT; ++d) {
                    const i32 count = static_cast<i32>(f.counts[static_cast<i64>(mark.net) * N_DISTINCT + d]);
                    if (left) atomicAdd(s.covered + (v * k + a) * N_DISTINCT + d, -count);
                    if (came) atomicAdd(s.covered + (v * k + b) * N_DISTINCT + d, count);
                }
            } else if (j < n) {
                v = g.source_nodes[first_source + j - n_pins];
                const i64 weight = g.source_gains[first_source + j - n_pins];
                more[0] = left ? -weight : 0;
                more[1] = came ? weight : 0;
            }
            if (j < n && more[0] != 0) add64(s.gains + v * k + a, more[0]);
            if (j < n && more[1] != 0) add64(s.gains + v * k + b, more[1]);
            enqueue(s, v, turn, turn >= 0 && j < n, n_queued);
        }
    }
}

// One pass of moves, many a turn (see `matched_pass` of the twin); returns what it gained. The tables are
// true afterwards only if they are `needed`.
__device__ __noinline__ i64 matched_pass(const Fine& f, const Graph& g, const Scratch& s, const Table& t, i32* parts,
                            i64 patience, bool needed) {
    __shared__ u32 n_chosen, n_new, n_queued, n_marks;
    __shared__ u64 gained;
    const i32 k = t.n_parts;
    for (i32 v = threadIdx.x; v < g.n; v += blockDim.x) s.seen[v] = -1;
    for (i32 p = threadIdx.x; p < k; p += blockDim.x) t.failed[p] = -1;
    for (i32 v = warp_index(); v < g.n; v += n_warps()) look_again(f, g, s, t, parts, v);
    i32 n_moved = 0, n_kept = 0;
    i64 current = 0, best = 0;
    for (i32 turn = 0; n_moved - n_kept <= patience; ++turn) {
        for (i32 p = threadIdx.x; p < k; p += blockDim.x) {
            t.best[p] = NONE;
            t.first[p] = MOVED;
        }
        if (threadIdx.x == 0) n_chosen = n_new = n_queued = n_marks = gained = 0;
        __syncthreads();
        i64 top = NONE;
        for (i32 v = threadIdx.x; v < g.n; v += blockDim.x) top = larger(top, s.keys[v]);
        top = largest_of_block(top);
        if (top == NONE) break;
        const i64 bar = top > 0 ? 1 : 4 * top;
        for (i32 v = threadIdx.x; v < g.n; v += blockDim.x) {
            const i64 key = s.keys[v];
            if (key < bar) continue;
            atomicMax(t.best + parts[v], key);
            atomicMax(t.best + s.wishes[v], key);
        }
        __syncthreads();
        for (i32 v = threadIdx.x; v < g.n; v += blockDim.x) {
            const i64 key = s.keys[v];
            if (key < bar) continue;
            if (t.best[parts[v]] == key) atomicMin(t.first + parts[v], v);
            if (t.best[s.wishes[v]] == key) atomicMin(t.first + s.wishes[v], v);
        }
        __syncthreads();
        for (i32 p = threadIdx.x; p < k; p += blockDim.x) {  // a chosen node is listed by the part it leaves
            const i32 v = t.first[p];
            if (v != MOVED && parts[v] == p && t.first[s.wishes[v]] == v) t.chosen[atomicAdd(&n_chosen, 1u)] = v;
        }
        __syncthreads();
        for (u32 i = warp_index(); i < n_chosen; i += n_warps()) {
            const i32 v = t.chosen[i];
            const Found found = find_move(f, g, s, t, parts, v);
            if (lane_index() != 0) continue;
            if (found.target != s.wishes[v] || found.gain < s.keys[v]) {
                t.failed[s.wishes[v]] = turn;
                continue;
            }
            const i32 place = n_moved + static_cast<i32>(atomicAdd(&n_new, 1u));
            s.moved[place] = v;
            s.origins[place] = parts[v];
            s.turns[place] = turn;
            s.seen[v] = MOVED;
            s.keys[v] = NONE;
            atomicAdd(&gained, static_cast<u64>(found.gain));
        }
        __syncthreads();
        const i32 n_more = static_cast<i32>(n_new);
        for (i32 i = warp_index(); i < n_more; i += n_warps())
            move_node(f, g, s, t, parts, s.moved[n_moved + i], s.wishes[s.moved[n_moved + i]], &n_marks);
        for (i32 base = 0; base < g.n; base += blockDim.x) {
            const i32 v = base + threadIdx.x;
            const bool in_play = v < g.n && s.keys[v] >= bar;
            enqueue(s, v, turn, in_play && t.failed[s.wishes[in_play ? v : 0]] == turn, &n_queued);
        }
        __syncthreads();
        spread_marks(f, g, s, t, n_marks, turn, &n_queued);
        __syncthreads();
        for (u32 i = warp_index(); i < n_queued; i += n_warps()) look_again(f, g, s, t, parts, s.queue[i]);
        n_moved += n_more;
        current += static_cast<i64>(gained);
        if (current > best) {
            best = current;
            n_kept = n_moved;
        }
        __syncthreads();
    }
    if (!needed)
        for (i32 i = n_kept + threadIdx.x; i < n_moved; i += blockDim.x) parts[s.moved[i]] = s.origins[i];
    while (needed && n_moved > n_kept) {  // a turn at once, the last first
        i32 first = n_moved - 1;
        while (first > n_kept && s.turns[first - 1] == s.turns[n_moved - 1]) --first;
        __syncthreads();
        if (threadIdx.x == 0) n_marks = 0;
        __syncthreads();
        for (i32 i = first + warp_index(); i < n_moved; i += n_warps())
            move_node(f, g, s, t, parts, s.moved[i], s.origins[i], &n_marks);
        __syncthreads();
        spread_marks(f, g, s, t, n_marks, -1, &n_queued);
        n_moved = first;
    }
    __syncthreads();
    return best;
}

// ------------------------------------------------------------------------------------ individuals

// What all individuals of a launch share.
struct Settings {
    i64 patience, passes, n_coarse_prices, n_fine_prices;
    const double* factors;  // coarse prices, then fine ones
    const i64* totals;
};

// Passes at each price in turn (see `refine` of _kernels_individual.py).
__device__ __noinline__ void refine(const Fine& f, const Graph& g, const Scratch& s, Table& t, i64* prices, const Settings& o,
                       i32* parts, const double* factors, i64 n_factors, i64 seed) {
    const i64 worth = fill_tables(f, g, s, t, parts, true);
    for (i64 i = 0; i < n_factors; ++i) {
        if (threadIdx.x < N_LOADS) {
            const double value = __dmul_rn(static_cast<double>(worth), factors[i]);
            prices[threadIdx.x] = static_cast<i64>(value / static_cast<double>(larger(o.totals[threadIdx.x], 1)));
        }
        for (i64 pass = 0; pass < o.passes; ++pass) {
            if (threadIdx.x == 0) t.seed = static_cast<u64>(seed);
            ++seed;
            __syncthreads();
            const bool last = i == n_factors - 1 && pass == o.passes - 1;
            if (matched_pass(f, g, s, t, parts, o.patience, !last) <= worth / 1000) break;
        }
    }
}

// Changes the number of parts, once all threads are done with what was.
__device__ __forceinline__ void set_parts(Table& t, i64 n_parts) {
    __syncthreads();
    if (threadIdx.x == 0) t.n_parts = static_cast<i32>(n_parts);
    __syncthreads();
}

// Numbers the parts that are left, and measures the partition: result = (parts, connectivity, overloads).
__device__ void judge(const Fine& f, const Graph& g, const Scratch& s, Table& t, i32* parts, i64* result) {
    i64* ranks = s.sources;
    for (i32 p = threadIdx.x; p < t.n_parts; p += blockDim.x) ranks[p] = 0;
    __syncthreads();
    for (i64 v = threadIdx.x; v < f.n; v += blockDim.x) ranks[parts[v]] = 1;
    __syncthreads();
    scan_block(ranks, t.n_parts);
    const i64 n_left = ranks[t.n_parts];
    for (i64 v = threadIdx.x; v < f.n; v += blockDim.x) parts[v] = static_cast<i32>(ranks[parts[v]]);
    set_parts(t, n_left);
    const i64 connectivity = fill_tables(f, g, s, t, parts, false);
    if (threadIdx.x >= N_LOADS) return;
    i64 over = 0;
    for (i64 p = 0; p < n_left; ++p) over += larger(t.loads[p * N_LOADS + threadIdx.x] - t.limits[threadIdx.x], 0);
    result[2 + threadIdx.x] = over;
    if (threadIdx.x != 0) return;
    result[0] = n_left;
    result[1] = connectivity;
}

// Clusters of the nodes that lie together in both partitions, by their pair of parts; returns how many.
__device__ i32 overlay(const Fine& f, const Scratch& s, const i32* first, const i32* second, i64 k, i64 other_k) {
    i64* numbers = s.sources;
    for (i64 i = threadIdx.x; i < k * other_k; i += blockDim.x) numbers[i] = 0;
    __syncthreads();
    for (i64 v = threadIdx.x; v < f.n; v += blockDim.x) numbers[first[v] * other_k + second[v]] = 1;
    __syncthreads();
    scan_block(numbers, k * other_k);
    for (i64 v = threadIdx.x; v < f.n; v += blockDim.x)
        s.clusters[v] = static_cast<i32>(numbers[first[v] * other_k + second[v]]);
    const i32 n = static_cast<i32>(numbers[k * other_k]);
    __syncthreads();
    return n;
}

// Refines the parts of the nodes while those of a cluster move together.
__device__ void refine_clusters(const Fine& f, Scratch& s, Table& t, i64* prices, const Settings& o, i32* parts,
                                const i32* clusters, i32 n, i64 seed, unsigned char* shared) {
    for (i64 v = threadIdx.x; v < f.n; v += blockDim.x) s.coarse_parts[clusters[v]] = parts[v];
    contract(f, clusters, n, s.coarse, reinterpret_cast<u32*>(shared));
    refine(f, s.coarse, s, t, prices, o, s.coarse_parts, o.factors, o.n_coarse_prices, seed);
    for (i64 v = threadIdx.x; v < f.n; v += blockDim.x) parts[v] = s.coarse_parts[clusters[v]];
    __syncthreads();
}

#define FINE_ARGUMENTS                                                                                       \
    const i64 *net_offsets, const i32 *net_pins, const i64 *source_offsets, const i32 *source_nodes,         \
        const i64 *source_weights, const i64 *net_weights, const i64 *counts, const i64 *resources, i64 n,   \
        i64 n_nets, i64 n_pins, i64 n_sources
#define FINE                                                                                                 \
    {net_offsets, net_pins, source_offsets, source_nodes, source_weights, net_weights, counts, resources, n, \
     n_nets, n_pins, n_sources}

// The finest level with lists by node, for all individuals. One block.
extern "C" __global__ void prepare_search(FINE_ARGUMENTS, i32* identity, unsigned char* memory) {
    DYNAMIC_SHARED(shared);
    const Fine f = FINE;
    for (i32 v = threadIdx.x; v < n; v += blockDim.x) identity[v] = v;
    __syncthreads();
    Graph g = cut_graph(memory, f);
    contract(f, identity, static_cast<i32>(n), g, reinterpret_cast<u32*>(shared));
}

// Individuals, each by a block: task = (seed, parts, first step, steps, first parent, parts of
// the second, the second). With parents (addresses of their parts) an offspring of both; else made[i] holds the
// parts to start with, and a step is a row of `maps`, its number of clusters, and the depth of that level.
// A block works through a few thousand nodes in shared memory and the L2 cache.
extern "C" __launch_bounds__(1024, 1) __global__ void make_individuals(
    FINE_ARGUMENTS, const unsigned char* prepared, const i64* tasks, i64 n_tasks,
                     const i32* maps, const i64* steps, i64 patience, i64 passes, const double* factors,
                     i64 n_coarse_prices, i64 n_fine_prices, i64 spare_parts, i64 max_parts, i64 most_parts,
                     const i64* limits, const i64* totals, i32* made, i64* results, unsigned char* memory,
                     i64 memory_each) {
    DYNAMIC_SHARED(shared);
    __shared__ i64 prices[N_LOADS];
    __shared__ Fine f;  // what is the same for all threads need not be in their registers
    __shared__ Graph fine;
    __shared__ Scratch s;
    __shared__ Table t;
    const Settings o = {patience, passes, n_coarse_prices, n_fine_prices, factors, totals};
    if (threadIdx.x == 0) {
        f = FINE;
        unsigned char* rest = const_cast<unsigned char*>(prepared);
        fine = cut_graph(rest, f);
        fine.n = static_cast<i32>(n);
        s = cut_scratch(memory + blockIdx.x * memory_each, f, most_parts);
        rest = shared;
        t.loads = cut<i64>(rest, most_parts * N_LOADS);
        t.best = cut<i64>(rest, most_parts);
        t.first = cut<i32>(rest, most_parts);
        t.failed = cut<i32>(rest, most_parts);
        t.chosen = cut<i32>(rest, most_parts);
        t.limits = limits;
        t.prices = prices;
    }
    __syncthreads();
    for (i64 i = blockIdx.x; i < n_tasks; i += gridDim.x) {
        const i64* task = tasks + 7 * i;
        const i64 seed = task[0];
        i32* parts = made + i * n;
        set_parts(t, task[1]);
        if (task[4] != 0) {
            const i32 *first = reinterpret_cast<const i32*>(task[4]), *second = reinterpret_cast<const i32*>(task[6]);
            const i32 n_blocks = overlay(f, s, first, second, task[1], task[5]);
            for (i64 v = threadIdx.x; v < n; v += blockDim.x) parts[v] = first[v];
            __syncthreads();
            if (n_blocks < n && n_blocks > t.n_parts * 5 / 4)
                refine_clusters(f, s, t, prices, o, parts, s.clusters, n_blocks, seed + 1, shared);
        }
        for (const i64* step = steps + 3 * task[2]; step < steps + 3 * (task[2] + task[3]); step += 3)
            refine_clusters(f, s, t, prices, o, parts, maps + step[0] * n, static_cast<i32>(step[1]), seed + step[2],
                            shared);
        set_parts(t, smaller(task[1] + spare_parts, larger(max_parts, task[1])));
        refine(f, fine, s, t, prices, o, parts, factors + n_coarse_prices, n_fine_prices, seed);
        judge(f, fine, s, t, parts, results + i * (2 + N_LOADS));
        __syncthreads();
    }
}
