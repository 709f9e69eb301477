// Clustering: what is known of it; the nets that each node looks at; the best cluster around a node.
#ifndef SNNMAP_CLUSTER_RATING_CUH
#define SNNMAP_CLUSTER_RATING_CUH

const i32 WARP_SLOTS = 512, TEAM_WARPS = 8, TEAM_SLOTS = TEAM_WARPS * WARP_SLOTS;  // of tables

typedef unsigned char u8;

struct Clustering {
    Incidence around;
    const i64 *counts, *resources, *limits;
    const i32* borders;  // null: none
    i64 n_nodes, n_pins, n_sources, n_turns;
    u64 salt;       // of the turns
    double growth;  // a cluster weighs at most so many average nodes
    // zero at the start
    u64* state;      // gate, then the fields of Counter
    i64* n_suitors;  // of each cluster
    i64 *loads, *visits;
    i32* n_picks;
    // anything at the start
    i64 *first_suitors, *last_suitors, *totals, *scores;
    i32 *turns, *targets, *suitors, *numbers, *leaders;
    i32* lists;   // [kind, turn, node]: nodes of a turn by who rates them
    i32* wanted;  // clusters with suitors; from n_nodes on, those with more than a warp sorts
    i32* picks;   // nets that ratings look at, where the node's nets and those that it is a source of have room
    u8* settled;
    i32* clusters;
};

// Who rates a node: a warp, a team, a block.
enum Kind { SHORT, MEDIUM, HUGE, N_KINDS };

// Words of `state` after the gate: from N_LISTED on three lengths of lists for each turn, then for each turn
// how many suitors there are, and how many clusters of either sort they want.
enum Counter { TOTAL_SIZE = GATE_WORDS, LARGEST, N_CLUSTERS, N_LISTED };

__device__ __forceinline__ u64& n_listed(const Clustering& in, i64 kind, i64 turn) {
    return in.state[N_LISTED + N_KINDS * turn + kind];
}

__device__ __forceinline__ i32* list_of(const Clustering& in, i64 kind, i64 turn) {
    return in.lists + (kind * in.n_turns + turn) * in.n_nodes;
}

__device__ __forceinline__ u64* suitors_in(const Clustering& in, i64 turn) {
    return in.state + N_LISTED + N_KINDS * in.n_turns + 3 * turn;
}

__device__ __forceinline__ i64 own_load(const Clustering& in, i64 v, i32 r) { return in.loads[v * N_LOADS + r]; }

// a / b, rounded down, for a >= 0 and 0 < b < 2^31: faster than 64-bit division.
__device__ __forceinline__ i64 quotient(i64 a, i64 b) {
    if (a >= 1ll << 52) return a / b;
    const i64 rounded = static_cast<i64>(static_cast<double>(a) / static_cast<double>(b));
    return rounded * b > a ? rounded - 1 : rounded;
}

// ------------------------------------------------------------------------------------ picks

// Where node v's picks begin.
__device__ __forceinline__ i64 first_pick(const Clustering& in, i64 v) {
    return in.around.node_offsets[v] + in.around.out_offsets[v];
}

// Picks an item of a node's row, with so many pins and sources to look at.
__device__ __forceinline__ void pick(const Clustering& in, i64 v, i32 item, i64 visits) {
    in.picks[first_pick(in, v) + atomicAdd(in.n_picks + v, 1)] = item;
    add64(in.visits + v, visits);
}

