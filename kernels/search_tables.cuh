// Tables of a partition of a small level: asked for moves, kept true. Written into search.cu, after search_fill.cuh.
#ifndef SNNMAP_SEARCH_TABLES_CUH
#define SNNMAP_SEARCH_TABLES_CUH

// ------------------------------------------------------------------------------------ asking

// What is known of a node that may move.
struct Mover {
    i32 v, a;
    i64 leaves;  // what it gains by leaving
    i64 least;   // what it must find in a part worth a look
    i64 brings[N_LOADS];
};

__device__ __forceinline__ Mover mover_of(const Graph& g, const Scratch& s, const Table& t, i32 v) {
    Mover m;
    m.v = v;
    m.a = t.parts[v];
    i64 relief = 0;
    for (i32 r = 0; r < N_LOADS; ++r) {
        const bool additive = r < N_ADDITIVE;
        const i32 d = additive ? 0 : r - N_ADDITIVE;
        m.brings[r] = additive ? g.resources[v * N_ADDITIVE + r] : g.brought[v * N_DISTINCT + d];
        const i64 takes = additive ? m.brings[r] : s.freed[v * N_DISTINCT + d];
        const i64 over = t.loads[m.a * N_LOADS + r] - t.limits[r];
        if (over > 0) relief += t.prices[r] * smaller(over, takes);
    }
    m.leaves = relief - s.stays[v] - s.gains[v * t.n_parts + m.a];
    m.least = relief == 0;
    return m;
}

// What it gains in part p, where it finds so much, or NONE if it may not go there.
__device__ __forceinline__ i64 value_of(const Scratch& s, const Table& t, const Mover& m, i32 p, i64 found) {
    if (found < m.least || p == m.a) return NONE;
    bool fits = true;
    for (i32 r = 0; r < N_LOADS; ++r) {
        i64 added = m.brings[r], over = t.loads[p * N_LOADS + r] + added - t.limits[r];
        if (over <= 0) continue;
        if (r >= N_ADDITIVE) {  // some of it may be there already
            const i64 covered = s.covered[(m.v * t.n_parts + p) * N_DISTINCT + r - N_ADDITIVE];
            added -= covered;
            over -= covered;
            if (over <= 0) continue;
        }
        fits &= t.prices[r] > 0 && over <= t.limits[r] >> 2;
        found -= t.prices[r] * smaller(over, added);
    }
    return fits ? found : NONE;
}

__device__ __forceinline__ i64 key_of(i64 gain, i32 v) {
    const i64 largest = 1ll << 48, clipped = smaller(larger(gain, -largest), largest);
    return clipped * (1 << ID_BITS) + ((1 << ID_BITS) - 1 - v);
}
__device__ __forceinline__ i64 gain_of(i64 key) { return key >> ID_BITS; }
__device__ __forceinline__ i32 node_of(i64 key) { return (1 << ID_BITS) - 1 - static_cast<i32>(key & ((1 << ID_BITS) - 1)); }

// Parts where node v gains the same: the larger one is better. It is another for each part.
__device__ __forceinline__ u64 tie_of(u64 seed, i32 v, i32 p) {
    return scramble(static_cast<u64>(static_cast<i64>(p) * 1000003 + v), seed);
}

// Of the parts from 32 * `first` on, those that are near to node v, or those that are not, and whose number leaves `rank`
// by `width`: a bit b for part 32 * (first + b % width) + (b - b % width) + rank. `all_near`: all parts count as near.
__device__ __forceinline__ u32 candidates_of(const Table& t, i32 v, i32 first, bool near, bool all_near, i32 rank, i32 width) {
    const i32 words = words_of(t.n_parts), end = first + width < words ? first + width : words;
    const u32 each = width == 32 ? 1 : width == 16 ? 0x00010001u : width == 8 ? 0x01010101u : 0x11111111u;
    u32 bits = 0;
    #pragma unroll 1
    for (i32 i = first; i < end; ++i) {
        const u32 all = i + 1 < words ? ALL_LANES : ALL_LANES >> (32 * words - t.n_parts), its = all_near ? all : t.near[v * words + i];
        bits |= ((near ? its : all & ~its) >> rank & each) << (i - first);
    }
    return bits;
}

