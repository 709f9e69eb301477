// Rounds in one launch: what each move does after all moves of better rank.
//
// Of the pins of a net in a part some may leave, and others arrive. While more are there than leave, nothing happens:
// the part is closed. Where all leave, those there before a move are the leavers that do not come before it and the arrivals
// that do. So the net has none there only between the last leaver and the first arrival, if they come in that
// order; these two moves end and begin it, and no order of the others matters.
#ifndef SNNMAP_ROUND_REPLAY_CUH
#define SNNMAP_ROUND_REPLAY_CUH

const u32 CLOSED = ~0u, LISTED = 1u << 31;
const i32 FEW_SENDERS = 24;  // that one thread looks through

// When a net has pins in a part.
struct Span {
    u32 last, first;  // 1 + rank of the last leaver or CLOSED, ~ rank of the first arrival; 0: nobody

    __device__ __forceinline__ bool in_turn() const { return last != CLOSED && (last == 0 || first == 0 || last - 1 < ~first); }
    __device__ __forceinline__ bool ends() const { return in_turn() && last != 0; }
    __device__ __forceinline__ bool begins() const { return in_turn() && first != 0; }
    // Whether there are any once the move of this rank and all of better rank are made. (A node that is pin and source moves
    // as a pin first.)
    __device__ __forceinline__ bool lasts(u32 rank) const { return last == CLOSED || last > rank + 1 || (first != 0 && ~first <= rank); }
};

// A source of a net that moves.
struct Sender {
    i64 weight;
    u32 rank;
    i32 move;

    __device__ __forceinline__ i32 from() const { return move >> 16; }
    __device__ __forceinline__ i32 to() const { return move & 0xFFFF; }
};

// Those of a net: in shared memory, or where they have no room there all sources, of which some move (-1: not).
struct Senders {
    const Rounds& in;
    const Sender* list;
    const i32* sources;
    const i64* weights;
    i32 n;

    __device__ __forceinline__ Sender at(i32 i) const {
        if (list != nullptr) return list[i];
        const i32 u = sources[i], move = in.moves[u];
        return {weights[i], move >= 0 ? static_cast<u32>(in.ranks[u]) : 0, move};
    }
    // The weight that those of better rank than `rank` bring to part p: of every step-th from `first` on.
    __device__ __forceinline__ i64 brought(i32 p, u32 rank, i32 first, i32 step) const {
        i64 sum = 0;
#pragma unroll 4
        for (i32 i = first; i < n; i += step) {
            const Sender one = at(i);
            if (one.move >= 0 && one.rank < rank) sum += ((one.to() == p) - (one.from() == p)) * one.weight;
        }
        return sum;
    }
};

// What the moves of the pins and sources of net g do, each after all of better rank: added to `later`, and (LOADS) to the
// distinct loads that they bring and take. A move that ends or begins the net's stay in a part changes its weight there, less
// that of the sources that wait there then.
// Parallel over pins and sources, twice, and over the parts where something happens.
template <bool LOADS, bool HASHED, class G>
__device__ __forceinline__ void replay_net(const Work& work, G group, i32 g) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    const i32 rank = group.rank(), size = group.size();
    const Table<HASHED> table(work, group);
    u32 *lasts = table.words, *firsts = lasts + table.n;  // at first pins, and how many of them leave
    u32 *places = firsts + table.n, *cursor = desk.cursors + group.place();  // 1 + place in the row, and LISTED
    i32* listed = reinterpret_cast<i32*>(places + table.n);  // slots
    Sender* list = reinterpret_cast<Sender*>(desk.list(group));
    const i32 most = static_cast<i32>(desk.n_bytes(group) / sizeof(Sender));
    const Items items(in, g);
    const Row row = in.rows[g];
#pragma unroll 1
    for (i32 s = rank; s < row.size; s += size) {
        const Entry entry = in.entries[row.first + s];
        const i32 at = table.slot(entry.part);
        lasts[at] = static_cast<u32>(entry.n_pins());
        places[at] = s + 1;
    }
    bool some = false;
    items.visit(group, in.moves, [&](i32 i, i32, i32 move) {
        if (move < 0) return;
        some = true;
        if (i < items.n_pins) atomicAdd(firsts + table.slot(move >> 16), 1u);
    });
    some = any_of(group, some, desk.scratch);
    group.sync();
