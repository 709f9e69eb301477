// Merging parts that fit together, in turns. The twin is snnmap/partitioning/multilevel/merging.py; both
// give the same parts.
//
// One cooperative launch. Which parts a net touches tell the bits of its set, made here, where parts are few; a guest's bit
// stays, and its host's is added. Else it is the rows of a table, which are kept free of repetitions: the entry of a guest
// becomes one of its host, or nobody's where the net touches the host already. The nets of a part are then those of its
// members, of which the live entry tells who of them counts a net.
#include "common.cuh"
#include "grid.cuh"

const i32 NOBODY = -1;
const i32 N_COLUMNS = N_DISTINCT + 1;  // of what parts share: distinct counts, then weight

struct Merging {
    const i64* net_offsets;
    const i32* net_pins;
    i64 n_nets, n_pins, n_words;
    u32* sets;           // [net, n_words], a bit for each part, zero; n_words == 0: the table tells
    const i64* offsets;  // rows of the table
    const i32 *table_parts, *table_pins;
    const i64* list_offsets;  // nets of each part
    const i32* list_nets;
    const i64 *net_weights, *counts, *limits;
    const i32* parts;
    i64 n_nodes, n_entries, n_parts;
    u64* state;   // gate, then the fields of Counter; zero
    i32* held;    // whether a part has nodes; zero
    i32* changed; // turn before which a part grew, plus 1; zero
    i64* loads;
    i64 *worth, *totals;
    i32 *open, *able, *hosts, *next, *tails, *mates, *order, *marks, *pair_hosts, *pair_guests, *numbers;
    i32* entries; // whose an entry is now
    i64* shared;  // [column, part, part]: what the nets that both touch sum up to
    i32* merged;
};

// Words of `state` after the gate; two of each for even and odd turns.
enum Counter { N_ABLE = GATE_WORDS, N_PAIRS = GATE_WORDS + 2, N_LEFT = GATE_WORDS + 4 };

__device__ __forceinline__ i64 load_of(const Merging& in, i64 p, i32 r) { return in.loads[p * N_LOADS + r]; }

__device__ __forceinline__ bool is_small(const Merging& in, i64 p) { return 2 * load_of(in, p, 0) <= in.limits[0]; }

__device__ __forceinline__ i64& shared_of(const Merging& in, i32 column, i64 p, i64 q) {
    return in.shared[(column * in.n_parts + p) * in.n_parts + q];
}

// Whether two parts, of which one is small, keep the additive limits together.
__device__ __forceinline__ bool may_join(const Merging& in, i64 p, i64 q) {
    bool fits = p != q && (is_small(in, p) || is_small(in, q));
    for (i32 r = 0; r < N_ADDITIVE; ++r) fits &= load_of(in, p, r) + load_of(in, q, r) <= in.limits[r];
    return fits;
}

// Of the open parts those that may join another: able[p], and how many. A warp each.
__device__ __forceinline__ void find_able(const Merging& in, const Grid& grid, const i32* open, i32* able, u64* n_able) {
    const i32 lane = threadIdx.x & 31;
#pragma unroll 1
    for (i64 p = grid.thread() >> 5; p < in.n_parts; p += grid.n_threads() >> 5) {
        bool some = false;
        for (i64 q = lane; open[p] && q < in.n_parts; q += 32) some |= open[q] && may_join(in, p, q);
        some = __ballot_sync(ALL_LANES, some) != 0;
        if (lane != 0) continue;
        able[p] = some;
        if (some) atomicAdd(n_able, 1ull);
    }
}

// The entries of a net.
struct Row {
    i64 first, last;
};

// The entry of a row that was part p's and is live, or -1; whether the row has one that is `host`'s
// now. For the whole warp.
__device__ __forceinline__ i64 live_entry(const Merging& in, const Row& row, i32 p, i32 host, bool& has_host) {
    const i32 lane = threadIdx.x & 31;
    i64 found = -1;
    has_host = false;
#pragma unroll 1
    for (i64 base = row.first; base < row.last; base += 32) {
        const i64 e = base + lane;
        const bool inside = e < row.last;
        const i32 now = inside ? in.entries[e] : NOBODY, before = inside ? in.table_parts[e] : NOBODY;
        const u32 mine = __ballot_sync(ALL_LANES, now != NOBODY && before == p);
        has_host |= __ballot_sync(ALL_LANES, now != NOBODY && now == host) != 0;
        if (mine != 0) found = base + __ffs(mine) - 1;
    }
    return found;
}

