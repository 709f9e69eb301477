// Rounds in one launch: rows of nets of which some pins or sources moved, from what they were before.
#ifndef SNNMAP_ROUND_UPDATE_CUH
#define SNNMAP_ROUND_UPDATE_CUH

const i64 MANY_PINS = 32;       // of a net in the mean: else it is as fast to count them anew
const i32 MOST_PINS = 1 << 12;  // as many arrivals fit a word
const i32 MOST_SHIFTS = 8;      // sources of a net that move, if there is room for so many

// Of a part: how many pins left, and arrived; whether sources came or left; whether the only pin that is there is to be found;
// whether it is in the row.
const u32 LEFT = 0xFFFF, ARRIVES = 1u << 16, SHIFTED = 1u << 29, LONE = 1u << 30, SEEN = 1u << 31;

// A source of a net that moved.
struct Shift {
    i64 weight;
    i32 from, to;
};

// What there is of a net in a part.
struct Presence {
    i32 pins;
    i64 waits;  // weight of sources

    __device__ __forceinline__ bool none() const { return pins == 0 && waits == 0; }
};

// How pins and sources of a net moved, as a group of threads knows it.
template <bool HASHED>
struct Shifts {
    const Rounds& in;
    const Table<HASHED> table;
    u32* words;         // of a slot
    i32 *who, *listed;  // one that arrived, or the only one; slots in use, and from the end places of the row that are free
    u32* n_listed;
    Shift* sources;
    i32 most_sources;

    template <class G>
    __device__ __forceinline__ Shifts(const Work& work, G group)
        : in(work.in),
          table(work, group),
          words(table.words),
          who(reinterpret_cast<i32*>(words + table.n)),
          listed(who + table.n),
          n_listed(work.desk.cursors + group.place()),
          sources(HASHED ? reinterpret_cast<Shift*>(words + 3 * table.n)
                         : reinterpret_cast<Shift*>(work.desk.list(group) + work.desk.n_bytes(group)) - MOST_SHIFTS),
          most_sources(HASHED && table.n < 4 * MOST_SHIFTS ? table.n / 4 : MOST_SHIFTS) {}
    __device__ __forceinline__ void note(i32 p, u32 word, i32 v) const {
        const i32 at = table.slot(p);
        if ((word < SHIFTED ? atomicAdd(words + at, word) : atomicOr(words + at, word)) == 0) listed[atomicAdd(n_listed, 1u)] = at;
        if (word == ARRIVES) atomicExch(who + at, v);  // read where it is the only one
    }
    __device__ __forceinline__ u32 word_of(i32 at) const { return at >= 0 ? words[at] : 0; }
    static __device__ __forceinline__ i32 arrived(u32 word) { return static_cast<i32>((word & (SHIFTED - 1)) >> 16); }
    // What there is in part p now, of which n sources' moves are known.
    __device__ __forceinline__ Presence after(const Presence& before, i32 p, u32 word, i32 n) const {
        Presence now = {before.pins - static_cast<i32>(word & LEFT) + arrived(word), before.waits};
        if ((word & SHIFTED) != 0)
            for (i32 i = 0; i < n; ++i) now.waits += ((sources[i].to == p) - (sources[i].from == p)) * sources[i].weight;
        return now;
    }
    template <class G>
    __device__ __forceinline__ void end(G group, i32 n, i32 n_free, i32 n_sources) const {
        group.sync();
#pragma unroll 1
        for (i32 i = group.rank(); i < n; i += group.size()) {
            const i32 at = listed[i];
            words[at] = who[at] = listed[i] = 0;
            if (HASHED) table.keys[at] = 0;
        }
#pragma unroll 1
        for (i32 i = group.rank(); i < n_free; i += group.size()) listed[table.n - 1 - i] = 0;
#pragma unroll 1
        for (i32 i = group.rank(); HASHED && i < n_sources; i += group.size()) sources[i] = {0, 0, 0};
        group.sync();
    }
};