#pragma unroll 1
    for (i32 s = rank; s < row.size; s += size) {
        const i32 at = table.slot(in.entries[row.first + s].part);
        lasts[at] = some && lasts[at] > firsts[at] ? CLOSED : 0;
        firsts[at] = 0;
        if (!some) places[at] = 0;
    }
    if (rank == 0) cursor[0] = 0;
    group.sync();
    if (!some) {
        table.clear(group);
        return;
    }
    bool sends = false;
    const auto note = [&](i32 at) {
        if ((atomicOr(places + at, LISTED) & LISTED) == 0) listed[atomicAdd(cursor, 1u)] = at;
    };
    items.visit(group, in.moves, [&](i32 i, i32 v, i32 move) {
        if (move < 0) return;
        sends |= i >= items.n_pins;
        if (i >= items.n_pins) return;
        const i32 a = table.slot(move >> 16), b = table.slot(move & 0xFFFF);
        const bool leaves = lasts[a] != CLOSED, arrives = lasts[b] != CLOSED;
        if (!leaves && !arrives) return;
        const u32 own = static_cast<u32>(in.ranks[v]);
        if (leaves && atomicMax(lasts + a, own + 1) == 0) note(a);
        if (arrives && atomicMax(firsts + b, ~own) == 0) note(b);
    });
    sends = any_of(group, sends, desk.scratch);
    group.sync();
    const i32 n = static_cast<i32>(*cursor);
    group.sync();
    Senders senders = {in, list, items.sources, in.source_weights + in.source_offsets[g], 0};
    if (sends) {
        if (rank == 0) *cursor = 0;
        group.sync();
#pragma unroll 1
        for (i32 j = rank; j < items.n - items.n_pins; j += size) {
            const i32 u = items.sources[j], move = in.moves[u];
            if (move < 0) continue;
            const i32 place = static_cast<i32>(atomicAdd(cursor, 1u));
            if (place < most) list[place] = {senders.weights[j], static_cast<u32>(in.ranks[u]), move};
        }
        group.sync();
        senders.n = static_cast<i32>(*cursor);
        if (senders.n > most) {
            senders.list = nullptr;
            senders.n = items.n - items.n_pins;
        }
    }
    // A part is a thread's, or where many sources move all threads' together.
    const bool together = senders.n > FEW_SENDERS;
#pragma unroll 1
    for (i32 i = together ? 0 : rank; i < n; i += together ? 1 : size) {
        const i32 at = listed[i], p = table.part(at);
        const Span span = {lasts[at], firsts[at]};
        const u32 place = places[at] & ~LISTED;
        for (i32 begins = 0; begins < 2; ++begins) {
            if (begins ? !span.begins() : !span.ends()) continue;
            const u32 when = begins ? ~span.first : span.last - 1;
            i64 worth = row.weight - (place != 0 ? in.waiting[row.first + place - 1] : 0);
            if (together)
                worth -= sum_of(group, senders.brought(p, when, rank, size), desk.scratch);
            else
                worth -= senders.brought(p, when, 0, 1);
            if (together && rank != 0) continue;
            const i64 v = in.order[when];
            if (worth != 0) add64(in.later + v, begins ? -worth : worth);
            for (i32 c = 0; LOADS && c < N_DISTINCT; ++c)
                if (row.counts[c] != 0) add64((begins ? in.incoming : in.outgoing) + v * N_DISTINCT + c, row.counts[c]);
        }
    }
#pragma unroll 1
    for (i32 i = rank; i < senders.n; i += size) {
        const Sender one = senders.at(i);
        if (one.move < 0) continue;
        const i32 a = table.slot(one.from()), b = table.slot(one.to());
        const Span from = {lasts[a], firsts[a]}, to = {lasts[b], firsts[b]};
        const i64 gain = (to.lasts(one.rank) - from.lasts(one.rank)) * one.weight;
        if (gain != 0) add64(in.later + in.order[one.rank], gain);
    }
    group.sync();
#pragma unroll 1
    for (i32 i = rank; !HASHED && i < n + row.size; i += size) {
        const i32 p = i < n ? listed[i] : in.entries[row.first + i - n].part;
        lasts[p] = firsts[p] = places[p] = 0;
        if (i < n) listed[i] = 0;
    }
    if (!HASHED) group.sync();
    table.clear(group);
}

template <bool LOADS, bool HASHED, class G>
__device__ __noinline__ void replay_nets(const Work& work, G group, bool only_long) {
    const NetList nets(work, only_long, work.counters().n_touched);
    const i32 some = nets.at_once(group);
    for (i64 base = some * group.index(); base < nets.n; base += some * group.number()) {
        for (i64 i = base; i < smaller(base + some, nets.n); ++i) {
            const i32 g = nets.at(i);
            const Items next(work.in, smaller(g + 1, work.in.n_nets - 1));
            if (some > 1 && 32 * group.rank() < next.n_pins) PREFETCH(next.pins + 32 * group.rank());
            if (!nets.skips(g)) replay_net<LOADS, HASHED>(work, group, g);
        }
    }
}

template <bool LOADS>
__device__ __forceinline__ void replay_all(const Work& work) {
    const Rounds& in = work.in;
    const Team team = {static_cast<i32>(in.table_warps)};
    if (in.progress->n_long_nets != 0) replay_nets<LOADS, false>(work, Team::of_block(), true);
    __syncthreads();
    if (in.slots != 0)
        replay_nets<LOADS, true>(work, Warp(), false);
    else if (team.warps == 1)
        replay_nets<LOADS, false>(work, Warp(), false);
    else
        replay_nets<LOADS, false>(work, team, false);
    __syncthreads();
}

#endif
