// What rounds of refinement in one launch share: what is known of them, the table of the parts, proposals, and
// gains in sequence. The phases of a round are functions that all blocks of a grid call together, and between
// which they wait for each other.
//
// A row is worked on by a warp, or by a team of warps where tables are large or rows few, a long one by a block. Tables have a slot for every part, in shared
// memory, and are left zeroed. No order of threads shows: sums are of integers, and moves are ranked by
// (gain, id). Where a list would outgrow its memory the launch gives up, and the caller starts again
// with one kernel a step.
#ifndef SNNMAP_ROUNDS_CUH
#define SNNMAP_ROUNDS_CUH

const i32 ROOM = N_DISTINCT > 0 ? N_DISTINCT : 1;
const i32 SLOT_WORDS = 2 + 2 * N_DISTINCT > 4 ? 2 + 2 * N_DISTINCT : 4;  // of a table, for each part
const i32 WARP_EVENTS = 96;  // events that a warp keeps in shared memory
const i64 LONG_NET = 1024;   // pins and sources of a net for each warp of a team; more are a block's
const i64 LONG_NODE = 1024;  // nets of a node, likewise
const i32 PARTLY = 32;       // nets of a node that one thread looks through

struct alignas(8) Entry {
    i32 part, pins;
};

struct alignas(16) Row {
    i32 first, size;
    i64 weight;
    i64 counts[ROOM];
};

// A moving pin (weight -1) or source of a net.
struct Event {
    i64 gain, weight;
    i32 node;
    unsigned short from, to;
};

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
    u64 n_entries[2], connectivity[2];  // of even and odd measurements
    i64 totals[8];
    i64 at_start, best_cost, since, n_measured;
    i64 n_turns, stalled;  // of repair
};

// Counters of even and odd rounds, followed by those of each part.
struct Counters {
    u64 n_moved, n_relieving, n_events, unused[5];
};

// 8 bytes a field, filled by gpu_rounds.py in this order; the turns follow.
struct Rounds {
    const i64* net_offsets;
    const i32* net_pins;
    const i64* source_offsets;
    const i32* source_nodes;
    const i64* source_weights;
    const i64* node_offsets;
    const i32* node_nets;
    const i64* out_offsets;
    const i32* out_nets;
    const i64 *out_weights, *net_weights, *counts, *resources;
    i64 n_nets, n_nodes, n_parts;
    i64 table_warps, node_warps;  // of a team: so that all tables have room, and for proposals
    const i64* limits;
    double overload_factor;
    i64 patience, may_grow;  // whether there may be more parts
    const i32* start;  // parts
    i32 *parts, *best;
    bool* locked;
    i32* targets;
    i64 *gains, *plain_gains, *later, *incoming, *outgoing;  // the last two: distinct loads
    Row* rows;
    Entry* entries;
    i64* waiting;  // weight of the sources of each entry
    i64 most_entries, piece;  // what a warp reserves at once
    Event* events;
    i64 most_events;
    i64* sorted_gains;
    i32 *sorted, *halves;  // the latter: lists by part, room for two entries a node
    i64 *changed, *ranked_changes, *ranked_gains, *half_gains, *chunks;  // for the best prefix only
    i32* order;
    i64* loads;  // of even and odd measurements
    i64* counters;
    i32 *long_nets, *long_nodes;
    Progress* progress;

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
    i64* scratch;
    i64* sums;         // words of `loads`
    u32 *ins, *outs;   // of each part
    u32 *first_ins, *first_outs;
    u32* tables;
    Event* events;
    u32* cursors;      // a warp each
    i32 n_parts;

    __device__ __forceinline__ Desk(unsigned char* memory, i64 n, i64 table_warps) : n_parts(static_cast<i32>(n)) {
        scratch = reinterpret_cast<i64*>(memory);
        sums = scratch + SCRATCH_WORDS;
        events = reinterpret_cast<Event*>(sums + n * N_LOADS);
        tables = reinterpret_cast<u32*>(events + WARP_EVENTS * (blockDim.x >> 5));
        ins = tables + n * SLOT_WORDS * ((blockDim.x >> 5) / table_warps);
        outs = ins + n;
        first_ins = outs + n;
        first_outs = first_ins + n;
        cursors = first_outs + n;
    }
    __device__ __forceinline__ Sums loads() const { return Sums(sums, static_cast<i64>(n_parts) * N_LOADS); }
    template <class G>
    __device__ __forceinline__ u32* table(G group) const {
        return tables + static_cast<i64>(group.place()) * n_parts * SLOT_WORDS;
    }
    template <class G>
    __device__ __forceinline__ Event* list(G group) const {
        return events + group.place() * capacity(group);
    }
    template <class G>
    __device__ __forceinline__ i32 capacity(G group) const { return WARP_EVENTS * group.warps; }
    // Moves that can be sorted where events lie.
    __device__ __forceinline__ i64 sortable() const { return capacity(Team::of_block()) * sizeof(Event) / 12; }
    __device__ __forceinline__ void clear() const {
        const i64 n = reinterpret_cast<u32*>(cursors + (blockDim.x >> 5)) - reinterpret_cast<u32*>(sums);
        u32* words = reinterpret_cast<u32*>(sums);
        for (i64 i = threadIdx.x; i < n; i += blockDim.x) words[i] = 0;
        __syncthreads();
    }
};

