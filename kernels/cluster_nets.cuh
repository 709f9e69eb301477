// Clustering: what is known of it; the nets that each node looks at, and the clusters that each such net offers.
#ifndef SNNMAP_CLUSTER_NETS_CUH
#define SNNMAP_CLUSTER_NETS_CUH

typedef unsigned char u8;

// What a net that somebody looks at offers in a turn: the clusters of its pins and, before them, its sources, those that
// somebody may join. Where the picks leave no room for it, it offers nothing, and its pins are looked at themselves.
struct Offer {
    i64 keys;   // where the clusters lie in `picks`; -1: no room
    i64 share;  // score of a pin: (weight << 6) / pins + 1
    i32 n_keys, n_sources;
};

// A source with its score; the k-th lies k + 1 of these before the keys.
struct alignas(16) Source {
    i64 score;
    i32 key, unused;
};

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
    u8* asked;       // whether somebody looks at a net
    // anything at the start
    i32* picks;  // nets that ratings look at, then what these nets offer
    Offer* offers;
    i64 *loads, *visits, *first_picks;
    i64* ends;  // where the suitors of each cluster end that are brought together so far
    i64 *totals, *scores;
    i32 *n_picks, *turns, *targets, *suitors, *leaders;
    i32* lists;   // [kind, turn, node]: nodes of a turn by who rates them
    i32* wanted;  // clusters with suitors; from n_nodes on, those with more than a warp sorts
    i32* kept;    // nets that offer something
    i32* clusters;
};

// Who rates a node: a warp or a team; a block where those have no room.
enum Kind { SHORT, MEDIUM, N_KINDS };

// Words of `state` after the gate: from N_LISTED on the lengths of lists for each turn, then for each turn
// how many suitors there are, and how many clusters of either sort they want. SMALLNESS: the largest ~size.
enum Counter { TOTAL_SIZE = GATE_WORDS, LARGEST, N_CLUSTERS, SMALLNESS, N_PICKED, N_OFFERED, N_KEPT, N_APART, N_LISTED };

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

// How many nets node v is a pin or a source of.
__device__ __forceinline__ i64 nets_of(const Incidence& around, i64 v) {
    return around.node_offsets[v + 1] - around.node_offsets[v] + around.out_offsets[v + 1] - around.out_offsets[v];
}

// The nets that ratings of node v look at: net where it is a pin, ~(place in its row) where it is a source. And what all
// nets of which it is a pin put on a part. By a group; reads the node's rows once, and again what lies beyond 64 nets a thread.
template <class G>
__device__ __forceinline__ void pick_nets(const Clustering& in, i64 v, G group, i64* scratch) {
    const Incidence& around = in.around;
    const i32 *nets = around.node_nets + around.node_offsets[v], *outs = around.out_nets + around.out_offsets[v];
    const i64 n = around.node_offsets[v + 1] - around.node_offsets[v], n_outs = around.out_offsets[v + 1] - around.out_offsets[v];
    const u64 bar = bar_of(n, around.max_nets), bar_out = bar_of(n_outs, around.max_nets);
    const auto looks = [&](i32 net) { return looked_at(net, bar, around.seed); };
    const auto looks_out = [&](i32 net) { return looked_at(net, bar_out, around.seed) && pins_of(around, net) > 0; };
    const auto known = [](u64 seen, i32 step, i32 net, auto look) { return step < 64 ? (seen >> step & 1) != 0 : look(net); };
    u64 seen = 0, seen_out = 0, sums[N_DISTINCT + 1] = {};
    i64 n_own = 0, n_all, visits = 0;
    i32 step = 0;
#pragma unroll 2
    for (i64 j = group.rank(); j < n; j += group.size(), ++step) {
        const bool look = looks(nets[j]);
        for (i32 c = 0; c < N_DISTINCT; ++c) sums[c] += static_cast<u64>(in.counts[static_cast<i64>(nets[j]) * N_DISTINCT + c]);
        n_own += look;
        if (step < 64) seen |= static_cast<u64>(look) << step;
    }
    step = 0;
#pragma unroll 1
    for (i64 j = group.rank(); j < n_outs; j += group.size(), ++step) {
        const bool look = looks_out(outs[j]);
        n_own += look;
        if (step < 64) seen_out |= static_cast<u64>(look) << step;
    }
    const i64 up_to = scan(group, n_own, n_all, scratch);
    i64 first = 0;
    if (group.rank() == 0) first = static_cast<i64>(atomicAdd(in.state + N_PICKED, static_cast<u64>(n_all)));
    first = value_of_first(group, first, scratch);
    i32* picks = in.picks + first + up_to - n_own;
    const auto pick = [&](i32 item, i64 net) {
        *picks++ = item;
        in.asked[net] = 1;
        visits += smaller(pins_of(around, net), around.max_pins);
        if (item >= 0) visits += smaller(sources_of(around, net), around.max_pins);
    };
    step = 0;
#pragma unroll 1
    for (i64 j = group.rank(); j < n && n_own > 0; j += group.size(), ++step)
        if (known(seen, step, nets[j], looks)) pick(nets[j], nets[j]);
    step = 0;
#pragma unroll 1
    for (i64 j = group.rank(); j < n_outs && n_own > 0; j += group.size(), ++step)
        if (known(seen_out, step, outs[j], looks_out)) pick(~static_cast<i32>(j), outs[j]);
    visits = sum_of(group, visits, scratch);
    for (i32 c = 0; c < N_DISTINCT; ++c) sums[c] = static_cast<u64>(sum_of(group, static_cast<i64>(sums[c]), scratch));
    if (group.rank() != 0) return;
    for (i32 c = 0; c < N_DISTINCT; ++c) in.loads[v * N_LOADS + N_ADDITIVE + c] = static_cast<i64>(sums[c]);
    in.first_picks[v] = first;
    in.n_picks[v] = static_cast<i32>(n_all);
    in.visits[v] = visits;
}

