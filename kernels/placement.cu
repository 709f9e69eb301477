// Placement: swaps of parts proposed in parallel, and a fixed point that settles which are made.
//
// Part p on cell a pays C_p(a) = sum over q of rate(p, q) * way(a, cell of q). Swapping it with part r
// (or nobody) on cell b saves
//     gain = C_p(a) - C_p(b) + C_r(b) - C_r(a), the link between p and r left out.
// A way is the sum of a table for columns and one for rows; a cell is column * n_y + row.
//
// Proposals are settled in the order of their ranks: each is made unless one of its cells was taken
// by an earlier one, or its gain, after all earlier ones, is not above its floor. That is the
// only solution of a fixed point: pass k decides every proposal from the decisions of pass k - 1
// about earlier ones, so after k passes the first k stand, and a pass that changes nothing ends it.
// `firsts` tells, for each cell, the first accepted proposal that takes it. Entries hold the epoch of
// the pass that wrote them, which falls from pass to pass, so nothing is ever cleared: atomicMin
// replaces old entries, and readers ignore them. All results are integers free of any order.
//
// Many rounds run in one launch. Boards (chains of annealing) lie side by side: arrays of a board
// follow each other. The blocks of the grid, which all run at once (a cooperative launch), form a
// team for each board, and a team's blocks wait for each other between steps. Half a warp works on
// a part.
#include "common.cuh"

#ifndef WAIT_A_LITTLE  // between two looks at memory that another block will write
#define WAIT_A_LITTLE()
#endif

typedef unsigned char u8;

const int RANK_BITS = 24;
const u64 NOBODY = (1ull << RANK_BITS) - 1;
const i32 BLOCKED = -2;  // part_at of a cell that takes no part; EMPTY is free
const i32 LANES = 16;    // threads that work on a part

struct Graph {
    const i64* offsets;
    const i32* neighbours;
    const i64* rates;
};

struct Ways {
    const i64 *x, *y;
    i32 n_x, n_y;

    __device__ __forceinline__ i64 between(i32 a, i32 b) const {
        return x[static_cast<i64>(a / n_y) * n_x + b / n_y] + y[static_cast<i64>(a % n_y) * n_y + b % n_y];
    }
};

// What a launch leaves for the host or for its next steps; zero at its start. `gate` has a line of
// memory of its own, for all blocks of a team look at it.
struct State {
    u64 gate, unused[15];
    u64 changed[2];  // epoch of the last pass, even or odd, that changed a decision
    u64 listed[2];   // proposals of an even, an odd round of swaps
    u64 saved, losses, n_losses, n_rounds;
    u64 rest[8];
};

// Boards and the proposals of a round on them: 8 bytes a field, filled by engine_gpu.py in this
// order.
struct Boards {
    Graph graph;
    i64 n_parts;
    const i64* table_x;
    i64 n_x;
    const i64* table_y;
    i64 n_y, n_cells, n_rows;
    const u8* locked;
    i64 n_boards;
    i32 *cell_of, *part_at;
    i32* targets;  // of proposals, -1 for none
    i64* gains;
    u8* accepted;
    u64* firsts;  // two arrays a board, for even and odd epochs
    u64* epochs;  // of the next pass
    State* states;
    // annealing
    const i64 *exponentials, *temperatures, *radii;  // the latter two of each board and round
    i64 n_rounds;
    const u64* seeds;
    i64* floors;
    // swaps that only gain
    u8* active;
    i32 *before, *listed, *order;  // order: parts by rank; null: parts are settled by their ids
    i64* listed_gains;
};

// The blocks that work on one board.
struct Team {
    State* state;
    i32 size, member;  // blocks; this block among them
    u64 n_gone;        // blocks that have passed the gate once the next meeting is over

    // Threads of the team, and this one's number.
    __device__ __forceinline__ i32 n_threads() const { return size * static_cast<i32>(blockDim.x); }
    __device__ __forceinline__ i32 thread() const { return member * static_cast<i32>(blockDim.x) + threadIdx.x; }