// One launch as its threads see it.
struct Work {
    const Rounds& in;
    const Desk desk;
    Grid grid;
    i64 turn;
    i64 measured;  // which measurement is the last one
    i64 at_start;  // connectivity of the first
    bool too_large;  // a cost that 64 bits may not hold

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
    __device__ __forceinline__ i64 long_net() const { return LONG_NET * in.table_warps; }
    __device__ __forceinline__ i64 long_node() const { return LONG_NODE * in.node_warps; }
    __device__ __forceinline__ i64 net_size(i64 g) const {
        return in.net_offsets[g + 1] - in.net_offsets[g] + in.source_offsets[g + 1] - in.source_offsets[g];
    }
    __device__ __forceinline__ i64 n_nets_of(i64 v) const {
        return in.node_offsets[v + 1] - in.node_offsets[v] + in.out_offsets[v + 1] - in.out_offsets[v];
    }
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
            add64(into + i, sum);
            sums.clear(i);
        }
        __syncthreads();
    }
};

// ------------------------------------------------------------------------------------ start

// Parts at the start; lists of long nets and nodes; totals of all loads.
__device__ __noinline__ void survey(const Work& given) {
    const Work work = given;
    const Rounds& in = work.in;
    i64 sums[N_LOADS];
    for (i32 r = 0; r < N_LOADS; ++r) sums[r] = 0;
    for (i64 g = work.thread(); g < in.n_nets; g += work.n_threads()) {
        if (work.net_size(g) > work.long_net()) in.long_nets[atomicAdd(&in.progress->n_long_nets, 1ull)] = static_cast<i32>(g);
        for (i32 c = 0; c < N_DISTINCT; ++c) sums[N_ADDITIVE + c] += in.counts[g * N_DISTINCT + c];
    }
    for (i64 v = work.thread(); v < in.n_nodes; v += work.n_threads()) {
        in.parts[v] = in.start[v];
        in.locked[v] = false;
        if (work.n_nets_of(v) > work.long_node())
            in.long_nodes[atomicAdd(&in.progress->n_long_nodes, 1ull)] = static_cast<i32>(v);
        for (i32 r = 0; r < N_ADDITIVE; ++r) sums[r] += work.additive(v, r);
    }
    for (i32 r = 0; r < N_LOADS; ++r) {
        const i64 sum = sum_of(Team::of_block(), sums[r], work.desk.scratch);
        if (threadIdx.x == 0) add64(in.progress->totals + r, sum);
    }
}

// ------------------------------------------------------------------------------------ measure

// Where a warp writes entries: it reserves them in pieces, of which at most a quarter stays free.
struct Space {
    u64* n_taken;
    u32 piece, next, end;

    __device__ __forceinline__ u32 take(u32 n) {
        if (4 * n > piece) return static_cast<u32>(atomicAdd(n_taken, static_cast<u64>(n)));
        if (n > end - next) {
            next = static_cast<u32>(atomicAdd(n_taken, static_cast<u64>(piece)));
            end = next + piece;
        }
        next += n;
        return next - n;
    }
};

// The row of net g: (part, pins, weight of sources) of each part that it touches. Adds (net weight -
// weight of sources) over entries with pins to `connectivity`, the net's counts to the loads of their parts.
// Parallel over pins, then over parts.
template <class G>
__device__ __forceinline__ void fill_row(const Work& work, G group, i32 g, Space& space, i64& connectivity) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    const i32 n_parts = desk.n_parts, rank = group.rank(), size = group.size();
    u32* pins = desk.table(group);
    const Sums sources(pins + n_parts, n_parts), loads = desk.loads();
    const i64 last_source = in.source_offsets[g + 1];
    gather(group, in.net_pins, in.net_offsets[g], in.net_offsets[g + 1], in.parts, [&](i32, i32 p) { atomicAdd(pins + p, 1u); });
    for (i64 j = in.source_offsets[g] + rank; j < last_source; j += size)
        sources.add(in.parts[in.source_nodes[j]], in.source_weights[j]);
    group.sync();
    i64 mine = 0, total;
    for (i32 s = rank; s < n_parts; s += size) mine += pins[s] != 0 || sources.get(s) != 0;
    const i64 before = scan(group, mine, total, desk.scratch) - mine;
    i64 first = rank == 0 ? space.take(static_cast<u32>(total)) : 0;
    first = value_of_first(group, first, desk.scratch);
    const bool fits = first + total <= in.most_entries;
    const i64 weight = in.net_weights[g];
    if (rank == 0) {
        Row row;
        row.first = static_cast<i32>(first);
        row.size = fits ? static_cast<i32>(total) : 0;
        row.weight = weight;
        row.counts[0] = 0;
        for (i32 c = 0; c < N_DISTINCT; ++c) row.counts[c] = in.counts[static_cast<i64>(g) * N_DISTINCT + c];
        in.rows[g] = row;
        if (!fits) in.progress->gave_up = 1;
    }
    i64 place = first + before;
    for (i32 s = rank; s < n_parts; s += size) {
        const i32 n = static_cast<i32>(pins[s]);
        const i64 waiting = sources.get(s);
        if (n == 0 && waiting == 0) continue;
        pins[s] = 0;
        sources.clear(s);
        if (fits) {
            in.entries[place] = {s, n};
            in.waiting[place] = waiting;
        }
        ++place;
        if (n == 0) continue;
        connectivity += weight - waiting;
        for (i32 c = 0; c < N_DISTINCT; ++c) {
            const i64 count = in.counts[static_cast<i64>(g) * N_DISTINCT + c];
            if (count != 0) loads.add(s * N_LOADS + N_ADDITIVE + c, count);
        }
    }
    group.sync();
}

