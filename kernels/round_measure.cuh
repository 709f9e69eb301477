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

// Beside how many pins of a row's net are in a part while they are counted: sources wait there; it was there before.
const u32 WAITS = 1u << 30, STAYS = 1u << 31, PINS = WAITS - 1;

// The row of net g: (part, pins, weight of sources) of each part that it touches. Adds what (net weight -
// weight of sources) over entries with pins changes to `connectivity`, the net's counts to the loads of their parts,
// and tells its nodes what they find, if that is kept. A row stays where it lies as long as it has room there.
// Parallel over pins, then over parts.
template <class G>
__device__ __forceinline__ void fill_row(const Work& work, G group, i32 g, Space& space, i64& connectivity) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    const bool fresh = work.measured == 0;
    const i32 n_parts = desk.n_parts, rank = group.rank(), size = group.size();
    const Items items(in, g);
    u32 *pins = desk.table(group), *n_listed = desk.cursors + group.place();
    i32* listed = reinterpret_cast<i32*>(pins + 3 * n_parts);  // a node in each part, the first pin if there is one
    const Sums sources(pins + n_parts, n_parts), loads = desk.loads();
    const Telling<G> telling(work, group, g);
    Row row;
    if (fresh) {
        row.first = row.size = row.room = 0;
        row.weight = in.net_weights[g];
        row.counts[0] = 0;
        for (i32 c = 0; c < N_DISTINCT; ++c) row.counts[c] = in.counts[static_cast<i64>(g) * N_DISTINCT + c];
    } else {
        row = in.rows[g];
    }
    if (rank == 0) *n_listed = 0;
    if (work.finds) telling.begin(row, fresh);
    group.sync();
    items.visit(group, in.parts, [&](i32 i, i32 v, i32 p) {
        if (i < items.n_pins && atomicAdd(pins + p, 1u) == 0) listed[atomicAdd(n_listed, 1u)] = v;
    });
    group.sync();
    const i64* weights = in.source_weights + in.source_offsets[g];
    for (i32 j = rank; j < items.n - items.n_pins; j += size) {
        const i32 u = items.sources[j], p = in.parts[u];
        sources.add(p, weights[j]);
        if (atomicOr(pins + p, WAITS) == 0) listed[atomicAdd(n_listed, 1u)] = u;
    }
    group.sync();
    const i32 n = static_cast<i32>(*n_listed);
    if (work.finds) telling.look_at_sources(row, pins, fresh);
    const auto note = [&](i32 part, i32 before, i64 waited, i32 now, i64 waits) {
        const i32 more = (now > 0) - (before > 0);
        if (before > 0) connectivity -= row.weight - waited;
        if (now > 0) connectivity += row.weight - waits;
        for (i32 c = 0; more != 0 && c < N_DISTINCT; ++c)
            if (row.counts[c] != 0) loads.add(part * N_LOADS + N_ADDITIVE + c, more * row.counts[c]);
        if (work.finds)
            telling.note(row, part, (now > 0 ? row.weight : waits) - (before > 0 ? row.weight : waited), more);
    };
    for (i32 base = 0; base < row.size; base += size) {
        const i32 s = base + rank;
        if (s < row.size) {
            const Entry entry = in.entries[row.first + s];
            const i64 waited = in.waiting[row.first + s];
            const u32 now = pins[entry.part];
            if (now != 0) pins[entry.part] = now | STAYS;
            note(entry.part, entry.n_pins(), waited, static_cast<i32>(now & PINS), sources.get(entry.part));
            if (work.finds && entry.pins < 0) telling.alone(row, ~entry.pins, waited - row.weight, -1);
        }
        if (work.finds) telling.tell();
    }
    group.sync();
    bool fits = true;
    if (n > row.room) {
        const i32 room = !fresh ? n + n / 4 + 2 : work.all_have_room() ? smaller(work.net_size(g), n_parts) : n;
        i64 first = rank == 0 ? space.take(static_cast<u32>(room)) : 0;
        first = value_of_first(group, first, desk.scratch);
        fits = first + room <= in.most_entries;
        if (fits) {
            row.first = static_cast<i32>(first);
            row.room = static_cast<unsigned short>(room);
        } else if (rank == 0) {
            in.progress->gave_up = 1;
        }
    }
    for (i32 base = 0; base < n; base += size) {
        const i32 s = base + rank;
        if (s < n) {
            const i32 v = listed[s], p = in.parts[v];
            const i32 now = static_cast<i32>(pins[p] & PINS);
            const i64 waits = sources.get(p);
            if ((pins[p] & STAYS) == 0) note(p, 0, 0, now, waits);
            if (work.finds && now == 1) telling.alone(row, v, row.weight - waits, 1);
            if (fits) {
                in.entries[row.first + s] = {p, now == 1 ? ~v : now};
                in.waiting[row.first + s] = waits;
            }
            pins[p] = listed[s] = 0;
            sources.clear(p);
        }
        if (work.finds) telling.tell();
    }
    row.size = static_cast<unsigned short>(fits ? n : 0);
    if (rank == 0) in.rows[g] = row;
    group.sync();
}

// Rows of the nets that are long, by a block each, or of those that are not; what they add to connectivity.
// Only nets of which a pin or source moved, but for the first measurement.
// (Functions of their own keep what they know in registers.)
template <class G>
__device__ __noinline__ i64 fill_rows(const Work& given, G group, bool only_long) {
    const Work work = given;
    const Rounds& in = work.in;
    Space space = {&in.progress->n_entries, static_cast<u32>(in.piece), 0, 0};
    i64 connectivity = 0;
    const i64 n = only_long ? static_cast<i64>(in.progress->n_long_nets) : in.n_nets;
    const auto asks = [&](i64 i) {
        const i64 g = only_long ? in.long_nets[i] : i;
        return (work.measured == 0 || in.touched[g] == work.measured) && (only_long || work.net_size(g) <= work.long_net());
    };
    for_asking(group, n, asks, [&](i64 i) {
        fill_row(work, group, only_long ? in.long_nets[i] : static_cast<i32>(i), space, connectivity);
    });
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

// What the next measurement adds to: additive loads are counted anew.
__device__ __forceinline__ void prepare_measurement(const Work& work) {
    const i64 now = work.measured, next = now + 1;
    for (i64 i = work.thread(); i < work.in.n_parts * N_LOADS; i += work.n_threads())
        work.loads(next)[i] = i % N_LOADS < N_ADDITIVE ? 0 : work.loads(now)[i];
    u64* connectivity = work.in.progress->connectivity;
    if (work.thread() == 0) connectivity[next & 1] = connectivity[now & 1];
}

// The nets of node v, which moves, are those that the next measurement looks at. By a warp.
__device__ __forceinline__ void touch_nets(const Work& work, i64 v) {
    const Rounds& in = work.in;
    const i32 next = static_cast<i32>(work.measured + 1);
    for (i64 j = in.node_offsets[v] + Warp().rank(); j < in.node_offsets[v + 1]; j += 32) in.touched[in.node_nets[j]] = next;
    for (i64 j = in.out_offsets[v] + Warp().rank(); j < in.out_offsets[v + 1]; j += 32) in.touched[in.out_nets[j]] = next;
}

// The same for all nodes that moved and so are locked.
__device__ __noinline__ void touch_moved(const Work& given) {
    const Work work = given;
    for_asking(Warp(), work.in.n_nodes, [&](i64 v) { return work.in.locked[v]; }, [&](i64 v) { touch_nets(work, v); });
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
