// Passes over rows of ids in CSR form, and lists of rows by the size of the table they need.
#include "common.cuh"

// out[i] = mix64(values[i]).
// Parallel over values; one read and one write each. Pure map.
extern "C" __global__ void mix_values(const u64* values, u64* out, i64 n) {
    const i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) out[i] = mix64(values[i]);
}

// target[index[i], :] += values[i, :].
// Parallel over the n x width values; reads index and values once, adds into target by atomics.
// Deterministic: wrapping integer sums.
extern "C" __global__ void scatter_add(i64* target, const i64* index, const i64* values, i64 n, i64 width) {
    const i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n * width) return;
    const i64 row = i / width;
    add64(target + index[row] * width + (i - row * width), values[i]);
}

// The same with 32-bit indices.
extern "C" __global__ void scatter_add32(i64* target, const i32* index, const i64* values, i64 n, i64 width) {
    const i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n * width) return;
    const i64 row = i / width;
    add64(target + index[row] * width + (i - row * width), values[i]);
}

// sums[row * sum_stride] += sum over the row's items of values[item * value_stride].
// Parallel over chunks of items (see add_rows); gathers values.
extern "C" __global__ void sum_rows(const i64* offsets, i64 n_rows, const i32* items, i64 n_items,
                                    const i64* values, i64 value_stride, i64* sums, i64 sum_stride) {
    add_rows(offsets, n_rows, items, n_items, sums, sum_stride,
             [&](i32 item) { return static_cast<u64>(values[item * value_stride]); });
}

// keys[j] = major << 32 | minor: the row of item j and the item; `majors` renames rows, `map` items
// (null: as they are).
// Parallel over chunks of items; reads items, gathers map, writes 8 bytes an item. Pure map.
extern "C" __global__ void pack_keys(const i64* offsets, i64 n_rows, const i32* items, i64 n_items,
                                     const i32* map, const i32* majors, i64* keys) {
    i64 j = (static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x) * CHUNK;
    if (j >= n_items) return;
    const i64 stop = smaller(j + CHUNK, n_items);
    i64 row = row_of(offsets, n_rows, j);
    for (; j < stop; ++j) {
        while (j >= offsets[row + 1]) ++row;
        const i64 major = majors ? majors[row] : row;
        const i64 minor = map ? map[items[j]] : items[j];
        keys[j] = major << 32 | minor;
    }
}

// new_[i] = whether key i differs from the one before it.
// Parallel over keys. Pure map.
extern "C" __global__ void mark_changes(const i64* keys, i64 n, bool* new_) {
    const i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) new_[i] = i == 0 || keys[i] != keys[i - 1];
}

// From ascending keys (major << 32 | minor): offsets[m] = where major m begins, minors[i] = the minor.
// Parallel over keys and majors; a search for each major. Pure map.
extern "C" __global__ void unpack_keys(const i64* keys, i64 n, i64 n_majors, i64* offsets, i32* minors) {
    const i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) minors[i] = static_cast<i32>(keys[i] & 0xFFFFFFFFll);
    if (i > n_majors) return;
    offsets[i] = lower_bound(keys, 0, n, i << 32);
}

// swapped[i] = key i with its major and its minor exchanged.
// Parallel over keys. Pure map.
extern "C" __global__ void swap_keys(const i64* keys, i64 n, i64* swapped) {
    const i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) swapped[i] = (keys[i] & 0xFFFFFFFFll) << 32 | keys[i] >> 32;
}

// hashes[row] += sum of the hashes of the row's items.
// Parallel over chunks of items (see add_rows).
extern "C" __global__ void hash_rows(const i64* offsets, i64 n_rows, const i32* items, i64 n_items, i64* hashes) {
    add_rows(offsets, n_rows, items, n_items, hashes, 1,
             [](i32 item) { return mix64(static_cast<u64>(item) * 0x9E3779B97F4A7C15ull + 1); });
}

