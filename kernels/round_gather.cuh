// Rounds in one launch: the best moves of all nodes, where there is no memory for what they find in every part.
//
// A warp takes a node and adds up, in its shared memory, what its nets have in each part: the places that columns would
// hold (see round_found.cuh). Before that the parts of all rows are written close together: each row is read by all nodes
// of its net, and so the second-level cache holds all.
#ifndef SNNMAP_ROUND_GATHER_CUH
#define SNNMAP_ROUND_GATHER_CUH

const i32 ROWS_AT_ONCE = 4;  // of which a lane reads a part each; their number and that of nets to a warp are powers of two
const i32 WAITING = 1 << 15;  // with a packed part: only sources are there

// Packs the parts of all rows.
__device__ __noinline__ void pack_rows(const Work& work) {
    const Rounds& in = work.in;
#pragma unroll 1
    for (i64 base = 32 * Warp().index(); base < in.n_nets; base += 32 * Warp().number()) {
        const i64 g = base + Warp().rank();
        Row row;
        row.size = 0;
        if (g < in.n_nets) row = in.rows[g];
        i64 total;
        const i64 end = scan(Warp(), row.size, total, work.desk.scratch);
        i64 first = Warp().rank() == 0 ? static_cast<i64>(atomicAdd(&work.counters().n_packed, static_cast<u64>(total))) : 0;
        first = __shfl_sync(ALL_LANES, first, 0) + end - row.size;
        if (g >= in.n_nets) continue;
        i32 n_waiting = 0, place = 0;
#pragma unroll 4
        for (i32 s = 0; s < row.size; ++s) {
            const Entry entry = in.entries[row.first + s];
            const bool waits = entry.pins == 0;
            in.packed[first + s] = static_cast<unsigned short>(entry.part + (waits ? WAITING : 0));
            n_waiting += waits;
            if (waits) place = s;
        }
        Card card = {static_cast<i32>(first), row.size, n_waiting == 1 ? in.waiting[row.first + place] : -1, {0}};
        for (i32 w = 0; w < PLACE_WORDS; ++w) card.words[w] = place_word(row, w, row.weight, 1);
        in.cards[g] = card;
    }
}

// A place for each part, in shared memory.
struct Places {
    u32* memory;
    i32 n;

    // How many fit where lists and tables lie.
    static __device__ __forceinline__ i64 room(const Work& work) {
        return (work.desk.n_bytes(Team::of_block()) + 4 * work.in.table_words) / (8 * PLACE_WORDS);
    }
    __device__ __forceinline__ Places(const Work& work, i32 index)
        : memory(work.desk.lists.as<u32>() + static_cast<i64>(index) * 2 * PLACE_WORDS * work.desk.n_parts), n(work.desk.n_parts) {}
    __device__ __forceinline__ Sums word(i32 w) const { return Sums(memory + 2 * w * n, n); }
    __device__ __forceinline__ void clear(i32 p) const {
        for (i32 w = 0; w < PLACE_WORDS; ++w) word(w).clear(p);
    }
    template <bool APART>
    __device__ __forceinline__ void add(i32 w, i32 p, i64 value) const {
        if (APART)
            word(w).add_apart(p, value);
        else
            word(w).add(p, value);
    }
};

// Adds what nets have in all parts, one net a lane. By a warp, `width` lanes to a net.
template <bool APART>
__device__ __forceinline__ void gather_rows(const Rounds& in, const Places& places, i32 width, i32 net, const Card& card) {
    const i32 lane = Warp().rank() & (width - 1), teams = 32 / width;
    // Adds part s, if any, of the row that lane k knows.
    const auto add = [&](i32 part, i32 k, i32 s) {
        const bool waits = part >= WAITING;
        for (i32 w = 0; w < PLACE_WORDS; ++w) {
            const i64 word = __shfl_sync(ALL_LANES, card.words[w], k);
            if (part >= 0 && !waits) places.add<APART>(w, part, word);
        }
        if (__ballot_sync(ALL_LANES, waits) == 0) return;
        const i32 one = __shfl_sync(ALL_LANES, net, k);
        const i64 weight = __shfl_sync(ALL_LANES, card.waiting, k);
        if (waits) places.add<APART>(0, part - WAITING, weight >= 0 ? weight : in.waiting[in.rows[one].first + s]);
    };
#pragma unroll 1
    for (i32 some = Warp().rank() / width; some < 32; some += ROWS_AT_ONCE * teams) {
        i32 parts[ROWS_AT_ONCE];
#pragma unroll
        for (i32 k = 0; k < ROWS_AT_ONCE; ++k) {
            const i32 first = __shfl_sync(ALL_LANES, card.first, some + k * teams), size = __shfl_sync(ALL_LANES, card.size, some + k * teams);
            parts[k] = lane < size ? in.packed[first + lane] : -1;
        }
#pragma unroll
        for (i32 k = 0; k < ROWS_AT_ONCE; ++k) add(parts[k], some + k * teams, lane);
    }
    for (u32 left = __ballot_sync(ALL_LANES, card.size > width); left != 0; left &= left - 1) {
        const i32 k = __ffs(static_cast<i32>(left)) - 1;
        const i32 first = __shfl_sync(ALL_LANES, card.first, k), size = __shfl_sync(ALL_LANES, card.size, k);
        for (i32 base = width; base < size; base += 32) {
            const i32 s = base + Warp().rank();
            add(s < size ? in.packed[first + s] : -1, k, s);
        }
    }
}

