// The sparse pins-per-part table of a partition: for each net the parts that it touches, in any order
// (CSR), with the number of its pins there and the weight of its sources there. The twins are in
// snnmap/partitioning/multilevel/_kernels_refine.py and give the same integers.
#include "common.cuh"

// sizes[g] = parts that net g touches with pins or sources, for the nets of a list.
// Parallel over nets (a group each) and over a net's pins; reads pins once, gathers parts (cached),
// keys in shared memory (or scratch). Deterministic: the number of distinct parts.
template <bool BLOCK>
__device__ __forceinline__ void count_rows(const i64* net_offsets, const i32* net_pins,
                                           const i64* source_offsets, const i32* source_nodes,
                                           const i32* parts, const i32* slots, const i32* list, i64 n,
                                           i64* sizes, i32* keys) {
    const i32 rank = Group<BLOCK>::rank(), size = Group<BLOCK>::size();
    for (i64 i = Group<BLOCK>::index(); i < n; i += Group<BLOCK>::number()) {
        const i32 g = list[i];
        const u32 mask = slots[g] - 1;
        for (u32 s = rank; s <= mask; s += size) keys[s] = EMPTY;
        Group<BLOCK>::sync();
        i64 found = 0;
        bool fresh;
        for (i64 j = net_offsets[g] + rank; j < net_offsets[g + 1]; j += size) {
            const i32 p = parts[net_pins[j]];
            claim(keys, mask, p, fresh);
            found += fresh;
        }
        for (i64 j = source_offsets[g] + rank; j < source_offsets[g + 1]; j += size) {
            const i32 p = parts[source_nodes[j]];
            claim(keys, mask, p, fresh);
            found += fresh;
        }
        found = sum_group<BLOCK>(found);
        if (rank == 0) sizes[g] = found;
        Group<BLOCK>::sync();
    }
}

// One warp for each net of list 0; `capacity` slots of 4 bytes a warp.
extern "C" __global__ void count_parts_warp(const i64* net_offsets, const i32* net_pins,
                                            const i64* source_offsets, const i32* source_nodes,
                                            const i32* parts, const i32* slots, const i32* list,
                                            const u64* length, i64 capacity, i64* sizes) {
    DYNAMIC_SHARED(memory);
    i32* keys = reinterpret_cast<i32*>(memory) + (threadIdx.x >> 5) * capacity;
    count_rows<false>(net_offsets, net_pins, source_offsets, source_nodes, parts, slots, list, *length, sizes, keys);
}

// One block for each net of list 1 or 2 (scratch null: keys in shared memory) or 3 (keys in scratch).
extern "C" __global__ void count_parts_block(const i64* net_offsets, const i32* net_pins,
                                             const i64* source_offsets, const i32* source_nodes,
                                             const i32* parts, const i32* slots, const i32* list,
                                             const u64* length, i64 capacity, i64* sizes, unsigned char* scratch) {
    DYNAMIC_SHARED(memory);
    if (scratch == nullptr)
        count_rows<true>(net_offsets, net_pins, source_offsets, source_nodes, parts, slots, list, *length, sizes,
                         reinterpret_cast<i32*>(memory));
    else
        count_rows<true>(net_offsets, net_pins, source_offsets, source_nodes, parts, slots, list, *length, sizes,
                         reinterpret_cast<i32*>(scratch) + blockIdx.x * capacity);
}

