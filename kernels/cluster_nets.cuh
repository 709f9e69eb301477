// Clustering: what is known of it; the nets that each node looks at, and the clusters that each such net offers.
#ifndef SNNMAP_CLUSTER_NETS_CUH
#define SNNMAP_CLUSTER_NETS_CUH

typedef unsigned char u8;

// What a net that is looked at offers in a turn: the clusters of its pins, each with how many they are, and,
// before them, its sources; those that somebody may join. A net with many pins offers nothing, and perhaps one
// that only its sources look at, once each: its pins are looked at themselves.
struct Offer {
    i64 keys;   // where the clusters lie in `picks`; -1: nothing is offered
    i64 share;  // score of a pin: (weight << 6) / pins + 1
    i64 most;   // more than a cluster gets of it
    i32 n_keys, n_sources;
    i64 pins;  // the most of a cluster
};

// A source with its score; the k-th lies k + 1 of these before the keys.
struct alignas(16) Source {
    i64 score;
    i32 key, unused;
};

const i32 MOST_OFFERED = 256;  // pins of a net that offers clusters
const i32 COUNT_BITS = 8;      // of an offered cluster's word, for its pins less one
const i32 SETTLED = -1, FULL = -2;  // turns of nodes that joined or were joined, and of clusters that nobody may join

struct Clustering {
    Incidence around;
    const i64 *counts, *resources, *limits;
    const i32* borders;  // null: none
    i64 n_nodes, n_nets, n_pins, n_sources, n_turns;
    u64 salt;       // of the turns
    double growth;  // a cluster weighs at most so many average nodes
    // zero at the start
    u64* state;      // gate, then the fields of Counter
    i64* n_suitors;  // of each cluster
    i64 *loads, *visits;
    i32 *degrees, *n_picks;
    u8* asked;  // whether a net is to offer something
    // anything at the start
    i32* picks;  // nets that ratings look at, then what these nets offer
    Offer* offers;
    i64* pick_ends;  // of the picks of a node, while they are brought together
    i64* ends;       // of the suitors of a cluster, likewise
    i64 *totals, *scores;
    i32 *turns, *targets, *suitors, *leaders;
    i32* lists;   // [kind, turn, node]: nodes of a turn by who rates them
    i32* wanted;  // clusters with suitors; from n_nodes on, those with more than a warp sorts
    i32* kept;    // nets that offer something
    i32* clusters;

    // The hashes of the nets that a node looks at are at most so large, as a pin and as a source; before the first turn.
    __device__ __forceinline__ u64& bar(i64 v) const { return reinterpret_cast<u64*>(scores)[v]; }
    __device__ __forceinline__ u64& out_bar(i64 v) const { return reinterpret_cast<u64*>(ends)[v]; }
    // Bits of a cluster's number; all ones are none's.
    __device__ __forceinline__ i32 key_bits() const { return 64 - __clzll(n_nodes); }
};

// Who rates a node: a warp with its own table, or one with that of its neighbour, too; a block where those have no room.
enum Kind { SHORT, WIDE, N_KINDS };

// Words of `state` after the gate: from N_LISTED on the lengths of lists for each turn, then for each turn
// how many suitors there are, and how many clusters of either sort they want. SMALLNESS: the largest ~size.
enum Counter { TOTAL_SIZE = GATE_WORDS, LARGEST, N_CLUSTERS, SMALLNESS, MOST_BAR, MOST_OUT_BAR, N_PICKED, N_OFFERED, N_KEPT, N_PLACED, N_LISTED };

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

// Lists every lane's `id` if it is to be listed; for the whole warp, one atomic.
__device__ __forceinline__ void list_ids(bool listed, i32 id, i32* list, u64* n) {
    const u32 some = __ballot_sync(ALL_LANES, listed), lane = threadIdx.x & 31;
    if (some == 0) return;
    u64 start = 0;
    if (lane == 0) start = atomicAdd(n, static_cast<u64>(__popc(some)));
    start = __shfl_sync(ALL_LANES, start, 0);
    if (listed) list[start + __popc(some & ((1u << lane) - 1))] = id;
}