// representatives[row] = the first row in `order` with the same hash, firsts[row] = whether that is itself.
// Parallel over runs of equal hashes, a warp each (found by the warp that owns their first place).
// Pure map.
extern "C" __global__ void represent_rows(const i64* order, const i64* hashes, i64 n, i64* representatives,
                                          i64* firsts) {
    const i32 lane = threadIdx.x & 31;
    for (i64 base = Group<false>::index() * 32; base < n; base += Group<false>::number() * 32) {
        const i64 place = base + lane;
        const bool begins = place < n && (place == 0 || hashes[order[place]] != hashes[order[place - 1]]);
        u32 starts = __ballot_sync(ALL_LANES, begins);
        while (starts != 0) {
            const i64 start = base + __ffs(starts) - 1;
            starts &= starts - 1;
            const i64 first = order[start], hash = hashes[first];
            u32 inside = ALL_LANES;
            for (i64 i = start + lane; inside == ALL_LANES; i += 32) {
                const bool same = i < n && hashes[order[i]] == hash;
                if (same) {
                    representatives[order[i]] = first;
                    firsts[order[i]] = i == start;
                }
                inside = __ballot_sync(ALL_LANES, same);
            }
        }
    }
}

// groups[row] = number of the row's group, first_rows[group] = its first row, summary[1] = how many;
// numbers = inclusive prefix sums of the `firsts` of represent_rows.
// Parallel over rows. Pure map.
extern "C" __global__ void number_groups(const i64* representatives, const i64* numbers, i64 n, i32* groups,
                                         i64* first_rows, u64* summary) {
    const i64 row = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (row >= n) return;
    const i64 first = representatives[row], group = numbers[first] - 1;
    groups[row] = static_cast<i32>(group);
    if (first == row) first_rows[group] = row;
    if (row == n - 1) summary[1] = numbers[row];
}

// differing += rows that are not the same, item by item, as the row that represents them.
// Parallel over rows, one warp each; reads both rows (that of the representative from cache).
// Deterministic: a count.
extern "C" __global__ void count_different(const i64* offsets, const i32* items, i64 n_rows,
                                           const i64* representatives, u64* differing) {
    const i32 lane = Group<false>::rank();
    for (i64 row = Group<false>::index(); row < n_rows; row += Group<false>::number()) {
        const i64 other = representatives[row];
        if (other == row) continue;
        const i64 first = offsets[row], other_first = offsets[other];
        const i64 size = offsets[row + 1] - first;
        bool same = size == offsets[other + 1] - other_first;
        if (same)
            for (i64 i = lane; i < size; i += 32) same &= items[first + i] == items[other_first + i];
        if (sum_warp(same ? 0 : 1) > 0 && lane == 0) atomicAdd(differing, 1ull);
    }
}

// out[out_offsets[i] : out_offsets[i + 1]] = row rows[i].
// Parallel over chunks of the output; reads and writes each item once. Pure map.
extern "C" __global__ void take_rows(const i64* offsets, const i32* items, const i64* rows,
                                     const i64* out_offsets, i64 n_rows, i64 n_items, i32* out) {
    i64 j = (static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x) * CHUNK;
    if (j >= n_items) return;
    const i64 stop = smaller(j + CHUNK, n_items);
    i64 i = row_of(out_offsets, n_rows, j);
    for (; j < stop; ++j) {
        while (j >= out_offsets[i + 1]) ++i;
        out[j] = items[offsets[rows[i]] + (j - out_offsets[i])];
    }
}

// counts[items[j]] += 1.
// Parallel over items; reads each once, one atomic each. Deterministic: integer sums.
extern "C" __global__ void count_items(const i32* items, i64 n, u64* counts) {
    const i64 j = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (j < n) atomicAdd(counts + items[j], 1ull);
}

// Appends every row to the list of each of its items; cursors[item] = where to append.
// Parallel over chunks of items; reads each once, one atomic and one write each. The order within a
// list varies: it is sorted afterwards.
extern "C" __global__ void scatter_items(const i64* offsets, i64 n_rows, const i32* items, i64 n_items,
                                         u64* cursors, i32* rows) {
    i64 j = (static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x) * CHUNK;
    if (j >= n_items) return;
    const i64 stop = smaller(j + CHUNK, n_items);
    i64 row = row_of(offsets, n_rows, j);
    for (; j < stop; ++j) {
        while (j >= offsets[row + 1]) ++row;
        rows[atomicAdd(cursors + items[j], 1ull)] = static_cast<i32>(row);
    }
}