// The row of net g, from what it was: places of parts without pins and sources stay, until another part takes them. Whether
// it has to be filled anew instead, as too much moved or it has no room. What else is done: see `fill_row`.
// Parallel over pins, then over those that moved, then over parts.
template <bool HASHED, class G>
__device__ __forceinline__ bool update_row(const Work& work, G group, i32 g, i64& connectivity) {
    const Rounds& in = work.in;
    const i32 rank = group.rank(), size = group.size(), round = static_cast<i32>(work.turn) + 1;
    const Items items(in, g);
    const Shifts<HASHED> shifts(work, group);
    unsigned short* queue = queue_of(work, group);
    if (items.n > MOST_PINS) return true;
    if (rank == 0) *shifts.n_listed = 0;
    group.sync();
    const i32 first_place = in.rows[g].first, n_before = in.rows[g].size;
    i32 moved[AT_ONCE], of_source;
    items.read(group, in.moved, 0, moved, &of_source);
    bool sends = of_source >> 16 == round;
#pragma unroll 1
    for (i32 i = items.n_pins + size + rank; i < items.n; i += size) sends |= in.moved[items.sources[i - items.n_pins]] >> 16 == round;
    if (rank < n_before) {
        PREFETCH(in.entries + first_place + rank);
        PREFETCH(in.waiting + first_place + rank);
    }
#pragma unroll 1
    for (i32 start = 0; start < items.n_pins; start += AT_ONCE * size) {
        if (start != 0) items.read(group, in.moved, start, moved);
        const auto moves = [&](i32 word) { return word >> 16 == round; };
        items.visit_those(group, moved, start, queue, moves, [&](i32 v) {
            shifts.note(in.moved[v] & 0xFFFF, 1, v);
            shifts.note(in.parts[v], ARRIVES, v);
        });
    }
    sends = any_of(group, sends, work.desk.scratch);
    group.sync();
    i32 n = static_cast<i32>(*shifts.n_listed), n_sources = 0;
    group.sync();
    if (n == 0 && !sends) return false;
    const i64 first_source = in.source_offsets[g], last_source = in.source_offsets[g + 1];
    if (sends) {
        // The list of parts goes on, and that of sources begins: its length is counted from 2^16 on.
#pragma unroll 1
        for (i64 j = first_source + rank; j < last_source; j += size) {
            const i32 u = in.source_nodes[j], moved = in.moved[u];
            if (moved >> 16 != round) continue;
            const Shift shift = {in.source_weights[j], moved & 0xFFFF, in.parts[u]};
            const u32 place = atomicAdd(shifts.n_listed, ARRIVES) >> 16;
            if (static_cast<i32>(place) < shifts.most_sources) shifts.sources[place] = shift;
        }
        group.sync();
        n_sources = static_cast<i32>(*shifts.n_listed >> 16);
        group.sync();
        if (rank == 0) *shifts.n_listed &= 0xFFFF;
        group.sync();
        const bool many = n_sources > shifts.most_sources;
        if (many) n_sources = shifts.most_sources;
        if (rank < 2 * n_sources && !many) {
            const Shift shift = shifts.sources[rank >> 1];
            shifts.note((rank & 1) != 0 ? shift.to : shift.from, SHIFTED, -1);
        }
        group.sync();
        n = static_cast<i32>(*shifts.n_listed);
        if (many) {
            shifts.end(group, n, 0, n_sources);
            return true;
        }
        group.sync();
    }
    Row row = in.rows[g];
    const i32 first_node = first_source < last_source ? in.source_nodes[first_source] : -1;
    Entry first_entry = {0, 0};  // of this thread
    i64 first_waits = 0, tally = 0;  // the latter: places that are free, and parts that change: those are seen
    i32 first_at = -1;
#pragma unroll 1
    for (i32 s = rank; s < row.size; s += size) {
        const Entry entry = in.entries[row.first + s];
        const i64 waits = in.waiting[row.first + s];
        const i32 at = shifts.table.find(entry.part);
        const u32 word = shifts.word_of(at);
        if (word != 0) shifts.words[at] = word | SEEN;
        tally += shifts.after({entry.n_pins(), waits}, entry.part, word, n_sources).none() + (word != 0 ? 1ll << 32 : 0);
        if (s != rank) continue;
        first_entry = entry;
        first_waits = waits;
        first_at = at;
    }
    tally = sum_of(group, tally, work.desk.scratch);
    const i32 n_new = n - static_cast<i32>(tally >> 32), n_places = static_cast<i32>(tally), n_free = n_places < n_new ? n_places : n_new;
    if (n_new - n_free > row.room - row.size || n + n_free > shifts.table.n) {
        shifts.end(group, n, 0, n_sources);
        return true;
    }
    const Telling<G> telling(work, group, g);
    const Sums loads = work.desk.loads();
    if (rank == 0) *shifts.n_listed = 0;  // from here on: free places, and 2^16 for each part that is new
    if (work.tells) telling.begin();
    group.sync();
    const auto change = [&](i32 p, const Presence& before, const Presence& now) {
        const i32 more = (now.pins > 0) - (before.pins > 0);
        connectivity += (now.pins > 0 ? row.weight - now.waits : 0) - (before.pins > 0 ? row.weight - before.waits : 0);
        for (i32 c = 0; more != 0 && c < N_DISTINCT; ++c)
            if (row.counts[c] != 0) loads.add(p * N_LOADS + N_ADDITIVE + c, more * row.counts[c]);
        if (work.tells) telling.note(row, p, (now.pins > 0 ? row.weight : now.waits) - (before.pins > 0 ? row.weight : before.waits), more);
    };
    // v is the only pin in its part, or was it; nothing that it sends waits for it.
    const auto alone = [&](i32 v, i64 waits, i64 sign) {
        if (!work.finds) return;
        const i64 j = last_source - first_source > 1 ? lower_bound<i32>(in.source_nodes, first_source, last_source, v) : first_source;
        const bool sends_to_it = j < last_source && (j == first_source ? first_node : in.source_nodes[j]) == v;
        const i64 own = sends_to_it ? in.source_weights[j] : 0;
        telling.alone(row, v, sign * (row.weight - waits + own), sign);
    };
    i32 noted = 0;  // at most
    bool lone = false;
    // Parts of the row, then those that are new.
#pragma unroll 1
    for (i32 fresh = 0; fresh < (n_new != 0 ? 2 : 1); ++fresh) {
        const i32 end = fresh != 0 ? n : row.size;
#pragma unroll 1
        for (i32 base = 0; base < end; base += size) {
            if (work.tells && noted + size > telling.room(work.desk) - 6) {
                tell(in, group, g, telling.n_changes, telling.changes);
                noted = 0;
            }
            noted += size;
            const i32 i = base + rank;
            if (i >= end) continue;
            i32 s = i, at = first_at;
            Entry entry = first_entry;
            Presence before = {0, first_waits};
            if (fresh != 0) {
                at = shifts.listed[i];
                if ((shifts.words[at] & SEEN) != 0) continue;
                entry = {shifts.table.part(at), 0};
                before.waits = 0;
                const i32 place = static_cast<i32>(atomicAdd(shifts.n_listed, ARRIVES) >> 16);
                s = place < n_free ? shifts.listed[shifts.table.n - 1 - place] : row.size + place - n_free;
            } else if (base != 0) {
                entry = in.entries[row.first + s];
                before.waits = in.waiting[row.first + s];
                at = shifts.table.find(entry.part);
            }
            before.pins = entry.n_pins();
            const u32 word = shifts.word_of(at);
            const Presence now = shifts.after(before, entry.part, word, n_sources);
            if (fresh == 0 && now.none()) {
                const i32 place = static_cast<i32>(atomicAdd(shifts.n_listed, 1u) & LEFT);
                if (place < n_free) shifts.listed[shifts.table.n - 1 - place] = s;
            }
            if (word == 0) continue;
            change(entry.part, before, now);
            i32 only = ~entry.pins;
            if (only >= 0) alone(only, before.waits, -1);
            if (now.pins != 1 || (word & LEFT) != 0) only = -1;  // it left, or is not the only one
            if (now.pins == 1 && Shifts<HASHED>::arrived(word) == 1) only = shifts.who[at];
            if (now.pins == 1 && only < 0) {
                lone = true;
                shifts.words[at] = word | LONE;
            }
            if (only >= 0) alone(only, now.waits, 1);
            in.entries[row.first + s] = {entry.part, only >= 0 ? ~only : now.pins};
            in.waiting[row.first + s] = now.waits;
        }
        group.sync();
    }
    if (any_of(group, lone, work.desk.scratch)) {
        group.sync();
        items.visit(group, in.parts, [&](i32 i, i32 v, i32 p) {
            const i32 at = i < items.n_pins ? shifts.table.find(p) : -1;
            if ((shifts.word_of(at) & LONE) != 0) shifts.who[at] = v;
        });
        group.sync();
#pragma unroll 1
        for (i32 s = rank; s < row.size; s += size) {
            const i32 at = shifts.table.find(in.entries[row.first + s].part);
            if ((shifts.word_of(at) & LONE) == 0) continue;
            in.entries[row.first + s].pins = ~shifts.who[at];
            alone(shifts.who[at], in.waiting[row.first + s], 1);
        }
    }
    if (work.tells) tell(in, group, g, telling.n_changes, telling.changes);
    if (rank == 0 && n_new > n_free) in.rows[g].size = static_cast<unsigned short>(row.size + n_new - n_free);
    shifts.end(group, n, n_free, n_sources);
    return false;
}

// Rows of the nets that are not long, where some pins or sources moved. Those that have to be filled anew are listed, where in
// the list of nets this group comes upon nets: n_listed of them.
template <bool HASHED, class G>
__device__ __noinline__ i64 update_rows(const Work& work, G group, i64& n_listed) {
    const Rounds& in = work.in;
    i64 connectivity = 0;
    const NetList nets(work, false, nullptr);
    const i32 some = nets.at_once(group);
    i64 into = some * group.index();
    for (i64 base = into; base < nets.n; base += some * group.number()) {
        for (i64 i = base; i < smaller(base + some, nets.n); ++i) {
            const i32 g = nets.at(i);
            const Items next(in, smaller(g + 1, in.n_nets - 1));
            if (some > 1 && 32 * group.rank() < next.n_pins) PREFETCH(next.pins + 32 * group.rank());
            if (nets.skips(g) || !update_row<HASHED>(work, group, g, connectivity)) continue;
            if (group.rank() == 0) in.listed[into] = g;
            ++n_listed;
            ++into;
            if (into % some == 0) into += some * (group.number() - 1);
        }
    }
    return connectivity;
}

#endif
