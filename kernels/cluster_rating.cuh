// Clustering: the best cluster around a node.
#ifndef SNNMAP_CLUSTER_RATING_CUH
#define SNNMAP_CLUSTER_RATING_CUH

const i32 WARP_SLOTS = 512;   // of tables
const i32 FLAGS = 96;         // word of the scratch: whether a group's table is full, 4 bytes a warp; then the nodes left to the block
const i32 MOST_TRIES = 48;    // slots that are looked at for a cluster before a table counts as full
const i32 MOST_CROWDED = 8;   // visits for each slot of a table for which that is tried

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

// What a group gathers for a node: a score for each cluster, in a hash table, or, if it is not `hashed`, in a slot for
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
    __device__ __forceinline__ void all(const i32 (&clusters)[AT_ONCE], i64 score) const {
        u32 slots[AT_ONCE];
        i32 found[AT_ONCE];
        if (!hashed) {
#pragma unroll 1
            for (i32 i = 0; i < AT_ONCE; ++i)
                if (clusters[i] != EMPTY) one(clusters[i], score);
            return;
        }
#pragma unroll
        for (i32 i = 0; i < AT_ONCE; ++i) {
            slots[i] = clusters[i] == EMPTY || clusters[i] == node ? n_slots : home_of(clusters[i]);
            found[i] = slots[i] == n_slots ? clusters[i] : *const_cast<volatile i32*>(keys + slots[i]);
        }
#pragma unroll
        for (i32 i = 0; i < AT_ONCE; ++i)
            if (found[i] != clusters[i]) slots[i] = slot_of(clusters[i], slots[i], found[i]);
#pragma unroll
        for (i32 i = 0; i < AT_ONCE; ++i)
            if (slots[i] < n_slots) sums.add(slots[i], score);
    }
    __device__ __forceinline__ void one(i32 cluster, i64 score) const {
        if (cluster == node) return;
        u32 slot = static_cast<u32>(cluster - first);
        if (hashed) {
            slot = home_of(cluster);
            slot = slot_of(cluster, slot, *const_cast<volatile i32*>(keys + slot));
        }
        if (slot < n_slots) sums.add(slot, score);
    }
};

__device__ __forceinline__ i64 team_slots(const Grid& grid, i32 warps) { return smaller(WARP_SLOTS * warps, grid.n_words / 6 & ~3ll); }

// How many clusters a rating with so many visits finds at most, and a table's slots for so many, a multiple of four.
__device__ __forceinline__ i64 most_found(const Clustering& in, i64 visits) { return smaller(visits, in.n_nodes); }
__device__ __forceinline__ bool fits(i64 found, i64 n_slots) { return found + found / 4 < n_slots; }
__device__ __forceinline__ u32 slots_for(i64 found, i64 n_slots) {
    return static_cast<u32>(smaller((found + found / 2 + 4) & ~3ll, n_slots));
}