// The nets that ratings of each node look at: net where it is a pin, ~(place in its row) where it is a source.
__device__ __forceinline__ void pick_nets(const Clustering& in, const Grid& grid) {
    const Incidence& around = in.around;
    i64 known = -1;
    u64 bar = 0;
    const auto looks_at = [&](const i64* offsets, i64 v, i32 net) {
        if (v != known) bar = bar_of(offsets[v + 1] - offsets[v], around.max_nets);
        known = v;
        return looked_at(net, bar, around.seed);
    };
    const auto pins_of = [&](i32 net) { return smaller(around.net_offsets[net + 1] - around.net_offsets[net], around.max_pins); };
    for_all_items(grid, around.node_offsets, in.n_nodes, in.n_pins, [&](i64 v, i64 j) {
        const i32 net = around.node_nets[j];
        if (!looks_at(around.node_offsets, v, net)) return;
        pick(in, v, net, pins_of(net) + smaller(around.source_offsets[net + 1] - around.source_offsets[net], around.max_pins));
    });
    known = -1;
    for_all_items(grid, around.out_offsets, in.n_nodes, in.n_sources, [&](i64 v, i64 j) {
        const i32 net = around.out_nets[j];
        if (looks_at(around.out_offsets, v, net) && pins_of(net) > 0)
            pick(in, v, ~static_cast<i32>(j - around.out_offsets[v]), pins_of(net));
    });
}

// Calls visit(u, score) for every pin and source u that node v is tied to by a picked net;
// score = (weight << 6) / pins + 1. Parallel over picks, a lane each, which looks up the net, and their pins: a warp a
// net, or eight lanes where nets are short; then over picks and their sources, four lanes a net. The order of the
// calls varies.
template <class G, class Visit>
__device__ __forceinline__ void visit_picks(const Clustering& in, i32 v, G group, Visit visit) {
    const Incidence& around = in.around;
    const i32* picks = in.picks + first_pick(in, v);
    const i32 n = in.n_picks[v], lanes = in.visits[v] < 24ll * n ? 8 : 32, lane = group.rank() & (lanes - 1);
    const i32 teams = group.size() / lanes, first_lane = threadIdx.x & 31 & ~(lanes - 1);
#pragma unroll 1
    for (i32 base = 0; base < n; base += teams * lanes) {
        const i32 own = base + group.rank() / lanes + lane * teams;  // what this lane looks up for the others
        i64 place = 0, share = 0;
        i32 size = 0;
        if (own < n) {
            const i32 picked = picks[own];
            const i64 out = around.out_offsets[v] + ~picked;
            const i32 g = picked >= 0 ? picked : around.out_nets[out];
            const i64 weight = picked >= 0 ? around.net_weights[g] : around.out_weights[out];
            place = around.net_offsets[g];
            size = static_cast<i32>(around.net_offsets[g + 1] - place);
            share = quotient(weight << 6, size) + 1;
        }
        const i32 most = smaller(lanes, (n - base + teams - 1) / teams);
#pragma unroll 1
        for (i32 j = 0; j < most; ++j) {
            const i32 n_pins = __shfl_sync(ALL_LANES, size, first_lane + j);
            const i32* pins = around.net_pins + __shfl_sync(ALL_LANES, place, first_lane + j);
            const i64 score = __shfl_sync(ALL_LANES, share, first_lane + j);
            const i32 looked = static_cast<i32>(smaller(n_pins, around.max_pins));
#pragma unroll 1
            for (i32 start = lane; start < looked; start += lanes * AT_ONCE) {
                i32 keys[AT_ONCE];
#pragma unroll
                for (i32 i = 0; i < AT_ONCE; ++i) {
                    const i32 l = start + lanes * i;
                    keys[i] = l >= looked ? EMPTY : pins[n_pins == looked ? l : spread(l, n_pins, looked)];
                }
#pragma unroll
                for (i32 i = 0; i < AT_ONCE; ++i)
                    if (keys[i] != EMPTY) keys[i] = in.leaders[keys[i]];
#pragma unroll
                for (i32 i = 0; i < AT_ONCE; ++i)
                    if (keys[i] != EMPTY) visit(keys[i], score);
            }
        }
    }
#pragma unroll 1
    for (i32 k = group.rank() / 4; k < n; k += group.size() / 4) {
        const i32 g = picks[k];
        if (g < 0) continue;
        const i64 source = around.source_offsets[g], n_sources = around.source_offsets[g + 1] - source;
        const i64 n_pins = around.net_offsets[g + 1] - around.net_offsets[g], seen = smaller(n_sources, around.max_pins);
#pragma unroll 1
        for (i64 l = group.rank() & 3; l < seen; l += 4) {
            const i64 place = source + spread(l, n_sources, seen);
            visit(in.leaders[around.source_nodes[place]], quotient(around.source_weights[place] << 6, n_pins) + 1);
        }
    }
}

