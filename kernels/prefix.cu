// Rounds of refinement by the best prefix of all moves, in one launch: `refine_in_sequence` of
// snnmap/partitioning/multilevel/sequence.py with `choose_prefix` of choosing.py; all give the same integers.
//
// The phases of a round, between which all blocks wait for each other:
//   measure   rows of the pins-per-part table, loads                            (nets, nodes)
//   propose   every node's best move in isolation                               (nodes)
//   replay    what each saves, brings and takes after all moves of better rank  (nets)
//   sort      the moves of a block's share of the nodes; halves listed by part  (nodes)
//   rank      the place of each move among all of them                          (moves)
//   weigh     by how much each half of a move changes its part's overload       (parts)
//   choose    the best prefix, found by every block for itself, is made         (moves)
#include "common.cuh"
#include "grid.cuh"
#include "block.cuh"
#include "rounds.cuh"
#include "round_found.cuh"
#include "round_measure.cuh"
#include "round_propose.cuh"
#include "round_replay.cuh"
#include "round_choose.cuh"

// The moves of this block's share of the nodes, by rank, where the share begins in `sorted`.
__device__ __noinline__ void sort_share(const Work& work) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    i64 first, last;
    work.grid.share(in.n_nodes, first, last);
    i64 n_moves = 0;
    for (i64 v = first + threadIdx.x; v < last; v += blockDim.x) n_moves += in.targets[v] >= 0;
    const bool fits = sum_of(Team::of_block(), n_moves, desk.scratch) <= desk.sortable();
    i64* gains = fits ? reinterpret_cast<i64*>(desk.events) : in.sorted_gains + first;
    i32* ids = fits ? reinterpret_cast<i32*>(gains + desk.sortable()) : in.sorted + first;
    if (threadIdx.x == 0) *desk.cursors = 0;
    __syncthreads();
    for (i64 v = first + threadIdx.x; v < last; v += blockDim.x) {
        in.changed[v] = 0;
        if (in.targets[v] < 0) continue;
        const u32 place = atomicAdd(desk.cursors, 1u);
        gains[place] = in.gains[v];
        ids[place] = static_cast<i32>(v);
    }
    __syncthreads();
    const i64 n = *desk.cursors;
    sort_moves(gains, ids, n, ById());
    for (i64 i = threadIdx.x; fits && i < n; i += blockDim.x) {
        in.sorted_gains[first + i] = gains[i];
        in.sorted[first + i] = ids[i];
    }
    if (threadIdx.x == 0) in.chunks[blockIdx.x] = n;
    __syncthreads();
}

// Halves of all moves by part: 2 v in the list of v's part, 2 v + 1 in that of its target.
__device__ __noinline__ void list_halves(const Work& work) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    const i64 *n_in = work.wanted_in(), *n_out = work.wanted_out();
    place_lists(in.n_parts, desk.first_ins, desk.scratch, [&](i64 p) { return n_in[p] + n_out[p]; });
    for (i64 v = work.thread(); v < in.n_nodes; v += work.n_threads()) {
        if (in.targets[v] < 0) continue;
        atomicAdd(desk.ins + in.targets[v], 1u);
        atomicAdd(desk.ins + in.parts[v], 1u);
    }
    __syncthreads();
    for (i32 p = threadIdx.x; p < desk.n_parts; p += blockDim.x) {
        const u64 n = desk.ins[p];
        if (n != 0) desk.outs[p] = desk.first_ins[p] + static_cast<u32>(atomicAdd(reinterpret_cast<u64*>(work.n_in() + p), n));
        desk.ins[p] = 0;
    }
    __syncthreads();
    for (i64 v = work.thread(); v < in.n_nodes; v += work.n_threads()) {
        if (in.targets[v] < 0) continue;
        in.halves[atomicAdd(desk.outs + in.targets[v], 1u)] = static_cast<i32>(2 * v + 1);
        in.halves[atomicAdd(desk.outs + in.parts[v], 1u)] = static_cast<i32>(2 * v);
    }
    __syncthreads();
    for (i32 p = threadIdx.x; p < desk.n_parts; p += blockDim.x) desk.outs[p] = 0;
    __syncthreads();
}

