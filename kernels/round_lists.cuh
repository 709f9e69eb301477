// Rounds in one launch, where nodes have few nets and many the same ones, as in layered networks: groups of twins, and
// lists of the nets that a round concerns, made by the nets of those who move.
#ifndef SNNMAP_ROUND_LISTS_CUH
#define SNNMAP_ROUND_LISTS_CUH

// A segment: up to 32 consecutive nodes, within a word of bits, that are pins of the same nets and send to one net each or to
// none. Their parts may differ. A node of many nets, or that sends to some, is one of its own.

__device__ __forceinline__ i64 n_outs_of(const Rounds& in, i64 v) { return in.out_offsets[v + 1] - in.out_offsets[v]; }

// Whether a node's nets are too many for segments.
__device__ __forceinline__ bool is_single(const Work& work, i64 v) {
    return work.n_nets_of(v) > PARTLY || n_outs_of(work.in, v) > 1;
}

// The only net to which v sends, or -1.
__device__ __forceinline__ i32 out_net_of(const Rounds& in, i64 v) { return n_outs_of(in, v) == 1 ? in.out_nets[in.out_offsets[v]] : -1; }

// Whether v and the node after it are twins. By a thread.
__device__ __forceinline__ bool are_twins(const Work& work, i64 v) {
    const Rounds& in = work.in;
    const i64 first = in.node_offsets[v], next = in.node_offsets[v + 1], n = next - first;
    if (in.node_offsets[v + 2] - next != n || is_single(work, v) || is_single(work, v + 1)) return false;
#pragma unroll 4
    for (i64 j = 0; j < n; ++j)
        if (in.node_nets[first + j] != in.node_nets[next + j]) return false;
    return true;
}

// Nodes of the segment that begins at a bit, in a word of bits of those that are twins of the node before them.
__device__ __forceinline__ i32 size_of_segment(u32 twins, i64 bit) { return __ffs(static_cast<i32>(~(twins >> bit >> 1))); }

__device__ __forceinline__ i32 size_of_segment(const Rounds& in, i64 first) { return size_of_segment(in.twins[first >> 5], first & 31); }

// The segments, in any order, long nodes apart; those that are a single node of at most one net and one to which it sends
// are simple, and listed from the back. And a bit for each node that is in one with the node before it.
__device__ __noinline__ void list_segments(const Work& work) {
    const Rounds& in = work.in;
    const i64 lane = threadIdx.x & 31;
#pragma unroll 1
    for (i64 base = 32 * Warp().index(); base < in.n_nodes; base += 32 * Warp().number()) {
        const i64 v = base + lane;
        const bool twin = lane > 0 && v < in.n_nodes && are_twins(work, v - 1);
        const u32 twins = __ballot_sync(ALL_LANES, twin);
        if (lane == 0) in.twins[base >> 5] = twins;
        const bool leads = v < in.n_nodes && !twin && work.n_nets_of(v) <= work.long_node();
        const bool simple = leads && size_of_segment(twins, lane) == 1 && in.node_offsets[v + 1] - in.node_offsets[v] <= 1 && n_outs_of(in, v) <= 1;
        for (i32 kind = 0; kind < 2; ++kind) {
            const bool listed = leads && simple == (kind == 1);
            const u32 all = __ballot_sync(ALL_LANES, listed);
            i64 place = lane == 0 && all != 0 ? static_cast<i64>(atomicAdd(in.progress->n_segments + kind, static_cast<u64>(__popc(all)))) : 0;
            place = __shfl_sync(ALL_LANES, place, 0) + __popc(all & ((1u << lane) - 1));
            if (listed) in.segments[kind == 1 ? in.n_nodes - 1 - place : place] = static_cast<i32>(v);
        }
    }
}

// ------------------------------------------------------------------------------------ nets that a round concerns

enum Concern { TOUCHED, CHANGED };  // by pins or sources that would move; that moved

// Lists net g, once: short ones from the front, long ones from the back. By a thread.
__device__ __forceinline__ void list_net(const Work& work, i32 g, Concern why) {
    const Rounds& in = work.in;
    const i32 mark = static_cast<i32>(2 * work.turn) + (why == TOUCHED ? 1 : 2);
    if (in.marks[g] == mark || atomicExch(in.marks + g, mark) == mark) return;
    const bool is_long = work.net_size(g) > work.long_net();
    u64* n_listed = (why == TOUCHED ? work.counters().n_touched : work.counters().n_changed) + is_long;
    const i64 place = static_cast<i64>(atomicAdd(n_listed, 1ull));
    in.listed[is_long ? in.n_nets - 1 - place : place] = g;
}

// The same for the nets of node v, by a group.
template <class G>
__device__ __forceinline__ void list_nets_of(const Work& work, G group, i64 v, Concern why) {
    const Rounds& in = work.in;
#pragma unroll 1
    for (i64 j = in.node_offsets[v] + group.rank(); j < in.node_offsets[v + 1]; j += group.size()) list_net(work, in.node_nets[j], why);
#pragma unroll 1
    for (i64 j = in.out_offsets[v] + group.rank(); j < in.out_offsets[v + 1]; j += group.size()) list_net(work, in.out_nets[j], why);
}

// The i-th of the nets that are to be worked on, long ones or others, and how many there are: all, if none are listed.
struct NetList {
    const Work& work;
    bool is_long, is_listed;
    i64 n;

    __device__ __forceinline__ NetList(const Work& work, bool is_long, const u64* n_listed)
        : work(work), is_long(is_long), is_listed(work.in.segments.given() && n_listed != nullptr) {
        const i64 n_all = is_long ? static_cast<i64>(work.in.progress->n_long_nets) : work.in.n_nets;
        n = is_listed ? static_cast<i64>(n_listed[is_long]) : n_all;
    }
    __device__ __forceinline__ i32 at(i64 i) const {
        const Rounds& in = work.in;
        if (is_listed) return in.listed[is_long ? in.n_nets - 1 - i : i];
        return is_long ? in.long_nets[i] : static_cast<i32>(i);
    }
    // How many consecutive ones a group works on before it goes on elsewhere: what is kept of them shares lines of memory.
    template <class G>
    __device__ __forceinline__ i32 at_once(G group) const { return !is_long && n >= 32 * group.number() ? 4 : 1; }
    // Whether it is one of the others.
    __device__ __forceinline__ bool skips(i32 g) const { return !is_long && !is_listed && work.net_size(g) > work.long_net(); }
};

#endif
