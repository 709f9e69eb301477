// Passes of moves on a small level. Written into search.cu.
#ifndef SNNMAP_SEARCH_MOVES_CUH
#define SNNMAP_SEARCH_MOVES_CUH

// Keys and wishes of all n nodes, or of the n of the queue. Parallel over nodes: a warp each where they are few,
// down to four lanes.
__device__ __forceinline__ void look_at_nodes(const Graph& g, const Scratch& s, const Table& t, bool all, i32 n, u16* players,
                                              u32* n_players) {
    const i32 most = n_warps(), shift = n <= most ? 5 : n <= 2 * most ? 4 : n <= 4 * most ? 3 : 2;
    const i32 n_groups = blockDim.x >> shift;
    #pragma unroll 1
    for (i32 base = 0; base < n; base += n_groups) {
        const i32 i = base + (threadIdx.x >> shift);
        look_at(g, s, t, i >= n ? -1 : all ? i : t.queue[i], 1 << shift, players, n_players);
    }
}

// Takes back the moves from number `n_kept` on, a turn at once, the last first.
__device__ __noinline__ void take_back(const Fine& f, const Graph& g, const Scratch& s, const Table& t, i32 n_kept, i32 n_moved) {
    __shared__ Marked marked;
    __shared__ u32 unused;
    while (n_moved > n_kept) {
        i32 first = n_moved - 1;
        while (first > n_kept && s.turns[first - 1] == s.turns[n_moved - 1]) --first;
        if (threadIdx.x == 0) marked = {0, 0};
        __syncthreads();
        for (i32 i = first + warp_index(); i < n_moved; i += n_warps()) {
            const i32 v = s.moved[i];
            const Nets nets = nets_of(g, v);
            move_node(f, g, s, t, v, t.wishes[v], s.origins[i], nets, net_at(g, nets, lane_index()), marked,
                      [&] { put_in(g, t, v, t.wishes[v], s.origins[i]); });
        }
        __syncthreads();
        spread_marks(f, g, s, t, marked, -1, &unused);
        __syncthreads();
        n_moved = first;
    }
}

// What a turn counts.
struct Tally {
    u32 n_moved, n_queued, n_losers, n_chosen;
    Marked marked;
    i32 failed_in;  // the turn, if a move into some part gained less than thought
    i64 gained;
};

// Lets a node be the best that leaves its part, and that enters the one it wishes for.
__device__ __forceinline__ void ask_for_both(const Table& t, i64* best, i32 v) {
    const i64 key = t.keys[v];
    i64 *from = best + t.parts[v], *to = best + t.wishes[v];
    if (key > *const_cast<volatile i64*>(from)) atomicMax(from, key);
    if (key > *const_cast<volatile i64*>(to)) atomicMax(to, key);
}

// Whether a node is the best at part p and at its other part.
__device__ __forceinline__ bool is_taken(const Table& t, const i64* best, i32 p) {
    const i32 v = node_of(best[p]);
    return best[t.wishes[v] == p ? t.parts[v] : t.wishes[v]] == best[p];
}

// Whether node v is the best at part a, where it is, and at part b.
__device__ __forceinline__ bool is_best(const i64* best, i32 v, i32 a, i32 b) {
    const i64 key = best[b];
    return key != NONE && node_of(key) == v && best[a] == key;
}

// Moves the node with this key from part a to b, if it still gains as much. By a warp.
__device__ __forceinline__ void try_move(const Fine& f, const Graph& g, const Scratch& s, const Table& t, i64 key, i32 a, i32 b,
                                         i32 turn, i32 n_moved, Tally& tally) {
    const i32 v = node_of(key);
    const Nets nets = nets_of(g, v);  // on their way meanwhile
    const i32 net = net_at(g, nets, lane_index());
    const i64 gain = look_again(g, s, t, v, b);
    __syncwarp();
    if (gain < gain_of(key)) {
        if (lane_index() == 0) t.failed[b] = tally.failed_in = turn;
        return;
    }
    move_node(f, g, s, t, v, a, b, nets, net, tally.marked, [&] {
        put_in(g, t, v, a, b);
        if (lane_index() != 0) return;
        const i32 place = n_moved + static_cast<i32>(atomicAdd(&tally.n_moved, 1u));
        s.moved[place] = v;
        s.origins[place] = a;
        s.turns[place] = turn;
        t.seen[v] = MOVED;
        add_shared(&tally.gained, gain);
    });
}

