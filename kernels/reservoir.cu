// Reservoirs: the targets of each neuron, chosen among its nearest neighbours; a block a neuron.
//
// Twin of `choose_targets` in snnmap/networks/_kernels_reservoir.py. It finds the same neighbours, as
// every rounding of a distance is spelled out (nothing is fused), and draws the same random numbers:
// NumPy's PCG64, which can be entered anywhere. Only logarithms may differ in their last bits from
// those of a CPU. So a row whose choice hangs on less than MARGIN is reported as doubtful, and so is
// one that the block has no room for: a CPU is to choose again. All other rows are the same.
#include "common.cuh"

typedef signed char i8;

const double MARGIN = 1e-12;  // over 20 times what two logarithms and their sums may differ by
const u64 LAST = ~0ull;       // sorts behind every key
const i32 TRIES = 64;

// ------------------------------------------------------------------------------------ numbers

struct U128 {
    u64 high, low;

    __device__ __forceinline__ U128 operator*(const U128& o) const {
        return {high * o.low + low * o.high + __umul64hi(low, o.low), low * o.low};
    }
    __device__ __forceinline__ U128 operator+(const U128& o) const {
        return {high + o.high + (low + o.low < low ? 1u : 0u), low + o.low};
    }
};

// A number of steps of the generator: state -> times * state + plus.
struct Jump {
    U128 times, plus;

    __device__ __forceinline__ Jump(U128 increment, u64 steps) : times{0, 1}, plus{0, 0} {
        U128 factor = {0x2360ED051FC65DA4ull, 0x4385DF649FCCF645ull}, sum = increment;
        for (; steps; steps >>= 1) {
            if (steps & 1) {
                times = times * factor;
                plus = plus * factor + sum;
            }
            sum = sum * factor + sum;
            factor = factor * factor;
        }
    }
    __device__ __forceinline__ U128 operator()(const U128& state) const { return times * state + plus; }
};

// The 53 bits that NumPy makes a number in [0, 1) of (PCG XSL-RR 128/64).
__device__ __forceinline__ u64 draw(const U128& state) {
    const u64 x = state.high ^ state.low;
    const u32 turn = state.high >> 58;
    return (x >> turn | x << (-turn & 63)) >> 11;
}

// 64 bits that sort as the numbers do, the largest first.
__device__ __forceinline__ u64 falling(double value) {
    const u64 bits = static_cast<u64>(__double_as_longlong(value));
    return bits >> 63 ? bits : ~bits & ~(1ull << 63);
}
__device__ __forceinline__ double value_of(u64 key) {
    return __longlong_as_double(static_cast<i64>(key >> 63 ? key : ~key & ~(1ull << 63)));
}

// ------------------------------------------------------------------------------------ steps of a block

// Sort by (key, tag): bitonic; `size` is a power of two.
__device__ __forceinline__ void sort_pairs(u64* keys, i32* tags, i32 size) {
    for (i32 width = 2; width <= size; width <<= 1) {
        for (i32 step = width >> 1; step > 0; step >>= 1) {
            __syncthreads();
            for (i32 i = threadIdx.x; i < size >> 1; i += blockDim.x) {
                const i32 a = 2 * i - (i & (step - 1)), b = a + step;
                const u64 key_a = keys[a], key_b = keys[b];
                const i32 tag_a = tags[a], tag_b = tags[b];
                const bool falls = key_a != key_b ? key_a > key_b : tag_a > tag_b;
                if (falls == ((a & width) == 0)) {
                    keys[a] = key_b, keys[b] = key_a;
                    tags[a] = tag_b, tags[b] = tag_a;
                }
            }
        }
    }
    __syncthreads();
}

// Fill up with pairs that sort last; returns the power of two that is sorted.
__device__ __forceinline__ i32 fill_up(u64* keys, i32* tags, i32 n) {
    i32 size = 1;
    while (size < n) size <<= 1;
    for (i32 i = n + threadIdx.x; i < size; i += blockDim.x) {
        keys[i] = LAST;
        tags[i] = 0x7FFFFFFF;
    }
    return size;
}

