// Individuals of the search on a small level, each made by one block. The twin is
// snnmap/partitioning/multilevel/_kernels_search.py; both give the same partitions.
//
// A block contracts the level by a map of its nodes, moves the coarse nodes, then the next finer
// map's, then the nodes themselves. Its tables lie in global memory (a few megabytes that stay in the L2 cache), what
// concerns parts in shared memory; it waits for nothing but its own barriers.
#include "common.cuh"
#include "block.cuh"
#include "search_level.cuh"
#include "search_fill.cuh"
#include "search_tables.cuh"
#include "search_moves.cuh"

// What all individuals of a launch share.
struct Settings {
    i64 passes, patience, turns, n_coarse_prices, n_fine_prices;
    const double* factors;  // coarse prices, then fine ones
    const i64* totals;
};

// Passes at each price in turn on `parts` (see `refine` of _kernels_individual.py).
__device__ __noinline__ void refine(const Fine& f, const Graph& g, const Scratch& s, Table& t, i64* prices, const Settings& o,
                       i32* parts, const double* factors, i64 n_factors, i64 seed) {
    __syncthreads();
    for (i32 v = threadIdx.x; v < g.n; v += blockDim.x) t.parts[v] = parts[v];
    __syncthreads();
    const i64 worth = fill_tables(f, g, s, t, true);
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
            if (matched_pass(f, g, s, t, o.patience, o.turns, !last) <= worth / 1000) break;
        }
    }
    clear_gains(g, s, t);
    for (i32 v = threadIdx.x; v < g.n; v += blockDim.x) parts[v] = t.parts[v];
    __syncthreads();
}

// Changes the number of parts, once all threads are done with what was.
__device__ __forceinline__ void set_parts(Table& t, i64 n_parts) {
    __syncthreads();
    if (threadIdx.x == 0) t.n_parts = static_cast<i32>(n_parts);
    __syncthreads();
}

