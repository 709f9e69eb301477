// Tables of a partition of a small level: filled. Written into search.cu.
//
// What a pin finds of a net in a part is the net's weight where the part has pins, else the weight of
// the sources that wait there; a source finds its weight where the net has pins. Sums are of integers, so no
// order of threads shows.
#ifndef SNNMAP_SEARCH_FILL_CUH
#define SNNMAP_SEARCH_FILL_CUH

const i32 AT_ONCE = 4;  // loads on their way

// Weight of the sources of a net that lie in part p, without node v; by one thread.
__device__ __forceinline__ i64 waiting_for(const Fine& f, const Graph& g, const Table& t, i64 net, i32 p, i32 v) {
    i64 sum = 0;
    #pragma unroll 1
    for (i64 s = f.source_offsets[net]; s < f.source_offsets[net + 1]; ++s) {
        const i32 u = g.source_nodes[s];
        if (u >= 0 && u != v && t.parts[u] == p) sum += g.source_weights[s];
    }
    return sum;
}

// Counts the pins of each net in each part. Parallel over pins, a team or a warp each net.
__device__ __forceinline__ void count_pins(const Fine& f, const Graph& g, const Scratch& s, const Table& t) {
    const i64 k = t.n_parts, n_pairs = (f.n_nets * k + 1) / 2;
    const i32 words = words_of(k), n_words = static_cast<i32>(f.n_nets) * words;
    u32* pairs = reinterpret_cast<u32*>(s.pins);
    for (i64 i = threadIdx.x; i < n_pairs; i += blockDim.x) pairs[i] = 0;
    for (i32 i = threadIdx.x; i < n_words; i += blockDim.x) s.present[i] = 0;
    __syncthreads();
    each_net(f, [&](i64 net, i32 rank, i32 size) {
        if (net < 0) return;
        for (i64 j = f.net_offsets[net] + rank; j < g.net_ends[net]; j += size) {
            const i32 p = t.parts[g.net_pins[j]];
            const i64 place = net * k + p;
            atomicAdd(pairs + (place >> 1), 1u << 16 * (place & 1));
            atomicOr(s.present + net * words + (p >> 5), 1u << (p & 31));
        }
    });
}

// Loads of the parts. The pins are counted. Parallel over parts and stretches of nets, and over nodes.
// Returns the weight of all (net, part) with pins, this thread's share.
__device__ __forceinline__ i64 sum_loads(const Fine& f, const Graph& g, const Scratch& s, const Table& t) {
    const i32 k = t.n_parts, width = smaller((k + 31) / 32 * 32, blockDim.x);
    const i32 stretches = blockDim.x / width, stretch = threadIdx.x / width, words = words_of(k);
    i64 total = 0;
    for (i32 p = threadIdx.x - stretch * width; p < k && stretch < stretches; p += width) {
        i64 sums[N_DISTINCT + 1] = {0};
        #pragma unroll 8
        for (i64 net = stretch; net < f.n_nets; net += stretches) {
            const bool pinned = s.present[net * words + (p >> 5)] >> (p & 31) & 1;
            total += pinned ? f.net_weights[net] : 0;
            for (i32 d = 0; d < N_DISTINCT; ++d) sums[d] += pinned ? f.counts[net * N_DISTINCT + d] : 0;
        }
        for (i32 d = 0; d < N_DISTINCT; ++d) add64(t.loads + p * N_LOADS + N_ADDITIVE + d, sums[d]);
    }
    for (i32 v = threadIdx.x; v < g.n; v += blockDim.x)
        for (i32 r = 0; r < N_ADDITIVE; ++r)
            add64(t.loads + t.parts[v] * N_LOADS + r, g.resources[static_cast<i64>(v) * N_ADDITIVE + r]);
    return total;
}

// Some nets of a node, one each lane: those that it is a pin of, then those that it is only a source of.
struct Piece {
    i32 v, first, n;  // node, or -1; number of the first net; how many
    i32 net, counts[N_DISTINCT + 1];
    i64 weight;
};

