// Rounds in one launch: what a group of threads keeps of the net that it works on.
#ifndef SNNMAP_ROUND_NETS_CUH
#define SNNMAP_ROUND_NETS_CUH

// A table of four words for each part, or (HASHED) for those that a net touches: where parts are so many that not every
// warp has room for the former, it has for the latter. Where that is full the launch gives up.
template <bool HASHED>
struct Table {
    u32* words;  // of slot s: words[s], words[n + s], ..
    i32 n;
    i32* keys;  // 1 + the part of each slot, 0: free
    u64* gave_up;

    template <class G>
    __device__ __forceinline__ Table(const Work& work, G group)
        : words(HASHED ? work.desk.tables + group.place() * 5 * work.in.slots : work.desk.table(group)),
          n(HASHED ? static_cast<i32>(work.in.slots) : work.desk.n_parts),
          keys(reinterpret_cast<i32*>(words + 4 * n)),
          gave_up(&work.in.progress->gave_up) {}
    __device__ __forceinline__ i32 slot(i32 p) const {
        if (!HASHED) return p;
        i32 at = static_cast<i32>(hash_of(p)) & (n - 1);
#pragma unroll 1
        for (i32 tries = 0; tries < n; ++tries, at = (at + 1) & (n - 1)) {
            i32 found = *const_cast<volatile i32*>(keys + at);
            if (found == 0) found = atomicCAS(keys + at, 0, p + 1);
            if (found == 0 || found == p + 1) return at;
        }
        *gave_up = 1;
        return 0;
    }
    // The same of a part that has one; -1: it has none.
    __device__ __forceinline__ i32 find(i32 p) const {
        if (!HASHED) return p;
        i32 at = static_cast<i32>(hash_of(p)) & (n - 1);
#pragma unroll 1
        for (i32 tries = 0; tries < n && keys[at] != 0; ++tries, at = (at + 1) & (n - 1))
            if (keys[at] == p + 1) return at;
        return -1;
    }
    __device__ __forceinline__ i32 part(i32 slot) const { return HASHED ? keys[slot] - 1 : slot; }
    // Zeroes it, if it is hashed; otherwise those do who used a slot.
    template <class G>
    __device__ __forceinline__ void clear(G group) const {
#pragma unroll 1
        for (i32 i = group.rank(); HASHED && i < 5 * n; i += group.size()) words[i] = 0;
        if (HASHED) group.sync();
    }
};

const i32 AT_ONCE = 10;  // pins that a thread reads at once
const i32 QUEUE_BYTES = 2 * 32 * AT_ONCE;  // of a warp's list, at its end: those of them that are visited, as 32 k + lane

// A net's pins, then its sources.
struct Items {
    const i32 *pins, *sources;
    i32 n_pins, n;

    __device__ __forceinline__ Items(const Rounds& in, i64 g)
        : pins(in.net_pins + in.net_offsets[g]),
          sources(in.source_nodes + in.source_offsets[g]),
          n_pins(static_cast<i32>(in.net_offsets[g + 1] - in.net_offsets[g])),
          n(n_pins + static_cast<i32>(in.source_offsets[g + 1] - in.source_offsets[g])) {}

    // values[pin] of some pins, from `start` on, of which each thread of a group reads some; beyond the end 0. Of the first ones
    // with values[source] of one source, so that their loads overlap.
    template <class G>
    __device__ __forceinline__ void read(G group, const i32* values, i32 start, i32* read, i32* of_source = nullptr) const {
        i32 node[AT_ONCE];
        const i32 source = of_source != nullptr && group.rank() < n - n_pins ? sources[group.rank()] : -1;
#pragma unroll
        for (i32 k = 0; k < AT_ONCE; ++k) {
            const i32 i = start + k * group.size() + group.rank();
            node[k] = i < n_pins ? pins[i] : -1;
        }
#pragma unroll
        for (i32 k = 0; k < AT_ONCE; ++k) read[k] = node[k] >= 0 ? values[node[k]] : 0;
        if (of_source != nullptr) *of_source = source >= 0 ? values[source] : 0;
    }
    // visit(pin) for those of these pins, already read, whose value is one of `which`: queued first, so that all lanes of a warp
    // have some. `queue`: of this warp.
    template <class G, class Which, class Visit>
    __device__ __forceinline__ void visit_those(G group, const i32* values, i32 start, unsigned short* queue, Which which, Visit visit) const {
        const i32 rank = group.rank(), size = group.size(), lane = rank & 31;
        i32 n_queued = 0;
#pragma unroll
        for (i32 k = 0; k < AT_ONCE; ++k) {
            if (start + k * size >= n_pins) break;
            const bool matters = which(values[k]);
            const u32 all = __ballot_sync(ALL_LANES, matters);
            if (matters) queue[n_queued + __popc(all & ((1u << lane) - 1))] = static_cast<unsigned short>(32 * k + lane);
            n_queued += __popc(all);
        }
        __syncwarp();
#pragma unroll 1
        for (i32 q = lane; q < n_queued; q += 32) {
            const i32 place = queue[q];
            visit(pins[start + (place >> 5) * size + rank / 32 * 32 + (place & 31)]);
        }
        __syncwarp();
    }
    // visit(i, node, values[node]) for all of them, by a group, some at a time, so that their loads overlap.
    template <class G, class Visit>
    __device__ __forceinline__ void visit(G group, const i32* values, Visit visit) const {
        const i32 SOME = 5, size = group.size();
#pragma unroll 1
        for (i32 base = group.rank(); base < n; base += SOME * size) {
            i32 node[SOME];
            i32 value[SOME];
#pragma unroll
            for (i32 k = 0; k < SOME; ++k) {
                const i32 i = base + k * size;
                node[k] = i < n ? i < n_pins ? pins[i] : sources[i - n_pins] : -1;
            }
#pragma unroll
            for (i32 k = 0; k < SOME; ++k) value[k] = node[k] >= 0 ? values[node[k]] : 0;
#pragma unroll
            for (i32 k = 0; k < SOME; ++k)
                if (node[k] >= 0) visit(base + k * size, node[k], value[k]);
        }
    }
};

// Where a warp of a group queues pins.
template <class G>
__device__ __forceinline__ unsigned short* queue_of(const Work& work, G group) {
    const i32 n_after = (group.size() - group.rank() + 31) >> 5;  // warps, itself included
    return reinterpret_cast<unsigned short*>(work.desk.list(group) + work.desk.n_bytes(group) - QUEUE_BYTES * n_after);
}

#endif
