// Groups of threads of any size, sums and scans by them, sorting by a block. They keep what they need in dynamic
// shared memory: `scratch` has SCRATCH_WORDS words. (What `common.cuh` has for blocks is in static memory.)

const i32 SCRATCH_WORDS = 128;

#ifndef WAIT_FOR_TEAM  // until n_threads of the block have come to barrier `id` of 16; 0 is that of the whole block
#define WAIT_FOR_TEAM(id, n_threads) asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(n_threads) : "memory")
#endif

#ifndef PREFETCH  // asks for a line of memory that is read soon
#define PREFETCH(address) asm volatile("prefetch.global.L2 [%0];" ::"l"(address))
#endif

// A warp, or some warps of a block (a power of two, so that there are at most 15 teams), that work on a row.
struct Warp {
    static const i32 warps = 1;
    __device__ __forceinline__ i32 rank() const { return threadIdx.x & 31; }
    __device__ __forceinline__ i32 size() const { return 32; }
    __device__ __forceinline__ i32 place() const { return threadIdx.x >> 5; }  // in the block
    __device__ __forceinline__ i64 index() const { return Group<false>::index(); }
    __device__ __forceinline__ i64 number() const { return Group<false>::number(); }
    __device__ __forceinline__ void sync() const { __syncwarp(); }
};

struct Team {
    i32 warps;

    static __device__ __forceinline__ Team of_block() { return {static_cast<i32>(blockDim.x >> 5)}; }
    __device__ __forceinline__ i32 rank() const { return threadIdx.x & (size() - 1); }
    __device__ __forceinline__ i32 size() const { return 32 * warps; }
    __device__ __forceinline__ i32 place() const { return threadIdx.x >> (__ffs(size()) - 1); }
    __device__ __forceinline__ i64 index() const { return static_cast<i64>(blockIdx.x) * (blockDim.x >> (__ffs(size()) - 1)) + place(); }
    __device__ __forceinline__ i64 number() const { return static_cast<i64>(gridDim.x) * (blockDim.x >> (__ffs(size()) - 1)); }
    __device__ __forceinline__ void sync() const { WAIT_FOR_TEAM(size() == blockDim.x ? 0 : place() + 1, size()); }
    __device__ __forceinline__ i32 warp() const { return rank() >> 5; }
    template <class T>
    __device__ __forceinline__ T* share(i64* scratch) const {  // room for 24 bytes a warp
        return reinterpret_cast<T*>(scratch + 3 * place() * warps);
    }
};

// Sum of the values of this thread and those before it in its group; total = of all.
__device__ __forceinline__ i64 scan(Warp, i64 value, i64& total, i64*) {
    value = scan_warp(value);
    total = __shfl_sync(ALL_LANES, value, 31);
    return value;
}

__device__ __forceinline__ i64 scan(Team team, i64 value, i64& total, i64* scratch) {
    i64* sums = team.share<i64>(scratch);
    const i32 lane = threadIdx.x & 31;
    value = scan_warp(value);
    if (lane == 31) sums[team.warp()] = value;
    team.sync();
    const i64 up_to = scan_warp(lane < team.warps ? sums[lane] : 0), before = __shfl_sync(ALL_LANES, up_to, (team.warp() + 31) & 31);
    total = __shfl_sync(ALL_LANES, up_to, 31);
    team.sync();
    return value + (team.warp() > 0 ? before : 0);
}

// Sum over the group, known to all its threads afterwards.
__device__ __forceinline__ i64 sum_of(Warp, i64 value, i64*) { return sum_warp(value); }

__device__ __forceinline__ i64 sum_of(Team team, i64 value, i64* scratch) {
    i64* sums = team.share<i64>(scratch);
    const i32 lane = threadIdx.x & 31;
    value = sum_warp(value);
    if (lane == 0) sums[team.warp()] = value;
    team.sync();
    value = sum_warp(lane < team.warps ? sums[lane] : 0);
    team.sync();
    return value;
}

// The bits that are set for any thread of a team.
__device__ __forceinline__ u64 any_bits_of(Team team, u64 bits, i64* scratch) {
    u64* shared = team.share<u64>(scratch);
    const i32 lane = threadIdx.x & 31;
    for (i32 step = 16; step > 0; step >>= 1) bits |= __shfl_xor_sync(ALL_LANES, bits, step);
    if (lane == 0) shared[team.warp()] = bits;
    team.sync();
    bits = lane < team.warps ? shared[lane] : 0;
    for (i32 step = 16; step > 0; step >>= 1) bits |= __shfl_xor_sync(ALL_LANES, bits, step);
    team.sync();
    return bits;
}

