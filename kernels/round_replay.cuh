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

// What each event of net g does after all its events of better rank, where that may be something:
// as long as more pins are in a part than leave it, neither leaving nor arriving there does anything;
// other parts are open. Only events that touch an open part are listed and compared in pairs; they are
// all that changes its pins.
// Parallel over pins, twice, and over listed events; many of them are left to replay_crowds.
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
        const bool crowd = is_crowd(in, n, size);
        if (pooled || (!crowd && n <= room)) break;
        const i64 wanted = n + crowd;  // events and a head
        i64 place = rank == 0 ? static_cast<i64>(atomicAdd(&work.counters().n_events, static_cast<u64>(wanted))) : 0;
        place = value_of_first(group, place, desk.scratch);
        place += in.own_events * Warp().number();
        if (place + wanted > in.most_events) {
            if (rank == 0) in.progress->gave_up = 1;
            n = 0;
            break;
        }
        list = in.events + place + crowd;
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
    if (is_crowd(in, n, size)) {
        if (rank == 0) {
            list[-1].gain = n;
            list[-1].node = g;
            in.crowds[atomicAdd(&work.counters().n_crowds, 1ull)] = list - 1 - in.events;
        }
        n = 0;
    }
#pragma unroll 1
    for (i64 e = rank; e < n; e += size) {
        const Event event = e < here ? list[e] : rest[e - here];
        Before before = {static_cast<i32>(pins[event.from]), static_cast<i32>(pins[event.to]), sources.get(event.from), sources.get(event.to)};
#pragma unroll 1
        for (i64 i = 0; i < n; ++i) before.consider(event, i < here ? list[i] : rest[i - here]);
        before.settle<LOADS>(in, row, event);
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
__device__ __noinline__ void replay_crowds(const Work& given) {
    const Work work = given;
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
