// Which of the proposed moves are made together, without asking the host. The twin is
// snnmap/partitioning/multilevel/choosing.py; both give the same integers.
//
// Moves are ordered by sorting 64-bit keys of all nodes, of which those that do not count are LAST;
// a run is the nodes of one group (part, cluster) in the sorted order.
#include "common.cuh"

const i64 LAST = 0x7FFFFFFFFFFFFFFFll;

// keys[v] = -gains[v] for the nodes that want to move: ascending keys are falling gains.
// Parallel over nodes; a few words each. Pure map.
extern "C" __global__ void key_gains(const i32* targets, const i64* gains, i64 n, i64* keys) {
    const i64 v = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (v < n) keys[v] = targets[v] < 0 ? LAST : -gains[v];
}

// ranks[order[i]] = i.
// Parallel over places. Pure map.
extern "C" __global__ void set_ranks(const i64* order, i64 n, i32* ranks) {
    const i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) ranks[order[i]] = static_cast<i32>(i);
}

// keys[v] = target << 32 | rank for moves that still pay when all better ones are made; leaving[p] +=
// what they take from part p.
// Parallel over nodes; a few words each, atomics on loads. Deterministic: integer sums.
extern "C" __global__ void key_winners(const i32* targets, const i32* parts, const i64* gains,
                                       const i64* plain_gains, const i64* later, const i32* ranks,
                                       const i64* outgoing, i64 n, i64* keys, i64* leaving) {
    const i64 v = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (v >= n) return;
    const bool pays = targets[v] >= 0 && later[v] + gains[v] - plain_gains[v] > 0;
    keys[v] = pays ? static_cast<i64>(targets[v]) << 32 | ranks[v] : LAST;
    for (i32 r = 0; pays && r < N_LOADS; ++r)
        add64(leaving + static_cast<i64>(parts[v]) * N_LOADS + r, outgoing[v * N_LOADS + r]);
}

// For each load of each part: room = what may arrive, enough = what may leave for relief.
// Parallel over loads of parts. Pure map.
extern "C" __global__ void find_room(const i64* loads, const i64* limits, const i64* leaving, i64 n_parts,
                                     i64 roomy, i64* room, i64* enough) {
    const i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n_parts * N_LOADS) return;
    const i64 limit = limits[i % N_LOADS], free = limit - loads[i];
    room[i] = larger(free, 0) + leaving[i] + (roomy ? limit / 32 : 0);
    enough[i] = free < 0 ? -free + limit / 64 : 1ll << 60;
}

// The first of each run among the 32 places from `base` on (a bit each), for the whole warp; none
// where keys end. group = that of the lane's place.
__device__ __forceinline__ u32 runs_from(const i64* order, const i64* keys, i64 n, i64 base, i32& group) {
    const i64 i = base + (threadIdx.x & 31);
    const i64 key = i < n ? keys[order[i]] : LAST;
    group = static_cast<i32>(key >> 32);
    bool first = key != LAST;
    if (first && i > 0) first = keys[order[i - 1]] >> 32 != group;
    return __ballot_sync(ALL_LANES, first);
}

// accepted[v] = whether v's group has room for the amounts of all of its run up to v's.
// Parallel over runs, a warp each (found by the warp that owns their first place); reads keys and
// amounts of a run once. Pure map.
extern "C" __global__ void accept_prefix(const i64* order, const i64* keys, i64 n, const i64* amounts,
                                         const i64* room, bool* accepted) {
    const i32 lane = threadIdx.x & 31;
    for (i64 base = Group<false>::index() * 32; base < n; base += Group<false>::number() * 32) {
        i32 own;
        u32 firsts = runs_from(order, keys, n, base, own);
        while (firsts != 0) {
            const i32 start = __ffs(firsts) - 1;
            firsts &= firsts - 1;
            const i32 group = __shfl_sync(ALL_LANES, own, start);
            i64 carry[N_LOADS];
            for (i32 r = 0; r < N_LOADS; ++r) carry[r] = 0;
            u32 inside = ALL_LANES;
            for (i64 i = base + start + lane; inside == ALL_LANES; i += 32) {
                const i64 v = i < n ? order[i] : -1;
                const bool member = v >= 0 && keys[v] >> 32 == group;
                bool fits = member;
                for (i32 r = 0; r < N_LOADS; ++r) {
                    const i64 total = carry[r] + scan_warp(member ? amounts[v * N_LOADS + r] : 0);
                    fits &= total <= room[static_cast<i64>(group) * N_LOADS + r];
                    carry[r] = __shfl_sync(ALL_LANES, total, 31);
                }
                if (fits) accepted[v] = true;
                inside = __ballot_sync(ALL_LANES, member);
            }
        }
    }
}

// Nodes that were accepted move (parts_now, moved), unless their move only pays by relief: those get
// keys[v] = origin << 32 | rank, to be chosen from.
// Parallel over nodes; a few words each. Pure map.
extern "C" __global__ void move_accepted(const bool* accepted, const i64* later, const i32* parts,
                                         const i32* targets, const i32* ranks, i64 n, i64* keys,
                                         i32* parts_now, bool* moved) {
    const i64 v = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (v >= n) return;
    const bool relieves = accepted[v] && later[v] <= 0;
    keys[v] = relieves ? static_cast<i64>(parts[v]) << 32 | ranks[v] : LAST;
    moved[v] = accepted[v] && !relieves;
    parts_now[v] = moved[v] ? targets[v] : parts[v];
}

