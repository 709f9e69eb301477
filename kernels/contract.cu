// Contraction: the level whose nodes are clusters. Nets keep each cluster once; nets with equal
// clusters become one, numbered by the first of them. The twin is `contract_nets` of
// snnmap/partitioning/multilevel/engine_cpu.py; both give the same arrays.
//
// Two cooperative launches. Between them the host learns the sizes of what the second one writes.
#include "common.cuh"
#include "grid.cuh"

// The level that is contracted, and what the first launch leaves for the second.
struct Contraction {
    const i64* net_offsets;
    const i32* net_pins;
    const i64* source_offsets;
    const i32* source_nodes;
    const i64 *source_weights, *net_weights, *counts, *resources;
    const i32* clusters;
    i64 n_nets, n_sources, n_nodes, n_clusters, n_additive, n_distinct;
    i64 hash_mask;  // what is looked at of the hash of a net
    // zero at the start
    u64* state;      // two gates, then the fields of Counter
    u64* set_keys;   // hash table of sets of clusters: their hash, 0 where free,
    u64* set_firsts; // and n_nets - the first net with it
    u64* pair_keys;  // hash table of (net, source) pairs, plus 1
    i64* pair_weights;
    i64 *source_counts, *out_counts;  // rows of pairs, by new net and by cluster
    // anything at the start
    i64 *sizes, *new_offsets, *new_source_offsets, *new_out_offsets, *totals;
    i32 *slots, *groups, *numbers, *first_nets, *long_nets, *long_sources, *long_outs;
    i64 set_slots, pair_slots;  // powers of two
};

#define CONTRACTION_ARGUMENTS                                                                               \
    const i64 *net_offsets, const i32 *net_pins, const i64 *source_offsets, const i32 *source_nodes,        \
        const i64 *source_weights, const i64 *net_weights, const i64 *counts, const i64 *resources,         \
        const i32 *clusters, i64 n_nets, i64 n_sources, i64 n_nodes, i64 n_clusters, i64 n_additive,        \
        i64 n_distinct, i64 hash_mask, u64 *state, u64 *set_keys, u64 *set_firsts, u64 *pair_keys,          \
        i64 *pair_weights, i64 *source_counts, i64 *out_counts, i64 *sizes, i64 *new_offsets,               \
        i64 *new_source_offsets, i64 *new_out_offsets, i64 *totals, i32 *slots, i32 *groups, i32 *numbers,  \
        i32 *first_nets, i32 *long_nets, i32 *long_sources, i32 *long_outs, i64 set_slots, i64 pair_slots
#define CONTRACTION                                                                                            \
    {net_offsets, net_pins, source_offsets, source_nodes, source_weights, net_weights, counts, resources,      \
     clusters, n_nets, n_sources, n_nodes, n_clusters, n_additive, n_distinct, hash_mask, state, set_keys,     \
     set_firsts, pair_keys, pair_weights, source_counts, out_counts, sizes, new_offsets, new_source_offsets,   \
     new_out_offsets, totals, slots, groups, numbers, first_nets, long_nets, long_sources, long_outs,          \
     set_slots, pair_slots}

// Words of `state` after the gates.
enum Counter { N_LONG = 2 * GATE_WORDS, N_LONG_SOURCES, N_LONG_OUTS, N_DIFFERENT, N_NETS, N_PINS, N_PAIRS, N_CLUSTERS };

__device__ __forceinline__ i64 first_net(const Contraction& in, i64 net) {
    return in.n_nets - static_cast<i64>(in.set_firsts[in.slots[net]]);
}

// Slot of a key in an open hash table of 64-bit words, which is claimed if it is new.
__device__ __forceinline__ i64 claim64(u64* keys, i64 n_slots, u64 key, bool& fresh) {
    i64 slot = static_cast<i64>(mix64(key)) & (n_slots - 1);
    for (;; slot = (slot + 1) & (n_slots - 1)) {
        u64 found = *const_cast<volatile u64*>(keys + slot);
        if (found == 0) found = atomicCAS(keys + slot, static_cast<u64>(0), key);
        fresh = found == 0;
        if (fresh || found == key) return slot;
    }
}

__device__ __forceinline__ u64 pair_key(i64 net, i64 cluster) { return static_cast<u64>(net << 32 | cluster) + 1; }

