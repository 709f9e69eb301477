// Passes over rows of ids in CSR form, and lists of rows by the size of the table they need.
#include "common.cuh"

// sums[row * sum_stride] += sum over the row's items of values[item * value_stride].
// Parallel over chunks of items (see add_rows); gathers values.
extern "C" __global__ void sum_rows(const i64* offsets, i64 n_rows, const i32* items, i64 n_items,
                                    const i64* values, i64 value_stride, i64* sums, i64 sum_stride) {
    add_rows(offsets, n_rows, items, n_items, sums, sum_stride,
             [&](i32 item) { return static_cast<u64>(values[item * value_stride]); });
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
