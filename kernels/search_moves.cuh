// Tables of a partition of a small level, and passes of moves on them. Written into search.cu.
#ifndef SNNMAP_SEARCH_MOVES_CUH
#define SNNMAP_SEARCH_MOVES_CUH

// ------------------------------------------------------------------------------------ tables

// Fills the tables and loads of a partition, with `gains` those of nodes too; returns its connectivity
// (constant apart).
// Parallel over nets (a warp each), their pins and sources. Deterministic: integer sums.
__device__ __noinline__ i64 fill_tables(const Fine& f, const Graph& g, const Scratch& s, const Table& t, const i32* parts,
                                        bool gains) {
    __shared__ u64 connectivity;
    const i32 lane = lane_index(), k = t.n_parts;
    const i64 entries = f.n_nets * k;
    for (i64 i = threadIdx.x; i < entries; i += blockDim.x) s.finds[i] = s.sources[i] = s.pins[i] = 0;
    for (i32 i = threadIdx.x; i < k * N_LOADS; i += blockDim.x) t.loads[i] = 0;
    if (gains) {
        for (i32 i = threadIdx.x; i < g.n * k; i += blockDim.x) s.gains[i] = 0;
        for (i32 i = threadIdx.x; i < g.n * k * N_DISTINCT; i += blockDim.x) s.covered[i] = 0;
    }
    if (threadIdx.x == 0) connectivity = 0;
    __syncthreads();
    for (i32 v = threadIdx.x; v < g.n; v += blockDim.x)
        for (i32 r = 0; r < N_ADDITIVE; ++r)
            add64(t.loads + parts[v] * N_LOADS + r, g.alone[static_cast<i64>(v) * N_LOADS + r]);
    i64 total = 0;
    for (i64 net = warp_index(); net < f.n_nets; net += n_warps()) {
        const i64 first = f.net_offsets[net], end = g.net_ends[net], row = net * k;
        const i64 first_source = f.source_offsets[net], end_source = f.source_offsets[net + 1];
        const i64 weight = f.net_weights[net];
        for (i64 j = first_source + lane; j < end_source; j += 32)
            add64(s.sources + row + parts[g.source_nodes[j]], f.source_weights[j]);
        __syncwarp();
        for (i64 j = first_source + lane; j < end_source; j += 32) {
            const i32 p = parts[g.source_nodes[j]];
            s.finds[row + p] = s.sources[row + p];
        }
        __syncwarp();
        for (i64 j = first + lane; j < end; j += 32) {
            const i32 p = parts[g.net_pins[j]];
            if (atomicAdd(s.pins + row + p, 1) != 0) continue;
            s.finds[row + p] = weight;
            total += weight - s.sources[row + p];
            for (i32 d = 0; d < N_DISTINCT; ++d)
                add64(t.loads + p * N_LOADS + N_ADDITIVE + d, f.counts[net * N_DISTINCT + d]);
        }
        __syncwarp();
        for (i32 start = 0; gains && start < k; start += 32) {
            const i32 own = start + lane;
            const i64 finds = own < k ? s.finds[row + own] : 0;
            const bool pinned = own < k && s.pins[row + own] > 0;
            const u32 pins = __ballot_sync(ALL_LANES, pinned);
            for (u32 left = __ballot_sync(ALL_LANES, pinned || finds != 0); left != 0; left &= left - 1) {
                const i32 bit = __ffs(left) - 1, p = start + bit;
                const i64 found = __shfl_sync(ALL_LANES, finds, bit);
                for (i64 j = first + lane; j < end; j += 32) {
                    const i32 place = g.net_pins[j] * k + p;
                    add64(s.gains + place, found);
                    for (i32 d = 0; (pins >> bit & 1) && d < N_DISTINCT; ++d)
                        atomicAdd(s.covered + place * N_DISTINCT + d, static_cast<i32>(f.counts[net * N_DISTINCT + d]));
                }
                for (i64 j = first_source + lane; (pins >> bit & 1) && j < end_source; j += 32)
                    if (g.source_gains[j] != 0) add64(s.gains + g.source_nodes[j] * k + p, g.source_gains[j]);
            }
        }
    }
    total = sum_warp(total);
    if (lane == 0) atomicAdd(&connectivity, static_cast<u64>(total));
    __syncthreads();
    total = static_cast<i64>(connectivity);
    __syncthreads();
    return total;
}

struct Found {
    i32 target;  // -1: none
    i64 gain;
};