// ------------------------------------------------------------------------------------ ratings

// Whether cluster u can take node v.
__device__ __forceinline__ bool can_join(const Clustering& in, i32 v, i32 u, i64 turn, i64 cap) {
    if (in.turns[u] == turn && !in.settled[u]) return false;
    if (in.borders != nullptr && in.borders[u] != in.borders[v]) return false;
    bool fits = own_load(in, u, 0) + own_load(in, v, 0) <= cap;
    for (i32 r = 0; r < N_LOADS; ++r) fits &= own_load(in, u, r) + own_load(in, v, r) <= in.limits[r];
    return fits;
}

__device__ __forceinline__ u64 tie_of(const Clustering& in, i32 u) {
    return scramble(static_cast<u64>(static_cast<i64>(u)), static_cast<u64>(in.around.seed + 1));
}

// Whether cluster u comes before another one of the same score.
__device__ __forceinline__ bool breaks_tie(const Clustering& in, i32 u, i32 other) {
    const u64 tie = tie_of(in, u), other_tie = tie_of(in, other);
    return tie != other_tie ? tie > other_tie : u < other;
}

// `best`, or cluster u if it is better and can take v.
__device__ __forceinline__ void consider(const Clustering& in, i32 v, i32 u, i64 score, i64 turn, i64 cap, Best& best) {
    if (score < best.value || u == best.id) return;
    if (score == best.value && best.id >= 0 && !breaks_tie(in, u, best.id)) return;
    if (!can_join(in, v, u, turn, cap)) return;
    best.value = score;
    best.id = u;
}

struct alignas(16) Four {
    u32 words[4];
};

// `best`, or the best cluster in this thread's slots of a table, four at a time, if it is better. (Few branches: in most
// steps some thread of a warp finds a better one.)
template <class G, class Name>
__device__ __forceinline__ Best best_slot(const Clustering& in, const Sums& gathered, u32 n_slots, G group, Name name_of, Best best) {
    const Four *low = reinterpret_cast<const Four*>(gathered.low), *high = reinterpret_cast<const Four*>(gathered.high);
    i32 slot = -1;
#pragma unroll 1
    for (u32 base = group.rank(); base < n_slots / 4; base += group.size()) {
        const Four lows = low[base], highs = high[base];
#pragma unroll
        for (i32 k = 0; k < 4; ++k) {
            const i64 score = static_cast<i64>(static_cast<u64>(highs.words[k]) << 32 | lows.words[k]);
            const i32 s = static_cast<i32>(4 * base + k);
            bool better = score > best.value;
            if (score == best.value && score != 0) better = breaks_tie(in, name_of(s), slot >= 0 ? name_of(slot) : best.id);
            best.value = better ? score : best.value;
            slot = better ? s : slot;
        }
    }
    if (slot >= 0) best.id = name_of(slot);
    return best;
}

// Slot of a cluster in a table of any size, which is never full.
__device__ __forceinline__ u32 claim_slot(i32* keys, u32 n_slots, i32 key) {
    for (u32 slot = static_cast<u32>(static_cast<u64>(hash_of(key)) * n_slots >> 32);; slot = slot + 1 == n_slots ? 0 : slot + 1) {
        i32 found = *const_cast<volatile i32*>(keys + slot);
        if (found == EMPTY) found = atomicCAS(keys + slot, EMPTY, key);
        if (found == EMPTY || found == key) return slot;
    }
}