// Rows of the nets that are long, by a block each, or of those that are not; what they add to connectivity.
// (Functions of their own keep what they know in registers.)
template <class G>
__device__ __noinline__ i64 fill_rows(const Work& given, G group, bool only_long) {
    const Work work = given;
    const Rounds& in = work.in;
    Space space = {in.progress->n_entries + (work.measured & 1), static_cast<u32>(in.piece), 0, 0};
    i64 connectivity = 0;
    const i64 n = only_long ? static_cast<i64>(in.progress->n_long_nets) : in.n_nets;
    for (i64 i = group.index(); i < n; i += group.number()) {
        const i32 g = only_long ? in.long_nets[i] : static_cast<i32>(i);
        if (only_long || work.net_size(g) <= work.long_net()) fill_row(work, group, g, space, connectivity);
    }
    return connectivity;
}

// The table of the parts, connectivity and loads.
__device__ __noinline__ void measure(const Work& given) {
    const Work work = given;
    const Rounds& in = work.in;
    const Team block = Team::of_block(), team = {static_cast<i32>(in.table_warps)};
    i64 connectivity = in.progress->n_long_nets != 0 ? fill_rows(work, block, true) : 0;
    __syncthreads();
    connectivity += team.warps == 1 ? fill_rows(work, Warp(), false) : fill_rows(work, team, false);
    __syncthreads();
    const Sums loads = work.desk.loads();
    for (i64 v = work.thread(); v < in.n_nodes; v += work.n_threads())
        for (i32 r = 0; r < N_ADDITIVE; ++r) loads.add(in.parts[v] * N_LOADS + r, work.additive(v, r));
    connectivity = sum_of(block, connectivity, work.desk.scratch);
    if (threadIdx.x == 0) add64(reinterpret_cast<i64*>(in.progress->connectivity) + (work.measured & 1), connectivity);
    work.flush(work.loads(work.measured));
}

// Zero what the next measurement adds to.
__device__ __forceinline__ void prepare_measurement(const Work& work) {
    const i64 next = work.measured + 1;
    for (i64 i = work.thread(); i < work.in.n_parts * N_LOADS; i += work.n_threads()) work.loads(next)[i] = 0;
    if (work.thread() == 0) work.in.progress->n_entries[next & 1] = work.in.progress->connectivity[next & 1] = 0;
}

// ------------------------------------------------------------------------------------ weigh

// Price of a unit of each load: factor * (connectivity at the start / total of the load), rounded down.
__device__ __forceinline__ void set_prices(const Work& work, double factor, i64* prices) {
    const Progress& progress = *work.in.progress;
    for (i32 r = 0; r < N_LOADS; ++r) {
        const double worth = static_cast<double>(work.at_start) / static_cast<double>(larger(progress.totals[r], 1));
        prices[r] = static_cast<i64>(__dmul_rn(worth, factor));
    }
}

// Connectivity + price * overload of the last measurement, known to all threads.
__device__ __forceinline__ i64 weigh(Work& work) {
    const Rounds& in = work.in;
    const i64* loads = work.loads(work.measured);
    i64 cost = static_cast<i64>(in.progress->connectivity[work.measured & 1]), prices[N_LOADS];
    set_prices(work, in.overload_factor, prices);
    double estimate = static_cast<double>(cost);
    for (i32 r = 0; r < N_LOADS; ++r) {
        i64 over = 0;
        for (i64 p = threadIdx.x; p < in.n_parts; p += blockDim.x) over += larger(loads[p * N_LOADS + r] - in.limits[r], 0);
        over = sum_of(Team::of_block(), over, work.desk.scratch);
        cost += over * prices[r];
        estimate += static_cast<double>(over) * static_cast<double>(prices[r]);
    }
    work.too_large |= estimate > 4e18;
    return cost;
}