// The size and the slot of a net, once all threads of its group have counted and hashed their share.
template <bool BLOCK>
__device__ __forceinline__ void note_net(const Contraction& in, i64 net, i64 size, i64 hash) {
    if (Group<BLOCK>::rank() != 0) return;
    const u64 kept = (static_cast<u64>(hash) + mix64(static_cast<u64>(size))) & static_cast<u64>(in.hash_mask);
    bool fresh;
    const i64 slot = claim64(in.set_keys, in.set_slots, kept == 0 ? 1 : kept, fresh);
    atomicMax(in.set_firsts + slot, static_cast<u64>(in.n_nets - net));
    in.sizes[net] = size;
    in.slots[net] = static_cast<i32>(slot);
}

__device__ __forceinline__ i64 hash_cluster(i32 cluster) {
    return static_cast<i64>(mix64(static_cast<u64>(cluster) * 0x9E3779B97F4A7C15ull + 1));
}

// Counts nets that have not the clusters of the first one with their hash: equally many, all of that one.
__device__ __forceinline__ void note_difference(const Contraction& in, bool differs) {
    if (differs) atomicAdd(in.state + N_DIFFERENT, 1ull);
}

// What each net will be, in counts. `n_found`: how many clusters there are, where the host does not know yet.
// Parallel over nets (a warp or a block each) and their pins, twice for nets that are not the first
// of their set; gathers clusters (cached). Then over nets and sources. Deterministic: sums, minima;
// numbers by scans.
extern "C" __launch_bounds__(1024, 1) __global__ void begin_contraction(CONTRACTION_ARGUMENTS, const u64* n_found,
                                                                        i64 n_bytes) {
    DYNAMIC_SHARED(memory);
    if (n_found != nullptr) n_clusters = static_cast<i64>(*n_found);
    const Contraction in = CONTRACTION;
    Grid grid(in.state, memory, n_bytes);
    const i64* offsets = in.net_offsets;
    const i32 lane = threadIdx.x & 31;

    const bool dense = in.n_clusters <= 32 * WARP_WORDS;
    const auto measure_by = [&](i64 net, const auto& set) {
        i64 n = 0, hash = 0;
        for (i64 j = offsets[net] + lane; j < offsets[net + 1]; j += 32) {
            const i32 cluster = in.clusters[in.net_pins[j]];
            if (!set.add(cluster)) continue;
            ++n;
            hash += hash_cluster(cluster);
        }
        n = sum_warp(n);
        note_net<false>(in, net, n, sum_warp(hash));
    };
    for_short_rows(grid, offsets, in.n_nets, in.long_nets, in.state + N_LONG, [&](i64 net) {
        if (dense)
            measure_by(net, WarpBits(grid.own_words(), in.n_clusters));
        else
            measure_by(net, HashSet(grid.own_words(), offsets[net + 1] - offsets[net]));
    });
    grid.meet();
    for_long_rows(in.long_nets, in.state + N_LONG, [&](i64 net) {
        i64 n = 0, hash = 0, total_hash;
#pragma unroll 1
        for (i64 first = 0; first < in.n_clusters; first += 32 * grid.n_words) {
            const BitSet set(grid, first, in.n_clusters);
            for (i64 j = offsets[net] + threadIdx.x; j < offsets[net + 1]; j += blockDim.x) {
                const i32 cluster = in.clusters[in.net_pins[j]];
                if (!set.covers(cluster) || !set.add(cluster)) continue;
                ++n;
                hash += hash_cluster(cluster);
            }
            __syncthreads();
        }
        grid.sum_before(n, n);
        grid.sum_before(hash, total_hash);
        note_net<true>(in, net, n, total_hash);
    });
    grid.meet();

    const auto is_first = [&](i64 net) { return static_cast<i64>(first_net(in, net) == net); };
    const auto size_of = [&](i64 net) { return first_net(in, net) == net ? in.sizes[net] : 0; };
    grid.sum_share(in.totals, in.n_nets, is_first);
    grid.sum_share(in.totals + gridDim.x, in.n_nets, size_of);
    const auto compare_by = [&](i64 net, i64 other, const auto& set) {
        bool differs = false;
        for (i64 j = offsets[net] + lane; j < offsets[net + 1]; j += 32) set.add(in.clusters[in.net_pins[j]]);
        __syncwarp();
        for (i64 j = offsets[other] + lane; j < offsets[other + 1]; j += 32)
            differs |= !set.has(in.clusters[in.net_pins[j]]);
        __syncwarp();
        note_difference(in, differs);
    };
    for_short_rows(grid, offsets, in.n_nets, nullptr, nullptr, [&](i64 net) {
        const i64 other = first_net(in, net);
        if (other == net) return;
        if (in.sizes[net] != in.sizes[other])
            note_difference(in, true);
        else if (dense)
            compare_by(net, other, WarpBits(grid.own_words(), in.n_clusters));
        else
            compare_by(net, other, HashSet(grid.own_words(), offsets[net + 1] - offsets[net]));
    });
    __syncthreads();  // warps have their words in what now are the block's
    for_long_rows(in.long_nets, in.state + N_LONG, [&](i64 net) {
        const i64 other = first_net(in, net);
        if (other == net) return;
        bool differs = in.sizes[net] != in.sizes[other];
#pragma unroll 1
        for (i64 first = 0; first < in.n_clusters && in.sizes[net] == in.sizes[other]; first += 32 * grid.n_words) {
            const BitSet set(grid, first, in.n_clusters);
            for (i64 j = offsets[net] + threadIdx.x; j < offsets[net + 1]; j += blockDim.x) {
                const i32 cluster = in.clusters[in.net_pins[j]];
                if (set.covers(cluster)) set.add(cluster);
            }
            __syncthreads();
            for (i64 j = offsets[other] + threadIdx.x; j < offsets[other + 1]; j += blockDim.x) {
                const i32 cluster = in.clusters[in.net_pins[j]];
                differs |= set.covers(cluster) && !set.has(cluster);
            }
            __syncthreads();
        }
        note_difference(in, differs);
    });
    grid.meet();

    const auto number_net = [&](i64 net, i64 first, i64 number) {
        in.numbers[net] = static_cast<i32>(number);
        if (first) in.first_nets[number] = static_cast<i32>(net);
    };
    const i64 n_new = grid.scan_share(in.totals, in.n_nets, is_first, number_net);
    const i64 n_pins = grid.scan_share(in.totals + gridDim.x, in.n_nets, size_of, [&](i64 net, i64, i64 place) {
        if (first_net(in, net) == net) in.new_offsets[in.numbers[net]] = place;
    });
    if (grid.thread() == 0) {
        in.new_offsets[n_new] = n_pins;
        in.state[N_NETS] = n_new;
        in.state[N_PINS] = n_pins;
    }
    grid.meet();

#pragma unroll 1
    for (i64 net = grid.thread(); net < in.n_nets; net += grid.n_threads())
        in.groups[net] = in.numbers[first_net(in, net)];
    for_all_items(grid, in.source_offsets, in.n_nets, in.n_sources, [&](i64 net, i64 j) {
        const i64 cluster = in.clusters[in.source_nodes[j]], group = in.numbers[first_net(in, net)];
        bool fresh;
        const i64 slot = claim64(in.pair_keys, in.pair_slots, pair_key(group, cluster), fresh);
        add64(in.pair_weights + slot, in.source_weights[j]);
        if (!fresh) return;
        add64(in.source_counts + group, 1);
        add64(in.out_counts + cluster, 1);
    });
    grid.meet();

    const auto sources_of = [&](i64 net) { return in.source_counts[net]; };
    const auto outs_of = [&](i64 cluster) { return in.out_counts[cluster]; };
    grid.sum_share(in.totals, n_new, sources_of);
    grid.sum_share(in.totals + gridDim.x, in.n_clusters, outs_of);
    grid.meet();
    const i64 n_pairs = grid.scan_share(in.totals, n_new, sources_of, [&](i64 net, i64, i64 place) {
        in.new_source_offsets[net] = place;
    });
    grid.scan_share(in.totals + gridDim.x, in.n_clusters, outs_of, [&](i64 cluster, i64, i64 place) {
        in.new_out_offsets[cluster] = place;
    });
    if (grid.thread() == 0) {
        in.new_source_offsets[n_new] = in.new_out_offsets[in.n_clusters] = n_pairs;
        in.state[N_PAIRS] = n_pairs;
        in.state[N_CLUSTERS] = in.n_clusters;
    }
}

