// Parallel refinement: the sparse pins-per-part table, move proposals, gains in sequence. Each step
// has a twin in snnmap/partitioning/multilevel/_kernels_refine.py and gives the same integers.
//
// The table is a CSR list: for each net the parts that it touches, in any order, with the number of
// its pins there and the weight of its sources there.
#include "common.cuh"

// ------------------------------------------------------------------------------------ measure

// sizes[g] = parts that net g touches with pins or sources, for the nets of a list.
// Parallel over nets (a group each) and over a net's pins; reads pins once, gathers parts (cached),
// keys in shared memory (or scratch). Deterministic: the number of distinct parts.
template <bool BLOCK>
__device__ __forceinline__ void count_rows(const i64* net_offsets, const i32* net_pins,
                                           const i64* source_offsets, const i32* source_nodes,
                                           const i32* parts, const i32* slots, const i32* list, i64 n,
                                           i64* sizes, i32* keys) {
    const i32 rank = Group<BLOCK>::rank(), size = Group<BLOCK>::size();
    for (i64 i = Group<BLOCK>::index(); i < n; i += Group<BLOCK>::number()) {
        const i32 g = list[i];
        const u32 mask = slots[g] - 1;
        for (u32 s = rank; s <= mask; s += size) keys[s] = EMPTY;
        Group<BLOCK>::sync();
        i64 found = 0;
        bool fresh;
        for (i64 j = net_offsets[g] + rank; j < net_offsets[g + 1]; j += size) {
            const i32 p = parts[net_pins[j]];
            claim(keys, mask, p, fresh);
            found += fresh;
        }
        for (i64 j = source_offsets[g] + rank; j < source_offsets[g + 1]; j += size) {
            const i32 p = parts[source_nodes[j]];
            claim(keys, mask, p, fresh);
            found += fresh;
        }
        found = sum_group<BLOCK>(found);
        if (rank == 0) sizes[g] = found;
        Group<BLOCK>::sync();
    }
}

// One warp for each net of list 0; `capacity` slots of 4 bytes a warp.
extern "C" __global__ void count_parts_warp(const i64* net_offsets, const i32* net_pins,
                                            const i64* source_offsets, const i32* source_nodes,
                                            const i32* parts, const i32* slots, const i32* list,
                                            const u64* length, i64 capacity, i64* sizes) {
    DYNAMIC_SHARED(memory);
    i32* keys = reinterpret_cast<i32*>(memory) + (threadIdx.x >> 5) * capacity;
    count_rows<false>(net_offsets, net_pins, source_offsets, source_nodes, parts, slots, list, *length, sizes, keys);
}

// One block for each net of list 1 or 2 (scratch null: keys in shared memory) or 3 (keys in scratch).
extern "C" __global__ void count_parts_block(const i64* net_offsets, const i32* net_pins,
                                             const i64* source_offsets, const i32* source_nodes,
                                             const i32* parts, const i32* slots, const i32* list,
                                             const u64* length, i64 capacity, i64* sizes, unsigned char* scratch) {
    DYNAMIC_SHARED(memory);
    if (scratch == nullptr)
        count_rows<true>(net_offsets, net_pins, source_offsets, source_nodes, parts, slots, list, *length, sizes,
                         reinterpret_cast<i32*>(memory));
    else
        count_rows<true>(net_offsets, net_pins, source_offsets, source_nodes, parts, slots, list, *length, sizes,
                         reinterpret_cast<i32*>(scratch) + blockIdx.x * capacity);
}