// Adds what the nets of node v have in all parts. By a warp.
template <bool APART>
__device__ __forceinline__ void gather_nets(const Rounds& in, const Places& places, i64 v, i32 width) {
    const i64 last = in.node_offsets[v + 1];
    i64 j = in.node_offsets[v] + Warp().rank();
    i32 next = j < last ? in.node_nets[j] : -1;  // on its way while others are worked on
#pragma unroll 1
    for (i64 base = j - Warp().rank(); base < last; base += 32) {
        const i32 net = next;
        const Card card = net >= 0 ? in.cards[net] : Card{0, 0, 0, {0}};
        j += 32;
        next = j < last ? in.node_nets[j] : -1;
        gather_rows<APART>(in, places, width, net, card);
    }
}

// Adds what node v sends to nets of which it is no pin itself. By a warp.
template <bool APART>
__device__ __forceinline__ void gather_sent(const Rounds& in, const Places& places, i64 v) {
    const i64 last = in.out_offsets[v + 1];
#pragma unroll 1
    for (i64 base = in.out_offsets[v]; base < last; base += 32) {
        const i64 o = base + Warp().rank();
        i32 net = -1;
        i64 weight = 0;
        if (o < last) {
            net = in.out_nets[o];
            const i64 j = lower_bound<i32>(in.source_nodes, in.source_offsets[net], in.source_offsets[net + 1], static_cast<i32>(v));
            weight = in.pinned[j] ? 0 : in.source_weights[j];
        }
        for (u32 left = __ballot_sync(ALL_LANES, weight != 0); left != 0; left &= left - 1) {
            const i32 k = __ffs(static_cast<i32>(left)) - 1, g = __shfl_sync(ALL_LANES, net, k);
            const i64 sent = __shfl_sync(ALL_LANES, weight, k);
            const i32 first = in.rows[g].first, size = in.rows[g].size;
            for (i32 s = Warp().rank(); s < size; s += 32) {
                const Entry entry = in.entries[first + s];
                if (entry.pins != 0) places.add<APART>(0, entry.part, sent);
            }
        }
    }
}

// The best move of a node for which all is gathered; places are cleared. By a warp.
// Parallel over parts.
template <Kind KIND>
__device__ __forceinline__ void propose_gathered(const Work& work, const Prices& prices, const Places& places, i32 v) {
    const Rounds& in = work.in;
    const Standing node = standing_of(in, v, Place::value_of(places.word(0).get(in.parts[v])));
    __syncwarp();
    Choice choice(work, prices, node);
    const auto weigh = [&](i32 p) {
        i64 words[PLACE_WORDS];
        for (i32 w = 0; w < PLACE_WORDS; ++w) words[w] = places.word(w).get(p);
        if (choice.asks(prices, node, p, Place::value_of(words[0]))) choice.weigh_place(work, prices, node, p, Place(words, 1));
    };
    // Of each lane's parts first that where most is found: only those that may be better than the best of these are weighed.
    i32 first = -1;
    i64 most = 0;
#pragma unroll 2
    for (i32 p = Warp().rank(); p < places.n; p += 32) {
        const i64 found = Place::value_of(places.word(0).get(p));
        if (p == node.part || found <= most) continue;
        first = p;
        most = found;
    }
    if (first >= 0) weigh(first);
    i64 bound = choice.best.value;
    for (i32 step = 16; step > 0; step /= 2) bound = larger(bound, __shfl_xor_sync(ALL_LANES, bound, step));
    bound += node.here - choice.relief;
#pragma unroll 2
    for (i32 p = Warp().rank(); p < places.n; p += 32) {
        if (p != first && Place::value_of(places.word(0).get(p)) >= bound) weigh(p);
        places.clear(p);
    }
    const Best best = best_of(Warp(), choice.best, work.desk.scratch);
    offer_best<KIND>(work, prices, best.id >= 0 && choice.best.id == best.id, node, choice);
    __syncwarp();
}

// Proposals of all nodes but the long ones, by as many warps of a block as there are places for.
template <Kind KIND, bool APART>
__device__ __noinline__ void propose_by_gathering(const Work& work, const Prices& prices, i32 width) {
    const Rounds& in = work.in;
    const i64 n_tables = smaller(blockDim.x >> 5, Places::room(work) / work.desk.n_parts);
    if (Warp().place() < n_tables) {
        const Places places(work, Warp().place());
        for (i32 p = Warp().rank(); p < places.n; p += 32) places.clear(p);
        __syncwarp();
#pragma unroll 1
        for (i64 v = blockIdx.x * n_tables + Warp().place(); v < in.n_nodes; v += gridDim.x * n_tables) {
            if (rests<KIND>(work, v) || work.n_nets_of(v) > work.long_node()) continue;
            gather_nets<APART>(in, places, v, width);
            gather_sent<APART>(in, places, v);
            __syncwarp();
            propose_gathered<KIND>(work, prices, places, static_cast<i32>(v));
        }
    }
    __syncthreads();
}

#endif