// The neurons, sorted into cells of a grid over the unit cube.
struct Cells {
    const i64* firsts;
    i32 n;  // a side
    const double* points;

    __device__ __forceinline__ i32 at(double x) const {
        const double cell = x * n;
        return cell < 0 ? 0 : cell >= n ? n - 1 : static_cast<i32>(cell);
    }
    __device__ __forceinline__ double gap(i32 cell, double x) const {  // from x to the cell
        const double below = static_cast<double>(cell) / n - x, above = x - static_cast<double>(cell + 1) / n;
        return below > 0 ? below : above > 0 ? above : 0;
    }
};

// Squared distances (as bits) and places of the points within `radius`; their number, stored or not.
__device__ __forceinline__ i32 gather(const Cells& cells, const double* at, double radius, i32 room, u64* squares,
                                      i32* places, i32* found) {
    __syncthreads();
    if (threadIdx.x == 0) *found = 0;
    __syncthreads();
    const double x = at[0], y = at[1], z = at[2], most = radius * radius;
    const i32 a0 = cells.at(x - radius), b0 = cells.at(y - radius);
    const i32 n_a = cells.at(x + radius) - a0 + 1, n_b = cells.at(y + radius) - b0 + 1;
    for (i32 column = threadIdx.x >> 5; column < n_a * n_b; column += blockDim.x >> 5) {
        const i32 a = a0 + column / n_b, b = b0 + column % n_b;
        const double gap_x = cells.gap(a, x), gap_y = cells.gap(b, y);
        const double left = most * (1 + 1e-12) - gap_x * gap_x - gap_y * gap_y;
        if (left < 0) continue;
        const double up = sqrt(left) * (1 + 1e-12);
        const i64 first = (static_cast<i64>(a) * cells.n + b) * cells.n;
        const i64 stop = cells.firsts[first + cells.at(z + up) + 1];
        for (i64 i = cells.firsts[first + cells.at(z - up)] + (threadIdx.x & 31); i < stop; i += 32) {
            const double dx = __dsub_rn(cells.points[3 * i], x), dy = __dsub_rn(cells.points[3 * i + 1], y),
                         dz = __dsub_rn(cells.points[3 * i + 2], z);
            const double square =
                __dadd_rn(__dadd_rn(__dmul_rn(dx, dx), __dmul_rn(dy, dy)), __dmul_rn(dz, dz));
            if (square > most) continue;
            const i32 place = atomicAdd(found, 1);
            if (place >= room) continue;
            squares[place] = static_cast<u64>(__double_as_longlong(square));
            places[place] = static_cast<i32>(i);
        }
    }
    __syncthreads();
    return *found;
}

// Gather between `near` and `room` points: how many, or -1 if no radius did.
__device__ __forceinline__ i32 gather_nearest(const Cells& cells, const double* at, double radius, i32 near, i32 room,
                                              u64* squares, i32* places, i32* found) {
    double low = 0, high = 0;
    for (i32 i = 0; i < TRIES; ++i) {
        const i32 n = gather(cells, at, radius, room, squares, places, found);
        if (n >= near && n <= room) return n;
        (n < near ? low : high) = radius;
        const double more = 1.05 * cbrt(static_cast<double>(near) / (n ? n : 1));
        radius = high > 0 ? 0.5 * (low + high) : radius * (more < 2 ? more : 2);
    }
    return -1;
}

// ------------------------------------------------------------------------------------ kernel

