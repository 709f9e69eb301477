// Tables of a partition of a small level: filled, and cleared. Written into search.cu.
//
// What a pin finds of a net in a part is the net's weight where the part has pins, else the weight of
// the sources that wait there; a source finds its weight where the net has pins. A net touches few parts, so each has a
// list of them, and only there is something added to what its nodes find. Sums are of integers, so no order of
// threads shows.
#ifndef SNNMAP_SEARCH_FILL_CUH
#define SNNMAP_SEARCH_FILL_CUH

// Adds to a 64-bit word in shared memory, which adds 32-bit words natively, 64-bit ones only by trial and error.
__device__ __forceinline__ void add_shared(i64* target, i64 value) {
    u32* words = reinterpret_cast<u32*>(target);  // the low one first
    const u32 low = static_cast<u32>(value), old = atomicAdd(words, low);
    const u32 high = static_cast<u32>(value >> 32) + (old + low < old ? 1 : 0);
    if (high != 0) atomicAdd(words + 1, high);
}

// Node v finds so much more in part p, which is near then.
__device__ __forceinline__ void find_more(const Scratch& s, const Table& t, i32 v, i32 p, i64 weight) {
    add64(s.gains + v * t.n_parts + p, weight);
    if (t.has_near) atomicOr(t.near + v * words_of(t.n_parts) + (p >> 5), 1u << (p & 31));
}

// Counts the pins of each net in each part, lists the parts where it has some, and adds its counts to their loads.
// Returns the weight of all (net, part) with pins, this thread's share. Parallel over pins, a team or a warp each net.
__device__ __forceinline__ i64 count_pins(const Fine& f, const Graph& g, const Scratch& s, const Table& t) {
    const i32 k = t.n_parts, lane = lane_index();
    u32* pairs = s.pins.as<u32>();
    i64 total = 0;
    each_net(f, [&](i32 net, i32 rank, i32 size) {
        const i32 first = net < 0 ? 0 : static_cast<i32>(f.net_offsets[net]), end = net < 0 ? 0 : g.net_ends[net];
        const u32 group = lanes_of_group(size);
        const i64 weight = net < 0 ? 0 : f.net_weights[net];
        i32 n = 0;
        for (i32 base = first; __ballot_sync(ALL_LANES, base < end) != 0; base += size) {
            const i32 j = base + rank, p = j < end ? t.parts[g.net_pins[j]] : 0;
            const i32 place = net * k + p, shift = 16 * (place & 1);
            const bool fresh = j < end && (atomicAdd(pairs + (place >> 1), 1u << shift) >> shift & 0xFFFF) == 0;
            const u32 votes = __ballot_sync(ALL_LANES, fresh) & group;
            if (fresh) {
                s.touched[first + n + __popc(votes & ((1u << lane) - 1))] = static_cast<u16>(p);
                total += weight;
                for (i32 d = 0; d < N_DISTINCT; ++d)
                    add_shared(t.loads + p * N_LOADS + N_ADDITIVE + d, f.counts[net * N_DISTINCT + d]);
            }
            n += __popc(votes);
        }
        if (net >= 0 && rank == 0) s.n_touched[net] = n;
    });
    for (i32 v = threadIdx.x; v < g.n; v += blockDim.x)
        for (i32 r = 0; r < N_ADDITIVE; ++r) add_shared(t.loads + t.parts[v] * N_LOADS + r, g.resources[v * N_ADDITIVE + r]);
    return total;
}

