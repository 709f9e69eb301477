// What all kernels share: integer types, hashes, rows, groups of threads and small hash tables.
//
// Every result is an integer that does not depend on the order in which threads run: sums are
// two's complement (atomicAdd on 64-bit words), maxima have total orders, and where a thread takes
// the next free place of a list or of a hash table, nobody looks at the order of the places.
// Indices into pins are 64-bit throughout.
#ifndef SNNMAP_COMMON_CUH
#define SNNMAP_COMMON_CUH

typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

#ifndef N_ADDITIVE  // columns of `resources`
#define N_ADDITIVE 1
#endif
#ifndef N_DISTINCT  // columns of `counts`
#define N_DISTINCT 1
#endif
#define N_LOADS (N_ADDITIVE + N_DISTINCT)

#ifndef DYNAMIC_SHARED
#define DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#endif

// Pointers that say where they point: loads, stores and, above all, additions to what may be anywhere are much longer.
#ifndef ASSUME
#define ASSUME(condition) __builtin_assume(condition)
#endif

template <class T>
struct Global {
    T* pointer;  // or null
    __device__ __forceinline__ operator T*() const {
        ASSUME(__isGlobal(pointer));
        return pointer;
    }
    __device__ __forceinline__ T* operator->() const { return *this; }
    __device__ __forceinline__ bool given() const { return pointer != nullptr; }
    template <class Other>
    __device__ __forceinline__ Other* as() const {
        return reinterpret_cast<Other*>(static_cast<T*>(*this));
    }
};

template <class T>
struct Shared {
    T* pointer;
    __device__ __forceinline__ operator T*() const {
        ASSUME(__isShared(pointer));
        return pointer;
    }
    template <class Other>
    __device__ __forceinline__ Other* as() const {
        return reinterpret_cast<Other*>(static_cast<T*>(*this));
    }
};

const u32 ALL_LANES = 0xFFFFFFFFu;
const i32 EMPTY = -1;  // a free slot of a hash table

// ------------------------------------------------------------------------------------ hashes

