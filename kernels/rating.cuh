// What a node shares with the nodes around it: the nets and pins that ratings look at.
#ifndef SNNMAP_RATING_CUH
#define SNNMAP_RATING_CUH

const int MAX_THREADS = 256;  // of a block that rates

// The nets that a rating looks at: those whose hash is at most `bar`, the same for all nodes.
__device__ __forceinline__ u64 bar_of(i64 n_nets, i64 max_nets) {
    const u64 all = 0xFFFFFFFFFFFFFFFFull;
    return n_nets > max_nets ? all / static_cast<u64>(n_nets) * static_cast<u64>(max_nets) : all;
}

__device__ __forceinline__ bool looked_at(i32 net, u64 bar, i64 seed) {
    return scramble(static_cast<u64>(static_cast<i64>(net)), static_cast<u64>(seed)) <= bar;
}

struct Incidence {
    const i64 *net_offsets;
    const i32 *net_pins;
    const i64 *source_offsets;
    const i32 *source_nodes;
    const i64 *source_weights, *node_offsets;
    const i32 *node_nets;
    const i64 *out_offsets;
    const i32 *out_nets;
    const i64 *out_weights, *net_weights;
    i64 max_nets, max_pins, seed;
};

// Calls visit(u, score, net, both) for every pin and source u that node v is tied to by a net; `both`:
// u and v are pins of the net. score = (weight << 6) / pins + 1.
// Parallel over v's nets and their pins: first the group's threads pick the nets to look at, one net
// a thread, then each picked net is a warp's, one pin a lane. The order of the calls varies.
template <bool BLOCK, class Visit>
__device__ __forceinline__ void visit_neighbours(const Incidence& in, i32 v, Visit visit) {
    __shared__ i32 picked_nets[MAX_THREADS];
    __shared__ i64 picked_scores[MAX_THREADS];
    __shared__ i32 picked_number[32];
    const i32 rank = Group<BLOCK>::rank(), size = Group<BLOCK>::size();
    const i32 warp = rank >> 5, warps = size >> 5, lane = rank & 31;
    i32* picked = picked_nets + (threadIdx.x - rank);
    i64* scores = picked_scores + (threadIdx.x - rank);
    i32* n_picked = picked_number + ((threadIdx.x - rank) >> 5);
    for (i32 side = 0; side < 2; ++side) {
        const i64* offsets = side == 0 ? in.node_offsets : in.out_offsets;
        const i32* nets = side == 0 ? in.node_nets : in.out_nets;
        const i64 first = offsets[v], last = offsets[v + 1];
        const u64 bar = bar_of(last - first, in.max_nets);
        for (i64 base = first; base < last; base += size) {
            if (rank == 0) *n_picked = 0;
            Group<BLOCK>::sync();
            const i64 j = base + rank;
            if (j < last && looked_at(nets[j], bar, in.seed)) {
                const i32 g = nets[j];
                const i64 n_pins = in.net_offsets[g + 1] - in.net_offsets[g];
                if (n_pins > 0) {
                    const i32 place = atomicAdd(n_picked, 1);
                    picked[place] = g;
                    scores[place] = ((side == 0 ? in.net_weights[g] : in.out_weights[j]) << 6) / n_pins + 1;
                }
            }
            Group<BLOCK>::sync();
            for (i32 k = warp; k < *n_picked; k += warps) {
                const i32 g = picked[k];
                const i64 begin = in.net_offsets[g], n_pins = in.net_offsets[g + 1] - begin;
                const i64 looked = smaller(n_pins, in.max_pins);
                for (i64 l = lane; l < looked; l += 32) {
                    const i64 place = looked == n_pins ? l : l * n_pins / looked;
                    visit(in.net_pins[begin + place], scores[k], g, side == 0);
                }
                if (side == 1) continue;
                const i64 start = in.source_offsets[g], n_sources = in.source_offsets[g + 1] - start;
                const i64 seen = smaller(n_sources, in.max_pins);
                for (i64 l = lane; l < seen; l += 32) {
                    const i64 place = start + (seen == n_sources ? l : l * n_sources / seen);
                    visit(in.source_nodes[place], (in.source_weights[place] << 6) / n_pins + 1, g, false);
                }
            }
            Group<BLOCK>::sync();
        }
    }
    Group<BLOCK>::sync();
}

#define INCIDENCE_ARGUMENTS                                                                               \
    const i64 *net_offsets, const i32 *net_pins, const i64 *source_offsets, const i32 *source_nodes,      \
        const i64 *source_weights, const i64 *node_offsets, const i32 *node_nets, const i64 *out_offsets, \
        const i32 *out_nets, const i64 *out_weights, const i64 *net_weights
#define INCIDENCE                                                                                              \
    {net_offsets, net_pins, source_offsets, source_nodes, source_weights, node_offsets, node_nets, out_offsets, \
     out_nets, out_weights, net_weights, max_nets, max_pins, seed}

#endif
