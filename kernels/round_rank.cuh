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
    i64* gains = fits ? desk.lists.as<i64>() : in.sorted_gains + first;
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

const i32 WAYS = 6;  // runs that are merged at once

// One run of every `WAYS` runs of so many moves each: next[rank] = move. A thread finds the place of its move in all other
// runs at once, so that loads overlap; the moves of its neighbours are near in those, too.
__device__ __forceinline__ void merge_runs(const Work& work, i64 n, i64 length, const i64* gains, const i32* ids,
                                           i64* next_gains, i32* next, i32* ranks) {
    const auto first_of = [&](i64 run) { return smaller(run * length, n); };
#pragma unroll 1
    for (i64 i = work.thread(); i < n; i += work.n_threads()) {
        const i64 run = i / length, group = run / WAYS * WAYS, gain = gains[i];
        const i32 v = ids[i];
        i64 rank = first_of(group) + i - first_of(run);
        i32 low[WAYS - 1], high[WAYS - 1];
        bool more = false;
#pragma unroll
        for (i32 k = 0; k < WAYS - 1; ++k) {
            const i64 other = group + k + (group + k >= run);
            low[k] = static_cast<i32>(first_of(other));
            high[k] = static_cast<i32>(first_of(other + 1));
            rank -= low[k];
            more |= low[k] < high[k];
        }
        while (more) {
            i64 their_gains[WAYS - 1];
            i32 theirs[WAYS - 1];
#pragma unroll
            for (i32 k = 0; k < WAYS - 1; ++k) {
                if (low[k] >= high[k]) continue;
                const i32 middle = (low[k] + high[k]) >> 1;
                their_gains[k] = gains[middle];
                theirs[k] = ids[middle];
            }
            more = false;
#pragma unroll
            for (i32 k = 0; k < WAYS - 1; ++k) {
                if (low[k] >= high[k]) continue;
                const i32 middle = (low[k] + high[k]) >> 1;
                if (ranks_before(their_gains[k], theirs[k], gain, v))
                    low[k] = middle + 1;
                else
                    high[k] = middle;
                more |= low[k] < high[k];
            }
        }
#pragma unroll
        for (i32 k = 0; k < WAYS - 1; ++k) rank += low[k];
        next_gains[rank] = gain;
        next[rank] = v;
        if (ranks != nullptr) ranks[v] = static_cast<i32>(rank);
    }
}

// order[ranks[v]] = v for all moves. Blocks have met before, and meet here if there are many: few are compared with all
// others, by a warp each; shares of many are sorted by blocks, then merged.
__device__ __noinline__ void rank_all(Work& work) {
    const Rounds& in = work.in;
    const i64 n = n_moves_of(work), each = (n + gridDim.x - 1) / gridDim.x;
    if (are_counted(work)) {
        for (i64 i = Warp().index(); i < n; i += Warp().number()) {
            const i32 v = in.proposed[i];
            const i64 rank = count_better(work, in.sorted_gains[i], v);
            if (Warp().rank() != 0) continue;
            in.order[rank] = v;
            in.ranks[v] = static_cast<i32>(rank);
        }
        return;
    }
    sort_share(work);
    i64 width = 1;  // shares of a run; after an odd number of turns the moves lie in `order`
    for (bool back = false; width < gridDim.x || !back; back = !back) {
        const bool last = width * WAYS >= gridDim.x && !back;
        meet(work);
        merge_runs(work, n, each * width, back ? in.merged_gains : in.sorted_gains, back ? in.order : in.sorted,
                   back ? in.sorted_gains : in.merged_gains, back ? in.sorted : in.order, last ? static_cast<i32*>(in.ranks) : nullptr);
        width *= WAYS;
    }
}

// Words of shared memory that it takes to put n items in order.
__device__ __forceinline__ i64 words_to_order(const Work& work, i64 n) { return 2 * ((n_moves_of(work) + 31) >> 5) + n; }

// The n items of a list by the rank of their nodes, in shared memory from `lists` on, of which so many words may be used,
// by a bit for each rank; null where that has no room. By a block.
template <class Node>
__device__ __forceinline__ const i32* put_in_order(const Work& work, const i32* list, i64 n, i64 most_words, Node node_of) {
    const Desk& desk = work.desk;
    const i64 n_words = (n_moves_of(work) + 31) >> 5;
    if (words_to_order(work, n) > most_words) return nullptr;
    u32 *bits = desk.lists.as<u32>(), *before = bits + n_words;
    i32* ordered = reinterpret_cast<i32*>(before + n_words);
#pragma unroll 1
    for (i64 w = threadIdx.x; w < n_words; w += blockDim.x) bits[w] = 0;
    __syncthreads();
#pragma unroll 1
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
        const i32 rank = work.in.ranks[node_of(list[i])];
        atomicOr(bits + (rank >> 5), 1u << (rank & 31));
    }
    __syncthreads();
    place_lists(n_words, before, desk.scratch, [&](i64 w) { return static_cast<i64>(__popc(bits[w])); });
    __syncthreads();
#pragma unroll 1
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
        const i32 rank = work.in.ranks[node_of(list[i])];
        ordered[before[rank >> 5] + __popc(bits[rank >> 5] & ((1u << (rank & 31)) - 1))] = list[i];
    }
    __syncthreads();
    return ordered;
}

#endif
