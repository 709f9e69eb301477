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

// Memory for n entries of a row, and some more unless all rows have all they need; whether there is any left.
template <class G>
__device__ __forceinline__ bool make_room(const Work& work, G group, i32 g, Row& row, i32 n, bool fresh, Space& space) {
    const i32 room = !fresh ? n + n / 8 + 2 : work.all_have_room() ? smaller(work.net_size(g), work.in.n_parts) : n;
    i64 first = group.rank() == 0 ? space.take(static_cast<u32>(room)) : 0;
    first = value_of_first(group, first, work.desk.scratch);
    if (first + room > work.in.most_entries) {
        if (group.rank() == 0) work.in.progress->gave_up = 1;
        return false;
    }
    row.first = static_cast<i32>(first);
    row.room = static_cast<unsigned short>(room);
    return true;
}

// The row of net g: (part, pins, weight of sources) of each part that it touches. Adds what (net weight -
// weight of sources) over entries with pins changes to `connectivity`, the net's counts to the loads of their parts,
// and tells its nodes what they find, if that is kept. A row stays where it lies as long as it has room there.
// Parallel over pins, then over parts.
template <bool HASHED, class G>
__device__ __forceinline__ void fill_row(const Work& work, G group, i32 g, Space& space, i64& connectivity) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    const bool fresh = work.measured == 0;
    const i32 rank = group.rank(), size = group.size();
    const Items items(in, g);
    const Table<HASHED> table(work, group);
    u32 *pins = table.words, *n_listed = desk.cursors + group.place();
    i32* listed = reinterpret_cast<i32*>(pins + 3 * table.n);  // a node in each part, the first pin if there is one
    const Sums sources(pins + table.n, table.n), loads = desk.loads();
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
    Entry early = {0, 0};  // of the old row: on its way while pins are looked at
    i64 early_waited = 0;
    if (rank < row.size) {
        early = in.entries[row.first + rank];
        early_waited = in.waiting[row.first + rank];
    }
    if (rank == 0) *n_listed = 0;
    const bool tells = work.tells && !fresh;
    if (tells) telling.begin();
    group.sync();
    items.visit(group, in.parts, [&](i32 i, i32 v, i32 p) {
        if (i < items.n_pins && atomicAdd(pins + table.slot(p), 1u) == 0) listed[atomicAdd(n_listed, 1u)] = v;
    });
    group.sync();
    const i64* weights = in.source_weights + in.source_offsets[g];
#pragma unroll 1
    for (i32 j = rank; j < items.n - items.n_pins; j += size) {
        const i32 u = items.sources[j], at = table.slot(in.parts[u]);
        sources.add(at, weights[j]);
        if (atomicOr(pins + at, WAITS) == 0) listed[atomicAdd(n_listed, 1u)] = u;
    }
    group.sync();
    const i32 n = static_cast<i32>(*n_listed);
    if (work.finds) telling.look_at_sources(row, table, fresh);
    bool fits = true;
    const i32 n_before = row.size;
    i32 noted = 0;  // at most
