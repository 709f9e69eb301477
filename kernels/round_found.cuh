// Rounds in one launch: what every node finds in every part, kept from round to round where there is memory for it.
//
// A row for each node, a place for each part: the weight of its nets that have pins there, of sources waiting there
// where its net has none, and of what it sends there; and the counts of its nets that have pins there. Two more places
// hold the counts of all its nets, and what it would free if it left: weight that no longer crosses, and counts of the
// nets whose only pin in its part it is. A net changes few places: those of a part that it enters or leaves.
// At first all nets tell all their nodes what there is.
#ifndef SNNMAP_ROUND_FOUND_CUH
#define SNNMAP_ROUND_FOUND_CUH

// Words of a place. The first has the sum of weights in its low bits (it may be negative) and the first count above
// them, the second two more counts. All changes are sums of such words.
const i32 PLACE_WORDS = 1 + N_DISTINCT / 2;
const i32 WEIGHT_BITS = 40;
const i64 MOST_WEIGHT = 1ll << (WEIGHT_BITS - 2), MOST_COUNT = 1ll << (62 - WEIGHT_BITS);  // that nets have together

static_assert(N_DISTINCT <= 3, "a place has room for three counts");

struct Place {
    i64 value, counts[ROOM];

    __device__ __forceinline__ Place(const i64* words) {
        value = static_cast<i64>(static_cast<u64>(words[0]) << (64 - WEIGHT_BITS)) >> (64 - WEIGHT_BITS);
        counts[0] = (words[0] - value) >> WEIGHT_BITS;
        if (N_DISTINCT > 1) counts[ROOM > 1 ? 1 : 0] = static_cast<i32>(words[PLACE_WORDS - 1]);
        if (N_DISTINCT > 2) counts[ROOM - 1] = (words[PLACE_WORDS - 1] - counts[ROOM > 1 ? 1 : 0]) >> 32;
    }
};

// Word w of what a weight and `sign` times a net's counts add to a place.
__device__ __forceinline__ i64 place_word(const Row& row, i32 w, i64 value, i64 sign) {
    if (w == 0) return value + sign * (N_DISTINCT > 0 ? row.counts[0] << WEIGHT_BITS : 0);
    return sign * (row.counts[ROOM > 1 ? 1 : 0] + (N_DISTINCT > 2 ? row.counts[ROOM - 1] << 32 : 0));
}

__device__ __forceinline__ i64* found_by(const Rounds& in, i64 v, i64 part) {
    return in.found + (v * (in.n_parts + 2) + part) * PLACE_WORDS;
}

// Whether all sums fit: known when all loads and weights are summed up.
__device__ __forceinline__ bool can_find(const Rounds& in) {
    bool fits = in.found != nullptr && in.progress->total_weight < MOST_WEIGHT;
    for (i32 c = 0; c < N_DISTINCT; ++c) fits &= in.progress->totals[N_ADDITIVE + c] < MOST_COUNT;
    return fits;
}

__device__ __forceinline__ void forget_found(const Work& work) {
    const i64 n = work.in.n_nodes * (work.in.n_parts + 2) * PLACE_WORDS;
#pragma unroll 1
    for (i64 i = work.thread(); work.in.found != nullptr && i < n; i += work.n_threads()) work.in.found[i] = 0;
}

// What a net's nodes find elsewhere than before: they are told by a group of threads, for some parts at a time.
template <class G>
struct Telling {
    struct Change {
        i64 words[PLACE_WORDS];
        i32 part, more;  // pins there: 1 since now, -1 no longer
    };

    const Rounds& in;
    G group;
    i64 g;
    u32* n_changes;
    Change* changes;