// Overload of all parts and loads, known to all threads.
__device__ __forceinline__ i64 overload(const Work& work) {
    const i64* loads = work.loads(work.measured);
    i64 over = 0;
    for (i64 i = threadIdx.x; i < work.in.n_parts * N_LOADS; i += blockDim.x)
        over += larger(loads[i] - work.in.limits[i % N_LOADS], 0);
    return sum_of(Team::of_block(), over, work.desk.scratch);
}

__device__ __forceinline__ void keep_best(const Work& work) {
    for (i64 v = work.thread(); v < work.in.n_nodes; v += work.n_threads()) work.in.best[v] = work.in.parts[v];
}

// ------------------------------------------------------------------------------------ propose

// Best move of node v in isolation, or target -1 (see `propose_moves` of _kernels_refine.py).
// Parallel over nets, `width` threads each, and over their entries; then over parts.
template <Kind KIND, class G>
__device__ __forceinline__ void propose(const Work& work, G group, const Prices& prices, i32 v, i32 width) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    const i32 n_parts = desk.n_parts, rank = group.rank(), size = group.size();
    const Sums gathered(desk.table(group), n_parts), shared(gathered.high + n_parts, static_cast<i64>(N_DISTINCT) * n_parts);
    const i32 a = in.parts[v], team = rank / width, teams = size / width, lane = rank & (width - 1);
    const i64 first = in.node_offsets[v], last = in.node_offsets[v + 1];
    const i64 first_out = in.out_offsets[v], last_out = in.out_offsets[v + 1];
    const bool strict = KIND == STRICT;
    i64 here = 0, total[ROOM], freed[ROOM];  // strict: the latter are shares of counts
    for (i32 c = 0; c < ROOM; ++c) total[c] = freed[c] = 0;
    i64 j = first + team;
    i32 g = j < last ? in.node_nets[j] : -1, g_next = j + teams < last ? in.node_nets[j + teams] : -1;
    Row row;
    if (g >= 0) row = in.rows[g];
    while (g >= 0) {
        const i32 net = g;
        const Row now = row;
        j += teams;
        g = g_next;
        if (g >= 0) row = in.rows[g];  // on its way while this one is worked on
        g_next = j + teams < last ? in.node_nets[j + teams] : -1;
        if (lane == 0)
            for (i32 c = 0; c < N_DISTINCT; ++c) total[c] += now.counts[c];
        for (i32 s = lane; s < now.size; s += width) {
            const Entry entry = in.entries[now.first + s];
            if (entry.part == a) {
                for (i32 c = 0; strict && c < N_DISTINCT; ++c) freed[c] += now.counts[c] / entry.pins;
                if (entry.pins != 1) {
                    here += now.weight;
                    continue;
                }
                // v is the only pin here: without it only sources wait
                const i64 o = lower_bound(in.out_nets, first_out, last_out, net);
                here += in.waiting[now.first + s];
                if (o < last_out && in.out_nets[o] == net) here -= in.out_weights[o];
                for (i32 c = 0; !strict && c < N_DISTINCT; ++c) freed[c] += now.counts[c];
                continue;
            }
            const i64 value = entry.pins > 0 ? now.weight : in.waiting[now.first + s];
            if (value != 0) gathered.add(entry.part, value);
            if (entry.pins > 0)
                for (i32 c = 0; c < N_DISTINCT; ++c)
                    if (now.counts[c] != 0) shared.add(c * n_parts + entry.part, now.counts[c]);
        }
    }
    for (i64 o = first_out + team; o < last_out; o += teams) {
        const i32 net = in.out_nets[o];
        const i64 k = lower_bound(in.node_nets, first, last, net);
        if (k < last && in.node_nets[k] == net) continue;  // v is a pin itself: its source term never changes
        const i64 weight = in.out_weights[o];
        if (weight == 0) continue;
        const i32 begin = in.rows[net].first, end = begin + in.rows[net].size;
        for (i32 s = begin + lane; s < end; s += width) {
            const Entry entry = in.entries[s];
            if (entry.pins == 0) continue;
            if (entry.part == a)
                here += weight;
            else
                gathered.add(entry.part, weight);
        }
    }
    group.sync();
    here = sum_of(group, here, desk.scratch);
    for (i32 c = 0; c < N_DISTINCT; ++c) {
        total[c] = sum_of(group, total[c], desk.scratch);
        freed[c] = sum_of(group, freed[c], desk.scratch);
    }
    const i64* loads = work.loads(work.measured);
    i64 relief = 0, units = 1;
    for (i32 r = 0; r < N_LOADS; ++r) {
        const i64 over = loads[static_cast<i64>(a) * N_LOADS + r] - in.limits[r];
        i64 released = r < N_ADDITIVE ? work.additive(v, r) : freed[r < N_ADDITIVE ? 0 : r - N_ADDITIVE];
        if (strict && r >= N_ADDITIVE) released = freed[r < N_ADDITIVE ? 0 : r - N_ADDITIVE] = larger(released, 1);
        if (over <= 0) continue;
        if (strict)
            units += (released << 16) / in.limits[r];
        else
            relief += prices.of[r] * smaller(over, released);
    }
    Best best = {-(1ll << 62), 0, -1, 0};
    i64 plain = 0, brought[ROOM];
    for (i32 c = 0; c < ROOM; ++c) brought[c] = 0;
    for (i32 p = rank; p < n_parts; p += size) {
        const i64 found = gathered.get(p);
        i64 added[ROOM];
        for (i32 c = 0; c < N_DISTINCT; ++c) {
            added[c] = total[c] - shared.get(c * n_parts + p);
            if (added[c] != total[c]) shared.clear(c * n_parts + p);
        }
        if (found != 0)
            gathered.clear(p);
        else if (!strict || p != prices.haven || p == a)
            continue;  // nothing of v is there
        i64 gain = found - here + relief;
        if (gain < best.value) continue;
        bool fits = true;
        for (i32 r = 0; r < N_LOADS; ++r) {
            const i64 more = r < N_ADDITIVE ? work.additive(v, r) : added[r < N_ADDITIVE ? 0 : r - N_ADDITIVE];
            const i64 over = loads[static_cast<i64>(p) * N_LOADS + r] + more - in.limits[r];
            if (over <= 0) continue;
            fits = false;
            if (!strict) gain -= prices.of[r] * smaller(over, more);
        }
        if (strict && !fits) continue;
        const u64 tie = scramble(static_cast<u64>(static_cast<i64>(p) * 1000003 + v), static_cast<u64>(prices.seed));
        const Best candidate = {gain, tie, p, 0};
        if (!best.below(candidate)) continue;
        best = candidate;
        plain = found - here;
        for (i32 c = 0; c < N_DISTINCT; ++c) brought[c] = added[c];
    }
    const i32 own = best.id;
    best = best_of(group, best, desk.scratch);
    const bool moves = best.id >= 0 && (strict || best.value * 64 >= -prices.slack * here);
    if (rank == 0 && !moves) in.targets[v] = -1;
    if (moves && own == best.id) {
        in.targets[v] = own;
        in.gains[v] = strict ? floor_div(plain * 256, units) : best.value;
        in.plain_gains[v] = plain;
        in.later[v] = 0;
        for (i32 c = 0; c < N_DISTINCT; ++c) {
            in.incoming[static_cast<i64>(v) * N_DISTINCT + c] = KIND != REPLAYED ? brought[c] : 0;
            in.outgoing[static_cast<i64>(v) * N_DISTINCT + c] = KIND != REPLAYED ? freed[c] : 0;
        }
        atomicAdd(desk.ins + own, 1u);
        atomicAdd(desk.outs + a, 1u);
    }
    group.sync();
}