// a / b, rounded down, for a >= 0 and 0 < b < 2^31: faster than 64-bit division.
__device__ __forceinline__ i64 quotient(i64 a, i64 b) {
    if (a >= 1ll << 52) return a / b;
    const i64 rounded = static_cast<i64>(static_cast<double>(a) / static_cast<double>(b));
    return rounded * b > a ? rounded - 1 : rounded;
}

__device__ __forceinline__ i64 pins_of(const Incidence& around, i64 net) {
    return around.net_offsets[net + 1] - around.net_offsets[net];
}

__device__ __forceinline__ i64 sources_of(const Incidence& around, i64 net) {
    return around.source_offsets[net + 1] - around.source_offsets[net];
}

// ------------------------------------------------------------------------------------ picks

// The nets and distinct loads of all nodes. Where nodes are few, a block first sums up its share in shared memory.
__device__ __forceinline__ void count_nets(const Clustering& in, const Grid& grid) {
    const Incidence& around = in.around;
    const auto count_of = [&](i64 net, i32 c) { return in.counts[net * N_DISTINCT + c]; };
    if (in.n_nodes * (1 + 2 * N_DISTINCT) > grid.n_words || 2 * in.n_nodes * gridDim.x > in.n_pins) {
        for_all_items(grid, around.net_offsets, in.n_nets, in.n_pins, [&](i64 net, i64 j) {
            const i64 v = around.net_pins[j];
            atomicAdd(in.degrees + v, 1);
            for (i32 c = 0; c < N_DISTINCT; ++c) add64(in.loads + v * N_LOADS + N_ADDITIVE + c, count_of(net, c));
        });
        return;
    }
    const u32 n = static_cast<u32>(in.n_nodes);
    const Sums sums(grid.words + n, n * N_DISTINCT);
#pragma unroll 1
    for (u32 v = threadIdx.x; v < n; v += blockDim.x) {
        grid.words[v] = 0;
        for (i32 c = 0; c < N_DISTINCT; ++c) sums.clear(v * N_DISTINCT + c);
    }
    __syncthreads();
    for_all_items(grid, around.net_offsets, in.n_nets, in.n_pins, [&](i64 net, i64 j) {
        const i32 v = around.net_pins[j];
        atomicAdd(grid.words + v, 1u);
        for (i32 c = 0; c < N_DISTINCT; ++c) sums.add(v * N_DISTINCT + c, count_of(net, c));
    });
    __syncthreads();
#pragma unroll 1
    for (u32 v = threadIdx.x; v < n; v += blockDim.x) {
        if (grid.words[v] == 0) continue;
        atomicAdd(in.degrees + v, static_cast<i32>(grid.words[v]));
        for (i32 c = 0; c < N_DISTINCT; ++c) add64(in.loads + v * N_LOADS + N_ADDITIVE + c, sums.get(v * N_DISTINCT + c));
    }
}

// The bars of all nodes, and the highest ones.
__device__ __forceinline__ void set_bars(const Clustering& in, const Grid& grid) {
    const Incidence& around = in.around;
    u64 most = 0, most_out = 0;
    const auto raise = [](u64& most, u64 other) {
        if (other > most) most = other;
    };
#pragma unroll 1
    for (i64 v = grid.thread(); v < in.n_nodes; v += grid.n_threads()) {
        raise(most, in.bar(v) = bar_of(in.degrees[v], around.max_nets));
        raise(most_out, in.out_bar(v) = bar_of(around.out_offsets[v + 1] - around.out_offsets[v], around.max_nets));
    }
    for (i32 step = 16; step > 0; step >>= 1) {
        raise(most, __shfl_xor_sync(ALL_LANES, most, step));
        raise(most_out, __shfl_xor_sync(ALL_LANES, most_out, step));
    }
    if ((threadIdx.x & 31) != 0) return;
    atomicMax(in.state + MOST_BAR, most);
    atomicMax(in.state + MOST_OUT_BAR, most_out);
}

