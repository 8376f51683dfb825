// SPDX-License-Identifier: Apache-2.0
// Barriers of threads, and mbarrier in all its forms within one block.
#include "common.cuh"

// Warps 0 and 1 meet at barrier 1, warps 2 and 3 at barrier 2; then all.
ROW(named_barriers) {
  __shared__ uint32_t s[128];
  s[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x < 64) asm volatile("bar.sync 1, 64;" ::: "memory");
  else asm volatile("bar.sync 2, 64;" ::: "memory");
  uint32_t v = s[threadIdx.x ^ 32];
  __syncthreads();
  s[threadIdx.x] = v * 3;
  asm volatile("barrier.cta.sync 5;" ::: "memory");
  out[threadIdx.x] = v + s[127 - threadIdx.x];
}
// Warps 0 to 2 arrive without waiting; warp 3 waits for them.
ROW(arrive_and_sync) {
  __shared__ uint32_t s[128];
  uint32_t sum = 0;
  for (int round = 0; round < 3; ++round) {
    if (threadIdx.x < 96) {
      s[threadIdx.x] = in[threadIdx.x + 128 * round];
      asm volatile("bar.arrive 3, 128;" ::: "memory");
    } else {
      asm volatile("bar.sync 3, 128;" ::: "memory");
      sum = sum * 3 + s[threadIdx.x - 96] + s[threadIdx.x - 64] + s[threadIdx.x - 32];
    }
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}
ROW(barrier_reductions) {
  const uint32_t v = in[threadIdx.x] & 1, all = words.word[0];
  uint32_t count, conjunction, disjunction;
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; bar.red.popc.u32 %0, 0, p; }" : "=r"(count) : "r"(v) : "memory");
  asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0; bar.red.and.pred q, 1, 128, p; selp.u32 %0, 1, 0, q; }"
               : "=r"(conjunction) : "r"(v | all) : "memory");
  asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0; barrier.cta.red.or.aligned.pred q, 2, p; selp.u32 %0, 1, 0, q; }"
               : "=r"(disjunction) : "r"(v & all) : "memory");
  out[threadIdx.x] = count | conjunction << 16 | disjunction << 17;
}
ROW(barrier_by_register) {
  __shared__ uint32_t s[128];
  s[threadIdx.x] = in[threadIdx.x];
  const uint32_t id = words.word[1] + threadIdx.x / 64, count = words.word[2];
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(count) : "memory");
  out[threadIdx.x] = s[threadIdx.x ^ 63];
}
ROW(nonaligned_barrier) {
  __shared__ uint32_t s[128];
  s[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x & 1) asm volatile("barrier.cta.sync 1, 128;" ::: "memory");
  else asm volatile("barrier.cta.sync 1, 128;" ::: "memory");
  out[threadIdx.x] = s[127 - threadIdx.x];
}

