// Rounds in one launch: what each move does after all moves of better rank.
#ifndef SNNMAP_ROUND_REPLAY_CUH
#define SNNMAP_ROUND_REPLAY_CUH

// What the halves of n listed events do: each event departs from one part and arrives at another. Sorted by
// part and rank; prefix sums give the pins and the weight of sources there before each.
// Parallel over halves.
template <bool LOADS, class G>
__device__ __noinline__ void replay_halves(const Work& work, G group, const Row& row, const Event* list, i64 n_events,
                                           const u32* pins, const Sums& sources) {
    const Rounds& in = work.in;
    const i64 n = 2 * n_events, size = group.size();
    i64* sum_pins = reinterpret_cast<i64*>(const_cast<Event*>(list) + n_events);
    i64* sum_sources = sum_pins + n;
    i32* halves = reinterpret_cast<i32*>(sum_sources + n);
    const auto part_of = [&](i32 half) { return half & 1 ? list[half >> 1].to : list[half >> 1].from; };
    for (i64 i = group.rank(); i < n; i += size) halves[i] = static_cast<i32>(i);
    sort_by(group, halves, n, [&](i32 half, i32 other) {
        const Event &one = list[half >> 1], &two = list[other >> 1];
        const i32 p = part_of(half), q = part_of(other);
        if (p != q) return p < q;
        if (one.node == two.node) return one.weight < 0 && two.weight >= 0;
        return ranks_before(one.gain, one.node, two.gain, two.node);
    });
    i64 carried_pins = 0, carried_sources = 0, total;
    for (i64 base = 0; base < n; base += size) {
        const i64 i = base + group.rank();
        const i64 sign = i >= n ? 0 : halves[i] & 1 ? 1 : -1, weight = i < n ? list[halves[i] >> 1].weight : 0;
        const i64 of_pins = carried_pins + scan(group, weight < 0 ? sign : 0, total, work.desk.scratch);
        carried_pins += total;
        const i64 of_sources = carried_sources + scan(group, weight < 0 ? 0 : sign * weight, total, work.desk.scratch);
        carried_sources += total;
        if (i >= n) continue;
        sum_pins[i] = of_pins;
        sum_sources[i] = of_sources;
    }
    group.sync();
    for (i64 i = group.rank(); i < n; i += size) {
        const i32 half = halves[i], p = part_of(half);
        const Event event = list[half >> 1];
        i64 low = 0, high = i;  // where the halves of part p begin
        while (low < high) {
            const i64 middle = (low + high) >> 1;
            if (part_of(halves[middle]) < p)
                low = middle + 1;
            else
                high = middle;
        }
        i64 here = pins[p], waiting = sources.get(p);
        if (i > low) {
            here += sum_pins[i - 1] - (low > 0 ? sum_pins[low - 1] : 0);
            waiting += sum_sources[i - 1] - (low > 0 ? sum_sources[low - 1] : 0);
        }
        const bool arrives = (half & 1) != 0;
        i64 gain = 0;
        if (event.weight >= 0) {
            if (here > 0) gain = arrives ? event.weight : -event.weight;
        } else if (here == (arrives ? 0 : 1)) {
            gain = arrives ? waiting - row.weight : row.weight - waiting;
            i64* changed = (arrives ? in.incoming : in.outgoing) + static_cast<i64>(event.node) * N_DISTINCT;
            for (i32 c = 0; LOADS && c < N_DISTINCT; ++c)
                if (row.counts[c] != 0) add64(changed + c, row.counts[c]);
        }
        if (gain != 0) add64(in.later + event.node, gain);
    }
    group.sync();
}

// What each event of net g does after all its events of better rank, where that may be something:
// as long as more pins are in a part than leave it, neither leaving nor arriving there does anything;
// other parts are open. Only events that touch an open part are listed and compared in pairs; they are
// all that changes its pins. A node that is pin and source moves as a pin first. Adds to `later`, and
// (LOADS) to the distinct loads that moves bring and take.
// Parallel over pins, twice, and over pairs of listed events, or, where they are many, over their halves.
template <bool LOADS, class G>
__device__ __forceinline__ void replay_net(const Work& work, G group, i32 g) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    const i32 n_parts = desk.n_parts, rank = group.rank(), size = group.size();
    u32 *pins = desk.table(group), *leaving = pins + 3 * n_parts;
    const Sums sources(pins + n_parts, n_parts);
    const Items items(in, g);
    const Row row = in.rows[g];