// Calls visit(net, its row, member) for the nets of all members of a part, a warp each, which looks up as many at once as
// are its; of so many slices one.
template <class Visit>
__device__ __forceinline__ void for_nets_of(const Merging& in, i32 part, i64 slice, i64 n_slices, Visit visit) {
    const i64 warps = blockDim.x >> 5, warp = slice * warps + (threadIdx.x >> 5), lane = threadIdx.x & 31;
#pragma unroll 1
    for (i32 p = part; p != NOBODY; p = in.next[p]) {
        const i64 first = in.list_offsets[p], last = in.list_offsets[p + 1];
        const i64 each = smaller(32, (last - first + n_slices * warps - 1) / (n_slices * warps));
#pragma unroll 1
        for (i64 base = first + warp * each; base < last; base += n_slices * warps * each) {
            const i64 n = smaller(each, last - base);
            const i64 own = lane < n ? in.list_nets[base + lane] : 0;
            const Row row = {in.offsets[own], in.offsets[own + 1]};
#pragma unroll 1
            for (i32 j = 0; j < n; ++j) {
                const Row it = {__shfl_sync(ALL_LANES, row.first, j), __shfl_sync(ALL_LANES, row.last, j)};
                visit(__shfl_sync(ALL_LANES, own, j), it, p);
            }
        }
    }
}

// Whether what a part shares with all others is summed up in this turn.
__device__ __forceinline__ bool is_summed(const Merging& in, const i32* able, i64 p, i64 turn) {
    return able[p] && (turn == 0 ? is_small(in, p) : in.changed[p] == turn);
}

__device__ __forceinline__ bool has_bit(const u32* set, i32 p) { return set[p >> 5] >> (p & 31) & 1; }

// The set of every net. Parallel over chunks of pins; gathers parts (cached). A thread gathers the bits of a word first.
__device__ __forceinline__ void fill_sets(const Merging& in, const Grid& grid) {
    u32* word = nullptr;
    u32 bits = 0;
    const auto flush = [&]() {
        if (bits != 0 && (*const_cast<const volatile u32*>(word) & bits) != bits) atomicOr(word, bits);
    };
    for_all_items(grid, in.net_offsets, in.n_nets, in.n_pins, [&](i64 net, i64 j) {
        const i32 p = in.parts[in.net_pins[j]];
        u32* const now = in.sets + net * in.n_words + (p >> 5);
        if (now != word) flush();
        bits = (now == word ? bits : 0) | 1u << (p & 31);
        word = now;
    });
    flush();
}

// Calls visit(net) for a slice of the nets that touch a part, a thread each.
template <class Visit>
__device__ __forceinline__ void for_sets_with(const Merging& in, i32 part, i64 slice, i64 n_slices, Visit visit) {
#pragma unroll 1
    for (i64 net = slice * blockDim.x + threadIdx.x; net < in.n_nets; net += n_slices * blockDim.x)
        if (has_bit(in.sets + net * in.n_words, part)) visit(net);
}

