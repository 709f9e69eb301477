// Compression: classes of nodes by iterated signatures, and chunks of classes. The twin is
// snnmap/partitioning/multilevel/compression.py; both give the same integers.
#include "common.cuh"
#include "grid.cuh"

const u64 STEP = 0x9E3779B97F4A7C15ull;

__device__ __forceinline__ u64 mixed(u64 value, u64 salt) { return mix64(value * STEP + salt); }

// Words of `state` after the gate.
enum Counter { HAS_ZERO = GATE_WORDS, N_CLASSES, N_LEAST };

// numbers[v] = rank of node v's signature among the different ones, of the last round; state[N_CLASSES] = how many,
// state[N_LEAST] = how many after the last round with fewer than before. There is a first round and up to n_rounds more,
// until there are more than `most`, or no fewer than before.
// A signature is the sum over the nets with v as a pin of what mixes their sources' numbers by the round before (at first:
// the nets themselves); for nodes in no net, what mixes the pins' numbers of the nets that v is a source of.
//
// Ranks without a sort: signatures are random, so a hash table whose first choice are the `bits`
// leading bits, with linear probing that never wraps around, is sorted but for its runs of taken
// slots: all in a later run are larger. So a rank is the number of taken slots before the run, and
// of smaller ones within it, and runs are short.
// Parallel over chunks of items, nodes, slots; `state`, sums, signatures and keys are zero at the start.
// Deterministic: integer sums; the order within a run does not matter.
extern "C" __launch_bounds__(1024, 1) __global__ void classify_nodes(
    const i64* net_offsets, const i32* net_pins, const i64* source_offsets, const i32* source_nodes,
    const i64* node_offsets, const i32* node_nets, const i64* out_offsets, const i32* out_nets, i64 n_nets,
    i64 n_pins, i64 n_sources, i64 n_nodes, i64 n_rounds, i64 most, i64 bits, i64 n_words, u64* state, u64* inward,
    u64* outward, u64* signatures, u64* outbound, u64* keys, u32* marks, u32* before, i64* totals, i32* numbers,
    i64 n_bytes) {
    DYNAMIC_SHARED(memory);
    Grid grid(state, memory, n_bytes);
    i64 least = n_nodes + 1;
    const auto clear = [&](u64* words, i64 n) {
#pragma unroll 1
        for (i64 i = grid.thread(); i < n; i += grid.n_threads()) words[i] = 0;
    };
#pragma unroll 1
    for (i64 round = 0;; ++round) {
        if (round != 0) {
            add_all_rows(grid, source_offsets, n_nets, source_nodes, n_sources, reinterpret_cast<i64*>(inward), 1,
                         [&](i64, i32 v) { return mixed(numbers[v], 5); });
            add_all_rows(grid, net_offsets, n_nets, net_pins, n_pins, reinterpret_cast<i64*>(outward), 1,
                         [&](i64, i32 v) { return mixed(numbers[v], 9); });
            grid.meet();
        }
        add_all_rows(grid, node_offsets, n_nodes, node_nets, n_pins, reinterpret_cast<i64*>(signatures), 1, [&](i64, i32 net) {
            if (round == 0) return mixed(net, 1);
            return source_offsets[net] == source_offsets[net + 1] ? mixed(net, 3) : inward[net];
        });
        add_all_rows(grid, out_offsets, n_nodes, out_nets, n_sources, reinterpret_cast<i64*>(outbound), 1,
                     [&](i64, i32 net) { return round != 0 ? mixed(outward[net], 11) : mixed(net, 77); });
        grid.meet();
#pragma unroll 1
        for (i64 v = grid.thread(); v < n_nodes; v += grid.n_threads()) {
            if (node_offsets[v] == node_offsets[v + 1]) signatures[v] = outbound[v] ^ STEP;
            const u64 signature = signatures[v];
            if (signature == 0) {
                state[HAS_ZERO] = 1;
                continue;
            }
            for (u64 slot = signature >> (64 - bits);; ++slot) {
                u64 found = *const_cast<volatile u64*>(keys + slot);
                if (found == 0) found = atomicCAS(keys + slot, static_cast<u64>(0), signature);
                if (found == 0 || found == signature) break;
            }
        }
        grid.meet();
#pragma unroll 1
        for (i64 word = grid.thread() >> 5; word < n_words; word += grid.n_threads() >> 5) {
            const u32 taken = __ballot_sync(ALL_LANES, keys[32 * word + (threadIdx.x & 31)] != 0);
            if ((threadIdx.x & 31) == 0) marks[word] = taken;
        }
        grid.meet();
        const auto taken_in = [&](i64 word) { return static_cast<i64>(__popc(marks[word])); };
        grid.sum_share(totals, n_words, taken_in);
        grid.meet();
        const i64 n_taken = grid.scan_share(totals, n_words, taken_in, [&](i64 word, i64, i64 place) {
            before[word] = static_cast<u32>(place);
        });
        const u64 zero = state[HAS_ZERO];
        const i64 n_found = n_taken + static_cast<i64>(zero);
        grid.meet();
#pragma unroll 1
        for (i64 v = grid.thread(); v < n_nodes; v += grid.n_threads()) {
            const u64 signature = signatures[v];
            i64 first = static_cast<i64>(signature >> (64 - bits)), rank = static_cast<i64>(zero);
            while (first > 0 && keys[first - 1] != 0) --first;
            rank += before[first >> 5] + __popc(marks[first >> 5] & ((1u << (first & 31)) - 1));
            for (i64 slot = first; keys[slot] != 0; ++slot) rank += keys[slot] < signature;
            numbers[v] = signature == 0 ? 0 : static_cast<i32>(rank);
        }
        const bool last = n_found > most || n_found >= least || round == n_rounds;
        if (n_found <= most) least = smaller(least, n_found);
        if (last && grid.thread() == 0) {
            state[N_CLASSES] = static_cast<u64>(n_found);
            state[N_LEAST] = static_cast<u64>(least);
        }
        if (last) break;
        grid.meet();
        clear(inward, n_nets);
        clear(outward, n_nets);
        clear(signatures, n_nodes);
        clear(outbound, n_nodes);
        clear(keys, 32 * n_words);
        clear(state + HAS_ZERO, 1);
        grid.meet();
    }
}

