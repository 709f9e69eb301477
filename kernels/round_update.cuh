// Rounds in one launch: rows of nets of which some pins moved, from what they were before.
#ifndef SNNMAP_ROUND_UPDATE_CUH
#define SNNMAP_ROUND_UPDATE_CUH

const i64 MANY_PINS = 32;  // of a net in the mean: else its pins are counted anew
const i64 MOST_PINS = 1 << 14;

// Of a part: how many pins left, and arrived; whether it is in the row; whether the only one that is left is to be found.
const u32 ARRIVES = 1u << 16, LEFT = ARRIVES - 1, LONE = 1u << 30, SEEN = 1u << 31;

// How pins of a net moved, as a group of threads knows it.
template <bool HASHED>
struct Shifts {
    const Rounds& in;
    const Table<HASHED> table;
    u32* words;            // of a slot
    i32 *who, *listed;     // one that arrived, or the only one; slots in use, and from the end places of the row that are free
    u32* n_listed;

    template <class G>
    __device__ __forceinline__ Shifts(const Work& work, G group)
        : in(work.in),
          table(work, group),
          words(table.words),
          who(reinterpret_cast<i32*>(words + table.n)),
          listed(who + table.n),
          n_listed(work.desk.cursors + group.place()) {}
    __device__ __forceinline__ void note(i32 p, u32 word, i32 v) const {
        const i32 at = table.slot(p);
        if (atomicAdd(words + at, word) == 0) listed[atomicAdd(n_listed, 1u)] = at;
        if (word == ARRIVES) who[at] = v;
    }
    __device__ __forceinline__ u32 word_of(i32 at) const { return at >= 0 ? words[at] : 0; }
    static __device__ __forceinline__ i32 arrived(u32 word) { return static_cast<i32>((word & ~(SEEN | LONE)) >> 16); }
    static __device__ __forceinline__ i32 left(u32 word) { return static_cast<i32>(word & LEFT); }
    template <class G>
    __device__ __forceinline__ void end(G group, i32 n, i32 n_free) const {
        group.sync();
#pragma unroll 1
        for (i32 i = group.rank(); i < n; i += group.size()) {
            const i32 at = listed[i];
            words[at] = who[at] = listed[i] = 0;
            if (HASHED) table.keys[at] = 0;
        }
#pragma unroll 1
        for (i32 i = group.rank(); i < n_free; i += group.size()) listed[table.n - 1 - i] = 0;
        group.sync();
    }
};