// Whether a strict proposal may move v.
__device__ __forceinline__ bool overfull(const Work& work, i64 v) {
    const i64* held = work.loads(work.measured) + static_cast<i64>(work.in.parts[v]) * N_LOADS;
    bool found = false;
    for (i32 r = 0; r < N_LOADS; ++r) found |= held[r] > work.in.limits[r];
    return found;
}

// Whether v's nets touch other parts than its own. One thread looks at few nets; of many it is assumed.
__device__ __forceinline__ bool at_border(const Work& work, i64 v) {
    const Rounds& in = work.in;
    if (work.n_nets_of(v) > PARTLY) return true;
    for (i64 j = in.node_offsets[v]; j < in.node_offsets[v + 1]; ++j)
        if (in.rows[in.node_nets[j]].size != 1) return true;
    for (i64 j = in.out_offsets[v]; j < in.out_offsets[v + 1]; ++j)
        if (in.rows[in.out_nets[j]].size != 1) return true;
    return false;
}

// The same for one of many nets, by a warp.
__device__ __forceinline__ bool at_border_of(const Work& work, i64 v) {
    const Rounds& in = work.in;
    bool found = false;
    for (i64 j = in.node_offsets[v] + (threadIdx.x & 31); j < in.node_offsets[v + 1]; j += 32)
        found |= in.rows[in.node_nets[j]].size != 1;
    for (i64 j = in.out_offsets[v] + (threadIdx.x & 31); j < in.out_offsets[v + 1]; j += 32)
        found |= in.rows[in.out_nets[j]].size != 1;
    return __ballot_sync(ALL_LANES, found) != 0;
}

// Proposals of the nodes that are long, or of those that are not, by a team each.
template <Kind KIND>
__device__ __noinline__ void propose_by_teams(const Work& given, Team team, const Prices& prices, i32 width, bool only_long) {
    const Work work = given;
    const Rounds& in = work.in;
    const i64 n = only_long ? static_cast<i64>(in.progress->n_long_nodes) : in.n_nodes;
    for (i64 i = team.index(); i < n; i += team.number()) {
        const i32 v = only_long ? in.long_nodes[i] : static_cast<i32>(i);
        if (!only_long && work.n_nets_of(v) > work.long_node()) continue;
        const bool rests = in.locked[v];
        team.sync();
        if (KIND == STRICT ? overfull(work, v) : !rests && (work.n_nets_of(v) > PARTLY || at_border_of(work, v))) {
            propose<KIND>(work, team, prices, v, width);
        } else if (team.rank() == 0) {
            in.targets[v] = -1;
            in.locked[v] = false;
        }
    }
}

