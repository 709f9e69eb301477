// Turns in which the nodes of a small level join clusters: who joins whom, and the level afterwards. Written into
// hierarchies.cu, after search_rating.cuh.
#ifndef SNNMAP_SEARCH_CLUSTER_CUH
#define SNNMAP_SEARCH_CLUSTER_CUH

// ------------------------------------------------------------------------------------ joining

// What a block decides by; in shared memory where that has room, else in global memory.
template <template <class> class Place>
struct Joining {
    Place<i64> bids;  // [n] largest key of those who want to join the cluster
    Place<i64> keys;
    Place<i64> loads;  // [n * N_LOADS] of each cluster, by its leader
    Place<i32> targets, leaders, settled, list;
    Place<i32> common;  // [n * N_DISTINCT]

    // What cluster or node v adds to a load of its target's cluster.
    __device__ __forceinline__ i64 more(i64 v, i32 r) const {
        return loads[v * N_LOADS + r] - (r < N_ADDITIVE ? 0 : common[v * N_DISTINCT + r - N_ADDITIVE]);
    }
};

template <template <class> class Place>
__device__ __forceinline__ Joining<Place> cut_joining(unsigned char*& memory, i64 n) {
    Joining<Place> j;
    j.bids.pointer = cut<i64>(memory, n);
    j.keys.pointer = cut<i64>(memory, n);
    j.loads.pointer = cut<i64>(memory, n * N_LOADS);
    j.targets.pointer = cut<i32>(memory, n);
    j.leaders.pointer = cut<i32>(memory, n);
    j.settled.pointer = cut<i32>(memory, n);
    j.list.pointer = cut<i32>(memory, n);
    j.common.pointer = cut<i32>(memory, n * N_DISTINCT);
    return j;
}

// Whether cluster u can take node v as well.
template <template <class> class Place>
__device__ __forceinline__ bool can_take(const Joining<Place>& j, i64 u, i64 v, const i64* limits, i64 cap) {
    bool fits = j.loads[u * N_LOADS] + j.loads[v * N_LOADS] <= cap;
    for (i32 r = 0; r < N_LOADS; ++r) fits &= j.loads[u * N_LOADS + r] + j.more(v, r) <= limits[r];
    return fits;
}

// The nodes of the list join their targets' clusters, the best `room` of them; each cluster is in it once.
template <template <class> class Place>
__device__ __forceinline__ void join_listed(const Joining<Place>& j, i64 n_listed, i64 room) {
#pragma unroll 1
    for (i64 i = threadIdx.x; i < n_listed; i += blockDim.x) {
        const i64 v = j.list[i];
        if (n_listed > room) {
            i64 rank = 0;
            for (i64 k = 0; k < n_listed; ++k) rank += j.keys[j.list[k]] > j.keys[v];
            if (rank >= room) continue;
        }
        const i64 u = j.leaders[j.targets[v]];
        j.leaders[v] = static_cast<i32>(u);
        for (i32 r = 0; r < N_LOADS; ++r) j.loads[u * N_LOADS + r] += j.more(v, r);
    }
}

// Numbers the `left` clusters by their leaders; where their lists begin (as long as those of their nodes together),
// their additive loads, and the largest size among them.
template <template <class> class Place>
__device__ __forceinline__ void number_clusters(const Lists& l, const Joining<Place>& j, i64 n, i64 left, i64* scratch, u64* state) {
    u32 *numbers = j.bids.template as<u32>(), *sizes = numbers + n, *out_sizes = j.keys.template as<u32>();
    if (threadIdx.x == 0) state[STATE_LARGEST] = 0;
#pragma unroll 1
    for (i64 c = threadIdx.x; c < left; c += blockDim.x) sizes[c] = out_sizes[c] = 0;
    place_lists(n, numbers, scratch, [&](i64 v) { return static_cast<i64>(j.leaders[v] == v); });
    __syncthreads();
    i64 largest = 0;
#pragma unroll 1
    for (i64 v = threadIdx.x; v < n; v += blockDim.x) {
        const i32 u = j.leaders[v];
        const i64 c = numbers[u];
        l.numbers[v] = static_cast<i32>(c);
        atomicAdd(sizes + c, l.node_sizes[v]);
        atomicAdd(out_sizes + c, l.out_sizes[v]);
        if (u != v) continue;
        for (i32 r = 0; r < N_LOADS; ++r) l.next_loads[c * N_LOADS + r] = r < N_ADDITIVE ? j.loads[v * N_LOADS + r] : 0;
        l.factors[c] = factor_of(j.loads[v * N_LOADS]);
        largest = larger(largest, j.loads[v * N_LOADS]);
    }
    for (i32 step = 16; step > 0; step >>= 1) largest = larger(largest, __shfl_xor_sync(ALL_LANES, largest, step));
    if ((threadIdx.x & 31) == 0) atomicMax(state + STATE_LARGEST, static_cast<u64>(largest));
    __syncthreads();
    i64 before = 0, total;  // of both lists, in one word
#pragma unroll 1
    for (i64 base = 0; base < left; base += blockDim.x) {
        const i64 c = base + threadIdx.x, both = c < left ? static_cast<i64>(out_sizes[c]) << 32 | sizes[c] : 0;
        const i64 place = before + scan(Team::of_block(), both, total, scratch) - both;
        before += total;
        if (c >= left) continue;
        l.node_firsts[c] = static_cast<u32>(place);
        l.out_firsts[c] = static_cast<u32>(place >> 32);
    }
#pragma unroll 1
    for (i64 c = threadIdx.x; c < left; c += blockDim.x) l.node_sizes[c] = l.out_sizes[c] = 0;
}