// Calls visit(v, net, as_source) for the nets that each node looks at.
template <class Visit>
__device__ __forceinline__ void for_all_picks(const Clustering& in, const Grid& grid, Visit visit) {
    const Incidence& around = in.around;
    const auto look_along = [&](const i64* offsets, const i32* nodes, i64 n, bool as_source) {
        const u64 most = in.state[as_source ? MOST_OUT_BAR : MOST_BAR];
        i64 known = -1;
        u64 hash = 0;
        for_all_items(grid, offsets, in.n_nets, n, [&](i64 net, i64 j) {
            if (net != known) hash = scramble(static_cast<u64>(net), static_cast<u64>(around.seed));
            known = net;
            if (hash > most) return;
            const i32 v = nodes[j];
            if (hash <= (as_source ? in.out_bar(v) : in.bar(v)) && (!as_source || pins_of(around, net) > 0)) visit(v, static_cast<i32>(net), as_source);
        });
    };
    look_along(around.net_offsets, around.net_pins, in.n_pins, false);
    look_along(around.source_offsets, around.source_nodes, in.n_sources, true);
}

// How many nets each node looks at, and pins and sources of these; the nets that are to offer something.
__device__ __forceinline__ void count_picks(const Clustering& in, const Grid& grid) {
    const Incidence& around = in.around;
    // A net is listed in all turns, a warp each; one that only a source picks is looked at in one, after others of its.
    const i64 warps = grid.n_threads() >> 5, rounds = larger(2 * in.n_nodes / (in.n_turns * warps), 1);
    const bool sources_ask = smaller(in.n_sources / in.n_nodes, around.max_nets) * rounds * warps > in.n_nets;
    i64 n = 0, total;
    for_all_picks(in, grid, [&](i32 v, i32 net, bool as_source) {
        const i64 pins = smaller(pins_of(around, net), around.max_pins);
        const i64 sources = as_source ? 0 : smaller(sources_of(around, net), around.max_pins);
        atomicAdd(in.n_picks + v, 1);
        add64(in.visits + v, pins + sources);
        if (!as_source || sources_ask) in.asked[net] = 1;
        ++n;
    });
    grid.sum_before(n, total);
    if (threadIdx.x == 0) atomicAdd(in.state + N_PICKED, static_cast<u64>(total));
}

// Room for the picks of each node.
__device__ __forceinline__ void place_picks(const Clustering& in, const Grid& grid) {
    const i64 lane = threadIdx.x & 31;
#pragma unroll 1
    for (i64 base = grid.thread() - lane; base < in.n_nodes; base += grid.n_threads()) {
        const i64 v = base + lane, n = v < in.n_nodes ? in.n_picks[v] : 0, up_to = scan_warp(n);
        i64 first = 0;
        if (lane == 31) first = static_cast<i64>(atomicAdd(in.state + N_PLACED, static_cast<u64>(up_to)));
        first = __shfl_sync(ALL_LANES, first, 31) + up_to - n;
        if (v < in.n_nodes) in.pick_ends[v] = first;
    }
}

// The nets that ratings of each node look at: net where it is a pin, ~(place in its row) where it is a source.
__device__ __forceinline__ void pick_nets(const Clustering& in, const Grid& grid) {
    const Incidence& around = in.around;
    for_all_picks(in, grid, [&](i32 v, i32 net, bool as_source) {
        const i64 first = around.out_offsets[v];
        const i32 item = as_source ? ~static_cast<i32>(lower_bound(around.out_nets, first, around.out_offsets[v + 1], net) - first) : net;
        in.picks[atomicAdd(reinterpret_cast<u64*>(in.pick_ends + v), 1ull)] = item;
    });
}