// The distinct values map[item] of each row of a list: their number into sizes, or, where `out` is
// given, they themselves into out[out_offsets[row] ...].
// Parallel over rows (a group each) and over a row's items; reads items once, gathers map (cached),
// keys in shared memory (or scratch). Deterministic but for the order of the values of a row, which
// are sorted afterwards.
template <bool BLOCK>
__device__ __forceinline__ void distinct_rows(const i64* offsets, const i32* items, const i32* map,
                                              const i32* slots, const i32* list, i64 n, i64* sizes,
                                              const i64* out_offsets, i32* out, i32* keys, u32* cursor) {
    const i32 rank = Group<BLOCK>::rank(), size = Group<BLOCK>::size();
    for (i64 i = Group<BLOCK>::index(); i < n; i += Group<BLOCK>::number()) {
        const i32 row = list[i];
        const u32 mask = slots[row] - 1;
        for (u32 s = rank; s <= mask; s += size) keys[s] = EMPTY;
        if (rank == 0) *cursor = 0;
        Group<BLOCK>::sync();
        for (i64 j = offsets[row] + rank; j < offsets[row + 1]; j += size) {
            const i32 value = map[items[j]];
            bool fresh;
            claim(keys, mask, value, fresh);
            if (!fresh) continue;
            const u32 place = atomicAdd(cursor, 1u);
            if (out != nullptr) out[out_offsets[row] + place] = value;
        }
        Group<BLOCK>::sync();
        if (rank == 0 && out == nullptr) sizes[row] = *cursor;
        Group<BLOCK>::sync();
    }
}

// One warp for each row of list 0; `capacity` slots of 4 bytes a warp.
extern "C" __global__ void distinct_items_warp(const i64* offsets, const i32* items, const i32* map,
                                               const i32* slots, const i32* list, const u64* length,
                                               i64 capacity, i64* sizes, const i64* out_offsets, i32* out) {
    DYNAMIC_SHARED(memory);
    __shared__ u32 cursors[32];
    const u32 warp = threadIdx.x >> 5;
    distinct_rows<false>(offsets, items, map, slots, list, *length, sizes, out_offsets, out,
                         reinterpret_cast<i32*>(memory) + warp * capacity, cursors + warp);
}

// One block for each row of list 1 or 2 (scratch null: keys in shared memory) or 3 (keys in scratch).
extern "C" __global__ void distinct_items_block(const i64* offsets, const i32* items, const i32* map,
                                                const i32* slots, const i32* list, const u64* length,
                                                i64 capacity, i64* sizes, const i64* out_offsets, i32* out,
                                                unsigned char* scratch) {
    DYNAMIC_SHARED(memory);
    __shared__ u32 cursor;
    i32* keys = scratch == nullptr ? reinterpret_cast<i32*>(memory)
                                   : reinterpret_cast<i32*>(scratch) + blockIdx.x * capacity;
    distinct_rows<true>(offsets, items, map, slots, list, *length, sizes, out_offsets, out, keys, &cursor);
}

// Lists rows by the table that each needs, for kernels that give a row a warp, a block with little
// or with much shared memory, or a block with global memory (kinds 0 to 3). A row with `visits`
// insertions gets slots = min(smallest power of two >= 4/3 * visits, most), at least 32; a warp if
// they are at most limit0 and the visits few. counters = lengths of the four lists, then the most
// slots of a row of kind 3; rows with negative visits are in none. List k starts at lists[k * n].
// Parallel over rows; one ballot and one atomic a warp and list. The order of a list varies, its
// set does not; rows are independent of each other.
extern "C" __global__ void list_rows(const i64* visits, i64 n, i64 most, i64 warp_visits, i64 limit0,
                                     i64 limit1, i64 limit2, i32* slots, i32* lists, u64* counters) {
    const i64 row = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
    const i32 lane = threadIdx.x & 31;
    i32 kind = -1;
    i64 wanted = 32;
    if (row < n && visits[row] >= 0) {
        while (3 * wanted < 4 * visits[row] && wanted < most) wanted *= 2;
        slots[row] = static_cast<i32>(wanted);
        if (wanted <= limit0 && visits[row] <= warp_visits)
            kind = 0;
        else
            kind = wanted <= limit1 ? 1 : wanted <= limit2 ? 2 : 3;
        if (kind == 3) atomicMax(counters + 4, static_cast<u64>(wanted));
    }
    for (i32 k = 0; k < 4; ++k) {
        const u32 same = __ballot_sync(ALL_LANES, kind == k);
        if (same == 0) continue;
        const i32 leader = __ffs(same) - 1;
        u64 start = 0;
        if (lane == leader) start = atomicAdd(counters + k, static_cast<u64>(__popc(same)));
        start = __shfl_sync(ALL_LANES, start, leader);
        if (kind == k) lists[k * n + start + __popc(same & ((1u << lane) - 1))] = static_cast<i32>(row);
    }
}
