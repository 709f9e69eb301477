// What rounds of refinement in one launch share: what is known of them. The phases of a round, in round_*.cuh,
// are functions that all blocks of a grid call together, and between which they wait for each other.
//
// A row is worked on by a warp, or by a team of warps where tables are large or rows few, a long one by a
// block. Tables have a slot for every part, in shared memory, and are left zeroed. No order of threads
// shows: sums are of integers, and moves are ranked by (gain, id). Where a list would outgrow its memory
// the launch gives up, and the caller starts again with one kernel a step.
#ifndef SNNMAP_ROUNDS_CUH
#define SNNMAP_ROUNDS_CUH

#ifndef ADD_TO_MEMORY  // atomically; nothing comes back (the compiler asks for the old value, though nobody wants it)
#define ADD_TO_MEMORY(target, value) \
    asm volatile("red.global.add.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(target)), "l"(value) : "memory")
#endif

// Adds to a word of global memory.
__device__ __forceinline__ void add_to(i64* target, i64 value) { ADD_TO_MEMORY(target, value); }

const i32 ROOM = N_DISTINCT > 0 ? N_DISTINCT : 1;
const i32 SLOT_WORDS = 2 + 2 * N_DISTINCT > 4 ? 2 + 2 * N_DISTINCT : 4;  // of a table, for each part
const i32 WARP_BYTES = 2304;  // of shared memory of a warp for lists, at least
const i64 LONG_NET = 1024;   // pins and sources of a net for each warp of a team; more are a block's
const i64 LONG_NODE = 1024;  // nets of a node, likewise
const u64 NEEDS_LISTS = 2;   // why a launch gave up: of the nets of nodes
const i32 PARTLY = 32;       // nets of a node that one thread looks through

struct alignas(8) Entry {
    i32 part, pins;  // how many, or ~ the only one

    __device__ __forceinline__ i32 n_pins() const { return pins < 0 ? 1 : pins; }
};

struct alignas(16) Row {
    i32 first;
    unsigned short size, room;
    i64 weight;
    i64 counts[ROOM];
};

// What is gathered of a net: where the parts of its row are packed, and what it adds to places.
struct alignas(16) Card {
    i32 first, size;
    i64 waiting;  // weight of sources in the only part without pins, or -1: there is none, or several
    i64 words[1 + N_DISTINCT / 2];
};
static_assert(sizeof(Card) == 32, "as the caller knows");

struct Turn {
    double factor;
    i64 slack, seed, roomy, cold;  // cold: the rounds end when nothing moves
};

// What launches keep for the next one; zero before the first. `gate`, which the host sets back, has a line of
// memory of its own.
struct Progress {
    u64 gate, unused[15];
    u64 gave_up, done;
    u64 n_long_nets, n_long_nodes;
    u64 n_segments[2];  // of those that are simple, too
    u64 n_entries, total_weight;
    u64 connectivity[2];  // of even and odd measurements
    i64 totals[8];
    i64 at_start, best_cost, since, n_measured;
    i64 n_turns, stalled;  // of repair
    i64 most_found;        // that any node can find in a part, at most
};

// Counters of even and odd rounds, followed by those of each part.
struct Counters {
    u64 n_moved, n_relieving, n_proposed;
    u64 winning;                       // whether anybody is
    u64 n_packed;                      // parts of rows
    u64 n_touched[2], n_changed[2];    // listed nets of pins that would move, that moved; of those the long ones
};

struct Look;  // see prefix.cu

// 8 bytes a field, filled by gpu_rounds.py in this order; the turns follow.
struct Rounds {
    Global<const i64> net_offsets;
    Global<const i32> net_pins;
    Global<const i64> source_offsets;
    Global<const i32> source_nodes;
    Global<const i64> source_weights;
    Global<const i64> node_offsets;
    Global<const i32> node_nets;
    Global<const i64> out_offsets;
    Global<const i32> out_nets;
    Global<const i64> out_weights, net_weights, counts, resources;
    i64 n_nets, n_nodes, n_parts;
    i64 table_warps, node_warps;  // of a team: so that all tables have room, and for proposals
    i64 table_words, slots;       // of all tables of a block; of a warp's own for the rows of nets, 0: those are a team's
    Global<const i64> limits;
    double overload_factor;
    i64 patience, may_grow;  // whether there may be more parts
    Global<const i32> start;  // parts
    Global<const i32> names;  // of parts, which break ties, ascending; null: their numbers
    Global<i32> parts, best;
    Global<i32> moved;  // (the round after the last one in which it moved << 16) + where it came from: in that round it rests, but not with the scheme "sequence"
    Global<i32> targets, moves;  // the latter: (part << 16) + target, its part once more if it has none
    Global<i32> proposed;         // nodes with a move
    Global<i64> gains, plain_gains, later, incoming, outgoing;  // the last two: distinct loads
    Global<Row> rows;
    Global<Entry> entries;
    Global<i64> waiting;  // weight of the sources of each entry
    Global<i64> found;    // what each node finds in each part, or only in all together, or null: see round_found.cuh
    i64 tile;      // so many nodes are told at once: their sums fit where lists and tables lie
    Global<i32> told;     // where the pins of each tile begin in each net
    Global<i32> nets_of_parts;  // null: columns of single parts are not kept
    Global<Card> cards;  // for gathering, as the next one: see round_gather.cuh
    Global<unsigned short> packed;
    Global<bool> pinned;  // whether a source is a pin of its net
    i64 most_entries, piece;  // what a warp reserves at once
    i64 warp_bytes;  // of lists in shared memory
    Global<i64> sorted_gains, merged_gains;
    Global<i32> sorted, halves;  // the latter: lists by part, room for two entries a node
    Global<i64> changed;  // for the best prefix only, as the next ones: see prefix.cu
    Global<Look> looks;
    Global<i32> order, ranks;
    Global<i64> loads;  // of even and odd measurements
    Global<i64> counters;
    Global<i32> long_nets, long_nodes;
    Global<i32> segments, listed, marks;  // where nodes have twins, or null: see round_twins.cuh
    Global<u32> twins;
    Global<Progress> progress;

    __device__ __forceinline__ const Turn& turn(const Rounds* rounds, i64 i) const {
        return reinterpret_cast<const Turn*>(rounds + 1)[i];
    }
};

struct Prices {
    i64 of[N_LOADS];
    i64 slack, seed, haven;
};

// Proposals: soft ones, with the distinct loads that a move brings and takes when it is made alone, or
// with 0 for a replay to add to; or strict ones, out of overfull parts, to where they fit, `haven` included.
enum Kind { ALONE, REPLAYED, STRICT };

// What a block keeps in shared memory.
struct Desk {
    Shared<i64> scratch;
    Shared<i64> sums;         // words of `loads`
    Shared<u32> ins, outs;   // of each part
    Shared<u32> first_ins, first_outs;
    Shared<u32> tables;
    Shared<unsigned char> lists;  // and other things that a phase needs
    Shared<u32> cursors;      // a warp each
    i32 n_parts, warp_bytes;

    __device__ __forceinline__ Desk(unsigned char* memory, i64 n, i64 table_words, i64 warp_bytes)
        : n_parts(static_cast<i32>(n)), warp_bytes(static_cast<i32>(warp_bytes)) {
        scratch = {reinterpret_cast<i64*>(memory)};
        sums = {scratch + SCRATCH_WORDS};
        lists = {reinterpret_cast<unsigned char*>(sums + n * N_LOADS)};
        tables = {reinterpret_cast<u32*>(lists + warp_bytes * (blockDim.x >> 5))};
        ins = {tables + table_words};
        outs = {ins + n};
        first_ins = {outs + n};
        first_outs = {first_ins + n};
        cursors = {first_outs + n};
    }
    __device__ __forceinline__ Sums loads() const { return Sums(sums, static_cast<i64>(n_parts) * N_LOADS); }
    template <class G>
    __device__ __forceinline__ u32* table(G group) const {
        return tables + static_cast<i64>(group.place()) * n_parts * SLOT_WORDS;
    }
    template <class G>
    __device__ __forceinline__ unsigned char* list(G group) const {
        return lists + group.place() * n_bytes(group);
    }
    template <class G>
    __device__ __forceinline__ i32 n_bytes(G group) const { return warp_bytes * group.warps; }
    // Moves that can be sorted where lists lie.
    __device__ __forceinline__ i64 sortable() const { return n_bytes(Team::of_block()) / 12; }
    __device__ __forceinline__ void clear() const {
        const i64 n = reinterpret_cast<u32*>(cursors + (blockDim.x >> 5)) - sums.as<u32>();
        u32* words = sums.as<u32>();
        for (i64 i = threadIdx.x; i < n; i += blockDim.x) words[i] = 0;
        __syncthreads();
    }
};

// What all threads of a block know, in shared memory: changed for all of them.
template <class T>
__device__ __forceinline__ void put(T& known, T value) {
    __syncthreads();
    if (threadIdx.x == 0) known = value;
    __syncthreads();
}

// One launch as a block sees it: in its shared memory, as what threads keep for themselves goes through local memory
// at every call.
struct Work {
    const Rounds& in;  // in shared memory, too
    const Desk desk;
    Grid grid;
    i64 turn;
    i64 measured;  // which measurement is the last one
    i64 at_start;  // connectivity of the first
    bool too_large;  // a cost that 64 bits may not hold
    bool finds;      // whether sums of what nodes find fit places
    bool tells;      // whether they are kept for every part

    __device__ __forceinline__ i64* loads(i64 of) const { return in.loads + (of & 1) * in.n_parts * N_LOADS; }
    __device__ __forceinline__ i64* set_of(i64 of) const {
        return in.counters + (of & 1) * (sizeof(Counters) / 8 + in.n_parts * (N_LOADS + 4));
    }
    __device__ __forceinline__ Counters& counters() const { return *reinterpret_cast<Counters*>(set_of(turn)); }
    // Loads that winners take from each part; how many want to come and go; how many are listed.
    __device__ __forceinline__ i64* leaving() const { return set_of(turn) + sizeof(Counters) / 8; }
    __device__ __forceinline__ i64* wanted_in() const { return leaving() + in.n_parts * N_LOADS; }
    __device__ __forceinline__ i64* wanted_out() const { return wanted_in() + in.n_parts; }
    __device__ __forceinline__ i64* n_in() const { return wanted_out() + in.n_parts; }
    __device__ __forceinline__ i64* n_out() const { return n_in() + in.n_parts; }
    __device__ __forceinline__ i64 thread() const { return static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; }
    __device__ __forceinline__ i64 n_threads() const { return static_cast<i64>(gridDim.x) * blockDim.x; }
    __device__ __forceinline__ i64 long_net() const { return LONG_NET * (in.slots != 0 ? 1 : in.table_warps); }
    __device__ __forceinline__ i64 long_node() const { return LONG_NODE * in.node_warps; }
    __device__ __forceinline__ i64 net_size(i64 g) const {
        return in.net_offsets[g + 1] - in.net_offsets[g] + in.source_offsets[g + 1] - in.source_offsets[g];
    }
    // Whether there is memory for all entries that rows can ever have.
    __device__ __forceinline__ bool all_have_room() const {
        const i64 n_items = in.net_offsets[in.n_nets] + in.source_offsets[in.n_nets];
        return in.most_entries >= smaller(n_items, in.n_nets * in.n_parts);
    }
    __device__ __forceinline__ i64 n_nets_of(i64 v) const {
        return in.node_offsets[v + 1] - in.node_offsets[v] + in.out_offsets[v + 1] - in.out_offsets[v];
    }
    __device__ __forceinline__ i64 name_of(i32 p) const { return in.names.given() ? in.names[p] : p; }
    __device__ __forceinline__ i64 additive(i64 v, i32 r) const { return in.resources[v * N_ADDITIVE + r]; }
    __device__ __forceinline__ i64 incoming(i64 v, i32 r) const {
        return r < N_ADDITIVE ? additive(v, r) : in.incoming[v * N_DISTINCT + r - N_ADDITIVE];
    }
    __device__ __forceinline__ i64 outgoing(i64 v, i32 r) const {
        return r < N_ADDITIVE ? additive(v, r) : in.outgoing[v * N_DISTINCT + r - N_ADDITIVE];
    }
    // Adds what the block summed up to an array of loads.
    __device__ __forceinline__ void flush(i64* into) const {
        __syncthreads();
        const Sums sums = desk.loads();
        for (u32 i = threadIdx.x; i < desk.n_parts * N_LOADS; i += blockDim.x) {
            const i64 sum = sums.get(i);
            if (sum == 0) continue;
            add_to(into + i, sum);
            sums.clear(i);
        }
        __syncthreads();
    }
};

// visit(i) for those of n items that ask, by a warp or a team each.
template <class Ask, class Visit>
__device__ __forceinline__ void for_asking(Warp warp, i64 n, Ask asks, Visit visit) {
    const i64 stride = warp.number();
    for (i64 base = warp.index(); base < n; base += 32 * stride) {
        const i64 i = base + warp.rank() * stride;
        for (u32 left = __ballot_sync(ALL_LANES, i < n && asks(i)); left != 0; left &= left - 1)
            visit(base + (__ffs(left) - 1) * stride);
    }
}

template <class Ask, class Visit>
__device__ __forceinline__ void for_asking(Team team, i64 n, Ask asks, Visit visit) {
    for (i64 i = team.index(); i < n; i += team.number())
        if (asks(i)) visit(i);
}

const i32 WORK_BYTES = 512;  // of a block's shared memory, first
static_assert(sizeof(Work) <= WORK_BYTES && sizeof(Work) % sizeof(u64) == 0, "room for what a block knows");

__device__ __forceinline__ void next_turn(Work& work) { put(work.turn, work.turn + 1); }

// All blocks wait for each other.
__device__ __forceinline__ void meet(Work& work) { work.grid.meet(); }

// ------------------------------------------------------------------------------------ start

// Parts at the start; lists of long nets and nodes; totals of all loads and weights.
__device__ __noinline__ void survey(const Work& work) {
    const Rounds& in = work.in;
    i64 sums[N_LOADS + 1];
    for (i32 r = 0; r <= N_LOADS; ++r) sums[r] = 0;
#pragma unroll 1
    for (i64 g = work.thread(); g < in.n_nets; g += work.n_threads()) {
        if (work.net_size(g) > work.long_net()) in.long_nets[atomicAdd(&in.progress->n_long_nets, 1ull)] = static_cast<i32>(g);
        for (i32 c = 0; c < N_DISTINCT; ++c) sums[N_ADDITIVE + c] += in.counts[g * N_DISTINCT + c];
        sums[N_LOADS] += in.net_weights[g];
    }
#pragma unroll 1
    for (i64 j = work.thread(); j < in.source_offsets[in.n_nets]; j += work.n_threads()) sums[N_LOADS] += in.source_weights[j];
#pragma unroll 1
    for (i64 v = work.thread(); v < in.n_nodes; v += work.n_threads()) {
        in.parts[v] = in.start[v];
        in.moved[v] = -1;
        in.moves[v] = in.start[v] * 0x10001;
        if (in.node_offsets.given() && work.n_nets_of(v) > work.long_node())
            in.long_nodes[atomicAdd(&in.progress->n_long_nodes, 1ull)] = static_cast<i32>(v);
        for (i32 r = 0; r < N_ADDITIVE; ++r) sums[r] += work.additive(v, r);
    }
    for (i32 r = 0; r <= N_LOADS; ++r) {
        const i64 sum = sum_of(Team::of_block(), sums[r], work.desk.scratch);
        i64* total = r < N_LOADS ? in.progress->totals + r : reinterpret_cast<i64*>(&in.progress->total_weight);
        if (threadIdx.x == 0) add_to(total, sum);
    }
}

#endif
