// Rounds in one launch: what each move does after all moves of better rank.
#ifndef SNNMAP_ROUND_REPLAY_CUH
#define SNNMAP_ROUND_REPLAY_CUH

// Pins and the weight of sources in the two parts of an event, once all events of better rank are made.
struct Before {
    i32 pins_a, pins_b;
    i64 sources_a, sources_b;

    // Another event of the net, if it has the better rank: a node that is pin and source moves as a pin first.
    __device__ __forceinline__ void consider(const Event& event, const Event& other) {
        const bool same = other.node == event.node;
        if (same ? event.weight < 0 || other.weight >= 0 : !ranks_before(other.gain, other.node, event.gain, event.node))
            return;
        const i32 into_a = (other.to == event.from) - (other.from == event.from);
        const i32 into_b = (other.to == event.to) - (other.from == event.to);
        if (other.weight < 0) {
            pins_a += into_a;
            pins_b += into_b;
        } else {
            sources_a += into_a * other.weight;
            sources_b += into_b * other.weight;
        }
    }
    // What the event does then: adds to `later`, and (LOADS) to the distinct loads that the move brings and takes.
    template <bool LOADS>
    __device__ __forceinline__ void settle(const Rounds& in, const Row& row, const Event& event) const {
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
};

// Whether a net has so many events that all blocks together compare them, not a group of so many threads.
__device__ __forceinline__ bool is_crowd(const Rounds& in, i64 n_events, i64 size) {
    return n_events * n_events * GRID_THREADS > in.most_of_net * in.most_of_net * size;
}

// The listed events of a net, some in shared memory, the rest elsewhere.
struct Events {
    Event *list, *rest;
    i32 here;

    __device__ __forceinline__ Event& at(i32 i) const { return i < here ? list[i] : rest[i - here]; }
};

// What n events do in order of rank: sixteen at a time by a warp, a lane for where each departs, one for where it
// arrives. Pins and sources of all parts are kept true; `marks`, zero but then, tell who of the sixteen touches a part.
template <bool LOADS>
__device__ __forceinline__ void replay_in_order(const Rounds& in, const Row& row, const Events& events, const i32* order, i32 n,
                                             u32* pins, u32* marks, const Sums& sources) {
    const i32 lane = threadIdx.x & 31, slot = lane & 15;
    const u32 earlier = (1u << slot) - 1;
    const bool arrives = lane >= 16;
#pragma unroll 1
    for (i32 base = 0; base < n; base += 16) {
        const bool given = base + slot < n;
        Event event = {0, 0, 0, 0, 0};
        if (given) event = events.at(order[base + slot]);
        const i32 p = arrives ? event.to : event.from;
        const bool pin = given && event.weight < 0, source = given && !pin;
        if (pin) atomicOr(marks + p, 1u << lane);
        __syncwarp();
        const u32 mark = marks[p];
        const i32 before = static_cast<i32>(pins[p]) + __popc(mark >> 16 & earlier) - __popc(mark & earlier);
        i64 waiting = sources.get(p), gain = 0;
        for (u32 left = __ballot_sync(ALL_LANES, source) & 0xFFFF; left != 0; left &= left - 1) {
            const i32 k = __ffs(left) - 1, from = __shfl_sync(ALL_LANES, p, k), to = __shfl_sync(ALL_LANES, p, k + 16);
            const i64 weight = __shfl_sync(ALL_LANES, event.weight, k);
            if (k < slot) waiting += ((to == p) - (from == p)) * weight;
        }
        if (pin && before == (arrives ? 0 : 1)) {
            gain = arrives ? waiting - row.weight : row.weight - waiting;
            i64* changed = (arrives ? in.incoming : in.outgoing) + static_cast<i64>(event.node) * N_DISTINCT;
            for (i32 c = 0; LOADS && c < N_DISTINCT; ++c)
                if (row.counts[c] != 0) add64(changed + c, row.counts[c]);
        }
        if (source && before > 0) gain = arrives ? event.weight : -event.weight;
        if (gain != 0) add64(in.later + event.node, gain);
        __syncwarp();
        if (pin) {
            marks[p] = 0;
            atomicAdd(pins + p, arrives ? 1u : ~0u);
        }
        if (source) sources.add(p, arrives ? event.weight : -event.weight);
        __syncwarp();
    }
}

// What each event of net g does after all its events of better rank, where that may be something:
// as long as more pins are in a part than leave it, neither leaving nor arriving there does anything;
// other parts are open. Only events that touch an open part are listed; they are all that changes its pins.
// Parallel over pins, twice, and over listed events for their ranks; many of them are left to replay_crowds.
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
    // Events: in shared memory, more of them in memory of the group's own, and where that is too little, or where all
    // blocks are to see them, all in the pool.
    const i64 own_events = in.own_events * group.warps;
    const i64 n_bytes = desk.capacity(group) * sizeof(Event), here = (n_bytes - 4 * own_events) / (sizeof(Event) + 4);
    Events events = {desk.list(group), in.events + own_events * group.index(), static_cast<i32>(here)};
    i32 room = static_cast<i32>(here + own_events), n = 0;
    i32* order = reinterpret_cast<i32*>(events.list) + n_bytes / 4 - room;
    bool pooled = false;
    while (some) {
        if (rank == 0) *cursor = 0;
        group.sync();
        items.visit(group, in.moves, [&](i32 i, i32, i32 move) {
            if (move < 0) return;
            const i32 a = move >> 16, b = move & 0xFFFF;
            if (pins[a] > leaving[a] && pins[b] > leaving[b]) return;
            const u32 place = atomicAdd(cursor, 1u);
            if (place < room) events.at(place).node = i;
        });
        group.sync();
        n = static_cast<i32>(*cursor);
        group.sync();
        const bool crowd = is_crowd(in, n, size);
        if (pooled || (!crowd && n <= room)) break;
        const i64 wanted = n + (crowd ? 1 : n / 6 + 1);  // events and a head, or their order
        i64 place = rank == 0 ? static_cast<i64>(atomicAdd(&work.counters().n_events, static_cast<u64>(wanted))) : 0;
        place = value_of_first(group, place, desk.scratch);
        place += in.own_events * Warp().number();
        if (place + wanted > in.most_events) {
            if (rank == 0) in.progress->gave_up = 1;
            n = 0;
            break;
        }
        events.list = in.events + place + crowd;
        events.here = room = n;
        order = reinterpret_cast<i32*>(events.list + n);
        pooled = true;
    }
#pragma unroll 1
    for (i32 e = rank; e < n; e += size) {  // which they are is known, now what they are
        Event& event = events.at(e);
        const i32 i = event.node, v = i < items.n_pins ? items.pins[i] : items.sources[i - items.n_pins], move = in.moves[v];
        const i64 weight = i < items.n_pins ? -1 : in.source_weights[in.source_offsets[g] + i - items.n_pins];
        event = {in.gains[v], weight, v, static_cast<unsigned short>(move >> 16), static_cast<unsigned short>(move & 0xFFFF)};
    }
#pragma unroll 1
    for (i32 s = rank; s < row.size; s += size) leaving[in.entries[row.first + s].part] = 0;
    group.sync();
    if (is_crowd(in, n, size)) {
        if (rank == 0) {
            events.list[-1].gain = n;
            events.list[-1].node = g;
            in.crowds[atomicAdd(&work.counters().n_crowds, 1ull)] = events.list - 1 - in.events;
        }
        n = 0;
    }
#pragma unroll 1
    for (i32 e = rank; e < n; e += size) {  // a node that is pin and source moves as a pin first
        const Event event = events.at(e);
        i32 place = 0;
#pragma unroll 4
        for (i32 i = 0; i < n; ++i) {
            const Event& other = events.at(i);
            const i64 gain = other.gain;
            place += gain > event.gain;
            if (gain != event.gain) continue;
            place += other.node != event.node ? other.node < event.node : other.weight < 0 && event.weight >= 0;
        }
        order[place] = e;
    }
    group.sync();
    if (n != 0 && rank < 32) replay_in_order<LOADS>(in, row, events, order, n, pins, leaving, sources);
    group.sync();
#pragma unroll 1
    for (i32 e = rank; e < n + row.size; e += size) {
        const i32 p = e < n ? events.at(e).to : in.entries[row.first + e - n].part;
        pins[p] = 0;
        sources.clear(p);
    }
    group.sync();
}