// Rows of the table: (part, pins, source weight) of each part that the net touches; adds
// sum of (net weight - source weight) over entries with pins to *connectivity and the net's counts
// to the distinct loads of those parts.
// Parallel over nets (a group each) and over a net's pins; 16 bytes a slot in shared memory (or
// scratch), writes each entry once. Deterministic but for the order of a row's entries: integer sums.
template <bool BLOCK>
__device__ __forceinline__ void fill_rows(const i64* net_offsets, const i32* net_pins,
                                          const i64* source_offsets, const i32* source_nodes,
                                          const i64* source_weights, const i64* net_weights,
                                          const i64* counts, const i32* parts, const i32* slots,
                                          const i32* list, i64 n, const i64* offsets, i32* table_parts,
                                          i32* table_pins, i64* table_sources, i64* connectivity,
                                          i64* loads, unsigned char* memory, i64 capacity, u32* cursor) {
    const Sums sources(memory, capacity);
    i32* keys = reinterpret_cast<i32*>(memory) + 2 * capacity;
    i32* pins = keys + capacity;
    const i32 rank = Group<BLOCK>::rank(), size = Group<BLOCK>::size(), lane = threadIdx.x & 31;
    i64 total = 0;
    for (i64 i = Group<BLOCK>::index(); i < n; i += Group<BLOCK>::number()) {
        const i32 g = list[i];
        const u32 mask = slots[g] - 1;
        for (u32 s = rank; s <= mask; s += size) {
            keys[s] = EMPTY;
            pins[s] = 0;
            sources.clear(s);
        }
        if (rank == 0) *cursor = 0;
        Group<BLOCK>::sync();
        for (i64 j = net_offsets[g] + rank; j < net_offsets[g + 1]; j += size) {
            const i32 p = parts[net_pins[j]];
            atomicAdd(pins + claim(keys, mask, p), 1);
        }
        for (i64 j = source_offsets[g] + rank; j < source_offsets[g + 1]; j += size) {
            const i32 p = parts[source_nodes[j]];
            sources.add(claim(keys, mask, p), source_weights[j]);
        }
        Group<BLOCK>::sync();
        for (u32 base = 0; base <= mask; base += size) {  // mask + 1 >= 32: warps stay whole
            const u32 s = base + rank;
            const bool held = s <= mask && keys[s] != EMPTY;
            const u32 some = __ballot_sync(ALL_LANES, held);
            u32 start = 0;
            if (lane == 0 && some) start = atomicAdd(cursor, static_cast<u32>(__popc(some)));
            start = __shfl_sync(ALL_LANES, start, 0);
            if (!held) continue;
            const i64 place = offsets[g] + start + __popc(some & ((1u << lane) - 1));
            table_parts[place] = keys[s];
            table_pins[place] = pins[s];
            table_sources[place] = sources.get(s);
            if (pins[s] == 0) continue;
            total += net_weights[g] - sources.get(s);
            for (i32 c = 0; c < N_DISTINCT; ++c) {
                const i64 count = counts[static_cast<i64>(g) * N_DISTINCT + c];
                if (count != 0) add64(loads + static_cast<i64>(keys[s]) * N_LOADS + N_ADDITIVE + c, count);
            }
        }
        Group<BLOCK>::sync();
    }
    total = sum_warp(total);
    if (lane == 0 && total != 0) add64(connectivity, total);
}

// One warp for each net of list 0; `capacity` slots of 16 bytes a warp.
extern "C" __global__ void fill_table_warp(const i64* net_offsets, const i32* net_pins,
                                           const i64* source_offsets, const i32* source_nodes,
                                           const i64* source_weights, const i64* net_weights,
                                           const i64* counts, const i32* parts, const i32* slots,
                                           const i32* list, const u64* length, i64 capacity,
                                           const i64* offsets, i32* table_parts, i32* table_pins,
                                           i64* table_sources, i64* connectivity, i64* loads) {
    DYNAMIC_SHARED(memory);
    __shared__ u32 cursors[32];
    const u32 warp = threadIdx.x >> 5;
    fill_rows<false>(net_offsets, net_pins, source_offsets, source_nodes, source_weights, net_weights, counts,
                     parts, slots, list, *length, offsets, table_parts, table_pins, table_sources, connectivity,
                     loads, memory + warp * capacity * 16, capacity, cursors + warp);
}

// One block for each net of list 1 or 2 (scratch null) or 3.
extern "C" __global__ void fill_table_block(const i64* net_offsets, const i32* net_pins,
                                            const i64* source_offsets, const i32* source_nodes,
                                            const i64* source_weights, const i64* net_weights,
                                            const i64* counts, const i32* parts, const i32* slots,
                                            const i32* list, const u64* length, i64 capacity,
                                            const i64* offsets, i32* table_parts, i32* table_pins,
                                            i64* table_sources, i64* connectivity, i64* loads,
                                            unsigned char* scratch) {
    DYNAMIC_SHARED(memory);
    __shared__ u32 cursor;
    if (scratch == nullptr)
        fill_rows<true>(net_offsets, net_pins, source_offsets, source_nodes, source_weights, net_weights, counts,
                        parts, slots, list, *length, offsets, table_parts, table_pins, table_sources,
                        connectivity, loads, memory, capacity, &cursor);
    else
        fill_rows<true>(net_offsets, net_pins, source_offsets, source_nodes, source_weights, net_weights, counts,
                        parts, slots, list, *length, offsets, table_parts, table_pins, table_sources,
                        connectivity, loads, scratch + blockIdx.x * capacity * 16, capacity, &cursor);
}

