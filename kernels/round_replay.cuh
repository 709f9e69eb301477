// Rounds in one launch: what each move does after all moves of better rank.
//
// Of the pins of a net in a part some may leave, and others arrive. While any stays, nothing happens: the part is closed, by
// a bit. That is most of them, so that few moves are looked at further. Where all leave, those there before a move are the leavers that do not come before it and the arrivals
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

// Whether a node moves: the word of its parts, before and after.
__device__ __forceinline__ bool is_move(i32 move) { return move >> 16 != (move & 0xFFFF); }

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
        return {weights[i], is_move(move) ? static_cast<u32>(in.ranks[u]) : 0, move};
    }
    // The weight that those of better rank than `rank` bring to part p: of every step-th from `first` on.
    __device__ __forceinline__ i64 brought(i32 p, u32 rank, i32 first, i32 step) const {
        i64 sum = 0;
#pragma unroll 1
        for (i32 i = first; i < n; i += step) {
            const Sender one = at(i);
            if (one.rank < rank) sum += ((one.to() == p) - (one.from() == p)) * one.weight;
        }
        return sum;
    }
};

// The parts that moves of a net's pins concern, as a group of threads knows them.
template <bool HASHED>
struct Openings {
    const Rounds& in;
    const Table<HASHED> table;
    u32 *lasts, *firsts, *places;  // of a slot: see Span; 1 + the part's place in the row, and LISTED
    i32* listed;                   // slots in use
    u32 *n_listed, *stays;         // a bit for each part: whether a pin stays there
    i32 n_words;

    template <class G>
    __device__ __forceinline__ Openings(const Work& work, G group)
        : in(work.in),
          table(work, group),
          lasts(table.words),
          firsts(lasts + table.n),
          places(firsts + table.n),
          listed(reinterpret_cast<i32*>(places + table.n)),
          n_listed(work.desk.cursors + group.place()),
          stays(reinterpret_cast<u32*>(work.desk.list(group))),
          n_words(bit_words(work.desk.n_parts)) {}
    static __device__ __forceinline__ i32 bit_words(i32 n_parts) { return (n_parts + 63) >> 6 << 1; }
    template <class G>
    __device__ __forceinline__ void begin(G group) const {
#pragma unroll 1
        for (i32 w = group.rank(); w < n_words; w += group.size()) stays[w] = 0;
        if (group.rank() == 0) *n_listed = 0;
        group.sync();
    }
    __device__ __forceinline__ bool closed(i32 p) const { return (stays[p >> 5] >> (p & 31) & 1) != 0; }
    __device__ __forceinline__ void close(i32 p) const {
        if (!closed(p)) atomicOr(stays + (p >> 5), 1u << (p & 31));
    }
    // A leaver or an arrival of part p.
    __device__ __forceinline__ void note(i32 p, u32* extremes, u32 value) const {
        if (closed(p)) return;
        const i32 at = table.slot(p);
        if (atomicMax(extremes + at, value) == 0 && (atomicOr(places + at, LISTED) & LISTED) == 0) listed[atomicAdd(n_listed, 1u)] = at;
    }
    // Pin v moves.
    __device__ __forceinline__ void look_at(i32 v) const {
        const i32 move = in.moves[v];
        const u32 own = static_cast<u32>(in.ranks[v]);
        note(move >> 16, lasts, own + 1);
        note(move & 0xFFFF, firsts, ~own);
    }
    __device__ __forceinline__ Span span(i32 p) const {
        const i32 at = closed(p) ? -1 : table.find(p);
        return {closed(p) ? CLOSED : at < 0 ? 0 : lasts[at], at < 0 ? 0 : firsts[at]};
    }
    // Where the listed parts are in the net's row.
    template <class G>
    __device__ __forceinline__ void find_places(G group, const Row& row) const {
#pragma unroll 1
        for (i32 s = group.rank(); s < row.size; s += group.size()) {
            const i32 at = table.find(in.entries[row.first + s].part);
            if (at >= 0 && places[at] != 0) places[at] |= static_cast<u32>(s + 1);
        }
    }
    template <class G>
    __device__ __forceinline__ void end(G group, i32 n) const {
#pragma unroll 1
        for (i32 i = group.rank(); i < n; i += group.size()) {
            const i32 at = listed[i];
            lasts[at] = firsts[at] = places[at] = 0;
            if (HASHED) table.keys[at] = 0;
            listed[i] = 0;
        }
        group.sync();
    }
};