    // Wait for the whole team; what it wrote before is seen afterwards. Whether `word` then holds
    // `value`: one thread of a block looks.
    __device__ __forceinline__ bool meet(const u64* word = nullptr, u64 value = 0) {
        __syncthreads();
        bool found = false;
        if (threadIdx.x == 0) {
            if (size > 1) {
                n_gone += size;
                __threadfence();
                atomicAdd(&state->gate, 1ull);
                while (seen(&state->gate) < n_gone) WAIT_A_LITTLE();
                __threadfence();
            }
            found = word && seen(word) == value;
        }
        return __syncthreads_or(found);
    }
    static __device__ __forceinline__ u64 seen(const u64* word) { return *const_cast<const volatile u64*>(word); }
};

// One board: where its arrays begin.
struct Board {
    Graph graph;
    Ways ways;
    i32 *cell_of, *part_at, *targets;
    i64* gains;
    u8* accepted;
    u64 *firsts, *firsts_odd;
    const i32* order;
    const i64* floors;

    __device__ __forceinline__ Board(const Boards& all, i64 i)
        : graph(all.graph),
          ways{all.table_x, all.table_y, static_cast<i32>(all.n_x), static_cast<i32>(all.n_y)},
          cell_of(all.cell_of + i * all.n_parts),
          part_at(all.part_at + i * all.n_cells),
          targets(all.targets + i * all.n_parts),
          gains(all.gains + i * all.n_parts),
          accepted(all.accepted + i * all.n_parts),
          firsts(all.firsts + 2 * i * all.n_cells),
          firsts_odd(firsts + all.n_cells),
          order(all.order),
          floors(all.floors ? all.floors + i * all.n_parts : nullptr) {}
    __device__ __forceinline__ u64* firsts_of(u64 epoch) const { return epoch & 1 ? firsts_odd : firsts; }
};

// Where parts are at the start of a round.
struct AtStart {
    const i32* cell_of;
    __device__ __forceinline__ i32 operator()(i32 part) const { return cell_of[part]; }
};

// Where parts are once the accepted proposals before `rank` are made.
struct AfterEarlier {
    const i32 *cell_of, *targets, *order;
    const u64* firsts;
    u64 epoch, rank;

    __device__ __forceinline__ u64 taker(i32 cell) const {
        const u64 entry = firsts[cell];
        return entry >> RANK_BITS == epoch ? entry & NOBODY : NOBODY;
    }
    __device__ __forceinline__ i32 operator()(i32 part) const {
        const i32 cell = cell_of[part];
        const u64 first = taker(cell);
        if (first >= rank) return cell;
        const i32 mover = order ? order[first] : static_cast<i32>(first);
        const i32 from = cell_of[mover];
        return from == cell ? targets[mover] : from;
    }
};

__device__ __forceinline__ i32 lane() { return threadIdx.x & (LANES - 1); }

// Gain of the swap of p on a with r (or -1) on b, known to the half of a warp that asks; 0 if it does
// not. The links of both parts are one list, so that their loads overlap. Whole warps call this.
template <class Where>
__device__ __forceinline__ i64 gain_of_swap(const Graph& graph, const Ways& ways, bool asked, i32 p, i32 a, i32 r,
                                            i32 b, const Where& where) {
    i64 sum = 0;
    if (asked) {
        const i64 first_p = graph.offsets[p], first_r = r >= 0 ? graph.offsets[r] : 0;
        const i32 n_p = static_cast<i32>(graph.offsets[p + 1] - first_p);
        const i32 n = n_p + (r >= 0 ? static_cast<i32>(graph.offsets[r + 1] - first_r) : 0);
        const i64 *a_x = ways.x + static_cast<i64>(a / ways.n_y) * ways.n_x, *a_y = ways.y + a % ways.n_y * ways.n_y;
        const i64 *b_x = ways.x + static_cast<i64>(b / ways.n_y) * ways.n_x, *b_y = ways.y + b % ways.n_y * ways.n_y;
        for (i32 i = lane(); i < n; i += LANES) {
            const bool own = i < n_p;
            const i64 link = own ? first_p + i : first_r + (i - n_p);
            const i32 other = graph.neighbours[link];
            const i64 rate = graph.rates[link];
            if (other == (own ? r : p)) continue;
            const i32 cell = where(other), x = cell / ways.n_y, y = cell - x * ways.n_y;
            const i64 shorter = a_x[x] + a_y[y] - b_x[x] - b_y[y];
            sum += own ? rate * shorter : -rate * shorter;
        }
    }
    for (int step = LANES / 2; step > 0; step >>= 1) sum += __shfl_xor_sync(ALL_LANES, sum, step);
    return sum;
}