// The arrays of the new level, without its lists by node.
struct Coarse {
    i64* net_offsets;
    i32* net_pins;
    i64* source_offsets;
    i32* source_nodes;
    i64 *source_weights, *out_offsets;
    i32* out_nets;
    i64 *out_weights, *net_weights, *counts, *resources;
};

#define COARSE_ARGUMENTS                                                                                      \
    i64 *coarse_net_offsets, i32 *coarse_net_pins, i64 *coarse_source_offsets, i32 *coarse_source_nodes,      \
        i64 *coarse_source_weights, i64 *coarse_out_offsets, i32 *coarse_out_nets, i64 *coarse_out_weights,   \
        i64 *coarse_net_weights, i64 *coarse_counts, i64 *coarse_resources
#define COARSE                                                                                                \
    {coarse_net_offsets, coarse_net_pins, coarse_source_offsets, coarse_source_nodes, coarse_source_weights,  \
     coarse_out_offsets, coarse_out_nets, coarse_out_weights, coarse_net_weights, coarse_counts, coarse_resources}

__device__ __forceinline__ void copy(const Grid& grid, const i64* from, i64* to, i64 n) {
#pragma unroll 1
    for (i64 i = grid.thread(); i < n; i += grid.n_threads()) to[i] = from[i];
}

