// Rounds in one launch: what every node finds in every part, at first.
//
// The nets of each part are listed. Then a column is written in tiles: a block sums up, in its shared memory, what the part's
// nets tell those of their pins that are in the tile. (By additions to memory, 670 million of them on the finest
// level of 256k-rand, it was 17 ms.) Of the counts of all nets of a node several blocks sum up some, and add them. So is what
// sources find that are no pins of their net.
#ifndef SNNMAP_ROUND_TELL_CUH
#define SNNMAP_ROUND_TELL_CUH

const i32 NO_PINS = 1 << 31;  // with a listed net: only sources wait in the part
const i32 NETS_AT_ONCE = 8;   // whose pins a warp reads together

// For each part, how many nets are listed, and how many places are taken; in the counters of the next round, which are zeroed
// before that.
__device__ __forceinline__ i64* n_nets_of_parts(const Work& work) { return work.set_of(work.turn + 1) + sizeof(Counters) / 8; }

// visit(part, net, with NO_PINS if it has none there) for all entries, by a thread each net.
template <class Visit>
__device__ __forceinline__ void for_entries(const Work& work, Visit visit) {
    const Rounds& in = work.in;
#pragma unroll 1
    for (i64 g = work.thread(); g < in.n_nets; g += work.n_threads()) {
        const i32 first = in.rows[g].first, size = in.rows[g].size;
#pragma unroll 4
        for (i32 s = 0; s < size; ++s) {
            const Entry entry = in.entries[first + s];
            visit(entry.part, static_cast<i32>(g) | (entry.pins != 0 ? 0 : NO_PINS));
        }
    }
}

// Where the pins of each tile begin.
__device__ __noinline__ void find_tiles(const Work& work) {
    const Rounds& in = work.in;
    const i64 n_ends = (in.n_nodes + in.tile - 1) / in.tile + 1;
#pragma unroll 1
    for (i64 i = work.thread(); i < in.n_nets * n_ends; i += work.n_threads()) {
        const i64 g = i / n_ends, first = in.net_offsets[g];
        const i32 node = static_cast<i32>(smaller(i % n_ends * in.tile, in.n_nodes));
        in.told[i] = static_cast<i32>(lower_bound<i32>(in.net_pins, first, in.net_offsets[g + 1], node) - first);
    }
}

// Counts the nets of each part.
__device__ __noinline__ void count_nets(const Work& work) {
    const Desk& desk = work.desk;
    for_entries(work, [&](i32 p, i32) { atomicAdd(desk.ins + p, 1u); });
    __syncthreads();
#pragma unroll 1
    for (i32 p = threadIdx.x; p < desk.n_parts; p += blockDim.x) {
        if (desk.ins[p] != 0) add_to(n_nets_of_parts(work) + p, desk.ins[p]);
        desk.ins[p] = 0;
    }
}

// Lists them.
__device__ __noinline__ void list_nets_of_parts(const Work& work) {
    const Rounds& in = work.in;
    const Desk& desk = work.desk;
    i64 *counts = n_nets_of_parts(work), *taken = counts + in.n_parts;
    place_lists(in.n_parts, desk.first_ins, desk.scratch, [&](i64 p) { return counts[p]; });
    for_entries(work, [&](i32 p, i32) { atomicAdd(desk.ins + p, 1u); });
    __syncthreads();
#pragma unroll 1
    for (i32 p = threadIdx.x; p < desk.n_parts; p += blockDim.x) {
        const u64 own = desk.ins[p];
        if (own != 0) desk.outs[p] = desk.first_ins[p] + static_cast<u32>(atomicAdd(reinterpret_cast<u64*>(taken + p), own));
        desk.ins[p] = 0;
    }
    __syncthreads();
    for_entries(work, [&](i32 p, i32 net) { in.nets_of_parts[atomicAdd(desk.outs + p, 1u)] = net; });
    __syncthreads();
#pragma unroll 1
    for (i32 p = threadIdx.x; p < desk.n_parts; p += blockDim.x) desk.outs[p] = 0;
    __syncthreads();
}