__device__ __forceinline__ u64 entry_of(u64 epoch, u64 rank) { return epoch << RANK_BITS | rank; }

// 64 bits for (seed, stream, index), as `hash_bits` of _kernels_anneal.py.
__device__ __forceinline__ u64 hash_bits(u64 seed, u64 stream, u64 index) {
    const u64 golden = 0x9E3779B97F4A7C15ull;
    const u64 z = mix64(((seed + 1) * golden + stream) * golden + index);
    return mix64(z * golden + index);
}

__device__ __forceinline__ i32 below(u64 bits, i64 n) {
    return static_cast<i32>((bits & 0xFFFFF) * static_cast<u64>(n) >> 20);
}

// ------------------------------------------------------------------------------------ settling

// One pass over n proposals, ranked by their place: reads the takers of `epoch`, writes those of
// epoch - 1, and notes the epoch in state->changed if a decision changed.
__device__ __forceinline__ void decide(const Board& board, const Team& team, i32 n, u64 epoch) {
    const u64* known = board.firsts_of(epoch);
    u64* next = board.firsts_of(epoch - 1);
    bool changed = false;
    for (i32 place = team.thread(); (place & ~31) / LANES < n; place += team.n_threads()) {
        const i32 rank = place / LANES;
        const i32 p = rank < n ? (board.order ? board.order[rank] : rank) : 0;
        const i32 b = rank < n ? board.targets[p] : -1;
        if (__ballot_sync(ALL_LANES, b >= 0) == 0) continue;
        const AfterEarlier now = {board.cell_of, board.targets, board.order, known, epoch, static_cast<u64>(rank)};
        i32 a = 0, r = EMPTY;
        bool yes = false;
        if (b >= 0) {
            a = board.cell_of[p];
            r = board.part_at[b];
            yes = now.taker(a) >= now.rank && now.taker(b) >= now.rank;
        }
        const i64 gain = gain_of_swap(board.graph, board.ways, yes, p, a, r, b, now);
        if (b < 0 || lane() != 0) continue;
        if (yes) {
            board.gains[p] = gain;
            yes = gain > (board.floors ? board.floors[p] : 0);
        }
        if (yes) {
            atomicMin(next + a, entry_of(epoch - 1, now.rank));
            atomicMin(next + b, entry_of(epoch - 1, now.rank));
        }
        if (yes == (board.accepted[p] != 0)) continue;
        board.accepted[p] = yes;
        changed = true;
    }
    if (changed) team.state->changed[epoch & 1] = epoch;
}

// Settle n proposals whose first takers, all accepted, stand at `epoch`, and make the accepted swaps,
// which share no cell. Adds this thread's share of what they save; returns the next free epoch.
__device__ __forceinline__ u64 settle(const Board& board, Team& team, i32 n, u64 epoch, i64& saved) {
    while (true) {
        decide(board, team, n, epoch);
        if (!team.meet(&team.state->changed[epoch & 1], epoch)) break;
        --epoch;
    }
    for (i32 rank = team.thread(); rank < n; rank += team.n_threads()) {
        const i32 p = board.order ? board.order[rank] : rank, b = board.targets[p];
        if (b < 0 || !board.accepted[p]) continue;
        const i32 a = board.cell_of[p], r = board.part_at[b];
        board.part_at[a] = r;
        board.part_at[b] = p;
        board.cell_of[p] = b;
        if (r >= 0) board.cell_of[r] = a;
        saved += board.gains[p];
    }
    team.meet();
    return epoch - 2;
}

// ------------------------------------------------------------------------------------ annealing

