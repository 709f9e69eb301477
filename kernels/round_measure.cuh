// Rounds in one launch: the table of the parts, connectivity, loads; what they cost.
#ifndef SNNMAP_ROUND_MEASURE_CUH
#define SNNMAP_ROUND_MEASURE_CUH

// Where a warp writes entries: it reserves them in pieces, of which at most a quarter stays free.
struct Space {
    u64* n_taken;
    u32 piece, next, end;

    __device__ __forceinline__ u32 take(u32 n) {
        if (4 * n > piece) return static_cast<u32>(atomicAdd(n_taken, static_cast<u64>(n)));
        if (n > end - next) {
            next = static_cast<u32>(atomicAdd(n_taken, static_cast<u64>(piece)));
            end = next + piece;
        }
        next += n;
        return next - n;
    }
};

// The row of net g: (part, pins, weight of sources) of each part that it touches. Adds (net weight -
// weight of sources) over entries with pins to `connectivity`, the net's counts to the loads of their parts.
// Parallel over pins, then over parts.
template <class G>
__device__ __forceinline__ void fill_row(const Work& work, G group, i32 g, Space& space, i64& connectivity) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    const i32 n_parts = desk.n_parts, rank = group.rank(), size = group.size();
    u32* pins = desk.table(group);
    const Sums sources(pins + n_parts, n_parts), loads = desk.loads();
    const i64 last_source = in.source_offsets[g + 1];
    gather(group, in.net_pins, in.net_offsets[g], in.net_offsets[g + 1], in.parts, [&](i32, i32 p) { atomicAdd(pins + p, 1u); });
    for (i64 j = in.source_offsets[g] + rank; j < last_source; j += size)
        sources.add(in.parts[in.source_nodes[j]], in.source_weights[j]);
    group.sync();
    i64 mine = 0, total;
    for (i32 s = rank; s < n_parts; s += size) mine += pins[s] != 0 || sources.get(s) != 0;
    const i64 before = scan(group, mine, total, desk.scratch) - mine;
    i64 first = rank == 0 ? space.take(static_cast<u32>(total)) : 0;
    first = value_of_first(group, first, desk.scratch);
    const bool fits = first + total <= in.most_entries;
    const i64 weight = in.net_weights[g];
    if (rank == 0) {
        Row row;
        row.first = static_cast<i32>(first);
        row.size = fits ? static_cast<i32>(total) : 0;
        row.weight = weight;
        row.counts[0] = 0;
        for (i32 c = 0; c < N_DISTINCT; ++c) row.counts[c] = in.counts[static_cast<i64>(g) * N_DISTINCT + c];
        in.rows[g] = row;
        if (!fits) in.progress->gave_up = 1;
    }
    i64 place = first + before;
    for (i32 s = rank; s < n_parts; s += size) {
        const i32 n = static_cast<i32>(pins[s]);
        const i64 waiting = sources.get(s);
        if (n == 0 && waiting == 0) continue;
        pins[s] = 0;
        sources.clear(s);
        if (fits) {
            in.entries[place] = {s, n};
            in.waiting[place] = waiting;
        }
        ++place;
        if (n == 0) continue;
        connectivity += weight - waiting;
        for (i32 c = 0; c < N_DISTINCT; ++c) {
            const i64 count = in.counts[static_cast<i64>(g) * N_DISTINCT + c];
            if (count != 0) loads.add(s * N_LOADS + N_ADDITIVE + c, count);
        }
    }
    group.sync();
}

// Rows of the nets that are long, by a block each, or of those that are not; what they add to connectivity.
// (Functions of their own keep what they know in registers.)
template <class G>
__device__ __noinline__ i64 fill_rows(const Work& given, G group, bool only_long) {
    const Work work = given;
    const Rounds& in = work.in;
    Space space = {in.progress->n_entries + (work.measured & 1), static_cast<u32>(in.piece), 0, 0};
    i64 connectivity = 0;
    const i64 n = only_long ? static_cast<i64>(in.progress->n_long_nets) : in.n_nets;
    for (i64 i = group.index(); i < n; i += group.number()) {
        const i32 g = only_long ? in.long_nets[i] : static_cast<i32>(i);
        if (only_long || work.net_size(g) <= work.long_net()) fill_row(work, group, g, space, connectivity);
    }
    return connectivity;
}