__device__ __forceinline__ void clear(const Grid& grid, i64* values, i64 n) {
#pragma unroll 1
    for (i64 i = grid.thread(); i < n; i += grid.n_threads()) values[i] = 0;
}

// The weight of a pair that is in the table.
__device__ __forceinline__ i64 weight_of(const Contraction& in, i64 net, i64 cluster) {
    bool fresh;
    return in.pair_weights[claim64(in.pair_keys, in.pair_slots, pair_key(net, cluster), fresh)];
}

// The level itself.
// Parallel over nets that are the first of their set (a warp or a block each), pairs, rows of pairs;
// reads the pins of those nets and writes the new ones once. Deterministic: every row is sorted.
extern "C" __launch_bounds__(1024, 1) __global__ void finish_contraction(CONTRACTION_ARGUMENTS, COARSE_ARGUMENTS,
                                                                         i64 n_bytes) {
    DYNAMIC_SHARED(memory);
    const Contraction in = CONTRACTION;
    const Coarse out = COARSE;
    Grid grid(in.state + GATE_WORDS, memory, n_bytes);
    const i64* offsets = in.net_offsets;
    const i32 lane = threadIdx.x & 31;
    const i64 n_new = in.state[N_NETS];

    clear(grid, out.net_weights, n_new);
    clear(grid, out.counts, n_new * in.n_distinct);
    clear(grid, out.resources, in.n_clusters * in.n_additive);
    copy(grid, in.new_offsets, out.net_offsets, n_new + 1);
    copy(grid, in.new_source_offsets, out.source_offsets, n_new + 1);
    copy(grid, in.new_out_offsets, out.out_offsets, in.n_clusters + 1);
#pragma unroll 1
    for (i64 slot = grid.thread(); slot < in.pair_slots; slot += grid.n_threads()) {
        if (in.pair_keys[slot] == 0) continue;
        const i64 pair = static_cast<i64>(in.pair_keys[slot] - 1), net = pair >> 32, cluster = pair & 0xFFFFFFFFll;
        const u64 in_row = atomicAdd(reinterpret_cast<u64*>(in.source_counts + net), ~0ull) - 1;
        const u64 in_outs = atomicAdd(reinterpret_cast<u64*>(in.out_counts + cluster), ~0ull) - 1;
        out.source_nodes[in.new_source_offsets[net] + in_row] = static_cast<i32>(cluster);
        out.out_nets[in.new_out_offsets[cluster] + in_outs] = static_cast<i32>(net);
    }
#pragma unroll 1
    for (i64 g = grid.thread() >> 5; g < n_new; g += grid.n_threads() >> 5) {
        const i64 net = in.first_nets[g], n = offsets[net + 1] - offsets[net];
        if (n > SHORT_ROW) continue;
        i32* pins = out.net_pins + in.new_offsets[g];
        const auto fill = [&](const auto& set) {
            for (i64 j = offsets[net] + lane; j < offsets[net + 1]; j += 32) set.add(in.clusters[in.net_pins[j]]);
            __syncwarp();
        };
        if (in.n_clusters <= 32 * WARP_WORDS) {
            const WarpBits set(grid.own_words(), in.n_clusters);
            fill(set);
            set.list(pins);
        } else {
            const HashSet set(grid.own_words(), n);
            fill(set);
            const i32 n_left = set.compact();
            sort_short(set.keys, n_left);
            for (i32 i = lane; i < n_left; i += 32) pins[i] = set.keys[i];
        }
        __syncwarp();
    }
    __syncthreads();
    for_long_rows(in.long_nets, in.state + N_LONG, [&](i64 net) {
        if (first_net(in, net) != net) return;
        i64 place = in.new_offsets[in.groups[net]];
#pragma unroll 1
        for (i64 first = 0; first < in.n_clusters; first += 32 * grid.n_words) {
            const BitSet set(grid, first, in.n_clusters);
            for (i64 j = offsets[net] + threadIdx.x; j < offsets[net + 1]; j += blockDim.x) {
                const i32 cluster = in.clusters[in.net_pins[j]];
                if (set.covers(cluster)) set.add(cluster);
            }
            __syncthreads();
            place += set.list(grid, out.net_pins + place);
            __syncthreads();
        }
    });
    grid.meet();

#pragma unroll 1
    for (i64 net = grid.thread(); net < in.n_nets; net += grid.n_threads()) {
        const i64 group = in.groups[net];
        if (in.net_weights[net] != 0) add64(out.net_weights + group, in.net_weights[net]);
#pragma unroll 1
        for (i64 c = 0; c < in.n_distinct; ++c) add64(out.counts + group * in.n_distinct + c, in.counts[net * in.n_distinct + c]);
    }
#pragma unroll 1
    for (i64 v = grid.thread(); v < in.n_nodes; v += grid.n_threads())
#pragma unroll 1
        for (i64 r = 0; r < in.n_additive; ++r)
            add64(out.resources + in.clusters[v] * in.n_additive + r, in.resources[v * in.n_additive + r]);

    const auto finish_sources = [&](i64 net, auto sort, i32 rank, i32 size) {
        const i64 first = in.new_source_offsets[net], last = in.new_source_offsets[net + 1];
        sort(out.source_nodes + first, last - first, in.n_clusters);
#pragma unroll 1
        for (i64 i = first + rank; i < last; i += size) out.source_weights[i] = weight_of(in, net, out.source_nodes[i]);
    };
    const auto finish_outs = [&](i64 cluster, auto sort, i32 rank, i32 size) {
        const i64 first = in.new_out_offsets[cluster], last = in.new_out_offsets[cluster + 1];
        sort(out.out_nets + first, last - first, n_new);
#pragma unroll 1
        for (i64 i = first + rank; i < last; i += size) out.out_weights[i] = weight_of(in, out.out_nets[i], cluster);
    };
    const auto sort_by_warp = [&](i32* ids, i64 n, i64 n_ids) { sort_row<false>(grid, ids, n, n_ids); };
    const auto sort_by_block = [&](i32* ids, i64 n, i64 n_ids) { sort_row<true>(grid, ids, n, n_ids); };
    for_short_rows(grid, in.new_source_offsets, n_new, in.long_sources, in.state + N_LONG_SOURCES,
                   [&](i64 net) { finish_sources(net, sort_by_warp, lane, 32); });
    for_short_rows(grid, in.new_out_offsets, in.n_clusters, in.long_outs, in.state + N_LONG_OUTS,
                   [&](i64 cluster) { finish_outs(cluster, sort_by_warp, lane, 32); });
    grid.meet();
    for_long_rows(in.long_sources, in.state + N_LONG_SOURCES,
                  [&](i64 net) { finish_sources(net, sort_by_block, threadIdx.x, blockDim.x); });
    for_long_rows(in.long_outs, in.state + N_LONG_OUTS,
                  [&](i64 cluster) { finish_outs(cluster, sort_by_block, threadIdx.x, blockDim.x); });
}
