// Moves in sequence: what each saves after all those of better rank. The twin is
// snnmap/partitioning/multilevel/_kernels_sequence.py; both give the same integers.
#include "common.cuh"

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