// A round's proposals: every movable part draws a cell near itself or near a part it is linked to,
// and keeps it if gain > floor = -temperature * variate. Random numbers are hashes of (seed, round,
// part). Adds up losses that were proposed, and their number.
__device__ __forceinline__ void propose_random(const Boards& all, const Board& board, const Team& team, i64* floors,
                                               u64 seed, u64 stream, i64 radius, i64 temperature, u64 epoch,
                                               i64& losses, i64& n_losses) {
    const i32 rows = static_cast<i32>(all.n_rows), columns = static_cast<i32>(all.n_cells / all.n_rows);
    u64* firsts = board.firsts_of(epoch);
    for (i32 place = team.thread(); (place & ~31) / LANES < all.n_parts; place += team.n_threads()) {
        const i32 p = place / LANES;
        i32 b = -1, r = EMPTY, a = 0;
        u64 more = 0;
        if (p < all.n_parts && !all.locked[p]) {
            const u64 bits = hash_bits(seed, stream, static_cast<u64>(p));
            more = hash_bits(seed, stream, ~static_cast<u64>(p));
            a = board.cell_of[p];
            i32 at = a, reach = static_cast<i32>(radius);
            const i64 first = board.graph.offsets[p], degree = board.graph.offsets[p + 1] - first;
            if (bits >> 62 == 0 && degree > 0) {
                at = board.cell_of[board.graph.neighbours[first + below(bits, degree)]];
                reach = 1;
            }
            const i32 x = at / rows + below(more, 2 * reach + 1) - reach;
            const i32 y = at % rows + below(more >> 20, 2 * reach + 1) - reach;
            if (x >= 0 && y >= 0 && y < rows && x < columns) {
                b = x * rows + y;
                r = board.part_at[b];
                if (b == a || r == BLOCKED || (r >= 0 && all.locked[r])) b = -1;
            }
        }
        const i64 gain = gain_of_swap(board.graph, board.ways, b >= 0, p, a, r, b, AtStart{board.cell_of});
        if (p >= all.n_parts || lane() != 0) continue;
        bool kept = false;
        if (b >= 0) {
            const i64 floor = -(temperature >> 16) * all.exponentials[more >> 52];
            kept = gain > floor;
            floors[p] = floor;
            if (gain < 0) {
                losses += -gain >> 20;
                ++n_losses;
            }
        }
        board.targets[p] = kept ? b : -1;
        board.accepted[p] = kept;
        if (!kept) continue;
        atomicMin(firsts + a, entry_of(epoch, static_cast<u64>(p)));
        atomicMin(firsts + b, entry_of(epoch, static_cast<u64>(p)));
    }
}

// The struct of a launch in shared memory, where reading its fields costs little.
__device__ __forceinline__ void take(Boards& all, const Boards* boards) {
    const u64* from = reinterpret_cast<const u64*>(boards);
    u64* into = reinterpret_cast<u64*>(&all);
    for (u32 i = threadIdx.x; i < sizeof(Boards) / sizeof(u64); i += blockDim.x) into[i] = from[i];
    __syncthreads();
}

// Rounds first .. first + n of annealing on every board. A team of blocks a board, or boards in turn.
extern "C" __launch_bounds__(1024, 1) __global__ void anneal_rounds(const Boards* boards, i64 first, i64 n) {
    __shared__ Boards all;
    take(all, boards);
    const i32 n_teams = static_cast<i32>(smaller(all.n_boards, gridDim.x)), size = gridDim.x / n_teams;
    const i32 block = blockIdx.x;
    if (block >= n_teams * size) return;
    for (i64 i = block % n_teams; i < all.n_boards; i += n_teams) {
        Team team = {all.states + i, size, block / n_teams, 0};
        const Board board(all, i);
        i64* floors = all.floors + i * all.n_parts;
        const u64 seed = all.seeds[i];
        u64 epoch = all.epochs[i];
        i64 saved = 0, losses = 0, n_losses = 0;
        for (i64 round = first; round < first + n; ++round) {
            const i64 at = i * all.n_rounds + round, radius = all.radii[at], temperature = all.temperatures[at];
            propose_random(all, board, team, floors, seed, static_cast<u64>(round), radius, temperature, epoch,
                           losses, n_losses);
            team.meet();
            epoch = settle(board, team, static_cast<i32>(all.n_parts), epoch, saved);
        }
        saved = sum_warp(saved);
        losses = sum_warp(losses);
        n_losses = sum_warp(n_losses);
        if ((threadIdx.x & 31) == 0) {
            atomicAdd(&team.state->saved, static_cast<u64>(saved));
            atomicAdd(&team.state->losses, static_cast<u64>(losses));
            atomicAdd(&team.state->n_losses, static_cast<u64>(n_losses));
        }
        if (team.thread() == 0) all.epochs[i] = epoch;
    }
}

// ------------------------------------------------------------------------------------ swaps