// Looks for the best move of node v: sets its wish and its key, and puts it on a list of players if it gains. By `width`
// lanes; v = -1: nothing to do. All lanes of a warp come together. First the near parts, then, where leaving is a relief and nothing found outweighs a part where there is
// room, all others. Maximum of (gain, hash).
__device__ __forceinline__ void look_at(const Graph& g, const Scratch& s, const Table& t, i32 v, i32 width, u16* players,
                                        u32* n_players) {
    const i32 rank = lane_index() & (width - 1), k = t.n_parts;
    const u32 group = lanes_of_group(width);
    Mover m = {};
    i64 most = NONE;
    i32 best = -1;
    const bool all_near = !t.has_near || k <= 2 * width;  // who has two at most looks at them at once
    bool wanted = v >= 0;
    #pragma unroll 1
    for (i32 round = 0; round < 2 && __ballot_sync(ALL_LANES, wanted) != 0; ++round) {
        i32 next_p = -1, first = -width;
        i64 next = 0;  // on its way while one is weighed, and the first one while the node is looked at
        u32 left = 0;
        #pragma unroll 1
        for (bool more = wanted; more; more = next_p >= 0) {
            const i32 p = next_p;
            const i64 found = next;
            #pragma unroll 1
            while (left == 0 && 32 * (first + width) < k) left = candidates_of(t, v, first += width, round == 0, all_near, rank, width);
            const i32 bit = __ffs(left) - 1, word = bit & (width - 1);
            next_p = left == 0 ? -1 : 32 * (first + word) + (bit - word) + rank;
            next = next_p < 0 || round > 0 ? 0 : s.gains[v * k + next_p];
            left &= left - 1;
            if (p < 0 && round == 0) m = mover_of(g, s, t, v);
            if (p < 0) continue;
            const i64 value = value_of(s, t, m, p, found);
            if (value < most || value == NONE || (value == most && tie_of(t.seed, v, p) < tie_of(t.seed, v, best))) continue;
            most = value;
            best = p;
        }
        const i64 own = most;
        #pragma unroll 1
        for (i32 step = width >> 1; step > 0; step >>= 1) most = larger(most, __shfl_xor_sync(ALL_LANES, most, step));
        u32 ties = __ballot_sync(ALL_LANES, own == most) & group;
        if (__ballot_sync(ALL_LANES, most != NONE && __popc(ties) > 1) != 0) {
            const u64 tie = own == most && most != NONE ? tie_of(t.seed, v, best) : 0;
            u64 top = tie;
            #pragma unroll 1
            for (i32 step = width >> 1; step > 0; step >>= 1) {
                const u64 other = __shfl_xor_sync(ALL_LANES, top, step);
                top = other > top ? other : top;
            }
            ties = __ballot_sync(ALL_LANES, own == most && tie == top) & group;
        }
        best = __shfl_sync(ALL_LANES, best, __ffs(ties) - 1);
        wanted = wanted && m.least == 0 && most <= 0 && !all_near;
    }
    bool fresh = false;
    if (rank == 0 && v >= 0) {
        const i64 key = best < 0 ? NONE : key_of(most + m.leaves, v);
        const u32 bit = 1u << (v & 31);
        t.wishes[v] = best;
        t.keys[v] = key;
        fresh = key > LEAST_GAIN && !(atomicOr(t.listed + (v >> 5), bit) & bit);
    }
    if (__ballot_sync(ALL_LANES, fresh) == 0) return;
    const i32 place = place_in(n_players, fresh);
    if (fresh) players[place] = static_cast<u16>(v);
}

// What the move of node v to part p gains now, as keys count it, or NONE.
__device__ __forceinline__ i64 look_again(const Graph& g, const Scratch& s, const Table& t, i32 v, i32 p) {
    const i64 found = s.gains[v * t.n_parts + p];
    const Mover m = mover_of(g, s, t, v);
    const i64 value = value_of(s, t, m, p, found);
    return value == NONE ? NONE : gain_of(key_of(value + m.leaves, v));
}

// ------------------------------------------------------------------------------------ moving

// Nets of a node: those that it is a pin of, then those that it is only a source of.
struct Nets {
    i32 first, n_pinned, first_out, n;
};

__device__ __forceinline__ Nets nets_of(const Graph& g, i32 v) {
    const i32 first = g.node_offsets[v], n_pinned = g.node_offsets[v + 1] - first, first_out = g.out_offsets[v];
    return {first, n_pinned, first_out, n_pinned + g.out_offsets[v + 1] - first_out};
}

// Number j of them, 0 if there are not so many.
__device__ __forceinline__ i32 net_at(const Graph& g, const Nets& nets, i32 j) {
    if (j < nets.n_pinned) return g.node_nets[nets.first + j];
    return j < nets.n ? g.out_nets[nets.first_out + j - nets.n_pinned] : 0;
}

// Node v is in part b instead of a, with its own loads. By one lane of a warp.
__device__ __forceinline__ void put_in(const Graph& g, const Table& t, i32 v, i32 a, i32 b) {
    if (lane_index() != 0) return;
    for (i32 r = 0; r < N_ADDITIVE; ++r) {
        const i64 amount = g.resources[v * N_ADDITIVE + r];
        t.loads[a * N_LOADS + r] -= amount;
        t.loads[b * N_LOADS + r] += amount;
    }
    t.parts[v] = b;
}