// Best move of a node by the soft objective; by a whole warp, a part each lane.
// Reads the node's row of the table of gains once. Deterministic: maximum of (gain, hash, id).
__device__ __noinline__ Found find_move(const Fine& f, const Graph& g, const Scratch& s, const Table& t,
                                        const i32* parts, i32 v) {
    const i32 lane = lane_index(), k = t.n_parts, a = parts[v];
    const i64 first = g.node_offsets[v], last = g.node_offsets[v + 1];
    const i64* alone = g.alone + static_cast<i64>(v) * N_LOADS;
    const i64* gains = s.gains + v * k;
    const i32* covered = s.covered + v * k * N_DISTINCT;
    i64 stays = 0, freed[N_DISTINCT + 1] = {0};
    #pragma unroll 4
    for (i64 j = first + lane; j < last; j += 32) {
        const i64 net = g.node_nets[j], at = net * k + a;
        const bool alone_there = s.pins[at] == 1;
        const i64 lost = s.sources[at] - f.net_weights[net] - g.selfs[j];
        stays += alone_there ? lost : 0;
        for (i32 d = 0; d < N_DISTINCT; ++d) freed[d] += alone_there ? f.counts[net * N_DISTINCT + d] : 0;
    }
    stays = sum_warp(stays);
    i64 relief = 0;
    for (i32 r = 0; r < N_LOADS; ++r) {
        const i64 over = t.loads[a * N_LOADS + r] - t.limits[r];
        if (over <= 0) continue;
        const i64 amount = r < N_ADDITIVE ? alone[r] : sum_warp(freed[r < N_ADDITIVE ? 0 : r - N_ADDITIVE]);
        relief += t.prices[r] * smaller(over, amount);
    }
    Best best = {NONE, 0, -1, 0};
    for (i32 p = lane; p < k; p += 32) {
        const i64 found = gains[p];
        if (p == a || found < (relief == 0 ? 1 : 0)) continue;
        bool fits = true;
        i64 value = found;
        for (i32 r = 0; r < N_LOADS; ++r) {
            i64 added = alone[r];
            if (r >= N_ADDITIVE) added -= covered[p * N_DISTINCT + r - N_ADDITIVE];
            const i64 over = t.loads[p * N_LOADS + r] + added - t.limits[r];
            if (over <= 0) continue;
            fits &= t.prices[r] > 0 && over <= t.limits[r] >> 2;
            value -= t.prices[r] * smaller(over, added);
        }
        if (!fits || value < best.value) continue;
        const Best candidate = {value, scramble(static_cast<u64>(static_cast<i64>(p) * 1000003 + v), t.seed), p, 0};
        if (best.below(candidate)) best = candidate;
    }
    best = best_of_group<false>(best);
    return {best.id, best.value - gains[a] - stays + relief};
}

// ------------------------------------------------------------------------------------ moves

__device__ __forceinline__ void look_again(const Fine& f, const Graph& g, const Scratch& s, const Table& t,
                                           const i32* parts, i32 v) {
    const Found found = find_move(f, g, s, t, parts, v);
    if (lane_index() != 0) return;
    s.wishes[v] = found.target;
    s.keys[v] = found.target < 0 ? NONE : found.gain;
}