// Adds to shared[., part, .] a slice of the part's nets, and to shared[., ., part] for those that are
// not summed up themselves. Sums of a range of parts at a time, in shared memory.
__device__ __forceinline__ void sum_shared(const Merging& in, const Grid& grid, const i32* able, i32 part, i64 turn,
                                           i64 slice, i64 n_slices) {
    const i32 lane = threadIdx.x & 31;
    const i64 room = smaller(in.n_parts, grid.n_words / (2 * N_COLUMNS));
    const Sums sums(grid.words, room * N_COLUMNS);
    for (i64 first = 0; first < in.n_parts; first += room) {
        for (i64 s = threadIdx.x; s < room * N_COLUMNS; s += blockDim.x) sums.clear(static_cast<u32>(s));
        __syncthreads();
        i64 values[N_COLUMNS];  // of the net that is looked at
        const auto look_at = [&](i64 net) {
            for (i32 c = 0; c < N_COLUMNS; ++c) values[c] = c < N_DISTINCT ? in.counts[net * N_DISTINCT + c] : in.net_weights[net];
        };
        const auto add = [&](i64 q) {
            if (q == part || q < first || q >= first + room) return;
            for (i32 c = 0; c < N_COLUMNS; ++c) sums.add(static_cast<u32>(c * room + q - first), values[c]);
        };
        if (in.n_words != 0)
            for_sets_with(in, part, slice, n_slices, [&](i64 net) {
                look_at(net);
#pragma unroll 1
                for (i64 w = first >> 5; w < smaller(in.n_words, (first + room + 31) >> 5); ++w)
                    for (u32 word = in.sets[net * in.n_words + w]; word != 0; word &= word - 1) add(32 * w + __ffs(word) - 1);
            });
        else
            for_nets_of(in, part, slice, n_slices, [&](i64 net, const Row& row, i32 member) {
                bool ignored;
                if (live_entry(in, row, member, NOBODY, ignored) < 0) return;
                look_at(net);
#pragma unroll 1
                for (i64 e = row.first + lane; e < row.last; e += 32)
                    if (in.entries[e] != NOBODY) add(in.entries[e]);
            });
        __syncthreads();
        for (i64 q = first + threadIdx.x; q < smaller(first + room, in.n_parts); q += blockDim.x) {
            const bool itself = is_summed(in, able, q, turn);
            for (i32 c = 0; c < N_COLUMNS; ++c) {
                const i64 sum = sums.get(static_cast<u32>(c * room + q - first));
                if (sum == 0) continue;
                add64(&shared_of(in, c, part, q), sum);
                if (!itself) add64(&shared_of(in, c, q, part), sum);
            }
        }
        __syncthreads();
    }
}

// mates[p], worth[p] = the part that p shares most weight with among those it fits with (-1: none). Ties:
// the smallest. A warp for each able part.
__device__ __forceinline__ void find_mates(const Merging& in, const Grid& grid, const i32* able) {
    const i32 lane = threadIdx.x & 31;
#pragma unroll 1
    for (i64 p = grid.thread() >> 5; p < in.n_parts; p += grid.n_threads() >> 5) {
        if (!able[p]) continue;
        Best best = {-1, 0, -1, 0};
        for (i64 q = lane; q < in.n_parts; q += 32) {
            if (!able[q] || !may_join(in, p, q)) continue;
            bool fits = true;
            for (i32 c = 0; c < N_DISTINCT; ++c) {
                const i32 r = N_ADDITIVE + c;
                fits &= load_of(in, p, r) + load_of(in, q, r) - shared_of(in, c, p, q) <= in.limits[r];
            }
            const Best candidate = {shared_of(in, N_DISTINCT, p, q), 0, static_cast<i32>(q), 0};
            if (fits && best.below(candidate)) best = candidate;
        }
        best = best_of_group<false>(best);
        if (lane != 0) continue;
        in.mates[p] = best.id;
        in.worth[p] = best.value;
    }
}

// The closest disjoint pairs, `most` of them: into pair_hosts and pair_guests. By one block.
__device__ __forceinline__ void pair_up(const Merging& in, const Grid& grid, const i32* able, i64 most, u64* n_pairs) {
    const bool fit = 2 * in.n_parts <= grid.n_words;
    i32* order = fit ? reinterpret_cast<i32*>(grid.words) : in.order;
    i32* taken = fit ? order + in.n_parts : in.marks;
    u32* n_listed = reinterpret_cast<u32*>(grid.scratch + 64);
    if (threadIdx.x == 0) *n_listed = 0;
    __syncthreads();
    for (i64 p = threadIdx.x; p < in.n_parts; p += blockDim.x) {
        taken[p] = 0;
        if (able[p] && in.worth[p] >= 0) order[atomicAdd(n_listed, 1u)] = static_cast<i32>(p);
    }
    __syncthreads();
    const i64 n = *n_listed;
    sort_ids<true>(order, n, [&](i32 a, i32 b) {
        return in.worth[a] != in.worth[b] ? in.worth[a] > in.worth[b] : a < b;
    });
    __syncthreads();
    if (threadIdx.x != 0) return;
    i64 found = 0;
    for (i64 i = 0; i < n && found < most; ++i) {
        const i32 p = order[i], q = in.mates[p];
        if (taken[p] || taken[q]) continue;
        taken[p] = taken[q] = 1;
        in.pair_hosts[found] = static_cast<i32>(smaller(p, q));
        in.pair_guests[found++] = static_cast<i32>(larger(p, q));
    }
    *n_pairs = static_cast<u64>(found);
}