#pragma unroll 1
    for (i32 round = 0; round < 2; ++round) {  // parts that were there before, parts that are there now
        const bool later = round == 1;
        if (later && n > row.room) fits = make_room(work, group, g, row, n, fresh, space);
        const i32 end = later ? n : n_before;
#pragma unroll 1
        for (i32 base = 0; base < end; base += size) {
            if (tells && noted + size > telling.room(desk)) {
                tell(in, group, g, telling.n_changes, telling.changes);
                noted = 0;
            }
            noted += size;
            const i32 s = base + rank;
            if (s < end) {
                Entry entry = base == 0 && !later ? early : Entry{0, 0};
                i64 waited = base == 0 && !later ? early_waited : 0;
                if (base != 0 && !later) {
                    entry = in.entries[row.first + s];
                    waited = in.waiting[row.first + s];
                }
                const i32 p = later ? in.parts[listed[s]] : entry.part, before = entry.n_pins();
                const i32 at = table.slot(p);
                const u32 word = pins[at];
                const i32 now = static_cast<i32>(word & PINS), only = !later ? ~entry.pins : now == 1 ? listed[s] : -1;
                const i64 waits = sources.get(at);
                if (!later || (word & STAYS) == 0) {
                    const i32 more = (now > 0) - (before > 0);
                    connectivity += (now > 0 ? row.weight - waits : 0) - (before > 0 ? row.weight - waited : 0);
                    for (i32 c = 0; more != 0 && c < N_DISTINCT; ++c)
                        if (row.counts[c] != 0) loads.add(p * N_LOADS + N_ADDITIVE + c, more * row.counts[c]);
                    if (tells)
                        telling.note(row, p, (now > 0 ? row.weight : waits) - (before > 0 ? row.weight : waited), more);
                }
                if (work.finds && only >= 0) {
                    const i64 sign = later ? 1 : -1;
                    telling.alone(row, only, sign * (row.weight - (later ? waits : waited)), sign);
                }
                if (!later) {
                    if (word != 0) pins[at] = word | STAYS;
                } else {
                    if (fits) {
                        in.entries[row.first + s] = {p, now == 1 ? ~listed[s] : now};
                        in.waiting[row.first + s] = waits;
                    }
                    pins[at] = listed[s] = 0;
                    sources.clear(at);
                }
            }
        }
        group.sync();
    }
    if (tells) tell(in, group, g, telling.n_changes, telling.changes);
    row.size = static_cast<unsigned short>(fits ? n : 0);
    if (rank == 0) in.rows[g] = row;
    group.sync();
    table.clear(group);
}

// Whether a pin or source of net g moved. By a group.
template <class G>
__device__ __forceinline__ bool is_touched(const Work& work, G group, i32 g) {
    bool some = false;
    const i32 now = static_cast<i32>(work.turn) + 1;
    Items(work.in, g).visit(group, work.in.moved, [&](i32, i32, i32 moved) { some |= moved >> 16 == now; });
    return any_of(group, some, work.desk.scratch);
}

// Which of some consecutive nets are touched: a bit for each. By a warp, or by a team, a warp each.
__device__ __forceinline__ u32 touched_nets(const Work& work, Warp warp, const NetList& nets, i64 base, i32 some) {
    u32 found = 0;
    for (i32 k = 0; k < some && base + k < nets.n; ++k) {
        const i32 g = nets.at(base + k);
        if (!nets.skips(g) && is_touched(work, warp, g)) found |= 1u << k;
    }
    return found;
}

__device__ __forceinline__ u32 touched_nets(const Work& work, Team team, const NetList& nets, i64 base, i32 some) {
    if (some == 1) return !nets.skips(nets.at(base)) && is_touched(work, team, nets.at(base));
    u32 found = 0;
    for (i32 k = team.warp(); k < some; k += team.warps)
        if (base + k < nets.n) found |= touched_nets(work, Warp(), nets, base + k, 1) << k;
    return static_cast<u32>(sum_of(team, (threadIdx.x & 31) == 0 ? found : 0, work.desk.scratch));
}

// Rows of the nets that are long, by a block each, or of those that are not; what they add to connectivity.
// Only of nets that are touched, but for the first measurement; or, of those of this group, only of `n_listed` ones (see
// `update_rows`).
// (Functions of their own keep what they know in registers.)
template <bool HASHED, class G>
__device__ __noinline__ i64 fill_rows(const Work& work, G group, bool only_long, i64 n_listed = -1) {
    Space space = {&work.in.progress->n_entries, static_cast<u32>(work.in.piece), 0, 0};
    i64 connectivity = 0;
    const bool fresh = work.measured == 0;
    const NetList nets(work, only_long, fresh ? nullptr : work.counters().n_changed);
    const i32 some = nets.at_once(group);
    for (i64 base = some * group.index(); base < nets.n; base += some * group.number()) {
        const u32 touched = n_listed >= 0 || fresh || nets.is_listed ? ~0u : touched_nets(work, group, nets, base, some);
        for (i32 k = 0; k < some && base + k < nets.n; ++k) {
            if (n_listed == 0) return connectivity;
            const i32 g = n_listed > 0 ? work.in.listed[base + k] : nets.at(base + k);
            n_listed -= n_listed > 0;
            if ((touched >> k & 1) != 0 && !nets.skips(g)) fill_row<HASHED>(work, group, g, space, connectivity);
        }
    }
    return connectivity;
}