// Moves node v from part a to b, keeps the pins and the loads true, and marks the nets that may change what
// others find; by a whole warp, a net each lane: `net` is the first of this one. Other moves at the same time concern other
// parts. Calls note(), which only notes the move, while the pins are on their way.
template <class Note>
__device__ __forceinline__ void move_node(const Fine& f, const Graph& g, const Scratch& s, const Table& t, i32 v, i32 a, i32 b,
                                          const Nets& nets, i32 net, Marked& marked, Note note) {
    const i32 lane = lane_index(), k = t.n_parts;
    #pragma unroll 1
    for (i32 base = 0; base == 0 || base < nets.n; base += 32) {
        const i32 j = base + lane;
        const bool is_here = j < nets.n, is_pin = j < nets.n_pinned;
        if (base > 0) net = net_at(g, nets, j);
        u16* row = s.pins + net * k;
        const i32 were = is_here ? row[a] : 0, are = is_here ? row[b] : 0;
        const Reach reach = is_here ? reach_of(f, g, net) : Reach{0, 0, 0, 0};
        i64 counts[N_DISTINCT + 1];
        for (i32 d = 0; d < N_DISTINCT; ++d) counts[d] = is_pin ? f.counts[net * N_DISTINCT + d] : 0;
        const bool tells = is_pin || (is_here && g.out_gains[nets.first_out + j - nets.n_pinned] >= 0);
        if (base == 0) note();
        if (is_pin) {
            row[a] = static_cast<u16>(were - 1);
            row[b] = static_cast<u16>(are + 1);
            for (i32 d = 0; d < N_DISTINCT; ++d) {
                if (were == 1) add_shared(t.loads + a * N_LOADS + N_ADDITIVE + d, -counts[d]);
                if (are == 0) add_shared(t.loads + b * N_LOADS + N_ADDITIVE + d, counts[d]);
            }
        }
        const bool counts_for_others = tells && (are <= 1 || were <= (is_pin ? 2 : 1));
        const i32 at = place_in(&marked.n, counts_for_others);
        if (!counts_for_others) continue;
        const Mark mark = {net, 2 * v + (is_pin ? 0 : 1), a, b};
        if (reach.n_pins + reach.n_sources > SHORT_NET) marked.n_long = 1;
        if (at < NEAR_MARKS) {
            t.marks[at] = mark;
            t.reaches[at] = reach;
        } else {
            s.marks[at] = mark;
        }
    }
}

// Puts a node on the list of those to look at, unless it is there or has moved.
__device__ __forceinline__ void enqueue(const Scratch& s, const Table& t, i32 v, i32 turn, bool wanted, u32* length) {
    wanted = wanted && atomicMax(t.seen + (wanted ? v : 0), turn) < turn;
    const i32 place = place_in(length, wanted);
    if (wanted) t.queue[place] = static_cast<u16>(v);
}