// The picks of all nodes: a warp each, or a block for long rows; a block has a share of the nodes.
__device__ __forceinline__ void pick_all(const Clustering& in, const Grid& grid) {
    i64 first, last;
    grid.share(in.n_nodes, first, last);
    u32* n_long = reinterpret_cast<u32*>(grid.scratch + SCRATCH_WORDS - 1);
    if (threadIdx.x == 0) *n_long = 0;
    __syncthreads();
#pragma unroll 1
    for (i64 v = first + (threadIdx.x >> 5); v < last; v += blockDim.x >> 5) {
        if (nets_of(in.around, v) <= SHORT_ROW)
            pick_nets(in, v, Warp(), grid.scratch);
        else if ((threadIdx.x & 31) == 0)
            in.wanted[first + atomicAdd(n_long, 1u)] = static_cast<i32>(v);
    }
    __syncthreads();
    const i64 n = *n_long;
#pragma unroll 1
    for (i64 i = 0; i < n; ++i) pick_nets(in, in.wanted[first + i], Team::of_block(), grid.scratch);
}

// ------------------------------------------------------------------------------------ offers

// Room for what the nets offer that somebody looks at.
__device__ __forceinline__ void make_offers(const Clustering& in, const Grid& grid) {
    const Incidence& around = in.around;
    const i64 lane = threadIdx.x & 31, begin = (static_cast<i64>(in.state[N_PICKED]) + 3) & ~3ll;
    const i64 room = in.n_pins + in.n_sources - begin;
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
        const i64 words = 4 * sources + ((pins + 3) & ~3ll), up_to = scan_warp(words);
        i64 first = 0;
        if (lane == 31) first = static_cast<i64>(atomicAdd(in.state + N_OFFERED, static_cast<u64>(up_to)));
        first = __shfl_sync(ALL_LANES, first, 31) + up_to - words;
        const bool fits = first + words <= room;
        if (asked) in.offers[g] = {fits ? begin + first + 4 * sources : -1, share, 0, 0};
        list_ids(asked && fits, static_cast<i32>(g), in.kept, in.state + N_KEPT);
        if (asked && !fits) atomicAdd(in.state + N_APART, 1ull);
    }
}

// What the nets offer in a turn: a warp each. Nobody joins who may move in this turn, or is full.
__device__ __forceinline__ void renew_offers(const Clustering& in, const Grid& grid, i64 turn) {
    const Incidence& around = in.around;
    const i32 lane = threadIdx.x & 31;
    const u32 before = (1u << lane) - 1;
    const auto is_open = [&](i32 u) {
        const i32 own = in.turns[u];
        return own != turn && own != FULL;
    };
    const i64 n_kept = static_cast<i64>(in.state[N_KEPT]);
#pragma unroll 1
    for (i64 k = grid.thread() >> 5; k < n_kept; k += grid.n_threads() >> 5) {
        const i64 g = in.kept[k], place = in.offers[g].keys;
        const i64 n_pins = pins_of(around, g), looked = smaller(n_pins, around.max_pins);
        const i32* pins = around.net_pins + around.net_offsets[g];
        i32* found = in.picks + place;
        i32 n = 0;
#pragma unroll 1
        for (i64 start = 0; start < looked; start += 32 * AT_ONCE) {
            i32 keys[AT_ONCE];
            bool open[AT_ONCE];
#pragma unroll
            for (i32 i = 0; i < AT_ONCE; ++i) {
                const i64 l = start + lane + 32 * i;
                keys[i] = l < looked ? pins[spread(l, n_pins, looked)] : EMPTY;
            }
#pragma unroll
            for (i32 i = 0; i < AT_ONCE; ++i)
                if (keys[i] != EMPTY) keys[i] = in.leaders[keys[i]];
#pragma unroll
            for (i32 i = 0; i < AT_ONCE; ++i) open[i] = keys[i] != EMPTY && is_open(keys[i]);
#pragma unroll
            for (i32 i = 0; i < AT_ONCE; ++i) {
                const u32 some = __ballot_sync(ALL_LANES, open[i]);
                if (open[i]) found[n + __popc(some & before)] = keys[i];
                n += __popc(some);
            }
        }
        const i64 first = around.source_offsets[g], n_sources = sources_of(around, g), seen = smaller(n_sources, around.max_pins);
        Source* sources = reinterpret_cast<Source*>(found);
        i32 m = 0;
#pragma unroll 1
        for (i64 start = 0; start < seen; start += 32) {
            const i64 at = first + spread(smaller(start + lane, seen - 1), n_sources, seen);
            const i32 u = in.leaders[around.source_nodes[at]];
            const bool open = start + lane < seen && is_open(u);
            const u32 some = __ballot_sync(ALL_LANES, open);
            if (open) sources[-1 - m - __popc(some & before)] = {quotient(around.source_weights[at] << 6, n_pins) + 1, u, 0};
            m += __popc(some);
        }
        if (lane != 0) continue;
        in.offers[g].n_keys = n;
        in.offers[g].n_sources = m;
    }
}