// The same by warps: one looks which of some consecutive nodes are at a border, and works on those.
template <Kind KIND>
__device__ __noinline__ void propose_by_warps(const Work& given, const Prices& prices, i32 width) {
    const Work work = given;
    const Rounds& in = work.in;
    const i64 n_warps = Warp().number(), some = smaller(32, (in.n_nodes + n_warps - 1) / n_warps);
    for (i64 base = Warp().index() * some; base < in.n_nodes; base += n_warps * some) {
        const i64 v = base + Warp().rank();
        bool asks = false;
        if (v < smaller(base + some, in.n_nodes) && work.n_nets_of(v) <= work.long_node()) {
            asks = KIND == STRICT ? overfull(work, v) : !in.locked[v] && at_border(work, v);
            in.locked[v] = false;
            if (!asks) in.targets[v] = -1;
        }
        u32 left = __ballot_sync(ALL_LANES, asks);
        while (left != 0) {
            const i32 one = __ffs(left) - 1;
            left &= left - 1;
            propose<KIND>(work, Warp(), prices, static_cast<i32>(base + one), width);
        }
    }
}

// Proposals of all nodes that are not locked, which they then are no more; how many want to come to and go
// from each part.
template <Kind KIND>
__device__ __forceinline__ void propose_all(const Work& work, const Prices& prices) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    const Team team = {static_cast<i32>(in.node_warps)};
    const u64 n_entries = in.progress->n_entries[work.measured & 1];
    i32 width = 4;
    while (width < 32 && static_cast<u64>(width) * in.n_nets < n_entries) width *= 2;
    if (in.progress->n_long_nodes != 0) propose_by_teams<KIND>(work, Team::of_block(), prices, width, true);
    __syncthreads();
    if (team.warps > 1)
        propose_by_teams<KIND>(work, team, prices, width, false);
    else
        propose_by_warps<KIND>(work, prices, width);
    __syncthreads();
    for (i32 p = threadIdx.x; p < desk.n_parts; p += blockDim.x) {
        if (desk.ins[p] != 0) add64(work.wanted_in() + p, desk.ins[p]);
        if (desk.outs[p] != 0) add64(work.wanted_out() + p, desk.outs[p]);
        desk.ins[p] = desk.outs[p] = 0;
    }
}

// Zero what the next round counts.
__device__ __forceinline__ void prepare_counters(const Work& work) {
    const i64 n = sizeof(Counters) / 8 + work.in.n_parts * (N_LOADS + 4);
    i64* next = work.set_of(work.turn + 1);
    for (i64 i = work.thread(); i < n; i += work.n_threads()) next[i] = 0;
}

// ------------------------------------------------------------------------------------ replay

