// SPDX-License-Identifier: Apache-2.0
// Consumer: a warpgroup with 64 rows of Q, which issues both products and does the softmax between them.
//
// The blocks of all tasks are one stream. A step issues the scores of block j and, behind them, the value
// product of block j - 1; the softmax of j runs under that product. Where j begins a new task, j - 1 ended
// the one before, whose O leaves while the other warpgroups compute: the tensor cores see no seam between
// tasks.
//
//   tensor cores   | S(j) PV(j-1) | other warpgroups | S(j+1) PV(j) |
//   this softmax           [ S(j) -> P(j) ............ ]       [ S(j+1) ...
//
// Named barriers let the warpgroups issue in turn; tensor cores serve in order of issue.
#pragma once

#include <math_constants.h>

#include "../../../ptx/stmatrix.cuh"
#include "../../../ptx/wgmma.cuh"
#include "../cta.cuh"
#include "../softmax.cuh"

namespace fa4::hopper {

// Shared-memory matrix descriptors of a tile. The upper word is one constant: 1024 bytes from 8 rows to the
// next 8, 128-byte swizzle. The lower word is the start address in units of 16 bytes, and the leading offset
// from bit 16.
struct SharedDescriptor {
  static constexpr uint64_t kUpper = static_cast<uint64_t>((8 * kRowBytes >> 4) | 1u << 30) << 32;

  // K-major (Q, K): 16 elements along the head dimension are 32 bytes; four such steps fill a half. The
  // leading offset is unused.
  __device__ static __forceinline__ uint32_t k_major(uint32_t tile) { return start(tile) | 1u << 16; }
  template <int half_bytes>
  __device__ static __forceinline__ uint64_t k_major_step(uint32_t lower, int step) {
    constexpr int steps_per_half = kPieceColumns / kMmaK;
    return kUpper |
           (lower +
            ((step / steps_per_half * half_bytes + step % steps_per_half * (kMmaK * kElementBytes)) >> 4));
  }
  // MN-major (V): 16 keys are 16 rows; the leading offset leads from one half of the head dimension to the
  // other.
  template <int half_bytes>
  __device__ static __forceinline__ uint32_t mn_major(uint32_t tile) {
    return start(tile) | static_cast<uint32_t>(half_bytes >> 4) << 16;
  }
  __device__ static __forceinline__ uint64_t mn_major_step(uint32_t lower, int step) {
    return kUpper | (lower + (step * kMmaK * kRowBytes >> 4));
  }