// The table of the parts, connectivity and loads.
__device__ __noinline__ void measure(const Work& given) {
    const Work work = given;
    const Rounds& in = work.in;
    const Team block = Team::of_block(), team = {static_cast<i32>(in.table_warps)};
    i64 connectivity = in.progress->n_long_nets != 0 ? fill_rows(work, block, true) : 0;
    __syncthreads();
    connectivity += team.warps == 1 ? fill_rows(work, Warp(), false) : fill_rows(work, team, false);
    __syncthreads();
    const Sums loads = work.desk.loads();
    for (i64 v = work.thread(); v < in.n_nodes; v += work.n_threads())
        for (i32 r = 0; r < N_ADDITIVE; ++r) loads.add(in.parts[v] * N_LOADS + r, work.additive(v, r));
    connectivity = sum_of(block, connectivity, work.desk.scratch);
    if (threadIdx.x == 0) add64(reinterpret_cast<i64*>(in.progress->connectivity) + (work.measured & 1), connectivity);
    work.flush(work.loads(work.measured));
}

// Zero what the next measurement adds to.
__device__ __forceinline__ void prepare_measurement(const Work& work) {
    const i64 next = work.measured + 1;
    for (i64 i = work.thread(); i < work.in.n_parts * N_LOADS; i += work.n_threads()) work.loads(next)[i] = 0;
    if (work.thread() == 0) work.in.progress->n_entries[next & 1] = work.in.progress->connectivity[next & 1] = 0;
}

// ------------------------------------------------------------------------------------ weigh

// Price of a unit of each load: factor * (connectivity at the start / total of the load), rounded down.
__device__ __forceinline__ void set_prices(const Work& work, double factor, i64* prices) {
    const Progress& progress = *work.in.progress;
    for (i32 r = 0; r < N_LOADS; ++r) {
        const double worth = static_cast<double>(work.at_start) / static_cast<double>(larger(progress.totals[r], 1));
        prices[r] = static_cast<i64>(__dmul_rn(worth, factor));
    }
}

// Connectivity + price * overload of the last measurement, known to all threads.
__device__ __forceinline__ i64 weigh(Work& work) {
    const Rounds& in = work.in;
    const i64* loads = work.loads(work.measured);
    i64 cost = static_cast<i64>(in.progress->connectivity[work.measured & 1]), prices[N_LOADS];
    set_prices(work, in.overload_factor, prices);
    double estimate = static_cast<double>(cost);
    for (i32 r = 0; r < N_LOADS; ++r) {
        i64 over = 0;
        for (i64 p = threadIdx.x; p < in.n_parts; p += blockDim.x) over += larger(loads[p * N_LOADS + r] - in.limits[r], 0);
        over = sum_of(Team::of_block(), over, work.desk.scratch);
        cost += over * prices[r];
        estimate += static_cast<double>(over) * static_cast<double>(prices[r]);
    }
    work.too_large |= estimate > 4e18;
    return cost;
}

// Overload of all parts and loads, known to all threads.
__device__ __forceinline__ i64 overload(const Work& work) {
    const i64* loads = work.loads(work.measured);
    i64 over = 0;
    for (i64 i = threadIdx.x; i < work.in.n_parts * N_LOADS; i += blockDim.x)
        over += larger(loads[i] - work.in.limits[i % N_LOADS], 0);
    return sum_of(Team::of_block(), over, work.desk.scratch);
}

__device__ __forceinline__ void keep_best(const Work& work) {
    for (i64 v = work.thread(); v < work.in.n_nodes; v += work.n_threads()) work.in.best[v] = work.in.parts[v];
}

#endif