// How many clusters a rating with so many visits finds at most, and a table's slots for so many, a multiple of four.
__device__ __forceinline__ i64 most_found(const Clustering& in, i64 visits) { return smaller(visits, in.n_nodes); }
__device__ __forceinline__ bool fits(i64 found, i64 n_slots) { return found + found / 16 < n_slots; }
__device__ __forceinline__ u32 slots_for(i64 found, i64 n_slots) {
    return static_cast<u32>(smaller((found + found / 4 + 4) & ~3ll, n_slots));
}

__device__ __forceinline__ i64 team_slots(const Grid& grid) { return smaller(TEAM_SLOTS, grid.n_words / 6 & ~3ll); }

// The best cluster around node v that can take it (id -1: none), known to the group's threads: by a hash table, or,
// if it is not `hashed`, by a slot for each cluster of a range, one range after the other. A score is never 0.
// Of each range the best of each thread's slots is asked first; only who had to drop one that is better than the best of
// those asks its others.
template <class G>
__device__ __forceinline__ Best rate(const Clustering& in, i32 v, G group, u32* memory, u32 n_slots, bool hashed, i64 turn,
                                     i64 cap, i64* scratch) {
    const Sums gathered(memory, n_slots);
    i32* keys = reinterpret_cast<i32*>(memory) + 2 * n_slots;
    Best best = {0, 0, -1, 0};
#pragma unroll 1
    for (i64 first = 0; first < (hashed ? 1 : in.n_nodes); first += n_slots) {
#pragma unroll 1
        for (u32 s = group.rank(); s < n_slots; s += group.size()) {
            if (hashed) keys[s] = EMPTY;
            gathered.clear(s);
        }
        group.sync();
        visit_picks(in, v, group, [&](i32 u, i64 score) {
            if (u == v) return;
            const u32 slot = hashed ? claim_slot(keys, n_slots, u) : static_cast<u32>(u - first);
            if (slot < n_slots) gathered.add(slot, score);
        });
        group.sync();
        Best top = best_slot(in, gathered, n_slots, group, [&](u32 s) { return hashed ? keys[s] : static_cast<i32>(first + s); }, best);
        bool looks = false;
#pragma unroll 1
        for (i32 asks = 0; asks < 2; ++asks) {
#pragma unroll 1
            for (u32 s = looks ? 4 * group.rank() : n_slots; s < n_slots; s += (s & 3) == 3 ? 4 * group.size() - 3 : 1) {
                const i64 score = gathered.get(s);
                if (score != 0) consider(in, v, hashed ? keys[s] : static_cast<i32>(first + s), score, turn, cap, top);
            }
            top.tie = tie_of(in, top.id);
            const Best own = top;
            const bool refused = asks == 0 && own.id != best.id && !can_join(in, v, own.id, turn, cap);
            if (refused) top = best;
            top = best_of(group, top, scratch);
            looks = refused && top.below(own);
            if (!any_of(group, looks, scratch)) break;
        }
        best = top;
    }
    return best;
}

__device__ __forceinline__ void wish(const Clustering& in, i32 v, const Best& best) {
    in.targets[v] = best.id;
    in.scores[v] = best.value;
    if (best.id >= 0) add64(in.n_suitors + best.id, 1);
}

// The unsettled nodes of a list, a group each, by hash tables of at most so many slots; or by ranges, where what they
// may find has no room there.
template <class G>
__device__ __forceinline__ void rate_list(const Clustering& in, const Grid& grid, i64 kind, G group, u32* memory,
                                          i64 most, i64 turn, i64 cap) {
    const i64 n = static_cast<i64>(n_listed(in, kind, turn));
    const i32* list = list_of(in, kind, turn);
#pragma unroll 1
    for (i64 i = group.index(); i < n; i += group.number()) {
        const i32 v = list[i];
        if (in.settled[v]) continue;
        const i64 found = most_found(in, in.visits[v]);
        const bool hashed = fits(found, most);
        const u32 n_slots = hashed ? slots_for(found, most) : static_cast<u32>(3 * most / 2 & ~3ll);
        const Best best = rate(in, v, group, memory, n_slots, hashed, turn, cap, grid.scratch);
        if (group.rank() == 0) wish(in, v, best);
    }
}

#endif
