// Rounds of refinement in one launch: `refine` of snnmap/partitioning/multilevel/refinement.py (scheme
// "jet") with the steps of `choosing.py`; all give the same integers.
//
// The blocks of the grid all run at once and wait for each other between the phases of a round:
//   measure   rows of the pins-per-part table, connectivity, loads         (nets, nodes)
//   weigh     cost; the best parts so far are kept; prices                 (every block for itself)
//   propose   every node's best move in isolation                          (nodes)
//   rank      the place of each move among all of them                     (moves)
//   replay    what each move saves after all moves of better rank          (nets)
//   win       moves that still pay, listed by the part they go to          (nodes)
//   arrive    moves for which their part has room, best first              (parts)
//   relieve   of those that only pay by relief, what their part must lose  (parts)
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
#include "round_accept.cuh"
#include "round_choose.cuh"

__device__ __forceinline__ bool wins(const Rounds& in, i64 v) {
    return in.later[v] + in.gains[v] - in.plain_gains[v] > 0;
}

// Moves that still pay when all better ones are made, listed by target; what they take from their parts.
__device__ __noinline__ void list_winners(const Work& work) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    place_moves(work);
    const Sums taken = desk.loads();
    list_nodes(work, desk.first_ins, work.n_in(), in.halves, [&](i64 v) { return wins(in, v) ? in.targets[v] : -1; });
#pragma unroll 1
    for (i64 i = work.thread(); i < static_cast<i64>(work.counters().n_proposed); i += work.n_threads()) {
        const i64 v = in.proposed[i];
        if (!wins(in, v)) continue;
        for (i32 r = 0; r < N_LOADS; ++r) taken.add(in.parts[v] * N_LOADS + r, work.outgoing(v, r));
        work.counters().winning = 1;
    }
    work.flush(work.leaving());
}

// `accept_prefix`, by rank.
template <class Amount, class Take>
__device__ __forceinline__ void accept_ranked(const Work& work, const i32* list, i64 n, const i64* most, Amount amount, Take take) {
    if (n == 0) return;
    const i32* ordered = put_in_order(work, list, n, work.desk.n_bytes(Team::of_block()) / 4, [](i32 v) { return v; });
    if (ordered == nullptr) {
        accept_prefix(work, list, n, most, amount, take);
        return;
    }
    i64 room[N_LOADS], total;
    for (i32 r = 0; r < N_LOADS; ++r) room[r] = most[r];
    bool more = true;
#pragma unroll 1
    for (i64 base = 0; more && base < n; base += blockDim.x) {
        const i64 i = base + threadIdx.x, v = i < n ? ordered[i] : -1;
        bool fits = v >= 0;
        for (i32 r = 0; r < N_LOADS; ++r) {
            fits &= scan(Team::of_block(), v >= 0 ? amount(v, r) : 0, total, work.desk.scratch) <= room[r];
            room[r] -= total;
            more &= room[r] >= 0;
        }
        if (fits) take(v);
    }
    __syncthreads();
}

// Moves for which there is room are made, unless they only pay by relief and their part is too full:
// those are listed by their origin.
__device__ __noinline__ void let_arrive(const Work& work, bool roomy) {
    const Rounds& in = work.in;
    const i64* loads = work.loads(work.measured);
#pragma unroll 1
    for (i64 p = blockIdx.x; p < in.n_parts; p += gridDim.x) {
        const i64 n = work.n_in()[p], first = work.desk.first_ins[p];
        i64 room[N_LOADS];
        for (i32 r = 0; r < N_LOADS; ++r)
            room[r] = larger(in.limits[r] - loads[p * N_LOADS + r], 0) + work.leaving()[p * N_LOADS + r] +
                      (roomy ? in.limits[r] / 32 : 0);
        const auto amount = [&](i64 v, i32 r) { return work.incoming(v, r); };
        accept_ranked(work, in.halves + first, n, room, amount, [&](i64 v) {
            const i64 a = in.parts[v];
            bool over = false;
            for (i32 r = 0; in.later[v] <= 0 && r < N_LOADS; ++r) over |= loads[a * N_LOADS + r] > in.limits[r];
            if (!over) {
                move_and_list(work, v);
                return;
            }
            atomicAdd(&work.counters().n_relieving, 1ull);
            const u64 place = work.desk.first_outs[a] + atomicAdd(reinterpret_cast<u64*>(work.n_out() + a), 1ull);
            in.halves[in.n_nodes + place] = static_cast<i32>(v);
        });
    }
}

// Moves that only pay by relief stop when their origin is relieved.
__device__ __noinline__ void relieve(const Work& work) {
    const Rounds& in = work.in;
    const i64* loads = work.loads(work.measured);
#pragma unroll 1
    for (i64 p = blockIdx.x; p < in.n_parts; p += gridDim.x) {
        const i64 n = work.n_out()[p], first = work.desk.first_outs[p];
        i64 enough[N_LOADS];
        for (i32 r = 0; r < N_LOADS; ++r) {
            const i64 over = loads[p * N_LOADS + r] - in.limits[r];
            enough[r] = over > 0 ? over + in.limits[r] / 64 : 1ll << 60;
        }
        const auto amount = [&](i64 v, i32 r) { return work.outgoing(v, r); };
        accept_ranked(work, in.halves + in.n_nodes + first, n, enough, amount, [&](i64 v) { move_and_list(work, v); });
    }
}

// Rounds first .. last - 1. What is asked and where it is kept: see Rounds.
extern "C" __launch_bounds__(1024, 1) __global__ void refine_rounds(const Rounds* rounds, i64 first, i64 last) {
    WORK(rounds, first);
    i64 best_cost = progress.best_cost, since = progress.since;
    begin(work);
    if (first == 0) {
        best_cost = weigh(work);
        note_loads(work, 1);
        keep_best(work);
    }
    bool done = false;
    for (; work.turn < last; next_turn(work)) {
        done = since > in.patience || work.too_large || progress.gave_up != 0;
        if (done) break;
        const Turn turn = in.turn(rounds, work.turn);
        begin_turn<ALONE>(work, turn);
        meet(work);
        if (work.counters().n_proposed != 0) {
            rank_all(work);
            meet(work);
            replay_all<false>(work);
            meet(work);
            list_winners(work);
            meet(work);
        }
        if (work.counters().winning != 0) {
            let_arrive(work, turn.roomy != 0);
            meet(work);
        }
        if (work.counters().n_relieving != 0) {
            relieve(work);
            meet(work);
        }
        const i64 n_moved = static_cast<i64>(work.counters().n_moved);
        done = turn.cold != 0 && n_moved == 0;
        if (done) break;
        measure_again(work, in.sorted, n_moved);
        const i64 cost = weigh(work);
        ++since;
        if (cost < best_cost) {
            best_cost = cost;
            since = 0;
            keep_best(work);
        }
    }
    end(work, done);
    if (work.thread() != 0) return;
    progress.best_cost = best_cost;
    progress.since = since;
}