// One pass of moves, many a turn (see `matched_pass` of the twin); returns what it gained. The tables are
// true afterwards only if they are `needed`. All of a turn is inlined: a call would save the registers of all threads.
__device__ __noinline__ i64 matched_pass(const Fine& f, const Graph& g, const Scratch& s, const Table& table, i64 patience,
                                         i64 turns, bool needed) {
    __shared__ Tally tallies[2];  // of even and odd turns
    __shared__ u32 lengths[2];    // of the players' lists
    __shared__ i64 tops[32];
    const Table t = table;  // in registers
    const i32 k = t.n_parts, lane = lane_index();
    #pragma unroll 1
    for (i32 v = threadIdx.x; v < g.n; v += blockDim.x) t.seen[v] = -1;
    #pragma unroll 1
    for (i32 i = threadIdx.x; i < words_of(g.n); i += blockDim.x) t.listed[i] = 0;
    #pragma unroll 1
    for (i32 p = threadIdx.x; p < k; p += blockDim.x) {
        t.failed[p] = -1;
        t.best[p] = t.best[k + p] = t.best[2 * k + p] = t.best[3 * k + p] = NONE;
    }
    if (threadIdx.x == 0) lengths[0] = 0;
    __syncthreads();
    i32 n_moved = 0, n_kept = 0, n_queued = g.n;
    i64 current = 0, most = 0;
    #pragma unroll 1
    for (i32 turn = 0; n_moved - n_kept <= patience && turn < turns; ++turn) {
        Tally& tally = tallies[turn & 1];
        u16 *players = t.players + (turn & 1) * g.n, *next = t.players + (~turn & 1) * g.n;
        u32 *n_players = lengths + (turn & 1), *n_next = lengths + (~turn & 1);
        if (threadIdx.x == 0) {
            tally = {0, 0, 0, 0, {0, 0}, -1, 0};
            *n_next = 0;
        }
        look_at_nodes(g, s, t, turn == 0, n_queued, players, n_players);
        __syncthreads();
        i64 *best = t.best + 2 * (turn & 1) * k, *second = best + k;
        const i32 n_listed = static_cast<i32>(*n_players);
        #pragma unroll 1
        for (i32 base = threadIdx.x - lane; base < n_listed; base += blockDim.x) {  // who still gains stays on the list
            const i32 v = base + lane < n_listed ? players[base + lane] : 0;
            const bool gains = base + lane < n_listed && t.keys[v] > LEAST_GAIN;
            const i32 place = place_in(n_next, gains);
            if (gains) {
                next[place] = static_cast<u16>(v);
                ask_for_both(t, best, v);
            } else if (base + lane < n_listed) {
                atomicAnd(t.listed + (v >> 5), ~(1u << (v & 31)));
            }
        }
        if (n_listed > 0) __syncthreads();
        i32 n_in = static_cast<i32>(*n_next);  // in play
        i64 bar = LEAST_GAIN + 1;
        if (n_in == 0) {  // nobody gains: those who lose little
            i64 top = NONE;
            #pragma unroll 1
            for (i32 v = threadIdx.x; v < g.n; v += blockDim.x) top = larger(top, t.keys[v]);
            top = largest_of_warp(top);
            if (lane == 0) tops[warp_index()] = top;
            __syncthreads();
            top = largest_of_warp(lane < n_warps() ? tops[lane] : NONE);
            if (top == NONE) break;
            bar = 4 * gain_of(top) * (1ll << ID_BITS);
            next = players;
            #pragma unroll 1
            for (i32 base = threadIdx.x - lane; base < g.n; base += blockDim.x) {
                const i32 v = base + lane;
                const bool plays = v < g.n && t.keys[v] >= bar;
                if (__ballot_sync(ALL_LANES, plays) == 0) continue;
                const i32 place = place_in(&tally.n_losers, plays);
                if (!plays) continue;
                next[place] = static_cast<u16>(v);
                ask_for_both(t, best, v);
            }
            __syncthreads();
            n_in = static_cast<i32>(tally.n_losers);
        }
        #pragma unroll 1
        for (i32 i = threadIdx.x; i < n_in; i += blockDim.x) {
            const i32 v = next[i];
            if (!is_taken(t, best, t.parts[v]) && !is_taken(t, best, t.wishes[v])) ask_for_both(t, second, v);
        }
        __syncthreads();
        #pragma unroll 1
        for (i32 base = threadIdx.x - lane; base < n_in; base += blockDim.x) {
            const i32 v = base + lane < n_in ? next[base + lane] : 0, a = t.parts[v], b = t.wishes[v];
            const bool chosen = base + lane < n_in && (is_best(best, v, a, b) || is_best(second, v, a, b));
            const i32 place = place_in(&tally.n_chosen, chosen);
            if (chosen) t.queue[place] = static_cast<u16>(v);  // nobody else needs the queue now
        }
        __syncthreads();
        #pragma unroll 1
        for (i32 i = warp_index(); i < static_cast<i32>(tally.n_chosen); i += n_warps()) {
            const i32 v = t.queue[i];
            try_move(f, g, s, t, t.keys[v], t.parts[v], t.wishes[v], turn, n_moved, tally);
        }
        __syncthreads();
        #pragma unroll 1
        for (i32 p = threadIdx.x; p < 2 * k; p += blockDim.x) best[p] = NONE;
        #pragma unroll 1
        for (i32 i = threadIdx.x; i < static_cast<i32>(tally.n_moved); i += blockDim.x) t.keys[s.moved[n_moved + i]] = NONE;
        #pragma unroll 1
        for (i32 base = threadIdx.x - lane; tally.failed_in == turn && base < n_in; base += blockDim.x) {
            const i32 v = base + lane < n_in ? next[base + lane] : 0;
            enqueue(s, t, v, turn, base + lane < n_in && t.failed[t.wishes[v]] == turn, &tally.n_queued);
        }
        spread_marks(f, g, s, t, tally.marked, turn, &tally.n_queued);
        __syncthreads();
        n_queued = static_cast<i32>(tally.n_queued);
        n_moved += static_cast<i32>(tally.n_moved);
        current += tally.gained;
        if (current > most) {
            most = current;
            n_kept = n_moved;
        }
    }
    __syncthreads();
    if (needed) {
        take_back(f, g, s, t, n_kept, n_moved);
    } else {
        #pragma unroll 1
        for (i32 i = n_kept + threadIdx.x; i < n_moved; i += blockDim.x) t.parts[s.moved[i]] = s.origins[i];
        __syncthreads();
    }
    return most;
}

#endif