// Moves a node to part b, keeps the tables of nets and the loads true, and marks the nets that may change what
// others find; by a whole warp, a net each lane. Other moves at the same time concern other parts.
__device__ void move_node(const Fine& f, const Graph& g, const Scratch& s, const Table& t, i32* parts, i32 v, i32 b,
                          u32* n_marks) {
    const i32 lane = lane_index(), k = t.n_parts, a = parts[v];
    const i64 first = g.node_offsets[v], last = g.node_offsets[v + 1];
    const i64 first_out = g.out_offsets[v], last_out = g.out_offsets[v + 1];
    for (i64 j = first_out + lane; j < last_out; j += 32) {
        i64* row = s.sources + static_cast<i64>(g.out_nets[j]) * k;
        add64(row + a, -g.out_weights[j]);
        add64(row + b, g.out_weights[j]);
    }
    if (lane < N_ADDITIVE) {
        const i64 amount = g.alone[static_cast<i64>(v) * N_LOADS + lane];
        add64(t.loads + a * N_LOADS + lane, -amount);
        add64(t.loads + b * N_LOADS + lane, amount);
    }
    __syncwarp();
    for (i64 base = first; base < last; base += 32) {
        const i64 j = base + lane;
        Mark mark = {0, 0, 0, a | b << 12};
        bool marked = false;
        if (j < last) {
            mark.net = g.node_nets[j];
            const i64 from = static_cast<i64>(mark.net) * k + a, to = static_cast<i64>(mark.net) * k + b;
            const i64 weight = f.net_weights[mark.net];
            const i32 left = --s.pins[from], now = ++s.pins[to];
            marked = left <= 1 || now <= 2;
            if (left == 0) {
                mark.parts |= 1 << 24;
                mark.from = s.sources[from] - weight;
                s.finds[from] = s.sources[from];
            }
            if (now == 1) {
                mark.parts |= 1 << 25;
                mark.to = weight - s.finds[to];
                s.finds[to] = weight;
            }
            for (i32 d = 0; d < N_DISTINCT; ++d) {
                const i64 count = f.counts[static_cast<i64>(mark.net) * N_DISTINCT + d];
                if (left == 0) add64(t.loads + a * N_LOADS + N_ADDITIVE + d, -count);
                if (now == 1) add64(t.loads + b * N_LOADS + N_ADDITIVE + d, count);
            }
        }
        const i32 place = place_in(n_marks, marked);
        if (marked) s.marks[place] = mark;
    }
    __syncwarp();
    for (i64 base = first_out; base < last_out; base += 32) {
        const i64 j = base + lane;
        Mark mark = {0, 0, 0, a | b << 12};
        bool marked = false;
        if (j < last_out) {
            mark.net = g.out_nets[j];
            i64* changes[2] = {&mark.from, &mark.to};
            for (i32 side = 0; side < 2; ++side) {
                const i64 at = static_cast<i64>(mark.net) * k + (side == 0 ? a : b);
                if (s.pins[at] > 0) continue;
                marked = true;  // a node may be a source of the net several times: only the first finds a change
                const i64 now = s.sources[at];
                *changes[side] = now - static_cast<i64>(atomicExch(reinterpret_cast<u64*>(s.finds + at), static_cast<u64>(now)));
            }
        }
        const i32 place = place_in(n_marks, marked);
        if (marked) s.marks[place] = mark;
    }
    if (lane == 0) parts[v] = b;
}

// Puts a node on the list of those to look at, unless it is there or has moved.
__device__ __forceinline__ void enqueue(const Scratch& s, i32 v, i32 turn, bool wanted, u32* length) {
    wanted = wanted && atomicMax(s.seen + (wanted ? v : 0), turn) < turn;
    const i32 place = place_in(length, wanted);
    if (wanted) s.queue[place] = v;
}

// Tells the nodes of marked nets what they find more, and puts them on the list of those to look at if
// `turn` is one. Parallel over nets (a warp each), their pins and sources.
__device__ __noinline__ void spread_marks(const Fine& f, const Graph& g, const Scratch& s, const Table& t, u32 n_marks,
                                          i32 turn, u32* n_queued) {
    const i32 lane = lane_index(), k = t.n_parts;
    for (u32 i = warp_index(); i < n_marks; i += n_warps()) {
        const Mark mark = s.marks[i];
        const i32 a = mark.parts & 0xFFF, b = mark.parts >> 12 & 0xFFF;
        const bool left = mark.parts >> 24 & 1, came = mark.parts >> 25 & 1;
        const i64 first = f.net_offsets[mark.net], n_pins = g.net_ends[mark.net] - first;
        const i64 first_source = f.source_offsets[mark.net];
        const i64 n = n_pins + (left || came ? f.source_offsets[mark.net + 1] - first_source : 0);
        for (i64 base = 0; base < n; base += 32) {
            const i64 j = base + lane;
            i64 more[2] = {mark.from, mark.to};
            i32 v = 0;
            if (j < n_pins) {
                v = g.net_pins[first + j];
                for (i32 d = 0; d < N_DISTINCT; ++d) {
                    const i32 count = static_cast<i32>(f.counts[static_cast<i64>(mark.net) * N_DISTINCT + d]);
                    if (left) atomicAdd(s.covered + (v * k + a) * N_DISTINCT + d, -count);
                    if (came) atomicAdd(s.covered + (v * k + b) * N_DISTINCT + d, count);
                }
            } else if (j < n) {
                v = g.source_nodes[first_source + j - n_pins];
                const i64 weight = g.source_gains[first_source + j - n_pins];
                more[0] = left ? -weight : 0;
                more[1] = came ? weight : 0;
            }
            if (j < n && more[0] != 0) add64(s.gains + v * k + a, more[0]);
            if (j < n && more[1] != 0) add64(s.gains + v * k + b, more[1]);
            enqueue(s, v, turn, turn >= 0 && j < n, n_queued);
        }
    }
}

