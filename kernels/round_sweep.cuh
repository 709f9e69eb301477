// Rounds in one launch: the best moves of all nodes, where there is no memory for what they find in every part.
//
// Column after column is summed up, in every round, a tile of nodes at a time in a block's shared memory; each node there takes
// the part if it is the best so far, and the sums are forgotten. Where blocks outnumber tiles, several work on one: each goes
// over a stripe of the parts and has bests of its own, of which the best is taken at the end. What keeps a node where it
// is is only known then; all its moves lose it alike.
#ifndef SNNMAP_ROUND_SWEEP_CUH
#define SNNMAP_ROUND_SWEEP_CUH

// Zero what the next round counts.
__device__ __forceinline__ void prepare_counters(const Work& work) {
    const i64 n = sizeof(Counters) / 8 + work.in.n_parts * (N_LOADS + 4);
    i64* next = work.set_of(work.turn + 1);
#pragma unroll 1
    for (i64 i = work.thread(); i < n; i += work.n_threads()) next[i] = 0;
}

// The best moves of a stripe's nodes so far, without what they free: worth, part, and the place that they find there, of
// which one word lies n_nodes words from the next.
struct Stripe {
    i64 *values, *words;
    i32* parts;

    __device__ __forceinline__ Stripe(const Rounds& in, i64 s)
        : values(in.best_values + s * in.n_nodes), words(in.best_words + s * PLACE_WORDS * in.n_nodes), parts(in.best_parts + s * in.n_nodes) {}
};

// Whether node v takes part p, where it finds so much.
__device__ __forceinline__ void take_if_better(const Work& work, const Prices& prices, const Stripe& stripe, i64 v, i32 p, const i64* words, const i64* held) {
    const Rounds& in = work.in;
    const Place place(words, 1), all(found_by(in, v, ALL_NETS), in.n_nodes);
    i64 added[ROOM];
    for (i32 c = 0; c < N_DISTINCT; ++c) added[c] = all.counts[c] - place.counts[c];
    const i64 value = place.value - price_of_overload(work, prices, v, added, held), known = stripe.values[v];
    if (value < known) return;
    if (value == known) {
        const i32 other = stripe.parts[v];
        const Best best = {known, tie_of(work, prices, v, other), other, 0};
        if (!best.below({value, tie_of(work, prices, v, p), p, 0})) return;
    }
    stripe.values[v] = value;
    stripe.parts[v] = p;
    for (i32 w = 0; w < PLACE_WORDS; ++w) stripe.words[w * in.n_nodes + v] = words[w];
}

// The sums of word w of a tile's places.
__device__ __forceinline__ Sums sums_of(const Work& work, i32 w) { return Sums(work.desk.lists + 8 * w * work.in.tile, work.in.tile); }

// A tile's nodes look at a stripe of the parts. By a block, whose sums are zero before and afterwards.
__device__ __forceinline__ void sweep(const Work& work, const Prices& prices, i64 tile, i64 n_tiles, i64 s) {
    const Rounds& in = work.in;
    const i64 start = tile * in.tile, n = smaller(in.tile, in.n_nodes - start);
    const i64* loads = work.loads(work.measured);
    const Stripe stripe(in, s);
#pragma unroll 1
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
        stripe.values[start + i] = -(1ll << 62);
        stripe.parts[start + i] = -1;
    }
#pragma unroll 1
    for (i32 p = static_cast<i32>(s); p < in.n_parts; p += static_cast<i32>(in.n_stripes)) {
        for (i32 w = 0; w < PLACE_WORDS; ++w) sum_tile(work, sums_of(work, w), p, w, tile, n_tiles + 1, 0, 0);
        i64 held[N_LOADS];
        for (i32 r = 0; r < N_LOADS; ++r) held[r] = loads[static_cast<i64>(p) * N_LOADS + r];
#pragma unroll 1
        for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
            i64 words[PLACE_WORDS];
            for (i32 w = 0; w < PLACE_WORDS; ++w) {
                words[w] = sums_of(work, w).get(static_cast<u32>(i));
                sums_of(work, w).clear(static_cast<u32>(i));
            }
            const i64 v = start + i, value = Place::value_of(words[0]);
            if (in.parts[v] == p)
                in.plain_gains[v] = value;
            else if (value != 0 && value >= stripe.values[v])
                take_if_better(work, prices, stripe, v, p, words, held);
        }
        __syncthreads();
    }
}

// What all stripes found for the nodes, a thread each; `plain_gains` holds what they find where they are.
template <Kind KIND>
__device__ __noinline__ void propose_best_of_stripes(const Work& work, const Prices& prices) {
    const Rounds& in = work.in;
    const i64 n = in.n_nodes;
#pragma unroll 1
    for (i64 base = 32 * Warp().index(); base < n; base += 32 * Warp().number()) {
        const i64 v = smaller(base + Warp().rank(), n - 1);
        const bool given = base + Warp().rank() < n && !rests<KIND>(work, v);
        const Standing node = standing_of(in, static_cast<i32>(v), in.plain_gains[v]);
        Choice choice(work, prices, node);
        i64 winner = 0;
#pragma unroll 1
        for (i64 s = 0; s < in.n_stripes; ++s) {
            const Stripe stripe(in, s);
            const i32 p = stripe.parts[v];
            const Best best = {stripe.values[v] - node.here + choice.relief, p >= 0 ? tie_of(work, prices, v, p) : 0, p, 0};
            if (p < 0 || !choice.best.below(best)) continue;
            choice.best = best;
            winner = s;
        }
        if (choice.best.id >= 0) choice.finds(node, Place(Stripe(in, winner).words + v, n));
        __syncwarp();  // `offer` writes to plain_gains, which other lanes of the last node read
        offer_best<KIND>(work, prices, given, node, choice);
    }
}

// Proposals of all nodes by sweeps over the parts. The nets of each part are counted where the next round counts.
template <Kind KIND>
__device__ __noinline__ void propose_by_sweeps(Work& work, const Prices& prices) {
    const Rounds& in = work.in;
    work.grid.meet();
    count_nets(work);
    work.grid.meet();
    list_nets_of_parts(work);
    work.grid.meet();
    const i64 n_tiles = (in.n_nodes + in.tile - 1) / in.tile;
#pragma unroll 1
    for (i64 i = threadIdx.x; i < in.tile; i += blockDim.x)
        for (i32 w = 0; w < PLACE_WORDS; ++w) sums_of(work, w).clear(static_cast<u32>(i));
    __syncthreads();
#pragma unroll 1
    for (i64 item = blockIdx.x; item < n_tiles * in.n_stripes; item += gridDim.x) sweep(work, prices, item % n_tiles, n_tiles, item / n_tiles);
    work.grid.meet();
    prepare_counters(work);
    propose_best_of_stripes<KIND>(work, prices);
}

#endif
