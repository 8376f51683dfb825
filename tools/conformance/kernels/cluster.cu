// SPDX-License-Identifier: Apache-2.0
// Clusters: places and addresses, distributed shared memory, the cluster's barrier, mbarriers of other CTAs, and copies and
// stores between CTAs. Every CTA writes words of its own, behind those of the CTAs before it.
#include "common.cuh"

#define REG(name)                                          \
  [] {                                                     \
    uint32_t v;                                            \
    asm volatile("mov.u32 %0, %%" name ";" : "=r"(v));     \
    return v;                                              \
  }()

__device__ inline uint32_t linear_cta() { return (REG("ctaid.z") * REG("nctaid.y") + REG("ctaid.y")) * REG("nctaid.x") + REG("ctaid.x"); }
__device__ inline uint32_t rank() { return REG("cluster_ctarank"); }
__device__ inline uint32_t size() { return REG("cluster_nctarank"); }
__device__ inline uint32_t next() { return (rank() + 1) % size(); }
__device__ inline void arrive() { asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); }
__device__ inline void wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }
__device__ inline void cluster_sync() {
  arrive();
  wait();
}
__device__ inline uint32_t at_rank(uint32_t address, uint32_t r) {
  uint32_t d;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(d) : "r"(address), "r"(r));
  return d;
}
__device__ inline uint32_t load_at(uint32_t address) {
  uint32_t v;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
  return v;
}
__device__ inline void store_at(uint32_t address, uint32_t v) { asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address), "r"(v) : "memory"); }
// Barriers that others will use, made and known in the whole cluster.
__device__ inline void init_for_cluster(uint32_t bar, uint32_t count) {
  if (threadIdx.x == 0) {
    mbarrier_init(bar, count);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  cluster_sync();
}
__device__ inline bool wait_for_cluster(uint32_t bar, uint32_t parity) {
  for (int tries = 0; tries < 10000; ++tries) {
    uint32_t done;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(bar), "r"(parity) : "memory");
    if (done) return true;
  }
  return false;
}

// ---- places and addresses --------------------------------------------------------------------------------------------------

ROW(place) {
  if (threadIdx.x != 0) return;
  uint32_t* o = out + linear_cta() * 20;
  o[0] = REG("clusterid.x"), o[1] = REG("clusterid.y"), o[2] = REG("clusterid.z");
  o[3] = REG("nclusterid.x"), o[4] = REG("nclusterid.y"), o[5] = REG("nclusterid.z");
  o[6] = REG("cluster_ctaid.x"), o[7] = REG("cluster_ctaid.y"), o[8] = REG("cluster_ctaid.z");
  o[9] = REG("cluster_nctaid.x"), o[10] = REG("cluster_nctaid.y"), o[11] = REG("cluster_nctaid.z");
  o[12] = rank(), o[13] = size();
  uint32_t is_explicit;
  asm volatile("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }" : "=r"(is_explicit));
  o[14] = is_explicit;
}
ROW(addresses) {
  __shared__ alignas(16) uint32_t s[64];
  s[threadIdx.x] = threadIdx.x;
  cluster_sync();
  if (threadIdx.x == 0) {
    uint32_t* o = out + linear_cta() * 64;
    const uint32_t own = shared_address(s);
    o[0] = own;
    asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(o[1]) : "r"(own));
    for (uint32_t r = 0; r < size(); ++r) {
      uint32_t* p = o + 4 + 6 * r;
      p[0] = at_rank(own, r);
      p[1] = at_rank(p[0], next());  // mapa of an address in another CTA
      asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(p[2]) : "r"(p[0]));
      uint64_t generic, wide;
      asm volatile("mapa.u64 %0, %1, %2;" : "=l"(generic) : "l"(s + 3), "r"(r));
      asm volatile("cvta.shared::cluster.u64 %0, %1;" : "=l"(wide) : "l"(uint64_t(p[0] + 12)));
      uint64_t back;
      asm volatile("cvta.to.shared::cluster.u64 %0, %1;" : "=l"(back) : "l"(generic));
      p[3] = (generic == wide) | (back == p[0] + 12) << 1;
      uint32_t in;
      asm volatile("{ .reg .pred p, q, r; isspacep.shared::cta p, %1; isspacep.shared::cluster q, %1; isspacep.global r, %1; "
                   ".reg .b32 a, b; selp.u32 a, 1, 0, p; selp.u32 b, 2, 0, q; add.u32 a, a, b; selp.u32 b, 4, 0, r; add.u32 %0, a, b; }"
                   : "=r"(in) : "l"(generic));
      uint32_t of;
      asm volatile("getctarank.u64 %0, %1;" : "=r"(of) : "l"(generic));
      p[4] = in | of << 8;
      asm volatile("ld.u32 %0, [%1];" : "=r"(p[5]) : "l"(generic) : "memory");
    }
  }
  cluster_sync();
}

