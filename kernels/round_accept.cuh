// Rounds in one launch: of the moves into or out of a part the best for which there is room.
#ifndef SNNMAP_ROUND_ACCEPT_CUH
#define SNNMAP_ROUND_ACCEPT_CUH

const i32 FEW_MOVES = 192;                     // that are sorted
const i32 DIGIT_BITS = N_LOADS <= 4 ? 6 : 5;   // of keys that are looked at together
const i32 N_DIGITS = 1 << DIGIT_BITS;
static_assert(FEW_MOVES * 12 <= WARP_BYTES, "room for the moves that are sorted, in any block");
static_assert(4 * N_DIGITS * (1 + 2 * N_LOADS) <= WARP_BYTES, "room for what the digits sum up");

// Which moves of a list are looked at, where all have the order of (`falling` gain, tie): those whose key, the gain or if that
// is known the tie, has these digits down to bit `shift`.
struct Window {
    u64 gain, digits;
    i32 shift;
    bool by_tie;

    static __device__ __forceinline__ u64 falling(i64 gain) { return ~(static_cast<u64>(gain) ^ 1ull << 63); }
    __device__ __forceinline__ u64 down_to_shift(u64 key) const { return shift < 64 ? key >> shift : 0; }
    // Begins with keys of which `some` and `some_not` are the bits that any has set, and not set.
    __device__ __forceinline__ void begin(u64 some, u64 some_not) {
        shift = 0;
        while (shift < 64 && (some & some_not) >> shift != 0) ++shift;
        digits = down_to_shift(some);
    }
    // -1 before the window, 0 in it, 1 after it; `key` is what it looks at.
    template <class Tie>
    __device__ __forceinline__ i32 place(i64 v, i64 v_gain, Tie tie, u64& key) const {
        key = falling(v_gain);
        if (by_tie) {
            if (key != gain) return key < gain ? -1 : 1;
            key = tie(v);
        }
        const u64 own = down_to_shift(key);
        return own < digits ? -1 : own > digits;
    }
};

// How many digits fit into the room, each with all before it (scratch[N_LOADS]; not all do), and what they have together
// (scratch[0 .. N_LOADS - 1]). By a warp.
__device__ __forceinline__ void look_at_digits(const Sums& sums, const i64* room, i64* scratch) {
    const i32 lane = threadIdx.x & 31;
    i64 before[N_LOADS], taken[N_LOADS], n_fitting = 0;
    for (i32 r = 0; r < N_LOADS; ++r) before[r] = taken[r] = 0;
#pragma unroll 1
    for (i32 base = 0; base < N_DIGITS; base += 32) {
        bool fit = true;
        i64 own[N_LOADS];
        for (i32 r = 0; r < N_LOADS; ++r) {
            own[r] = sums.get(r * N_DIGITS + base + lane);
            const i64 up_to = scan_warp(own[r]);
            fit &= before[r] + up_to <= room[r];
            before[r] += __shfl_sync(ALL_LANES, up_to, 31);
        }
        n_fitting += __popc(__ballot_sync(ALL_LANES, fit));
        for (i32 r = 0; r < N_LOADS; ++r) taken[r] += fit ? own[r] : 0;
    }
    for (i32 r = 0; r < N_LOADS; ++r) {
        taken[r] = sum_warp(taken[r]);
        if (lane == 0) scratch[r] = taken[r];
    }
    if (lane == 0) scratch[N_LOADS] = n_fitting;
}