// What each event of net g does after all its events of better rank, where that may be something:
// as long as more pins are in a part than leave it, neither leaving nor arriving there does anything;
// other parts are open. Only events that touch an open part are listed and compared in pairs; they are
// all that changes its pins. A node that is pin and source moves as a pin first. Adds to `later`, and
// (LOADS) to the distinct loads that moves bring and take.
// Parallel over pins, twice, and over pairs of listed events.
template <bool LOADS, class G>
__device__ __forceinline__ void replay_net(const Work& work, G group, i32 g) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    const i32 n_parts = desk.n_parts, rank = group.rank(), size = group.size();
    u32 *pins = desk.table(group), *leaving = pins + 3 * n_parts;
    const Sums sources(pins + n_parts, n_parts);
    const i64 first = in.net_offsets[g], last = in.net_offsets[g + 1];
    const i64 first_source = in.source_offsets[g], last_source = in.source_offsets[g + 1];
    bool some = false;
    gather(group, in.net_pins, first, last, in.targets, [&](i32 v, i32 b) {
        if (b < 0) return;
        some = true;
        atomicAdd(leaving + in.parts[v], 1u);
    });
    for (i64 j = first_source + rank; j < last_source; j += size) some |= in.targets[in.source_nodes[j]] >= 0;
    if (!any_of(group, some, desk.scratch)) return;
    const Row row = in.rows[g];
    for (i32 s = rank; s < row.size; s += size) {
        const Entry entry = in.entries[row.first + s];
        pins[entry.part] = static_cast<u32>(entry.pins);
        const i64 waiting = in.waiting[row.first + s];
        sources.low[entry.part] = static_cast<u32>(waiting);
        sources.high[entry.part] = static_cast<u32>(waiting >> 32);
    }
    u32* cursor = desk.cursors + group.place();
    Event* list = desk.list(group);
    i64 room = desk.capacity(group), n = 0;
    while (true) {
        if (rank == 0) *cursor = 0;
        group.sync();
        const auto note = [&](i32 v, i32 b, i64 weight) {
            if (b < 0) return;
            const i32 a = in.parts[v];
            if (pins[a] > leaving[a] && pins[b] > leaving[b]) return;
            const u32 place = atomicAdd(cursor, 1u);
            if (place < room)
                list[place] = {in.gains[v], weight, v, static_cast<unsigned short>(a), static_cast<unsigned short>(b)};
        };
        gather(group, in.net_pins, first, last, in.targets, [&](i32 v, i32 b) { note(v, b, -1); });
        for (i64 j = first_source + rank; j < last_source; j += size)
            note(in.source_nodes[j], in.targets[in.source_nodes[j]], in.source_weights[j]);
        group.sync();
        n = *cursor;
        group.sync();
        if (n <= room) break;
        i64 place = rank == 0 ? static_cast<i64>(atomicAdd(&work.counters().n_events, static_cast<u64>(n))) : 0;
        place = value_of_first(group, place, desk.scratch);
        if (place + n > in.most_events) {
            if (rank == 0) in.progress->gave_up = 1;
            n = 0;
            break;
        }
        list = in.events + place;
        room = n;
    }
    for (i64 e = rank; e < n; e += size) {
        const Event event = list[e];
        const i32 a = event.from, b = event.to;
        i64 pins_a = pins[a], pins_b = pins[b], sources_a = sources.get(a), sources_b = sources.get(b);
        for (i64 i = 0; i < n; ++i) {
            const Event other = list[i];
            const bool same = other.node == event.node;
            if (same ? event.weight < 0 || other.weight >= 0 : !ranks_before(other.gain, other.node, event.gain, event.node))
                continue;
            const i32 into_a = (other.to == a) - (other.from == a), into_b = (other.to == b) - (other.from == b);
            if (other.weight < 0) {
                pins_a += into_a;
                pins_b += into_b;
            } else {
                sources_a += into_a * other.weight;
                sources_b += into_b * other.weight;
            }
        }
        i64 gain = 0;
        if (event.weight < 0) {
            if (pins_a == 1) gain += row.weight - sources_a;
            if (pins_b == 0) gain -= row.weight - sources_b;
            for (i32 c = 0; LOADS && c < N_DISTINCT; ++c) {
                const i64 place = static_cast<i64>(event.node) * N_DISTINCT + c;
                if (row.counts[c] == 0) continue;
                if (pins_a == 1) add64(in.outgoing + place, row.counts[c]);
                if (pins_b == 0) add64(in.incoming + place, row.counts[c]);
            }
        } else {
            if (pins_b > 0) gain += event.weight;
            if (pins_a > 0) gain -= event.weight;
        }
        if (gain != 0) add64(in.later + event.node, gain);
    }
    group.sync();
    for (i32 s = rank; s < row.size; s += size) {
        const i32 p = in.entries[row.first + s].part;
        pins[p] = leaving[p] = 0;
        sources.clear(p);
    }
    group.sync();
}

template <bool LOADS, class G>
__device__ __noinline__ void replay_nets(const Work& given, G group, bool only_long) {
    const Work work = given;
    const Rounds& in = work.in;
    const i64 n = only_long ? static_cast<i64>(in.progress->n_long_nets) : in.n_nets;
    for (i64 i = group.index(); i < n; i += group.number()) {
        const i32 g = only_long ? in.long_nets[i] : static_cast<i32>(i);
        if (only_long || work.net_size(g) <= work.long_net()) replay_net<LOADS>(work, group, g);
    }
}

template <bool LOADS>
__device__ __forceinline__ void replay_all(const Work& work) {
    const Rounds& in = work.in;
    const Team team = {static_cast<i32>(in.table_warps)};
    if (in.progress->n_long_nets != 0) replay_nets<LOADS>(work, Team::of_block(), true);
    __syncthreads();
    if (team.warps == 1)
        replay_nets<LOADS>(work, Warp(), false);
    else
        replay_nets<LOADS>(work, team, false);
    __syncthreads();
}

// ------------------------------------------------------------------------------------ choose

// Lists nodes by part: v in the list of part key(v), unless that is -1; the lists begin at `firsts`,
// n_listed (0 before) = their lengths. By all blocks.
template <class Key>
__device__ __forceinline__ void list_nodes(const Work& work, const u32* firsts, i64* n_listed, i32* list, Key key) {
    const Desk& desk = work.desk;
    for (i64 v = work.thread(); v < work.in.n_nodes; v += work.n_threads()) {
        const i32 p = key(v);
        if (p >= 0) atomicAdd(desk.ins + p, 1u);
    }
    __syncthreads();
    for (i32 p = threadIdx.x; p < desk.n_parts; p += blockDim.x) {
        const u64 n = desk.ins[p];
        if (n != 0) desk.outs[p] = firsts[p] + static_cast<u32>(atomicAdd(reinterpret_cast<u64*>(n_listed + p), n));
        desk.ins[p] = 0;
    }
    __syncthreads();
    for (i64 v = work.thread(); v < work.in.n_nodes; v += work.n_threads()) {
        const i32 p = key(v);
        if (p >= 0) list[atomicAdd(desk.outs + p, 1u)] = static_cast<i32>(v);
    }
    __syncthreads();
    for (i32 p = threadIdx.x; p < desk.n_parts; p += blockDim.x) desk.outs[p] = 0;
    __syncthreads();
}