// Rows of the table: (part, pins, source weight) of each part that the net touches; adds
// sum of (net weight - source weight) over entries with pins to *connectivity and the net's counts
// to the distinct loads of those parts.
// Parallel over nets (a group each) and over a net's pins; 16 bytes a slot in shared memory (or
// scratch), writes each entry once. Deterministic but for the order of a row's entries: integer sums.
template <bool BLOCK>
__device__ __forceinline__ void fill_rows(const i64* net_offsets, const i32* net_pins,
                                          const i64* source_offsets, const i32* source_nodes,
                                          const i64* source_weights, const i64* net_weights,
                                          const i64* counts, const i32* parts, const i32* slots,
                                          const i32* list, i64 n, const i64* offsets, i32* table_parts,
                                          i32* table_pins, i64* table_sources, i64* connectivity,
                                          i64* loads, unsigned char* memory, i64 capacity, u32* cursor) {
    const Sums sources(memory, capacity);
    i32* keys = reinterpret_cast<i32*>(memory) + 2 * capacity;
    i32* pins = keys + capacity;
    const i32 rank = Group<BLOCK>::rank(), size = Group<BLOCK>::size(), lane = threadIdx.x & 31;
    i64 total = 0;
    for (i64 i = Group<BLOCK>::index(); i < n; i += Group<BLOCK>::number()) {
        const i32 g = list[i];
        const u32 mask = slots[g] - 1;
        for (u32 s = rank; s <= mask; s += size) {
            keys[s] = EMPTY;
            pins[s] = 0;
            sources.clear(s);
        }
        if (rank == 0) *cursor = 0;
        Group<BLOCK>::sync();
        for (i64 j = net_offsets[g] + rank; j < net_offsets[g + 1]; j += size) {
            const i32 p = parts[net_pins[j]];
            atomicAdd(pins + claim(keys, mask, p), 1);
        }
        for (i64 j = source_offsets[g] + rank; j < source_offsets[g + 1]; j += size) {
            const i32 p = parts[source_nodes[j]];
            sources.add(claim(keys, mask, p), source_weights[j]);
        }
        Group<BLOCK>::sync();
        for (u32 base = 0; base <= mask; base += size) {  // mask + 1 >= 32: warps stay whole
            const u32 s = base + rank;
            const bool held = s <= mask && keys[s] != EMPTY;
            const u32 some = __ballot_sync(ALL_LANES, held);
            u32 start = 0;
            if (lane == 0 && some) start = atomicAdd(cursor, static_cast<u32>(__popc(some)));
            start = __shfl_sync(ALL_LANES, start, 0);
            if (!held) continue;
            const i64 place = offsets[g] + start + __popc(some & ((1u << lane) - 1));
            table_parts[place] = keys[s];
            table_pins[place] = pins[s];
            table_sources[place] = sources.get(s);
            if (pins[s] == 0) continue;
            total += net_weights[g] - sources.get(s);
            for (i32 c = 0; c < N_DISTINCT; ++c) {
                const i64 count = counts[static_cast<i64>(g) * N_DISTINCT + c];
                if (count != 0) add64(loads + static_cast<i64>(keys[s]) * N_LOADS + N_ADDITIVE + c, count);
            }
        }
        Group<BLOCK>::sync();
    }
    total = sum_warp(total);
    if (lane == 0 && total != 0) add64(connectivity, total);
}

// One warp for each net of list 0; `capacity` slots of 16 bytes a warp.
extern "C" __global__ void fill_table_warp(const i64* net_offsets, const i32* net_pins,
                                           const i64* source_offsets, const i32* source_nodes,
                                           const i64* source_weights, const i64* net_weights,
                                           const i64* counts, const i32* parts, const i32* slots,
                                           const i32* list, const u64* length, i64 capacity,
                                           const i64* offsets, i32* table_parts, i32* table_pins,
                                           i64* table_sources, i64* connectivity, i64* loads) {
    DYNAMIC_SHARED(memory);
    __shared__ u32 cursors[32];
    const u32 warp = threadIdx.x >> 5;
    fill_rows<false>(net_offsets, net_pins, source_offsets, source_nodes, source_weights, net_weights, counts,
                     parts, slots, list, *length, offsets, table_parts, table_pins, table_sources, connectivity,
                     loads, memory + warp * capacity * 16, capacity, cursors + warp);
}

// One block for each net of list 1 or 2 (scratch null) or 3.
extern "C" __global__ void fill_table_block(const i64* net_offsets, const i32* net_pins,
                                            const i64* source_offsets, const i32* source_nodes,
                                            const i64* source_weights, const i64* net_weights,
                                            const i64* counts, const i32* parts, const i32* slots,
                                            const i32* list, const u64* length, i64 capacity,
                                            const i64* offsets, i32* table_parts, i32* table_pins,
                                            i64* table_sources, i64* connectivity, i64* loads,
                                            unsigned char* scratch) {
    DYNAMIC_SHARED(memory);
    __shared__ u32 cursor;
    if (scratch == nullptr)
        fill_rows<true>(net_offsets, net_pins, source_offsets, source_nodes, source_weights, net_weights, counts,
                        parts, slots, list, *length, offsets, table_parts, table_pins, table_sources,
                        connectivity, loads, memory, capacity, &cursor);
    else
        fill_rows<true>(net_offsets, net_pins, source_offsets, source_nodes, source_weights, net_weights, counts,
                        parts, slots, list, *length, offsets, table_parts, table_pins, table_sources,
                        connectivity, loads, scratch + blockIdx.x * capacity * 16, capacity, &cursor);
}

// loads[parts[v], r] += resources[v, r].
// Parallel over nodes; reads each resource once, atomics on loads. Deterministic: integer sums.
extern "C" __global__ void add_resources(const i64* resources, const i32* parts, i64 n, i64* loads) {
    const i64 v = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (v >= n) return;
    for (i32 r = 0; r < N_ADDITIVE; ++r)
        add64(loads + static_cast<i64>(parts[v]) * N_LOADS + r, resources[v * N_ADDITIVE + r]);
}
