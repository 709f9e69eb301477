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
// Annealing runs several boards (chains) side by side: arrays of a board follow each other.
#include "common.cuh"

typedef unsigned char u8;

const int RANK_BITS = 24;
const u64 NOBODY = (1ull << RANK_BITS) - 1;
const i32 BLOCKED = -2;  // part_at of a cell that takes no part; EMPTY is free

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

// Boards of some chains and the proposals of a round on them: 8 bytes a field, filled by
// engine_gpu.py in this order. Launches are many and short, and so are their lists of arguments.
struct Boards {
    Graph graph;
    i64 n_parts;
    const i64* table_x;
    i64 n_x;
    const i64* table_y;
    i64 n_y, n_cells, n_rows;
    const u8* locked;
    i32 *cell_of, *part_at;
    i64 n_chains;
    i32* targets;
    const i32 *order, *ranks;  // null: parts are settled in the order of their ids
    i64* floors;               // null: gains must be above 0
    u8* accepted;
    i64* gains;
    u64 *firsts, *changed, *saved;
    i64 *clock, n_passes, top_epoch, epochs_a_round;
    const i64 *exponentials, *temperatures, *radii;
    i64 n_rounds, first_round;
    const u64* seeds;
    u64* losses;

    __device__ __forceinline__ Ways ways() const {
        return {table_x, table_y, static_cast<i32>(n_x), static_cast<i32>(n_y)};
    }
    // Epoch of the first pass of the round that the clock shows.
    __device__ __forceinline__ u64 epoch() const { return static_cast<u64>(top_epoch - *clock * epochs_a_round); }
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

// This lane's share of C_part(a) - C_part(b) without the link to `but`.
template <class Where>
__device__ __forceinline__ i64 pull(const Graph& graph, const Ways& ways, i32 part, i32 a, i32 b, i32 but,
                                    const Where& where) {
    i64 sum = 0;
    for (i64 i = graph.offsets[part] + Group<false>::rank(); i < graph.offsets[part + 1]; i += 32) {
        const i32 other = graph.neighbours[i];
        if (other == but) continue;
        const i32 cell = where(other);
        sum += graph.rates[i] * (ways.between(a, cell) - ways.between(b, cell));
    }
    return sum;
}

// Gain of the swap of p on a with r (or -1) on b, known to the whole warp.
template <class Where>
__device__ __forceinline__ i64 gain_of_swap(const Graph& graph, const Ways& ways, i32 p, i32 a, i32 r, i32 b,
                                            const Where& where) {
    i64 sum = pull(graph, ways, p, a, b, r, where);
    if (r >= 0) sum += pull(graph, ways, r, b, a, p, where);
    return sum_warp(sum);
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

// ------------------------------------------------------------------------------------ proposals

// A round of annealing: every movable part draws a cell near itself or near a part it is linked to,
// and keeps it if gain > floor = -temperature * variate. Parallel over (chain, part), a warp each;
// reads links and cells of neighbours. Random numbers are hashes of (seed, round, part).
extern "C" __global__ void propose_random(const Boards* boards) {
    const Boards& all = *boards;
    const i64 place = Group<false>::index();
    if (place >= all.n_chains * all.n_parts) return;
    const i64 chain = place / all.n_parts;
    const i32 p = static_cast<i32>(place % all.n_parts);
    const i32* cell_of = all.cell_of + chain * all.n_parts;
    const i32* part_at = all.part_at + chain * all.n_cells;
    const u8* locked = all.locked;
    const Graph graph = all.graph;
    const i64 round = *all.clock, at_round = chain * all.n_rounds + round;
    const u64 stream = static_cast<u64>(all.first_round + round), seed = all.seeds[chain];
    i32 b = -1, r = EMPTY, a = cell_of[p];
    u64 more = 0;
    if (!locked[p]) {
        const u64 bits = hash_bits(seed, stream, static_cast<u64>(p));
        more = hash_bits(seed, stream, ~static_cast<u64>(p));
        i32 at = a, reach = static_cast<i32>(all.radii[at_round]);
        const i64 first = graph.offsets[p], degree = graph.offsets[p + 1] - first;
        if (bits >> 62 == 0 && degree > 0) {
            at = cell_of[graph.neighbours[first + below(bits, degree)]];
            reach = 1;
        }
        const i32 rows = static_cast<i32>(all.n_rows), columns = static_cast<i32>(all.n_cells / all.n_rows);
        const i32 x = at / rows + below(more, 2 * reach + 1) - reach;
        const i32 y = at % rows + below(more >> 20, 2 * reach + 1) - reach;
        if (x >= 0 && y >= 0 && y < rows && x < columns) {
            b = x * rows + y;
            r = part_at[b];
            if (b == a || r == BLOCKED || (r >= 0 && locked[r])) b = -1;
        }
    }
    bool kept = false;
    i64 floor = 0;
    if (b >= 0) {
        const i64 gain = gain_of_swap(graph, all.ways(), p, a, r, b, AtStart{cell_of});
        floor = -(all.temperatures[at_round] >> 16) * all.exponentials[more >> 52];
        kept = gain > floor;
        if (gain < 0 && Group<false>::rank() == 0) {
            atomicAdd(all.losses + 2 * chain, static_cast<u64>(-gain >> 20));
            atomicAdd(all.losses + 2 * chain + 1, 1ull);
        }
    }
    if (Group<false>::rank() != 0) return;
    all.targets[place] = kept ? b : -1;
    all.floors[place] = floor;
    all.accepted[place] = kept;
    if (!kept) return;
    const u64 entry = entry_of(all.epoch(), static_cast<u64>(p));
    u64* firsts = all.firsts + 2 * chain * all.n_cells;
    atomicMin(firsts + a, entry);
    atomicMin(firsts + b, entry);
}

// Best swap of every active part with any cell within reach, straight from links; the lowest cell of
// the largest gain > 0, else -1. Parallel over parts, a warp each; cells of a part in turn.
extern "C" __global__ void propose_near(
    const i64* offsets, const i32* neighbours, const i64* rates, i64 n_parts, const i64* table_x, i64 n_x,
    const i64* table_y, i64 n_y, i64 n_cells, const u8* locked, const i32* cell_of, const i32* part_at,
    const u8* active, i64 reach, i32* targets, i64* gains) {
    const i64 place = Group<false>::index();
    if (place >= n_parts) return;
    const i32 p = static_cast<i32>(place);
    const Graph graph = {offsets, neighbours, rates};
    const Ways ways = {table_x, table_y, static_cast<i32>(n_x), static_cast<i32>(n_y)};
    i64 best = 0;
    i32 target = -1;
    if (!locked[p] && active[p]) {
        const i64 a = cell_of[p], x = a / n_y, y = a % n_y;
        const i64 last_x = smaller(n_cells / n_y, x + reach + 1), last_y = smaller(n_y, y + reach + 1);
        for (i64 bx = larger(0, x - reach); bx < last_x; ++bx) {
            for (i64 by = larger(0, y - reach); by < last_y; ++by) {
                const i32 b = static_cast<i32>(bx * n_y + by), r = part_at[b];
                if (r == BLOCKED || b == a || (r >= 0 && locked[r])) continue;
                const i64 gain = gain_of_swap(graph, ways, p, static_cast<i32>(a), r, b, AtStart{cell_of});
                if (gain > best) best = gain, target = b;
            }
        }
    }
    if (Group<false>::rank() != 0) return;
    targets[p] = target;
    gains[p] = best;
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

// ------------------------------------------------------------------------------------ settling

// Accept every proposal at first: ranks and first takers of cells from an order of the parts, the
// first n of which propose. Parallel over them, a thread each.
extern "C" __global__ void rank_proposals(const i64* sorted, i64 n, const i32* cell_of, const i32* targets, i64 epoch,
                                          i32* order, i32* ranks, u8* accepted, u64* firsts) {
    const i64 rank = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (rank >= n) return;
    const i32 p = static_cast<i32>(sorted[rank]);
    order[rank] = p;
    ranks[p] = static_cast<i32>(rank);
    if (targets[p] < 0) return;
    accepted[p] = 1;
    const u64 entry = entry_of(static_cast<u64>(epoch), static_cast<u64>(rank));
    atomicMin(firsts + cell_of[p], entry);
    atomicMin(firsts + targets[p], entry);
}

// Pass number `pass`: the warp decides the proposal of part p; whether the decision changed.
__device__ __forceinline__ bool decide(const Boards& all, i64 chain, i32 p, u64 epoch, i64 pass) {
    const i64 place = chain * all.n_parts + p;
    const i32 b = all.targets[place];
    if (b < 0) return false;
    const i32* cell_of = all.cell_of + chain * all.n_parts;
    const i32 a = cell_of[p], r = all.part_at[chain * all.n_cells + b];
    const u64 rank = static_cast<u64>(all.ranks ? all.ranks[p] : p);
    u64* firsts = all.firsts + 2 * chain * all.n_cells;
    const u64* known = firsts + (pass & 1) * all.n_cells;
    const i32* targets = all.targets + chain * all.n_parts;
    const AfterEarlier now = {cell_of, targets, all.order, known, epoch, rank};
    bool yes = now.taker(a) >= rank && now.taker(b) >= rank;
    if (yes) {
        const i64 gain = gain_of_swap(all.graph, all.ways(), p, a, r, b, now);
        yes = gain > (all.floors ? all.floors[place] : 0);
        if (Group<false>::rank() == 0) all.gains[place] = gain;
    }
    const bool changed = yes != (all.accepted[place] != 0);
    __syncwarp();
    if (Group<false>::rank() == 0) {
        all.accepted[place] = yes;
        if (yes) {
            u64* next = firsts + ((pass + 1) & 1) * all.n_cells;
            atomicMin(next + a, entry_of(epoch - 1, rank));
            atomicMin(next + b, entry_of(epoch - 1, rank));
        }
    }
    return changed;
}

// One pass over all proposals, unless the pass before changed nothing. `changed[chain, pass]` becomes
// the epoch of the pass if it changed a decision. Parallel over (chain, part), a warp each.
extern "C" __global__ void decide_all(const Boards* boards, i64 pass) {
    const Boards& all = *boards;
    const i64 place = Group<false>::index();
    if (place >= all.n_chains * all.n_parts) return;
    const i64 chain = place / all.n_parts;
    const u64 epoch = all.epoch() - static_cast<u64>(pass);
    u64* changed = all.changed + chain * all.n_passes;
    if (pass > 0 && changed[pass - 1] != epoch + 1) return;
    const i32 p = static_cast<i32>(place - chain * all.n_parts);
    if (decide(all, chain, p, epoch, pass) && Group<false>::rank() == 0) changed[pass] = epoch;
}

// Further passes until one changes nothing, for chains whose last pass of `decide_all` still changed
// something; a block for each chain, a warp for each part in turn.
extern "C" __global__ void decide_rest(const Boards* boards) {
    const Boards& all = *boards;
    const i64 chain = blockIdx.x, n_passes = all.n_passes;
    if (chain >= all.n_chains) return;
    u64 epoch = all.epoch() - static_cast<u64>(n_passes);
    if (all.changed[chain * n_passes + n_passes - 1] != epoch + 1) return;
    __shared__ i32 any;
    for (i64 pass = n_passes;; ++pass, --epoch) {
        if (threadIdx.x == 0) any = 0;
        __syncthreads();
        for (i64 p = threadIdx.x >> 5; p < all.n_parts; p += blockDim.x >> 5)
            if (decide(all, chain, static_cast<i32>(p), epoch, pass)) any = 1;
        __syncthreads();
        const i32 again = any;
        __syncthreads();
        if (!again) return;
    }
}

// Make the accepted swaps, which share no cell; add up what they save and how many they are, and let
// the clock go on. Parallel over (chain, part), a thread each.
extern "C" __global__ void apply_swaps(const Boards* boards) {
    const Boards& all = *boards;
    const i64 place = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (place == 0) *all.clock += 1;
    if (place >= all.n_chains * all.n_parts) return;
    const i32 b = all.targets[place];
    if (b < 0 || !all.accepted[place]) return;
    const i64 chain = place / all.n_parts;
    const i32 p = static_cast<i32>(place % all.n_parts);
    i32* cell_of = all.cell_of + chain * all.n_parts;
    i32* part_at = all.part_at + chain * all.n_cells;
    const i32 a = cell_of[p], r = part_at[b];
    part_at[a] = r;
    part_at[b] = p;
    cell_of[p] = b;
    if (r >= 0) cell_of[r] = a;
    atomicAdd(all.saved + chain, static_cast<u64>(all.gains[place]));
}

// Mark the parts around which something changed (all zero before): moved ones, those linked to them,
// those within reach of where they were or are, and those whose proposal was not made. Parallel over
// parts, a warp each; only ever writes 1.
extern "C" __global__ void mark_active(const i64* offsets, const i32* neighbours, i64 n_parts, const i32* before,
                                       const i32* cell_of, const i32* part_at, i64 n_cells, i64 n_y, i64 reach,
                                       const i32* targets, u8* active) {
    const i64 p = Group<false>::index();
    if (p >= n_parts) return;
    const i32 lane = Group<false>::rank();
    if (cell_of[p] == before[p]) {
        if (lane == 0 && targets[p] >= 0) active[p] = 1;
        return;
    }
    if (lane == 0) active[p] = 1;
    for (i64 i = offsets[p] + lane; i < offsets[p + 1]; i += 32) active[neighbours[i]] = 1;
    for (i32 k = 0; k < 2; ++k) {
        const i64 cell = k ? cell_of[p] : before[p], x = cell / n_y, y = cell % n_y;
        const i64 first_x = larger(0, x - reach), last_x = smaller(n_cells / n_y, x + reach + 1);
        const i64 first_y = larger(0, y - reach), height = smaller(n_y, y + reach + 1) - first_y;
        for (i64 i = lane; i < (last_x - first_x) * height; i += 32) {
            const i32 r = part_at[(first_x + i / height) * n_y + first_y + i % height];
            if (r >= 0) active[r] = 1;
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