// One slice of a guest's nets goes to its host; the first slice adds up loads and forgets what the host
// shared.
__device__ __forceinline__ void join(const Merging& in, i32* able, i32 host, i32 guest, i64 turn, i64 slice,
                                     i64 n_slices) {
    if (in.n_words != 0)
        for_sets_with(in, guest, slice, n_slices, [&](i64 net) {
            u32* set = in.sets + net * in.n_words;
            if (!has_bit(set, host)) atomicOr(set + (host >> 5), 1u << (host & 31));
        });
    else
        for_nets_of(in, guest, slice, n_slices, [&](i64, const Row& row, i32 member) {
            bool has_host;
            const i64 e = live_entry(in, row, member, host, has_host);
            __syncwarp();
            if (e >= 0 && (threadIdx.x & 31) == 0) in.entries[e] = has_host ? NOBODY : host;
            __syncwarp();
        });
    if (slice != 0) return;
    if (threadIdx.x == 0) {
        for (i32 r = 0; r < N_LOADS; ++r) {
            const i64 both = r < N_ADDITIVE ? 0 : shared_of(in, r < N_ADDITIVE ? 0 : r - N_ADDITIVE, host, guest);
            in.loads[static_cast<i64>(host) * N_LOADS + r] += load_of(in, guest, r) - both;
        }
        in.changed[host] = static_cast<i32>(turn + 1);
        in.hosts[guest] = host;
        able[guest] = 0;
    }
    __syncthreads();
    for (i32 c = 0; c < N_COLUMNS; ++c)
        for (i64 q = threadIdx.x; q < in.n_parts; q += blockDim.x)
            shared_of(in, c, host, q) = shared_of(in, c, q, host) = 0;
}

#define MERGING_ARGUMENTS                                                                                       \
    const i64 *net_offsets, const i32 *net_pins, i64 n_nets, i64 n_pins, i64 n_words, u32 *sets,                \
        const i64 *offsets, const i32 *table_parts, const i32 *table_pins, const i64 *list_offsets,             \
        const i32 *list_nets, const i64 *net_weights, const i64 *counts, const i64 *limits, const i32 *parts,   \
        i64 n_nodes, i64 n_entries, i64 n_parts, u64 *state, i32 *held, i32 *changed, i64 *loads, i64 *worth,   \
        i64 *totals, i32 *open, i32 *able, i32 *hosts, i32 *next, i32 *tails, i32 *mates, i32 *order,           \
        i32 *marks, i32 *pair_hosts, i32 *pair_guests, i32 *numbers, i32 *entries, i64 *shared, i32 *merged
#define MERGING                                                                                                \
    {net_offsets, net_pins, n_nets, n_pins, n_words, sets, offsets, table_parts, table_pins, list_offsets,     \
     list_nets, net_weights, counts, limits, parts, n_nodes, n_entries, n_parts, state, held, changed, loads,  \
     worth, totals, open, able, hosts, next, tails, mates, order, marks, pair_hosts, pair_guests, numbers,     \
     entries, shared, merged}

