// The hierarchies of clusters with which the search of a small level begins: all turns of all of them in one
// launch. The twin is `Search.cluster` of snnmap/partitioning/multilevel/search.py with _kernels_cluster.py; both
// give the same clusters.
//
// One cooperative launch, in which a crew of blocks makes a hierarchy. In a turn the crew rates all nodes (a warp
// each), its first block decides who joins whom, and the crew contracts the level: nets stay, their pins become
// distinct clusters.
#include "common.cuh"
#include "grid.cuh"
#include "block.cuh"
#include "search_level.cuh"
#include "search_rating.cuh"
#include "search_cluster.cuh"

// What all hierarchies of a launch share.
struct Plan {
    i64 all_sizes, largest;  // size of all nodes together, of the largest
    double growth, shrink;
    i64 n_slots, most_levels;
};

// Copies of the lists of the finest level, which turns change in place; every node alone.
__device__ __noinline__ void begin_hierarchy(const Crew& crew, const Finest& f, const Lists& l) {
#pragma unroll 1
    for (i64 j = crew.thread(); j < f.n_pins; j += crew.n_threads()) {
        l.net_pins[j] = f.net_pins[j];
        l.node_nets[j] = f.node_nets[j];
    }
#pragma unroll 1
    for (i64 s = crew.thread(); s < f.n_sources; s += crew.n_threads()) {
        l.source_nodes[s] = f.source_nodes[s];
        l.out_nets[s] = f.out_nets[s];
        l.out_weights[s] = f.out_weights[s];
    }
#pragma unroll 1
    for (i64 g = crew.thread(); g < f.n_nets; g += crew.n_threads())
        l.net_sizes[g] = static_cast<i32>(f.net_offsets[g + 1] - f.net_offsets[g]);
#pragma unroll 1
    for (i64 v = crew.thread(); v < f.n; v += crew.n_threads()) {
        l.node_firsts[v] = static_cast<u32>(f.node_offsets[v]);
        l.node_sizes[v] = static_cast<u32>(f.node_offsets[v + 1] - f.node_offsets[v]);
        l.out_firsts[v] = static_cast<u32>(f.out_offsets[v]);
        l.out_sizes[v] = static_cast<u32>(f.out_offsets[v + 1] - f.out_offsets[v]);
        l.factors[v] = factor_of(f.resources[v * N_ADDITIVE]);
        l.clusters[v] = static_cast<i32>(v);
        for (i32 r = 0; r < N_ADDITIVE; ++r) l.loads[v * N_LOADS + r] = f.resources[v * N_ADDITIVE + r];
    }
#pragma unroll 1
    for (i64 v = crew.thread() >> 5; v < f.n; v += crew.n_threads() >> 5)
        for (i32 d = 0; d < N_DISTINCT; ++d) {
            i64 load = 0;
#pragma unroll 1
            for (i64 j = f.node_offsets[v] + (threadIdx.x & 31); j < f.node_offsets[v + 1]; j += 32)
                load += f.counts[static_cast<i64>(f.node_nets[j]) * N_DISTINCT + d];
            load = sum_warp(load);
            if ((threadIdx.x & 31) == 0) l.loads[v * N_LOADS + N_ADDITIVE + d] = load;
        }
}

// All levels of a hierarchy: maps[level][v] is the cluster of node v of the finest level, sizes[level] their
// number. With `bundles` it begins with those. `memory` is shared; `join_memory` is for joining if shared memory has no room for that, else null.
__device__ void make_hierarchy(Crew& crew, const Finest& f, Lists& l, const Plan& plan, const i64* limits, i64 seed, const i32* bundles,
                               i64* scratch, unsigned char* memory, unsigned char* join_memory, i32* maps, i64* sizes) {
    begin_hierarchy(crew, f, l);
    crew.meet();
    const i64 widest = smaller(limits[0], plan.all_sizes);
    i64 n = f.n, largest = plan.largest;
    if (bundles != nullptr) {
        if (crew.index == 0 && join_memory == nullptr)
            join_bundles<Shared>(l, bundles, n, scratch, memory, crew.gate);
        else if (crew.index == 0)
            join_bundles<Global>(l, bundles, n, scratch, join_memory, crew.gate);
        crew.meet();
        const i64 left = static_cast<i64>(crew.gate[STATE_LEFT]);
        if (left < n) {
            become_clusters(crew, f, l, left, memory);
            n = left;
            largest = static_cast<i64>(crew.gate[STATE_LARGEST]);
#pragma unroll 1
            for (i64 v = crew.thread(); v < f.n; v += crew.n_threads()) maps[v] = l.clusters[v];
            if (crew.thread() == 0) sizes[0] = n;  // unless something merges
        }
        crew.meet();
    }
    for (i64 level = 0, n_level = n + 1; n < n_level && level < plan.most_levels; ++level) {
        n_level = n;
        const i64 average = plan.all_sizes / larger(n, 1);
        const i64 target = static_cast<i64>(__dmul_rn(static_cast<double>(n), plan.shrink));
        i64 cap = static_cast<i64>(__dmul_rn(static_cast<double>(average), plan.growth));
        cap = smaller(widest, larger(larger(cap, largest), 1));
        for (i64 turn = seed + level + 1; n > target; turn += NEXT_TURN) {
            rate_nodes(crew, f, l, limits, n, cap, turn, memory, static_cast<u32>(plan.n_slots));
            crew.meet();
            if (crew.index == 0 && join_memory == nullptr)
                join_nodes<Shared>(l, limits, n, cap, target, scratch, memory, crew.gate);
            else if (crew.index == 0)
                join_nodes<Global>(l, limits, n, cap, target, scratch, join_memory, crew.gate);
            crew.meet();
            const i64 before = n, left = static_cast<i64>(crew.gate[STATE_LEFT]);
            if (left < n) {
                become_clusters(crew, f, l, left, memory);
                n = left;
            }
            const bool stalled = static_cast<double>(n) > __dmul_rn(STALLED, static_cast<double>(before));
            const bool enough = static_cast<double>(n) < __dmul_rn(ENOUGH, static_cast<double>(n_level));
            const bool last = stalled && (cap == widest || enough);
            if ((last || n <= target) && n < n_level) {
#pragma unroll 1
                for (i64 v = crew.thread(); v < f.n; v += crew.n_threads()) maps[level * f.n + v] = l.clusters[v];
                if (crew.thread() == 0) sizes[level] = n;
            }
            crew.meet();
            if (n < before) largest = static_cast<i64>(crew.gate[STATE_LARGEST]);
            if (last) break;
            if (stalled) cap = smaller(widest, 2 * cap);
        }
    }
}