__device__ __forceinline__ bool any_of(Warp, bool vote, i64*) { return __ballot_sync(ALL_LANES, vote) != 0; }

__device__ __forceinline__ bool any_of(Team team, bool vote, i64* scratch) { return sum_of(team, vote, scratch) != 0; }

// The value of the group's first thread.
__device__ __forceinline__ i64 value_of_first(Warp, i64 value, i64*) { return __shfl_sync(ALL_LANES, value, 0); }

__device__ __forceinline__ i64 value_of_first(Team team, i64 value, i64* scratch) {
    i64* shared = team.share<i64>(scratch);
    if (team.rank() == 0) *shared = value;
    team.sync();
    value = *shared;
    team.sync();
    return value;
}

// The best candidate of the group, known to all its threads afterwards.
__device__ __forceinline__ Best best_of(Warp, Best best, i64*) { return best_of_group<false>(best); }

__device__ __forceinline__ Best best_of(Team team, Best best, i64* scratch) {
    Best* bests = team.share<Best>(scratch);
    best = best_of_group<false>(best);
    if ((threadIdx.x & 31) == 0) bests[team.warp()] = best;
    team.sync();
#pragma unroll 1
    for (i32 w = 0; w < team.warps; ++w)
        if (best.below(bests[w])) best = bests[w];
    team.sync();
    return best;
}

// firsts[i] = count_of(0) + .. + count_of(i - 1) for n lists, by a block; returns the sum of all.
template <class Count>
__device__ __forceinline__ i64 place_lists(i64 n, u32* firsts, i64* scratch, Count count_of) {
    i64 before = 0, total;
#pragma unroll 1
    for (i64 base = 0; base < n; base += blockDim.x) {
        const i64 i = base + threadIdx.x, count = i < n ? count_of(i) : 0;
        const i64 sum = scan(Team::of_block(), count, total, scratch);
        if (i < n) firsts[i] = static_cast<u32>(before + sum - count);
        before += total;
    }
    return before;
}

// Whether a move comes before another: by falling gain, then by id.
__device__ __forceinline__ bool ranks_before(i64 gain, i32 v, i64 other_gain, i32 other) {
    return gain != other_gain ? gain > other_gain : v < other;
}

// Sort n moves by falling gain, equal ones as `before` says, by a block: few by counting, a thread each, which better
// ones there are; else bitonic, all comparisons in one direction, so that any n will do.
template <class Before>
__device__ __forceinline__ void sort_moves(i64* gains, i32* ids, i64 n, Before before) {
    const i32 FEW = 192, rank = threadIdx.x, size = blockDim.x, end = static_cast<i32>(n);
    __syncthreads();
    if (end <= FEW && end <= size) {
        const i64 gain = rank < end ? gains[rank] : 0;
        const i32 v = rank < end ? ids[rank] : -1;
        i32 place = 0;
#pragma unroll 4
        for (i32 i = 0; rank < end && i < end; ++i) place += gains[i] > gain || (gains[i] == gain && before(ids[i], v));
        __syncthreads();
        if (rank < end) {
            gains[place] = gain;
            ids[place] = v;
        }
        __syncthreads();
        return;
    }
    for (i32 half = 1; half < end; half *= 2) {
        for (i32 step = half; step > 0; step /= 2) {
#pragma unroll 1
            for (i32 i = rank;; i += size) {
                const i32 within = i & (step - 1), low = 2 * (i - within) + within;
                if (low >= end) break;
                const i32 high = step == half ? low - 2 * within + 2 * step - 1 : low + step;
                if (high >= end || !(gains[high] > gains[low] || (gains[high] == gains[low] && before(ids[high], ids[low])))) continue;
                const i64 gain = gains[low];
                const i32 v = ids[low];
                gains[low] = gains[high];
                ids[low] = ids[high];
                gains[high] = gain;
                ids[high] = v;
            }
            __syncthreads();
        }
    }
}

struct ById {
    __device__ __forceinline__ bool operator()(i32 v, i32 other) const { return v < other; }
};
