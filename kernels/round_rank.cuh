// Rounds in one launch: the rank of every move among all of them, by falling gain, then by node.
#ifndef SNNMAP_ROUND_RANK_CUH
#define SNNMAP_ROUND_RANK_CUH

__device__ __forceinline__ i64 n_moves_of(const Work& work) { return static_cast<i64>(work.counters().n_proposed); }

// Whether there are so few that all pairs of them are compared.
__device__ __forceinline__ bool are_counted(const Work& work) { return 16 * n_moves_of(work) <= work.n_threads(); }

// The moves of this block's share of the list, by rank, where the share begins in `sorted`.
__device__ __noinline__ void sort_share(const Work& work) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    i64 first, last;
    work.grid.share(n_moves_of(work), first, last);
    const i64 n = last - first;
    const bool fits = n <= desk.sortable();
    i64* gains = fits ? reinterpret_cast<i64*>(desk.lists) : in.sorted_gains + first;
    i32* ids = fits ? reinterpret_cast<i32*>(gains + desk.sortable()) : in.sorted + first;
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
        gains[i] = in.sorted_gains[first + i];
        ids[i] = in.proposed[first + i];
    }
    sort_moves(gains, ids, n, ById());
    __syncthreads();
    for (i64 i = threadIdx.x; fits && i < n; i += blockDim.x) {
        in.sorted_gains[first + i] = gains[i];
        in.sorted[first + i] = ids[i];
    }
    __syncthreads();
}

// How many of all moves come before one: by comparisons. By a warp.
__device__ __forceinline__ i64 count_better(const Work& work, i64 gain, i32 v) {
    const Rounds& in = work.in;
    const i64 n = n_moves_of(work);
    i64 rank = 0;
#pragma unroll 4
    for (i64 i = Warp().rank(); i < n; i += 32) rank += ranks_before(in.sorted_gains[i], in.proposed[i], gain, v);
    return sum_warp(rank);
}

// The same by bisection of the sorted shares, of which a lane bisects some at once, so that their loads overlap.
__device__ __forceinline__ i64 bisect_shares(const Work& work, i64 gain, i32 v) {
    const Rounds& in = work.in;
    const i32 SOME = 5;
    const i64 n = n_moves_of(work), each = (n + gridDim.x - 1) / gridDim.x;
    i64 rank = 0;
    for (i64 base = Warp().rank(); base < gridDim.x; base += 32 * SOME) {
        i32 low[SOME], high[SOME];
        bool more = false;
#pragma unroll
        for (i32 k = 0; k < SOME; ++k) {
            const i64 first = smaller((base + 32 * k) * each, n);
            low[k] = static_cast<i32>(first);
            high[k] = base + 32 * k < gridDim.x ? static_cast<i32>(smaller(first + each, n)) : low[k];
            rank -= low[k];
            more |= low[k] < high[k];
        }
        while (more) {
            i64 gains[SOME];
            i32 ids[SOME];
#pragma unroll
            for (i32 k = 0; k < SOME; ++k) {
                if (low[k] >= high[k]) continue;
                const i32 middle = (low[k] + high[k]) >> 1;
                gains[k] = in.sorted_gains[middle];
                ids[k] = in.sorted[middle];
            }
            more = false;
#pragma unroll
            for (i32 k = 0; k < SOME; ++k) {
                if (low[k] >= high[k]) continue;
                const i32 middle = (low[k] + high[k]) >> 1;
                if (ranks_before(gains[k], ids[k], gain, v))
                    low[k] = middle + 1;
                else
                    high[k] = middle;
                more |= low[k] < high[k];
            }
        }
#pragma unroll
        for (i32 k = 0; k < SOME; ++k) rank += low[k];
    }
    return sum_warp(rank);
}

// order[ranks[v]] = v for all moves. Parallel over moves, a warp each.
__device__ __noinline__ void rank_moves(const Work& work) {
    const Rounds& in = work.in;
    const i64 n = n_moves_of(work);
    const bool counted = are_counted(work);
    const i32* ids = counted ? in.proposed : in.sorted;
    for (i64 i = Warp().index(); i < n; i += Warp().number()) {
        const i64 gain = in.sorted_gains[i];
        const i32 v = ids[i];
        const i64 rank = counted ? count_better(work, gain, v) : bisect_shares(work, gain, v);
        if (Warp().rank() != 0) continue;
        in.order[rank] = v;
        in.ranks[v] = static_cast<i32>(rank);
    }
}

// Ranks of all moves. Blocks have met before, and meet here if there are many.
__device__ __forceinline__ void rank_all(Work& work) {
    if (!are_counted(work)) {
        sort_share(work);
        meet(work);
    }
    rank_moves(work);
}

#endif