// Targets of neuron first + block, ascending, without itself, at offsets[block] of `out`; how many; doubtful or not.
extern "C" __global__ void choose_targets(
    const i64* firsts, i64 n_cells, const double* points, const i32* names, const i8* directions, const double* xyz,
    i64 first, i64 near, const double* numbers, i64 room, const u64* stream, const i64* n_local,
    const i64* far_offsets, const i64* far, const i64* offsets, i32* out, i64* counts, i32* doubtful) {
    DYNAMIC_SHARED(memory);
    u64* keys = reinterpret_cast<u64*>(memory);
    i32* tags = reinterpret_cast<i32*>(keys + room);
    __shared__ i32 found, n_far, n_twice, doubt;
    const i64 row = blockIdx.x;
    const i32 node = static_cast<i32>(first + row), n_near = static_cast<i32>(near);
    const double *at = xyz + 3 * static_cast<i64>(node), z = at[2], sigma = numbers[1], reach = numbers[2];
    const Cells cells = {firsts, static_cast<i32>(n_cells), points};

    const i32 n = gather_nearest(cells, at, numbers[0], n_near, static_cast<i32>(room), keys, tags, &found);
    if (n < 0) {
        if (threadIdx.x == 0) doubtful[row] = 1;
        return;
    }
    sort_pairs(keys, tags, fill_up(keys, tags, n));

    // a key for each of the nearest, with the noise of its rank
    if (threadIdx.x == 0) found = n_far = n_twice = doubt = 0;
    __syncthreads();
    const U128 increment = {stream[2], stream[3]};
    U128 state = Jump(increment, row * near + threadIdx.x + 1)({stream[0], stream[1]});
    const Jump stride(increment, blockDim.x);
    for (i32 i = threadIdx.x; i < n_near; i += blockDim.x, state = stride(state)) {
        const u64 bits = draw(state);
        if (bits == 0) doubt = 1;  // NumPy would draw again, and all after it would move up
        const i32 place = tags[i], other = names[place];
        const double d = sqrt(__longlong_as_double(static_cast<i64>(keys[i]))), scaled = d / sigma;
        const bool against = (points[3 * static_cast<i64>(place) + 2] - z) * directions[place] < 0;
        tags[i] = other;
        keys[i] = LAST;
        if (bits == 0 || other == node || d > reach || against) continue;
        const double noise = -log(-log(1.0 - bits * (1.0 / 9007199254740992.0)));
        keys[i] = falling(__dadd_rn(__dmul_rn(-0.5, __dmul_rn(scaled, scaled)), noise));
        atomicAdd(&found, 1);
    }
    __syncthreads();
    sort_pairs(keys, tags, fill_up(keys, tags, n_near));
    const i32 k = static_cast<i32>(smaller(found, n_local[row]));
    if (threadIdx.x == 0 && 0 < k && k < found) {
        const double a = value_of(keys[k - 1]), b = value_of(keys[k]);
        if (!(a - b > MARGIN * (1 + fabs(a) + fabs(b)))) doubt = 1;
    }
    __syncthreads();
    if (doubt) {
        if (threadIdx.x == 0) doubtful[row] = 1;
        return;
    }

    // far ones join them; in order, each once
    for (i32 i = threadIdx.x; i < k; i += blockDim.x) keys[i] = static_cast<u64>(tags[i]);
    for (i64 i = far_offsets[row] + threadIdx.x; i < far_offsets[row + 1]; i += blockDim.x)
        if (far[i] != node) keys[k + atomicAdd(&n_far, 1)] = static_cast<u64>(far[i]);
    __syncthreads();
    const i32 n_targets = k + n_far;
    for (i32 i = threadIdx.x; i < n_targets; i += blockDim.x) tags[i] = 0;
    sort_pairs(keys, tags, fill_up(keys, tags, n_targets));
    for (i32 i = threadIdx.x + 1; i < n_targets; i += blockDim.x)
        if (keys[i] == keys[i - 1]) tags[atomicAdd(&n_twice, 1)] = i;
    __syncthreads();
    for (i32 i = threadIdx.x; i < n_targets; i += blockDim.x) {
        if (i > 0 && keys[i] == keys[i - 1]) continue;
        i32 place = i;
        for (i32 j = 0; j < n_twice; ++j) place -= tags[j] < i;
        out[offsets[row] + place] = static_cast<i32>(keys[i]);
    }
    if (threadIdx.x == 0) counts[row] = n_targets - n_twice;
}