// The row of net g, from what it was: places of parts without pins and sources stay, until another part takes them. Whether
// it has to be filled anew instead: a source moved, or it has no room. What else is done: see `fill_row`.
// Parallel over pins, then over those that moved, then over parts.
template <bool HASHED, class G>
__device__ __forceinline__ bool update_row(const Work& work, G group, i32 g, i64& connectivity) {
    const Rounds& in = work.in;
    const i32 rank = group.rank(), size = group.size(), lane = rank & 31, round = static_cast<i32>(work.turn) + 1;
    const Items items(in, g);
    const Shifts<HASHED> shifts(work, group);
    unsigned short* queue = queue_of(work, group);
    PREFETCH(in.rows + g);
    if (rank == 0) *shifts.n_listed = 0;
    group.sync();
    bool sends = items.n >= MOST_PINS;
#pragma unroll 1
    for (i32 start = 0; start < items.n && items.n < MOST_PINS; start += AT_ONCE * size) {
        i32 moved[AT_ONCE], n_queued = 0;
        items.read(group, in.moved, start, -1, moved);
#pragma unroll
        for (i32 k = 0; k < AT_ONCE; ++k) {
            if (start + k * size >= items.n) break;
            const bool moves = moved[k] >> 16 == round, pin = start + k * size + rank < items.n_pins;
            sends |= moves && !pin;
            const u32 all = __ballot_sync(ALL_LANES, moves && pin);
            if (moves && pin) queue[n_queued + __popc(all & ((1u << lane) - 1))] = static_cast<unsigned short>(32 * k + lane);
            n_queued += __popc(all);
        }
        __syncwarp();
#pragma unroll 1
        for (i32 q = lane; q < n_queued; q += 32) {
            const i32 v = items.queued(group, start, queue[q]);
            shifts.note(in.moved[v] & 0xFFFF, 1, v);
            shifts.note(in.parts[v], ARRIVES, v);
        }
        __syncwarp();
    }
    sends = any_of(group, sends, work.desk.scratch);
    group.sync();
    const i32 n = static_cast<i32>(*shifts.n_listed);
    group.sync();
    if (n == 0 || sends) {
        shifts.end(group, n, 0);
        return sends;
    }
    Row row = in.rows[g];
    const auto pins_now = [&](const Entry& entry, u32 word) { return entry.n_pins() - Shifts<HASHED>::left(word) + Shifts<HASHED>::arrived(word); };
    i64 tally = 0;  // places that are free, and parts that change: those are seen
#pragma unroll 1
    for (i32 s = rank; s < row.size; s += size) {
        const Entry entry = in.entries[row.first + s];
        const i32 at = shifts.table.find(entry.part);
        const u32 word = shifts.word_of(at);
        if (word != 0) shifts.words[at] = word | SEEN;
        if (pins_now(entry, word) == 0 && in.waiting[row.first + s] == 0) ++tally;
        if (word != 0) tally += 1ll << 32;
    }
    tally = sum_of(group, tally, work.desk.scratch);
    const i32 n_new = n - static_cast<i32>(tally >> 32), n_free = static_cast<i32>(smaller(static_cast<i32>(tally), n_new));
    if (n_new - n_free > row.room - row.size || n + n_free > shifts.table.n) {
        shifts.end(group, n, 0);
        return true;
    }
    const Telling<G> telling(work, group, g);
    const Sums loads = work.desk.loads();
    const i64 first_source = in.source_offsets[g], last_source = in.source_offsets[g + 1];
    if (rank == 0) *shifts.n_listed = 0;  // from here on: free places, and 2^16 for each part that is new
    if (work.finds) telling.begin();
    group.sync();
    // The net reaches part p, or no longer does.
    const auto change = [&](i32 p, i64 waits, i32 more) {
        if (more == 0) return;
        connectivity += more * (row.weight - waits);
        for (i32 c = 0; c < N_DISTINCT; ++c)
            if (row.counts[c] != 0) loads.add(p * N_LOADS + N_ADDITIVE + c, more * row.counts[c]);
        if (work.finds) telling.note(row, p, more * (row.weight - waits), more);
    };
    // v is the only pin in its part, or was it; nothing that it sends waits for it.
    const auto alone = [&](i32 v, i64 waits, i64 sign) {
        if (!work.finds) return;
        const i64 j = lower_bound(in.source_nodes, first_source, last_source, v);
        const i64 own = j < last_source && in.source_nodes[j] == v ? in.source_weights[j] : 0;
        telling.alone(row, v, sign * (row.weight - waits + own), sign);
    };
    i32 noted = 0;  // at most
    const auto make_room = [&] {
        if (work.finds && noted + size > telling.room(work.desk)) {
            tell(in, group, g, telling.n_changes, telling.changes);
            noted = 0;
        }
        noted += size;
    };
    bool lone = false;
#pragma unroll 1
    for (i32 base = 0; base < row.size; base += size) {
        make_room();
        const i32 s = base + rank;
        if (s >= row.size) continue;
        const Entry entry = in.entries[row.first + s];
        const i32 at = shifts.table.find(entry.part), before = entry.n_pins();
        const u32 word = shifts.word_of(at);
        const i32 now = pins_now(entry, word);
        const i64 waits = in.waiting[row.first + s];
        if (now == 0 && waits == 0) {
            const i32 place = static_cast<i32>(atomicAdd(shifts.n_listed, 1u) & 0xFFFF);
            if (place < n_free) shifts.listed[shifts.table.n - 1 - place] = s;
        }
        if (word == 0) continue;
        change(entry.part, waits, (now > 0) - (before > 0));
        if (entry.pins < 0) alone(~entry.pins, waits, -1);
        i32 pins = now;
        if (now == 1 && Shifts<HASHED>::arrived(word) == 1) {
            pins = ~shifts.who[at];
            alone(~pins, waits, 1);
        } else if (now == 1) {
            lone = true;
            shifts.words[at] = word | LONE;
        }
        in.entries[row.first + s].pins = pins;
    }
    lone = any_of(group, lone, work.desk.scratch);
    group.sync();
#pragma unroll 1
    for (i32 base = 0; n_new != 0 && base < n; base += size) {
        make_room();
        const i32 at = base + rank < n ? shifts.listed[base + rank] : -1;
        const u32 word = shifts.word_of(at);
        if (at < 0 || (word & SEEN) != 0) continue;
        const i32 place = static_cast<i32>(atomicAdd(shifts.n_listed, ARRIVES) >> 16);
        const i32 s = place < n_free ? shifts.listed[shifts.table.n - 1 - place] : row.size + place - n_free;
        const i32 p = shifts.table.part(at), now = Shifts<HASHED>::arrived(word), v = shifts.who[at];
        in.entries[row.first + s] = {p, now == 1 ? ~v : now};
        in.waiting[row.first + s] = 0;
        change(p, 0, 1);
        if (now == 1) alone(v, 0, 1);
    }
    if (lone) {
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
    if (work.finds) tell(in, group, g, telling.n_changes, telling.changes);
    if (rank == 0 && n_new > n_free) in.rows[g].size = static_cast<unsigned short>(row.size + n_new - n_free);
    shifts.end(group, n, n_free);
    return false;
}

// Rows of the nets that are not long, where some pins moved. Those that have to be filled anew are listed, where in the list
// of nets this group comes upon nets: n_listed of them.
template <bool HASHED, class G>
__device__ __noinline__ i64 update_rows(const Work& work, G group, i64& n_listed) {
    const Rounds& in = work.in;
    i64 connectivity = 0, last = 0;
    const NetList nets(work, false, nullptr);
    const i32 some = nets.at_once(group);
    i64 into = some * group.index();
    for (i64 base = into; base < nets.n; base += some * group.number()) {
        last = smaller(base + some, nets.n);
        for (i64 i = base; i < last; ++i) {
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
