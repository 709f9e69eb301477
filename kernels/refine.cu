// Parallel refinement: every node's best move, from the table of `table.cu`. The twin is
// `propose_moves` in snnmap/partitioning/multilevel/_kernels_refine.py; both give the same integers.
#include "common.cuh"

// visits[v] = most insertions of v's proposal: entries of its nets, its part, the haven; -1 where v may
// not move (locked, or strict and its part within the limits). targets[v] = -1.
// Parallel over nodes, a warp each; reads the nets of those that may move once, gathers the lengths of
// their rows. Deterministic: integer sums.
extern "C" __global__ void prepare_proposals(const i64* node_offsets, const i32* node_nets,
                                             const i64* out_offsets, const i32* out_nets, const i64* offsets,
                                             const bool* locked, const i32* parts, const i64* loads,
                                             const i64* limits, i64 strict, i64 n, i64* visits, i32* targets) {
    const i32 lane = Group<false>::rank();
    for (i64 v = Group<false>::index(); v < n; v += Group<false>::number()) {
        bool moves = !locked[v];
        if (moves && strict) {
            moves = false;
            for (i32 r = 0; r < N_LOADS; ++r)
                moves |= loads[static_cast<i64>(parts[v]) * N_LOADS + r] > limits[r];
        }
        i64 entries = 0;
        for (i64 j = node_offsets[v] + lane; moves && j < node_offsets[v + 1]; j += 32)
            entries += offsets[node_nets[j] + 1] - offsets[node_nets[j]];
        for (i64 j = out_offsets[v] + lane; moves && j < out_offsets[v + 1]; j += 32)
            entries += offsets[out_nets[j] + 1] - offsets[out_nets[j]];
        entries = sum_warp(entries);
        if (lane == 0) {
            targets[v] = -1;
            visits[v] = moves ? entries + 2 : -1;
        }
    }
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