// Best swap of every active part with any cell within reach, straight from links; the lowest cell of
// the largest gain > 0, else -1. Cells of a part in turn.
__device__ __forceinline__ void propose_near(const Boards& all, const Board& board, const Team& team, i64 reach) {
    for (i32 place = team.thread(); (place & ~31) / LANES < all.n_parts; place += team.n_threads()) {
        const i32 p = place / LANES;
        i32 a = 0, target = -1;
        i64 best = 0, first_x = 0, first_y = 0, height = 1, n = 0;
        if (p < all.n_parts && !all.locked[p] && all.active[p]) {
            a = board.cell_of[p];
            const i64 x = a / all.n_y, y = a % all.n_y;
            first_x = larger(0, x - reach);
            first_y = larger(0, y - reach);
            height = smaller(all.n_y, y + reach + 1) - first_y;
            n = (smaller(all.n_cells / all.n_y, x + reach + 1) - first_x) * height;
        }
        const i64 most = larger(n, __shfl_xor_sync(ALL_LANES, n, LANES));
        for (i64 i = 0; i < most; ++i) {
            i32 b = -1, r = EMPTY;
            if (i < n) {
                b = static_cast<i32>((first_x + i / height) * all.n_y + first_y + i % height);
                r = board.part_at[b];
                if (r == BLOCKED || b == a || (r >= 0 && all.locked[r])) b = -1;
            }
            const i64 gain = gain_of_swap(board.graph, board.ways, b >= 0, p, a, r, b, AtStart{board.cell_of});
            if (b >= 0 && gain > best) best = gain, target = b;
        }
        if (p >= all.n_parts || lane() != 0) continue;
        board.targets[p] = target;
        board.gains[p] = best;
    }
}

// Rank the n listed proposals by falling gain, then by part, accept them all, and let no part be
// active. Ranks are counted: every proposal looks at all others.
__device__ __forceinline__ void rank_proposals(const Boards& all, const Board& board, const Team& team, i32 n,
                                               u64 epoch) {
    u64* firsts = board.firsts_of(epoch);
    for (i32 place = team.thread(); (place & ~31) / LANES < n; place += team.n_threads()) {
        const i32 i = place / LANES;
        i32 p = 0, better = 0;
        if (i < n) {
            p = all.listed[i];
            const i64 gain = all.listed_gains[i];
            for (i32 j = lane(); j < n; j += LANES) {
                const i64 other = all.listed_gains[j];
                if (other > gain || (other == gain && all.listed[j] < p)) ++better;
            }
        }
        for (int step = LANES / 2; step > 0; step >>= 1) better += __shfl_xor_sync(ALL_LANES, better, step);
        if (i >= n || lane() != 0) continue;
        all.order[better] = p;
        board.accepted[p] = 1;
        atomicMin(firsts + board.cell_of[p], entry_of(epoch, static_cast<u64>(better)));
        atomicMin(firsts + board.targets[p], entry_of(epoch, static_cast<u64>(better)));
    }
    for (i32 p = team.thread(); p < all.n_parts; p += team.n_threads()) {
        all.before[p] = board.cell_of[p];
        all.active[p] = 0;
    }
}

// Mark the parts around which something changed: moved ones, those linked to them, those within reach
// of where they were or are, and those whose proposal was not made. Only ever writes 1.
__device__ __forceinline__ void mark_active(const Boards& all, const Board& board, const Team& team, i64 reach) {
    for (i32 p = team.thread() / LANES; p < all.n_parts; p += team.n_threads() / LANES) {
        const i64 now = board.cell_of[p], before = all.before[p];
        if (now == before) {
            if (lane() == 0 && board.targets[p] >= 0) all.active[p] = 1;
            continue;
        }
        if (lane() == 0) all.active[p] = 1;
        for (i64 i = board.graph.offsets[p] + lane(); i < board.graph.offsets[p + 1]; i += LANES)
            all.active[board.graph.neighbours[i]] = 1;
        for (i32 k = 0; k < 2; ++k) {
            const i64 cell = k ? now : before, x = cell / all.n_y, y = cell % all.n_y;
            const i64 first_x = larger(0, x - reach), last_x = smaller(all.n_cells / all.n_y, x + reach + 1);
            const i64 first_y = larger(0, y - reach), height = smaller(all.n_y, y + reach + 1) - first_y;
            for (i64 i = lane(); i < (last_x - first_x) * height; i += LANES) {
                const i32 r = board.part_at[(first_x + i / height) * all.n_y + first_y + i % height];
                if (r >= 0) all.active[r] = 1;
            }
        }
    }
}