// Calls visit.all(clusters, score) and visit.one(cluster, score) for what the picked nets offer node v. Parallel over
// picks, a lane each, which looks up the net, and what they offer: a warp a net, or fewer lanes where nets are short;
// then over picks and their sources, a lane each. The order of the calls varies.
template <class G, class Visit>
__device__ __forceinline__ void visit_offers(const Clustering& in, i32 v, i64 visits, G group, const Visit& visit) {
    const Incidence& around = in.around;
    const i32* picks = in.picks + in.first_picks[v];
    const i32 n = in.n_picks[v], lanes = visits < 24ll * n ? 8 : visits < 64ll * n ? 16 : 32, lane = group.rank() & (lanes - 1);
    const i32 teams = group.size() / lanes, first_lane = threadIdx.x & 31 & ~(lanes - 1);
#pragma unroll 1
    for (i32 base = 0; base < n; base += teams * lanes) {
        const i32 own = base + group.rank() / lanes + lane * teams;  // what this lane looks up for the others
        Offer offer = {0, 0, 0, 0};
        if (own < n) {
            const i32 picked = picks[own];
            const i64 out = around.out_offsets[v] + ~picked;
            const i32 g = picked >= 0 ? picked : around.out_nets[out];
            offer = in.offers[g];
            if (picked < 0) {
                offer.share = quotient(around.out_weights[out] << 6, pins_of(around, g)) + 1;
                offer.n_sources = 0;
            }
        }
        const i32 most = static_cast<i32>(smaller(lanes, (n - base + teams - 1) / teams));
#pragma unroll 1
        for (i32 j = 0; j < most; ++j) {
            const i32 n_keys = __shfl_sync(ALL_LANES, offer.n_keys, first_lane + j);
            const i32* offered = in.picks + __shfl_sync(ALL_LANES, offer.keys, first_lane + j);
            const i64 score = __shfl_sync(ALL_LANES, offer.share, first_lane + j);
#pragma unroll 1
            for (i32 start = lane; start < n_keys; start += lanes * AT_ONCE) {
                i32 keys[AT_ONCE];
#pragma unroll
                for (i32 i = 0; i < AT_ONCE; ++i) {
                    const i32 l = start + lanes * i;
                    keys[i] = l < n_keys ? offered[l] : EMPTY;
                }
                visit.all(keys, score);
            }
        }
        const Source* sources = reinterpret_cast<const Source*>(in.picks + offer.keys);
#pragma unroll 1
        for (i32 l = 0; l < offer.n_sources; ++l) visit.one(sources[-1 - l].key, sources[-1 - l].score);
    }
}

// The same for picked nets without room for what they offer: a warp each.
template <class G, class Visit>
__device__ __forceinline__ void visit_apart(const Clustering& in, i32 v, G group, const Visit& visit) {
    const Incidence& around = in.around;
    const i32* picks = in.picks + in.first_picks[v];
    const i32 lane = threadIdx.x & 31;
#pragma unroll 1
    for (i32 k = group.rank() >> 5; k < in.n_picks[v]; k += group.size() >> 5) {
        const i64 out = around.out_offsets[v] + ~picks[k];
        const i64 g = picks[k] >= 0 ? picks[k] : around.out_nets[out];
        if (in.offers[g].keys >= 0) continue;
        const i64 n_pins = pins_of(around, g), looked = smaller(n_pins, around.max_pins);
        const i64 score = picks[k] >= 0 ? in.offers[g].share : quotient(around.out_weights[out] << 6, n_pins) + 1;
#pragma unroll 1
        for (i64 l = lane; l < looked; l += 32)
            visit.one(in.leaders[around.net_pins[around.net_offsets[g] + spread(l, n_pins, looked)]], score);
        const i64 n_sources = sources_of(around, g), seen = picks[k] >= 0 ? smaller(n_sources, around.max_pins) : 0;
#pragma unroll 1
        for (i64 l = lane; l < seen; l += 32) {
            const i64 at = around.source_offsets[g] + spread(l, n_sources, seen);
            visit.one(in.leaders[around.source_nodes[at]], quotient(around.source_weights[at] << 6, n_pins) + 1);
        }
    }
}

#endif
