// Blocks that all run at once (a cooperative launch) and wait for each other; scans over all of them;
// rows of ids, brought together and sorted in shared memory.
//
// Rows of up to SHORT_ROW ids are a warp's each. Longer ones go to a list whose rows are a block's
// each, in a bitmap of all ids.
#ifndef SNNMAP_GRID_CUH
#define SNNMAP_GRID_CUH

#ifndef WAIT_A_LITTLE  // between two looks at memory that another block will write
#define WAIT_A_LITTLE()
#endif

const i32 GRID_THREADS = 1024;  // of a block; one block fits a multiprocessor
const i32 SHORT_ROW = 384;
const i32 WARP_WORDS = 512;      // of shared memory of a warp: a table with room for a short row
const i32 MANY_BITS = 64;        // ids that a bitmap sorts faster than comparisons
const i32 SCRATCH_BYTES = 1024;  // of shared memory of a block before that
const i32 GATE_WORDS = 16;       // of global memory, zero before a launch: a line of its own

// The sum of the values of the block's threads before this one; scratch[32] = that of all of them. (Code that is there
// once stays in the instruction cache.)
__device__ __noinline__ i64 sum_of_threads_before(i64* scratch, i64 value) {
    const i32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
    const i64 up_to = scan_warp(value);
    if (lane == 31) scratch[warp] = up_to;
    __syncthreads();
    if (warp == 0) {
        const i64 own = lane < n_warps ? scratch[lane] : 0, sums = scan_warp(own);
        scratch[lane] = sums - own;
        if (lane == 31) scratch[32] = sums;
    }
    __syncthreads();
    const i64 before = scratch[warp] + up_to - value;
    __syncthreads();
    return before;
}

// The blocks of a launch.
struct Grid {
    u64* gate;
    i64* scratch;  // shared memory: SCRATCH_BYTES, then `n_words` words
    u32* words;
    i64 n_words;
    u64 n_gone;  // blocks that have passed the gate once the next meeting is over

    __device__ __forceinline__ Grid(u64* gate, unsigned char* memory, i64 n_bytes)
        : gate(gate),
          scratch(reinterpret_cast<i64*>(memory)),
          words(reinterpret_cast<u32*>(memory + SCRATCH_BYTES)),
          n_words((n_bytes - SCRATCH_BYTES) / 4),
          n_gone(0) {}
    __device__ __forceinline__ i64 thread() const { return static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; }
    __device__ __forceinline__ i64 n_threads() const { return static_cast<i64>(gridDim.x) * blockDim.x; }
    // Consecutive items of a thread: CHUNK of many, of few so many that all threads have some.
    __device__ __forceinline__ i64 chunk_of(i64 n_items) const {
        return smaller(larger((n_items + n_threads() - 1) / n_threads(), 1), CHUNK);
    }
    __device__ __forceinline__ u32* own_words() const { return words + (threadIdx.x >> 5) * WARP_WORDS; }

    // Wait for all blocks; what they wrote before is seen afterwards.
    __device__ __forceinline__ void meet() {
        __syncthreads();
        if (threadIdx.x == 0) {
            n_gone += gridDim.x;
            __threadfence();
            atomicAdd(gate, 1ull);
            while (*const_cast<const volatile u64*>(gate) < n_gone) WAIT_A_LITTLE();
            __threadfence();
        }
        __syncthreads();
    }

    // The sum of the values of the block's threads before this one; total = that of all of them.
    __device__ __forceinline__ i64 sum_before(i64 value, i64& total) const {
        const i64 before = sum_of_threads_before(scratch, value);
        total = scratch[32];  // stays until all threads have come to the next sum
        return before;
    }

    // Places [first, last) of n that are this block's in a scan.
    __device__ __forceinline__ void share(i64 n, i64& first, i64& last) const {
        const i64 each = (n + gridDim.x - 1) / gridDim.x;
        first = smaller(each * blockIdx.x, n);
        last = smaller(first + each, n);
    }

    // First half of a scan of n values: totals[block] = the sum of its share. Then the blocks meet.
    template <class Value>
    __device__ __forceinline__ void sum_share(i64* totals, i64 n, Value value_of) const {
        i64 first, last, sum = 0, total;
        share(n, first, last);
#pragma unroll 1
        for (i64 i = first + threadIdx.x; i < last; i += blockDim.x) sum += value_of(i);
        sum_before(sum, total);
        if (threadIdx.x == 0) totals[blockIdx.x] = total;
    }

