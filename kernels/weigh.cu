// Connectivity and loads of a partition, without its table: `weigh` of
// snnmap/partitioning/multilevel/engine_cpu.py; both give the same integers.
#include "common.cuh"
#include "grid.cuh"

const i64 LONG_NET = 1024;  // pins and sources of a net that a block looks through, not a warp

// found = connectivity (constant apart), the limits, then int64[n_parts, N_LOADS] loads; zero at the start.
// The parts of a net are a set of bits: a warp's, or, of long nets and many parts, a block's, some bits at a time.
// Parallel over nets and their pins and sources, then over nodes; gathers parts (cached). A block keeps its sums
// of loads in shared memory, `n_kept` bytes of it (0: it adds to `found`). `state`: a gate and the number of
// long nets, zero. Deterministic: integer sums over sets.
extern "C" __launch_bounds__(1024, 1) __global__ void weigh_parts(
    const i64* net_offsets, const i32* net_pins, const i64* source_offsets, const i32* source_nodes,
    const i64* source_weights, const i64* net_weights, const i64* counts, const i64* resources, const i64* limits,
    const i32* parts, i64 n_nets, i64 n_nodes, i64 n_parts, i64 n_kept, u64* state, i64* found, i32* long_nets,
    i64 n_bytes) {
    DYNAMIC_SHARED(memory);
    Grid grid(state, memory, n_bytes);
    const i64 n_sums = n_parts * N_LOADS;
    const Sums sums(grid.words, n_sums);
    grid.words += n_kept / 4;
    i64* loads = found + 1 + N_LOADS;
    for (i64 i = threadIdx.x; n_kept != 0 && i < n_sums; i += blockDim.x) sums.clear(static_cast<u32>(i));
    __syncthreads();
    const auto add_load = [&](i64 p, i32 r, i64 value) {
        if (value == 0) return;
        if (n_kept != 0)
            sums.add(static_cast<u32>(p * N_LOADS + r), value);
        else
            add64(loads + p * N_LOADS + r, value);
    };
    i64 connectivity = 0;
    const auto touch = [&](i64 net, i32 p) {
        connectivity += net_weights[net];
        for (i32 c = 0; c < N_DISTINCT; ++c) add_load(p, N_ADDITIVE + c, counts[net * N_DISTINCT + c]);
    };

    const i32 lane = threadIdx.x & 31;
#pragma unroll 1
    for (i64 net = grid.thread() >> 5; net < n_nets; net += grid.n_threads() >> 5) {
        const i64 first = net_offsets[net], last = net_offsets[net + 1];
        const i64 first_source = source_offsets[net], last_source = source_offsets[net + 1];
        if (n_parts > 32 * WARP_WORDS || last - first + last_source - first_source > LONG_NET) {
            if (lane == 0) long_nets[atomicAdd(state + GATE_WORDS, 1ull)] = static_cast<i32>(net);
            continue;
        }
        const WarpBits set(grid.own_words(), n_parts);
        for (i64 j = first + lane; j < last; j += 32) {
            const i32 p = parts[net_pins[j]];
            if (set.add(p)) touch(net, p);
        }
        __syncwarp();
        for (i64 j = first_source + lane; j < last_source; j += 32)
            if (set.has(parts[source_nodes[j]])) connectivity -= source_weights[j];
        __syncwarp();
    }
#pragma unroll 1
    for (i64 v = grid.thread(); v < n_nodes; v += grid.n_threads())
        for (i32 r = 0; r < N_ADDITIVE; ++r) add_load(parts[v], r, resources[v * N_ADDITIVE + r]);
    grid.meet();
    for_long_rows(long_nets, state + GATE_WORDS, [&](i64 net) {
        for (i64 first = 0; first < n_parts; first += 32 * grid.n_words) {
            const BitSet set(grid, first, n_parts);
            for (i64 j = net_offsets[net] + threadIdx.x; j < net_offsets[net + 1]; j += blockDim.x) {
                const i32 p = parts[net_pins[j]];
                if (set.covers(p) && !set.has(p) && set.add(p)) touch(net, p);
            }
            __syncthreads();
            for (i64 j = source_offsets[net] + threadIdx.x; j < source_offsets[net + 1]; j += blockDim.x) {
                const i32 p = parts[source_nodes[j]];
                if (set.covers(p) && set.has(p)) connectivity -= source_weights[j];
            }
            __syncthreads();
        }
    });
    i64 total;
    grid.sum_before(connectivity, total);
    if (threadIdx.x == 0 && total != 0) add64(found, total);
    if (grid.thread() < N_LOADS) found[1 + grid.thread()] = limits[grid.thread()];
    for (i64 i = threadIdx.x; n_kept != 0 && i < n_sums; i += blockDim.x) {
        const i64 sum = sums.get(static_cast<u32>(i));
        if (sum != 0) add64(loads + i, sum);
    }
}