// loads[parts[v], r] += resources[v, r].
// Parallel over nodes; reads each resource once, atomics on loads. Deterministic: integer sums.
extern "C" __global__ void add_resources(const i64* resources, const i32* parts, i64 n, i64* loads) {
    const i64 v = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (v >= n) return;
    for (i32 r = 0; r < N_ADDITIVE; ++r)
        add64(loads + static_cast<i64>(parts[v]) * N_LOADS + r, resources[v * N_ADDITIVE + r]);
}

// ------------------------------------------------------------------------------------ propose

// visits[v] = most insertions of v's proposal: entries of its nets (given), its part, the haven; -1
// where v may not move (locked, or strict and its part within the limits). targets[v] = -1.
// Parallel over nodes; a few words each. Pure map.
extern "C" __global__ void prepare_proposals(const bool* locked, const i32* parts, const i64* loads,
                                             const i64* limits, i64 strict, i64 n, i64* visits, i32* targets) {
    const i64 v = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (v >= n) return;
    targets[v] = -1;
    bool moves = !locked[v];
    if (moves && strict) {
        bool overfull = false;
        for (i32 r = 0; r < N_LOADS; ++r)
            overfull |= loads[static_cast<i64>(parts[v]) * N_LOADS + r] > limits[r];
        moves = overfull;
    }
    visits[v] = moves ? visits[v] + 2 : -1;
}

struct Proposals {
    const i64 *node_offsets;
    const i32 *node_nets;
    const i64 *out_offsets;
    const i32 *out_nets;
    const i64 *out_weights, *net_weights, *counts, *resources;
    const i32 *parts;
    const i64 *offsets;
    const i32 *table_parts, *table_pins;
    const i64 *table_sources, *loads, *limits, *prices;
    i64 n_parts, strict, haven, seed, slack;
    const i64 *visits;
    i32 *targets;
    i64 *gains, *plain_gains, *incoming, *outgoing;
};