__device__ __forceinline__ const i32* picks_of(const Clustering& in, i32 v) { return in.picks + in.pick_ends[v] - in.n_picks[v]; }

// The net of a pick of node v, what it offers, and the score of a pin of it.
__device__ __forceinline__ Offer offer_of(const Clustering& in, i32 v, i32 picked, i32& net) {
    const Incidence& around = in.around;
    const i64 out = around.out_offsets[v] + ~picked;
    net = picked >= 0 ? picked : around.out_nets[out];
    Offer offer = in.offers[net];
    if (picked < 0) {
        offer.share = quotient(around.out_weights[out] << 6, pins_of(around, net)) + 1;
        offer.most = offer.share * offer.pins;
        offer.n_sources = 0;
    }
    return offer;
}

// ------------------------------------------------------------------------------------ offers

// Room for what nets offer.
__device__ __forceinline__ void make_offers(const Clustering& in, const Grid& grid) {
    const Incidence& around = in.around;
    const i64 lane = threadIdx.x & 31, begin = (static_cast<i64>(in.state[N_PICKED]) + 3) & ~3ll;
    const bool narrow = in.key_bits() + COUNT_BITS <= 32;
#pragma unroll 1
    for (i64 base = grid.thread() - lane; base < in.n_nets; base += grid.n_threads()) {
        const i64 g = base + lane;
        const bool asked = g < in.n_nets && in.asked[g];
        i64 pins = 0, sources = 0, share = 0;
        if (asked) {
            pins = smaller(pins_of(around, g), around.max_pins);
            sources = smaller(sources_of(around, g), around.max_pins);
            share = quotient(around.net_weights[g] << 6, pins_of(around, g)) + 1;
        }
        const bool offers = asked && narrow && pins <= MOST_OFFERED;
        const i64 words = offers ? 4 * sources + ((pins + 3) & ~3ll) : 0, up_to = scan_warp(words);
        i64 first = 0;
        if (lane == 31) first = static_cast<i64>(atomicAdd(in.state + N_OFFERED, static_cast<u64>(up_to)));
        first = __shfl_sync(ALL_LANES, first, 31) + up_to - words;
        if (g < in.n_nets) in.offers[g] = {offers ? begin + first + 4 * sources : -1, share, 0, 0, 0, 0};
        list_ids(offers, static_cast<i32>(g), in.kept, in.state + N_KEPT);
    }
}

// Whether somebody may join cluster u in a turn: not if it may move itself, or is full.
__device__ __forceinline__ bool is_open(const i32* turns, i32 u, i64 turn) { return turns[u] != turn && turns[u] != FULL; }