// SplitMix64 finaliser, as `mix64` of snnmap/_rows.py.
__device__ __forceinline__ u64 mix64(u64 x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

// Tie breaker, as `scramble` of _kernels_search.py.
__device__ __forceinline__ u64 scramble(u64 x, u64 seed) {
    return mix64(x * 0x9E3779B97F4A7C15ull + seed * 0xD1B54A32D192ED03ull);
}

// ------------------------------------------------------------------------------------ numbers

__device__ __forceinline__ void add64(i64* target, i64 value) {
    atomicAdd(reinterpret_cast<u64*>(target), static_cast<u64>(value));
}

// Division that rounds down, as Python's, for b > 0.
__device__ __forceinline__ i64 floor_div(i64 a, i64 b) {
    const i64 q = a / b;
    return q - ((a % b) < 0 ? 1 : 0);
}

__device__ __forceinline__ i64 smaller(i64 a, i64 b) { return a < b ? a : b; }
__device__ __forceinline__ i64 larger(i64 a, i64 b) { return a > b ? a : b; }

// ------------------------------------------------------------------------------------ rows

// The row that holds item `place` of a list of rows: offsets[row] <= place < offsets[row + 1].
__device__ __forceinline__ i64 row_of(const i64* offsets, i64 n_rows, i64 place) {
    i64 low = 0, high = n_rows;
    while (high - low > 1) {
        const i64 middle = (low + high) >> 1;
        if (offsets[middle] <= place)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// First place in the ascending items[first : last] that is not below `item`.
template <class T>
__device__ __forceinline__ i64 lower_bound(const T* items, i64 first, i64 last, T item) {
    while (first < last) {
        const i64 middle = (first + last) >> 1;
        if (items[middle] < item)
            first = middle + 1;
        else
            last = middle;
    }
    return first;
}

const int CHUNK = 16;  // consecutive items of a thread, so that long and short rows cost the same

// sums[row * stride] += value_of(item) summed over the row's items, for one chunk of items a thread: a warp
// reads 2 kB at a time. Whatever row they belong to: reads items once, one atomic for each row.
// Deterministic: wrapping integer sums.
template <class Value>
__device__ __forceinline__ void add_rows(const i64* offsets, i64 n_rows, const i32* items, i64 n_items,
                                         i64* sums, i64 stride, Value value_of) {
    i64 j = (static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x) * CHUNK;
    const i64 stop = smaller(j + CHUNK, n_items);
    if (j >= stop) return;
    i64 row = row_of(offsets, n_rows, j);
    while (j < stop) {
        const i64 end = smaller(offsets[row + 1], stop);
        u64 total = 0;
        for (; j < end; ++j) total += value_of(items[j]);
        if (total != 0) add64(sums + row * stride, static_cast<i64>(total));
        ++row;
    }
}

// ------------------------------------------------------------------------------------ groups

// A group works on one row: a warp (BLOCK = false) or a whole block of full warps (BLOCK = true).
template <bool BLOCK>
struct Group {
    static __device__ __forceinline__ i32 rank() { return BLOCK ? threadIdx.x : threadIdx.x & 31; }
    static __device__ __forceinline__ i32 size() { return BLOCK ? blockDim.x : 32; }
    static __device__ __forceinline__ i64 index() {
        return BLOCK ? blockIdx.x : (static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x) >> 5;
    }
    static __device__ __forceinline__ i64 number() {
        return BLOCK ? gridDim.x : (static_cast<i64>(gridDim.x) * blockDim.x) >> 5;
    }
    static __device__ __forceinline__ void sync() {
        if (BLOCK)
            __syncthreads();
        else
            __syncwarp();
    }
};

__device__ __forceinline__ i64 sum_warp(i64 value) {
    for (int step = 16; step > 0; step >>= 1) value += __shfl_xor_sync(ALL_LANES, value, step);
    return value;
}

// Sum of the values of this lane and those before it.
__device__ __forceinline__ i64 scan_warp(i64 value) {
    const i32 lane = threadIdx.x & 31;
    for (i32 step = 1; step < 32; step *= 2) {
        const i64 other = __shfl_sync(ALL_LANES, value, lane >= step ? lane - step : lane);
        if (lane >= step) value += other;
    }
    return value;
}

// Sum over the group, known to all its threads afterwards.
template <bool BLOCK>
__device__ __forceinline__ i64 sum_group(i64 value) {
    value = sum_warp(value);
    if (!BLOCK) return value;
    __shared__ i64 sums[32];
    if ((threadIdx.x & 31) == 0) sums[threadIdx.x >> 5] = value;
    __syncthreads();
    value = 0;
    for (u32 warp = 0; warp < blockDim.x >> 5; ++warp) value += sums[warp];
    __syncthreads();
    return value;
}

// A candidate of a total order: larger value, then larger tie, then smaller id.
struct Best {
    i64 value;
    u64 tie;
    i32 id;
    u32 slot;

    __device__ __forceinline__ bool below(const Best& other) const {
        if (value != other.value) return value < other.value;
        if (tie != other.tie) return tie < other.tie;
        return static_cast<u32>(id) > static_cast<u32>(other.id);  // no candidate (-1) comes last
    }
};

// The best candidate of the group, known to all its threads afterwards.
template <bool BLOCK>
__device__ __forceinline__ Best best_of_group(Best best) {
    for (int step = 16; step > 0; step >>= 1) {
        Best other;
        other.value = __shfl_xor_sync(ALL_LANES, best.value, step);
        other.tie = __shfl_xor_sync(ALL_LANES, best.tie, step);
        other.id = __shfl_xor_sync(ALL_LANES, best.id, step);
        other.slot = __shfl_xor_sync(ALL_LANES, best.slot, step);
        if (best.below(other)) best = other;
    }
    if (!BLOCK) return best;
    __shared__ Best bests[32];
    if ((threadIdx.x & 31) == 0) bests[threadIdx.x >> 5] = best;
    __syncthreads();
    for (u32 warp = 0; warp < blockDim.x >> 5; ++warp)
        if (best.below(bests[warp])) best = bests[warp];
    __syncthreads();
    return best;
}

// ------------------------------------------------------------------------------------ hash tables

// Where to look for a key first. Ids come in regular strides, so they are mixed.
__device__ __forceinline__ u32 hash_of(i32 key) {
    u32 x = static_cast<u32>(key) * 0x9E3779B1u;
    x ^= x >> 15;
    x *= 0x85EBCA77u;
    return x ^ (x >> 13);
}

// Slot of `key` >= 0 in a table of mask + 1 slots (a power of two) by linear probing.
// The table is never full. `fresh` tells whether this call claimed the slot.
__device__ __forceinline__ u32 claim(i32* keys, u32 mask, i32 key, bool& fresh) {
    u32 slot = hash_of(key) & mask;
    fresh = false;
    while (true) {
        i32 found = *const_cast<volatile i32*>(keys + slot);
        if (found == EMPTY) {
            found = atomicCAS(keys + slot, EMPTY, key);
            fresh = found == EMPTY;
            if (fresh) return slot;
        }
        if (found == key) return slot;
        slot = (slot + 1) & mask;
    }
}

__device__ __forceinline__ u32 claim(i32* keys, u32 mask, i32 key) {
    bool fresh;
    return claim(keys, mask, key, fresh);
}

// 64-bit sums, one for each slot, as low and high words: shared memory adds 32-bit words natively,
// 64-bit ones only by trial and error.
struct Sums {
    u32 *low, *high;

    __device__ __forceinline__ Sums(void* memory, i64 capacity)
        : low(static_cast<u32*>(memory)), high(low + capacity) {}
    __device__ __forceinline__ void clear(u32 slot) const { low[slot] = high[slot] = 0; }
    __device__ __forceinline__ void add(u32 slot, i64 value) const {
        const u32 part = static_cast<u32>(value);
        const u32 old = atomicAdd(low + slot, part);
        const u32 rest = static_cast<u32>(value >> 32) + (old + part < old ? 1 : 0);
        if (rest != 0) atomicAdd(high + slot, rest);
    }
    // Of values that are not negative, and whose low words never add up to more than a word: no addition waits for another.
    __device__ __forceinline__ void add_apart(u32 slot, i64 value) const {
        atomicAdd(low + slot, static_cast<u32>(value));
        const u32 rest = static_cast<u32>(value >> 32);
        if (rest != 0) atomicAdd(high + slot, rest);
    }
    __device__ __forceinline__ i64 get(u32 slot) const {
        return static_cast<i64>(static_cast<u64>(high[slot]) << 32 | low[slot]);
    }
};

#endif