// ---- distributed shared memory -----------------------------------------------------------------------------------------------

// Each thread leaves bytes of all widths with the next CTA, by both kinds of addresses.
ROW(stores_of_all_widths) {
  __shared__ alignas(16) uint32_t s[128 * 12];
  const uint32_t t = threadIdx.x, a = shared_address(s + 12 * t);
  for (int i = 0; i < 12; ++i) s[12 * t + i] = 0;
  cluster_sync();
  const uint32_t there = at_rank(a, next()), x = in[t + 128 * rank()], y = in[(t + 7) % 1024];
  uint64_t generic;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(generic) : "l"(s + 12 * t), "r"(next()));
  asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %2, %1, %2};" ::"r"(there), "r"(x), "r"(y) : "memory");
  asm volatile("st.v2.u32 [%0+16], {%1, %2};" ::"l"(generic), "r"(y), "r"(x) : "memory");
  asm volatile("st.shared::cluster.u16 [%0+24], %1;" ::"r"(there), "h"(uint16_t(x)) : "memory");
  asm volatile("st.u8 [%0+27], %1;" ::"l"(generic), "r"(y) : "memory");
  asm volatile("st.shared::cluster.u64 [%0+32], %1;" ::"r"(there), "l"(uint64_t(x) << 32 | y) : "memory");
  asm volatile("st.release.cluster.shared::cluster.u32 [%0+40], %1;" ::"r"(there), "r"(x ^ y) : "memory");
  asm volatile("st.volatile.shared::cluster.u32 [%0+44], %1;" ::"r"(there), "r"(x + y) : "memory");
  cluster_sync();
  for (int i = 0; i < 12; ++i) out[(linear_cta() * 128 + t) * 12 + i] = s[12 * t + i];
}
ROW(loads_of_all_widths) {
  __shared__ alignas(16) uint32_t s[128 * 4];
  const uint32_t t = threadIdx.x;
  for (int i = 0; i < 4; ++i) s[4 * t + i] = in[(4 * t + i + 100 * rank()) % 1024];
  cluster_sync();
  const uint32_t there = at_rank(shared_address(s + 4 * (127 - t)), next());
  uint64_t generic;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(generic) : "l"(s + 4 * t), "r"(next()));
  uint32_t v[12];
  uint16_t h;
  uint64_t w;
  asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(there) : "memory");
  asm volatile("ld.v2.u32 {%0, %1}, [%2+8];" : "=r"(v[4]), "=r"(v[5]) : "l"(generic) : "memory");
  asm volatile("ld.shared::cluster.s16 %0, [%1+6];" : "=h"(h) : "r"(there) : "memory");
  v[6] = h;
  asm volatile("ld.s8 %0, [%1+5];" : "=r"(v[7]) : "l"(generic) : "memory");
  asm volatile("ld.shared::cluster.u64 %0, [%1+8];" : "=l"(w) : "r"(there) : "memory");
  v[8] = uint32_t(w), v[9] = uint32_t(w >> 32);
  asm volatile("ld.acquire.cluster.shared::cluster.u32 %0, [%1];" : "=r"(v[10]) : "r"(there) : "memory");
  asm volatile("ld.relaxed.cluster.u32 %0, [%1];" : "=r"(v[11]) : "l"(generic) : "memory");
  cluster_sync();
  for (int i = 0; i < 12; ++i) out[(linear_cta() * 128 + t) * 12 + i] = v[i];
}
// All threads of the cluster on words of rank 0; only results that do not depend on the order.
ROW(atomics) {
  __shared__ alignas(16) uint32_t s[32];
  const uint32_t t = threadIdx.x;
  if (t < 32) s[t] = t == 4 ? 0xFFFFFFFF : t == 5 ? 0x7FFFFFFF : 0;
  cluster_sync();
  const uint32_t base = at_rank(shared_address(s), 0), x = in[t + 128 * (linear_cta() % 8)];
  uint64_t generic;
  asm volatile("mapa.u64 %0, %1, 0;" : "=l"(generic) : "l"(s));
  [[maybe_unused]] uint32_t old;
  asm volatile("atom.shared::cluster.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(base), "r"(x) : "memory");
  asm volatile("red.relaxed.cluster.shared::cluster.max.u32 [%0+4], %1;" ::"r"(base), "r"(x) : "memory");
  (void)old;
  asm volatile("atom.acq_rel.cluster.shared::cluster.or.b32 %0, [%1+8], %2;" : "=r"(old) : "r"(base), "r"(x & 0x0F0F0F0F) : "memory");
  asm volatile("red.shared::cluster.xor.b32 [%0+12], %1;" ::"r"(base), "r"(x) : "memory");
  asm volatile("red.shared::cluster.and.b32 [%0+16], %1;" ::"r"(base), "r"(x | 0xFF00FF00) : "memory");
  asm volatile("red.shared::cluster.min.s32 [%0+20], %1;" ::"r"(base), "r"(x) : "memory");
  asm volatile("red.shared::cluster.inc.u32 [%0+24], 50;" ::"r"(base) : "memory");
  asm volatile("red.shared::cluster.dec.u32 [%0+28], 77;" ::"r"(base) : "memory");
  asm volatile("red.shared::cluster.add.u64 [%0+32], %1;" ::"r"(base), "l"(uint64_t(x) << 20) : "memory");
  asm volatile("red.add.u32 [%0+40], %1;" ::"l"(generic), "r"(x >> 3) : "memory");
  asm volatile("red.shared::cluster.add.f32 [%0+44], 0f3F800000;" ::"r"(base) : "memory");
  // a counter by compare-and-swap
  for (uint32_t seen = 0, done = 0; !done;) {
    uint32_t found;
    asm volatile("atom.relaxed.cluster.shared::cluster.cas.b32 %0, [%1+48], %2, %3;" : "=r"(found) : "r"(base), "r"(seen), "r"(seen + 3) : "memory");
    done = found == seen;
    seen = found;
  }
  cluster_sync();
  if (t < 32) out[linear_cta() * 32 + t] = load_at(base + 4 * t);
  cluster_sync();
}
// One thread after the other, so that the old values are known.
ROW(atomics_in_turn) {
  __shared__ uint32_t s[2];
  if (threadIdx.x < 2) s[threadIdx.x] = in[threadIdx.x];
  cluster_sync();
  uint32_t old[4] = {};
  for (uint32_t r = 0; r < size(); ++r) {
    if (rank() == r && threadIdx.x == 0) {
      const uint32_t base = at_rank(shared_address(s), next());
      asm volatile("atom.shared::cluster.exch.b32 %0, [%1], %2;" : "=r"(old[0]) : "r"(base), "r"(in[10 + r]) : "memory");
      asm volatile("atom.shared::cluster.cas.b32 %0, [%1], %2, %3;" : "=r"(old[1]) : "r"(base), "r"(in[10 + r]), "r"(r) : "memory");
      asm volatile("atom.shared::cluster.max.s32 %0, [%1], %2;" : "=r"(old[2]) : "r"(base), "r"(in[20 + r]) : "memory");
      asm volatile("atom.shared::cluster.add.u32 %0, [%1+4], %2;" : "=r"(old[3]) : "r"(base), "r"(r) : "memory");
    }
    cluster_sync();
  }
  if (threadIdx.x == 0) {
    for (int i = 0; i < 4; ++i) out[linear_cta() * 8 + i] = old[i];
    out[linear_cta() * 8 + 4] = s[0], out[linear_cta() * 8 + 5] = s[1];
  }
}

// ---- the cluster's barrier -----------------------------------------------------------------------------------------------------

// Numbers go round the cluster; arrival and wait stand apart.
ROW(barrier_phases) {
  __shared__ uint32_t s[2][128];
  const uint32_t t = threadIdx.x;
  uint32_t v = in[t + 128 * (linear_cta() % 8)];
  cluster_sync();  // all have begun
  for (uint32_t round = 0; round < 9; ++round) {
    store_at(at_rank(shared_address(&s[round & 1][t]), next()), v);
    arrive();
    const uint32_t meanwhile = v * 2654435761u + round;
    wait();
    v = s[round & 1][(t + 1) % 128] ^ meanwhile;
  }
  cluster_sync();
  out[linear_cta() * 128 + t] = v;
}
ROW(barrier_relaxed) {
  __shared__ uint32_t s[128];
  const uint32_t t = threadIdx.x;
  s[t] = in[t + 128 * (linear_cta() % 8)];
  asm volatile("fence.acq_rel.cluster; barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
  const uint32_t v = load_at(at_rank(shared_address(s + (t ^ 5)), next()));
  asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait;" ::: "memory");
  out[linear_cta() * 128 + t] = v;
}
// Lanes come on different ways, some threads leave before.
ROW(barrier_diverged) {
  __shared__ uint32_t s[128];
  const uint32_t t = threadIdx.x;
  s[t] = t;
  if (t >= 96 + 4 * rank()) return;
  if (t & 1) asm volatile("barrier.cluster.arrive;" ::: "memory");
  else asm volatile("barrier.cluster.arrive.release;" ::: "memory");
  asm volatile("barrier.cluster.wait;" ::: "memory");
  const uint32_t v = load_at(at_rank(shared_address(s + t % 96), next()));
  asm volatile("barrier.cluster.arrive; barrier.cluster.wait.acquire;" ::: "memory");
  out[linear_cta() * 128 + t] = v + 1000 * rank();
}

// ---- mbarriers of other CTAs ---------------------------------------------------------------------------------------------------

// Each phase of a CTA's barrier has arrivals of every CTA: one by one, by counts, with bytes that others announce and complete.
ROW(remote_arrivals) {
  __shared__ alignas(8) uint64_t bar[2];
  __shared__ uint32_t s[8];
  const uint32_t b = shared_address(bar), t = threadIdx.x, n = size();
  init_for_cluster(b, 3 * n);
  uint32_t ok = 1, sum = 0;
  for (uint32_t phase = 0; phase < 4; ++phase) {
    if (t < n) {
      const uint32_t there = at_rank(b, t);
      store_at(at_rank(shared_address(s + rank()), t), in[phase * 64 + rank() * 8 + t]);
      asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");
      if (phase & 1) asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], 2;" ::"r"(there) : "memory");
      else asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], 48; mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%0], 16; "
                        "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], 64; mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");
    }
    ok &= wait_for_cluster(b, phase & 1);
    for (uint32_t r = 0; r < n; ++r) sum = sum * 31 + s[r];
    cluster_sync();
  }
  out[linear_cta() * 256 + t] = sum;
  out[linear_cta() * 256 + 128 + t] = ok;
}
// Ranks but the first leave one after the other: each phase of rank 0's barrier needs one arrival less.
ROW(remote_drops) {
  __shared__ alignas(8) uint64_t bar;
  const uint32_t b = shared_address(&bar), n = size();
  init_for_cluster(b, n);
  uint32_t phases = 0;
  for (uint32_t phase = 0; phase < n; ++phase) {
    if (threadIdx.x == 0 && rank() + phase < n) {
      const uint32_t there = at_rank(b, 0);
      if (rank() + phase + 1 == n && rank() > 0) asm volatile("mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");
      else asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");
    }
    if (rank() == 0) phases += wait_for_cluster(b, phase & 1);
    cluster_sync();
  }
  out[linear_cta() * 128 + threadIdx.x] = phases;
}
// A ring of two stages through the cluster: full barriers at the receiver, empty ones at the sender.
ROW(ring) {
  __shared__ alignas(8) uint64_t full[2], empty[2];
  __shared__ uint32_t s[2][32];
  const uint32_t t = threadIdx.x, f = shared_address(full), e = shared_address(empty);
  if (t == 0) {
    for (int i = 0; i < 2; ++i) mbarrier_init(f + 8 * i, 32), mbarrier_init(e + 8 * i, 32);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
  const uint32_t before = (rank() + size() - 1) % size();
  if (t < 32) {  // sends to the next
    for (uint32_t i = 0; i < 8; ++i) {
      wait_for_cluster(e + 8 * (i & 1), ~(i >> 1) & 1);
      store_at(at_rank(shared_address(&s[i & 1][t]), next()), in[32 * i + t] + rank());
      asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(at_rank(f + 8 * (i & 1), next())) : "memory");
    }
  } else if (t < 64) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 8; ++i) {
      wait_for_cluster(f + 8 * (i & 1), i >> 1 & 1);
      sum = sum * 7 + s[i & 1][63 - t];
      asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(at_rank(e + 8 * (i & 1), before)) : "memory");
    }
    out[linear_cta() * 32 + t - 32] = sum;
  }
  cluster_sync();
}