// Tells the sources of nets that are no pins of theirs, in the columns of all parts.
__device__ __forceinline__ void tell_sources(const Rounds& in) {
#pragma unroll 1
    for (i64 g = Warp().index(); g < in.n_nets; g += Warp().number()) {
        const Row row = in.rows[g];
#pragma unroll 1
        for (i64 j = in.source_offsets[g]; j < in.source_offsets[g + 1]; ++j) {
            if (in.pinned[j]) continue;
#pragma unroll 1
            for (i32 s = Warp().rank(); s < row.size; s += 32) {
                const Entry entry = in.entries[row.first + s];
                if (entry.pins != 0) add_found(in, in.source_nodes[j], entry.part, 0, in.source_weights[j]);
            }
        }
    }
}

// Counts what such sources send among what they find at most.
__device__ __forceinline__ void find_sent(const Work& work) {
    const Rounds& in = work.in;
#pragma unroll 1
    for (i64 j = work.thread(); j < in.source_offsets[in.n_nets]; j += work.n_threads())
        if (!in.pinned[j]) add_found(in, in.source_nodes[j], ALL_NETS, 0, in.source_weights[j]);
}

// The most that any node finds.
__device__ __forceinline__ void find_most(const Work& work) {
    const Rounds& in = work.in;
    i64 most = 0;
#pragma unroll 1
    for (i64 v = work.thread(); v < in.n_nodes; v += work.n_threads()) most = larger(most, Place::value_of(*found_by(in, v, ALL_NETS)));
    const Best best = best_of(Team::of_block(), {most, 0, 0, 0}, work.desk.scratch);
    if (threadIdx.x == 0) atomicMax(&in.progress->most_found, best.value);
}

// Whether low words of sums in parts are sums of low words.
__device__ __forceinline__ bool apart(const Rounds& in) { return in.progress->most_found < 1ll << 32; }

// What a listed net tells its pins in a tile of part p's column, or of p = ALL_NETS.
struct Telltale {
    i64 first, word;  // of the pins
    i32 n;

    __device__ __forceinline__ Telltale(const Rounds& in, i32 listed, i32 p, i32 w, i64 tile, i64 n_ends) {
        const i64 g = listed & ~NO_PINS;
        const Row row = in.rows[g];
        i64 value = row.weight;  // at least what its sources weigh together
        if ((listed & NO_PINS) != 0) {
            value = 0;
            for (i32 s = 0; s < row.size; ++s)
                if (in.entries[row.first + s].part == p) value = in.waiting[row.first + s];
        }
        word = place_word(row, w, value, (listed & NO_PINS) == 0);
        const i32 *ends = in.told + g * n_ends + tile, from = ends[0];
        first = in.net_offsets[g] + from;
        n = word != 0 ? ends[1] - from : 0;
    }
};