// Up to `width` nets of node v from number `first` on.
__device__ __forceinline__ Piece piece_of(const Fine& f, const Graph& g, i32 v, i32 first, i32 width) {
    const i32 rank = lane_index() & (width - 1);
    Piece piece = {v, first, 0, 0, {0}, 0};
    if (v < 0) return piece;
    const i32 pinned_at = g.node_offsets[v], n_pinned = g.node_offsets[v + 1] - pinned_at;
    const i32 out_at = g.out_offsets[v], n_outs = g.out_offsets[v + 1] - out_at, own = first + rank;
    piece.n = smaller(n_pinned + n_outs - first, width);
    if (own < n_pinned) {
        piece.net = g.node_nets[pinned_at + own];
        piece.weight = f.net_weights[piece.net];
        for (i32 d = 0; d < N_DISTINCT; ++d) piece.counts[d] = static_cast<i32>(f.counts[piece.net * N_DISTINCT + d]);
    } else if (own < n_pinned + n_outs) {
        piece.net = g.out_nets[out_at + own - n_pinned];
        piece.weight = larger(g.out_gains[out_at + own - n_pinned], 0);
    }
    return piece;
}

// What its node finds where these nets have pins: the node's row is written if they are its first ones, else added
// to. By WIDTH lanes, part by part; all lanes of a warp come together.
template <i32 WIDTH, i32 TILES>
__device__ __forceinline__ void sum_up(const Scratch& s, const Table& t, const Piece& piece) {
    const i32 rank = lane_index() & (WIDTH - 1), k = t.n_parts, words = words_of(k), v = piece.v;
    i32 most = piece.n;  // of the groups of this warp
    for (i32 step = WIDTH; step < 32; step *= 2) most = larger(most, __shfl_xor_sync(ALL_LANES, most, step));
    i64* gains = s.gains + static_cast<i64>(v) * k;
    i32* covered = s.covered + static_cast<i64>(v) * k * N_DISTINCT;
    #pragma unroll 1
    for (i32 left = 0; left < k; left += WIDTH * TILES) {
        i64 sums[TILES] = {0};
        i32 shared[TILES][N_DISTINCT + 1] = {{0}};
        #pragma unroll 1
        for (i32 i = 0; i < most; i += AT_ONCE) {
            u32 has[AT_ONCE][TILES];  // nothing is added for what is no net of the node
            #pragma unroll
            for (i32 e = 0; e < AT_ONCE; ++e) {
                const u32* row = s.present + __shfl_sync(ALL_LANES, piece.net, i + e, WIDTH) * words + left / 32;
                #pragma unroll
                for (i32 tile = 0; tile < TILES; ++tile) has[e][tile] = left / 32 + tile < words ? row[tile] >> rank & 1 : 0;
            }
            #pragma unroll
            for (i32 e = 0; e < AT_ONCE; ++e) {
                const i64 its = __shfl_sync(ALL_LANES, piece.weight, i + e, WIDTH);
                #pragma unroll
                for (i32 tile = 0; tile < TILES; ++tile) sums[tile] += has[e][tile] ? its : 0;
                for (i32 d = 0; d < N_DISTINCT; ++d) {
                    const i32 count = __shfl_sync(ALL_LANES, piece.counts[d], i + e, WIDTH);
                    #pragma unroll
                    for (i32 tile = 0; tile < TILES; ++tile) shared[tile][d] += has[e][tile] ? count : 0;
                }
            }
        }
        #pragma unroll
        for (i32 tile = 0; tile < TILES; ++tile) {
            const i32 p = left + tile * WIDTH + rank;
            if (v < 0 || p >= k) continue;
            if (piece.first == 0)
                gains[p] = sums[tile];
            else if (sums[tile] != 0)
                add64(gains + p, sums[tile]);
            for (i32 d = 0; d < N_DISTINCT; ++d) {
                if (piece.first == 0)
                    covered[p * N_DISTINCT + d] = shared[tile][d];
                else if (shared[tile][d] != 0)
                    atomicAdd(covered + p * N_DISTINCT + d, shared[tile][d]);
            }
        }
    }
    for (i32 d = 0; d < N_DISTINCT; ++d) {
        i32 brought = piece.counts[d];
        for (i32 step = WIDTH / 2; step > 0; step >>= 1) brought += __shfl_xor_sync(ALL_LANES, brought, step);
        if (rank == 0 && v >= 0 && brought != 0) atomicAdd(s.brought + v * N_DISTINCT + d, brought);
    }
}