// ------------------------------------------------------------------------------------ chunks

// How a class of so many members and such a size is split: see `Pieces` of the twin.
struct Split {
    i64 members, pieces, alone;

    __device__ __forceinline__ Split(i64 members, i64 size, i64 largest) : members(members), pieces(1) {
        while (size > pieces * largest && pieces < members) pieces *= 2;
        alone = smaller(((members - 1) * members + pieces - 1) / pieces, members);
    }
    __device__ __forceinline__ i64 n_chunks() const { return pieces <= members ? pieces : alone + (alone < members); }
    __device__ __forceinline__ i64 chunk_of(i64 member) const {
        return pieces <= members ? member * pieces / members : smaller(member, alone);
    }
};

// counts[k] += chunks of all classes, if they are to be at most about largest[k] in size.
// Parallel over classes; an atomic a warp and size. Deterministic: integer sums.
extern "C" __global__ void count_chunks(const i64* offsets, const i64* sizes, i64 n_classes, const i64* largest,
                                        i64 n_sizes, i64* counts) {
    const i64 c = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (i64 k = 0; k < n_sizes; ++k) {
        const i64 own = c < n_classes ? Split(offsets[c + 1] - offsets[c], sizes[c], largest[k]).n_chunks() : 0;
        const i64 all = sum_warp(own);
        if ((threadIdx.x & 31) == 0 && all != 0) add64(counts + k, all);
    }
}

// chunks[v] = chunk of node v, of those of at most about `largest` in size; `order` has the nodes by class.
// Where `coarse` > 0, chunks[k] = chunk of that size that holds the k-th chunk instead; its last node decides.
// Parallel over classes, then chunks of nodes; `state` is zero at the start. Pure map after a scan.
extern "C" __launch_bounds__(1024, 1) __global__ void split_classes(const i32* order, const i64* offsets,
                                                                    const i64* sizes, i64 n_classes, i64 n_nodes,
                                                                    i64 largest, i64 coarse, u64* state, i64* firsts,
                                                                    i64* coarse_firsts, i64* totals, i32* chunks,
                                                                    i64 n_bytes) {
    DYNAMIC_SHARED(memory);
    Grid grid(state, memory, n_bytes);
    const auto split = [&](i64 c, i64 size) { return Split(offsets[c + 1] - offsets[c], sizes[c], size); };
    const auto chunks_of = [&](i64 c) { return split(c, largest).n_chunks(); };
    const auto coarse_of = [&](i64 c) { return split(c, coarse).n_chunks(); };
    grid.sum_share(totals, n_classes, chunks_of);
    if (coarse > 0) grid.sum_share(totals + gridDim.x, n_classes, coarse_of);
    grid.meet();
    grid.scan_share(totals, n_classes, chunks_of, [&](i64 c, i64, i64 first) { firsts[c] = first; });
    if (coarse > 0)
        grid.scan_share(totals + gridDim.x, n_classes, coarse_of,
                        [&](i64 c, i64, i64 first) { coarse_firsts[c] = first; });
    grid.meet();
    const i64 own = grid.chunk_of(n_nodes);
#pragma unroll 1
    for (i64 start = grid.thread() * own; start < n_nodes; start += grid.n_threads() * own) {
        const i64 stop = smaller(start + own, n_nodes);
        i64 c = row_of(offsets, n_classes, start);
        Split fine = split(c, largest);
#pragma unroll 1
        for (i64 i = start; i < stop; ++i) {
            for (; i >= offsets[c + 1]; fine = split(c, largest)) ++c;
            const i64 member = i - offsets[c], piece = fine.chunk_of(member), chunk = firsts[c] + piece;
            if (coarse == 0)
                chunks[order[i]] = static_cast<i32>(chunk);
            else if (i + 1 == offsets[c + 1] || fine.chunk_of(member + 1) != piece)
                chunks[chunk] = static_cast<i32>(coarse_firsts[c] + split(c, coarse).chunk_of(member));
        }
    }
}