#pragma unroll 1
    for (i32 s = rank; s < row.size; s += size) {
        const Entry entry = in.entries[row.first + s];
        pins[entry.part] = static_cast<u32>(entry.n_pins());
        const i64 waiting = in.waiting[row.first + s];
        sources.low[entry.part] = static_cast<u32>(waiting);
        sources.high[entry.part] = static_cast<u32>(waiting >> 32);
    }
    bool some = false;
    items.visit(group, in.moves, [&](i32 i, i32, i32 move) {
        if (move < 0) return;
        some = true;
        if (i < items.n_pins) atomicAdd(leaving + (move >> 16), 1u);
    });
    some = any_of(group, some, desk.scratch);
    u32* cursor = desk.cursors + group.place();
    // Events: in shared memory, more of them in memory of the group's own, and where that is too little all in the pool.
    const i64 own_events = in.own_events * group.warps;
    Event *list = desk.list(group), *rest = in.events + own_events * group.index();
    i64 here = desk.capacity(group), room = here + own_events, n = 0;
    bool pooled = false;
    while (some) {
        if (rank == 0) *cursor = 0;
        group.sync();
        items.visit(group, in.moves, [&](i32 i, i32, i32 move) {
            if (move < 0) return;
            const i32 a = move >> 16, b = move & 0xFFFF;
            if (pins[a] > leaving[a] && pins[b] > leaving[b]) return;
            const u32 place = atomicAdd(cursor, 1u);
            if (place < room) (place < here ? list + place : rest + (place - here))->node = i;
        });
        group.sync();
        n = *cursor;
        group.sync();
        const bool sorted = n > in.most_of_net;
        if (pooled || (sorted ? 3 * n <= here : n <= room)) break;
        const i64 wanted = sorted ? 3 * n : n;  // events, and room to sort their halves
        i64 place = rank == 0 ? static_cast<i64>(atomicAdd(&work.counters().n_events, static_cast<u64>(wanted))) : 0;
        place = value_of_first(group, place, desk.scratch);
        place += in.own_events * Warp().number();
        if (place + wanted > in.most_events) {
            if (rank == 0) in.progress->gave_up = 1;
            n = 0;
            break;
        }
        list = in.events + place;
        here = room = n;
        pooled = true;
    }
#pragma unroll 1
    for (i64 e = rank; e < n; e += size) {  // which they are is known, now what they are
        Event& event = e < here ? list[e] : rest[e - here];
        const i32 i = event.node, v = i < items.n_pins ? items.pins[i] : items.sources[i - items.n_pins], move = in.moves[v];
        const i64 weight = i < items.n_pins ? -1 : in.source_weights[in.source_offsets[g] + i - items.n_pins];
        event = {in.gains[v], weight, v, static_cast<unsigned short>(move >> 16), static_cast<unsigned short>(move & 0xFFFF)};
    }
    group.sync();
    if (n > in.most_of_net) {
        replay_halves<LOADS>(work, group, row, list, n, pins, sources);
        n = 0;
    }
#pragma unroll 1
    for (i64 e = rank; e < n; e += size) {
        const Event event = e < here ? list[e] : rest[e - here];
        const i32 a = event.from, b = event.to;
        i64 pins_a = pins[a], pins_b = pins[b], sources_a = sources.get(a), sources_b = sources.get(b);
#pragma unroll 1
        for (i64 i = 0; i < n; ++i) {
            const Event other = i < here ? list[i] : rest[i - here];
            const bool same = other.node == event.node;
            if (same ? event.weight < 0 || other.weight >= 0 : !ranks_before(other.gain, other.node, event.gain, event.node))
                continue;
            const i32 into_a = (other.to == a) - (other.from == a), into_b = (other.to == b) - (other.from == b);
            if (other.weight < 0) {
                pins_a += into_a;
                pins_b += into_b;
            } else {
                sources_a += into_a * other.weight;
                sources_b += into_b * other.weight;
            }
        }
        i64 gain = 0;
        if (event.weight < 0) {
            if (pins_a == 1) gain += row.weight - sources_a;
            if (pins_b == 0) gain -= row.weight - sources_b;
            for (i32 c = 0; LOADS && c < N_DISTINCT; ++c) {
                const i64 place = static_cast<i64>(event.node) * N_DISTINCT + c;
                if (row.counts[c] == 0) continue;
                if (pins_a == 1) add64(in.outgoing + place, row.counts[c]);
                if (pins_b == 0) add64(in.incoming + place, row.counts[c]);
            }
        } else {
            if (pins_b > 0) gain += event.weight;
            if (pins_a > 0) gain -= event.weight;
        }
        if (gain != 0) add64(in.later + event.node, gain);
    }
    group.sync();
#pragma unroll 1
    for (i32 s = rank; s < row.size; s += size) {
        const i32 p = in.entries[row.first + s].part;
        pins[p] = leaving[p] = 0;
        sources.clear(p);
    }
    group.sync();
}

template <bool LOADS, class G>
__device__ __noinline__ void replay_nets(const Work& given, G group, bool only_long) {
    const Work work = given;
    const Rounds& in = work.in;
    const i64 n = only_long ? static_cast<i64>(in.progress->n_long_nets) : in.n_nets;
    for (i64 i = group.index(); i < n; i += group.number()) {
        const i32 g = only_long ? in.long_nets[i] : static_cast<i32>(i);
        if (only_long || work.net_size(g) <= work.long_net()) replay_net<LOADS>(work, group, g);
    }
}

template <bool LOADS>
__device__ __forceinline__ void replay_all(const Work& work) {
    const Rounds& in = work.in;
    const Team team = {static_cast<i32>(in.table_warps)};
    if (in.progress->n_long_nets != 0) replay_nets<LOADS>(work, Team::of_block(), true);
    __syncthreads();
    if (team.warps == 1)
        replay_nets<LOADS>(work, Warp(), false);
    else
        replay_nets<LOADS>(work, team, false);
    __syncthreads();
}

#endif