    // Second half: write(i, value, the sum of all values before it). Returns the sum of all values.
    template <class Value, class Write>
    __device__ __forceinline__ i64 scan_share(const i64* totals, i64 n, Value value_of, Write write) const {
        i64 first, last, sum = 0, before = 0, all, total;
        share(n, first, last);
#pragma unroll 1
        for (u32 b = threadIdx.x; b < gridDim.x; b += blockDim.x) {
            sum += totals[b];
            if (b < blockIdx.x) before += totals[b];
        }
        sum_before(sum, all);
        sum_before(before, total);
        before = total;
#pragma unroll 1
        for (i64 base = first; base < last; base += blockDim.x) {
            const i64 i = base + threadIdx.x, value = i < last ? value_of(i) : 0;
            const i64 place = before + sum_before(value, total);
            if (i < last) write(i, value, place);
            before += total;
        }
        return all;
    }
};

// ------------------------------------------------------------------------------------ sets of ids

// A warp's set: a hash table in its shared memory.
struct HashSet {
    i32* keys;
    u32 mask;

    __device__ __forceinline__ HashSet(u32* memory, i64 most) : keys(reinterpret_cast<i32*>(memory)), mask(31) {
        while (3 * (mask + 1) < 4 * most) mask = 2 * mask + 1;
#pragma unroll 1
        for (u32 s = threadIdx.x & 31; s <= mask; s += 32) keys[s] = EMPTY;
        __syncwarp();
    }
    __device__ __forceinline__ bool add(i32 id) const {
        bool fresh;
        claim(keys, mask, id, fresh);
        return fresh;
    }
    __device__ __forceinline__ bool has(i32 id) const {
        u32 slot = hash_of(id) & mask;
        while (keys[slot] != id && keys[slot] != EMPTY) slot = (slot + 1) & mask;
        return keys[slot] == id;
    }
    // The ids to the front of the table, in any order; how many.
    __device__ __forceinline__ i32 compact() const {
        const i32 lane = threadIdx.x & 31;
        i32 n = 0;
#pragma unroll 1
        for (u32 base = 0; base <= mask; base += 32) {
            const i32 key = keys[base + lane];
            const u32 taken = __ballot_sync(ALL_LANES, key != EMPTY);
            if (key != EMPTY) keys[n + __popc(taken & ((1u << lane) - 1))] = key;
            n += __popc(taken);
            __syncwarp();
        }
        return n;
    }
};

// A warp's set of ids below n_ids <= 32 * WARP_WORDS: a bitmap in its shared memory.
struct WarpBits {
    u32* words;
    i32 n_words;

    __device__ __forceinline__ WarpBits(u32* memory, i64 n_ids) : words(memory), n_words(static_cast<i32>((n_ids + 31) >> 5)) {
#pragma unroll 1
        for (i32 w = threadIdx.x & 31; w < n_words; w += 32) words[w] = 0;
        __syncwarp();
    }
    __device__ __forceinline__ bool has(i32 id) const { return words[id >> 5] >> (id & 31) & 1; }
    __device__ __forceinline__ bool add(i32 id) const {
        const u32 bit = 1u << (id & 31);
        if (const_cast<const volatile u32*>(words)[id >> 5] & bit) return false;
        return (atomicOr(words + (id >> 5), bit) & bit) == 0;
    }
    // The ids to `out`, ascending.
    __device__ __forceinline__ void list(i32* out) const {
        const i32 lane = threadIdx.x & 31;
#pragma unroll 1
        for (i32 base = 0; base < n_words; base += 32) {
            u32 word = base + lane < n_words ? words[base + lane] : 0;
            const i64 own = __popc(word), up_to = scan_warp(own);
            for (i64 at = up_to - own; word != 0; word &= word - 1) out[at++] = 32 * (base + lane) + __ffs(word) - 1;
            out += __shfl_sync(ALL_LANES, up_to, 31);
        }
    }
};

// A block's set: a bitmap of the ids from `first` on, as many as there are bits, below `n_ids`.
struct BitSet {
    u32* words;
    i64 first, n_ids, n_words;

