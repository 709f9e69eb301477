// Rounds in one launch: moves listed by part, moves made; a launch as a whole.
#ifndef SNNMAP_ROUND_CHOOSE_CUH
#define SNNMAP_ROUND_CHOOSE_CUH

// Lists nodes with a move by part: v in the list of part key(v), unless that is -1; the lists begin at `firsts`,
// n_listed (0 before) = their lengths. By all blocks.
template <class Key>
__device__ __forceinline__ void list_nodes(const Work& work, const u32* firsts, i64* n_listed, i32* list, Key key) {
    const Desk& desk = work.desk;
    const i32* proposed = work.in.proposed;
    const i64 n = static_cast<i64>(work.counters().n_proposed);
#pragma unroll 1
    for (i64 i = work.thread(); i < n; i += work.n_threads()) {
        const i32 p = key(proposed[i]);
        if (p >= 0) atomicAdd(desk.ins + p, 1u);
    }
    __syncthreads();
#pragma unroll 1
    for (i32 p = threadIdx.x; p < desk.n_parts; p += blockDim.x) {
        const u64 own = desk.ins[p];
        if (own != 0) desk.outs[p] = firsts[p] + static_cast<u32>(atomicAdd(reinterpret_cast<u64*>(n_listed + p), own));
        desk.ins[p] = 0;
    }
    __syncthreads();
#pragma unroll 1
    for (i64 i = work.thread(); i < n; i += work.n_threads()) {
        const i32 v = proposed[i], p = key(v);
        if (p >= 0) list[atomicAdd(desk.outs + p, 1u)] = v;
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

// Moves v, by a thread; loads of resources follow.
__device__ __forceinline__ void move(const Work& work, i64 v) {
    const Rounds& in = work.in;
    const i64 a = in.parts[v], b = in.targets[v];
    i64* loads = work.loads(work.measured + 1);
    in.parts[v] = static_cast<i32>(b);
    in.moved[v] = (static_cast<i32>(work.turn) + 1) << 16 | static_cast<i32>(a);
    for (i32 r = 0; r < N_ADDITIVE; ++r) {
        add_to(loads + a * N_LOADS + r, -work.additive(v, r));
        add_to(loads + b * N_LOADS + r, work.additive(v, r));
    }
}

// The same, and lists it in `sorted`.
__device__ __forceinline__ void move_and_list(const Work& work, i64 v) {
    move(work, v);
    work.in.sorted[atomicAdd(&work.counters().n_moved, 1ull)] = static_cast<i32>(v);
}

// ------------------------------------------------------------------------------------ a launch

// Copies a struct of 8-byte words; by some threads, or by this one.
template <class T>
__device__ __forceinline__ void copy_words(const T& from, T& into, u32 first = 0, u32 step = 1) {
    const u64* words = reinterpret_cast<const u64*>(&from);
#pragma unroll 1
    for (u32 i = first; i < sizeof(T) / sizeof(u64); i += step) reinterpret_cast<u64*>(&into)[i] = words[i];
}

// How it is known what nodes find.
__device__ __forceinline__ void decide_to_find(Work& work) {
    put(work.finds, can_find(work.in));
    put(work.tells, work.finds && work.in.nets_of_parts.given());
}

// Where a launch goes on: at turn `first`. The first launch measures.
__device__ __forceinline__ void begin(Work& work) {
    work.desk.clear();
    if (work.turn > 0) {
        decide_to_find(work);
        return;
    }
    survey(work);
    if (work.in.segments.given()) list_segments(work);
    forget_found(work);
    meet(work);
    decide_to_find(work);
    if (!work.finds && !work.in.node_offsets.given()) work.in.progress->gave_up = NEEDS_LISTS;
    measure(work);
    meet(work);
    if (work.finds) {
        tell_first(work);
        meet(work);
    }
    put(work.at_start, static_cast<i64>(work.in.progress->connectivity[0]));
}

// Zero what the next round counts.
__device__ __forceinline__ void prepare_counters(const Work& work) {
    const i64 n = sizeof(Counters) / 8 + work.in.n_parts * (N_LOADS + 4);
    i64* next = work.set_of(work.turn + 1);
#pragma unroll 1
    for (i64 i = work.thread(); i < n; i += work.n_threads()) next[i] = 0;
}

// Proposals of a turn, and room for what it and the next measurement count.
template <Kind KIND>
__device__ __forceinline__ void begin_turn(Work& work, const Turn& turn, i64 haven = -1) {
    Prices prices;
    set_prices(work, turn.factor, prices.of);
    prices.slack = turn.slack;
    prices.seed = turn.seed;
    prices.haven = haven;
    prepare_measurement(work);
    prepare_counters(work);
    propose_all<KIND>(work, prices);
}

// What the n listed nodes that moved have changed; if nothing moved, nothing has. Proposals are forgotten.
__device__ __forceinline__ void measure_again(Work& work, const i32* movers, i64 n) {
    const Rounds& in = work.in;
    const i64 n_proposed = static_cast<i64>(work.counters().n_proposed);
#pragma unroll 1
    for (i64 i = work.thread(); i < n_proposed; i += work.n_threads()) {
        const i64 v = in.proposed[i];
        in.moves[v] = in.parts[v] * 0x10001;
    }
    if (n != 0 && in.segments.given()) {
#pragma unroll 1
        for (i64 i = Warp().index(); i < n; i += Warp().number()) list_nets_of(work, Warp(), movers[i], CHANGED);
        meet(work);
    }
    if (n != 0) {
        put(work.measured, work.measured + 1);
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
        const Desk desk(memory + WORK_BYTES, in.n_parts, in.table_words, in.warp_bytes);                     \
        const Work made = {in, desk, Grid(&progress.gate, memory + WORK_BYTES, 0), first, progress.n_measured, \
                           progress.at_start, false, false, false};                                                 \
        copy_words(made, work);                                                                              \
    }                                                                                                        \
    __syncthreads();

#endif