// The best cluster around node v that can take it (id -1: none), known to the group's threads; of clusters in a range after
// the other, if the table is not `hashed`. A score is never 0. False if the table was full.
// Of each range the best of each thread's slots is asked first; only who had to drop one that is better than the best of
// those asks its others.
template <class G>
__device__ __forceinline__ bool rate(const Clustering& in, i32 v, G group, Gathering gathered, i64 turn, i64 cap, i64* scratch, Best& best) {
    const u32 n_slots = gathered.n_slots;
    best = {0, 0, -1, 0};
#pragma unroll 1
    for (; gathered.first < (gathered.hashed ? 1 : in.n_nodes); gathered.first += n_slots) {
#pragma unroll 1
        for (u32 s = group.rank(); s < n_slots; s += group.size()) gathered.clear(s);
        group.sync();
        visit_offers(in, v, in.visits[v], group, gathered);
        if (in.state[N_APART] != 0) visit_apart(in, v, group, gathered);
        group.sync();
        if (*gathered.full) {
            group.sync();
            if (group.rank() == 0) *gathered.full = 0;
            return false;
        }
        Best top = best_slot(in, gathered.sums, n_slots, group, [&](u32 s) { return gathered.name_of(s); }, best);
        bool looks = false;
#pragma unroll 1
        for (i32 asks = 0; asks < 2; ++asks) {
#pragma unroll 1
            for (u32 s = looks ? 4 * group.rank() : n_slots; s < n_slots; s += (s & 3) == 3 ? 4 * group.size() - 3 : 1) {
                const i64 score = gathered.sums.get(s);
                if (score != 0) consider(in, v, gathered.name_of(s), score, turn, cap, top);
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
    return true;
}

__device__ __forceinline__ void wish(const Clustering& in, i32 v, const Best& best) {
    in.targets[v] = best.id;
    in.scores[v] = best.value;
    if (best.id >= 0) add64(in.n_suitors + best.id, 1);
}

// The nodes of a list that still may move, a group each, by hash tables of at most so many slots. Those that find more
// are left to the block: a chain of them, by `suitors`, from the last one on.
template <class G>
__device__ __forceinline__ void rate_list(const Clustering& in, const Grid& grid, i64 kind, G group, u32* memory, i64 most,
                                          i64 turn, i64 cap) {
    const i64 n = static_cast<i64>(n_listed(in, kind, turn));
    const i32* list = list_of(in, kind, turn);
    u32* flags = reinterpret_cast<u32*>(grid.scratch + FLAGS);
#pragma unroll 1
    for (i64 i = group.index(); i < n; i += group.number()) {
        const i32 v = list[i];
        if (in.turns[v] != turn) continue;
        const i64 found = most_found(in, in.visits[v]);
        const Gathering gathered(v, memory, slots_for(found, most), true, flags + (threadIdx.x - group.rank()) / 32);
        Best best;
        const bool rated = found <= MOST_CROWDED * most && rate(in, v, group, gathered, turn, cap, grid.scratch, best);
        if (group.rank() != 0) continue;
        if (rated)
            wish(in, v, best);
        else
            in.suitors[v] = static_cast<i32>(atomicExch(flags + 32, static_cast<u32>(v)));
    }
}

// What the unsettled nodes of a turn wish: targets, scores and how many suitors every cluster has. By teams of so many
// warps, each of which goes on with what is a warp's; at last what is left to the block, by a hash table, or by ranges,
// where what a node may find has no room there.
__device__ __forceinline__ void rate_turn(const Clustering& in, const Grid& grid, i32 warps, i64 turn, i64 cap) {
    const Team team = {warps}, block = Team::of_block();
    u32 *flags = reinterpret_cast<u32*>(grid.scratch + FLAGS), *left = flags + 32;
    if (threadIdx.x < 33) flags[threadIdx.x] = threadIdx.x < 32 ? 0 : static_cast<u32>(EMPTY);
    __syncthreads();
    const auto table = [&](i32 warp) { return grid.words + 3 * WARP_SLOTS * warp; };
    rate_list(in, grid, MEDIUM, team, table(warps * team.place()), team_slots(grid, warps), turn, cap);
    team.sync();
    rate_list(in, grid, SHORT, Warp(), table(threadIdx.x >> 5), WARP_SLOTS, turn, cap);
    __syncthreads();
#pragma unroll 1
    for (i32 v = static_cast<i32>(*left); v != EMPTY; v = in.suitors[v]) {
        const i64 found = most_found(in, in.visits[v]), most = grid.n_words / 3 & ~3ll;
        const u32 places = static_cast<u32>(grid.n_words / 2 & ~3ll);
        Best best;
        const bool rated = fits(found, most) && rate(in, v, block, Gathering(v, grid.words, slots_for(found, most), true, flags), turn, cap, grid.scratch, best);
        if (!rated) rate(in, v, block, Gathering(v, grid.words, places, false, flags), turn, cap, grid.scratch, best);
        if (threadIdx.x == 0) wish(in, v, best);
    }
}

#endif