// merged[v] = number of node v's part once all are merged that fit together; state[N_LEFT] = how many.
// `at_once`: a turn merges at most one in so many parts; `n_turns`: so many at most.
// Parallel over pins, pairs of parts, nets of parts (a thread each, by sets, or a warp; several blocks a part where parts
// are few) and entries of their rows. Deterministic: integer sums, maxima with total orders, sorted pairs.
extern "C" __launch_bounds__(1024, 1) __global__ void merge_parts(MERGING_ARGUMENTS, const i64* given_loads,
                                                                  i64 at_once, i64 n_turns, i64 n_bytes) {
    DYNAMIC_SHARED(memory);
    const Merging in = MERGING;
    Grid grid(state, memory, n_bytes);
#pragma unroll 1
    for (i64 v = grid.thread(); v < n_nodes; v += grid.n_threads()) held[parts[v]] = 1;
#pragma unroll 1
    for (i64 e = grid.thread(); e < n_entries; e += grid.n_threads())
        entries[e] = table_pins[e] > 0 ? table_parts[e] : NOBODY;
    if (n_words != 0) fill_sets(in, grid);
#pragma unroll 1
    for (i64 p = grid.thread(); p < n_parts; p += grid.n_threads()) {
        hosts[p] = tails[p] = static_cast<i32>(p);
        next[p] = NOBODY;
        for (i32 r = 0; r < N_LOADS; ++r) loads[p * N_LOADS + r] = given_loads[p * N_LOADS + r];
    }
#pragma unroll 1
    for (i64 i = grid.thread(); i < N_COLUMNS * n_parts * n_parts; i += grid.n_threads()) shared[i] = 0;
    grid.meet();
    const i32* given = held;
    for (i64 turn = 0; turn < n_turns; ++turn) {
        i32* now = turn & 1 ? open : able;
        find_able(in, grid, given, now, state + N_ABLE + (turn & 1));
        grid.meet();
        const i64 k = static_cast<i64>(state[N_ABLE + (turn & 1)]);
        if (k < 2) break;
        const i64 n_rows = turn == 0 ? n_parts : static_cast<i64>(state[N_PAIRS + ((turn + 1) & 1)]);
        const i64 n_slices = larger(gridDim.x / larger(n_rows, 1), 1);
#pragma unroll 1
        for (i64 i = blockIdx.x; i < n_rows * n_slices; i += gridDim.x) {
            const i32 p = turn == 0 ? static_cast<i32>(i / n_slices) : pair_hosts[i / n_slices];
            if (is_summed(in, now, p, turn)) sum_shared(in, grid, now, p, turn, i % n_slices, n_slices);
        }
        grid.meet();
        find_mates(in, grid, now);
        grid.meet();
        if (blockIdx.x == 0) pair_up(in, grid, now, larger(k / at_once, 1), state + N_PAIRS + (turn & 1));
        if (grid.thread() == 0) state[N_ABLE + ((turn + 1) & 1)] = 0;
        grid.meet();
        const i64 n_pairs = static_cast<i64>(state[N_PAIRS + (turn & 1)]);
        if (n_pairs == 0) break;
        const i64 n_shares = larger(gridDim.x / n_pairs, 1);
#pragma unroll 1
        for (i64 i = blockIdx.x; i < n_pairs * n_shares; i += gridDim.x) {
            const i64 pair = i / n_shares;
            join(in, now, pair_hosts[pair], pair_guests[pair], turn, i % n_shares, n_shares);
        }
        grid.meet();
#pragma unroll 1
        for (i64 i = grid.thread(); i < n_pairs; i += grid.n_threads()) {
            const i32 host = pair_hosts[i], guest = pair_guests[i];
            next[tails[host]] = guest;
            tails[host] = tails[guest];
        }
        given = now;
    }
    const auto stays = [&](i64 p) { return static_cast<i64>(held[p] && hosts[p] == p); };
    grid.sum_share(totals, n_parts, stays);
    grid.meet();
    const i64 n_left = grid.scan_share(totals, n_parts, stays, [&](i64 p, i64, i64 place) {
        numbers[p] = static_cast<i32>(place);
    });
    if (grid.thread() == 0) state[N_LEFT] = n_left;
    grid.meet();
#pragma unroll 1
    for (i64 v = grid.thread(); v < n_nodes; v += grid.n_threads()) {
        i32 p = parts[v];
        while (hosts[p] != p) p = hosts[p];
        merged[v] = numbers[p];
    }
}