// order[rank] = v for all moves; ranks are counted in the sorted shares.
// Parallel over moves (a warp each) and shares, of which a lane bisects some at once, so that their loads overlap.
__device__ __noinline__ void rank_moves(const Work& work) {
    const Rounds& in = work.in;
    const i32 SOME = 5;
    const i64 each = (in.n_nodes + gridDim.x - 1) / gridDim.x;
    for (i64 at = Group<false>::index(); at < in.n_nodes; at += Group<false>::number()) {
        const i64 own = at / each;
        if (at - own * each >= in.chunks[own]) continue;
        const i64 gain = in.sorted_gains[at];
        const i32 v = in.sorted[at];
        i64 rank = 0;
        for (i64 base = Group<false>::rank(); base < gridDim.x; base += 32 * SOME) {
            i32 low[SOME], high[SOME];
            bool more = false;
#pragma unroll
            for (i32 k = 0; k < SOME; ++k) {
                const i64 chunk = smaller(base + 32 * k, gridDim.x);
                low[k] = static_cast<i32>(chunk * each);
                high[k] = low[k] + (chunk < gridDim.x ? static_cast<i32>(in.chunks[chunk]) : 0);
                rank -= low[k];
                more |= low[k] < high[k];
            }
            while (more) {
                i64 gains[SOME];
                i32 ids[SOME];
#pragma unroll
                for (i32 k = 0; k < SOME; ++k) {
                    if (low[k] >= high[k]) continue;
                    const i32 middle = (low[k] + high[k]) >> 1;
                    gains[k] = in.sorted_gains[middle];
                    ids[k] = in.sorted[middle];
                }
                more = false;
#pragma unroll
                for (i32 k = 0; k < SOME; ++k) {
                    if (low[k] >= high[k]) continue;
                    const i32 middle = (low[k] + high[k]) >> 1;
                    if (ranks_before(gains[k], ids[k], gain, v))
                        low[k] = middle + 1;
                    else
                        high[k] = middle;
                    more |= low[k] < high[k];
                }
            }
#pragma unroll
            for (i32 k = 0; k < SOME; ++k) rank += low[k];
        }
        rank = sum_warp(rank);
        if (Group<false>::rank() == 0) in.order[rank] = v;
    }
}

// What moves change of the overload of part p, one after the other.
struct Overload {
    const Work& work;
    i64 held[N_LOADS];

    __device__ __forceinline__ Overload(const Work& work, i64 p) : work(work) {
        for (i32 r = 0; r < N_LOADS; ++r) held[r] = work.loads(work.measured)[p * N_LOADS + r];
    }
    // The next moves, one a thread of the block: what this one's node brings (sign 1) or takes (-1), if any (0).
    __device__ __forceinline__ void add(i64 v, i32 sign) {
        i64 more = 0, total;
        for (i32 r = 0; r < N_LOADS; ++r) {
            const i64 change = sign > 0 ? work.incoming(v, r) : sign < 0 ? -work.outgoing(v, r) : 0, limit = work.in.limits[r];
            const i64 now = held[r] + scan(Team::of_block(), change, total, work.desk.scratch);
            more += larger(now - limit, 0) - larger(now - change - limit, 0);
            held[r] += total;
        }
        if (more != 0) add64(work.in.changed + v, more);
    }
};

