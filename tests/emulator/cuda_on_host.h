// The part of CUDA C++ that snnmap's kernels use, on one thread of an x86-64 CPU.
//
// A block's threads are fibers: each runs until it waits at a barrier, and the next takes over, in
// an order drawn anew for each block. So a kernel whose result depends on the order of its threads
// gives itself away, and so does one whose threads wait at different barriers (it aborts). Atomics
// are plain operations, since fibers never interrupt each other. Warps are always full. Blocks run
// one after the other, those of a cooperative launch all at once; what these keep in static (not in
// dynamic) shared memory must be the same for all of them.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define ASSUME(condition)
#define WAIT_A_LITTLE() emulator::yield()
#define PREFETCH(address) static_cast<void>(address)
#define ADD_TO_MEMORY(target, value) static_cast<void>(atomicAdd(reinterpret_cast<unsigned long long*>(target), static_cast<unsigned long long>(value)))
#define WAIT_FOR_TEAM(id, n_threads) emulator::wait_for_team(id, n_threads)
#define __shared__ static
#define DYNAMIC_SHARED(name) unsigned char* name = emulator::own_memory()

extern "C" void emulator_switch(void** from, void* to);
asm(R"(
.text
.globl emulator_switch
emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");

namespace emulator {

struct Index {
    unsigned x, y, z;
};
struct Barrier {
    int waiting = 0, members = 0;
    long passed = 0;
    long voted[2] = {-1, -1};  // the last even and odd passages that a thread voted for

    void open_if_complete() {
        if (members == 0 || waiting < members) return;
        waiting = 0;
        ++passed;
    }
};
struct Fiber {
    void* stack_top;
    bool done;
};

const size_t STACK = 32768;
const int MOST_IDLE_SWEEPS = 4;  // threads that look at memory may wait while nobody passes a barrier
static Index thread_index, block_index, block_size, grid_size;
static unsigned char* dynamic_memory;  // of all running blocks
static size_t dynamic_stride;          // of each
static int n_threads, current, n_alive;  // of a block; fiber, counted over all running blocks
static unsigned first_block;
static std::vector<unsigned char*> stacks;
static std::vector<Fiber> fibers;
static std::vector<int> order;
static std::vector<Barrier> block_barriers, warp_barriers, team_barriers;  // of the latter 16 a block
static std::vector<uint64_t> exchanged;
static void* scheduler;
static void (*body)(void*);
static void* argument;
static unsigned random_state = 1;

inline void become(int fiber) {
    current = fiber;
    thread_index.x = fiber % n_threads;
    block_index.x = first_block + fiber / n_threads;
}

inline unsigned char* own_memory() { return dynamic_memory + (block_index.x - first_block) * dynamic_stride; }

inline void yield() {
    const int me = current;
    emulator_switch(&fibers[me].stack_top, scheduler);
    become(me);
}

inline void wait(Barrier& barrier) {
    const long passed = barrier.passed;
    ++barrier.waiting;
    barrier.open_if_complete();
    while (barrier.passed == passed) yield();
}

inline Barrier& own_warp() { return warp_barriers[current >> 5]; }
inline Barrier& own_block() { return block_barriers[current / n_threads]; }

inline void wait_for_team(int id, int n_threads_of_team) {
    if (id < 0 || id > 15 || (id == 0) != (n_threads_of_team == n_threads)) abort();
    Barrier& barrier = id == 0 ? own_block() : team_barriers[16 * (current / n_threads) + id];
    if (id > 0) barrier.members = n_threads_of_team;
    wait(barrier);
}

inline void run_fiber() {
    body(argument);
    fibers[current].done = true;
    --n_alive;
    --own_block().members;
    --own_warp().members;
    own_block().open_if_complete();
    own_warp().open_if_complete();
    void* unused;
    emulator_switch(&unused, scheduler);
    abort();
}

inline long progress() {
    long done = -n_alive;
    for (const Barrier& block : block_barriers) done += block.passed;
    for (const Barrier& warp : warp_barriers) done += warp.passed;
    for (const Barrier& team : team_barriers) done += team.passed;
    return done;
}

inline void run_blocks(unsigned first, unsigned n_blocks) {
    const int n = n_blocks * n_threads;
    while (stacks.size() < static_cast<size_t>(n))
        stacks.push_back(static_cast<unsigned char*>(aligned_alloc(64, STACK)));
    first_block = first;
    n_alive = n;
    fibers.resize(n);
    order.resize(n);
    exchanged.resize(n);
    block_barriers.assign(n_blocks, {0, n_threads, 0});
    warp_barriers.assign(n / 32, {0, 32, 0});
    team_barriers.assign(16 * n_blocks, {0, 0, 0});
    for (int t = 0; t < n; ++t) {
        void** top = reinterpret_cast<void**>(stacks[t] + STACK - 64);
        *--top = nullptr;  // where the caller's address would be, so that the stack is aligned
        *--top = reinterpret_cast<void*>(run_fiber);
        for (int i = 0; i < 6; ++i) *--top = nullptr;  // registers that a switch restores
        fibers[t] = {top, false};
        order[t] = t;
    }
    for (int t = n - 1; t > 0; --t) {
        random_state = random_state * 1664525u + 1013904223u;
        std::swap(order[t], order[(random_state >> 8) % (t + 1)]);
    }
    for (int idle = 0; n_alive > 0;) {
        const long before = progress();
        for (int i = 0; i < n; ++i) {
            if (fibers[order[i]].done) continue;
            become(order[i]);
            emulator_switch(&scheduler, fibers[current].stack_top);
        }
        idle = progress() == before ? idle + 1 : 0;
        if (n_alive > 0 && idle > MOST_IDLE_SWEEPS) {
            fprintf(stderr, "threads wait for what never comes\n");
            abort();
        }
    }
}

template <class T>
T exchange(T value, int source) {
    exchanged[current] = 0;
    memcpy(&exchanged[current], &value, sizeof value);
    wait(own_warp());
    T found;
    memcpy(&found, &exchanged[(current & ~31) | source], sizeof found);
    wait(own_warp());
    return found;
}

template <class... A, size_t... I>
void call(void (*kernel)(A...), void** values, std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_const_t<A>*>(values[I])...);
}

template <class... A>
void launch(void (*kernel)(A...), unsigned blocks, unsigned threads, size_t shared, bool together, void** values) {
    struct Call {
        void (*kernel)(A...);
        void** values;
    } request = {kernel, values};
    body = [](void* data) {
        Call* one = static_cast<Call*>(data);
        call(one->kernel, one->values, std::index_sequence_for<A...>());
    };
    argument = &request;
    grid_size = {blocks, 1, 1};
    block_size = {threads, 1, 1};
    n_threads = threads;
    dynamic_stride = (shared + 127) / 64 * 64;
    const size_t dynamic_bytes = dynamic_stride * (together ? blocks : 1);
    dynamic_memory = static_cast<unsigned char*>(aligned_alloc(64, dynamic_bytes));
    block_index = thread_index = {0, 0, 0};
    for (unsigned block = 0; block < blocks; block += together ? blocks : 1) {
        memset(dynamic_memory, 0xA5, dynamic_bytes);  // shared memory begins with anything
        run_blocks(block, together ? blocks : 1);
        for (size_t i = 0; i < dynamic_bytes; ++i)
            if (i % dynamic_stride >= shared && dynamic_memory[i] != 0xA5) {
                fprintf(stderr, "a block writes beyond its shared memory\n");
                abort();
            }
    }
    free(dynamic_memory);
}

template <class... A>
constexpr int count_arguments(void (*)(A...)) {
    return sizeof...(A);
}

}  // namespace emulator

