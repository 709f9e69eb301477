// Rounds of strict repair in one launch: `repair` of snnmap/partitioning/multilevel/refinement.py, up to where
// it needs another part; both give the same integers.
//
// The phases of a round, between which all blocks wait for each other:
//   measure   rows of the pins-per-part table, loads                             (nets, nodes)
//   propose   best moves out of overfull parts to where they fit                 (nodes)
//   list      moves by the part that they leave                                  (nodes)
//   leave     of those, best first, as many as take the overload away            (parts)
//   enter     of those, best first, as many as there is room for where they go   (parts)
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
#include "round_accept.cuh"
#include "round_choose.cuh"

// The part with the largest free share, by its scarcest load; known to all threads.
__device__ __noinline__ i64 find_haven(const Work& work) {
    const Rounds& in = work.in;
    const i64* loads = work.loads(work.measured);
    Best best = {-(1ll << 62) * 2, 0, -1, 0};
    for (i64 p = threadIdx.x; p < in.n_parts; p += blockDim.x) {
        double free = 0;
        for (i32 r = 0; r < N_LOADS; ++r) {
            const double room = static_cast<double>(in.limits[r] - loads[p * N_LOADS + r]);
            const double share = room / static_cast<double>(larger(in.limits[r], 1));
            if (r == 0 || share < free) free = share;
        }
        const i64 bits = __double_as_longlong(free);
        // As integers, so that negative ones are ordered, too.
        const Best one = {bits < 0 ? bits ^ 0x7FFFFFFFFFFFFFFFll : bits, 0, static_cast<i32>(p), 0};
        if (best.below(one)) best = one;
    }
    return best_of(Team::of_block(), best, work.desk.scratch).id;
}

// Moves by the part that they leave; the most that one takes from its part, of each load.
__device__ __noinline__ void list_leavers(const Work& work) {
    const Rounds& in = work.in;
    place_moves(work);
    i64* largest = work.leaving();  // a word for each load: there are no winners to add up here
    list_nodes(work, work.desk.first_outs, work.n_out(), in.halves + in.n_nodes, [&](i64 v) { return in.parts[v]; });
    for (i64 i = work.thread(); i < static_cast<i64>(work.counters().n_proposed); i += work.n_threads()) {
        const i64 v = in.proposed[i];
        for (i32 r = 0; r < N_LOADS; ++r)
            if (work.outgoing(v, r) > largest[r]) atomicMax(largest + r, work.outgoing(v, r));
    }
}

// Of the moves out of a part those that take its overload away, and one more; listed by their targets.
__device__ __noinline__ void let_leave(const Work& work) {
    const Rounds& in = work.in;
    const i64* loads = work.loads(work.measured);
    for (i64 p = blockIdx.x; p < in.n_parts; p += gridDim.x) {
        const i64 n = work.n_out()[p], first = work.desk.first_outs[p];
        i64 enough[N_LOADS];
        for (i32 r = 0; r < N_LOADS; ++r) {
            const i64 over = loads[p * N_LOADS + r] - in.limits[r];
            enough[r] = over > 0 ? over + larger(work.leaving()[r], 1) : 1ll << 60;
        }
        const auto amount = [&](i64 v, i32 r) { return work.outgoing(v, r); };
        accept_prefix(work, in.halves + in.n_nodes + first, n, enough, amount, [&](i64 v) {
            const i32 b = in.targets[v];
            in.halves[work.desk.first_ins[b] + atomicAdd(reinterpret_cast<u64*>(work.n_in() + b), 1ull)] = static_cast<i32>(v);
        });
    }
}

// Of those the moves for which there is room are made.
__device__ __noinline__ void let_enter(const Work& work) {
    const Rounds& in = work.in;
    const i64* loads = work.loads(work.measured);
    for (i64 p = blockIdx.x; p < in.n_parts; p += gridDim.x) {
        const i64 n = work.n_in()[p], first = work.desk.first_ins[p];
        i64 room[N_LOADS];
        for (i32 r = 0; r < N_LOADS; ++r) room[r] = larger(in.limits[r] - loads[p * N_LOADS + r], 0);
        const auto amount = [&](i64 v, i32 r) { return work.incoming(v, r); };
        const auto enter = [&](i64 v) { move_and_list(work, v); };
        // Equal gains in the order in which the twin lists them: by the part that they leave (who has moved is in another by now).
        const auto tie = [&](i64 v) { return static_cast<u64>(in.moves[v] >> 16) << 32 | static_cast<u64>(v); };
        accept_prefix(work, in.halves + first, n, room, amount, enter, tie);
    }
}

// Rounds first .. last - 1, until all parts are valid or a round freed nothing and either another part may
// help or nothing moved (progress->stalled). The parts are the result.
extern "C" __launch_bounds__(1024, 1) __global__ void repair_rounds(const Rounds* rounds, i64 first, i64 last) {
    WORK(rounds, first);
    begin(work);
    i64 over = overload(work);
    bool done = over == 0, stalled = false;
    while (!done && work.turn < last) {
        const Turn turn = in.turn(rounds, work.turn);
        begin_turn<STRICT>(work, turn, find_haven(work));
        meet(work);
        list_leavers(work);
        meet(work);
        let_leave(work);
        meet(work);
        let_enter(work);
        meet(work);
        const bool moved = work.counters().n_moved != 0;
        measure_again(work, in.sorted, static_cast<i64>(work.counters().n_moved));
        const i64 before = over;
        over = overload(work);
        next_turn(work);
        stalled = !moved || (over >= before && in.may_grow != 0);
        done = over == 0 || stalled || progress.gave_up != 0;
    }
    end(work, done);
    if (work.thread() != 0) return;
    progress.n_turns = work.turn;
    progress.stalled = stalled;
}