// Nodes chosen for relief move too; n_moved += all that moved.
// Parallel over nodes; a few words each, one atomic a warp. Deterministic: a count.
extern "C" __global__ void move_relieving(const bool* chosen, const i32* targets, i64 n, i32* parts_now,
                                          bool* moved, u64* n_moved) {
    const i64 v = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    bool moves = false;
    if (v < n) {
        moves = chosen[v] || moved[v];
        if (chosen[v]) {
            parts_now[v] = targets[v];
            moved[v] = true;
        }
    }
    const u32 votes = __ballot_sync(ALL_LANES, moves);
    if ((threadIdx.x & 31) == 0 && votes != 0) atomicAdd(n_moved, static_cast<u64>(__popc(votes)));
}

// ------------------------------------------------------------------------------------ the best prefix

// Two halves of the i-th move: keys[2 i] = origin << 32 | i and keys[2 i + 1] = target << 32 | i;
// saved[i] = what it saves.
// Parallel over moves. Pure map.
extern "C" __global__ void split_moves(const i64* order, const i32* targets, const i32* parts,
                                       const i64* gains, i64 n, i64* keys, i64* saved) {
    const i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const i64 v = order[i];
    const bool moves = targets[v] >= 0;
    keys[2 * i] = moves ? static_cast<i64>(parts[v]) << 32 | i : LAST;
    keys[2 * i + 1] = moves ? static_cast<i64>(targets[v]) << 32 | i : LAST;
    saved[i] = moves ? gains[v] : 0;
}

// changed[i] += by how much the i-th move changes the overload of its two parts.
// Parallel over runs of halves (parts), a warp each; gathers the loads that their moves bring and
// take. Deterministic: integer sums.
extern "C" __global__ void change_overload(const i64* halves, const i64* keys, i64 n, const i64* order,
                                           const i64* resources, const i64* incoming, const i64* outgoing,
                                           const i64* loads, const i64* limits, i64* changed) {
    const i32 lane = threadIdx.x & 31;
    for (i64 base = Group<false>::index() * 32; base < n; base += Group<false>::number() * 32) {
        i32 own;
        u32 firsts = runs_from(halves, keys, n, base, own);
        while (firsts != 0) {
            const i32 start = __ffs(firsts) - 1;
            firsts &= firsts - 1;
            const i32 part = __shfl_sync(ALL_LANES, own, start);
            i64 held[N_LOADS], last = 0;
            for (i32 r = 0; r < N_LOADS; ++r) {
                held[r] = loads[static_cast<i64>(part) * N_LOADS + r];
                last += larger(held[r] - limits[r], 0);
            }
            u32 inside = ALL_LANES;
            for (i64 i = base + start + lane; inside == ALL_LANES; i += 32) {
                const i64 half = i < n ? halves[i] : -1;
                const bool member = half >= 0 && keys[half] >> 32 == part;
                i64 now = 0;
                for (i32 r = 0; r < N_LOADS; ++r) {
                    i64 change = 0;
                    if (member) {
                        const i64 v = order[half >> 1];
                        const bool arrives = (half & 1) != 0;
                        const i64* distinct = arrives ? incoming : outgoing;
                        change = r < N_ADDITIVE ? resources[v * N_ADDITIVE + r]
                                                : distinct[v * N_DISTINCT + r - N_ADDITIVE];
                        if (!arrives) change = -change;
                    }
                    const i64 total = held[r] + scan_warp(change);
                    now += larger(total - limits[r], 0);
                    held[r] = __shfl_sync(ALL_LANES, total, 31);
                }
                const i64 previous = __shfl_sync(ALL_LANES, now, lane > 0 ? lane - 1 : 0);
                if (member) add64(changed + (half >> 1), now - (lane > 0 ? previous : last));
                last = __shfl_sync(ALL_LANES, now, 31);
                inside = __ballot_sync(ALL_LANES, member);
            }
        }
    }
}

// The moves of the best prefix are made, or none: best = its last move, totals = what each prefix
// saves; none if the overload stays as it was and nothing is saved.
// Parallel over moves; one atomic a warp. Deterministic: a count.
extern "C" __global__ void move_prefix(const i64* order, const i32* targets, const i32* parts, i64 n,
                                       const i64* best, const i64* totals, const i64* least,
                                       const i64* before, i32* parts_now, bool* moved, u64* n_moved) {
    const i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    const bool worth = *least != *before || totals[*best] > 0;
    bool moves = false;
    if (i < n) {
        const i64 v = order[i];
        moves = worth && i <= *best && targets[v] >= 0;
        moved[v] = moves;
        parts_now[v] = moves ? targets[v] : parts[v];
    }
    const u32 votes = __ballot_sync(ALL_LANES, moves);
    if ((threadIdx.x & 31) == 0 && votes != 0) atomicAdd(n_moved, static_cast<u64>(__popc(votes)));
}

// sums[0] = connectivity, sums[1 + r] += overload of load r over all parts.
// Parallel over parts; an atomic a warp and load. Deterministic: integer sums.
extern "C" __global__ void sum_overload(const i64* loads, const i64* limits, i64 n_parts,
                                        const i64* connectivity, i64* sums) {
    const i64 p = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (i32 r = 0; r < N_LOADS; ++r) {
        const i64 over = sum_warp(p < n_parts ? larger(loads[p * N_LOADS + r] - limits[r], 0) : 0);
        if ((threadIdx.x & 31) == 0 && over != 0) add64(sums + 1 + r, over);
    }
    if (p == 0) sums[0] = *connectivity;
}