// Hierarchies of clusters, each by gridDim.x / n_crews blocks. limits[i] (int64[N_LOADS]) are those of hierarchy i,
// seeds[i] its seed, bundled[i] whether it begins with `bundles`; `maps` (int32[n_hierarchies][most_levels][n]) and `sizes` (int64[n_hierarchies][most_levels],
// zero before) see `make_hierarchy`. `state` (zero before) has STATE_WORDS words for each crew, `memory` memory_each
// bytes; `largest` is that of the nodes, all_sizes their sum. Parallel over nodes, nets and their pins, gathers through the L2 cache.
extern "C" __launch_bounds__(1024, 1) __global__ void make_hierarchies(
    FINEST_ARGUMENTS, i64 n_hierarchies, i64 n_crews, const i64* limits, const i64* seeds, const i32* bundles,
                     const i64* bundled, i64 all_sizes, i64 largest,
                     i64 growth, i64 shrink, i64 n_slots, i64 most_levels, u64* state, unsigned char* memory,
                     i64 memory_each, i64 shared_bytes, i32* maps, i64* sizes) {
    DYNAMIC_SHARED(shared);
    const i64 n_blocks = gridDim.x / n_crews, team = blockIdx.x / n_blocks;
    if (team >= n_crews) return;  // blocks left over
    unsigned char *own = shared, *rest = memory + team * memory_each;
    i64* scratch = cut<i64>(own, SCRATCH_WORDS);
    Finest& f = *cut<Finest>(own, 1);
    Lists& l = *cut<Lists>(own, 1);
    const Lists lists = cut_lists(rest, n, n_nets, n_pins, n_sources);
    if (threadIdx.x == 0) {
        f = FINEST;
        l = lists;
    }
    __syncthreads();
    Crew crew(state + team * STATE_WORDS, blockIdx.x - team * n_blocks, n_blocks);
    const Plan plan = {all_sizes, largest, __longlong_as_double(growth), __longlong_as_double(shrink), n_slots, most_levels};
    unsigned char *joining = own;
    cut_joining<Shared>(joining, n);
    unsigned char* far = joining <= shared + shared_bytes ? nullptr : rest;
    for (i64 i = team; i < n_hierarchies; i += n_crews)
        make_hierarchy(crew, f, l, plan, limits + i * N_LOADS, seeds[i], bundled[i] ? bundles : nullptr, scratch, own, far,
                       maps + i * most_levels * n, sizes + i * most_levels);
}

// sums[0] (int64[N_LOADS]) = loads of all nodes and nets together, sums[1] = the largest of a node; zero before.
// Parallel over nodes (a warp each), their nets, and nets.
extern "C" __global__ void sum_level(const i64* node_offsets, const i32* node_nets, const i64* counts,
                                     const i64* resources, i64 n, i64 n_nets, u64* sums) {
    const i64 thread = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x, n_threads = gridDim.x * blockDim.x;
    const i32 lane = threadIdx.x & 31;
    for (i32 r = 0; r < N_LOADS; ++r) {
        i64 total = 0, largest = 0;
        for (i64 v = thread >> 5; v < n; v += n_threads >> 5) {
            i64 load = 0;
            if (r < N_ADDITIVE) {
                load = resources[v * N_ADDITIVE + r];
                total += lane == 0 ? load : 0;
            } else {
                for (i64 j = node_offsets[v] + lane; j < node_offsets[v + 1]; j += 32)
                    load += counts[static_cast<i64>(node_nets[j]) * N_DISTINCT + r - N_ADDITIVE];
                load = sum_warp(load);
            }
            largest = larger(largest, load);
        }
        if (r >= N_ADDITIVE)
            for (i64 g = thread; g < n_nets; g += n_threads) total += counts[g * N_DISTINCT + r - N_ADDITIVE];
        total = sum_warp(total);
        if (lane != 0) continue;
        atomicAdd(sums + r, static_cast<u64>(total));
        atomicMax(sums + N_LOADS + r, static_cast<u64>(largest));
    }
}