// Keeps true what the nodes of a marked net find, now that all moves of the turn are made, and puts them on the list
// of those to look at if `turn` is one. By `width` lanes, its pins and sources each; all lanes of a warp come
// together, with net = -1 for nothing.
__device__ __forceinline__ void spread_mark(const Fine& f, const Graph& g, const Scratch& s, const Table& t, Mark mark, Reach reach,
                                            i32 turn, u32* n_queued, i32 width) {
    const i32 rank = lane_index() & (width - 1), net = mark.net, v = mark.mover >> 1, a = mark.from, b = mark.to;
    const u32 group = lanes_of_group(width);
    const i32 k = t.n_parts;
    const bool is_pin = (mark.mover & 1) == 0;
    const i32 first = reach.first, n_pins = reach.n_pins, first_source = reach.first_source, n_sources = reach.n_sources;
    i32 in_a = 2, in_b = 3;
    i64 weight = 0;
    if (net >= 0) {
        in_a = s.pins[net * k + a];
        in_b = s.pins[net * k + b];
        weight = f.net_weights[net];
    }
    i64 wait_a = 0, wait_b = 0, own = 0;  // weight of the sources in the two parts but v, and of v
    #pragma unroll 1
    for (i32 base = 0; __ballot_sync(ALL_LANES, base < n_sources) != 0; base += width) {
        const i32 i = first_source + base + rank, from = base + rank < n_sources ? g.source_nodes[i] : -1;
        const i64 value = from < 0 ? 0 : g.source_weights[i];
        const i32 there = from < 0 ? -1 : t.parts[from];
        u32 counting = __ballot_sync(ALL_LANES, from >= 0 && (from == v || there == a || there == b)) & group;
        #pragma unroll 1
        for (; __ballot_sync(ALL_LANES, counting != 0) != 0; counting &= counting - 1) {
            const i32 one = counting == 0 ? 0 : __ffs(counting) - 1;
            const i32 who = __shfl_sync(ALL_LANES, from, one), where = __shfl_sync(ALL_LANES, there, one);
            const i64 its = __shfl_sync(ALL_LANES, value, one), added = counting == 0 ? 0 : its;
            if (who == v)
                own += added;
            else if (where == a)
                wait_a += added;
            else
                wait_b += added;
        }
    }
    const bool left = is_pin && in_a == 0, came = is_pin && in_b == 1;
    const i64 more_a = left ? wait_a - weight : (!is_pin && in_a == 0 ? -own : 0);
    const i64 more_b = came ? weight - wait_b : (!is_pin && in_b == 0 ? own : 0);
    const bool tell = turn >= 0 && (is_pin || in_a == 0 || in_b == 0);
    const i32 n = n_pins + (left || came ? n_sources : 0);
    #pragma unroll 1
    for (i32 base = 0; __ballot_sync(ALL_LANES, base < n) != 0; base += width) {
        const i32 j = base + rank;
        i32 u = j < n_pins ? g.net_pins[first + j] : -1;
        const i32 p = u < 0 ? -1 : t.parts[u];
        const bool last = is_pin && u != v && p == a && in_a == 1, no_more = is_pin && u != v && p == b && in_b == 2;  // the only one
        i64 its = 0;  // weight that u is a source with itself
        #pragma unroll 1
        for (i32 i = first_source; (last || no_more) && i < first_source + n_sources; ++i)
            if (g.source_nodes[i] == u) its = g.source_weights[i];
        if (j < n_pins) {
            if (more_a != 0) add64(s.gains + u * k + a, more_a);
            if (came || more_b != 0) find_more(s, t, u, b, more_b);
            i64 stays = 0;
            const i32 alone = u == v && is_pin ? (came ? 1 : 0) - (left ? 1 : 0) : (last ? 1 : 0) - (no_more ? 1 : 0);  // nets with it only
            if (!is_pin) {
                if (p == a && in_a == 1) stays = -own;
                if (p == b && in_b == 1) stays = own;
            } else if (u == v) {
                stays = (came ? wait_b - weight : 0) - (left ? wait_a - weight : 0);
            } else if (last) {
                stays = wait_a - its - weight;
            } else if (no_more) {
                stays = weight - (wait_b - its);
            }
            if (stays != 0) add64(s.stays + u, stays);
            for (i32 d = 0; d < N_DISTINCT; ++d) {
                const i32 count = static_cast<i32>(f.counts[net * N_DISTINCT + d]);
                if (alone != 0) atomicAdd(s.freed + u * N_DISTINCT + d, alone * count);
                if (left) atomicAdd(s.covered + (u * k + a) * N_DISTINCT + d, -count);
                if (came) atomicAdd(s.covered + (u * k + b) * N_DISTINCT + d, count);
            }
        } else if (j < n) {
            u = g.source_nodes[first_source + j - n_pins];
            const i64 its = u < 0 ? 0 : larger(g.source_gains[first_source + j - n_pins], 0);
            if (left && its != 0) add64(s.gains + u * k + a, -its);
            if (came && its != 0) find_more(s, t, u, b, its);
        }
        enqueue(s, t, u, turn, tell && u >= 0, n_queued);
    }
}

// All marks: a warp each, or, where they are many, half a warp or a team each, but a warp those of long nets.
__device__ __forceinline__ void spread_marks(const Fine& f, const Graph& g, const Scratch& s, const Table& t, const Marked& marked, i32 turn,
                                             u32* n_queued) {
    const i32 n = static_cast<i32>(marked.n), few = n <= n_warps() ? 5 : n <= 2 * n_warps() ? 4 : 3;
    #pragma unroll 1
    for (i32 shift = few; shift <= 5; shift += shift == 5 || marked.n_long == 0 ? 5 : 5 - shift) {
        const i32 n_groups = blockDim.x >> shift;
        #pragma unroll 1
        for (i32 base = 0; base < n; base += n_groups) {
            const i32 i = base + (threadIdx.x >> shift);
            Mark mark = {-1, 0, 0, 0};
            Reach reach = {0, 0, 0, 0};
            if (i < n) {
                mark = i < NEAR_MARKS ? t.marks[i] : s.marks[i];
                reach = i < NEAR_MARKS ? t.reaches[i] : reach_of(f, g, mark.net);
            }
            const bool is_long = reach.n_pins + reach.n_sources > SHORT_NET;
            if (few < 5 && is_long != (shift == 5)) {  // another time
                mark.net = -1;
                reach = {0, 0, 0, 0};
            }
            if (__ballot_sync(ALL_LANES, mark.net >= 0) != 0) spread_mark(f, g, s, t, mark, reach, turn, n_queued, 1 << shift);
        }
    }
}

#endif