// Where the lists of moves into and out of each part begin.
__device__ __forceinline__ void place_moves(const Work& work) {
    const i64 *n_in = work.wanted_in(), *n_out = work.wanted_out();
    place_lists(work.in.n_parts, work.desk.first_ins, work.desk.scratch, [&](i64 p) { return n_in[p]; });
    place_lists(work.in.n_parts, work.desk.first_outs, work.desk.scratch, [&](i64 p) { return n_out[p]; });
    __syncthreads();
}

// take(v) for those of n listed moves up to which, best first (equal ones as `before` says), all amounts
// fit into the room; by a block.
template <class Amount, class Take, class Before>
__device__ __forceinline__ void accept_prefix(const Work& work, const i32* list, i64 n, i64 place, const i64* room,
                                              Amount amount, Take take, Before before_equal) {
    const Rounds& in = work.in;
    i64* gains = reinterpret_cast<i64*>(work.desk.events);
    i32* ids = reinterpret_cast<i32*>(gains + work.desk.sortable());
    if (n > work.desk.sortable()) {
        gains = in.sorted_gains + place;
        ids = in.sorted + place;
    }
    if (n == 0) return;
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
        ids[i] = list[i];
        gains[i] = in.gains[list[i]];
    }
    sort_moves(gains, ids, n, before_equal);
    i64 before[N_LOADS], total;
    for (i32 r = 0; r < N_LOADS; ++r) before[r] = 0;
    for (i64 base = 0; base < n; base += blockDim.x) {
        const i64 i = base + threadIdx.x, v = i < n ? ids[i] : -1;
        bool fits = v >= 0;
        for (i32 r = 0; r < N_LOADS; ++r) {
            const i64 sum = scan(Team::of_block(), v >= 0 ? amount(v, r) : 0, total, work.desk.scratch);
            fits &= before[r] + sum <= room[r];
            before[r] += total;
        }
        if (fits) take(v);
    }
    __syncthreads();
}

template <class Amount, class Take>
__device__ __forceinline__ void accept_prefix(const Work& work, const i32* list, i64 n, i64 place, const i64* room,
                                              Amount amount, Take take) {
    accept_prefix(work, list, n, place, room, amount, take, [](i32 v, i32 other) { return v < other; });
}

__device__ __forceinline__ void move(const Rounds& in, i64 v, u64& n_moved) {
    in.parts[v] = in.targets[v];
    in.locked[v] = true;
    ++n_moved;
}

// ------------------------------------------------------------------------------------ a launch

// The struct of a launch in shared memory, where reading its fields costs little.
__device__ __forceinline__ void take(Rounds& in, const Rounds* rounds) {
    const u64* from = reinterpret_cast<const u64*>(rounds);
    u64* into = reinterpret_cast<u64*>(&in);
    for (u32 i = threadIdx.x; i < sizeof(Rounds) / sizeof(u64); i += blockDim.x) into[i] = from[i];
    __syncthreads();
}

// Where a launch goes on: at turn `first`. The first launch measures.
__device__ __forceinline__ void begin(Work& work) {
    work.desk.clear();
    if (work.turn > 0) return;
    survey(work);
    work.grid.meet();
    measure(work);
    work.grid.meet();
    work.at_start = static_cast<i64>(work.in.progress->connectivity[0]);
}

// Proposals of a turn, and room for what it and the next measurement count.
template <Kind KIND>
__device__ __forceinline__ void begin_turn(const Work& work, const Turn& turn, i64 haven = -1) {
    Prices prices;
    set_prices(work, turn.factor, prices.of);
    prices.slack = turn.slack;
    prices.seed = turn.seed;
    prices.haven = haven;
    prepare_measurement(work);
    prepare_counters(work);
    propose_all<KIND>(work, prices);
}

// All blocks know that something moved, or that nothing did, which changes nothing.
__device__ __forceinline__ void measure_again(Work& work, bool moved) {
    if (moved) {
        ++work.measured;
        measure(work);
    }
    work.grid.meet();
}

// What the next launch and the host hear; `done`: no turn is left that could change anything.
__device__ __forceinline__ void end(Work& work, bool done) {
    work.grid.meet();
    if (work.thread() != 0) return;
    Progress& progress = *work.in.progress;
    progress.n_measured = work.measured;
    progress.at_start = work.at_start;
    progress.done = done;
    if (work.too_large) progress.gave_up = 1;
}

#define WORK(rounds, first)                                                                                  \
    DYNAMIC_SHARED(memory);                                                                                  \
    __shared__ Rounds in;                                                                                    \
    take(in, rounds);                                                                                        \
    Progress& progress = *in.progress;                                                                       \
    Work work = {in, Desk(memory, in.n_parts, in.table_warps), Grid(&progress.gate, memory, 0), first, progress.n_measured, \
                 progress.at_start, false};
#endif
