// Rounds of refinement by the best prefix of all moves, in one launch: `refine_in_sequence` of
// snnmap/partitioning/multilevel/sequence.py with `choose_prefix` of choosing.py; all give the same integers.
//
// The phases of a round, between which all blocks wait for each other:
//   measure   rows of the pins-per-part table, loads                            (nets, nodes)
//   propose   every node's best move in isolation                               (nodes)
//   rank      the place of each move among all of them; halves listed by part   (moves)
//   replay    what each saves, brings and takes after all moves of better rank  (nets)
//   weigh     by how much each half of a move changes its part's overload       (parts)
//   look      the best prefix that ends in a block's share                      (moves)
//   choose    the best of those, found by every block for itself, is made       (moves)
#include "common.cuh"
#include "grid.cuh"
#include "block.cuh"
#include "rounds.cuh"
#include "round_nets.cuh"
#include "round_lists.cuh"
#include "round_found.cuh"
#include "round_tell.cuh"
#include "round_update.cuh"
#include "round_measure.cuh"
#include "round_move.cuh"
#include "round_twins.cuh"
#include "round_gather.cuh"
#include "round_propose.cuh"
#include "round_rank.cuh"
#include "round_replay.cuh"
#include "round_choose.cuh"

// Halves of all moves by part: 2 v in the list of v's part, 2 v + 1 in that of its target.
__device__ __noinline__ void list_halves(const Work& work) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    const i64 *n_in = work.wanted_in(), *n_out = work.wanted_out(), n_moves = n_moves_of(work);
    place_lists(in.n_parts, desk.first_ins, desk.scratch, [&](i64 p) { return n_in[p] + n_out[p]; });
    for (i64 i = work.thread(); i < n_moves; i += work.n_threads()) {
        const i64 v = in.proposed[i];
        in.changed[v] = 0;
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
    for (i64 i = work.thread(); i < n_moves; i += work.n_threads()) {
        const i64 v = in.proposed[i];
        in.halves[atomicAdd(desk.outs + in.targets[v], 1u)] = static_cast<i32>(2 * v + 1);
        in.halves[atomicAdd(desk.outs + in.parts[v], 1u)] = static_cast<i32>(2 * v);
    }
    __syncthreads();
    for (i32 p = threadIdx.x; p < desk.n_parts; p += blockDim.x) desk.outs[p] = 0;
    __syncthreads();
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
        if (more != 0) add_to(work.in.changed + v, more);
    }
};

// changed[v] += by how much v's move, after all of better rank, changes the overload of its parts. A block a part: its
// halves are put in order by a bit for each rank, in lists' memory and that of the tables, which are zeroed again; where
// that has no room the block goes through all moves.
__device__ __noinline__ void change_overload(const Work& work) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    const i64 n_moves = n_moves_of(work), n_words = desk.n_bytes(Team::of_block()) / 4, most_words = n_words + in.table_words;
    i64 used = 0;
    for (i64 p = blockIdx.x; p < in.n_parts; p += gridDim.x) {
        const i64 n = work.n_in()[p], first = desk.first_ins[p];
        if (n == 0) continue;
        Overload part(work, p);
        const i32* halves = put_in_order(work, in.halves + first, n, most_words, [](i32 half) { return half >> 1; });
        if (halves != nullptr) used = larger(used, words_to_order(work, n));
        if (halves != nullptr) {
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
    for (i64 w = n_words + threadIdx.x; w < used; w += blockDim.x) desk.lists.as<u32>()[w] = 0;
    __syncthreads();
}

// What a share of the moves by rank changes of overload and saves, and of its prefixes the best one, if there is any:
// with the least overload left, then saving most, then the shortest.
struct Look {
    i64 changed, saved, best_changed, best_saved, best;
};

const u64 SIGN = 1ull << 63;  // so that unsigned comparisons order signed numbers

// Of the share of this block.
__device__ __noinline__ void look_at_share(const Work& work) {
    const Rounds& in = work.in;
    i64* scratch = work.desk.scratch;
    i64 first, last, changed = 0, saved = 0, total;
    work.grid.share(n_moves_of(work), first, last);
    Best best = {-(1ll << 62), 0, -1, 0};
    for (i64 base = first; base < last; base += blockDim.x) {
        const i64 i = base + threadIdx.x, v = i < last ? in.order[i] : -1;
        const i64 left = changed + scan(Team::of_block(), v >= 0 ? in.changed[v] : 0, total, scratch);
        changed += total;
        const i64 gained = saved + scan(Team::of_block(), v >= 0 ? in.later[v] : 0, total, scratch);
        saved += total;
        const Best candidate = {-left, static_cast<u64>(gained) ^ SIGN, static_cast<i32>(i), 0};
        if (v >= 0 && best.below(candidate)) best = candidate;
    }
    best = best_of(Team::of_block(), best, scratch);
    if (threadIdx.x == 0) in.looks[blockIdx.x] = {changed, saved, -best.value, static_cast<i64>(best.tie ^ SIGN), best.id};
}

// How many moves the best prefix of all has, known to all threads; 0 if nothing gets better.
__device__ __noinline__ i64 best_prefix(const Work& work) {
    i64* scratch = work.desk.scratch;
    const i64 over = overload(work);
    Best best = {-(1ll << 62), 0, -1, 0};
    i64 after = over, saved = 0, total;
    for (i64 base = 0; base < gridDim.x; base += blockDim.x) {
        Look look = {0, 0, 0, 0, -1};
        if (base + threadIdx.x < gridDim.x) look = work.in.looks[base + threadIdx.x];
        const i64 left = after + scan(Team::of_block(), look.changed, total, scratch) - look.changed + look.best_changed;
        after += total;
        const i64 gained = saved + scan(Team::of_block(), look.saved, total, scratch) - look.saved + look.best_saved;
        saved += total;
        const Best candidate = {-left, static_cast<u64>(gained) ^ SIGN, static_cast<i32>(look.best), 0};
        if (look.best >= 0 && best.below(candidate)) best = candidate;
    }
    best = best_of(Team::of_block(), best, scratch);
    const bool better = -best.value < over || (-best.value == over && static_cast<i64>(best.tie ^ SIGN) > 0);
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
        meet(work);
        list_halves(work);
        rank_all(work);
        meet(work);
        replay_all<true>(work);
        meet(work);
        change_overload(work);
        meet(work);
        look_at_share(work);
        meet(work);
        const i64 n = best_prefix(work);
        done = turn.cold != 0 && n == 0;
        if (done) break;
        for (i64 i = work.thread(); i < n; i += work.n_threads()) move(work, in.order[i]);
        meet(work);
        measure_again(work, in.order, n);
    }
    note_loads(work, 0);
    end(work, done);
}
