// Clustering: the best cluster around a node.
#ifndef SNNMAP_CLUSTER_RATING_CUH
#define SNNMAP_CLUSTER_RATING_CUH

const i64 WIDE_VISITS = 2400;        // from so many on a node may find more clusters than a warp's table holds
const i32 FLAG = SCRATCH_WORDS - 1;  // word of the scratch: whether the block's table is full, then the nodes left to the block

// How many clusters node v finds at most.
__device__ __forceinline__ i64 most_found(const Clustering& in, i32 v) { return smaller(in.visits[v], in.n_nodes); }

// Whether cluster u can take node v.
__device__ __forceinline__ bool can_join(const Clustering& in, i32 v, i32 u, i64 turn, i64 cap) {
    if (in.turns[u] == turn) return false;
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

// ------------------------------------------------------------------------------------ by a warp

// What the picked nets offer node v, into a table; whether it has room. A lane looks up a net for all.
__device__ __forceinline__ bool gather(const Clustering& in, i32 v, const TablePlace& place, i64 turn) {
    const Incidence& around = in.around;
    const WarpTable table = place.table();
    const i32 lane = threadIdx.x & 31, n = in.n_picks[v];
    const i32* picks = picks_of(in, v);
    i64 most = 0;
#pragma unroll 1
    for (i32 base = 0; base < n; base += 32) {
        const i32 some = n - base < 32 ? n - base : 32;
        Offer offer = {0, 0, 0, 0, 0, 0};
        i32 picked = 0, net = 0;
        if (lane < some) {
            picked = picks[base + lane];
            offer = offer_of(in, v, picked, net);
            most += offer.most;
        }
        if (!add_offers(place, in.picks, static_cast<u32>(v), some, offer.keys, offer.n_keys, static_cast<u64>(offer.share))) return false;
        bool room = true;
        const auto add_source = [&](i32 u, i64 score) {
            most += score;
            if (u != v && room) room = table.add_any(static_cast<u32>(u), static_cast<u64>(score));
        };
        const Source* sources = reinterpret_cast<const Source*>(in.picks + offer.keys);
#pragma unroll 1
        for (i32 l = 0; l < offer.n_sources; ++l) add_source(sources[-1 - l].key, sources[-1 - l].score);
        __syncwarp();
#pragma unroll 1
        for (u32 apart = __ballot_sync(ALL_LANES, offer.keys < 0); apart != 0; apart &= apart - 1) {
            const i32 j = __ffs(apart) - 1;
            const i64 g = __shfl_sync(ALL_LANES, net, j), share = __shfl_sync(ALL_LANES, offer.share, j);
            const i64 n_pins = pins_of(around, g), looked = smaller(n_pins, around.max_pins);
            most += share * ((looked + 31) / 32);  // of 32 lanes
            room &= add_pins(place, around.net_pins + around.net_offsets[g], n_pins, looked, in.leaders, in.turns, turn, v, static_cast<u64>(share));
            if (__shfl_sync(ALL_LANES, picked, j) >= 0) visit_sources(in, g, add_source);
            __syncwarp();
        }
        if (__ballot_sync(ALL_LANES, !room) != 0) return false;
    }
    __syncwarp();
    // Scores have to fit the high bits.
    return __ballot_sync(ALL_LANES, most < 0 || most >= 1ll << (58 - place.bits)) == 0;
}

// The best cluster in this lane's slots of a table, as far as nobody has dropped it.
__device__ __forceinline__ Best best_word(const Clustering& in, const WarpTable& table) {
    Best best = {0, 0, -1, 0};
    bool tied = false;
#pragma unroll 2
    for (u32 s = threadIdx.x & 31; s < table.n_slots; s += 32) {
        const u64 word = table.words[s];
        const i64 score = static_cast<i64>(word >> table.bits);
        tied |= score == best.value && score != 0;
        if (score <= best.value) continue;
        best = {score, 0, static_cast<i32>(table.key_of(word)), s};
        tied = false;
    }
    if (best.id >= 0) best.tie = tie_of(in, best.id);
#pragma unroll 1
    for (u32 s = threadIdx.x & 31; tied && s < table.n_slots; s += 32) {
        const u64 word = table.words[s];
        if (static_cast<i64>(word >> table.bits) != best.value) continue;
        const i32 u = static_cast<i32>(table.key_of(word));
        const Best other = {best.value, tie_of(in, u), u, s};
        if (best.below(other)) best = other;
    }
    return best;
}

// The best cluster of a table that can take node v (id -1: none), known to all lanes: each asks its best; who has to drop
// one that is better than the best of those asks its next.
__device__ __forceinline__ Best best_cluster(const Clustering& in, i32 v, const WarpTable& table, i64 turn, i64 cap) {
    const Best nobody = {0, 0, -1, 0};
    Best own = best_word(in, table);
    while (true) {
        const bool refused = own.id >= 0 && !can_join(in, v, own.id, turn, cap);
        const Best top = best_of_group<false>(refused ? nobody : own);
        const bool looks = refused && top.below(own);
        if (__ballot_sync(ALL_LANES, looks) == 0) return top;
        if (looks) {
            table.words[own.slot] = 0;
            own = best_word(in, table);
        } else if (refused) {
            own = nobody;
        }
    }
}

__device__ __forceinline__ void wish(const Clustering& in, i32 v, const Best& best) {
    in.targets[v] = best.id;
    in.scores[v] = best.value;
    if (best.id >= 0) add64(in.n_suitors + best.id, 1);
}

// The nodes of a list that still may move, a warp each, one of so many. Those that find more than its table holds are left
// to the block: a chain of them, by `suitors`, from the last one on.
__device__ __forceinline__ void rate_list(const Clustering& in, const Grid& grid, i64 kind, i32 one_of, i64 turn, i64 cap) {
    const i64 n = static_cast<i64>(n_listed(in, kind, turn)), warps = (blockDim.x >> 5) / one_of;
    const i32* list = list_of(in, kind, turn);
    const i32 warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    if (warp % one_of != 0) return;
    const i64 most = smaller(WARP_SLOTS * one_of, grid.n_words / 4);
    const u32 first_word = SCRATCH_BYTES / 8 + WARP_SLOTS * warp;
#pragma unroll 1
    for (i64 i = blockIdx.x * warps + warp / one_of; i < n; i += gridDim.x * warps) {
        const i32 v = list[i];
        if (in.turns[v] != turn) continue;
        const i64 found = most_found(in, v);
        const TablePlace place = {first_word, static_cast<u32>(smaller(found + found / 2 + 4, most)), in.key_bits()};
        const WarpTable table = place.table();
        table.clear();
        if (gather(in, v, place, turn)) {
            const Best best = best_cluster(in, v, table, turn, cap);
            if (lane == 0) wish(in, v, best);
        } else if (lane == 0) {
            in.suitors[v] = static_cast<i32>(atomicExch(reinterpret_cast<u32*>(grid.scratch + FLAG) + 1, static_cast<u32>(v)));
        }
        __syncwarp();
    }
}

// ------------------------------------------------------------------------------------ by a block

// What a block gathers for a node: a score for each cluster, in a hash table, or, if it is not `hashed`, in a slot for
// each cluster from `first` on. Says in `full` if it has no room.
struct Gathering {
    Sums sums;
    i32* keys;
    u32 n_slots;
    bool hashed;
    i32 node;
    i64 first;
    u32* full;

    __device__ __forceinline__ Gathering(i32 v, u32* memory, u32 n_slots, bool hashed, u32* full)
        : sums(memory, n_slots), keys(reinterpret_cast<i32*>(memory) + 2 * n_slots), n_slots(n_slots), hashed(hashed), node(v), first(0), full(full) {}
    __device__ __forceinline__ void clear(i32 slot) const {
        if (hashed) keys[slot] = EMPTY;
        sums.clear(slot);
    }
    __device__ __forceinline__ i32 name_of(i32 slot) const { return hashed ? keys[slot] : static_cast<i32>(first + slot); }
    __device__ __forceinline__ u32 home_of(i32 key) const {
        return static_cast<u32>(static_cast<u64>(static_cast<u32>(key) * 0x9E3779B1u) * n_slots >> 32);
    }
    // Slot of a cluster, looked for from its home on, where `found` was; n_slots if there is none.
    __device__ __forceinline__ u32 slot_of(i32 key, u32 slot, i32 found) const {
#pragma unroll 1
        for (i32 tries = 0; tries < MOST_TRIES; ++tries) {
            if (found == EMPTY) found = atomicCAS(keys + slot, EMPTY, key);
            if (found == EMPTY || found == key) return slot;
            slot = slot + 1 == n_slots ? 0 : slot + 1;
            found = *const_cast<volatile i32*>(keys + slot);
        }
        *full = 1;
        return n_slots;
    }
    __device__ __forceinline__ void add(i32 cluster, i64 score) const {
        if (cluster == node) return;
        u32 slot = static_cast<u32>(cluster - first);
        if (hashed) {
            slot = home_of(cluster);
            slot = slot_of(cluster, slot, *const_cast<volatile i32*>(keys + slot));
        }
        if (slot < n_slots) sums.add(slot, score);
    }
};

// Whether a table has room for so many clusters, and how many slots it gets, a multiple of four.
__device__ __forceinline__ bool fits(i64 found, i64 n_slots) { return found + found / 4 < n_slots; }
__device__ __forceinline__ u32 slots_for(i64 found, i64 n_slots) {
    return static_cast<u32>(smaller((found + found / 2 + 4) & ~3ll, n_slots));
}

// What the picked nets offer node v, a warp each.
__device__ __forceinline__ void gather_all(const Clustering& in, i32 v, const Gathering& gathered) {
    const i32 lane = threadIdx.x & 31, bits = in.key_bits();
    const i32* picks = picks_of(in, v);
    const auto add = [&](i32 u, i64 score) { gathered.add(u, score); };
#pragma unroll 1
    for (i32 k = threadIdx.x >> 5; k < in.n_picks[v]; k += blockDim.x >> 5) {
        i32 net;
        const Offer offer = offer_of(in, v, picks[k], net);
        if (offer.keys < 0) {
            visit_pins(in, net, offer.share, add);
            if (picks[k] >= 0) visit_sources(in, net, add);
            continue;
        }
        const u32* words = reinterpret_cast<const u32*>(in.picks + offer.keys);
#pragma unroll 1
        for (i32 l = lane; l < offer.n_keys; l += 32)
            add(static_cast<i32>(words[l] & ((1u << bits) - 1)), offer.share * ((words[l] >> bits) + 1));
        const Source* sources = reinterpret_cast<const Source*>(words);
#pragma unroll 1
        for (i32 l = lane; l < offer.n_sources; l += 32) add(sources[-1 - l].key, sources[-1 - l].score);
    }
}

// The best cluster around node v that can take it (id -1: none), known to the block's threads; of clusters in a range after
// the other, if the table is not `hashed`. A score is never 0. False if the table was full.
// Of each range the best of each thread's slots is asked first; only who had to drop one that is better than the best of
// those asks its others.
__device__ __forceinline__ bool rate(const Clustering& in, i32 v, Gathering gathered, i64 turn, i64 cap, i64* scratch, Best& best) {
    const Team block = Team::of_block();
    const u32 n_slots = gathered.n_slots;
    best = {0, 0, -1, 0};
#pragma unroll 1
    for (; gathered.first < (gathered.hashed ? 1 : in.n_nodes); gathered.first += n_slots) {
        if (threadIdx.x == 0) *gathered.full = 0;
#pragma unroll 1
        for (u32 s = threadIdx.x; s < n_slots; s += blockDim.x) gathered.clear(s);
        __syncthreads();
        gather_all(in, v, gathered);
        __syncthreads();
        const bool full = *gathered.full != 0;
        __syncthreads();
        if (full) return false;
        Best top = best_slot(in, gathered.sums, n_slots, block, [&](u32 s) { return gathered.name_of(s); }, best);
        bool looks = false;
#pragma unroll 1
        for (i32 asks = 0; asks < 2; ++asks) {
#pragma unroll 1
            for (u32 s = looks ? 4 * threadIdx.x : n_slots; s < n_slots; s += (s & 3) == 3 ? 4 * blockDim.x - 3 : 1) {
                const i64 score = gathered.sums.get(s);
                if (score != 0) consider(in, v, gathered.name_of(s), score, turn, cap, top);
            }
            top.tie = tie_of(in, top.id);
            const Best own = top;
            const bool refused = asks == 0 && own.id != best.id && !can_join(in, v, own.id, turn, cap);
            if (refused) top = best;
            top = best_of(block, top, scratch);
            looks = refused && top.below(own);
            if (!any_of(block, looks, scratch)) break;
        }
        best = top;
    }
    return true;
}

// What the unsettled nodes of a turn wish: targets, scores and how many suitors every cluster has. At last what is left to
// the block, by a hash table, or by ranges, where what a node may find has no room there.
__device__ __forceinline__ void rate_turn(const Clustering& in, const Grid& grid, i64 turn, i64 cap) {
    u32 *full = reinterpret_cast<u32*>(grid.scratch + FLAG), *left = full + 1;
    if (threadIdx.x == 0) *left = static_cast<u32>(EMPTY);
    __syncthreads();
    rate_list(in, grid, WIDE, 2, turn, cap);
    __syncthreads();
    rate_list(in, grid, SHORT, 1, turn, cap);
    __syncthreads();
#pragma unroll 1
    for (i32 v = static_cast<i32>(*left); v != EMPTY; v = in.suitors[v]) {
        const i64 found = most_found(in, v), most = grid.n_words / 3 & ~3ll;
        const u32 places = static_cast<u32>(grid.n_words / 2 & ~3ll);
        Best best;
        const bool rated = fits(found, most) && rate(in, v, Gathering(v, grid.words, slots_for(found, most), true, full), turn, cap, grid.scratch, best);
        if (!rated) rate(in, v, Gathering(v, grid.words, places, false, full), turn, cap, grid.scratch, best);
        if (threadIdx.x == 0) wish(in, v, best);
    }
}

#endif