// What the nets offer in a turn: a warp each, by a hash table of its clusters in `memory`.
__device__ __forceinline__ void renew_offers(const Clustering& in, const Grid& grid, u32* memory, i64 turn) {
    const Incidence& around = in.around;
    const i32 lane = threadIdx.x & 31, bits = in.key_bits();
    const u32 before = (1u << lane) - 1;
    i32* keys = reinterpret_cast<i32*>(memory);
    u32* counts = memory + 2 * MOST_OFFERED;
    const i64 n_kept = static_cast<i64>(in.state[N_KEPT]);
#pragma unroll 1
    for (i64 k = grid.thread() >> 5; k < n_kept; k += grid.n_threads() >> 5) {
        const i64 g = in.kept[k];
        const i64 n_pins = pins_of(around, g), looked = smaller(n_pins, around.max_pins);
        const i32* pins = around.net_pins + around.net_offsets[g];
        Offer& offer = in.offers[g];
        i32* found = in.picks + offer.keys;
        u32 mask = 31;
        while (mask + 1 < 2 * looked) mask = 2 * mask + 1;
#pragma unroll 1
        for (u32 s = lane; s <= mask; s += 32) {
            keys[s] = EMPTY;
            counts[s] = 0;
        }
        __syncwarp();
#pragma unroll 1
        for (i64 start = 0; start < looked; start += 32 * AT_ONCE) {
            i32 clusters[AT_ONCE];
#pragma unroll
            for (i32 i = 0; i < AT_ONCE; ++i) {
                const i64 l = start + lane + 32 * i;
                clusters[i] = l < looked ? pins[spread(l, n_pins, looked)] : EMPTY;
            }
#pragma unroll
            for (i32 i = 0; i < AT_ONCE; ++i)
                if (clusters[i] != EMPTY) clusters[i] = in.leaders[clusters[i]];
#pragma unroll
            for (i32 i = 0; i < AT_ONCE; ++i)
                if (clusters[i] != EMPTY && !is_open(in.turns, clusters[i], turn)) clusters[i] = EMPTY;
#pragma unroll
            for (i32 i = 0; i < AT_ONCE; ++i)
                if (clusters[i] != EMPTY) atomicAdd(counts + claim(keys, mask, clusters[i]), 1u);
        }
        __syncwarp();
        i32 n = 0;
        u32 most = 0;
#pragma unroll 1
        for (u32 s = lane; s <= mask; s += 32) {
            const u32 some = __ballot_sync(ALL_LANES, keys[s] != EMPTY);
            if (keys[s] != EMPTY) found[n + __popc(some & before)] = static_cast<i32>(static_cast<u32>(keys[s]) | (counts[s] - 1) << bits);
            if (counts[s] > most) most = counts[s];
            n += __popc(some);
        }
        const i64 first = around.source_offsets[g], n_sources = sources_of(around, g), seen = smaller(n_sources, around.max_pins);
        Source* sources = reinterpret_cast<Source*>(found);
        i64 sum = 0;
        i32 m = 0;
#pragma unroll 1
        for (i64 start = 0; start < seen; start += 32) {
            const i64 at = first + spread(smaller(start + lane, seen - 1), n_sources, seen);
            const i32 u = in.leaders[around.source_nodes[at]];
            const bool open = start + lane < seen && is_open(in.turns, u, turn);
            const u32 some = __ballot_sync(ALL_LANES, open);
            const i64 score = quotient(around.source_weights[at] << 6, n_pins) + 1;
            if (open) sources[-1 - m - __popc(some & before)] = {score, u, 0};
            if (open) sum += score;
            m += __popc(some);
        }
        for (i32 step = 16; step > 0; step >>= 1) {
            const u32 other = __shfl_xor_sync(ALL_LANES, most, step);
            if (other > most) most = other;
        }
        sum = sum_warp(sum);
        if (lane != 0) continue;
        offer.n_keys = n;
        offer.n_sources = m;
        offer.pins = most;
        offer.most = offer.share * most + sum;
    }
}

// Calls visit(cluster, share) for the pins of a net that offers nothing, as a warp.
template <class Visit>
__device__ __forceinline__ void visit_pins(const Clustering& in, i64 net, i64 share, Visit visit) {
    const Incidence& around = in.around;
    const i64 n_pins = pins_of(around, net), looked = smaller(n_pins, around.max_pins);
#pragma unroll 1
    for (i64 l = threadIdx.x & 31; l < looked; l += 32)
        visit(in.leaders[around.net_pins[around.net_offsets[net] + spread(l, n_pins, looked)]], share);
}

// Calls visit(cluster, score) for its sources.
template <class Visit>
__device__ __forceinline__ void visit_sources(const Clustering& in, i64 net, Visit visit) {
    const Incidence& around = in.around;
    const i64 n_pins = pins_of(around, net), n_sources = sources_of(around, net), seen = smaller(n_sources, around.max_pins);
#pragma unroll 1
    for (i64 l = threadIdx.x & 31; l < seen; l += 32) {
        const i64 at = around.source_offsets[net] + spread(l, n_sources, seen);
        visit(in.leaders[around.source_nodes[at]], quotient(around.source_weights[at] << 6, n_pins) + 1);
    }
}

#endif