// Rows of the nets that are not long; what they add to connectivity.
template <bool HASHED, class G>
__device__ __forceinline__ i64 measure_rows(const Work& work, G group) {
    const Rounds& in = work.in;
    if (work.measured == 0 || in.segments.given() || in.net_offsets[in.n_nets] < MANY_PINS * in.n_nets) return fill_rows<HASHED>(work, group, false);
    i64 n_listed = 0;
    const i64 connectivity = update_rows<HASHED>(work, group, n_listed);
    group.sync();
    return connectivity + (n_listed > 0 ? fill_rows<HASHED>(work, group, false, n_listed) : 0);
}

// The table of the parts, connectivity and loads: those of resources only at first, as moves change them.
__device__ __noinline__ void measure(const Work& work) {
    const Rounds& in = work.in;
    const Team block = Team::of_block(), team = {static_cast<i32>(in.table_warps)};
    i64 connectivity = in.progress->n_long_nets != 0 ? fill_rows<false>(work, block, true) : 0;
    __syncthreads();
    if (in.slots != 0)
        connectivity += measure_rows<true>(work, Warp());
    else
        connectivity += team.warps == 1 ? measure_rows<false>(work, Warp()) : measure_rows<false>(work, team);
    __syncthreads();
    const Sums loads = work.desk.loads();
#pragma unroll 1
    for (i64 v = work.thread(); work.measured == 0 && v < in.n_nodes; v += work.n_threads())
        for (i32 r = 0; r < N_ADDITIVE; ++r) loads.add(in.parts[v] * N_LOADS + r, work.additive(v, r));
    connectivity = sum_of(block, connectivity, work.desk.scratch);
    if (threadIdx.x == 0) add_to(reinterpret_cast<i64*>(in.progress->connectivity) + (work.measured & 1), connectivity);
    work.flush(work.loads(work.measured));
}

// What the next measurement adds to.
__device__ __forceinline__ void prepare_measurement(const Work& work) {
    const i64 now = work.measured, next = now + 1;
#pragma unroll 1
    for (i64 i = work.thread(); i < work.in.n_parts * N_LOADS; i += work.n_threads())
        work.loads(next)[i] = work.loads(now)[i];
    u64* connectivity = work.in.progress->connectivity;
    if (work.thread() == 0) connectivity[next & 1] = connectivity[now & 1];
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
#pragma unroll 1
        for (i64 p = threadIdx.x; p < in.n_parts; p += blockDim.x) over += larger(loads[p * N_LOADS + r] - in.limits[r], 0);
        over = sum_of(Team::of_block(), over, work.desk.scratch);
        cost += over * prices[r];
        estimate += static_cast<double>(over) * static_cast<double>(prices[r]);
    }
    put(work.too_large, work.too_large || estimate > 4e18);
    return cost;
}

// Overload of all parts and loads, known to all threads.
__device__ __forceinline__ i64 overload(const Work& work) {
    const i64* loads = work.loads(work.measured);
    i64 over = 0;
#pragma unroll 1
    for (i64 i = threadIdx.x; i < work.in.n_parts * N_LOADS; i += blockDim.x)
        over += larger(loads[i] - work.in.limits[i % N_LOADS], 0);
    return sum_of(Team::of_block(), over, work.desk.scratch);
}

// What the host hears of the parts as they are: connectivity, limits, and loads, behind the progress. Of the result in place
// 0, of the start in place 1.
__device__ __forceinline__ void note_loads(const Work& work, i32 place) {
    const Rounds& in = work.in;
    const i64 *loads = work.loads(work.measured), n = in.n_parts * N_LOADS, thread = work.thread();
    i64* noted = reinterpret_cast<i64*>(in.progress + 1) + place * (1 + N_LOADS + n);
    if (thread == 0) noted[0] = static_cast<i64>(in.progress->connectivity[work.measured & 1]);
    if (thread < N_LOADS) noted[1 + thread] = in.limits[thread];
#pragma unroll 1
    for (i64 i = thread; i < n; i += work.n_threads()) noted[1 + N_LOADS + i] = loads[i];
}

__device__ __forceinline__ void keep_best(const Work& work) {
    note_loads(work, 0);
#pragma unroll 1
    for (i64 v = work.thread(); v < work.in.n_nodes; v += work.n_threads()) work.in.best[v] = work.in.parts[v];
}

#endif
