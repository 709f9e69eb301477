// Clustering: the scores that a warp gathers for a node.
#ifndef SNNMAP_CLUSTER_TABLE_CUH
#define SNNMAP_CLUSTER_TABLE_CUH

const i32 WARP_SLOTS = 864;  // of a warp's table, 8 bytes each
const i32 MOST_TRIES = 64;   // slots that are looked at for a cluster before a table counts as full

// A warp's hash table of scores, from some word of shared memory on: words of a score and, in the low bits, a cluster. Only
// this warp has to do with it, so that different clusters are added without atomics.
struct WarpTable {
    u64* words;
    u32 n_slots;
    i32 bits;

    __device__ __forceinline__ u32 none() const { return static_cast<u32>((1ull << bits) - 1); }
    __device__ __forceinline__ u32 key_of(u64 word) const { return static_cast<u32>(word) & none(); }
    __device__ __forceinline__ u64 at(u32 slot) const { return const_cast<const volatile u64*>(words)[slot]; }
    __device__ __forceinline__ u32 home_of(u32 key) const {
        return static_cast<u32>(static_cast<u64>(key * 0x9E3779B1u) * n_slots >> 32);
    }
    __device__ __forceinline__ u32 next(u32 slot) const { return slot + 1 == n_slots ? 0 : slot + 1; }
    __device__ __forceinline__ void clear() const {
#pragma unroll 1
        for (u32 s = threadIdx.x & 31; s < n_slots; s += 32) words[s] = none();
        __syncwarp();
    }
    // Every lane's score to its cluster (none: nothing), all of them different; whether all have room. Who finds a free
    // slot writes it, and goes on if another lane has written it, too.
    __device__ __forceinline__ bool add(u32 key, u64 score) const {
        u32 slot = home_of(key);
        bool waits = key != none();
#pragma unroll 1
        for (i32 tries = 0; tries < MOST_TRIES; ++tries) {
            bool writes = false;
            if (waits) {
                const u64 word = at(slot);
                if (key_of(word) == key) {
                    words[slot] = word + (score << bits);
                    waits = false;
                } else if (key_of(word) == none()) {
                    words[slot] = score << bits | key;
                    writes = true;
                }
            }
            __syncwarp();
            if (waits && writes && key_of(at(slot)) == key) waits = false;
            if (waits) slot = next(slot);
            if (__ballot_sync(ALL_LANES, waits) == 0) return true;
        }
        return false;
    }
    // One lane's score to a cluster that may be another's, too; whether there is room.
    __device__ __forceinline__ bool add_any(u32 key, u64 score) const {
        u32 slot = home_of(key);
#pragma unroll 1
        for (i32 tries = 0; tries < MOST_TRIES; ++tries) {
            u64 word = at(slot);
            if (key_of(word) == none()) word = atomicCAS(words + slot, static_cast<u64>(none()), score << bits | key);
            if (word == none()) return true;
            if (key_of(word) == key) {
                atomicAdd(words + slot, score << bits);
                return true;
            }
            slot = next(slot);
        }
        return false;
    }
};

// The functions that add to a table are no part of the kernel's code: there they would have too few registers, and what is
// asked for early would be waited for, to be stored. They know where shared memory begins.
struct TablePlace {
    u32 first_word, n_slots;
    i32 bits;

    __device__ __forceinline__ WarpTable table() const {
        DYNAMIC_SHARED(words);
        return {reinterpret_cast<u64*>(words) + first_word, n_slots, bits};
    }
};

// What so many nets offer node `self`, whose lanes know where and how much, each cluster of it with `share` for each pin;
// whether the table has room. The words of a net are asked for while the one before is worked on.
__device__ __noinline__ bool add_offers(TablePlace place, const i32* picks, u32 self, i32 n, i64 keys, i32 n_keys, u64 share) {
    const WarpTable table = place.table();
    const u32 mask = table.none();
    const i32 lane = threadIdx.x & 31;
    u32 coming[AT_ONCE];
    const auto ask = [&](i32 j) {
        const i32 many = __shfl_sync(ALL_LANES, n_keys, j);
        const i32* from = picks + __shfl_sync(ALL_LANES, keys, j) + lane;
#pragma unroll
        for (i32 i = 0; i < AT_ONCE; ++i) coming[i] = lane + 32 * i < many ? static_cast<u32>(from[32 * i]) : mask;
    };
    ask(0);
#pragma unroll 1
    for (i32 j = 0; j < n; ++j) {
        const i32 many = __shfl_sync(ALL_LANES, n_keys, j);
        const u64 score = __shfl_sync(ALL_LANES, share, j);
        const i32* from = picks + __shfl_sync(ALL_LANES, keys, j) + lane;
        u32 words[AT_ONCE];
#pragma unroll
        for (i32 i = 0; i < AT_ONCE; ++i) words[i] = coming[i];
        if (j + 1 < n) ask(j + 1);
#pragma unroll 1
        for (i32 start = 0; start < many; start += 32) {
            const u32 word = words[0], key = word & mask;
#pragma unroll
            for (i32 i = 0; i + 1 < AT_ONCE; ++i) words[i] = words[i + 1];
            const i32 next = start + 32 * AT_ONCE;
            words[AT_ONCE - 1] = next + lane < many ? static_cast<u32>(from[next]) : mask;
            if (!table.add(key == self ? mask : key, score * ((word >> table.bits) + 1))) return false;
        }
    }
    return true;
}

// The pins of a net that offers nothing, with `share` each; whether the table has room. Lanes with the same cluster add
// together.
__device__ __noinline__ bool add_pins(TablePlace place, const i32* pins, i64 n_pins, i64 looked, const i32* leaders, const i32* turns,
                                      i64 turn, i32 self, u64 share) {
    const WarpTable table = place.table();
    const u32 mask = table.none();
    const i64 lane = threadIdx.x & 31;
#pragma unroll 1
    for (i64 start = 0; start < looked; start += 32) {
        u32 key = mask;
        if (start + lane < looked) {
            const i32 u = leaders[pins[spread(start + lane, n_pins, looked)]];
            if (u != self && is_open(turns, u, turn)) key = static_cast<u32>(u);
        }
        const u32 same = __match_any_sync(ALL_LANES, key);
        if (!table.add(__ffs(same) - 1 == lane ? key : mask, share * __popc(same))) return false;
    }
    return true;
}

#endif