// Pairs that want each other join, then in rounds who wants a node that is settled, until `target` clusters are left
// (see `join_nodes` of _kernels_cluster.py); then places for the lists of the clusters, and what is known of them.
// By one block. Deterministic: the best suitor of each cluster, the best of all where there is not room for all.
template <template <class> class Place>
__device__ __noinline__ void join_nodes(const Lists& l, const i64* limits, i64 n, i64 cap, i64 target, i64* scratch,
                                        unsigned char* memory, u64* state) {
    u32* n_listed = reinterpret_cast<u32*>(scratch + SCRATCH_WORDS - 2);  // of even rounds, of odd ones
    u32* n_settled = n_listed + 2;
    const Joining<Place> j = cut_joining<Place>(memory, n);
    if (threadIdx.x < 4) n_listed[threadIdx.x] = 0;
#pragma unroll 1
    for (i64 v = threadIdx.x; v < n; v += blockDim.x) {
        j.bids[v] = 0;
        j.keys[v] = l.keys[v];
        j.targets[v] = l.targets[v];
        j.leaders[v] = static_cast<i32>(v);
        j.settled[v] = l.targets[v] < 0;
        for (i32 r = 0; r < N_LOADS; ++r) j.loads[v * N_LOADS + r] = l.loads[v * N_LOADS + r];
        for (i32 d = 0; d < N_DISTINCT; ++d) j.common[v * N_DISTINCT + d] = l.common[v * N_DISTINCT + d];
    }
    __syncthreads();
#pragma unroll 1
    for (i64 v = threadIdx.x; v < n; v += blockDim.x) {
        const i32 u = j.targets[v];
        if (u < 0 || j.targets[u] != v) continue;
        j.settled[v] = 1;
        if (u < v) j.list[atomicAdd(n_listed, 1u)] = static_cast<i32>(v);
    }
    __syncthreads();
    i64 left = n;
    for (i32 round = 0;; ++round) {
        const i64 listed = n_listed[round & 1], room = left - target;
        join_listed(j, listed, room);
        left -= smaller(listed, room);
        if (left <= target || round == ROUNDS) break;
        __syncthreads();
        if (threadIdx.x == 0) n_listed[round & 1] = n_settled[~round & 1] = 0;
#pragma unroll 1
        for (i64 v = threadIdx.x; v < n; v += blockDim.x)
            if (!j.settled[v] && j.settled[j.targets[v]])
                atomicMax(reinterpret_cast<u64*>(j.bids + j.leaders[j.targets[v]]), static_cast<u64>(j.keys[v]));
        __syncthreads();
#pragma unroll 1
        for (i64 u = threadIdx.x; u < n; u += blockDim.x) {
            if (j.bids[u] == 0) continue;
            const i32 v = static_cast<i32>(LOW - (j.bids[u] & LOW));
            j.bids[u] = 0;
            j.settled[v] = 1;
            n_settled[round & 1] = 1;
            if (can_take(j, u, v, limits, cap)) j.list[atomicAdd(n_listed + (~round & 1), 1u)] = v;
        }
        __syncthreads();
        if (n_settled[round & 1] == 0) break;
    }
    __syncthreads();
    if (threadIdx.x == 0) state[STATE_LEFT] = static_cast<u64>(left);
    if (left == n) return;
    number_clusters(l, j, n, left, scratch, state);
}