#define threadIdx emulator::thread_index
#define blockIdx emulator::block_index
#define blockDim emulator::block_size
#define gridDim emulator::grid_size

inline void __syncthreads() { emulator::wait(emulator::own_block()); }
inline int __syncthreads_or(int vote) {
    emulator::Barrier& barrier = emulator::own_block();
    const long passage = barrier.passed;
    if (vote) barrier.voted[passage & 1] = passage;
    emulator::wait(barrier);
    return barrier.voted[passage & 1] == passage;
}
inline void __threadfence() {}
inline void __syncwarp() { emulator::wait(emulator::own_warp()); }
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
    return emulator::exchange(value, static_cast<int>(threadIdx.x & 31) ^ mask);
}
template <class T>
T __shfl_sync(unsigned, T value, int source, int width = 32) {
    return emulator::exchange(value, static_cast<int>(threadIdx.x & 31 & ~(width - 1)) | (source & (width - 1)));
}
inline unsigned __ballot_sync(unsigned, bool vote) {
    unsigned votes = 0;
    emulator::exchanged[emulator::current] = vote;
    __syncwarp();
    for (int lane = 0; lane < 32; ++lane)
        votes |= static_cast<unsigned>(emulator::exchanged[(emulator::current & ~31) | lane]) << lane;
    __syncwarp();
    return votes;
}
inline unsigned __match_any_sync(unsigned, unsigned value) {
    unsigned same = 0;
    emulator::exchanged[emulator::current] = value;
    __syncwarp();
    for (int lane = 0; lane < 32; ++lane)
        same |= static_cast<unsigned>(emulator::exchanged[(emulator::current & ~31) | lane] == value) << lane;
    __syncwarp();
    return same;
}
inline uint64_t __umul64hi(uint64_t a, uint64_t b) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return std::sqrt(a); }
inline long long __double_as_longlong(double value) {
    long long bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
inline double __longlong_as_double(long long bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __clzll(long long bits) { return bits == 0 ? 64 : __builtin_clzll(bits); }
template <class T>
T atomicAdd(T* target, T value) {
    const T old = *target;
    *target = old + value;
    return old;
}
template <class T>
T atomicExch(T* target, T value) {
    const T old = *target;
    *target = value;
    return old;
}
inline unsigned atomicOr(unsigned* target, unsigned value) {
    const unsigned old = *target;
    *target = old | value;
    return old;
}
inline unsigned atomicAnd(unsigned* target, unsigned value) {
    const unsigned old = *target;
    *target = old & value;
    return old;
}
template <class T>
T atomicMax(T* target, T value) {
    const T old = *target;
    if (value > old) *target = value;
    return old;
}
template <class T>
T atomicMin(T* target, T value) {
    const T old = *target;
    if (value < old) *target = value;
    return old;
}
template <class T>
T atomicOr(T* target, T value) {
    const T old = *target;
    *target = old | value;
    return old;
}
template <class T>
T atomicCAS(T* target, T expected, T value) {
    const T old = *target;
    if (old == expected) *target = value;
    return old;
}