    __device__ __forceinline__ BitSet(const Grid& grid, i64 first, i64 last)
        : words(grid.words), first(first), n_ids(smaller(last - first, 32 * grid.n_words)), n_words((n_ids + 31) >> 5) {
#pragma unroll 1
        for (i64 w = threadIdx.x; w < n_words; w += blockDim.x) words[w] = 0;
        __syncthreads();
    }
    __device__ __forceinline__ bool covers(i32 id) const { return id >= first && id < first + n_ids; }
    __device__ __forceinline__ bool add(i32 id) const {
        const u32 bit = 1u << ((id - first) & 31);
        return (atomicOr(words + ((id - first) >> 5), bit) & bit) == 0;
    }
    __device__ __forceinline__ bool has(i32 id) const { return words[(id - first) >> 5] >> ((id - first) & 31) & 1; }
    // The ids to `out`, ascending; how many. A warp looks at a range of words.
    __device__ __forceinline__ i64 list(const Grid& grid, i32* out) const {
        const i64 lane = threadIdx.x & 31, n_warps = blockDim.x >> 5;
        const i64 each = ((n_words + n_warps - 1) / n_warps + 31) & ~31ll;
        const i64 begin = each * (threadIdx.x >> 5), end = smaller(begin + each, n_words);
        i64 n = 0, total;
#pragma unroll 1
        for (i64 w = begin + lane; w < end; w += 32) n += __popc(words[w]);
        i64 place = __shfl_sync(ALL_LANES, grid.sum_before(n, total), 0);
#pragma unroll 1
        for (i64 base = begin; base < end; base += 32) {
            u32 word = base + lane < end ? words[base + lane] : 0;
            const i64 own = __popc(word), up_to = scan_warp(own);
            for (i64 at = place + up_to - own; word != 0; word &= word - 1)
                out[at++] = static_cast<i32>(first + 32 * (base + lane) + __ffs(word) - 1);
            place += __shfl_sync(ALL_LANES, up_to, 31);
        }
        return total;
    }
};

// Sort n ids by the bitonic network whose comparisons all point upwards: what lies beyond the end
// counts as larger than all and never moves. before(a, b): whether a different id a comes before b.
template <bool BLOCK, class Before>
__device__ __forceinline__ void sort_ids(i32* ids, i64 n, Before before) {
    const auto order = [&](i64 low, i64 high) {
        if (high >= n) return;
        const i32 a = ids[low], b = ids[high];
        if (before(a, b)) return;
        ids[low] = b;
        ids[high] = a;
    };
    i64 padded = 1;
#pragma unroll 1
    while (padded < n) padded *= 2;
#pragma unroll 1
    for (i64 half = 1; half < padded; half *= 2) {
#pragma unroll 1
        for (i64 i = Group<BLOCK>::rank(); i < padded / 2; i += Group<BLOCK>::size()) {
            const i64 in = i & (half - 1), begin = 2 * (i - in);
            order(begin + in, begin + 2 * half - 1 - in);
        }
        Group<BLOCK>::sync();
#pragma unroll 1
        for (i64 step = half / 2; step > 0; step /= 2) {
#pragma unroll 1
            for (i64 i = Group<BLOCK>::rank(); i < padded / 2; i += Group<BLOCK>::size()) {
                const i64 low = 2 * i - (i & (step - 1));
                order(low, low + step);
            }
            Group<BLOCK>::sync();
        }
    }
}

template <bool BLOCK>
__device__ __forceinline__ void sort_ids(i32* ids, i64 n) {
    sort_ids<BLOCK>(ids, n, [](i32 a, i32 b) { return a < b; });
}

// Sort n <= 32 * EACH ids, EACH of them in the registers of a lane, by a warp: the bitonic network, whose comparisons over
// strides below EACH are a lane's own.
template <i32 EACH>
__device__ __forceinline__ void sort_in_registers(i32* ids, i32 n) {
    const i32 lane = threadIdx.x & 31, first = lane * EACH;
    i32 own[EACH];
#pragma unroll
    for (i32 r = 0; r < EACH; ++r) own[r] = first + r < n ? ids[first + r] : 0x7FFFFFFF;
#pragma unroll
    for (i32 size = 2; size <= 32 * EACH; size *= 2) {
#pragma unroll
        for (i32 stride = size / 2; stride > 0; stride /= 2) {
#pragma unroll
            for (i32 r = 0; r < EACH; ++r) {
                const bool rises = ((first + r) & size) == 0;
                if (stride >= EACH) {
                    const i32 other = __shfl_xor_sync(ALL_LANES, own[r], stride / EACH);
                    const bool lower = (((first + r) & stride) == 0) == rises;
                    own[r] = (own[r] < other) == lower ? own[r] : other;
                } else if ((r & stride) == 0) {
                    const i32 a = own[r], b = own[r | stride];
                    const bool swap = (b < a) == rises;
                    own[r] = swap ? b : a;
                    own[r | stride] = swap ? a : b;
                }
            }
        }
    }
    __syncwarp();
#pragma unroll
    for (i32 r = 0; r < EACH; ++r)
        if (first + r < n) ids[first + r] = own[r];
    __syncwarp();
}

// Sort up to SHORT_ROW ids in shared memory, by a warp.
__device__ __forceinline__ void sort_short(i32* ids, i64 n) {
    if (n <= 64)
        sort_in_registers<2>(ids, static_cast<i32>(n));
    else if (n <= 256)
        sort_in_registers<8>(ids, static_cast<i32>(n));
    else
        sort_ids<false>(ids, n);
}