// Rounds of the best swaps within reach on one board, until one finds none, at most n. Without `near`
// the proposals of the (only) round are there already. The whole grid is one team.
extern "C" __launch_bounds__(1024, 1) __global__ void swap_rounds(const Boards* boards, i64 reach, i64 near, i64 n) {
    __shared__ Boards all;
    take(all, boards);
    Team team = {all.states, static_cast<i32>(gridDim.x), static_cast<i32>(blockIdx.x), 0};
    const Board board(all, 0);
    u64 epoch = all.epochs[0];
    i64 saved = 0, round = 0;
    for (; round < n; ++round) {
        if (near) {
            propose_near(all, board, team, reach);
            team.meet();
        }
        u64* counts = team.state->listed;
        for (i32 p = team.thread(); p < all.n_parts; p += team.n_threads()) {
            if (board.targets[p] < 0) continue;
            const u64 i = atomicAdd(counts + (round & 1), 1ull);
            all.listed[i] = p;
            all.listed_gains[i] = board.gains[p];
        }
        team.meet();
        const i32 n_listed = static_cast<i32>(Team::seen(counts + (round & 1)));
        if (n_listed == 0) break;
        if (team.thread() == 0) counts[(round + 1) & 1] = 0;
        rank_proposals(all, board, team, n_listed, epoch);
        team.meet();
        epoch = settle(board, team, n_listed, epoch, saved);
        mark_active(all, board, team, reach);
        team.meet();
    }
    if (round < n)
        for (i32 p = team.thread(); p < all.n_parts; p += team.n_threads()) all.active[p] = 0;
    saved = sum_warp(saved);
    if ((threadIdx.x & 31) == 0) atomicAdd(&team.state->saved, static_cast<u64>(saved));
    if (team.thread() == 0) {
        all.epochs[0] = epoch;
        team.state->n_rounds = static_cast<u64>(round);
    }
}

// fields[p, i] = sum over q of rate(p, q) * table[place of q, i]: what p would pay on column (row) i.
// Parallel over (part, i), a thread each; neighbouring threads read neighbouring columns.
extern "C" __global__ void fill_fields(const i64* offsets, const i32* neighbours, const i64* rates, i64 n_parts,
                                       const i64* table, i64 n, const i32* cell_of, i64 n_y, i64 rows, i64* fields) {
    const i64 place = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (place >= n_parts * n) return;
    const i64 p = place / n, i = place % n;
    i64 sum = 0;
    for (i64 k = offsets[p]; k < offsets[p + 1]; ++k) {
        const i64 cell = cell_of[neighbours[k]];
        sum += rates[k] * table[(rows ? cell % n_y : cell / n_y) * n + i];
    }
    fields[place] = sum;
}

// leave[i, b] = fields[r, i] of the part r on cell b, 0 if it is empty: fields by cell, so that
// neighbouring cells are neighbours in memory. Parallel over (i, cell), a thread each.
extern "C" __global__ void fill_leave(const i64* fields, i64 n, const i32* part_at, i64 n_cells, i64* leave) {
    const i64 place = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (place >= n * n_cells) return;
    const i32 r = part_at[place % n_cells];
    leave[place] = r >= 0 ? fields[r * n + place / n_cells] : 0;
}

// stay[b] = what the part on cell b pays there, 0 if it is empty, -2^61 if it cannot be swapped.
// Parallel over cells, a thread each.
extern "C" __global__ void fill_stay(const i64* fields_x, i64 n_x, const i64* fields_y, i64 n_y, const i32* part_at,
                                     const u8* locked, i64 n_cells, i64* stay) {
    const i64 b = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (b >= n_cells) return;
    const i32 r = part_at[b];
    i64 pays = 0;
    if (r == BLOCKED || (r >= 0 && locked[r]))
        pays = -(1ll << 61);
    else if (r >= 0)
        pays = fields_x[r * n_x + b / n_y] + fields_y[r * n_y + b % n_y];
    stay[b] = pays;
}