// ---- asynchronous stores and copies --------------------------------------------------------------------------------------------

ROW(st_async) {
  __shared__ alignas(8) uint64_t bar;
  __shared__ alignas(16) uint32_t s[128 * 12];
  const uint32_t t = threadIdx.x, b = shared_address(&bar);
  for (int i = 0; i < 12; ++i) s[12 * t + i] = 0;
  init_for_cluster(b, 1);
  if (t == 0) mbarrier_expect_tx(b, 128 * 48);
  const uint32_t to = at_rank(shared_address(s + 12 * t), next()), there = at_rank(b, next()), x = in[t + 128 * rank()], y = in[t];
  const uint64_t w = uint64_t(x) << 32 | y;
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to), "r"(x), "r"(there) : "memory");
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0+4], %1, [%2];" ::"r"(to), "r"(y), "r"(there) : "memory");
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u64 [%0+8], %1, [%2];" ::"r"(to), "l"(w), "r"(there) : "memory");
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0+16], {%1, %2, %2, %1}, [%3];" ::"r"(to), "r"(x), "r"(y), "r"(there) : "memory");
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0+32], {%1, %2}, [%3];" ::"r"(to), "f"(__uint_as_float(y)), "f"(__uint_as_float(x)), "r"(there) : "memory");
  uint64_t generic, generic_bar;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(generic) : "l"(s + 12 * t), "r"(next()));
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(generic_bar) : "l"(&bar), "r"(next()));
  asm volatile("st.async.mbarrier::complete_tx::bytes.b64 [%0+40], %1, [%2];" ::"l"(generic), "l"(~w), "l"(generic_bar) : "memory");
  const uint32_t ok = wait_for_cluster(b, 0);
  for (int i = 0; i < 12; ++i) out[(linear_cta() * 128 + t) * 12 + i] = ok ? s[12 * t + i] : 0xBAD;
  cluster_sync();
}
#define RED_ASYNC(op, type, at, value) \
  asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes." op "." type " [%0+" at "], %1, [%2];" ::"r"(to), value, "r"(there) : "memory")
