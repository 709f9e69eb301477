// Rounds in one launch: moves listed by part, and the best of them for which there is room; a launch as a
// whole.
#ifndef SNNMAP_ROUND_CHOOSE_CUH
#define SNNMAP_ROUND_CHOOSE_CUH

// Lists nodes by part: v in the list of part key(v), unless that is -1; the lists begin at `firsts`,
// n_listed (0 before) = their lengths. By all blocks.
template <class Key>
__device__ __forceinline__ void list_nodes(const Work& work, const u32* firsts, i64* n_listed, i32* list, Key key) {
    const Desk& desk = work.desk;
#pragma unroll 1
    for (i64 v = work.thread(); v < work.in.n_nodes; v += work.n_threads()) {
        const i32 p = key(v);
        if (p >= 0) atomicAdd(desk.ins + p, 1u);
    }
    __syncthreads();
#pragma unroll 1
    for (i32 p = threadIdx.x; p < desk.n_parts; p += blockDim.x) {
        const u64 n = desk.ins[p];
        if (n != 0) desk.outs[p] = firsts[p] + static_cast<u32>(atomicAdd(reinterpret_cast<u64*>(n_listed + p), n));
        desk.ins[p] = 0;
    }
    __syncthreads();
#pragma unroll 1
    for (i64 v = work.thread(); v < work.in.n_nodes; v += work.n_threads()) {
        const i32 p = key(v);
        if (p >= 0) list[atomicAdd(desk.outs + p, 1u)] = static_cast<i32>(v);
    }
    __syncthreads();
#pragma unroll 1
    for (i32 p = threadIdx.x; p < desk.n_parts; p += blockDim.x) desk.outs[p] = 0;
    __syncthreads();
}

// Where the lists of moves into and out of each part begin: both by one scan.
__device__ __forceinline__ void place_moves(const Work& work) {
    const i64 *n_in = work.wanted_in(), *n_out = work.wanted_out();
    i64 before = 0, total;
#pragma unroll 1
    for (i32 base = 0; base < work.desk.n_parts; base += blockDim.x) {
        const i32 p = base + threadIdx.x;
        const i64 counts = p < work.desk.n_parts ? n_in[p] + (n_out[p] << 32) : 0;
        const i64 firsts = before + scan(Team::of_block(), counts, total, work.desk.scratch) - counts;
        if (p < work.desk.n_parts) {
            work.desk.first_ins[p] = static_cast<u32>(firsts);
            work.desk.first_outs[p] = static_cast<u32>(firsts >> 32);
        }
        before += total;
    }
    __syncthreads();
}

// take(v) for those of n listed moves up to which, best first (equal ones as `before` says), all amounts
// fit into the room; by a block.
template <class Amount, class Take, class Before>
__device__ __forceinline__ void accept_prefix(const Work& work, const i32* list, i64 n, i64 place, const i64* room,
                                              Amount amount, Take take, Before before_equal) {
    const Rounds& in = work.in;
    i64* gains = reinterpret_cast<i64*>(work.desk.events);
    i32* ids = reinterpret_cast<i32*>(gains + work.desk.sortable());
    if (n > work.desk.sortable()) {
        gains = in.sorted_gains + place;
        ids = in.sorted + place;
    }
    if (n == 0) return;
#pragma unroll 1
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
        ids[i] = list[i];
        gains[i] = in.gains[list[i]];
    }
    sort_moves(gains, ids, n, before_equal);
    i64 before[N_LOADS], total;
    for (i32 r = 0; r < N_LOADS; ++r) before[r] = 0;
#pragma unroll 1
    for (i64 base = 0; base < n; base += blockDim.x) {
        const i64 i = base + threadIdx.x, v = i < n ? ids[i] : -1;
        bool fits = v >= 0;
        for (i32 r = 0; r < N_LOADS; ++r) {
            const i64 sum = scan(Team::of_block(), v >= 0 ? amount(v, r) : 0, total, work.desk.scratch);
            fits &= before[r] + sum <= room[r];
            before[r] += total;
        }
        if (fits) take(v);
    }
    __syncthreads();
}

template <class Amount, class Take>
__device__ __forceinline__ void accept_prefix(const Work& work, const i32* list, i64 n, i64 place, const i64* room,
                                              Amount amount, Take take) {
    accept_prefix(work, list, n, place, room, amount, take, ById());
}

__device__ __forceinline__ void move(const Rounds& in, i64 v, u64& n_moved) {
    in.parts[v] = in.targets[v];
    in.moved[v] = true;
    ++n_moved;
}

// ------------------------------------------------------------------------------------ a launch

// Copies a struct of 8-byte words; by some threads, or by this one.
template <class T>
__device__ __forceinline__ void copy_words(const T& from, T& into, u32 first = 0, u32 step = 1) {
    const u64* words = reinterpret_cast<const u64*>(&from);
#pragma unroll 1
    for (u32 i = first; i < sizeof(T) / sizeof(u64); i += step) reinterpret_cast<u64*>(&into)[i] = words[i];
}

// Where a launch goes on: at turn `first`. The first launch measures.
__device__ __forceinline__ void begin(Work& work) {
    work.desk.clear();
    if (work.turn > 0) {
        work.finds = can_find(work.in);
        return;
    }
    survey(work);
    forget_found(work);
    meet(work);
    work.finds = can_find(work.in);
    if (!work.finds && work.in.node_offsets == nullptr) work.in.progress->gave_up = NEEDS_LISTS;
    measure(work);
    meet(work);
    work.at_start = static_cast<i64>(work.in.progress->connectivity[0]);
}

// Proposals of a turn, and room for what it and the next measurement count.
template <Kind KIND>
__device__ __forceinline__ void begin_turn(const Work& work, const Turn& turn, i64 haven = -1) {
    Prices prices;
    set_prices(work, turn.factor, prices.of);
    prices.slack = turn.slack;
    prices.seed = turn.seed;
    prices.haven = haven;
    prepare_measurement(work);
    prepare_counters(work);
    propose_all<KIND>(work, prices);
}

// All blocks know that something moved, or that nothing did, which changes nothing.
__device__ __forceinline__ void measure_again(Work& work, bool moved) {
    if (moved) {
        __syncthreads();
        if (threadIdx.x == 0) ++work.measured;
        __syncthreads();
        measure(work);
    }
    meet(work);
}

// What the next launch and the host hear; `done`: no turn is left that could change anything.
__device__ __forceinline__ void end(Work& work, bool done) {
    meet(work);
    if (work.thread() != 0) return;
    Progress& progress = *work.in.progress;
    progress.n_measured = work.measured;
    progress.at_start = work.at_start;
    progress.done = done;
    if (work.too_large) progress.gave_up = 1;
}

#define WORK(rounds, first)                                                                                  \
    DYNAMIC_SHARED(memory);                                                                                  \
    __shared__ Rounds in;                                                                                    \
    copy_words(*rounds, in, threadIdx.x, blockDim.x);                                                        \
    __syncthreads();                                                                                         \
    Progress& progress = *in.progress;                                                                       \
    Work& work = *reinterpret_cast<Work*>(memory);                                                           \
    if (threadIdx.x == 0) {                                                                                  \
        const Desk desk(memory + WORK_BYTES, in.n_parts, in.table_warps, in.warp_events);                    \
        const Work made = {in, desk, Grid(&progress.gate, memory + WORK_BYTES, 0), first, progress.n_measured, \
                           progress.at_start, false, false};                                                 \
        copy_words(made, work);                                                                              \
    }                                                                                                        \
    __syncthreads();

#endif