// Numbers the parts that are left, and measures the partition: result = (parts, connectivity, overloads).
__device__ void judge(const Fine& f, const Graph& g, const Scratch& s, Table& t, i32* parts, i64* result) {
    u32* ranks = s.numbers;
    for (i32 p = threadIdx.x; p < t.n_parts; p += blockDim.x) ranks[p] = 0;
    __syncthreads();
    for (i64 v = threadIdx.x; v < f.n; v += blockDim.x) ranks[parts[v]] = 1;
    __syncthreads();
    scan_block(ranks, t.n_parts);
    const i64 n_left = ranks[t.n_parts];
    for (i64 v = threadIdx.x; v < f.n; v += blockDim.x) t.parts[v] = parts[v] = static_cast<i32>(ranks[parts[v]]);
    set_parts(t, n_left);
    const i64 connectivity = fill_tables(f, g, s, t, false);
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
    u32* numbers = s.numbers;
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

// Refines the parts of the nodes while those of a cluster, a node of s.coarse, move together.
__device__ void refine_clusters(const Fine& f, const Scratch& s, Table& t, i64* prices, const Settings& o, i32* parts,
                                const i32* clusters, i64 seed) {
    for (i64 v = threadIdx.x; v < f.n; v += blockDim.x) s.coarse_parts[clusters[v]] = parts[v];
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
     n_nets, n_pins, n_sources, source_nets}

// The finest level as individuals want it: its lists by node, and what they add up to; places are 32-bit; the net of each source. Parallel over pins,
// nets, sources and nodes; what source is a pin of its net is found by bisection.
extern "C" __global__ void prepare_search(FINE_ARGUMENTS, const i64* node_offsets, const i32* node_nets, const i64* out_offsets,
                                          const i32* out_nets, const i64* out_weights, i32* source_nets, unsigned char* memory) {
    const Fine f = FINE;
    const Graph g = cut_graph(memory, f);
    const i64 thread = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x, n_threads = gridDim.x * blockDim.x;
    const auto gain_of = [&](i64 net, i32 u, i64 weight) {
        const i64 end = net_offsets[net + 1], place = lower_bound(net_pins, net_offsets[net], end, u);
        return place < end && net_pins[place] == u ? -1 : weight;
    };
    for (i64 j = thread; j < n_pins; j += n_threads) {
        g.net_pins[j] = net_pins[j];
        g.node_nets[j] = node_nets[j];
    }
    for (i64 net = thread; net < n_nets; net += n_threads) {
        g.net_ends[net] = static_cast<i32>(net_offsets[net + 1]);
        for (i64 s = source_offsets[net]; s < source_offsets[net + 1]; ++s) {
            source_nets[s] = static_cast<i32>(net);
            g.source_nodes[s] = source_nodes[s];
            g.source_weights[s] = source_weights[s];
            g.source_gains[s] = gain_of(net, source_nodes[s], source_weights[s]);
        }
    }
    for (i64 v = thread; v <= n; v += n_threads) {
        g.node_offsets[v] = static_cast<i32>(node_offsets[v]);
        g.out_offsets[v] = static_cast<i32>(out_offsets[v]);
        if (v == n) break;
        for (i32 r = 0; r < N_ADDITIVE; ++r) g.resources[v * N_ADDITIVE + r] = resources[v * N_ADDITIVE + r];
        i64 weight = 0;
        for (i64 j = node_offsets[v]; j < node_offsets[v + 1]; ++j) {
            weight += net_weights[node_nets[j]];
            g.owners[j] = static_cast<u16>(v);
        }
        g.weights[v] = weight;
        for (i32 d = 0; d < N_DISTINCT; ++d) {
            i64 brought = 0;
            for (i64 j = node_offsets[v]; j < node_offsets[v + 1]; ++j) brought += counts[node_nets[j] * static_cast<i64>(N_DISTINCT) + d];
            g.brought[v * N_DISTINCT + d] = static_cast<i32>(brought);
        }
        for (i64 i = out_offsets[v]; i < out_offsets[v + 1]; ++i) {
            g.out_nets[i] = out_nets[i];
            g.out_gains[i] = gain_of(out_nets[i], static_cast<i32>(v), out_weights[i]);
        }
    }
}

// Levels for new partitions, each contracted by a block: a step is a row of `maps`, its number of clusters, and the depth
// of that level. Block i leaves that of step i where it would have its own contracted level in `make_individuals`, which has the
// same `clear` (zero before and after) and `memory`. Dynamic shared memory: 2 (n + 1) words.
extern "C" __launch_bounds__(1024, 1) __global__ void contract_steps(
    FINE_ARGUMENTS, i32* source_nets, const unsigned char* prepared, const i32* maps, const i64* steps, i64 most_parts,
                     unsigned char* clear, i64 clear_each, unsigned char* memory, i64 memory_each) {
    DYNAMIC_SHARED(shared);
    __shared__ Fine f;
    __shared__ Graph fine;
    __shared__ Scratch s;
    if (threadIdx.x == 0) {
        f = FINE;
        unsigned char* lists = const_cast<unsigned char*>(prepared);
        fine = cut_graph(lists, f);
        s = cut_scratch(clear + blockIdx.x * clear_each, memory + blockIdx.x * memory_each, f, most_parts);
    }
    __syncthreads();
    const i64* step = steps + 3 * blockIdx.x;
    contract(f, fine, {maps + step[0] * n}, static_cast<i32>(step[1]), s.coarse, s, reinterpret_cast<u32*>(shared));
}

// By which partitions are compared: `Search.weigh` of the twin, in 128 bits.
struct Cost {
    u64 high, low;

    __device__ __forceinline__ void add(u64 a, u64 b) {
        const u64 product = a * b;
        low += product;
        high += __umul64hi(a, b) + (low < product);
    }
    __device__ __forceinline__ bool operator<(const Cost& other) const {
        return high != other.high ? high < other.high : low < other.low;
    }
};

__device__ __forceinline__ Cost cost_of(const i64* result, const i64* totals, double price) {
    Cost cost = {0, static_cast<u64>(result[1])};
    for (i32 r = 0; r < N_LOADS; ++r) {
        if (result[2 + r] == 0) continue;
        const double worth = __dmul_rn(static_cast<double>(result[1]), price) / static_cast<double>(larger(totals[r], 1));
        cost.add(static_cast<u64>(result[2 + r]), static_cast<u64>(worth));
    }
    return cost;
}

const i32 MOST_RANKED = 2048;

// tasks of `make_individuals` for offspring of new partitions: drawn[i] = (ranks of both parents among n <= MOST_RANKED by their
// cost, then by their place; seed). One block. `results` and `made` are what made the partitions.
extern "C" __launch_bounds__(1024, 1) __global__ void choose_parents(const i64* results, i64 n, const i32* made, i64 n_nodes,
                                                                     const i64* drawn, i64 n_drawn, const i64* totals,
                                                                     i64 price, i64* tasks) {
    __shared__ Cost costs[MOST_RANKED];
    __shared__ u16 ranked[MOST_RANKED];
    for (i64 i = threadIdx.x; i < n; i += blockDim.x)
        costs[i] = cost_of(results + i * (2 + N_LOADS), totals, __longlong_as_double(price));
    __syncthreads();
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
        i64 rank = 0;
        for (i64 j = 0; j < n; ++j) rank += costs[j] < costs[i] || (j < i && !(costs[i] < costs[j]));
        ranked[rank] = static_cast<u16>(i);
    }
    __syncthreads();
    for (i64 k = threadIdx.x; k < n_drawn; k += blockDim.x) {
        // Of equal costs the one drawn first is the better one.
        const u16 first = ranked[drawn[3 * k]], second = ranked[drawn[3 * k + 1]];
        const bool swapped = costs[second] < costs[first];
        const i64 better = swapped ? second : first, other = swapped ? first : second;
        i64* task = tasks + 7 * k;
        task[0] = drawn[3 * k + 2];
        task[1] = results[better * (2 + N_LOADS)];
        task[2] = task[3] = 0;
        task[4] = reinterpret_cast<i64>(made + better * n_nodes);
        task[5] = results[other * (2 + N_LOADS)];
        task[6] = reinterpret_cast<i64>(made + other * n_nodes);
    }
}

