// Rounds in one launch: the best moves of all nodes, where there is no memory for what they find in every part.
//
// A warp takes a node and adds up, in its shared memory, what its nets have in each part: the places that columns would
// hold (see round_found.cuh). Every row is read by all nodes of its net, anywhere: so in each round rows are packed before, in
// cards of 64 bytes that the second-level cache holds, of which a warp reads many at once.
#ifndef SNNMAP_ROUND_GATHER_CUH
#define SNNMAP_ROUND_GATHER_CUH

const i32 CARDS_AT_ONCE = 4;  // of which a lane reads two parts each; their number and that of nets to a warp are powers of two
const i32 WAITING = 1 << 15;  // with a part: only sources are there
const i32 PACKED = sizeof(Card::parts) / sizeof(unsigned short);  // parts; those of longer rows are read there

// Packs all rows, and sums up how long they are.
__device__ __noinline__ void pack_rows(const Work& work) {
    const Rounds& in = work.in;
    i64 n_parts = 0;
#pragma unroll 1
    for (i64 g = work.thread(); g < in.n_nets; g += work.n_threads()) {
        const Row row = in.rows[g];
        Card& card = in.cards[g];
        i32 n_waiting = 0, place = 0;
#pragma unroll 4
        for (i32 s = 0; s < row.size; ++s) {
            const Entry entry = in.entries[row.first + s];
            const bool waits = entry.pins == 0;
            if (s < PACKED) card.parts[s] = static_cast<unsigned short>(entry.part + (waits ? WAITING : 0));
            n_waiting += waits;
            if (waits) place = s;
        }
        for (i32 w = 0; w < PLACE_WORDS; ++w) card.head.words[w] = place_word(row, w, row.weight, 1);
        card.head.size = row.size;
        card.waiting = n_waiting == 1 ? in.waiting[row.first + place] : -1;
        n_parts += row.size;
    }
    n_parts = sum_of(Team::of_block(), n_parts, work.desk.scratch);
    if (threadIdx.x == 0) atomicAdd(&work.counters().n_packed, static_cast<u64>(n_parts));
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

// Adds what a net has where only sources are, and in other than the first parts of its row. By `width` lanes.
template <bool APART>
__device__ __forceinline__ void gather_rest(const Rounds& in, const Places& places, i32 width, i32 net) {
    if (net < 0) return;
    const Card& card = in.cards[net];
    const i32 size = static_cast<i32>(card.head.size);
#pragma unroll 1
    for (i32 s = Warp().rank() & (width - 1); s < size; s += width) {
        i32 part = s < PACKED ? card.parts[s] : 0;
        if (s >= PACKED) {
            const Entry entry = in.entries[in.rows[net].first + s];
            part = entry.part + (entry.pins != 0 ? 0 : WAITING);
        }
        if (part >= WAITING)
            places.add<APART>(0, part - WAITING, card.waiting >= 0 ? card.waiting : in.waiting[in.rows[net].first + s]);
        else if (s >= 2 * width || s >= PACKED)
            for (i32 w = 0; w < PLACE_WORDS; ++w) places.add<APART>(w, part, card.head.words[w]);
    }
}

// Adds what the nets of node v have in all parts. By a warp, `width` lanes to a net.
template <bool APART>
__device__ __forceinline__ void gather_nets(const Rounds& in, const Places& places, i64 v, i32 width) {
    const i32 first = 2 * (Warp().rank() & (width - 1)), teams = 32 / width, n_read = smaller(2 * width, PACKED);
    const Card* cards = in.cards;
    const i32* nets = in.node_nets + in.node_offsets[v];
    const i32 n = static_cast<i32>(in.node_offsets[v + 1] - in.node_offsets[v]);
    i32 next = Warp().rank() < n ? nets[Warp().rank()] : -1;  // on its way while others are worked on
#pragma unroll 1
    for (i32 base = 0; base < n; base += 32) {
        const i32 known = next, later = base + 32 + Warp().rank();
        next = later < n ? nets[later] : -1;
#pragma unroll 1
        for (i32 some = 0; some < 32 && base + some < n; some += CARDS_AT_ONCE * teams) {
            Card::Head heads[CARDS_AT_ONCE];
            u32 pairs[CARDS_AT_ONCE];
            const i32 place = some + Warp().rank() / width;
#pragma unroll
            for (i32 k = 0; k < CARDS_AT_ONCE; ++k) {
                const i32 net = __shfl_sync(ALL_LANES, known, place + k * teams);
                heads[k].size = 0;
                if (net < 0 || first >= PACKED) continue;
                heads[k] = cards[net].head;
                pairs[k] = *reinterpret_cast<const u32*>(cards[net].parts + first);
            }
            u32 rest = 0;  // a bit for each card
#pragma unroll
            for (i32 k = 0; k < CARDS_AT_ONCE; ++k) {
                const Card::Head& head = heads[k];
                rest |= (head.size > n_read ? 1u : 0) << k;
#pragma unroll
                for (i32 i = 0; i < 2; ++i) {
                    const i32 part = static_cast<i32>(i == 0 ? pairs[k] & 0xFFFF : pairs[k] >> 16);
                    if (first + i >= head.size) continue;
                    rest |= (part >= WAITING ? 1u : 0) << k;
                    for (i32 w = 0; w < PLACE_WORDS; ++w)
                        if (part < WAITING) places.add<APART>(w, part, head.words[w]);
                }
            }
            if (__ballot_sync(ALL_LANES, rest != 0) == 0) continue;
#pragma unroll 1
            for (i32 k = 0; k < CARDS_AT_ONCE; ++k) {
                const i32 net = __shfl_sync(ALL_LANES, known, place + k * teams);
                if (__ballot_sync(ALL_LANES, rest >> k & 1) != 0) gather_rest<APART>(in, places, width, net);
            }
        }
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

template <Kind KIND, bool APART>
__device__ __noinline__ void propose_by_gathering(const Work& work, const Prices& prices) {
    const Rounds& in = work.in;
    const i64 n_packed = static_cast<i64>(work.counters().n_packed);
    const i32 width = n_packed <= 5 * in.n_nets ? 4 : n_packed <= 11 * in.n_nets ? 8 : 16;  // so that few rows are longer than two a lane
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