// The nodes of a bundle, which have the same value in `bundles` and follow each other, join the first of them, if any has
// several; then as above. By one block.
template <template <class> class Place>
__device__ __noinline__ void join_bundles(const Lists& l, const i32* bundles, i64 n, i64* scratch, unsigned char* memory, u64* state) {
    const Joining<Place> j = cut_joining<Place>(memory, n);
    if (threadIdx.x == 0) state[STATE_LEFT] = 0;
    __syncthreads();
    i64 n_first = 0;
#pragma unroll 1
    for (i64 v = threadIdx.x; v < n; v += blockDim.x) {
        if (v > 0 && bundles[v - 1] == bundles[v]) continue;
        ++n_first;
        for (i32 r = 0; r < N_LOADS; ++r) j.loads[v * N_LOADS + r] = 0;
        for (i64 u = v; u < n && bundles[u] == bundles[v]; ++u) {
            j.leaders[u] = static_cast<i32>(v);
            for (i32 r = 0; r < N_ADDITIVE; ++r) j.loads[v * N_LOADS + r] += l.loads[u * N_LOADS + r];
        }
    }
    n_first = sum_warp(n_first);
    if ((threadIdx.x & 31) == 0) atomicAdd(state + STATE_LEFT, static_cast<u64>(n_first));
    __syncthreads();
    const i64 left = static_cast<i64>(*const_cast<volatile u64*>(state + STATE_LEFT));
    if (left < n) number_clusters(l, j, n, left, scratch, state);
}

// ------------------------------------------------------------------------------------ contraction

// The nodes become their `left` clusters, whose lists are empty before. By a crew: a warp works on a net, distinct clusters by a bit map of
// its own in shared memory. Lists of nodes are in any order; nobody looks at it.
__device__ __noinline__ void contract_lists(const Crew& crew, const Finest& f, const Lists& l, i64 left, unsigned char* memory) {
    const i32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, words = static_cast<i32>((left + 31) / 32);
    u32* own = reinterpret_cast<u32*>(memory) + warp * words;
#pragma unroll 1
    for (i32 i = lane; i < words; i += 32) own[i] = 0;
    __syncwarp();
#pragma unroll 1
    for (i64 v = crew.thread(); v < f.n; v += crew.n_threads()) l.clusters[v] = l.numbers[l.clusters[v]];
#pragma unroll 1
    for (i64 net = crew.index + warp * crew.n_blocks; net < f.n_nets; net += crew.n_threads() >> 5) {
        const i32 size = l.net_sizes[net];
        i32* pins = l.net_pins + f.net_offsets[net];
        i32 end = 0;
#pragma unroll 1
        for (i32 base = 0; base < size; base += 32) {
            const bool inside = base + lane < size;
            const i32 c = inside ? l.numbers[pins[base + lane]] : 0;
            const u32 bit = 1u << (c & 31);
            const bool fresh = inside && !(atomicOr(own + (c >> 5), bit) & bit);
            const u32 votes = __ballot_sync(ALL_LANES, fresh);
            if (fresh) {
                pins[end + __popc(votes & ((1u << lane) - 1))] = c;
                l.node_nets[l.node_firsts[c] + atomicAdd(l.node_sizes + c, 1u)] = static_cast<i32>(net);
                for (i32 d = 0; d < N_DISTINCT; ++d)
                    add64(l.loads + static_cast<i64>(c) * N_LOADS + N_ADDITIVE + d, f.counts[net * N_DISTINCT + d]);
            }
            end += __popc(votes);
        }
        __syncwarp();
#pragma unroll 1
        for (i32 i = lane; i < end; i += 32) own[pins[i] >> 5] = 0;
        if (lane == 0) l.net_sizes[net] = end;
#pragma unroll 1
        for (i64 s = f.source_offsets[net] + lane; s < f.source_offsets[net + 1]; s += 32) {
            const i32 c = l.numbers[l.source_nodes[s]];
            const u32 place = l.out_firsts[c] + atomicAdd(l.out_sizes + c, 1u);
            l.source_nodes[s] = c;
            l.out_nets[place] = static_cast<i32>(net);
            l.out_weights[place] = f.source_weights[s];
        }
        __syncwarp();
    }
}

// The nodes become their `left` clusters, and their loads those of the clusters. By a crew.
__device__ __forceinline__ void become_clusters(const Crew& crew, const Finest& f, Lists& l, i64 left, unsigned char* memory) {
    if (threadIdx.x == 0) l.swap_loads();
    __syncthreads();
    contract_lists(crew, f, l, left, memory);
}

#endif