// Tells the pins and the sources of a net what they find in other parts, and pins what keeps them where they are; returns
// the weight of the sources in parts with pins, this thread's share. Without `gains` it is only that.
// Parallel over nets, their pins and sources; all lanes of a warp come together, with net = -1 for nothing.
__device__ __forceinline__ i64 tell_net(const Fine& f, const Graph& g, const Scratch& s, const Table& t, bool gains, i32 net,
                                        i32 rank, i32 size) {
    const i32 row = net * t.n_parts, first = net < 0 ? 0 : static_cast<i32>(f.net_offsets[net]);
    const i32 end = net < 0 || !gains ? first : g.net_ends[net], last = first + (net < 0 || !gains ? 0 : s.n_touched[net]);
    const i64 weight = net < 0 ? 0 : f.net_weights[net];
    i32 counts[N_DISTINCT + 1];
    for (i32 d = 0; d < N_DISTINCT; ++d) counts[d] = net < 0 ? 0 : static_cast<i32>(f.counts[net * N_DISTINCT + d]);
    for (i32 j = first + rank; j < end; j += size) {
        const i32 v = g.net_pins[j], a = t.parts[v];
        const bool alone = s.pins[row + a] == 1;
        for (i32 i = first; i < last; ++i) {
            const i32 p = s.touched[i];
            if (p == a) continue;
            find_more(s, t, v, p, weight);
            for (i32 d = 0; d < N_DISTINCT; ++d) atomicAdd(s.covered + (v * t.n_parts + p) * N_DISTINCT + d, counts[d]);
        }
        if (!alone) continue;
        add64(s.stays + v, -weight);
        for (i32 d = 0; d < N_DISTINCT; ++d) atomicAdd(s.freed + v * N_DISTINCT + d, counts[d]);
    }
    const i32 first_source = net < 0 ? 0 : static_cast<i32>(f.source_offsets[net]);
    const i32 last_source = net < 0 ? 0 : static_cast<i32>(f.source_offsets[net + 1]);
    i64 total = 0;
    for (i32 base = first_source; __ballot_sync(ALL_LANES, base < last_source) != 0; base += size) {
        const i32 j = base + rank, u = j < last_source ? g.source_nodes[j] : -1, p = u < 0 ? 0 : t.parts[u];
        const i64 own = u < 0 ? 0 : g.source_weights[j];
        const i32 n_there = u < 0 ? 2 : s.pins[row + p];
        if (n_there > 0) total += own;
        if (!gains) continue;
        if (u >= 0 && g.source_gains[j] > 0)
            for (i32 i = first; i < last; ++i) find_more(s, t, u, s.touched[i], own);
        // What concerns pins: it waits in a part without any, or helps the only one there to go.
        u32 left = __ballot_sync(ALL_LANES, n_there <= 1) >> (lane_index() & ~(size - 1)) & (ALL_LANES >> (32 - size));
        for (; __ballot_sync(ALL_LANES, left != 0) != 0; left &= left - 1) {
            const i32 one = left == 0 ? 0 : __ffs(left) - 1;
            const i32 its = __shfl_sync(ALL_LANES, u, one, size), there = __shfl_sync(ALL_LANES, p, one, size);
            const i64 waits = __shfl_sync(ALL_LANES, own, one, size);
            const bool nobody = __shfl_sync(ALL_LANES, n_there, one, size) == 0;
            for (i32 i = first + rank; left != 0 && i < end; i += size) {
                const i32 v = g.net_pins[i];
                if (nobody)
                    find_more(s, t, v, there, waits);
                else if (t.parts[v] == there && v != its)
                    add64(s.stays + v, waits);
            }
        }
    }
    return total;
}

// Fills tables and loads by the parts in `t`, with `gains` those of nodes, too, which are clear; returns the
// connectivity (constant apart).
__device__ __noinline__ i64 fill_tables(const Fine& f, const Graph& g, const Scratch& s, const Table& t, bool gains) {
    __shared__ u64 connectivity;
    const i32 k = t.n_parts;
    if (threadIdx.x == 0) connectivity = 0;
    for (i32 i = threadIdx.x; i < k * N_LOADS; i += blockDim.x) t.loads[i] = 0;
    for (i64 i = threadIdx.x; i < (f.n_nets * k + 7) / 8; i += blockDim.x) s.pins.as<Mark>()[i] = {0, 0, 0, 0};
    for (i32 i = threadIdx.x; gains && t.has_near && i < g.n * words_of(k); i += blockDim.x) t.near[i] = 0;
    for (i32 v = threadIdx.x; gains && v < g.n; v += blockDim.x) {
        s.stays[v] = 0;
        for (i32 d = 0; d < N_DISTINCT; ++d) s.freed[v * N_DISTINCT + d] = 0;
    }
    __syncthreads();
    i64 total = count_pins(f, g, s, t);
    __syncthreads();
    for (i32 v = threadIdx.x; gains && v < g.n; v += blockDim.x) {
        const i32 p = t.parts[v];  // all nets that it is a pin of are there
        find_more(s, t, v, p, g.weights[v]);
        for (i32 d = 0; d < N_DISTINCT; ++d) s.covered[(v * k + p) * N_DISTINCT + d] = g.brought[v * N_DISTINCT + d];
    }
    each_net(f, [&](i32 net, i32 rank, i32 size) { total -= tell_net(f, g, s, t, gains, net, rank, size); });
    total = sum_warp(total);
    if (lane_index() == 0) atomicAdd(&connectivity, static_cast<u64>(total));
    __syncthreads();
    return static_cast<i64>(connectivity);
}

// Leaves what nodes find as it was before it was filled: zero. Parallel over words of near parts, or all parts.
__device__ __forceinline__ void clear_gains(const Graph& g, const Scratch& s, const Table& t) {
    const i32 k = t.n_parts, words = words_of(k);
    const auto clear = [&](i32 place) {
        s.gains[place] = 0;
        for (i32 d = 0; d < N_DISTINCT; ++d) s.covered[place * N_DISTINCT + d] = 0;
    };
    for (i32 i = threadIdx.x; t.has_near && i < g.n * words; i += blockDim.x)
        for (u32 bits = t.near[i]; bits != 0; bits &= bits - 1) clear(i / words * k + i % words * 32 + __ffs(bits) - 1);
    for (i32 i = threadIdx.x; !t.has_near && i < g.n * k; i += blockDim.x) clear(i);
}

#endif