ROW(red_async) {
  __shared__ alignas(8) uint64_t bar;
  __shared__ alignas(16) uint32_t s[32];
  const uint32_t t = threadIdx.x, b = shared_address(&bar);
  if (t < 32) s[t] = in[t];
  init_for_cluster(b, 1);
  if (t == 0) mbarrier_expect_tx(b, 128 * size() * 52);
  for (uint32_t r = 0; r < size(); ++r) {
    const uint32_t to = at_rank(shared_address(s), r), there = at_rank(b, r), x = in[t + 128 * rank()];
    RED_ASYNC("add", "u32", "0", "r"(x));
    RED_ASYNC("add", "s32", "4", "r"(x));
    RED_ASYNC("min", "u32", "8", "r"(x));
    RED_ASYNC("max", "u32", "12", "r"(x));
    RED_ASYNC("min", "s32", "16", "r"(x));
    RED_ASYNC("max", "s32", "20", "r"(x));
    RED_ASYNC("inc", "u32", "24", "r"(1000u));
    RED_ASYNC("dec", "u32", "28", "r"(900u));
    RED_ASYNC("and", "b32", "32", "r"(x | 0xF0F0FFFF));
    RED_ASYNC("or", "b32", "36", "r"(x & 0xF0F00000));
    RED_ASYNC("xor", "b32", "40", "r"(x));
    RED_ASYNC("add", "u64", "48", "l"(uint64_t(x) << 13));
  }
  const uint32_t ok = wait_for_cluster(b, 0);
  if (t < 32) out[linear_cta() * 32 + t] = ok ? s[t] : 0xBAD;
  cluster_sync();
}
// words[0] bytes at words[1] go to words[2] of the next CTA; all CTAs at once.
ROW(copy_to_next) {
  extern __shared__ __align__(128) uint32_t s[];
  const uint32_t t = threadIdx.x, b = shared_address(s), words_each = words.word[5] / 4;
  for (uint32_t i = 16 + t; i < words_each; i += blockDim.x) s[i] = in[(i + 77 * rank()) % 1024];
  proxy_fence();
  init_for_cluster(b, 1);
  if (t == 0) {
    mbarrier_expect_tx(b, words.word[0]);
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at_rank(b + words.word[2], next())),
                 "r"(b + words.word[1]), "r"(words.word[0]), "r"(at_rank(b, next())) : "memory");
  }
  const uint32_t ok = wait_for_cluster(b, 0);
  for (uint32_t i = 16 + t; i < words_each; i += blockDim.x) out[linear_cta() * words_each + i] = ok ? s[i] : 0xBAD;
  cluster_sync();
}
#define REDUCE(number, op, type)                                                                                                              \
  case number:                                                                                                                                \
    asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes." op "." type " [%0], [%1], 1024, [%2];" ::"r"(to), \
                 "r"(from), "r"(there) : "memory");                                                                                           \
    break;