    __device__ __forceinline__ Telling(const Work& work, G group, i64 g)
        : in(work.in),
          group(group),
          g(g),
          n_changes(reinterpret_cast<u32*>(work.desk.list(group))),
          changes(reinterpret_cast<Change*>(work.desk.list(group)) + 1) {
        static_assert(sizeof(Change) * 33 <= WARP_BYTES, "a change for each thread, the counter");
    }
    // How many changes have room.
    __device__ __forceinline__ i32 room(const Desk& desk) const {
        return static_cast<i32>(desk.n_bytes(group) / sizeof(Change)) - 1;
    }
    // Nothing is to be told yet.
    __device__ __forceinline__ void begin() const {
        if (group.rank() == 0) *n_changes = 0;
    }
    // By one thread, for a part: value is what a pin finds there now, less what it found there.
    __device__ __forceinline__ void note(const Row& row, i32 part, i64 value, i32 more) const {
        if (value == 0 && more == 0) return;
        Change& change = changes[atomicAdd(n_changes, 1u)];
        for (i32 w = 0; w < PLACE_WORDS; ++w) change.words[w] = place_word(row, w, value, more);
        change.part = part;
        change.more = more;
    }
    // By one thread: v is the only pin in its part, or (sign -1) was it.
    __device__ __forceinline__ void alone(const Row& row, i64 v, i64 value, i64 sign) const {
        for (i32 w = 0; w < PLACE_WORDS; ++w) {
            const i64 word = place_word(row, w, value, sign);
            if (word != 0) add64(found_by(in, v, in.n_parts + 1) + w, word);
        }
    }
    // Of sources that are pins: what an only pin sends to its own net is nothing that waits for it.
    template <bool HASHED>
    __device__ __forceinline__ void look_at_sources(const Row& row, const Table<HASHED>& table, bool fresh) const {
        const i64 first = in.net_offsets[g], last = in.net_offsets[g + 1];
#pragma unroll 1
        for (i64 j = in.source_offsets[g] + group.rank(); j < in.source_offsets[g + 1]; j += group.size()) {
            const i32 u = in.source_nodes[j];
            if (fresh) {
                const i64 at = lower_bound(in.net_pins, first, last, u);
                in.pinned[j] = at < last && in.net_pins[at] == u;
            }
            if (!in.pinned[j]) continue;
            i32 more = (table.words[table.slot(in.parts[u])] & ((1u << 30) - 1)) == 1;
#pragma unroll 8
            for (i32 s = 0; s < row.size; ++s) more -= in.entries[row.first + s].pins == ~u;
            if (more != 0) add64(found_by(in, u, in.n_parts + 1), more * in.source_weights[j]);
        }
    }
};

// Tells the nodes of net g what was noted.
// Parallel over pins and sources.
template <class G>
__device__ __forceinline__ void tell(const Rounds& in, G group, i64 g, u32* n_changes, const typename Telling<G>::Change* changes) {
    group.sync();
    const u32 n = *n_changes;
    group.sync();
    if (n == 0) return;
#pragma unroll 1
    for (i64 j = in.net_offsets[g] + group.rank(); j < in.net_offsets[g + 1]; j += group.size()) {
        i64* row = found_by(in, in.net_pins[j], 0);
#pragma unroll 1
        for (u32 i = 0; i < n; ++i)
            for (i32 w = 0; w < PLACE_WORDS; ++w) add64(row + changes[i].part * PLACE_WORDS + w, changes[i].words[w]);
    }
#pragma unroll 1
    for (i64 j = in.source_offsets[g] + group.rank(); j < in.source_offsets[g + 1]; j += group.size()) {
        const i64 weight = in.source_weights[j];
        if (in.pinned[j] || weight == 0) continue;
        i64* row = found_by(in, in.source_nodes[j], 0);
#pragma unroll 1
        for (u32 i = 0; i < n; ++i)
            if (changes[i].more != 0) add64(row + changes[i].part * PLACE_WORDS, changes[i].more * weight);
    }
    group.sync();
    if (group.rank() == 0) *n_changes = 0;
    group.sync();
}

// What a row says of a place, at first: its parts, then the counts of the net.
struct Saying {
    i32 place;  // -1: none
    i64 words[PLACE_WORDS];

    __device__ __forceinline__ Saying() : place(-1) {}
    __device__ __forceinline__ Saying(const Rounds& in, const Row& row, i32 at) : place(-1) {
        if (at > row.size) return;
        Entry entry = {static_cast<i32>(in.n_parts), 1};
        i64 value = 0;
        if (at < row.size) {
            entry = in.entries[row.first + at];
            value = entry.pins != 0 ? row.weight : in.waiting[row.first + at];
        }
        place = entry.part;
        for (i32 w = 0; w < PLACE_WORDS; ++w) words[w] = place_word(row, w, value, entry.pins != 0);
    }
};

const i32 TELLERS = 8;  // threads that tell for a net