template <bool LOADS, class G>
__device__ __noinline__ void replay_nets(const Work& work, G group, bool only_long) {
    const NetList nets(work, only_long, work.counters().n_touched);
    for (i64 i = group.index(); i < nets.n; i += group.number()) {
        const i32 g = nets.at(i);
        if (!nets.skips(g)) replay_net<LOADS>(work, group, g);
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

// The same for some events of a net, by a warp: eight lanes each, which share the others among them.
template <bool LOADS>
__device__ __forceinline__ void replay_some(const Rounds& in, const Event* list, i64 first) {
    const i32 slice = threadIdx.x & 7;
    const i64 n = list[0].gain, e = first + ((threadIdx.x & 31) >> 3);
    const Row row = in.rows[list[0].node];
    ++list;
    const Event event = list[smaller(e, n - 1)];
    Before before = {0, 0, 0, 0};
    for (i32 s = slice; s < row.size; s += 8) {
        const Entry entry = in.entries[row.first + s];
        const i64 waiting = in.waiting[row.first + s];
        if (entry.part == event.from) {
            before.pins_a += entry.n_pins();
            before.sources_a += waiting;
        }
        if (entry.part == event.to) {
            before.pins_b += entry.n_pins();
            before.sources_b += waiting;
        }
    }
#pragma unroll 4
    for (i64 i = slice; i < n; i += 8) before.consider(event, list[i]);
    for (i32 step = 4; step > 0; step >>= 1) {
        before.pins_a += __shfl_xor_sync(ALL_LANES, before.pins_a, step);
        before.pins_b += __shfl_xor_sync(ALL_LANES, before.pins_b, step);
        before.sources_a += __shfl_xor_sync(ALL_LANES, before.sources_a, step);
        before.sources_b += __shfl_xor_sync(ALL_LANES, before.sources_b, step);
    }
    if (slice == 0 && e < n) before.settle<LOADS>(in, row, event);
}

// The events of nets with many, four at a time a warp, over all blocks.
template <bool LOADS>
__device__ __noinline__ void replay_crowds(const Work& work) {
    const Rounds& in = work.in;
    const i64 n_crowds = static_cast<i64>(work.counters().n_crowds), n_warps = Warp().number(), lane = threadIdx.x & 31;
    i64 next = Warp().index();  // of the pieces of some crowds
    for (i64 base = 0; base < n_crowds; base += 32) {
        const i64 place = base + lane < n_crowds ? in.crowds[base + lane] : -1;
        const i64 pieces = place < 0 ? 0 : (in.events[place].gain + 3) / 4, up_to = scan_warp(pieces);
        const i64 all = __shfl_sync(ALL_LANES, up_to, 31);
        for (; next < all; next += n_warps) {
            const i32 k = __popc(__ballot_sync(ALL_LANES, up_to <= next));
            const i64 first = next - __shfl_sync(ALL_LANES, up_to - pieces, k);
            replay_some<LOADS>(in, in.events + __shfl_sync(ALL_LANES, place, k), 4 * first);
        }
        next -= all;
    }
}

#endif
