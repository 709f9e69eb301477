// Rounds in one launch: what every node finds in every part, kept from round to round where there is memory for it.
//
// A column for each part, a place for each node: the weight of its nets that have pins there, of sources waiting there
// where its net has none, and of what it sends there; and the counts of its nets that have pins there. Two more columns
// hold all its nets, counts and the most that they can weigh, and what it would free if it left: weight that no longer crosses, and counts of the
// nets whose only pin in its part it is. A net changes few places: those of a part that it enters or leaves, in one column,
// which lies together. At first all nets tell all their nodes what there is: see round_tell.cuh. Where there is memory for
// those two columns only, the places of a node are added up in every round: see round_gather.cuh.
#ifndef SNNMAP_ROUND_FOUND_CUH
#define SNNMAP_ROUND_FOUND_CUH

// Words of a place. The first has the sum of weights in its low bits (it may be negative) and the first count above
// them, the second two more counts. All changes are sums of such words.
const i32 PLACE_WORDS = 1 + N_DISTINCT / 2;
const i32 WEIGHT_BITS = 40;
const i32 ALL_NETS = -2, LONE_NETS = -1;  // the columns before those of the parts
const i64 MOST_WEIGHT = 1ll << (WEIGHT_BITS - 2), MOST_COUNT = 1ll << (62 - WEIGHT_BITS);  // that nets have together

static_assert(N_DISTINCT <= 3, "a place has room for three counts");

struct Place {
    i64 value, counts[ROOM];

    static __device__ __forceinline__ i64 value_of(i64 word) {
        return static_cast<i64>(static_cast<u64>(word) << (64 - WEIGHT_BITS)) >> (64 - WEIGHT_BITS);
    }
    // `stride`: words from one of its words to the next.
    __device__ __forceinline__ Place(const i64* words, i64 stride) {
        value = value_of(words[0]);
        counts[0] = (words[0] - value) >> WEIGHT_BITS;
        if (N_DISTINCT > 1) counts[ROOM > 1 ? 1 : 0] = static_cast<i32>(words[(PLACE_WORDS - 1) * stride]);
        if (N_DISTINCT > 2) counts[ROOM - 1] = (words[(PLACE_WORDS - 1) * stride] - counts[ROOM > 1 ? 1 : 0]) >> 32;
    }
};

// Word w of what a weight and `sign` times a net's counts add to a place.
__device__ __forceinline__ i64 place_word(const Row& row, i32 w, i64 value, i64 sign) {
    if (w == 0) return value + sign * (N_DISTINCT > 0 ? row.counts[0] << WEIGHT_BITS : 0);
    return sign * (row.counts[ROOM > 1 ? 1 : 0] + (N_DISTINCT > 2 ? row.counts[ROOM - 1] << 32 : 0));
}

// The first word of a place; the next one is n_nodes words away.
__device__ __forceinline__ i64* found_by(const Rounds& in, i64 v, i64 part) { return in.found + (part - ALL_NETS) * PLACE_WORDS * in.n_nodes + v; }

// Adds to word w of a place.
__device__ __forceinline__ void add_found(const Rounds& in, i64 v, i64 part, i32 w, i64 word) {
    if (word != 0) add_to(found_by(in, v, part) + w * in.n_nodes, word);
}

// Whether all sums fit: known when all loads and weights are summed up.
__device__ __forceinline__ bool can_find(const Rounds& in) {
    bool fits = in.found.given() && in.progress->total_weight < MOST_WEIGHT;
    for (i32 c = 0; c < N_DISTINCT; ++c) fits &= in.progress->totals[N_ADDITIVE + c] < MOST_COUNT;
    return fits;
}

// Zero the first two columns; the others are written.
__device__ __forceinline__ void forget_found(const Work& work) {
    const i64 n = 2 * PLACE_WORDS * work.in.n_nodes;
#pragma unroll 1
    for (i64 i = work.thread(); work.in.found.given() && i < n; i += work.n_threads()) work.in.found[i] = 0;
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
        for (i32 w = 0; w < PLACE_WORDS; ++w) add_found(in, v, LONE_NETS, w, place_word(row, w, value, sign));
    }
    // Of sources that are pins: what an only pin sends to its own net is nothing that waits for it.
    template <bool HASHED>
    __device__ __forceinline__ void look_at_sources(const Row& row, const Table<HASHED>& table, bool fresh) const {
        const i64 first = in.net_offsets[g], last = in.net_offsets[g + 1];
#pragma unroll 1
        for (i64 j = in.source_offsets[g] + group.rank(); j < in.source_offsets[g + 1]; j += group.size()) {
            const i32 u = in.source_nodes[j];
            if (fresh) {
                const i64 at = lower_bound<i32>(in.net_pins, first, last, u);
                in.pinned[j] = at < last && in.net_pins[at] == u;
            }
            if (!in.pinned[j]) continue;
            i32 more = (table.words[table.slot(in.parts[u])] & ((1u << 30) - 1)) == 1;
#pragma unroll 8
            for (i32 s = 0; s < row.size; ++s) more -= in.entries[row.first + s].pins == ~u;
            add_found(in, u, LONE_NETS, 0, more * in.source_weights[j]);
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
    const i32 SOME = 4;  // pins of a thread at once
    const i64 last = in.net_offsets[g + 1];
#pragma unroll 1
    for (i64 j = in.net_offsets[g] + group.rank(); j < last; j += SOME * group.size()) {
        i32 pins[SOME];
#pragma unroll
        for (i32 k = 0; k < SOME; ++k) pins[k] = j + k * group.size() < last ? in.net_pins[j + k * group.size()] : -1;
#pragma unroll 1
        for (u32 i = 0; i < n; ++i) {
            const i32 part = changes[i].part;
            for (i32 w = 0; w < PLACE_WORDS; ++w) {
                const i64 word = changes[i].words[w];
#pragma unroll
                for (i32 k = 0; k < SOME; ++k)
                    if (pins[k] >= 0) add_found(in, pins[k], part, w, word);
            }
        }
    }
#pragma unroll 1
    for (i64 j = in.source_offsets[g] + group.rank(); j < in.source_offsets[g + 1]; j += group.size()) {
        const i64 weight = in.source_weights[j];
        if (in.pinned[j] || weight == 0) continue;
        const i32 u = in.source_nodes[j];
#pragma unroll 1
        for (u32 i = 0; i < n; ++i) add_found(in, u, changes[i].part, 0, changes[i].more * weight);
    }
    group.sync();
    if (group.rank() == 0) *n_changes = 0;
    group.sync();
}

#endif
