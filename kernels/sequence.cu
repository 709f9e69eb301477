// Moves in sequence: what each does after all those of better rank. The twin, which says why, is
// snnmap/partitioning/multilevel/_kernels_sequence.py; both give the same integers.
#include "common.cuh"

const u32 CLOSED = ~0u;  // of a part in which more pins are than leave: there nothing happens

// A net's parts, in a hash table: those of its row, and to which its pins and sources move.
struct Spans {
    i32 *keys, *places;  // pins that stay, then 1 + place in the row
    u32 *lasts, *firsts;  // 1 + rank of the last that leaves or CLOSED, ~ rank of the first that arrives; 0: nobody
    u32 mask;

    __device__ __forceinline__ Spans(unsigned char* memory, i64 capacity, u32 mask)
        : keys(reinterpret_cast<i32*>(memory)),
          places(keys + capacity),
          lasts(reinterpret_cast<u32*>(places + capacity)),
          firsts(lasts + capacity),
          mask(mask) {}
    __device__ __forceinline__ u32 slot(i32 part) const { return claim(keys, mask, part); }
    __device__ __forceinline__ void clear(u32 s) const {
        keys[s] = EMPTY;
        places[s] = 0;
        lasts[s] = firsts[s] = 0;
    }
    __device__ __forceinline__ bool ends(u32 s, u32 rank) const { return lasts[s] == rank + 1 && (firsts[s] == 0 || rank < ~firsts[s]); }
    __device__ __forceinline__ bool begins(u32 s, u32 rank) const { return firsts[s] == ~rank && lasts[s] <= rank; }
    // Whether the net has pins there once the move of this rank is made; a node that is pin and source moves as a pin first.
    __device__ __forceinline__ bool has_pins(u32 s, u32 rank) const { return lasts[s] > rank + 1 || (firsts[s] != 0 && ~firsts[s] <= rank); }
};

// Parallel over nets (a group each), their pins and sources; reads pins three times, 16 bytes a slot in shared memory
// (or scratch), an atomic a move that ends or begins a net's stay in a part. Deterministic: integer sums and maxima.
template <bool BLOCK>
__device__ __forceinline__ void replay_rows(const i64* net_offsets, const i32* net_pins, const i64* source_offsets,
                                            const i32* source_nodes, const i64* source_weights, const i64* net_weights,
                                            const i64* counts, const i32* parts, const i32* targets, const i32* ranks,
                                            const i64* offsets, const i32* table_parts, const i32* table_pins,
                                            const i64* table_sources, const i32* slots, const i32* list, i64 n, i64* gains,
                                            i64* incoming, i64* outgoing, unsigned char* memory, i64 capacity) {
    const i32 rank = Group<BLOCK>::rank(), size = Group<BLOCK>::size();
    for (i64 i = Group<BLOCK>::index(); i < n; i += Group<BLOCK>::number()) {
        const i32 g = list[i];
        const i64 first = net_offsets[g], last = net_offsets[g + 1], row = offsets[g], end = offsets[g + 1];
        const i64 first_source = source_offsets[g], last_source = source_offsets[g + 1];
        bool moves = false, sends = false;
        for (i64 j = first + rank; j < last; j += size) moves |= targets[net_pins[j]] >= 0;
        for (i64 j = first_source + rank; j < last_source; j += size) sends |= targets[source_nodes[j]] >= 0;
        const i64 votes = sum_group<BLOCK>((moves ? 1 : 0) + (sends ? 1ll << 32 : 0));
        if (votes == 0) continue;
        sends = votes >> 32 != 0;
        const Spans spans(memory, capacity, slots[g] - 1);
        for (u32 s = rank; s <= spans.mask; s += size) spans.clear(s);
        Group<BLOCK>::sync();
        for (i64 s = row + rank; s < end; s += size) spans.places[spans.slot(table_parts[s])] = table_pins[s];
        Group<BLOCK>::sync();
        for (i64 j = first + rank; j < last; j += size)
            if (targets[net_pins[j]] >= 0) atomicAdd(spans.places + spans.slot(parts[net_pins[j]]), -1);
        Group<BLOCK>::sync();
        for (i64 s = row + rank; s < end; s += size) {
            const u32 slot = spans.slot(table_parts[s]);
            if (spans.places[slot] > 0) spans.lasts[slot] = CLOSED;
            spans.places[slot] = static_cast<i32>(s - row) + 1;
        }
        Group<BLOCK>::sync();
        for (i64 j = first + rank; j < last; j += size) {
            const i32 v = net_pins[j];
            if (targets[v] < 0) continue;
            const u32 own = static_cast<u32>(ranks[v]);
            atomicMax(spans.lasts + spans.slot(parts[v]), own + 1);
            atomicMax(spans.firsts + spans.slot(targets[v]), ~own);
        }
        Group<BLOCK>::sync();
        for (i64 j = first + rank; j < last; j += size) {
            const i32 v = net_pins[j];
            if (targets[v] < 0) continue;
            const u32 own = static_cast<u32>(ranks[v]);
            for (i32 arrives = 0; arrives < 2; ++arrives) {
                const i32 p = arrives ? targets[v] : parts[v];
                const u32 slot = spans.slot(p);
                if (arrives ? !spans.begins(slot, own) : !spans.ends(slot, own)) continue;
                i64 worth = net_weights[g];
                if (spans.places[slot] != 0) worth -= table_sources[row + spans.places[slot] - 1];
                for (i64 k = first_source; sends && k < last_source; ++k) {
                    const i32 u = source_nodes[k];
                    if (targets[u] >= 0 && ranks[u] < ranks[v]) worth -= ((targets[u] == p) - (parts[u] == p)) * source_weights[k];
                }
                if (worth != 0) add64(gains + v, arrives ? -worth : worth);
                i64* loads = arrives ? incoming : outgoing;
                for (i32 c = 0; loads != nullptr && c < N_DISTINCT; ++c) {
                    const i64 count = counts[static_cast<i64>(g) * N_DISTINCT + c];
                    if (count != 0) add64(loads + static_cast<i64>(v) * N_DISTINCT + c, count);
                }
            }
        }
        for (i64 k = first_source + rank; sends && k < last_source; k += size) {
            const i32 u = source_nodes[k];
            if (targets[u] < 0) continue;
            const u32 own = static_cast<u32>(ranks[u]);
            const i64 gain = (spans.has_pins(spans.slot(targets[u]), own) - spans.has_pins(spans.slot(parts[u]), own)) * source_weights[k];
            if (gain != 0) add64(gains + u, gain);
        }
        Group<BLOCK>::sync();
    }
}