// One pass of moves, many a turn (see `matched_pass` of the twin); returns what it gained. The tables are
// true afterwards only if they are `needed`.
__device__ __noinline__ i64 matched_pass(const Fine& f, const Graph& g, const Scratch& s, const Table& t, i32* parts,
                            i64 patience, bool needed) {
    __shared__ u32 n_chosen, n_new, n_queued, n_marks;
    __shared__ u64 gained;
    const i32 k = t.n_parts;
    for (i32 v = threadIdx.x; v < g.n; v += blockDim.x) s.seen[v] = -1;
    for (i32 p = threadIdx.x; p < k; p += blockDim.x) t.failed[p] = -1;
    for (i32 v = warp_index(); v < g.n; v += n_warps()) look_again(f, g, s, t, parts, v);
    i32 n_moved = 0, n_kept = 0;
    i64 current = 0, best = 0;
    for (i32 turn = 0; n_moved - n_kept <= patience; ++turn) {
        for (i32 p = threadIdx.x; p < k; p += blockDim.x) {
            t.best[p] = NONE;
            t.first[p] = MOVED;
        }
        if (threadIdx.x == 0) n_chosen = n_new = n_queued = n_marks = gained = 0;
        __syncthreads();
        i64 top = NONE;
        for (i32 v = threadIdx.x; v < g.n; v += blockDim.x) top = larger(top, s.keys[v]);
        top = largest_of_block(top);
        if (top == NONE) break;
        const i64 bar = top > 0 ? 1 : 4 * top;
        for (i32 v = threadIdx.x; v < g.n; v += blockDim.x) {
            const i64 key = s.keys[v];
            if (key < bar) continue;
            atomicMax(t.best + parts[v], key);
            atomicMax(t.best + s.wishes[v], key);
        }
        __syncthreads();
        for (i32 v = threadIdx.x; v < g.n; v += blockDim.x) {
            const i64 key = s.keys[v];
            if (key < bar) continue;
            if (t.best[parts[v]] == key) atomicMin(t.first + parts[v], v);
            if (t.best[s.wishes[v]] == key) atomicMin(t.first + s.wishes[v], v);
        }
        __syncthreads();
        for (i32 p = threadIdx.x; p < k; p += blockDim.x) {  // a chosen node is listed by the part it leaves
            const i32 v = t.first[p];
            if (v != MOVED && parts[v] == p && t.first[s.wishes[v]] == v) t.chosen[atomicAdd(&n_chosen, 1u)] = v;
        }
        __syncthreads();
        for (u32 i = warp_index(); i < n_chosen; i += n_warps()) {
            const i32 v = t.chosen[i];
            const Found found = find_move(f, g, s, t, parts, v);
            if (lane_index() != 0) continue;
            if (found.target != s.wishes[v] || found.gain < s.keys[v]) {
                t.failed[s.wishes[v]] = turn;
                continue;
            }
            const i32 place = n_moved + static_cast<i32>(atomicAdd(&n_new, 1u));
            s.moved[place] = v;
            s.origins[place] = parts[v];
            s.turns[place] = turn;
            s.seen[v] = MOVED;
            s.keys[v] = NONE;
            atomicAdd(&gained, static_cast<u64>(found.gain));
        }
        __syncthreads();
        const i32 n_more = static_cast<i32>(n_new);
        for (i32 i = warp_index(); i < n_more; i += n_warps())
            move_node(f, g, s, t, parts, s.moved[n_moved + i], s.wishes[s.moved[n_moved + i]], &n_marks);
        for (i32 base = 0; base < g.n; base += blockDim.x) {
            const i32 v = base + threadIdx.x;
            const bool in_play = v < g.n && s.keys[v] >= bar;
            enqueue(s, v, turn, in_play && t.failed[s.wishes[in_play ? v : 0]] == turn, &n_queued);
        }
        __syncthreads();
        spread_marks(f, g, s, t, n_marks, turn, &n_queued);
        __syncthreads();
        for (u32 i = warp_index(); i < n_queued; i += n_warps()) look_again(f, g, s, t, parts, s.queue[i]);
        n_moved += n_more;
        current += static_cast<i64>(gained);
        if (current > best) {
            best = current;
            n_kept = n_moved;
        }
        __syncthreads();
    }
    if (!needed)
        for (i32 i = n_kept + threadIdx.x; i < n_moved; i += blockDim.x) parts[s.moved[i]] = s.origins[i];
    while (needed && n_moved > n_kept) {  // a turn at once, the last first
        i32 first = n_moved - 1;
        while (first > n_kept && s.turns[first - 1] == s.turns[n_moved - 1]) --first;
        __syncthreads();
        if (threadIdx.x == 0) n_marks = 0;
        __syncthreads();
        for (i32 i = first + warp_index(); i < n_moved; i += n_warps())
            move_node(f, g, s, t, parts, s.moved[i], s.origins[i], &n_marks);
        __syncthreads();
        spread_marks(f, g, s, t, n_marks, -1, &n_queued);
        n_moved = first;
    }
    __syncthreads();
    return best;
}

#endif
