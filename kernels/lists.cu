// Rows the other way round: for each id the rows that hold it.
#include "common.cuh"
#include "grid.cuh"

// new_offsets, rows = for each of n_ids ids the rows that hold it, ascending; row j = item j where
// `offsets` is null. `state`: a gate and the number of long lists, zero; `counts` are zero.
// Parallel over chunks of items, then over ids; one atomic an item to count, one to place. The order
// in which a list is filled varies: it is sorted afterwards.
extern "C" __launch_bounds__(1024, 1) __global__ void list_rows_of(const i64* offsets, const i32* items, i64 n_rows,
                                                                   i64 n_items, i64 n_ids, u64* state, u64* counts,
                                                                   i64* totals, i32* long_lists, i64* new_offsets,
                                                                   i32* rows, i64 n_bytes) {
    DYNAMIC_SHARED(memory);
    Grid grid(state, memory, n_bytes);
    for (i64 j = grid.thread(); j < n_items; j += grid.n_threads()) atomicAdd(counts + items[j], 1ull);
    grid.meet();
    const auto count_of = [&](i64 id) { return static_cast<i64>(counts[id]); };
    grid.sum_share(totals, n_ids, count_of);
    grid.meet();
    grid.scan_share(totals, n_ids, count_of, [&](i64 id, i64, i64 place) {
        new_offsets[id] = place;
        counts[id] = static_cast<u64>(place);  // where its next row goes
    });
    if (grid.thread() == 0) new_offsets[n_ids] = n_items;
    grid.meet();
    const auto place = [&](i64 row, i64 j) { rows[atomicAdd(counts + items[j], 1ull)] = static_cast<i32>(row); };
    if (offsets != nullptr)
        for_all_items(grid, offsets, n_rows, n_items, place);
    else
#pragma unroll 1
        for (i64 j = grid.thread(); j < n_items; j += grid.n_threads()) place(j, j);
    grid.meet();
    for_short_rows(grid, new_offsets, n_ids, long_lists, state + GATE_WORDS, [&](i64 id) {
        sort_row<false>(grid, rows + new_offsets[id], new_offsets[id + 1] - new_offsets[id], n_rows);
    });
    grid.meet();
    for_long_rows(long_lists, state + GATE_WORDS, [&](i64 id) {
        sort_row<true>(grid, rows + new_offsets[id], new_offsets[id + 1] - new_offsets[id], n_rows);
    });
}