// Individuals, each by a block: task = (seed, parts, first step, steps, first parent, parts of
// the second, the second). With parents (addresses of their parts) an offspring of both; else the second is the row of `maps`
// with the parts to start with. `are_ready`: whether `contract_steps` has contracted the levels of all steps; those have no parents then.
// `clear` is zero before and after. `has_near`: whether shared memory has room to keep which parts are near to a node.
// A block works through a few thousand nodes in shared memory and the L2 cache.
extern "C" __launch_bounds__(1024, 1) __global__ void make_individuals(
    FINE_ARGUMENTS, i32* source_nets, const unsigned char* prepared, const i64* tasks, i64 n_tasks,
                     const i32* maps, const i64* steps, i64 passes, i64 patience, i64 turns, const double* factors,
                     i64 n_coarse_prices, i64 n_fine_prices, i64 spare_parts, i64 max_parts, i64 most_parts,
                     const i64* limits, const i64* totals, i32* made, i64* results, unsigned char* clear, i64 clear_each,
                     unsigned char* memory, i64 memory_each, i64 has_near, i64 are_ready) {
    DYNAMIC_SHARED(shared);
    __shared__ i64 prices[N_LOADS], own_limits[N_LOADS];
    __shared__ Fine f;  // what is the same for all threads need not be in their registers
    __shared__ Graph fine;
    __shared__ Scratch s;
    __shared__ Table t;
    const Settings o = {passes, patience, turns, n_coarse_prices, n_fine_prices, factors, totals};
    unsigned char* rest = const_cast<unsigned char*>(prepared);
    if (threadIdx.x == 0) {
        f = FINE;
        fine = cut_graph(rest, f);
        fine.n = static_cast<i32>(n);
        s = cut_scratch(clear + blockIdx.x * clear_each, memory + blockIdx.x * memory_each, f, most_parts);
        rest = shared;
        t.loads.pointer = cut<i64>(rest, most_parts * N_LOADS);
        t.best.pointer = cut<i64>(rest, 4 * most_parts);
        t.failed.pointer = cut<i32>(rest, most_parts);
        t.keys.pointer = cut<i64>(rest, n);  // what follows is also what contraction works with
        t.wishes.pointer = cut<i32>(rest, n);
        t.seen.pointer = cut<i32>(rest, n);
        t.parts.pointer = cut<i32>(rest, n);
        t.queue.pointer = cut<u16>(rest, n);
        t.players.pointer = cut<u16>(rest, 2 * n);
        t.marks.pointer = cut<Mark>(rest, NEAR_MARKS);
        t.reaches.pointer = cut<Reach>(rest, NEAR_MARKS);
        t.listed.pointer = cut<u32>(rest, words_of(static_cast<i32>(n)));
        t.has_near = has_near != 0;
        t.near.pointer = cut<u32>(rest, t.has_near ? n * words_of(most_parts) : 0);
        t.limits.pointer = own_limits;
        t.prices.pointer = prices;
    }
    if (threadIdx.x < N_LOADS) own_limits[threadIdx.x] = limits[threadIdx.x];
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
            if (n_blocks < n && n_blocks > t.n_parts * 5 / 4) {
                contract(f, fine, {s.clusters}, n_blocks, s.coarse, s, t.keys.as<u32>());
                refine_clusters(f, s, t, prices, o, parts, s.clusters, seed + 1);
            }
        }
        for (i64 v = threadIdx.x; task[4] == 0 && v < n; v += blockDim.x) parts[v] = maps[task[6] * n + v];
        __syncthreads();
        for (i64 number = task[2]; number < task[2] + task[3]; ++number) {
            const i64* step = steps + 3 * number;
            const i32 n_clusters = static_cast<i32>(step[1]);
            if (!are_ready) {
                contract(f, fine, {maps + step[0] * n}, n_clusters, s.coarse, s, t.keys.as<u32>());
            } else if (threadIdx.x == 0) {
                rest = memory + number * memory_each;
                s.coarse = cut_graph(rest, f);
                s.coarse.n = n_clusters;
            }
            refine_clusters(f, s, t, prices, o, parts, maps + step[0] * n, seed + step[2]);
        }
        set_parts(t, smaller(task[1] + spare_parts, larger(max_parts, task[1])));
        refine(f, fine, s, t, prices, o, parts, factors + n_coarse_prices, n_fine_prices, seed);
        judge(f, fine, s, t, parts, results + i * (2 + N_LOADS));
        __syncthreads();
    }
}