// changed[v] += by how much v's move, after all of better rank, changes the overload of its parts. A block a part: its
// halves are sorted in shared memory; where they have no room there the block goes through all moves by rank.
__device__ __noinline__ void change_overload(const Work& work) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    i64 n_moves = 0;
    for (i64 i = threadIdx.x; i < gridDim.x; i += blockDim.x) n_moves += in.chunks[i];
    n_moves = sum_of(Team::of_block(), n_moves, desk.scratch);
    for (i64 p = blockIdx.x; p < in.n_parts; p += gridDim.x) {
        const i64 n = work.n_in()[p], first = desk.first_ins[p];
        if (n == 0) continue;
        Overload part(work, p);
        if (n <= desk.sortable()) {
            i64* gains = reinterpret_cast<i64*>(desk.events);
            i32* halves = reinterpret_cast<i32*>(gains + desk.sortable());
            for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
                halves[i] = in.halves[first + i];
                gains[i] = in.gains[halves[i] >> 1];
            }
            sort_moves(gains, halves, n, ById());
            for (i64 base = 0; base < n; base += blockDim.x) {
                const i64 i = base + threadIdx.x;
                part.add(i < n ? halves[i] >> 1 : 0, i >= n ? 0 : halves[i] & 1 ? 1 : -1);
            }
        } else {
            for (i64 base = 0; base < n_moves; base += blockDim.x) {
                const i64 i = base + threadIdx.x, v = i < n_moves ? in.order[i] : 0;
                part.add(v, i >= n_moves ? 0 : (in.targets[v] == p) - (in.parts[v] == p));
            }
        }
        __syncthreads();
    }
}

// How many moves the best prefix has, known to all threads: with the least overload left, then saving
// most, then the shortest; 0 if nothing gets better.
__device__ __noinline__ i64 best_prefix(const Work& work) {
    const Rounds& in = work.in;
    i64* scratch = work.desk.scratch;
    const i64 over = overload(work);
    i64 n = 0;
    for (i64 i = threadIdx.x; i < gridDim.x; i += blockDim.x) n += in.chunks[i];
    n = sum_of(Team::of_block(), n, scratch);
    const u64 sign = 1ull << 63;  // so that unsigned comparisons order signed numbers
    const i32 SOME = 4;  // moves of a thread, one after the other
    Best best = {-(1ll << 62), 0, -1, 0};
    i64 after = over, saved = 0, total;
    for (i64 base = 0; base < n; base += SOME * blockDim.x) {
        const i64 first = base + SOME * threadIdx.x;
        i64 changes[SOME], gains[SOME], left = 0, gained = 0;
#pragma unroll
        for (i32 k = 0; k < SOME; ++k) {
            const i64 v = first + k < n ? in.order[first + k] : -1;
            left += changes[k] = v >= 0 ? in.changed[v] : 0;
            gained += gains[k] = v >= 0 ? in.later[v] : 0;
        }
        left = after + scan(Team::of_block(), left, total, scratch) - left;
        after += total;
        gained = saved + scan(Team::of_block(), gained, total, scratch) - gained;
        saved += total;
#pragma unroll
        for (i32 k = 0; k < SOME; ++k) {
            left += changes[k];
            gained += gains[k];
            const Best candidate = {-left, static_cast<u64>(gained) ^ sign, static_cast<i32>(first + k), 0};
            if (first + k < n && best.below(candidate)) best = candidate;
        }
    }
    best = best_of(Team::of_block(), best, scratch);
    const bool better = -best.value < over || (-best.value == over && static_cast<i64>(best.tie ^ sign) > 0);
    return best.id >= 0 && better ? best.id + 1 : 0;
}

// Rounds first .. last - 1. What is asked and where it is kept: see Rounds; the parts are the result.
extern "C" __launch_bounds__(1024, 1) __global__ void refine_by_prefix(const Rounds* rounds, i64 first, i64 last) {
    WORK(rounds, first);
    begin(work);
    bool done = false;
    for (; work.turn < last; next_turn(work)) {
        done = progress.gave_up != 0;
        if (done) break;
        const Turn turn = in.turn(rounds, work.turn);
        begin_turn<REPLAYED>(work, turn);
        work.grid.meet();
        replay_all<true>(work);
        sort_share(work);
        list_halves(work);
        work.grid.meet();
        if (work.counters().n_crowds != 0) replay_crowds<true>(work);
        rank_moves(work);
        work.grid.meet();
        change_overload(work);
        work.grid.meet();
        const i64 n = best_prefix(work);
        done = turn.cold != 0 && n == 0;
        if (done) break;
        for (i64 i = work.thread(); i < n; i += work.n_threads()) {
            const i32 v = in.order[i];
            in.parts[v] = in.targets[v];
            in.moved[v] = true;
        }
        work.grid.meet();
        measure_again(work, n != 0);
    }
    end(work, done);
}