// The rows of all nodes: of the first nets of each, then of pieces of those with more, which are listed. The next
// piece is on its way while one is worked on.
template <i32 WIDTH, i32 TILES>
__device__ __noinline__ void sum_up_nodes(const Fine& f, const Graph& g, const Scratch& s, const Table& t, const u32* n_pieces) {
    const i32 n_groups = blockDim.x / WIDTH, group = threadIdx.x / WIDTH;
    #pragma unroll 1
    for (i32 round = 0; round < 2; ++round) {
        const i32 n = round == 0 ? g.n : static_cast<i32>(*n_pieces);
        const auto piece_at = [&](i32 i) {
            const i32 v = i >= n ? -1 : round == 0 ? i : s.marks[i].net;
            return piece_of(f, g, v, i >= n || round == 0 ? 0 : s.marks[i].from, WIDTH);
        };
        Piece next = piece_at(group);
        #pragma unroll 1
        for (i32 base = 0; base < n; base += n_groups) {
            const Piece piece = next;
            next = piece_at(base + n_groups + group);
            sum_up<WIDTH, TILES>(s, t, piece);
        }
        __syncthreads();
    }
}

// Tells the only pins of a net where they are, and where only sources wait; returns the weight of the sources in
// parts with pins, this thread's share. Rows are written. Parallel over nets, their pins and sources.
__device__ __forceinline__ i64 tell_pins(const Fine& f, const Graph& g, const Scratch& s, const Table& t, bool gains) {
    const i64 k = t.n_parts;
    i64 total = 0;
    each_net(f, [&](i64 net, i32 rank, i32 size) {
        if (net < 0) return;
        const i64 first = f.net_offsets[net], end = g.net_ends[net], row = net * k;
        for (i64 j = f.source_offsets[net]; j < f.source_offsets[net + 1]; ++j) {
            const i32 u = g.source_nodes[j];
            if (u < 0) continue;
            const i32 p = t.parts[u];
            const i64 weight = g.source_weights[j];
            if (s.pins[row + p] > 0)
                total += rank == 0 ? weight : 0;
            else
                for (i64 i = first + rank; gains && i < end; i += size) add64(s.gains + g.net_pins[i] * k + p, weight);
        }
        for (i64 j = first + rank; gains && j < end; j += size) {
            const i32 v = g.net_pins[j], p = t.parts[v];
            if (s.pins[row + p] != 1) continue;
            add64(s.stays + v, waiting_for(f, g, t, net, p, v) - f.net_weights[net]);
            for (i32 d = 0; d < N_DISTINCT; ++d)
                atomicAdd(s.freed + v * N_DISTINCT + d, static_cast<i32>(f.counts[net * N_DISTINCT + d]));
        }
    });
    return total;
}

// Fills tables and loads by the parts in `t`, with `gains` those of nodes, too; returns the connectivity (constant
// apart).
__device__ __noinline__ i64 fill_tables(const Fine& f, const Graph& g, const Scratch& s, const Table& t, bool gains) {
    __shared__ u64 connectivity;
    __shared__ u32 n_pieces;
    const i32 width = t.n_parts <= 8 ? 8 : t.n_parts <= 16 ? 16 : 32;  // of what sums up a node
    if (threadIdx.x == 0) connectivity = n_pieces = 0;
    for (i32 i = threadIdx.x; i < t.n_parts * N_LOADS; i += blockDim.x) t.loads[i] = 0;
    count_pins(f, g, s, t);
    for (i32 v = threadIdx.x; gains && v < g.n; v += blockDim.x) {
        s.stays[v] = 0;
        for (i32 d = 0; d < N_DISTINCT; ++d) s.freed[v * N_DISTINCT + d] = s.brought[v * N_DISTINCT + d] = 0;
        const i32 n = g.node_offsets[v + 1] - g.node_offsets[v] + g.out_offsets[v + 1] - g.out_offsets[v];
        if (n <= width) continue;
        const i32 n_more = (n - 1) / width, place = static_cast<i32>(atomicAdd(&n_pieces, static_cast<u32>(n_more)));
        for (i32 i = 0; i < n_more; ++i) s.marks[place + i] = {v, 0, width * (i + 1), 0};
    }
    __syncthreads();
    i64 total = sum_loads(f, g, s, t);
    if (gains && width == 8)
        sum_up_nodes<8, 1>(f, g, s, t, &n_pieces);
    else if (gains && width == 16)
        sum_up_nodes<16, 1>(f, g, s, t, &n_pieces);
    else if (gains && t.n_parts <= 32)
        sum_up_nodes<32, 1>(f, g, s, t, &n_pieces);
    else if (gains)
        sum_up_nodes<32, 4>(f, g, s, t, &n_pieces);
    total -= tell_pins(f, g, s, t, gains);
    total = sum_warp(total);
    if (lane_index() == 0) atomicAdd(&connectivity, static_cast<u64>(total));
    __syncthreads();
    return static_cast<i64>(connectivity);
}

#endif