// Sums up one word of a tile of part p's column, or of what nets [from, to) make of that of p = ALL_NETS; by a block, whose sums
// are zero before.
__device__ __forceinline__ void sum_tile(const Work& work, const Sums& sums, i32 p, i32 w, i64 tile, i64 n_ends, i64 from, i64 to) {
    const Rounds& in = work.in;
    const bool counts = p == ALL_NETS, parted = !counts && apart(in);
    const auto add = [&](i64 node, i64 value) {
        const u32 slot = static_cast<u32>(node - tile * in.tile);
        if (parted)
            sums.add_apart(slot, value);
        else
            sums.add(slot, value);
    };
    const i64 n_listed = counts ? to : n_nets_of_parts(work)[p];
    const i32 *listed = in.nets_of_parts + (counts ? 0 : work.desk.first_ins[p]), lane = Warp().rank();
#pragma unroll 1
    for (i64 base = from + 32 * Warp().place(); base < n_listed; base += blockDim.x) {
        i64 first = 0, word = 0;
        i32 n = 0;
        if (base + lane < n_listed) {
            const i32 net = counts ? static_cast<i32>(base + lane) : listed[base + lane];
            const Telltale told(in, net, p, w, tile, n_ends);
            first = told.first;
            word = told.word;
            n = told.n;
        }
#pragma unroll 1
        for (i32 some = 0; some < 32; some += NETS_AT_ONCE) {
            i32 pins[NETS_AT_ONCE];
#pragma unroll
            for (i32 k = 0; k < NETS_AT_ONCE; ++k) {
                const i64 at = __shfl_sync(ALL_LANES, first, some + k);
                pins[k] = lane < __shfl_sync(ALL_LANES, n, some + k) ? in.net_pins[at + lane] : -1;
            }
#pragma unroll
            for (i32 k = 0; k < NETS_AT_ONCE; ++k) {
                const i64 value = __shfl_sync(ALL_LANES, word, some + k);
                if (pins[k] >= 0) add(pins[k], value);
            }
        }
        for (u32 left = __ballot_sync(ALL_LANES, n > 32); left != 0; left &= left - 1) {
            const i32 k = __ffs(static_cast<i32>(left)) - 1, n_pins = __shfl_sync(ALL_LANES, n, k);
            const i64 at = __shfl_sync(ALL_LANES, first, k), value = __shfl_sync(ALL_LANES, word, k);
#pragma unroll 1
            for (i32 j = 32 + lane; j < n_pins; j += 32) add(in.net_pins[at + j], value);
        }
    }
    __syncthreads();
}

// Writes one word of a tile of part p's column; or adds what nets [from, to) make of that of p = ALL_NETS. By a block, whose sums are
// zero before and afterwards.
__device__ __forceinline__ void write_tile(const Work& work, const Sums& sums, i32 p, i32 w, i64 tile, i64 n_ends, i64 from, i64 to) {
    const Rounds& in = work.in;
    sum_tile(work, sums, p, w, tile, n_ends, from, to);
    const i64 start = tile * in.tile, n = smaller(in.tile, in.n_nodes - start);
    i64* into = found_by(in, start, p) + w * in.n_nodes;
#pragma unroll 1
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
        const i64 sum = sums.get(static_cast<u32>(i));
        if (p != ALL_NETS)
            into[i] = sum;
        else if (sum != 0)
            add_to(into + i, sum);
        sums.clear(static_cast<u32>(i));
    }
    __syncthreads();
}

// Writes tiles of the columns of all parts, or of the nets of each node, for which blocks share out the nets.
__device__ __noinline__ void write_columns(const Work& work, bool of_all) {
    const Rounds& in = work.in;
    const i64 n_tiles = (in.n_nodes + in.tile - 1) / in.tile, n_words = PLACE_WORDS * n_tiles;
    const i64 n_shares = of_all ? larger(gridDim.x / n_tiles, 1) : in.n_parts, n_each = (in.n_nets + n_shares - 1) / n_shares;
    const Sums sums(work.desk.lists, in.tile);
#pragma unroll 1
    for (i64 i = threadIdx.x; i < in.tile; i += blockDim.x) sums.clear(static_cast<u32>(i));
    __syncthreads();
#pragma unroll 1
    for (i64 item = blockIdx.x; item < n_words * n_shares; item += gridDim.x) {
        const i64 share = item / n_words, rest = item % n_words, from = of_all ? share * n_each : 0;
        const i32 p = of_all ? ALL_NETS : static_cast<i32>(share);
        write_tile(work, sums, p, static_cast<i32>(rest / n_tiles), rest % n_tiles, n_tiles + 1, from, smaller(from + n_each, in.n_nets));
    }
}

// Tells all nodes what they find at first: in all columns, or only in those that are kept.
__device__ __noinline__ void tell_first(Work& work) {
    find_tiles(work);
    if (work.tells) count_nets(work);
    work.grid.meet();
    write_columns(work, true);
    find_sent(work);
    if (work.tells) list_nets_of_parts(work);
    work.grid.meet();
    find_most(work);
    if (!work.tells) return;
    work.grid.meet();
    write_columns(work, false);
    work.grid.meet();
    tell_sources(work.in);
}

#endif