// The proposals of `propose_near`, of all parts, from fields. Parallel over parts, a block each, and
// within it over cells; ties go to the lowest cell.
extern "C" __global__ void propose_far(
    const i64* offsets, const i32* neighbours, const i64* rates, i64 n_parts, const i64* table_x, i64 n_x,
    const i64* table_y, i64 n_y, i64 n_cells, const u8* locked, const i32* cell_of, const i32* part_at,
    const i64* fields_x, const i64* fields_y, const i64* stay, const i64* leave_x, const i64* leave_y, i64 reach,
    i32* targets, i64* gains) {
    const Ways ways = {table_x, table_y, static_cast<i32>(n_x), static_cast<i32>(n_y)};
    for (i64 p = blockIdx.x; p < n_parts; p += gridDim.x) {
        Best best = {0, 0, -1, 0};
        if (!locked[p]) {
            const i64 a = cell_of[p], x = a / n_y, y = a % n_y;
            const i64 first_x = larger(0, x - reach), last_x = smaller(n_cells / n_y, x + reach + 1);
            const i64 first_y = larger(0, y - reach), height = smaller(n_y, y + reach + 1) - first_y;
            const i64 here = fields_x[p * n_x + x] + fields_y[p * n_y + y];
            for (i64 i = threadIdx.x; i < (last_x - first_x) * height; i += blockDim.x) {
                const i64 bx = first_x + i / height, by = first_y + i % height, b = bx * n_y + by;
                i64 gain = here - fields_x[p * n_x + bx] - fields_y[p * n_y + by] + stay[b];
                gain -= leave_x[x * n_cells + b] + leave_y[y * n_cells + b];
                if (gain <= best.value) continue;
                const i32 r = part_at[b];
                if (r >= 0) {
                    const i64 link = lower_bound(neighbours, offsets[p], offsets[p + 1], r);
                    if (link < offsets[p + 1] && neighbours[link] == r)
                        gain -= 2 * rates[link] * ways.between(static_cast<i32>(a), static_cast<i32>(b));
                }
                if (gain > best.value) best.value = gain, best.id = static_cast<i32>(b);
            }
        }
        best = best_of_group<true>(best);
        if (threadIdx.x == 0) {
            targets[p] = best.id;
            gains[p] = best.value;
        }
    }
}

// ------------------------------------------------------------------------------------ minimum distance

// Parts in the given order, each on the free cell that costs least so far: sum over placed
// neighbours of rate * way; ties by distance from the centre, then by cell. One block: parts in
// turn, parallel over columns and rows, then over cells. `along` has room for n_x + n_y numbers.
extern "C" __global__ void nearest_cells(const i64* offsets, const i32* neighbours, const i64* rates,
                                         const i64* order, i64 n, const i64* table_x, i64 n_x, const i64* table_y,
                                         i64 n_y, i64 n_cells, i64 centre_x, i64 centre_y, i32* cell_of, i32* part_at,
                                         i64* along) {
    for (i64 k = 0; k < n; ++k) {
        const i64 p = order[k];
        for (i64 i = threadIdx.x; i < n_x + n_y; i += blockDim.x) {
            const bool is_x = i < n_x;
            const i64 at = is_x ? i : i - n_x;
            i64 sum = 0;
            for (i64 j = offsets[p]; j < offsets[p + 1]; ++j) {
                const i64 cell = cell_of[neighbours[j]];
                if (cell >= 0) sum += rates[j] * (is_x ? table_x[cell / n_y * n_x + at] : table_y[cell % n_y * n_y + at]);
            }
            along[i] = sum;
        }
        __syncthreads();
        Best best = {-0x7FFFFFFFFFFFFFFFll, 0, -1, 0};
        for (i64 b = threadIdx.x; b < n_cells; b += blockDim.x) {
            if (part_at[b] != EMPTY) continue;
            const i64 x = b / n_y, y = b % n_y;
            const i64 away = table_x[centre_x * n_x + x] + table_y[centre_y * n_y + y];
            const Best one = {-(along[x] + along[n_x + y]), ~static_cast<u64>(away), static_cast<i32>(b), 0};
            if (best.below(one)) best = one;
        }
        best = best_of_group<true>(best);
        if (threadIdx.x == 0) {
            cell_of[p] = best.id;
            part_at[best.id] = static_cast<i32>(p);
        }
        __syncthreads();
    }
}
