// What a node shares with the nodes around it: the nets and pins that ratings look at.
#ifndef SNNMAP_RATING_CUH
#define SNNMAP_RATING_CUH

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

// The nets that a group has picked, with room for one a thread: ~net where the node is a source of it.
struct Picks {
    i32* nets;
    i64* scores;
    i32* number;
};

const i32 AT_ONCE = 4;  // pins that a lane loads before it looks at the first

// The k-th of `looked` places spread over n.
__device__ __forceinline__ i64 spread(i64 k, i64 n, i64 looked) {
    if (n == looked) return k;
    if ((looked & (looked - 1)) == 0) return k * n >> (__ffs(static_cast<i32>(looked)) - 1);
    if (k * n < 1ll << 32) return static_cast<u32>(k * n) / static_cast<u32>(looked);
    return k * n / looked;
}

// Calls visit(key_of(u), score, net, both) for every pin and source u that node v is tied to by a net; `both`:
// u and v are pins of the net. score = (weight << 6) / pins + 1.
// Parallel over v's nets and their pins: first the group's threads pick the nets to look at, one net
// a thread, then each picked net is a warp's, one pin a lane. The order of the calls varies.
template <bool BLOCK, class Key, class Visit>
__device__ __forceinline__ void visit_neighbours(const Incidence& in, i32 v, const Picks& picks, Key key_of,
                                                 Visit visit) {
    const i32 rank = Group<BLOCK>::rank(), size = Group<BLOCK>::size();
    const i32 warp = rank >> 5, warps = size >> 5, lane = rank & 31;
    const i64 first = in.node_offsets[v], n_in = in.node_offsets[v + 1] - first;
    const i64 first_out = in.out_offsets[v], n_all = n_in + in.out_offsets[v + 1] - first_out;
    const u64 bar_in = bar_of(n_in, in.max_nets), bar_out = bar_of(n_all - n_in, in.max_nets);
    for (i64 base = 0; base < n_all; base += size) {
        if (rank == 0) *picks.number = 0;
        Group<BLOCK>::sync();
        const i64 j = base + rank, out = first_out + j - n_in;
        const bool inside = j < n_in;
        const i32 net = j >= n_all ? 0 : inside ? in.node_nets[first + j] : in.out_nets[out];
        if (j < n_all && looked_at(net, inside ? bar_in : bar_out, in.seed)) {
            const i64 n_pins = in.net_offsets[net + 1] - in.net_offsets[net];
            if (n_pins > 0) {
                const i32 place = atomicAdd(picks.number, 1);
                picks.nets[place] = inside ? net : ~net;
                picks.scores[place] = ((inside ? in.net_weights[net] : in.out_weights[out]) << 6) / n_pins + 1;
            }
        }
        Group<BLOCK>::sync();
        for (i32 k = warp; k < *picks.number; k += warps) {
            const bool both = picks.nets[k] >= 0;
            const i32 g = both ? picks.nets[k] : ~picks.nets[k];
            const i64 begin = in.net_offsets[g], n_pins = in.net_offsets[g + 1] - begin;
            const i64 looked = smaller(n_pins, in.max_pins), score = picks.scores[k];
            for (i64 start = lane; start < looked; start += 32 * AT_ONCE) {
                i32 keys[AT_ONCE];
                for (i32 i = 0; i < AT_ONCE; ++i) {
                    const i64 l = start + 32 * i;
                    keys[i] = l < looked ? in.net_pins[begin + spread(l, n_pins, looked)] : EMPTY;
                }
                for (i32 i = 0; i < AT_ONCE; ++i)
                    if (keys[i] != EMPTY) keys[i] = key_of(keys[i]);
                for (i32 i = 0; i < AT_ONCE; ++i)
                    if (keys[i] != EMPTY) visit(keys[i], score, g, both);
            }
            if (!both) continue;
            const i64 source = in.source_offsets[g], n_sources = in.source_offsets[g + 1] - source;
            const i64 seen = smaller(n_sources, in.max_pins);
            for (i64 l = lane; l < seen; l += 32) {
                const i64 place = source + spread(l, n_sources, seen);
                visit(key_of(in.source_nodes[place]), (in.source_weights[place] << 6) / n_pins + 1, g, false);
            }
        }
        Group<BLOCK>::sync();
    }
    Group<BLOCK>::sync();
}

// How many pins and sources a rating of v looks at; for the whole warp.
__device__ __forceinline__ i64 count_visits(const Incidence& in, i64 v) {
    const i32 lane = threadIdx.x & 31;
    const i64 first = in.node_offsets[v], last = in.node_offsets[v + 1];
    const i64 first_out = in.out_offsets[v], last_out = in.out_offsets[v + 1];
    const u64 bar = bar_of(last - first, in.max_nets), bar_out = bar_of(last_out - first_out, in.max_nets);
    i64 found = 0;
    for (i64 j = first + lane; j < last; j += 32) {
        const i32 g = in.node_nets[j];
        if (!looked_at(g, bar, in.seed)) continue;
        found += smaller(in.net_offsets[g + 1] - in.net_offsets[g], in.max_pins);
        found += smaller(in.source_offsets[g + 1] - in.source_offsets[g], in.max_pins);
    }
    for (i64 j = first_out + lane; j < last_out; j += 32) {
        const i32 g = in.out_nets[j];
        if (looked_at(g, bar_out, in.seed)) found += smaller(in.net_offsets[g + 1] - in.net_offsets[g], in.max_pins);
    }
    return sum_warp(found);
}

#define INCIDENCE_ARGUMENTS                                                                               \
    const i64 *net_offsets, const i32 *net_pins, const i64 *source_offsets, const i32 *source_nodes,      \
        const i64 *source_weights, const i64 *node_offsets, const i32 *node_nets, const i64 *out_offsets, \
        const i32 *out_nets, const i64 *out_weights, const i64 *net_weights
#define INCIDENCE                                                                                              \
    {net_offsets, net_pins, source_offsets, source_nodes, source_weights, node_offsets, node_nets, out_offsets, \
     out_nets, out_weights, net_weights, max_nets, max_pins, seed}

#endif