 private:
  // Bits from 24 on may say which CTA of a cluster.
  __device__ static __forceinline__ uint32_t start(uint32_t tile) { return (tile & 0x3ffffu) >> 4; }
};

// Index of the thread in its warpgroup, read where it is used, once a task: what follows from it need not
// live in registers in between. Unsigned, so that divisions are shifts.
__device__ __forceinline__ uint32_t warpgroup_thread() {
  return ptx::tid_x_again() % kWarpgroupThreads;
}

template <Config config>
__device__ __forceinline__ void consumer_role(const Cta<config>& cta, int consumer) {
  using L = Layout<config>;
  constexpr ptx::MmaType kMmaType = config.element == ElementType::f16 ? ptx::MmaType::f16 : ptx::MmaType::bf16;
  using QRecord = typename L::QRecord;
  constexpr int kScores = config.block_keys / 2;  // of a thread
  constexpr int kOutputs = config.v_dim / 2;
  const AttentionParams& params = cta.params;
  const float scale_log2 = params.scale_log2;
  const int lane = static_cast<int>(threadIdx.x) % 32;

  float s[kScores], o[kOutputs];
  uint32_t p0[kScores / 2], p1[L::two_p ? kScores / 2 : 1];
  RowState state;
  auto q = PipelineState<kQSlots>::consumer();
  auto kv = KvCursor<config>::consumer();

  // The next slot in the order of the ring. The first question to its barrier is put early, and the answer,
  // used late.
  struct KvSlot {
    int index;
    uint32_t phase;
    bool landed;
  };
  const auto ask = [&](const typename KvCursor<config>::Slot& slot) {
    return KvSlot{slot.index, slot.phase, ptx::mbarrier_test_wait_parity(cta.bar.kv_full.address(slot.index), slot.phase)};
  };
  const auto next_k = [&] {
    const KvSlot slot = ask(kv.k());
    kv.advance_k();
    return slot;
  };
  const auto next_v = [&] {
    const KvSlot slot = ask(kv.v());
    kv.advance_v();
    return slot;
  };
  const auto wait_kv = [&](const KvSlot& slot) {
    if (!slot.landed) cta.bar.kv_full.wait(slot.index, slot.phase);
  };
  // For what is .aligned next: lanes may have seen it land at different times. (The barrier of the order joins, too.)
  const auto wait_kv_warp = [&](const KvSlot& slot) {
    wait_kv(slot);
    ptx::bar_warp_sync();
  };
  const auto release_kv = [&](int slot) {
    cta.bar.kv_empty.arrive_if(slot, lane == 0);
  };

  // The order of issue goes round the consumers.
  constexpr int pair = 2 * kWarpgroupThreads;
  const auto order_wait = [&] { ptx::bar_sync<pair>(kOrderBarrier + consumer); };
  const auto order_pass = [&] {
    ptx::bar_arrive<pair>(kOrderBarrier + (consumer + 1 == L::consumers ? 0 : consumer + 1));
  };
  if (consumer == L::consumers - 1) order_pass();

  const auto issue_scores = [&](int q_slot, int k_slot) {  // S = Q K^T
    uint32_t q_tile = SharedDescriptor::k_major(cta.q_tile(q_slot, consumer));
    if constexpr (L::q_tiles == 1) ptx::renewed(q_tile);  // or all steps' descriptors would live in registers
    const uint32_t k_tile = SharedDescriptor::k_major(cta.k_tile(k_slot));
    ptx::tied(s);
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < L::score_steps; ++step) {
      ptx::wgmma_ss<kMmaType>(
          s, SharedDescriptor::template k_major_step<L::q_piece_bytes>(q_tile, step),
          SharedDescriptor::template k_major_step<L::kv_piece_bytes>(k_tile, step), step > 0);
    }
    ptx::wgmma_commit_group();
  };
  using Probabilities = uint32_t[kScores / 2];
  const auto issue_values = [&](Probabilities& p, int v_slot, bool accumulate) {  // O (+)= P V
    const uint32_t v_tile = SharedDescriptor::template mn_major<L::kv_piece_bytes>(cta.v_tile(v_slot));
    ptx::tied(p);
    ptx::tied(o);
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < L::value_steps; ++step) {
      ptx::wgmma_rs<kMmaType>(o, p + 4 * step, SharedDescriptor::mn_major_step(v_tile, step),
                                       step > 0 || accumulate);
    }
    ptx::wgmma_commit_group();
  };

  // Of the 64 rows, a thread holds this one and the eighth after it.
  const auto own_row = [](uint32_t thread) { return static_cast<int>(thread / 32 * 16 + thread % 32 / 4); };

  // What O is multiplied by: 1 / sum, or 0 for a row that saw no key. The LSE goes to global memory. Other sums are about 1 or
  // more, as the key with the maximum counts, and at most kRescaleSum for each lane and block: nothing flushes.
  struct Divisor {
    float inverse[kThreadRows];
  };
  const auto finish_rows = [&](const RowState& done, int q_slot, const QRecord& known_task, int32_t first_position) {
    const QRecord task = config.general() ? cta.load_task(q_slot) : known_task;
    constexpr float ln2 = 0.693147181f;
    const uint32_t thread = warpgroup_thread();
    Divisor divisor;
    float lse[kThreadRows];
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) {
      const float sum = quad_sum(done.sum[i]);
      SinkSum with_sink{sum, 1.0f, false};
      float sink = 0.0f;
      if constexpr (config.general()) {
        if (params.general.sinks != nullptr) {
          sink = params.general.sinks[task.first_head + ((own_row(thread) + 8 * i) & ((1 << params.packed_heads_log2) - 1))];
          with_sink = add_sink(sum, done.maximum[i], sink, scale_log2);
        }
      }
      const float total = with_sink.total;
      divisor.inverse[i] = sum == 0.0f ? 0.0f : ptx::rcp_approx_ftz(total);
      if constexpr (config.general()) divisor.inverse[i] *= with_sink.keys;
      lse[i] = total == 0.0f
                   ? -CUDART_INF_F
                   : with_sink.is_base ? sink + __fmul_rn(ptx::lg2_approx_ftz(total), ln2)
                                       : __fmaf_rn(done.maximum[i], params.scale, __fmul_rn(ptx::lg2_approx_ftz(total), ln2));
    }
    if (params.lse != nullptr && thread % 4 == 0) {
      const auto entry = cta.load_entry(q_slot);
      float* const first =
          params.lse + task.batch * params.lse_batch_stride + task.first_head * params.lse_head_stride + entry.first_row +
          first_position;
#pragma unroll
      for (int i = 0; i < kThreadRows; ++i) {
        const int row = own_row(thread) + 8 * i;
        const int32_t position = row >> params.packed_heads_log2;
        const int64_t head = row & ((1 << params.packed_heads_log2) - 1);
        if (first_position + position < entry.seq_q) first[head * params.lse_head_stride + position] = lse[i];
      }
    }
    ptx::bar_warp_sync();
    return divisor;
  };
  // O to its place, and on to the store warp. A row that saw no key is 0 whatever O holds.
  const auto finish_o = [&](const Divisor& divisor, int q_slot, const KvSlot& o_slot) {
    const uint32_t tile = cta.o_tile(q_slot, consumer, o_slot.index);
    const uint32_t thread = warpgroup_thread();
    if constexpr (L::o_in_ring) {
      wait_kv_warp(o_slot);
      if (thread == 0) ptx::st_shared_b32(cta.o_slot(q_slot, consumer), o_slot.index);
    }
    const uint32_t matrix_row = thread / 32 * 16 + thread % 16;
    const auto store = [&](auto with_empty_rows) {
#pragma unroll
      for (int g = 0; g < config.v_dim / 8; g += 2) {  // two groups of 8 columns
        uint32_t packed[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const int i = 4 * (g + k / 2) + 2 * (k % 2);
          packed[k] = pack<config.element>(__fmul_rn(o[i], divisor.inverse[k % 2]),
                                    __fmul_rn(o[i + 1], divisor.inverse[k % 2]));
          if (decltype(with_empty_rows)::value && divisor.inverse[k % 2] == 0.0f) packed[k] = 0;
        }
        const uint32_t piece = g + thread % 32 / 16;
        ptx::stmatrix_x4(tile + piece / 8 * L::q_piece_bytes + matrix_row * kRowBytes +
                             ((piece % 8) ^ (matrix_row % 8)) * 16,
                         packed);
      }
    };
    if (__builtin_expect(ptx::vote_sync_any(divisor.inverse[0] == 0.0f | divisor.inverse[1] == 0.0f), false))
      store(std::true_type{});
    else
      store(std::false_type{});
    ptx::fence_proxy_async_shared_cta();
    ptx::bar_warp_sync();
    cta.bar.o_full.arrive_if(q_slot * L::consumers + consumer, lane == 0);
  };

  // A negative softmax scale: the scores change their sign with Q.
  const auto negate_q = [&](int q_slot) {
    const uint32_t tile = cta.q_tile(q_slot, consumer);
    for (int i = 0; i < config.q_tile_bytes(); i += 16 * kWarpgroupThreads) {
      const uint32_t at = tile + i + 16 * warpgroup_thread();
      constexpr int32_t signs = static_cast<int32_t>(0x80008000u);
      int32_t x[4];
      ptx::ld_shared_v4(x[0], x[1], x[2], x[3], at);
      ptx::st_shared_v4(at, x[0] ^ signs, x[1] ^ signs, x[2] ^ signs, x[3] ^ signs);
    }
    ptx::fence_proxy_async_shared_cta();  // the barrier of the order, before the product, joins the warpgroup
  };

  const auto wait_q = [&] {
    cta.bar.q_full.wait(q.index * L::consumers + consumer, q.phase);
    if (params.negate_scores != 0) negate_q(q.index);
  };
  if (!config.general() && !cta.has_task(0)) return;  // of a general kernel every CTA has one
  int32_t next_wave = 1;
  bool more = false;  // asked long before the seam, which would have to wait for the answer. In a general kernel the record says it
  if constexpr (!config.general()) more = cta.has_task(next_wave);
  QRecord task{};
  int32_t first_position = 0, block = 0;
  int32_t first_block = 0;  // that the task visits: where there is one Q tile
  int32_t unmasked_end = 0;  // the blocks below it, but those at the begin of a band, run no mask code
  const Mask<config.mask> task_mask = mask_of<config>(params);
  constexpr bool bounded_below = Mask<config.mask>::bounded_below;
  // The blocks of the task, parted for this warpgroup: by those that all its rows see entirely. Seldom asked, and not kept.
  const auto regions = [&] {
    const int32_t last_position = first_position + (kTileRows >> params.packed_heads_log2) - 1;
    BlockRegions visited{};
    auto entry = cta.load_entry(q.index);
    if constexpr (config.general()) {  // the same in all lanes, and the compiler should know
      entry.seq_q = __shfl_sync(0xffffffffu, entry.seq_q, 0);
      entry.seq_kv = __shfl_sync(0xffffffffu, entry.seq_kv, 0);
      visited.begin = __shfl_sync(0xffffffffu, entry.blocks_begin, 0);
    }
    return task_mask.template regions<config.block_keys>(visited, first_position, last_position, entry.seq_q, entry.seq_kv);
  };
  const auto needs_mask = [&](int32_t block) {
    return block >= unmasked_end || (bounded_below && block < regions().unmasked_begin);
  };

  const auto mask = [&](int32_t block) {
    const uint32_t thread = warpgroup_thread();
    const auto entry = cta.load_entry(q.index);
    const int32_t first_key = block * config.block_keys;
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) {
      const int32_t position = first_position + ((own_row(thread) + 8 * i) >> params.packed_heads_log2);
      const KeyRange visible = task_mask.keys(position, entry.seq_q, entry.seq_kv);
      mask_row<bounded_below>(s, i, visible.begin - first_key, visible.end - first_key, static_cast<int>(thread % 4));
    }
    if constexpr (!L::two_p) ptx::bar_warp_sync();  // else the vote of softmax joins the lanes, which may differ here
  };
  // Softcap or ALiBi, of all scores of the block in `s`.
  const auto adjust = [&](int32_t block) {
    if constexpr (config.general()) {
      if (params.general.score == ScoreKind::plain) return;
      const uint32_t thread = warpgroup_thread();
      const auto entry = cta.load_entry(q.index);
      const QRecord of_slot = cta.load_task(q.index);
      Task place{};
      place.batch = of_slot.batch, place.seq_q = entry.seq_q, place.seq_kv = entry.seq_kv;
      Bias bias[kThreadRows];
#pragma unroll
      for (int i = 0; i < kThreadRows; ++i) {
        const int row = own_row(thread) + 8 * i;
        bias[i] = bias_of(params, place, first_position + (row >> params.packed_heads_log2),
                          of_slot.first_head + (row & ((1 << params.packed_heads_log2) - 1)));
        bias[i].diagonal -= static_cast<float>(block * config.block_keys + 2 * static_cast<int>(thread % 4));
      }
#pragma unroll
      for (int i = 0; i < kScores; ++i) s[i] = adjusted(s[i], params, bias[i / 2 % 2], static_cast<float>(i / 4 * 8 + i % 2));
    }
  };
  // The block in `s` by its own maximum: P to `to`, and O's factor.
  const auto softmax_again = [&](Probabilities& to, float(&partial)[kThreadRows], float(&factor)[kThreadRows]) {
    float highest[kThreadRows], subtrahend[kThreadRows], offset[kThreadRows];
    row_maximum(s, highest);
    state.move_maximum(partial, highest, scale_log2, factor, subtrahend, offset);
    if (ptx::vote_sync_any(subtrahend[0] != 0.0f | subtrahend[1] != 0.0f)) [[unlikely]] subtract(s, subtrahend);
    exponentials<config.element>(s, to, scale_log2, offset, partial);
  };
  // The same, where the maximum can stay without it. True if a row of this warp has moved, else all factors are 1.
  const auto softmax = [&](Probabilities& to, float(&factor)[kThreadRows]) {
    float partial[kThreadRows];
    exponentials<config.element>(s, to, scale_log2, state.offset, partial);
    // This branch also keeps ptxas from moving the exponentials behind the wait for the value product that
    // they run beside.
    const bool again = ptx::vote_sync_any(RowState::unsettled(partial[0]) | RowState::unsettled(partial[1]));
    if (__builtin_expect(again, false)) {
      softmax_again(to, partial, factor);
#pragma unroll
      for (int i = 0; i < kThreadRows; ++i) state.sum[i] = __fmul_rn(state.sum[i], factor[i]);
    }
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) state.sum[i] = __fadd_rn(state.sum[i], partial[i]);
    return again;
  };
  // The same for the first block of a task, where all rows move. (Begun with the maximum of a few columns it was hardly faster,
  // and the largest p of a row, then not 1, was rounded: too much for O where one key dominates.)
  const auto first_softmax = [&](Probabilities& to) {
    float partial[kThreadRows] = {}, factor[kThreadRows];
    state.reset();
    softmax_again(to, partial, factor);
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) state.sum[i] = partial[i];
  };

  // Once Q has landed.
  const auto enter_task = [&] {
    task = cta.load_task(q.index);
    // The same in all lanes, and the compiler should know.
    first_position = __shfl_sync(0xffffffffu, task.first_position, 0) +
                     consumer * (kTileRows >> params.packed_heads_log2);
    block = __shfl_sync(0xffffffffu, task.blocks_end, 0) - 1;
    unmasked_end = regions().unmasked_end;
    if constexpr (bounded_below && L::q_tiles == 1) first_block = regions().begin;
  };

  // Where there is one Q tile, and these were the last scores of its task: the next Q may land.
  const auto release_q = [&] {
    if constexpr (L::q_tiles == 1) cta.bar.q_read.arrive_if(consumer, lane == 0 && block == first_block);
  };
  // The first block of all: nothing to overlap with in this warpgroup.
  KvSlot next, k, v;
  bool accumulate = false;
  const auto begin = [&](Probabilities& to) {
    wait_q();
    next = next_k();
    k = next;
    wait_kv(k);
    order_wait();
    issue_scores(q.index, k.index);
    order_pass();
    next = next_k();
    enter_task();
    ptx::wgmma_wait_group<0>();
    ptx::tied(s);
    release_kv(k.index);
    release_q();
    adjust(block);
    if (needs_mask(block)) mask(block);
    first_softmax(to);
  };

  // Scores of the next block, value product of the last one.
  const auto issue = [&](Probabilities& p) {
    k = next, v = next_v();
    wait_kv(k);
    order_wait();
    issue_scores(q.index, k.index);
    wait_kv_warp(v);
    issue_values(p, v.index, accumulate);
    order_pass();
  };
  // The turns of O, behind those of V. This consumer's.
  const auto next_o = [&] {
    KvSlot own{};
#pragma unroll
    for (int turn = 0; turn < L::o_turns; ++turn) {
      const KvSlot slot = next_v();
      if (turn == consumer / L::o_of_turn) own = slot;
    }
    return own;
  };
  const auto await_scores = [&] {
    ptx::wgmma_wait_group<1>();
    ptx::tied(s);
    release_kv(k.index);
    next = next_k();
    release_q();
  };
  const auto await_values = [&] {
    ptx::wgmma_wait_group<0>();
    ptx::tied(o);
    release_kv(v.index);
  };

  // One block, not the first of a task: P in `from`, and in `to` afterwards.
  const auto step = [&](auto masked, Probabilities& from, Probabilities& to) {
    issue(from);
    accumulate = true;
    await_scores();
    adjust(block);
    if constexpr (decltype(masked)::value) mask(block);
    if constexpr (!L::two_p) await_values();
    float factor[kThreadRows];
    // A warp of its own may move; all of the warpgroup wait together, as .aligned instructions of wgmma demand.
    const bool moved = softmax(to, factor);
    if constexpr (L::two_p) await_values();
    if (__builtin_expect(moved, false)) {
#pragma unroll
      for (int i = 0; i < kOutputs; ++i) o[i] = __fmul_rn(o[i], factor[i / 2 % 2]);
    }
  };
  // The first block of a task: O of the task before it leaves.
  const auto seam = [&](Probabilities& from, Probabilities& to) {
    const int ended_slot = q.index;
    q.advance();
    wait_q();
    issue(from);
    accumulate = false;
    const KvSlot o_slot = next_o();
    const Divisor divisor = finish_rows(state, ended_slot, task, first_position);
    enter_task();
    if constexpr (!config.general()) more = cta.has_task(++next_wave);
    await_scores();
    adjust(block);
    if (needs_mask(block)) mask(block);
    if constexpr (!L::two_p) {
      await_values();
      finish_o(divisor, ended_slot, o_slot);
    }
    first_softmax(to);
    if constexpr (L::two_p) {
      // Never taken, for no sum is negative: like the branch in softmax, it keeps the exponentials in front of the wait.
      if (ptx::vote_sync_any(state.sum[0] < 0.0f || state.sum[1] < 0.0f)) ptx::bar_warp_sync();
      await_values();
      finish_o(divisor, ended_slot, o_slot);
    }
  };
  // The value product of the last block of all. The slot asked for was that of its V, not of another K.
  const auto end = [&](Probabilities& p) {
    order_wait();
    v = L::rings_apart ? next_v() : next;
    wait_kv_warp(v);
    issue_values(p, v.index, accumulate);
    if (consumer + 1 != L::consumers) order_pass();
    const KvSlot o_slot = next_o();
    const Divisor divisor = finish_rows(state, q.index, task, first_position);
    await_values();
    finish_o(divisor, q.index, o_slot);
  };

  const auto has_more = [&] {
    if constexpr (config.general()) return __shfl_sync(0xffffffffu, cta.load_entry(q.index).last, 0) == 0;
    else return more;
  };
  // All blocks of the task but its first, by steps(masked?, down to which block).
  const auto walk_blocks = [&](const auto& steps) {
    if constexpr (bounded_below) {
      for (int32_t end = unmasked_end;; end = regions().begin) {
        steps(std::true_type{}, end);
        if (block < regions().begin) break;
        steps(std::false_type{}, regions().unmasked_begin);
      }
    } else {
      steps(std::true_type{}, unmasked_end);
      steps(std::false_type{}, 0);
    }
  };
  bool in_p1 = false;  // where the next value product finds its P
  const auto with_p = [&](const auto& work) {
    if constexpr (!L::two_p) work(p0, p0);
    else if (in_p1) work(p1, p0);
    else work(p0, p1);
  };
  const auto steps = [&](auto masked, int32_t end) {
    for (; block >= end; --block, in_p1 = !in_p1) with_p([&](Probabilities& from, Probabilities& to) { step(masked, from, to); });
  };
  begin(p0);
  for (;; in_p1 = !in_p1) {
    --block;
    walk_blocks(steps);
    if (!has_more()) break;
    with_p(seam);
  }
  with_p([&](Probabilities& from, Probabilities&) { end(from); });
}

}  // namespace fa4::hopper