// take(v) for those of n listed moves up to which, best first (equal ones by `tie`, which differ), all amounts fit into the
// room; by a block. Amounts are not negative: so these are all that come before some move. That is found digit by
// digit of the keys, by what the moves with each digit have together, until few are left, which are sorted.
template <class Amount, class Take, class Tie>
__device__ __forceinline__ void accept_prefix(const Work& work, const i32* list, i64 n, const i64* most, Amount amount, Take take, Tie tie) {
    if (n == 0) return;
    const Rounds& in = work.in;
    const Team block = Team::of_block();
    i64 *scratch = work.desk.scratch, *gains = work.desk.lists.as<i64>();
    i32* ids = reinterpret_cast<i32*>(gains + FEW_MOVES);
    u32 *counts = reinterpret_cast<u32*>(gains), *cursor = work.desk.cursors;
    const Sums sums(counts + N_DIGITS, N_DIGITS * N_LOADS);
    i64 room[N_LOADS], total;
    u64 some = 0, some_not = 0;
    for (i32 r = 0; r < N_LOADS; ++r) room[r] = 0;
#pragma unroll 1
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
        const i32 v = list[i];
        const u64 key = Window::falling(in.gains[v]);
        some |= key;
        some_not |= ~key;
        for (i32 r = 0; r < N_LOADS; ++r) room[r] += amount(v, r);
    }
    bool fits = true;
    for (i32 r = 0; r < N_LOADS; ++r) {
        fits &= sum_of(block, room[r], scratch) <= most[r];
        room[r] = most[r];
    }
    if (fits) {
#pragma unroll 1
        for (i64 i = threadIdx.x; i < n; i += blockDim.x) take(list[i]);
        __syncthreads();
        return;
    }
    Window window = {0, 0, 0, false};
    i64 n_left = n;
    u64 key;
    if (n_left <= FEW_MOVES)
        window.shift = 64;
    else
        window.begin(any_bits_of(block, some, scratch), any_bits_of(block, some_not, scratch));
#pragma unroll 1
    while (n_left > FEW_MOVES) {
        if (window.shift == 0) {
            const Window equal = window;
            some = some_not = 0;
#pragma unroll 1
            for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
                const i32 v = list[i];
                if (equal.place(v, in.gains[v], tie, key) != 0) continue;
                some |= tie(v);
                some_not |= ~tie(v);
            }
            window.gain = window.digits;
            window.by_tie = true;
            window.begin(any_bits_of(block, some, scratch), any_bits_of(block, some_not, scratch));
        }
        const i32 next = window.shift > DIGIT_BITS ? window.shift - DIGIT_BITS : 0;
        const u64 mask = (1ull << (window.shift - next)) - 1;
        for (i32 i = threadIdx.x; i < N_DIGITS * (1 + 2 * N_LOADS); i += blockDim.x) counts[i] = 0;
        __syncthreads();
#pragma unroll 1
        for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
            const i32 v = list[i];
            if (window.place(v, in.gains[v], tie, key) != 0) continue;
            const i32 digit = static_cast<i32>(key >> next & mask);
            atomicAdd(counts + digit, 1u);
            for (i32 r = 0; r < N_LOADS; ++r) sums.add(r * N_DIGITS + digit, amount(v, r));
        }
        __syncthreads();
        if (threadIdx.x < 32) look_at_digits(sums, room, scratch);
        __syncthreads();
        const i64 n_fitting = scratch[N_LOADS];
        for (i32 r = 0; r < N_LOADS; ++r) room[r] -= scratch[r];
        n_left = counts[n_fitting];
        window.digits = (window.digits << (window.shift - next)) + static_cast<u64>(n_fitting);
        window.shift = next;
        __syncthreads();
    }
    if (threadIdx.x == 0) *cursor = 0;
    __syncthreads();
#pragma unroll 1
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
        const i32 v = list[i];
        const i64 gain = in.gains[v];
        const i32 place = window.place(v, gain, tie, key);
        if (place < 0) take(v);
        if (place != 0) continue;
        const u32 free = atomicAdd(cursor, 1u);
        gains[free] = gain;
        ids[free] = v;
    }
    sort_moves(gains, ids, n_left, [&](i32 v, i32 other) { return tie(v) < tie(other); });
#pragma unroll 1
    for (i64 base = 0; base < n_left; base += blockDim.x) {
        const i64 i = base + threadIdx.x, v = i < n_left ? ids[i] : -1;
        fits = v >= 0;
        for (i32 r = 0; r < N_LOADS; ++r) {
            fits &= scan(block, v >= 0 ? amount(v, r) : 0, total, scratch) <= room[r];
            room[r] -= total;
        }
        if (fits) take(v);
    }
    __syncthreads();
}

template <class Amount, class Take>
__device__ __forceinline__ void accept_prefix(const Work& work, const i32* list, i64 n, const i64* most, Amount amount, Take take) {
    accept_prefix(work, list, n, most, amount, take, [](i64 v) { return static_cast<u64>(v); });
}

#endif