// Tells the nodes below `end` among pins [first, last) of a net, whose row this is; where the next ones begin. By
// `TELLERS` threads, and a warp for as many nets at once (`last` <= `first`: none), so that their chains of loads overlap.
__device__ __forceinline__ i64 tell_pins(const Rounds& in, const Row& row, i64 first, i64 last, i64 end) {
    const i32 lane = Warp().rank(), own = lane & (TELLERS - 1), leader = lane - own, none = static_cast<i32>(end);
    i64 at = first;
#pragma unroll 1
    for (i32 base = 0; __ballot_sync(ALL_LANES, first < last && base <= row.size) != 0; base += TELLERS) {
        const bool tells = first < last && base <= row.size;
        Saying said;
        if (tells) said = Saying(in, row, base + own);
        i32 n = TELLERS;
        bool more = tells;
#pragma unroll 1
        for (i64 next = first; __ballot_sync(ALL_LANES, more) != 0; next += TELLERS) {
            const i32 pin = more && next + own < last ? in.net_pins[next + own] : none;
            n = __popc(__ballot_sync(ALL_LANES, pin < none) >> leader & ((1u << TELLERS) - 1));
            if (more) at = next + n;
            more &= n == TELLERS;
#pragma unroll 1
            for (i32 j = 0; __ballot_sync(ALL_LANES, j < n) != 0; ++j) {
                i64* into = found_by(in, __shfl_sync(ALL_LANES, pin, leader + j), 0);
                for (i32 w = 0; j < n && said.place >= 0 && w < PLACE_WORDS; ++w)
                    if (said.words[w] != 0) add64(into + said.place * PLACE_WORDS + w, said.words[w]);
            }
        }
    }
    return at;
}

// Tells the sources of a net that are no pins. By a warp.
__device__ __forceinline__ void tell_sources(const Rounds& in, const Row& row, i64 g) {
#pragma unroll 1
    for (i64 j = in.source_offsets[g]; j < in.source_offsets[g + 1]; ++j) {
        const i64 weight = in.source_weights[j];
        if (in.pinned[j] || weight == 0) continue;
        i64* into = found_by(in, in.source_nodes[j], 0);
#pragma unroll 1
        for (i32 s = Warp().rank(); s < row.size; s += 32) {
            const Entry entry = in.entries[row.first + s];
            if (entry.pins != 0) add64(into + entry.part * PLACE_WORDS, weight);
        }
    }
}

// Tells all nodes what they find at first: nodes of one tile after the other, whose rows the L2 cache holds, as additions
// elsewhere are two to three times as slow. `told`: where a net's pins in the next tile begin.
// Parallel over nets, `TELLERS` threads each; of long ones over their pins.
__device__ __noinline__ void tell_first(Work& work) {
    const Rounds& in = work.in;
    const i32 NETS = 32 / TELLERS;
    const i64 n_warps = blockDim.x >> 5;
#pragma unroll 1
    for (i64 i = blockIdx.x; i < static_cast<i64>(in.progress->n_long_nets); i += gridDim.x) {
        const i64 g = in.long_nets[i], last = in.net_offsets[g + 1];
#pragma unroll 1
        for (i64 at = in.net_offsets[g] + 32 * Warp().place(); at < last; at += 32 * n_warps) {
            const i64 from = at + (Warp().rank() & -TELLERS);
            tell_pins(in, in.rows[g], from, smaller(from + TELLERS, last), in.n_nodes);
        }
    }
#pragma unroll 1
    for (i64 start = 0; start < in.n_nodes; start += in.tile) {
        if (start != 0) work.grid.meet();
#pragma unroll 1
        for (i64 base = Warp().index() * NETS; base < in.n_nets; base += Warp().number() * NETS) {
            for (i64 g = base; start == 0 && g < smaller(base + NETS, in.n_nets); ++g) tell_sources(in, in.rows[g], g);
            const i64 g = smaller(base + Warp().rank() / TELLERS, in.n_nets - 1);
            const bool tells = base + Warp().rank() / TELLERS < in.n_nets && work.net_size(g) <= work.long_net();
            const i64 first = start != 0 ? in.told[g] : in.net_offsets[g];
            const i64 next = tell_pins(in, in.rows[g], first, tells ? in.net_offsets[g + 1] : first, smaller(start + in.tile, in.n_nodes));
            if (tells && Warp().rank() % TELLERS == 0) in.told[g] = next;
        }
    }
}

#endif
