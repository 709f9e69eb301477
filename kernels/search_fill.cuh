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

// Counts the pins of each net in each part, lists the parts where it has some, and adds its counts to their loads; adds up
// the nodes' loads. Returns the weight of all (net, part) with pins, this thread's share. Parallel over pins, by node.
__device__ __forceinline__ i64 count_pins(const Fine& f, const Graph& g, const Scratch& s, const Table& t) {
    const i32 k = t.n_parts, n_pins = g.node_offsets[g.n], size = blockDim.x;
    u32* pairs = s.pins.as<u32>();
    i64 total = 0;
    #pragma unroll 1
    for (i32 base = threadIdx.x; base < n_pins; base += AT_ONCE * size) {
        i32 nets[AT_ONCE], parts[AT_ONCE];
        bool fresh[AT_ONCE];
        #pragma unroll
        for (i32 e = 0; e < AT_ONCE; ++e) {
            const i32 j = base + e * size;
            nets[e] = j < n_pins ? g.node_nets[j] : -1;
            parts[e] = j < n_pins ? t.parts[g.owners[j]] : 0;
        }
        #pragma unroll
        for (i32 e = 0; e < AT_ONCE; ++e) {
            const i32 place = nets[e] * k + parts[e], shift = 16 * (place & 1);
            fresh[e] = nets[e] >= 0 && (atomicAdd(pairs + (place >> 1), 1u << shift) >> shift & 0xFFFF) == 0;
        }
        #pragma unroll
        for (i32 e = 0; e < AT_ONCE; ++e) {
            if (!fresh[e]) continue;
            s.touched[f.net_offsets[nets[e]] + atomicAdd(s.n_touched + nets[e], 1)] = static_cast<u16>(parts[e]);
            total += f.net_weights[nets[e]];
            for (i32 d = 0; d < N_DISTINCT; ++d)
                add_shared(t.loads + parts[e] * N_LOADS + N_ADDITIVE + d, f.counts[nets[e] * N_DISTINCT + d]);
        }
    }
    for (i32 v = threadIdx.x; v < g.n; v += size)
        for (i32 r = 0; r < N_ADDITIVE; ++r) add_shared(t.loads + t.parts[v] * N_LOADS + r, g.resources[v * N_ADDITIVE + r]);
    return total;
}

// Tells pins what they find in other parts, and what keeps them where they are but for sources. Parallel over pins, by node.
__device__ __forceinline__ void tell_pins(const Fine& f, const Graph& g, const Scratch& s, const Table& t) {
    const i32 k = t.n_parts, n_pins = g.node_offsets[g.n];
    i32 next_net = 0, next_v = 0;  // on their way while others are told
    if (threadIdx.x < n_pins) {
        next_net = g.node_nets[threadIdx.x];
        next_v = g.owners[threadIdx.x];
    }
    #pragma unroll 1
    for (i32 j = threadIdx.x; j < n_pins; j += blockDim.x) {
        const i32 net = next_net, v = next_v, a = t.parts[v], next = j + blockDim.x;
        const i32 first = static_cast<i32>(f.net_offsets[net]), end = first + s.n_touched[net];
        const bool alone = s.pins[net * k + a] == 1;
        const i64 weight = f.net_weights[net];
        i32 counts[N_DISTINCT + 1];
        for (i32 d = 0; d < N_DISTINCT; ++d) counts[d] = static_cast<i32>(f.counts[net * N_DISTINCT + d]);
        if (next < n_pins) {
            next_net = g.node_nets[next];
            next_v = g.owners[next];
        }
        #pragma unroll 1
        for (i32 i = first; i < end; ++i) {
            const i32 p = s.touched[i];
            if (p == a) continue;
            find_more(s, t, v, p, weight);
            for (i32 d = 0; d < N_DISTINCT; ++d) atomicAdd(s.covered + (v * k + p) * N_DISTINCT + d, counts[d]);
        }
        if (!alone) continue;
        add64(s.stays + v, -weight);
        for (i32 d = 0; d < N_DISTINCT; ++d) atomicAdd(s.freed + v * N_DISTINCT + d, counts[d]);
    }
}

// Tells sources what they find, and the pins of their nets where a source waits, or that it helps the only pin there to go;
// returns the weight of the sources in parts with pins, this thread's share. Without `gains` it is only that. Parallel
// over sources.
__device__ __forceinline__ i64 tell_sources(const Fine& f, const Graph& g, const Scratch& s, const Table& t, bool gains) {
    const i32 k = t.n_parts;
    i64 total = 0;
    #pragma unroll 1
    for (i32 j = threadIdx.x; j < f.n_sources; j += blockDim.x) {
        const i32 net = f.source_nets[j], u = g.source_nodes[j];
        if (u < 0) continue;
        const i32 p = t.parts[u], n_there = s.pins[net * k + p];
        const i64 weight = g.source_weights[j];
        if (n_there > 0) total += weight;
        if (!gains) continue;
        const i32 first = static_cast<i32>(f.net_offsets[net]), end = g.net_ends[net];
        if (g.source_gains[j] > 0)
            for (i32 i = first; i < first + s.n_touched[net]; ++i) find_more(s, t, u, s.touched[i], weight);
        for (i32 i = first; n_there <= 1 && i < end; ++i) {
            const i32 v = g.net_pins[i];
            if (n_there == 0)
                find_more(s, t, v, p, weight);
            else if (t.parts[v] == p && v != u)
                add64(s.stays + v, weight);
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
    for (i32 net = threadIdx.x; net < f.n_nets; net += blockDim.x) s.n_touched[net] = 0;
    __syncthreads();
    i64 total = count_pins(f, g, s, t);
    __syncthreads();
    for (i32 v = threadIdx.x; gains && v < g.n; v += blockDim.x) {
        const i32 p = t.parts[v];  // all nets that it is a pin of are there
        find_more(s, t, v, p, g.weights[v]);
        for (i32 d = 0; d < N_DISTINCT; ++d) s.covered[(v * k + p) * N_DISTINCT + d] = g.brought[v * N_DISTINCT + d];
    }
    if (gains) tell_pins(f, g, s, t);
    total -= tell_sources(f, g, s, t, gains);
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