// Best move of node v in isolation (see `propose_moves` in the twin), for the nodes of a list.
// gathered[p] = what v's nets save in part p; shared[p] = distinct loads it finds there.
// Parallel over nodes (a group each), over a node's nets (8 threads each, 32 where rows are long)
// and over their entries; reads the table rows of v's nets, sums in 12 + 8 * N_DISTINCT bytes a slot
// of shared memory (or scratch); with a slot for every part a part is its own slot.
// Deterministic: integer sums, and a maximum by (gain, hash, part).
template <bool BLOCK>
__device__ __forceinline__ void propose_rows(const Proposals& in, const i32* slots, const i32* list, i64 n,
                                             unsigned char* memory, i64 capacity) {
    const Sums gathered(memory, capacity);
    const Sums shared(gathered.high + capacity, N_DISTINCT * capacity);
    i32* keys = reinterpret_cast<i32*>(shared.high + N_DISTINCT * capacity);
    const i32 rank = Group<BLOCK>::rank(), size = Group<BLOCK>::size();
    for (i64 i = Group<BLOCK>::index(); i < n; i += Group<BLOCK>::number()) {
        const i32 v = list[i];
        const i32 a = in.parts[v];
        const u32 mask = slots[v] - 1;
        const bool dense = mask + 1ll >= in.n_parts;
        for (u32 s = rank; s <= mask; s += size) {
            keys[s] = dense ? static_cast<i32>(s) : EMPTY;
            gathered.clear(s);
            for (i32 c = 0; c < N_DISTINCT; ++c) shared.clear(c * capacity + s);
        }
        Group<BLOCK>::sync();
        auto slot_of = [&](i32 p) { return dense ? static_cast<u32>(p) : claim(keys, mask, p); };
        if (in.strict && rank == 0) slot_of(static_cast<i32>(in.haven));
        i64 total[N_DISTINCT], freed[N_DISTINCT], partial[N_DISTINCT];
        for (i32 c = 0; c < N_DISTINCT; ++c) total[c] = freed[c] = partial[c] = 0;
        const i64 first = in.node_offsets[v], last = in.node_offsets[v + 1];
        const i64 first_out = in.out_offsets[v], last_out = in.out_offsets[v + 1];
        const i64 n_nets = last - first + last_out - first_out;
        const i32 width = in.visits[v] >= 24 * n_nets ? 32 : 8;
        const i32 team = rank / width, teams = size / width, lane = rank & (width - 1);
        for (i64 j = first + team; j < last; j += teams) {
            const i32 g = in.node_nets[j];
            const i64 weight = in.net_weights[g];
            const i64* count = in.counts + static_cast<i64>(g) * N_DISTINCT;
            if (lane == 0)
                for (i32 c = 0; c < N_DISTINCT; ++c) total[c] += count[c];
            const i64 end = in.offsets[g + 1];
            for (i64 s = in.offsets[g] + lane; s < end; s += width) {
                const i32 p = in.table_parts[s], pins = in.table_pins[s];
                bool shares = pins > 0;
                i64 value = shares ? weight : in.table_sources[s];
                if (p == a) {
                    for (i32 c = 0; in.strict && c < N_DISTINCT; ++c) partial[c] += count[c] / pins;
                    if (pins == 1) {  // v is the only pin here: without it only sources wait
                        const i64 o = lower_bound(in.out_nets, first_out, last_out, g);
                        value = in.table_sources[s];
                        if (o < last_out && in.out_nets[o] == g) value -= in.out_weights[o];
                        for (i32 c = 0; c < N_DISTINCT; ++c) freed[c] += count[c];
                        shares = false;
                    }
                }
                if (value == 0 && !shares) continue;
                const u32 slot = slot_of(p);
                if (value != 0) gathered.add(slot, value);
                if (shares)
                    for (i32 c = 0; c < N_DISTINCT; ++c) shared.add(c * capacity + slot, count[c]);
            }
        }
        for (i64 o = first_out + team; o < last_out; o += teams) {
            const i32 g = in.out_nets[o];
            const i64 j = lower_bound(in.node_nets, first, last, g);
            if (j < last && in.node_nets[j] == g) continue;  // v is a pin itself: its source term never changes
            const i64 weight = in.out_weights[o], end = in.offsets[g + 1];
            for (i64 s = in.offsets[g] + lane; s < end; s += width) {
                if (in.table_pins[s] == 0) continue;
                gathered.add(slot_of(in.table_parts[s]), weight);
            }
        }
        for (i32 c = 0; c < N_DISTINCT; ++c) {
            total[c] = sum_group<BLOCK>(total[c]);
            freed[c] = sum_group<BLOCK>(freed[c]);
            partial[c] = sum_group<BLOCK>(partial[c]);
        }
        Group<BLOCK>::sync();

        const i64* own = in.resources + static_cast<i64>(v) * N_ADDITIVE;
        const i64* held = in.loads + static_cast<i64>(a) * N_LOADS;
        const i64 here = gathered.get(slot_of(a));
        i64 relief = 0;
        if (!in.strict) {
            for (i32 r = 0; r < N_LOADS; ++r) {
                const i64 over = held[r] - in.limits[r];
                const i64 released = r < N_ADDITIVE ? own[r] : freed[r < N_ADDITIVE ? 0 : r - N_ADDITIVE];
                if (over > 0) relief += in.prices[r] * smaller(over, released);
            }
        }
        Best best = {-(1ll << 62), 0, -1, 0};
        for (u32 s = rank; s <= mask; s += size) {
            const i32 p = keys[s];
            const i64 found = gathered.get(s);
            if (p == EMPTY || p == a) continue;
            if (found == 0 && !(in.strict && p == in.haven)) continue;  // nothing of v is there
            i64 gain = found - here + relief;
            if (gain < best.value) continue;
            bool fits = true;
            for (i32 r = 0; r < N_LOADS; ++r) {
                const i32 c = r < N_ADDITIVE ? 0 : r - N_ADDITIVE;
                const i64 added = r < N_ADDITIVE ? own[r] : total[c] - shared.get(c * capacity + s);
                const i64 over = in.loads[static_cast<i64>(p) * N_LOADS + r] + added - in.limits[r];
                if (over <= 0) continue;
                fits = false;
                gain -= in.prices[r] * smaller(over, added);
            }
            if (in.strict && !fits) continue;
            const u64 tie = scramble(static_cast<u64>(static_cast<i64>(p) * 1000003 + v), static_cast<u64>(in.seed));
            const Best candidate = {gain, tie, p, s};
            if (best.below(candidate)) best = candidate;
        }
        best = best_of_group<BLOCK>(best);
        if (rank == 0 && best.id >= 0 && (in.strict || best.value * 64 >= -in.slack * here)) {
            const i64 plain = gathered.get(best.slot) - here;
            i64 gain = best.value;
            if (in.strict) {
                i64 units = 1;
                for (i32 r = 0; r < N_LOADS; ++r) {
                    const i64 amount = r < N_ADDITIVE ? own[r] : larger(partial[r < N_ADDITIVE ? 0 : r - N_ADDITIVE], 1);
                    if (held[r] > in.limits[r]) units += (amount << 16) / in.limits[r];
                }
                gain = floor_div(plain * 256, units);
            }
            in.targets[v] = best.id;
            in.gains[v] = gain;
            in.plain_gains[v] = plain;
            i64* incoming = in.incoming + static_cast<i64>(v) * N_LOADS;
            i64* outgoing = in.outgoing + static_cast<i64>(v) * N_LOADS;
            for (i32 r = 0; r < N_ADDITIVE; ++r) incoming[r] = outgoing[r] = own[r];
            for (i32 c = 0; c < N_DISTINCT; ++c) {
                incoming[N_ADDITIVE + c] = total[c] - shared.get(c * capacity + best.slot);
                outgoing[N_ADDITIVE + c] = in.strict ? larger(partial[c], 1) : freed[c];
            }
        }
        Group<BLOCK>::sync();
    }
}