// ------------------------------------------------------------------------------------ rows

// Calls visit(row) for every row of up to SHORT_ROW items, by a warp, and lists the others.
template <class Visit>
__device__ __forceinline__ void for_short_rows(const Grid& grid, const i64* offsets, i64 n_rows, i32* list,
                                               u64* n_listed, Visit visit) {
#pragma unroll 1
    for (i64 row = grid.thread() >> 5; row < n_rows; row += grid.n_threads() >> 5) {
        if (offsets[row + 1] - offsets[row] <= SHORT_ROW)
            visit(row);
        else if (list != nullptr && (threadIdx.x & 31) == 0)
            list[atomicAdd(n_listed, 1ull)] = static_cast<i32>(row);
    }
}

// Calls visit(row) for every listed row, by a block.
template <class Visit>
__device__ __forceinline__ void for_long_rows(const i32* list, const u64* n_listed, Visit visit) {
#pragma unroll 1
    for (i64 i = blockIdx.x; i < static_cast<i64>(*n_listed); i += gridDim.x) visit(static_cast<i64>(list[i]));
}

// Calls visit(row, j) for every item j of all rows, in chunks of consecutive items.
template <class Visit>
__device__ __forceinline__ void for_all_items(const Grid& grid, const i64* offsets, i64 n_rows, i64 n_items, Visit visit) {
    const i64 chunk = grid.chunk_of(n_items);
#pragma unroll 1
    for (i64 start = grid.thread() * chunk; start < n_items; start += grid.n_threads() * chunk) {
        i64 row = row_of(offsets, n_rows, start);
        for (i64 j = start; j < smaller(start + chunk, n_items); ++j) {
            while (j >= offsets[row + 1]) ++row;
            visit(row, j);
        }
    }
}

// sums[row * stride] += value_of(row, item) summed over the row's items. One atomic for each row of a chunk, or of
// a warp whose chunks are of one row. Deterministic: wrapping integer sums.
template <class Value>
__device__ __forceinline__ void add_all_rows(const Grid& grid, const i64* offsets, i64 n_rows, const i32* items,
                                             i64 n_items, i64* sums, i64 stride, Value value_of) {
    const i64 lane = threadIdx.x & 31, chunk = grid.chunk_of(n_items);
#pragma unroll 1
    for (i64 base = (grid.thread() - lane) * chunk; base < n_items; base += grid.n_threads() * chunk) {
        i64 j = base + lane * chunk, row = -1, total = 0;
        const i64 stop = smaller(j + chunk, n_items);
        if (j < stop) row = row_of(offsets, n_rows, j);
        while (j < stop) {
            for (; j >= offsets[row + 1]; total = 0) {
                if (total != 0) add64(sums + row * stride, total);
                ++row;
            }
            for (const i64 end = smaller(offsets[row + 1], stop); j < end; ++j)
                total = static_cast<i64>(static_cast<u64>(total) + value_of(row, items[j]));
        }
        const bool one_row = __ballot_sync(ALL_LANES, row != __shfl_sync(ALL_LANES, row, 0) || row < 0) == 0;
        if (one_row) total = sum_warp(total);
        if (total != 0 && (lane == 0 || !one_row)) add64(sums + row * stride, total);
    }
}

// Sort a row of distinct ids below n_ids in place, by a warp (at most SHORT_ROW ids) or a block.
template <bool BLOCK>
__device__ __forceinline__ void sort_row(const Grid& grid, i32* ids, i64 n, i64 n_ids) {
    const i32 rank = Group<BLOCK>::rank(), size = Group<BLOCK>::size();
    if (!BLOCK) {
        if (n < 2) return;
        if (n >= MANY_BITS && n_ids <= 32 * WARP_WORDS) {
            const WarpBits set(grid.own_words(), n_ids);
#pragma unroll 1
            for (i64 i = rank; i < n; i += size) set.add(ids[i]);
            __syncwarp();
            set.list(ids);
            __syncwarp();
            return;
        }
        i32* own = reinterpret_cast<i32*>(grid.own_words());
#pragma unroll 1
        for (i64 i = rank; i < n; i += size) own[i] = ids[i];
        __syncwarp();
        sort_short(own, n);
#pragma unroll 1
        for (i64 i = rank; i < n; i += size) ids[i] = own[i];
        __syncwarp();
    } else if (n_ids <= 32 * grid.n_words) {
        const BitSet set(grid, 0, n_ids);
#pragma unroll 1
        for (i64 i = rank; i < n; i += size) set.add(ids[i]);
        __syncthreads();
        set.list(grid, ids);
        __syncthreads();
    } else {
        sort_ids<true>(ids, n);
    }
}

#endif