// One warp for each net of list 0; `capacity` slots of 16 bytes a warp.
extern "C" __global__ void replay_moves_warp(const i64* net_offsets, const i32* net_pins, const i64* source_offsets,
                                             const i32* source_nodes, const i64* source_weights, const i64* net_weights,
                                             const i64* counts, const i32* parts, const i32* targets, const i32* ranks,
                                             const i64* offsets, const i32* table_parts, const i32* table_pins,
                                             const i64* table_sources, const i32* slots, const i32* list, const u64* length,
                                             i64 capacity, i64* gains, i64* incoming, i64* outgoing) {
    DYNAMIC_SHARED(memory);
    replay_rows<false>(net_offsets, net_pins, source_offsets, source_nodes, source_weights, net_weights, counts, parts, targets,
                       ranks, offsets, table_parts, table_pins, table_sources, slots, list, *length, gains, incoming, outgoing,
                       memory + (threadIdx.x >> 5) * capacity * 16, capacity);
}

// One block for each net of list 1 or 2 (scratch null) or 3.
extern "C" __global__ void replay_moves_block(const i64* net_offsets, const i32* net_pins, const i64* source_offsets,
                                              const i32* source_nodes, const i64* source_weights, const i64* net_weights,
                                              const i64* counts, const i32* parts, const i32* targets, const i32* ranks,
                                              const i64* offsets, const i32* table_parts, const i32* table_pins,
                                              const i64* table_sources, const i32* slots, const i32* list, const u64* length,
                                              i64 capacity, i64* gains, i64* incoming, i64* outgoing, unsigned char* scratch) {
    DYNAMIC_SHARED(memory);
    unsigned char* own = scratch != nullptr ? scratch + blockIdx.x * capacity * 16 : memory;
    replay_rows<true>(net_offsets, net_pins, source_offsets, source_nodes, source_weights, net_weights, counts, parts, targets,
                      ranks, offsets, table_parts, table_pins, table_sources, slots, list, *length, gains, incoming, outgoing, own,
                      capacity);
}