const i64 PROPOSAL_BYTES = 12 + 8 * N_DISTINCT;  // of a slot

#define PROPOSAL_ARGUMENTS                                                                                       \
    const i64 *node_offsets, const i32 *node_nets, const i64 *out_offsets, const i32 *out_nets,                  \
        const i64 *out_weights, const i64 *net_weights, const i64 *counts, const i64 *resources,                 \
        const i32 *parts, const i64 *offsets, const i32 *table_parts, const i32 *table_pins,                     \
        const i64 *table_sources, const i64 *loads, const i64 *limits, const i64 *prices, i64 n_parts,           \
        i64 strict, i64 haven, i64 seed, i64 slack, const i64 *visits, i32 *targets, i64 *gains,                \
        i64 *plain_gains, i64 *incoming, i64 *outgoing,                                                          \
        const i32 *slots, const i32 *list, const u64 *length, i64 capacity
#define PROPOSALS                                                                                              \
    {node_offsets, node_nets, out_offsets, out_nets, out_weights, net_weights, counts, resources, parts,       \
     offsets, table_parts, table_pins, table_sources, loads, limits, prices, n_parts, strict, haven, seed,     \
     slack, visits, targets, gains, plain_gains, incoming, outgoing}

// One warp for each node of list 0.
extern "C" __global__ void propose_moves_warp(PROPOSAL_ARGUMENTS) {
    DYNAMIC_SHARED(memory);
    const Proposals in = PROPOSALS;
    propose_rows<false>(in, slots, list, *length, memory + (threadIdx.x >> 5) * capacity * PROPOSAL_BYTES, capacity);
}

// One block for each node of list 1 or 2 (scratch null) or 3.
extern "C" __global__ void propose_moves_block(PROPOSAL_ARGUMENTS, unsigned char* scratch) {
    DYNAMIC_SHARED(memory);
    const Proposals in = PROPOSALS;
    if (scratch == nullptr)
        propose_rows<true>(in, slots, list, *length, memory, capacity);
    else
        propose_rows<true>(in, slots, list, *length, scratch + blockIdx.x * capacity * PROPOSAL_BYTES, capacity);
}

// ------------------------------------------------------------------------------------ gains in sequence

const int EVENT_CHUNK = 16;  // consecutive items of a thread