// Every CTA reduces its 1 KiB into rank 0's.
ROW(reduce_into_first) {
  __shared__ alignas(8) uint64_t bar;
  __shared__ alignas(128) uint32_t source[256], sum[256];
  const uint32_t t = threadIdx.x, b = shared_address(&bar);
  source[t] = in[(t + 256 * rank()) % 1024];
  sum[t] = in[1023 - t];
  proxy_fence();
  init_for_cluster(b, 1);
  if (t == 0) {
    if (rank() == 0) mbarrier_expect_tx(b, 1024 * size());
    const uint32_t to = at_rank(shared_address(sum), 0), from = shared_address(source), there = at_rank(b, 0);
    switch (words.word[0]) {
      REDUCE(0, "add", "u32") REDUCE(1, "add", "s32") REDUCE(2, "add", "u64") REDUCE(3, "min", "u32") REDUCE(4, "min", "s32") REDUCE(5, "max", "u32")
      REDUCE(6, "max", "s32") REDUCE(7, "inc", "u32") REDUCE(8, "dec", "u32") REDUCE(9, "and", "b32") REDUCE(10, "or", "b32") REDUCE(11, "xor", "b32")
    }
  }
  const uint32_t ok = rank() == 0 ? wait_for_cluster(b, 0) : 1;
  out[linear_cta() * 256 + t] = ok ? sum[t] : 0xBAD;
  cluster_sync();
}
// Bulk loads from global memory: words[0] bytes from in + words[1] of each CTA that loads (mask words[2]) to the CTAs of mask
// words[3], at words[4] plus 1024 bytes for each loading rank. words[3] of 0: no multicast, to the next CTA.
ROW(multicast_bulk) {
  extern __shared__ __align__(128) uint32_t s[];
  const uint32_t t = threadIdx.x, b = shared_address(s), words_each = words.word[5] / 4, loaders = words.word[2], targets = words.word[3];
  for (uint32_t i = 16 + t; i < words_each; i += blockDim.x) s[i] = 0;
  proxy_fence();
  init_for_cluster(b, 1);
  const bool loads = loaders >> rank() & 1;
  const bool receives = targets ? targets >> rank() & 1 : loaders >> (rank() + size() - 1) % size() & 1;
  uint32_t ok = 1;
  if (t == 0 && receives) mbarrier_expect_tx(b, words.word[0] * (targets ? __popc(loaders) : 1));
  if (t == 0 && loads) {
    const uint32_t to = b + words.word[4] + 1024 * rank();
    const uint32_t* from = in + (words.word[1] + 64 * rank()) / 4;
    if (targets) {
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(to), "l"(from),
                   "r"(words.word[0]), "r"(b), "h"(uint16_t(targets)) : "memory");
    } else {
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at_rank(to, next())), "l"(from),
                   "r"(words.word[0]), "r"(at_rank(b, next())) : "memory");
    }
  }
  if (receives) ok = wait_for_cluster(b, 0);
  for (uint32_t i = 16 + t; i < words_each; i += blockDim.x) out[linear_cta() * words_each + i] = ok ? s[i] : 0xBAD;
  cluster_sync();
}
// The same with boxes of rank 2 at (words[0], words[1] + 4 * rank), words[7] bytes.
ROW(multicast_box) {
  extern __shared__ __align__(1024) uint32_t boxes[];
  const uint32_t t = threadIdx.x, words_each = words.word[5] / 4, loaders = words.word[2], targets = words.word[3];
  const uint32_t b = shared_address(boxes);
  uint32_t* const s = boxes;
  for (uint32_t i = 32 + t; i < words_each; i += blockDim.x) s[i] = 0;
  proxy_fence();
  init_for_cluster(b, 1);
  const bool loads = loaders >> rank() & 1;
  const bool receives = targets ? targets >> rank() & 1 : loaders >> (rank() + size() - 1) % size() & 1;
  uint32_t ok = 1;
  if (t == 0 && receives) mbarrier_expect_tx(b, words.word[7] * (targets ? __popc(loaders) : 1));
  if (t == 0 && loads) {
    const uint32_t to = b + words.word[4] + words.word[6] * rank();
    const uint32_t x = words.word[0], y = words.word[1] + 4 * rank();
    if (targets) {
      asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                   "l"(&map), "r"(x), "r"(y), "r"(b), "h"(uint16_t(targets)) : "memory");
    } else {
      asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(at_rank(to, next())),
                   "l"(&map), "r"(x), "r"(y), "r"(at_rank(b, next())) : "memory");
    }
  }
  if (receives) ok = wait_for_cluster(b, 0);
  for (uint32_t i = 32 + t; i < words_each; i += blockDim.x) out[linear_cta() * words_each + i] = ok ? s[i] : 0xBAD;
  cluster_sync();
}
// A pipeline as kernels have it: rank 0 loads for all, two stages, consumers of every CTA say at rank 0 when a stage is free.
ROW(multicast_pipeline) {
  __shared__ alignas(8) uint64_t full[2], empty[2];
  __shared__ alignas(128) uint32_t s[2][64];
  const uint32_t t = threadIdx.x, f = shared_address(full), e = shared_address(empty), n = size();
  if (t == 0) {
    for (int i = 0; i < 2; ++i) mbarrier_init(f + 8 * i, 1), mbarrier_init(e + 8 * i, n);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
  uint32_t sum = 0;
  if (t == 64) {
    for (uint32_t i = 0; i < 12; ++i) {
      const uint32_t stage = i & 1;
      if (i >= 2) wait_for_cluster(f + 8 * stage, (i - 2) >> 1 & 1);
      mbarrier_expect_tx(f + 8 * stage, 256);  // may come after the bytes: its arrival is what the phase waits for
      if (rank() != 0) continue;
      wait_for_cluster(e + 8 * stage, ~(i >> 1) & 1);
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 256, [%2], %3;" ::"r"(
                       shared_address(s[stage])), "l"(in + 64 * i), "r"(f + 8 * stage), "h"(uint16_t((1u << n) - 1)) : "memory");
    }
  } else if (t < 64) {
    for (uint32_t i = 0; i < 12; ++i) {
      const uint32_t stage = i & 1;
      wait_for_cluster(f + 8 * stage, i >> 1 & 1);
      sum = sum * 33 + s[stage][(t + rank()) % 64];
      asm volatile("bar.sync 1, 64;" ::: "memory");
      if (t == 0) asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(at_rank(e + 8 * stage, 0)) : "memory");
    }
    out[linear_cta() * 64 + t] = sum;
  }
  cluster_sync();
}
