// Moves in sequence: what each does after all those of better rank. The twin is
// snnmap/partitioning/multilevel/_kernels_sequence.py; both give the same integers.
#include "common.cuh"

// counts[g] += items of row g that move (targets[item] >= 0).
// Parallel over chunks of items (see add_rows); gathers targets (cached).
extern "C" __global__ void count_events(const i64* offsets, i64 n_nets, const i32* items, i64 n_items,
                                        const i32* targets, i64* counts) {
    add_rows(offsets, n_nets, items, n_items, counts, 1,
             [&](i32 item) { return static_cast<u64>(targets[item] >= 0); });
}

// summary[0] = events in all, summary[1] += nets with more than `few`.
// Parallel over nets; an atomic a warp. Deterministic: a count.
extern "C" __global__ void sum_up_events(const i64* event_offsets, i64 n_nets, i64 few, u64* summary) {
    const i64 g = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    const bool many = g < n_nets && event_offsets[g + 1] - event_offsets[g] > few;
    const u32 votes = __ballot_sync(ALL_LANES, many);
    if ((threadIdx.x & 31) == 0 && votes != 0) atomicAdd(summary + 1, static_cast<u64>(__popc(votes)));
    if (g == 0) summary[0] = event_offsets[n_nets];
}

// Events of each net: its moving pins (sources: moving sources), by key = rank << 32 | place, where
// sources have the places after the pins. cursors[g] = where net g's next event goes.
// Parallel over chunks of pins; reads pins once, gathers targets and ranks (cached), one atomic an
// event. The order of a net's events varies; their keys, which order them, do not.
extern "C" __global__ void list_events(const i64* offsets, i64 n_nets, const i32* items, i64 n_items,
                                       const i64* weights, const i64* net_offsets, const i32* parts,
                                       const i32* targets, const i32* ranks, u64* cursors, i64* event_keys,
                                       i32* event_nodes, i32* event_origins, i32* event_targets,
                                       i64* event_weights) {
    i64 j = (static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x) * CHUNK;
    if (j >= n_items) return;
    const i64 stop = smaller(j + CHUNK, n_items);
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

// What an event does in part `part` of net g, of which `pins` pins and `sources` weight are there
// before it: adds to gains, and (unless null) to the distinct loads that the move brings or takes.
struct Effects {
    const i64 *net_weights, *counts;
    i64 n_distinct;
    i64 *gains, *incoming, *outgoing;

    __device__ __forceinline__ void add(i64 g, i32 v, bool pin, bool arrives, i64 pins, i64 sources,
                                        i64 weight) const {
        i64 gain = 0;
        if (!pin) {
            if (pins > 0) gain = arrives ? weight : -weight;
        } else if (pins == (arrives ? 0 : 1)) {
            gain = net_weights[g] - sources;
            if (arrives) gain = -gain;
            i64* changed = arrives ? incoming : outgoing;
            for (i64 c = 0; changed != nullptr && c < n_distinct; ++c) {
                const i64 count = counts[g * n_distinct + c];
                if (count != 0) add64(changed + static_cast<i64>(v) * n_distinct + c, count);
            }
        }
        if (gain != 0) add64(gains + v, gain);
    }
};

// What each event of a net with at most `few` events does after all the net's events of smaller key.
// The state before an event is the table's entry plus the earlier arrivals minus the earlier
// departures: pins in the parts a (origin) and b (target), and weight of sources there.
// Parallel over events; a thread reads its net's row and its net's other events, the same addresses
// as its neighbours (broadcast from cache), unless the counts are so large that no order matters.
// Deterministic: counts of a set, wrapping integer sums.
extern "C" __global__ void effects_among_few(const i64* event_offsets, i64 n_nets, i64 n_events,
                                             const i64* event_keys, const i32* event_nodes,
                                             const i32* event_origins, const i32* event_targets,
                                             const i64* event_weights, const i64* net_offsets,
                                             const i64* offsets, const i32* table_parts,
                                             const i32* table_pins, const i64* table_sources,
                                             const i64* net_weights, const i64* counts, i64 n_distinct,
                                             i64* gains, i64* incoming, i64* outgoing, i64 few) {
    const i64 e = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (e >= n_events) return;
    const Effects effects = {net_weights, counts, n_distinct, gains, incoming, outgoing};
    const i64 g = row_of(event_offsets, n_nets, e);
    const i64 begin = event_offsets[g], end = event_offsets[g + 1], n = end - begin;
    if (n > few) return;
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
    effects.add(g, event_nodes[e], pin, false, pins_a, sources_a, event_weights[e]);
    effects.add(g, event_nodes[e], pin, true, pins_b, sources_b, event_weights[e]);
}

// ------------------------------------------------------------------------------------ many events
//
// Nets with more events are sorted instead: by key, then (stable) by net and part, each event once
// as a departure from its origin and once as an arrival at its target. Prefix sums over the halves of
// one net and part give the state before each.

// places[i] = the i-th event of the nets of a list, keys[i] = its key.
// Parallel over chunks of events; reads and writes each once. Pure map.
extern "C" __global__ void take_events(const i64* event_offsets, const i64* nets, const i64* out_offsets,
                                       i64 n_nets, i64 n_out, const i64* event_keys, i64* places, i64* keys) {
    i64 j = (static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x) * CHUNK;
    if (j >= n_out) return;
    const i64 stop = smaller(j + CHUNK, n_out);
    i64 i = row_of(out_offsets, n_nets, j);
    for (; j < stop; ++j) {
        while (j >= out_offsets[i + 1]) ++i;
        places[j] = event_offsets[nets[i]] + (j - out_offsets[i]);
        keys[j] = event_keys[places[j]];
    }
}

// keys[2 i], keys[2 i + 1] = net << 32 | origin, net << 32 | target of the event at places[i].
// Parallel over events; a search for the net. Pure map.
extern "C" __global__ void split_events(const i64* event_offsets, i64 n_nets, const i64* places, i64 n,
                                        const i32* event_origins, const i32* event_targets, i64* keys) {
    const i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const i64 e = places[i], g = row_of(event_offsets, n_nets, e);
    keys[2 * i] = g << 32 | event_origins[e];
    keys[2 * i + 1] = g << 32 | event_targets[e];
}

// By how much the s-th half in sorted order changes the pins and the weight of sources of its part.
// Parallel over halves; gathers their events. Pure map.
extern "C" __global__ void changes_of_halves(const i64* keys, const i64* order, i64 n, const i64* places,
                                             const i64* net_offsets, const i64* event_keys,
                                             const i64* event_weights, i64* pins, i64* sources) {
    const i64 s = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (s >= n) return;
    const i64 g = keys[s] >> 32, e = places[order[s] >> 1];
    const bool pin = (event_keys[e] & 0xFFFFFFFFll) < net_offsets[g + 1] - net_offsets[g];
    const i64 sign = (order[s] & 1) ? 1 : -1;
    pins[s] = pin ? sign : 0;
    sources[s] = pin ? 0 : sign * event_weights[e];
}

// What each half does, from the prefix sums (inclusive) of the changes; heads = where each net and
// part begins.
// Parallel over halves; a search for the head, reads the net's row of the table. Deterministic:
// wrapping integer sums.
extern "C" __global__ void effects_of_halves(const i64* keys, const i64* order, i64 n, const i64* heads,
                                             i64 n_heads, const i64* pins, const i64* sources,
                                             const i64* places, const i64* net_offsets, const i64* event_keys,
                                             const i32* event_nodes, const i64* event_weights,
                                             const i64* offsets, const i32* table_parts,
                                             const i32* table_pins, const i64* table_sources,
                                             const i64* net_weights, const i64* counts, i64 n_distinct,
                                             i64* gains, i64* incoming, i64* outgoing) {
    const i64 s = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (s >= n) return;
    const Effects effects = {net_weights, counts, n_distinct, gains, incoming, outgoing};
    const i64 g = keys[s] >> 32, e = places[order[s] >> 1];
    const i32 part = static_cast<i32>(keys[s] & 0xFFFFFFFFll);
    const bool pin = (event_keys[e] & 0xFFFFFFFFll) < net_offsets[g + 1] - net_offsets[g];
    const i64 head = heads[row_of(heads, n_heads, s)];
    i64 pins_here = 0, sources_here = 0;
    if (s > head) {
        pins_here = pins[s - 1] - (head > 0 ? pins[head - 1] : 0);
        sources_here = sources[s - 1] - (head > 0 ? sources[head - 1] : 0);
    }
    for (i64 t = offsets[g]; t < offsets[g + 1]; ++t) {
        if (table_parts[t] != part) continue;
        pins_here += table_pins[t];
        sources_here += table_sources[t];
        break;
    }
    effects.add(g, event_nodes[e], pin, (order[s] & 1) != 0, pins_here, sources_here, event_weights[e]);
}