// Events of each net: its moving pins (sources: moving sources), by key = rank << 32 | place, where
// sources have the places after the pins. cursors[g] = where net g's next event goes.
// Parallel over chunks of pins; reads pins once, gathers targets and ranks (cached), one atomic an
// event. The order of a net's events varies; their keys, which order them, do not.
extern "C" __global__ void list_events(const i64* offsets, i64 n_nets, const i32* items, i64 n_items,
                                       const i64* weights, const i64* net_offsets, const i32* parts,
                                       const i32* targets, const i32* ranks, u64* cursors, i64* event_keys,
                                       i32* event_nodes, i32* event_origins, i32* event_targets,
                                       i64* event_weights) {
    i64 j = (static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x) * EVENT_CHUNK;
    if (j >= n_items) return;
    const i64 stop = smaller(j + EVENT_CHUNK, n_items);
    i64 g = row_of(offsets, n_nets, j);
    for (; j < stop; ++j) {
        const i32 v = items[j];
        const i32 b = targets[v];
        if (b < 0) continue;
        while (j >= offsets[g + 1]) ++g;
        const i64 place = j - offsets[g] + (weights ? net_offsets[g + 1] - net_offsets[g] : 0);
        const u64 e = atomicAdd(cursors + g, 1ull);
        event_keys[e] = static_cast<i64>(ranks[v]) << 32 | place;
        event_nodes[e] = v;
        event_origins[e] = parts[v];
        event_targets[e] = b;
        event_weights[e] = weights ? weights[j] : 0;
    }
}

// gains[v] += what v's move saves in the event's net after all the net's events of smaller key.
// The state before an event is the table's entry plus the earlier arrivals minus the earlier
// departures: pins in the parts a (origin) and b (target), and weight of sources there.
// Parallel over events; a thread reads its net's row and its net's other events, the same addresses
// as its neighbours (broadcast from cache), unless the counts are so large that no order matters.
// Deterministic: counts of a set, wrapping integer sums.
extern "C" __global__ void gain_of_events(const i64* event_offsets, i64 n_nets, i64 n_events,
                                          const i64* event_keys, const i32* event_nodes,
                                          const i32* event_origins, const i32* event_targets,
                                          const i64* event_weights, const i64* net_offsets,
                                          const i64* net_weights, const i64* offsets, const i32* table_parts,
                                          const i32* table_pins, const i64* table_sources, i64* gains) {
    const i64 e = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (e >= n_events) return;
    const i64 g = row_of(event_offsets, n_nets, e);
    const i64 begin = event_offsets[g], end = event_offsets[g + 1], n = end - begin;
    const i64 n_pins = net_offsets[g + 1] - net_offsets[g];
    const i64 key = event_keys[e];
    const bool pin = (key & 0xFFFFFFFFll) < n_pins;
    const i32 a = event_origins[e], b = event_targets[e];
    i64 pins_a = 0, pins_b = 0, sources_a = 0, sources_b = 0;
    for (i64 s = offsets[g]; s < offsets[g + 1]; ++s) {
        const i32 p = table_parts[s];
        if (p == a) {
            pins_a = table_pins[s];
            sources_a = table_sources[s];
        }
        if (p == b) {
            pins_b = table_pins[s];
            sources_b = table_sources[s];
        }
    }
    if (pins_a > n && pins_b > n) return;  // all others may have left: still nothing to gain or lose
    for (i64 j = begin; j < end; ++j) {
        const i64 other = event_keys[j];
        if (other >= key) continue;
        const i32 from = event_origins[j], to = event_targets[j];
        const i64 into_a = (to == a) - (from == a), into_b = (to == b) - (from == b);
        if ((other & 0xFFFFFFFFll) < n_pins) {
            pins_a += into_a;
            pins_b += into_b;
        } else {
            sources_a += into_a * event_weights[j];
            sources_b += into_b * event_weights[j];
        }
    }
    i64 gain = 0;
    if (pin) {
        if (pins_a == 1) gain += net_weights[g] - sources_a;
        if (pins_b == 0) gain -= net_weights[g] - sources_b;
    } else {
        if (pins_b > 0) gain += event_weights[e];
        if (pins_a > 0) gain -= event_weights[e];
    }
    if (gain != 0) add64(gains + event_nodes[e], gain);
}