// What the moves of the pins and sources of net g do, each after all of better rank: added to `later`, and (LOADS) to the
// distinct loads that they bring and take. A move that ends or begins the net's stay in a part changes its weight there, less
// that of the sources that wait there then.
// Parallel over pins and sources, twice, over the moves that open parts see, and over those parts.
template <bool LOADS, bool HASHED, class G>
__device__ __forceinline__ void replay_net(const Work& work, G group, i32 g) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    const i32 rank = group.rank(), size = group.size(), chunk = AT_ONCE * size;
    const Items items(in, g);
    const Openings<HASHED> parts(work, group);
    unsigned short* queue = queue_of(work, group);
    Sender* list = reinterpret_cast<Sender*>(parts.stays + parts.n_words);
    const i32 most = static_cast<i32>((desk.n_bytes(group) - 4 * parts.n_words - QUEUE_BYTES * (size >> 5)) / static_cast<i32>(sizeof(Sender)));
    i32 moves[AT_ONCE];
    bool sends = false;
    parts.begin(group);
    const i32 first_entry = in.rows[g].first, n_entries = in.rows[g].size;
    i32 of_source;
    items.read(group, in.moves, 0, moves, &of_source);
    sends = is_move(of_source);
#pragma unroll 1
    for (i32 i = items.n_pins + size + rank; i < items.n; i += size) sends |= is_move(in.moves[items.sources[i - items.n_pins]]);
    bool some = sends;
#pragma unroll 1
    for (i32 start = 0; start < items.n_pins; start += chunk) {
        if (start != 0) items.read(group, in.moves, start, moves);
#pragma unroll
        for (i32 k = 0; k < AT_ONCE; ++k) {
            if (start + k * size >= items.n_pins) break;
            const i32 i = start + k * size + rank;
            if (is_move(moves[k]))
                some = true;
            else if (i < items.n_pins)
                parts.close(moves[k] >> 16);
        }
    }
    some = any_of(group, some, desk.scratch);
    group.sync();
    if (!some) return;
    if (rank < n_entries) {
        PREFETCH(in.entries + first_entry + rank);
        PREFETCH(in.waiting + first_entry + rank);
    }
#pragma unroll 1
    for (i32 start = 0; start < items.n_pins; start += chunk) {
        if (items.n_pins > chunk) items.read(group, in.moves, start, moves);
        const auto matters = [&](i32 move) { return is_move(move) && !(parts.closed(move >> 16) && parts.closed(move & 0xFFFF)); };
        items.visit_those(group, moves, start, queue, matters, [&](i32 v) { parts.look_at(v); });
    }
    sends = any_of(group, sends, desk.scratch);
    group.sync();
    const i32 n = static_cast<i32>(*parts.n_listed);
    group.sync();
    if (n == 0 && !sends) return;
    const Row row = in.rows[g];
    parts.find_places(group, row);
    Senders senders = {in, list, items.sources, in.source_weights + in.source_offsets[g], 0};
    if (sends) {
        if (rank == 0) *parts.n_listed = 0;
        group.sync();
#pragma unroll 1
        for (i32 j = rank; j < items.n - items.n_pins; j += size) {
            const i32 u = items.sources[j], move = in.moves[u];
            if (!is_move(move)) continue;
            const i32 place = static_cast<i32>(atomicAdd(parts.n_listed, 1u));
            if (place < most) list[place] = {senders.weights[j], static_cast<u32>(in.ranks[u]), move};
        }
        group.sync();
        senders.n = static_cast<i32>(*parts.n_listed);
        if (senders.n > most) {
            senders.list = nullptr;
            senders.n = items.n - items.n_pins;
        }
    }
    group.sync();
    // A part is a thread's, or where many sources move all threads' together.
    const bool together = senders.n > FEW_SENDERS;
#pragma unroll 1
    for (i32 i = together ? 0 : rank; i < n; i += together ? 1 : size) {
        const i32 at = parts.listed[i], p = parts.table.part(at);
        const Span span = {parts.lasts[at], parts.firsts[at]};
        const u32 place = parts.places[at] & ~LISTED;
#pragma unroll 1
        for (i32 begins = 0; begins < 2; ++begins) {
            if (begins != 0 ? !span.begins() : !span.ends()) continue;
            const u32 when = begins ? ~span.first : span.last - 1;
            i64 worth = row.weight - (place != 0 ? in.waiting[row.first + place - 1] : 0);
            const i64 brought = senders.brought(p, when, together ? rank : 0, together ? size : 1);
            worth -= together ? sum_of(group, brought, desk.scratch) : brought;
            if (together && rank != 0) continue;
            const i64 v = in.order[when];
            if (worth != 0) add_to(in.later + v, begins ? -worth : worth);
            for (i32 c = 0; LOADS && c < N_DISTINCT; ++c)
                if (row.counts[c] != 0) add_to((begins ? in.incoming : in.outgoing) + v * N_DISTINCT + c, row.counts[c]);
        }
    }
#pragma unroll 1
    for (i32 i = rank; i < senders.n; i += size) {
        const Sender one = senders.at(i);
        if (!is_move(one.move)) continue;
        const i64 gain = (parts.span(one.to()).lasts(one.rank) - parts.span(one.from()).lasts(one.rank)) * one.weight;
        if (gain != 0) add_to(in.later + in.order[one.rank], gain);
    }
    group.sync();
    parts.end(group, n);
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
