// Sums, scans and sorting by a warp or a block that keeps what it needs in dynamic shared memory:
// `scratch` has SCRATCH_WORDS words. (What `common.cuh` has for blocks is in static memory.)

const i32 SCRATCH_WORDS = 128;

// Sum of the values of this thread and those before it in its group; total = of all.
template <bool BLOCK>
__device__ __forceinline__ i64 scan(i64 value, i64& total, i64* scratch) {
    value = scan_warp(value);
    if (!BLOCK) {
        total = __shfl_sync(ALL_LANES, value, 31);
        return value;
    }
    const i32 warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
    if ((threadIdx.x & 31) == 31) scratch[warp] = value;
    __syncthreads();
    total = 0;
    for (i32 w = 0; w < n_warps; ++w) {
        if (w == warp) value += total;
        total += scratch[w];
    }
    __syncthreads();
    return value;
}

// Sum over the group, known to all its threads afterwards.
template <bool BLOCK>
__device__ __forceinline__ i64 sum_of(i64 value, i64* scratch) {
    value = sum_warp(value);
    if (!BLOCK) return value;
    const i32 n_warps = blockDim.x >> 5;
    if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = value;
    __syncthreads();
    value = 0;
    for (i32 w = 0; w < n_warps; ++w) value += scratch[w];
    __syncthreads();
    return value;
}

// The value of the group's first thread.
template <bool BLOCK>
__device__ __forceinline__ i64 value_of_first(i64 value, i64* scratch) {
    if (!BLOCK) return __shfl_sync(ALL_LANES, value, 0);
    if (threadIdx.x == 0) scratch[0] = value;
    __syncthreads();
    value = scratch[0];
    __syncthreads();
    return value;
}

// The best candidate of the group, known to all its threads afterwards.
template <bool BLOCK>
__device__ __forceinline__ Best best_of(Best best, i64* scratch) {
    best = best_of_group<false>(best);
    if (!BLOCK) return best;
    Best* bests = reinterpret_cast<Best*>(scratch);
    const i32 n_warps = blockDim.x >> 5;
    if ((threadIdx.x & 31) == 0) bests[threadIdx.x >> 5] = best;
    __syncthreads();
    for (i32 w = 0; w < n_warps; ++w)
        if (best.below(bests[w])) best = bests[w];
    __syncthreads();
    return best;
}

// firsts[i] = count_of(0) + .. + count_of(i - 1) for n lists, by a block.
template <class Count>
__device__ __forceinline__ void place_lists(i64 n, u32* firsts, i64* scratch, Count count_of) {
    i64 before = 0, total;
    for (i64 base = 0; base < n; base += blockDim.x) {
        const i64 i = base + threadIdx.x, count = i < n ? count_of(i) : 0;
        const i64 sum = scan<true>(count, total, scratch);
        if (i < n) firsts[i] = static_cast<u32>(before + sum - count);
        before += total;
    }
}

// Whether a move comes before another: by falling gain, then by id.
__device__ __forceinline__ bool ranks_before(i64 gain, i32 v, i64 other_gain, i32 other) {
    return gain != other_gain ? gain > other_gain : v < other;
}

// Sort n moves by rank, by a block: bitonic, all comparisons in one direction, so that any n will do.
__device__ __forceinline__ void sort_moves(i64* gains, i32* ids, i64 n) {
    __syncthreads();
    for (i64 half = 1; half < n; half *= 2) {
        for (i64 step = half; step > 0; step /= 2) {
            for (i64 i = threadIdx.x;; i += blockDim.x) {
                const i64 within = i & (step - 1), low = 2 * (i - within) + within;
                if (low >= n) break;
                const i64 high = step == half ? low - 2 * within + 2 * step - 1 : low + step;
                if (high >= n || !ranks_before(gains[high], ids[high], gains[low], ids[low])) continue;
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