ROW(mbarrier_phases) {
  __shared__ alignas(8) uint64_t bar[2];
  __shared__ uint32_t s[128];
  const uint32_t b = shared_address(bar);
  if (threadIdx.x == 0) {
    mbarrier_init(b, 128);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    // Of a fresh barrier the phase before is complete, the present one not.
    out[256] = mbarrier_test(b, 1);
    out[257] = mbarrier_test(b, 0);
  }
  __syncthreads();
  uint32_t sum = 0, ok = 1;
  for (uint32_t round = 0; round < 6; ++round) {
    s[threadIdx.x] = in[threadIdx.x + 128 * round % 512] + round;
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory");
    ok &= mbarrier_wait(b, round & 1);
    sum = sum * 5 + s[127 - threadIdx.x];
    __syncthreads();
  }
  out[threadIdx.x] = sum;
  out[128 + threadIdx.x] = ok;
}
// arrive returns the state of the phase that it arrived in; waits by state; a count with the arrive.
ROW(mbarrier_state) {
  __shared__ alignas(8) uint64_t bar;
  const uint32_t b = shared_address(&bar);
  if (threadIdx.x == 0) mbarrier_init(b, 10);
  __syncthreads();
  if (threadIdx.x == 0) {
    uint64_t state[4];
    uint32_t pending[4], done[8];
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state[0]) : "r"(b) : "memory");
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1], 4;" : "=l"(state[1]) : "r"(b) : "memory");
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 %0, [%1], %2;" : "=l"(state[2]) : "r"(b), "r"(3) : "memory");
    for (int i = 0; i < 3; ++i) asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending[i]) : "l"(state[i]));
    const auto test = [&](uint64_t s) {
      uint32_t r;
      asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(r) : "r"(b), "l"(s) : "memory");
      return r;
    };
    done[0] = test(state[0]);
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1], 2;" : "=l"(state[3]) : "r"(b) : "memory");
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending[3]) : "l"(state[3]));
    done[1] = test(state[0]);
    done[2] = test(state[3]);
    uint64_t next;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(next) : "r"(b) : "memory");
    done[3] = test(next);
    done[4] = test(state[3]);
    done[5] = mbarrier_test(b, 0);
    done[6] = mbarrier_test(b, 1);
    asm volatile("{ .reg .pred p; mbarrier.try_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done[7]) : "r"(b), "l"(state[0]) : "memory");
    for (int i = 0; i < 4; ++i) out[i] = pending[i];
    for (int i = 0; i < 8; ++i) out[4 + i] = done[i];
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(b) : "memory");
    mbarrier_init(b, 1);
    out[12] = mbarrier_test(b, 0);
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory");
    out[13] = mbarrier_test(b, 0);
  }
}
// Transaction bytes: a phase completes when arrivals and bytes are both there, in either order, also before they are expected.
ROW(mbarrier_transactions) {
  __shared__ alignas(8) uint64_t bar;
  const uint32_t b = shared_address(&bar);
  if (threadIdx.x != 0) return;
  mbarrier_init(b, 2);
  int at = 0;
  const auto note = [&](uint32_t parity) { out[at++] = mbarrier_test(b, parity); };
  const auto expect = [&](uint32_t n) { asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(n) : "memory"); };
  const auto complete = [&](uint32_t n) { asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(n) : "memory"); };
  const auto arrive = [&] { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory"); };
  expect(100); note(0);
  arrive(); arrive(); note(0);          // arrivals there, bytes not
  complete(60); note(0);
  complete(40); note(0); note(1);       // complete
  complete(16); note(1);                // bytes ahead of their expectation
  arrive(); mbarrier_expect_tx(b, 16); note(1); note(0);
  arrive(); note(0);
  expect(8); complete(8); note(0);      // back at zero with an arrival missing
  arrive(); note(0); note(1);
  mbarrier_expect_tx(b, 0); note(1); arrive(); note(1);
  out[at] = at;
}
// arrive_drop takes its arrival away from the phases that follow.
ROW(mbarrier_drop) {
  __shared__ alignas(8) uint64_t bar;
  const uint32_t b = shared_address(&bar);
  if (threadIdx.x != 0) return;
  mbarrier_init(b, 4);
  int at = 0;
  uint64_t state;
  uint32_t pending;
  const auto note = [&](uint32_t parity) { out[at++] = mbarrier_test(b, parity); };
  const auto arrive = [&] { asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(b) : "memory");
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state)); out[at++] = pending; };
  asm volatile("mbarrier.arrive_drop.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(b) : "memory");
  note(0);
  arrive(); arrive(); note(0); arrive(); note(0);      // 4 in this phase
  arrive(); arrive(); note(1); arrive(); note(1);      // 3 in the next
  asm volatile("mbarrier.arrive_drop.shared::cta.b64 _, [%0], 2;" ::"r"(b) : "memory");
  note(0); arrive(); note(0);
  arrive(); note(1);                                   // 1 in the one after
  asm volatile("mbarrier.arrive_drop.expect_tx.shared::cta.b64 _, [%0], 0;" ::"r"(b) : "memory");
  note(0);
  out[at] = at;
}
ROW(mbarrier_no_complete) {
  __shared__ alignas(8) uint64_t bar;
  const uint32_t b = shared_address(&bar);
  if (threadIdx.x != 0) return;
  mbarrier_init(b, 5);
  uint64_t state;
  uint32_t pending;
  asm volatile("mbarrier.arrive.noComplete.shared::cta.b64 %0, [%1], 2;" : "=l"(state) : "r"(b) : "memory");
  asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
  out[0] = pending;
  asm volatile("mbarrier.arrive_drop.noComplete.shared::cta.b64 %0, [%1], 1;" : "=l"(state) : "r"(b) : "memory");
  asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
  out[1] = pending;
  out[2] = mbarrier_test(b, 0);
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1], 2;" : "=l"(state) : "r"(b) : "memory");
  out[3] = mbarrier_test(b, 0);
}
// A producer warp and a consumer warp over a ring of three slots.
ROW(mbarrier_ring) {
  __shared__ alignas(8) uint64_t full[3], empty[3];
  __shared__ uint32_t slot[3][32];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 3; ++i) mbarrier_init(shared_address(&full[i]), 32), mbarrier_init(shared_address(&empty[i]), 32);
  }
  __syncthreads();
  const uint32_t lane = threadIdx.x % 32;
  uint32_t ok = 1, sum = 0;
  if (threadIdx.x < 32) {
    for (uint32_t i = 0; i < 16; ++i) {
      ok &= mbarrier_wait(shared_address(&empty[i % 3]), (i / 3 + 1) & 1);
      slot[i % 3][lane] = in[i * 32 + lane];
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&full[i % 3])) : "memory");
    }
  } else if (threadIdx.x < 64) {
    for (uint32_t i = 0; i < 16; ++i) {
      ok &= mbarrier_wait(shared_address(&full[i % 3]), i / 3 & 1);
      sum = sum * 3 + slot[i % 3][31 - lane];
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&empty[i % 3])) : "memory");
    }
  }
  out[threadIdx.x] = sum;
  out[128 + threadIdx.x] = ok;
}
ROW(mbarrier_wait_forms) {
  __shared__ alignas(8) uint64_t bar;
  const uint32_t b = shared_address(&bar);
  if (threadIdx.x == 0) mbarrier_init(b, 128);
  __syncthreads();
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(b) : "memory");
  uint32_t r[4] = {};
  for (int tries = 0; tries < 10000 && !r[0]; ++tries) {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], 0, 0x989680; selp.u32 %0, 1, 0, p; }" : "=r"(r[0]) : "r"(b) : "memory");
  }
  asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(r[1]) : "r"(b) : "memory");
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(r[2]) : "r"(b) : "memory");
  const uint64_t generic = reinterpret_cast<uint64_t>(&bar);
  asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(r[3]) : "l"(generic) : "memory");
  out[threadIdx.x] = r[0] | r[1] << 1 | r[2] << 2 | r[3] << 3;
}
